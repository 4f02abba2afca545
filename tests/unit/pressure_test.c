/* Back-pressure: muted actors, sends that wait, policies of overload. */
#include "harness.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>

#include "actor/pressure.h"
#include "blitz.h"
#include "support/alone.h"
#include "support/sink.h"

enum { PUMP = 8, RING };

static atomic_long pumped, refused, ended;

/* A pump sends one message for each that it gets. */
struct pump {
    blitz_actor_id to;
    uint32_t what; /* TAKE, or PUMP: to another pump */
    long sent;
};

BLITZ_HANDLER(on_pump, struct pump, void)
{
    (void)data, (void)m;
    state->sent++;
    size_t size = state->what == TAKE ? sizeof state->sent : 0;
    int rc = blitz_actor_send(state->to, state->what, &state->sent, size);
    CHECK(rc == 0 || rc == -ESRCH || rc == -EAGAIN);
    refused += rc != 0;
    pumped++;
    return 0;
}

static void on_end(void *state, const blitz_exit_reason *why)
{
    (void)state, (void)why;
    ended++;
}

static const blitz_handler pump_handlers[] = {{PUMP, 0, on_pump}};
static const blitz_behaviour pump = {.name = "pump",
                                     .state_bytes = sizeof(struct pump),
                                     .handlers = pump_handlers,
                                     .handler_count = 1,
                                     .exit = on_end};

static blitz_actor_id spawn_pump(blitz_actor_id to, int messages)
{
    blitz_actor_id id;
    CHECK_EQ(blitz_actor_spawn(&pump, &(struct pump){.to = to}, NULL, &id), 0);
    for (int i = 0; i < messages; i++)
        CHECK_EQ(blitz_actor_send(id, PUMP, NULL, 0), 0);
    return id;
}

/* ---- muting ---- */

static int mutes_a_pump(void *arg)
{
    (void)arg;
    given(SLOW);
    blitz_actor_id to = spawn_sink(&sink), from = spawn_pump(to, 500);
    await_state(from, BLITZ_ACTOR_MUTED);
    CHECK(pumped >= HIGH && pumped < 500);
    uint32_t longest = 0;
    while (taken < 500) {
        uint32_t length = info_of(to).mailbox;
        longest = length > longest ? length : longest;
        blitz_yield();
    }
    CHECK(longest <= HIGH + 3); /* one message is sent before the mute */
    CHECK_EQ(out_of_order, 0);
    await_state(from, BLITZ_ACTOR_IDLE);
    return 0;
}

/* Without it a fast sender fills the memory with messages for a slow receiver. */
TEST(pressure, an_actor_that_sends_to_an_overloaded_one_is_muted_until_the_low_mark)
{
    bz_mute_ns = 3600 * BLITZ_S; /* the time unmutes none here */
    CHECK_EQ(t_run_alone(mutes_a_pump, NULL), 0);
}

static int ends_muted(void *arg)
{
    (void)arg;
    given(STUCK);
    blitz_actor_id to = spawn_sink(&sink), from[3];
    for (int i = 0; i < 3; i++) {
        from[i] = spawn_pump(to, 200);
        await_state(from[i], BLITZ_ACTOR_MUTED);
    }
    blitz_exit_reason why;
    CHECK_EQ(blitz_actor_stop(from[0]), 0);
    int rc = blitz_actor_join(from[0], &why, BLITZ_FOREVER);
    CHECK(rc == -ESRCH || (rc == 0 && why.kind == BLITZ_EXIT_SHUTDOWN));
    CHECK_EQ(blitz_actor_kill(from[1]), 0);
    rc = blitz_actor_join(from[1], &why, BLITZ_FOREVER);
    CHECK(rc == -ESRCH || (rc == 0 && why.kind == BLITZ_EXIT_KILLED));
    CHECK_EQ(ended, 2);
    CHECK_EQ(info_of(from[2]).state, BLITZ_ACTOR_MUTED); /* left to the end of the runtime */
    mood = SLOW;
    return 0;
}

TEST(pressure, a_muted_actor_ends_by_stop_by_kill_and_with_the_runtime)
{
    bz_mute_ns = 3600 * BLITZ_S;
    CHECK_EQ(t_run_alone(ends_muted, NULL), 0);
    CHECK_EQ(ended, 3);
}

static int dies_overloaded(void *arg)
{
    (void)arg;
    given(STUCK);
    blitz_actor_id to = spawn_sink(&sink), from = spawn_pump(to, 200);
    await_state(from, BLITZ_ACTOR_MUTED);
    CHECK_EQ(blitz_actor_kill(to), 0);
    mood = QUICK;
    await_count(&pumped, 200);
    CHECK(refused >= 200 - HIGH - 3);
    return 0;
}

