/*
 * word.h - the state word of a task: one 64-bit atomic for all changes of its state.
 *
 * Wakers, the worker that runs the task, holders of a handle and cancellers all change this one
 * word, so that concurrent operations are ordered. word.c has the table.
 *
 *     63      48 47            24 23      16 15       8 7        0
 *     | unused  |   references   |  shield  |  flags   |  life   |
 *
 *   life        idle, scheduled, running, complete
 *   flags       notified: woken while it ran; cancelled: asked to stop; started: has run; joined: a
 *               joiner waits for its end; simple: a fiber without options. Set by its spawn, never changed
 *   shield      the nesting depth of shields; a cancel takes effect when it is 0
 *   references  one for the scheduler, one for each handle and waker
 */
#ifndef BZ_TASK_WORD_H
#define BZ_TASK_WORD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bz_atomic.h"
#include "base/compiler.h"

typedef bz_atomic(uint64_t) bz_word;

enum bz_life { BZ_IDLE, BZ_SCHEDULED, BZ_RUNNING, BZ_COMPLETE, BZ_LIVES };

#define BZ_WORD_LIFE UINT64_C(0xff)
#define BZ_WORD_NOTIFIED (UINT64_C(1) << 8)
#define BZ_WORD_CANCELLED (UINT64_C(1) << 9)
#define BZ_WORD_STARTED (UINT64_C(1) << 10)
#define BZ_WORD_JOINED (UINT64_C(1) << 11)
#define BZ_WORD_SIMPLE (UINT64_C(1) << 12)
#define BZ_WORD_SHIELD_ONE (UINT64_C(1) << 16)
#define BZ_WORD_SHIELD_MASK (UINT64_C(0xff) << 16)
#define BZ_WORD_REF_ONE (UINT64_C(1) << 24)
#define BZ_WORD_REF_MASK (UINT64_C(0xffffff) << 24)

/* A simple task that only its queue entry and one handle refer to: before its first run, and while it runs. */
#define BZ_WORD_FRESH_ALONE (BZ_SCHEDULED | BZ_WORD_SIMPLE | 2 * BZ_WORD_REF_ONE)
#define BZ_WORD_RUNS_ALONE (BZ_RUNNING | BZ_WORD_STARTED | BZ_WORD_SIMPLE | 2 * BZ_WORD_REF_ONE)

/* The events of a task. */
enum bz_event {
    BZ_WAKE,  /* any thread: the awaited event may have happened */
    BZ_RUN,   /* a worker took it from a queue and is about to run it */
    BZ_YIELD, /* its worker, on the next stack: it goes to the end of the queue */
    BZ_PARK,  /* its worker, on the next stack: it waits */
    BZ_EVENTS
};

/* The duty of the caller after an event. */
enum bz_owes {
    BZ_OWES_NOTHING,
    BZ_OWES_ENQUEUE /* put it into a queue */
};

/* The result of bz_word_exit. */
enum bz_exit {
    BZ_EXIT_TELL, /* complete; a joiner waits: wake it, then drop the references */
    BZ_EXIT_DONE, /* complete, the references are dropped */
    BZ_EXIT_LAST  /* the same, and they were the last: the caller frees the task */
};

/* Initialise the word of a task before it is first queued, with `refs` references. Fill the other
 * fields first: from here on bz_word_try_ref may find the task. */
static BZ_ALWAYS_INLINE void bz_word_init(bz_word *w, enum bz_life life, unsigned refs)
{
    bz_store_release(w, (uint64_t)life | refs * BZ_WORD_REF_ONE); /* word.c [P] */
}

/* The same for a simple task. */
static BZ_ALWAYS_INLINE void bz_word_init_simple(bz_word *w, unsigned refs)
{
    bz_store_release(w, BZ_SCHEDULED | BZ_WORD_SIMPLE | refs * BZ_WORD_REF_ONE); /* word.c [P] */
}

/* Make one step of the table. Abort if the table has no such step. */
BZ_MUST_USE enum bz_owes bz_word_step(bz_word *w, enum bz_event event);

/*
 * Claim a task that has not run yet, and add `refs` references at once. Called by the worker that
 * took its first-run entry, and by a joiner.
 * Returns: true: the caller runs it. False: it was claimed before.
 */
BZ_MUST_USE static BZ_ALWAYS_INLINE bool bz_word_claim(bz_word *w, unsigned refs)
{
    const uint64_t asked = BZ_WORD_LIFE | BZ_WORD_STARTED;
    uint64_t word = bz_load_relaxed(w); /* relaxed: a guess; started is never cleared */
    for (;;) {
        if ((word & asked) != BZ_SCHEDULED)
            return false;
        uint64_t next = (word & ~BZ_WORD_LIFE) | BZ_RUNNING | BZ_WORD_STARTED;
        if (bz_cas_weak_acq_rlx(w, &word, next + refs * BZ_WORD_REF_ONE)) /* word.c [T] */
            return true;
    }
}

/* The same, in one try, for a simple task whose entry the caller has in its hands, and whose only handle is the
 * caller's. False: it is no such task. Not a plain store: other threads may borrow the handle, to cancel the task or
 * to get a handle of their own. */
