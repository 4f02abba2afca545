/*
 * turns.h - hogs that have lost their proc take turns. turns.c has the rules.
 */
#ifndef BZ_TURNS_H
#define BZ_TURNS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"
#include "thread/halt.h"

struct bz_machine;
struct bz_runtime;
struct bz_task;

/* For each machine. */
struct bz_turn {
    struct bz_halt halt;
    bz_atomic(uint32_t) thread;       /* the system's id; 0: no thread. Written by the thread */
    bz_atomic(struct bz_task *) task; /* the task that was stopped last; written by the thread */
    bz_atomic(uint64_t) stopped;      /* how often; written by the thread, for statistics */
    bz_atomic(uint64_t) refused;      /* signals that came at a wrong instruction; likewise */
    uint64_t looks_seen,
        seen_ns; /* the monitor's looks, and when they last changed; the thread's */
    /* The rest is the monitor's. */
    uint64_t since_ns;  /* when it last continued, or was seen stopped */
    uint64_t used_ns;   /* CPU time of its thread when it last continued; 0: not known */
    uint64_t thawed_ns; /* when it last continued after a stop */
    uint64_t sent_ns;   /* the last signal */
    unsigned tries;     /* signals since it was asked */
    bool was_stopped;   /* at the last look */
    bool is_deaf;       /* it could not be stopped the last time */
};

enum { BZ_TURNS_ASKED = 32 };

/* For each runtime. */
struct bz_turns {
    bz_atomic(uint32_t)
        guard; /* 1 + the index of a stopped machine that watches the monitor; 0: none */
    bz_atomic(uint32_t) is_over;    /* 1: shutdown has begun, no hog is stopped */
    bz_atomic(uint32_t) is_refused; /* 1: hogs do not take turns; the monitor's after init */
    bz_atomic(uint64_t) frozen;     /* statistics: machines that are stopped now; the monitor's */
    bz_atomic(uint64_t) thaws; /* statistics: times that all continued at once; the monitor's */
    /* The rest is the monitor's. */
    bool is_watched;       /* the signal handler is installed */
    unsigned cpus;         /* constant after init */
    uint64_t busy_ns;      /* when procs last had work at two looks in a row */
    bool was_busy;         /* they had work at the last look */
    uint64_t thaw_end_ns;  /* until then all hogs run */
    uint64_t thaw_ns;      /* no new thaw before then */
    uint64_t thaw_gap_ns;  /* from one thaw to the next */
    uint64_t held_ns;      /* when a worker was last seen held up */
    uint64_t full_ns;      /* until then only the hogs that were asked are looked at */
    unsigned may, burning; /* at the last look at all hogs: how many may run, and how many burn */
    unsigned asked_count;
    struct bz_machine *asked[BZ_TURNS_ASKED]; /* asked, and not stopped yet */
};

void bz_turns_init(struct bz_runtime *rt);
void bz_turns_fini(struct bz_runtime *rt); /* every machine has left */

/* Called on a thread when it begins to run the machine, and when it ends. */
void bz_turns_enter(struct bz_machine *m);
void bz_turns_leave(struct bz_machine *m);

/* Shutdown: let all hogs run, until `is_over` is cleared. Any thread. */
void bz_turns_end(struct bz_runtime *rt, bool is_over);

/* ---- the monitor ---- */

/*
 * One look: let hogs that have lost their proc run and stop, in turns. `busy` procs have work. If a worker is held up
 * (`is_held_up`), let all hogs run for a while, because one of them may hold a lock that the worker waits for.
 * Returns: when to look again; BZ_OS_FOREVER if there is no need.
 */
uint64_t bz_turns_take(struct bz_runtime *rt, uint64_t now, unsigned busy, bool is_held_up);

/* How many machines are stopped. */
static inline unsigned bz_turns_frozen(struct bz_turns *t)
{
    return (unsigned)bz_load_relaxed(&t->frozen); /* relaxed: one writer */
}

/* True if hogs do not take turns here, by configuration or because threads cannot be
 * interrupted. */
static inline bool bz_turns_are_refused(struct bz_turns *t)
{
    return bz_load_relaxed(&t->is_refused) != 0; /* relaxed: a hint to all but the monitor */
}

/* ---- the parts, for tests ---- */

/* Ask the machine's thread to stop, and interrupt it. Repeat until it has stopped. */
void bz_turns_stop(struct bz_machine *m, uint64_t now);
void bz_turns_go(struct bz_machine *m, uint64_t now);
/* Called by the interrupt. */
void bz_turns_interrupted(uintptr_t pc);
/* The policy over given machines, of which `allowed` may run. */
uint64_t bz_turns_rotate(struct bz_runtime *rt, uint64_t now, struct bz_machine **hogs, unsigned n,
                         unsigned allowed);

#endif
