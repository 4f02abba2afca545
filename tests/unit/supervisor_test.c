/* Supervisors: each strategy, restart type and limit; the order of ends; management; trees. */
#include "harness.h"

#include <errno.h>
#include <string.h>

#include "blitz.h"
#include "support/alone.h"

enum { CRASH, QUIT, HANG };

/* A record of starts (+n) and ends (-n) in order. */
static struct {
    int event[256];
    int count;
} record;

struct worker {
    int number;
};

static void note(int event)
{
    if (record.count < 256)
        record.event[record.count++] = event;
}

static int worker_init(void *state)
{
    note(((struct worker *)state)->number);
    return ((struct worker *)state)->number >= 100 ? -EIO : 0;
}

static void worker_exit(void *state, const blitz_exit_reason *why)
{
    (void)why;
    note(-((struct worker *)state)->number);
}

BLITZ_HANDLER(on_crash, struct worker, void)
{
    (void)state, (void)data, (void)m;
    return -EIO;
}

BLITZ_HANDLER(on_quit, struct worker, void)
{
    (void)state, (void)data, (void)m;
    return BLITZ_ACTOR_STOP;
}

BLITZ_HANDLER(on_hang, struct worker, void)
{
    (void)state, (void)data, (void)m;
    return blitz_sleep_until(BLITZ_FOREVER) == 0 ? 0 : -ECANCELED;
}

static const blitz_handler handlers[] = {
    BLITZ_ON_EMPTY(CRASH, on_crash), BLITZ_ON_EMPTY(QUIT, on_quit), BLITZ_ON_EMPTY(HANG, on_hang)};
static const blitz_behaviour worker = {.name = "worker",
                                       .state_bytes = sizeof(struct worker),
                                       .init = worker_init,
                                       .handlers = handlers,
                                       .handler_count = 3,
                                       .exit = worker_exit};

static const struct worker states[] = {{1}, {2}, {3}, {100}};

static blitz_child_spec child(const char *id, int number, blitz_restart restart)
{
    return (blitz_child_spec){.id = id,
                              .behaviour = &worker,
                              .state = &states[number - 1],
                              .restart = restart,
                              .shutdown = BLITZ_MS};
}

static blitz_actor_id given_three(blitz_strategy strategy, blitz_restart restart,
                                  unsigned intensity)
{
    blitz_child_spec children[] = {child("a", 1, restart), child("b", 2, restart),
                                   child("c", 3, restart)};
    blitz_supervisor_plan opts = {.strategy = strategy,
                                  .intensity = intensity,
                                  .period = 3600 * BLITZ_S,
                                  .children = children,
                                  .child_count = 3};
    blitz_actor_id sup;
    blitz_supervisor_counts counts;
    record.count = 0;
    CHECK_EQ(blitz_supervisor_spawn(&opts, NULL, &sup), 0);
    CHECK_EQ(blitz_supervisor_count(sup, &counts), 0); /* it has begun */
    CHECK_EQ(counts.active, 3u);
    for (int i = 0; i < 20; i++)
        blitz_yield();
    CHECK_EQ(record.count, 3);
    return sup;
}

static blitz_actor_id which(blitz_actor_id sup, const char *id)
{
    blitz_actor_id found = {0, 0, 0, 0};
    int rc = blitz_supervisor_which(sup, id, &found);
    CHECK(rc == 0 || rc == -ENOENT || rc == -ESRCH);
    return found;
}

/* Let the child end, and wait until its supervisor has acted. */
static void ends(blitz_actor_id sup, const char *id, uint32_t what)
{
    blitz_actor_id was = which(sup, id);
    CHECK_EQ(blitz_actor_send(was, what, NULL, 0), 0);
    int rc = blitz_actor_join(was, NULL, BLITZ_FOREVER);
    CHECK(rc == 0 || rc == -ESRCH);
    while (blitz_actor_is_alive(sup) && blitz_actor_id_equal(which(sup, id), was))
        blitz_yield();
    for (int i = 0; i < 20; i++)
        blitz_yield();
}

static void recorded(const int *want, int count)
{
    CHECK_EQ(record.count, 3 + count);
    for (int i = 0; i < count; i++)
        CHECK_EQ(record.event[3 + i], want[i]);
}

static void stop(blitz_actor_id sup)
{
    int rc = blitz_actor_stop(sup);
    CHECK(rc == 0 || rc == -ESRCH);
    rc = blitz_actor_join(sup, NULL, BLITZ_FOREVER);
    CHECK(rc == 0 || rc == -ESRCH);
}

/* ---- strategies ---- */

