/* Actors: messages, calls, timers, names; how they end, and how they go to rest. */
#include "harness.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>

#include "blitz.h"
#include "support/alone.h"
#include "support/on_each.h"

enum { ADD, GET, KEEP, ANSWER, WAIT, FAIL, STOP, RELAY, SELF, COUNT_DOWN };

struct counter {
    long sum;
    blitz_reply_to kept;
    atomic_long *ended; /* counts `exit`; NULL: not wanted */
    long order_broken, last;
};

BLITZ_HANDLER(on_add, struct counter, long)
{
    state->order_broken += *data <= state->last && m->from.generation != 0;
    state->last = *data;
    state->sum += *data;
    return 0;
}

BLITZ_HANDLER(on_get, struct counter, void)
{
    (void)data;
    return blitz_actor_reply(m->reply, &state->sum, sizeof state->sum);
}

BLITZ_HANDLER(on_keep, struct counter, void)
{
    (void)data;
    state->kept = m->reply;
    return blitz_actor_reply_keep(m->reply);
}

BLITZ_HANDLER(on_answer, struct counter, void)
{
    (void)data, (void)m;
    return blitz_actor_reply(state->kept, &state->sum, sizeof state->sum);
}

/* Wait inside a behaviour; answer with the result of the wait. */
BLITZ_HANDLER(on_wait, struct counter, blitz_duration)
{
    int rc = blitz_sleep_until(blitz_after(*data));
    state->sum += 1000;
    return rc != 0 ? blitz_actor_reply_error(m->reply, rc)
                   : blitz_actor_reply(m->reply, &state->sum, sizeof state->sum);
}

BLITZ_HANDLER(on_fail, struct counter, void)
{
    (void)data, (void)m, (void)state;
    return blitz_actor_fail(-EIO, "disk gone");
}

BLITZ_HANDLER(on_stop, struct counter, void)
{
    (void)data, (void)m, (void)state;
    return BLITZ_ACTOR_STOP;
}

BLITZ_HANDLER(on_relay, struct counter, blitz_actor_id)
{
    (void)m;
    long got = 0;
    int rc = blitz_actor_call(*data, GET, NULL, 0, &got, sizeof got, BLITZ_FOREVER);
    state->sum += rc < 0 ? rc : got;
    return 0;
}

BLITZ_HANDLER(on_self, struct counter, void)
{
    (void)data, (void)state;
    blitz_actor_id self = blitz_actor_self();
    return blitz_actor_reply(m->reply, &self, sizeof self);
}

BLITZ_HANDLER(on_count_down, struct counter, long)
{
    (void)m;
    state->sum++;
    long left = *data - 1;
    return left > 0 ? blitz_actor_send(blitz_actor_self(), COUNT_DOWN, &left, sizeof left) : 0;
}

static void on_exit_of(void *state, const blitz_exit_reason *why)
{
    struct counter *c = state;
    (void)why;
    if (c->ended != NULL)
        ++*c->ended;
}

static const blitz_handler handlers[] = {
    BLITZ_ON(ADD, long, on_add),
    BLITZ_ON_EMPTY(GET, on_get),
    BLITZ_ON_EMPTY(KEEP, on_keep),
    BLITZ_ON_EMPTY(ANSWER, on_answer),
    BLITZ_ON(WAIT, blitz_duration, on_wait),
    BLITZ_ON_EMPTY(FAIL, on_fail),
    BLITZ_ON_EMPTY(STOP, on_stop),
    BLITZ_ON(RELAY, blitz_actor_id, on_relay),
    BLITZ_ON_EMPTY(SELF, on_self),
    BLITZ_ON(COUNT_DOWN, long, on_count_down),
};

static const blitz_behaviour counter = {.name = "counter",
                                        .state_bytes = sizeof(struct counter),
                                        .handlers = handlers,
                                        .handler_count = sizeof handlers / sizeof *handlers,
                                        .exit = on_exit_of};

