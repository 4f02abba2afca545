/*
 * slab_chunk.c - chunks: allocating, freeing and walking them.
 *
 * Memory comes from the allocator in chunks aligned to BZ_SLAB_CHUNK (and a little smaller:
 * slab.h), so that clearing the low bits of an object's address gives the chunk's header. The
 * header names the home, the slab whose owner made the chunk. The objects of a fresh chunk are not
 * put on a free list: `fresh` counts the objects that have ever been used, so an untouched page
 * stays untouched.
 *
 * Walking. All chunks of a slab are in a list that any thread may walk. The owner adds a chunk at
 * the head with one store, and removes one only while no thread walks. The word `walkers` decides
 * this: it counts the walkers, and the owner replaces 0 by BUSY while it unlinks a chunk. If the
 * word is not 0, the owner keeps the chunk for later. So a walk blocks no other thread, and the
 * owner pays one CAS for each freed chunk. (An epoch scheme could free chunks during a walk, but
 * walks are rare.)
 *
 * I1  used == fresh - length of the chunk's free list.
 * I2  home is written before the first object of the chunk is handed out, and never again.
 * I3  The list newest -> older -> ... holds every chunk of the slab. Only the owner changes it. It
 *     removes a chunk only while walkers is BUSY.
 * I4  In a watched class, the kept words of the first `fresh` objects are initialised.
 *
 * [A] bz_slab_chunk_new: newest release -> walk: newest acquire   the chunk's header is complete
 * [B] bz_slab_take_fresh: fresh release -> walk: fresh acquire    I4
 * [C] walk_end: walkers release -> delist: walkers acquire
 *     a walker is done with the list before it
 *                                                     changes and memory goes
 * [D] delist: walkers release -> walk_begin: walkers acquire   and a later one sees the change
 */
#include "base/slab_chunk.h"

#include <assert.h>

#define BUSY UINT32_MAX

static_assert((BZ_SLAB_CHUNK & (BZ_SLAB_CHUNK - 1)) == 0, "found by masking");
static_assert(sizeof(struct bz_slab_chunk) <= BZ_SLAB_CHUNK / 4, "the header is small");

/* ---- allocating and freeing chunks ---- */

static void count_chunks(struct bz_slab *s, size_t more)
{
    /* relaxed: we are its only writer; statistics */
    bz_store_relaxed(&s->chunk_count, bz_load_relaxed(&s->chunk_count) + more);
}

/* Make the chunk the newest of the list, I3. */
static void chunk_enlist(struct bz_slab *s, struct bz_slab_chunk *chunk)
{
    struct bz_slab_chunk *was = bz_load_relaxed(&s->newest); /* relaxed: our own store */
    bz_set(&chunk->older, was);
    chunk->newer = NULL;
    if (was != NULL)
        was->newer = chunk;
    bz_store_release(&s->newest, chunk); /* [A] */
}

/* Remove the chunk from the list, I3. Return false if a walk is in progress. */
static bool chunk_delist(struct bz_slab *s, struct bz_slab_chunk *chunk)
{
    uint32_t no_walkers = 0;
    if (!bz_cas_strong_acq_rlx(&s->walkers, &no_walkers, BUSY)) /* [C] */
        return false;
    struct bz_slab_chunk *older = bz_get(&chunk->older);
    if (older != NULL)
        older->newer = chunk->newer;
    if (chunk->newer != NULL)
        bz_set(&chunk->newer->older, older);
    else
        bz_store_relaxed(&s->newest, older); /* relaxed: no walker is active, [D] */
    bz_store_release(&s->walkers, 0);        /* [D] */
    return true;
}

struct bz_slab_chunk *bz_slab_chunk_new(struct bz_slab *s)
{
    struct bz_slab_chunk *chunk = bz_alloc(&s->kind->from, BZ_SLAB_CHUNK_BYTES, BZ_SLAB_CHUNK);
    if (chunk == NULL)
        return NULL;
    bz_set(&chunk->home, s); /* I2 */
    bz_list_init(&chunk->in);
    chunk->free = NULL;
    chunk->used = 0;
    bz_atomic_init(&chunk->fresh, 0);
    count_chunks(s, 1);
    s->empty_count++;
    s->spare_max += s->kind->is_hoarded;
    chunk_enlist(s, chunk);
    return chunk;
}