static int strategies(void *arg)
{
    (void)arg;
    static const struct {
        blitz_strategy strategy;
        int want[6], count;
    } cases[] = {{BLITZ_ONE_FOR_ONE, {-2, 2}, 2},
                 {BLITZ_ONE_FOR_ALL, {-2, -3, -1, 1, 2, 3}, 6},
                 {BLITZ_REST_FOR_ONE, {-2, -3, 2, 3}, 4},
                 {BLITZ_DYNAMIC, {-2, 2}, 2}};
    for (int i = 0; i < 4; i++) {
        blitz_actor_id sup = given_three(cases[i].strategy, BLITZ_PERMANENT, 0);
        ends(sup, "b", CRASH);
        recorded(cases[i].want, cases[i].count);
        stop(sup);
    }
    return 0;
}

TEST(supervisor, each_strategy_restarts_its_children_in_order)
{
    CHECK_EQ(t_run_alone(strategies, NULL), 0);
}

static int restart_types(void *arg)
{
    static const struct {
        blitz_restart restart;
        uint32_t what;
        bool comes_back, is_known;
    } cases[] = {{BLITZ_PERMANENT, CRASH, true, true},   {BLITZ_PERMANENT, QUIT, true, true},
                 {BLITZ_TRANSIENT, CRASH, true, true},   {BLITZ_TRANSIENT, QUIT, false, true},
                 {BLITZ_TEMPORARY, CRASH, false, false}, {BLITZ_TEMPORARY, QUIT, false, false}};
    static const blitz_strategy strategy[] = {BLITZ_ONE_FOR_ONE, BLITZ_ONE_FOR_ALL,
                                              BLITZ_REST_FOR_ONE, BLITZ_DYNAMIC};
    (void)arg;
    for (int i = 0; i < 24; i++) {
        blitz_actor_id sup = given_three(strategy[i / 6], cases[i % 6].restart, 0);
        blitz_actor_id found;
        ends(sup, "c", cases[i % 6].what);
        bool is_known =
            cases[i % 6].is_known && (strategy[i / 6] != BLITZ_DYNAMIC || cases[i % 6].comes_back);
        CHECK_EQ(blitz_supervisor_which(sup, "c", &found), is_known ? 0 : -ENOENT);
        if (is_known)
            CHECK_EQ(blitz_actor_is_alive(found), cases[i % 6].comes_back);
        stop(sup);
    }
    return 0;
}

TEST(supervisor, each_restart_type_under_each_strategy)
{
    CHECK_EQ(t_run_alone(restart_types, NULL), 0);
}

/* ---- the limit ---- */

static int exceeds_the_limit(void *arg)
{
    (void)arg;
    for (unsigned intensity = 1; intensity <= 4; intensity++) {
        blitz_actor_id sup = given_three(BLITZ_ONE_FOR_ONE, BLITZ_PERMANENT, intensity);
        blitz_exit_reason why = {.kind = BLITZ_EXIT_NOPROC};
        for (unsigned i = 0; i < intensity; i++)
            ends(sup, "a", CRASH);
        CHECK(blitz_actor_is_alive(sup));
        blitz_actor_join_future f;
        blitz_actor_join_future_init(&f, sup, &why);
        CHECK_EQ(blitz_await(&f.future, blitz_after(1)), -ETIMEDOUT);
        ends(sup, "a", CRASH);
        int rc = blitz_actor_join(sup, &why, BLITZ_FOREVER);
        CHECK(rc == -ESRCH || (why.kind == BLITZ_EXIT_ERROR && why.code == -ELOOP));
        CHECK_EQ(record.event[record.count - 1], -2); /* c, then b: in reverse order */
        CHECK_EQ(record.event[record.count - 2], -3);
    }
    return 0;
}

TEST(supervisor, too_many_restarts_end_it_and_its_children)
{
    CHECK_EQ(t_run_alone(exceeds_the_limit, NULL), 0);
}

static int starts_in_vain(void *arg)
{
    blitz_child_spec bad[] = {child("good", 1, BLITZ_PERMANENT), child("bad", 4, BLITZ_PERMANENT)};
    blitz_supervisor_plan opts = {.children = bad, .child_count = 2};
    blitz_actor_id sup;
    (void)arg;
    record.count = 0;
    CHECK_EQ(blitz_supervisor_spawn(&opts, NULL, &sup), 0);
    int rc = blitz_actor_join(sup, NULL, BLITZ_FOREVER);
    CHECK(rc == 0 || rc == -ESRCH);
    int starts = 0;
    for (int i = 0; i < record.count; i++)
        starts += record.event[i] == 100;
    CHECK_EQ(starts, 6); /* once, and five restarts */
    bad[1].id = "good";
    CHECK_EQ(blitz_supervisor_spawn(&opts, NULL, &sup), -EINVAL);
    return 0;
}

TEST(supervisor, a_child_that_never_starts_escalates)
{
    CHECK_EQ(t_run_alone(starts_in_vain, NULL), 0);
}

/* ---- ends ---- */

