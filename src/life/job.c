/*
 * job.c - jobs that have left the deque they were forked on: where they run, and how their join waits.
 *
 * A job leaves its deque in two ways. It is *stolen*: an idle machine takes it out of the exposed slot.
 * Or it is *evacuated*: its frame is about to be suspended. A deque holds only jobs of frames that
 * stand on its machine, so these jobs go to the queues like tasks. They are linked through their first
 * word, and nothing is allocated. In both cases the job is now an entry that a worker takes. The worker
 * runs it from the loop, at the bottom of a runner's stack, never on top of a frame that waits.
 *
 * The job may wait there, so it needs a header: the scheduler parks only tasks. The header is anonymous
 * and has the id and name of the task that forked. The machine keeps one header in reserve; a job that
 * leaves no waker behind gives its header back. (Rejected: a header in the runner's control block. A
 * waker may outlive the runtime, and the stack must not. A separate header may outlive it, like that of
 * any task.)
 *
 * Without memory for a header no machine can run the job. Three rules keep it from being lost or from
 * circulating for ever. A machine without a header steals no job: the frame that forked it will run it.
 * If such a machine takes an evacuated job, the job waits in the list `want_stack` of the proc. It is tried again when the
 * machine has a header, at most every millisecond if there is nothing else to do. And once its join
 * waits, the job goes back: the joining task runs it inline, which needs no memory.
 *
 * The runner and the join meet at the latch (latch.h). A join that must wait leaves its stack, and the
 * hook on the next stack enters the task into the latch. A finisher that finds a task there places it on
 * its own worker. There is one waker, so the task stays running in its word, and a cancel meanwhile
 * does not resume it.
 *
 * Cancelling. A job in a queue or on another machine belongs to a task that cannot end before the job.
 * So a cancel of that task is passed on. Each machine lists the jobs it has begun, with the task each
 * belongs to; the canceller walks the lists. In most programs a list is empty most of the time, and its
 * count says so. A job looks at its parent's flag after it has entered itself. So either the job sees
 * the flag, or the canceller sees the job [C].
 *
 * I1  A job in a queue or in a batch was prepared by its deque: latch OPEN, task_ its forker.
 * I2  task_ of a job that is not DONE is alive: it has yet to join.
 * I3  A header is in its home's list from adopt to finish.
 *
 * [C] adopt: count, fence, the parent's flag -> cancel: flag, fence, count   one sees the other
 */
#include "life/job.h"

#include "life/escape.h"
#include "life/handle.h"
#include "life/spawn.h"
#include "os/look.h"
#include "proc/enter.h"
#include "proc/opened.h"
#include "proc/place.h"
#include "proc/state.h"
#include "wait/wait.h"

struct bz_job_task {
    struct bz_task task;
    struct blitz_job *job;   /* the forker's memory; gone after the latch */
    struct bz_task *parent;  /* I2; constant while it runs */
    struct bz_machine *home; /* the machine whose list it is in; likewise */
    struct bz_list in;       /* home->jobs.running; guarded by that lock */
};

static struct bz_job_task *of_task(struct bz_task *t)
{
    return BZ_CONTAINER_OF(t, struct bz_job_task, task);
}

/* ---- headers ---- */

static BZ_NOINLINE enum bz_ran job_run(struct bz_task *t)
{
    BZ_STOP_EXCEPTIONS();
    struct blitz_job *job = of_task(t)->job;
    job->result_ = job->fn_(job->arg_);
    return BZ_RAN_JOB;
}

static void job_drop(struct bz_task *t)
{
    bz_task_free(t);
}

static const struct bz_task_ops job_ops = {.kind = "job", .run = job_run, .drop = job_drop};

struct bz_task *bz_job_forker(struct bz_task *t)
{
    return t->ops == &job_ops ? of_task(t)->parent : NULL;
}

bool bz_job_has_header(struct bz_machine *m)
{
    struct bz_job_task *jt = m->jobs.reserve;
    if (jt != NULL)
        return true;
    struct bz_task *t = bz_task_alloc(m->rt, sizeof *jt);
    if (t == NULL)
        return false;
    t->ops = &job_ops;
    t->rt = m->rt;
    t->stack = NULL;
    t->result = 0;
    t->traits = BZ_TASK_ANONYMOUS;
    t->marks = 0;
    bz_atomic_init(&t->wait, 0);
    bz_task_init_watch(t);
    bz_lock_init_ranked(&t->lock, BZ_RANK_TASK);
    bz_list_init(&t->joiners);
    jt = of_task(t);
    bz_list_init(&jt->in);
    m->jobs.reserve = jt;
    return true;
}

void bz_jobs_fini(struct bz_machine *m)
{
    if (m->jobs.reserve != NULL)
        bz_task_free(&m->jobs.reserve->task);
    m->jobs.reserve = NULL;
}

/* ---- running ---- */

/* I3 */
static void enter_list(struct bz_job_task *jt, struct bz_machine *home)
{
    struct bz_jobs *jobs = &home->jobs;
    jt->home = home;
    bz_lock_take(&jobs->lock, home->rt->os);
    bz_list_push_back(&jobs->running, &jt->in);
    bz_fetch_add_relaxed(&jobs->count, 1); /* relaxed: [C]'s fence follows */
    bz_lock_drop(&jobs->lock, home->rt->os);
}

