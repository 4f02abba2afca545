/*
 * slab_object.h - the layout of a free object of a slab: link, mark, fill and poison.
 *
 * Only the slab may access a free object. It holds the link of its free list. In a watched class
 * (slab.h) the link is behind the kept word, and neither fill nor poison touches that word. Its
 * last value tells a walker that the object is free, until the next user changes it.
 *
 * Debug builds fill a freed object with 0xdb, mark it with its own address and check both when it
 * is allocated: a write after free and a double free abort with the class's name. A new object is
 * filled with 0xa5, so that no code can rely on zeroes. ASan builds also poison it, except while
 * its link is read or written.
 */
#ifndef BZ_SLAB_OBJECT_H
#define BZ_SLAB_OBJECT_H

#include <string.h>

#include "base/check.h"
#include "base/poison.h"
#include "base/slab.h"

/* The slab's part of a free object begins behind the bytes that its class keeps. */
static inline struct bz_slab_object *bz_slab_ours_in(void *object, const struct bz_slab_class *c)
{
    return (void *)((char *)object + c->keep);
}

static inline void *bz_slab_object_of(struct bz_slab_object *o, const struct bz_slab_class *c)
{
    return (char *)o - c->keep;
}

#if defined(BZ_DEBUG)
enum { BZ_SLAB_FREE_FILL = 0xdb, BZ_SLAB_FRESH_FILL = 0xa5 };

static inline uintptr_t bz_slab_mark_of(const struct bz_slab_object *o)
{
    return (uintptr_t)o ^ (uintptr_t)UINT64_C(0xf4eef4eef4eef4ee);
}

/* The part of a free object behind link and mark. */
static inline unsigned char *bz_slab_rest_of(struct bz_slab_object *o)
{
    return (unsigned char *)o + sizeof *o;
}

static inline void bz_slab_debug_retire(struct bz_slab_object *o, const struct bz_slab_class *c)
{
    BZ_CHECK(bz_get(&o->mark) != bz_slab_mark_of(o), "%s %p: freed twice", c->name, (void *)o);
    memset(bz_slab_rest_of(o), BZ_SLAB_FREE_FILL, c->size - c->keep - sizeof *o);
    bz_set(&o->mark, bz_slab_mark_of(o));
}

static inline void bz_slab_debug_revive(struct bz_slab_object *o, const struct bz_slab_class *c)
{
    BZ_CHECK(bz_get(&o->mark) == bz_slab_mark_of(o), "%s %p: written after free", c->name,
             (void *)o);
    for (size_t i = 0; i < c->size - c->keep - sizeof *o; i++)
        BZ_CHECK(bz_slab_rest_of(o)[i] == BZ_SLAB_FREE_FILL, "%s %p: byte %zu written after free",
                 c->name, (void *)o, i + c->keep + sizeof *o);
}

static inline void bz_slab_debug_fill(struct bz_slab_object *o, const struct bz_slab_class *c)
{
    memset(o, BZ_SLAB_FRESH_FILL, c->size - c->keep);
}
#else
static inline void bz_slab_debug_retire(struct bz_slab_object *o, const struct bz_slab_class *c)
{
    (void)o;
    (void)c;
}

static inline void bz_slab_debug_revive(struct bz_slab_object *o, const struct bz_slab_class *c)
{
    (void)o;
    (void)c;
}

static inline void bz_slab_debug_fill(struct bz_slab_object *o, const struct bz_slab_class *c)
{
    (void)o;
    (void)c;
}
#endif

static inline struct bz_slab_object *bz_slab_link_get(struct bz_slab_object *o)
{
    bz_unpoison(o, sizeof *o);
    struct bz_slab_object *next = bz_get(&o->next);
    bz_poison(o, sizeof *o);
    return next;
}

static inline void bz_slab_link_set(struct bz_slab_object *o, struct bz_slab_object *next)
{
    bz_unpoison(o, sizeof *o);
    bz_set(&o->next, next);
    bz_poison(o, sizeof *o);
}

/* Mark and poison an object that its user has freed. */
static inline void bz_slab_retire(struct bz_slab_object *o, const struct bz_slab_class *c)
{
    bz_slab_debug_retire(o, c);
    bz_poison(o, c->size - c->keep);
}

/* Check and unpoison a free object for its next user. */
static inline void bz_slab_revive(struct bz_slab_object *o, const struct bz_slab_class *c)
{
    bz_unpoison(o, c->size - c->keep);
    bz_slab_debug_revive(o, c);
}

#endif
