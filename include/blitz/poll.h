/*
 * blitz/poll.h - stackless tasks: a struct and a function, about a hundred bytes each.
 *
 * A stackless task is a state of yours and a `poll` function. The runtime calls poll(state, cx); it
 * goes as far as it can and says BLITZ_PENDING, having seen to it that somebody holds a clone of
 * cx->waker and will wake it, or BLITZ_READY, and the task has ended. Between two calls it has no
 * stack. Everything else is as with other tasks: the same queues, handles, joins, cancels, names.
 *
 * Written by hand such functions are state machines. With the macros below they read like
 * straight code:
 *
 *     struct tick {
 *         blitz_frame frame;          // where it goes on
 *         blitz_sleep_future nap;     // what it waits for
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
 *   - A local variable does not survive an await: keep in the state what must. (C++ refuses to jump
 *     over an initialised one; C does not, so declare locals before BLITZ_BEGIN.)
 *   - An await must not stand inside a `switch` of yours; loops and ifs are fine. One inside a
 *     switch aborts at the first resume, and says so.
 *   - One await a line: two do not compile.
 *   - A `break` outside of any loop leaves for BLITZ_END.
 *
 * A cancel calls the poll once more: the await in it gets -ECANCELED, and a poll written by hand asks
 * blitz_is_cancelled(). As with any task it is a request: the task ends by saying BLITZ_READY.
 *
 * A poll may also wait in the ordinary way, with any function marked BLITZ_SUSPENDS: nothing is
 * forbidden in it. Then it keeps a stack while it waits. Such a wait may take a wake that was meant
 * for the poll; so a poll that waited and then says BLITZ_PENDING is called once more soon. One that
 * waits in every call is called in turns for ever: it is better off as a fiber.
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

/* What a poll is given besides its state. Valid until it returns. */
typedef struct blitz_cx {
    const blitz_waker *waker; /* the task's: clone it to keep it */
    int result;               /* what a join gets, if the poll says BLITZ_READY; 0 unless set */
    bool again;               /* see blitz_cx_yield() */
    void *pointer;            /* set it for a result that blitz_task_join_ptr() gets; else NULL */
} blitz_cx;

/* A state may be this large; put more behind a pointer. Up to about 350 bytes it lies in the task
 * itself. */
#define BLITZ_STATE_MAX 65536

/*
 * Start a stackless task.
 * Owns:     copies the state; poll gets a pointer to the copy, which stays where it is and is
 *           aligned as its type needs. When the poll has said BLITZ_READY, opts->drop_state is
 *           called with it, in the task. *out is a handle, as with blitz_spawn().
 * Suspends: never. Call from a task, or from any thread with a runtime in `opts`.
 * Returns:  0, -ENOMEM, -ESHUTDOWN (the runtime is shutting down), -EINVAL (no runtime, no poll, no
 *           such proc, a stack size, or more than BLITZ_STATE_MAX bytes). On error nothing was
 *           started and *out is not written.
 */
BLITZ_API BLITZ_MUST_USE int blitz_spawn_poll(blitz_poll (*poll)(void *state, blitz_cx *cx),
                                              const void *state, size_t state_bytes,
                                              const blitz_spawn_opts *opts, blitz_task **out);

/*
 * Let others run first: `return blitz_cx_yield(cx);` in a poll. It is called again when those that
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
 * Ask a future on behalf of the calling poll, with blitz_await's manners: the deadline and a cancel
 * of the task are heeded. This is what BLITZ_AWAIT is made of.
 * Owns:     borrows the future, and the timer, from the first call to the one that says
 *           BLITZ_READY. `timer` was initialised with the deadline; NULL: none. *outcome was 0 at
 *           the first call, and is not touched between calls.
 * Suspends: never. Call from a poll with the cx it was given.
 * Returns:  BLITZ_PENDING: say the same. BLITZ_READY: *outcome is 0 (look into the future),
 *           -ETIMEDOUT or -ECANCELED, as with blitz_await().
 */
BLITZ_API blitz_poll blitz_cx_await(blitz_cx *cx, blitz_future *f, blitz_sleep_future *timer,
                                    int *outcome);

/* Where a function written with the macros goes on. Zero it to begin; the fields are not yours. */
typedef struct blitz_frame {
    unsigned at;
    int outcome;
} blitz_frame;

/*
 * A frame says to go on at a line its function does not have: it was not zeroed, or the await of
 * that line stands inside a switch. Aborts and says so.
 * Owns:     borrows both until it has said so.
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

/* Close it: the end of the task, and its result. The frame is ready to begin again. */
#define BLITZ_END(result_) \
    }                      \
    BLITZ_RETURN(result_)

/* End from anywhere inside. */
#define BLITZ_RETURN(result_)          \
    do {                               \
        blitz_frame_->at = 0;          \
        blitz_cx_->result = (result_); \
        return BLITZ_READY;            \
    } while (0)

/*
 * Wait for a future that lies in the state (`future`: blitz_future *). rc gets 0, or -ECANCELED.
 * BLITZ_AWAIT_UNTIL also gives up at a deadline, with -ETIMEDOUT; `timer` is a blitz_sleep_future *
 * in the state for it to use.
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
 * Join a task. `join` is a blitz_join_future * in the state. As with blitz_task_join() without a
 * deadline a cancel is passed on to the task, and the join waits for its end. rc gets 0 (the handle
 * is taken, join->value is what the task returned), or -EDEADLK, -EINVAL.
 */
#define BLITZ_JOIN(rc, join, task)                          \
    do {                                                    \
        blitz_task_join_linked_future_init((join), (task)); \
        BLITZ_AWAIT_BY_(rc, &(join)->future, NULL);         \
        (rc) = (join)->result;                              \
    } while (0)

/* Let others run first. */
#define BLITZ_YIELD()                     \
    do {                                  \
        blitz_frame_->at = __LINE__;      \
        return blitz_cx_yield(blitz_cx_); \
    case __LINE__:;                       \
    } while (0)

/* Be called until `condition` holds; whoever makes it true must wake a clone of cx->waker. */
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
