/* The parts of blitz/fork.h besides fork and join: values, invoke, reported misuse. */
#include "support/alone.h"
#include "support/on_each.h"

#include <stdint.h>
#include <stdlib.h>

#include "base/bz_atomic.h"
#include "blitz.h"
#include "proc/state.h"
#include "support/death.h"
#include "support/event.h"

/* ---- values ---- */

static long fib(long n);
BLITZ_FORK_DEFINE(fib, long, long)

static long fib(long n)
{
    struct fib_job job;
    if (n < 2)
        return n;
    fib_fork(&job, n - 2);
    long left = fib(n - 1);
    return left + fib_join(&job);
}

struct pair {
    double a;
    int64_t b;
};

static struct pair twice(struct pair p);
BLITZ_FORK_DEFINE(twice, struct pair, struct pair)

static struct pair twice(struct pair p)
{
    blitz_yield(); /* so that it is a worker's, sometimes */
    return (struct pair){2 * p.a, 2 * p.b};
}

typedef const char *words[2];
static size_t six(char a, short b, int c, long long d, float e, words *f);
BLITZ_FORK_DEFINE(six, size_t, char, short, int, long long, float, words *)

static size_t six(char a, short b, int c, long long d, float e, words *f)
{
    return (size_t)(a + b + c + d) + (size_t)e + strlen((*f)[1]);
}

static int by_value(void *arg)
{
    enum { N = 50 };
    struct twice_job job[N];
    struct six_job mixed;
    words w = {"one", "three"};
    (void)arg;
    CHECK_EQ(fib(15), 610);
    six_fork(&mixed, 1, 2, 3, 4, 5.5f, &w);
    for (int i = 0; i < N; i++) {
        struct pair p = {i, -i};
        twice_fork(&job[i], p);
        p.b = 1000; /* it was copied */
        if (i == 20)
            blitz_yield();
    }
    for (int i = N - 1; i >= 0; i--) {
        struct pair p = twice_join(&job[i]);
        CHECK(p.a == 2.0 * i && p.b == -2 * i);
    }
    CHECK_EQ(six_join(&mixed), 1u + 2 + 3 + 4 + 5 + 5);
    return 0;
}

TEST(fork, arguments_and_results_go_by_value)
{
    t_on_each(by_value, NULL, 0);
    CHECK_EQ(by_value(NULL), 0); /* on a plain thread, too */
}

/* ---- invoke ---- */

typedef bz_atomic(unsigned) bits;

struct part {
    bits *all;
    unsigned bit;
    int result;
};

static int do_part(void *arg)
{
    struct part *p = arg;
    CHECK(!(bz_fetch_add_relaxed(p->all, 1u << p->bit) >> p->bit & 1));
    if (p->bit % 3 == 2)
        blitz_yield();
    return p->result;
}

static int invoke_all(void *arg)
{
    (void)arg;
    for (unsigned count = 0; count <= BLITZ_INVOKE_MAX; count++)
        for (unsigned bad = 0; bad <= count; bad++) {
            bits all = 0;
            struct part part[BLITZ_INVOKE_MAX];
            blitz_call call[BLITZ_INVOKE_MAX];
            for (unsigned i = 0; i < count; i++) {
                part[i] = (struct part){&all, i, i >= bad ? -(int)i - 1 : 0};
                call[i] = (blitz_call){do_part, &part[i]};
            }
            CHECK_EQ(blitz_invoke(call, count), bad < count ? -(int)bad - 1 : 0);
            CHECK_EQ(bz_load_relaxed(&all), (1u << count) - 1);
        }
    return 0;
}

TEST(fork, invoke_makes_every_call_once_and_tells_the_first_failure)
{
    t_on_each(invoke_all, NULL, 0);
    CHECK_EQ(invoke_all(NULL), 0); /* by the process's runtime */
    CHECK_EQ(blitz_par_end(), 0);
}

static int seven(void *arg)
{
    *(int *)arg += 7;
    return 0;
}

