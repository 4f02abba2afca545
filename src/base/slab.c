/*
 * slab.c - fixed-size objects: chunks of one owner, free lists, batches to go home.
 *
 * Memory comes from the allocator in chunks aligned to BZ_SLAB_CHUNK (and a little smaller: slab.h),
 * so that an object finds its chunk's header by clearing the low bits of its address, and the header
 * names its home: the slab whose owner made the chunk. A chunk keeps its own free list and counts its
 * used objects; when none is left and another empty chunk is at hand, it goes back to the
 * allocator. Fresh chunks are not threaded into a list: `fresh` counts how many have ever been
 * used, so an untouched page stays untouched.
 *
 *   current   the chunk allocations come from
 *   partial   chunks with room; the next current is the first of these
 *   full      chunks without room, watched only so that fini can find them
 *
 * Freeing: home's own owner pushes on the chunk's free list. Another owner puts the object into
 * the batch for that home (4 homes at a time, by hash; a fifth evicts) and sends a batch of 32
 * with one CAS onto home's inbox. The inbox is a stack that is only ever emptied whole (xchg), so
 * the CAS has no ABA: it does not matter what became of the old top, only that it is the top.
 *
 * Rejected: a global pool per class (a locked instruction for each object that crosses); returning
 * foreign objects to the freer's own list (objects pile up where they die, and a producer-consumer
 * pair never reuses anything); a remote list per chunk (one RMW per chunk instead of per batch).
 *
 * Hoarding. A class may keep its empty chunks for a while: what goes back to the allocator goes on to
 * the kernel, and a fresh page costs as much as the thirty tasks that fit into it. How many is learnt:
 * one more for each chunk that had to be asked for, one less for every HOARD_DECAY that became empty.
 * So a load that goes up and down keeps nearly all it needs at its height, and one that has gone
 * down for good lets go in the course of its own work, or when its owner goes to sleep.
 *
 * Walking. All chunks of a slab stand in a list that anybody may go along. The owner adds at its
 * head with one store; it takes a chunk out only while nobody walks, which a word decides: walkers
 * count themselves in it, the owner replaces 0 by BUSY for the moment the unlinking takes, and if
 * it is not 0 keeps the chunk for later. So a walk blocks nobody, and the owner pays one CAS for a
 * chunk that goes back. (An epoch scheme would let chunks go during a walk; walks are rare.)
 * In a watched class the link of a free object lies behind the kept word, and neither fill nor
 * poison touches that: what the user left there says "free" to a walker until the user says
 * otherwise.
 *
 * Closing. Objects may outlive the owner of their slab. The inbox of a closed slab holds CLOSED for
 * ever; whoever frees to it finds that in place of a list and is told, so the user counts: what was
 * out at the close, less one for each such free.
 *
 * Debug builds fill a freed object with 0xdb, mark it with its own address and look at both again
 * when it is allocated: a write after free and a second free abort with the class's name. ASan
 * builds poison it as well.
 *
 * I1  Every chunk of a slab is current, or in partial (used < per_chunk), or in full (used ==
 *     per_chunk).
 * I2  used == fresh - length of the chunk's free list.
 * I3  s->used is the sum of used over its chunks; objects in an inbox or a batch count as used.
 * I4  home is written before the first object of the chunk is handed out, and never again.
 * I5  The list newest -> older -> ... holds every chunk of the slab. It is changed by the owner
 *     only; a chunk is taken out only while walkers is BUSY.
 * I6  In a watched class, the kept words of the first `fresh` objects are initialised.
 *
 * [A] send: inbox release -> collect: inbox acquire   the links, and the freer's last writes to
 *                                                     the object, come before its reuse
 * [B] chunk_new: newest release -> walk: newest acquire   the chunk's header is complete
 * [C] chunk_take: fresh release -> walk: fresh acquire    I6
 * [D] walk_end: walkers release -> chunk_free: walkers acquire   a walker is done with the list
 *                                                     before it changes and memory goes
 * [E] chunk_free: walkers release -> walk_begin: walkers acquire   and a later one sees the change
 */
#include "base/slab.h"

#include <assert.h>
#include <errno.h>
#include <stdalign.h>
#include <string.h>

