/*
 * join.c - waiting for the end of a task. finish.c has that end.
 *
 * A joiner runs a child that has not started: claim.c. Otherwise the joiner waits, as a fiber (wait.h)
 * or as a future (futures.c).
 *
 * A cancel of a task that joins without a deadline is passed on to the child. The parent cannot return
 * while the child works on its behalf, so it asks the child to stop. Therefore such a join has one waker,
 * the child's end, and no arbiter.
 */
#include <errno.h>

#include "life/finish.h"
#include "life/handle.h"
#include "life/joiner.h"
#include "life/spawn.h"
#include "park/claim.h"
#include "park/join.h"
#include "park/request.h"
#include "proc/ask.h"
#include "proc/batch.h"
#include "proc/enter.h"
#include "sched/loop.h"

/* Complete a fiber that its joiner has run, with the joiner's handle. In the runtime, on m. */
static BZ_ALWAYS_INLINE void end_claimed(struct bz_machine *m, struct bz_task *t)
{
    struct bz_runtime *rt = m->rt;
    bz_os_delay(rt->os, BZ_OS_AT_PUBLISH);
    enum bz_exit is = bz_word_exit(&t->word, 2); /* the scheduler's and the handle's */
    bool is_let_out = (is == BZ_EXIT_LAST && m->proc != NULL && bz_task_is_kept(m, t)) ||
                      (is == BZ_EXIT_DONE && m->proc != NULL && rt->tasks.max == 0);
    if (BZ_LIKELY(is_let_out)) {
        bz_os_delay(rt->os, BZ_OS_AT_PUBLISH);
        bz_live_end_near(&rt->tasks.live, &m->proc->tasks.live);
        return;
    }
    if (is == BZ_EXIT_TELL)
        bz_task_wake_joiners(t, 2);
    else if (is == BZ_EXIT_LAST)
        t->ops->drop(t);
    bz_task_strike(rt);
}

/* ---- joining, as a request ---- */

static struct bz_task *joined(struct bz_request *r)
{
    return BZ_CONTAINER_OF(r, struct bz_join, request)->task;
}

static void join_lock(struct bz_request *r)
{
    struct bz_task *t = joined(r);
    bz_lock_take(&t->lock, t->rt->os);
}

/* A join serves no other, so there are no wake-ups. */
static void join_unlock(struct bz_request *r, struct bz_wakelist *wakes)
{
    struct bz_task *t = joined(r);
    (void)wakes;
    bz_lock_drop(&t->lock, t->rt->os);
}

/* Register among the joiners, unless the task has ended. */
static bool join_enter(struct bz_request *r, struct bz_wakelist *wakes)
{
    struct bz_task *t = joined(r);
    (void)wakes;
    if (!bz_word_want_join(&t->word))
        return true;
    bz_waiter_queue(&r->waiter, &t->joiners);
    return false;
}

/* Also waits out a finisher that has the lock; afterwards no other thread knows of the waiter. */
static bool join_leave(struct bz_request *r, struct bz_wakelist *wakes)
{
    (void)wakes;
    bz_waiter_leave(&r->waiter);
    return true;
}

static const struct bz_request_ops joining = {.what = "join",
                                              .lock = join_lock,
                                              .unlock = join_unlock,
                                              .enter = join_enter,
                                              .leave = join_leave};

void bz_join_init(struct bz_join *j, const blitz_future_ops *ops, struct bz_task *t)
{
    j->f.ops = ops;
    j->task = t;
    j->request.ops = &joining;
    bz_waiter_init_polled(&j->request.waiter);
}

blitz_poll bz_join_poll(blitz_future *future, const blitz_waker *waker)
{
    struct bz_join *j = BZ_CONTAINER_OF(future, struct bz_join, f);
    bool is_over = bz_word_is_complete(&j->task->word) || bz_request_poll(&j->request, waker);
    return is_over ? BLITZ_READY : BLITZ_PENDING;
}

void bz_join_cancel(blitz_future *future)
{
    (void)bz_request_cancel(&BZ_CONTAINER_OF(future, struct bz_join, f)->request);
}

/* ---- joining with a stack ---- */

/* The hook of the wait links the joiner, unless the task has ended meanwhile. */
static int join_park(struct bz_task *t, struct bz_wait *w)
{
    struct bz_join j;
    j.task = t;
    j.request.ops = &joining;
    bz_waiter_init(&j.request.waiter, w, BZ_WAIT_WOKEN);
    return bz_request_park(&j.request, w);
}

/* Wait until the child ends, and for nothing else; a cancel goes to the child. */
static int join_for_ever(struct bz_task *me, struct bz_task *t)
{
    struct bz_wait w;
    const struct bz_os *os = me != NULL ? me->rt->os : t->rt->os;
    bool hosts;
    int err;
    if (me != NULL)
        bz_wait_enter_child(me, t);
    do {
        bz_wait_begin_sole(&w, os, "join");
        err = join_park(t, &w);
        hosts = bz_wait_outcome(&w) == BZ_WAIT_HOSTS;
        if (BZ_UNLIKELY(hosts))
            bz_host_run(t); /* there is no other stack for it */
    } while (hosts && !bz_word_is_complete(&t->word));
    if (me != NULL)
        bz_wait_leave_child(me, t);
    return err;
}

