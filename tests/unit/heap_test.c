/* Heaps: what survives, what is freed, limits, missing memory, and misuse that the net must name. */
#include "harness.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "blitz.h"
#include "support/counted.h"
#include "support/sanitizers.h"

struct node {
    struct node *left, *right;
    long key;
};
BLITZ_TYPE(heap_node, struct node, left, right);

struct pair {
    struct pair *head, *tail;
    long key;
};
BLITZ_VALUE_TYPE(heap_pair, struct pair, head, tail);

struct table {
    long n;
    struct node *slots[];
};
BLITZ_TYPE_PARTS(heap_table, struct table, BLITZ_TAIL(struct table, slots));

static blitz_heap *heap_of(const blitz_heap_opts *opts)
{
    blitz_heap *h = NULL;
    CHECK_EQ(blitz_heap_new(opts, &h), 0);
    return h;
}

static struct node *node_of(blitz_heap *h, long key, struct node *left, struct node *right)
{
    struct node *n = blitz_heap_alloc(h, &heap_node);
    if (n != NULL)
        *n = (struct node){left, right, key};
    return n;
}

static struct pair *pair_of(blitz_heap *h, long key, struct pair *head, struct pair *tail)
{
    return blitz_heap_copy(h, &heap_pair, 0, &(struct pair){head, tail, key});
}

static blitz_heap_info info_of(blitz_heap *h)
{
    blitz_heap_info info;
    blitz_heap_info_get(h, &info);
    return info;
}

static uint64_t resident_kib(void)
{
    unsigned long long size = 0, resident = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    CHECK_NOT_NULL(f);
    CHECK_EQ(fscanf(f, "%llu %llu", &size, &resident), 2);
    fclose(f);
    return resident * (uint64_t)sysconf(_SC_PAGESIZE) / 1024;
}

/* ---- allocation ---- */

/* An actor that never allocates must not pay for a heap. */
TEST(heap, an_empty_heap_holds_no_chunk)
{
    counted_refuse(0, false);
    blitz_heap *h = heap_of(&(blitz_heap_opts){.allocator = &counted});
    CHECK_EQ(counted_blocks(), 1);
    CHECK_EQ(blitz_heap_collect(h, NULL, 0), 0);
    CHECK_EQ(blitz_heap_tidy(h, NULL, 0), 0);
    CHECK_EQ(counted_blocks(), 1);
    CHECK_EQ(info_of(h).live_bytes, 0);
    blitz_heap_unref(h);
    blitz_heap_unref(NULL);
    CHECK_EQ(counted_blocks(), 0);
}

/* The first chunk is small: a million small heaps must fit. */
TEST(heap, the_first_object_costs_a_few_hundred_bytes)
{
    blitz_heap *h = heap_of(NULL);
    size_t before = info_of(h).held_bytes;
    CHECK_NOT_NULL(node_of(h, 1, NULL, NULL));
    CHECK_LE(info_of(h).held_bytes - before, 512);
    blitz_heap_unref(h);
}

/* Memory that was used before must not show. */
TEST(heap, new_objects_are_zeroed)
{
    blitz_heap *h = heap_of(NULL);
    static const char zeroes[5000];
    for (int round = 0; round < 3; round++) {
        for (size_t size = 1; size < 5000; size += 97) {
            char *bytes = blitz_heap_bytes(h, size);
            CHECK_MEM_EQ(bytes, zeroes, size);
            CHECK_EQ(blitz_heap_count(bytes), size);
            CHECK_EQ((uintptr_t)bytes % 8, 0);
            memset(bytes, 0xff, size);
            struct node *n = blitz_heap_alloc(h, &heap_node);
            CHECK(n->left == NULL && n->right == NULL && n->key == 0);
            memset(n, 0xff, sizeof *n);
        }
        CHECK_EQ(blitz_heap_collect(h, NULL, 0), 0);
        CHECK_EQ(info_of(h).live_bytes, 0);
    }
    blitz_heap_unref(h);
}

