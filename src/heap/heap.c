/*
 * heap.c - a heap: allocation, and what it consists of.
 *
 * Parts: young chunks, in which objects are allocated by moving a pointer; old chunks, to which a collection copies the survivors;
 * spare chunks; large objects, each in a block of its own. Some chunks are kept for pinned objects alone (pin.c). type.h has the header
 * of an object, collect.c the collector.
 *
 * Nothing is collected by itself, because only the owner knows the roots: frames of C are not described. If the young chunk is
 * full, the heap takes another one, as large as all before it, to an eighth of what it allocates between two collections. An empty
 * heap has none.
 *
 * The limit counts old objects and the memory of the young part, not the memory that a collection needs for copies: that is at
 * most as much again, for a short time.
 *
 * I1  A mapped pointer of an object or of the root is NULL or the start of an object of this heap.
 * I2  An old value points to old objects only. Its fields are written at its birth, so they point to what was older then; and
 *     a collection makes all young objects old at once.
 * I3  Between collections all old objects have the bit BZ_IS_OLD, young ones do not, and all have the heap's colour.
 */
#include "heap/heap.h"

#include <errno.h>
#include <string.h>

#include "base/check.h"
#include "proc/state.h"

int blitz_heap_new(const blitz_heap_opts *opts, blitz_heap **out)
{
    static const blitz_heap_opts none;
    const blitz_heap_opts *o = opts != NULL ? opts : &none;
    if ((o->root != NULL) != (o->root_type != NULL))
        return -EINVAL;
    int err = o->root_type != NULL ? blitz_type_register(o->root_type) : 0;
    if (err != 0)
        return err;
    const struct bz_type *root_type = o->root_type != NULL ? bz_type_get(o->root_type) : NULL;
    if (root_type != NULL && root_type->tail.bytes != 0)
        return -EINVAL;
    const blitz_allocator *from = o->allocator != NULL ? o->allocator : &bz_allocator_libc;
    blitz_heap *h = bz_alloc(from, sizeof *h, _Alignof(blitz_heap));
    if (h == NULL)
        return -ENOMEM;
    memset(h, 0, sizeof *h);
    h->alloc = *from;
    h->held = sizeof *h;
    h->bytes_max = o->bytes_max != 0 ? o->bytes_max : SIZE_MAX;
    h->young_bytes = o->young_bytes != 0 ? o->young_bytes : BZ_YOUNG_BYTES;
    h->root = o->root;
    h->root_type = root_type;
    h->verify = o->verify;
    h->patience = BZ_PATIENCE_MIN;
    bz_atomic_init(&h->holds, 1);
    bz_heap_set_limits(h, true);
    *out = h;
    return 0;
}

static void large_free_all(struct blitz_heap *h, struct bz_large *list)
{
    for (struct bz_large *next; list != NULL; list = next) {
        next = list->next;
        bz_large_free(h, list);
    }
}

void bz_heap_free(struct blitz_heap *h)
{
    bz_holders_fini(h);
    bz_chunk_free_all(h, h->young);
    bz_chunk_free_all(h, h->old);
    bz_chunk_free_all(h, h->apart);
    bz_chunk_free_all(h, h->spare);
    large_free_all(h, h->young_large);
    large_free_all(h, h->old_large);
    blitz_allocator alloc = h->alloc;
    for (struct blitz_pin *p = h->pins, *next; p != NULL; p = next) {
        next = p->next;
        bz_free(&alloc, p, sizeof *p);
    }
    bz_free(&alloc, h, sizeof *h);
}

void blitz_heap_unref(blitz_heap *heap)
{
    if (heap == NULL)
        return;
    (void)bz_pins_look(heap);
    bz_holders_end(heap);
    if (bz_pins_end(heap))
        bz_heap_free(heap);
}

#if defined(BZ_DEBUG)
void bz_heap_check_owner(const struct blitz_heap *h)
{
    BZ_CHECK(h->owner == NULL || h->owner == bz_task_self(),
             "heap %p is used by a task that is not the actor \"%s\": a job that another worker "
             "runs, or "
             "another thread",
             (const void *)h, bz_task_name(h->owner));
}
#endif

/* ---- allocation ---- */

/* The bytes that the limit leaves. */
static size_t room_left(const struct blitz_heap *h)
{
    size_t used = h->old_values + h->old_others + h->young_held + h->apart_held;
    return used < h->bytes_max ? h->bytes_max - used : 0;
}

