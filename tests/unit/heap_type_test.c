/* Types of objects: every form of a map leads the collector to each pointer, and names are unique. */
#include "harness.h"

#include <errno.h>
#include <stdio.h>

#include "blitz.h"

struct leaf {
    long key;
};
BLITZ_PLAIN_TYPE(tt_leaf, struct leaf);

static struct leaf *leaf_of(blitz_heap *h, long key)
{
    struct leaf *l = blitz_heap_alloc(h, &tt_leaf);
    CHECK_NOT_NULL(l);
    l->key = key;
    return l;
}

static blitz_heap *heap_of(void)
{
    blitz_heap *h = NULL;
    CHECK_EQ(blitz_heap_new(&(blitz_heap_opts){.verify = true}, &h), 0);
    return h;
}

/* Collect partly and fully. */
static void collect(blitz_heap *h, void *root)
{
    for (int i = 0; i < 3; i++)
        CHECK_EQ(BLITZ_HEAP_TIDY(h, root), 0);
}

struct words {
    struct leaf *first;
    long gap[62];
    struct leaf *last; /* word 63 */
};
BLITZ_TYPE(tt_words, struct words, first, last);

struct wide {
    struct leaf *first;
    long gap[63];
    struct leaf *beyond; /* word 64 */
    long more[200];
    struct leaf *last;
};
BLITZ_TYPE(tt_wide, struct wide, first, beyond, last);

/* The map has 64 bits: its last one, and the first word behind it. */
TEST(heap_type, structs_of_64_words_and_more_are_mapped)
{
    blitz_heap *h = heap_of();
    struct words *w = blitz_heap_alloc(h, &tt_words);
    w->first = leaf_of(h, 1);
    w->last = leaf_of(h, 2);
    collect(h, &w);
    CHECK_EQ(w->first->key, 1);
    CHECK_EQ(w->last->key, 2);
    struct wide *x = blitz_heap_alloc(h, &tt_wide);
    x->first = leaf_of(h, 3);
    x->beyond = leaf_of(h, 4);
    x->last = leaf_of(h, 5);
    collect(h, &x);
    CHECK_EQ(x->first->key, 3);
    CHECK_EQ(x->beyond->key, 4);
    CHECK_EQ(x->last->key, 5);
    blitz_heap_unref(h);
}

struct inner {
    long n;
    struct leaf *at;
};
BLITZ_TYPE(tt_inner, struct inner, at);

struct outer {
    struct inner one;
    struct leaf *array[3];
    struct inner many[2];
    struct leaf *alone;
    struct inner tail[];
};
BLITZ_TYPE_PARTS(tt_outer, struct outer, BLITZ_INLINE(struct outer, one, tt_inner),
                 BLITZ_ARRAY(struct outer, array), BLITZ_INLINE(struct outer, many, tt_inner),
                 BLITZ_POINTER(struct outer, alone), BLITZ_TAIL_OF(struct outer, tail, tt_inner));

TEST(heap_type, arrays_inline_structs_and_flexible_arrays_are_mapped)
{
    for (size_t count = 0; count < 300; count = count * 2 + 1) {
        blitz_heap *h = heap_of();
        struct outer *o = blitz_heap_alloc_tail(h, &tt_outer, count);
        o->one.at = leaf_of(h, 1);
        o->array[0] = leaf_of(h, 2);
        o->array[2] = leaf_of(h, 3);
        o->many[1].at = leaf_of(h, 4);
        o->alone = leaf_of(h, 5);
        for (size_t i = 0; i < count; i++)
            o->tail[i].at = leaf_of(h, 10 + (long)i);
        collect(h, &o);
        CHECK_EQ(o->one.at->key, 1);
        CHECK_EQ(o->array[0]->key, 2);
        CHECK_NULL(o->array[1]);
        CHECK_EQ(o->array[2]->key, 3);
        CHECK_NULL(o->many[0].at);
        CHECK_EQ(o->many[1].at->key, 4);
        CHECK_EQ(o->alone->key, 5);
        CHECK_EQ(blitz_heap_count(o), count);
        for (size_t i = 0; i < count; i++)
            CHECK_EQ(o->tail[i].at->key, 10 + (long)i);
        blitz_heap_unref(h);
    }
}

