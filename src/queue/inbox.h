/*
 * inbox.h - entries for one proc: tasks that were asked to begin there, and tasks that I/O has woken (gather.c).
 *
 * Any thread pushes. The proc's machine takes entries out, one at a time, and runs them. No other
 * machine steals from an inbox. The monitor takes woken tasks out if the machine does not come to them. It is a lock and a chain: proc hints are rare, and the check for entries
 * is a load.
 *
 * A proc whose thread could not be started will never look. Its inbox is closed: it refuses new entries,
 * and the caller that closes it gets the old ones to put elsewhere.
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

/* Append an entry. Return false if the inbox is closed. Any thread. */
BZ_MUST_USE bool bz_inbox_push(struct bz_inbox *in, const struct bz_os *os, bz_entry e);

/* Take the oldest entry; 0 if there is none. Owner only. */
bz_entry bz_inbox_take(struct bz_inbox *in, const struct bz_os *os);

/* Take all tasks that have run before, the oldest first: they may continue on any proc. Any thread. */
BZ_MUST_USE struct bz_entries bz_inbox_take_resumed(struct bz_inbox *in, const struct bz_os *os);

/* Refuse entries from now on. Returns the entries that were in it. Any thread, any number of times. */
BZ_MUST_USE struct bz_entries bz_inbox_close(struct bz_inbox *in, const struct bz_os *os);

/* True if it holds nothing. The answer may be out of date at once. */
static inline bool bz_inbox_is_empty(struct bz_inbox *in)
{
    return bz_load_relaxed(&in->length) == 0; /* relaxed: [A]'s fences order it */
}

#endif
