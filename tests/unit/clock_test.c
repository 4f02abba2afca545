/* The virtual clock of a runtime: what runs on it, and how it is moved. clock_hold_test.c has what keeps it still. */
#include "harness.h"

#include <errno.h>
#include <time.h>

#include "base/bz_atomic.h"
#include "base/compiler.h"
#include "blitz.h"
#include "support/bell.h"

enum { HOUR_S = 3600 };
#define HOUR (HOUR_S * BLITZ_S)

/* Run fn in runtimes with such a clock and 1, 2, 3 and 8 procs. */
static void on_clocks(blitz_clock_mode mode, int (*fn)(void *), void *arg)
{
    static const unsigned procs[] = {1, 2, 3, 8};
    for (size_t i = 0; i < BZ_ARRAY_LEN(procs); i++) {
        t_watch("%u procs", procs[i]);
        CHECK_EQ(blitz_run(fn, arg, &(blitz_runtime_opts){.procs = procs[i], .clock = mode}), 0);
    }
}

static blitz_runtime *runtime_with(blitz_clock_mode mode, unsigned procs)
{
    blitz_runtime *rt;
    CHECK_EQ(blitz_runtime_new(&(blitz_runtime_opts){.procs = procs, .clock = mode}, &rt), 0);
    return rt;
}

static void runtime_end(blitz_runtime *rt)
{
    CHECK_EQ(blitz_runtime_shutdown(rt, BLITZ_FOREVER), 0);
    CHECK_EQ(blitz_runtime_unref(rt), 0);
}

/* Let real time pass, for a bug that would move the clock, and see that it stands. Any thread. */
static void stands(blitz_runtime *rt, blitz_instant at)
{
    struct timespec begin, now;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    do {
        CHECK_EQ(blitz_clock_now(rt), at);
        clock_gettime(CLOCK_MONOTONIC, &now);
    } while ((now.tv_sec - begin.tv_sec) * 1000000000 + now.tv_nsec - begin.tv_nsec < 5000000);
}

/* ---- misuse ---- */

static int has_no_clock(void *arg)
{
    blitz_sync_future f;
    struct t_bell bell = {0};
    blitz_waker w = t_bell_waker(&bell);
    (void)arg;
    CHECK_EQ(blitz_clock_pause(NULL, BLITZ_CLOCK_AUTO), -EOPNOTSUPP);
    CHECK_EQ(blitz_clock_resume(NULL), -EOPNOTSUPP);
    CHECK_EQ(blitz_clock_advance(NULL, 1, BLITZ_FOREVER), -EOPNOTSUPP);
    blitz_clock_advance_future_init(&f, NULL, 1);
    CHECK_EQ(f.future.ops->poll(&f.future, &w), BLITZ_READY);
    CHECK_EQ(blitz_future_output(&f.future), -EOPNOTSUPP);
    CHECK(!blitz_clock_is_paused(NULL));
    return 0;
}

TEST(clock, a_runtime_with_the_systems_clock_refuses)
{
    on_clocks(BLITZ_CLOCK_SYSTEM, has_no_clock, NULL);
}

static int misuses(void *arg)
{
    (void)arg;
    CHECK(!blitz_clock_is_paused(NULL));
    CHECK_EQ(blitz_clock_resume(NULL), -EINVAL);
    CHECK_EQ(blitz_clock_advance(NULL, 1, BLITZ_FOREVER), -EINVAL);
    CHECK_EQ(blitz_clock_pause(NULL, BLITZ_CLOCK_SYSTEM), -EINVAL);
    CHECK_EQ(blitz_clock_pause(NULL, BLITZ_CLOCK_RUNS), -EINVAL);
    CHECK_EQ(blitz_clock_pause(NULL, (blitz_clock_mode)4), -EINVAL);
    CHECK_EQ(blitz_clock_pause(NULL, BLITZ_CLOCK_MANUAL), 0);
    CHECK(blitz_clock_is_paused(NULL));
    CHECK_EQ(blitz_clock_pause(NULL, BLITZ_CLOCK_MANUAL), -EBUSY);
    CHECK_EQ(blitz_clock_pause(NULL, BLITZ_CLOCK_AUTO), -EBUSY);
    blitz_instant at = blitz_now();
    CHECK_EQ(blitz_clock_advance(NULL, BLITZ_FOREVER, BLITZ_FOREVER), -EINVAL);
    CHECK_EQ(blitz_clock_advance(NULL, UINT64_C(1) << 62, BLITZ_FOREVER), -EINVAL);
    CHECK_EQ(blitz_now(), at);
    CHECK_EQ(blitz_clock_resume(NULL), 0);
    CHECK_EQ(blitz_clock_resume(NULL), -EINVAL);
    return 0;
}