TEST(heap, strings_are_copied_and_survive)
{
    blitz_heap *h = heap_of(NULL);
    char text[] = "a string of some length";
    char *s = blitz_heap_string(h, text), *none = blitz_heap_string(h, "");
    text[0] = 'X';
    CHECK_EQ(BLITZ_HEAP_COLLECT(h, &s, &none), 0);
    CHECK_STR_EQ(s, "a string of some length");
    CHECK_STR_EQ(none, "");
    CHECK_EQ(blitz_heap_count(s), sizeof text);
    blitz_heap_unref(h);
}

/* ---- collections ---- */

/* Recursion would overflow the stack here. */
TEST(heap, a_list_of_a_million_nodes_survives)
{
    enum { LENGTH = 1000000 };
    for (int is_value = 0; is_value < 2; is_value++) {
        blitz_heap *h = heap_of(NULL);
        struct node *list = NULL;
        for (long i = 0; i < LENGTH; i++) {
            list = is_value ? (struct node *)pair_of(h, i, NULL, (struct pair *)list)
                            : node_of(h, i, NULL, list);
            CHECK_EQ(BLITZ_HEAP_TIDY(h, &list), 0);
        }
        CHECK_GT(info_of(h).minor, 0);
        CHECK_EQ(BLITZ_HEAP_COLLECT(h, &list), 0);
        CHECK_EQ(info_of(h).live_bytes, (sizeof *list + 8) * (size_t)LENGTH);
        long i = LENGTH;
        for (struct node *n = list; n != NULL; n = n->right)
            CHECK_EQ(n->key, --i);
        CHECK_EQ(i, 0);
        blitz_heap_unref(h);
    }
}

/* Two pointers to one object are still equal afterwards, also in a circle and from two roots. */
TEST(heap, shared_objects_and_circles_keep_their_form)
{
    blitz_heap *h = heap_of(NULL);
    struct node *a = node_of(h, 1, NULL, NULL), *b = node_of(h, 2, a, a), *same = b;
    a->left = a;
    a->right = b;
    for (int round = 0; round < 4; round++) {
        CHECK_EQ(BLITZ_HEAP_COLLECT(h, &b, &same, &b), 0); /* b is named twice */
        CHECK_EQ(b, same);
        CHECK_EQ(b->left, b->right);
        a = b->left;
        CHECK_EQ(a->left, a);
        CHECK_EQ(a->right, b);
        CHECK_EQ(info_of(h).live_bytes, 2 * (sizeof *a + 8));
    }
    blitz_heap_unref(h);
}

/* An old object that was changed is the only one that knows a young one. */
TEST(heap, a_minor_collection_finds_young_objects_through_old_ones)
{
    blitz_heap *h = heap_of(&(blitz_heap_opts){.verify = true});
    struct node *old = node_of(h, 1, NULL, NULL);
    CHECK_EQ(BLITZ_HEAP_COLLECT(h, &old), 0);
    struct node *was = old;
    old->left = node_of(h, 2, NULL, NULL);
    struct table *large = blitz_heap_alloc_tail(h, &heap_table, 1000);
    CHECK_EQ(BLITZ_HEAP_TIDY(h, &old, &large), 0); /* full is 1, minor 0: a minor one */
    CHECK_EQ(info_of(h).minor, 1);
    CHECK_EQ(old, was);
    CHECK_EQ(old->left->key, 2);
    CHECK_EQ(BLITZ_HEAP_TIDY(h, &old, &large), 0);
    large->slots[999] = node_of(h, 3, NULL, NULL);
    CHECK_EQ(BLITZ_HEAP_TIDY(h, &old, &large), 0);
    CHECK_EQ(info_of(h).minor, 2);
    CHECK_EQ(large->slots[999]->key, 3);
    blitz_heap_unref(h);
}

