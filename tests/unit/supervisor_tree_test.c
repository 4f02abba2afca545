/* Supervisors of supervisors, printed; and the pause before a restart. */
#include "harness.h"

#include <errno.h>
#include <string.h>

#include "actor/pressure.h"
#include "blitz.h"
#include "support/alone.h"
#include "support/counted.h"

enum { CRASH };

BLITZ_HANDLER(on_crash, void, void)
{
    (void)state, (void)data, (void)m;
    return -EIO;
}

static const blitz_handler handlers[] = {BLITZ_ON_EMPTY(CRASH, on_crash)};
static const blitz_behaviour worker = {
    .name = "worker", .state_bytes = sizeof(int), .handlers = handlers, .handler_count = 1};

/* The inner supervisor gives up at its second restart. */
static const blitz_child_spec inner_children[] = {
    {.id = "x", .behaviour = &worker, .name = "x"},
    {.id = "y", .behaviour = &worker, .name = "y", .restart = BLITZ_TRANSIENT}};
static const blitz_supervisor_plan inner = {.strategy = BLITZ_ONE_FOR_ALL,
                                            .intensity = 1,
                                            .period = 3600 * BLITZ_S,
                                            .children = inner_children,
                                            .child_count = 2};
static const blitz_child_spec outer_children[] = {
    {.id = "a", .behaviour = &worker, .name = "a"},
    {.id = "pool", .supervisor = &inner, .name = "pool"},
    {.id = "b", .behaviour = &worker, .restart = BLITZ_TEMPORARY}};
static const blitz_supervisor_plan outer = {
    .period = 3600 * BLITZ_S, .children = outer_children, .child_count = 3};

static blitz_actor_id await_name(const char *name, blitz_actor_id was)
{
    blitz_actor_id id;
    while ((id = blitz_actor_whereis(NULL, name)).generation == 0 || blitz_actor_id_equal(id, was))
        blitz_yield();
    return id;
}

static blitz_actor_id start(const blitz_supervisor_plan *plan)
{
    blitz_actor_id sup;
    blitz_supervisor_counts counts;
    CHECK_EQ(blitz_supervisor_spawn(plan, NULL, &sup), 0);
    CHECK_EQ(blitz_supervisor_count(sup, &counts), 0);
    CHECK_EQ(counts.active, plan->child_count);
    return sup;
}

static void stop(blitz_actor_id sup)
{
    CHECK_EQ(blitz_actor_stop(sup), 0);
    int rc = blitz_actor_join(sup, NULL, BLITZ_FOREVER);
    CHECK(rc == 0 || rc == -ESRCH);
}

/* ---- trees ---- */

static int escalates(void *arg)
{
    static const blitz_actor_id none;
    blitz_actor_id sup = start(&outer), pool = await_name("pool", none);
    blitz_supervisor_counts counts;
    (void)arg;
    blitz_actor_id a = await_name("a", none), x = await_name("x", none), y = await_name("y", none);
    CHECK_EQ(blitz_actor_send(x, CRASH, NULL, 0), 0);
    x = await_name("x", x); /* both, by the inner one */
    (void)await_name("y", y);
    CHECK(blitz_actor_is_alive(pool));
    CHECK_EQ(blitz_actor_send(x, CRASH, NULL, 0), 0);
    blitz_actor_id again =
        await_name("pool", pool); /* one too many: the outer one starts it again */
    (void)await_name("x", x);
    CHECK(!blitz_actor_is_alive(pool));
    CHECK(blitz_actor_is_alive(a));
    CHECK_EQ(blitz_supervisor_count(again, &counts), 0);
    CHECK_EQ(counts.restarts, 0u); /* a new life */
    CHECK_EQ(blitz_supervisor_count(sup, &counts), 0);
    CHECK_EQ(counts.restarts, 1u);
    x = blitz_actor_whereis(NULL, "x");
    stop(sup);
    CHECK(!blitz_actor_is_alive(again));
    CHECK(!blitz_actor_is_alive(x)); /* the whole tree */
    return 0;
}

TEST(supervisor_tree, an_inner_supervisor_that_gives_up_is_restarted_by_the_outer)
{
    for (unsigned procs = 1; procs <= 3; procs++) {
        CHECK_EQ(blitz_run(escalates, NULL,
                           &(blitz_runtime_opts){.procs = procs, .allocator = &counted}),
                 0);
        CHECK_EQ(counted_blocks(), 0);
    }
}