#include "base/bits.h"
#include "base/check.h"
#include "base/poison.h"

enum { FREE_FILL = 0xdb, FRESH_FILL = 0xa5, HOARD_DECAY = 16 };

struct bz_slab_chunk {
    bz_shared(struct bz_slab *) home;        /* constant once visible, I4 */
    struct bz_list in;                       /* partial or full; the owner's */
    struct bz_slab_object *free;             /* the owner's */
    uint32_t used;                           /* the owner's, I2 */
    bz_atomic(uint32_t) fresh;               /* written by the owner, I2, I6 */
    bz_shared(struct bz_slab_chunk *) older; /* I5 */
    struct bz_slab_chunk *newer;             /* the owner's */
};

static struct bz_slab_object closed; /* its address alone is used: in the inbox of a closed slab */
#define CLOSED (&closed)
#define BUSY UINT32_MAX

static_assert((BZ_SLAB_CHUNK & (BZ_SLAB_CHUNK - 1)) == 0, "found by masking");
static_assert(sizeof(struct bz_slab_chunk) <= BZ_SLAB_CHUNK / 4, "the header is small");

static struct bz_slab_chunk *chunk_of(const void *object)
{
    return (struct bz_slab_chunk *)((uintptr_t)object & ~(uintptr_t)(BZ_SLAB_CHUNK - 1));
}

static struct bz_slab_chunk *chunk_in(struct bz_list *link)
{
    return BZ_CONTAINER_OF(link, struct bz_slab_chunk, in);
}

static uint32_t fresh_of(struct bz_slab_chunk *chunk)
{
    return bz_load_relaxed(&chunk->fresh); /* relaxed: the owner's own store */
}

/* ---- free objects: link, mark, fill ---- */

/* What is ours of a free object begins behind what its class keeps. */
static struct bz_slab_object *ours_in(void *object, const struct bz_slab_class *c)
{
    return (void *)((char *)object + c->keep);
}

static void *object_of(struct bz_slab_object *o, const struct bz_slab_class *c)
{
    return (char *)o - c->keep;
}

#if defined(BZ_DEBUG)
static uintptr_t mark_of(const struct bz_slab_object *o)
{
    return (uintptr_t)o ^ (uintptr_t)UINT64_C(0xf4eef4eef4eef4ee);
}

/* The part of a free object that link and mark leave over. */
static unsigned char *rest_of(struct bz_slab_object *o)
{
    return (unsigned char *)o + sizeof *o;
}

static void debug_retire(struct bz_slab_object *o, const struct bz_slab_class *c)
{
    BZ_CHECK(bz_get(&o->mark) != mark_of(o), "%s %p: freed twice", c->name, (void *)o);
    memset(rest_of(o), FREE_FILL, c->size - c->keep - sizeof *o);
    bz_set(&o->mark, mark_of(o));
}

static void debug_revive(struct bz_slab_object *o, const struct bz_slab_class *c)
{
    BZ_CHECK(bz_get(&o->mark) == mark_of(o), "%s %p: written after free", c->name, (void *)o);
    for (size_t i = 0; i < c->size - c->keep - sizeof *o; i++)
        BZ_CHECK(rest_of(o)[i] == FREE_FILL, "%s %p: byte %zu written after free", c->name,
                 (void *)o, i + c->keep + sizeof *o);
}

static void debug_fill(struct bz_slab_object *o, const struct bz_slab_class *c)
{
    memset(o, FRESH_FILL, c->size - c->keep);
}
#else
static void debug_retire(struct bz_slab_object *o, const struct bz_slab_class *c)
{
    (void)o;
    (void)c;
}

static void debug_revive(struct bz_slab_object *o, const struct bz_slab_class *c)
{
    (void)o;
    (void)c;
}

static void debug_fill(struct bz_slab_object *o, const struct bz_slab_class *c)
{
    (void)o;
    (void)c;
}
#endif

static struct bz_slab_object *link_get(struct bz_slab_object *o)
{
    bz_unpoison(o, sizeof *o);
    struct bz_slab_object *next = bz_get(&o->next);
    bz_poison(o, sizeof *o);
    return next;
}

