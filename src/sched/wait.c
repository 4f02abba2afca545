/*
 * wait.c - one outcome for every wait, and cancelling wherever a task waits.
 *
 * The cost of a wait depends on the parties that may end it. Measured on a prototype (EPYC, best of many): two
 * fibers wake each other through a slot, in ns per wait, a switch included. The last column is a round trip
 * between a waiter and a waker on two CPUs:
 *
 *   ended by                     form                              one CPU   with a lock   two CPUs
 *   any thread, at any time      the state word: park, wake, run   16.7      22.5          166
 *   waker, deadline, canceller   an arbiter in the frame: 1 CAS    10.3      10.6          117
 *                                an arbiter in the task header     11.1      10.1          162
 *   the waker alone              a token: no CAS                    8.2       9.8          115
 *
 * So cloned wakers keep the state word (await.c), and tolerate spurious wake-ups. Every other wait
 * has an arbiter word in its node, where waker, deadline and canceller meet in one CAS. The waiter
 * itself makes no read-modify-write, and its task stays *running* in its word. The winner of the CAS queues
 * the task as a resumed entry. An arbiter in the task header would need a sequence number, and one more cache
 * line would move between CPUs; the waker has the node's cache line already.
 *
 * Few waits are ended by the waker alone. A deadline is a second party, and nearly every task can be cancelled: by a
 * handle, by shutdown. Two waits remain. A join without a deadline: a cancel is passed on to the child,
 * and still only the child's end ends the join. And the wait of a plain thread without a deadline.
 * (A wait whose registration is guarded by a lock could do without the arbiter too, if a canceller
 * unlinked the node under that lock. Not done: it would save 1 to 3 ns here, and put the
 * primitive's lock behind task->lock for every primitive.)
 *
 *                  WAKE       TIMEOUT      CANCEL
 *   open           woken +    timed out +  cancelled +   + this party must resume the task
 *   timed out      late       (bug)        late          late: nothing changes, no duty to resume
 *   cancelled      late       late         late          (the hook and a canceller may both come)
 *   woken          (bug *)    late         late          * of a shared wait: late
 *
 * The hook publishes on the next stack, so no thread can resume the task before its stack is left, and
 * no "about to park" state needs arbitration. In return, the waiter may leave its frame while the hook still
 * uses it. So the hook holds a lock that every way out takes: the primitive's (wait.h, rule 1),
 * or the timer's, or, with neither, the task's.
 *
 * A cancel is a mark, a barrier and a delivery (drawn in wait.h). The delivery depends on the kind of wait:
 *
 *   none that we know     the task is woken. It runs, or it is parked behind a waker and polls again; or
 *                         it joins a forked job: the wake does not resume it, and it finds the wake later
 *   a node                CANCEL of the table
 *   a child               the cancel is passed on to the child, whose end ends the wait. The parent
 *                         is not woken: it could only wait again. A loop walks the chain of joins,
 *                         with a reference to the current link
 *   either, shielded      nothing: the first wait outside of the shield finds the mark
 *
 * Rejected:
 *  - waking the parent and letting it cancel its child itself: that is a switch to it and back. And for a
 *    claimed child there is no parked parent to wake: its parent is the frame below;
 *  - walking the chain under the locks of all its links: tasks that join each other would deadlock two cancellers.
 *
 * I1  task->wait is written by the task alone, while it runs or by the hook that publishes it.
 * I2  The target of task->wait outlives the wait. A task leaves the wait only after every canceller that
 *     could have seen it: [L].
 * I3  After the hook's last unlock it touches neither node nor task, unless it has claimed the arbiter
 *     itself or (plain form) the task waits for its PARK.
 * I4  A thread that resumes a task is a worker of its runtime, or holds a reference to the task.
 *
 * [W] publish, enter: wait release -> deliver: wait acquire   the target of the wait was filled in before
 * [C] publish, enter: wait, order, flag -> cancel: flag, barrier, wait   one of them sees the other
 * [L] leave: wait, order, flag -> cancel: flag, barrier, wait   one of them sees the other
 * [A] end, wake: arbiter release -> park: arbiter acquire   what the waker did is visible to the waiter
 */
