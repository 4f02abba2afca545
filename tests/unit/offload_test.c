/* Blocking calls with a handle: started now, waited for later, by every kind of caller. */
#include "harness.h"

#include <errno.h>

#include "base/bz_atomic.h"
#include "blitz.h"
#include "support/bell.h"
#include "support/on_each.h"

/* A call that waits for its gate, and what became of its argument. */
struct job {
    blitz_event begun, gate;
    bz_atomic(int) calls, drops;
    int result;
};

static int job_run(void *arg)
{
    struct job *j = arg;
    bz_fetch_add_seqcst(&j->calls, 1); /* seq_cst: a count of the test, as all of these */
    blitz_event_set(&j->begun);
    CHECK_EQ(blitz_event_wait(&j->gate, BLITZ_FOREVER), 0);
    return j->result;
}

static void job_drop(void *arg, void *ctx)
{
    struct job *j = arg;
    bz_fetch_add_seqcst(&j->drops, 1); /* seq_cst: likewise */
    if (ctx != NULL)
        blitz_event_set(ctx);
}

static void job_init(struct job *j, int result)
{
    *j = (struct job){.result = result};
    blitz_event_init(&j->begun);
    blitz_event_init(&j->gate);
}

static int calls_of(struct job *j)
{
    return bz_load_seqcst(&j->calls); /* seq_cst: likewise */
}

static int drops_of(struct job *j)
{
    return bz_load_seqcst(&j->drops); /* seq_cst: likewise */
}

static blitz_runtime *runtime(unsigned threads_max)
{
    blitz_runtime *rt;
    CHECK_EQ(blitz_runtime_new(&(blitz_runtime_opts){.procs = 1, .threads_max = threads_max}, &rt),
             0);
    return rt;
}

static void end(blitz_runtime *rt)
{
    CHECK_EQ(blitz_runtime_shutdown(rt, BLITZ_FOREVER), 0);
    CHECK_EQ(blitz_runtime_unref(rt), 0);
}

static blitz_offload *start(blitz_runtime *rt, struct job *j, blitz_event *dropped)
{
    blitz_offload *o;
    blitz_offload_opts opts = {.runtime = rt, .drop = job_drop, .ctx = dropped};
    CHECK_EQ(blitz_offload_start(job_run, j, &opts, &o), 0);
    return o;
}

/* ---- from a plain thread ---- */

TEST(offload, a_plain_thread_starts_a_call_and_waits_later)
{
    blitz_runtime *rt = runtime(0);
    struct job j;
    int result = 0;
    job_init(&j, 42);
    blitz_offload *o = start(rt, &j, NULL);
    CHECK_EQ(blitz_event_wait(&j.begun, BLITZ_FOREVER), 0); /* it runs, and this thread goes on */
    CHECK(!blitz_offload_is_done(o));
    CHECK_EQ(blitz_offload_wait(o, &result, 0), -ETIMEDOUT);
    CHECK_EQ(blitz_offload_wait(o, &result, blitz_after(BLITZ_MS)), -ETIMEDOUT);
    CHECK_EQ(result, 0);
    CHECK_EQ(blitz_offload_cancel(o), -EBUSY);
    blitz_event_set(&j.gate);
    CHECK_EQ(blitz_offload_wait(o, NULL, BLITZ_FOREVER), 0);
    CHECK_EQ(blitz_offload_wait(o, &result, 0), 0); /* again */
    CHECK_EQ(result, 42);
    CHECK(blitz_offload_is_done(o));
    CHECK_EQ(blitz_offload_cancel(o), -EBUSY);
    blitz_offload_unref(o);
    blitz_offload_unref(NULL);
    end(rt);
    CHECK_EQ(calls_of(&j), 1);
    CHECK_EQ(drops_of(&j), 0); /* the argument came back with the result */
}

