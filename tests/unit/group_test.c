/* Groups: joining, leaving, sending to all; an actor that ends leaves its groups. */
#include "harness.h"

#include <errno.h>
#include <string.h>

#include "blitz.h"
#include "support/alone.h"
#include "support/counted.h"
#include "support/on_each.h"

enum { ADD, GET, QUIT, HANG, WATCH };

struct counter {
    long sum, last;
};

BLITZ_HANDLER(on_add, struct counter, long)
{
    if (m->binary != NULL)
        state->sum += (long)blitz_binary_size(m->binary);
    CHECK(*data > state->last); /* in the order of the sends */
    state->last = *data;
    state->sum += *data;
    return 0;
}

BLITZ_HANDLER(on_get, struct counter, void)
{
    (void)data;
    return blitz_actor_reply(m->reply, &state->sum, sizeof state->sum);
}

BLITZ_HANDLER(on_quit, struct counter, void)
{
    (void)state, (void)data, (void)m;
    return BLITZ_ACTOR_STOP;
}

BLITZ_HANDLER(on_hang, struct counter, void)
{
    (void)state, (void)data, (void)m;
    return blitz_sleep_until(BLITZ_FOREVER);
}

BLITZ_HANDLER(on_watch, struct counter, blitz_actor_id)
{
    uint64_t ref;
    (void)state, (void)m;
    return blitz_actor_monitor(*data, &ref);
}

enum { TOLD = 1000 }; /* and the members that the group had when we were told */

BLITZ_HANDLER(on_down, struct counter, blitz_down)
{
    (void)data, (void)m;
    state->sum = TOLD + blitz_group_members(NULL, "all", 0, NULL);
    return 0;
}

static const blitz_handler handlers[] = {BLITZ_ON(ADD, long, on_add),
                                         BLITZ_ON_EMPTY(GET, on_get),
                                         BLITZ_ON_EMPTY(QUIT, on_quit),
                                         BLITZ_ON_EMPTY(HANG, on_hang),
                                         BLITZ_ON(WATCH, blitz_actor_id, on_watch),
                                         BLITZ_ON(BLITZ_MSG_DOWN, blitz_down, on_down)};
static const blitz_behaviour counter = {.state_bytes = sizeof(struct counter),
                                        .handlers = handlers,
                                        .handler_count = sizeof handlers / sizeof *handlers,
                                        .mailbox_max = 1100};

static blitz_actor_id spawn_counter(void)
{
    blitz_actor_id id;
    CHECK_EQ(blitz_actor_spawn(&counter, NULL, NULL, &id), 0);
    return id;
}

static long sum_of(blitz_actor_id id)
{
    long sum = -1;
    CHECK_EQ(blitz_actor_call(id, GET, NULL, 0, &sum, sizeof sum, BLITZ_FOREVER), (int)sizeof sum);
    return sum;
}

static void await_end(blitz_actor_id id)
{
    int rc = blitz_actor_join(id, NULL, BLITZ_FOREVER);
    CHECK(rc == 0 || rc == -ESRCH);
}

static int send_all(const char *group, long value)
{
    return blitz_group_send(NULL, group, ADD, &value, sizeof value);
}

static int joins_and_leaves(void *arg)
{
    blitz_actor_id a = spawn_counter(), b = spawn_counter(), out[4];
    (void)arg;
    CHECK_EQ(send_all("all", 1), 0); /* there is no such group */
    CHECK_EQ(blitz_group_join("all", a), 0);
    CHECK_EQ(blitz_group_join("all", a), -EEXIST);
    CHECK_EQ(blitz_group_join("all", b), 0);
    CHECK_EQ(blitz_group_join("some", b), 0);
    CHECK_EQ(blitz_group_members(NULL, "all", 4, out), 2);
    CHECK(blitz_actor_id_equal(out[0], a) || blitz_actor_id_equal(out[1], a));
    CHECK(blitz_actor_id_equal(out[0], b) || blitz_actor_id_equal(out[1], b));
    memset(out, 0, sizeof out);
    CHECK_EQ(blitz_group_members(NULL, "all", 1, out), 2); /* more than there is room for */
    CHECK_EQ(out[1].generation, 0u);
    CHECK_EQ(send_all("all", 10), 2);
    CHECK_EQ(send_all("some", 100), 1);
    CHECK_EQ(blitz_group_leave("all", b), 0);
    CHECK_EQ(blitz_group_leave("all", b), -ESRCH);
    CHECK_EQ(send_all("all", 1000), 1);
    CHECK_EQ(blitz_group_join("all", b), 0); /* again */
    CHECK_EQ(send_all("all", 10000), 2);
    CHECK_EQ(sum_of(a), 11010);
    CHECK_EQ(sum_of(b), 10110);
    CHECK_EQ(blitz_group_leave("some", b), 0);
    CHECK_EQ(blitz_group_members(NULL, "some", 4, out), 0);
    return 0;
}

