/*
 * held.c - the list of held locks of each thread. The essay is in held.h.
 *
 * I1  The list names each lock once, in the order in which they were taken.
 */
#include "os/held.h"

#include <stdbool.h>

#include "base/check.h"

#if defined(BZ_WATCH)

static _Thread_local struct bz_held own;
static _Thread_local struct bz_held *used; /* NULL: own */

/* Inlined only into functions that are not inlined, so that no caller keeps the address. */
static BZ_ALWAYS_INLINE struct bz_held *mine(void)
{
    __asm__ volatile("");
    return used != NULL ? used : &own;
}

static const char *const rank_name[BZ_RANKS] = {
    [BZ_RANK_LEAF] = "leaf",     [BZ_RANK_RUNTIME] = "runtime", [BZ_RANK_TASK] = "task",
    [BZ_RANK_TIMERS] = "timers", [BZ_RANK_START] = "start",     [BZ_RANK_INJECTOR] = "injector",
    [BZ_RANK_STACKS] = "stacks", [BZ_RANK_IDLE] = "idle",       [BZ_RANK_WAIT] = "wait",
    [BZ_RANK_GUESTS] = "guests",
};

/* Leaf locks come last. */
static unsigned depth_of(unsigned rank)
{
    return rank == BZ_RANK_LEAF ? BZ_RANKS : rank;
}

/* True if a thread that holds `held` may wait for the new lock. */
static bool comes_after(unsigned rank, const void *lock, unsigned held, const void *held_lock)
{
    if (rank == BZ_RANK_WAIT && held == BZ_RANK_WAIT)
        return (uintptr_t)held_lock < (uintptr_t)lock;
    return depth_of(held) < depth_of(rank);
}

BZ_NOINLINE void bz_held_order(const void *lock, unsigned rank)
{
    const struct bz_held *h = mine();
    for (unsigned i = 0; i < h->count; i++) {
        BZ_CHECK(h->lock[i] != lock, "lock %p (%s) is taken by its holder", lock, rank_name[rank]);
        BZ_CHECK(comes_after(rank, lock, h->rank[i], h->lock[i]),
                 "lock order: %p (%s) is taken while %p (%s) is held", lock, rank_name[rank],
                 h->lock[i], rank_name[h->rank[i]]);
    }
}

BZ_NOINLINE void bz_held_add(const void *lock, unsigned rank)
{
    struct bz_held *h = mine();
    BZ_CHECK(h->count < BZ_HELD_MAX, "a thread holds more than %d locks", BZ_HELD_MAX);
    h->lock[h->count] = lock;
    h->rank[h->count++] = (uint8_t)rank;
}

BZ_NOINLINE void bz_held_remove(const void *lock)
{
    struct bz_held *h = mine();
    unsigned i = 0;
    while (i < h->count && h->lock[i] != lock)
        i++;
    BZ_CHECK(i < h->count, "lock %p is dropped by a thread that does not hold it", lock);
    h->count--;
    for (; i < h->count; i++) { /* I1 */
        h->lock[i] = h->lock[i + 1];
        h->rank[i] = h->rank[i + 1];
    }
}

BZ_NOINLINE void bz_held_none(void)
{
    const struct bz_held *h = mine();
    unsigned last = h->count - 1;
    BZ_CHECK(h->count == 0, "a task suspends while its thread holds lock %p (%s)", h->lock[last],
             rank_name[h->rank[last]]);
}

BZ_NOINLINE unsigned bz_held_count(void)
{
    return mine()->count;
}

BZ_NOINLINE void bz_held_use(struct bz_held *list)
{
    __asm__ volatile("");
    used = list;
}

#endif
