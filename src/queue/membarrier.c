/*
 * membarrier.c - one barrier serves every caller that was waiting when it began.
 *
 * Barriers are numbered and run one at a time, under a lock. A caller reads the number of the last one
 * that began. The next one begins after its call, so the caller waits until that one has ended, or
 * runs it.
 *
 *      caller                                  the thread that runs barrier n
 *      1  (stores of its own)                  1  begun = n
 *      2  full fence                           2  the barrier: a fence here, one in every
 *      3  mine = begun + 1                        thread, another here
 *      4  lock; ended >= mine? done            3  ended = n
 *         else run one
 *
 * Why the fence: the caller must know that barrier `mine` begins after its stores. If it read begun
 * before n was written, then its fence comes before the fence with which barrier n begins. So it also
 * comes before the fences that this barrier puts into the other threads [A]. Without it, the stores
 * could still be in the store buffer after the other threads have fenced.
 *
 * Rejected: spinning for the end instead of a lock (a barrier takes tens of microseconds, and most
 * callers are about to sleep anyway).
 *
 * I1  ended <= begun <= ended + 1; they are equal when the lock is free.
 *
 * [A] pay: (stores), fence, begun load -> pay: begun store, the barrier's first fence   see above
 * [B] pay: ended, under the lock -> pay: ended, under the lock   what the barrier made visible to
 *     its caller is visible to the callers that share it; the lock (os/lock.h [A]) carries it
 */
#include "queue/membarrier.h"

void bz_barrier_init(struct bz_barrier *b, const struct bz_os *os)
{
    b->os = os;
    bz_lock_init(&b->lock);
    bz_atomic_init(&b->begun, 0);
    bz_atomic_init(&b->ended, 0);
}

/* Run one barrier. Under the lock. */
static void run(struct bz_barrier *b)
{
    uint64_t n = bz_load_relaxed(&b->begun) + 1; /* relaxed: written under the lock */
    bz_store_relaxed(&b->begun, n);              /* relaxed: the barrier is its fence, [A] */
    int err = bz_os_barrier(b->os);              /* [A] */
    BZ_CHECK(
        err == 0,
        "barriers are refused (error %d) since the start, and other threads rely on them: a system "
        "call filter must allow membarrier, or sched_setaffinity instead",
        -err);
    bz_store_relaxed(&b->ended, n); /* relaxed: read under the lock, [B] */
}

void bz_barrier_pay(struct bz_barrier *b)
{
    bz_fence_seqcst();                              /* [A] */
    uint64_t mine = bz_load_relaxed(&b->begun) + 1; /* relaxed: after the fence, [A] */
    bz_lock_take(&b->lock, b->os);
    if (bz_load_relaxed(&b->ended) < mine) /* relaxed: under the lock, [B] */
        run(b);
    bz_lock_drop(&b->lock, b->os);
}
