/*
 * blitz/time.h - when.
 *
 * Times are nanoseconds on a clock that only goes forward and has no date. Whatever can wait takes
 * an absolute deadline, so that a deadline can be passed down through a dozen calls and still mean
 * the same moment. BLITZ_FOREVER never comes; 0, or any moment that is past, means "do not wait".
 */
#ifndef BLITZ_TIME_H
#define BLITZ_TIME_H

#include <stdint.h>

#include "blitz/api.h"

BLITZ_BEGIN_DECLS

typedef uint64_t blitz_deadline;

#define BLITZ_FOREVER UINT64_MAX
#define BLITZ_US UINT64_C(1000)
#define BLITZ_MS UINT64_C(1000000)
#define BLITZ_S UINT64_C(1000000000)

/*
 * Now. In a task it is its runtime's clock (virtual in a simulation), elsewhere the system's.
 * Suspends: never. Call from any thread.
 * Returns:  nanoseconds, never BLITZ_FOREVER.
 */
BLITZ_API uint64_t blitz_now(void);

/*
 * The moment `ns` from now; BLITZ_FOREVER if that is beyond what the clock can count.
 * Suspends: never. Call from any thread.
 * Returns:  the deadline.
 */
BLITZ_API blitz_deadline blitz_after(uint64_t ns);

/*
 * Sleep until a moment.
 * Suspends: until then, or a cancel. Call from a task; a plain thread sleeps itself.
 * Returns:  0, -ECANCELED.
 */
BLITZ_API BLITZ_SUSPENDS int blitz_sleep_until(blitz_deadline when);

/*
 * Sleep for a while.
 * Suspends: for `ns`, or until a cancel. Call from a task; a plain thread sleeps itself.
 * Returns:  0, -ECANCELED.
 */
BLITZ_API BLITZ_SUSPENDS int blitz_sleep(uint64_t ns);

BLITZ_END_DECLS

#endif