static blitz_actor_id spawn_counter(atomic_long *ended)
{
    struct counter c = {.ended = ended};
    blitz_actor_id id;
    CHECK_EQ(blitz_actor_spawn(&counter, &c, NULL, &id), 0);
    return id;
}

static void send_long(blitz_actor_id id, uint32_t what, long value)
{
    CHECK_EQ(blitz_actor_send(id, what, &value, sizeof value), 0);
}

static long sum_of(blitz_actor_id id)
{
    long sum = -1;
    CHECK_EQ(blitz_actor_call(id, GET, NULL, 0, &sum, sizeof sum, BLITZ_FOREVER), (int)sizeof sum);
    return sum;
}

static void stop_and_join(blitz_actor_id id)
{
    int rc = blitz_actor_stop(id);
    CHECK(rc == 0 || rc == -ESRCH);
    rc = blitz_actor_join(id, NULL, BLITZ_FOREVER);
    CHECK(rc == 0 || rc == -ESRCH);
    CHECK(!blitz_actor_is_alive(id));
}

/* ---- messages ---- */

static int adds_and_asks(void *arg)
{
    (void)arg;
    blitz_actor_id id = spawn_counter(NULL);
    for (long i = 1; i <= 1000; i++)
        send_long(id, ADD, i);
    CHECK_EQ(sum_of(id), 500500);
    stop_and_join(id);
    return 0;
}

TEST(actor, messages_of_one_sender_arrive_once_and_in_order)
{
    CHECK_EQ(t_run_alone(adds_and_asks, NULL), 0);
    CHECK_EQ(blitz_run(adds_and_asks, NULL, &(blitz_runtime_opts){.procs = 2}), 0);
}

static int sends_in_vain(void *arg)
{
    atomic_long ended = 0;
    (void)arg;
    blitz_actor_id id = spawn_counter(&ended), none = {0, 0, 0, 0};
    char big[BLITZ_MSG_BYTES_MAX + 1] = {0};
    CHECK_EQ(blitz_actor_send(id, ADD, big, sizeof big), -EINVAL);
    CHECK_EQ(blitz_actor_send(id, ADD, NULL, 1), -EINVAL);
    CHECK_EQ(blitz_actor_send(id, BLITZ_MSG_DOWN, NULL, 0), -EINVAL);
    CHECK_EQ(blitz_actor_send(none, ADD, big, 1), -ESRCH);
    /* A message that has no handler, or another size, is dropped; a call is told. */
    CHECK_EQ(blitz_actor_send(id, 77, NULL, 0), 0);
    CHECK_EQ(blitz_actor_send(id, ADD, big, 1), 0);
    CHECK_EQ(blitz_actor_call(id, 77, NULL, 0, NULL, 0, BLITZ_FOREVER), -EOPNOTSUPP);
    CHECK_EQ(sum_of(id), 0);
    stop_and_join(id);
    CHECK_EQ(ended, 1);
    CHECK_EQ(blitz_actor_send(id, ADD, big, sizeof(long)), -ESRCH);
    CHECK_EQ(blitz_actor_call(id, GET, NULL, 0, NULL, 0, BLITZ_FOREVER), -ESRCH);
    CHECK_EQ(blitz_actor_stop(id), -ESRCH);
    CHECK_EQ(blitz_actor_kill(id), -ESRCH);
    CHECK_EQ(blitz_actor_join(id, NULL, BLITZ_FOREVER), -ESRCH);
    id.generation++; /* no actor has it: a peer may send such an id */
    CHECK(!blitz_actor_is_alive(id));
    CHECK_EQ(blitz_actor_send(id, ADD, big, sizeof(long)), -ESRCH);
    CHECK_EQ(blitz_actor_call(id, GET, NULL, 0, NULL, 0, blitz_after(BLITZ_S)), -ESRCH);
    CHECK_EQ(blitz_actor_join(id, NULL, blitz_after(BLITZ_S)), -ESRCH);
    return 0;
}

