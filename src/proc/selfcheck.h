/*
 * selfcheck.h - test builds watch the scheduler from inside: two workers on one task, work beside a
 * sleeper.
 *
 * Both are promises that a broken protocol breaks without a crash. In a test build (BZ_WATCH: every
 * debug and sanitizer build) they are checked all the time:
 *
 *  - A task runs on one worker. It records this worker from the moment a machine makes it its current task
 *    until its stack has been left, which is after the switch and before the hook that publishes it.
 *    So if a task is published too early, the worker that resumes it detects that, if it resumes it in
 *    time; delays at the points of os/os.h make that likely.
 *  - No work waits beside a sleeper. A sleeping machine wakes now and then, still announced as asleep,
 *    and looks. If the oldest entry of a queue has not moved for LOOKS looks in a row, the queue has been
 *    forgotten (four times as many while a machine counts as searching). The monitor looks as well, for the machines
 *    that were never started. Late looks do not count: then the system delays the runtime. Under
 *    simulation there are no looks, because a forgotten task is a deadlock there and found as such.
 *  - A task has joined its forked jobs when it ends. Jobs that it has left are found in the deque, and
 *    jobs that others have taken are counted in the task that forked them.
 *
 * In other builds these functions are empty.
 */
#ifndef BZ_SCHED_WATCH_H
#define BZ_SCHED_WATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "arch/ctx.h"
#include "base/compiler.h"

struct blitz_job;
struct bz_reaped;
struct bz_machine;
struct bz_runtime;
struct bz_task;

#if defined(BZ_WATCH)

/* The record of one observer between two looks. */
struct bz_watch_dog {
    uint64_t due_ns;   /* the planned time of its next look */
    unsigned queue;    /* the queue it watches: a proc's ring, or proc_count: the injector */
    uint64_t position; /* the position of its oldest entry */
    unsigned looks;    /* how often in a row the entry had not moved */
};

/* For each machine. */
struct bz_watch {
    struct bz_watch_dog dog;
    bz_ctx_hook *hook; /* the hook of the suspension: runs after ours */
    void *arg;
    struct bz_task *leaves; /* the task whose stack is being left */
};

/* The machine's current task is t, or no longer. Aborts if another worker also runs t. */
void bz_watch_begin(struct bz_machine *m, struct bz_task *t);
void bz_watch_end(struct bz_machine *m, struct bz_task *t);
/* t's stack is about to be left: replace {*hook, *arg}, which go to the switch. */
void bz_watch_leave(struct bz_machine *m, struct bz_task *t, bz_ctx_hook **hook, void **arg);
/* Check that t, which has ended, has joined all its jobs. Aborts with the function of a job that it
 * has not joined. Jobs from `below` on in the machine's list belong to another task. So do the
 * older jobs, if `has_others`. */
void bz_watch_jobs(struct bz_machine *m, struct bz_task *t, const struct blitz_job *below,
                   bool has_others);
/* Count a job that has gone to another worker or to the queues; and one that came back to the
 * current task. */
void bz_watch_job_out(const struct blitz_job *job);
void bz_watch_job_back(void);
/* Abort with these words if jobs of the calling task run elsewhere. */
void bz_watch_no_jobs(struct bz_task *t, const char *what);
/* Sleep on the proc's word as bz_os_wait does, and look meanwhile. */
void bz_watch_sleep(struct bz_machine *m, uint64_t until, struct bz_reaped *heard);
/* One look, from outside `rt`. Aborts with a dump if work was forgotten. */
void bz_watch_look(struct bz_watch_dog *dog, struct bz_runtime *rt);
/* How long an observer may sleep until its next look. */
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
static inline void bz_watch_no_jobs(struct bz_task *t, const char *what)
{
    (void)t;
    (void)what;
}

#endif

#endif
