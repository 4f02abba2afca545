/*
 * holder.c - values outside of a heap that its objects own: each is released when its object is dead.
 *
 * A *holder* is an object without mapped pointers: the value, how to release it, its size, and a link to the next holder. The heap has
 * two lists of them, young and old. When a collection has found what is alive, and before memory is overwritten, it walks the
 * young list, and a full one the old list as well. A holder that has moved goes on the old list under its new address. The value of
 * a dead one is released. The end of the heap releases all, but those of pinned holders: their values go with the memory, when the
 * last pin is given up.
 *
 * The size of values counts as allocated bytes when a collection is due. Otherwise an actor that gets large binaries and drops them
 * would keep them for ever, because their holders are small.
 *
 * The link is stored as its complement. The verifier looks for addresses of objects in words that are not mapped, and this link is
 * one.
 *
 * Rejected: a flag in the type, tested for each copied object; a destructor for any object, which could call back into the heap.
 */
#include <string.h>

#include "heap/heap.h"

static blitz_type holder_type = {.name = "blitz_holder", .size = sizeof(struct bz_holder)};

static struct bz_holder *next_of(const struct bz_holder *o)
{
    return (struct bz_holder *)~o->next; /* NOLINT: its complement is no pointer to the verifier */
}

static void push(struct bz_holder **list, struct bz_holder *o)
{
    o->next = ~(uintptr_t)*list;
    *list = o;
}

struct bz_holder *bz_heap_hold(struct blitz_heap *h, void *value, size_t bytes,
                               void (*drop)(void *value))
{
    struct bz_holder made = {.value = value, .drop = drop, .bytes = bytes};
    struct bz_holder *o = blitz_heap_copy(h, &holder_type, 0, &made);
    if (o == NULL)
        return NULL;
    push(&h->young_holders, o);
    h->young_outside += bytes;
    h->outside += bytes;
    h->holders++;
    return o;
}

/* The value of a dead holder goes. */
static void release(struct blitz_heap *h, const struct bz_holder *o)
{
    h->outside -= o->bytes;
    h->holders--;
    o->drop(o->value);
}

/* Move the living holders of a list to the old list. */
static void settle(struct blitz_heap *h, struct bz_holder *list)
{
    for (struct bz_holder *o = list, *next; o != NULL; o = next) {
        uint64_t word = *bz_header_of(o);
        next = next_of(o);
        if (word & BZ_FORWARDED)
            push(&h->old_holders,
                 (struct bz_holder *)(uintptr_t)(word & ~BZ_FORWARDED)); /* NOLINT: a header */
        else if ((word & h->skip_mask) == h->skip)
            push(&h->old_holders, o); /* pinned */
        else
            release(h, o);
    }
}

void bz_holders_settle(struct blitz_heap *h, bool is_full)
{
    struct bz_holder *young = h->young_holders, *old = h->old_holders;
    h->young_holders = NULL;
    h->young_outside = 0;
    if (is_full) {
        h->old_holders = NULL;
        settle(h, old);
    }
    settle(h, young);
}

#define KEPT SIZE_MAX /* the bytes of a pinned holder whose heap has ended: no value is so large */

/* There are holders, so their type is known. */
static void mark_pinned(struct blitz_heap *h)
{
    const struct bz_type *t = bz_type_get(&holder_type);
    for (struct blitz_pin *p = h->pins; p != NULL; p = p->next)
        if (!p->is_over && bz_type_of(*bz_header_of(p->object)) == t)
            ((struct bz_holder *)p->object)->bytes = KEPT;
}

void bz_holders_end(struct blitz_heap *h)
{
    struct bz_holder *lists[] = {h->young_holders, h->old_holders};
    h->young_holders = h->old_holders = NULL;
    if (lists[0] != NULL || lists[1] != NULL)
        mark_pinned(h);
    for (size_t i = 0; i < BZ_ARRAY_LEN(lists); i++)
        for (struct bz_holder *o = lists[i], *next; o != NULL; o = next) {
            next = next_of(o);
            if (o->bytes == KEPT)
                push(&h->old_holders, o);
            else
                release(h, o);
        }
}

void bz_holders_fini(struct blitz_heap *h)
{
    for (struct bz_holder *o = h->old_holders, *next; o != NULL; o = next) {
        next = next_of(o);
        o->drop(o->value);
    }
}

void bz_holders_each_of(const struct blitz_heap *h, void (*drop)(void *value),
                        void (*fn)(void *value, void *ctx), void *ctx)
{
    const struct bz_holder *lists[] = {h->young_holders, h->old_holders};
    for (size_t i = 0; i < BZ_ARRAY_LEN(lists); i++)
        for (const struct bz_holder *o = lists[i]; o != NULL; o = next_of(o))
            if (o->drop == drop)
                fn(o->value, ctx);
}