TEST(actor, a_send_to_an_ended_actor_is_refused)
{
    CHECK_EQ(t_run_alone(sends_in_vain, NULL), 0);
}

/* The memory is used again at once, and an old id must not reach its new actor. */
static int reuses_the_slot(void *arg)
{
    (void)arg;
    blitz_actor_id old = spawn_counter(NULL);
    stop_and_join(old);
    blitz_actor_id id = {0, 0, 0, 0};
    for (int i = 0; i < 200 && (id.generation == 0 || id.index != old.index); i++)
        id = spawn_counter(NULL);
    CHECK_EQ(id.index, old.index);
    CHECK(id.generation != old.generation);
    CHECK(!blitz_actor_id_equal(id, old));
    CHECK_EQ(blitz_actor_send(old, ADD, &(long){1}, sizeof(long)), -ESRCH);
    CHECK_EQ(sum_of(id), 0);
    return 0;
}

TEST(actor, an_old_id_does_not_reach_the_next_actor_in_its_memory)
{
    CHECK_EQ(t_run_alone(reuses_the_slot, NULL), 0);
}

/* A turn ends although the mailbox is never empty: a fiber beside the actor gets its turns. */
static int sends_to_itself(void *arg)
{
    (void)arg;
    blitz_actor_id id = spawn_counter(NULL);
    send_long(id, COUNT_DOWN, 100000);
    int looks = 0;
    while (sum_of(id) < 100000)
        looks++;
    CHECK(looks > 10); /* 4000 reductions are 444 such messages a turn */
    stop_and_join(id);
    return 0;
}

TEST(actor, one_that_sends_to_itself_lets_others_run)
{
    CHECK_EQ(t_run_alone(sends_to_itself, NULL), 0);
}

static int fills_a_mailbox(void *arg)
{
    static const blitz_behaviour small = {.state_bytes = sizeof(struct counter),
                                          .handlers = handlers,
                                          .handler_count = sizeof handlers / sizeof *handlers,
                                          .mailbox_max = 2000,
                                          .mailbox_high = 5000}; /* no sender is held back */
    blitz_actor_id id;
    int rc = 0, sent = 0;
    (void)arg;
    CHECK_EQ(blitz_actor_spawn(&small, NULL, NULL, &id), 0);
    for (; (rc = blitz_actor_send(id, ADD, &(long){1}, sizeof(long))) == 0; sent++)
        ;
    CHECK_EQ(rc, -EAGAIN);
    CHECK(sent > 1990 && sent < 2010); /* the start message counts as well */
    blitz_actor_info info;
    CHECK_EQ(blitz_actor_info_get(id, &info), 0);
    CHECK(info.mailbox > 1990);
    CHECK_EQ(info.state, BLITZ_ACTOR_SCHEDULED);
    blitz_yield();
    for (int i = 0; i < 100; i++)
        blitz_yield();
    CHECK_EQ(sum_of(id), sent);
    CHECK_EQ(blitz_actor_info_get(id, &info), 0);
    CHECK_EQ(info.state, BLITZ_ACTOR_IDLE);
    CHECK_EQ(info.mailbox, 0u);
    return 0;
}

TEST(actor, a_full_mailbox_refuses_and_an_empty_one_is_idle)
{
    CHECK_EQ(t_run_alone(fills_a_mailbox, NULL), 0);
}

/* ---- calls ---- */

