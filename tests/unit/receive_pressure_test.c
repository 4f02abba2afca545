/* Back-pressure of tasks that receive: senders wait or are muted, but not for a task that waits; and nothing is left behind. */
#include "harness.h"

#include <errno.h>
#include <stdatomic.h>

#include "actor/pressure.h"
#include "blitz.h"
#include "support/alone.h"
#include "support/on_each.h"

enum { ONE, LAST, GO };
enum { MANY = 5000, HIGH = BZ_MAILBOX_HIGH };

static atomic_long sent, received;

static uint32_t length_of(blitz_actor_id id)
{
    blitz_actor_info info;
    CHECK_EQ(blitz_actor_info_get(id, &info), 0);
    return info.mailbox;
}

static blitz_actor_id begin(void)
{
    blitz_actor_id me;
    CHECK_EQ(blitz_receiver_begin(NULL, &me), 0);
    sent = received = 0;
    return me;
}

static void receive_one(void)
{
    const blitz_msg *m;
    CHECK_EQ(blitz_receive(NULL, NULL, &m, BLITZ_FOREVER), 0);
    CHECK_EQ(*(const long *)m->data, received); /* in order, and none is lost */
    received++;
}

/* ---- fibers ---- */

struct flood {
    blitz_actor_id to;
    uint32_t last; /* the kind of the last message */
};

static int floods(void *arg)
{
    const struct flood *f = arg;
    for (long i = 0; i < MANY; i++) {
        int rc = blitz_actor_send(f->to, i + 1 < MANY ? ONE : f->last, &i, sizeof i);
        if (rc != 0)
            return rc;
        sent++;
    }
    return 0;
}

static int waits_for_room(void *arg)
{
    struct flood f = {begin(), ONE};
    blitz_task *t;
    uint32_t longest = 0;
    (void)arg;
    CHECK_EQ(blitz_spawn(floods, &f, NULL, &t), 0);
    while (received < MANY) {
        blitz_yield();
        uint32_t length = length_of(f.to);
        longest = length > longest ? length : longest;
        receive_one();
    }
    CHECK(longest >= HIGH &&
          longest <= HIGH + 120); /* the last turn of the small actor is counted twice */
    CHECK_EQ(blitz_task_join(t, NULL, BLITZ_FOREVER), 0);
    CHECK_EQ(length_of(f.to), 0u);
    return 0;
}

/* Without it the inbox of a slow task fills the memory. */
TEST(receive_pressure, a_fiber_waits_in_its_send_until_the_low_mark)
{
    bz_mute_ns = 3600 * BLITZ_S; /* the time lets none go on here */
    CHECK_EQ(t_run_alone(waits_for_room, NULL), 0);
}

/* ---- actors ---- */

BLITZ_HANDLER(on_go, void, struct flood)
{
    (void)state, (void)m;
    long i = sent++;
    CHECK_EQ(blitz_actor_send(data->to, ONE, &i, sizeof i), 0);
    return sent < MANY ? blitz_actor_send(blitz_actor_self(), GO, data, sizeof *data) : 0;
}

static const blitz_handler handlers[] = {{GO, sizeof(struct flood), on_go}};
static const blitz_behaviour source = {.name = "source", .handlers = handlers, .handler_count = 1};

static int mutes(void *arg)
{
    struct flood f = {begin(), ONE};
    blitz_actor_id from;
    blitz_actor_info info = {.state = BLITZ_ACTOR_IDLE};
    (void)arg;
    CHECK_EQ(blitz_actor_spawn(&source, NULL, NULL, &from), 0);
    CHECK_EQ(blitz_actor_send(from, GO, &f, sizeof f), 0);
    while (info.state != BLITZ_ACTOR_MUTED) {
        blitz_yield();
        CHECK_EQ(blitz_actor_info_get(from, &info), 0);
    }
    CHECK(sent >= HIGH && sent < HIGH + 200);
    long at_mute = sent;
    while (length_of(f.to) > HIGH / 2 + 2) {
        receive_one();
        blitz_yield();
    }
    CHECK_EQ(sent, at_mute); /* it stays muted down to the low mark */
    while (received < MANY)
        receive_one();
    CHECK_EQ(sent, MANY);
    return 0;
}

