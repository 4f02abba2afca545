/*
 * objects.h - ours: objects that die young, trees, updates by path copy, a map that is updated in place.
 */
#ifndef BENCH_GC_OBJECTS_H
#define BENCH_GC_OBJECTS_H

#include "gc/ours.h"

/* ---- objects of 32 bytes ---- */

struct four {
    uint64_t word[4];
};
BLITZ_PLAIN_TYPE(gc_four, struct four);

static void step_alloc(struct worker *w, blitz_heap *heap)
{
    for (unsigned i = 0; i < ALLOCS; i++)
        ((struct four *)made(blitz_heap_alloc(heap, &gc_four)))->word[0] = w->left;
}

static double case_alloc_32(uint64_t ops)
{
    static const struct job job = {NULL, step_alloc};
    return work_ops(&job, 0, ops, ALLOCS);
}

/* ---- trees ---- */

struct tree {
    const struct tree *left, *right;
};
BLITZ_TYPE(gc_tree, struct tree, left, right);
BLITZ_VALUE_TYPE(gc_value, struct tree, left, right);

static const struct tree *make_value(blitz_heap *heap, unsigned depth)
{
    struct tree t = {NULL, NULL};
    if (depth > 0) {
        t.left = make_value(heap, depth - 1);
        t.right = make_value(heap, depth - 1);
    }
    return (const struct tree *)made(blitz_heap_copy(heap, &gc_value, 0, &t));
}

static struct tree *make_plain(blitz_heap *heap, unsigned depth)
{
    struct tree *t = (struct tree *)made(blitz_heap_alloc(heap, &gc_tree));
    if (depth > 0) {
        t->left = make_plain(heap, depth - 1);
        t->right = make_plain(heap, depth - 1);
    }
    return t;
}

static void check_depth(const struct tree *t, uint64_t depth)
{
    uint64_t found = 0;
    for (; t->left != NULL; t = t->left)
        found++;
    if (found != depth)
        bench_die("a tree of depth %llu", (unsigned long long)found);
}

static void begin_value(struct worker *w, blitz_heap *heap)
{
    w->live = (void *)make_value(heap, (unsigned)w->size);
}

static void step_value(struct worker *w, blitz_heap *heap)
{
    check_depth(make_value(heap, (unsigned)w->size), w->size);
}

static void begin_plain(struct worker *w, blitz_heap *heap)
{
    w->live = make_plain(heap, (unsigned)w->size);
}

static void step_plain(struct worker *w, blitz_heap *heap)
{
    check_depth(make_plain(heap, (unsigned)w->size), w->size);
}

static const struct job values = {begin_value, step_value}, plains = {begin_plain, step_plain};

static double case_tree_10(uint64_t ops)
{
    return work_ops(&values, 10, ops, gc_nodes(10));
}

static double case_tree_15(uint64_t ops)
{
    return work_ops(&values, 15, ops, gc_nodes(15));
}

static double case_tree_20(uint64_t ops)
{
    return work_ops(&values, 20, ops, gc_nodes(20));
}

static double case_tree_10_plain(uint64_t ops)
{
    return work_ops(&plains, 10, ops, gc_nodes(10));
}

static double case_tree_15_plain(uint64_t ops)
{
    return work_ops(&plains, 15, ops, gc_nodes(15));
}

static double case_tree_20_plain(uint64_t ops)
{
    return work_ops(&plains, 20, ops, gc_nodes(20));
}

/* ---- updates by path copy ---- */

struct entry {
    const struct entry *left, *right;
    uint64_t key, value;
};
BLITZ_TYPE(gc_entry, struct entry, left, right);
BLITZ_VALUE_TYPE(gc_value_entry, struct entry, left, right);

static const struct entry *make_entry(blitz_heap *heap, blitz_type *type, const struct entry *from)
{
    return (const struct entry *)made(blitz_heap_copy(heap, type, 0, from));
}

