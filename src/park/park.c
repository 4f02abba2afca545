/*
 * park.c - how a task or a thread waits: publish, park, leave. arbiter.c decides, wake.c resumes, cancel.c cancels.
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
 * has an arbiter word in its node, where waker, deadline and canceller meet in one CAS (arbiter.c). The waiter
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
 * The hook publishes on the next stack, so no thread can resume the task before its stack is left, and
 * no "about to park" state needs arbitration. In return, the waiter may leave its frame while the hook still
 * uses it. So the hook holds a lock that every way out takes: the primitive's (wait.h, rule 1),
 * or the timer's, or, with neither, the task's.
 *
 * The pairs are in wait.h.
 *
 * I1  task->wait is written by the task alone, while it runs or by the hook that publishes it.
 * I2  The target of task->wait outlives the wait. A task leaves the wait only after every canceller that
 *     could have seen it: wait.h [L].
 * I3  After the hook's last unlock it touches neither node nor task, unless it has claimed the arbiter
 *     itself or (plain form) the task waits for its PARK.
 * I4  A thread that resumes a task is a worker of its runtime, or holds a reference to the task.
 */
#include "park/park.h"
#include "proc/now.h"

#include <errno.h>

bool bz_wait_wake(struct bz_wait *w, uint32_t outcome)
{
    struct bz_wake wake;
    if (!bz_wait_claim(w, outcome, &wake))
        return false;
    bz_wake_deliver(&wake);
    return true;
}

/* ---- waiting ---- */

void bz_wait_begin_sole(struct bz_wait *w, const struct bz_os *os, const char *what)
{
    bz_wait_begin(w, os, what, BLITZ_FOREVER);
    w->is_sole = true;
    w->near_rt = NULL;
}

bool bz_wait_over(struct bz_wait *w, uint32_t outcome)
{
    bz_store_relaxed(&w->arbiter, outcome); /* relaxed: no other thread sees it */
    return false;
}

/* Set task->wait. Return false if the task is already cancelled and that ended the wait. */
static bool show(struct bz_wait *w, bool *waits)
{
    struct bz_task *t = w->task;
    w->is_published = true;
    w->since = bz_age_now(&t->rt->clock);
    bz_store_release(&t->wait, (uintptr_t)w); /* wait.h [W] [C] */
    bz_wait_order(t->rt);
    if (BZ_LIKELY(!bz_word_is_cancelled(&t->word))) /* wait.h [C] */
        return true;
    *waits = !bz_wait_cancel(w);
    return false;
}

bool bz_wait_publish_flagged(struct bz_wait *w)
{
    bool is_cancelled = bz_word_is_cancelled(&w->task->word); /* not under a shield */
    return !is_cancelled || !bz_wait_cancel(w);
}

bool bz_wait_publish_in_full(struct bz_wait *w)
{
    bool waits = true;
    if (w->task == NULL || w->is_sole)
        return true;
    if (w->until == BLITZ_FOREVER) {
        show(w, &waits);
        return waits;
    }
    struct bz_machine *m = bz_machine_self();
    struct bz_proc *p = m->last;
    bz_timer_init(&w->timer, p,
                  bz_wait_timeout); /* also so that a leaving waiter takes this lock */
    bz_timers_lock(p);
    if (show(w, &waits))
        bz_timer_arm_locked(&w->timer, w->until);
    bz_timers_unlock(p);
    if (BZ_UNLIKELY(m->proc == NULL))
        bz_timers_armed(p); /* another machine has the proc by now */
    return waits;
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
    bool waits = bz_wait_publish(w);
    bz_lock_drop(&t->lock, os);
    return waits;
}

static void hook_wait(void *wait)
{
    struct bz_wait *w = wait;
    bz_wait_register(w, w->hook);
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
    while ((outcome = bz_load_acquire(&w->arbiter)) == BZ_WAIT_OPEN) /* arbiter.c [A] */
        if (bz_os_wait(w->os, &w->arbiter, BZ_WAIT_OPEN, w->until) == -ETIMEDOUT)
            (void)!bz_wait_time_out(w);
    return outcome;
}

void bz_wait_park_again(struct bz_wait *w)
{
    BZ_ASSERT(bz_is_plain(w->task->rt)); /* a spurious wake-up, by an old clone of its waker */
    bz_trace(w->task->rt, park, w->task->id, 0, w->what);
    bz_park();
}

uint32_t bz_wait_park(struct bz_wait *w, bz_wait_hook *hook, void *arg)
{
    w->hook = hook != NULL || w->task == NULL ? hook : sleep_hook;
    w->arg = arg;
    BZ_ASSERT_SLOW((bz_wait_check(w), true));
    return w->task != NULL ? bz_wait_park_task(w, hook_wait) : wait_on_thread(w);
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
    BZ_CHECK(!w->is_sole || !w->is_published, "wait %p (%s): it must not be published", (void *)w,
             w->what);
    BZ_CHECK(w->task == NULL || w->os == w->task->rt->os, "wait %p (%s): of another system",
             (void *)w, w->what);
    BZ_CHECK(w->task != NULL || w->timer.proc == NULL, "wait %p (%s): a thread's timer", (void *)w,
             w->what);
}
