/*
 * values.h - the storage of a channel's values: a ring, or a list of blocks.
 *
 * A bounded channel has a ring of its capacity behind it, in the same allocation. An unbounded one has a list of
 * blocks of about 4 KiB. Takes empty the first block, pushes fill the block `last`, and the blocks behind `last` are
 * empty:
 *
 *     first -> ... -> last -> ... -> end
 *     ^head_at        ^tail_at       (beyond `last` they are empty)
 *
 * A block is allocated before it is needed, outside of the lock, and appended under it. An emptied block goes to the
 * end if there is no empty one there. Otherwise it is freed, again outside of the lock.
 *
 * Rejected: a ring that doubles. It is as fast, but moves everything under the lock when it grows: a
 * million values of 8 bytes take 2 ms, in which all other threads spin. And it never shrinks.
 *
 * None of this is thread-safe by itself: the channel's lock guards it.
 *
 * I1  A ring holds the values head, head + 1, ... head + count - 1, modulo slots.
 * I2  In blocks, `room` is the number of slots behind the last value.
 */
#ifndef BZ_CHAN_VALUES_H
#define BZ_CHAN_VALUES_H

#include <errno.h>

#include "base/alloc.h"
#include "chan/copy.h"
#include "park/request.h"
#include "proc/ask.h"

struct bz_block {
    struct bz_block *next;
    _Alignas(max_align_t) char slot[];
};

struct bz_values {
    size_t size;  /* of a value; constant, as is slots */
    size_t slots; /* of the ring, or of a block */
    char *ring;   /* constant; NULL: blocks, or nothing at all (a rendezvous) */
    size_t head, count;
    struct bz_block *first, *last, *end; /* NULL: no blocks */
    size_t head_at, tail_at, room;       /* I2 */
    struct bz_block *retired;            /* empty blocks, to be freed after the lock is dropped */
};

static inline size_t bz_values_wrap(const struct bz_values *s, size_t at)
{
    return at >= s->slots ? at - s->slots : at;
}

static inline char *bz_values_at(const struct bz_values *s, size_t index)
{
    return s->ring + index * s->size;
}

/* Push and take for the list of blocks. */
void *bz_values_block_push(struct bz_values *s);
void *bz_values_block_take(struct bz_values *s);

/* Return the place for one more value, and count it. The caller knows that there is room. */
static inline void *bz_values_push(struct bz_values *s)
{
    size_t at = s->head + s->count;
    if (BZ_UNLIKELY(s->ring == NULL)) {
        s->count++;
        return bz_values_block_push(s);
    }
    s->count++;
    return bz_values_at(s, bz_values_wrap(s, at));
}

/* Remove the oldest value and return its place, which is valid until the lock is dropped. */
static inline void *bz_values_take(struct bz_values *s)
{
    BZ_ASSERT(s->count > 0);
    s->count--;
    if (BZ_UNLIKELY(s->ring == NULL))
        return bz_values_block_take(s);
    size_t at = s->head;
    s->head = bz_values_wrap(s, at + 1);
    return bz_values_at(s, at);
}

/* Return how many values of `size` bytes fit into a block. */
size_t bz_values_block_slots(size_t size);
BZ_MUST_USE struct bz_block *bz_block_new(const struct bz_values *s, const blitz_allocator *alloc);
void bz_block_free(const struct bz_values *s, struct bz_block *b, const blitz_allocator *alloc);
/* Take the blocks that must be freed after the lock is dropped, or NULL. */
static inline struct bz_block *bz_values_retired(struct bz_values *s)
{
    struct bz_block *b = s->retired;
    if (BZ_UNLIKELY(b != NULL))
        s->retired = NULL;
    return b;
}
void bz_blocks_free(const struct bz_values *s, struct bz_block *b, const blitz_allocator *alloc);
/* Append a block at the end. */
void bz_values_append(struct bz_values *s, struct bz_block *b);
/* Free all blocks. There must be no values left. */
void bz_values_fini(struct bz_values *s, const blitz_allocator *alloc);

#endif