static int keeps_a_token(void *arg)
{
    (void)arg;
    blitz_actor_id id = spawn_counter(NULL);
    long got = 0;
    /* Answered later, by another message. */
    blitz_actor_call_future f;
    blitz_actor_call_future_init(&f, id, KEEP, NULL, 0, &got, sizeof got);
    CHECK_EQ(blitz_await(&f.future, blitz_after(BLITZ_MS)), -ETIMEDOUT);
    CHECK_EQ(blitz_actor_send(id, ANSWER, NULL, 0), 0); /* late: dropped */
    CHECK_EQ(sum_of(id), 0);
    CHECK_EQ(blitz_actor_call(id, KEEP, NULL, 0, &got, sizeof got, blitz_after(BLITZ_MS)),
             -ETIMEDOUT);
    CHECK_EQ(blitz_actor_send(id, ANSWER, NULL, 0), 0);
    blitz_actor_call_future_init(&f, id, GET, NULL, 0, &got, sizeof got);
    CHECK_EQ(blitz_await(&f.future, BLITZ_FOREVER), 0);
    CHECK_EQ(f.result, (int)sizeof got);
    stop_and_join(id);
    return 0;
}

TEST(actor, a_late_answer_is_dropped)
{
    CHECK_EQ(t_run_alone(keeps_a_token, NULL), 0);
}

static int call_and_keep(void *id)
{
    return blitz_actor_call(*(blitz_actor_id *)id, KEEP, NULL, 0, NULL, 0, BLITZ_FOREVER);
}

static int call_twice(void *id)
{
    int rc = blitz_actor_call(*(blitz_actor_id *)id, WAIT, &(blitz_duration){3600 * BLITZ_S},
                              sizeof(blitz_duration), NULL, 0, BLITZ_FOREVER);
    return rc;
}

/* A call ends with its receiver: in the mailbox, in the handler, and kept. */
static int dies_with_calls(void *arg)
{
    (void)arg;
    blitz_actor_id id = spawn_counter(NULL);
    blitz_task *kept, *inside, *queued;
    int rc;
    CHECK_EQ(blitz_spawn(call_and_keep, &id, NULL, &kept), 0);
    for (int i = 0; i < 3; i++)
        blitz_yield();
    CHECK_EQ(blitz_spawn(call_twice, &id, NULL, &inside), 0);
    for (int i = 0; i < 3; i++)
        blitz_yield();
    CHECK_EQ(blitz_spawn(call_and_keep, &id, NULL, &queued), 0);
    for (int i = 0; i < 3; i++)
        blitz_yield();
    blitz_actor_info info;
    CHECK_EQ(blitz_actor_info_get(id, &info), 0);
    CHECK_EQ(info.state, BLITZ_ACTOR_WAITING);

    CHECK_EQ(blitz_actor_kill(id), 0);

    blitz_exit_reason why;
    rc = blitz_actor_join(id, &why, BLITZ_FOREVER);
    CHECK(rc == -ESRCH || why.kind == BLITZ_EXIT_KILLED);
    CHECK_EQ(blitz_task_join(inside, &rc, BLITZ_FOREVER), 0);
    CHECK_EQ(rc, -ECANCELED); /* its handler saw the kill, and answered */
    CHECK_EQ(blitz_task_join(queued, &rc, BLITZ_FOREVER), 0);
    CHECK_EQ(rc, -ESRCH);
    CHECK_EQ(blitz_task_join(kept, &rc, BLITZ_FOREVER), 0);
    CHECK_EQ(rc, -ESRCH);
    return 0;
}

TEST(actor, a_kill_ends_a_wait_and_answers_every_call)
{
    CHECK_EQ(t_run_alone(dies_with_calls, NULL), 0);
}

/* The start message of an actor may be in the memory of a call whose token is still open. */
static int dies_unborn(void *arg)
{
    (void)arg;
    blitz_actor_id id = spawn_counter(NULL), unborn[8];
    blitz_task *kept;
    long sum = -1;
    int rc;
    CHECK_EQ(blitz_spawn(call_and_keep, &id, NULL, &kept), 0);
    while (sum != 0)
        CHECK_EQ(blitz_actor_call(id, GET, NULL, 0, &sum, sizeof sum, BLITZ_FOREVER),
                 (int)sizeof sum);
    for (int i = 0; i < 8; i++) {
        unborn[i] = spawn_counter(NULL);
        CHECK_EQ(blitz_actor_kill(unborn[i]), 0);
    }
    for (int i = 0; i < 8; i++)
        stop_and_join(unborn[i]);

    CHECK_EQ(blitz_actor_send(id, ANSWER, NULL, 0), 0);

    CHECK_EQ(blitz_task_join(kept, &rc, BLITZ_FOREVER), 0);
    CHECK_EQ(rc, (int)sizeof(long)); /* the answer, not -ESRCH */
    return 0;
}

