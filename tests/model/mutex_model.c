/*
 * mutex_model.c - one holder at a time, and every waiter is woken: the first of the two ways, in
 * which an unlock notifies the first waiter to retry (mutex_fair_model.c has the other).
 *
 *   covers: src/sync/mutex.c src/sync/waitq.c
 *   needs: src/park/park.c src/park/request.c src/os/lock.c src/os/self.c src/task/word.c
 *   needs: src/wait/arbiter.c src/wait/wake.c src/life/cancel.c
 *   defines: BZ_LOCK_SPINS=1 BZ_MUTEX_SPINS=0
 */
#include "mutex_toy.h"
