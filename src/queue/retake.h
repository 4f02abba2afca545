/*
 * retake.h - a machine is in the runtime or in user code: the protocol by which the monitor takes from it.
 *
 * A machine that has a proc touches much of it with plain loads and stores: the `next` slot, the
 * batch, the owner's end of the ring, counters. A task that computes for a second would hide all
 * that, and block the proc. So the machine says where it is. *In user code* (or in a system call
 * that it announced) it touches none of this state; *in the runtime* it may. The monitor may take from it
 * while it is in user code: a few entries, or the whole proc. On return to the runtime, the machine waits while
 * the monitor takes, and then checks whether it still has a proc. It pays two plain stores and a
 * load; the monitor pays for both with a barrier:
 *
 *      machine, coming back                    monitor
 *      1  where = runtime                      1  retake = asked
 *         (compiler barrier)                   2  barrier on every thread
 *      2  retake? wait while it is asked       3  where is user? take
 *      3  gone? without a proc : touch         4  retake = none, or gone
 *
 * This is the store-buffer pattern: either the machine sees retake set, or the monitor sees it in the
 * runtime and takes nothing. There is one retaker at a time. If the system has no such barrier, both
 * sides fence.
 *
 * A *brief* section is a kind of runtime: the machine calls no function and waits for nothing until it leaves. So a
 * thread that walks over all tasks can wait for the end of the brief sections that began before it. In a brief
 * section a machine may drop the last references of a task by a plain store, because only a walk could change that word
 * at the same time (task/word.c). The same pattern once more:
 *
 *      machine                                 walker
 *      1  where = brief                        1  unusual + 1 (base/unusual.h)
 *         (compiler barrier)                   2  barrier on every thread
 *      2  unusual? not brief : plain stores    3  wait for each machine until it is not brief
 *      3  where = user                         4  walk, then unusual - 1
 *
 * I1  The private state of a proc is touched by its machine between enter and leave, or by the monitor
 *     while retake is asked and where is not the runtime.
 * I2  gone is written by the monitor once for each proc it takes, and cleared by the machine. A machine
 *     that does not know yet may be asked again, for its other state: then gone is written again.
 *
 * [A] leave: where release -> may: where acquire   the taker sees what the machine put there
 * [B] end: retake release -> enter: retake acquire   the machine sees that the taken entries are gone
 * [C] enter: where, compiler barrier, retake -> ask: retake, the barrier, may: where   as above
 * [W] enter_brief: where, compiler barrier, unusual -> walk: unusual, the barrier, outlast: where   as above
 * [E] leave: where release -> outlast: where acquire   the walker sees what the section stored
 */
#ifndef BZ_RETAKE_H
#define BZ_RETAKE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bz_atomic.h"
#include "base/compiler.h"
#include "base/unusual.h"
#include "os/os.h"

enum bz_where {
    BZ_IN_RUNTIME = 0,
    BZ_IN_USER = 1,
    BZ_IN_SYSCALL = 2,    /* and above: nested calls */
    BZ_IN_BRIEF = 1 << 30 /* in the runtime, in a brief section */
};
enum bz_taking { BZ_TAKING_NONE = 0, BZ_TAKING_ASKED = 1, BZ_TAKING_GONE = 2 };

/* One for each machine. */
struct bz_retake {
    bz_atomic(uint32_t) where;  /* enum bz_where; written by the machine */
    bz_atomic(uint32_t) retake; /* enum bz_taking; written by the monitor, except for I2 */
    bool fences;                /* constant: there are no barriers, both sides fence */
    const struct bz_os *os;     /* constant */
};

void bz_retake_init(struct bz_retake *r, const struct bz_os *os, bool fences);

/* The slow half of enter: wait until the taker is done. False: the proc is gone. */
BZ_MUST_USE bool bz_retake_wait(struct bz_retake *r);

/*
 * For the taker, of which there is one. It asks any number of procs, pays for one barrier, then checks for
 * each whether it may take, takes, and ends:
 *
 *     bz_retake_ask(r); bz_barrier_pay(b); if (bz_retake_may(r)) take; bz_retake_end(r, gone);
 *
 * Between ask and end it waits for nothing but the barrier: the machine may be spinning. `is_gone`:
 * the machine has no proc any more. ask: true if the proc is gone already, and the machine does not know
 * yet; then end must say so again.
 */