TEST(clock, wrong_calls_are_refused_and_change_nothing)
{
    on_clocks(BLITZ_CLOCK_RUNS, misuses, NULL);
    CHECK_EQ(blitz_clock_pause(NULL, BLITZ_CLOCK_AUTO), -EINVAL); /* a plain thread */
    CHECK_EQ(blitz_clock_resume(NULL), -EINVAL);
    CHECK_EQ(blitz_clock_advance(NULL, 1, BLITZ_FOREVER), -EINVAL);
    CHECK(!blitz_clock_is_paused(NULL));
    blitz_instant at = blitz_clock_now(NULL);
    CHECK_LE(at, blitz_now());
}

TEST(clock, an_unknown_mode_is_refused)
{
    blitz_runtime *rt;
    CHECK_EQ(blitz_runtime_new(&(blitz_runtime_opts){.clock = (blitz_clock_mode)4}, &rt), -EINVAL);
}

/* ---- it moves by itself ---- */

static int sleeps(void *arg)
{
    blitz_instant *until = arg;
    CHECK_EQ(blitz_sleep_until(*until), 0);
    CHECK_EQ(blitz_now(), *until);
    return 0;
}

static int sleeps_of_hours(void *arg)
{
    enum { MANY = 20 };
    blitz_instant until[MANY], begin = blitz_now();
    blitz_task *t[MANY];
    (void)arg;
    for (int i = 0; i < MANY; i++) {
        until[i] = begin + (unsigned)(i * 7 % MANY) * HOUR + (unsigned)i;
        CHECK_EQ(blitz_spawn(sleeps, &until[i], NULL, &t[i]), 0);
    }
    for (int i = 0; i < MANY; i++)
        CHECK_EQ(blitz_task_join(t[i], NULL, BLITZ_FOREVER), 0);
    CHECK_EQ(blitz_now(), begin + 19 * HOUR + 17);
    return 0;
}

TEST(clock, sleeps_end_at_their_exact_moments)
{
    on_clocks(BLITZ_CLOCK_AUTO, sleeps_of_hours, NULL);
}

/* Each call waits for a time of its own, and says how long it took. */
static blitz_duration took(blitz_instant *begin)
{
    blitz_duration ns = blitz_now() - *begin;
    *begin = blitz_now();
    return ns;
}

static int fails(void *arg)
{
    ++*(int *)arg;
    return -EAGAIN;
}

static void notes(void *arg)
{
    *(blitz_instant *)arg = blitz_now();
}

static int never_ends(void *arg)
{
    (void)arg;
    return blitz_sleep(BLITZ_FOREVER);
}

static void calls_that_wait(blitz_instant at)
{
    blitz_chan *c;
    blitz_mutex m = BLITZ_MUTEX_INIT;
    int value, which = 0;
    CHECK_EQ(blitz_chan_new(sizeof(int), 1, NULL, &c), 0);
    CHECK_EQ(blitz_chan_recv(c, &value, blitz_after(HOUR)), -ETIMEDOUT);
    CHECK_EQ(took(&at), HOUR);
    CHECK_EQ(blitz_mutex_lock(&m, BLITZ_FOREVER), 0);
    CHECK_EQ(blitz_mutex_lock(&m, blitz_after(50 * BLITZ_MS)), -ETIMEDOUT); /* near: BZ_FAR_NS */
    CHECK_EQ(took(&at), 50 * BLITZ_MS);
    blitz_mutex_unlock(&m);
    blitz_select(blitz_after(2 * HOUR))
    {
        blitz_on_recv(c, &value, NULL) which = 1;
        blitz_on_time(blitz_after(HOUR)) which = 2;
        blitz_on_timeout which = 3;
    }
    CHECK_EQ(which, 2);
    CHECK_EQ(took(&at), HOUR);
    blitz_chan_unref(c);
}