static void link_set(struct bz_slab_object *o, struct bz_slab_object *next)
{
    if (!BZ_BROKEN(10))
        bz_unpoison(o, sizeof *o);
    bz_set(&o->next, next);
    bz_poison(o, sizeof *o);
}

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
    s->spare_max = 1; /* so that a lone object that comes and goes does not drag a chunk with it */
    s->emptied = 0;
    s->has_kept_back = false;
    bz_atomic_init(&s->chunk_count, 0);
    s->used = 0;
    bz_atomic_init(&s->newest, NULL);
    bz_atomic_init(&s->inbox, NULL);
    bz_atomic_init(&s->walkers, 0);
}

/* ---- chunks ---- */

static void count_chunks(struct bz_slab *s, size_t more)
{
    /* relaxed: we are its only writer; statistics */
    bz_store_relaxed(&s->chunk_count, bz_load_relaxed(&s->chunk_count) + more);
}

/* I5: it becomes the newest. */
static void chunk_enlist(struct bz_slab *s, struct bz_slab_chunk *chunk)
{
    struct bz_slab_chunk *was = bz_load_relaxed(&s->newest); /* relaxed: our own store */
    bz_set(&chunk->older, was);
    chunk->newer = NULL;
    if (was != NULL)
        was->newer = chunk;
    bz_store_release(&s->newest, chunk); /* [B] */
}

/* I5: it leaves the list; false if somebody walks. */
static bool chunk_delist(struct bz_slab *s, struct bz_slab_chunk *chunk)
{
    uint32_t nobody = 0;
    if (!BZ_BROKEN(57) && !bz_cas_strong_acq_rlx(&s->walkers, &nobody, BUSY)) /* [D] */
        return false;
    struct bz_slab_chunk *older = bz_get(&chunk->older);
    if (older != NULL)
        older->newer = chunk->newer;
    if (chunk->newer != NULL)
        bz_set(&chunk->newer->older, older);
    else
        bz_store_relaxed(&s->newest, older); /* relaxed: no walker is there to see, [E] */
    bz_store_release(&s->walkers, 0);        /* [E] */
    return true;
}