TEST(actor, one_that_dies_before_it_begins_answers_no_call_of_another)
{
    CHECK_EQ(t_run_alone(dies_unborn, NULL), 0);
}

static int relays(void *arg)
{
    (void)arg;
    blitz_actor_id a = spawn_counter(NULL), b = spawn_counter(NULL);
    send_long(b, ADD, 7);
    for (int i = 0; i < 100; i++)
        CHECK_EQ(blitz_actor_send(a, RELAY, &b, sizeof b), 0);
    CHECK_EQ(sum_of(a), 700);
    blitz_actor_id self;
    CHECK_EQ(blitz_actor_call(a, SELF, NULL, 0, &self, sizeof self, BLITZ_FOREVER),
             (int)sizeof self);
    CHECK(blitz_actor_id_equal(self, a));
    CHECK_EQ(blitz_actor_self().generation, 0u);
    return 0;
}

TEST(actor, a_handler_may_call_another_actor)
{
    CHECK_EQ(t_run_alone(relays, NULL), 0);
    CHECK_EQ(blitz_run(relays, NULL, &(blitz_runtime_opts){.procs = 2}), 0);
}

/* ---- timers ---- */

static int sends_later(void *arg)
{
    (void)arg;
    blitz_actor_id id = spawn_counter(NULL);
    uint64_t first, second;
    CHECK_EQ(
        blitz_actor_send_after(id, ADD, &(long){1}, sizeof(long), blitz_after(BLITZ_MS), &first),
        0);
    CHECK_EQ(blitz_actor_send_after(id, ADD, &(long){10}, sizeof(long), blitz_after(3600 * BLITZ_S),
                                    &second),
             0);
    CHECK_EQ(blitz_actor_timer_cancel(id, second), 0);
    CHECK_EQ(blitz_actor_timer_cancel(id, second), -ESRCH);
    while (sum_of(id) == 0)
        CHECK_EQ(blitz_sleep_until(blitz_after(BLITZ_MS)), 0);
    CHECK_EQ(sum_of(id), 1);
    CHECK_EQ(blitz_actor_timer_cancel(id, first), -ESRCH);
    /* Left armed at the end of the runtime. */
    CHECK_EQ(blitz_actor_send_after(id, ADD, &(long){10}, sizeof(long), blitz_after(3600 * BLITZ_S),
                                    NULL),
             0);
    /* For an actor that has ended when it is due. */
    blitz_actor_id dead = spawn_counter(NULL);
    CHECK_EQ(
        blitz_actor_send_after(dead, ADD, &(long){1}, sizeof(long), blitz_after(BLITZ_MS), NULL),
        0);
    stop_and_join(dead);
    CHECK_EQ(blitz_sleep_until(blitz_after(3 * BLITZ_MS)), 0);
    return 0;
}

TEST(actor, a_message_is_sent_later_or_cancelled)
{
    CHECK_EQ(t_run_alone(sends_later, NULL), 0);
}

static int sends_never(void *arg)
{
    blitz_actor_id id = spawn_counter(NULL);
    uint64_t first, second, left;
    (void)arg;
    CHECK_EQ(blitz_after(UINT64_MAX), BLITZ_FOREVER);
    CHECK_EQ(blitz_actor_send_after(id, ADD, &(long){1}, sizeof(long), BLITZ_FOREVER, &first), 0);
    CHECK_EQ(blitz_actor_timer_cancel(id, first), 0);
    CHECK_EQ(blitz_actor_timer_cancel(id, first), -ESRCH);
    CHECK_EQ(blitz_actor_send_after(id, ADD, &(long){10}, sizeof(long), 0, &second), 0);
    while (sum_of(id) == 0) /* the same ticket has a time now */
        blitz_yield();
    CHECK_EQ(sum_of(id), 10);
    CHECK_EQ(blitz_actor_timer_cancel(id, first), -ESRCH);
    CHECK_EQ(blitz_actor_send_after(id, ADD, &(long){1}, sizeof(long), BLITZ_FOREVER, &left), 0);
    return 0; /* the last one is freed with the runtime */
}

