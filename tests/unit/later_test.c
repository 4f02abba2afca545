/* Functions that are called at a time or at a cancel: once, or not at all and then the argument is accounted for. */
#include "harness.h"

#include <errno.h>

#include "base/bz_atomic.h"
#include "blitz.h"
#include "support/bell.h"
#include "support/on_each.h"

struct job {
    bz_atomic(int) calls, drops;
    blitz_event begun, gate;
    blitz_instant called_at;
};

static void job_init(struct job *j, bool is_open)
{
    *j = (struct job){.called_at = 0};
    blitz_event_init(&j->begun);
    blitz_event_init(&j->gate);
    if (is_open)
        blitz_event_set(&j->gate);
}

static void job_run(void *arg)
{
    struct job *j = arg;
    bz_fetch_add_seqcst(&j->calls, 1); /* seq_cst: a count of the test, as all of these */
    j->called_at = blitz_now();
    blitz_event_set(&j->begun);
    CHECK_NOT_NULL(blitz_task_current()); /* it may wait, as any task */
    (void)!blitz_event_wait(&j->gate, BLITZ_FOREVER);
}

static void job_drop(void *arg, void *ctx)
{
    CHECK_EQ(arg, ctx);
    bz_fetch_add_seqcst(&((struct job *)arg)->drops, 1); /* seq_cst: likewise */
}

static int calls_of(struct job *j)
{
    return bz_load_seqcst(&j->calls); /* seq_cst: likewise */
}

static int drops_of(struct job *j)
{
    return bz_load_seqcst(&j->drops); /* seq_cst: likewise */
}

/* ---- at a time ---- */

static int at_times(void *arg)
{
    struct job now, soon;
    blitz_later *a, *b;
    (void)arg;
    job_init(&now, true);
    job_init(&soon, true);
    blitz_instant when = blitz_after(5 * BLITZ_MS);
    CHECK_EQ(blitz_later_at(when, job_run, &soon, NULL, &a), 0);
    CHECK_EQ(blitz_later_at(0, job_run, &now, NULL, &b), 0);
    CHECK_EQ(blitz_later_wait(b, BLITZ_FOREVER), 0);
    CHECK(blitz_later_was_called(b));
    CHECK_EQ(blitz_later_cancel(b), -EBUSY);
    CHECK_EQ(blitz_later_wait(a, BLITZ_FOREVER), 0);
    CHECK_GE(soon.called_at, when);
    CHECK_EQ(calls_of(&now), 1);
    CHECK_EQ(calls_of(&soon), 1);
    blitz_later_unref(a);
    blitz_later_unref(b);
    blitz_later_unref(NULL);
    return 0;
}

TEST(later, a_function_is_called_at_its_time_and_not_before)
{
    t_on_each(at_times, NULL, 0);
}

/* Without a handle the end of a call is not seen, only its begin. So the jobs outlive the runtime that makes the calls. */
static int without_a_handle(void *arg)
{
    struct job *j = arg;
    blitz_later *l;
    job_init(&j[0], true);
    job_init(&j[1], true);
    CHECK_EQ(blitz_later_at(blitz_after(BLITZ_MS), job_run, &j[0], NULL, NULL), 0);
    CHECK_EQ(blitz_event_wait(&j[0].begun, BLITZ_FOREVER), 0);
    CHECK_EQ(blitz_later_at(blitz_after(BLITZ_MS), job_run, &j[1], NULL, &l), 0);
    blitz_later_unref(l); /* the call is made all the same */
    CHECK_EQ(blitz_event_wait(&j[1].begun, BLITZ_FOREVER), 0);
    return 0;
}

TEST(later, a_function_without_a_handle_is_called)
{
    struct job j[2];
    t_on_each(without_a_handle, j, 0);
}

/* ---- at a cancel ---- */