BZ_MUST_USE static BZ_ALWAYS_INLINE bool bz_word_claim_alone(bz_word *w)
{
    uint64_t word = BZ_WORD_FRESH_ALONE;
    return bz_cas_strong_acq_rlx(w, &word, BZ_WORD_RUNS_ALONE); /* word.c [T] */
}

/* ---- the end ---- */

/* Complete the running task, and drop `drop` references in the same step unless a joiner waits for
 * its end. Abort if it is not running. */
BZ_NORETURN void bz_word_bad_exit(bz_word *w, uint64_t word);
BZ_MUST_USE static BZ_ALWAYS_INLINE enum bz_exit bz_word_exit(bz_word *w, unsigned drop)
{
    uint64_t word = bz_load_relaxed(w); /* relaxed: a first guess, the CAS decides */
    for (;;) {
        uint64_t given_up = word & BZ_WORD_JOINED ? 0 : drop * BZ_WORD_REF_ONE;
        if (BZ_UNLIKELY((word & BZ_WORD_LIFE) != BZ_RUNNING ||
                        (word & BZ_WORD_REF_MASK) < given_up))
            bz_word_bad_exit(w, word);
        uint64_t next = ((word & ~(BZ_WORD_LIFE | BZ_WORD_NOTIFIED)) | BZ_COMPLETE) - given_up;
        if (!bz_cas_weak_acqrel_rlx(w, &word, next)) /* word.c [T] [R] [J] */
            continue;
        if (word & BZ_WORD_JOINED)
            return BZ_EXIT_TELL;
        return (next & BZ_WORD_REF_MASK) != 0 ? BZ_EXIT_DONE : BZ_EXIT_LAST;
    }
}

/* The same for a simple task that the caller has claimed, with its entry and its handle: both references are dropped,
 * by a plain store. The caller is in a brief section (queue/retake.h) and its wait for the task is over: word.c.
 * True: no reference is left. False: it is no such task, or other threads refer to it; nothing was done. */
BZ_MUST_USE static BZ_ALWAYS_INLINE bool bz_word_exit_alone(bz_word *w)
{
    if (!bz_equals_acquire(w, BZ_WORD_RUNS_ALONE)) /* word.c [T] [R] */
        return false;
    bz_store_relaxed(w, BZ_COMPLETE | BZ_WORD_STARTED); /* relaxed: word.c [A] */
    return true;
}

/* Set *joined*. The caller has linked itself in the list that the caller of bz_word_exit wakes.
 * Return false if the task has ended; its writes are then visible. */
BZ_MUST_USE bool bz_word_want_join(bz_word *w);

/* ---- references ---- */

/* Add a reference. The caller holds one, or another one is guaranteed to exist. Abort at 2^24 - 1,
 * which is a leak. */
void bz_word_ref(bz_word *w);

/* Drop one reference, or `count`. Return true if it was the last: the caller frees the task. */
BZ_MUST_USE bool bz_word_drop(bz_word *w, unsigned count);
static inline bool bz_word_unref(bz_word *w)
{
    return bz_word_drop(w, 1);
}

/* True if there is a reference. Only a hint, unless the caller holds one. */
static inline bool bz_word_is_held(bz_word *w)
{
    /* relaxed: detects misuse, orders nothing */
    return (bz_load_relaxed(w) & BZ_WORD_REF_MASK) != 0;
}

/* Add a reference to a task found by a walk over the slabs, if it has at least one. Return false if
 * the task is freed or not initialised yet. */
BZ_MUST_USE bool bz_word_try_ref(bz_word *w);

/* ---- cancelling ---- */

/* Cancel the task. Return true the first time; the caller must then send BZ_WAKE. */
BZ_MUST_USE bool bz_word_cancel(bz_word *w);

/* True if a cancel should end the task's current wait. Called by the task itself. */
static BZ_ALWAYS_INLINE bool bz_word_is_cancelled(bz_word *w)
{
    uint64_t word = bz_load_acquire(w); /* word.c [C] */
    return BZ_UNLIKELY(word & BZ_WORD_CANCELLED) && !(word & BZ_WORD_SHIELD_MASK);
}

/* Enter or leave a shield. Called by the task itself. At most 255 deep; more aborts. */
void bz_word_shield(bz_word *w);
void bz_word_unshield(bz_word *w);

/* ---- queries ---- */

/* Its current life, for statistics and dumps; it may change at any time. */
static inline enum bz_life bz_word_life(bz_word *w)
{
    return (enum bz_life)(bz_load_relaxed(w) & BZ_WORD_LIFE); /* relaxed: a guess */
}

/* True if the task has returned; its writes are then visible. */
bool bz_word_is_complete(bz_word *w);

/* True if the task was claimed or run; never false again. For a first-run entry: true if it is a
 * tombstone. */
static inline bool bz_word_is_started(bz_word *w)
{
    return (bz_load_relaxed(w) & BZ_WORD_STARTED) != 0; /* relaxed: a hint, or never cleared */
}

/* Check that the fields are consistent. Abort with a message if not. */
void bz_word_check(bz_word *w);

#endif