static void helpers_that_wait(blitz_instant at)
{
    blitz_rate rate;
    blitz_delay_queue *q;
    blitz_later *later;
    blitz_instant called = 0;
    int tries = 0, value = 5;
    CHECK_EQ(blitz_rate_init(&rate, 1, HOUR, 1), 0);
    CHECK_EQ(blitz_rate_acquire(&rate, 1, BLITZ_FOREVER), 0);
    CHECK_EQ(blitz_rate_acquire(&rate, 1, BLITZ_FOREVER), 0);
    CHECK_EQ(took(&at), HOUR);
    const blitz_backoff_opts slow = {
        .first = HOUR, .most = 8 * HOUR, .is_exact = true, .tries_max = 4};
    CHECK_EQ(blitz_retry(fails, &tries, &slow, BLITZ_FOREVER), -EAGAIN);
    CHECK_EQ(tries, 4);
    CHECK_EQ(took(&at), (1 + 2 + 4) * HOUR);
    CHECK_EQ(blitz_delay_queue_new(sizeof(int), &q), 0);
    CHECK_EQ(blitz_delay_queue_insert(q, &value, blitz_after(3 * HOUR), NULL), 0);
    CHECK_EQ(blitz_delay_queue_recv(q, &value, BLITZ_FOREVER), 0);
    CHECK_EQ(took(&at), 3 * HOUR);
    blitz_delay_queue_unref(q);
    CHECK_EQ(blitz_later_at(blitz_after(HOUR), notes, &called, NULL, &later), 0);
    CHECK_EQ(blitz_later_wait(later, BLITZ_FOREVER), 0);
    CHECK_EQ(called, at + HOUR);
    blitz_later_unref(later);
}

static void futures_that_wait(blitz_instant at)
{
    blitz_interval tick;
    blitz_timer timer;
    blitz_scope scope;
    blitz_sleep_future nap;
    blitz_timeout limit;
    CHECK_EQ(blitz_interval_init(&tick, at + HOUR, HOUR, BLITZ_SKIP), 0);
    for (int i = 0; i < 3; i++)
        CHECK_EQ(blitz_interval_tick(&tick, BLITZ_FOREVER), 0);
    CHECK_EQ(took(&at), 3 * HOUR);
    blitz_timer_init(&timer, blitz_after(9 * HOUR));
    blitz_timer_reset(&timer, blitz_after(2 * HOUR));
    CHECK_EQ(blitz_await(&timer.future, BLITZ_FOREVER), 0);
    CHECK_EQ(took(&at), 2 * HOUR);
    blitz_sleep_until_future_init(&nap, BLITZ_FOREVER);
    CHECK_EQ(blitz_timeout_init(&limit, &nap.future, blitz_after(HOUR)), 0);
    CHECK_EQ(blitz_await(&limit.future, BLITZ_FOREVER), 0);
    CHECK_EQ(blitz_future_output(&limit.future), -ETIMEDOUT);
    CHECK_EQ(took(&at), HOUR);
    CHECK_EQ(blitz_scope_open(&scope, NULL, blitz_after(HOUR)), 0);
    CHECK_EQ(blitz_scope_spawn(&scope, never_ends, NULL, NULL), 0);
    CHECK_EQ(blitz_scope_close(&scope), -ETIMEDOUT);
    CHECK_EQ(took(&at), HOUR);
}

static int all_kinds(void *arg)
{
    (void)arg;
    calls_that_wait(blitz_now());
    helpers_that_wait(blitz_now());
    futures_that_wait(blitz_now());
    CHECK_LE(blitz_now_roughly(), blitz_now());
    return 0;
}

TEST(clock, every_kind_of_wait_for_a_time_is_on_it)
{
    on_clocks(BLITZ_CLOCK_AUTO, all_kinds, NULL);
}

struct letters {
    blitz_instant at;
    blitz_oneshot *end;
};

BLITZ_HANDLER(gets_letter, struct letters *, char)
{
    struct letters *l = *state;
    (void)m;
    (void)data;
    l->at = blitz_now();
    (void)!blitz_oneshot_send(l->end, &(int){1});
    return 0;
}