TEST(group, each_member_gets_a_message_until_it_leaves)
{
    t_on_each(joins_and_leaves, NULL, 0);
}

static int misuses(void *arg)
{
    blitz_actor_id id = spawn_counter(), dead = spawn_counter();
    blitz_binary *b;
    void *block = blitz_msg_alloc(10);
    (void)arg;
    CHECK_EQ(blitz_actor_send(dead, QUIT, NULL, 0), 0);
    await_end(dead);
    CHECK_EQ(blitz_group_join("all", dead), -ESRCH);
    CHECK_EQ(blitz_group_leave("all", dead), -ESRCH);
    CHECK_EQ(blitz_group_join("", id), -EINVAL);
    CHECK_EQ(blitz_group_join(NULL, id), -EINVAL);
    CHECK_EQ(blitz_group_join("a name that is longer than thirty-one bytes", id), -EINVAL);
    CHECK_EQ(blitz_group_leave(NULL, id), -EINVAL);
    CHECK_EQ(blitz_group_members(NULL, NULL, 0, NULL), -EINVAL);
    CHECK_EQ(blitz_group_send(NULL, NULL, ADD, NULL, 0), -EINVAL);
    CHECK_EQ(blitz_group_join("all", id), 0);
    CHECK_EQ(blitz_group_send(NULL, "all", BLITZ_MSG_DOWN, NULL, 0), -EINVAL);
    CHECK_EQ(blitz_group_send(NULL, "all", ADD, &id, BLITZ_MSG_BYTES_MAX + 1), -EINVAL);
    CHECK_EQ(blitz_group_send_with(NULL, "all", ADD, &(long){1}, sizeof(long),
                                   &(blitz_cargo){.move = BLITZ_MOVE(block)}),
             -EINVAL);
    CHECK_NOT_NULL(block);
    blitz_msg_drop(block);
    CHECK_EQ(blitz_binary_new(100, &b), 0);
    CHECK_EQ(blitz_group_send_with(NULL, "all", ADD, &(long){1}, sizeof(long),
                                   &(blitz_cargo){.binary = b}),
             1);
    CHECK_EQ(sum_of(id), 101);
    CHECK_NOT_NULL(blitz_binary_bytes(b));
    blitz_binary_unref(b);
    return 0;
}

TEST(group, bad_names_dead_actors_and_blocks_are_refused)
{
    CHECK_EQ(t_run_alone(misuses, NULL), 0);
    CHECK_EQ(blitz_group_members(NULL, "all", 0, NULL), -EINVAL); /* no runtime */
    CHECK_EQ(blitz_group_send(NULL, "all", ADD, NULL, 0), -EINVAL);
}

/* The ends of all kinds; a monitor that joined later than the group is told after the actor has left. */
static int ends(void *arg)
{
    (void)arg;
    for (int how = 0; how < 4; how++) {
        blitz_actor_id id = spawn_counter(), watcher = spawn_counter();
        CHECK_EQ(blitz_group_join("all", id), 0);
        CHECK_EQ(blitz_group_join("some", id), 0);
        CHECK_EQ(blitz_group_members(NULL, "all", 0, NULL), 1);
        CHECK_EQ(blitz_actor_send(watcher, WATCH, &id, sizeof id), 0);
        CHECK_EQ(sum_of(watcher), 0);
        CHECK_EQ(sum_of(id), 0); /* it has the monitor */
        CHECK_EQ(how == 0   ? blitz_actor_send(id, QUIT, NULL, 0)
                 : how == 1 ? blitz_actor_stop(id)
                 : how == 2 ? blitz_actor_kill(id)
                            : blitz_actor_send(id, HANG, NULL, 0),
                 0);
        if (how == 3) {
            blitz_yield();
            CHECK_EQ(blitz_actor_kill(id), 0);
        }
        while (sum_of(watcher) == 0)
            blitz_yield();
        CHECK_EQ(sum_of(watcher), TOLD);
        CHECK_EQ(blitz_group_members(NULL, "some", 0, NULL), 0);
        CHECK_EQ(send_all("all", 1), 0);
        CHECK_EQ(blitz_actor_kill(watcher), 0);
        await_end(watcher);
    }
    /* Left as members to the end of the runtime. */
    CHECK_EQ(blitz_group_join("all", spawn_counter()), 0);
    CHECK_EQ(blitz_group_join("all", spawn_counter()), 0);
    return 0;
}

TEST(group, an_actor_that_ends_has_left_its_groups_before_it_is_told)
{
    t_hold_procs();
    for (unsigned procs = 1; procs <= 3; procs++) {
        CHECK_EQ(
            blitz_run(ends, NULL, &(blitz_runtime_opts){.procs = procs, .allocator = &counted}), 0);
        CHECK_EQ(counted_blocks(), 0);
    }
}