static void leave_list(struct bz_job_task *jt)
{
    struct bz_jobs *jobs = &jt->home->jobs;
    const struct bz_os *os = jt->task.rt->os;
    bz_lock_take(&jobs->lock, os);
    bz_list_remove(&jt->in);
    bz_fetch_sub_relaxed(&jobs->count, 1); /* relaxed: a canceller that sees 1 looks at the list */
    bz_lock_drop(&jobs->lock, os);
}

bz_entry bz_job_adopt(struct bz_machine *m, bz_entry e)
{
    struct bz_job_task *jt = m->jobs.reserve;
    m->jobs.reserve = NULL;
    jt->job = bz_entry_job(e);
    jt->parent = jt->job->task_; /* I1 */
    jt->task.id = jt->parent->id;
    jt->task.name = jt->parent->name;
    jt->task.born = bz_age_now(&m->rt->clock);
    jt->task.locals = bz_locals_of_job(jt->parent); /* read-only: locals.c */
    bz_word_init(&jt->task.word, BZ_RUNNING, 1);    /* from here on it can be found: tasks.c */
    enter_list(jt, m);
    bz_fence_seqcst(); /* [C] */
    if (bz_word_is_cancelled(&jt->parent->word))
        (void)!bz_task_cancel_mark(
            &jt->task);                 /* it waits for nothing yet, and has forked nothing */
    return bz_entry_resumed(&jt->task); /* running in its word, and without a stack: it is called */
}

/* The header has done its work. Keep it in reserve if this was the last reference. */
static void give_back(struct bz_machine *m, struct bz_job_task *jt)
{
    if (bz_word_exit(&jt->task.word, 1) != BZ_EXIT_LAST)
        return; /* a waker is left somewhere */
    if (m->jobs.reserve == NULL)
        m->jobs.reserve = jt; /* without a reference: no thread finds it */
    else
        job_drop(&jt->task);
}

void bz_job_finish(struct bz_task *t)
{
    struct bz_job_task *jt = of_task(t);
    struct bz_runtime *rt = t->rt;
    leave_list(jt);
    bz_os_delay(rt->os, BZ_OS_AT_PUBLISH);
    struct bz_task *joiner = bz_latch_finish(bz_latch_of(jt->job));
    if (joiner != NULL) {
        bz_trace_wake(joiner, t->id);
        bz_place(rt, bz_entry_resumed(joiner));
    }
    give_back(bz_machine_self(), jt);
}

bool bz_job_give_back(bz_entry e)
{
    struct bz_task *joiner = bz_latch_give_back(bz_latch_of(bz_entry_job(e)));
    if (joiner == NULL)
        return false;
    bz_trace_wake(joiner, joiner->id);
    bz_place(joiner->rt, bz_entry_resumed(joiner));
    return true;
}

/* ---- leaving a deque ---- */

/* The job has left the deque of its forker, which counts it until the join. */
static void note_out(struct blitz_job *job)
{
    bz_watch_job_out(job);
    bz_opened_add(job->task_); /* I2 */
}

bz_entry bz_job_steal(struct bz_machine *victim)
{
    if (!bz_deque_has_work(&victim->deque))
        return 0;
    bool is_counted = bz_opened_take_begin();
    struct blitz_job *job = bz_deque_steal(&victim->deque);
    if (job != NULL)
        note_out(job);
    bz_opened_take_end(is_counted);
    return job != NULL ? bz_entry_of_job(job) : 0;
}

void bz_jobs_published(struct bz_machine *m)
{
    struct bz_runtime *rt = m->rt;
    bz_os_delay(rt->os, BZ_OS_AT_PUBLISH);
    if (m->proc == NULL || bz_idle_may_rouse(&rt->idle)) /* without one we fence: idle.c */
        bz_rouse_one(rt);
}

void bz_jobs_queue_all(struct bz_machine *m, struct blitz_job *all)
{
    for (struct blitz_job *next; all != NULL; all = next) {
        next = (struct blitz_job *)all->link_;
        bz_count_here(m, jobs_evacuated);
        note_out(all);
        if (m->proc != NULL)
            bz_push_here(m, bz_entry_of_job(all));
        else
            bz_place_outside(m->rt, bz_entry_of_job(all));
    }
}

/* ---- for the monitor ---- */

/* Compare the deque with the last look. If it is unchanged: *is_exposed: a job waits in the slot. *is_private: other
 * jobs wait behind a slot that was emptied, and their frame has not looked since. */
