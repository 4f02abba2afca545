/*
 * collect.c - the collector: Cheney's copy, full and minor.
 *
 * Objects are copied to the chunk `to`: values from below, others from above (heap.h). A copy is looked at later: [data, scan_lo)
 * and [scan_hi, end) of a chunk have been. So the memory of the copies is the list of the work, and there is no recursion.
 * The part above is scanned in batches, because objects can only be walked upward: all copies made before a batch began are in it.
 * Large objects do not move. One that is reached is put on the list `gray`, and looked at once.
 *
 * full    The colour is flipped. An object with the new colour is a copy, or a large object that was reached. All old and young
 *         chunks are emptied.
 * minor   An object with the bit BZ_IS_OLD stays. The roots are those of a full collection and all old objects but values (heap.c
 *         I2). Only young chunks are emptied.
 *
 * Beyond the cache a collection waits for the headers of objects that it has not met. So a second cursor runs a few objects ahead
 * of the scan, and prefetches the headers that the scan will ask for. A million nodes in random order take 25 ns each instead of 54
 * (bench-gc full-1m). Where all is in the cache it costs 5% (pause-1m). A prefetch when an object is copied comes too early: its
 * fields are looked at after all copies that wait.
 *
 * Pinned objects have the marks of objects that were moved, from the beginning: pin.c.
 *
 * A pointer may be shown twice, as a root that is also a field of the root struct is: the second time it leads to an object
 * that stays.
 *
 * The choice. A minor collection costs a look at each old object that is no value, and copies of young ones; a full one copies the
 * live part of both. If the old part to look at is more than twice the young part, or the old part has doubled since the last
 * full collection, the collection is full.
 *
 * An old part that has died does not grow, and minor collections do not notice. So a collection is also full when `patience` times the
 * bytes of the old part were allocated since the last full one. `patience` is 16. It doubles, up to 128, each time that this finds
 * less than a quarter dead. So the copies in vain cost a few percent of what the allocations cost.
 *
 * A verifying heap collects fully and partly in turn, at each call.
 */
#include <errno.h>
#include <stdarg.h>
#include <string.h>

#include "heap/heap.h"
#include "proc/selfcheck.h"

/* ---- copying ---- */

/* Room for a copy; bz_chunk_reserve() has made sure that there is some. */
static BZ_ALWAYS_INLINE char *room_for(struct blitz_heap *h, size_t bytes, bool is_value)
{
    struct bz_chunk *c = h->to;
    while (BZ_UNLIKELY(bz_chunk_room(c) < bytes))
        c = h->to = c->next;
    if (is_value) {
        c->lo += bytes;
        return c->lo - bytes;
    }
    c->hi -= bytes;
    return c->hi;
}

static BZ_NOINLINE void reach_large(struct blitz_heap *h, void *object)
{
    struct bz_large *l = bz_large_of(object);
    l->header = (l->header & ~BZ_COLOUR) | BZ_IS_OLD | h->colour;
    l->gray = h->gray;
    h->gray = l;
}

/* Move the object of a pointer, unless it stays or was moved, and correct the pointer. */
static BZ_ALWAYS_INLINE void forward(struct blitz_heap *h, bz_slot *slot)
{
    void *object = *slot;
    /* NULL is outside of the range, too, unless the range is everything. */
    if ((uintptr_t)object - h->young_at >= h->young_span || object == NULL)
        return;
    uint64_t *header = bz_header_of(object), word = *header;
    if (word & BZ_FORWARDED) {
        *slot = (void *)(uintptr_t)(word & ~BZ_FORWARDED); /* NOLINT: a header is a word */
        return;
    }
    if ((word & h->skip_mask) == h->skip)
        return;
    if (BZ_UNLIKELY(word & BZ_IS_LARGE)) {
        reach_large(h, object);
        return;
    }
    const struct bz_type *t = bz_type_of(word);
    size_t bytes = bz_object_bytes(t, (size_t)(word >> BZ_COUNT_SHIFT));
    bz_heap_word *to = (bz_heap_word *)room_for(h, bytes, t->is_value), *from = object;
    *to++ = (word & ~BZ_COLOUR) | BZ_IS_OLD | h->colour;
    for (size_t i = 0; i < bytes / 8 - 1; i++)
        to[i] = from[i];
    *header = (uintptr_t)to | BZ_FORWARDED;
    *slot = to;
}

