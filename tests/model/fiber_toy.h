/*
 * fiber_toy.h - a toy runtime for waits of fibers in the model checker.
 *
 * Threads 1 and 2 are fibers, each on a machine of its own. A fiber that suspends leaves its stack
 * to its hook. Either it runs the hook itself (is_alone), or another thread does (the next stack),
 * perhaps while the fiber already continues because the hook has published it. It goes on when it
 * is queued. Threads from 3 on are workers of the same runtime, with nothing to do but what the
 * test says. There are no deadlines: wait_model.c has those.
 */
#ifndef MODEL_FIBER_TOY_H
#define MODEL_FIBER_TOY_H

#include "model.h"

#include "life/deadlines.h"
#include "model_os.h"
#include "proc/place.h"
#include "sched/loop.h"
#include "wait/wait.h"
#include "waker_toy.h"

enum { TOY_FIBERS = 2, TOY_THREADS = 6 };

static struct toy_fiber {
    struct bz_task task;
    struct bz_machine machine;
    bz_os_word queued; /* 1: it is in the queue */
    bz_os_word left;   /* 1: it has left its stack, and the hook is there */
    bz_ctx_hook *hook;
    void *arg;
    bool is_alone; /* it runs its hook itself */
} toy_fiber[TOY_FIBERS];

static struct bz_runtime toy_runtime;
static struct bz_proc toy_proc;
static struct bz_machine toy_worker;

const struct bz_os *bz_os_process = &m_os;

/* ---- thread identity ---- */

static void *toy_self[TOY_THREADS]; /* by thread of the model */
extern _Thread_local void *blitz_self_;
_Thread_local void *blitz_self_; /* no task is asked to yield here */

void *bz_self_get_slow(void)
{
    return toy_self[m_self()];
}

void bz_self_set_slow(void *self)
{
    toy_self[m_self()] = self;
}

/* ---- running ---- */

void bz_place(struct bz_runtime *rt, bz_entry e)
{
    struct toy_fiber *f = &toy_fiber[bz_entry_task(e) == &toy_fiber[1].task];
    (void)rt;
    m_assert(e == bz_entry_resumed(&f->task));
    uint32_t was = bz_xchg_acqrel(&f->queued, 1);
    m_assert(was == 0); /* never queued twice */
    m_word_wake(&f->queued, 1);
}

void bz_suspend(bz_ctx_hook *hook, void *arg)
{
    struct toy_fiber *f = &toy_fiber[m_self() - 1];
    f->hook = hook;
    f->arg = arg;
    if (f->is_alone) {
        hook(arg);
    } else {
        bz_store_release(&f->left, 1);
        m_word_wake(&f->left, 1);
    }
    while (!bz_xchg_acqrel(&f->queued, 0))
        m_word_wait(&f->queued, 0);
}

/* The stack that the first fiber leaves for, if it comes to that. */
BZ_MAYBE_UNUSED static void toy_next_stack(void)
{
    struct toy_fiber *f = &toy_fiber[0];
    uint32_t seen;
    while ((seen = bz_load_acquire(&f->left)) == 0)
        m_word_wait(&f->left, 0);
    if (seen == 1)
        f->hook(f->arg);
}

/* The first fiber has nothing to wait for any more. */
BZ_MAYBE_UNUSED static void toy_ends(void)
{
    uint32_t seen = 0;
    if (bz_cas_strong_acqrel_rlx(&toy_fiber[0].left, &seen, 2))
        m_word_wake(&toy_fiber[0].left, 1);
}

void blitz_poll_slow_(void)
{
    m_assert(!"asked");
}

void bz_trace_record(struct bz_runtime *rt, enum bz_trace_event event, uint64_t task, uint64_t arg,
                     const char *text)
{
    (void)rt;
    (void)event;
    (void)task;
    (void)arg;
    (void)text;
}

void bz_trace_record_wake(struct bz_task *t, uint64_t by)
{
    (void)t;
    (void)by;
}

void bz_park(void)
{
    m_assert(!"woken for nothing");
}

void bz_task_wake(struct bz_task *t)
{
    (void)t; /* it runs, and will look by itself */
}

void bz_jobs_cancel(struct bz_task *t)
{
    (void)t;
}

void bz_barrier_pay(struct bz_barrier *b)
{
    (void)b;
    bz_os_barrier(&m_os);
}

/* ---- time: none ---- */

static void toy_no_time(void)
{
    m_assert(!"a deadline");
}

void bz_timers_lock(struct bz_proc *p)
{
    (void)p;
    toy_no_time();
}

void bz_timers_unlock(struct bz_proc *p)
{
    (void)p;
    toy_no_time();
}

void bz_timers_armed(struct bz_proc *p)
{
    (void)p;
    toy_no_time();
}

void bz_timer_init(struct bz_timer *timer, struct bz_proc *p,
                   struct bz_wake (*fire)(struct bz_timer *timer))
{
    (void)timer;
    (void)p;
    (void)fire;
    toy_no_time();
}

void bz_timer_arm_locked(struct bz_timer *timer, uint64_t when)
{
    (void)timer;
    (void)when;
    toy_no_time();
}

bool bz_timer_disarm(struct bz_timer *timer)
{
    (void)timer;
    toy_no_time();
    return false;
}

/* ---- given and then ---- */

static void toy_machine_init(struct bz_machine *m, struct bz_task *current)
{
    m->rt = &toy_runtime;
    m->proc = m->last = &toy_proc;
    m->current = current;
}

static void given_fibers(bool is_alone)
{
    toy_runtime.os = &m_os;
    toy_runtime.is_plain = false;
    toy_proc.rt = &toy_runtime;
    toy_machine_init(&toy_worker, NULL);
    for (int i = 0; i < TOY_THREADS; i++)
        toy_self[i] = &toy_worker;
    for (int i = 0; i < TOY_FIBERS; i++) {
        struct toy_fiber *f = &toy_fiber[i];
        toy_machine_init(&f->machine, &f->task);
        toy_self[1 + i] = &f->machine;
        f->is_alone = is_alone;
        static const struct bz_task_ops ops = {.kind = "toy"};
        f->task.rt = &toy_runtime;
        f->task.ops = &ops;
        bz_atomic_init(&f->task.wait, 0);
        bz_lock_init_ranked(&f->task.lock, BZ_RANK_TASK);
        bz_word_init(&f->task.word, BZ_RUNNING, 2);
        bz_atomic_init(&f->queued, 0);
        bz_atomic_init(&f->left, 0);
    }
}

/* Nothing is left of any wait. */
static void then_no_fiber_waits(void)
{
    for (int i = 0; i < TOY_FIBERS; i++) {
        m_assert(bz_load_relaxed(&toy_fiber[i].queued) == 0);
        m_assert(bz_load_relaxed(&toy_fiber[i].task.wait) == 0);
    }
}

#endif