static void see(struct bz_machine *m, bool *is_exposed, bool *is_private)
{
    struct bz_jobs *jobs = &m->jobs;
    uint64_t exposures = bz_load_relaxed(&m->deque.exposures); /* relaxed: a hint */
    uintptr_t newest = bz_deque_peek(&m->deque);
    bool is_same = exposures == jobs->seen && newest == jobs->seen_newest;
    bool has_work = bz_deque_has_work(&m->deque);
    bool has_shelf = bz_look_half(&m->deque.shelf_head) != bz_look_half(&m->deque.shelf_tail);
    *is_exposed = exposures == jobs->seen && has_work;
    *is_private = is_same && (newest != 0 || has_shelf) && !has_work &&
                  bz_retake_where(&m->taken) != BZ_IN_RUNTIME;
    jobs->seen = exposures;
    jobs->seen_newest = newest;
}

bool bz_jobs_are_any(struct bz_runtime *rt)
{
    for (unsigned i = bz_machines_count(rt); i-- > 0;) {
        struct bz_deque *d = &bz_machines_at(rt, i)->deque;
        if (bz_deque_has_work(d) || bz_deque_peek(d) != 0 ||
            bz_look_half(&d->shelf_head) != bz_look_half(&d->shelf_tail))
            return true;
    }
    return false;
}

bool bz_jobs_look(struct bz_runtime *rt)
{
    bool is_any = false, is_stuck = false;
    for (unsigned i = bz_machines_count(rt); i-- > 0;) {
        struct bz_machine *m = bz_machines_at(rt, i);
        bool is_exposed, is_private;
        see(m, &is_exposed, &is_private);
        is_any |= is_exposed;
        is_stuck |= m->jobs.is_target = is_private;
    }
    if (is_any)
        bz_rouse_one(rt);
    return is_stuck;
}

void bz_jobs_ask(struct bz_runtime *rt)
{
    for (unsigned i = bz_machines_count(rt); i-- > 0;) {
        struct bz_machine *m = bz_machines_at(rt, i);
        if (!m->jobs.is_target)
            continue;
        m->jobs.is_gone = bz_retake_ask(&m->taken); /* its proc, perhaps: it burns */
        bz_deque_halt(&m->deque);
    }
}

/* Queue jobs that were taken out of the deque of a frame that runs for long. Return how many. */
static unsigned put_out(struct bz_runtime *rt, struct blitz_job *all)
{
    unsigned count = 0;
    bz_os_delay(rt->os, BZ_OS_AT_PUBLISH);
    for (struct blitz_job *next; all != NULL; all = next, count++) {
        next = (struct blitz_job *)all->link_;
        note_out(all);
        bz_injector_push(&rt->injector, bz_entry_of_job(all));
    }
    return count;
}

unsigned bz_jobs_fetch(struct bz_runtime *rt)
{
    unsigned count = 0;
    bool is_counted = bz_opened_take_begin();
    for (unsigned i = bz_machines_count(rt); i-- > 0;) {
        struct bz_machine *m = bz_machines_at(rt, i);
        struct blitz_job *all = NULL;
        if (!m->jobs.is_target)
            continue;
        m->jobs.is_target = false;
        if (bz_retake_may(&m->taken))
            all = bz_deque_take_all(&m->deque, (void *)bz_look_word(&m->current));
        bz_retake_end(&m->taken, m->jobs.is_gone);
        count += put_out(rt, all);
    }
    bz_opened_take_end(is_counted);
    if (count > 0)
        bz_rouse_one(rt);
    bz_count_many_shared(&rt->counters, jobs_evacuated, count);
    return count;
}

/* ---- evacuating ---- */

/* In the runtime. */
void bz_evacuate_slow(struct bz_machine *m)
{
    bz_jobs_queue_all(m, bz_deque_drain(&m->deque, m->current));
    bz_jobs_published(m);
}

/* ---- cancelling ---- */

/* Return a job of `parent` in that list that is not cancelled yet, with a reference; or NULL. */
static struct bz_job_task *next_of(struct bz_jobs *jobs, struct bz_task *parent)
{
    struct bz_job_task *found = NULL;
    bz_lock_take(&jobs->lock, parent->rt->os);
    for (struct bz_list *l = jobs->running.next; l != &jobs->running && found == NULL;
         l = l->next) {
        struct bz_job_task *jt = BZ_CONTAINER_OF(l, struct bz_job_task, in);
        uint64_t word = bz_load_relaxed(&jt->task.word); /* relaxed: the mark decides */
        if (jt->parent == parent && !(word & BZ_WORD_CANCELLED))
            found = jt;
    }
    if (found != NULL)
        bz_task_ref(&found->task); /* in the list, so it lives: I3 */
    bz_lock_drop(&jobs->lock, parent->rt->os);
    return found;
}

void bz_jobs_cancel(struct bz_task *parent)
{
    struct bz_runtime *rt = parent->rt;
    bz_fence_seqcst(); /* [C] */
    for (unsigned i = 0; i < rt->machines.max; i++) {
        struct bz_machine *m = bz_machines_at(rt, i);
        if (m == NULL)
            break;
        struct bz_jobs *jobs = &m->jobs;
        if (bz_load_relaxed(&jobs->count) == 0) /* relaxed: after [C]'s fence */
            continue;
        for (struct bz_job_task *jt; (jt = next_of(jobs, parent)) != NULL;) {
            bz_task_cancel(&jt->task);
            bz_task_unref(&jt->task);
        }
    }
}