TEST(heap, large_objects_stay_until_no_pointer_leads_to_them)
{
    counted_refuse(0, false);
    blitz_heap *h = heap_of(&(blitz_heap_opts){.allocator = &counted});
    struct table *t = blitz_heap_alloc_tail(h, &heap_table, 10000), *was = t;
    for (int i = 0; i < 10000; i++)
        t->slots[i] = node_of(h, i, NULL, NULL);
    t->slots[7]->left = (struct node *)t; /* and back */
    CHECK_EQ(BLITZ_HEAP_COLLECT(h, &t), 0);
    CHECK_EQ(t, was);
    CHECK_EQ(blitz_heap_count(t), 10000);
    for (int i = 0; i < 10000; i++)
        CHECK_EQ(t->slots[i]->key, i);
    struct node *n = t->slots[7];
    t = NULL;
    CHECK_EQ(BLITZ_HEAP_COLLECT(h, &n), 0);
    CHECK_EQ(n->left, (struct node *)was);
    size_t with = info_of(h).held_bytes;
    n->left = NULL;
    CHECK_EQ(BLITZ_HEAP_COLLECT(h, &n), 0);
    CHECK_LE(info_of(h).held_bytes, with - 80000);
    blitz_heap_unref(h);
    CHECK_EQ(counted_blocks(), 0);
}

/* The state of an actor: its fields are roots without being named. */
TEST(heap, the_root_struct_is_always_a_root)
{
    struct node state = {0};
    blitz_heap *h = heap_of(&(blitz_heap_opts){.root = &state, .root_type = &heap_node});
    state.left = node_of(h, 5, NULL, NULL);
    CHECK_EQ(blitz_heap_collect(h, NULL, 0), 0);
    CHECK_EQ(BLITZ_HEAP_COLLECT(h, &state.left), 0); /* twice: as a field and by name */
    CHECK_EQ(state.left->key, 5);
    CHECK_EQ(info_of(h).live_bytes, sizeof state + 8);
    blitz_heap_unref(h);
}

/* ---- in an actor, as docs/memory.md says ---- */

enum { ADD, SUM };

struct adder {
    struct node *list;
    blitz_heap *heap; /* not an object of the heap: not mapped */
};
BLITZ_TYPE(heap_adder, struct adder, list);

static int adder_init(void *state)
{
    return blitz_heap_new(
        &(blitz_heap_opts){
            .root = state, .root_type = &heap_adder, .allocator = &counted, .verify = true},
        &((struct adder *)state)->heap);
}

BLITZ_HANDLER(on_add, struct adder, long)
{
    (void)m;
    state->list = node_of(state->heap, *data, NULL, state->list);
    return blitz_heap_tidy(state->heap, NULL, 0);
}

BLITZ_HANDLER(on_sum, struct adder, void)
{
    (void)data;
    long sum = 0;
    for (struct node *n = state->list; n != NULL; n = n->right)
        sum += n->key;
    return blitz_actor_reply(m->reply, &sum, sizeof sum);
}

static void adder_drop(void *value, void *ctx)
{
    (void)ctx;
    blitz_heap_unref(((struct adder *)value)->heap);
}

static const blitz_handler adder_handlers[] = {BLITZ_ON(ADD, long, on_add),
                                               BLITZ_ON_EMPTY(SUM, on_sum)};
static const blitz_behaviour adder = {.name = "adder",
                                      .state_bytes = sizeof(struct adder),
                                      .init = adder_init,
                                      .handlers = adder_handlers,
                                      .handler_count = 2,
                                      .drop = adder_drop};

static int adder_main(void *arg)
{
    blitz_actor_id id;
    long sum = 0;
    (void)arg;
    CHECK_EQ(blitz_actor_spawn(&adder, NULL, NULL, &id), 0);
    for (long i = 1; i <= 300; i++)
        CHECK_EQ(blitz_actor_send(id, ADD, &i, sizeof i), 0);
    CHECK_EQ(blitz_actor_call(id, SUM, NULL, 0, &sum, sizeof sum, BLITZ_FOREVER), sizeof sum);
    CHECK_EQ(sum, 300 * 301 / 2);
    CHECK_EQ(blitz_actor_stop(id), 0);
    int err = blitz_actor_join(id, NULL, BLITZ_FOREVER);
    CHECK(err == 0 || err == -ESRCH);
    return 0;
}

/* The state stays where it is, so its pointers are roots between two messages. */
TEST(heap, an_actor_may_own_one)
{
    counted_refuse(0, false);
    CHECK_EQ(blitz_run(adder_main, NULL, NULL), 0);
    CHECK_EQ(counted_blocks(), 0);
}