TEST(pressure, the_death_of_the_receiver_unmutes)
{
    bz_mute_ns = 3600 * BLITZ_S;
    CHECK_EQ(t_run_alone(dies_overloaded, NULL), 0);
}

static int mutes_for_a_time(void *arg)
{
    (void)arg;
    given(STUCK);
    blitz_actor_id to = spawn_sink(&sink), from = spawn_pump(to, 200);
    await_state(from, BLITZ_ACTOR_MUTED);
    long before = pumped;
    await_count(&pumped, before + 3);
    CHECK_EQ(taken, 0);
    mood = QUICK;
    await_count(&taken, 200);
    return 0;
}

/* A receiver that began to wait for its sender would otherwise wait for ever. */
TEST(pressure, a_mute_ends_in_time)
{
    bz_mute_ns = BLITZ_MS;
    CHECK_EQ(t_run_alone(mutes_for_a_time, NULL), 0);
}

static int fills_a_sleeper(void *arg)
{
    (void)arg;
    given(ASLEEP);
    blitz_actor_id to = spawn_sink(&sink);
    CHECK_EQ(blitz_actor_send(to, TAKE, &(long){1}, sizeof(long)), 0);
    await_state(to, BLITZ_ACTOR_WAITING);
    blitz_actor_id from = spawn_pump(to, 200);
    await_count(&pumped, 200);
    await_state(from, BLITZ_ACTOR_IDLE);
    for (long i = 0; i < 100; i++) /* a fiber does not wait either */
        CHECK_EQ(blitz_actor_send(to, TAKE, &(long){1000 + i}, sizeof(long)), 0);
    CHECK_EQ(taken, 0);
    CHECK(info_of(to).mailbox >= 300);
    blitz_event_set(&dawn);
    await_count(&taken, 301);
    return 0;
}

TEST(pressure, a_receiver_that_waits_in_a_handler_holds_no_sender_back)
{
    bz_mute_ns = 3600 * BLITZ_S;
    CHECK_EQ(t_run_alone(fills_a_sleeper, NULL), 0);
}

/* ---- cycles ---- */

enum { NODES = 4, TOKENS = 60, LAPS = 50 };
static blitz_actor_id node[NODES];
static atomic_long hops;

BLITZ_HANDLER(on_ring, int, int) /* NOLINT(readability-non-const-parameter) */
{
    (void)m;
    hops++;
    int left = *data - 1;
    return left > 0 ? blitz_actor_send(node[*state], RING, &left, sizeof left) : 0;
}

static int goes_round(void *arg)
{
    static const blitz_handler on[] = {{RING, sizeof(int), on_ring}};
    static const blitz_behaviour ring = {.name = "ring",
                                         .state_bytes = sizeof(int),
                                         .handlers = on,
                                         .handler_count = 1,
                                         .mailbox_high = HIGH};
    (void)arg;
    hops = 0;
    for (int i = 0; i < NODES; i++)
        CHECK_EQ(blitz_actor_spawn(&ring, &(int){(i + 1) % NODES}, NULL, &node[i]), 0);
    for (int i = 0; i < NODES * TOKENS; i++)
        CHECK_EQ(blitz_actor_send(node[i % NODES], RING, &(int){LAPS}, sizeof(int)), 0);
    await_count(&hops, (long)NODES * TOKENS * LAPS);
    return 0;
}

/* Each node is overloaded, and each sends to the next. A mute that would close the circle does not happen. */
TEST(pressure, bug_39_a_ring_of_overloaded_actors_makes_progress)
{
    bz_mute_ns = 3600 * BLITZ_S; /* not by the time */
    CHECK_EQ(t_run_alone(goes_round, NULL), 0);
    CHECK_EQ(blitz_run(goes_round, NULL, &(blitz_runtime_opts){.procs = 3}), 0);
}

/* ---- chains ---- */

static int fills_a_chain(void *arg)
{
    (void)arg;
    given(SLOW);
    pumped = 0;
    blitz_actor_id to = spawn_sink(&sink), middle, from;
    static const blitz_behaviour low_pump = {.name = "middle",
                                             .state_bytes = sizeof(struct pump),
                                             .handlers = pump_handlers,
                                             .handler_count = 1,
                                             .mailbox_high = HIGH};
    CHECK_EQ(blitz_actor_spawn(&low_pump, &(struct pump){.to = to}, NULL, &middle), 0);
    CHECK_EQ(blitz_actor_spawn(&pump, &(struct pump){.to = middle, .what = PUMP}, NULL, &from), 0);
    for (int i = 0; i < 600; i++)
        CHECK_EQ(blitz_actor_send(from, PUMP, NULL, 0), 0);
    uint32_t longest = 0;
    bool was_muted = false;
    while (taken < 600) {
        uint32_t one = info_of(to).mailbox, two = info_of(middle).mailbox;
        longest = one > longest ? one : longest;
        longest = two > longest ? two : longest;
        was_muted |= info_of(middle).state == BLITZ_ACTOR_MUTED && two > HIGH;
        blitz_yield();
    }
    CHECK(longest <= HIGH + 3);
    CHECK(was_muted); /* and overloaded: it holds its own sender back */
    return 0;
}

