/*
 * blitz/combine.h - wait for the first of several futures, for all of them, or not too long.
 *
 * A combinator is a future made of futures (its children). It can be awaited, polled by a stackless task, and be a
 * child itself. The combinator, the list of its children and the children lie in your memory, from init until it is
 * ready or cancelled. With up to BLITZ_OF_MAX children nothing is allocated. With more, the first poll allocates one
 * block, 24 bytes for each child. Then a wake-up polls only the child that was woken, so n children cost 2 * n polls.
 * Without memory for the block each wake-up polls all children. For futures that come and go there is a set:
 * blitz/join_set.h.
 *
 *     blitz_child child[] = {{.future = &answer.future}, {.future = &nap.future}};
 *     blitz_race race;
 *     blitz_race_init(&race, child, 2);
 *     rc = blitz_await(&race.future, BLITZ_FOREVER);       // race.winner is 0 or 1
 *
 * or, from a fiber or a thread, for up to 16, without naming any of it:
 *
 *     int first = BLITZ_FIRST_OF(until, &answer.future, &nap.future);
 *     int err = BLITZ_ALL_OF(until, &a.future, &b.future, &c.future);
 *
 * Once the result of a combinator is decided, the children that are not ready are cancelled by their class
 * (blitz/future.h). Each child's fate is written beside it:
 *   revocable   revoked before the combinator is ready: no message and no permit is lost
 *   detachable  left behind
 *   pinned      asked to stop and waited for. If it completes all the same, its fate is BLITZ_ENDED, also if another
 *               child has won
 * Each child ends in exactly one of BLITZ_ENDED, BLITZ_REVOKED and BLITZ_LEFT. A combinator with a
 * pinned child is pinned itself; else it is detachable if one of them is; else revocable.
 *
 * A child that was never polled is BLITZ_REVOKED, for every class. A race polls its children in turn. If one of them is
 * ready in its first poll, the race does not poll the children after it: a read, for example, has not begun then. The
 * task of a linked join runs on and its handle is yours: blitz_join_future.result is -EINPROGRESS.
 *
 * A child whose `poll` waits (it may) delays the children beside it. Debug builds log that, once for each kind of
 * future.
 */
#ifndef BLITZ_COMBINE_H
#define BLITZ_COMBINE_H

#include <stdbool.h>
#include <stddef.h>

#include "blitz/api.h"
#include "blitz/future.h"
#include "blitz/futures.h"
#include "blitz/time.h"

BLITZ_BEGIN_DECLS

/* The state of a child. */
typedef enum blitz_fate {
    BLITZ_UNASKED = 0, /* not polled yet */
    BLITZ_ASKED,       /* polled, and not ready */
    BLITZ_STOPPING,    /* pinned, was asked to stop, and is not ready */
    BLITZ_ENDED,       /* ready: its fields have the result */
    BLITZ_REVOKED,     /* undone: nothing has happened, nothing will */
    BLITZ_LEFT         /* it continues without the combinator */
} blitz_fate;

typedef struct blitz_child {
    blitz_future *future; /* set this */
    blitz_fate fate;      /* read this when the combinator is ready or cancelled */
} blitz_child;

/* ---- the first ---- */

typedef struct blitz_race {
    blitz_future future; /* to be awaited; its output is the winner's */
    size_t winner;       /* when ready: the index of the child; the number of children if none */
    size_t first;        /* the child to poll first; 0 unless set: earlier ones win ties (with more
                          * than BLITZ_OF_MAX children: in the first poll) */
    blitz_child *child;
    size_t count;
    size_t open; /* this and the rest: not yours */
    void *list;
    bool is_begun, was_polled_whole;
} blitz_race;

/*
 * Make a race: ready when the first of `count` futures is ready.
 * Owns:     the memory stays the caller's; borrows children and futures until the race is ready or
 *           cancelled. Writes each child's fate.
 * Suspends: never. Call from any thread.
 * Returns:  0, -EINVAL (no children, or a child without a future).
 */
