/*
 * latch_model.c - the end of a job and the join that waits for it.
 *
 *   covers: src/queue/latch.h
 *
 * The joiner's stack is `frame`: it is left before the hook waits, and the resumer of the task
 * accesses it. The job is in memory that is freed when the join returns.
 */
#include "model.h"

#include "queue/latch.h"

struct job {
    bz_latch latch;
    bz_shared(int) result;
};

static struct job *job;
static bz_shared(int) frame;
static int task; /* an address */
static int resumed, was_done;

/* The task goes on: it reads the result, and the job's memory is gone. */
static void resume(void)
{
    m_assert(bz_get(&frame) == 1);
    bz_set(&frame, 2);
    m_assert(bz_get(&job->result) == 42);
    resumed++;
    m_free(job);
}

static void finishes(void)
{
    bz_set(&job->result, 42);
    void *joiner = bz_latch_finish(&job->latch);
    m_assert(joiner == NULL || joiner == &task);
    if (joiner != NULL)
        resume();
}

static void joins(void)
{
    bz_set(&frame, 1);
    if (bz_latch_is_done(&job->latch)) {
        was_done++;
        resume();
    } else if (bz_latch_wait(&job->latch, &task)) {
        resume();
    }
}

/* ---- a machine that cannot run the job ---- */

static int ran_inline;

/* The joining task goes on with a job that it has back. */
static void run_inline(void)
{
    m_assert(bz_get(&frame) == 1);
    bz_set(&frame, 2);
    if (bz_latch_was_returned(&job->latch))
        ran_inline++;
    resumed++;
    m_free(job);
}

/* Looks once, as a machine does between two sleeps; later the memory is there and it runs the job. */
static void cannot_run(void)
{
    if (bz_latch_give_back(&job->latch) != NULL)
        run_inline();
    else
        finishes();
}

MODEL(latch, a_job_that_no_machine_can_run_goes_back_to_its_join_or_is_kept)
{
    job = m_alloc(sizeof *job);
    bz_latch_init(&job->latch);
    bz_set(&frame, 0);
    resumed = was_done = ran_inline = 0;
    m_threads(cannot_run, joins);
    m_assert(resumed == 1);
    m_sometimes(ran_inline == 1);
    m_sometimes(was_done == 1);
}

/* latch.h [L] [W]: resumed exactly once, by the second to come; a lost one is never resumed. */
MODEL(latch, a_join_that_waits_is_resumed_once)
{
    job = m_alloc(sizeof *job);
    bz_latch_init(&job->latch);
    bz_set(&frame, 0);
    resumed = was_done = 0;
    m_threads(finishes, joins);
    m_assert(resumed == 1);
    m_sometimes(was_done == 1);
    m_sometimes(was_done == 0);
}
