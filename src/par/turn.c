/*
 * turn.c - a loop that lets others run, and keeps what it has forked.
 *
 * A task that yields leaves its stack, and then its pending jobs go to the queues (job.c), because a deque
 * holds only jobs of frames that stand on its machine. For a loop that would be a misfortune: the
 * halves it has forked, ten or more, would each be begun on a stack of its own, cut up there, and
 * interrupted in their turn. One level of the tree after the other would be begun everywhere and ended
 * nowhere; a loop of a minute would have thousands of stacks.
 *
 * So a loop takes its jobs out of the deque before it yields and forks them again after. Meanwhile nobody
 * can take them; but whoever has nothing to do can take the task itself, which stands in the queue.
 * That goes for all jobs of the frames below, also of loops around this one and of the program's own.
 *
 * When: the monitor asks after some 10 ms (ask.c), which is enough for a task that waits once. A dialogue of
 * two others, a question and its answer, would take two or three times as long. Loops look at the clock
 * anyhow, so every millisecond they look whether anybody is ready; if nobody is, a look costs some 100 ns.
 *
 * But not for the jobs of a joiner on top of whose frames we are called as its child (claim.c): they are
 * another task's, and a fork here would make them ours. They go to the queues as ever.
 */
#include "par/split.h"

#include "blitz/par.h"
#include "blitz/task.h"
#include "blitz/yield.h"
#include "sched/sched.h"

static void send_off(struct bz_machine *m, struct blitz_job *job)
{
    bz_count_here(m, jobs_evacuated);
    bz_watch_job_out(job);
    if (m->proc != NULL)
        bz_push_here(m, bz_entry_of_job(job));
    else
        bz_place_outside(m->rt, bz_entry_of_job(job));
}

/* All pending jobs of our frames, the oldest first, linked. Those of a joiner beneath us go their way. */
static struct blitz_job *take_out(void)
{
    struct blitz_job *oldest = NULL, **end = &oldest;
    uint32_t was;
    struct bz_machine *m = bz_enter_as(&was);
    bz_deque_settle(&m->deque);
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

void bz_par_look_up(bool is_time, bool is_quiet)
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
        BLITZ_POLL(); /* shows a job to those who have nothing to do */
}

void bz_par_fork_quietly(struct blitz_job *job, int (*fn)(void *), void *arg)
{
    struct blitz_worker_ *w = blitz_worker_();
    job->fn_ = fn;
    job->arg_ = arg;
    if (w != NULL)
        (void)!blitz_push_(w, job); /* whether somebody wants attention or not */
}

bool bz_par_take_back(struct blitz_job *job)
{
    uint32_t was;
    struct bz_machine *m = bz_machine_self();
    if (m == NULL)
        return true;
    (void)!bz_enter(&was); /* from here on nobody takes from us */
    bz_deque_settle(&m->deque);
    bool is_ours = bz_deque_take_back(&m->deque, job);
    if (is_ours)
        bz_job_was_joined(job);
    bz_leave(was);
    return is_ours;
}
