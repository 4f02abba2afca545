/* Pinned objects: they stay, they are found, they outlive their heap; and what is not pinned any more moves and goes. */
#include "harness.h"

#include <errno.h>
#include <string.h>

#include "blitz.h"
#include "support/counted.h"

struct node {
    struct node *left, *right;
    long key;
};
BLITZ_TYPE(pin_node, struct node, left, right);

struct pair {
    struct node *head;
    long key;
};
BLITZ_VALUE_TYPE(pin_pair, struct pair, head);

struct table {
    long n;
    struct node *slots[];
};
BLITZ_TYPE_PARTS(pin_table, struct table, BLITZ_TAIL(struct table, slots));

static blitz_heap *heap_of(bool verify)
{
    blitz_heap *h = NULL;
    counted_refuse(0, false);
    CHECK_EQ(blitz_heap_new(&(blitz_heap_opts){.allocator = &counted, .verify = verify}, &h), 0);
    return h;
}

static void free_heap(blitz_heap *h)
{
    blitz_heap_unref(h);
    CHECK_EQ(counted_blocks(), 0);
}

static struct node *node_of(blitz_heap *h, long key, struct node *left)
{
    struct node *n = blitz_heap_alloc(h, &pin_node);
    CHECK_NOT_NULL(n);
    *n = (struct node){left, NULL, key};
    return n;
}

static blitz_pin *pin_of(blitz_heap *h, void *object)
{
    blitz_pin *pin = NULL;
    CHECK_EQ(blitz_pin_new(h, object, &pin), 0);
    return pin;
}

static blitz_heap_info info_of(blitz_heap *h)
{
    blitz_heap_info info;
    blitz_heap_info_get(h, &info);
    return info;
}

/* ---- staying ---- */

/* The kernel has its address: it must be the same after any collection, and what it points to must live. */
TEST(pin, a_pinned_object_stays_without_a_root)
{
    for (int verify = 0; verify < 2; verify++) {
        blitz_heap *h = heap_of(verify);
        struct node *n = node_of(h, 1, node_of(h, 2, NULL)), *other = node_of(h, 3, n);
        blitz_pin *pin = pin_of(h, n);
        struct node *was = other;
        for (int round = 0; round < 10; round++) {
            (void)node_of(h, 9, NULL);
            CHECK_EQ(round % 2 ? BLITZ_HEAP_TIDY(h, &other) : BLITZ_HEAP_COLLECT(h, &other), 0);
            CHECK_EQ(n->key, 1);
            CHECK_EQ(n->left->key, 2);
            CHECK_EQ(other->left, n);
            CHECK_EQ(info_of(h).pins, 1);
        }
        CHECK_NE(other, was); /* its neighbour in the chunk has moved */
        CHECK_GT(info_of(h).pinned_bytes, 0);
        blitz_pin_unref(pin);
        free_heap(h);
    }
}

/* A young object becomes old where it is. From then on each minor collection looks at it. */
TEST(pin, an_old_pinned_object_may_point_to_young_ones)
{
    blitz_heap *h = heap_of(true);
    struct node *n = node_of(h, 1, NULL);
    blitz_pin *pin = pin_of(h, n);
    CHECK_EQ(blitz_heap_collect(h, NULL, 0), 0);
    for (long i = 0; i < 5; i++) {
        n->left = node_of(h, i, NULL);
        CHECK_EQ(blitz_heap_tidy(h, NULL, 0), 0);
        CHECK_EQ(n->left->key, i);
    }
    CHECK_GT(info_of(h).minor, 0);
    blitz_pin_unref(pin);
    n->left = node_of(h, 77, NULL); /* given up, and still where it was */
    CHECK_EQ(BLITZ_HEAP_TIDY(h, &n), 0);
    CHECK_EQ(n->left->key, 77);
    CHECK_EQ(BLITZ_HEAP_COLLECT(h, &n), 0);
    CHECK_EQ(n->left->key, 77);
    free_heap(h);
}