/* A stage that is muted stays muted when it becomes overloaded. Else the last mailbox of a pipeline grows without bound. */
TEST(pressure, the_pressure_goes_up_a_chain)
{
    bz_mute_ns = 3600 * BLITZ_S;
    CHECK_EQ(t_run_alone(fills_a_chain, NULL), 0);
}

/* ---- sends that wait ---- */

enum form { CALL, UNTIL, FUTURE, FORMS };

static int send_by(enum form form, blitz_actor_id to, long value, blitz_deadline until)
{
    blitz_actor_send_future f;
    if (form == CALL)
        return blitz_actor_send(to, TAKE, &value, sizeof value);
    if (form == UNTIL)
        return blitz_actor_send_until(to, TAKE, &value, sizeof value, until);
    blitz_actor_send_future_init(&f, to, TAKE, &value, sizeof value);
    int rc = blitz_await(&f.future, until);
    return rc != 0 ? rc : f.result;
}

static int waits_in_sends(void *arg)
{
    for (enum form form = CALL; form < FORMS; form++) {
        given(SLOW);
        blitz_actor_id to = spawn_sink(&sink);
        uint32_t longest = 0;
        for (long i = 1; i <= 300; i++) {
            CHECK_EQ(send_by(form, to, i, BLITZ_FOREVER), 0);
            uint32_t length = info_of(to).mailbox;
            longest = length > longest ? length : longest;
        }
        CHECK(longest <= HIGH + 3);
        await_count(&taken, 300);
        CHECK_EQ(out_of_order, 0);
    }
    (void)arg;
    return 0;
}

TEST(pressure, a_fiber_waits_in_its_send_until_the_low_mark)
{
    bz_mute_ns = 3600 * BLITZ_S;
    CHECK_EQ(t_run_alone(waits_in_sends, NULL), 0);
}

/* Fill the mailbox up to the mark, of a sink that is at its first message. */
static blitz_actor_id given_an_overloaded_sink(void)
{
    given(STUCK);
    blitz_actor_id to = spawn_sink(&sink);
    int rc;
    long i = 0;
    CHECK_EQ(blitz_actor_send(to, TAKE, &i, sizeof i), 0);
    await_count(&begun, 1);
    while ((rc = blitz_actor_try_send(to, TAKE, &i, sizeof i)) == 0)
        i++;
    CHECK_EQ(rc, -EAGAIN);
    CHECK(i >= HIGH - 1 && i <= HIGH + 1);
    return to;
}

static int gives_up(void *arg)
{
    (void)arg;
    blitz_actor_id to = given_an_overloaded_sink();
    uint32_t length = info_of(to).mailbox;
    CHECK_EQ(send_by(UNTIL, to, 1, blitz_after(BLITZ_MS)), -ETIMEDOUT);
    CHECK_EQ(send_by(UNTIL, to, 1, blitz_after(0)), -ETIMEDOUT);
    CHECK_EQ(send_by(FUTURE, to, 1, blitz_after(BLITZ_MS)), -ETIMEDOUT);
    CHECK_EQ(info_of(to).mailbox, length + 1); /* a bell; nothing was sent */
    mood = QUICK;
    await_state(to, BLITZ_ACTOR_IDLE);
    CHECK_EQ(taken, (long)length);
    CHECK_EQ(send_by(FUTURE, to, 1, BLITZ_FOREVER), 0);
    return 0;
}

TEST(pressure, a_send_that_gives_up_has_sent_nothing)
{
    bz_mute_ns = 3600 * BLITZ_S;
    CHECK_EQ(t_run_alone(gives_up, NULL), 0);
}

struct sender {
    blitz_actor_id to;
    enum form form;
};

static int sends_one(void *arg)
{
    struct sender *s = arg;
    return send_by(s->form, s->to, 1, BLITZ_FOREVER);
}

static int is_cancelled(void *arg)
{
    (void)arg;
    for (enum form form = CALL; form < FORMS; form++) {
        struct sender s = {given_an_overloaded_sink(), form};
        blitz_task *t;
        int rc = 0;
        CHECK_EQ(blitz_spawn(sends_one, &s, NULL, &t), 0);
        for (int i = 0; i < 5; i++)
            blitz_yield();
        blitz_task_cancel(t);
        CHECK_EQ(blitz_task_join(t, &rc, BLITZ_FOREVER), 0);
        CHECK_EQ(rc, -ECANCELED);
        CHECK_EQ(blitz_actor_kill(s.to), 0);
        mood = QUICK;
    }
    return 0;
}

