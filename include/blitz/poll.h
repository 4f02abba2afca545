/*
 * blitz/poll.h - stackless tasks: a struct and a function, about a hundred bytes each.
 *
 * A stackless task is a struct of yours, its state, and a `poll` function. The runtime calls poll(state, cx), which
 * goes as far as it can. To wait, it makes sure that a clone of cx->waker will be woken, and returns BLITZ_PENDING. To
 * end the task, it returns BLITZ_READY. Between two calls the task has no stack. Everything else is as with other
 * tasks: the same queues, handles, joins, cancels, names.
 *
 * Written by hand, such functions are state machines. With the macros below they read like straight-line code:
 *
 *     struct tick {
 *         blitz_frame frame;          // where it continues
 *         blitz_sleep_future nap;     // the future it waits for
 *         int left;
 *     };
 *
 *     static blitz_poll tick(void *state, blitz_cx *cx)
 *     {
 *         struct tick *me = state;
 *         int rc;                                // locals: set after an await, used before the next
 *         BLITZ_BEGIN(&me->frame, cx);
 *         while (me->left-- > 0) {
 *             BLITZ_SLEEP(rc, &me->nap, 10 * BLITZ_MS);
 *             if (rc < 0)
 *                 BLITZ_RETURN(rc);              // -ECANCELED
 *             puts("tick");
 *         }
 *         BLITZ_END(0);
 *     }
 *
 *     struct tick state = {.left = 3};
 *     blitz_spawn_poll(tick, &state, sizeof state, NULL, &task);
 *
 * Rules of the macros:
 *   - A local variable does not survive an await: keep such values in the state. (C++ refuses to jump over an
 *     initialised variable. C does not, so declare locals before BLITZ_BEGIN.)
 *   - An await must not be inside a `switch` of yours; loops and ifs are fine. An await inside a switch aborts at the
 *     first resume, with a message.
 *   - One await a line: two do not compile.
 *   - A `break` outside of any loop leaves for BLITZ_END.
 *
 * A cancel calls the poll once more: the await in it gets -ECANCELED, and a poll written by hand checks
 * blitz_is_cancelled(). As with any task a cancel is a request: the task ends by returning BLITZ_READY.
 *
 * A poll may also call any function marked BLITZ_SUSPENDS and wait in it. Then the task keeps a stack while it waits.
 * Such a wait may consume a wake-up that was meant for the poll. So a poll that has waited and then returns
 * BLITZ_PENDING is called once more soon. A poll that waits in every call is called again and again: make it a fiber
 * instead.
 */
#ifndef BLITZ_POLL_H
#define BLITZ_POLL_H

#include <stdbool.h>
#include <stddef.h>

#include "blitz/api.h"
#include "blitz/future.h"
#include "blitz/futures.h"
#include "blitz/task.h"

BLITZ_BEGIN_DECLS

/* The second argument of a poll. Valid until the poll returns. */
typedef struct blitz_cx {
    const blitz_waker *waker; /* the task's: clone it to keep it */
    int result;               /* the task's result if the poll returns BLITZ_READY; 0 unless set */
    bool again;               /* see blitz_cx_yield() */
    void *pointer;            /* the result for blitz_task_join_ptr(); NULL unless set */
} blitz_cx;

/* The maximum size of a state; put more behind a pointer. A state of up to about 350 bytes lies in the task itself. */
#define BLITZ_STATE_MAX 65536

/*
 * Start a stackless task.
 * Owns:     copies the state; poll gets a pointer to the copy, which does not move and is aligned as its type needs.
 *           After the poll has returned BLITZ_READY, the task calls opts->drop_state with it. *out is a handle, as with
 *           blitz_spawn().
 * Suspends: never. Call from a task, or from any thread with a runtime in `opts`.
 * Returns:  0, -ENOMEM, -ESHUTDOWN (the runtime is shutting down), -EINVAL (no runtime, no poll, no
 *           such proc, a stack size, or more than BLITZ_STATE_MAX bytes). On error nothing was
 *           started and *out is not written.
 */
BLITZ_API BLITZ_MUST_USE int blitz_spawn_poll(blitz_poll (*poll)(void *state, blitz_cx *cx),
                                              const void *state, size_t state_bytes,
                                              const blitz_spawn_opts *opts, blitz_task **out);

/*
 * Let other ready tasks run first: `return blitz_cx_yield(cx);` in a poll. The poll is called again when the tasks that
 * were ready have had a turn.
 * Owns:     borrows the cx until it returns.
 * Suspends: never. Call from a poll.
 * Returns:  BLITZ_PENDING.
 */
static inline blitz_poll blitz_cx_yield(blitz_cx *cx)
{
    cx->again = true;
    return BLITZ_PENDING;
}

