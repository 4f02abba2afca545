/*
 * type.c - the registry of types.
 *
 * A blitz_type is a variable of the program or of a library. The registry makes a copy, with its own name and tables, so that an
 * object never refers to the library's memory. (A function of BLITZ_TYPE_VISIT() is code of the library all the same; the header
 * says so.) The copy is found by its name. A second variable with the same name gets the same copy if the layouts are equal. The pointers that a
 * function shows are not known, so two types with functions are the same only if the function is: each has a copy of its own. A
 * function that is in a header is another one in each file, and a library that is loaded again has another one.
 *
 * Parts are flattened into offsets, in two passes: count, then fill. The offsets of a struct of up to 64 words become a map.
 * BLITZ_TYPE() has made that map at compile time, so nothing is computed for it.
 *
 * Rejected: a pointer to the copy in the header. It needs 48 bits and leaves 13 for the count of elements. The index costs one
 * load from a table that stays in the cache.
 *
 * [A] type->index release -> bz_type_get() acquire    the reader sees the copy
 */
#include "heap/type.h"

#include <errno.h>
#include <string.h>

#include "base/alloc.h"
#include "base/log.h"
#include "os/lock.h"
#include "wait/waker.h"

struct bz_type *bz_types[BZ_TYPES_MAX];

static struct bz_lock lock = BZ_LOCK_INIT; /* rank: a leaf */
static uint32_t type_count;                /* guarded by lock; index 0 is no type */

enum { DEPTH_MAX = 8 };

/* Offsets that are counted, and stored if there is room for them. */
struct offsets {
    uint32_t n;
    uint32_t *at; /* NULL: only count */
    uint32_t bad; /* not 0: types that contain each other, or a flexible array inside */
};

static void offsets_add(struct offsets *o, uint32_t offset)
{
    if (o->at != NULL)
        o->at[o->n] = offset;
    o->n++;
}

/* Add the pointers of a struct at `base`. */
static void flatten(const blitz_type *t, uint32_t base, unsigned depth, struct offsets *o);

static void flatten_many(const blitz_type *of, uint32_t base, uint32_t bytes, unsigned depth,
                         struct offsets *o)
{
    if (depth == DEPTH_MAX || of->visit != NULL || of->size == 0 || bytes % of->size != 0) {
        o->bad = 1;
        return;
    }
    for (uint32_t at = 0; at < bytes; at += of->size)
        flatten(of, base + at, depth + 1, o);
}

static void flatten(const blitz_type *t, uint32_t base, unsigned depth, struct offsets *o)
{
    for (uint32_t i = 0; t->offsets != NULL && i < t->n; i++)
        offsets_add(o, base + t->offsets[i]);
    for (uint32_t i = 0; t->parts != NULL && i < t->n && !o->bad; i++) {
        const blitz_type_part *p = &t->parts[i];
        if (p->kind == BLITZ_PART_INLINE_)
            flatten_many(p->of, base + p->offset, p->count, depth, o);
        for (uint32_t k = 0; p->kind == BLITZ_PART_POINTERS_ && k < p->count; k++)
            offsets_add(o, base + p->offset + k * p->stride);
        if (p->kind == BLITZ_PART_TAIL_ && depth > 0)
            o->bad = 1;
    }
}

static const blitz_type_part *tail_of(const blitz_type *t)
{
    for (uint32_t i = 0; t->parts != NULL && i < t->n; i++)
        if (t->parts[i].kind == BLITZ_PART_TAIL_)
            return &t->parts[i];
    return NULL;
}

static void flatten_tail(const blitz_type_part *tail, struct offsets *o)
{
    if (tail->of != NULL)
        flatten_many(tail->of, 0, tail->stride, 0, o);
    for (uint32_t k = 0; tail->of == NULL && k < tail->count; k++)
        offsets_add(o, k * tail->stride);
}

/* Make the layout of `bytes` bytes with these offsets, which it takes if it needs a table. */
static void layout_make(struct bz_layout *l, uint32_t bytes, const struct offsets *o)
{
    *l = (struct bz_layout){.bytes = bytes};
    for (uint32_t i = 0; i < o->n; i++)
        if (o->at[i] / sizeof(void *) >= 64) {
            l->map = 0;
            l->n = o->n;
            l->offsets = o->at;
            return;
        } else {
            l->map |= UINT64_C(1) << (o->at[i] / sizeof(void *));
        }
}

static bool layout_equal(const struct bz_layout *a, const struct bz_layout *b)
{
    if (a->map != b->map || a->bytes != b->bytes || a->n != b->n)
        return false;
    return a->n == 0 || memcmp(a->offsets, b->offsets, a->n * sizeof a->offsets[0]) == 0;
}

static bool type_equal(const struct bz_type *a, const struct bz_type *b)
{
    return layout_equal(&a->fixed, &b->fixed) && layout_equal(&a->tail, &b->tail) &&
           a->tail_at == b->tail_at && a->is_const == b->is_const && a->visit == b->visit;
}

/* A copy in one block: the type, its offsets, its name. */
struct copy {
    struct bz_type type;
    size_t bytes;
    uint32_t offsets[];
};

static void copy_free(struct copy *c)
{
    bz_free(&bz_allocator_libc, c, c->bytes);
}

