/*
 * watch.h - test builds watch the scheduler from inside: two workers on one task, work beside a
 * sleeper.
 *
 * Both are promises that a broken protocol breaks without a crash. In a test build (BZ_WATCH: every
 * debug and sanitizer build) they are checked all the time:
 *
 *  - A task runs on one worker. It says on which from the moment a machine makes it its current one
 *    until its stack has been left, which is after the switch and before the hook that publishes it.
 *    So a task that is published too early is caught by the worker that resumes it, if that comes in
 *    time; delays at the points of os/os.h see to that.
 *  - No work waits beside a sleeper. Whoever sleeps wakes now and then, still announced as asleep,
 *    and looks: a queue whose oldest entry has not moved for LOOKS looks in a row has been
 *    forgotten (four times as many while somebody is said to search). The monitor looks as well, for the machines that were never
 *    started. Looks that come late do not count: then it is the system that keeps us waiting. Under
 *    simulation nobody looks, because there a forgotten task is a deadlock and found as such.
 *  - A task has joined what it forked when it ends. What it has left in the deque is found there, and
 *    what others have taken is counted in the task that forked it.
 *
 * In other builds all of this is nothing.
 */
#ifndef BZ_SCHED_WATCH_H
#define BZ_SCHED_WATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "arch/ctx.h"
#include "base/compiler.h"

struct blitz_job;
struct bz_harvest;
struct bz_machine;
struct bz_runtime;
struct bz_task;

#if defined(BZ_WATCH)

/* What one looker remembers between two looks. */
struct bz_watch_dog {
    uint64_t due_ns;   /* when it meant to look again */
    unsigned queue;    /* which one it has its eye on: a proc's ring, or proc_count: the injector */
    uint64_t position; /* where its oldest entry was */
    unsigned looks;    /* how often in a row it was there, unmoved */
};

/* A machine's. */
struct bz_watch {
    struct bz_watch_dog dog;
    bz_ctx_hook *hook; /* what a suspension asked for: runs after ours */
    void *arg;
    struct bz_task *leaves; /* whose stack is being left */
};

/* The machine's current task is t, or no longer. Aborts if another worker says so, too. */
void bz_watch_begin(struct bz_machine *m, struct bz_task *t);
void bz_watch_end(struct bz_machine *m, struct bz_task *t);
/* t's stack is about to be left: what to give to the switch instead of {*hook, *arg}. */
void bz_watch_leave(struct bz_machine *m, struct bz_task *t, bz_ctx_hook **hook, void **arg);
/* t has ended: it has joined all it forked. Aborts with the function of a job that it has not. What
 * stands from `below` on in the machine's list is another's, and so is what is older, if `has_others`. */
void bz_watch_jobs(struct bz_machine *m, struct bz_task *t, const struct blitz_job *below,
                   bool has_others);
/* A job has gone to another worker or to the queues; the current task has one back. */
void bz_watch_job_out(const struct blitz_job *job);
void bz_watch_job_back(void);
/* Sleep on the proc's word as bz_os_wait does, and look meanwhile. */
void bz_watch_sleep(struct bz_machine *m, uint64_t until, struct bz_harvest *heard);
/* One look, by somebody who sees `rt` from outside. Aborts with a dump if work was forgotten. */
void bz_watch_look(struct bz_watch_dog *dog, struct bz_runtime *rt);
/* How long a looker may sleep until its next look. */
uint64_t bz_watch_until(struct bz_watch_dog *dog, struct bz_runtime *rt, uint64_t until);
/* All queues and procs, to the log. */
void bz_watch_dump(struct bz_runtime *rt);

#else

static inline void bz_watch_begin(struct bz_machine *m, struct bz_task *t)
{
    (void)m;
    (void)t;
}
static inline void bz_watch_end(struct bz_machine *m, struct bz_task *t)
{
    (void)m;
    (void)t;
}
static inline void bz_watch_leave(struct bz_machine *m, struct bz_task *t, bz_ctx_hook **hook,
                                  void **arg)
{
    (void)m;
    (void)t;
    (void)hook;
    (void)arg;
}
static inline void bz_watch_jobs(struct bz_machine *m, struct bz_task *t,
                                 const struct blitz_job *below, bool has_others)
{
    (void)has_others;
    (void)m;
    (void)t;
    (void)below;
}
static inline void bz_watch_job_out(const struct blitz_job *job)
{
    (void)job;
}
static inline void bz_watch_job_back(void) {}

#endif

#endif
