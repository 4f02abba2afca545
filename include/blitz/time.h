/*
 * blitz/time.h - clocks, durations and deadlines.
 *
 * Times are nanoseconds on a clock that only goes forward and has no date. Every call that can wait takes an absolute
 * deadline, so a deadline can be passed down through a dozen calls and still mean the same moment. BLITZ_FOREVER never
 * comes. 0, or any moment in the past, means "do not wait".
 *
 * Instants, durations and deadlines are the same 64 bits, 584 years of nanoseconds. The functions below neither wrap
 * nor overflow. A result that is too large is BLITZ_FOREVER, one that is too small is 0. BLITZ_FOREVER plus or minus
 * anything is BLITZ_FOREVER. blitz/timer.h has timers that repeat or can be moved.
 */
#ifndef BLITZ_TIME_H
#define BLITZ_TIME_H

#include <stdint.h>

#include "blitz/api.h"

BLITZ_BEGIN_DECLS

typedef uint64_t blitz_instant;  /* a moment: nanoseconds since some moment of the past */
typedef uint64_t blitz_duration; /* how long: nanoseconds */
typedef uint64_t blitz_deadline; /* the moment at which a wait ends; BLITZ_FOREVER: never */

#define BLITZ_FOREVER UINT64_MAX
#define BLITZ_US UINT64_C(1000)
#define BLITZ_MS UINT64_C(1000000)
#define BLITZ_S UINT64_C(1000000000)

/*
 * Multiply a unit of time: blitz_duration_of(90, 60 * BLITZ_S).
 * Suspends: never.
 * Returns:  count * unit, or BLITZ_FOREVER.
 */
static inline blitz_duration blitz_duration_of(uint64_t count, blitz_duration unit)
{
    if (unit == BLITZ_FOREVER || count == BLITZ_FOREVER)
        return BLITZ_FOREVER;
    return unit != 0 && count > BLITZ_FOREVER / unit ? BLITZ_FOREVER : count * unit;
}

/*
 * Add a duration to a moment or to a duration.
 * Suspends: never.
 * Returns:  t + ns, or BLITZ_FOREVER.
 */
static inline uint64_t blitz_time_add(uint64_t t, blitz_duration ns)
{
    return ns < BLITZ_FOREVER - t ? t + ns : BLITZ_FOREVER;
}

/*
 * Subtract a duration from a moment or from a duration.
 * Suspends: never.
 * Returns:  t - ns, or 0; BLITZ_FOREVER if t is that.
 */
static inline uint64_t blitz_time_sub(uint64_t t, blitz_duration ns)
{
    if (t == BLITZ_FOREVER)
        return BLITZ_FOREVER;
    return ns < t ? t - ns : 0;
}

/*
 * Return the time from one moment to another.
 * Suspends: never.
 * Returns:  later - earlier; 0 if `later` is not later; BLITZ_FOREVER if `later` never comes.
 */
static inline blitz_duration blitz_time_between(blitz_instant earlier, blitz_instant later)
{
    return blitz_time_sub(later, earlier);
}

/*
 * Return the earlier of two deadlines, to pass a deadline down into a call with a limit of its own.
 * Suspends: never.
 * Returns:  a or b.
 */
static inline blitz_deadline blitz_deadline_first(blitz_deadline a, blitz_deadline b)
{
    return a < b ? a : b;
}

/*
 * Return the current time. In a task it is the runtime's clock (virtual in a simulation), elsewhere the system's.
 * Suspends: never. Call from any thread.
 * Returns:  nanoseconds, never BLITZ_FOREVER.
 */
BLITZ_API uint64_t blitz_now(void);

/*
 * Return the moment `ns` from now; BLITZ_FOREVER if that is beyond the clock's range.
 * Suspends: never. Call from any thread.
 * Returns:  the deadline.
 */
BLITZ_API blitz_deadline blitz_after(uint64_t ns);

/*
 * Return the time that is left until a deadline.
 * Suspends: never. Call from any thread.
 * Returns:  nanoseconds; 0 if it has passed; BLITZ_FOREVER if it never comes.
 */
BLITZ_API blitz_duration blitz_deadline_left(blitz_deadline d);

/*
 * Return the time at which this worker last read the clock. It is like blitz_now() without the cost of a clock read,
 * for programs that make timeouts by the million. It lags by as long as the calling task has been running, and by a few
 * dozen short runs of other tasks. After a move to another worker, a task may see it step back by as much. On a plain
 * thread it is blitz_now().
 * Suspends: never. Call from any thread.
 * Returns:  nanoseconds, not later than blitz_now().
 */
BLITZ_API blitz_instant blitz_now_roughly(void);

/*
 * Sleep until a moment.
 * Suspends: until then, or a cancel. Call from a task; a plain thread sleeps itself.
 * Returns:  0, -ECANCELED.
 */
BLITZ_API BLITZ_SUSPENDS BLITZ_MUST_USE int blitz_sleep_until(blitz_deadline when);

/*
 * Sleep for a while.
 * Suspends: for `ns`, or until a cancel. Call from a task; a plain thread sleeps itself.
 * Returns:  0, -ECANCELED.
 */
BLITZ_API BLITZ_SUSPENDS BLITZ_MUST_USE int blitz_sleep(uint64_t ns);

BLITZ_END_DECLS

#endif