#include "sched/wait.h"

#include <errno.h>

/* ---- the arbiter ---- */

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

/* Queue a task whose wait has an outcome. Its stack is left, or will be before the PARK of the
 * plain form. */
static void resume(struct bz_task *t)
{
    if (bz_is_plain(t->rt)) {
        bz_task_wake(t);
    } else {
        bz_trace_wake(t, 0);
        bz_place(t->rt, bz_entry_resumed(t));
    }
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

static BZ_NOINLINE void deliver_rarer(struct bz_wake *wake)
{
    if (wake->kind == BZ_WAKE_HELD_TASK) {
        resume(wake->task);
        bz_task_unref(wake->task);
    } else if (wake->kind == BZ_WAKE_THREAD) {
        bz_os_wake(wake->thread.os, wake->thread.word, 1); /* by address: the frame may be gone */
    } else if (wake->kind == BZ_WAKE_WAKER) {
        blitz_waker_wake(&wake->waker);
    }
}

void bz_wake_deliver(struct bz_wake *wake)
{
    if (BZ_LIKELY(wake->kind == BZ_WAKE_TASK))
        resume(wake->task);
    else
        deliver_rarer(wake);
}

bool bz_wait_wake(struct bz_wait *w, uint32_t outcome)
{
    struct bz_wake wake;
    if (!bz_wait_claim(w, outcome, &wake))
        return false;
    bz_wake_deliver(&wake);
    return true;
}

/* Called under the proc's timer lock. Returns the wake-up, which is delivered after unlock. */
static struct bz_wake wait_timeout(struct bz_timer *timer)
{
    struct bz_wait *w = BZ_CONTAINER_OF(timer, struct bz_wait, timer);
    struct bz_wake wake = wake_of(w);
    if (!end(w, TIMEOUT, BZ_WAIT_TIMED_OUT) && !BZ_BROKEN(82))
        wake_undo(&wake);
    return wake;
}

/* ---- waiting ---- */

void bz_wait_begin_sole(struct bz_wait *w, const struct bz_os *os, const char *what)
{
    bz_wait_begin(w, os, what, BLITZ_FOREVER);
    w->is_sole = true;
}

bool bz_wait_over(struct bz_wait *w, uint32_t outcome)
{
    bz_store_relaxed(&w->arbiter, outcome); /* relaxed: no other thread sees it */
    return false;
}

/* Set task->wait. Return false if the task is already cancelled and that ended the wait. */
static bool show(struct bz_wait *w, bool *goes_on)
{
    struct bz_task *t = w->task;
    bool is_cancelled = BZ_BROKEN(81) && bz_word_is_cancelled(&t->word); /* planted bug: reads too
                                                                          * early */
    w->is_published = true;
    w->since = bz_age_now(&t->rt->clock);
    bz_store_release(&t->wait, (uintptr_t)w); /* [W] [C] */
    bz_wait_order(t->rt);
    if (!BZ_BROKEN(81))
        is_cancelled = bz_word_is_cancelled(&t->word); /* [C] */
    if (BZ_LIKELY(!is_cancelled))
        return true;
    *goes_on = !end(w, CANCEL, BZ_WAIT_CANCELLED);
    return false;
}

bool bz_wait_publish_flagged(struct bz_wait *w)
{
    if (BZ_BROKEN(341))
        return bz_wait_publish_in_full(w);
    bool is_cancelled = bz_word_is_cancelled(&w->task->word); /* not under a shield */
    return !is_cancelled || !end(w, CANCEL, BZ_WAIT_CANCELLED);
}

bool bz_wait_publish_in_full(struct bz_wait *w)
{
    bool goes_on = true;
    if (w->task == NULL || w->is_sole)
        return true;
    if (w->until == BLITZ_FOREVER) {
        show(w, &goes_on);
        return goes_on;
    }
    struct bz_machine *m = bz_machine_self();
    struct bz_proc *p = m->last;
    bz_timer_init(&w->timer, p, wait_timeout); /* also so that a leaving waiter takes this lock */
    bz_timers_lock(p);
    if (show(w, &goes_on))
        bz_timer_arm_locked(&w->timer, w->until);
    bz_timers_unlock(p);
    if (BZ_UNLIKELY(m->proc == NULL))
        bz_timers_armed(p); /* another machine has the proc by now */
    return goes_on;
}

/* The hook of a wait that only a deadline or a cancel ends: under the timer's lock, or else the
 * task's. */
static bool sleep_hook(struct bz_wait *w, void *arg)
{
    struct bz_task *t = w->task;
    const struct bz_os *os = t->rt->os;
    (void)arg;
    if (w->until != BLITZ_FOREVER)
        return bz_wait_publish(w);
    bz_lock_take(&t->lock, os);
    bool goes_on = bz_wait_publish(w);
    bz_lock_drop(&t->lock, os);
    return goes_on;
}

/* On the next stack: register, and resume the task at once if there is nothing to wait for. */
static void hook_wait(void *wait)
{
    struct bz_wait *w = wait;
    struct bz_task *t = w->task;
    struct bz_runtime *rt = t->rt;
    bool is_plain = bz_is_plain(rt);
    bz_os_delay(rt->os, BZ_OS_AT_PUBLISH);
    if (!w->hook(w, w->arg)) {
        bz_trace_wake(t, t->id); /* by itself */
        resume(t);
    }
    if (is_plain && bz_word_step(&t->word, BZ_PARK) == BZ_OWES_ENQUEUE) /* I3 */
        bz_place(rt, bz_entry_resumed(t));
}

uint32_t bz_wait_refuse_in_full(struct bz_wait *w)
{
    if (w->task != NULL && !w->is_sole && bz_word_is_cancelled(&w->task->word))
        return BZ_WAIT_CANCELLED;
    if (bz_has_passed(w->os, w->until))
        return BZ_WAIT_TIMED_OUT;
    return BZ_WAIT_OPEN;
}

static uint32_t wait_on_thread(struct bz_wait *w)
{
    uint32_t outcome;
    if (w->hook != NULL)
        (void)w->hook(w, w->arg);
    while ((outcome = bz_load_acquire(&w->arbiter)) == BZ_WAIT_OPEN) /* [A] */
        if (bz_os_wait(w->os, &w->arbiter, BZ_WAIT_OPEN, w->until) == -ETIMEDOUT)
            (void)end(w, TIMEOUT, BZ_WAIT_TIMED_OUT);
    return outcome;
}

static uint32_t wait_in_task(struct bz_wait *w)
{
    uint32_t outcome;
    if (BZ_BROKEN(84))
        bz_timers_lock(bz_machine_self()->last);
    bz_trace(w->task->rt, park, w->task->id, 0, w->what);
    bz_suspend(hook_wait, w);
    while ((outcome = bz_load_acquire(&w->arbiter)) == BZ_WAIT_OPEN) { /* [A] */
        BZ_ASSERT(bz_is_plain(w->task->rt)); /* a spurious wake-up, by an old clone of its waker */
        bz_trace(w->task->rt, park, w->task->id, 0, w->what);
        bz_park();
    }
    if (w->timer.proc != NULL && outcome != BZ_WAIT_TIMED_OUT)
        bz_timer_disarm(&w->timer);
    if (w->is_published)
        bz_wait_leave(w->task); /* I2 */
    return outcome;
}

uint32_t bz_wait_park(struct bz_wait *w, bz_wait_hook *hook, void *arg)
{
    w->hook = hook != NULL || w->task == NULL ? hook : sleep_hook;
    w->arg = arg;
    BZ_ASSERT_SLOW((bz_wait_check(w), true));
    return w->task != NULL ? wait_in_task(w) : wait_on_thread(w);
}

int bz_wait_error(uint32_t outcome)
{
    switch (outcome) {
    case BZ_WAIT_TIMED_OUT:
        return -ETIMEDOUT;
    case BZ_WAIT_CANCELLED:
        return -ECANCELED;
    default:
        return 0;
    }
}

void bz_wait_check(struct bz_wait *w)
{
    BZ_CHECK(!w->is_sole || w->until == BLITZ_FOREVER,
             "wait %p (%s): a deadline, but only its waker may end it", (void *)w, w->what);
    BZ_CHECK(!w->is_sole || !w->is_published, "wait %p (%s): nobody may see it", (void *)w,
             w->what);
    BZ_CHECK(w->task == NULL || w->os == w->task->rt->os, "wait %p (%s): of another system",
             (void *)w, w->what);
    BZ_CHECK(w->task != NULL || w->timer.proc == NULL, "wait %p (%s): a thread's timer", (void *)w,
             w->what);
}

/* ---- cancelling ---- */

void bz_wait_pass_on(struct bz_task *me, struct bz_task *child)
{
    if (bz_word_is_cancelled(&me->word))
        bz_task_cancel(child);
}

void bz_wait_settle(struct bz_task *me)
{
    bz_lock_take(&me->lock, me->rt->os);
    bz_lock_drop(&me->lock, me->rt->os);
}

bool bz_task_cancel_mark(struct bz_task *t)
{
    return bz_word_cancel(&t->word);
}

void bz_task_cancel_barrier(struct bz_runtime *rt)
{
    if (bz_is_plain(rt))
        bz_fence_seqcst(); /* [C] [L] */
    else
        bz_barrier_pay(&rt->barrier); /* [C] [L] */
}

/* End the wait of t, or return the child to pass the cancel on to, with a reference, or NULL. We
 * hold the lock of t, so the target of its wait is alive. */
static struct bz_task *end_or_pass_on(struct bz_task *t, uintptr_t wait)
{
    void *in = (void *)(wait & ~(uintptr_t)BZ_WAIT_TAG_MASK); /* NOLINT: a tagged pointer */
    if (wait == 0 || !bz_word_is_cancelled(&t->word))
        return NULL;
    if ((wait & BZ_WAIT_TAG_MASK) == BZ_WAIT_CHILD) {
        bz_task_ref(in);
        return in;
    }
    if (end(in, CANCEL, BZ_WAIT_CANCELLED))
        resume(t); /* the canceller has a reference */
    return NULL;
}

/* Return task->wait for a canceller: 0 for jobs and futures, which are recorded for dumps alone. */
static uintptr_t wait_of(struct bz_task *t)
{
    uintptr_t wait = bz_load_acquire(&t->wait); /* [W] [C] [L] */
    uintptr_t tag = wait & BZ_WAIT_TAG_MASK;
    return tag == BZ_WAIT_JOB || tag == BZ_WAIT_FUTURE ? 0 : wait;
}

/* Deliver to one task. Returns the child to pass the cancel on to, with a reference, or NULL. */
static struct bz_task *deliver(struct bz_task *t)
{
    const struct bz_os *os = t->rt->os;
    bz_jobs_cancel(t);
    bz_lock_take(&t->lock, os); /* I2 */
    uintptr_t wait = wait_of(t);
    struct bz_task *child = end_or_pass_on(t, wait);
    bz_lock_drop(&t->lock, os);
    if (wait == 0)
        bz_task_wake(t);
    return child;
}

/* Pass the cancel down a chain of joins, beginning with a child to which we hold a reference. */
static void pass_down(struct bz_task *child)
{
    while (child != NULL) {
        struct bz_task *next = NULL;
        if (bz_task_cancel_mark(child)) {
            bz_task_cancel_barrier(child->rt);
            next = deliver(child);
        }
        bz_task_unref(child);
        child = next;
    }
}

void bz_task_cancel_deliver(struct bz_task *t)
{
    pass_down(deliver(t));
}

void bz_task_cancel(struct bz_task *t)
{
    if (!bz_task_cancel_mark(t))
        return;
    bz_task_cancel_barrier(t->rt);
    bz_task_cancel_deliver(t);
}
