/*
 * mpmc.h - a bounded ring of pointers: any number of threads push, any number take.
 *
 * For pools of things that change hands (idle threads, spare stacks, buffers): never allocates,
 * never waits, one locked instruction an operation. It is Vyukov's ring: every cell carries a turn
 * that says who may touch it next, so a pusher and a taker meet in a cell and nowhere else.
 *
 *     position     0  1  2  3 | 4  5 ...      capacity 4
 *     turn == p        the pusher of position p may fill the cell
 *     turn == p + 1    the taker of position p may empty it
 *     turn == p + 4    emptied: the pusher of position p + 4 may fill it
 *
 * A thread claims a position by a compare-and-swap on the shared counter, then works on its cell
 * alone. Positions are 64 bits wide and count for ever, so the same value never comes round while
 * somebody holds an old one (at a push a nanosecond: 584 years). BZ_MPMC_BITS makes them narrower
 * for the model checker, which then sees them wrap.
 *
 * What it does not promise: that it is linearizable when somebody is in the middle. A pusher that
 * has claimed but not filled its cell hides what was pushed behind it, and a push may be told
 * "full" while a taker is still emptying the oldest cell. Nothing is lost: whoever is told so
 * looks again later. Callers use it for caches, where a miss costs a little and nothing breaks.
 *
 * Neighbouring positions share a cache line. That is a fight when several CPUs push at the same
 * moment, and a gift whenever they do not: a line then carries several values across. Measured on
 * 2 CPUs (make bench-base), the gift wins in every shape: positions spread over lines took 1.2 to
 * 2.2 times as long, cells padded to a line each 1.4 to 6 times.
 *
 * Rejected: a lock (a holder that is descheduled stops all); two counters and an in-order commit
 * (a slow pusher makes the others spin); spreading and padding, as above.
 *
 * I1  0 <= push_at - take_at <= capacity, but for operations under way.
 * I2  The turn of the cell of position p is p (empty) or p + 1 (full); it only ever grows.
 *
 * [A] push: turn release -> take: turn acquire    the value is there before it can be taken
 * [B] take: turn release -> push: turn acquire    the value is read before it is overwritten
 */
#ifndef BZ_MPMC_H
#define BZ_MPMC_H

#include <stdbool.h>
#include <stddef.h>

#include "base/alloc.h"
#include "base/bz_atomic.h"
#include "base/compiler.h"

#if !defined(BZ_MPMC_BITS)
#define BZ_MPMC_BITS 64
#endif

struct bz_mpmc_cell {
    bz_atomic(uint64_t) turn; /* whose turn it is, I2 */
    bz_shared(void *) value;  /* belongs to whoever's turn it is */
};

struct bz_mpmc {
    struct bz_mpmc_cell *cells;              /* constant after init */
    uint64_t mask;                           /* capacity - 1, constant after init */
    const blitz_allocator *from;             /* constant after init */
    BZ_OWN_LINE bz_atomic(uint64_t) push_at; /* next position to fill; CAS by pushers */
    BZ_OWN_LINE bz_atomic(uint64_t) take_at; /* next position to empty; CAS by takers */
};

/*
 * Make a ring for `capacity` pointers, rounded up to a power of two, at least 2.
 * Owns:    the ring is the caller's; its cells come from `from`, which must outlive it.
 * Returns: 0, -EINVAL (capacity is 0 or beyond 2^31), -ENOMEM.
 */
BZ_MUST_USE int bz_mpmc_init(struct bz_mpmc *q, size_t capacity, const blitz_allocator *from);

/* Free the cells. Nobody is using the ring; what is still in it is forgotten. */
void bz_mpmc_fini(struct bz_mpmc *q);

/* How many are in it: exact if nobody is at work, else a guess that was true of some moment. */
size_t bz_mpmc_count(struct bz_mpmc *q);

/* I1 and I2 for a ring nobody is using. Aborts with what it saw. */
void bz_mpmc_check(struct bz_mpmc *q);

/* Arithmetic on positions, modulo 2^BZ_MPMC_BITS. */
static inline uint64_t mpmc_add(uint64_t position, uint64_t n)
{
    return (position + n) & (UINT64_MAX >> (64 - BZ_MPMC_BITS));
}

/* How far `a` is ahead of `b`; negative if behind. */
static inline int64_t mpmc_ahead(uint64_t a, uint64_t b)
{
    return (int64_t)((a - b) << (64 - BZ_MPMC_BITS)) >> (64 - BZ_MPMC_BITS);
}

static inline struct bz_mpmc_cell *mpmc_cell_of(const struct bz_mpmc *q, uint64_t position)
{
    return &q->cells[position & q->mask];
}

/*
 * Push. From any thread; never waits.
 * Returns: true; false if the ring is full (or its oldest cell is still being emptied).
 */
static inline bool bz_mpmc_push(struct bz_mpmc *q, void *value)
{
    uint64_t at = bz_load_relaxed(&q->push_at); /* relaxed: a first guess, the CAS decides */
    for (;;) {
        struct bz_mpmc_cell *cell = mpmc_cell_of(q, at);
        int64_t ahead = mpmc_ahead(bz_load_acquire(&cell->turn), at); /* [B] */
        if (ahead == 0) {
            /* relaxed: the claim orders nothing, the turn does, [A] [B] */
            if (bz_cas_weak_rlx_rlx(&q->push_at, &at, mpmc_add(at, 1))) {
                bz_set(&cell->value, value);
                bz_store_release(&cell->turn, mpmc_add(at, 1)); /* [A] */
                return true;
            }
        } else if (ahead < 0) {
            return false;
        } else {
            at = bz_load_relaxed(&q->push_at); /* relaxed: a new guess, somebody was faster */
        }
    }
}

/*
 * Take the oldest. From any thread; never waits.
 * Returns: true and *value; false if the ring is empty (or its oldest cell is being filled).
 */
static inline bool bz_mpmc_take(struct bz_mpmc *q, void **value)
{
    uint64_t at = bz_load_relaxed(&q->take_at); /* relaxed: a first guess, the CAS decides */
    for (;;) {
        struct bz_mpmc_cell *cell = mpmc_cell_of(q, at);
        int64_t ahead = mpmc_ahead(bz_load_acquire(&cell->turn), mpmc_add(at, 1)); /* [A] */
        if (ahead == 0) {
            /* relaxed: the claim orders nothing, the turn does, [A] [B] */
            if (bz_cas_weak_rlx_rlx(&q->take_at, &at, mpmc_add(at, 1))) {
                *value = bz_get(&cell->value);
                bz_store_release(&cell->turn, mpmc_add(at, q->mask + 1)); /* [B] */
                return true;
            }
        } else if (ahead < 0) {
            return false;
        } else {
            at = bz_load_relaxed(&q->take_at); /* relaxed: a new guess, somebody was faster */
        }
    }
}

#endif
