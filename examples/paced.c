/*
 * paced.c - work at a pace: a rate, a queue of delayed jobs, and retries.
 *
 * Jobs come in bursts. Each is due at a time of its own. Two workers take what is due, at most 200 jobs a second in
 * all, and call a service that fails now and then. A job that fails is tried again after a pause that grows.
 *
 *     paced            20 jobs
 */
#include <errno.h>
#include <stdio.h>

#include "blitz.h"

enum { JOBS = 20, WORKERS = 2 };

static blitz_delay_queue *jobs;
static blitz_rate pace;

struct attempt {
    int job, calls;
};

/* The service is busy at the first call of every third job. */
static int call_service(void *arg)
{
    struct attempt *a = arg;
    return a->job % 3 == 0 && a->calls++ == 0 ? -EBUSY : a->job;
}

static int worker(void *arg)
{
    const blitz_backoff_opts soon = {.first = 5 * BLITZ_MS, .tries_max = 5};
    int done = 0, job;
    (void)arg;
    while (blitz_delay_queue_recv(jobs, &job, BLITZ_FOREVER) == 0) {
        struct attempt a = {.job = job};
        int rc = blitz_rate_acquire(&pace, 1, BLITZ_FOREVER);
        if (rc == 0)
            rc = blitz_retry(call_service, &a, &soon, BLITZ_FOREVER);
        if (rc < 0)
            return rc;
        done++;
    }
    return done;
}

static int insert_all(void)
{
    for (int i = 0; i < JOBS; i++) {
        blitz_delay_key key;
        int err =
            blitz_delay_queue_insert(jobs, &i, blitz_after((unsigned)(JOBS - i) * BLITZ_MS), &key);
        if (err == 0 && i == 7) /* on second thoughts: the last of all */
            err = blitz_delay_queue_move(jobs, key, blitz_after(60 * BLITZ_MS));
        if (err != 0)
            return err;
    }
    blitz_delay_queue_close(jobs);
    return 0;
}

static int all(void *arg)
{
    blitz_task *task[WORKERS];
    int sum = 0, done, err = blitz_delay_queue_new(sizeof(int), &jobs);
    (void)arg;
    if (err == 0)
        err = blitz_rate_init(&pace, 200, BLITZ_S, 4);
    for (int i = 0; err == 0 && i < WORKERS; i++)
        err = blitz_spawn(worker, NULL, NULL, &task[i]);
    if (err == 0)
        err = insert_all();
    if (err != 0)
        return err;
    blitz_instant began = blitz_now();
    for (int i = 0; i < WORKERS; i++) {
        err = blitz_task_join(task[i], &done, BLITZ_FOREVER);
        if (err != 0 || done < 0)
            return err != 0 ? err : done;
        sum += done;
    }
    printf("%d jobs in %llu ms\n", sum, (unsigned long long)((blitz_now() - began) / BLITZ_MS));
    blitz_delay_queue_unref(jobs);
    return sum == JOBS ? 0 : 1;
}

int main(void)
{
    return blitz_run(all, NULL, NULL) != 0;
}
