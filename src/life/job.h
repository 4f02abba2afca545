/*
 * job.h - forked jobs that another machine runs.
 *
 * deque.h holds the jobs of the frames that stand on a machine. This file handles the jobs that leave
 * the deque: they are stolen, or evacuated when their frame is suspended. job.c has the rules.
 */
#ifndef BZ_JOB_H
#define BZ_JOB_H

#include <stdbool.h>

#include "base/list.h"
#include "blitz/fork.h"
#include "os/lock.h"
#include "task/entry.h"

struct bz_machine;
struct bz_runtime;
struct bz_task;
struct bz_job_task;

/* The jobs that a machine has begun to run for others, wherever they are now. */
struct bz_jobs {
    struct bz_lock lock;         /* rank: last */
    struct bz_list running;      /* guarded by lock */
    bz_atomic(uint32_t) count;   /* of them; written under lock, read by cancellers */
    struct bz_job_task *reserve; /* a header for the next one; the machine's own */
    uint64_t seen;               /* deque.exposures when the monitor last looked; the monitor's */
    uintptr_t seen_newest;       /* its newest private job then; likewise */
    bool is_target;              /* the monitor is about to take them all; likewise */
    bool is_gone;                /* its machine has lost its proc and does not know; likewise */
};

static inline void bz_jobs_init(struct bz_jobs *jobs)
{
    bz_lock_init(&jobs->lock);
    bz_list_init(&jobs->running);
    bz_atomic_init(&jobs->count, 0);
    jobs->reserve = NULL;
    jobs->seen = 0;
}
/* The machine's thread ends. Jobs that it began may still run elsewhere; they stay in the list. */
void bz_jobs_fini(struct bz_machine *m);

/* Take the oldest job of that machine; 0 if none can be taken. Any machine. */
bz_entry bz_job_steal(struct bz_machine *victim);

/* True if any machine has a job that has not begun. A hint. */
BZ_MUST_USE bool bz_jobs_are_any(struct bz_runtime *rt);

/* For the monitor, while a proc sleeps: rouse one if a job is exposed since the last look. Returns: true if there
 * are private jobs that their frame does not expose. Then call bz_jobs_ask, run a barrier, and call bz_jobs_fetch. */
BZ_MUST_USE bool bz_jobs_look(struct bz_runtime *rt);
void bz_jobs_ask(struct bz_runtime *rt);
unsigned bz_jobs_fetch(struct bz_runtime *rt); /* how many there were */

/* True if this machine has a header, so that it can run a job now. */
BZ_MUST_USE bool bz_job_has_header(struct bz_machine *m);
/* This machine cannot run a job. If the job's join waits, resume the join: it runs the job itself. False: nothing
 * was done, and the caller still owns the job. */
BZ_MUST_USE bool bz_job_give_back(bz_entry e);
/* Give a job that was taken a header. Return the entry of the task that runs it, on this machine. */
bz_entry bz_job_adopt(struct bz_machine *m, bz_entry e);
/* The task that forked the job which this task runs; NULL: it runs no job. Of the calling task. */
struct bz_task *bz_job_forker(struct bz_task *t);
/* Its `run` returned BZ_RAN_JOB: wake the task that waits for the job. */
void bz_job_finish(struct bz_task *t);

/* Move jobs that have left the deque for good to the queues. In the runtime. */
void bz_jobs_queue_all(struct bz_machine *m, struct blitz_job *all);
/* A job has become visible to thieves: rouse a proc if needed. */
void bz_jobs_published(struct bz_machine *m);

/* The current task is about to leave its stack: move its pending jobs to the queues. */
void bz_evacuate_slow(struct bz_machine *m);

/* A task was cancelled: cancel the jobs that other machines run for it. */
void bz_jobs_cancel(struct bz_task *parent);

#endif
