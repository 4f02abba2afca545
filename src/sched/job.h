/*
 * job.h - forked jobs that somebody else runs.
 *
 * deque.h holds the jobs of the frames that stand on a machine; here is what becomes of those that
 * leave it: stolen, or evacuated when their frame is suspended. job.c has the rules.
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
    bool is_asked;               /* the monitor is about to take them all; likewise */
    bool is_gone;                /* its machine has lost its proc and does not know; likewise */
};

void bz_jobs_init(struct bz_jobs *jobs);
/* Its thread ends. What it began may still run elsewhere, and stays in the list. */
void bz_jobs_fini(struct bz_machine *m);

/* Take the oldest job of that machine; 0 if there is none to be had. Any machine. */
bz_entry bz_job_steal(struct bz_machine *victim);
/* Is there one anywhere? For the look before a sleep. */
bool bz_job_is_any(struct bz_runtime *rt);

/* Has any machine a job that is not begun? A hint. */
BZ_MUST_USE bool bz_jobs_are_any(struct bz_runtime *rt);

/* For the monitor, while somebody sleeps: rouse one if a job is exposed since the last look. Returns:
 * are there others behind it, which their frame keeps to itself? Then ask; a barrier; fetch. */
BZ_MUST_USE bool bz_jobs_look(struct bz_runtime *rt);
void bz_jobs_ask(struct bz_runtime *rt);
unsigned bz_jobs_fetch(struct bz_runtime *rt); /* how many there were */

/* Can this machine run a job now, or does it want a header? */
BZ_MUST_USE bool bz_job_has_header(struct bz_machine *m);
/* This machine cannot run a job. If the job's join waits, resume it: it runs the job itself. False: nothing was
 * done, and the job is still the caller's. */
BZ_MUST_USE bool bz_job_give_back(bz_entry e);
/* A job was taken and is to be run here: the entry of the task that runs it. */
bz_entry bz_job_adopt(struct bz_machine *m, bz_entry e);
/* Its `run` returned BZ_RAN_JOB: tell whoever waits for the job. */
void bz_job_finish(struct bz_task *t);

/* The current task is about to leave its stack: its pending jobs go to the queues. */
void bz_evacuate_slow(struct bz_machine *m);

/* A task was cancelled: so are the jobs that others run for it. */
void bz_jobs_cancel(struct bz_task *parent);

#endif
