/*
 * trap.h - a fault inside a behaviour ends its actor, not the process. trap.c has the rules.
 */
#ifndef BZ_ACTOR_TRAP_H
#define BZ_ACTOR_TRAP_H

#include "actor/actor.h"
#include "arch/guard.h"

struct bz_actors;

/*
 * An actor that traps is about to be made.
 * Returns: 0, -EOPNOTSUPP (this architecture or the simulation has no trap), -errno of sigaction.
 */
BZ_MUST_USE int bz_traps_begin(struct bz_runtime *rt);
/* Its runtime ends. */
void bz_traps_end(struct bz_actors *all);

/* A function of a behaviour, for the calls below: it takes two pointers or one, and returns an int or nothing. The guard calls it
 * by its address. No function of ours is in between, because its frame could not be skipped. */
#define bz_trap_fn(fn) ((bz_guard_fn *)(uintptr_t)(fn))

/*
 * Call fn(x, y) of the actor's behaviour. If it faults and the fault may be trapped, write to the log where.
 * Returns: what fn returned, and `text` is empty; or, behind a fault, -EFAULT, and `text` (of BLITZ_EXIT_TEXT_MAX bytes) is the
 * fault.
 */
int bz_trap_call(struct bz_actor *a, bz_guard_fn *fn, void *x, const void *y, char *text);

/* The same for a function at the actor's end, which cannot fail. *why becomes the fault, unless it is a fault already. */
void bz_trap_call_last(struct bz_actor *a, bz_guard_fn *fn, void *x, const void *y,
                       blitz_exit_reason *why);

#endif