BLITZ_API int blitz_race_init(blitz_race *race, blitz_child *child, size_t count);

/* ---- all of them ---- */

typedef enum blitz_all_mode {
    BLITZ_FAIL_FAST = 0, /* the first negative output ends it; the rest are cancelled */
    BLITZ_COLLECT = 1    /* it is ready when every child is */
} blitz_all_mode;

typedef struct blitz_all {
    blitz_future future; /* to be awaited */
    int result;          /* when ready: 0, or the output of the child that failed first */
    blitz_all_mode mode;
    size_t failed; /* the index of that child; the number of children if none */
    blitz_child *child;
    size_t count;
    size_t open; /* this and the rest: not yours */
    void *list;
    bool is_begun, was_polled_whole;
} blitz_all;

/*
 * Make an all: ready when all of `count` futures are ready; with no futures, at once.
 * Owns:     as blitz_race_init().
 * Suspends: never. Call from any thread.
 * Returns:  0, -EINVAL (a child without a future, no such mode).
 */
BLITZ_API int blitz_all_init(blitz_all *all, blitz_child *child, size_t count, blitz_all_mode mode);

/* ---- not too long ---- */

typedef struct blitz_timeout {
    blitz_future future; /* to be awaited */
    int result;          /* when ready: the child's output, or -ETIMEDOUT */
    blitz_child child; /* its fate: BLITZ_ENDED beside -ETIMEDOUT is a pinned one that completed */
    blitz_sleep_future timer;
} blitz_timeout;

/*
 * Limit a future by a deadline. A future that is ready at the deadline counts as ready.
 * Owns:     borrows `f` until the timeout is ready or cancelled.
 * Suspends: never. Call from any thread.
 * Returns:  0, -EINVAL (no future).
 */
BLITZ_API int blitz_timeout_init(blitz_timeout *t, blitz_future *f, blitz_deadline until);

/* ---- in one call ---- */

/* The most futures for the two calls below; for more use a blitz_race or a blitz_all of your own. */
#define BLITZ_OF_MAX 16

/*
 * Wait for the first of up to BLITZ_OF_MAX futures, and cancel the others.
 * Owns:     borrows the futures until it returns.
 * Suspends: until one is ready (and pinned losers are), `until`, or a cancel of the calling task.
 *           Call from anywhere; a plain thread sleeps.
 * Returns:  the index of the winner, from 0; -ETIMEDOUT, -ECANCELED: none, all were cancelled; -EINVAL: no futures, or
 *           too many.
 */
BLITZ_API BLITZ_SUSPENDS int blitz_first_of(blitz_future *const *futures, size_t count,
                                            blitz_deadline until);

/*
 * Wait for all of up to BLITZ_OF_MAX futures. If one fails, cancel the others.
 * Owns:     borrows the futures until it returns.
 * Suspends: as blitz_first_of().
 * Returns:  0; the output of the first that failed; -ETIMEDOUT, -ECANCELED: the futures that were not ready were
 *           cancelled; -EINVAL: too many.
 */
BLITZ_API BLITZ_SUSPENDS int blitz_all_of(blitz_future *const *futures, size_t count,
                                          blitz_deadline until);

/* Both calls with the futures as arguments (C only; in C++ make an array). The deadline comes first, because the number
 * of futures varies. */
#define BLITZ_FIRST_OF(until, ...)                       \
    blitz_first_of((blitz_future *const[]){__VA_ARGS__}, \
                   sizeof((blitz_future *const[]){__VA_ARGS__}) / sizeof(blitz_future *), (until))
#define BLITZ_ALL_OF(until, ...)                       \
    blitz_all_of((blitz_future *const[]){__VA_ARGS__}, \
                 sizeof((blitz_future *const[]){__VA_ARGS__}) / sizeof(blitz_future *), (until))

BLITZ_END_DECLS

#endif
