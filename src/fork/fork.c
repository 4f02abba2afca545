/*
 * fork.c - fork and join: the slow paths of blitz/fork.h.
 *
 * The fast paths are inline: a fork pushes a job on the machine's deque, and its join takes the job back and calls
 * it. They come here if there is something to share with other machines, or if another machine has taken the job.
 * job.c has the jobs that run elsewhere, and the invariants.
 */
#include "life/job.h"

#include "life/spawn.h"
#include "proc/enter.h"
#include "proc/monitor_wake.h"
#include "proc/opened.h"
#include "proc/place.h"
#include "proc/state.h"
#include "sched/loop.h"
#include "wait/wait.h"

/* ---- sharing ---- */

static void share(struct bz_machine *m)
{
    enum bz_shared shared = bz_deque_share(&m->deque, m->current);
    if (BZ_UNLIKELY(m->deque.is_long))
        bz_jobs_queue_all(m, bz_deque_take_older(&m->deque, m->current));
    if (shared == BZ_SHARED_NOW)
        bz_count_here(m, forks_shared);
    if (shared != BZ_SHARED_NOTHING)
        bz_jobs_published(m);
}

/*
 * Share a job on a deque that was empty. Usually its join takes it back soon, and a futex wake costs
 * both sides tens of microseconds. So no proc is roused for it, if the monitor is up to notice a job
 * that stays. The next fork beneath it takes the slow path again: then there is more than one job's work.
 */
static void share_lone(struct bz_machine *m)
{
    struct bz_runtime *rt = m->rt;
    (void)!bz_deque_share(&m->deque, m->current);
    bz_count_here(m, forks_shared);
    bz_os_delay(rt->os, BZ_OS_AT_PUBLISH);
    if (m->proc == NULL)
        bz_fence_seqcst(); /* idle.c [F]: without a proc we fence ourselves */
    if (!bz_idle_may_rouse(&rt->idle))
        return;
    if (bz_is_plain(rt) || !bz_monitor_is_up(rt)) {
        bz_rouse_one(rt);
        return;
    }
    if (bz_load_relaxed(&rt->monitor.state) == BZ_MONITOR_RESTS) /* relaxed: a hint */
        bz_monitor_tell(rt);
    bz_deque_ask(&m->deque);
}

/* ---- the slow paths ---- */

struct blitz_worker_ *blitz_worker_slow_(void)
{
    return bz_self_get();
}

void blitz_fork_slow_(blitz_job *job)
{
    struct bz_machine *m = bz_machine_self();
    if (m == NULL)
        return; /* the join on this thread will call it */
    uint32_t was;
    (void)!bz_enter(&was); /* from here on no thread takes from us */
    bz_deque_catch_up(&m->deque);
    if (bz_deque_is_lone(&m->deque, job))
        share_lone(m);
    else
        share(m);
    bz_leave(was);
}

void blitz_share_slow_(void)
{
    uint32_t was;
    struct bz_machine *m = bz_enter_as(&was);
    bz_deque_catch_up(&m->deque);
    share(m);
    bz_leave(was);
}

/* The argument of hook_wait. It lies in the frame that is left, and is gone once the latch has the task. */
struct waiting {
    struct bz_task *task;
    struct blitz_job *job;
};

static void hook_wait(void *arg)
{
    struct waiting *w = arg;
    struct bz_task *t = w->task;
    bz_os_delay(t->rt->os, BZ_OS_AT_PUBLISH);
    if (bz_latch_wait(bz_latch_of(w->job), t)) {
        bz_trace_wake(t, t->id);
        bz_place(t->rt, bz_entry_resumed(t));
    }
}

static void wait_for(struct blitz_job *job)
{
    uint32_t was;
    struct bz_task *me = bz_enter_as(&was)->current;
    bz_count_here(bz_machine_self(), joins_suspended);
    bz_leave(was);
    bz_wait_say(me, (uintptr_t)job | BZ_WAIT_JOB);
    bz_trace(me->rt, park, me->id, 0, "a stolen job");
    bz_suspend(hook_wait, &(struct waiting){me, job});
    bz_wait_say(me, 0);
}

/* Check the join of a job that is in no deque: then another machine has it, or had it. */
static void check_out(const struct bz_task *me, const struct blitz_job *job)
{
    BZ_CHECK(
        bz_job_is_out(job),
        "task %llu (%s) joins job %p of function %p, which it has joined before, or not forked",
        (unsigned long long)me->id, bz_task_name(me), (const void *)job,
        (void *)(uintptr_t)job->fn_);
    const struct bz_task *forker = job->task_; /* it has yet to join: job.c I2 */
    BZ_CHECK(forker == me, "task %llu (%s) joins job %p of function %p, which another has forked",
             (unsigned long long)me->id, bz_task_name(me), (const void *)job,
             (void *)(uintptr_t)job->fn_);
}

/* Take the job back, if it is in the deque. */
static bool take_back(struct bz_machine *m, struct blitz_job *job)
{
    struct bz_deque *d = &m->deque;
    BZ_CHECK(d->marked != job || job == NULL,
             "task %llu (%s) joins job %p of function %p, which the task that joins it has forked",
             (unsigned long long)m->current->id, bz_task_name(m->current), (void *)job,
             (void *)(uintptr_t)job->fn_);
    bool is_late = d->ends.newest_ != 0 && d->ends.newest_ != (uintptr_t)job;
    if (!bz_deque_take_back(d, job))
        return false;
    if (is_late)
        bz_count_here(m, joins_out_of_order);
    bz_job_was_joined(job);
    return true;
}

int blitz_join_slow_(blitz_job *job)
{
    bz_look_up(); /* ask.c */
    struct bz_machine *m = bz_machine_self();
    uint32_t was;
    if (m == NULL)
        return 0;
    (void)!bz_enter(&was); /* from here on no thread takes from us */
    bz_deque_catch_up(&m->deque);
    bool is_mine = take_back(m, job);
    if (bz_deque_has_private(&m->deque))
        share(m);
    bz_leave(was);
    if (is_mine)
        return 0;
    check_out(m->current, job);
    if (!bz_latch_is_done(bz_latch_of(job)))
        wait_for(job);
    bz_job_was_joined(job);
    bz_watch_job_back();
    bz_opened_end();
    return !bz_latch_was_returned(bz_latch_of(job));
}
