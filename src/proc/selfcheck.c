/*
 * selfcheck.c - the checks of test builds. The essay is in selfcheck.h.
 *
 * I1  A task's runs_on is 0, or 1 + the index of the one machine that has it as its current
 *     task or has not yet left its stack.
 */
#include "proc/selfcheck.h"

#include "base/log.h"
#include "os/sleepers.h"
#include "proc/state.h"

#if defined(BZ_WATCH)

enum {
    LOOK_NS = 20000000, /* between two looks of one observer */
    LOOKS = 25          /* half a second without progress */
};

/* ---- one task, one worker ---- */

void bz_watch_begin(struct bz_machine *m, struct bz_task *t)
{
    /* relaxed: of two workers that collide, one sees the other in any order */
    uint32_t was = bz_xchg_relaxed(&t->runs_on, m->index + 1);
    BZ_CHECK(was == 0, "task %llu (%s) runs on machine %u and on machine %u",
             (unsigned long long)t->id, t->ops->kind, was - 1, m->index); /* I1 */
}

void bz_watch_end(struct bz_machine *m, struct bz_task *t)
{
    uint32_t was = bz_xchg_relaxed(&t->runs_on, 0); /* relaxed: as above */
    BZ_CHECK(was == m->index + 1, "task %llu (%s) leaves machine %u, but runs on %d",
             (unsigned long long)t->id, t->ops->kind, m->index, (int)was - 1); /* I1 */
}

/* On the next stack: the task's own has been left, and no other thread knows of it yet. */
static void hook_left(void *machine)
{
    struct bz_machine *m = machine;
    bz_watch_end(m, m->watch.leaves);
    if (m->watch.hook != NULL)
        m->watch.hook(m->watch.arg);
}

void bz_watch_leave(struct bz_machine *m, struct bz_task *t, bz_ctx_hook **hook, void **arg)
{
    bz_held_none();
    m->watch.hook = *hook;
    m->watch.arg = *arg;
    m->watch.leaves = t;
    *hook = hook_left;
    *arg = m;
}

/* ---- every fork joined ---- */

/* The function of a job that is left in the deque; NULL: none. */
static void *left_behind(struct bz_machine *m, const struct blitz_job *below, bool has_others)
{
    struct bz_deque *d = &m->deque;
    const struct blitz_job *j = (const struct blitz_job *)d->ends.newest_;
    if (j == NULL && !has_others && !bz_deque_is_empty(d))
        j = bz_deque_take_oldest(d, m->current);
    return j != NULL && j != below ? (void *)(uintptr_t)j->fn_ : NULL;
}

void bz_watch_jobs(struct bz_machine *m, struct bz_task *t, const struct blitz_job *below,
                   bool has_others)
{
    bz_deque_catch_up(&m->deque);
    void *fn = left_behind(m, below, has_others);
    BZ_CHECK(fn == NULL,
             "task %llu (%s) ends, and has forked a job of function %p but not joined it",
             (unsigned long long)t->id, bz_task_name(t), fn);
    uint32_t out = bz_load_relaxed(&t->jobs_out); /* relaxed: all of them came back to us */
    BZ_CHECK(out == 0, "task %llu (%s) ends, and has not joined %u jobs that others have taken",
             (unsigned long long)t->id, bz_task_name(t), out);
}

void bz_watch_job_out(const struct blitz_job *job)
{
    struct bz_task *forker = job->task_;
    bz_fetch_add_relaxed(&forker->jobs_out, 1); /* relaxed: a count */
}

void bz_watch_job_back(void)
{
    bz_fetch_sub_relaxed(&bz_task_self()->jobs_out, 1); /* relaxed: a count */
}

void bz_watch_no_jobs(struct bz_task *t, const char *what)
{
    uint32_t out =
        bz_load_relaxed(&t->jobs_out); /* relaxed: those that we have joined are counted */
    BZ_CHECK(out == 0, "task %llu (%s) %s, and has not joined %u jobs that others have taken",
             (unsigned long long)t->id, bz_task_name(t), what, out);
}

/* ---- no work beside a sleeper ---- */

static size_t queued(struct bz_runtime *rt, unsigned queue)
{
    return queue < rt->proc_count ? bz_runq_count(&rt->procs[queue].ring)
                                  : bz_injector_length(&rt->injector);
}

