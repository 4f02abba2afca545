/*
 * poll.h - where a worker sleeps: the contract of what completes operations.
 *
 * Every proc has a *poll*. Its machine sleeps there, and nowhere else, when it has nothing to run:
 * until something completes, until its first timer, or until somebody rouses it because there is
 * work. So there is one way to sleep and one to rouse, whatever keeps the contract: a ring of the
 * kernel's, readiness by file descriptor, or nothing at all. The null keeper, which has no
 * operations, is a sleep word.
 *
 * Operations will be completion-shaped: handed in, and complete later, with what was done. The
 * calls for that (submit, reap, cancel) come with the first keeper that has any. What is here is
 * the seam between sleeping and rousing, so that the protocol of sched/idle.c is written once:
 *
 *      machine                                 anybody
 *      1  bz_poll_prepare: forget rouses       1  make work visible
 *      2  announce its sleep, last look        2  claim the announced sleeper
 *      3  bz_poll_wait                         3  bz_poll_rouse
 *
 * A rouse that comes after prepare is never lost: the wait returns, or does not begin. One from
 * before may be: its reason is seen by the last look, or answered for by who searches. Waits may
 * return for no reason.
 *
 * What a keeper owes. `wait` returns soon after `roused` is set and kick() was called, in whatever
 * order those two fall between its steps; `kick` is called after `roused` has been set, from any
 * thread, also when nobody waits, and neither waits nor fails. Both work while the proc changes
 * hands: nothing in them depends on which thread waits, and a kick ends all waits that are under way,
 * since a machine whose proc was taken in its sleep may be on its way out.
 *
 * [A] rouse: roused release -> was_roused: roused acquire   what the rouser did before is visible
 */
#ifndef BZ_POLL_H
#define BZ_POLL_H

#include "os/os.h"

struct bz_poll;

/* A keeper. */
struct bz_poll_ops {
    const char *name;
    /* Sleep while poll->roused is 0 and nothing completes, until until_ns. Returns as below. */
    int (*wait)(struct bz_poll *poll, uint64_t until_ns);
    /* poll->roused has been set: end the wait that is under way, if any. */
    void (*kick)(struct bz_poll *poll);
    void (*fini)(struct bz_poll *poll);
};

struct bz_poll {
    const struct bz_poll_ops *ops; /* constant after init */
    const struct bz_os *os;        /* constant after init */
    bz_os_word roused;             /* 1: since the last prepare. Cleared by the proc's machine */
};

/* The keeper without operations. Cannot fail. */
void bz_poll_null_init(struct bz_poll *poll, const struct bz_os *os);

/* Nobody waits there or rouses any more. */
static inline void bz_poll_fini(struct bz_poll *poll)
{
    poll->ops->fini(poll);
}

/* Before the announcement: rouses that came so far are forgotten. The proc's machine. */
static inline void bz_poll_prepare(struct bz_poll *poll)
{
    bz_store_relaxed(&poll->roused,
                     0); /* relaxed: what a forgotten rouse was for is seen otherwise */
}

/*
 * Sleep. The proc's machine.
 * Returns: 0 (roused, something is complete, or for no reason: look), -ETIMEDOUT (not before
 *          until_ns).
 */
static inline int bz_poll_wait(struct bz_poll *poll, uint64_t until_ns)
{
    return poll->ops->wait(poll, until_ns);
}

/* Have its machine look again. Any thread. */
static inline void bz_poll_rouse(struct bz_poll *poll)
{
    bz_store_release(&poll->roused, 1); /* [A] */
    poll->ops->kick(poll);
}

/* Has anybody roused it since the last prepare? */
static inline bool bz_poll_was_roused(struct bz_poll *poll)
{
    return bz_load_acquire(&poll->roused) != 0; /* [A] */
}

#endif
