/*
 * blitz/combine.h - wait for the first of several futures, for all of them, or not too long.
 *
 * A combinator is a future made of futures (its children): it can be awaited, polled by a stackless
 * task, and be a child itself. The combinator, the list of its children and the children lie in your
 * memory, from init until it is ready or cancelled. With up to BLITZ_OF_MAX children nothing is allocated.
 * With more, the first poll allocates one block, 24 bytes for each child, and a wake polls the child that
 * was woken: n children cost 2 * n polls, however many they are. Without memory for the block each wake
 * polls all children. For futures that come and go there is a set: blitz/join_set.h.
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
 * When it is decided how a combinator ends, the children that are not ready are given up, by their
 * class (blitz/future.h), and each child's fate is written beside it:
 *   revocable   revoked, before the combinator says that it is ready: no message, no permit is lost
 *   detachable  left behind
 *   pinned      asked to stop and waited for; if it was completed all the same, that is reported:
 *               its fate is BLITZ_ENDED, whoever won
 * Each child ends in exactly one of BLITZ_ENDED, BLITZ_REVOKED and BLITZ_LEFT. A combinator with a
 * pinned child is pinned itself; else it is detachable if one of them is; else revocable.
 *
 * A child that was never polled is BLITZ_REVOKED, whatever its class: a race polls its children in
 * turn, and if one of them is ready in its first poll, it does not poll those behind. A read has not
 * begun then. The task of a linked join runs on and its handle is yours: blitz_join_future.result says
 * so with -EINPROGRESS.
 *
 * A child whose `poll` waits (it may) holds up those beside it. Debug builds say so, once a kind.
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

/* What has become of a child. */
typedef enum blitz_fate {
    BLITZ_UNASKED = 0, /* it was not polled yet */
    BLITZ_ASKED,       /* it was, and is not ready */
    BLITZ_STOPPING,    /* a pinned one that was asked to stop and is not ready */
    BLITZ_ENDED,       /* it is ready: look into it */
    BLITZ_REVOKED,     /* undone: nothing has happened, nothing will */
    BLITZ_LEFT         /* it goes on without us */
} blitz_fate;

typedef struct blitz_child {
    blitz_future *future; /* to be set by you */
    blitz_fate fate;      /* to be read when the combinator is ready or cancelled */
} blitz_child;

/* ---- the first ---- */

typedef struct blitz_race {
    blitz_future future; /* to be awaited; its output is the winner's */
    size_t winner;       /* when ready: which child; the number of children if there is none */
    size_t first;        /* which child is asked first; 0 unless set: earlier ones win ties (of more
                          * than BLITZ_OF_MAX children: in the first poll) */
    blitz_child *child;
    size_t count;
    size_t open; /* this and the rest: not yours */
    void *list;
    bool is_begun, is_asked;
} blitz_race;

/*
 * The first of `count` futures to be ready.
 * Owns:     the memory stays the caller's; borrows children and futures until the race is ready or
 *           cancelled. Writes each child's fate.
 * Suspends: never. Call from any thread.
 * Returns:  0, -EINVAL (no children, or a child without a future).
 */
BLITZ_API int blitz_race_init(blitz_race *race, blitz_child *child, size_t count);

/* ---- all of them ---- */

typedef enum blitz_all_mode {
    BLITZ_FAIL_FAST = 0, /* the first child with a negative output ends it, the rest are given up */
    BLITZ_COLLECT = 1    /* it is ready when every child is */
} blitz_all_mode;

typedef struct blitz_all {
    blitz_future future; /* to be awaited */
    int result;          /* when ready: 0, or the output of the child that failed first */
    blitz_all_mode mode;
    size_t failed; /* which one that was; the number of children if none */
    blitz_child *child;
    size_t count;
    size_t open; /* this and the rest: not yours */
    void *list;
    bool is_begun, is_asked;
} blitz_all;

/*
 * All of `count` futures; none is ready at once.
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
 * A future, until a deadline. One that is ready at the deadline is ready.
 * Owns:     borrows `f` until the timeout is ready or cancelled.
 * Suspends: never. Call from any thread.
 * Returns:  0, -EINVAL (no future).
 */
BLITZ_API int blitz_timeout_init(blitz_timeout *t, blitz_future *f, blitz_deadline until);

/* ---- in one call ---- */

/* So many futures may be given to the two calls below; use a race or an all of yours for more. */
#define BLITZ_OF_MAX 16

/*
 * Wait for the first of up to BLITZ_OF_MAX futures; the others are given up.
 * Owns:     borrows the futures until it returns.
 * Suspends: until one is ready (and pinned losers are), `until`, or a cancel of the calling task.
 *           Call from anywhere; a plain thread sleeps.
 * Returns:  which one, from 0; -ETIMEDOUT, -ECANCELED: none, all were given up; -EINVAL: none given,
 *           or too many.
 */
BLITZ_API BLITZ_SUSPENDS int blitz_first_of(blitz_future *const *futures, size_t count,
                                            blitz_deadline until);

/*
 * Wait for all of up to BLITZ_OF_MAX futures; if one fails the others are given up.
 * Owns:     borrows the futures until it returns.
 * Suspends: as blitz_first_of().
 * Returns:  0; the output of the first that failed; -ETIMEDOUT, -ECANCELED: those that were not
 *           ready were given up; -EINVAL: too many.
 */
BLITZ_API BLITZ_SUSPENDS int blitz_all_of(blitz_future *const *futures, size_t count,
                                          blitz_deadline until);

/* The same with the futures as arguments (C only; in C++ make an array). The deadline comes first, because the number
 * of futures is open. */
#define BLITZ_FIRST_OF(until, ...)                       \
    blitz_first_of((blitz_future *const[]){__VA_ARGS__}, \
                   sizeof((blitz_future *const[]){__VA_ARGS__}) / sizeof(blitz_future *), (until))
#define BLITZ_ALL_OF(until, ...)                       \
    blitz_all_of((blitz_future *const[]){__VA_ARGS__}, \
                 sizeof((blitz_future *const[]){__VA_ARGS__}) / sizeof(blitz_future *), (until))

BLITZ_END_DECLS

#endif
