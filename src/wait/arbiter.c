/*
 * arbiter.c - the one outcome of a wait: a waker, a deadline and a canceller meet in one CAS.
 *
 *                  WAKE       TIMEOUT      CANCEL
 *   open           woken +    timed out +  cancelled +   + this party must resume the task
 *   timed out      late       (bug)        late          late: nothing changes, no duty to resume
 *   cancelled      late       late         late          (the hook and a canceller may both come)
 *   woken          (bug *)    late         late          * of a shared wait: late
 *
 * park.c has the reasons for an arbiter in the waiting frame.
 *
 * A worker of the task's runtime claims by the same CAS, inline and relaxed (bz_wait_claim). The task continues only after
 * that worker has queued it, and the queue makes visible what the worker did before. A plain thread, and a task of the
 * plain form, may continue as soon as the wait has an outcome: for these the claim is a release.
 *
 * [A] claim: arbiter release -> park.c, park.h: arbiter acquire   what the waker did is visible to the waiter
 */
#include "proc/proc_timer.h"
#include "wait/wait.h"

enum event { WAKE, TIMEOUT, CANCEL, EVENTS };
enum { BUG, LATE };

static const char *const event_name[EVENTS] = {"wake", "timeout", "cancel"};
static const char *const row_name[] = {"open", "timed out", "cancelled", "woken"};

/* The meaning of an event after the outcome is set. */
static const uint8_t late[][EVENTS] = {
    [BZ_WAIT_TIMED_OUT] = {[WAKE] = LATE, [CANCEL] = LATE},
    [BZ_WAIT_CANCELLED] = {[WAKE] = LATE, [TIMEOUT] = LATE, [CANCEL] = LATE},
    [BZ_WAIT_WOKEN] = {[TIMEOUT] = LATE, [CANCEL] = LATE},
}; /* BUG is 0, so a missing cell is a bug */

/* One step of the table. True: the caller has set the outcome, and must resume the task. */
static bool end(struct bz_wait *w, enum event event, uint32_t outcome)
{
    uint32_t seen = BZ_WAIT_OPEN;
    if (bz_cas_strong_rel_rlx(&w->arbiter, &seen, outcome)) /* [A] */
        return true;
    uint32_t row = seen < BZ_WAIT_WOKEN ? seen : BZ_WAIT_WOKEN;
    bool is_late = late[row][event] == LATE || (event == WAKE && w->is_shared);
    BZ_CHECK(is_late, "wait %p (%s): %s while %s", (void *)w, w->what, event_name[event],
             row_name[row]);
    return false;
}

/* True if the thread that ends this wait must hold a reference to the task until it has resumed it.
 * A worker of the task's runtime need not: the runtime outlives the call, and the task runs only
 * after it is queued. Any other thread must: the task may end, and its runtime be freed, before the
 * queueing has returned. In the plain form every thread must: an old clone of the task's waker may
 * let it run, and end, as soon as its wait has an outcome. */
static bool must_hold(struct bz_task *t)
{
    struct bz_machine *m = bz_machine_self();
    return bz_is_plain(t->rt) || m == NULL || m->rt != t->rt;
}

/* Return the wake-up of a wait that is about to be claimed, with a reference if needed. */
static struct bz_wake wake_of(struct bz_wait *w)
{
    struct bz_task *t = w->task;
    if (t == NULL)
        return (struct bz_wake){.kind = BZ_WAKE_THREAD, .thread = {w->os, &w->arbiter}};
    bool is_held = must_hold(t);
    if (is_held)
        bz_task_ref(t);
    return (struct bz_wake){.kind = is_held ? BZ_WAKE_HELD_TASK : BZ_WAKE_TASK, .task = t};
}

/* Undo wake_of(): the claim failed. */
static void wake_undo(struct bz_wake *wake)
{
    if (wake->kind == BZ_WAKE_HELD_TASK)
        bz_task_unref(wake->task);
    wake->kind = BZ_WAKE_NONE;
}

bool bz_wait_claim_in_full(struct bz_wait *w, uint32_t outcome, struct bz_wake *wake)
{
    const struct bz_os *os = w->os;
    BZ_ASSERT(outcome >= BZ_WAIT_WOKEN);
    *wake = wake_of(w);
    if (w->is_sole) {
        bz_store_release(&w->arbiter, outcome); /* [A] */
    } else if (!end(w, WAKE, outcome)) {
        wake_undo(wake);
        return false;
    }
    bz_os_delay(os, BZ_OS_AT_CLAIM); /* not through w: the frame may be gone */
    return true;
}

bool bz_wait_claim_called(struct bz_wait *w, uint32_t outcome, struct bz_wake *wake)
{
    return bz_wait_claim(w, outcome, wake);
}

/* Called under the proc's timer lock. Returns the wake-up, which is delivered after unlock. */
struct bz_wake bz_wait_timeout(struct bz_timer *timer)
{
    struct bz_wait *w = BZ_CONTAINER_OF(timer, struct bz_wait, timer);
    struct bz_wake wake = wake_of(w);
    if (!end(w, TIMEOUT, BZ_WAIT_TIMED_OUT))
        wake_undo(&wake);
    return wake;
}

bool bz_wait_time_out(struct bz_wait *w)
{
    return end(w, TIMEOUT, BZ_WAIT_TIMED_OUT);
}

bool bz_wait_cancel(struct bz_wait *w)
{
    return end(w, CANCEL, BZ_WAIT_CANCELLED);
}