TEST(pin, values_and_large_objects_stay_too)
{
    blitz_heap *h = heap_of(true);
    struct pair *p = blitz_heap_copy(h, &pin_pair, 0, &(struct pair){node_of(h, 1, NULL), 5});
    struct table *t = blitz_heap_alloc_tail(h, &pin_table, 1000);
    blitz_pin *pins[] = {pin_of(h, p), pin_of(h, t)};
    for (int round = 0; round < 6; round++) {
        t->slots[999] = node_of(h, round, NULL);
        CHECK_EQ(round % 3 ? blitz_heap_tidy(h, NULL, 0) : blitz_heap_collect(h, NULL, 0), 0);
        CHECK_EQ(p->head->key, 1);
        CHECK_EQ(t->slots[999]->key, round);
    }
    blitz_pin_unref(pins[0]);
    blitz_pin_unref(pins[1]);
    CHECK_EQ(blitz_heap_collect(h, NULL, 0), 0);
    CHECK_EQ(info_of(h).live_bytes, 0);
    free_heap(h);
}

/* ---- giving up ---- */

TEST(pin, an_object_that_is_given_up_moves_and_its_chunk_goes)
{
    blitz_heap *h = heap_of(true);
    struct node *n = node_of(h, 1, NULL), *dead = node_of(h, 2, NULL), *was = n;
    blitz_pin *pin = pin_of(h, n), *second = pin_of(h, n), *other = pin_of(h, dead);
    CHECK_EQ(BLITZ_HEAP_COLLECT(h, &n), 0);
    blitz_pin_unref(pin);
    CHECK_EQ(BLITZ_HEAP_COLLECT(h, &n), 0);
    CHECK_EQ(n, was); /* the second pin */
    blitz_pin_unref(second);
    CHECK_EQ(BLITZ_HEAP_COLLECT(h, &n), 0);
    CHECK_NE(n, was);
    CHECK_EQ(n->key, 1);
    CHECK_EQ(dead->key, 2); /* its neighbour is still pinned */
    CHECK_GT(info_of(h).pinned_bytes, 0);
    blitz_pin_unref(other);
    CHECK_EQ(BLITZ_HEAP_COLLECT(h, &n), 0);
    CHECK_EQ(info_of(h).pinned_bytes, 0);
    CHECK_EQ(info_of(h).pins, 0);
    CHECK_EQ(info_of(h).live_bytes, sizeof *n + 8);
    blitz_pin_unref(NULL);
    free_heap(h);
}

/* ---- the end of the heap ---- */

/* The completion comes when the owner is dead: its memory must still be there, and then go. */
TEST(pin, pinned_objects_outlive_their_heap)
{
    for (int collects = 0; collects < 3; collects++) {
        blitz_heap *h = heap_of(false);
        struct node *young = node_of(h, 1, NULL);
        struct table *large = blitz_heap_alloc_tail(h, &pin_table, 1000);
        blitz_pin *pins[] = {pin_of(h, young), pin_of(h, large), pin_of(h, young)};
        for (int i = 0; i < collects; i++)
            CHECK_EQ(blitz_heap_collect(h, NULL, 0), 0);
        (void)blitz_heap_alloc_tail(h, &pin_table, 5000); /* goes with the heap */
        for (long i = 0; i < 1000; i++)
            (void)node_of(h, i, NULL);
        long blocks = counted_blocks();
        blitz_heap_unref(h);
        CHECK_LT(counted_blocks(), blocks);
        memset(large->slots, 1, 1000 * sizeof large->slots[0]);
        young->key = 42;
        blitz_pin_unref(pins[0]);
        blitz_pin_unref(pins[1]);
        CHECK_EQ(young->key, 42);
        CHECK_GT(counted_blocks(), 0);
        blitz_pin_unref(pins[2]);
        CHECK_EQ(counted_blocks(), 0);
    }
}

struct round {
    blitz_heap *heap;
    struct node *nodes[4];
    blitz_pin *pins[4];
};

/* Thread 0 owns the heap, collects and gives it up; the others write and give their pins up. */
static void use_and_give_up(void *arg, int index)
{
    struct round *r = arg;
    if (index < 4) {
        r->nodes[index]->key = index;
        blitz_pin_unref(r->pins[index]);
        return;
    }
    CHECK_EQ(blitz_heap_collect(r->heap, NULL, 0), 0);
    (void)node_of(r->heap, 1, NULL);
    CHECK_EQ(blitz_heap_tidy(r->heap, NULL, 0), 0);
    CHECK_EQ(blitz_heap_collect(r->heap, NULL, 0), 0);
    blitz_heap_unref(r->heap);
}

