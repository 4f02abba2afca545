/*
 * Random graphs, changed and collected, against a shadow copy in plain memory.
 *
 *     BLITZ_HEAP_OPS=10000000 build/asan/tests/stress/stress_heap      operations in each mode
 *
 * The shadow has a node for each object, with the same fields and numbers for pointers. Some nodes are roots, others are pinned. After
 * each collection the graph that both reach is compared with the shadow: the type, the key, the sizes, each edge, and the addresses of pinned objects.
 */
#include "harness.h"

#include <stdlib.h>
#include <string.h>

#include "blitz.h"

enum { NODES = 400, ROOTS = 12, EDGES = 6, TAIL_MAX = 700 };

struct plain {
    long key;
    struct plain *edges[EDGES];
};
BLITZ_TYPE_PARTS(stress_plain, struct plain, BLITZ_ARRAY(struct plain, edges));

struct value {
    struct plain *edges[EDGES];
    long key;
};
BLITZ_VALUE_TYPE_PARTS(stress_value, struct value, BLITZ_ARRAY(struct value, edges));

struct tail {
    long key;
    struct plain *edges[]; /* the first EDGES are used; the rest makes it large */
};
BLITZ_TYPE_PARTS(stress_tail, struct tail, BLITZ_TAIL(struct tail, edges));

struct tagged {
    long key;
    long count; /* edges in use; the words behind are numbers */
    union {
        struct plain *edge;
        long number;
    } at[EDGES];
};

static void visit_tagged(void *object, blitz_visitor *v)
{
    struct tagged *t = object;
    for (long i = 0; i < t->count; i++)
        blitz_visit(v, &t->at[i].edge);
}
BLITZ_TYPE_VISIT(stress_tagged, struct tagged, visit_tagged);

enum kind { PLAIN, VALUE, TAIL, TAGGED, KINDS };

/* An object and what it should be. `is_used` 0: a free place. */
struct shadow {
    void *object;
    int is_used, is_reached, kind;
    long key;
    size_t tail;
    int edges[EDGES]; /* places; -1: NULL */
    blitz_pin *pin;   /* or NULL */
};

static struct shadow nodes[NODES];
static int roots[ROOTS]; /* places; -1: NULL */
static void *root_objects[ROOTS];
static long next_key;

static struct plain **edge_of(const struct shadow *s, int i)
{
    switch (s->kind) {
    case PLAIN:
        return &((struct plain *)s->object)->edges[i];
    case VALUE:
        return &((struct value *)s->object)->edges[i];
    case TAIL:
        return &((struct tail *)s->object)->edges[i];
    default:
        return &((struct tagged *)s->object)->at[i].edge;
    }
}

static long key_of(const struct shadow *s)
{
    return s->kind == VALUE ? ((struct value *)s->object)->key : *(long *)s->object;
}

/* A place whose object is known to be alive or young; -1: NULL. */
static int any_used(void)
{
    for (int tries = 0; tries < 8; tries++) {
        int i = (int)t_random_below(NODES);
        if (nodes[i].is_used)
            return i;
    }
    return -1;
}

static void make_object(blitz_heap *h, struct shadow *s)
{
    struct value v = {.key = s->key};
    switch (s->kind) {
    case PLAIN:
        s->object = blitz_heap_alloc(h, &stress_plain);
        break;
    case TAIL:
        s->object = blitz_heap_alloc_tail(h, &stress_tail, s->tail);
        break;
    case TAGGED:
        s->object = blitz_heap_alloc(h, &stress_tagged);
        break;
    default:
        for (int i = 0; i < EDGES; i++)
            v.edges[i] = s->edges[i] < 0 ? NULL : nodes[s->edges[i]].object;
        s->object = blitz_heap_copy(h, &stress_value, 0, &v);
        return;
    }
    CHECK_NOT_NULL(s->object);
    *(long *)s->object = s->key;
    if (s->kind == TAGGED)
        ((struct tagged *)s->object)->count = EDGES;
    for (int i = 0; i < EDGES; i++)
        *edge_of(s, i) = s->edges[i] < 0 ? NULL : nodes[s->edges[i]].object;
}

static void make(blitz_heap *h)
{
    int at = (int)t_random_below(NODES);
    if (nodes[at].is_used) {
        char *garbage = blitz_heap_bytes(h, 1 + t_random_below(1000));
        *garbage = 'x';
        return;
    }
    struct shadow *s = &nodes[at];
    s->kind = (int)t_random_below(KINDS);
    s->key = ++next_key;
    s->tail = s->kind == TAIL ? EDGES + t_random_below(t_random_below(8) == 0 ? TAIL_MAX : 8) : 0;
    for (int i = 0; i < EDGES; i++)
        s->edges[i] = any_used();
    make_object(h, s);
    s->is_used = 1;
    int r = (int)t_random_below(ROOTS);
    roots[r] = at;
}

/* Change an edge of an object that is no value. */
static void change(void)
{
    int at = any_used();
    if (at < 0 || nodes[at].kind == VALUE)
        return;
    int i = (int)t_random_below(EDGES), to = any_used();
    nodes[at].edges[i] = to;
    *edge_of(&nodes[at], i) = to < 0 ? NULL : nodes[to].object;
}

/* Pin an object, or give its pin up. */
static void pin(blitz_heap *h)
{
    int at = any_used();
    if (at < 0)
        return;
    if (nodes[at].pin == NULL) {
        CHECK_EQ(blitz_pin_new(h, nodes[at].object, &nodes[at].pin), 0);
    } else {
        blitz_pin_unref(nodes[at].pin);
        nodes[at].pin = NULL;
    }
}

