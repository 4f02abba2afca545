/*
 * reap.c - what a poll of files has completed, delivered to the tasks, threads and futures that wait.
 *
 * A machine queues all the tasks of one ready list behind the tasks that its proc already has, in the
 * order in which they became ready, with one check for sleepers. So no task runs before tasks that came
 * earlier, from the poll or not. Rejected: placing each task as an ordinary wake-up. Then the
 * last task of the list ran first, and each task cost a check.
 *
 * Hearing: a machine polls its own poll when it sleeps there; while it is busy, every HEAR_NS at
 * most (find.c); and while it spins for work. The monitor polls for procs that are stuck.
 *
 * A foreign waker may run any code, so a task of its own wakes it, as in deadlines.c.
 */
#include "sched/reap.h"

#include "io/ready.h"
#include "life/deadlines.h"
#include "proc/batch.h"
#include "proc/enter.h"
#include "proc/monitor_wake.h"
#include "proc/place.h"
#include "wait/wait.h"

void bz_io_wake(struct bz_runtime *rt, struct bz_wake *wake)
{
    if (wake->kind == BZ_WAKE_WAKER)
        bz_waker_wake_apart(rt, &wake->waker);
    else
        bz_wake_deliver(wake);
}

/* Queue a task here, behind those that became ready before it. If there are none, it runs next, and no proc is
 * roused for it. Return true if other workers can take it. */
static BZ_ALWAYS_INLINE bool queue_here(struct bz_machine *m, struct bz_proc *p, struct bz_task *t)
{
    bz_entry e = bz_entry_resumed(t);
    bz_trace_wake(t, 0);
    bz_os_delay(m->rt->os, BZ_OS_AT_PUBLISH);
    bool is_first =
        !bz_next_is_set(p) && bz_batch_left(&p->batch) == 0 && bz_runq_queued_here(&p->ring) == 0;
    if (is_first && bz_monitor_is_up(m->rt)) {
        bz_store_relaxed(&p->next, e); /* relaxed: ours to touch */
        return false;
    }
    if (BZ_UNLIKELY(bz_monitor_sees_hogs(m->rt))) {
        bz_place_evicted(m, e); /* not behind hogs; it has roused a proc if needed */
        return false;
    }
    if (BZ_UNLIKELY(!bz_runq_try_push(&p->ring, e)))
        bz_push_full(m, e);
    return true;
}

/* Return the proc that runs tasks whose operations have completed, if it is not this one: gather.c. */
static struct bz_proc *home_of_completions(struct bz_proc *p)
{
    struct bz_proc *home =
        p->poll.ops->completes ? bz_gather_home(p->rt, bz_gather_word(&p->rt->gather)) : NULL;
    return home != p ? home : NULL;
}

static void send_home(struct bz_proc *home, struct bz_task *t)
{
    bz_trace_wake(t, 0);
    (void)!bz_monitor_is_up(home->rt); /* a task there may run for long */
    bz_place_on(home->rt, home->index, bz_entry_resumed(t));
}

/* bz_wait_claim for the wait of an operation, by a machine of the fast form: a task's wait of that kind is never `sole`. */
static BZ_ALWAYS_INLINE bool claim_here(struct bz_wait *w, uint32_t outcome, struct bz_wake *wake)
{
    struct bz_task *t = w->task;
    uint32_t seen = BZ_WAIT_OPEN;
    BZ_ASSERT(t == NULL || !w->is_sole);
    if (BZ_UNLIKELY(t == NULL || t->rt != bz_machine_self()->rt))
        return bz_wait_claim_in_full(w, outcome, wake);
    /* relaxed: the queue orders, arbiter.c */
    if (BZ_UNLIKELY(!bz_cas_strong_rlx_rlx(&w->arbiter, &seen, outcome)))
        return bz_wait_claim_in_full(w, outcome, wake);
    wake->kind = BZ_WAKE_TASK; /* park.c, I4 */
    wake->task = t;
    bz_os_delay(t->rt->os, BZ_OS_AT_CLAIM);
    return true;
}

/* Deliver one wake-up on the machine that polled. Return true if other workers can take its task. */
static BZ_ALWAYS_INLINE bool deliver_one(struct bz_machine *m, struct bz_proc *mine,
                                         struct bz_wake *wake)
{
    if (BZ_LIKELY(wake->kind == BZ_WAKE_TASK)) {
        BZ_ASSERT(wake->task->rt == m->rt); /* arbiter.c, must_hold */
        return queue_here(m, mine, wake->task);
    }
    if (wake->kind != BZ_WAKE_NONE)
        bz_io_wake(m->rt, wake);
    return false;
}

/* deliver_here for a backend with edges. Nothing is called for an ordinary event. */
static void deliver_edges(struct bz_machine *m, struct bz_poll *poll, struct bz_reaped *reaped)
{
    struct bz_wake wakes[BZ_SIDES];
    struct bz_files *files = poll->files;
    struct bz_proc *mine = m->proc;
    bool is_more = false;
    while (reaped->at < reaped->count) {
        wakes[BZ_SIDE_IN].kind = wakes[BZ_SIDE_OUT].kind = BZ_WAKE_NONE;
        bz_ready_deliver_by(poll, reaped, files, wakes, claim_here);
        reaped->at++;
        is_more |= deliver_one(m, mine, &wakes[BZ_SIDE_IN]);
        if (BZ_UNLIKELY(wakes[BZ_SIDE_OUT].kind != BZ_WAKE_NONE))
            is_more |= deliver_one(m, mine, &wakes[BZ_SIDE_OUT]);
    }
    if (is_more)
        bz_rouse_for_batch(m);
}

/* Deliver the whole ready list on the machine that polled it. In the runtime. */
static void deliver_here(struct bz_machine *m, struct bz_proc *p, struct bz_reaped *reaped)
{
    struct bz_wake wakes[BZ_SIDES];
    struct bz_proc *home = home_of_completions(p);
    bool is_more = false;
    while (bz_poll_deliver(&p->poll, reaped, wakes))
        for (int s = 0; s < BZ_SIDES; s++) {
            if (wakes[s].kind == BZ_WAKE_NONE)
                continue;
            bool is_near = wakes[s].kind == BZ_WAKE_TASK && wakes[s].task->rt == m->rt;
            if (is_near && BZ_UNLIKELY(home != NULL))
                send_home(home, wakes[s].task);
            else if (is_near)
                is_more |= queue_here(m, m->proc, wakes[s].task);
            else
                bz_io_wake(p->rt, &wakes[s]);
        }
    if (is_more)
        bz_rouse_for_batch(m);
}

bool bz_io_deliver(struct bz_proc *p, struct bz_reaped *reaped)
{
    uint32_t was;
    struct bz_wake wakes[BZ_SIDES];
    bool is_any = reaped->count > 0;
    struct bz_machine *m = is_any ? bz_enter(&was) : NULL;
    if (m != NULL && m->rt == p->rt && !bz_is_plain(m->rt)) {
        if (BZ_LIKELY(p->poll.ops->has_edges))
            deliver_edges(m, &p->poll, reaped);
        else
            deliver_here(m, p, reaped);
    }
    while (bz_poll_deliver(&p->poll, reaped, wakes))
        for (int s = 0; s < BZ_SIDES; s++)
            bz_io_wake(p->rt, &wakes[s]);
    if (is_any)
        bz_leave(was);
    return is_any;
}

bool bz_io_reap(struct bz_proc *p, struct bz_reaped *reaped)
{
    reaped->count = reaped->at = 0;
    bz_poll_reap(&p->poll, reaped);
    return bz_io_deliver(p, reaped);
}
