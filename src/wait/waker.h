/*
 * waker.h - the wakers of tasks and of plain threads. waker.c has the rules.
 */
#ifndef BZ_WAKER_H
#define BZ_WAKER_H

#include "proc/state.h"

/* A plain thread that waits for a future. It is counted: a clone of its waker may outlive the wait. */
struct bz_parker {
    const struct bz_os *os;
    bz_os_word woken;
    bz_atomic(uint32_t) refs;
    uint64_t by; /* when to poll again at the latest; the thread's own */
};

extern const blitz_waker_ops bz_parker_waker;

/* NULL: no memory. */
struct bz_parker *bz_parker_new(const struct bz_os *os);

/* True if waking it takes bounded time: it wakes a task or thread of blitz, or is
 * empty. */
bool bz_waker_is_ours(const blitz_waker *w);
/* The system of the calling thread: its machine's, or that of a plain thread. */
const struct bz_os *bz_os_here(void);
/* The waker of a task; its data is the task. */
extern const blitz_waker_ops bz_task_waker;
/* The clock for a poll with this waker. A plain thread has no timers, so it also polls again by
 * `when`. */
const struct bz_os *bz_waker_by(const blitz_waker *w, uint64_t when);
/* Cancel a future. True: it is pinned, and must be polled until it is ready. False: it may be gone. */
BZ_MUST_USE bool bz_future_cancel(blitz_future *f);

#endif