static int at_a_cancel(void *arg)
{
    blitz_token *parent, *token;
    struct job j, late;
    blitz_later *l, *m;
    (void)arg;
    job_init(&j, true);
    job_init(&late, true);
    CHECK_EQ(blitz_token_new(NULL, &parent), 0);
    CHECK_EQ(blitz_token_new(parent, &token), 0);
    CHECK_EQ(blitz_later_on_cancel(token, job_run, &j, NULL, &l), 0);
    CHECK_EQ(blitz_later_wait(l, blitz_after(BLITZ_MS)), -ETIMEDOUT);
    CHECK_EQ(calls_of(&j), 0);
    blitz_token_cancel(parent);
    CHECK_EQ(blitz_later_wait(l, BLITZ_FOREVER), 0);
    CHECK_EQ(calls_of(&j), 1);
    CHECK_EQ(blitz_later_on_cancel(token, job_run, &late, NULL, &m), 0); /* it is cancelled */
    blitz_token_unref(token);                                            /* the call shares it */
    blitz_token_unref(parent);
    CHECK_EQ(blitz_later_wait(m, BLITZ_FOREVER), 0);
    CHECK_EQ(calls_of(&late), 1);
    blitz_later_unref(l);
    blitz_later_unref(m);
    return 0;
}

TEST(later, a_function_is_called_when_its_token_is_cancelled)
{
    t_on_each(at_a_cancel, NULL, 0);
}

/* ---- cancelled ---- */

static int is_cancelled(void *arg)
{
    const blitz_later_opts opts = {.name = "idle", .drop = job_drop, .ctx = arg};
    struct job *j = arg;
    blitz_token *token;
    blitz_later *l;
    CHECK_EQ(blitz_token_new(NULL, &token), 0);
    for (int i = 0; i < 2; i++) {
        job_init(j, true);
        CHECK_EQ(i == 0 ? blitz_later_at(BLITZ_FOREVER, job_run, j, &opts, &l)
                        : blitz_later_on_cancel(token, job_run, j, &opts, &l),
                 0);
        CHECK_EQ(blitz_later_cancel(l), 0);
        CHECK_EQ(blitz_later_cancel(l), -EALREADY);
        CHECK_EQ(blitz_later_wait(l, 0), 0); /* it will not be called any more */
        CHECK(!blitz_later_was_called(l));
        blitz_later_unref(l);
        CHECK_EQ(calls_of(j), 0);
        CHECK_EQ(drops_of(j), 0); /* the cancel gave it back */
    }
    blitz_token_cancel(token);
    blitz_token_unref(token);
    return 0;
}

TEST(later, a_cancelled_function_is_not_called_and_its_argument_comes_back)
{
    struct job j;
    t_on_each(is_cancelled, &j, 0);
    CHECK_EQ(calls_of(&j), 0);
}

static int cancels_too_late(void *arg)
{
    struct job j;
    blitz_later *l;
    (void)arg;
    job_init(&j, false);
    CHECK_EQ(blitz_later_at(0, job_run, &j, NULL, &l), 0);
    CHECK_EQ(blitz_event_wait(&j.begun, BLITZ_FOREVER), 0);
    CHECK_EQ(blitz_later_cancel(l), -EBUSY); /* it runs */
    CHECK(!blitz_later_was_called(l));
    CHECK_EQ(blitz_later_wait(l, 0), -ETIMEDOUT);
    blitz_event_set(&j.gate);
    CHECK_EQ(blitz_later_wait(l, BLITZ_FOREVER), 0);
    CHECK(blitz_later_was_called(l));
    blitz_later_unref(l);
    return 0;
}

TEST(later, a_function_that_runs_is_waited_for)
{
    t_on_each(cancels_too_late, NULL, 0);
}

/* Two threads: one cancels, the other starts the clock. Called or given back, never both. */
struct race {
    blitz_token *token;
    blitz_later *l;
    struct job j;
    int rc;
};

static void races(void *arg, int index)
{
    struct race *r = arg;
    if (index == 0)
        blitz_token_cancel(r->token);
    else
        r->rc = blitz_later_cancel(r->l);
}

TEST(later, of_a_call_and_its_cancel_one_happens)
{
    blitz_runtime *rt;
    int called = 0;
    CHECK_EQ(blitz_runtime_new(&(blitz_runtime_opts){.procs = 2}, &rt), 0);
    for (uint64_t i = t_scaled(500); i > 0; i--) {
        struct race r = {.rc = 1};
        job_init(&r.j, true);
        CHECK_EQ(blitz_token_new(NULL, &r.token), 0);
        CHECK_EQ(
            blitz_later_on_cancel(r.token, job_run, &r.j, &(blitz_later_opts){.runtime = rt}, &r.l),
            0);
        t_threads(2, races, &r);
        CHECK_EQ(blitz_later_wait(r.l, BLITZ_FOREVER), 0);
        CHECK(r.rc == 0 || r.rc == -EBUSY);
        CHECK_EQ(calls_of(&r.j), r.rc != 0);
        called += r.rc != 0;
        blitz_later_unref(r.l);
        blitz_token_unref(r.token);
    }
    t_note("%d called", called);
    CHECK_EQ(blitz_runtime_shutdown(rt, BLITZ_FOREVER), 0);
    CHECK_EQ(blitz_runtime_unref(rt), 0);
}