static int join_wait(struct bz_task *me, struct bz_task *t, blitz_deadline until)
{
    struct bz_wait w;
    if (bz_word_is_complete(&t->word))
        return 0;
    if (until == BLITZ_FOREVER)
        return join_for_ever(me, t);
    bz_wait_begin(&w, me != NULL ? me->rt->os : t->rt->os, "join", until);
    return join_park(t, &w);
}

/* Join, and take the result in either form before the handle is given up. */
static int join(struct bz_task *t, blitz_deadline until, int *result, void **pointer)
{
    struct bz_task *me = bz_task_self();
    enum bz_ran ran = BZ_RAN_PENDING;
    if (t == NULL)
        return -EINVAL;
    if (t == me)
        return -EDEADLK;
    if (until == BLITZ_FOREVER && bz_claim(t, &ran) && ran != BZ_RAN_DONE)
        bz_task_set_aside(t, ran); /* it stopped half-way, without a stack */
    int err = ran == BZ_RAN_DONE ? 0 : join_wait(me, t, until);
    if (err != 0)
        return err;
    if (result != NULL)
        *result = bz_task_result(t);
    if (pointer != NULL)
        *pointer = bz_task_take_pointer(t);
    if (ran == BZ_RAN_DONE)
        bz_task_complete(t, 2); /* the scheduler's and the handle's */
    else
        bz_handle_give_up(t);
    return 0;
}

/* Take t out of the `next` slot, or leave a tombstone in the ring or the injector: claim.c. Return false if it is in the
 * batch, or another worker has started it. In the runtime, on p. */
static BZ_ALWAYS_INLINE bool claim_near(struct bz_machine *m, struct bz_proc *p, struct bz_task *t)
{
    bool is_next = bz_load_relaxed(&p->next) == bz_entry_first(t); /* relaxed: ours to touch */
    if (BZ_UNLIKELY(!is_next && bz_batch_left(&p->batch) != 0) ||
        BZ_UNLIKELY(!bz_word_claim(&t->word, is_next ? 0 : 1)))
        return false;
    if (is_next)
        bz_store_relaxed(&p->next, 0); /* relaxed: ours to touch */
    else if (BZ_UNLIKELY(--p->tombstones == 0))
        bz_claim_tidy(m);
    bz_count(&p->counters, claimed);
    return true;
}

/*
 * The common join: the child is a fiber with default options that has not started. Claim it, call it and end it
 * with one entry into the runtime before the call and one after it. The steps are those of claim.c and of
 * bz_task_complete().
 * Returns: true: it ran, ended, and the handle is given up. False: nothing was done.
 */
static BZ_ALWAYS_INLINE bool join_near(struct bz_machine *m, struct bz_task *t, int *result)
{
    struct bz_task *me = m->current;
    if (bz_word_is_started(&t->word))
        return false; /* a hint; it is checked again in the runtime */
    if (BZ_UNLIKELY(me == NULL || !bz_retake_is_usual(&m->taken) || bz_trace_is_on() ||
                    bz_load_relaxed(bz_asked_of(&m->deque.ends)) != 0 || /* relaxed: a hint */
                    !bz_deque_is_surely_empty(&m->deque) || (me->marks & BZ_MARK_LOCKED)))
        return false;
    if (BZ_UNLIKELY(t->rt != m->rt || t->ops != &bz_fiber_ops || t->traits != 0 ||
                    !bz_claim_has_room(m)))
        return false;
    if (BZ_UNLIKELY(!bz_retake_enter_usual(&m->taken)))
        bz_proc_lost(m);
    struct bz_proc *p = m->proc;
    BZ_ASSERT(p == NULL || !p->is_plain); /* bz_retake_is_usual: it has barriers */
    if (BZ_UNLIKELY(p == NULL) || !claim_near(m, p, t)) {
        bz_leave_on(m, BZ_IN_USER);
        return false;
    }
    bz_wait_enter_child_by(me, t, false);
    bz_watch_end(m, me);
    bz_watch_begin(m, t);
    BZ_PROBE(claim, t->id, me->id);
    m->current = t;
    bz_leave_on(m, BZ_IN_USER);
    (void)!bz_run_child(t); /* a fiber ends when it returns */
    m = bz_machine_self();  /* the child may have moved to another machine */
    if (BZ_UNLIKELY(!bz_retake_enter_usual(&m->taken)))
        bz_proc_lost(m);
    bz_watch_jobs(m, t, NULL, false);
    m->current = me;
    if (BZ_UNLIKELY(t->marks & BZ_MARK_LOCKED))
        bz_locked_end(m);
    bz_watch_end(m, t);
    bz_watch_begin(m, me);
    bz_wait_leave_by(me, false);
    if (result != NULL)
        *result = bz_task_result(t);
    end_claimed(m, t);
    bz_leave_on(m, BZ_IN_USER);
    return true;
}

int blitz_task_join(blitz_task *t, int *result, blitz_deadline until)
{
    struct bz_machine *m = bz_machine_self();
    if (BZ_LIKELY(m != NULL) && BZ_LIKELY(t != NULL) && until == BLITZ_FOREVER &&
        join_near(m, (struct bz_task *)t, result))
        return 0;
    return join((struct bz_task *)t, until, result, NULL);
}

int blitz_task_join_ptr(blitz_task *t, void **out, blitz_deadline until)
{
    return join((struct bz_task *)t, until, NULL, out);
}