/* ---- looking at objects ---- */

static BZ_ALWAYS_INLINE void scan_layout(struct blitz_heap *h, const struct bz_layout *l,
                                         char *base)
{
    for (uint64_t map = l->map; map != 0; map &= map - 1)
        forward(h, (bz_slot *)base + bz_bits_lowest(map));
    for (uint32_t i = 0; BZ_UNLIKELY(i < l->n); i++)
        forward(h, (bz_slot *)(base + l->offsets[i]));
}

/* A visitor that forwards. */
struct forwarder {
    blitz_visitor visitor; /* first */
    struct blitz_heap *heap;
};

static void forward_visited(blitz_visitor *v, bz_slot *slot)
{
    forward(((struct forwarder *)v)->heap, slot);
}

/* Begin to load the header of the object that a pointer leads to, if the pointer will be followed. */
static BZ_ALWAYS_INLINE void expect(const struct blitz_heap *h, const bz_slot *slot)
{
    uintptr_t object = (uintptr_t)*slot;
    if (object - h->young_at < h->young_span)
        __builtin_prefetch((const char *)object - sizeof(uint64_t), 1); /* NOLINT: an address */
}

static BZ_ALWAYS_INLINE void expect_layout(const struct blitz_heap *h, const struct bz_layout *l,
                                           const char *base)
{
    for (uint64_t map = l->map; map != 0; map &= map - 1)
        expect(h, (const bz_slot *)base + bz_bits_lowest(map));
}

enum { AHEAD = 8 }; /* objects, or elements */

static BZ_NOINLINE void scan_rest(struct blitz_heap *h, const struct bz_type *t, char *object,
                                  size_t count)
{
    struct forwarder f = {{forward_visited}, h};
    char *tail = object + t->tail_at;
    for (size_t i = 0; i < count && !t->is_plain; i++) {
        if (i + AHEAD < count)
            expect_layout(h, &t->tail, tail + (i + AHEAD) * t->tail.bytes);
        scan_layout(h, &t->tail, tail + i * t->tail.bytes);
    }
    if (t->visit != NULL)
        t->visit(object, &f.visitor);
}

static BZ_ALWAYS_INLINE void scan(struct blitz_heap *h, const struct bz_type *t, void *object,
                                  size_t count)
{
    scan_layout(h, &t->fixed, object);
    if (BZ_UNLIKELY(count != 0 || t->visit != NULL))
        scan_rest(h, t, object, count);
}

/* Look at the object behind a header; the header of the next one. */
static BZ_ALWAYS_INLINE char *scan_at(struct blitz_heap *h, char *at)
{
    uint64_t word = *(uint64_t *)at;
    const struct bz_type *t = bz_type_of(word);
    size_t count = (size_t)(word >> BZ_COUNT_SHIFT);
    scan(h, t, at + sizeof word, count);
    return at + bz_object_bytes(t, count);
}

/* The same for the fields of the object behind a header; the header of the next one. */
static BZ_ALWAYS_INLINE char *expect_at(const struct blitz_heap *h, char *at)
{
    uint64_t word = *(uint64_t *)at;
    const struct bz_type *t = bz_type_of(word);
    expect_layout(h, &t->fixed, at + sizeof word);
    return at + bz_object_bytes(t, (size_t)(word >> BZ_COUNT_SHIFT));
}

/* Look at all objects in [at, end), and at each one's fields a few objects before. */
static char *scan_run(struct blitz_heap *h, char *at, const char *end)
{
    char *next = at;
    for (int i = 0; i < AHEAD && next < end; i++)
        next = expect_at(h, next);
    while (next < end) {
        next = expect_at(h, next);
        at = scan_at(h, at);
    }
    while (at < end)
        at = scan_at(h, at);
    return at;
}