/* ---- the end of the runtime, and errors ---- */

TEST(later, a_runtime_that_ends_first_drops_the_argument)
{
    for (int has_handle = 0; has_handle < 2; has_handle++) {
        blitz_runtime *rt;
        blitz_later *l = NULL;
        struct job j;
        job_init(&j, true);
        CHECK_EQ(blitz_runtime_new(&(blitz_runtime_opts){.procs = 2}, &rt), 0);
        blitz_later_opts opts = {.runtime = rt, .drop = job_drop, .ctx = &j};
        CHECK_EQ(blitz_later_at(BLITZ_FOREVER, job_run, &j, &opts, has_handle ? &l : NULL), 0);
        CHECK_EQ(blitz_runtime_shutdown(rt, BLITZ_FOREVER), 0);
        CHECK_EQ(drops_of(&j), 1);
        CHECK_EQ(calls_of(&j), 0);
        CHECK_EQ(blitz_later_at(0, job_run, &j, &opts, NULL), -ESHUTDOWN);
        CHECK_EQ(blitz_runtime_unref(rt), 0);
        if (!has_handle)
            continue;
        CHECK_EQ(blitz_later_cancel(l), -EALREADY); /* the handle outlives the runtime */
        CHECK_EQ(blitz_later_wait(l, 0), 0);
        CHECK(!blitz_later_was_called(l));
        blitz_later_unref(l);
    }
}

static int refuses(void *arg)
{
    struct job j;
    blitz_later *l = NULL;
    blitz_later_opts opts = {.drop = job_drop, .ctx = &j};
    (void)arg;
    job_init(&j, true);
    CHECK_EQ(blitz_later_at(0, NULL, &j, &opts, &l), -EINVAL);
    CHECK_EQ(blitz_later_on_cancel(NULL, job_run, &j, &opts, &l), -EINVAL);
    CHECK_EQ(blitz_later_at(0, job_run, &j, &opts, &l), -EAGAIN); /* tasks_max */
    CHECK_NULL(l);
    CHECK_EQ(calls_of(&j) + drops_of(&j), 0);
    return 0;
}

TEST(later, a_call_that_cannot_be_kept_is_refused)
{
    struct job j;
    job_init(&j, true);
    CHECK_EQ(blitz_later_at(0, job_run, &j, NULL, NULL),
             -EINVAL); /* a plain thread has no runtime */
    CHECK_EQ(blitz_run(refuses, NULL, &(blitz_runtime_opts){.procs = 1, .tasks_max = 1}), 0);
}

/* ---- as a future ---- */

static int awaits(void *arg)
{
    struct t_bell bell = {.holders = 1};
    blitz_waker w = t_bell_waker(&bell);
    blitz_closed_future f, g;
    blitz_later *l;
    struct job j;
    (void)arg;
    job_init(&j, true);
    CHECK_EQ(blitz_later_at(BLITZ_FOREVER, job_run, &j, NULL, &l), 0);
    blitz_later_wait_future_init(&f, l);
    blitz_later_wait_future_init(&g, l);
    CHECK_EQ(f.future.ops->poll(&f.future, &w), BLITZ_PENDING);
    CHECK_EQ(g.future.ops->poll(&g.future, &w), BLITZ_PENDING);
    g.future.ops->cancel(&g.future);
    CHECK_EQ(g.result, -ECANCELED);
    CHECK_EQ(blitz_later_cancel(l), 0);
    CHECK_EQ(bell.rung, 1);
    CHECK_EQ(bell.holders, 1);
    CHECK_EQ(blitz_await(&f.future, BLITZ_FOREVER), 0);
    CHECK_EQ(f.result, 0);
    blitz_later_unref(l);
    return 0;
}

TEST(later, a_future_is_ready_when_no_call_will_come)
{
    t_on_each(awaits, NULL, 0);
}
