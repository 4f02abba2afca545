/*
 * kick.c - ending a wait in the kernel by a descriptor.
 *
 * A descriptor that was made readable stays so until it is read. Whoever reads it takes the kick from
 * all others that wait there, and there may be two: a machine whose proc was taken in its sleep is on
 * its way out while the proc's new machine lies down. So it is read by the last one that leaves, and
 * only then; one that comes meanwhile returns at once and comes again. The lock makes "nobody is
 * inside, so read it" and "I am inside, so write it" exclude each other; it is held over a system call that
 * does not wait.
 *
 *      sleeper                                   rouser
 *      1  lock; roused? leave: inside++          1  roused = 1
 *      2  wait for descriptors                   2  lock; inside > 0 and not kicked: write
 *      3  lock; --inside == 0 and kicked: read
 *
 * Either the sleeper sees `roused` under the lock or the rouser sees it inside. If nobody is, a
 * kick costs no system call.
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
        k->is_kicked = bz_sys->read(k->in, &counted, sizeof counted) < 0; /* it was written once */
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