struct shape {
    int is_leaf;
    union {
        struct leaf *leaf;
        long number;
    } u;
};

static void visit_shape(void *object, blitz_visitor *v)
{
    struct shape *s = object;
    if (s->is_leaf)
        blitz_visit(v, &s->u.leaf);
}
BLITZ_TYPE_VISIT(tt_shape, struct shape, visit_shape);

TEST(heap_type, a_function_shows_the_pointers_of_a_tagged_union)
{
    blitz_heap *h = heap_of();
    struct shape *a = blitz_heap_alloc(h, &tt_shape), *b = blitz_heap_alloc(h, &tt_shape);
    a->is_leaf = 1;
    a->u.leaf = leaf_of(h, 9);
    b->u.number = 12345; /* no pointer: it must not be followed */
    for (int i = 0; i < 3; i++)
        CHECK_EQ(BLITZ_HEAP_TIDY(h, &a, &b), 0);
    CHECK_EQ(a->u.leaf->key, 9);
    CHECK_EQ(b->u.number, 12345);
    blitz_heap_unref(h);
}

struct text {
    int n;
    char bytes[];
};
BLITZ_VALUE_TYPE_PARTS(tt_text, struct text, BLITZ_TAIL_PLAIN(struct text, bytes));

/* The flexible array begins inside the padding of some structs. */
TEST(heap_type, values_with_flexible_arrays_are_copied_whole)
{
    union {
        struct text text;
        char room[64];
    } from = {{.n = 7}};
    blitz_heap *h = heap_of();
    for (int i = 0; i < 20; i++)
        from.text.bytes[i] = (char)('a' + i);
    for (size_t count = 0; count < 20; count++) {
        struct text *t = blitz_heap_copy(h, &tt_text, count, &from);
        collect(h, &t);
        CHECK_EQ(t->n, 7);
        CHECK_EQ(blitz_heap_count(t), count);
        CHECK_MEM_EQ(t->bytes, from.text.bytes, count);
    }
    blitz_heap_unref(h);
}

/* ---- the registry ---- */

static blitz_type named(const char *name, uint32_t size, uint64_t map, const uint32_t *offsets,
                        uint32_t n)
{
    return (blitz_type){.name = name, .size = size, .map = map, .offsets = offsets, .n = n};
}

/* Two libraries have the same type, or two types of one name. */
TEST(heap_type, a_name_has_one_layout)
{
    static const uint32_t first[] = {0}, second[] = {8};
    blitz_type a = named("tt_twice", 16, 1, first, 1), same = a, other = a, larger = a, value = a;
    other.offsets = second;
    larger.size = 24;
    value.flags = BLITZ_TYPE_VALUE_;
    CHECK_EQ(blitz_type_register(&a), 0);
    CHECK_EQ(blitz_type_register(&a), 0);
    CHECK_EQ(blitz_type_register(&same), 0);
    CHECK_EQ(a.index, same.index);
    CHECK_EQ(blitz_type_register(&other), -EEXIST);
    CHECK_EQ(blitz_type_register(&larger), -EEXIST);
    CHECK_EQ(blitz_type_register(&value), -EEXIST);
    blitz_heap *h = heap_of();
    CHECK_NULL(blitz_heap_alloc(h, &other));
    CHECK_NULL(blitz_heap_copy(h, &other, 0, first));
    CHECK_NOT_NULL(blitz_heap_alloc(h, &same));
    blitz_heap_unref(h);
}