/* Take a young chunk with room for `bytes`. False: no memory, or the limit. */
static bool next_chunk(struct blitz_heap *h, size_t bytes)
{
    size_t left = room_left(h), want = bz_heap_young(h);
    /* Several chunks between two collections, so that bz_chunk_trim() can keep nearly all that it may. */
    if (want > h->young_limit / 8)
        want = h->young_limit / 8;
    if (want > BZ_CHUNK_MAX)
        want = BZ_CHUNK_MAX;
    if (want > left)
        want = left;
    if (bytes > left)
        return false;
    struct bz_chunk *c = bz_chunk_take(h, bytes, want);
    if (c == NULL)
        return false;
    if (h->young != NULL) {
        h->young_done += (size_t)(h->at - (char *)h->young->data);
        h->young->lo = h->at;
    }
    c->next = h->young;
    h->young = c;
    h->at = (char *)c->data;
    size_t room =
        bz_chunk_room(c) < left ? bz_chunk_room(c) : left; /* a spare one may be too large */
    h->end = h->at + room / 8 * 8;
    h->young_held += room;
    if (BZ_UNLIKELY(h->young_done / BZ_LATE >= h->young_limit) && !h->is_late) {
        h->is_late = true;
        if (h->tell_late != NULL)
            h->tell_late(h);
    }
    return true;
}

static BZ_NOINLINE uint64_t *alloc_large(struct blitz_heap *h, size_t bytes)
{
    struct bz_large *l = bytes <= room_left(h) ? bz_large_new(h, bytes) : NULL;
    if (l == NULL)
        return NULL;
    l->next = h->young_large;
    h->young_large = l;
    h->young_done += bytes;
    h->young_held += bytes;
    return &l->header;
}

/* The header of `bytes` new bytes that the young chunk has no room for; NULL as above. */
static BZ_NOINLINE uint64_t *alloc_slow(struct blitz_heap *h, size_t bytes)
{
    if (!next_chunk(h, bytes))
        return NULL;
    uint64_t *header = (uint64_t *)h->at;
    h->at += bytes;
    return header;
}

static BZ_ALWAYS_INLINE uint64_t *alloc_small(struct blitz_heap *h, size_t bytes)
{
    if (BZ_UNLIKELY(bytes > (size_t)(h->end - h->at)))
        return alloc_slow(h, bytes);
    uint64_t *header = (uint64_t *)h->at;
    h->at += bytes;
    return header;
}

/* Allocate an object and write its header. Its body is not initialized. */
static BZ_ALWAYS_INLINE void *alloc(struct blitz_heap *h, const struct bz_type *t, size_t count,
                                    size_t bytes)
{
    bool is_large = bytes > BZ_SMALL_MAX;
    uint64_t *header = is_large ? alloc_large(h, bytes) : alloc_small(h, bytes);
    if (BZ_UNLIKELY(header == NULL))
        return NULL;
    *header =
        t->header | h->colour | (uint64_t)count << BZ_COUNT_SHIFT | (is_large ? BZ_IS_LARGE : 0);
    return header + 1;
}

enum { CLEARED_MAX = 128 };

/*
 * Clear a few words, two at a time, of which the last two may have been cleared already; copy a few words, each alone. The caller has
 * just written the words that are copied: a wider load would wait for its stores (7.4 instead of about 5 ns a node of a tree). A call
 * of memset() or memcpy() would cost more than the allocation. The empty statements keep the compiler from making one.
 */
static BZ_ALWAYS_INLINE void clear(bz_heap_word *at, size_t bytes)
{
    enum { PAIR = 2 * sizeof *at };
    if (BZ_UNLIKELY(bytes > CLEARED_MAX)) {
        memset(at, 0, bytes);
        return;
    }
    if (BZ_UNLIKELY(bytes < PAIR)) {
        *at = 0;
        return;
    }
    char *next = (char *)at, *last = next + bytes - PAIR;
    for (; next < last; next += PAIR) {
        __builtin_memset(next, 0, PAIR);
        __asm__("" : "+r"(next));
    }
    __builtin_memset(last, 0, PAIR);
}

/* At least one word. It counts upward to 0: one addition a word is the whole loop. */
static BZ_ALWAYS_INLINE void copy(bz_heap_word *at, const bz_heap_word *from, size_t bytes)
{
    char *at_end = (char *)at + bytes;
    const char *from_end = (const char *)from + bytes;
    intptr_t left = -(intptr_t)bytes;
    do {
        *(bz_heap_word *)(at_end + left) = *(const bz_heap_word *)(from_end + left);
        left += (intptr_t)sizeof *at;
        __asm__("" : "+r"(left));
    } while (left != 0);
}

/* The path of a new type, a full chunk and a large object. */
static BZ_NOINLINE void *alloc_rare(struct blitz_heap *h, blitz_type *type)
{
    const struct bz_type *t = bz_type_get(type);
    void *object = t != NULL ? alloc(h, t, 0, t->bytes) : NULL;
    if (object != NULL)
        clear(object, t->bytes - sizeof(uint64_t));
    return object;
}

/* Its registered copy; NULL: take the slow path. */
static BZ_ALWAYS_INLINE const struct bz_type *type_now(blitz_type *type)
{
    return bz_types[bz_load_acquire((bz_atomic(uint32_t) *)&type->index)]; /* type.c [A] */
}

