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

#include "life/escape.h"
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
#include "proc/fresh.h"
#include "sched/loop.h"

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

/* ---- the common join: the child is a simple fiber that has not started ---- */

/* True if there is a calling task, on a proc, and it may run a child on its stack by the fast path. In the runtime. */
static BZ_ALWAYS_INLINE bool may_run_child(struct bz_machine *m)
{
    if (!bz_deque_is_usual(&m->deque))
        return false;
    BZ_ASSERT(m->current != NULL && m->proc != NULL);
    return BZ_LIKELY(bz_equals_relaxed(bz_asked_of(&m->deque.ends), 0)) && /* relaxed: a hint */
           BZ_LIKELY(bz_claim_has_room(m));
}

/* The calling task, me, has claimed t and goes on as t. In the runtime. */
static BZ_ALWAYS_INLINE void become(struct bz_machine *m, struct bz_proc *p, struct bz_task *me,
                                    struct bz_task *t)
{
    bz_count(&p->counters, claimed);
    bz_wait_enter_child_by(me, t, false);
    bz_watch_end(m, me);
    bz_watch_begin(m, t);
    BZ_PROBE(claim, t->id, me->id);
    m->current = t;
}

/* Take t out of the fresh list. False: it is not there, or another proc wants work: nothing was done. After may_run_child(),
 * as the next two. */
static BZ_ALWAYS_INLINE bool claim_fresh(struct bz_machine *m, struct bz_proc *p, struct bz_task *t)
{
    unsigned at;
    /* relaxed: a guess, the claim decides */
    if (!bz_equals_relaxed(&t->word, BZ_WORD_FRESH_ALONE) || !bz_fresh_has(p, t, &at) ||
        BZ_UNLIKELY(!bz_idle_is_quiet(&m->rt->idle)) || BZ_UNLIKELY(!bz_word_claim_alone(&t->word)))
        return false;
    bz_fresh_take(p, at);
    return true;
}

/* Take t out of the `next` slot. False: it is not there, or is no simple task of ours; nothing was done. */
static BZ_ALWAYS_INLINE bool claim_next(struct bz_proc *p, struct bz_task *t)
{
    if (!bz_equals_relaxed(&p->next, bz_entry_first(t)) || /* relaxed: ours to touch */
        BZ_UNLIKELY(!bz_word_claim_alone(&t->word)))
        return false;
    bz_store_relaxed(&p->next, 0); /* relaxed: ours to touch */
    return true;
}

/* Claim t (NULL: there is none) if only this proc knows it, and go on as t. False: nothing was done. */
static BZ_ALWAYS_INLINE bool claim_near(struct bz_machine *m, struct bz_task *me, struct bz_task *t)
{
    bool is_in = bz_retake_enter_usual(&m->taken);
    struct bz_proc *p = m->proc;
    if (BZ_LIKELY(is_in) && BZ_LIKELY(may_run_child(m)) &&
        (claim_next(p, t) || (t != NULL && claim_fresh(m, p, t)))) {
        become(m, p, me, t);
        bz_leave_on(m, BZ_IN_USER);
        return true;
    }
    bz_leave_on(m, BZ_IN_USER);
    return false;
}

/* Test builds: the calling task is `me` again. A failed check dumps all tasks, so this is no part of a brief section. */
static BZ_ALWAYS_INLINE void watch_back(struct bz_task *me, struct bz_task *t)
{
#if defined(BZ_WATCH)
    uint32_t was;
    struct bz_machine *m = bz_enter_as(&was);
    bz_watch_jobs(m, t, NULL, false);
    bz_watch_end(m, t);
    bz_watch_begin(m, me);
    bz_leave_on(m, was);
#else
    (void)me;
    (void)t;
#endif
}

/* Complete a child that its joiner has run, with the joiner's handle. */
static BZ_NOINLINE void end_in_full(struct bz_task *me, struct bz_task *t)
{
    uint32_t was;
    struct bz_machine *m = bz_enter_as(&was);
    m->current = me;
    if (BZ_UNLIKELY(t->marks & BZ_MARK_LOCKED))
        bz_locked_end(m);
    bz_wait_leave_by(me, false);
    bz_task_complete(t, 2); /* the scheduler's and the handle's */
    bz_leave_on(m, was);
}

/* The header has no references any more, and does not fit into the stash: the rest of end_alone(), which calls nothing in
 * between and so needs no more registers. In a brief section. */
static BZ_NOINLINE void drop_at_length(struct bz_machine *m, struct bz_task *t)
{
    struct bz_live *l = &m->rt->tasks.live;
    bz_retake_lengthen(&m->taken);
    t->ops->drop(t);
    bz_os_delay(m->rt->os, BZ_OS_AT_PUBLISH);
    bz_live_end(l, &m->proc->tasks.live);
    bz_leave_on(m, BZ_IN_USER);
}

/* The task was counted out, and may have been the last one. In a brief section. */
static BZ_NOINLINE void look_at_length(struct bz_machine *m)
{
    bz_retake_lengthen(&m->taken);
    bz_live_look(&m->rt->tasks.live);
    bz_leave_on(m, BZ_IN_USER);
}

/*
 * The same if only the joiner refers to the child, by a plain store: word.c.
 * Returns: false: other threads refer to it, or another rare case: use end_in_full(), which does the same steps.
 */
