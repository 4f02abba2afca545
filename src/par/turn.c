/*
 * turn.c - yield in a loop without giving its forked jobs away.
 *
 * A task that yields leaves its stack, and then its pending jobs go to the queues (job.c), because
 * a deque holds only jobs of frames on its machine's current stack. For a loop that would be bad:
 * each of its forked halves, ten or more, would start on a separate stack, be split there, and be
 * interrupted in turn. One level of the tree after the other would start everywhere and end
 * nowhere; a loop of a minute would use thousands of stacks.
 *
 * So a loop takes its jobs out of the deque before it yields and forks them again afterwards.
 * Meanwhile they cannot be stolen, but an idle worker can take the task itself, which is in the
 * queue. This applies to all jobs of the frames below, also those of outer loops and of the program
 * itself.
 *
 * When to yield: the monitor asks after some 10 ms (ask.c). That is enough for a task that waits
 * once, but a request and its reply between two other tasks would take two or three times as long.
 * Loops read the clock anyway, so every millisecond they check for ready tasks; if there are none,
 * a check costs some 100 ns.
 *
 * An exception are the jobs of a joiner that runs this task on top of its own frames (claim.c):
 * they belong to another task, and a fork here would make them ours. They go to the queues as
 * usual.
 */
#include "par/split.h"

#include "blitz/par.h"
#include "blitz/task.h"
#include "blitz/yield.h"
#include "proc/enter.h"
#include "proc/opened.h"
#include "proc/place.h"
#include "proc/state.h"

static void send_off(struct bz_machine *m, struct blitz_job *job)
{
    bz_count_here(m, jobs_evacuated);
    bz_watch_job_out(job);
    bz_opened_add(job->task_);
    if (m->proc != NULL)
        bz_push_here(m, bz_entry_of_job(job));
    else
        bz_place_outside(m->rt, bz_entry_of_job(job));
}

/* Unlink all pending jobs of our frames, oldest first. Jobs of a joiner below us go to the
 * queues. */
static struct blitz_job *take_out(void)
{
    struct blitz_job *oldest = NULL, **end = &oldest;
    uint32_t was;
    struct bz_machine *m = bz_enter_as(&was);
    bz_deque_catch_up(&m->deque);
    for (struct blitz_job *job; (job = bz_deque_take_oldest(&m->deque, m->current)) != NULL;) {
        if (job->task_ != m->current) {
            send_off(m, job);
            continue;
        }
        *end = job;
        end = (struct blitz_job **)&job->link_;
    }
    *end = NULL;
    bz_leave(was);
    return oldest;
}

static void put_back(struct blitz_job *oldest)
{
    while (oldest != NULL) {
        struct blitz_job *job = oldest;
        oldest = (struct blitz_job *)job->link_;
        blitz_fork(job, job->fn_, job->arg_);
    }
}

static void take_turns(struct bz_machine *m)
{
    bz_store_relaxed(bz_asked_of(&m->deque.ends), 0); /* relaxed: a hint, as in ask.c */
    struct blitz_job *kept = take_out();
    blitz_yield();
    put_back(kept);
}

void bz_par_checkpoint(bool is_time, bool is_quiet)
{
    struct bz_machine *m = bz_machine_self();
    if (m == NULL)
        return;
    if (is_time || bz_load_relaxed(bz_asked_of(&m->deque.ends)) != 0) { /* relaxed: a hint */
        if (bz_machine_may_interrupt(m))
            take_turns(m);
        return;
    }
    if (!is_quiet)
        BLITZ_POLL(); /* exposes a job to idle workers */
}

void bz_par_fork_quietly(struct blitz_job *job, int (*fn)(void *), void *arg)
{
    struct blitz_worker_ *w = blitz_worker_();
    job->fn_ = fn;
    job->arg_ = arg;
    if (w != NULL)
        (void)!blitz_push_(w, job); /* with or without a pending request */
}

bool bz_par_take_back(struct blitz_job *job)
{
    uint32_t was;
    struct bz_machine *m = bz_machine_self();
    if (m == NULL)
        return true;
    (void)!bz_enter(&was); /* from here on no worker steals from us */
    bz_deque_catch_up(&m->deque);
    bool is_ours = bz_deque_take_back(&m->deque, job);
    if (is_ours)
        bz_job_was_joined(job);
    bz_leave(was);
    return is_ours;
}