static struct bz_slab_chunk *chunk_new(struct bz_slab *s)
{
    struct bz_slab_chunk *chunk = bz_alloc(&s->kind->from, BZ_SLAB_CHUNK_BYTES, BZ_SLAB_CHUNK);
    if (chunk == NULL)
        return NULL;
    bz_set(&chunk->home, s); /* I4 */
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

/* Give an empty chunk back, unless somebody walks: then later. */
static void chunk_free(struct bz_slab *s, struct bz_slab_chunk *chunk)
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

/* What a walk kept back, or we have hoarded too much of, goes back now. */
static void sweep(struct bz_slab *s)
{
    s->has_kept_back = false;
    BZ_LIST_FOR_EACH_SAFE (link, &s->partial)
        if (chunk_in(link)->used == 0 && s->empty_count > s->spare_max && !s->has_kept_back)
            chunk_free(s, chunk_in(link));
}

static bool chunk_is_full(const struct bz_slab *s, const struct bz_slab_chunk *chunk)
{
    return chunk->used == s->kind->per_chunk;
}

static void *object_at(const struct bz_slab *s, struct bz_slab_chunk *chunk, uint32_t i)
{
    return (char *)chunk + s->kind->first + s->kind->size * i;
}

/* One that was never used. */
static struct bz_slab_object *chunk_take_fresh(struct bz_slab *s, struct bz_slab_chunk *chunk)
{
    uint32_t i = fresh_of(chunk);
    void *object = object_at(s, chunk, i);
    if (s->kind->keep > 0)
        bz_store_relaxed((bz_atomic(uint64_t) *)object, 0); /* relaxed: [C] publishes it, I6 */
    bz_store_release(&chunk->fresh, i + 1);                 /* [C] */
    return ours_in(object, s->kind);
}

/* An object of the chunk, whose room the caller has made sure of. */
static void *chunk_take(struct bz_slab *s, struct bz_slab_chunk *chunk)
{
    struct bz_slab_object *o = chunk->free;
    if (chunk->used++ == 0)
        s->empty_count--;
    s->used++;
    if (o == NULL) {
        o = chunk_take_fresh(s, chunk);
    } else {
        chunk->free = link_get(o);
        bz_unpoison(o, s->kind->size - s->kind->keep);
        debug_revive(o, s->kind);
    }
    debug_fill(o, s->kind);
    return object_of(o, s->kind);
}

/* The object has been given up by its user. From here on it is poisoned. */
static void object_retire(struct bz_slab_object *o, const struct bz_slab_class *c)
{
    debug_retire(o, c);
    bz_poison(o, c->size - c->keep);
}

/* A free object comes back to the chunk it is from; s is its home. */
static void chunk_put(struct bz_slab *s, struct bz_slab_object *o)
{
    struct bz_slab_chunk *chunk = chunk_of(o);
    link_set(o, chunk->free);
    chunk->free = o;
    s->used--;
    if (chunk_is_full(s, chunk) && chunk != s->current) { /* I1: it has room now */
        bz_list_remove(&chunk->in);
        bz_list_push_front(&s->partial, &chunk->in);
    }
    if (--chunk->used > 0)
        return;
    s->empty_count++;
    if (s->spare_max > 1 && ++s->emptied % HOARD_DECAY == 0)
        s->spare_max--;
    if (s->empty_count > s->spare_max && chunk != s->current)
        chunk_free(s, chunk);
}

/* ---- allocating ---- */

/* A chunk with room becomes current; false if there is no memory. */
static bool find_room(struct bz_slab *s)
{
    if (s->current != NULL) { /* it is full, I1 */
        bz_list_push_front(&s->full, &s->current->in);
        s->current = NULL;
    }
    if (bz_list_is_empty(&s->partial))
        bz_slab_collect(s);
    struct bz_list *first = bz_list_take_front(&s->partial);
    s->current = first != NULL ? chunk_in(first) : chunk_new(s);
    return s->current != NULL;
}

void *bz_slab_alloc(struct bz_slab *s)
{
    if (BZ_UNLIKELY(s->current == NULL || chunk_is_full(s, s->current)))
        if (!find_room(s))
            return NULL;
    return chunk_take(s, s->current);
}

/* ---- freeing ---- */

/* Push a list of objects, first .. last, on home's inbox; false if it is closed. If not, home may be
 * gone as soon as they are in. */
static bool inbox_send(struct bz_slab *home, struct bz_slab_object *first,
                       struct bz_slab_object *last)
{
    struct bz_slab_object *top = bz_load_relaxed(&home->inbox); /* relaxed: the CAS decides */
    do {
        if (top == CLOSED)
            return false;
        link_set(last, top);
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
    link_set(o, b->first);
    b->first = o;
    if (++b->count == BZ_SLAB_BATCH)
        batch_send(b);
}

void bz_slab_free(struct bz_slab *s, void *object)
{
    if (object == NULL)
        return;
    struct bz_slab *home = bz_get(&chunk_of(object)->home); /* I4 */
    struct bz_slab_object *o = ours_in(object, s->kind);
    BZ_ASSERT(home->kind == s->kind);
    object_retire(o, s->kind);
    if (home == s)
        chunk_put(s, o);
    else
        batch_add(s, home, o);
}

bool bz_slab_free_outside(void *object)
{
    if (object == NULL)
        return true;
    struct bz_slab *home = bz_get(&chunk_of(object)->home); /* I4 */
    struct bz_slab_object *o = ours_in(object, home->kind);
    object_retire(o, home->kind);
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
        struct bz_slab_object *next = link_get(o);
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

void bz_slab_release(struct bz_slab *s)
{
    struct bz_slab_chunk *chunk = bz_load_relaxed(&s->newest); /* relaxed: nobody else is left */
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
    w->end = chunk != NULL ? bz_load_acquire(&chunk->fresh) : 0; /* [C] */
}

bool bz_slab_walk_begin(struct bz_slab_walk *w, struct bz_slab *s)
{
    uint32_t walkers = bz_load_relaxed(&s->walkers); /* relaxed: the CAS decides */
    BZ_ASSERT(s->kind->keep > 0);
    do {
        if (walkers == BUSY)
            return false;
    } while (!bz_cas_weak_acq_rlx(&s->walkers, &walkers, walkers + 1)); /* [E] */
    w->slab = s;
    walk_enter(w, bz_load_acquire(&s->newest)); /* [B] */
    return true;
}

void *bz_slab_walk_next(struct bz_slab_walk *w)
{
    while (w->chunk != NULL && w->next == w->end)
        walk_enter(w, bz_get(&w->chunk->older));
    return w->chunk != NULL ? object_at(w->slab, w->chunk, w->next++) : NULL;
}

void bz_slab_walk_end(struct bz_slab_walk *w)
{
    bz_fetch_sub_release(&w->slab->walkers, 1); /* [D] */
}

/* ---- ending ---- */

size_t bz_slab_fini(struct bz_slab *s)
{
    for (unsigned i = 0; i < BZ_SLAB_HOMES; i++)
        BZ_CHECK(s->batch[i].home == NULL, "slab of %s not flushed", s->kind->name);
    bz_slab_collect(s);
    if (s->current != NULL) {
        bz_list_push_front(&s->partial, &s->current->in);
        s->current = NULL;
    }
    BZ_LIST_FOR_EACH_SAFE (link, &s->partial)
        if (chunk_in(link)->used == 0)
            chunk_free(s, chunk_in(link));
    return s->used;
}

/* ---- looking ---- */

const struct bz_slab_class *bz_slab_kind(const void *object)
{
    return bz_get(&chunk_of(object)->home)->kind; /* I4 */
}

size_t bz_slab_bytes(struct bz_slab *s)
{
    return bz_load_relaxed(&s->chunk_count) * BZ_SLAB_CHUNK; /* relaxed: statistics */
}

/* ---- checking ---- */

static void chunk_check(const struct bz_slab *s, struct bz_slab_chunk *chunk)
{
    size_t free = 0;
    BZ_CHECK(bz_get(&chunk->home) == s, "slab of %s: a chunk of another", s->kind->name);
    for (struct bz_slab_object *o = chunk->free; o != NULL; o = link_get(o)) {
        BZ_CHECK(chunk_of(o) == chunk, "slab of %s: %p in a foreign chunk", s->kind->name,
                 (void *)o);
        free++;
    }
    BZ_CHECK(chunk->used + free == fresh_of(chunk), "slab of %s: %u used + %zu free of %u",
             s->kind->name, chunk->used, free, fresh_of(chunk)); /* I2 */
}

void bz_slab_check(struct bz_slab *s)
{
    size_t says = bz_load_relaxed(&s->chunk_count); /* relaxed: nobody is at work on it */
    size_t used = 0, chunks = 0, empty = 0, listed = 0;
    struct bz_list *lists[] = {&s->partial, &s->full};
    for (unsigned l = 0; l < BZ_ARRAY_LEN(lists); l++) {
        bz_list_check(lists[l]);
        BZ_LIST_FOR_EACH (link, lists[l]) {
            chunk_check(s, chunk_in(link));
            BZ_CHECK(chunk_is_full(s, chunk_in(link)) == (l == 1), "slab of %s: %u used, list %u",
                     s->kind->name, chunk_in(link)->used, l); /* I1 */
            used += chunk_in(link)->used;
            empty += chunk_in(link)->used == 0;
            chunks++;
        }
    }
    if (s->current != NULL) {
        chunk_check(s, s->current);
        used += s->current->used;
        empty += s->current->used == 0;
        chunks++;
    }
    BZ_CHECK(used == s->used, "slab of %s: %zu used, says %zu", s->kind->name, used, s->used);
    BZ_CHECK(chunks == says, "slab of %s: %zu chunks, says %zu", s->kind->name, chunks, says);
    BZ_CHECK(empty == s->empty_count, "slab of %s: %zu empty, says %u", s->kind->name, empty,
             s->empty_count);
    struct bz_slab_chunk *c = bz_load_relaxed(&s->newest); /* relaxed: nobody is at work on it */
    for (; c != NULL; c = bz_get(&c->older))
        listed++;
    BZ_CHECK(listed == says, "slab of %s: %zu chunks listed of %zu", s->kind->name, listed,
             says); /* I5 */
}
