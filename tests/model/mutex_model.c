/*
 * mutex_model.c - one at a time, and whoever stands in line is woken: the first of the two ways, in
 * which an unlock tells the first in line to try (mutex_fair_model.c has the other).
 *
 *   covers: src/sync/mutex.c src/sync/waitq.c
 *   needs: src/sched/wait.c src/os/lock.c src/os/self.c src/task/word.c
 *   defines: BZ_LOCK_SPINS=1 BZ_MUTEX_SPINS=0
 */
#include "mutex_toy.h"
