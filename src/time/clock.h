/*
 * clock.h - a clock that can be paused: the time of a runtime's timers in a test.
 *
 * A struct bz_os of its own, of which only `now` is there. So a runtime with such a clock and a runtime with the
 * system's clock read the time by the same indirect call: rt->time is the one or the other (proc/state.h).
 *
 *     bz_clock_init(&c, os);               // runs with the system's clock
 *     bz_clock_pause(&c);                  // stands still
 *     bz_clock_set(&c, when);              // stands still at a later moment
 *     bz_clock_resume(&c);                 // runs on from there
 *
 * Any thread may read it. The functions that change it need a lock of the caller's. clock.c has the design.
 */
#ifndef BZ_TIME_CLOCK_H
#define BZ_TIME_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

#include "os/os.h"

/* Later moments do not exist: 146 years after the system's clock began. */
#define BZ_CLOCK_LAST (UINT64_C(1) << 62)

struct bz_clock {
    struct bz_os os;           /* first. Only its name and its `now` are set; constant */
    const struct bz_os *under; /* the system's clock; constant */
    bz_atomic(uint64_t) word;  /* clock.c */
};

void bz_clock_init(struct bz_clock *c, const struct bz_os *under);

static inline uint64_t bz_clock_now(const struct bz_clock *c)
{
    return bz_os_now(&c->os);
}

/* Return true and the moment at which it stands still; false if it runs. */
BZ_MUST_USE bool bz_clock_is_paused(struct bz_clock *c, uint64_t *out_at);

/* Stop a clock that runs. Return the moment at which it stands. */
uint64_t bz_clock_pause(struct bz_clock *c);
/* Move a clock that stands still to a moment that is not earlier, up to BZ_CLOCK_LAST. */
void bz_clock_set(struct bz_clock *c, uint64_t at);
/* Let a clock that stands still run on. */
void bz_clock_resume(struct bz_clock *c);

/* Return when the system's clock will read the moment at which this clock reads `when`: 0 if that has passed,
 * BZ_OS_FOREVER if this clock stands still before it. */
uint64_t bz_clock_to_system(struct bz_clock *c, uint64_t when);

#endif
