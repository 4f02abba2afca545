/*
 * steals.h - our cases of jobs that another worker takes, for blitz.c. Each needs two workers. No peer has them: their
 * interfaces do not say who ran a job.
 *
 *   steal         a worker forks empty jobs and runs none; another steals and runs them all: ns a job
 *   stolen-join   the joins of jobs that another worker has finished: ns a join
 */
#ifndef BENCH_PAR_STEALS_H
#define BENCH_PAR_STEALS_H

#include <blitz.h>
#include <stdatomic.h>

#include "tasks/tasks.h"

enum { STEALS_JOBS = 64 }; /* at once */
#define STEALS_SETTLE_NS 1000

static atomic_uint steals_run; /* jobs, since steals_all_taken() began */

static int job_stolen(void *arg)
{
    atomic_fetch_add_explicit(&steals_run, 1, memory_order_release);
    return (int)(intptr_t)arg;
}

/* Fork the jobs, and offer them until others have run them all. Return the nanoseconds that took. */
static uint64_t steals_all_taken(blitz_job *jobs)
{
    atomic_store_explicit(&steals_run, 0, memory_order_relaxed);
    uint64_t began = tasks_now_ns();
    for (int i = 0; i < STEALS_JOBS; i++)
        blitz_fork(&jobs[i], job_stolen, (void *)(intptr_t)1);
    while (atomic_load_explicit(&steals_run, memory_order_acquire) < STEALS_JOBS)
        blitz_share();
    return tasks_now_ns() - began;
}

/* The last job has been counted; give its worker the time to say that it has finished. */
static void steals_settle(void)
{
    uint64_t until = bench_now_ns() + STEALS_SETTLE_NS;
    while (bench_now_ns() < until)
        ;
}

/* Join them, the newest first. Return the nanoseconds that took. */
static uint64_t steals_joined(blitz_job *jobs)
{
    int sum = 0;
    uint64_t began = tasks_now_ns();
    for (int i = STEALS_JOBS; i-- > 0;)
        sum += blitz_join(&jobs[i]);
    uint64_t ns = tasks_now_ns() - began;
    if (sum != STEALS_JOBS)
        bench_die("%d of %d jobs ran", sum, STEALS_JOBS);
    return ns;
}

/* Both cases: the nanoseconds of `ops` steals, or of `ops` joins. */
static double steals_case(uint64_t ops, bool joins)
{
    blitz_job jobs[STEALS_JOBS];
    uint64_t ns = 0;
    if (tasks_procs < 2)
        bench_die("a job is stolen by a second worker: use --procs 2");
    for (uint64_t i = 0; i < ops; i += STEALS_JOBS) {
        uint64_t taken = steals_all_taken(jobs);
        steals_settle();
        uint64_t joined = steals_joined(jobs);
        ns += joins ? joined : taken;
    }
    return (double)ns;
}

static double case_steal(uint64_t ops)
{
    return steals_case(ops, false);
}

static double case_stolen_join(uint64_t ops)
{
    return steals_case(ops, true);
}

#endif