/* The keys [from, from + 2^depth - 1). */
static const struct entry *make_entries(blitz_heap *heap, blitz_type *type, uint64_t from,
                                        unsigned depth)
{
    if (depth == 0)
        return NULL;
    uint64_t half = ((uint64_t)1 << (depth - 1)) - 1;
    struct entry e = {make_entries(heap, type, from, depth - 1),
                      make_entries(heap, type, from + half + 1, depth - 1), from + half, 0};
    return make_entry(heap, type, &e);
}

static const struct entry *updated(blitz_heap *heap, blitz_type *type, const struct entry *old,
                                   uint64_t key)
{
    struct entry e = *old;
    if (key < e.key)
        e.left = updated(heap, type, e.left, key);
    else if (key > e.key)
        e.right = updated(heap, type, e.right, key);
    else
        e.value++;
    return make_entry(heap, type, &e);
}

static void update(struct worker *w, blitz_heap *heap, blitz_type *type)
{
    for (unsigned i = 0; i < BATCH; i++) {
        uint64_t key = gc_random(&w->seed) % (((uint64_t)1 << w->size) - 1);
        w->live = (void *)updated(heap, type, w->live, key);
    }
}

static void begin_entries(struct worker *w, blitz_heap *heap)
{
    w->live = (void *)make_entries(heap, &gc_value_entry, 0, (unsigned)w->size);
}

static void step_update(struct worker *w, blitz_heap *heap)
{
    update(w, heap, &gc_value_entry);
}

static void begin_entries_plain(struct worker *w, blitz_heap *heap)
{
    w->live = (void *)make_entries(heap, &gc_entry, 0, (unsigned)w->size);
}

static void step_update_plain(struct worker *w, blitz_heap *heap)
{
    update(w, heap, &gc_entry);
}

static double case_update(uint64_t ops)
{
    static const struct job job = {begin_entries, step_update};
    return work_ops(&job, UPDATE_DEPTH, ops, BATCH);
}

static double case_update_plain(uint64_t ops)
{
    static const struct job job = {begin_entries_plain, step_update_plain};
    return work_ops(&job, UPDATE_DEPTH, ops, BATCH);
}

/* ---- a map, in place ---- */

struct cell {
    uint64_t key, value, more[2];
};
BLITZ_PLAIN_TYPE(gc_cell, struct cell);

struct map {
    uint64_t size;
    struct cell *at[];
};
BLITZ_TYPE_PARTS(gc_map, struct map, BLITZ_TAIL(struct map, at));

static struct cell *make_cell(blitz_heap *heap, uint64_t key, uint64_t value)
{
    struct cell *c = (struct cell *)made(blitz_heap_alloc(heap, &gc_cell));
    c->key = key;
    c->value = value;
    return c;
}

static void begin_map(struct worker *w, blitz_heap *heap)
{
    struct map *map = (struct map *)made(blitz_heap_alloc_tail(heap, &gc_map, w->size));
    map->size = w->size;
    for (uint64_t i = 0; i < w->size; i++)
        map->at[i] = make_cell(heap, i, 0);
    w->live = map;
}

static void step_map(struct worker *w, blitz_heap *heap)
{
    struct map *map = (struct map *)w->live;
    for (unsigned i = 0; i < BATCH; i++) {
        uint64_t key = gc_random(&w->seed) % map->size;
        map->at[key] = make_cell(heap, key, map->at[key]->value + 1);
    }
}

static const struct job map_job = {begin_map, step_map};

static double case_map(uint64_t ops)
{
    return work_ops(&map_job, MAP, ops, BATCH);
}

/* Microseconds. What a remembered set could shorten is the second figure of the remark. */
static double case_map_pause(uint64_t ops)
{
    uint64_t pause[2] = {0, 0};
    (void)work(&map_job, MAP, ops / BATCH, pause);
    printf("# longest: %.0f us with a full collection, %.0f us with a minor one\n",
           (double)pause[0] / 1000, (double)pause[1] / 1000);
    return (double)(pause[0] > pause[1] ? pause[0] : pause[1]) / 1000;
}

#endif
