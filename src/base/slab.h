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
 * Objects of a *watched* class begin with a 64-bit atomic of the user's, which is 0 in an object that
 * was never handed out and is never written by the slab afterwards. So anybody may walk over all
 * objects, used and free, while they are allocated and freed, and tell by that word which are alive.
 *
 * slab.c has the design; chunks are slab_chunk.c's, free objects slab_object.h's.
 */
#ifndef BZ_SLAB_H
#define BZ_SLAB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/alloc.h"
#include "base/bz_atomic.h"
#include "base/compiler.h"
#include "base/list.h"

/* The alignment of what the allocator is asked for at a time: a power of two. Twice 32 KiB is what
 * glibc still takes from its heap; beyond that every chunk would be a mapping of its own, made, faulted
 * in and unmade with the kernel's help (a million tasks spawned and joined on two procs: 160 ns
 * each with 64 KiB, 54 with 32). */
#if !defined(BZ_SLAB_CHUNK)
#define BZ_SLAB_CHUNK 32768
#endif
/* And its size. Allocators that put 16 bytes of their own before a block can pack such chunks end to
 * end; asked for all of it they leave a hole of a chunk between two, and touch its edges. */
#define BZ_SLAB_CHUNK_BYTES (BZ_SLAB_CHUNK - 16)
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
    size_t keep;        /* bytes at an object's start that are not ours even when it is free */
    uint32_t per_chunk; /* objects in a chunk */
    bool is_hoarded;    /* empty chunks are kept for a while */
    blitz_allocator from;
};

struct bz_slab_object { /* a free object, past what its class keeps; a used one is the user's */
    bz_shared(struct bz_slab_object *) next;
    bz_shared(uintptr_t) mark; /* debug builds: "I am free", see slab_object.h */
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
    unsigned spare_max;               /* so many of them may stay: slab.c, hoarding */
    unsigned emptied;                 /* how often one became empty; hoarding classes only */
    bool has_kept_back;               /* a walk kept an empty chunk from going back */
    bz_atomic(size_t) chunk_count;    /* written by the owner, read for statistics */
    size_t used;                      /* objects out, as far as we have heard */
    struct bz_slab_batch batch[BZ_SLAB_HOMES];
    bz_atomic(struct bz_slab_chunk *)
        newest; /* of all chunks; written by the owner: slab_chunk.c I3 */
    BZ_OWN_LINE bz_atomic(struct bz_slab_object *) inbox; /* pushed by others, emptied by us */
    bz_atomic(uint32_t) walkers; /* how many walk; or BUSY: the owner takes a chunk out */
};

/* A walk in progress; the fields are slab_chunk.c's. */
struct bz_slab_walk {
    struct bz_slab *slab;
    struct bz_slab_chunk *chunk;
    uint32_t next, end; /* objects of chunk: the next to show, and how many there are */
};

/*
 * Describe a class. `name` is kept (a constant), `align` 0 means that of max_align_t.
 * Returns: 0, -EINVAL (size 0, align no power of two, or either over a quarter of a chunk).
 */
BZ_MUST_USE int bz_slab_class_init(struct bz_slab_class *c, const char *name, size_t size,
                                   size_t align, const blitz_allocator *from);

/* Make the class watched, before its first slab: see above. */
void bz_slab_class_watch(struct bz_slab_class *c);

/* Keep empty chunks for a while, before the class's first slab: for objects whose number goes up and
 * down by the hundred thousand. */
void bz_slab_class_hoard(struct bz_slab_class *c);

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

/*
 * The same for a thread that owns no slab: one locked instruction. NULL is ignored.
 * Returns: true; false if the object's home was closed: then the object is gone like any other, and
 *          counts as one of those that bz_slab_close() said were out.
 */
bool bz_slab_free_outside(void *object);

/* Send home all that was collected; before the owner goes to sleep or away. */
void bz_slab_flush(struct bz_slab *s);

/* Give back the chunks a hoarding class has kept; the owner only, when it expects not to need them
 * soon. */
void bz_slab_trim(struct bz_slab *s);

/* Take in what others have sent home, and give back chunks that are empty by it. The owner only;
 * an allocation that finds nothing does it by itself. */
void bz_slab_collect(struct bz_slab *s);

/* ---- objects that outlive their slab's owner ---- */

/*
 * The owner is gone for good (it has flushed), and objects may be out. From now on each comes back
 * by bz_slab_free_outside, which says false; when all have, bz_slab_release() frees the chunks.
 * Returns: how many are out.
 */
size_t bz_slab_close(struct bz_slab *s);

/* Free all chunks, whatever is in them. Nobody uses any object, or the slab, any more. */
void bz_slab_release(struct bz_slab *s);

/* ---- walking over a watched class ---- */

/*
 * Begin to walk over the objects of a slab; any thread, any number of them. While one walks no
 * memory goes back to the allocator.
 * Returns: false if its owner is about to give a chunk back: ask again in a moment.
 */
BZ_MUST_USE bool bz_slab_walk_begin(struct bz_slab_walk *w, struct bz_slab *s);

/* The next object, used or free; NULL at the end. What is handed out meanwhile may be missed. */
void *bz_slab_walk_next(struct bz_slab_walk *w);

void bz_slab_walk_end(struct bz_slab_walk *w);

/* ---- looking ---- */

/* The class an object was allocated in. */
const struct bz_slab_class *bz_slab_kind(const void *object);

/* Bytes the slab has of its allocator now. Any thread: a figure for statistics. */
size_t bz_slab_bytes(struct bz_slab *s);

/* The invariants of slab.c and slab_chunk.c, by walking. Nobody else is at work on it. Aborts with
 * what it saw. */
void bz_slab_check(struct bz_slab *s);

#endif
