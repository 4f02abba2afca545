/*
 * membarrier.h - barriers on every thread, shared by callers that want one at the same time.
 *
 * bz_os_barrier() is the expensive half of every asymmetric pair of the scheduler. The frequent side
 * does plain stores and loads. The other side, about to sleep, to cancel or to take, makes every thread
 * of the process fence. On many CPUs callers queue one behind another (9 microseconds alone, 90 with
 * eight callers on 16 CPUs). So callers queue here instead: a caller that was waiting when a barrier
 * began needs none of its own. membarrier.c has the argument.
 */
#ifndef BZ_BARRIER_H
#define BZ_BARRIER_H

#include "os/lock.h"

struct bz_barrier {
    const struct bz_os *os;           /* constant after init */
    struct bz_lock lock;              /* held while a barrier is under way */
    bz_atomic(uint64_t) begun, ended; /* barriers; written under lock, read by any thread */
};

void bz_barrier_init(struct bz_barrier *b, const struct bz_os *os);

/*
 * Between call and return there was a barrier on every thread, run by this call or by another. From now on
 * we see everything that another thread stored before its fence. The other thread's loads after its
 * fence see everything that we stored before the call. Any thread.
 * Requires: bz_os_barrier_register() has returned 0.
 * Suspends: the thread, for tens of microseconds.
 */
void bz_barrier_pay(struct bz_barrier *b);

#endif
