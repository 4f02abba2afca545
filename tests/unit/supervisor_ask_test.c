/* Children that ask their own supervisor while it ends them: both go on. */
#include "harness.h"

#include <errno.h>
#include <stdatomic.h>

#include "blitz.h"
#include "support/counted.h"
#include "support/on_each.h"

enum { ASK, CRASH, END };

static blitz_actor_id sup;
static atomic_int asked;     /* the result of the last question */
static atomic_bool will_ask; /* the handler that asks has begun */

static void await_state(blitz_actor_id id, blitz_actor_state state)
{
    blitz_actor_info info;
    do {
        blitz_yield();
        CHECK_EQ(blitz_actor_info_get(id, &info), 0);
    } while (info.state != state);
}

/* Ask when the supervisor waits for our end. */
BLITZ_HANDLER(on_ask, void, void)
{
    blitz_actor_id id;
    (void)state, (void)data, (void)m;
    atomic_store(&will_ask, true);
    await_state(sup, BLITZ_ACTOR_WAITING);
    atomic_store(&asked, blitz_supervisor_which(sup, "other", &id));
    return 0;
}

BLITZ_HANDLER(on_crash, void, void)
{
    (void)state, (void)data, (void)m;
    return -EIO;
}

/* End ourselves by the supervisor. */
BLITZ_HANDLER(on_end, void, void)
{
    (void)state, (void)data, (void)m;
    atomic_store(&asked, blitz_supervisor_terminate(sup, "asks"));
    return 0;
}

static const blitz_handler handlers[] = {
    BLITZ_ON_EMPTY(ASK, on_ask), BLITZ_ON_EMPTY(CRASH, on_crash), BLITZ_ON_EMPTY(END, on_end)};
static const blitz_behaviour worker = {.name = "worker", .handlers = handlers, .handler_count = 3};

static void start(blitz_duration shutdown)
{
    blitz_child_spec children[] = {{.id = "asks", .behaviour = &worker, .shutdown = shutdown},
                                   {.id = "other", .behaviour = &worker}};
    blitz_supervisor_plan plan = {
        .strategy = BLITZ_ONE_FOR_ALL, .children = children, .child_count = 2};
    CHECK_EQ(blitz_supervisor_spawn(&plan, NULL, &sup), 0);
    atomic_store(&asked, 1);
    atomic_store(&will_ask, false);
}

static blitz_actor_id child(const char *id)
{
    blitz_actor_id out;
    CHECK_EQ(blitz_supervisor_which(sup, id, &out), 0);
    return out;
}

/* The child is in its handler, and asks as soon as the supervisor waits. */
static blitz_actor_id let_ask(void)
{
    blitz_actor_id asks = child("asks");
    CHECK_EQ(blitz_actor_send(asks, ASK, NULL, 0), 0);
    while (!atomic_load(&will_ask))
        blitz_yield();
    return asks;
}

static void stop(void)
{
    CHECK_EQ(blitz_actor_stop(sup), 0);
    int rc = blitz_actor_join(sup, NULL, BLITZ_FOREVER);
    CHECK(rc == 0 || rc == -ESRCH);
}

static int restarts(void *arg)
{
    (void)arg;
    start(BLITZ_MS);
    blitz_actor_id other = child("other"), asks = let_ask();
    CHECK_EQ(blitz_actor_send(other, CRASH, NULL, 0), 0);
    while (blitz_actor_is_alive(asks))
        blitz_yield();
    CHECK_EQ(atomic_load(&asked), -ECANCELED); /* by the kill */
    CHECK(!blitz_actor_id_equal(child("asks"), asks));
    stop();
    return 0;
}

/* The supervisor waits for a child that waits for the supervisor: the kill ends both waits. */
TEST(supervisor_ask, bug_39_a_child_that_asks_is_killed_at_its_deadline_by_a_restart)
{
    t_on_each(restarts, NULL, 0);
}

static int ends(void *arg)
{
    (void)arg;
    start(BLITZ_MS);
    blitz_actor_id asks = let_ask();
    stop();
    CHECK_EQ(atomic_load(&asked), -ECANCELED);
    CHECK(!blitz_actor_is_alive(asks));
    return 0;
}

TEST(supervisor_ask, bug_39_a_child_that_asks_is_killed_at_its_deadline_by_a_stop)
{
    t_on_each(ends, NULL, 0);
}

static int ends_itself(void *arg)
{
    (void)arg;
    start(3600 * BLITZ_S); /* not by the kill */
    blitz_actor_id asks = child("asks");
    CHECK_EQ(blitz_actor_send(asks, END, NULL, 0), 0);
    while (blitz_actor_is_alive(asks))
        blitz_yield();
    CHECK_EQ(atomic_load(&asked), 0);
    CHECK_EQ(child("asks").generation, 0u);
    stop();
    return 0;
}

TEST(supervisor_ask, a_child_ends_itself_by_its_supervisor)
{
    t_on_each(ends_itself, NULL, 0);
}

static int leaves(void *arg)
{
    blitz_child_spec spec = {
        .id = "new", .behaviour = &worker, .name = "new", .restart = BLITZ_TEMPORARY};
    (void)arg;
    blitz_task_cancel(blitz_task_current());
    CHECK_EQ(blitz_supervisor_start(sup, &spec, NULL), -ECANCELED);
    CHECK_EQ(blitz_supervisor_terminate(sup, "other"), -ECANCELED);
    return 0;
}

static int cancels(void *arg)
{
    blitz_task *t;
    (void)arg;
    start(BLITZ_MS);
    CHECK_EQ(blitz_spawn(leaves, NULL, NULL, &t), 0);
    CHECK_EQ(blitz_task_join(t, NULL, BLITZ_FOREVER), 0);
    CHECK(child("new").generation != 0); /* behind both orders */
    CHECK_EQ(child("other").generation, 0u);
    stop();
    return 0;
}

/* The order is in the message: the frame of a caller that leaves is not read. */
TEST(supervisor_ask, a_caller_that_leaves_has_given_its_order)
{
    static const unsigned procs[] = {1, 2, 3};
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(blitz_run(cancels, NULL,
                           &(blitz_runtime_opts){.procs = procs[i], .allocator = &counted}),
                 0);
        CHECK_EQ(counted_blocks(), 0);
    }
}