TEST(pin, pins_are_given_up_on_any_thread_beside_collections_and_the_end)
{
    for (unsigned long i = 0; i < t_scaled(2000); i++) {
        struct round r = {.heap = heap_of(false)};
        for (int k = 0; k < 4; k++) {
            r.nodes[k] = node_of(r.heap, -1, NULL);
            r.pins[k] = pin_of(r.heap, r.nodes[k]);
        }
        if (i % 2)
            CHECK_EQ(blitz_heap_collect(r.heap, NULL, 0), 0);
        t_threads(5, use_and_give_up, &r);
        CHECK_EQ(counted_blocks(), 0);
    }
}

/* ---- refusals ---- */

TEST(pin, other_memory_is_refused)
{
    blitz_heap *h = heap_of(false), *other = heap_of(false);
    blitz_pin *pin = NULL;
    long local = 0;
    CHECK_EQ(blitz_pin_new(h, &local, &pin), -EINVAL);
    struct node *n = node_of(h, 1, NULL);
    struct node *theirs = node_of(other, 1, NULL);
    CHECK_EQ(blitz_pin_new(h, theirs, &pin), -EINVAL);
    CHECK_EQ(blitz_pin_new(h, (char *)n + 4, &pin), -EINVAL);
    CHECK_EQ(blitz_pin_new(h, (char *)n - 8, &pin), -EINVAL);
    CHECK_EQ(blitz_pin_new(h, n + 1, &pin), -EINVAL); /* behind the last object */
    counted_refuse(1, true);
    CHECK_EQ(blitz_pin_new(h, n, &pin), -ENOMEM);
    CHECK_NULL(pin);
    CHECK_EQ(info_of(h).pins, 0);
    blitz_heap_unref(other);
    free_heap(h);
}

/* A full collection that finds no memory must leave a given-up object in its place, where minor ones look at it. */
TEST(pin, a_collection_without_memory_forgets_no_pin)
{
    blitz_heap *h = heap_of(true);
    struct node *n = node_of(h, 1, NULL);
    blitz_pin *pin = pin_of(h, n);
    CHECK_EQ(blitz_heap_collect(h, NULL, 0), 0);
    CHECK_EQ(blitz_heap_collect(h, NULL, 0), 0);
    blitz_pin_unref(pin);
    for (int i = 0; i < 3000; i++)
        n->left = node_of(h, i, n->left);
    counted_refuse(2, true); /* the set of the verifier is the first */
    CHECK_EQ(BLITZ_HEAP_COLLECT(h, &n), -ENOMEM);
    counted_refuse(0, false);
    CHECK_EQ(BLITZ_HEAP_TIDY(h, &n), 0);
    CHECK_EQ(n->left->key, 2999);
    CHECK_EQ(BLITZ_HEAP_COLLECT(h, &n), 0);
    CHECK_EQ(n->left->left->key, 2998);
    free_heap(h);
}

/* Chunks kept for one object each count as memory of the heap. */
TEST(pin, memory_kept_for_pins_counts_against_the_limit)
{
    enum { LIMIT = 1 << 20, COUNT = 1000 };
    blitz_heap *h = NULL;
    static blitz_pin *pins[COUNT];
    CHECK_EQ(blitz_heap_new(&(blitz_heap_opts){.bytes_max = LIMIT}, &h), 0);
    int n = 0;
    for (struct node *node; n < COUNT; n++) {
        for (int i = 0; i < 1000 && (node = blitz_heap_alloc(h, &pin_node)) != NULL; i++)
            ;
        if (node == NULL)
            break;
        pins[n] = pin_of(h, node);
        CHECK_EQ(blitz_heap_collect(h, NULL, 0), 0);
    }
    CHECK_GT(n, 10);
    CHECK_LT(n, COUNT);
    CHECK_LE(info_of(h).pinned_bytes, 2 * LIMIT);
    for (int i = 0; i < n; i++)
        blitz_pin_unref(pins[i]);
    CHECK_EQ(blitz_heap_collect(h, NULL, 0), 0);
    CHECK_NOT_NULL(blitz_heap_bytes(h, LIMIT / 2));
    blitz_heap_unref(h);
}

static void give_up_twice(void *arg)
{
    blitz_heap *h = heap_of(false);
    blitz_pin *pin = pin_of(h, node_of(h, 1, NULL));
    (void)arg;
    blitz_pin_unref(pin);
    blitz_pin_unref(pin);
}

TEST(pin, a_pin_that_is_given_up_twice_aborts)
{
    CHECK_ABORTS(give_up_twice, NULL, "is given up twice");
}