static BZ_ALWAYS_INLINE bool has_room(const struct blitz_heap *h, uint32_t bytes)
{
    return bytes <= (size_t)(h->end - h->at);
}

/* The header of an object that the young chunk has room for. */
static BZ_ALWAYS_INLINE uint64_t *alloc_fast(struct blitz_heap *h, const struct bz_type *t,
                                             uint32_t bytes)
{
    uint64_t *header = (uint64_t *)h->at;
    h->at += bytes;
    *header = t->header | h->colour;
    return header;
}

void *blitz_heap_alloc(blitz_heap *heap, blitz_type *type)
{
    const struct bz_type *t = type_now(type);
    bz_heap_check_owner(heap);
    if (BZ_UNLIKELY(t == NULL || !has_room(heap, t->small_bytes)))
        return alloc_rare(heap, type);
    uint32_t bytes = t->small_bytes;
    uint64_t *header = alloc_fast(heap, t, bytes);
    clear((bz_heap_word *)header + 1, bytes - sizeof *header);
    return header + 1;
}

/* Allocate with elements; *bytes is the size of the body. */
static void *alloc_many(blitz_heap *heap, const struct bz_type *t, size_t count, size_t *bytes)
{
    if (t == NULL || (count > 0 && t->tail.bytes == 0))
        return NULL;
    if (count > BZ_COUNT_MAX || (count > 0 && count > (SIZE_MAX / 2 - t->bytes) / t->tail.bytes))
        return NULL;
    *bytes = bz_object_bytes(t, count) - sizeof(uint64_t);
    return alloc(heap, t, count, *bytes + sizeof(uint64_t));
}

void *blitz_heap_alloc_tail(blitz_heap *heap, blitz_type *type, size_t count)
{
    size_t bytes;
    bz_heap_check_owner(heap);
    void *object = alloc_many(heap, bz_type_get(type), count, &bytes);
    if (object != NULL)
        memset(object, 0, bytes);
    return object;
}

static BZ_NOINLINE void *copy_many(blitz_heap *heap, blitz_type *type, size_t count,
                                   const void *from)
{
    const struct bz_type *t = bz_type_get(type);
    size_t bytes;
    void *object = alloc_many(heap, t, count, &bytes);
    if (object == NULL)
        return NULL;
    size_t end = count > 0 ? t->tail_at + count * t->tail.bytes : 0;
    size_t size = end > t->fixed.bytes ? end : t->fixed.bytes;
    ((bz_heap_word *)object)[bytes / 8 - 1] = 0; /* the bytes behind the struct */
    memcpy(object, from, size);
    return object;
}

void *blitz_heap_copy(blitz_heap *heap, blitz_type *type, size_t count, const void *from)
{
    const struct bz_type *t = type_now(type);
    bz_heap_check_owner(heap);
    if (BZ_UNLIKELY(count != 0 || t == NULL || !has_room(heap, t->copy_bytes)))
        return copy_many(heap, type, count, from);
    uint32_t bytes = t->copy_bytes;
    uint64_t *header = alloc_fast(heap, t, bytes);
    copy((bz_heap_word *)header + 1, from, bytes - sizeof *header);
    return header + 1;
}

struct bytes {
    char at[1];
};
static const blitz_type_part blitz_bytes_parts[] = {{BLITZ_PART_TAIL_, 0, 0, 1, NULL}};
static blitz_type bytes_type = {
    .name = "blitz_bytes", .size = sizeof(struct bytes), .n = 1, .parts = blitz_bytes_parts};

void *blitz_heap_bytes(blitz_heap *heap, size_t size)
{
    return blitz_heap_alloc_tail(heap, &bytes_type, size);
}

char *blitz_heap_string(blitz_heap *heap, const char *text)
{
    return blitz_heap_copy(heap, &bytes_type, strlen(text) + 1, text);
}

size_t blitz_heap_count(const void *object)
{
    return (size_t)(*bz_header_of(object) >> BZ_COUNT_SHIFT);
}

void blitz_heap_info_get(const blitz_heap *heap, blitz_heap_info *out)
{
    uint32_t pins = 0;
    for (const struct blitz_pin *p = heap->pins; p != NULL; p = p->next)
        pins += bz_load_relaxed(&p->is_held) != 0; /* relaxed: a count of now */
    *out = (blitz_heap_info){.live_bytes = heap->old_values + heap->old_others,
                             .young_bytes = bz_heap_young(heap),
                             .held_bytes = heap->held,
                             .full = heap->full,
                             .minor = heap->minor,
                             .binaries = (uint32_t)heap->holders,
                             .binary_bytes = heap->outside,
                             .pins = pins,
                             .pinned_bytes = heap->apart_held};
}