static int refuses(void *arg)
{
    static const blitz_behaviour huge = {.state_bytes = BLITZ_ACTOR_STATE_MAX + 1};
    blitz_child_spec bad[] = {{.id = "neither"},
                              {.id = "no name", .behaviour = &worker, .name = ""},
                              {.id = "huge", .behaviour = &huge},
                              {.id = "both", .behaviour = &worker, .supervisor = &inner},
                              {.id = "state", .supervisor = &inner, .state = &inner}};
    blitz_actor_id sup = start(&outer);
    (void)arg;
    for (size_t i = 0; i < BZ_ARRAY_LEN(bad); i++) {
        blitz_supervisor_plan plan = {.children = &bad[i], .child_count = 1};
        CHECK_EQ(blitz_supervisor_spawn(&plan, NULL, NULL), -EINVAL);
        CHECK_EQ(blitz_supervisor_start(sup, &bad[i], NULL), -EINVAL);
    }
    return 0;
}

TEST(supervisor_tree, a_child_is_an_actor_or_a_supervisor)
{
    CHECK_EQ(t_run_alone(refuses, NULL), 0);
}

/* ---- printed ---- */

struct text {
    char all[2000];
    size_t length;
    int lines, stop_at;
};

static int print(void *ctx, const char *line, size_t length)
{
    struct text *t = ctx;
    if (++t->lines == t->stop_at)
        return -EPIPE;
    CHECK(t->length + length < sizeof t->all);
    CHECK_EQ(line[length - 1], '\n');
    memcpy(t->all + t->length, line, length);
    t->length += length;
    t->all[t->length] = '\0';
    return 0;
}

static void has(const struct text *t, const char *words)
{
    if (strstr(t->all, words) == NULL)
        FAIL("\"%s\" is not in:\n%s", words, t->all);
}

static int prints(void *arg)
{
    blitz_actor_id sup = start(&outer);
    struct text t = {.stop_at = 0}, cut = {.stop_at = 5};
    (void)arg;
    CHECK_EQ(blitz_supervisor_terminate(sup, "a"), 0);
    CHECK_EQ(blitz_supervisor_print(sup, print, &t), 0);
    CHECK_EQ(t.lines, 7);
    has(&t, "supervisor one_for_one, 0 restarts\n  a: does not run, permanent\n  pool: "
            "\"supervisor\" ");
    has(&t, "\n    supervisor one_for_all, 0 restarts\n      x: \"worker\" ");
    has(&t, " messages, transient\n  b: \"worker\" ");
    has(&t, ", temporary\n");
    CHECK_EQ(blitz_supervisor_print(sup, print, &cut), -EPIPE); /* inside the inner one */
    CHECK_EQ(blitz_supervisor_print(sup, NULL, NULL), -EINVAL);
    stop(sup);
    CHECK_EQ(blitz_supervisor_print(sup, print, &t), -ESRCH);
    return 0;
}

TEST(supervisor_tree, is_printed_with_its_children)
{
    CHECK_EQ(t_run_alone(prints, NULL), 0);
}

/* ---- a muted child ---- */

enum { PUMP, TAKE };
static bool is_stuck;

BLITZ_HANDLER(on_pump, void, void)
{
    blitz_actor_id to = blitz_actor_whereis(NULL, "sink");
    (void)state, (void)data, (void)m;
    for (int i = 0; i < 40; i++)
        CHECK_EQ(blitz_actor_send(to, TAKE, NULL, 0), 0);
    return 0;
}

BLITZ_HANDLER(on_take, void, void)
{
    (void)state, (void)data, (void)m;
    while (is_stuck)
        blitz_yield();
    return 0;
}

static const blitz_handler flow[] = {BLITZ_ON_EMPTY(PUMP, on_pump), BLITZ_ON_EMPTY(TAKE, on_take)};
static const blitz_behaviour pump = {.name = "pump", .handlers = flow, .handler_count = 2};
static const blitz_behaviour sink = {
    .name = "sink", .handlers = flow, .handler_count = 2, .mailbox_high = 16};

static int prints_muted(void *arg)
{
    static const blitz_child_spec two[] = {{.id = "s", .behaviour = &sink, .name = "sink"},
                                           {.id = "p", .behaviour = &pump, .name = "pump"}};
    blitz_supervisor_plan plan = {.children = two, .child_count = 2};
    struct text t = {.stop_at = 0};
    blitz_actor_info info = {.state = BLITZ_ACTOR_IDLE};
    (void)arg;
    is_stuck = true;
    blitz_actor_id sup = start(&plan), from = blitz_actor_whereis(NULL, "pump");
    CHECK_EQ(blitz_actor_send(from, PUMP, NULL, 0), 0);
    for (; info.state != BLITZ_ACTOR_MUTED; blitz_yield())
        CHECK_EQ(blitz_actor_info_get(from, &info), 0);
    CHECK_EQ(blitz_supervisor_print(sup, print, &t), 0);
    has(&t, ", muted, ");
    is_stuck = false;
    stop(sup);
    return 0;
}