/* It ended the program: for ever is not a time of a timer. */
TEST(actor, a_message_at_no_time_waits_for_its_cancel)
{
    CHECK_EQ(t_run_alone(sends_never, NULL), 0);
}

/* ---- ends ---- */

static int ends_in_each_way(void *arg)
{
    atomic_long ended = 0;
    blitz_exit_reason why;
    (void)arg;
    static const struct {
        uint32_t what;
        blitz_exit_kind kind;
        int code;
    } ways[] = {{FAIL, BLITZ_EXIT_ERROR, -EIO}, {STOP, BLITZ_EXIT_NORMAL, 0}};
    for (int i = 0; i < 2; i++) {
        blitz_actor_id id = spawn_counter(&ended);
        blitz_actor_join_future f;
        blitz_actor_join_future_init(&f, id, &why);
        CHECK_EQ(blitz_await(&f.future, blitz_after(BLITZ_MS)), -ETIMEDOUT);
        blitz_actor_join_future_init(&f, id, &why);
        CHECK_EQ(blitz_actor_send(id, ways[i].what, NULL, 0), 0);
        CHECK_EQ(blitz_await(&f.future, BLITZ_FOREVER), 0);
        if (f.result == 0) {
            CHECK_EQ(why.kind, ways[i].kind);
            CHECK_EQ(why.code, ways[i].code);
            CHECK_STR_EQ(why.text, i == 0 ? "disk gone" : "");
        } else {
            CHECK_EQ(f.result, -ESRCH);
        }
        CHECK_EQ(blitz_actor_join(id, &why, BLITZ_FOREVER), -ESRCH);
    }
    CHECK_EQ(ended, 2);
    return 0;
}

TEST(actor, ends_tell_their_reason)
{
    CHECK_EQ(t_run_alone(ends_in_each_way, NULL), 0);
}

static int init_fails(void *state)
{
    (void)state;
    return -EACCES;
}

static int starts_in_vain(void *arg)
{
    static const blitz_behaviour bad = {.init = init_fails, .exit = on_exit_of};
    blitz_actor_id id;
    (void)arg;
    CHECK_EQ(blitz_actor_spawn(&bad, NULL, &(blitz_actor_opts){.name = "bad"}, &id), 0);
    blitz_exit_reason why;
    int rc = blitz_actor_join(id, &why, BLITZ_FOREVER);
    CHECK(rc == -ESRCH || (why.kind == BLITZ_EXIT_ERROR && why.code == -EACCES));
    CHECK_EQ(blitz_actor_whereis(NULL, "bad").generation, 0u);
    return 0;
}

TEST(actor, an_init_that_fails_ends_it_without_exit)
{
    CHECK_EQ(t_run_alone(starts_in_vain, NULL), 0);
}

/* Idle, scheduled and waiting actors all end with the runtime, and a mailbox with messages is no leak. */
static int leaves_them_behind(void *arg)
{
    for (int i = 0; i < 50; i++) {
        blitz_actor_id idle = spawn_counter(arg), busy = spawn_counter(arg);
        (void)sum_of(idle);
        CHECK_EQ(
            blitz_actor_send(busy, WAIT, &(blitz_duration){3600 * BLITZ_S}, sizeof(blitz_duration)),
            0);
        send_long(busy, ADD, 1);
        if (i % 2 == 0)
            blitz_yield();
    }
    return 0;
}