TEST(offload, a_handle_that_is_released_leaves_the_call_its_argument)
{
    blitz_runtime *rt = runtime(0);
    blitz_event dropped = BLITZ_EVENT_INIT;
    struct job j;
    job_init(&j, 0);
    blitz_offload *o = start(rt, &j, &dropped);
    CHECK_EQ(blitz_event_wait(&j.begun, BLITZ_FOREVER), 0);
    blitz_offload_unref(o);
    CHECK_EQ(drops_of(&j), 0); /* it runs */
    blitz_event_set(&j.gate);
    CHECK_EQ(blitz_event_wait(&dropped, BLITZ_FOREVER), 0);
    /* released when the call is over, without a wait */
    job_init(&j, 0);
    blitz_event_set(&j.gate);
    o = start(rt, &j, NULL);
    while (!blitz_offload_is_done(o))
        blitz_yield();
    CHECK_EQ(drops_of(&j), 0);
    blitz_offload_unref(o);
    CHECK_EQ(drops_of(&j), 1);
    end(rt);
}

/* ---- calls that have not begun ---- */

/* A pool of one thread, which `j` keeps. */
static blitz_runtime *busy_runtime(struct job *j, blitz_offload **first)
{
    blitz_runtime *rt = runtime(2);
    job_init(j, 1);
    *first = start(rt, j, NULL);
    CHECK_EQ(blitz_event_wait(&j->begun, BLITZ_FOREVER), 0);
    return rt;
}

TEST(offload, a_call_that_has_not_begun_is_cancelled)
{
    struct job first, j;
    blitz_offload *keeper, *o;
    blitz_runtime *rt = busy_runtime(&first, &keeper);
    int result = 0;
    job_init(&j, 2);
    o = start(rt, &j, NULL);
    CHECK_EQ(blitz_offload_wait(o, &result, 0), -ETIMEDOUT);
    CHECK_EQ(blitz_offload_cancel(o), 0);
    CHECK_EQ(blitz_offload_cancel(o), -EALREADY);
    CHECK(blitz_offload_is_done(o));
    CHECK_EQ(blitz_offload_wait(o, &result, 0), 0);
    CHECK_EQ(result, -ECANCELED);
    blitz_offload_unref(o);
    CHECK_EQ(drops_of(&j), 0); /* the cancel gave it back */
    o = start(rt, &j, NULL);
    blitz_offload_unref(o);
    CHECK_EQ(drops_of(&j), 1); /* at once */
    blitz_event_set(&first.gate);
    CHECK_EQ(blitz_offload_wait(keeper, NULL, BLITZ_FOREVER), 0);
    blitz_offload_unref(keeper);
    end(rt); /* the pool has looked at both, and called neither */
    CHECK_EQ(calls_of(&j), 0);
}

static void waits_or_cancels(void *arg, int index)
{
    int result = 0;
    if (index == 0) {
        CHECK_EQ(blitz_offload_cancel(arg), 0);
        return;
    }
    CHECK_EQ(blitz_offload_wait(arg, &result, BLITZ_FOREVER), 0);
    CHECK_EQ(result, -ECANCELED);
}

TEST(offload, a_cancel_wakes_the_waiters)
{
    struct job first, j;
    blitz_offload *keeper;
    blitz_runtime *rt = busy_runtime(&first, &keeper);
    for (uint64_t i = t_scaled(200); i > 0; i--) {
        job_init(&j, 2);
        blitz_offload *o = start(rt, &j, NULL);
        t_threads(3, waits_or_cancels, o);
        blitz_offload_unref(o);
    }
    blitz_event_set(&first.gate);
    blitz_offload_unref(keeper);
    end(rt);
}

/* ---- from tasks ---- */

enum { MANY = 40 }; /* more than a wake list holds */

static int waits(void *arg)
{
    int result = 0;
    CHECK_EQ(blitz_offload_wait(arg, &result, BLITZ_FOREVER), 0);
    return result;
}

static int awaits(void *arg)
{
    blitz_offload_future f;
    blitz_offload_wait_future_init(&f, arg);
    CHECK_EQ(blitz_await(&f.future, BLITZ_FOREVER), 0);
    CHECK_EQ(blitz_future_output(&f.future), f.value);
    return f.value;
}

