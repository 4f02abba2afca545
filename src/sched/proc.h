/*
 * proc.h - who holds a proc, and the machines there are.
 *
 * A proc's state is one word: what it is, and which machine that concerns. proc.c has the table of
 * steps. Machines are made when a thread is needed and stay until the runtime is released, so that
 * whoever looks at one (a thief, a canceller, the monitor) finds memory there; one that is not used
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
    BZ_PROC_FREE = 0, /* no machine; in the idle set: to rouse it is to start a thread */
    BZ_PROC_ORPHAN,   /* no machine, and no thread was to be had; not in the idle set */
    BZ_PROC_STARTING, /* no machine; a thread is being started for it */
    BZ_PROC_ASLEEP,   /* that machine sleeps with it; in the idle set, or claimed out of it */
    BZ_PROC_HELD      /* that machine runs it */
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
    uint64_t seed;             /* constant after init: of the machines' random numbers */
    unsigned made;             /* slots filled; guarded by start_lock */
    bz_atomic(uint32_t) count; /* those in use are below; written under start_lock */
    bz_atomic(struct bz_machine *) *slot;
};

BZ_MUST_USE int bz_machines_init(struct bz_runtime *rt, unsigned max, uint64_t seed);
void bz_machines_fini(struct bz_runtime *rt);
/* One nobody uses, or a new one; NULL: no memory, or as many as may be. Under start_lock. */
struct bz_machine *bz_machines_take(struct bz_runtime *rt);
/* Its thread is through with it. Under start_lock. */
void bz_machines_give(struct bz_runtime *rt, struct bz_machine *m);

/* How many to look at: bz_machines_at(rt, 0..). They stay valid. */
unsigned bz_machines_count(struct bz_runtime *rt);
struct bz_machine *bz_machines_at(struct bz_runtime *rt, unsigned i);

/* The machine that a state word names. */
struct bz_machine *bz_proc_machine(struct bz_runtime *rt, uint32_t word);

/* Who has it, awake or asleep; NULL: nobody. True of a moment. */
struct bz_machine *bz_proc_holder(struct bz_proc *p);

/* The machine lies down with its proc, after which others may take it. */
void bz_proc_lie_down(struct bz_machine *m);
/* It wakes up. False: its proc was taken, and it has none. */
BZ_MUST_USE bool bz_proc_get_up(struct bz_machine *m);

/* The monitor took the proc while the machine was in user code. The machine, in bz_enter. */
void bz_proc_lost(struct bz_machine *m);

/*
 * The calling machine has no proc and wants one: its old one if nobody runs it, or any that sleeps.
 * In the runtime. Suspends: never.
 */
BZ_MUST_USE bool bz_proc_regain(struct bz_machine *m);

/* Take a proc without a machine. The caller starts a thread for it, or says that there is none. Any
 * thread that has taken it out of the idle set, or the monitor. */
BZ_MUST_USE bool bz_proc_adopt(struct bz_proc *p);
void bz_proc_abandon(struct bz_proc *p);
/* It is that machine's now, which is the starter's still. */
void bz_proc_give(struct bz_proc *p, struct bz_machine *m);

#endif