TEST(actor, all_of_them_end_with_the_runtime)
{
    atomic_long ended = 0;
    CHECK_EQ(t_run_alone(leaves_them_behind, &ended), 0);
    CHECK(ended >= 50); /* those that had begun */
    CHECK_EQ(blitz_run(leaves_them_behind, &ended, &(blitz_runtime_opts){.procs = 2}), 0);
}

/* ---- states and names ---- */

struct big {
    unsigned char bytes[10000];
};

BLITZ_HANDLER(on_big, struct big, void)
{
    (void)data;
    unsigned sum = 0;
    for (size_t i = 0; i < sizeof state->bytes; i++)
        sum += state->bytes[i];
    return blitz_actor_reply(m->reply, &sum, sizeof sum);
}

static int has_a_big_state(void *arg)
{
    static const blitz_handler on[] = {BLITZ_ON_EMPTY(0, on_big)};
    static const size_t sizes[] = {0, 1, 64, 65, 300, sizeof(struct big)};
    static struct big big;
    (void)arg;
    memset(&big, 1, sizeof big);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        blitz_behaviour b = {.state_bytes = sizes[i], .handlers = on, .handler_count = 1};
        blitz_actor_id id;
        unsigned sum = 0;
        CHECK_EQ(blitz_actor_spawn(&b, &big, NULL, &id), 0);
        if (sizes[i] == sizeof big) {
            CHECK_EQ(blitz_actor_call(id, 0, NULL, 0, &sum, sizeof sum, BLITZ_FOREVER),
                     (int)sizeof sum);
            CHECK_EQ(sum, 10000u);
        }
        stop_and_join(id);
    }
    return 0;
}

TEST(actor, states_of_any_size_are_copied)
{
    CHECK_EQ(t_run_alone(has_a_big_state, NULL), 0);
}

static int has_names(void *arg)
{
    (void)arg;
    blitz_actor_id a = spawn_counter(NULL), b;
    CHECK_EQ(blitz_actor_register("one", a), 0);
    CHECK_EQ(blitz_actor_register("two", a), 0);
    CHECK_EQ(blitz_actor_register("one", a), -EEXIST);
    CHECK_EQ(blitz_actor_register("", a), -EINVAL);
    CHECK_EQ(blitz_actor_register("a name that is longer than a name may be", a), -EINVAL);
    CHECK(blitz_actor_id_equal(blitz_actor_whereis(NULL, "two"), a));
    CHECK_EQ(blitz_actor_unregister(NULL, "two"), 0);
    CHECK_EQ(blitz_actor_unregister(NULL, "two"), -ESRCH);
    CHECK_EQ(blitz_actor_whereis(NULL, "two").generation, 0u);
    CHECK_EQ(blitz_actor_spawn(&counter, NULL, &(blitz_actor_opts){.name = "one"}, &b), -EEXIST);
    CHECK_EQ(blitz_actor_spawn(&counter, NULL, &(blitz_actor_opts){.name = "b"}, &b), 0);
    CHECK(blitz_actor_id_equal(blitz_actor_whereis(NULL, "b"), b));
    stop_and_join(a);
    CHECK_EQ(blitz_actor_register("one", a), -ESRCH);
    CHECK_EQ(blitz_actor_whereis(NULL, "one").generation, 0u);
    CHECK_EQ(blitz_actor_register("one", b), 0);
    return 0;
}

TEST(actor, names_end_with_their_actor)
{
    CHECK_EQ(t_run_alone(has_names, NULL), 0);
}

/* ---- from a plain thread ---- */