/* ---- memory ---- */

/* A heap that was large once must not stay so. */
TEST(heap, held_memory_falls_with_the_live_data)
{
    blitz_heap *h = heap_of(NULL);
    struct node *list = NULL;
    for (long i = 0; i < 400000; i++)
        list = node_of(h, i, NULL, list);
    CHECK_EQ(BLITZ_HEAP_COLLECT(h, &list), 0);
    CHECK_LE(info_of(h).held_bytes, 2 * info_of(h).live_bytes + (1 << 20));
    for (int i = 0; i < 360000; i++)
        list = list->right;
    CHECK_EQ(BLITZ_HEAP_COLLECT(h, &list), 0);
    CHECK_EQ(BLITZ_HEAP_COLLECT(h, &list), 0);
    CHECK_LE(info_of(h).held_bytes, 2 * info_of(h).live_bytes + (256 << 10));
    list = NULL;
    CHECK_EQ(BLITZ_HEAP_COLLECT(h, &list), 0);
    CHECK_LE(info_of(h).held_bytes, 40 << 10);
    blitz_heap_unref(h);
}

/* Allocate garbage, as a program does that goes on, until a full collection has come. */
static void go_on(blitz_heap *h, void *list)
{
    uint64_t full = info_of(h).full;
    size_t bytes = 0, most = 20 * info_of(h).live_bytes + (1 << 20);
    while (info_of(h).full == full) {
        for (int i = 0; i < 1000; i++)
            CHECK_NOT_NULL(node_of(h, i, NULL, NULL));
        bytes += 1000 * (sizeof(struct node) + 8);
        CHECK_LE(bytes, most);
        CHECK_EQ(BLITZ_HEAP_TIDY(h, list), 0);
    }
}

static struct node *pushed(blitz_heap *h, struct node *list, long count)
{
    for (long i = 0; i < count; i++) {
        list = node_of(h, i, NULL, list);
        if (i % 1000 == 0)
            CHECK_EQ(BLITZ_HEAP_TIDY(h, &list), 0);
    }
    return list;
}

/* The old part does not grow when it dies, so nothing but the bytes that were allocated since can tell. */
TEST(heap, an_old_part_that_has_died_is_collected)
{
    blitz_heap *h = heap_of(NULL);
    struct pair *live = NULL;
    for (long i = 0; i < 100000; i++)
        live = pair_of(h, i, NULL, live);
    CHECK_EQ(BLITZ_HEAP_COLLECT(h, &live), 0);
    size_t before = info_of(h).live_bytes;
    live = NULL;
    go_on(h, &live);
    CHECK_LT(info_of(h).live_bytes, before / 10);
    blitz_heap_unref(h);
}

/* Nor does the process keep what the heap has given back: the C library would, between blocks that are in use. */
TEST(heap, resident_memory_falls_with_the_live_data)
{
    enum { MANY = 1000000, FEW = 300000, SLACK_KIB = 4096 };
    if (T_ASAN || T_TSAN || t_under_valgrind())
        t_skip("resident memory is not the heap's alone");
    blitz_heap *h = heap_of(NULL);
    struct node *list = NULL;
    uint64_t before = resident_kib();
    for (int round = 0; round < 2; round++) {
        list = pushed(h, NULL, MANY);
        for (int i = 0; i < MANY - FEW; i++)
            list = list->right;
        go_on(h, &list);
        uint64_t live = FEW * (sizeof(struct node) + 8) / 1024, resident = resident_kib() - before;
        t_note("%llu KiB are live, %llu resident", (unsigned long long)live,
               (unsigned long long)resident);
        CHECK_LE(resident, 2 * live + SLACK_KIB);
    }
    blitz_heap_unref(h);
}

