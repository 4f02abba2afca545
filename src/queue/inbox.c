/*
 * inbox.c - putting into, taking from and closing a proc's inbox. The design is in inbox.h.
 */
#include "queue/inbox.h"

#include "base/check.h"

void bz_inbox_init(struct bz_inbox *in)
{
    bz_lock_init_ranked(&in->lock, BZ_RANK_INJECTOR);
    in->is_closed = false;
    bz_entries_init(&in->chain);
    bz_atomic_init(&in->length, 0);
}

/* Publish the length, I1, and drop the lock. */
static void unlock(struct bz_inbox *in, const struct bz_os *os)
{
    bz_store_relaxed(&in->length, in->chain.count); /* relaxed: the pusher fences, [A] */
    bz_lock_drop(&in->lock, os);
}

bool bz_inbox_push(struct bz_inbox *in, const struct bz_os *os, bz_entry e)
{
    bz_lock_take(&in->lock, os);
    bool is_open = !in->is_closed;
    if (is_open)
        bz_entries_push(&in->chain, e);
    unlock(in, os);
    return is_open;
}

bz_entry bz_inbox_take(struct bz_inbox *in, const struct bz_os *os)
{
    if (bz_inbox_is_empty(in))
        return 0;
    bz_lock_take(&in->lock, os);
    bz_entry e = bz_entries_take(&in->chain);
    unlock(in, os);
    return e;
}

struct bz_entries bz_inbox_take_resumed(struct bz_inbox *in, const struct bz_os *os)
{
    struct bz_entries all, resumed;
    bz_entries_init(&all);
    bz_entries_init(&resumed);
    bz_lock_take(&in->lock, os);
    bz_entries_append(&all, &in->chain);
    for (bz_entry e; (e = bz_entries_take(&all)) != 0;)
        bz_entries_push(bz_entry_tag(e) == BZ_ENTRY_RESUMED ? &resumed : &in->chain, e);
    unlock(in, os);
    return resumed;
}

struct bz_entries bz_inbox_close(struct bz_inbox *in, const struct bz_os *os)
{
    struct bz_entries left;
    bz_entries_init(&left);
    bz_lock_take(&in->lock, os);
    in->is_closed = true;
    bz_entries_append(&left, &in->chain);
    unlock(in, os);
    return left;
}
