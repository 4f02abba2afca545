/* The policies of overload: what is dropped, what is refused, what is counted. */
#include "harness.h"

#include <errno.h>
#include <string.h>

#include "support/alone.h"
#include "support/counted.h"
#include "support/sink.h"

static const blitz_behaviour drops_newest = {.handlers = sink_handlers,
                                             .handler_count = 2,
                                             .mailbox_high = HIGH,
                                             .policy = BLITZ_OVERLOAD_DROP_NEWEST};
static const blitz_behaviour drops_oldest = {.handlers = sink_handlers,
                                             .handler_count = 2,
                                             .mailbox_high = HIGH,
                                             .policy = BLITZ_OVERLOAD_DROP_OLDEST};
static const blitz_behaviour fails = {.handlers = sink_handlers,
                                      .handler_count = 2,
                                      .mailbox_high = HIGH,
                                      .policy = BLITZ_OVERLOAD_FAIL};
static const blitz_behaviour capped = {
    .handlers = sink_handlers, .handler_count = 2, .mailbox_max = 50}; /* below the mark */

/* Send 100 messages to a sink that has no turn meanwhile. Returns how many were refused. */
static long flood(const blitz_behaviour *b, blitz_actor_id *to)
{
    long no = 0;
    given(QUICK);
    *to = spawn_sink(b);
    for (long i = 1; i <= 100; i++) {
        int rc = blitz_actor_send(*to, TAKE, &i, sizeof i);
        CHECK(rc == 0 || rc == -EAGAIN);
        no += rc != 0;
    }
    return no;
}

static int plays_policies(void *arg)
{
    blitz_actor_id to;
    (void)arg;
    CHECK_EQ(flood(&drops_newest, &to), 0);
    CHECK_EQ(blitz_actor_call(to, ASK, NULL, 0, NULL, 0, BLITZ_FOREVER), -EAGAIN);
    uint64_t dropped = info_of(to).dropped;
    CHECK(dropped >= 100 - HIGH - 1 && dropped <= 100 - HIGH + 1);
    await_state(to, BLITZ_ACTOR_IDLE);
    CHECK_EQ(taken, 100 - (long)dropped);
    CHECK_EQ(last_taken, taken); /* the oldest were kept */

    long no = flood(&fails, &to);
    CHECK(no >= 100 - HIGH - 1 && no <= 100 - HIGH + 1);
    CHECK_EQ(blitz_actor_call(to, ASK, NULL, 0, NULL, 0, BLITZ_FOREVER), -EAGAIN);
    await_state(to, BLITZ_ACTOR_IDLE);
    CHECK_EQ(taken, 100 - no);
    CHECK_EQ(info_of(to).dropped, 0u);

    no = flood(&capped, &to);
    CHECK(no >= 49 && no <= 51);
    return 0;
}

TEST(overload, what_is_dropped_or_refused_follows_the_policy)
{
    CHECK_EQ(t_run_alone(plays_policies, NULL), 0);
}

static int calls(void *id)
{
    return blitz_actor_call(*(blitz_actor_id *)id, ASK, NULL, 0, NULL, 0, BLITZ_FOREVER);
}

static int drops_the_oldest(void *arg)
{
    (void)arg;
    given(ASLEEP);
    blitz_actor_id to = spawn_sink(&drops_oldest);
    CHECK_EQ(blitz_actor_send(to, TAKE, &(long){1}, sizeof(long)), 0);
    await_state(to, BLITZ_ACTOR_WAITING);
    for (long i = 2; i <= 1000; i++)
        CHECK_EQ(blitz_actor_send(to, TAKE, &i, sizeof i), 0);
    mood = QUICK;
    blitz_event_set(&dawn);
    await_state(to, BLITZ_ACTOR_IDLE);
    CHECK_EQ(info_of(to).dropped, 1000u - (uint64_t)taken);
    CHECK(taken >= HIGH && taken <= HIGH + 101); /* a turn, and the mark */
    CHECK_EQ(last_taken, 1000);
    CHECK_EQ(out_of_order, 0);

    /* A call that is dropped is told. It is behind the messages of the first turn. */
    blitz_event_reset(&dawn);
    mood = ASLEEP;
    blitz_task *t;
    int rc = 0;
    for (long i = 1001; i <= 1300; i++) {
        CHECK_EQ(blitz_actor_send(to, TAKE, &i, sizeof i), 0);
        if (i == 1001)
            await_state(to, BLITZ_ACTOR_WAITING);
        if (i != 1150)
            continue;
        CHECK_EQ(blitz_spawn(calls, &to, NULL, &t), 0);
        blitz_yield();
    }
    mood = QUICK;
    blitz_event_set(&dawn);
    CHECK_EQ(blitz_task_join(t, &rc, BLITZ_FOREVER), 0);
    CHECK_EQ(rc, -EAGAIN);
    return 0;
}