/* Fresh memory from the system costs more than the collection. */
TEST(heap, memory_is_kept_from_one_collection_to_the_next)
{
    blitz_heap *h = heap_of(NULL);
    struct pair *live = NULL;
    for (long i = 0; i < 20000; i++)
        live = pair_of(h, i, NULL, live);
    static unsigned char seen[1 << 20]; /* by page */
    int pages = 0, again = 0;
    for (int round = 0; round < 20; round++) {
        pages = again = 0;
        for (int i = 0; i < 20000; i++) {
            struct pair *p = pair_of(h, i, NULL, NULL);
            size_t page = (uintptr_t)p / 4096 % sizeof seen;
            pages += seen[page] != round + 1;
            again += round > 0 && seen[page] == round;
            seen[page] = (unsigned char)(round + 1);
        }
        CHECK_EQ(BLITZ_HEAP_TIDY(h, &live), 0);
    }
    t_note("%d of %d pages are those of the round before", again, pages);
    CHECK_GE(again * 10, pages * 8);
    blitz_heap_unref(h);
}

TEST(heap, the_limit_refuses_and_a_collection_makes_room)
{
    blitz_heap *h = heap_of(&(blitz_heap_opts){.bytes_max = 100000});
    struct node *list = NULL, *n;
    size_t count = 0;
    while ((n = node_of(h, 0, NULL, list)) != NULL) {
        list = n;
        count++;
    }
    CHECK_LE(count * (sizeof *n + 8), 100000);
    CHECK_GE(count * (sizeof *n + 8), 90000);
    CHECK_NULL(blitz_heap_bytes(h, 5000));
    CHECK_EQ(BLITZ_HEAP_COLLECT(h, &list), 0);
    CHECK_NULL(blitz_heap_bytes(h, 50000));
    list = NULL;
    CHECK_EQ(BLITZ_HEAP_COLLECT(h, &list), 0);
    CHECK_NOT_NULL(blitz_heap_bytes(h, 50000));
    CHECK_NULL(blitz_heap_bytes(h, 50000));
    CHECK_NOT_NULL(node_of(h, 0, NULL, NULL));
    blitz_heap_unref(h);
}

TEST(heap, sizes_that_overflow_are_refused)
{
    blitz_heap *h = heap_of(NULL);
    CHECK_NULL(blitz_heap_bytes(h, SIZE_MAX));
    CHECK_NULL(blitz_heap_bytes(h, SIZE_MAX / 2));
    CHECK_NULL(blitz_heap_alloc_tail(h, &heap_table, SIZE_MAX / 8));
    CHECK_NULL(blitz_heap_alloc_tail(h, &heap_node, 1)); /* it has no flexible array */
    CHECK_NOT_NULL(blitz_heap_alloc_tail(h, &heap_node, 0));
    blitz_heap_unref(h);
}

/* A scene of allocations and collections. Returns how many were refused. */
static int scene(bool verify)
{
    blitz_heap *h;
    blitz_heap_opts opts = {.allocator = &counted, .verify = verify};
    int refused = 0, err = blitz_heap_new(&opts, &h);
    if (err != 0) {
        CHECK_EQ(err, -ENOMEM);
        return 1;
    }
    struct node *list = NULL;
    long length = 0;
    for (int i = 0; i < 3000; i++) {
        struct node *n = node_of(h, length, NULL, list);
        struct table *t = i % 100 == 0 ? blitz_heap_alloc_tail(h, &heap_table, 600) : NULL;
        refused += n == NULL || (i % 100 == 0 && t == NULL);
        if (n != NULL) {
            list = n;
            length++;
            n->left = (struct node *)t;
        }
        if (i % 300 == 299) {
            err = i % 600 == 299 ? BLITZ_HEAP_COLLECT(h, &list) : BLITZ_HEAP_TIDY(h, &list);
            CHECK(err == 0 || err == -ENOMEM);
            refused += err != 0;
        }
    }
    for (struct node *n = list; n != NULL; n = n->right) {
        CHECK_EQ(n->key, --length);
        if (n->left != NULL)
            CHECK_EQ(blitz_heap_count(n->left), 600);
    }
    CHECK_EQ(length, 0);
    blitz_heap_unref(h);
    return refused;
}

