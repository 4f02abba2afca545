/*
 * lock.c - the slow path of the runtime's own lock. The essay is in lock.h.
 */
#include "os/lock.h"

void bz_lock_wait(struct bz_lock *l, const struct bz_os *os)
{
    for (unsigned round = 0; round < BZ_LOCK_SPINS; round++) {
        bz_os_relax(os, round);
        if (bz_lock_grab_(l))
            return;
    }
    bz_os_delay(os, BZ_OS_AT_LOCK);
    while (bz_xchg_acquire(&l->word, BZ_LOCK_CONTENDED) != BZ_LOCK_FREE) /* [A] */
        bz_os_wait(os, &l->word, BZ_LOCK_CONTENDED, BZ_OS_FOREVER);
}