static int sends_later(void *arg)
{
    static const blitz_handler handlers[] = {BLITZ_ON_EMPTY(1, gets_letter)};
    static const blitz_behaviour reader = {.name = "reader",
                                           .state_bytes = sizeof(struct letters *),
                                           .handlers = handlers,
                                           .handler_count = 1};
    struct letters l = {0}, *at = &l;
    blitz_actor_id id;
    int value;
    (void)arg;
    blitz_instant begin = blitz_now();
    CHECK_EQ(blitz_oneshot_new(sizeof(int), NULL, &l.end), 0);
    CHECK_EQ(blitz_actor_spawn(&reader, &at, NULL, &id), 0);
    CHECK_EQ(blitz_actor_send_after(id, 1, NULL, 0, blitz_after(5 * HOUR), NULL), 0);
    CHECK_EQ(blitz_oneshot_recv(l.end, &value, BLITZ_FOREVER), 0);
    CHECK_EQ(l.at, begin + 5 * HOUR);
    blitz_oneshot_receiver_drop(l.end);
    return 0;
}

TEST(clock, messages_to_actors_are_on_it)
{
    on_clocks(BLITZ_CLOCK_AUTO, sends_later, NULL);
}

/* ---- it is moved ---- */

struct wakes {
    bz_atomic(int) count;
    blitz_instant at[8];
};

struct sleeper {
    struct wakes *all;
    blitz_instant until;
};

static int notes_its_wake(void *arg)
{
    struct sleeper *s = arg;
    CHECK_EQ(blitz_sleep_until(s->until), 0);
    int n = bz_fetch_add_seqcst(&s->all->count, 1); /* seq_cst: a count of the test */
    s->all->at[n] = blitz_now();
    return 0;
}

static int woken(struct wakes *w)
{
    return bz_load_seqcst(&w->count); /* seq_cst: likewise */
}

/* Three tasks sleep for one, two and four hours. The caller is `rt`'s task, or a plain thread. */
static void moves(blitz_runtime *rt)
{
    struct wakes w = {.count = 0};
    blitz_instant at = blitz_clock_now(rt);
    struct sleeper s[] = {{&w, at + 4 * HOUR}, {&w, at + HOUR}, {&w, at + 2 * HOUR}};
    blitz_task *t[3];
    for (int i = 0; i < 3; i++)
        CHECK_EQ(blitz_spawn(notes_its_wake, &s[i], &(blitz_spawn_opts){.runtime = rt}, &t[i]), 0);
    CHECK_EQ(blitz_clock_advance(rt, 0, BLITZ_FOREVER), 0);
    CHECK_EQ(blitz_clock_advance(rt, HOUR - 1, BLITZ_FOREVER), 0);
    CHECK_EQ(woken(&w), 0);
    CHECK_EQ(blitz_clock_advance(rt, 1, BLITZ_FOREVER), 0);
    CHECK_EQ(woken(&w), 1);
    CHECK_EQ(blitz_clock_advance(rt, 9 * HOUR, BLITZ_FOREVER), 0);
    CHECK_EQ(blitz_clock_now(rt), at + 10 * HOUR);
    CHECK_EQ(woken(&w), 3);
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(w.at[i], at + (1u << i) * HOUR); /* it stopped at each of them */
        CHECK_EQ(blitz_task_join(t[i], NULL, BLITZ_FOREVER), 0);
    }
}

static int moves_in_task(void *rt)
{
    moves(rt);
    stands(rt, blitz_now());
    return 0;
}

TEST(clock, it_stops_at_each_timer_on_the_way)
{
    for (unsigned procs = 1; procs <= 8; procs = procs * 2 + 1) {
        blitz_runtime *rt = runtime_with(BLITZ_CLOCK_MANUAL, procs);
        t_watch("%u procs", procs);
        CHECK_EQ(blitz_runtime_block_on(rt, moves_in_task, rt), 0);
        moves(rt);
        runtime_end(rt);
    }
}

/* A task that a timer wakes may take many turns: all of them come before the caller goes on. */
static int takes_many_turns(void *arg)
{
    struct wakes *w = arg;
    CHECK_EQ(blitz_sleep(HOUR), 0);
    for (int i = 0; i < 1000; i++)
        blitz_yield();
    CHECK_EQ(blitz_sleep(0), 0);
    bz_fetch_add_seqcst(&w->count, 1); /* seq_cst: a count of the test */
    return 0;
}

static int outlasts_turns(void *arg)
{
    struct wakes w = {.count = 0};
    blitz_task *t[8];
    (void)arg;
    for (int i = 0; i < 8; i++)
        CHECK_EQ(blitz_spawn(takes_many_turns, &w, NULL, &t[i]), 0);
    CHECK_EQ(blitz_clock_advance(NULL, HOUR, BLITZ_FOREVER), 0);
    CHECK_EQ(woken(&w), 8);
    for (int i = 0; i < 8; i++)
        CHECK_EQ(blitz_task_join(t[i], NULL, BLITZ_FOREVER), 0);
    return 0;
}

