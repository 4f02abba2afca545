/*
 * slab.h - objects of one size, from a cache of one's own.
 *
 * Tasks, timers, messages: made and unmade millions of times a second, often by different
 * threads. A *slab class* says what the objects are like. Each owner (a proc) has a *slab* of that
 * class and allocates from it without any atomic operation. Anybody may free: an owner frees its
 * own objects back at once and collects foreign ones in batches, which go home with one locked
 * instruction a batch; a thread that owns no slab sends each home by itself.
 *
 *     struct bz_slab_class timers;
 *     bz_slab_class_init(&timers, "timer", sizeof(struct timer), 0, allocator);
 *     struct bz_slab mine;
 *     bz_slab_init(&mine, &timers);
 *     struct timer *t = bz_slab_alloc(&mine);
 *     bz_slab_free(&mine, t);
 *
 * slab.c has the design.
 */
#ifndef BZ_SLAB_H
#define BZ_SLAB_H

#include <stddef.h>
#include <stdint.h>

#include "base/alloc.h"
#include "base/bz_atomic.h"
#include "base/compiler.h"
#include "base/list.h"

/* Bytes the allocator is asked for at a time, and their alignment: a power of two. */
#if !defined(BZ_SLAB_CHUNK)
#define BZ_SLAB_CHUNK 65536
#endif
/* Foreign objects collected before they are sent home. */
#if !defined(BZ_SLAB_BATCH)
#define BZ_SLAB_BATCH 32
#endif
/* Homes for which an owner collects at the same time. */
#define BZ_SLAB_HOMES 4

/* Constant after init, shared by all slabs of the class. */
struct bz_slab_class {
    const char *name;
    size_t size;        /* of an object, rounded up to its alignment */
    size_t first;       /* offset of a chunk's first object */
    uint32_t per_chunk; /* objects in a chunk */
    blitz_allocator from;
};

struct bz_slab_object { /* a free object; a used one is the user's to the last byte */
    bz_shared(struct bz_slab_object *) next;
    bz_shared(uintptr_t) mark; /* debug builds: "I am free", see slab.c */
};

struct bz_slab_batch {
    struct bz_slab *home; /* NULL: unused */
    struct bz_slab_object *first, *last;
    unsigned count;
};

struct bz_slab_chunk;

struct bz_slab {
    const struct bz_slab_class *kind; /* constant after init */
    struct bz_slab_chunk *current;    /* allocates from here; may be NULL */
    struct bz_list partial;           /* other chunks with room */
    struct bz_list full;              /* chunks without */
    unsigned empty_count;             /* chunks without a used object, current included */
    size_t chunk_count;
    size_t used; /* objects out, as far as we have heard */
    struct bz_slab_batch batch[BZ_SLAB_HOMES];
    BZ_OWN_LINE bz_atomic(struct bz_slab_object *) inbox; /* pushed by others, emptied by us */
};

/*
 * Describe a class. `name` is kept (a constant), `align` 0 means that of max_align_t.
 * Returns: 0, -EINVAL (size 0, align no power of two, or either over a quarter of a chunk).
 */
BZ_MUST_USE int bz_slab_class_init(struct bz_slab_class *c, const char *name, size_t size,
                                   size_t align, const blitz_allocator *from);

/* An empty slab: no memory is taken before the first allocation. The class must outlive it. */
void bz_slab_init(struct bz_slab *s, const struct bz_slab_class *c);

/*
 * Unmake a slab. Its owner has flushed, and nobody is freeing to it any more.
 * Returns: 0, or the number of objects still out: their chunks are left to them, and leak.
 */
size_t bz_slab_fini(struct bz_slab *s);

/* One object, its bytes undefined, or NULL if the allocator has none. The owner only. */
void *bz_slab_alloc(struct bz_slab *s);

/* Give back an object of any slab of this class. `s` is the caller's own. NULL is ignored. */
void bz_slab_free(struct bz_slab *s, void *object);

/* The same for a thread that owns no slab: one locked instruction. NULL is ignored. */
void bz_slab_free_outside(void *object);

/* Send home all that was collected; before the owner goes to sleep or away. */
void bz_slab_flush(struct bz_slab *s);

/* Take in what others have sent home, and give back chunks that are empty by it. The owner only;
 * an allocation that finds nothing does it by itself. */
void bz_slab_collect(struct bz_slab *s);

/* The invariants of slab.c, by walking. Nobody else is at work on it. Aborts with what it saw. */
void bz_slab_check(struct bz_slab *s);

#endif