TEST(actor, a_plain_thread_sends_calls_and_joins)
{
    blitz_runtime *rt;
    blitz_actor_id id;
    long sum = 0;
    CHECK_EQ(blitz_runtime_new(&(blitz_runtime_opts){.procs = 2}, &rt), 0);
    CHECK_EQ(blitz_actor_spawn(&counter, NULL, NULL, &id), -EINVAL);
    CHECK_EQ(blitz_actor_spawn(&counter, NULL, &(blitz_actor_opts){.runtime = rt}, &id), 0);
    for (long i = 1; i <= 1000; i++)
        send_long(id, ADD, i);
    CHECK_EQ(blitz_actor_call(id, GET, NULL, 0, &sum, sizeof sum, BLITZ_FOREVER), (int)sizeof sum);
    CHECK_EQ(sum, 500500);
    CHECK_EQ(blitz_actor_call(id, KEEP, NULL, 0, NULL, 0, blitz_after(BLITZ_MS)), -ETIMEDOUT);
    stop_and_join(id);
    CHECK_EQ(blitz_runtime_shutdown(rt, BLITZ_FOREVER), 0);
    CHECK_EQ(blitz_runtime_unref(rt), 0);
    CHECK_EQ(blitz_actor_send(id, ADD, &sum, sizeof sum), -ESRCH);
}

/* ---- forked jobs ---- */

/* A handler's forked job sends for the actor, whichever worker runs it: the receiver must not learn of the fork. */
enum { FORK = 900, FROM_JOB, LAST };

struct signs {
    blitz_actor_id to;
    bool has_left; /* a job was run by another worker */
};

static const blitz_local_key probe;

static int inner_job_sends(void *arg)
{
    struct signs *s = arg;
    CHECK(blitz_actor_self().generation != 0);
    return blitz_actor_send(s->to, FROM_JOB, NULL, 0);
}

static int job_sends(void *arg)
{
    struct signs *s = arg;
    blitz_job job;
    int value = 0;
    if (blitz_local_set(&probe, &value) != 0)
        s->has_left = true;
    else
        CHECK_EQ(blitz_local_set(&probe, NULL), 0); /* it was called by the join: it is the actor */
    blitz_fork(&job, inner_job_sends, s);
    CHECK_EQ(blitz_sleep(100 * BLITZ_US), 0); /* the inner job goes to the queues as well */
    return blitz_join(&job);
}

BLITZ_HANDLER(on_fork, struct signs, void)
{
    (void)data;
    for (int round = 0; round < 100 && !state->has_left; round++) {
        blitz_job job;
        blitz_fork(&job, job_sends, state);
        CHECK_EQ(blitz_sleep(100 * BLITZ_US), 0); /* leaves the frame: the job goes to the queues */
        CHECK_EQ(blitz_join(&job), 0);
    }
    CHECK_EQ(blitz_actor_send(state->to, LAST, NULL, 0), 0); /* behind those of the jobs */
    return blitz_actor_reply(m->reply, &state->has_left, sizeof state->has_left);
}

static const blitz_handler forkers[] = {BLITZ_ON_EMPTY(FORK, on_fork)};
static const blitz_behaviour forker = {
    .name = "forker", .state_bytes = sizeof(struct signs), .handlers = forkers, .handler_count = 1};

static int hears_of_jobs(void *arg)
{
    struct signs s = {.has_left = false};
    const blitz_msg *m;
    blitz_actor_id id;
    bool has_left = false;
    (void)arg;
    CHECK_EQ(blitz_receiver_begin(NULL, &s.to), 0);
    CHECK_EQ(blitz_actor_spawn(&forker, &s, NULL, &id), 0);
    CHECK_EQ(blitz_actor_call(id, FORK, NULL, 0, &has_left, sizeof has_left, BLITZ_FOREVER), 1);
    CHECK(has_left);
    int count = 0;
    do {
        CHECK_EQ(blitz_receive(NULL, NULL, &m, BLITZ_FOREVER), 0);
        CHECK(blitz_actor_id_equal(m->from, id));
        count++;
    } while (m->what != LAST);
    CHECK_GE(count, 2);
    return 0;
}

TEST(actor, a_forked_job_elsewhere_sends_with_the_actors_id)
{
    t_on_each(hears_of_jobs, NULL, 0);
}
