/*
 * rwlock_model.c - concurrent readers, exclusive writers, and no forgotten waiter. This is the
 * first of the two ways, in which an unlock notifies the first waiter to retry (rwlock_fair_model.c
 * has the other).
 *
 *   covers: src/sync/rwlock.c src/sync/waitq.c
 *   needs: src/park/park.c src/park/request.c src/os/lock.c src/os/self.c src/task/word.c
 *   needs: src/wait/arbiter.c src/wait/wake.c src/life/cancel.c
 *   defines: BZ_LOCK_SPINS=1 BZ_RWLOCK_SPINS=0
 */
#include "rwlock_toy.h"
