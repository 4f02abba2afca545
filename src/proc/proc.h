/*
 * proc.h - the holder of a proc, and the machines there are.
 *
 * A proc's state is one word: the state, and the machine that it concerns. proc.c has the table of
 * steps. Machines are allocated when a thread is needed and stay until the runtime is released, so that
 * another thread (a thief, a canceller, the monitor) can always read their memory. An unused machine
 * has an empty deque.
 */
#ifndef BZ_PROC_H
#define BZ_PROC_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bz_atomic.h"
#include "base/compiler.h"

struct bz_machine;
struct bz_proc;
struct bz_runtime;

enum bz_proc_state {
    BZ_PROC_FREE = 0, /* no machine; in the idle set: rousing it starts a thread */
    BZ_PROC_ORPHAN,   /* no machine, and no thread could be started; not in the idle set */
    BZ_PROC_STARTING, /* no machine; a thread is being started for it */
    BZ_PROC_ASLEEP,   /* that machine sleeps with it; in the idle set, or claimed out of it */
    BZ_PROC_HELD,     /* that machine runs it */
    BZ_PROC_RETIRED,  /* that machine sleeps and serves it; not in the idle set: retire.c */
    BZ_PROC_UNUSED    /* no machine; not in the idle set: likewise */
};

/* A state word: the state, and the machine's index above it. */
enum { BZ_PROC_STATE_BITS = 8 };

static inline uint32_t bz_proc_word(enum bz_proc_state state, unsigned machine)
{
    return (uint32_t)state | (uint32_t)machine << BZ_PROC_STATE_BITS;
}

static inline enum bz_proc_state bz_proc_state_of(uint32_t word)
{
    return (enum bz_proc_state)(word & ((1u << BZ_PROC_STATE_BITS) - 1));
}

/* All machines that are or were in use. */
struct bz_machines {
    unsigned max;              /* constant after init */
    uint64_t seed;             /* constant after init: seed of the machines' random numbers */
    unsigned made;             /* slots filled; guarded by start_lock */
    bz_atomic(uint32_t) count; /* all machines in use are below; written under start_lock */
    bz_atomic(struct bz_machine *) *slot;
};

BZ_MUST_USE int bz_machines_init(struct bz_runtime *rt, unsigned max, uint64_t seed);
void bz_machines_fini(struct bz_runtime *rt);
/* Return an unused machine, or a new one; NULL: no memory, or the limit is reached. Under
 * start_lock. */
struct bz_machine *bz_machines_take(struct bz_runtime *rt);
/* Return a machine: its thread is done with it. Under start_lock. */
void bz_machines_give(struct bz_runtime *rt, struct bz_machine *m);

/* The number of machines to look at: bz_machines_at(rt, 0..). They stay valid. */
unsigned bz_machines_count(struct bz_runtime *rt);
struct bz_machine *bz_machines_at(struct bz_runtime *rt, unsigned i);

/* True if any machine has an exposed job. For the look before a sleep. */
bool bz_job_is_any(struct bz_runtime *rt);

/* The machine that a state word names. */
struct bz_machine *bz_proc_machine(struct bz_runtime *rt, uint32_t word);

/* Put the machine to sleep with its proc. From here on others may take the proc. */
void bz_proc_lie_down(struct bz_machine *m);
/* Wake the machine up. False: its proc was taken, and it has none. */
BZ_MUST_USE bool bz_proc_get_up(struct bz_machine *m);

/* Record that the monitor took the proc while the machine was in user code. Called by the machine,
 * in bz_enter. */
void bz_proc_lost(struct bz_machine *m);

/*
 * Get a proc for the calling machine, which has none: its old one if no machine runs it, or any that sleeps.
 * In the runtime. Suspends: never.
 */
BZ_MUST_USE bool bz_proc_regain(struct bz_machine *m);

/* Take a proc without a machine. The caller starts a thread for it, or calls bz_proc_abandon. Any
 * thread that has taken it out of the idle set, or the monitor. */
BZ_MUST_USE bool bz_proc_adopt(struct bz_proc *p);
void bz_proc_abandon(struct bz_proc *p);
/* Give the proc to that machine. The starter still owns the machine. */
void bz_proc_give(struct bz_proc *p, struct bz_machine *m);

#endif