static uint64_t position(struct bz_runtime *rt, unsigned queue)
{
    return queue < rt->proc_count ? bz_runq_taken(&rt->procs[queue].ring)
                                  : bz_injector_length(&rt->injector);
}

static bool is_forgotten(struct bz_watch_dog *dog, struct bz_runtime *rt, bool is_sleeper)
{
    return (is_sleeper || bz_idle_sleeping(&rt->idle) > 0) && queued(rt, dog->queue) > 0 &&
           position(rt, dog->queue) == dog->position;
}

/* Watch another queue that is not empty. */
static void turn(struct bz_watch_dog *dog, struct bz_runtime *rt)
{
    unsigned count = rt->proc_count + 1;
    dog->looks = 0;
    for (unsigned i = 1; i <= count; i++) {
        unsigned queue = (dog->queue + i) % count;
        if (queued(rt, queue) == 0)
            continue;
        dog->queue = queue;
        dog->position = position(rt, queue);
        return;
    }
}

void bz_watch_dump(struct bz_runtime *rt)
{
    bz_log(BLITZ_LOG_ERROR, "runtime %s: %u procs, %u asleep, %u searching, injector %zu",
           rt->is.name, rt->proc_count, bz_idle_sleeping(&rt->idle), bz_idle_searching(&rt->idle),
           bz_injector_length(&rt->injector));
    for (unsigned i = 0; i < rt->proc_count; i++) {
        struct bz_proc *p = &rt->procs[i];
        static const char *const names[] = {"free", "orphan",  "starting", "asleep",
                                            "held", "retired", "unused"};
        uint32_t word = bz_load_relaxed(&p->state); /* relaxed: for a reader */
        bz_log(BLITZ_LOG_ERROR, "  proc %u: ring %u at %u, %s%s%s", i, bz_runq_count(&p->ring),
               bz_runq_taken(&p->ring), names[bz_proc_state_of(word)],
               bz_idle_is_asleep(&rt->idle, i) ? ", in the idle set" : "",
               bz_poll_was_roused(&p->poll) ? ", roused" : "");
    }
}

uint64_t bz_watch_until(struct bz_watch_dog *dog, struct bz_runtime *rt, uint64_t until)
{
    if (bz_os_is_simulated())
        return until;
    dog->due_ns = bz_os_now(rt->os) + LOOK_NS;
    return dog->due_ns < until ? dog->due_ns : until;
}

/* A searcher should have found it; but the system may delay the searcher. */
static unsigned looks_max(struct bz_runtime *rt)
{
    return bz_idle_searching(&rt->idle) == 0 ? LOOKS : 4 * LOOKS;
}

static void look(struct bz_watch_dog *dog, struct bz_runtime *rt, bool is_sleeper)
{
    if (bz_os_is_simulated() ||
        bz_load_relaxed(&rt->is_ending)) /* relaxed: one look more or less */
        return;
    uint64_t now = bz_os_now(rt->os);
    if (now < dog->due_ns)
        return; /* this look does not count */
    bool is_late = now > dog->due_ns + LOOK_NS;
    dog->due_ns = now + LOOK_NS;
    if (is_late || !is_forgotten(dog, rt, is_sleeper)) {
        turn(dog, rt);
        return;
    }
    if (++dog->looks < looks_max(rt))
        return;
    bz_watch_dump(rt);
    BZ_CHECK(dog->looks < LOOKS, "work waits beside a sleeper: queue %u of runtime %s, %u looks",
             dog->queue, rt->is.name, dog->looks);
}

void bz_watch_look(struct bz_watch_dog *dog, struct bz_runtime *rt)
{
    look(dog, rt, false);
}

void bz_watch_sleep(struct bz_machine *m, uint64_t until, struct bz_reaped *heard)
{
    struct bz_proc *p = m->proc;
    struct bz_watch_dog *dog = &m->watch.dog;
    struct bz_sleeper me;
    bool is_for_ever = until == BZ_OS_FOREVER && !bz_os_is_simulated();
    if (is_for_ever) /* its looks do not count as activity */
        bz_sleepers_enter(&me, &p->poll.roused, 0);
    while (bz_poll_wait(&p->poll, bz_watch_until(dog, m->rt, until), heard) == -ETIMEDOUT) {
        if (bz_os_now(m->rt->os) >= until)
            return;
        look(dog, m->rt, true);
    }
    if (is_for_ever)
        bz_sleepers_leave(&me);
    dog->looks = 0;
}

#endif