/* A collection that has no memory must change nothing, and the next one succeeds. */
TEST(heap, each_missing_allocation_is_survived)
{
    for (int verify = 0; verify < 2; verify++) {
        counted_refuse(0, false);
        CHECK_EQ(scene(verify), 0);
        long all = counted_asked_;
        CHECK_GT(all, 20);
        for (long nth = 1; nth <= all; nth++) {
            counted_refuse(nth, false);
            int refused = scene(verify);
            CHECK(refused > 0 || verify);
            CHECK_EQ(counted_blocks(), 0);
            counted_refuse(nth, true);
            CHECK(scene(verify) > 0 || verify);
            CHECK_EQ(counted_blocks(), 0);
        }
    }
    counted_refuse(0, false);
}

TEST(heap, bad_options_are_refused)
{
    blitz_heap *h = NULL;
    struct node state = {0};
    CHECK_EQ(blitz_heap_new(&(blitz_heap_opts){.root = &state}, &h), -EINVAL);
    CHECK_EQ(blitz_heap_new(&(blitz_heap_opts){.root_type = &heap_node}, &h), -EINVAL);
    CHECK_EQ(blitz_heap_new(&(blitz_heap_opts){.root = &state, .root_type = &heap_table}, &h),
             -EINVAL);
    CHECK_NULL(h);
}

/* ---- the nets ---- */

static void foreign_pointer(void *arg)
{
    blitz_heap *h = heap_of(&(blitz_heap_opts){.verify = true}), *other = heap_of(NULL);
    struct node *n = node_of(h, 1, NULL, NULL);
    n->right = arg != NULL ? (struct node *)&n->key : node_of(other, 1, NULL, NULL);
    (void)BLITZ_HEAP_COLLECT(h, &n);
}

/* The other heap may be gone before the pointer is followed: name it at the next collection. */
TEST(heap, a_pointer_into_another_heap_or_into_an_object_is_named)
{
    CHECK_ABORTS(foreign_pointer, NULL, "heap_node, offset 8");
    CHECK_ABORTS(foreign_pointer, &heap_node, "is not an object of this heap");
}

static void late_write(void *arg)
{
    (void)arg;
    blitz_heap *h = heap_of(&(blitz_heap_opts){.verify = true});
    struct pair *p = pair_of(h, 1, NULL, NULL);
    if (BLITZ_HEAP_TIDY(h, &p) == 0)
        p->tail = pair_of(h, 2, NULL, NULL);
    (void)BLITZ_HEAP_TIDY(h, &p);
}

TEST(heap, a_value_that_is_written_late_is_named)
{
    CHECK_ABORTS(late_write, NULL, "heap_pair, offset 8: a value was written after its birth");
}

struct partial {
    struct node *mapped;
    long n;
    struct node *forgotten;
};
BLITZ_TYPE(heap_partial, struct partial, mapped);

static void forgotten_pointer(void *arg)
{
    struct partial state = {NULL, 0, NULL};
    blitz_heap_opts opts = {.verify = true};
    if (arg != NULL) {
        opts.root = &state;
        opts.root_type = &heap_partial;
    }
    blitz_heap *h = heap_of(&opts);
    struct partial *p = arg != NULL ? &state : blitz_heap_alloc(h, &heap_partial);
    p->mapped = p->forgotten = node_of(h, 1, NULL, NULL);
    (void)(arg != NULL ? blitz_heap_tidy(h, NULL, 0) : BLITZ_HEAP_TIDY(h, &p));
}

/* Without this net the pointer dangles, and the bug shows much later. */
TEST(heap, a_pointer_left_out_of_a_map_is_named)
{
    CHECK_ABORTS(forgotten_pointer, NULL,
                 "heap_partial, offset 16: a pointer to an object is not in the map");
    CHECK_ABORTS(forgotten_pointer, &heap_node, "heap_partial, offset 16");
}

static void many_roots(void *arg)
{
    blitz_heap *h = heap_of(NULL);
    void *r = NULL;
    (void)arg;
#define R8 &r, &r, &r, &r, &r, &r, &r, &r
    (void)BLITZ_HEAP_COLLECT(h, R8, R8, R8, R8, &r);
}

TEST(heap, too_many_roots_abort)
{
    CHECK_ABORTS(many_roots, NULL, "more than 32 roots");
}
