/*
 * inbox.h - what is meant for one proc alone: tasks that were asked to begin there.
 *
 * Anybody puts in, the proc's machine takes out, one at a time, and runs what it took; nobody steals
 * from it. A lock and a chain: proc hints are rare, and asking whether there is anything is a load.
 *
 * A proc whose thread could not be started will never look. Its inbox is closed: it refuses, and
 * what was in it is given back to be put elsewhere.
 *
 * I1  length is chain.count whenever the lock is free. A closed inbox is empty.
 *
 * [A] push: length store, then the pusher's full fence (idle.c, wanted) -> the sleeper's full fence
 *     (idle.c, announce), then length load: the owner sees it before it sleeps, or is seen to sleep.
 */
#ifndef BZ_INBOX_H
#define BZ_INBOX_H

#include <stdbool.h>
#include <stddef.h>

#include "base/bz_atomic.h"
#include "os/lock.h"
#include "task/chain.h"

struct bz_inbox {
    BZ_OWN_LINE struct bz_lock lock;
    bool is_closed;           /* guarded by lock */
    struct bz_entries chain;  /* guarded by lock */
    bz_atomic(size_t) length; /* written under lock, read by the owner */
};

void bz_inbox_init(struct bz_inbox *in);

/* False: it is closed. Any thread. */
BZ_MUST_USE bool bz_inbox_push(struct bz_inbox *in, const struct bz_os *os, bz_entry e);

/* The oldest, or 0. The owner. */
bz_entry bz_inbox_take(struct bz_inbox *in, const struct bz_os *os);

/* Refuse from now on. Returns what was in it. Any thread, any number of times. */
BZ_MUST_USE struct bz_entries bz_inbox_close(struct bz_inbox *in, const struct bz_os *os);

/* Is there nothing in it? True of a moment. */
static inline bool bz_inbox_is_empty(struct bz_inbox *in)
{
    return bz_load_relaxed(&in->length) == 0; /* relaxed: [A]'s fences order it */
}

#endif