TEST(fork, invoke_takes_a_list_of_calls)
{
    int a = 0, b = 1, c = 2;
    CHECK_EQ(BLITZ_INVOKE({seven, &a}, {seven, &b}), 0);
    CHECK_EQ(BLITZ_INVOKE({seven, &a}, {seven, &b}, {seven, &c}), 0);
    CHECK_EQ(a * 10000 + b * 100 + c, 141509);
    CHECK_EQ(blitz_par_end(), 0);
}

TEST(fork, invoke_refuses_bad_arguments)
{
    int a = 0;
    blitz_call call[BLITZ_INVOKE_MAX + 1];
    for (int i = 0; i <= BLITZ_INVOKE_MAX; i++)
        call[i] = (blitz_call){seven, &a};
    CHECK_EQ(blitz_invoke(call, BLITZ_INVOKE_MAX + 1), -EINVAL);
    call[3].fn = NULL;
    CHECK_EQ(blitz_invoke(call, 5), -EINVAL);
    CHECK_EQ(a, 0);
}

static int cancels_itself(void *arg)
{
    (void)arg;
    blitz_task_cancel(blitz_task_current());
    return 0;
}

static int invoke_and_cancel(void *arg)
{
    int a = 0;
    (void)arg;
    /* With one worker the second one has not begun when the first returns. */
    int err = BLITZ_INVOKE({cancels_itself, NULL}, {seven, &a});
    CHECK(err == (a == 0 ? -ECANCELED : 0));
    return 0;
}

TEST(fork, invoke_begins_nothing_in_a_task_that_was_cancelled)
{
    t_on_each(invoke_and_cancel, NULL, 0);
}

/* ---- in a poll ---- */

struct forker {
    int step;
    blitz_job job;
    int value;
};

static int slow_double(void *arg)
{
    blitz_yield();
    return 2 * *(int *)arg;
}

/* Forks in one poll, joins in the next. */
static blitz_poll forks_then_joins(void *state, blitz_cx *cx)
{
    struct forker *f = state;
    if (f->step++ == 0) {
        blitz_job inner;
        blitz_fork(&f->job, slow_double, &f->value);
        blitz_fork(&inner, slow_double, &f->value);
        CHECK_EQ(blitz_join(&inner), 2 * f->value); /* waits in the poll, on its current stack */
        blitz_waker_wake_by_ref(cx->waker);
        return BLITZ_PENDING;
    }
    cx->result = blitz_join(&f->job);
    return BLITZ_READY;
}

static int polls_that_fork(void *arg)
{
    enum { N = 100 };
    blitz_task *t[N];
    (void)arg;
    for (int i = 0; i < N; i++) {
        struct forker f = {.value = i};
        CHECK_EQ(blitz_spawn_poll(forks_then_joins, &f, sizeof f, NULL, &t[i]), 0);
    }
    for (int i = N - 1; i >= 0; i--) {
        int result = -1;
        CHECK_EQ(blitz_task_join(t[i], &result, BLITZ_FOREVER), 0);
        CHECK_EQ(result, 2 * i);
    }
    return 0;
}

TEST(fork, a_poll_may_fork_and_join_also_in_a_later_poll)
{
    t_on_each(polls_that_fork, NULL, 0);
}

/* ---- misuse ---- */

static int returns(void *arg)
{
    (void)arg;
    return 0;
}

static void on_one(int (*fn)(void *))
{
    t_run_alone(fn, NULL);
}

static int joins_twice(void *arg)
{
    blitz_job job;
    (void)arg;
    blitz_fork(&job, returns, NULL);
    blitz_join(&job);
    return blitz_join(&job);
}

static int joins_twice_beneath(void *arg)
{
    blitz_job outer, job;
    memset(&job, 0, sizeof job);
    (void)arg;
    blitz_fork(&outer, returns, NULL);
    blitz_fork(&job, returns, NULL);
    blitz_join(&job);
    blitz_join(&job);
    return blitz_join(&outer);
}

static int joins_twice_after_a_wait(void *arg)
{
    blitz_job job;
    (void)arg;
    blitz_fork(&job, returns, NULL);
    CHECK_EQ(blitz_sleep(BLITZ_US), 0);
    blitz_join(&job);
    return blitz_join(&job);
}

