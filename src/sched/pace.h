/*
 * pace.h - how often a busy proc looks at the injector.
 *
 * A proc that keeps itself busy must look there now and then, or what waits there waits for ever; a
 * look that comes too often is a shared cache line for nothing. What counts is time: about once a
 * millisecond. But a clock read a run is too dear, so the proc counts runs and asks the clock only
 * when it looks: from how long the runs took it learns how many go into the next millisecond.
 *
 *     every = clamp(1 ms / average run, 8, 255)
 *
 * The average is a moving one in which each run counts a tenth and what came before nine tenths. So n
 * runs that took `mean` each leave 0.9^n of the old average, and a proc that turns from short tasks
 * to long ones has learnt it by its first look. A mean above a millisecond counts as one: `every` is
 * at its least there, and one hog should not keep it there for long.
 *
 * Rejected: a fixed number (61 runs are 3 us or 60 ms); a tenth a *look* (seven looks, each of up to
 * 255 of the new, long runs, until it has settled).
 *
 * It knows no clock and no proc: told tick and time, it answers. Not shared; its proc's machine alone
 * uses it.
 *
 * Before the first look a run is taken to last 50 us.
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
    BZ_PACE_FINE = 256 /* an average is in 1/256 ns: runs of a few ns have one, too */
};

struct bz_pace {
    uint64_t average;    /* of a run, in 1/256 ns */
    uint64_t at_ns;      /* when the current stretch began */
    uint32_t at_tick;    /* likewise */
    uint32_t every;      /* runs between two looks */
    uint32_t due;        /* runs until the next one: every, or 1 after bz_pace_hurry */
    uint32_t short_runs; /* in stretches that ended with nothing to run, and not learnt from yet */
    uint64_t short_ns;   /* ... and what they took */
};

/* A proc that has run nothing yet. */
void bz_pace_init(struct bz_pace *p, uint32_t tick, uint64_t now_ns);

/* Is it time to look? */
static inline bool bz_pace_is_due(const struct bz_pace *p, uint32_t tick)
{
    return tick - p->at_tick >= p->due;
}

/* A look: learn from the runs since the last one, and begin a new stretch. */
void bz_pace_look(struct bz_pace *p, uint32_t tick, uint64_t now_ns);

/* Look again after the next run: something urgent waits. */
static inline void bz_pace_hurry(struct bz_pace *p)
{
    p->due = 1;
}

/* The proc has nothing to run: the stretch ends. Stretches may be short, so several are learnt from at once. */
static inline void bz_pace_pause(struct bz_pace *p, uint32_t tick, uint64_t now_ns)
{
    p->short_runs += tick - p->at_tick;
    p->short_ns += now_ns - p->at_ns;
    p->at_tick = tick;
    p->at_ns = now_ns;
    if (p->short_runs >= BZ_PACE_SHORT)
        bz_pace_look(p, tick, now_ns);
}

/* The proc was idle: what passed since the last look was not run time. Begin a new stretch. */
void bz_pace_restart(struct bz_pace *p, uint32_t tick, uint64_t now_ns);

/* How long so many runs take, by what is known. */
static inline uint64_t bz_pace_takes_ns(const struct bz_pace *p, unsigned runs)
{
    return p->average * runs / BZ_PACE_FINE;
}

/* I1. Aborts with what it saw. */
void bz_pace_check(const struct bz_pace *p);

#endif
