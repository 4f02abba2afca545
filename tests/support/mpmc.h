/*
 * mpmc.h - a bounded ring of pointers: any number of threads push, any number take.
 *
 * For pools of objects shared by threads (idle threads, spare stacks, buffers). It never allocates
 * or waits, and costs one locked instruction an operation. It is Vyukov's ring: every cell has a
 * turn number that says which operation may access it next, so pushers and takers synchronise only
 * through cells.
 *
 *     position     0  1  2  3 | 4  5 ...      capacity 4
 *     turn == p        the pusher of position p may fill the cell
 *     turn == p + 1    the taker of position p may empty it
 *     turn == p + 4    emptied: the pusher of position p + 4 may fill it
 *
 * A thread claims a position by a compare-and-swap on the shared counter, then works on its cell
 * alone. Positions are 64 bits wide, so a value never repeats while a thread holds an old one (at a
 * push a nanosecond: 584 years). BZ_MPMC_BITS makes them narrower for the model checker, which then
 * sees them wrap.
 *
 * The ring is not linearizable while an operation is in progress. A pusher that has claimed but not
 * filled its cell hides the values pushed behind it, and a push may return "full" while a taker is
 * still emptying the oldest cell. No value is lost: the caller retries later. Callers use the ring
 * for caches, where a miss costs little.
 *
 * Neighbouring positions share a cache line. That costs when several CPUs push at the same moment,
 * and helps otherwise, because one line then carries several values. Measured on 2 CPUs (make
 * bench-base), sharing wins in every case: positions spread over lines took 1.2 to 2.2 times as
 * long, cells padded to a line each 1.4 to 6 times.
 *
 * Rejected: a lock (a holder that is descheduled stops all); two counters and an in-order commit
 * (a slow pusher makes the others spin); spreading and padding, as above.
 *
 * I1  0 <= push_at - take_at <= capacity, except during operations in progress.
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
    bz_atomic(uint64_t) turn; /* the operation that may access the cell next, I2 */
    bz_shared(void *) value;  /* accessed only by the operation whose turn it is */
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

/* Free the cells. The ring is not in use; remaining values are dropped. */
void bz_mpmc_fini(struct bz_mpmc *q);

/* The number of values: exact if no operation is in progress, else true at some recent moment. */
size_t bz_mpmc_count(struct bz_mpmc *q);

/* Check I1 and I2 of a ring that is not in use. Abort with a message if one is broken. */
void bz_mpmc_check(struct bz_mpmc *q);

/* Arithmetic on positions, modulo 2^BZ_MPMC_BITS. */
static inline uint64_t mpmc_add(uint64_t position, uint64_t n)
{
    return (position + n) & (UINT64_MAX >> (64 - BZ_MPMC_BITS));
}

/* The distance from `b` to `a`; negative if `a` is behind. */
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
            at = bz_load_relaxed(&q->push_at); /* relaxed: a new guess, another thread was faster */
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
            at = bz_load_relaxed(&q->take_at); /* relaxed: a new guess, another thread was faster */
        }
    }
}

#endif
