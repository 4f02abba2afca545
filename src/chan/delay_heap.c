/*
 * delay_heap.c - a binary heap of slots; delay_heap.h has the invariants.
 *
 * The heap moves indexes of 4 bytes and never values, so a value of any size costs one copy in and one copy out.
 */
#include "chan/delay_heap.h"

#include <string.h>

#include "base/check.h"

#define NO_SLOT UINT32_MAX

void bz_delay_heap_init(struct bz_delay_heap *h, size_t value_size)
{
    *h = (struct bz_delay_heap){.value_size = value_size, .free = NO_SLOT};
}

/* ---- the block ---- */

static size_t values_at(uint32_t capacity)
{
    size_t end = capacity * (sizeof(struct bz_delay_slot) + sizeof(uint32_t));
    size_t align = _Alignof(max_align_t);
    return (end + align - 1) / align * align;
}

size_t bz_delay_heap_bytes(const struct bz_delay_heap *h, uint32_t capacity)
{
    size_t before = values_at(capacity);
    if (h->value_size > (PTRDIFF_MAX - before) / capacity)
        return 0;
    return before + h->value_size * capacity;
}

void *bz_delay_heap_grow(struct bz_delay_heap *h, uint32_t capacity, void *block)
{
    void *old = h->slot;
    struct bz_delay_heap was = *h;
    h->slot = block;
    h->heap = (uint32_t *)(h->slot + capacity);
    h->values = (char *)block + values_at(capacity);
    if (was.capacity > 0) {
        memcpy(h->slot, was.slot, was.capacity * sizeof *was.slot);
        memcpy(h->heap, was.heap, was.count * sizeof *was.heap);
        memcpy(h->values, was.values, was.capacity * was.value_size);
    }
    for (uint32_t i = capacity; i-- > was.capacity;) {
        h->slot[i] = (struct bz_delay_slot){.place = h->free};
        h->free = i; /* I3 */
    }
    h->capacity = capacity;
    return old;
}

/* ---- order ---- */

static bool is_before(const struct bz_delay_heap *h, uint32_t a, uint32_t b)
{
    const struct bz_delay_slot *x = &h->slot[a], *y = &h->slot[b];
    return x->when != y->when ? x->when < y->when : x->order < y->order;
}

static void put(struct bz_delay_heap *h, uint32_t place, uint32_t index)
{
    h->heap[place] = index;
    h->slot[index].place = place; /* I1 */
}

/* Bring the entry at `place` to where I2 holds. */
static void sift(struct bz_delay_heap *h, uint32_t place)
{
    uint32_t index = h->heap[place];
    for (; place > 0 && is_before(h, index, h->heap[(place - 1) / 2]); place = (place - 1) / 2)
        put(h, place, h->heap[(place - 1) / 2]);
    for (uint32_t child; (child = 2 * place + 1) < h->count; place = child) {
        if (child + 1 < h->count && is_before(h, h->heap[child + 1], h->heap[child]))
            child++;
        if (!is_before(h, h->heap[child], index))
            break;
        put(h, place, h->heap[child]);
    }
    put(h, place, index);
}

/* ---- entries ---- */

static char *value_at(struct bz_delay_heap *h, uint32_t index)
{
    return h->values + index * h->value_size;
}

/* The slot of a key; NO_SLOT if its entry is gone. */
static uint32_t find(const struct bz_delay_heap *h, uint64_t key)
{
    uint32_t index = (uint32_t)key;
    if (index >= h->capacity || h->slot[index].generation != key >> 32)
        return NO_SLOT;
    return h->slot[index].generation % 2 == 1 ? index : NO_SLOT; /* odd: in use */
}

uint64_t bz_delay_heap_insert(struct bz_delay_heap *h, const void *value, uint64_t when)
{
    uint32_t index = h->free;
    struct bz_delay_slot *s = &h->slot[index];
    BZ_ASSERT(index != NO_SLOT);
    h->free = s->place;
    s->when = when;
    s->order = h->order++;
    s->generation++;
    if (h->value_size > 0)
        memcpy(value_at(h, index), value, h->value_size);
    put(h, h->count++, index);
    sift(h, h->count - 1);
    return (uint64_t)s->generation << 32 | index;
}

bool bz_delay_heap_move(struct bz_delay_heap *h, uint64_t key, uint64_t when)
{
    uint32_t index = find(h, key);
    if (index == NO_SLOT)
        return false;
    h->slot[index].when = when;
    h->slot[index].order = h->order++;
    sift(h, h->slot[index].place);
    return true;
}

static void take_at(struct bz_delay_heap *h, uint32_t place, void *value)
{
    uint32_t index = h->heap[place], last = h->heap[--h->count];
    if (value != NULL && h->value_size > 0)
        memcpy(value, value_at(h, index), h->value_size);
    if (place < h->count) {
        put(h, place, last);
        sift(h, place);
    }
    h->slot[index].generation++;
    h->slot[index].place = h->free;
    h->free = index; /* I3 */
}

bool bz_delay_heap_remove(struct bz_delay_heap *h, uint64_t key, void *value)
{
    uint32_t index = find(h, key);
    if (index == NO_SLOT)
        return false;
    take_at(h, h->slot[index].place, value);
    return true;
}

void bz_delay_heap_take(struct bz_delay_heap *h, void *value)
{
    BZ_ASSERT(h->count > 0);
    take_at(h, 0, value);
}

void bz_delay_heap_check(const struct bz_delay_heap *h)
{
    uint32_t free = 0;
    for (uint32_t i = 0; i < h->count; i++) {
        BZ_CHECK(h->slot[h->heap[i]].place == i, "delay heap: entry %u knows another place", i);
        BZ_CHECK(i == 0 || !is_before(h, h->heap[i], h->heap[(i - 1) / 2]),
                 "delay heap: entry %u is before its parent", i);
    }
    for (uint32_t i = h->free; i != NO_SLOT; i = h->slot[i].place)
        free++;
    BZ_CHECK(free + h->count == h->capacity, "delay heap: %u slots are lost",
             h->capacity - free - h->count);
}