/* An actor that joins and leaves for ever does not collect memory. */
static int comes_and_goes(void *arg)
{
    blitz_actor_id id = spawn_counter();
    long before = 0;
    (void)arg;
    for (int i = 0; i < 20000; i++) {
        if (i == 2000)
            before = counted_blocks();
        CHECK_EQ(blitz_group_join("all", id), 0);
        CHECK_EQ(blitz_group_leave("all", id), 0);
        if (i % 100 == 0)
            (void)sum_of(id);
    }
    CHECK_LE(counted_blocks(), before + 2); /* blocks of the slabs of messages */
    return 0;
}

TEST(group, one_that_joins_and_leaves_for_ever_keeps_nothing)
{
    t_hold_procs();
    CHECK_EQ(
        blitz_run(comes_and_goes, NULL, &(blitz_runtime_opts){.procs = 1, .allocator = &counted}),
        0);
}

static int is_large(void *arg)
{
    enum { MEMBERS = 300 };
    blitz_actor_id id[MEMBERS];
    (void)arg;
    for (int i = 0; i < MEMBERS; i++) {
        id[i] = spawn_counter();
        CHECK_EQ(blitz_group_join("all", id[i]), 0);
    }
    for (long value = 1; value <= 10; value++)
        CHECK_EQ(send_all("all", value), MEMBERS);
    for (int i = 0; i < MEMBERS; i++)
        CHECK_EQ(sum_of(id[i]), 55);
    /* A full mailbox is not reached. */
    CHECK_EQ(blitz_actor_send(id[7], HANG, NULL, 0), 0);
    while (blitz_actor_send(id[7], GET, NULL, 0) == 0)
        ;
    CHECK_EQ(send_all("all", 11), MEMBERS - 1);
    for (int i = 0; i < MEMBERS; i += 2)
        CHECK_EQ(blitz_actor_stop(id[i]), 0);
    for (int i = 0; i < MEMBERS; i += 2)
        await_end(id[i]);
    while (blitz_group_members(NULL, "all", 0, NULL) != MEMBERS / 2)
        blitz_yield(); /* a join of one that is ending does not wait for the last of it */
    return 0;
}

TEST(group, a_large_group_is_reached_whole)
{
    t_on_each(is_large, NULL, 0);
}

TEST(group, a_plain_thread_joins_and_sends_with_a_runtime)
{
    blitz_runtime *rt;
    blitz_actor_id id;
    CHECK_EQ(blitz_runtime_new(&(blitz_runtime_opts){.procs = 2}, &rt), 0);
    CHECK_EQ(blitz_actor_spawn(&counter, NULL, &(blitz_actor_opts){.runtime = rt}, &id), 0);
    CHECK_EQ(blitz_group_join("all", id), 0);
    CHECK_EQ(blitz_group_send(rt, "all", ADD, &(long){7}, sizeof(long)), 1);
    CHECK_EQ(sum_of(id), 7);
    CHECK_EQ(blitz_group_leave("all", id), 0);
    CHECK_EQ(blitz_group_members(rt, "all", 1, &id), 0);
    CHECK_EQ(blitz_runtime_shutdown(rt, BLITZ_FOREVER), 0);
    CHECK_EQ(blitz_runtime_unref(rt), 0);
}

/* ---- a runtime without actors ---- */

static int finds_nobody(void *arg)
{
    blitz_actor_id out = {0, 0, 0, 0}, id;
    CHECK_EQ(blitz_group_send(NULL, "all", ADD, NULL, 0), 0);
    CHECK_EQ(blitz_group_members(NULL, "all", 1, &out), 0);
    CHECK_EQ(blitz_actor_whereis(NULL, "all").generation, 0u);
    CHECK_EQ(blitz_actor_unregister(NULL, "all"), -ESRCH);
    /* The id of an actor of this runtime that was never there. */
    id = (blitz_actor_id){.index = 3, .generation = 1, .creation = *(uint32_t *)arg};
    CHECK_EQ(blitz_actor_call(id, ADD, NULL, 0, NULL, 0, BLITZ_FOREVER), -ESRCH);
    CHECK_EQ(blitz_actor_join(id, NULL, BLITZ_FOREVER), -ESRCH);
    CHECK_EQ(blitz_actor_send(id, ADD, NULL, 0), -ESRCH);
    CHECK_EQ(blitz_group_join("all", id), -ESRCH);
    CHECK_EQ(blitz_group_leave("all", id), -ESRCH);
    return 0;
}

TEST(group, a_runtime_that_never_had_an_actor_has_no_members)
{
    for (uint32_t creation = 0; creation < 4; creation++) /* its number is not public: try some */
        CHECK_EQ(t_run_alone(finds_nobody, &creation), 0);
}