static void copy_fill(struct copy *c, const blitz_type *t, uint32_t n_fixed, uint32_t n_tail)
{
    const blitz_type_part *tail = tail_of(t);
    struct offsets fixed = {.at = c->offsets}, last = {.at = c->offsets + n_fixed};
    char *name = (char *)(c->offsets + n_fixed + n_tail);
    flatten(t, 0, 0, &fixed);
    layout_make(&c->type.fixed, t->size, &fixed);
    c->type.tail = (struct bz_layout){0};
    c->type.tail_at = tail != NULL ? tail->offset : 0;
    if (tail != NULL) {
        flatten_tail(tail, &last);
        layout_make(&c->type.tail, tail->stride, &last);
    }
    c->type.is_plain = n_fixed + n_tail == 0 && t->visit == NULL;
    c->type.is_const = t->flags & BLITZ_TYPE_VALUE_;
    c->type.is_value = c->type.is_plain || c->type.is_const;
    c->type.visit = t->visit;
    c->type.bytes = (uint32_t)(sizeof(uint64_t) + (t->size + 7u) / 8 * 8);
    c->type.small_bytes = c->type.bytes <= BZ_SMALL_MAX ? c->type.bytes : UINT32_MAX;
    c->type.copy_bytes = t->size % 8 == 0 && t->size <= 128 ? c->type.bytes : UINT32_MAX;
    memcpy(name, t->name, strlen(t->name) + 1);
    c->type.name = name;
}

static int copy_make(const blitz_type *t, struct copy **out)
{
    struct offsets fixed = {0}, last = {0};
    const blitz_type_part *tail = tail_of(t);
    if (t->name == NULL || t->size == 0)
        return -EINVAL;
    flatten(t, 0, 0, &fixed);
    if (tail != NULL)
        flatten_tail(tail, &last);
    if (fixed.bad || last.bad || (tail != NULL && tail->stride == 0))
        return -EINVAL;
    size_t bytes =
        sizeof(struct copy) + (fixed.n + (size_t)last.n) * sizeof(uint32_t) + strlen(t->name) + 1;
    struct copy *c = bz_alloc(&bz_allocator_libc, bytes, _Alignof(max_align_t));
    if (c == NULL)
        return -ENOMEM;
    c->bytes = bytes;
    copy_fill(c, t, fixed.n, last.n);
    *out = c;
    return 0;
}

/* Two functions: no layout to compare. */
static bool is_apart(const struct bz_type *a, const struct bz_type *b)
{
    return a->visit != NULL && b->visit != NULL && a->visit != b->visit;
}

/* Find a copy by its name. Its index, or 0. Under the lock. */
static uint32_t find(const struct bz_type *t)
{
    for (uint32_t i = 1; i <= type_count; i++)
        if (strcmp(bz_types[i]->name, t->name) == 0 && !is_apart(bz_types[i], t))
            return i;
    return 0;
}

/* Add the copy, or find an equal one. Returns its index or an error. Under the lock. */
static int add(struct copy *c)
{
    uint32_t index = find(&c->type);
    if (index != 0)
        return type_equal(bz_types[index], &c->type) ? (int)index : -EEXIST;
    if (type_count + 1 == BZ_TYPES_MAX)
        return -ENOSPC;
    index = ++type_count;
    c->type.header = (uint64_t)index << BZ_TYPE_SHIFT;
    bz_types[index] = &c->type;
    return (int)index;
}

int blitz_type_register(blitz_type *type)
{
    struct copy *c;
    bz_atomic(uint32_t) *index = (bz_atomic(uint32_t) *)&type->index;
    if (bz_load_acquire(index) != 0) /* [A] */
        return 0;
    int err = copy_make(type, &c);
    if (err != 0)
        return err;
    bz_lock_take(&lock, bz_os_here());
    int got = add(c);
    bool is_new = got > 0 && bz_types[got] == &c->type;
    bz_lock_drop(&lock, bz_os_here());
    if (got == -EEXIST)
        bz_log(BLITZ_LOG_ERROR,
               "the type %s is registered with another layout: give one of the two another name",
               type->name);
    if (!is_new)
        copy_free(c);
    if (got < 0)
        return got;
    bz_store_release(index, (uint32_t)got); /* [A] */
    return 0;
}

bool bz_types_visit_in(uintptr_t start, uintptr_t end)
{
    bool is_in = false;
    bz_lock_take(&lock, bz_os_here());
    for (uint32_t i = 1; i <= type_count; i++)
        is_in |= (uintptr_t)bz_types[i]->visit - start < end - start;
    bz_lock_drop(&lock, bz_os_here());
    return is_in;
}

const struct bz_type *bz_type_make(blitz_type *type)
{
    int err = blitz_type_register(type);
    if (err != 0 && err != -EEXIST)
        bz_log(BLITZ_LOG_ERROR, "the type %s cannot be registered: error %d",
               type->name != NULL ? type->name : "?", err);
    return err == 0 ? bz_types[bz_load_acquire((bz_atomic(uint32_t) *)&type->index)]
                    : NULL; /* [A] */
}

/* ---- walking ---- */

static void walk_layout(const struct bz_layout *l, char *base, blitz_visitor *v)
{
    BZ_BITS_FOR_EACH (word, l->map) {
        v->fn(v, (bz_slot *)base + word);
    }
    for (uint32_t i = 0; i < l->n; i++)
        v->fn(v, (bz_slot *)(base + l->offsets[i]));
}

void bz_type_walk(const struct bz_type *t, void *object, size_t count, blitz_visitor *v)
{
    walk_layout(&t->fixed, object, v);
    for (size_t i = 0; i < count && !t->is_plain; i++)
        walk_layout(&t->tail, (char *)object + t->tail_at + i * t->tail.bytes, v);
    if (t->visit != NULL)
        t->visit(object, v);
}

void blitz_visit(blitz_visitor *v, void *slot)
{
    v->fn(v, slot);
}