/*
 * Poll a future for the calling poll, under the rules of blitz_await(): the deadline and a cancel of the task apply.
 * BLITZ_AWAIT is made of this.
 * Owns:     borrows the future, and the timer, from the first call to the one that returns BLITZ_READY. `timer` was
 *           initialised with the deadline; NULL: none. Set *outcome to 0 before the first call, and do not touch it
 *           between calls.
 * Suspends: never. Call from a poll with the cx it was given.
 * Returns:  BLITZ_PENDING: return the same. BLITZ_READY: *outcome is 0 (the future's fields have the result),
 *           -ETIMEDOUT or -ECANCELED, as with blitz_await().
 */
BLITZ_API blitz_poll blitz_cx_await(blitz_cx *cx, blitz_future *f, blitz_sleep_future *timer,
                                    int *outcome);

/* The position in a function written with the macros. Zero it to begin; the fields are not yours. */
typedef struct blitz_frame {
    unsigned at;
    int outcome;
} blitz_frame;

/*
 * Abort with a message: the frame names a line that its function does not have. The frame was not zeroed, or the await
 * of that line is inside a switch.
 * Owns:     borrows both until it has aborted.
 * Suspends: never. Call from a poll.
 * Returns:  never.
 */
BLITZ_API blitz_poll blitz_frame_lost(const blitz_frame *frame, const char *function);

#if defined(__GNUC__)
#define BLITZ_FALLS_THROUGH __attribute__((__fallthrough__))
#else
#define BLITZ_FALLS_THROUGH (void)0
#endif

/* Open the body of a poll function, after its declarations. `frame`: blitz_frame *, in the state. */
#define BLITZ_BEGIN(frame, cx)                           \
    blitz_frame *const blitz_frame_ = (frame);           \
    blitz_cx *const blitz_cx_ = (cx);                    \
    switch (blitz_frame_->at) {                          \
    default:                                             \
        return blitz_frame_lost(blitz_frame_, __func__); \
    case 0:

/* Close the body: end the task with a result. The frame is ready to begin again. */
#define BLITZ_END(result_) \
    }                      \
    BLITZ_RETURN(result_)

/* End the task from anywhere inside the body. */
#define BLITZ_RETURN(result_)          \
    do {                               \
        blitz_frame_->at = 0;          \
        blitz_cx_->result = (result_); \
        return BLITZ_READY;            \
    } while (0)

/*
 * Wait for a future that lies in the state (`future`: blitz_future *). rc gets 0 or -ECANCELED. BLITZ_AWAIT_UNTIL also
 * ends at a deadline, with -ETIMEDOUT; `timer` is a blitz_sleep_future * in the state, for its use.
 */
#define BLITZ_AWAIT(rc, future_) BLITZ_AWAIT_BY_(rc, future_, NULL)
#define BLITZ_AWAIT_UNTIL(rc, future_, timer_, until_)     \
    do {                                                   \
        blitz_sleep_until_future_init((timer_), (until_)); \
        BLITZ_AWAIT_BY_(rc, future_, timer_);              \
    } while (0)
#define BLITZ_AWAIT_BY_(rc, future_, timer_)                                          \
    do {                                                                              \
        blitz_frame_->at = __LINE__;                                                  \
        blitz_frame_->outcome = 0;                                                    \
        BLITZ_FALLS_THROUGH;                                                          \
    case __LINE__:                                                                    \
        if (blitz_cx_await(blitz_cx_, (future_), (timer_), &blitz_frame_->outcome) == \
            BLITZ_PENDING)                                                            \
            return BLITZ_PENDING;                                                     \
        (rc) = blitz_frame_->outcome;                                                 \
    } while (0)

/* Sleep. `nap` is a blitz_sleep_future * in the state. rc gets 0, or -ECANCELED. */
#define BLITZ_SLEEP(rc, nap, ns)                               \
    do {                                                       \
        blitz_sleep_until_future_init((nap), blitz_after(ns)); \
        BLITZ_AWAIT_BY_(rc, &(nap)->future, NULL);             \
    } while (0)

/*
 * Join a task. `join` is a blitz_join_future * in the state. As with blitz_task_join() without a deadline, a cancel is
 * passed on to the task, and the join waits for its end. rc gets 0, -EDEADLK or -EINVAL. On 0 the handle is taken, and
 * join->value is the task's result.
 */
#define BLITZ_JOIN(rc, join, task)                          \
    do {                                                    \
        blitz_task_join_linked_future_init((join), (task)); \
        BLITZ_AWAIT_BY_(rc, &(join)->future, NULL);         \
        (rc) = (join)->result;                              \
    } while (0)

/* Let other ready tasks run first. */
#define BLITZ_YIELD()                     \
    do {                                  \
        blitz_frame_->at = __LINE__;      \
        return blitz_cx_yield(blitz_cx_); \
    case __LINE__:;                       \
    } while (0)

/* Wait until `condition` holds. The code that makes it true must wake a clone of cx->waker. */
#define BLITZ_WAIT_FOR(condition)    \
    do {                             \
        blitz_frame_->at = __LINE__; \
        BLITZ_FALLS_THROUGH;         \
    case __LINE__:                   \
        if (!(condition))            \
            return BLITZ_PENDING;    \
    } while (0)

BLITZ_END_DECLS

#endif