bool bz_retake_ask(struct bz_retake *r);
BZ_MUST_USE bool bz_retake_may(struct bz_retake *r);
void bz_retake_end(struct bz_retake *r, bool is_gone);

/* Where the machine is. A hint. A brief section is the runtime. */
static inline enum bz_where bz_retake_where(struct bz_retake *r)
{
    uint32_t where = bz_load_relaxed(&r->where); /* relaxed: a hint */
    return where == BZ_IN_BRIEF ? BZ_IN_RUNTIME : (enum bz_where)where;
}

/* For a walker that has called bz_unusual_begin() and paid for a barrier: wait until the machine is in no brief section
 * that began before. */
void bz_retake_outlast_brief(struct bz_retake *r);

/* Begin to access the proc. *was: the previous place, for bz_retake_leave. False: the proc is
 * gone. */
BZ_MUST_USE static BZ_ALWAYS_INLINE bool bz_retake_enter(struct bz_retake *r, uint32_t *was)
{
    *was = bz_load_relaxed(&r->where); /* relaxed: ours */
    if (BZ_UNLIKELY(*was == BZ_IN_RUNTIME))
        return true;                            /* in already, and a lost proc is known */
    bz_store_relaxed(&r->where, BZ_IN_RUNTIME); /* relaxed: [C] */
    bz_compiler_barrier();                      /* [C] */
    if (BZ_UNLIKELY(r->fences))
        bz_fence_seqcst();                                             /* [C] */
    return BZ_LIKELY(bz_equals_acquire(&r->retake, BZ_TAKING_NONE)) || /* [B] [C] */
           bz_retake_wait(r);
}

/* True if the machine is in user code. The common case, for a fast path. */
BZ_MUST_USE static BZ_ALWAYS_INLINE bool bz_retake_is_away(struct bz_retake *r)
{
    return BZ_LIKELY(bz_equals_relaxed(&r->where, BZ_IN_USER)); /* relaxed: ours */
}

/*
 * bz_retake_enter for a fast path, if bz_retake_is_away(). It ends with bz_retake_leave(r, BZ_IN_USER). It has no call,
 * so that the fast path needs no registers for one. Runtimes without barriers are unusual (base/unusual.h).
 * Returns: true: the machine is in, and nothing unusual holds. False: the caller must call bz_retake_enter_again() before
 *          it touches anything, or leave.
 */
BZ_MUST_USE static BZ_ALWAYS_INLINE bool bz_retake_enter_usual(struct bz_retake *r)
{
    bz_store_relaxed(&r->where, BZ_IN_RUNTIME);                        /* relaxed: [C] */
    bz_compiler_barrier();                                             /* [C] */
    return BZ_LIKELY(bz_equals_acquire(&r->retake, BZ_TAKING_NONE)) && /* [B] [C] */
           bz_is_usual();
}

/* The rest of bz_retake_enter, after bz_retake_enter_usual() has returned false. False: the proc is gone. */
BZ_MUST_USE static inline bool bz_retake_enter_again(struct bz_retake *r)
{
    if (r->fences)
        bz_fence_seqcst();                                                     /* [C] */
    return bz_load_acquire(&r->retake) == BZ_TAKING_NONE || bz_retake_wait(r); /* [B] [C] */
}

/*
 * Begin a brief section, if bz_retake_is_away(). It ends with bz_retake_leave(r, BZ_IN_USER). The caller may also go on
 * in the runtime, by bz_retake_lengthen().
 * Returns: false: it is not one; the caller must leave at once, and take the slow path.
 */
BZ_MUST_USE static BZ_ALWAYS_INLINE bool bz_retake_enter_brief(struct bz_retake *r)
{
    bz_store_relaxed(&r->where, BZ_IN_BRIEF);                          /* relaxed: [C] [W] */
    bz_compiler_barrier();                                             /* [C] [W] */
    return BZ_LIKELY(bz_equals_acquire(&r->retake, BZ_TAKING_NONE)) && /* [B] [C] */
           bz_is_usual();                                              /* [W] */
}

/* Go on in the runtime after a brief section: from here on the caller may call anything. */
static BZ_ALWAYS_INLINE void bz_retake_lengthen(struct bz_retake *r)
{
    bz_store_release(&r->where, BZ_IN_RUNTIME); /* [E] */
}

static BZ_ALWAYS_INLINE void bz_retake_leave(struct bz_retake *r, uint32_t was)
{
    bz_store_release(&r->where, was); /* [A] [E] */
}

#endif
