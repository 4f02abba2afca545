/*
 * word.h - the state word of a task: one 64-bit atomic that everyone who meets a task meets in.
 *
 * Wakers, the worker that runs it, whoever holds a handle and whoever cancels it all change this
 * one word, so that whatever two of them do at once has an order. word.c has the table.
 *
 *     63      48 47            24 23      16 15       8 7        0
 *     | unused  |   references   |  shield  |  flags   |  life   |
 *
 *   life        idle, scheduled, running, complete
 *   flags       notified: woken while it ran; cancelled: asked to stop; started: has run; joined:
 *               somebody waits for its end
 *   shield      how many shields the task stands under; a cancel waits until it is 0
 *   references  one for whoever is to run it next (the scheduler), one for each handle and waker
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
#define BZ_WORD_SHIELD_ONE (UINT64_C(1) << 16)
#define BZ_WORD_SHIELD_MASK (UINT64_C(0xff) << 16)
#define BZ_WORD_REF_ONE (UINT64_C(1) << 24)
#define BZ_WORD_REF_MASK (UINT64_C(0xffffff) << 24)

/* What happens to a task. */
enum bz_event {
    BZ_WAKE,  /* anybody: what it waited for may have come */
    BZ_RUN,   /* the worker that took it from a queue is about to run it */
    BZ_YIELD, /* its worker, on the next stack: it goes to the back of the queue */
    BZ_PARK,  /* its worker, on the next stack: it waits */
    BZ_EVENTS
};

/* What the one who caused the event now owes. */
enum bz_owes {
    BZ_OWES_NOTHING,
    BZ_OWES_ENQUEUE /* put it into a queue */
};

/* How bz_word_exit left the task. */
enum bz_exit {
    BZ_EXIT_TELL, /* it is complete; somebody waits: tell, then drop the references */
    BZ_EXIT_DONE, /* it is complete, the references are dropped */
    BZ_EXIT_LAST  /* likewise, and they were the last: it is the caller's to free */
};

/* A task that is about to be queued for the first time, with `refs` references. Its other fields
 * are filled before: from here on bz_word_try_ref may find it. */
static BZ_ALWAYS_INLINE void bz_word_init(bz_word *w, enum bz_life life, unsigned refs)
{
    bz_store_release(w, (uint64_t)life | refs * BZ_WORD_REF_ONE); /* word.c [P] */
}

/* Take one step of the table. Aborts if the table has no such step. */
BZ_MUST_USE enum bz_owes bz_word_step(bz_word *w, enum bz_event event);

/*
 * Win a task that has not run yet, for whoever took its first-run entry or wants to run it instead
 * of waiting for it, and add `refs` references at once.
 * Returns: true: it is running, by the caller. False: somebody has claimed it before.
 */
BZ_MUST_USE static BZ_ALWAYS_INLINE bool bz_word_claim(bz_word *w, unsigned refs)
{
    const uint64_t asked = BZ_BROKEN(54) ? BZ_WORD_LIFE : BZ_WORD_LIFE | BZ_WORD_STARTED;
    uint64_t word = bz_load_relaxed(w); /* relaxed: a guess; started once is started for good */
    for (;;) {
        if ((word & asked) != BZ_SCHEDULED)
            return false;
        uint64_t next = (word & ~BZ_WORD_LIFE) | BZ_RUNNING | BZ_WORD_STARTED;
        if (bz_cas_weak_acq_rlx(w, &word, next + refs * BZ_WORD_REF_ONE)) /* word.c [T] */
            return true;
    }
}

/* ---- the end ---- */

/* The running task has returned: complete it, and drop `drop` references in the same step unless
 * somebody waits for its end. Aborts if it does not run. */
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

/* Somebody is about to wait for its end, and has linked itself where bz_word_exit's caller will
 * look. False: it has ended, and what it wrote is visible. */
BZ_MUST_USE bool bz_word_want_join(bz_word *w);

/* ---- references ---- */

/* One more. The caller holds one, or knows who does. Aborts at 2^24 - 1, which is a leak. */
void bz_word_ref(bz_word *w);

/* One less, or `count`. True if it was the last: the task is the caller's to free. */
BZ_MUST_USE bool bz_word_drop(bz_word *w, unsigned count);
static inline bool bz_word_unref(bz_word *w)
{
    return bz_word_drop(w, 1);
}

/* True if there is a reference at all. A guess, but for whoever has one. */
static inline bool bz_word_is_held(bz_word *w)
{
    return (bz_load_relaxed(w) & BZ_WORD_REF_MASK) != 0; /* relaxed: finds misuse, orders nothing */
}

/* One more, for somebody who holds none and found the word where words are known to lie, if there
 * is one to begin with. False: the task is gone or not there yet. */
BZ_MUST_USE bool bz_word_try_ref(bz_word *w);

/* ---- cancelling ---- */

/* Ask the task to stop. True the first time; the caller then owes a BZ_WAKE. */
BZ_MUST_USE bool bz_word_cancel(bz_word *w);

/* Should the task's current wait end? Asked by the task itself. */
bool bz_word_is_cancelled(bz_word *w);

/* The task itself enters or leaves a shield. 255 deep at most; more aborts. */
void bz_word_shield(bz_word *w);
void bz_word_unshield(bz_word *w);

/* ---- looking ---- */

/* Its life now, for statistics and dumps; it may be another one already. */
static inline enum bz_life bz_word_life(bz_word *w)
{
    return (enum bz_life)(bz_load_relaxed(w) & BZ_WORD_LIFE); /* relaxed: a guess */
}

/* Has it returned? If so, what it wrote before is visible. */
bool bz_word_is_complete(bz_word *w);

/* Has it been claimed or run? Once it has, this stays so. Of a first-run entry: is it a tombstone? */
static inline bool bz_word_is_started(bz_word *w)
{
    return (bz_load_relaxed(w) & BZ_WORD_STARTED) != 0; /* relaxed: a hint, or never unsaid */
}

/* The fields are within bounds and go together. Aborts with what it saw. */
void bz_word_check(bz_word *w);

#endif