TEST(overload, the_oldest_messages_are_dropped_and_counted)
{
    CHECK_EQ(t_run_alone(drops_the_oldest, NULL), 0);
}

/* ---- cargo ---- */

/* Send 100 messages with a binary and 100 with a block to a sink that has no turn meanwhile. The block of a refused one stays. */
static void load_up(const blitz_behaviour *b, blitz_binary *shared, long refused)
{
    given(QUICK);
    blitz_actor_id to = spawn_sink(b);
    long no = 0;
    for (long i = 1; i <= 100; i++) {
        void *block = blitz_msg_alloc(100);
        CHECK_NOT_NULL(block);
        int rc = blitz_actor_send_with(to, TAKE, &i, sizeof i, &(blitz_cargo){.binary = shared});
        CHECK(rc == 0 || rc == -EAGAIN);
        rc = blitz_actor_send_with(to, TAKE, &i, sizeof i,
                                   &(blitz_cargo){.move = BLITZ_MOVE(block)});
        CHECK_EQ(block == NULL, rc == 0);
        no += rc != 0;
        blitz_msg_drop(block);
    }
    CHECK_EQ(no > 0, refused);
    await_state(to, BLITZ_ACTOR_IDLE);
}

static int drops_cargo(void *arg)
{
    blitz_binary *shared;
    (void)arg;
    CHECK_EQ(blitz_binary_new(1000, &shared), 0);
    load_up(&drops_newest, shared, false);
    load_up(&drops_oldest, shared, false);
    load_up(&fails, shared, true);
    load_up(&capped, shared, true);
    CHECK_NOT_NULL(blitz_binary_bytes(shared)); /* ours is the only reference */
    blitz_binary_unref(shared);
    return 0;
}

TEST(overload, bug_39_the_cargo_of_a_dropped_message_is_freed)
{
    CHECK_EQ(blitz_run(drops_cargo, NULL, &(blitz_runtime_opts){.procs = 1, .allocator = &counted}),
             0);
    CHECK_EQ(counted_blocks(), 0);
}

static int fills_with_cargo(void *to)
{
    for (long i = 1; i <= 10 * HIGH; i++) {
        void *block = blitz_msg_alloc(100);
        CHECK_EQ(blitz_actor_send_with(*(blitz_actor_id *)to, TAKE, &i, sizeof i,
                                       &(blitz_cargo){.move = BLITZ_MOVE(block)}),
                 0);
        CHECK_NULL(block);
        CHECK(info_of(*(blitz_actor_id *)to).mailbox <= HIGH + 2);
    }
    return 0;
}