static int a_crowd_waits(void *arg)
{
    blitz_task *t[MANY];
    struct job j;
    blitz_offload *o;
    int result;
    (void)arg;
    job_init(&j, 7);
    CHECK_EQ(blitz_offload_start(job_run, &j, NULL, &o), 0);
    for (int i = 0; i < MANY; i++)
        CHECK_EQ(blitz_spawn(i % 2 ? waits : awaits, o, NULL, &t[i]), 0);
    CHECK_EQ(blitz_event_wait(&j.begun, BLITZ_FOREVER), 0);
    blitz_event_set(&j.gate);
    for (int i = 0; i < MANY; i++) {
        CHECK_EQ(blitz_task_join(t[i], &result, BLITZ_FOREVER), 0);
        CHECK_EQ(result, 7);
    }
    blitz_offload_unref(o);
    return 0;
}

TEST(offload, all_waiters_get_the_result)
{
    t_on_each(a_crowd_waits, NULL, 0);
}

static int waits_till_cancelled(void *o)
{
    return blitz_offload_wait(o, NULL, BLITZ_FOREVER);
}

static int is_cancelled(void *arg)
{
    struct job j;
    blitz_offload *o;
    blitz_task *t;
    int result = 0;
    (void)arg;
    job_init(&j, 7);
    CHECK_EQ(blitz_offload_start(job_run, &j, NULL, &o), 0);
    CHECK_EQ(blitz_spawn(waits_till_cancelled, o, NULL, &t), 0);
    CHECK_EQ(blitz_event_wait(&j.begun, BLITZ_FOREVER), 0);
    blitz_task_cancel(t);
    CHECK_EQ(blitz_task_join(t, &result, BLITZ_FOREVER), 0);
    CHECK_EQ(result, -ECANCELED);
    blitz_event_set(&j.gate);
    CHECK_EQ(blitz_offload_wait(o, &result, BLITZ_FOREVER), 0); /* the call is as it was */
    CHECK_EQ(result, 7);
    blitz_offload_unref(o);
    return 0;
}

TEST(offload, a_cancelled_waiter_leaves_the_call_as_it_is)
{
    t_on_each(is_cancelled, NULL, 0);
}

/* ---- as a future ---- */

TEST(offload, a_future_that_is_cancelled_does_not_take_the_argument)
{
    blitz_runtime *rt = runtime(0);
    for (int round = 0; round < 3; round++) {
        struct t_bell bell = {.holders = 1};
        blitz_waker w = t_bell_waker(&bell);
        blitz_offload_future f;
        struct job j;
        job_init(&j, 9);
        blitz_offload *o = start(rt, &j, NULL);
        CHECK_EQ(blitz_event_wait(&j.begun, BLITZ_FOREVER), 0);
        blitz_offload_wait_future_init(&f, o);
        if (round == 0) { /* before the end */
            CHECK_EQ(f.future.ops->poll(&f.future, &w), BLITZ_PENDING);
            CHECK_EQ(f.future.ops->poll(&f.future, &w), BLITZ_PENDING);
            f.future.ops->cancel(&f.future);
            CHECK_EQ(bell.holders, 1);
        }
        blitz_event_set(&j.gate);
        while (!blitz_offload_is_done(o))
            blitz_yield();
        if (round == 1) /* after the end: nothing to wait for */
            CHECK_EQ(f.future.ops->poll(&f.future, &w), BLITZ_READY);
        f.future.ops->cancel(&f.future);
        CHECK_EQ(f.result, round == 1 ? 0 : -ECANCELED);
        CHECK_EQ(f.value, round == 1 ? 9 : 0);
        CHECK_EQ(f.future.ops->output(&f.future), round == 1 ? 9 : -ECANCELED);
        blitz_offload_unref(o);
        CHECK_EQ(drops_of(&j), round != 1);
        CHECK_EQ(bell.rung, 0);
    }
    end(rt);
}

/* ---- errors, and the end of the runtime ---- */