/* ---- comparing ---- */

static int stack[NODES * EDGES + NODES + ROOTS];

/* Mark what the roots and the pinned objects reach in the shadow. */
static void mark(void)
{
    int top = 0;
    for (int i = 0; i < NODES; i++)
        nodes[i].is_reached = 0;
    for (int r = 0; r < ROOTS; r++)
        if (roots[r] >= 0)
            stack[top++] = roots[r];
    for (int i = 0; i < NODES; i++)
        if (nodes[i].pin != NULL)
            stack[top++] = i;
    while (top > 0) {
        struct shadow *s = &nodes[stack[--top]];
        if (s->is_reached)
            continue;
        s->is_reached = 1;
        for (int i = 0; i < EDGES; i++)
            if (s->edges[i] >= 0)
                stack[top++] = s->edges[i];
    }
}

/* The object of a place was found at this address. Push it if that is news. */
static int found(int at, void *object, int top)
{
    struct shadow *s = &nodes[at];
    CHECK_NOT_NULL(object);
    if (s->is_reached == 2) {
        CHECK_EQ(s->object, object);
        return top;
    }
    s->is_reached = 2;
    CHECK(s->pin == NULL || s->object == object);
    s->object = object;
    stack[top++] = at;
    return top;
}

static void compare(void)
{
    int top = 0;
    for (int r = 0; r < ROOTS; r++) {
        if (roots[r] < 0)
            CHECK_NULL(root_objects[r]);
        else
            top = found(roots[r], root_objects[r], top);
    }
    for (int i = 0; i < NODES; i++)
        if (nodes[i].pin != NULL)
            top = found(i, nodes[i].object, top);
    while (top > 0) {
        struct shadow *s = &nodes[stack[--top]];
        CHECK_EQ(key_of(s), s->key);
        CHECK_EQ(blitz_heap_count(s->object), s->tail);
        for (int i = 0; i < EDGES; i++) {
            if (s->edges[i] < 0)
                CHECK_NULL(*edge_of(s, i));
            else
                top = found(s->edges[i], *edge_of(s, i), top);
        }
    }
}

static void collect(blitz_heap *h, bool is_full)
{
    void *named[ROOTS];
    for (int r = 0; r < ROOTS; r++) {
        if (t_random_below(4) == 0)
            roots[r] = -1;
        root_objects[r] = roots[r] < 0 ? NULL : nodes[roots[r]].object;
        named[r] = &root_objects[r];
    }
    mark();
    blitz_heap_info before, after;
    blitz_heap_info_get(h, &before);
    CHECK_EQ(is_full ? blitz_heap_collect(h, named, ROOTS) : blitz_heap_tidy(h, named, ROOTS), 0);
    blitz_heap_info_get(h, &after);
    if (before.full + before.minor == after.full + after.minor)
        return; /* none was due: all objects are where they were */
    compare();
    for (int i = 0; i < NODES; i++)
        nodes[i].is_used = nodes[i].is_reached != 0;
}

static void play(long ops, const blitz_heap_opts *opts, unsigned interval, unsigned full_of_8)
{
    blitz_heap *h;
    CHECK_EQ(blitz_heap_new(opts, &h), 0);
    memset(nodes, 0, sizeof nodes);
    for (int r = 0; r < ROOTS; r++)
        roots[r] = -1;
    for (long i = 0; i < ops; i++) {
        t_watch("operation %ld", i);
        unsigned op = (unsigned)t_random_below(30);
        if (op < 10)
            change();
        else if (op == 10)
            pin(h);
        else
            make(h);
        if (t_random_below(interval) == 0)
            collect(h, t_random_below(8) < full_of_8);
    }
    for (int i = 0; i < NODES; i++) {
        blitz_pin_unref(nodes[i].pin);
        nodes[i].pin = NULL;
    }
    collect(h, true);
    blitz_heap_info info;
    blitz_heap_info_get(h, &info);
    t_note("%llu full collections, %llu minor ones", (unsigned long long)info.full,
           (unsigned long long)info.minor);
    blitz_heap_unref(h);
}

static long ops_of(long usual)
{
    const char *given = getenv("BLITZ_HEAP_OPS");
    return given != NULL ? atol(given) : (long)t_scaled((unsigned long)usual);
}

/* As programs use it: the heap chooses. */
TEST_LIMIT(heap_stress, graphs_survive_collections_that_are_due, 600)
{
    play(ops_of(1000000), &(blitz_heap_opts){.young_bytes = 4096}, 20, 0);
}

TEST_LIMIT(heap_stress, graphs_survive_full_collections, 600)
{
    play(ops_of(1000000), NULL, 100, 8);
}

/* Every mode, one behind the other. */
TEST_LIMIT(heap_stress, graphs_survive_any_mix_of_collections, 600)
{
    play(ops_of(1000000), &(blitz_heap_opts){.young_bytes = 1}, 50, 2);
}

/* With the net: it must not cry wolf, and each collection leaves the heap whole. */
TEST_LIMIT(heap_stress, graphs_survive_with_the_net, 600)
{
    play(ops_of(300000), &(blitz_heap_opts){.verify = true}, 20, 1);
}

/* A collection after each operation. */
TEST_LIMIT(heap_stress, graphs_survive_a_collection_at_each_operation, 600)
{
    play(ops_of(50000), &(blitz_heap_opts){.verify = true}, 1, 1);
}