/* Its state was printed as "dead". */
TEST(supervisor_tree, a_muted_child_is_printed_as_muted)
{
    bz_mute_ns = 3600 * BLITZ_S;
    CHECK_EQ(t_run_alone(prints_muted, NULL), 0);
}

/* ---- no memory ---- */

enum { LEFT_MAX = 12 };

static const blitz_handler hoarding[] = {{TAKE, BLITZ_ANY_SIZE, on_take}};
static const blitz_behaviour hoard = {
    .name = "hoard", .handlers = hoarding, .handler_count = 1, .mailbox_high = 100000};

/* Take all free letters but `left`, and refuse the allocation of more once. */
static void leave_letters(blitz_actor_id to, int left)
{
    static const char payload[BLITZ_MSG_BYTES_MAX];
    uint64_t timer[LEFT_MAX];
    int rc = 0;
    for (int i = 0; i < left; i++)
        CHECK_EQ(
            blitz_actor_send_after(to, TAKE, payload, sizeof payload, BLITZ_FOREVER, &timer[i]), 0);
    counted_refuse(1, true);
    while (rc == 0)
        rc = blitz_actor_send(to, TAKE, payload, sizeof payload);
    CHECK_EQ(rc, -ENOMEM);
    for (int i = 0; i < left; i++)
        CHECK_EQ(blitz_actor_timer_cancel(to, timer[i]), 0);
    counted_refuse(1, false);
}

static int ends_an_inner_one(void *arg)
{
    blitz_actor_id sup = start(&outer), to;
    CHECK_EQ(blitz_actor_spawn(&hoard, NULL, NULL, &to), 0);
    is_stuck = true;
    leave_letters(to, *(int *)arg);
    int rc = blitz_supervisor_terminate(sup, "pool");
    CHECK(rc == 0 || rc == -ENOMEM);
    counted_refuse(0, false);
    is_stuck = false;
    stop(sup);
    return 0;
}

/* It has no deadline, so its supervisor must not wait for it if there was no memory to ask it. */
TEST(supervisor_tree, bug_43_an_inner_supervisor_ends_although_a_letter_is_refused)
{
    for (int left = 0; left <= LEFT_MAX; left++) {
        t_watch("%d letters are left", left);
        CHECK_EQ(blitz_run(ends_an_inner_one, &left,
                           &(blitz_runtime_opts){.procs = 1, .allocator = &counted}),
                 0);
        CHECK_EQ(counted_blocks(), 0);
    }
}

/* ---- pauses ---- */

static void crash(blitz_actor_id sup, const char *id)
{
    blitz_actor_id was;
    CHECK_EQ(blitz_supervisor_which(sup, id, &was), 0);
    CHECK_EQ(blitz_actor_send(was, CRASH, NULL, 0), 0);
    for (blitz_actor_id now = was; blitz_actor_id_equal(now, was); blitz_yield())
        CHECK_EQ(blitz_supervisor_which(sup, id, &now), 0);
}

static uint32_t active(blitz_actor_id sup)
{
    blitz_supervisor_counts counts;
    CHECK_EQ(blitz_supervisor_count(sup, &counts), 0);
    return counts.active;
}

static int pauses(void *arg)
{
    static const blitz_child_spec two[] = {{.id = "a", .behaviour = &worker},
                                           {.id = "b", .behaviour = &worker}};
    blitz_supervisor_plan plan = {.backoff = 3600 * BLITZ_S,
                                  .backoff_max = 3600 * BLITZ_S,
                                  .children = two,
                                  .child_count = 2};
    struct text t = {.stop_at = 0};
    (void)arg;
    /* The child waits; the other runs. By hand it is started at once, ended, and forgotten. */
    blitz_actor_id sup = start(&plan);
    crash(sup, "a");
    CHECK_EQ(active(sup), 1u);
    CHECK_EQ(blitz_supervisor_print(sup, print, &t), 0);
    has(&t, "a: waits for a restart, permanent");
    CHECK_EQ(blitz_supervisor_restart(sup, "a"), 0);
    CHECK_EQ(active(sup), 2u);
    crash(sup, "a");
    CHECK_EQ(blitz_supervisor_terminate(sup, "a"), 0);
    CHECK_EQ(blitz_supervisor_forget(sup, "a"), 0);
    stop(sup);
    /* One for all: the others end at once. */
    plan.strategy = BLITZ_ONE_FOR_ALL;
    sup = start(&plan);
    crash(sup, "a");
    CHECK_EQ(active(sup), 0u);
    stop(sup);
    return 0;
}

