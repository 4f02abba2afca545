/*
 * blitz/yield.h - a long computation that looks up: BLITZ_POLL().
 *
 *     for (size_t i = 0; i < n; i++) {
 *         BLITZ_POLL();
 *         sum += weigh(&item[i]);
 *     }
 *
 * A task that computes for long is not in anybody's way: its worker's other tasks go on on another
 * thread. But threads that burn share the CPUs, and there is a limit on them. A loop that polls makes
 * room by itself: when its task has had the worker for about 10 ms, the runtime raises a flag, and
 * the next BLITZ_POLL() lets those go first that are ready. Unless the flag is up, it is two loads
 * and two branches, about a nanosecond: a loop of a few instructions becomes 1.0 to 2.3 times as
 * long, one with a call in it does not notice. The calls of blitz that may wait look at the flag as
 * well.
 *
 * The limits:
 *   - It is a place at which the task may continue on another thread, as any call marked
 *     BLITZ_SUSPENDS: see blitz/task.h for what that means. So not while holding a pthread mutex.
 *   - Between blitz_preempt_pause() and blitz_preempt_resume() it does nothing.
 *   - A program that forgets it is as it was: nothing depends on loops that poll. For loops that
 *     cannot be changed see blitz/reductions.h.
 */
#ifndef BLITZ_YIELD_H
#define BLITZ_YIELD_H

#include "blitz/api.h"
#include "blitz/fork.h"

BLITZ_BEGIN_DECLS

/* The long way. Not for programs. */
BLITZ_API BLITZ_SUSPENDS BLITZ_COLD_ void blitz_poll_slow_(void);

/* What BLITZ_POLL() is. Not for programs. */
static inline BLITZ_WHOLE_ BLITZ_SUSPENDS void blitz_poll_(void)
{
    struct blitz_worker_ *w = blitz_worker_();
    if (w == NULL)
        return;
    if (BLITZ_LIKELY_(BLITZ_PEEK_(&w->asked_) == 0 &&
                      (w->newest_ == 0 || BLITZ_PEEK_(&w->attention_) == 0)))
        return;
    blitz_poll_slow_();
}

/*
 * Look up from a computation: others go first if this task has had its turn, and jobs it has
 * forked can be taken by who has nothing to do.
 * Suspends: until the others that were ready have had a turn, if the task was asked; else never. On
 *           a plain thread it does nothing.
 */
#define BLITZ_POLL() blitz_poll_()

/*
 * Between pause and resume nothing takes the calling thread away from its task: BLITZ_POLL() goes
 * on, reductions (blitz/reductions.h) are not acted upon, and a thread that has lost its proc is not
 * stopped to take turns with others (docs/what-can-stop-whom.md). For a stretch that holds a lock blitz knows nothing of, or relies on a
 * thread-local. They nest. The task must not wait in between. On a plain thread they do nothing.
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