TEST(offload, a_start_that_fails_calls_nothing)
{
    blitz_offload *o = NULL;
    blitz_runtime *rt;
    struct job j;
    job_init(&j, 0);
    blitz_event_set(&j.gate);
    CHECK_EQ(blitz_offload_start(job_run, &j, NULL, &o),
             -EINVAL); /* a plain thread has no runtime */
    rt = runtime(0);
    CHECK_EQ(blitz_offload_start(NULL, &j, &(blitz_offload_opts){.runtime = rt}, &o), -EINVAL);
    CHECK_EQ(blitz_offload_start(job_run, &j, &(blitz_offload_opts){.runtime = rt}, NULL), -EINVAL);
    CHECK_EQ(blitz_runtime_shutdown(rt, BLITZ_FOREVER), 0);
    CHECK_EQ(blitz_offload_start(job_run, &j, &(blitz_offload_opts){.runtime = rt}, &o),
             -ESHUTDOWN);
    CHECK_EQ(blitz_runtime_unref(rt), 0);
    CHECK_NULL(o);
    CHECK_EQ(calls_of(&j), 0);
}

/* The call outlives its runtime, and the handle does as well. */
TEST(offload, an_abandoned_call_can_still_be_waited_for)
{
    for (int is_waited = 0; is_waited < 2; is_waited++) {
        blitz_runtime *rt = runtime(0);
        blitz_event dropped = BLITZ_EVENT_INIT;
        struct job j;
        int result = 0;
        job_init(&j, 5);
        blitz_offload *o = start(rt, &j, &dropped);
        CHECK_EQ(blitz_event_wait(&j.begun, BLITZ_FOREVER), 0);
        CHECK_EQ(blitz_runtime_shutdown(rt, blitz_after(BLITZ_MS)), -ETIMEDOUT);
        CHECK_EQ(blitz_runtime_abandon(rt, BLITZ_FOREVER), 0);
        CHECK_EQ(blitz_runtime_unref(rt), 0);
        CHECK(!blitz_offload_is_done(o));
        if (!is_waited)
            blitz_offload_unref(o);
        blitz_event_set(&j.gate);
        if (is_waited) {
            CHECK_EQ(blitz_offload_wait(o, &result, BLITZ_FOREVER), 0);
            CHECK_EQ(result, 5);
            blitz_offload_unref(o);
        } else {
            CHECK_EQ(blitz_event_wait(&dropped, BLITZ_FOREVER), 0);
        }
    }
    t_may_leave(T_THREADS); /* the abandoned thread may not have ended yet */
}

/* No thread is left that would make the calls in the queue, and the shutdown does not wait for the one that runs. */
TEST(offload, an_abandoned_runtime_cancels_calls_that_have_not_begun)
{
    for (int is_waited = 0; is_waited < 2; is_waited++) {
        struct job first, j[3];
        blitz_offload *keeper, *o[3];
        int result = 0;
        blitz_runtime *rt = busy_runtime(&first, &keeper);
        for (int i = 0; i < 3; i++) {
            job_init(&j[i], i);
            o[i] = start(rt, &j[i], NULL);
        }
        blitz_offload_unref(o[1]);
        CHECK_EQ(blitz_runtime_shutdown(rt, blitz_after(BLITZ_MS)), -ETIMEDOUT);
        CHECK_EQ(blitz_runtime_abandon(rt, BLITZ_FOREVER), 0);
        CHECK_EQ(blitz_runtime_unref(rt), 0);
        for (int i = 0; i < 3; i += 2) {
            CHECK_EQ(blitz_offload_cancel(o[i]), -EALREADY);
            if (is_waited) {
                CHECK_EQ(blitz_offload_wait(o[i], &result, BLITZ_FOREVER), 0);
                CHECK_EQ(result, -ECANCELED);
            }
            blitz_offload_unref(o[i]);
        }
        for (int i = 0; i < 3; i++) {
            CHECK_EQ(calls_of(&j[i]), 0);
            CHECK_EQ(drops_of(&j[i]), i == 1 || !is_waited);
        }
        blitz_offload_unref(keeper);
        blitz_event_set(&first.gate);
        while (drops_of(&first) == 0)
            blitz_yield();
    }
    t_may_leave(T_THREADS); /* the abandoned thread may not have ended yet */
}
