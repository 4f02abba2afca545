/*
 * mutex_fair_model.c - the same as mutex_model.c with no patience at all: every unlock hands the mutex to
 * the first in line.
 *
 *   covers: src/sync/mutex.c src/sync/waitq.c
 *   needs: src/park/park.c src/park/request.c src/os/lock.c src/os/self.c src/task/word.c
 *   needs: src/wait/arbiter.c src/wait/wake.c src/life/cancel.c
 *   defines: BZ_LOCK_SPINS=1 BZ_MUTEX_SPINS=0 BZ_MUTEX_PATIENCE_NS=0
 */
#include "mutex_toy.h"
