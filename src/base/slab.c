/*
 * slab.c - fixed-size objects: chunks of one owner, free lists, batches of remote frees.
 *
 * A slab has chunks (slab_chunk.c), each with its own free list and a count of its used objects.
 * When a chunk has no used object and another empty chunk exists, the chunk goes back to the
 * allocator.
 *
 *   current   the chunk allocations come from
 *   partial   chunks with room; the next current is the first of these
 *   full      chunks without room, listed only for bz_slab_check()
 *
 * Freeing. The *home* of an object is the slab that allocated it. The owner of the home pushes the
 * object on the chunk's free list. Another owner puts it into its batch for that home (4 homes at a
 * time, by hash; a fifth evicts one) and sends a batch of 32 to the home's inbox with one CAS. The
 * inbox is a stack that is always emptied as a whole (xchg), so the CAS has no ABA problem: the CAS
 * needs only that the old top is still the top.
 *
 * Rejected: a global pool per class (a locked instruction for each remote free); adding foreign
 *           objects to the freeing thread's own list (objects pile up there, and a
 *           producer-consumer pair never reuses memory); a remote list per chunk (one RMW per chunk
 *           instead of per batch).
 *
 * Hoarding. A class may keep its empty chunks for a while: a freed chunk goes back to the kernel,
 * and a fresh page costs as much as the thirty tasks that fit into it. The number of kept chunks
 * adapts: one more for each newly allocated chunk, one less for every HOARD_DECAY chunks that
 * became empty. So a load that goes up and down keeps nearly all chunks of its peak. A load that
 * has dropped for good releases them over time, or when its owner sleeps.
 *
 * Closing. Objects may outlive the owner of their slab. The inbox of a closed slab holds CLOSED
 * forever. A free finds CLOSED in place of a list and returns false. So the user can count: the
 * objects in use at the close, minus one for each such free.
 *
 * I1  Every chunk of a slab is current, or in partial (used < per_chunk), or in full (used ==
 *     per_chunk).
 * I2  s->used is the sum of used over its chunks; objects in an inbox or a batch count as used.
 *
 * [A] send: inbox release -> collect: inbox acquire   the links, and the freer's last writes to
 *                                                     the object, come before its reuse
 */
#include "base/slab.h"

#include <errno.h>
#include <stdalign.h>
#include <string.h>

#include "base/bits.h"
#include "base/check.h"
#include "base/slab_chunk.h"

enum { HOARD_DECAY = 16 };
/* Objects: so many misses of the cache are under way at a time. */
enum { AHEAD = 8 };

static struct bz_slab_object closed; /* only its address is used: the inbox of a closed slab */
#define CLOSED (&closed)

/* ---- classes and slabs ---- */

int bz_slab_class_init(struct bz_slab_class *c, const char *name, size_t size, size_t align,
                       const blitz_allocator *from)
{
    if (align == 0)
        align = alignof(max_align_t);
    if (size == 0 || !bz_is_pow2(align) || align > BZ_SLAB_CHUNK / 4 || size > BZ_SLAB_CHUNK / 4)
        return -EINVAL;
    if (size < sizeof(struct bz_slab_object))
        size = sizeof(struct bz_slab_object);
    c->name = name;
    c->size = bz_align_up(size, align);
    c->first = bz_align_up(sizeof(struct bz_slab_chunk), align);
    c->per_chunk = (uint32_t)((BZ_SLAB_CHUNK_BYTES - c->first) / c->size);
    c->keep = 0;
    c->is_hoarded = false;
    c->from = *from;
    return 0;
}

void bz_slab_class_watch(struct bz_slab_class *c)
{
    c->keep = sizeof(uint64_t);
    BZ_CHECK(c->size >= c->keep + sizeof(struct bz_slab_object), "%s: too small to be watched",
             c->name);
}

void bz_slab_class_hoard(struct bz_slab_class *c)
{
    c->is_hoarded = true;
}

void bz_slab_init(struct bz_slab *s, const struct bz_slab_class *c)
{
    memset(s->batch, 0, sizeof s->batch);
    s->kind = c;
    s->current = NULL;
    bz_list_init(&s->partial);
    bz_list_init(&s->full);
    s->empty_count = 0;
    /* so that a single object that is allocated and freed repeatedly does not allocate a chunk
     * each time */
    s->spare_max = 1;
    s->emptied = 0;
    s->has_kept_back = false;
    bz_atomic_init(&s->chunk_count, 0);
    s->used = 0;
    bz_atomic_init(&s->newest, NULL);
    bz_atomic_init(&s->inbox, NULL);
    bz_atomic_init(&s->walkers, 0);
}

