/*
 * await.c - waiting for a future, from a task or from a plain thread.
 *
 * Both are the same loop: poll the future; if it is not ready and there is no reason to give up, stop
 * until a waker says "look again". A task stops by parking, a thread by sleeping on a word; the waker
 * hides which. Wake-ups may come early, late or without a reason. The loop polls again, so only the
 * future decides.
 *
 * Giving up (a deadline, a cancel) is a request to the future, which answers by its class. A revocable
 * or detachable future ends at once. A pinned future is polled until it is ready.
 *
 * If there is no memory for the waker of a plain thread (waker.c), the thread polls again every millisecond
 * instead.
 *
 * Any thread may wake a clone of a waker at any time. So a task parks here behind its state word, with
 * its full protocol: the most expensive wait there is. A wait that knows its waker, such as a sleep or
 * a join, uses a node of its own instead (wait.h).
 *
 * A sleep on a stack is written apart from the sleep future: it is a wait that only its deadline or a cancel
 * ends. To await the future would take 1312 instructions instead of 925 (42 %).
 *
 * The swallowed wake. A future's poll may wait itself, in the ordinary way. That wait may consume a
 * wake-up that was meant for the future, which then returns "pending" without another check. So after a
 * poll in which the task has left its stack, pending means: poll once more before parking. There may be
 * one poll too many, never one too few. (stackless.c has the same rule for stackless tasks.) Such a poll
 * delays a task that waits for several futures at once. Debug builds warn of it, once for each name.
 */
#include <errno.h>

#include "base/log.h"
#include "life/deadlines.h"
#include "park/await.h"
#include "proc/now.h"
#include "proc/place.h"
#include "sched/loop.h"
#include "wait/peek.h"
#include "wait/wait.h"
#include "wait/waker.h"

/* ---- a plain thread that waits ---- */

static int await_on_thread(const struct bz_os *os, blitz_future *f, blitz_deadline until)
{
    struct bz_parker *p = bz_parker_new(os);
    bz_os_word alone = 0; /* without a parker: no waker wakes it */
    blitz_waker w = p != NULL ? (blitz_waker){&bz_parker_waker, p} : (blitz_waker){NULL, NULL};
    bz_os_word *word = p != NULL ? &p->woken : &alone;
    int err = 0;
    while (f->ops->poll(f, &w) == BLITZ_PENDING) {
        uint64_t now = bz_os_now(os);
        if (err == 0 && now >= until) {
            err = -ETIMEDOUT;
            if (!bz_future_cancel(f))
                break;
            continue;
        }
        uint64_t sleep = err == 0 ? until : BLITZ_FOREVER;
        uint64_t by = p != NULL ? p->by : now + BLITZ_MS;
        if (sleep > by)
            sleep = by;
        bz_os_wait(os, word, 0, sleep);
        bz_xchg_acquire(word, 0); /* waker.c [A] */
        if (p != NULL)
            p->by = BLITZ_FOREVER;
    }
    blitz_waker_drop(&w);
    return err;
}

/* ---- a task that waits ---- */

/* Poll the future, and report whether the task has left its stack meanwhile. The callers use the mark, too, so it
 * is put back. */
static blitz_poll poll_and_tell(struct bz_task *t, blitz_future *f, const blitz_waker *w,
                                bool *has_waited)
{
    uint8_t before = t->marks & BZ_MARK_WAITED;
    t->marks &= (uint8_t)~BZ_MARK_WAITED;
    blitz_poll answer = f->ops->poll(f, w);
    *has_waited = (t->marks & BZ_MARK_WAITED) != 0;
    t->marks |= before;
    return answer;
}

#if defined(BZ_WATCH)
/* Warn once for each of the first few kinds. */
static void warn_of_waiting(const blitz_future *f)
{
    static bz_atomic(const char *) said[8];
    for (size_t i = 0; i < BZ_ARRAY_LEN(said); i++) {
        const char *seen = NULL;
        /* relaxed: constant strings; it decides only which thread warns */
        if (bz_cas_strong_rlx_rlx(&said[i], &seen, f->ops->name)) {
            bz_log(BLITZ_LOG_WARN,
                   "future \"%s\" waits inside its poll: it holds up those beside it",
                   f->ops->name);
            return;
        }
        if (seen == f->ops->name)
            return;
    }
}
#endif

blitz_poll bz_future_poll(blitz_future *f, const blitz_waker *w)
{
#if defined(BZ_WATCH)
    struct bz_task *t = bz_task_self();
    if (t != NULL) {
        bool has_waited;
        blitz_poll answer = poll_and_tell(t, f, w, &has_waited);
        if (has_waited) {
            warn_of_waiting(f);
            t->marks |= BZ_MARK_WAITED;
        }
        return answer;
    }
#endif
    return f->ops->poll(f, w);
}

