/*
 * slab_chunk.h - the chunks of a slab, which hold its objects.
 *
 * A chunk is the unit in which a slab gets memory from its allocator: a header, then objects.
 * slab.c chooses the chunk for an allocation or a free. slab_chunk.c allocates, frees and walks
 * chunks, and has the invariants and the pairings of both files.
 */
#ifndef BZ_SLAB_CHUNK_H
#define BZ_SLAB_CHUNK_H

#include "base/slab.h"
#include "base/slab_object.h"

struct bz_slab_chunk {
    bz_shared(struct bz_slab *) home;        /* constant once visible, I2 */
    struct bz_list in;                       /* in partial or full; owner only */
    struct bz_slab_object *free;             /* owner only */
    uint32_t used;                           /* owner only, I1 */
    bz_atomic(uint32_t) fresh;               /* written by the owner, I1, I4 */
    bz_shared(struct bz_slab_chunk *) older; /* I3 */
    struct bz_slab_chunk *newer;             /* owner only */
};

static inline struct bz_slab_chunk *bz_slab_chunk_of(const void *object)
{
    return (struct bz_slab_chunk *)((uintptr_t)object & ~(uintptr_t)(BZ_SLAB_CHUNK - 1));
}

static inline struct bz_slab_chunk *bz_slab_chunk_in(struct bz_list *link)
{
    return BZ_CONTAINER_OF(link, struct bz_slab_chunk, in);
}

static inline uint32_t bz_slab_fresh_of(struct bz_slab_chunk *chunk)
{
    return bz_load_relaxed(&chunk->fresh); /* relaxed: the owner's own store */
}

static inline bool bz_slab_chunk_is_full(const struct bz_slab *s, const struct bz_slab_chunk *chunk)
{
    return chunk->used == s->kind->per_chunk;
}

static inline void *bz_slab_object_at(const struct bz_slab *s, struct bz_slab_chunk *chunk,
                                      uint32_t i)
{
    return (char *)chunk + s->kind->first + s->kind->size * i;
}

/* Take an object that was never used. The caller has checked that there is one. */
static inline struct bz_slab_object *bz_slab_take_fresh(struct bz_slab *s,
                                                        struct bz_slab_chunk *chunk)
{
    uint32_t i = bz_slab_fresh_of(chunk);
    void *object = bz_slab_object_at(s, chunk, i);
    if (s->kind->keep > 0)
        bz_store_relaxed((bz_atomic(uint64_t) *)object, 0); /* relaxed: [B] publishes it, I4 */
    bz_store_release(&chunk->fresh, i + 1);                 /* [B] */
    return bz_slab_ours_in(object, s->kind);
}

/* Allocate an empty chunk for s; NULL if there is no memory. */
struct bz_slab_chunk *bz_slab_chunk_new(struct bz_slab *s);

/* Free an empty chunk. If a walk is in progress, set s->has_kept_back and free it later. */
void bz_slab_chunk_free(struct bz_slab *s, struct bz_slab_chunk *chunk);

/* Check the invariants by a walk, without concurrent access. */
void bz_slab_chunk_check(const struct bz_slab *s, struct bz_slab_chunk *chunk);

/* The number of chunks in the list; no concurrent access. */
size_t bz_slab_chunks_listed(struct bz_slab *s);

#endif