TEST(receive_pressure, an_actor_is_muted_until_the_low_mark)
{
    bz_mute_ns = 3600 * BLITZ_S;
    CHECK_EQ(t_run_alone(mutes, NULL), 0);
}

/* ---- tasks that wait hold no sender back ---- */

static bool is_last(const blitz_msg *m, void *ctx)
{
    (void)ctx;
    return m->what == LAST;
}

static int wants_the_last(void *arg)
{
    struct flood f = {begin(), LAST};
    const blitz_msg *m;
    blitz_task *t;
    (void)arg;
    CHECK_EQ(blitz_spawn(floods, &f, NULL, &t), 0);
    CHECK_EQ(blitz_receive(is_last, NULL, &m, BLITZ_FOREVER), 0);
    CHECK_EQ(*(const long *)m->data, MANY - 1);
    CHECK_EQ(blitz_task_join(t, NULL, BLITZ_FOREVER), 0);
    for (long i = 0; i < MANY - 1; i++)
        receive_one(); /* the others have stayed, in order */
    return 0;
}

/* A task that waits for the message of a sender that is held back would wait for ever. */
TEST(receive_pressure, bug_39_a_task_gets_the_message_it_waits_for_though_it_is_overloaded)
{
    bz_mute_ns = 3600 * BLITZ_S;
    t_hold_procs();
    t_on_each(wants_the_last, NULL, 0);
}

static int joins_its_sender(void *arg)
{
    struct flood f = {begin(), ONE};
    blitz_task *t;
    (void)arg;
    CHECK_EQ(blitz_spawn(floods, &f, NULL, &t), 0);
    CHECK_EQ(blitz_task_join(t, NULL, BLITZ_FOREVER), 0);
    while (received < MANY)
        receive_one();
    return 0;
}

TEST(receive_pressure, bug_39_a_task_may_join_its_sender)
{
    t_on_each(joins_its_sender, NULL, 0);
}

/* ---- ends ---- */

static int ends_overloaded(void *flood)
{
    struct flood *f = flood;
    f->to = begin();
    while (sent < HIGH)
        blitz_yield();
    for (int i = 0; i < 10; i++)
        blitz_yield();
    return 0;
}

static int ends(void *arg)
{
    struct flood f[2] = {{.last = ONE}, {.last = ONE}};
    blitz_actor_id id;
    blitz_task *t[2];
    int result;
    (void)arg;
    for (int round = 0; round < 5; round++) {
        f[0].to.generation = 0;
        CHECK_EQ(blitz_spawn(ends_overloaded, &f[0], NULL, &t[0]), 0);
        while (f[0].to.generation == 0)
            blitz_yield();
        CHECK_EQ(blitz_spawn(floods, &f[0], NULL, &t[1]), 0);
        CHECK_EQ(blitz_task_join(t[0], NULL, BLITZ_FOREVER), 0);
        CHECK_EQ(blitz_task_join(t[1], &result, BLITZ_FOREVER), 0);
        CHECK_EQ(result, -ESRCH); /* the end of the task lets its senders go on */
    }
    for (int i = 0; i < 20; i++) { /* the next actors in this memory begin with empty mailboxes */
        CHECK_EQ(blitz_actor_spawn(&source, NULL, NULL, &id), 0);
        CHECK_EQ(blitz_actors_wait_quiet(NULL, BLITZ_FOREVER), 0);
        CHECK_EQ(length_of(id), 0u);
        struct flood nothing = {{0, 0, 0, 0}, 0};
        sent = MANY;
        for (int n = 0; n < 10; n++)
            CHECK_EQ(blitz_actor_try_send(id, ONE, &nothing, sizeof nothing), 0);
    }
    return 0;
}

TEST(receive_pressure, an_overloaded_task_ends_and_leaves_no_count_behind)
{
    bz_mute_ns = 3600 * BLITZ_S;
    CHECK_EQ(t_run_alone(ends, NULL), 0);
}