/* A library may be unloaded: no object refers to its memory. */
TEST(heap_type, a_registered_type_does_not_need_its_description)
{
    char name[] = "tt_unloaded";
    uint32_t offsets[] = {0};
    blitz_type t = named(name, 8, 1, offsets, 1);
    blitz_heap *h = heap_of();
    struct leaf **box = blitz_heap_alloc(h, &t);
    *box = leaf_of(h, 4);
    name[0] = 'X';
    offsets[0] = 4;
    t = (blitz_type){0};
    collect(h, &box);
    CHECK_EQ((*box)->key, 4);
    blitz_heap_unref(h);
}

static const uint32_t raced_offset[] = {0};
static blitz_type raced[50];

/* Register 50 types, each of which another thread registers at the same time, and use them. */
static void register_all(void *arg, int index)
{
    char name[32];
    (void)arg, (void)index;
    for (int i = 0; i < 50; i++) {
        (void)snprintf(name, sizeof name, "tt_raced_%d", i);
        blitz_type mine = named(name, 8, 1, raced_offset, 1);
        CHECK_EQ(blitz_type_register(&mine), 0);
        CHECK_EQ(blitz_type_register(&raced[i]), 0);
        blitz_heap *h = heap_of();
        void **box = blitz_heap_alloc(h, &raced[i]);
        *box = blitz_heap_alloc(h, &mine);
        collect(h, &box);
        CHECK_NOT_NULL(*box);
        blitz_heap_unref(h);
    }
}

/* The first allocations of two actors may meet. */
TEST(heap_type, threads_may_register_one_type_at_the_same_time)
{
    static char names[50][32];
    for (int i = 0; i < 50; i++) {
        (void)snprintf(names[i], sizeof names[i], "tt_raced_%d", i);
        raced[i] = named(names[i], 8, 1, raced_offset, 1);
    }
    t_threads(4, register_all, NULL);
}

TEST(heap_type, what_is_no_type_is_refused)
{
    blitz_type none = {0}, loop = {.name = "tt_loop", .size = 8, .n = 1};
    blitz_type_part inside = {BLITZ_PART_INLINE_, 0, 8, 0, &loop};
    loop.parts = &inside;
    CHECK_EQ(blitz_type_register(&none), -EINVAL);
    CHECK_EQ(blitz_type_register(&loop), -EINVAL); /* it contains itself */
    blitz_type_part tail_inside = {BLITZ_PART_INLINE_, 0, (uint32_t)sizeof(struct text), 0,
                                   &tt_text};
    blitz_type holder = {.name = "tt_holder", .size = 8, .n = 1, .parts = &tail_inside};
    CHECK_EQ(blitz_type_register(&holder), -EINVAL);
}

/* ---- one name, two functions ---- */

struct two {
    struct leaf *a, *b;
};

static void visit_a(void *object, blitz_visitor *v)
{
    blitz_visit(v, &((struct two *)object)->a);
}

static void visit_b(void *object, blitz_visitor *v)
{
    blitz_visit(v, &((struct two *)object)->b);
}

static struct two *two_by_a(blitz_heap *h)
{
    BLITZ_TYPE_VISIT(tt_two, struct two, visit_a);
    return blitz_heap_alloc(h, &tt_two);
}

static struct two *two_by_b(blitz_heap *h)
{
    BLITZ_TYPE_VISIT(tt_two, struct two, visit_b);
    return blitz_heap_alloc(h, &tt_two);
}

/* Of two files, or of a library before and after it was loaded again. */
TEST(heap_type, functions_of_two_types_with_one_name_are_kept_apart)
{
    blitz_heap *h = heap_of();
    struct two *a = two_by_a(h), *b = two_by_b(h);
    CHECK(a != NULL && b != NULL);
    a->a = leaf_of(h, 1);
    b->b = leaf_of(h, 2);
    for (int i = 0; i < 3; i++)
        CHECK_EQ(BLITZ_HEAP_TIDY(h, &a, &b), 0);
    CHECK_EQ(a->a->key, 1);
    CHECK_EQ(b->b->key, 2);
    blitz_heap_unref(h);
}