/* Look at the copies in a chunk until there are no more. */
static void scan_chunk(struct blitz_heap *h, struct bz_chunk *c)
{
    while (c->scan_lo < c->lo || c->scan_hi > c->hi) {
        if (c->scan_lo < c->lo)
            c->scan_lo = scan_run(h, c->scan_lo, c->lo);
        char *at = c->hi, *end = c->scan_hi;
        c->scan_hi = at;
        (void)scan_run(h, at, end);
    }
}

static bool scan_gray(struct blitz_heap *h)
{
    struct bz_large *l = h->gray;
    if (l == NULL)
        return false;
    h->gray = l->gray;
    scan(h, bz_type_of(l->header), bz_large_object(l), (size_t)(l->header >> BZ_COUNT_SHIFT));
    return true;
}

/* Look at all that was reached, from this chunk on. */
static void scan_all(struct blitz_heap *h, struct bz_chunk *c)
{
    do {
        while (c != NULL) {
            scan_chunk(h, c);
            if (c == h->to)
                break;
            c = c->next;
        }
    } while (scan_gray(h));
}

/* Pinned objects stay: as the marks say, they were moved already. Before any object is moved. */
static void mark_pinned(struct blitz_heap *h)
{
    for (struct blitz_pin *p = h->pins; p != NULL; p = p->next) {
        uint64_t *header = bz_header_of(p->object);
        *header = (*header & ~BZ_COLOUR) | BZ_IS_OLD | h->colour;
    }
}

static void scan_pinned(struct blitz_heap *h)
{
    for (struct blitz_pin *p = h->pins; p != NULL; p = p->next) {
        uint64_t word = *bz_header_of(p->object);
        scan(h, bz_type_of(word), p->object, (size_t)(word >> BZ_COUNT_SHIFT));
    }
}

static void forward_roots(struct blitz_heap *h, void *const *roots, size_t count)
{
    scan_pinned(h);
    if (h->root != NULL)
        scan(h, h->root_type, h->root, 0);
    for (size_t i = 0; i < count; i++)
        forward(h, (bz_slot *)roots[i]);
}

/* ---- large objects ---- */

static size_t *count_of(struct blitz_heap *h, const struct bz_type *t)
{
    return t->is_value ? &h->old_values : &h->old_others;
}

/* Free the large objects of a list that were not reached, and count the others in as old ones. */
static void sweep(struct blitz_heap *h, struct bz_large *list)
{
    for (struct bz_large *next; list != NULL; list = next) {
        next = list->next;
        if ((list->header & h->skip_mask) == h->skip) {
            list->next = h->old_large;
            h->old_large = list;
            *count_of(h, bz_type_of(list->header)) += list->bytes;
        } else {
            bz_large_free(h, list);
        }
    }
}

/* ---- one collection ---- */

static void spare_all(struct blitz_heap *h, struct bz_chunk *list)
{
    for (struct bz_chunk *next; list != NULL; list = next) {
        next = list->next;
        if (BZ_UNLIKELY(list->pins > 0))
            bz_pins_set_apart(h, list);
        else
            bz_chunk_spare(h, list);
    }
}

/* Empty chunks of the old part become spare: those behind `to`, and `to` itself if nothing has survived. */
static void spare_empty(struct blitz_heap *h)
{
    if (h->to == NULL)
        return;
    struct bz_chunk *rest = h->to->next;
    h->to->next = NULL;
    if (h->to == h->old && bz_chunk_room(h->to) == h->to->bytes - sizeof *h->to) {
        bz_chunk_spare(h, h->to);
        h->old = h->to = NULL;
    }
    spare_all(h, rest);
}

void bz_heap_set_limits(struct blitz_heap *h, bool is_full)
{
    size_t live = h->old_values + h->old_others, share = live / 4 * 3;
    size_t values = h->old_others > BZ_YOUNG_VALUES ? h->old_others : BZ_YOUNG_VALUES;
    size_t limit = share < values ? share : values;
    h->young_limit = limit > h->young_bytes ? limit : h->young_bytes;
    if (is_full)
        h->full_at = live + (live > 4 * h->young_bytes ? live : 4 * h->young_bytes);
    size_t least = live / 64 < BZ_CHUNK_MAX / 16 ? live / 64 : BZ_CHUNK_MAX / 16;
    bz_chunk_trim(h, live > 2 * h->young_bytes ? live : 2 * h->young_bytes, least);
}