/* Return the reason why the task should give up its wait now: 0, -ECANCELED or -ETIMEDOUT. */
static int reason_to_give_up(struct bz_task *t, blitz_deadline until)
{
    if (bz_word_is_cancelled(&t->word))
        return -ECANCELED;
    if (bz_has_passed(t->rt->os, until))
        return -ETIMEDOUT;
    return 0;
}

/* A deadline of the loop below: one more reason to poll again. */
struct await_timer {
    struct bz_timer timer;
    struct bz_task *task; /* alive while the timer is armed: this lies in its frame */
};

static struct bz_wake await_timeout(struct bz_timer *timer)
{
    bz_task_wake(BZ_CONTAINER_OF(timer, struct await_timer, timer)->task);
    return (struct bz_wake){.kind = BZ_WAKE_NONE};
}

/* There are too few stacks: run a task that this wait depends on. */
static BZ_NOINLINE void run_hosted(struct bz_task *me, struct bz_host *h)
{
    struct bz_task *t = h->hosted;
    h->hosted = NULL;
    bz_task_ref(t); /* a canceller looks at it until leave_child */
    bz_wait_enter_child(me, t);
    bz_host_run(t);
    bz_wait_leave_child(me, t);
    bz_task_unref(t);
}

static int await_in_task(struct bz_task *t, blitz_future *f, blitz_deadline until)
{
    blitz_waker w = {&bz_task_waker, t}; /* borrowed: the task is here, so it lives */
    struct bz_host host = {.as = {f->ops}, .f = f, .until = until, .hosted = NULL};
    struct await_timer deadline = {.timer.proc = NULL, .task = t};
    int err = 0;
    bool has_waited;
    while (poll_and_tell(t, f, &w, &has_waited) == BLITZ_PENDING) {
        if (err == 0 && (err = reason_to_give_up(t, until)) != 0) {
            if (!bz_future_cancel(f))
                break;
            continue; /* it may be ready by now */
        }
        if (has_waited)
            continue; /* a wake may have been swallowed */
        if (until != BLITZ_FOREVER && deadline.timer.proc == NULL) {
            bz_timer_init(&deadline.timer, bz_proc_for_timers(), await_timeout);
            bz_timer_arm(&deadline.timer, until);
        }
        bz_wait_say(t, (uintptr_t)&host | BZ_WAIT_FUTURE);
        bz_trace(t->rt, park, t->id, 0, f->ops->name);
        bz_park();
        bz_wait_say(t, 0); /* before its poll, which may itself wait */
        if (BZ_UNLIKELY(host.hosted != NULL))
            run_hosted(t, &host);
    }
    if (deadline.timer.proc != NULL)
        bz_timer_disarm(&deadline.timer);
    return err;
}

int bz_await(const struct bz_os *os, blitz_future *f, blitz_deadline until)
{
    struct bz_task *t = bz_task_self();
    if (t == NULL)
        return await_on_thread(os, f, until);
    int err = await_in_task(t, f, until);
    bz_look_up(); /* a future that is always ready must not go on for ever: ask.c */
    return err;
}

int blitz_await(blitz_future *f, blitz_deadline until)
{
    return bz_await(bz_os_outside(), f, until);
}

/* ---- time ---- */

uint64_t blitz_now(void)
{
    return bz_time_here();
}

blitz_instant blitz_now_roughly(void)
{
    struct bz_machine *m = bz_machine_self();
    return m != NULL ? bz_machine_now(m) : blitz_now();
}

blitz_deadline blitz_after(uint64_t ns)
{
    return blitz_time_add(blitz_now(), ns);
}

blitz_duration blitz_deadline_left(blitz_deadline d)
{
    return d == BLITZ_FOREVER ? BLITZ_FOREVER : blitz_time_between(blitz_now(), d);
}

int blitz_sleep_until(blitz_deadline when)
{
    struct bz_wait w;
    bz_wait_begin(&w, bz_os_here(), "sleep", when);
    uint32_t outcome = bz_wait_refuse(&w);
    if (outcome == BZ_WAIT_OPEN)
        outcome = bz_wait_park(&w, NULL, NULL);
    else if (outcome == BZ_WAIT_CANCELLED)
        blitz_yield(); /* a loop around a sleep that ignores its cancel must not keep the proc */
    bz_look_up();      /* ask.c: the time may have been past */
    return outcome == BZ_WAIT_CANCELLED ? -ECANCELED : 0;
}

int blitz_sleep(uint64_t ns)
{
    return blitz_sleep_until(blitz_after(ns));
}
