/*
 * rwlock_fair_model.c - the same as rwlock_model.c with no patience at all: who leaves lets the first in
 * line in.
 *
 *   covers: src/sync/rwlock.c src/sync/waitq.c
 *   needs: src/park/park.c src/park/request.c src/os/lock.c src/os/self.c src/task/word.c
 *   needs: src/wait/arbiter.c src/wait/wake.c src/life/cancel.c
 *   defines: BZ_LOCK_SPINS=1 BZ_RWLOCK_SPINS=0 BZ_RWLOCK_PATIENCE_NS=0
 */
#include "rwlock_toy.h"