/* ---- chunks ---- */

/* Free the chunks that a walk kept back, or that exceed the hoard. */
static void sweep(struct bz_slab *s)
{
    s->has_kept_back = false;
    BZ_LIST_FOR_EACH_SAFE (link, &s->partial) {
        struct bz_slab_chunk *chunk = bz_slab_chunk_in(link);
        if (chunk->used == 0 && s->empty_count > s->spare_max && !s->has_kept_back)
            bz_slab_chunk_free(s, chunk);
    }
}

/* Objects that were freed in a row are at equal distances: prefetch the one that is likely to be taken some calls later. */
static inline void look_ahead(const struct bz_slab_object *o, const struct bz_slab_object *next)
{
    uintptr_t later = (uintptr_t)next + ((uintptr_t)next - (uintptr_t)o) * AHEAD;
    __builtin_prefetch((const void *)later, 1);
    __builtin_prefetch((const void *)(later + BZ_FETCHED), 1);
}

/* Take an object of the chunk. The caller has checked that it has room. */
static void *chunk_take(struct bz_slab *s, struct bz_slab_chunk *chunk)
{
    struct bz_slab_object *o = chunk->free;
    if (chunk->used++ == 0)
        s->empty_count--;
    s->used++;
    if (o == NULL) {
        o = bz_slab_take_fresh(s, chunk);
    } else {
        chunk->free = bz_slab_link_get(o);
        look_ahead(o, chunk->free);
        bz_slab_revive(o, s->kind);
    }
    bz_slab_debug_fill(o, s->kind);
    return bz_slab_object_of(o, s->kind);
}

/* Return a free object to its chunk; s is its home. */
static void chunk_put(struct bz_slab *s, struct bz_slab_object *o)
{
    struct bz_slab_chunk *chunk = bz_slab_chunk_of(o);
    bz_slab_link_set(o, chunk->free);
    chunk->free = o;
    s->used--;
    if (bz_slab_chunk_is_full(s, chunk) && chunk != s->current) { /* I1: it has room now */
        bz_list_remove(&chunk->in);
        bz_list_push_front(&s->partial, &chunk->in);
    }
    if (--chunk->used > 0)
        return;
    s->empty_count++;
    if (s->spare_max > 1 && ++s->emptied % HOARD_DECAY == 0)
        s->spare_max--;
    if (s->empty_count > s->spare_max && chunk != s->current)
        bz_slab_chunk_free(s, chunk);
}

/* ---- allocating ---- */

/* Make a chunk with room current. Return false if there is no memory. */
static bool find_room(struct bz_slab *s)
{
    if (s->current != NULL) { /* it is full, I1 */
        bz_list_push_front(&s->full, &s->current->in);
        s->current = NULL;
    }
    if (bz_list_is_empty(&s->partial))
        bz_slab_collect(s);
    struct bz_list *first = bz_list_take_front(&s->partial);
    s->current = first != NULL ? bz_slab_chunk_in(first) : bz_slab_chunk_new(s);
    return s->current != NULL;
}

void *bz_slab_alloc(struct bz_slab *s)
{
    if (BZ_UNLIKELY(s->current == NULL || bz_slab_chunk_is_full(s, s->current)))
        if (!find_room(s))
            return NULL;
    return chunk_take(s, s->current);
}

/* ---- freeing ---- */

/* Push a list of objects, first .. last, on home's inbox. Return false if it is closed. After a
 * successful push, home may be freed at any time. */
static bool inbox_send(struct bz_slab *home, struct bz_slab_object *first,
                       struct bz_slab_object *last)
{
    struct bz_slab_object *top = bz_load_relaxed(&home->inbox); /* relaxed: the CAS decides */
    do {
        if (top == CLOSED)
            return false;
        bz_slab_link_set(last, top);
    } while (!bz_cas_weak_rel_rlx(&home->inbox, &top, first)); /* [A] */
    return true;
}

static void batch_send(struct bz_slab_batch *b)
{
    if (b->home != NULL)
        BZ_CHECK(inbox_send(b->home, b->first, b->last), "%s: sent to a closed slab",
                 b->home->kind->name);
    *b = (struct bz_slab_batch){NULL, NULL, NULL, 0};
}