TEST(supervisor_tree, a_child_in_its_pause_does_not_run)
{
    t_hold_procs();
    CHECK_EQ(blitz_run(pauses, NULL, &(blitz_runtime_opts){.procs = 1, .allocator = &counted}), 0);
    CHECK_EQ(counted_blocks(), 0);
}

/* By hand, during the pause. The pause is an hour of a virtual clock. */
static int ends_in_its_pause(void *arg)
{
    static const blitz_child_spec three[] = {{.id = "a", .behaviour = &worker},
                                             {.id = "b", .behaviour = &worker},
                                             {.id = "c", .behaviour = &worker}};
    (void)arg;
    for (unsigned strategy = 0; strategy <= BLITZ_DYNAMIC; strategy++) {
        blitz_supervisor_plan plan = {.strategy = (blitz_strategy)strategy,
                                      .backoff = 3600 * BLITZ_S,
                                      .backoff_max = 3600 * BLITZ_S,
                                      .children = three,
                                      .child_count = 3};
        t_watch("strategy %u", strategy);
        blitz_actor_id sup = start(&plan), b;
        crash(sup, "b");
        CHECK_EQ(blitz_supervisor_terminate(sup, "b"), 0);
        CHECK_EQ(blitz_clock_advance(NULL, 3600 * BLITZ_S, BLITZ_FOREVER), 0);
        int rc = blitz_supervisor_which(sup, "b", &b);
        CHECK(rc == -ENOENT || b.generation == 0);
        CHECK_EQ(active(sup), 2u); /* the others are back */
        stop(sup);
    }
    return 0;
}

TEST(supervisor_tree, a_child_that_is_ended_in_its_pause_is_not_started)
{
    t_hold_procs();
    CHECK_EQ(blitz_run(ends_in_its_pause, NULL,
                       &(blitz_runtime_opts){.procs = 1, .clock = BLITZ_CLOCK_MANUAL}),
             0);
}

/* A child that was started by hand, and fails again, has a new pause: the first one does not end it. */
static int fails_in_its_pause(void *arg)
{
    static const blitz_child_spec two[] = {{.id = "a", .behaviour = &worker},
                                           {.id = "b", .behaviour = &worker}};
    blitz_supervisor_plan plan = {
        .strategy = BLITZ_ONE_FOR_ALL, .backoff = BLITZ_S, .children = two, .child_count = 2};
    (void)arg;
    blitz_actor_id sup = start(&plan);
    crash(sup, "a");
    CHECK_EQ(blitz_supervisor_restart(sup, "a"), 0);
    crash(sup, "a"); /* the next pause is twice as long */
    CHECK_EQ(blitz_clock_advance(NULL, BLITZ_S, BLITZ_FOREVER), 0);
    CHECK_EQ(active(sup), 0u);
    CHECK_EQ(blitz_clock_advance(NULL, BLITZ_S, BLITZ_FOREVER), 0);
    CHECK_EQ(active(sup), 2u);
    stop(sup);
    return 0;
}

TEST(supervisor_tree, a_second_failure_in_a_pause_begins_another_one)
{
    t_hold_procs();
    CHECK_EQ(blitz_run(fails_in_its_pause, NULL,
                       &(blitz_runtime_opts){.procs = 1, .clock = BLITZ_CLOCK_MANUAL}),
             0);
}

/* ---- ends ---- */

/* Its successor starts at once, and needs the names of the children. */
static int is_killed(void *arg)
{
    static const blitz_actor_id none;
    blitz_actor_id sup = start(&outer), pool = await_name("pool", none);
    blitz_supervisor_counts counts;
    (void)arg;
    for (unsigned i = 1; i <= 5; i++) {
        blitz_actor_id x = await_name("x", none), y = await_name("y", none);
        CHECK_EQ(blitz_actor_kill(pool), 0);
        int rc = blitz_actor_join(pool, NULL, BLITZ_FOREVER);
        CHECK(rc == 0 || rc == -ESRCH);
        CHECK(!blitz_actor_is_alive(x) && !blitz_actor_is_alive(y));
        pool = await_name("pool", pool);
        CHECK_EQ(blitz_supervisor_count(pool, &counts), 0);
        CHECK_EQ(counts.active, 2u);
        CHECK_EQ(blitz_supervisor_count(sup, &counts), 0);
        CHECK_EQ(counts.restarts, i);
    }
    stop(sup);
    return 0;
}