/* The collection is over: the young part is empty. */
static void finish(struct blitz_heap *h, struct bz_large *young_large, bool is_full)
{
    spare_empty(h);
    spare_all(h, h->young); /* last, so that they are kept: their pages are there */
    h->young = NULL;
    h->at = h->end = NULL;
    h->young_done = h->young_held = 0;
    h->is_late = false;
    sweep(h, young_large);
    for (struct bz_chunk *c = h->old; c != NULL; c = c->next) {
        h->old_values += (size_t)(c->lo - (char *)c->data);
        h->old_others += (size_t)(bz_chunk_end(c) - c->hi);
    }
    bz_heap_set_limits(h, is_full);
}

/* Small young objects, for a reservation. */
static size_t young_small(const struct blitz_heap *h)
{
    size_t large = 0;
    for (struct bz_large *l = h->young_large; l != NULL; l = l->next)
        large += l->bytes - sizeof *l + sizeof l->header;
    return bz_heap_young(h) - large;
}

static size_t old_small(struct blitz_heap *h)
{
    size_t bytes = 0;
    for (struct bz_chunk *c = h->old; c != NULL; c = c->next)
        bytes += c->bytes - sizeof *c - bz_chunk_room(c);
    return bytes;
}

/* Much was allocated since the last full collection, and the old part has not grown: perhaps it has died. */
static bool is_impatient(const struct blitz_heap *h, size_t old)
{
    size_t least = old > h->young_limit ? old : h->young_limit;
    return h->since_full / h->patience >= least;
}

/* A full collection has left `live` of `before` old bytes. */
static void set_patience(struct blitz_heap *h, size_t before, size_t live)
{
    bool was_in_vain = is_impatient(h, before) && live >= before / 4 * 3;
    if (!was_in_vain)
        h->patience = BZ_PATIENCE_MIN;
    else if (h->patience < BZ_PATIENCE_MAX)
        h->patience *= 2;
    h->since_full = 0;
}

static int collect_full(struct blitz_heap *h, void *const *roots, size_t count)
{
    struct bz_chunk *to, *from = h->old;
    size_t before = h->old_values + h->old_others;
    struct bz_large *large = h->old_large, *young_large = h->young_large;
    size_t apart = bz_pins_look(h);
    if (!bz_chunk_reserve(h, young_small(h) + old_small(h) + apart, &to))
        return -ENOMEM;
    bz_pins_drop(h, true);
    h->old = h->to = to;
    h->old_large = h->young_large = NULL;
    h->old_values = h->old_others = 0;
    h->colour ^= BZ_COLOUR;
    h->skip_mask = BZ_COLOUR;
    h->skip = h->colour;
    h->young_at = 0;
    h->young_span = UINTPTR_MAX;
    mark_pinned(h);
    forward_roots(h, roots, count);
    scan_all(h, to);
    bz_holders_settle(h, true);
    bz_pins_settle(h);
    spare_all(h, from);
    sweep(h, large);
    finish(h, young_large, true);
    set_patience(h, before, h->old_values + h->old_others);
    h->full++;
    return 0;
}

/* The range of all young objects. Everything, if some are large. */
static void set_range(struct blitz_heap *h)
{
    uintptr_t lo = UINTPTR_MAX, hi = 0;
    for (struct bz_chunk *c = h->young; c != NULL; c = c->next) {
        lo = (uintptr_t)c < lo ? (uintptr_t)c : lo;
        hi = (uintptr_t)bz_chunk_end(c) > hi ? (uintptr_t)bz_chunk_end(c) : hi;
    }
    h->young_at = h->young_large != NULL || hi == 0 ? 0 : lo;
    h->young_span = h->young_large != NULL || hi == 0 ? UINTPTR_MAX : hi - lo;
}

