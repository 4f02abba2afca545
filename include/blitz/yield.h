/*
 * blitz/yield.h - let a long computation yield: BLITZ_POLL().
 *
 *     for (size_t i = 0; i < n; i++) {
 *         BLITZ_POLL();
 *         sum += weigh(&item[i]);
 *     }
 *
 * A task that computes for long does not block other tasks: they continue on another thread. But threads that compute
 * share the CPUs, and their number is limited. A loop that polls yields by itself. When its task has had the worker for
 * about 10 ms, the runtime raises a flag, and the next BLITZ_POLL() lets other ready tasks run first. If the flag is
 * down, a poll is two loads and two branches, about a nanosecond. A loop of a few instructions becomes 1.0 to 2.3 times
 * as long; a loop with a call in it shows no difference. The calls of blitz that may wait check the flag as well.
 *
 * The limits:
 *   - The task may continue on another thread after it, as after any call marked BLITZ_SUSPENDS: see blitz/task.h for
 *     the consequences. So do not call it while you hold a pthread mutex.
 *   - Between blitz_preempt_pause() and blitz_preempt_resume() it does nothing.
 *   - Polling is optional: nothing depends on it. For loops that cannot be changed see blitz/reductions.h.
 */
#ifndef BLITZ_YIELD_H
#define BLITZ_YIELD_H

#include "blitz/api.h"
#include "blitz/fork.h"

BLITZ_BEGIN_DECLS

/* The slow path. Not for programs. */
BLITZ_API BLITZ_SUSPENDS BLITZ_COLD_ void blitz_poll_slow_(void);

/* The body of BLITZ_POLL(). Not for programs. */
static inline BLITZ_WHOLE_ int blitz_poll_is_due_(void)
{
    struct blitz_worker_ *w = blitz_worker_();
    return w != NULL && !BLITZ_LIKELY_(BLITZ_PEEK_(&w->asked_) == 0 &&
                                       (w->newest_ == 0 || BLITZ_PEEK_(&w->attention_) == 0));
}
static inline BLITZ_WHOLE_ BLITZ_SUSPENDS void blitz_poll_(void)
{
    if (!BLITZ_LIKELY_(!blitz_poll_is_due_()))
        blitz_poll_slow_();
}

/*
 * Poll from within a computation: other tasks run first if this task has used up its turn, and idle workers can take
 * jobs that it has forked.
 * Suspends: until the tasks that were ready have had a turn, if the flag is up; else never. On
 *           a plain thread it does nothing.
 */
#define BLITZ_POLL() blitz_poll_()

/*
 * Between pause and resume nothing takes the calling thread away from its task. BLITZ_POLL() does not yield, and
 * reductions (blitz/reductions.h) have no effect. A thread that has lost its proc is not stopped to take turns with
 * others (docs/what-can-stop-whom.md). For code that holds a lock unknown to blitz, or relies on a thread-local. They
 * nest. The task must not wait in between. On a plain thread they do nothing.
 * Suspends: never.
 */
static inline BLITZ_WHOLE_ void blitz_preempt_pause(void)
{
    struct blitz_worker_ *w = blitz_worker_();
    if (w != NULL)
        w->paused_++;
}
static inline BLITZ_WHOLE_ void blitz_preempt_resume(void)
{
    struct blitz_worker_ *w = blitz_worker_();
    if (w != NULL)
        w->paused_--;
}

BLITZ_END_DECLS

#endif
