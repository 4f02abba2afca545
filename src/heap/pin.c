/*
 * pin.c - pinned objects.
 *
 * A pin is a record in a list of the heap. A collection marks the pinned objects as moved before it moves the first one, and looks at
 * them as at roots. So the copying code meets an object that stays, and needs no question of its own.
 *
 * A chunk that a collection has emptied, but for pinned objects, is *set apart*. It cannot be walked any more: the headers of the objects
 * that have left it are forwarding pointers. Its pinned objects are known by their records.
 *
 * The holder gives a pin up on any thread. It only clears `is_held`. The owner finds that at its next collection (bz_pins_look), and
 * frees the record. An object in a chunk apart that is no longer pinned must be looked at by minor collections, as any old object.
 * So its record stays until a full collection, which moves the object out if it is alive.
 *
 * The end of a heap. `holds` counts the owner and the pins that are held. The owner frees all memory but that of pinned objects, and
 * gives its hold up. The last one frees the rest.
 *
 * Rejected: a bit in the header. Each collection would test it for each object. Rejected: a copy of the object into a block of its
 * own. It would need a walk over the whole heap to correct the pointers to the object.
 *
 * I1  A record keeps its object in its chunk until the record is dropped. Only the owner drops it, between two collections or at the end.
 * I2  Each object of a chunk apart that is alive has a record.
 *
 * [A] blitz_pin_unref: is_held release -> the owner's look: acquire    the holder's last access comes before the move
 * [B] holds: each fetch_sub is acq_rel                                 the last one sees what all others have done
 */
#include <errno.h>

#include "base/check.h"
#include "base/poison.h"
#include "heap/heap.h"

/* ---- pin and unpin ---- */

static struct bz_chunk *chunk_in(struct bz_chunk *list, const void *object)
{
    while (list != NULL && (uintptr_t)object - (uintptr_t)list >= list->bytes)
        list = list->next;
    return list;
}

static bool is_in(const struct bz_large *list, void *object)
{
    while (list != NULL && list != bz_large_of(object))
        list = list->next;
    return list != NULL;
}

/* True if an object of a chunk may begin there. To know, one would have to walk from the first object of the chunk on. */
static bool may_begin(const struct blitz_heap *h, struct bz_chunk *c, const char *object)
{
    const char *lo = c == h->young ? h->at : c->lo;
    bool is_used = (object > (char *)c->data && object < lo) || object > c->hi;
    return is_used && (uintptr_t)object % 8 == 0;
}

/* True if the object is pinned: of a chunk apart no other objects are alive (I2). */
static bool has_record(const struct blitz_heap *h, const void *object)
{
    const struct blitz_pin *p = h->pins;
    while (p != NULL && p->object != object)
        p = p->next;
    return p != NULL;
}

/* Find the chunk of an object. False: it is not of this heap. *chunk is NULL if it is large. */
static bool find(struct blitz_heap *h, void *object, struct bz_chunk **chunk)
{
    *chunk = chunk_in(h->young, object);
    if (*chunk == NULL)
        *chunk = chunk_in(h->old, object);
    if (*chunk != NULL)
        return may_begin(h, *chunk, object);
    *chunk = chunk_in(h->apart, object);
    if (*chunk != NULL)
        return has_record(h, object);
    return is_in(h->young_large, object) || is_in(h->old_large, object);
}

int blitz_pin_new(blitz_heap *heap, void *object, blitz_pin **out)
{
    struct bz_chunk *chunk;
    bz_heap_check_owner(heap);
    if (!find(heap, object, &chunk))
        return -EINVAL;
    struct blitz_pin *p = bz_alloc(&heap->alloc, sizeof *p, _Alignof(struct blitz_pin));
    if (p == NULL)
        return -ENOMEM;
    *p = (struct blitz_pin){.next = heap->pins, .heap = heap, .object = object, .chunk = chunk};
    bz_atomic_init(&p->is_held, 1);
    heap->pins = p;
    heap->held += sizeof *p;
    if (chunk != NULL)
        chunk->pins++;
    bz_fetch_add_relaxed(&heap->holds, 1); /* relaxed: the owner has a hold itself */
    *out = p;
    return 0;
}

/* Give a hold up. True: it was the last. */
static bool let_go(struct blitz_heap *h)
{
    return bz_fetch_sub_acqrel(&h->holds, 1) == 1; /* [B] */
}

void blitz_pin_unref(blitz_pin *pin)
{
    if (pin == NULL)
        return;
    struct blitz_heap *h = pin->heap;
    BZ_CHECK(bz_load_relaxed(&pin->is_held) != 0, /* relaxed: ours */
             "pin %p is given up twice", (void *)pin);
    bz_store_release(&pin->is_held, 0); /* [A]; the owner may free the record from here on */
    if (let_go(h))
        bz_heap_free(h);
}

/* ---- collections ---- */