static void batch_add(struct bz_slab *s, struct bz_slab *home, struct bz_slab_object *o)
{
    uintptr_t hash = (uintptr_t)home / sizeof *home;
    struct bz_slab_batch *b = &s->batch[hash % BZ_SLAB_HOMES];
    if (b->home != home) {
        batch_send(b);
        b->home = home;
        b->last = o;
    }
    bz_slab_link_set(o, b->first);
    b->first = o;
    if (++b->count == BZ_SLAB_BATCH)
        batch_send(b);
}

void bz_slab_free(struct bz_slab *s, void *object)
{
    if (object == NULL)
        return;
    struct bz_slab *home = bz_get(&bz_slab_chunk_of(object)->home); /* slab_chunk.c I2 */
    struct bz_slab_object *o = bz_slab_ours_in(object, s->kind);
    BZ_ASSERT(home->kind == s->kind);
    bz_slab_retire(o, s->kind);
    if (home == s)
        chunk_put(s, o);
    else
        batch_add(s, home, o);
}

bool bz_slab_free_outside(void *object)
{
    if (object == NULL)
        return true;
    struct bz_slab *home = bz_get(&bz_slab_chunk_of(object)->home); /* slab_chunk.c I2 */
    struct bz_slab_object *o = bz_slab_ours_in(object, home->kind);
    bz_slab_retire(o, home->kind);
    return inbox_send(home, o, o);
}

void bz_slab_flush(struct bz_slab *s)
{
    for (unsigned i = 0; i < BZ_SLAB_HOMES; i++)
        batch_send(&s->batch[i]);
}

static void put_all(struct bz_slab *s, struct bz_slab_object *o)
{
    while (o != NULL) {
        struct bz_slab_object *next = bz_slab_link_get(o);
        chunk_put(s, o);
        o = next;
    }
}

void bz_slab_trim(struct bz_slab *s)
{
    s->spare_max = 1;
    if (s->empty_count > 1)
        sweep(s);
}

void bz_slab_collect(struct bz_slab *s)
{
    if (s->has_kept_back)
        sweep(s);
    if (bz_load_relaxed(&s->inbox) == NULL) /* relaxed: saves the RMW; a miss is found next time */
        return;
    put_all(s, bz_xchg_acquire(&s->inbox, NULL)); /* [A] */
}

/* ---- outliving the owner ---- */

size_t bz_slab_close(struct bz_slab *s)
{
    put_all(s, bz_xchg_acquire(&s->inbox, CLOSED)); /* [A] */
    return s->used;
}

/* ---- checking ---- */

void bz_slab_check(struct bz_slab *s)
{
    size_t says = bz_load_relaxed(&s->chunk_count); /* relaxed: no concurrent access */
    size_t used = 0, chunks = 0, empty = 0;
    struct bz_list *lists[] = {&s->partial, &s->full};
    for (unsigned l = 0; l < BZ_ARRAY_LEN(lists); l++) {
        bz_list_check(lists[l]);
        BZ_LIST_FOR_EACH (link, lists[l]) {
            struct bz_slab_chunk *c = bz_slab_chunk_in(link);
            bz_slab_chunk_check(s, c);
            BZ_CHECK(bz_slab_chunk_is_full(s, c) == (l == 1), "slab of %s: %u used, list %u",
                     s->kind->name, c->used, l); /* I1 */
            used += c->used;
            empty += c->used == 0;
            chunks++;
        }
    }
    if (s->current != NULL) {
        bz_slab_chunk_check(s, s->current);
        used += s->current->used;
        empty += s->current->used == 0;
        chunks++;
    }
    BZ_CHECK(used == s->used, "slab of %s: %zu used, says %zu", s->kind->name, used, s->used);
    BZ_CHECK(chunks == says, "slab of %s: %zu chunks, says %zu", s->kind->name, chunks, says);
    BZ_CHECK(empty == s->empty_count, "slab of %s: %zu empty, says %u", s->kind->name, empty,
             s->empty_count);
    size_t listed = bz_slab_chunks_listed(s);
    BZ_CHECK(listed == says, "slab of %s: %zu chunks listed of %zu", s->kind->name, listed,
             says); /* slab_chunk.c I3 */
}