TEST(supervisor_tree, a_killed_one_ends_after_its_children_and_is_restarted)
{
    for (unsigned procs = 1; procs <= 3; procs++)
        CHECK_EQ(blitz_run(is_killed, NULL, &(blitz_runtime_opts){.procs = procs}), 0);
}

/* The last child does not start: its name is taken. */
static int begins_in_vain(void *arg)
{
    blitz_child_spec children[] = {{.id = "w", .behaviour = &worker, .name = "w"},
                                   {.id = "pool", .supervisor = &inner, .name = "pool"},
                                   {.id = "taken", .behaviour = &worker, .name = "taken"}};
    blitz_supervisor_plan plan = {.children = children, .child_count = 3};
    blitz_actor_id other, sup;
    (void)arg;
    CHECK_EQ(blitz_actor_spawn(&worker, NULL, &(blitz_actor_opts){.name = "taken"}, &other), 0);
    for (int i = 0; i < 20; i++) {
        CHECK_EQ(blitz_supervisor_spawn(&plan, NULL, &sup), 0);
        int rc = blitz_actor_join(sup, NULL, BLITZ_FOREVER);
        CHECK(rc == 0 || rc == -ESRCH);
        CHECK_EQ(blitz_actor_whereis(NULL, "w").generation, 0u);
        CHECK_EQ(blitz_actor_whereis(NULL, "pool").generation, 0u);
    }
    return 0;
}

TEST(supervisor_tree, one_that_does_not_begin_ends_the_children_that_it_has_started)
{
    for (unsigned procs = 1; procs <= 3; procs++)
        CHECK_EQ(blitz_run(begins_in_vain, NULL, &(blitz_runtime_opts){.procs = procs}), 0);
}

/* An actor that has a supervisor for itself. */
BLITZ_HANDLER(on_own, int, void) /* which uses none of its parameters: no warning */
{
    return blitz_supervisor_spawn(&inner, &(blitz_actor_opts){.link = true, .name = "own"}, NULL);
}

static int loses_its_starter(void *arg)
{
    static const blitz_handler owning[] = {BLITZ_ON_EMPTY(CRASH, on_crash),
                                           BLITZ_ON_EMPTY(CRASH + 1, on_own)};
    static const blitz_behaviour owner = {
        .name = "owner", .state_bytes = sizeof(int), .handlers = owning, .handler_count = 2};
    static const blitz_actor_id none;
    blitz_actor_id id;
    blitz_exit_reason why;
    (void)arg;
    CHECK_EQ(blitz_actor_spawn(&owner, NULL, NULL, &id), 0);
    CHECK_EQ(blitz_actor_send(id, CRASH + 1, NULL, 0), 0);
    blitz_actor_id own = await_name("own", none), x = await_name("x", none);
    CHECK_EQ(blitz_actor_send(id, CRASH, NULL, 0), 0);
    int rc = blitz_actor_join(own, &why, BLITZ_FOREVER);
    CHECK(rc == -ESRCH || (why.kind == BLITZ_EXIT_ERROR && why.code == -EIO));
    CHECK(!blitz_actor_is_alive(x));
    return 0;
}

TEST(supervisor_tree, one_that_is_linked_to_its_starter_ends_with_it)
{
    for (unsigned procs = 1; procs <= 3; procs++)
        CHECK_EQ(blitz_run(loses_its_starter, NULL, &(blitz_runtime_opts){.procs = procs}), 0);
}

/* ---- messages of others ---- */

static int gets_messages(void *arg)
{
    static const char junk[BLITZ_MSG_BYTES_MAX] = {1};
    blitz_actor_id sup = start(&outer);
    (void)arg;
    for (uint32_t what = 0; what < 16; what++)
        for (size_t size = 0; size <= sizeof junk; size++)
            CHECK_EQ(blitz_actor_send(sup, what, junk, size), 0);
    CHECK_EQ(active(sup), 3u);
    stop(sup);
    return 0;
}

TEST(supervisor_tree, messages_of_others_are_dropped)
{
    CHECK_EQ(blitz_run(gets_messages, NULL, &(blitz_runtime_opts){.procs = 2}), 0);
}
