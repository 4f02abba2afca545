/*
 * guest.h - plain threads that run a task of their own for a moment.
 *
 * A guest is a machine without a proc, run by a thread of the user's. guest.c has the rules.
 */
#ifndef BZ_GUEST_H
#define BZ_GUEST_H

#include <stdbool.h>

#include "base/bz_atomic.h"
#include "base/compiler.h"
#include "os/lock.h"

struct bz_machine;
struct bz_runtime;
struct bz_task;

/* How many there may be at a time; more calls go through the injector. */
enum { BZ_GUESTS_MAX = 256 };

struct bz_guests {
    struct bz_lock lock;        /* rank: BZ_RANK_GUESTS */
    struct bz_machine *idle;    /* linked by next_guest; guarded by lock, as is is_ending */
    unsigned made;              /* machines that are guests, for good; guarded by start_lock */
    bool is_ending;             /* the runtime waits for the last guest to leave */
    bz_atomic(uint32_t) inside; /* with a task; written under lock, the monitor peeks */
    bz_os_word left;            /* 1: the last has left, and is_ending */
};

void bz_guests_init(struct bz_guests *g);
/* Every task has ended: wait for guests on their way out, and free what the guests hold. */
void bz_guests_fini(struct bz_runtime *rt);
/* stacks.c: stacks are short: guests that are not inside give theirs to the pool. Any thread. */
void bz_guests_share(struct bz_runtime *rt);

/* True if there are guests inside, whose jobs need the monitor. A hint, but see monitor.c [S]. */
static inline bool bz_guests_inside(struct bz_guests *g)
{
    return bz_load_relaxed(&g->inside) != 0; /* relaxed: a hint; monitor.c [S] */
}

/*
 * Run fn(arg) as a task of the runtime on the calling thread, which is a plain one, until the task ends or
 * has to wait. Then wait for its end.
 * Returns: 0 and *result; -EAGAIN, -ENOMEM, -ESHUTDOWN: nothing happened.
 */
BZ_MUST_USE int bz_guest_call(struct bz_runtime *rt, int (*fn)(void *arg), void *arg, int *result);

#endif
