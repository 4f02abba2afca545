/*
 * delay_heap.h - entries ordered by time, each with a key.
 *
 * A binary heap of indexes into an array of slots. A slot knows its place in the heap, so an entry can be moved or
 * removed by its key. A key is the slot's index and its generation, which changes when the slot is freed.
 *
 * All memory is one block. A larger block is made by the caller without the queue's lock, and replaces the old one under
 * it.
 *
 * I1  slot[heap[i]].place == i for i < count.
 * I2  No entry is earlier than its parent. Entries of the same time are ordered by `order`, which only goes up.
 * I3  The free slots are a list through `place`, which begins at `free` and ends with NO_SLOT.
 */
#ifndef BZ_CHAN_DELAY_HEAP_H
#define BZ_CHAN_DELAY_HEAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"

struct bz_delay_slot {
    uint64_t when, order;
    uint32_t place; /* in the heap; of a free slot: the next free one */
    uint32_t generation;
};

struct bz_delay_heap {
    size_t value_size;
    uint32_t capacity, count, free;
    uint64_t order;
    struct bz_delay_slot *slot; /* the block: slots, heap, values */
    uint32_t *heap;
    char *values;
};

enum { BZ_DELAY_MAX = 1 << 30 };

void bz_delay_heap_init(struct bz_delay_heap *h, size_t value_size);

static inline bool bz_delay_heap_is_full(const struct bz_delay_heap *h)
{
    return h->count == h->capacity;
}

/* The block for `capacity` entries: its bytes (0: too large), and the exchange of a heap's block for it. Returns the old
 * block, for the caller to free; NULL: there was none. The heap must have less capacity. */
size_t bz_delay_heap_bytes(const struct bz_delay_heap *h, uint32_t capacity);
void *bz_delay_heap_grow(struct bz_delay_heap *h, uint32_t capacity, void *block);

/* Insert a value. The heap must not be full. Returns the key. */
uint64_t bz_delay_heap_insert(struct bz_delay_heap *h, const void *value, uint64_t when);
/* False: there is no entry of that key. `value` may be NULL. */
BZ_MUST_USE bool bz_delay_heap_move(struct bz_delay_heap *h, uint64_t key, uint64_t when);
BZ_MUST_USE bool bz_delay_heap_remove(struct bz_delay_heap *h, uint64_t key, void *value);

/* The time of the first entry, and taking it. The heap must not be empty. */
static inline uint64_t bz_delay_heap_first(const struct bz_delay_heap *h)
{
    return h->slot[h->heap[0]].when;
}
void bz_delay_heap_take(struct bz_delay_heap *h, void *value);

/* Abort if I1, I2 or I3 does not hold. For tests. */
void bz_delay_heap_check(const struct bz_delay_heap *h);

#endif
