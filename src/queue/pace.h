/*
 * pace.h - how often a busy proc checks the injector.
 *
 * A proc that keeps itself busy must check the injector now and then, or tasks there wait for ever. A
 * check that comes too often touches a shared cache line for nothing. The right measure is time: about once a
 * millisecond. But reading the clock at every run is too expensive. So the proc counts runs, and reads the clock only
 * when it checks: from the duration of the runs it learns how many fit into the next millisecond.
 *
 *     every = clamp(1 ms / average run, 8, 255)
 *
 * The average is a moving one: each run counts a tenth, and the older average nine tenths. So n
 * runs that took `mean` each leave 0.9^n of the old average, and a proc that turns from short tasks
 * to long ones has learnt it by its first check. A mean above a millisecond counts as one: `every` is
 * at its minimum there, and one hog should not keep it there for long.
 *
 * Rejected: a fixed number (61 runs are 3 us or 60 ms); a tenth a *look* (seven looks, each of up to
 * 255 of the new, long runs, until it has settled).
 *
 * It has no access to a clock or a proc: the caller passes tick and time. Not shared; only its proc's machine
 * uses it.
 *
 * Before the first check a run is assumed to last 50 us.
 *
 * I1  BZ_PACE_MIN <= every <= BZ_PACE_MAX
 */
#ifndef BZ_PACE_H
#define BZ_PACE_H

#include <stdbool.h>
#include <stdint.h>

enum {
    BZ_PACE_MIN = 8,
    BZ_PACE_MAX = 255,
    BZ_PACE_FIRST = 20,
    BZ_PACE_SHORT = 32,
    BZ_PACE_FINE = 256 /* an average is in 1/256 ns, so that runs of a few ns have one */
};

struct bz_pace {
    uint64_t average;    /* of a run, in 1/256 ns */
    uint64_t at_ns;      /* when the current stretch began */
    uint32_t at_tick;    /* likewise */
    uint32_t every;      /* runs between two checks */
    uint32_t due;        /* runs until the next check: every, or 1 after bz_pace_hurry */
    uint32_t short_runs; /* in stretches that ended without work, and not learnt from yet */
    uint64_t short_ns;   /* ... and their time */
};

/* Initialize for a proc that has run nothing yet. */
void bz_pace_init(struct bz_pace *p, uint32_t tick, uint64_t now_ns);

/* True if it is time to check. */
static inline bool bz_pace_is_due(const struct bz_pace *p, uint32_t tick)
{
    return tick - p->at_tick >= p->due;
}

/* A check: learn from the runs since the last one, and begin a new stretch. */
void bz_pace_look(struct bz_pace *p, uint32_t tick, uint64_t now_ns);

/* Check again after the next run: an urgent task waits. */
static inline void bz_pace_hurry(struct bz_pace *p)
{
    p->due = 1;
}

/* The proc has nothing to run: the stretch ends. Stretches may be short, so learn from several at
 * once. */
static inline void bz_pace_pause(struct bz_pace *p, uint32_t tick, uint64_t now_ns)
{
    p->short_runs += tick - p->at_tick;
    p->short_ns += now_ns - p->at_ns;
    p->at_tick = tick;
    p->at_ns = now_ns;
    if (p->short_runs >= BZ_PACE_SHORT)
        bz_pace_look(p, tick, now_ns);
}

/* The proc was idle: the time since the last check was not run time. Begin a new stretch. */
void bz_pace_restart(struct bz_pace *p, uint32_t tick, uint64_t now_ns);

/* The estimated time of so many runs. */
static inline uint64_t bz_pace_takes_ns(const struct bz_pace *p, unsigned runs)
{
    return p->average * runs / BZ_PACE_FINE;
}

/* Check I1. Aborts with what it saw. */
void bz_pace_check(const struct bz_pace *p);

#endif