/* A future with cargo is pending while the receiver is overloaded. A cancelled one leaves the cargo with its sender. */
static int waits_with_cargo(void *arg)
{
    blitz_actor_send_future f;
    (void)arg;
    given(QUICK);
    blitz_actor_id to = spawn_sink(&sink);
    CHECK_EQ(fills_with_cargo(&to), 0);
    await_state(to, BLITZ_ACTOR_IDLE);
    given(STUCK);
    for (long i = 1; i <= HIGH + 1; i++)
        CHECK_EQ(blitz_actor_send(to, TAKE, &i, sizeof i), 0);
    void *block = blitz_msg_alloc(100);
    blitz_cargo cargo = {.move = BLITZ_MOVE(block)};
    long value = 1000;
    blitz_actor_send_with_future_init(&f, to, TAKE, &value, sizeof value, &cargo);
    CHECK_EQ(blitz_await(&f.future, blitz_after(BLITZ_MS)), -ETIMEDOUT);
    CHECK_NOT_NULL(block);
    blitz_actor_send_with_future_init(&f, to, TAKE, &value, sizeof value, &cargo);
    mood = QUICK;
    CHECK_EQ(blitz_await(&f.future, BLITZ_FOREVER), 0);
    CHECK_EQ(f.result, 0);
    CHECK_NULL(block);
    await_state(to, BLITZ_ACTOR_IDLE);
    CHECK_EQ(last_taken, 1000);
    return 0;
}

TEST(overload, a_send_with_cargo_is_held_back)
{
    CHECK_EQ(
        blitz_run(waits_with_cargo, NULL, &(blitz_runtime_opts){.procs = 2, .allocator = &counted}),
        0);
    CHECK_EQ(counted_blocks(), 0);
}

/* ---- the alarm ---- */

static atomic_int alarms;

static void count_alarms(void *ctx, blitz_log_level level, const char *message)
{
    (void)ctx, (void)level;
    alarms += strstr(message, "in its mailbox") != NULL;
}

static void sleep_and_fill(blitz_actor_id to, int count)
{
    blitz_event_reset(&dawn);
    mood = ASLEEP;
    for (long i = 0; i < count; i++) {
        CHECK_EQ(blitz_actor_send(to, TAKE, &i, sizeof i), 0);
        if (i == 0)
            await_state(to, BLITZ_ACTOR_WAITING);
    }
    mood = QUICK;
    blitz_event_set(&dawn);
    await_state(to, BLITZ_ACTOR_IDLE);
}

static int is_alarmed(void *arg)
{
    (void)arg;
    given(QUICK);
    blitz_actor_id to = spawn_sink(&sink);
    sleep_and_fill(to, 9 * HIGH);
    CHECK_EQ(alarms, 0);
    sleep_and_fill(to, 20 * HIGH);
    CHECK_EQ(alarms, 1); /* once */
    sleep_and_fill(to, 20 * HIGH);
    CHECK_EQ(alarms, 2); /* again, for the next overload */
    return 0;
}

TEST(overload, a_very_long_mailbox_is_logged_once_for_each_overload)
{
    CHECK_EQ(blitz_log_set(count_alarms, NULL, BLITZ_LOG_WARN), 0);
    CHECK_EQ(t_run_alone(is_alarmed, NULL), 0);
}

/* Fill the mailbox of a sink that sleeps, and kill it. */
static int dies_alarmed(void *arg)
{
    blitz_actor_id was = {0, 0, 0, 0};
    (void)arg;
    for (int lives = 1; lives <= 3; lives++) {
        given(QUICK);
        blitz_actor_id to = spawn_sink(&sink);
        CHECK(lives == 1 || to.index == was.index); /* the same memory */
        was = to;
        blitz_event_reset(&dawn);
        mood = ASLEEP;
        for (long i = 0; i < 20 * HIGH; i++) {
            CHECK_EQ(blitz_actor_send(to, TAKE, &i, sizeof i), 0);
            if (i == 0)
                await_state(to, BLITZ_ACTOR_WAITING);
        }
        CHECK_EQ(alarms, lives);
        CHECK_EQ(blitz_actor_kill(to), 0);
        while (blitz_actor_join(to, NULL, BLITZ_FOREVER) == 0)
            ;
    }
    return 0;
}

/* The mark of the report was left in the memory of the dead actor. */
TEST(overload, a_long_mailbox_is_logged_also_in_the_memory_of_one_that_died_with_such)
{
    alarms = 0;
    CHECK_EQ(blitz_log_set(count_alarms, NULL, BLITZ_LOG_WARN), 0);
    CHECK_EQ(t_run_alone(dies_alarmed, NULL), 0);
}
