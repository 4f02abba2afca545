/*
 * slab.h - allocate objects of one size from a private cache.
 *
 * For tasks, timers and messages, which are allocated and freed millions of times a second, often
 * by different threads. A *slab class* describes the objects. Each owner (a proc) has a *slab* of
 * that class and allocates from it without any atomic operation. Any thread may free. An owner
 * frees its own objects at once and collects foreign ones in batches, with one locked instruction a
 * batch. A thread that owns no slab returns each object separately.
 *
 *     struct bz_slab_class timers;
 *     bz_slab_class_init(&timers, "timer", sizeof(struct timer), 0, allocator);
 *     struct bz_slab mine;
 *     bz_slab_init(&mine, &timers);
 *     struct timer *t = bz_slab_alloc(&mine);
 *     bz_slab_free(&mine, t);
 *
 * Objects of a *watched* class begin with a 64-bit atomic of the user's, which is 0 in an object
 * that was never handed out and is never written by the slab afterwards. So any thread may walk
 * over all objects, used and free, while other threads allocate and free, and that word tells which
 * are in use.
 *
 * slab.c has the design; slab_chunk.c manages chunks, slab_object.h free objects.
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

/* The alignment of a chunk: a power of two. glibc allocates up to twice 32 KiB from its heap. Above
 * that every chunk would be a separate mapping, with system calls and page faults (a million tasks
 * spawned and joined on two procs: 160 ns each with 64 KiB, 54 with 32). */
#if !defined(BZ_SLAB_CHUNK)
#define BZ_SLAB_CHUNK 32768
#endif
/* The size of a chunk, slightly less than its alignment. Allocators with a 16-byte header before
 * each block can then pack chunks end to end; with the full size they would leave a hole of a chunk
 * between two. */
#define BZ_SLAB_CHUNK_BYTES (BZ_SLAB_CHUNK - 16)
/* The number of foreign objects in a batch. */
#if !defined(BZ_SLAB_BATCH)
#define BZ_SLAB_BATCH 32
#endif
/* The number of homes for which an owner has a batch. */
#define BZ_SLAB_HOMES 4

/* Constant after init, shared by all slabs of the class. */
struct bz_slab_class {
    const char *name;
    size_t size;  /* of an object, rounded up to its alignment */
    size_t first; /* offset of a chunk's first object */
    /* bytes at the start of an object that the slab does not touch even when it is free */
    size_t keep;
    uint32_t per_chunk; /* objects in a chunk */
    bool is_hoarded;    /* empty chunks are kept for a while */
    blitz_allocator from;
};

struct bz_slab_object { /* a free object, behind the kept bytes; the user owns a used one */
    bz_shared(struct bz_slab_object *) next;
    bz_shared(uintptr_t) mark; /* debug builds: marks a free object, see slab_object.h */
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
    unsigned spare_max;               /* the number of empty chunks to keep: slab.c, hoarding */
    unsigned emptied;                 /* how often a chunk became empty; hoarding classes only */
    bool has_kept_back;               /* a walk kept an empty chunk from going back */
    bz_atomic(size_t) chunk_count;    /* written by the owner, read for statistics */
    size_t used;                      /* objects in use, before the inbox is collected */
    struct bz_slab_batch batch[BZ_SLAB_HOMES];
    bz_atomic(struct bz_slab_chunk *)
        newest; /* of all chunks; written by the owner: slab_chunk.c I3 */
    /* pushed by other threads, emptied by the owner */
    BZ_OWN_LINE bz_atomic(struct bz_slab_object *) inbox;
    bz_atomic(uint32_t) walkers; /* number of walkers, or BUSY while the owner removes a chunk */
};

/* A walk in progress; only slab_chunk.c uses the fields. */
struct bz_slab_walk {
    struct bz_slab *slab;
    struct bz_slab_chunk *chunk;
    uint32_t next, end; /* the next object of the chunk, and the number of objects */
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

/* Make an empty slab. It takes no memory before the first allocation. The class must outlive it. */
void bz_slab_init(struct bz_slab *s, const struct bz_slab_class *c);

/* Allocate an object with undefined bytes; NULL if there is no memory. The owner only. */
void *bz_slab_alloc(struct bz_slab *s);

/* Free an object of any slab of this class. `s` is the caller's own slab. NULL is ignored. */
void bz_slab_free(struct bz_slab *s, void *object);

/*
 * The same for a thread that owns no slab: one locked instruction. NULL is ignored.
 * Returns: true; false if the object's home was closed. The object is freed in both cases; on false
 *          it counts as one of the objects that bz_slab_close() reported.
 */
bool bz_slab_free_outside(void *object);

/* Send all batches to their homes; called before the owner sleeps or ends. */
void bz_slab_flush(struct bz_slab *s);

/* Free the chunks that a hoarding class has kept. The owner only, when it does not expect to need
 * them soon. */
void bz_slab_trim(struct bz_slab *s);

/* Collect the inbox, and free chunks that became empty. The owner only. An allocation that finds no
 * free object does this itself. */
void bz_slab_collect(struct bz_slab *s);

/* ---- objects that outlive their slab's owner ---- */

/*
 * Close the slab of an owner that has flushed and ended, while objects may be in use. From now on
 * each is freed by bz_slab_free_outside, which returns false. When all are freed, bz_slab_release()
 * frees the chunks.
 * Returns: the number of objects in use.
 */
size_t bz_slab_close(struct bz_slab *s);

/* Free all chunks with their objects. No thread uses an object or the slab any more. */
void bz_slab_release(struct bz_slab *s);

/* ---- walking over a watched class ---- */

/*
 * Start a walk over the objects of a slab. Any number of threads may walk. During a walk no memory
 * goes back to the allocator.
 * Returns: false if the owner is removing a chunk: retry in a moment.
 */
BZ_MUST_USE bool bz_slab_walk_begin(struct bz_slab_walk *w, struct bz_slab *s);

/* The next object, used or free; NULL at the end. Objects allocated during the walk may be
 * missed. */
void *bz_slab_walk_next(struct bz_slab_walk *w);

void bz_slab_walk_end(struct bz_slab_walk *w);

/* ---- looking ---- */

/* The class an object was allocated in. */
const struct bz_slab_class *bz_slab_kind(const void *object);

/* Bytes that the slab has allocated. Any thread, for statistics. */
size_t bz_slab_bytes(struct bz_slab *s);

/* Check the invariants of slab.c and slab_chunk.c by a walk, without concurrent access. Abort with
 * a message if one is broken. */
void bz_slab_check(struct bz_slab *s);

#endif
