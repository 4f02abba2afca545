/*
 * retake.h - in the runtime, or in user code: what lets others reach what a proc keeps to itself.
 *
 * A proc has things that only its machine touches, with plain loads and stores: the `next` slot
 * and the hand. A task that computes for a second would hide them. So the machine says where it is:
 * *in user code*, where it touches none of them, or *in the runtime*. The monitor may take them
 * while the machine is in user code, and the machine, coming back, waits while it is being taken
 * from. The machine pays two plain stores and a load, the monitor pays for both with a barrier:
 *
 *      machine, coming back                    monitor
 *      1  where = runtime                      1  retake = 1
 *         (compiler barrier)                   2  barrier on every thread
 *      2  retake? wait while it is set         3  where is user? take
 *      3  touch                                4  retake = 0
 *
 * The store-buffer pattern: either the machine sees retake set, or the monitor sees it in the
 * runtime and leaves it alone. One retaker at a time.
 *
 * I1  next and hand are touched by the machine between enter and leave, or by the monitor while
 *     retake is set and where is user.
 *
 * [A] leave: where release -> may: where acquire   what the machine put there is seen by the taker
 * [B] end: retake release -> enter: retake acquire   what was taken is seen to be gone
 * [C] enter: where, compiler barrier, retake -> ask: retake, the barrier, may: where   as above
 */
#ifndef BZ_RETAKE_H
#define BZ_RETAKE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bz_atomic.h"
#include "base/compiler.h"
#include "os/os.h"

enum { BZ_IN_RUNTIME = 0, BZ_IN_USER = 1 };

struct bz_retake {
    bz_atomic(uint32_t) where;  /* written by the proc's machine */
    bz_atomic(uint32_t) retake; /* written by the monitor */
};

void bz_retake_init(struct bz_retake *r);

/* The slow half of enter: wait until the taker is done. */
void bz_retake_wait(struct bz_retake *r, const struct bz_os *os);

/*
 * The taker, of which there is one. It asks any number of procs, pays for one barrier, then sees of
 * each whether it may take, takes, and ends it:
 *
 *     bz_retake_ask(r); bz_barrier_pay(b); if (bz_retake_may(r)) take; bz_retake_end(r);
 *
 * Between ask and end it waits for nothing but the barrier: the machine may be spinning.
 */
void bz_retake_ask(struct bz_retake *r);
BZ_MUST_USE bool bz_retake_may(struct bz_retake *r);
void bz_retake_end(struct bz_retake *r);

/* Is the machine in user code? A hint. */
static inline bool bz_retake_is_away(struct bz_retake *r)
{
    return bz_load_relaxed(&r->where) == BZ_IN_USER; /* relaxed: a hint */
}

/* Begin to touch. Returns where we were, for bz_retake_leave. */
static BZ_ALWAYS_INLINE uint32_t bz_retake_enter(struct bz_retake *r, const struct bz_os *os)
{
    uint32_t was = bz_load_relaxed(&r->where);         /* relaxed: ours */
    bz_store_relaxed(&r->where, BZ_IN_RUNTIME);        /* relaxed: [C] */
    bz_compiler_barrier();                             /* [C] */
    if (BZ_UNLIKELY(bz_load_acquire(&r->retake) != 0)) /* [B] [C] */
        bz_retake_wait(r, os);
    return was;
}

static BZ_ALWAYS_INLINE void bz_retake_leave(struct bz_retake *r, uint32_t was)
{
    bz_store_release(&r->where, was); /* [A] */
}

#endif