/* Look at the old objects that may point to young ones. */
static void scan_old(struct blitz_heap *h, struct bz_chunk *last)
{
    for (struct bz_chunk *c = h->old; last != NULL; c = c->next) {
        char *end = bz_chunk_end(c);
        for (char *at = c == last ? last->scan_hi : c->hi; at < end;)
            at = scan_at(h, at);
        if (c == last)
            break;
    }
    for (struct bz_large *l = h->old_large; l != NULL; l = l->next) {
        const struct bz_type *t = bz_type_of(l->header);
        if (!t->is_value)
            scan(h, t, bz_large_object(l), (size_t)(l->header >> BZ_COUNT_SHIFT));
    }
}

/* Make room for `need` bytes of copies behind the old objects. False: no memory. */
static bool reserve_old(struct blitz_heap *h, size_t need)
{
    struct bz_chunk *more;
    size_t room = h->to != NULL ? bz_chunk_room(h->to) : 0;
    if (room >= need)
        return true;
    room = room > BZ_SMALL_MAX ? room - BZ_SMALL_MAX : 0;
    if (!bz_chunk_reserve(h, need - room, &more))
        return false;
    if (h->to != NULL)
        h->to->next = more;
    else
        h->old = h->to = more;
    return true;
}

static int collect_minor(struct blitz_heap *h, void *const *roots, size_t count)
{
    struct bz_large *young_large = h->young_large, *old_large = h->old_large;
    (void)bz_pins_look(h);
    if (!reserve_old(h, young_small(h)))
        return -ENOMEM;
    bz_pins_drop(h, false);
    h->since_full += bz_heap_young(h);
    struct bz_chunk *first = h->to;
    if (first != NULL) {
        first->scan_lo = first->lo;
        first->scan_hi = first->hi;
    }
    h->skip_mask = h->skip = BZ_IS_OLD;
    mark_pinned(h);
    set_range(h);
    scan_old(h, first);
    forward_roots(h, roots, count);
    scan_all(h, first);
    bz_holders_settle(h, false);
    h->young_large = h->old_large = NULL;
    h->old_values = h->old_others = 0;
    sweep(h, old_large);
    finish(h, young_large, false);
    h->minor++;
    return 0;
}

/* ---- the calls ---- */

static int collect(struct blitz_heap *h, void *const *roots, size_t count, bool is_full)
{
    bz_heap_check_owner(h);
    if (h->owner != NULL)
        bz_watch_no_jobs(h->owner, "collects in its heap");
    if (h->young != NULL)
        h->young->lo = h->at;
    if (h->verify)
        bz_heap_verify(h);
    int err = is_full ? collect_full(h, roots, count) : collect_minor(h, roots, count);
    if (h->verify)
        bz_heap_verify(h);
    return err;
}

int blitz_heap_collect(blitz_heap *heap, void *const *roots, size_t count)
{
    return collect(heap, roots, count, true);
}

static bool is_full_better(const struct blitz_heap *h)
{
    size_t old = h->old_values + h->old_others;
    return old >= h->full_at || h->old_others / 2 > bz_heap_young(h) || is_impatient(h, old);
}

int blitz_heap_tidy(blitz_heap *heap, void *const *roots, size_t count)
{
    if (heap->verify)
        return collect(heap, roots, count, heap->full <= heap->minor);
    if (bz_heap_young(heap) + heap->young_outside < heap->young_limit)
        return 0;
    return collect(heap, roots, count, is_full_better(heap));
}

int blitz_heap_collect_these_(bool is_full, blitz_heap *heap, ...)
{
    enum { ROOTS_MAX = 32 };
    void *roots[ROOTS_MAX], *root;
    size_t count = 0;
    va_list list;
    va_start(list, heap);
    while ((root = va_arg(list, void *)) != NULL) {
        BZ_CHECK(count < ROOTS_MAX, "more than %d roots: call blitz_heap_collect()", ROOTS_MAX);
        roots[count++] = root;
    }
    va_end(list);
    return is_full ? blitz_heap_collect(heap, roots, count) : blitz_heap_tidy(heap, roots, count);
}