TEST(clock, a_caller_goes_on_when_every_task_waits)
{
    on_clocks(BLITZ_CLOCK_MANUAL, outlasts_turns, NULL);
}

/* More callers than one list of wake-ups holds. */
static int moves_by(void *arg)
{
    blitz_duration by = *(blitz_duration *)arg;
    blitz_instant at = blitz_now();
    CHECK_EQ(blitz_clock_advance(NULL, by, BLITZ_FOREVER), 0);
    CHECK_GE(blitz_now(), at + by);
    return 0;
}

static int many_callers(void *arg)
{
    enum { MANY = 40 };
    blitz_task *t[MANY];
    blitz_duration by[MANY];
    blitz_instant at = blitz_now();
    (void)arg;
    for (unsigned i = 0; i < MANY; i++) {
        by[i] = i % 3 * HOUR;
        CHECK_EQ(blitz_spawn(moves_by, &by[i], NULL, &t[i]), 0);
    }
    for (unsigned i = 0; i < MANY; i++)
        CHECK_EQ(blitz_task_join(t[i], NULL, BLITZ_FOREVER), 0);
    CHECK_GE(blitz_now(), at + 2 * HOUR);
    return 0;
}

TEST(clock, many_callers_move_it)
{
    on_clocks(BLITZ_CLOCK_MANUAL, many_callers, NULL);
}

static int waits_to_move(void *arg)
{
    int *result = arg;
    *result = blitz_clock_advance(NULL, HOUR, BLITZ_FOREVER);
    return 0;
}

/* The calling task never waits, so the clock cannot move until it yields its turn for good. */
static int leaves_early(void *arg)
{
    blitz_sync_future f;
    struct t_bell bell = {0};
    blitz_waker w = t_bell_waker(&bell);
    int result = 1;
    blitz_task *t;
    (void)arg;
    blitz_instant at = blitz_now();
    blitz_clock_advance_future_init(&f, NULL, HOUR);
    CHECK_EQ(f.future.ops->poll(&f.future, &w), BLITZ_PENDING);
    f.future.ops->cancel(&f.future);
    CHECK_EQ(f.result, -ECANCELED);
    CHECK_EQ(bell.holders, 0);
    CHECK_EQ(blitz_clock_advance(NULL, HOUR, 0), -ETIMEDOUT);
    CHECK_EQ(blitz_spawn(waits_to_move, &result, NULL, &t), 0);
    blitz_task_cancel(t);
    CHECK_EQ(blitz_task_join(t, NULL, BLITZ_FOREVER), 0);
    CHECK_EQ(result, -ECANCELED);
    CHECK_EQ(blitz_now(), at);
    blitz_clock_advance_future_init(&f, NULL, HOUR);
    CHECK_EQ(blitz_await(&f.future, BLITZ_FOREVER), 0);
    CHECK_EQ(f.result, 0);
    CHECK_EQ(blitz_now(), at + HOUR);
    f.future.ops->cancel(&f.future); /* too late: it says what happened */
    CHECK_EQ(f.result, 0);
    return 0;
}

TEST(clock, a_caller_that_leaves_takes_its_moment_along)
{
    on_clocks(BLITZ_CLOCK_MANUAL, leaves_early, NULL);
}

static int turns_for_ever(void *arg)
{
    bz_atomic(int) *stop = arg;
    while (bz_load_seqcst(stop) == 0) /* seq_cst: a flag of the test */
        blitz_yield();
    return 0;
}

TEST(clock, a_plain_thread_gives_up_at_a_deadline_of_its_own)
{
    blitz_runtime *rt = runtime_with(BLITZ_CLOCK_MANUAL, 2);
    bz_atomic(int) stop = 0;
    blitz_task *t;
    blitz_instant at = blitz_clock_now(rt);
    CHECK_EQ(blitz_spawn(turns_for_ever, &stop, &(blitz_spawn_opts){.runtime = rt}, &t), 0);
    CHECK_EQ(blitz_clock_advance(rt, HOUR, blitz_after(5 * BLITZ_MS)), -ETIMEDOUT);
    CHECK_EQ(blitz_clock_now(rt), at);
    bz_store_seqcst(&stop, 1); /* seq_cst: a flag of the test */
    CHECK_EQ(blitz_task_join(t, NULL, BLITZ_FOREVER), 0);
    CHECK_EQ(blitz_clock_advance(rt, HOUR, BLITZ_FOREVER), 0);
    runtime_end(rt);
}