static int joins_what_nobody_forked(void *arg)
{
    blitz_job job;
    memset(&job, 0, sizeof job);
    (void)arg;
    return blitz_join(&job);
}

TEST(fork, a_second_join_is_named)
{
    DIES("which it has joined before, or not forked", on_one(joins_twice));
    DIES("which it has joined before, or not forked", on_one(joins_twice_beneath));
    DIES("which it has joined before, or not forked", on_one(joins_twice_after_a_wait));
    DIES("which it has joined before, or not forked", on_one(joins_what_nobody_forked));
}

static int joins_it(void *job)
{
    return blitz_join(job);
}

#if !defined(BZ_PLAIN) /* there is no child on top of its joiner */
static int has_a_child_join(void *arg)
{
    blitz_job older, job;
    blitz_task *t;
    (void)arg;
    blitz_fork(&older, returns, NULL);
    blitz_fork(&job, returns, NULL);
    (void)!blitz_spawn(joins_it, &job, NULL, &t);
    blitz_task_join(t, NULL, BLITZ_FOREVER); /* runs it on top of us */
    return 0;
}
#endif

static int has_another_join(void *arg)
{
    blitz_job job;
    blitz_task *t;
    (void)arg;
    blitz_fork(&job, returns, NULL);
    (void)!blitz_spawn(joins_it, &job, NULL, &t);
    blitz_task_join(t, NULL, blitz_after(BLITZ_S)); /* waits, so the job has left the deque */
    return 0;
}

TEST(fork, a_join_in_another_task_is_named)
{
    DIES("which another has forked", on_one(has_another_join));
#if !defined(BZ_PLAIN)
    DIES("which the task that joins it has forked", on_one(has_a_child_join));
#endif
}

#if defined(BZ_WATCH)

static int forgets_one(void *arg)
{
    static blitz_job job[3];
    for (int i = 0; i < 3; i++)
        blitz_fork(&job[i], returns, NULL);
    for (int i = 2; i > (arg != NULL ? 1 : 0); i--)
        blitz_join(&job[i]);
    return 0;
}

static int lets_go(void *event)
{
    t_event_set(event);
    return 0;
}

static int forgets_one_that_left(void *arg)
{
    static blitz_job job;
    struct t_event e;
    (void)arg;
    t_event_init(&e, &bz_os_system);
    blitz_fork(&job, returns, NULL);
    CHECK_EQ(blitz_spawn(lets_go, &e, NULL, NULL), 0);
    t_event_await(&e); /* it leaves with the frame */
    return 0;
}

static int has_a_child_forget(void *arg)
{
    blitz_job job;
    blitz_task *t;
    (void)arg;
    blitz_fork(&job, returns, NULL);
    (void)!blitz_spawn(forgets_one, &job, &(blitz_spawn_opts){.name = "forgetful"}, &t);
    blitz_task_join(t, NULL, BLITZ_FOREVER);
    return blitz_join(&job);
}

TEST(fork, a_task_that_ends_with_a_job_unjoined_is_named)
{
    DIES("ends, and has forked a job of function", on_one(forgets_one));
    DIES("has not joined 1 jobs that others have taken", on_one(forgets_one_that_left));
    DIES("(forgetful) ends, and has forked a job of function", on_one(has_a_child_forget));
}

#endif

/* ---- counters ---- */

static int joins_forward(void *arg)
{
    blitz_job job[4];
    blitz_stats before, after;
    (void)arg;
    CHECK_EQ(blitz_stats_read(NULL, &before), 0);
    for (int i = 0; i < 4; i++)
        blitz_fork(&job[i], returns, NULL);
    for (int i = 0; i < 4; i++)
        CHECK_EQ(blitz_join(&job[i]), 0);
    CHECK_EQ(blitz_stats_read(NULL, &after), 0);
    CHECK_EQ(after.joins_out_of_order - before.joins_out_of_order, 3u);
    CHECK_GT(after.forks_shared, before.forks_shared);
    return 0;
}

TEST(fork, joins_out_of_order_work_and_are_counted)
{
    CHECK_EQ(t_run_alone(joins_forward, NULL), 0);
}