TEST(pressure, a_cancel_ends_a_send_that_waits)
{
    bz_mute_ns = 3600 * BLITZ_S;
    CHECK_EQ(t_run_alone(is_cancelled, NULL), 0);
}

static int loses_its_receiver(void *arg)
{
    (void)arg;
    for (enum form form = CALL; form < FORMS; form++) {
        struct sender s = {given_an_overloaded_sink(), form};
        blitz_task *t[20]; /* more than one list of wake-ups holds */
        int rc = 0;
        for (int i = 0; i < 20; i++)
            CHECK_EQ(blitz_spawn(sends_one, &s, NULL, &t[i]), 0);
        for (int i = 0; i < 5; i++)
            blitz_yield();
        CHECK_EQ(blitz_actor_kill(s.to), 0);
        mood = QUICK;
        for (int i = 0; i < 20; i++) {
            CHECK_EQ(blitz_task_join(t[i], &rc, BLITZ_FOREVER), 0);
            CHECK_EQ(rc, -ESRCH);
        }
    }
    return 0;
}

TEST(pressure, the_death_of_the_receiver_ends_every_send_that_waits)
{
    bz_mute_ns = 3600 * BLITZ_S;
    CHECK_EQ(t_run_alone(loses_its_receiver, NULL), 0);
}

static int meets_a_sleeper(void *arg)
{
    (void)arg;
    struct sender s = {given_an_overloaded_sink(), CALL};
    blitz_task *t;
    int rc = -1;
    CHECK_EQ(blitz_spawn(sends_one, &s, NULL, &t), 0);
    for (int i = 0; i < 5; i++)
        blitz_yield();
    mood = ASLEEP; /* from here on the receiver waits */
    CHECK_EQ(blitz_task_join(t, &rc, BLITZ_FOREVER), 0);
    CHECK_EQ(rc, 0);
    CHECK_EQ(taken, 0);
    blitz_event_set(&dawn);
    await_state(s.to, BLITZ_ACTOR_IDLE);
    return 0;
}

/* It may wait for the very fiber that sends. */
TEST(pressure, a_send_does_not_wait_for_a_receiver_that_begins_to_wait)
{
    bz_mute_ns = BLITZ_MS;
    CHECK_EQ(t_run_alone(meets_a_sleeper, NULL), 0);
}

static void thread_sends(void *arg, int index)
{
    struct sender *s = arg;
    for (int i = 0; i < 300; i++)
        CHECK_EQ(send_by((enum form)(index % FORMS), s->to, 1, BLITZ_FOREVER), 0);
}

TEST(pressure, plain_threads_wait_in_their_sends)
{
    blitz_runtime *rt;
    struct sender s;
    given(SLOW);
    CHECK_EQ(blitz_runtime_new(&(blitz_runtime_opts){.procs = 2}, &rt), 0);
    CHECK_EQ(blitz_actor_spawn(&sink, NULL, &(blitz_actor_opts){.runtime = rt}, &s.to), 0);
    t_threads(3, thread_sends, &s);
    CHECK_EQ(blitz_actor_call(s.to, ASK, NULL, 0, NULL, 0, BLITZ_FOREVER), 0);
    CHECK_EQ(taken, 900);
    CHECK_EQ(blitz_runtime_shutdown(rt, BLITZ_FOREVER), 0);
    CHECK_EQ(blitz_runtime_unref(rt), 0);
}

/* ---- misuse ---- */

static int misuses(void *arg)
{
    char big[BLITZ_MSG_BYTES_MAX + 1] = {0};
    blitz_actor_id to = spawn_sink(&sink), none = {0, 0, 0, 0};
    blitz_actor_send_future f;
    (void)arg;
    CHECK_EQ(blitz_actor_try_send(to, TAKE, big, sizeof big), -EINVAL);
    CHECK_EQ(blitz_actor_send_until(to, TAKE, NULL, 1, BLITZ_FOREVER), -EINVAL);
    blitz_actor_send_future_init(&f, to, BLITZ_MSG_DOWN, NULL, 0);
    CHECK_EQ(blitz_await(&f.future, BLITZ_FOREVER), 0);
    CHECK_EQ(f.result, -EINVAL);
    blitz_actor_send_future_init(&f, none, TAKE, NULL, 0);
    CHECK_EQ(blitz_await(&f.future, BLITZ_FOREVER), 0);
    CHECK_EQ(blitz_future_output(&f.future), -ESRCH);
    CHECK_EQ(blitz_actor_try_send(none, TAKE, NULL, 0), -ESRCH);
    return 0;
}

TEST(pressure, bad_messages_are_refused_by_every_form_of_a_send)
{
    CHECK_EQ(t_run_alone(misuses, NULL), 0);
}
