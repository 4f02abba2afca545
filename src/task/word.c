/*
 * word.c - the life of a task, as a table.
 *
 *                        WAKE       RUN       YIELD       PARK        claim    exit
 *   scheduled, fresh     fresh      running                           running
 *   idle (parked)        scheduled+                                   -
 *   scheduled            scheduled  running                           -
 *   running              notified             scheduled+  idle        -        complete
 *   running, notified    notified             scheduled+  scheduled+  -        complete
 *   complete             complete                                     -
 *                                                + caller must enqueue    - refused
 *
 * An empty cell is a bug, and aborts with its name.
 *
 * The worker makes the PARK and YIELD steps on the *next* stack, after it has left the task's own:
 * as soon as idle or scheduled is visible, another worker may resume the task there. A wake before
 * that step finds the task running and sets notified, and the PARK becomes an enqueue. So no
 * wake-up is lost, and the task is never in a queue and on a worker at once.
 *
 * RUN, YIELD, PARK and exit are steps of the worker that owns the task. It got the task from a
 * queue with release-acquire order, so its first load of the word is not older than the last step.
 * Any thread may WAKE, and may see an old word; no cell of its column is empty.
 *
 * The claim. A task that has not run is fresh: scheduled, and not yet started. Its entry may be in
 * a queue, or a worker may be taking it out, when a joiner wants to call the task instead of
 * waiting. Both try to claim it; the winner sets the flag *started*, which is never cleared. The
 * state "scheduled" alone is not enough: a claimed task may park and be woken, and is scheduled
 * again while its first entry is still queued. A worker that took that entry would run the task a
 * second time. The entry holds a reference that a joiner cannot take over, so the
 * joiner adds its own reference in the same step.
 *
 * The end. The exit completes the task and drops the references of the run in one step, because the
 * task may be freed right after it. A joiner sets *joined* first; that fails once the task is
 * complete. If the exit finds joined set, it drops no reference, so that the task still exists
 * while its joiners are woken.
 *
 * Every step is a read-modify-write, even if it changes nothing. The exception is exit_alone, a plain store by a joiner
 * that has run its child. It compares the whole word first: two references, both the caller's, no cancel, no wake, no
 * other joiner. Then no other thread may change the word, for these reasons. The task has returned, so no thread may
 * borrow its handle any more: the join takes it. A walk over all tasks finds a task without a reference: there is none
 * during a brief section. A canceller finds it through the wait of its joiner, and takes a reference under the
 * joiner's lock: the joiner has ended that wait, and outlasted such cancellers.
 *
 * [T] step: word acq_rel -> step: word acq_rel
 *     A waker that only loaded the word would not publish its earlier writes, and the following run
 *     could miss them. So WAKE of a scheduled task writes the same value again, and RUN acquires
 *     it. The same pairing makes the writes of the task (its stack, its result) visible to the next
 *     worker and to the joiner. claim acquires for the same reason as RUN: a wake of a fresh task
 *     may come before it.
 * [R] drop, exit: word acq_rel -> drop, exit: word acq_rel
 *     all accesses to the task happen before the last reference frees it
 * [J] want_join: word acq_rel -> exit: word acq_rel
 *     an exit that must wake joiners sees the linked joiner; a refused joiner sees the writes of
 *     the task
 * [A] exit_alone: word, a plain store -> try_ref
 *     the end of the brief section publishes it: retake.h [E]
 * [P] init: word release -> try_ref: word acquire
 *     a thread that finds a task by its word sees its fields
 * [C] cancel: word release -> is_cancelled: word acquire
 *     the reason of the cancel is visible to the cancelled task
 */
#include "task/word.h"

#include "base/check.h"

enum cell { BAD, TO_IDLE, TO_SCHEDULED, TO_RUNNING, TO_NOTIFIED, TO_COMPLETE };

/* The rows: life, with "running, notified" as a separate state. */
enum row { ROW_IDLE, ROW_SCHEDULED, ROW_RUNNING, ROW_NOTIFIED, ROW_COMPLETE, ROWS };

static const struct {
    uint8_t to, owes;
} table[ROWS][BZ_EVENTS] = {
    [ROW_IDLE] = {[BZ_WAKE] = {TO_SCHEDULED, BZ_OWES_ENQUEUE}},
    [ROW_SCHEDULED] =
        {[BZ_WAKE] = {TO_SCHEDULED, BZ_OWES_NOTHING}, [BZ_RUN] = {TO_RUNNING, BZ_OWES_NOTHING}},
    [ROW_RUNNING] = {[BZ_WAKE] = {TO_NOTIFIED, BZ_OWES_NOTHING},
                     [BZ_YIELD] = {TO_SCHEDULED, BZ_OWES_ENQUEUE},
                     [BZ_PARK] = {TO_IDLE, BZ_OWES_NOTHING}},
    [ROW_NOTIFIED] = {[BZ_WAKE] = {TO_NOTIFIED, BZ_OWES_NOTHING},
                      [BZ_YIELD] = {TO_SCHEDULED, BZ_OWES_ENQUEUE},
                      [BZ_PARK] = {TO_SCHEDULED, BZ_OWES_ENQUEUE}},
    [ROW_COMPLETE] = {[BZ_WAKE] = {TO_COMPLETE, BZ_OWES_NOTHING}},
}; /* BAD is 0, so a cell left out is BAD */

static const uint64_t bits_of[] = {
    [TO_IDLE] = BZ_IDLE,
    [TO_SCHEDULED] = BZ_SCHEDULED,
    [TO_RUNNING] = BZ_RUNNING | BZ_WORD_STARTED,
    [TO_NOTIFIED] = BZ_RUNNING | BZ_WORD_NOTIFIED,
    [TO_COMPLETE] = BZ_COMPLETE,
};

