/*
 * wait_toy.h - a toy runtime for waits of plain threads in the model checker.
 *
 * Every thread of a model is a plain thread to what it waits for: it waits on the arbiter word of
 * its wait. wait_model.c covers tasks; there are none here.
 */
#ifndef MODEL_WAIT_TOY_H
#define MODEL_WAIT_TOY_H

#include "model.h"

#include "life/deadlines.h"
#include "model_os.h"
#include "proc/place.h"
#include "sched/loop.h"
#include "wait/wait.h"
#include "waker_toy.h"

const struct bz_os *bz_os_process = &m_os;

/* ---- of tasks: there are none ---- */

static void no_task(void)
{
    m_assert(!"a task");
}

void bz_place(struct bz_runtime *rt, bz_entry e)
{
    (void)rt;
    (void)e;
    no_task();
}

void bz_suspend(bz_ctx_hook *hook, void *arg)
{
    (void)hook;
    (void)arg;
    no_task();
}

void bz_trace_record(struct bz_runtime *rt, enum bz_trace_event event, uint64_t task, uint64_t arg,
                     const char *text)
{
    (void)rt;
    (void)event;
    (void)task;
    (void)arg;
    (void)text;
    no_task();
}

void bz_trace_record_wake(struct bz_task *t, uint64_t by)
{
    (void)t;
    (void)by;
    no_task();
}

void bz_park(void)
{
    no_task();
}

void blitz_poll_slow_(void)
{
    no_task();
}

void bz_task_wake(struct bz_task *t)
{
    (void)t;
    no_task();
}

void bz_jobs_cancel(struct bz_task *t)
{
    (void)t;
    no_task();
}

void bz_barrier_pay(struct bz_barrier *b)
{
    (void)b;
    no_task();
}

void bz_timers_lock(struct bz_proc *p)
{
    (void)p;
    no_task();
}

void bz_timers_unlock(struct bz_proc *p)
{
    (void)p;
    no_task();
}

void bz_timers_armed(struct bz_proc *p)
{
    (void)p;
    no_task();
}

void bz_timer_init(struct bz_timer *timer, struct bz_proc *p,
                   struct bz_wake (*fire)(struct bz_timer *timer))
{
    (void)timer;
    (void)p;
    (void)fire;
    no_task();
}

void bz_timer_arm_locked(struct bz_timer *timer, uint64_t when)
{
    (void)timer;
    (void)when;
    no_task();
}

bool bz_timer_disarm(struct bz_timer *timer)
{
    (void)timer;
    no_task();
    return false;
}

#endif