/* ---- it stands still, and runs on ---- */

static int stands_and_runs_on(void *arg)
{
    blitz_sync_future f;
    struct t_bell bell = {0};
    blitz_waker w = t_bell_waker(&bell);
    blitz_instant before = blitz_now();
    (void)arg;
    CHECK_EQ(blitz_clock_pause(NULL, BLITZ_CLOCK_MANUAL), 0);
    blitz_instant at = blitz_now();
    CHECK_GE(at, before);
    stands(NULL, at);
    CHECK_EQ(blitz_clock_advance(NULL, HOUR, BLITZ_FOREVER), 0);
    blitz_clock_advance_future_init(&f, NULL, HOUR);
    CHECK_EQ(f.future.ops->poll(&f.future, &w), BLITZ_PENDING);
    CHECK_EQ(blitz_clock_resume(NULL), 0);
    CHECK_EQ(bell.rung, 1);
    CHECK_EQ(f.future.ops->poll(&f.future, &w), BLITZ_READY);
    CHECK_EQ(f.result, -EINVAL);
    CHECK_EQ(bell.holders, 0);
    CHECK_GE(blitz_now(), at + HOUR);
    CHECK_EQ(blitz_sleep(BLITZ_MS), 0);
    CHECK_GE(blitz_now(), at + HOUR + BLITZ_MS);
    CHECK_LE(blitz_now(), at + HOUR + HOUR);
    return 0;
}

TEST(clock, it_runs_on_from_where_it_stands)
{
    on_clocks(BLITZ_CLOCK_RUNS, stands_and_runs_on, NULL);
}

static void sleeps_until_it_runs(void)
{
    blitz_runtime *rt = runtime_with(BLITZ_CLOCK_MANUAL, 2);
    blitz_instant until = blitz_clock_now(rt) + BLITZ_MS;
    struct wakes w = {.count = 0};
    struct sleeper s = {&w, until};
    blitz_task *t;
    CHECK_EQ(blitz_spawn(notes_its_wake, &s, &(blitz_spawn_opts){.runtime = rt}, &t), 0);
    CHECK_EQ(blitz_clock_advance(rt, 0, BLITZ_FOREVER), 0); /* it sleeps */
    CHECK_EQ(blitz_clock_resume(rt), 0);
    CHECK_EQ(blitz_task_join(t, NULL, BLITZ_FOREVER), 0);
    runtime_end(rt);
}

/* A machine that sleeps for ever beside a paused clock learns that it runs. Often, because it may not sleep yet. */
TEST(clock, a_sleep_that_began_on_a_paused_clock_ends_when_it_runs)
{
    for (int i = 0; i < 30; i++)
        sleeps_until_it_runs();
}

/* One of two runtimes is paused: the other's sleeps end, by the system's clock. */
TEST(clock, another_runtime_has_another_clock)
{
    blitz_runtime *still = runtime_with(BLITZ_CLOCK_MANUAL, 2), *other;
    CHECK_EQ(blitz_runtime_new(&(blitz_runtime_opts){.procs = 2}, &other), 0);
    blitz_instant at = blitz_clock_now(still), until = blitz_after(BLITZ_MS);
    struct wakes a = {.count = 0}, b = {.count = 0};
    struct sleeper slow = {&a, at + BLITZ_MS}, quick = {&b, until};
    blitz_task *t, *u;
    CHECK_EQ(blitz_spawn(notes_its_wake, &slow, &(blitz_spawn_opts){.runtime = still}, &t), 0);
    CHECK_EQ(blitz_spawn(notes_its_wake, &quick, &(blitz_spawn_opts){.runtime = other}, &u), 0);
    CHECK_EQ(blitz_task_join(u, NULL, BLITZ_FOREVER), 0);
    stands(still, at);
    CHECK_EQ(woken(&a), 0);
    CHECK_EQ(blitz_clock_advance(still, BLITZ_MS, BLITZ_FOREVER), 0);
    CHECK_EQ(woken(&a), 1);
    CHECK_EQ(blitz_task_join(t, NULL, BLITZ_FOREVER), 0);
    runtime_end(still);
    runtime_end(other);
}