size_t bz_pins_look(struct blitz_heap *h)
{
    size_t bytes = 0;
    for (struct blitz_pin *p = h->pins; p != NULL; p = p->next) {
        uint64_t word = *bz_header_of(p->object);
        p->is_over = bz_load_acquire(&p->is_held) == 0; /* [A] */
        if (p->is_over && p->chunk != NULL && p->chunk->is_apart)
            bytes += bz_object_bytes(bz_type_of(word), (size_t)(word >> BZ_COUNT_SHIFT));
    }
    return bytes;
}

/* Free the record behind *link. */
static void forget(struct blitz_heap *h, struct blitz_pin **link)
{
    struct blitz_pin *p = *link;
    *link = p->next;
    if (p->chunk != NULL)
        p->chunk->pins--;
    h->held -= sizeof *p;
    bz_free(&h->alloc, p, sizeof *p);
}

void bz_pins_drop(struct blitz_heap *h, bool is_full)
{
    for (struct blitz_pin **link = &h->pins, *p; (p = *link) != NULL;) {
        bool is_old = *bz_header_of(p->object) & BZ_IS_OLD;
        if (p->is_over && (is_full || !is_old))
            forget(h, link);
        else
            link = &p->next;
    }
}

#if BZ_ASAN
/* The first pinned object of a chunk that begins at `from` or behind it: its header; NULL: none. */
static uint64_t *next_pinned(const struct blitz_heap *h, const struct bz_chunk *c, const char *from)
{
    uint64_t *next = NULL;
    for (const struct blitz_pin *p = h->pins; p != NULL; p = p->next) {
        uint64_t *header = bz_header_of(p->object);
        if (p->chunk == c && (char *)header >= from && (next == NULL || header < next))
            next = header;
    }
    return next;
}

/* Poison all but the pinned objects of a chunk. Never those, not even for a moment: other threads may use them. */
static void poison_rest(struct blitz_heap *h, struct bz_chunk *c)
{
    char *at = (char *)c->data, *end = at + (c->bytes - sizeof *c);
    for (uint64_t *header; (header = next_pinned(h, c, at)) != NULL;) {
        bz_poison(at, (size_t)((char *)header - at));
        at = (char *)header +
             bz_object_bytes(bz_type_of(*header), (size_t)(*header >> BZ_COUNT_SHIFT));
    }
    bz_poison(at, (size_t)(end - at));
}
#else
static void poison_rest(struct blitz_heap *h, struct bz_chunk *c)
{
    (void)h, (void)c;
}
#endif

void bz_pins_set_apart(struct blitz_heap *h, struct bz_chunk *c)
{
    c->is_apart = true;
    c->next = h->apart;
    h->apart = c;
    h->apart_held += c->bytes;
    poison_rest(h, c);
}

void bz_pins_settle(struct blitz_heap *h)
{
    for (struct bz_chunk **link = &h->apart, *c; (c = *link) != NULL;) {
        if (c->pins > 0) {
            poison_rest(h, c);
            link = &c->next;
            continue;
        }
        *link = c->next;
        c->is_apart = false;
        h->apart_held -= c->bytes;
        bz_unpoison(c->data, c->bytes - sizeof *c);
        bz_chunk_spare(h, c);
    }
}

/* ---- the end ---- */

/* Free the chunks of a list that no pinned object is in. The rest of the list. */
static struct bz_chunk *free_unpinned(struct blitz_heap *h, struct bz_chunk *list)
{
    struct bz_chunk *rest = NULL;
    for (struct bz_chunk *c = list, *next; c != NULL; c = next) {
        next = c->next;
        c->next = rest;
        if (c->pins > 0) {
            rest = c;
            continue;
        }
        c->next = NULL;
        bz_chunk_free_all(h, c);
    }
    return rest;
}

/* The same for large objects: BZ_FORWARDED is set in those that are pinned. */
static struct bz_large *free_unpinned_large(struct blitz_heap *h, struct bz_large *list)
{
    struct bz_large *rest = NULL;
    for (struct bz_large *l = list, *next; l != NULL; l = next) {
        next = l->next;
        if (l->header & BZ_FORWARDED) {
            l->next = rest;
            rest = l;
        } else {
            bz_large_free(h, l);
        }
    }
    return rest;
}

bool bz_pins_end(struct blitz_heap *h)
{
    if (bz_load_acquire(&h->holds) == 1) /* [B] */
        return true;
    bz_pins_drop(h, true);
    for (struct blitz_pin *p = h->pins; p != NULL; p = p->next)
        if (p->chunk == NULL)
            bz_large_of(p->object)->header |= BZ_FORWARDED;
    h->young = free_unpinned(h, h->young);
    h->old = free_unpinned(h, h->old);
    h->apart = free_unpinned(h, h->apart);
    h->young_large = free_unpinned_large(h, h->young_large);
    h->old_large = free_unpinned_large(h, h->old_large);
    bz_chunk_free_all(h, h->spare);
    h->spare = NULL;
    h->owner = NULL;
    return let_go(h);
}
