/*
 * blitz/retry.h - try again after a pause that grows.
 *
 * A server that is down, a lock of another process, a full disk: trying again at once makes it worse, and many callers
 * that try again at the same moment make it worse still. So each pause is twice as long as the one before, and a
 * random part of it is left out.
 *
 *     static int get(void *page) { return fetch(page); }          // 0, or an error
 *     rc = blitz_retry(get, page, NULL, blitz_after(30 * BLITZ_S));
 *
 * Or with the pauses alone, around a loop of your own:
 *
 *     blitz_backoff pause;
 *     blitz_backoff_init(&pause, NULL);
 *     while ((rc = fetch(page)) == -ECONNREFUSED && blitz_backoff_wait(&pause, until) == 0)
 *         ;
 *
 * A stackless task awaits blitz_sleep_until_future_init() with blitz_backoff_next().
 */
#ifndef BLITZ_RETRY_H
#define BLITZ_RETRY_H

#include <stdbool.h>
#include <stdint.h>

#include "blitz/api.h"
#include "blitz/time.h"

BLITZ_BEGIN_DECLS

/* A zeroed struct, or NULL, is a good default. */
typedef struct blitz_backoff_opts {
    blitz_duration first; /* the first pause at its longest; 0: 100 ms */
    blitz_duration most;  /* the longest pause; 0: 30 s. Raised to `first` if it is less */
    unsigned tries_max;   /* tries in all, the first included; 0: no limit */
    bool is_exact;        /* leave out no random part */
    /* For blitz_retry(): is another try worth while after the result rc? NULL: after every error but
     * -ECANCELED and -EINVAL. */
    bool (*is_worth)(int rc, void *arg);
} blitz_backoff_opts;

/* The memory is yours; its fields are not. One task or thread may use it at a time. */
typedef struct blitz_backoff {
    blitz_backoff_opts opts;
    unsigned tries; /* that have failed since the last reset */
    uint64_t random;
} blitz_backoff;

/*
 * Begin with the first pause; reset does so again, after a success.
 * Owns:     copies *opts; NULL: the defaults.
 * Suspends: never. Call from any thread.
 */
BLITZ_API void blitz_backoff_init(blitz_backoff *b, const blitz_backoff_opts *opts);
BLITZ_API void blitz_backoff_reset(blitz_backoff *b);

/*
 * Count a try that has failed, and return how long to pause before the next one: between half of the pause and all of
 * it, unless is_exact is set.
 * Owns:     borrows b until it returns.
 * Suspends: never. Call from any thread.
 * Returns:  the pause; BLITZ_FOREVER if that was the last try.
 */
BLITZ_API blitz_duration blitz_backoff_next(blitz_backoff *b);

/*
 * Count a try that has failed, and pause.
 * Owns:     borrows b until it returns.
 * Suspends: until the next try is due, or a cancel. Call from anywhere; a plain thread sleeps.
 * Returns:  0; -ETIMEDOUT, at once: that was the last try, or the next one is due after `until`; -ECANCELED.
 */
BLITZ_API BLITZ_SUSPENDS BLITZ_MUST_USE int blitz_backoff_wait(blitz_backoff *b,
                                                               blitz_deadline until);

/*
 * Call fn until it succeeds (returns 0 or more) or another try is not worth while, with pauses in between.
 * Owns:     borrows arg and opts until it returns.
 * Suspends: in the pauses, and where fn does. Call from anywhere.
 * Returns:  the last result of fn; -ECANCELED (cancelled in a pause).
 */
BLITZ_API BLITZ_SUSPENDS BLITZ_MUST_USE int
blitz_retry(int (*fn)(void *arg), void *arg, const blitz_backoff_opts *opts, blitz_deadline until);

BLITZ_END_DECLS

#endif
