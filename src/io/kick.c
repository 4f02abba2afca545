/*
 * kick.c - wake a thread that waits in the kernel, through a descriptor.
 *
 * A descriptor that was made readable stays readable until it is read. A thread that reads it takes
 * the kick from all other waiters. There may be two waiters: a machine whose proc was taken while
 * it slept may still be leaving while the proc's new machine goes to sleep. So only the last thread
 * that leaves reads it; a thread that enters meanwhile returns at once and retries. The lock makes
 * "no thread is inside, so read it" and "I am inside, so write it" exclude each other; it is held
 * over a non-blocking system call.
 *
 *      sleeper                                   rouser
 *      1  lock; roused? leave: inside++          1  roused = 1
 *      2  wait for descriptors                   2  lock; inside > 0 and not kicked: write
 *      3  lock; --inside == 0 and kicked: read
 *
 * Either the sleeper sees `roused` under the lock, or the rouser sees the sleeper inside. If no
 * thread is inside, a kick costs no system call.
 */
#include "io/kick.h"

#include <stdint.h>

#include "io/sys.h"

void bz_kick_init(struct bz_kick *k, int in, int out)
{
    bz_lock_init(&k->lock);
    k->inside = 0;
    k->is_kicked = false;
    k->in = in;
    k->out = out;
}

bool bz_kick_enter(struct bz_kick *k, const struct bz_os *os, bz_os_word *roused)
{
    bz_lock_take(&k->lock, os);
    bool may = bz_load_acquire(roused) == 0; /* poll.h [A] */
    k->inside += may;
    bz_lock_drop(&k->lock, os);
    return may;
}

void bz_kick_leave(struct bz_kick *k, const struct bz_os *os)
{
    uint64_t counted;
    bz_lock_take(&k->lock, os);
    if (--k->inside == 0 && k->is_kicked) {
        /* it was written exactly once */
        k->is_kicked = bz_sys->read(k->in, &counted, sizeof counted) < 0;
    }
    bz_lock_drop(&k->lock, os);
}

void bz_kick(struct bz_kick *k, const struct bz_os *os)
{
    static const uint64_t one = 1;
    bz_lock_take(&k->lock, os);
    if (k->inside > 0 && !k->is_kicked)
        k->is_kicked = bz_sys->write(k->out, &one, sizeof one) == (ssize_t)sizeof one;
    bz_lock_drop(&k->lock, os);
}