static BZ_ALWAYS_INLINE bool end_alone(struct bz_task *me, struct bz_task *t)
{
    struct bz_machine *m = bz_machine_self(); /* the child may have moved to another machine */
    bool is_brief = bz_retake_enter_brief(&m->taken);
    struct bz_proc *p = m->proc;
    if (BZ_UNLIKELY(!is_brief) || BZ_UNLIKELY(m->deque.rare & (BZ_RARE_NO_PROC | BZ_RARE_LOCKED)))
        goto leave;
    BZ_ASSERT(p != NULL && !(t->marks & BZ_MARK_LOCKED));
    struct bz_runtime *rt = m->rt;
    m->current = me;
    bz_store_relaxed(&me->wait, 0); /* relaxed: wait.h [L] */
    bz_wait_order_by(false);
    bz_os_delay(rt->os, BZ_OS_AT_PUBLISH);
    /* relaxed: wait.h [L] */
    if (BZ_UNLIKELY(bz_test_relaxed(&me->word, BZ_WORD_CANCELLED)) ||
        BZ_UNLIKELY(!bz_word_exit_alone(&t->word)))
        goto leave;
    if (BZ_UNLIKELY(!bz_task_stash(&p->tasks, t))) {
        drop_at_length(m, t);
        return true;
    }
    bz_os_delay(rt->os, BZ_OS_AT_PUBLISH);
    if (BZ_UNLIKELY(bz_live_end_is_watched(&rt->tasks.live, &p->tasks.live)))
        look_at_length(m);
    else
        bz_leave_on(m, BZ_IN_USER);
    return true;
leave:
    bz_leave_on(m, BZ_IN_USER);
    return false;
}

/* Run a child that was claimed, store its result (NULL: do not), end it, and give the handle up. In user code. The frame
 * stops exceptions. */
static BZ_ALWAYS_INLINE void run_and_end(struct bz_task *me, struct bz_task *t, int *result)
{
    if (bz_eh_is_used())
        (void)!bz_run_apart(t); /* a fiber ends when it returns */
    else
        bz_fiber_call(t);
    if (result != NULL)
        *result = t->result; /* here: later it would need a register until then */
    watch_back(me, t);
    if (BZ_UNLIKELY(!end_alone(me, t)))
        end_in_full(me, t);
}

/* The child is in a public queue. If the joiner has many children, the oldest are probably at the front: take some of
 * them back, in place of the newest. If that did not bring t, do not try again for a while. */
static bool claim_gathered(struct bz_machine *m, struct bz_proc *p, struct bz_task *t)
{
    enum { MISSED = 64 };
    bool is_time = p->gather_in == 1;
    if (bz_fresh_count(p) > 0 && (is_time || !bz_idle_is_quiet(&m->rt->idle)))
        bz_fresh_publish(m);
    if (!is_time) {
        p->gather_in--;
        return false;
    }
    bool is_here = bz_fresh_gather(m) && claim_fresh(m, p, t);
    p->gather_in = is_here ? 1 : MISSED;
    return is_here;
}

/* Claim t if it is in the ring or the injector, and leave a tombstone there: claim.c. Return false if it is in the
 * batch, or another worker has started it. In the runtime, on p. */
static BZ_ALWAYS_INLINE bool claim_queued(struct bz_machine *m, struct bz_proc *p,
                                          struct bz_task *t)
{
    bool is_next = bz_equals_relaxed(&p->next, bz_entry_first(t)); /* relaxed: ours to touch */
    if (BZ_UNLIKELY(is_next || bz_batch_left(&p->batch) != 0) ||
        BZ_UNLIKELY(!bz_word_claim(&t->word, 1)))
        return false;
    if (BZ_UNLIKELY(--p->tombstones == 0))
        bz_claim_tidy(m);
    return true;
}

/*
 * The common join of a child that is in the ring: one entry into the runtime before the call and one after it.
 * Returns: true: it ran, ended, and the handle is given up. False: nothing was done.
 */
static bool join_queued(struct bz_machine *m, struct bz_task *t, int *result)
{
    if (bz_word_is_started(&t->word) || t->rt != m->rt || t->ops != &bz_fiber_ops || t->traits != 0)
        return false; /* started: a hint; it is checked again in the runtime */
    bool is_in = bz_retake_enter_usual(&m->taken);
    struct bz_proc *p = m->proc;
    struct bz_task *me = m->current;
    if (!is_in || !may_run_child(m) || (!claim_gathered(m, p, t) && !claim_queued(m, p, t))) {
        bz_leave_on(m, BZ_IN_USER);
        return false;
    }
    become(m, p, me, t);
    bz_leave_on(m, BZ_IN_USER);
    run_and_end(me, t, result);
    return true;
}

static BZ_NOINLINE int join_by_int(struct bz_task *t, int *result, blitz_deadline until)
{
    BZ_STOP_EXCEPTIONS();
    struct bz_machine *m = bz_machine_self();
    if (m != NULL && t != NULL && until == BLITZ_FOREVER && bz_retake_is_away(&m->taken) &&
        join_queued(m, t, result))
        return 0;
    return join(t, until, result, NULL);
}

int blitz_task_join(blitz_task *task, int *result, blitz_deadline until)
{
    BZ_STOP_EXCEPTIONS();
    struct bz_machine *m = bz_machine_self();
    struct bz_task *t = (struct bz_task *)task;
    if (BZ_UNLIKELY(m == NULL || until != BLITZ_FOREVER || !bz_retake_is_away(&m->taken)))
        return join_by_int(t, result, until);
    struct bz_task *me = m->current;
    if (!claim_near(m, me, t))
        return join_by_int(t, result, until);
    run_and_end(me, t, result);
    return 0;
}

int blitz_task_join_ptr(blitz_task *t, void **out, blitz_deadline until)
{
    return join((struct bz_task *)t, until, NULL, out);
}