void bz_slab_chunk_free(struct bz_slab *s, struct bz_slab_chunk *chunk)
{
    BZ_ASSERT(chunk->used == 0);
    if (!chunk_delist(s, chunk)) {
        s->has_kept_back = true;
        return;
    }
    bz_list_remove(&chunk->in);
    bz_unpoison(chunk, BZ_SLAB_CHUNK_BYTES);
    count_chunks(s, (size_t)-1);
    s->empty_count--;
    bz_free(&s->kind->from, chunk, BZ_SLAB_CHUNK_BYTES);
}

void bz_slab_release(struct bz_slab *s)
{
    struct bz_slab_chunk *chunk = bz_load_relaxed(&s->newest); /* relaxed: no concurrent access */
    while (chunk != NULL) {
        struct bz_slab_chunk *older = bz_get(&chunk->older);
        bz_unpoison(chunk, BZ_SLAB_CHUNK_BYTES);
        bz_free(&s->kind->from, chunk, BZ_SLAB_CHUNK_BYTES);
        chunk = older;
    }
    bz_slab_init(s, s->kind);
}

/* ---- walking ---- */

static void walk_enter(struct bz_slab_walk *w, struct bz_slab_chunk *chunk)
{
    w->chunk = chunk;
    w->next = 0;
    w->end = chunk != NULL ? bz_load_acquire(&chunk->fresh) : 0; /* [B] */
}

bool bz_slab_walk_begin(struct bz_slab_walk *w, struct bz_slab *s)
{
    uint32_t walkers = bz_load_relaxed(&s->walkers); /* relaxed: the CAS decides */
    BZ_ASSERT(s->kind->keep > 0);
    do {
        if (walkers == BUSY)
            return false;
    } while (!bz_cas_weak_acq_rlx(&s->walkers, &walkers, walkers + 1)); /* [D] */
    w->slab = s;
    walk_enter(w, bz_load_acquire(&s->newest)); /* [A] */
    return true;
}

void *bz_slab_walk_next(struct bz_slab_walk *w)
{
    while (w->chunk != NULL && w->next == w->end)
        walk_enter(w, bz_get(&w->chunk->older));
    return w->chunk != NULL ? bz_slab_object_at(w->slab, w->chunk, w->next++) : NULL;
}

void bz_slab_walk_end(struct bz_slab_walk *w)
{
    bz_fetch_sub_release(&w->slab->walkers, 1); /* [C] */
}

/* ---- looking ---- */

const struct bz_slab_class *bz_slab_kind(const void *object)
{
    return bz_get(&bz_slab_chunk_of(object)->home)->kind; /* I2 */
}

size_t bz_slab_bytes(struct bz_slab *s)
{
    return bz_load_relaxed(&s->chunk_count) * BZ_SLAB_CHUNK; /* relaxed: statistics */
}

/* ---- checking ---- */

void bz_slab_chunk_check(const struct bz_slab *s, struct bz_slab_chunk *chunk)
{
    size_t free = 0;
    BZ_CHECK(bz_get(&chunk->home) == s, "slab of %s: a chunk of another", s->kind->name);
    for (struct bz_slab_object *o = chunk->free; o != NULL; o = bz_slab_link_get(o)) {
        BZ_CHECK(bz_slab_chunk_of(o) == chunk, "slab of %s: %p in a foreign chunk", s->kind->name,
                 (void *)o);
        free++;
    }
    BZ_CHECK(chunk->used + free == bz_slab_fresh_of(chunk), "slab of %s: %u used + %zu free of %u",
             s->kind->name, chunk->used, free, bz_slab_fresh_of(chunk)); /* I1 */
}

size_t bz_slab_chunks_listed(struct bz_slab *s)
{
    size_t listed = 0;
    struct bz_slab_chunk *c = bz_load_relaxed(&s->newest); /* relaxed: no concurrent access */
    for (; c != NULL; c = bz_get(&c->older))
        listed++;
    return listed;
}
