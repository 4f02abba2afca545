/*
 * preempt.h - stopping threads that burn, in turns. preempt.c has the rules, blitz/preempt.h the limits.
 */
#ifndef BZ_PREEMPT_H
#define BZ_PREEMPT_H

#include <stdbool.h>
#include <stdint.h>

#include "blitz/preempt.h"
#include "sched/halt.h"

struct bz_machine;
struct bz_runtime;

/* What a machine has of it. */
struct bz_preempt_seat {
    struct bz_halt halt;
    bz_atomic(uint32_t) thread;  /* its kernel's id; 0: no thread. Written by the thread */
    bz_atomic(uint64_t) stopped; /* how often; the thread's, for statistics */
    bz_atomic(uint64_t) refused; /* signals that came at a wrong place; likewise */
    /* The rest is the monitor's. */
    uint64_t since_ns; /* when it last went on, or was seen to be stopped */
    uint64_t sent_ns;  /* the last signal */
    uint64_t asked_ns; /* the first one of this stop */
    uint64_t late;     /* stops that came later than a slice after that, so far */
    unsigned tries;    /* signals since it was asked */
    bool was_stopped;  /* when last looked at */
    uint64_t seen_ns;  /* at which look it was last seen to burn */
};

/* Nothing if the settings do not ask for it. Returns: 0, -ENOSYS (not to be had here), -errno. */
BZ_MUST_USE int bz_preempt_init(struct bz_runtime *rt);
void bz_preempt_fini(struct bz_runtime *rt); /* every machine has gone */

/* A thread begins to run the machine, and ends. On it. */
void bz_preempt_sit(struct bz_machine *m);
void bz_preempt_rise(struct bz_machine *m);

/* ---- the monitor ---- */

/* It shall stop: ask, and send the signal. To be repeated until it has. */
void bz_preempt_stop(struct bz_machine *m, uint64_t now);
void bz_preempt_go(struct bz_machine *m, uint64_t now);
bool bz_preempt_is_stopped(struct bz_machine *m);
/* Was it stopped, asked or let go within a slice? Then its thread's CPU time says little. */
bool bz_preempt_has_turn(struct bz_machine *m, uint64_t now);

/*
 * One look at the machines that burn: n of them, of which `allowed` may, in turns. Call it with n = 0
 * or a machine less when that has come back: machines that are not among hogs[] are left as they are,
 * so whoever leaves the list is let go by the caller first.
 * Returns: when to look again; BZ_OS_FOREVER if there is no need.
 */
uint64_t bz_preempt_rotate(struct bz_runtime *rt, uint64_t now, struct bz_machine **hogs,
                           unsigned n, unsigned allowed);

#endif