/* A child that does not end within its time is killed. */
static int hangs(void *arg)
{
    (void)arg;
    blitz_actor_id sup = given_three(BLITZ_ONE_FOR_ONE, BLITZ_PERMANENT, 0);
    CHECK_EQ(blitz_actor_send(which(sup, "b"), HANG, NULL, 0), 0);
    blitz_yield();
    stop(sup);
    static const int want[] = {-3, -2, -1};
    recorded(want, 3);
    return 0;
}

TEST(supervisor, its_end_ends_the_children_in_reverse_and_kills_the_stubborn)
{
    CHECK_EQ(t_run_alone(hangs, NULL), 0);
}

static int is_killed(void *arg)
{
    (void)arg;
    blitz_actor_id sup = given_three(BLITZ_ONE_FOR_ONE, BLITZ_PERMANENT, 0);
    blitz_actor_id c = which(sup, "c");
    CHECK_EQ(blitz_actor_kill(sup), 0);
    int rc = blitz_actor_join(c, NULL, BLITZ_FOREVER);
    CHECK(rc == 0 || rc == -ESRCH);
    return 0;
}

TEST(supervisor, the_children_of_a_killed_one_end_by_their_links)
{
    CHECK_EQ(t_run_alone(is_killed, NULL), 0);
}

/* ---- management ---- */

static int manages(void *arg)
{
    (void)arg;
    blitz_actor_id sup = given_three(BLITZ_ONE_FOR_ONE, BLITZ_PERMANENT, 0), found;
    blitz_child_spec more = child("d", 3, BLITZ_TEMPORARY);
    blitz_supervisor_counts counts;
    CHECK_EQ(blitz_supervisor_start(sup, &more, &found), 0);
    CHECK(blitz_actor_is_alive(found));
    CHECK_EQ(blitz_supervisor_start(sup, &more, NULL), -EEXIST);
    CHECK_EQ(blitz_supervisor_terminate(sup, "nobody"), -ENOENT);
    CHECK_EQ(blitz_supervisor_terminate(sup, "b"), 0);
    CHECK_EQ(blitz_supervisor_forget(sup, "a"), -EBUSY);
    CHECK_EQ(blitz_supervisor_restart(sup, "a"), -EBUSY);
    CHECK_EQ(blitz_supervisor_count(sup, &counts), 0);
    CHECK_EQ(counts.children, 4u);
    CHECK_EQ(counts.active, 3u);
    CHECK_EQ(blitz_supervisor_restart(sup, "b"), 0);
    CHECK(blitz_actor_is_alive(which(sup, "b")));
    CHECK_EQ(blitz_supervisor_terminate(sup, "b"), 0);
    CHECK_EQ(blitz_supervisor_forget(sup, "b"), 0);
    CHECK_EQ(blitz_supervisor_restart(sup, "b"), -ENOENT);
    CHECK_EQ(blitz_supervisor_terminate(sup, "d"), 0); /* temporary: forgotten */
    CHECK_EQ(blitz_supervisor_which(sup, "d", &found), -ENOENT);
    stop(sup);
    CHECK_EQ(blitz_supervisor_count(sup, &counts), -ESRCH);
    return 0;
}

TEST(supervisor, children_are_added_ended_restarted_and_deleted)
{
    CHECK_EQ(t_run_alone(manages, NULL), 0);
}

/* ---- many crashes ---- */

static int crashes(void *arg)
{
    (void)arg;
    enum { ROUNDS = 2000 };
    blitz_child_spec one[] = {{.id = "w", .behaviour = &worker, .state = &states[0], .name = "w"}};
    blitz_supervisor_plan opts = {.intensity = 1000,
                                  .period = 1, /* a nanosecond: no limit */
                                  .children = one,
                                  .child_count = 1};
    blitz_actor_id sup, was = {0, 0, 0, 0};
    blitz_supervisor_counts counts;
    CHECK_EQ(blitz_supervisor_spawn(&opts, NULL, &sup), 0);
    for (int i = 0; i < ROUNDS; i++) {
        blitz_actor_id id;
        while ((id = blitz_actor_whereis(NULL, "w")).generation == 0 ||
               blitz_actor_id_equal(id, was))
            blitz_yield();
        CHECK_EQ(blitz_actor_send(id, CRASH, NULL, 0), 0);
        was = id;
    }
    do {
        CHECK_EQ(blitz_supervisor_count(sup, &counts), 0);
    } while (counts.restarts < ROUNDS);
    CHECK_EQ(counts.restarts, (uint64_t)ROUNDS);
    return 0;
}

TEST(supervisor, thousands_of_crashes_are_restarted_one_by_one)
{
    CHECK_EQ(t_run_alone(crashes, NULL), 0);
    CHECK_EQ(blitz_run(crashes, NULL, &(blitz_runtime_opts){.procs = 2}), 0);
}
