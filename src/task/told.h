/*
 * told.h - who is to go on, once the lock is dropped under which that was decided.
 *
 * Something waited for has happened: a value is there, a socket is readable. Who waits is found, and
 * its wait is won, under the lock of what it waits for; queueing a task, rousing a thread and above
 * all waking a waker, which may be anybody's code, come after. In between it is one of these.
 */
#ifndef BZ_TOLD_H
#define BZ_TOLD_H

#include "blitz/future.h"
#include "os/os.h"

struct bz_task;

/* A wait that was won: sched/wait.h. */
struct bz_won {
    struct bz_task *task;   /* NULL: a plain thread */
    bool is_held;           /* by a reference of ours, until it is resumed */
    const struct bz_os *os; /* a thread's, as is */
    bz_os_word *word;       /* an address to wake; what was there may be gone */
};

enum bz_told_kind { BZ_TOLD_NOBODY, BZ_TOLD_WAIT, BZ_TOLD_WAKER };

struct bz_told {
    enum bz_told_kind kind;
    struct bz_won won; /* a wait's */
    blitz_waker wake;  /* a waker's */
};

#endif
