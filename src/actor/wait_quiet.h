/*
 * wait_quiet.h - count actors that are not idle: wait_quiet.c, and queue/busy.h below it.
 */
#ifndef BZ_ACTOR_WAIT_QUIET_H
#define BZ_ACTOR_WAIT_QUIET_H

#include "proc/state.h"

/* An actor was counted out while a thread waits for the last one: release the waiters if it was. No lock of rank WAIT is held. */
void bz_quiet_look(struct bz_runtime *rt);
/* The same as a wake-up, for a caller that holds a lock. */
struct bz_wake bz_quiet_wake(struct bz_runtime *rt);

static BZ_ALWAYS_INLINE struct bz_busy_count *bz_busy_mine(struct bz_runtime *rt)
{
    struct bz_machine *m = bz_machine_self();
    return BZ_LIKELY(m != NULL && m->rt == rt) ? &m->busy : NULL;
}

/* The same on a machine of that runtime. */
static BZ_ALWAYS_INLINE struct bz_busy_count *bz_busy_here(void)
{
    return &bz_machine_self()->busy;
}

/* Count an actor in: before the push, unless the caller is an actor of this runtime. `mine` is bz_busy_mine(rt). */
static BZ_ALWAYS_INLINE void bz_actor_count_in(struct bz_runtime *rt, struct bz_busy_count *mine)
{
    bz_busy_begin(&rt->busy, mine);
}

/* Count it out: it rests, has ended, or was placed by another sender. */
static BZ_ALWAYS_INLINE void bz_actor_count_out(struct bz_runtime *rt, struct bz_busy_count *mine)
{
    if (bz_busy_rest(&rt->busy, mine))
        bz_quiet_look(rt);
}

#endif