static const char *const event_name[BZ_EVENTS] = {"wake", "run", "yield", "park"};
static const char *const row_name[ROWS] = {"idle", "scheduled", "running", "notified", "complete"};

static enum row row_of(uint64_t word)
{
    static const uint8_t rows[BZ_LIVES] = {ROW_IDLE, ROW_SCHEDULED, ROW_RUNNING, ROW_COMPLETE};
    BZ_CHECK((word & BZ_WORD_LIFE) < BZ_LIVES, "task word %llx", (unsigned long long)word);
    if (word & BZ_WORD_NOTIFIED)
        return ROW_NOTIFIED;
    return (enum row)rows[word & BZ_WORD_LIFE];
}

enum bz_owes bz_word_step(bz_word *w, enum bz_event event)
{
    uint64_t word = bz_load_relaxed(w); /* relaxed: a first guess, the CAS decides */
    for (;;) {
        enum row row = row_of(word);
        uint8_t to = table[row][event].to;
        BZ_CHECK(to != BAD, "task word %p: %s while %s", (void *)w, event_name[event],
                 row_name[row]);
        uint64_t next = (word & ~(BZ_WORD_LIFE | BZ_WORD_NOTIFIED)) | bits_of[to];
        if (bz_cas_weak_acqrel_rlx(w, &word, next)) /* [T] */
            return (enum bz_owes)table[row][event].owes;
    }
}

/* ---- the end ---- */

void bz_word_bad_exit(bz_word *w, uint64_t word)
{
    if ((word & BZ_WORD_LIFE) != BZ_RUNNING)
        bz_fail(__FILE__, __LINE__, "exit", "task word %p: exit while %s", (void *)w,
                row_name[row_of(word)]);
    bz_fail(__FILE__, __LINE__, "exit", "task word %p: one reference too few", (void *)w);
}

bool bz_word_want_join(bz_word *w)
{
    uint64_t was = bz_fetch_or_acqrel(w, BZ_WORD_JOINED); /* [J] */
    return (was & BZ_WORD_LIFE) != BZ_COMPLETE;
}

/* ---- references ---- */

void bz_word_ref(bz_word *w)
{
    /* relaxed: the caller has a reference, so the task cannot be freed meanwhile */
    uint64_t was = bz_fetch_add_relaxed(w, BZ_WORD_REF_ONE);
    BZ_CHECK((was & BZ_WORD_REF_MASK) != 0, "task word %p: a reference to a dead task", (void *)w);
    BZ_CHECK((was & BZ_WORD_REF_MASK) != BZ_WORD_REF_MASK, "task word %p: too many references",
             (void *)w);
}

bool bz_word_drop(bz_word *w, unsigned count)
{
    uint64_t was = bz_fetch_sub_acqrel(w, count * BZ_WORD_REF_ONE); /* [R] */
    BZ_CHECK((was & BZ_WORD_REF_MASK) >= count * BZ_WORD_REF_ONE,
             "task word %p: one reference too few", (void *)w);
    return (was & BZ_WORD_REF_MASK) == count * BZ_WORD_REF_ONE;
}

bool bz_word_try_ref(bz_word *w)
{
    uint64_t word = bz_load_relaxed(w); /* relaxed: a first guess, the CAS decides */
    while ((word & BZ_WORD_REF_MASK) != 0) {
        BZ_CHECK((word & BZ_WORD_REF_MASK) != BZ_WORD_REF_MASK, "task word %p: too many references",
                 (void *)w);
        if (bz_cas_weak_acq_rlx(w, &word, word + BZ_WORD_REF_ONE)) /* [P] */
            return true;
    }
    return false;
}

/* ---- cancelling ---- */

bool bz_word_cancel(bz_word *w)
{
    return !(bz_fetch_or_release(w, BZ_WORD_CANCELLED) & BZ_WORD_CANCELLED); /* [C] */
}

void bz_word_shield(bz_word *w)
{
    uint64_t was = bz_fetch_add_relaxed(w, BZ_WORD_SHIELD_ONE); /* relaxed: the task's own field */
    BZ_CHECK((was & BZ_WORD_SHIELD_MASK) != BZ_WORD_SHIELD_MASK, "task word %p: shields too deep",
             (void *)w);
}

void bz_word_unshield(bz_word *w)
{
    uint64_t was = bz_fetch_sub_relaxed(w, BZ_WORD_SHIELD_ONE); /* relaxed: the task's own field */
    BZ_CHECK((was & BZ_WORD_SHIELD_MASK) != 0, "task word %p: one unshield too many", (void *)w);
}

bool bz_word_is_complete(bz_word *w)
{
    return (bz_load_acquire(w) & BZ_WORD_LIFE) == BZ_COMPLETE; /* [T] */
}

void bz_word_check(bz_word *w)
{
    uint64_t word = bz_load_relaxed(w); /* relaxed: a snapshot */
    BZ_CHECK((word & BZ_WORD_LIFE) < BZ_LIVES, "task word %llx: no such life",
             (unsigned long long)word);
    BZ_CHECK(!(word & BZ_WORD_NOTIFIED) || (word & BZ_WORD_LIFE) == BZ_RUNNING,
             "task word %llx: notified but not running", (unsigned long long)word);
    BZ_CHECK((word & BZ_WORD_REF_MASK) != 0, "task word %llx: nobody's", (unsigned long long)word);
    BZ_CHECK(word >> 48 == 0, "task word %llx: a field overflowed", (unsigned long long)word);
}
