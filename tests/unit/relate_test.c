/* Links and monitors of actors: who is told of an end, how often, and with which reason. */
#include "harness.h"

#include <errno.h>
#include <string.h>

#include "blitz.h"
#include "support/alone.h"

enum {
    DO_LINK,
    DO_UNLINK,
    DO_MONITOR,
    DO_DEMONITOR,
    DO_END,
    DO_TRAP,
    DO_WAIT,
    DO_TELL,
    DO_CRASHES
};

/* The signals that an actor has heard. */
struct heard {
    int downs, exits;
    blitz_down last;
    uint64_t ref;
    long rounds;
};

BLITZ_HANDLER(on_link, struct heard, blitz_actor_id)
{
    (void)state;
    int rc = blitz_actor_link(*data);
    return blitz_actor_reply(m->reply, &rc, sizeof rc);
}

BLITZ_HANDLER(on_unlink, struct heard, blitz_actor_id)
{
    (void)state;
    int rc = blitz_actor_unlink(*data);
    return blitz_actor_reply(m->reply, &rc, sizeof rc);
}

BLITZ_HANDLER(on_monitor, struct heard, blitz_actor_id)
{
    int rc = blitz_actor_monitor(*data, &state->ref);
    return blitz_actor_reply(m->reply, &rc, sizeof rc);
}

BLITZ_HANDLER(on_demonitor, struct heard, void)
{
    (void)data;
    int rc = blitz_actor_demonitor(state->ref);
    return blitz_actor_reply(m->reply, &rc, sizeof rc);
}

BLITZ_HANDLER(on_end, struct heard, blitz_exit_reason)
{
    (void)state, (void)m;
    return blitz_actor_exit(data);
}

BLITZ_HANDLER(on_trap, struct heard, bool)
{
    (void)state;
    int was = blitz_actor_trap_exit(*data);
    return blitz_actor_reply(m->reply, &was, sizeof was);
}

BLITZ_HANDLER(on_wait, struct heard, void)
{
    (void)state, (void)data, (void)m;
    return blitz_sleep_until(BLITZ_FOREVER) == -ECANCELED ? -ECANCELED : 0;
}

BLITZ_HANDLER(on_tell, struct heard, void)
{
    (void)data;
    int counts[2] = {state->downs, state->exits};
    return blitz_actor_reply(m->reply, counts, sizeof counts);
}

BLITZ_HANDLER(on_down, struct heard, blitz_down)
{
    (void)m;
    state->downs++;
    state->last = *data;
    CHECK_EQ(data->ref, state->ref);
    return 0;
}

BLITZ_HANDLER(on_exit_signal, struct heard, blitz_down)
{
    (void)m;
    state->exits++;
    state->last = *data;
    return 0;
}

static const blitz_handler handlers[] = {
    BLITZ_ON(DO_LINK, blitz_actor_id, on_link),
    BLITZ_ON(DO_UNLINK, blitz_actor_id, on_unlink),
    BLITZ_ON(DO_MONITOR, blitz_actor_id, on_monitor),
    BLITZ_ON_EMPTY(DO_DEMONITOR, on_demonitor),
    BLITZ_ON(DO_END, blitz_exit_reason, on_end),
    BLITZ_ON(DO_TRAP, bool, on_trap),
    BLITZ_ON_EMPTY(DO_WAIT, on_wait),
    BLITZ_ON_EMPTY(DO_TELL, on_tell),
    BLITZ_ON(BLITZ_MSG_DOWN, blitz_down, on_down),
    BLITZ_ON(BLITZ_MSG_EXIT, blitz_down, on_exit_signal),
};

static const blitz_behaviour hearer = {.name = "hearer",
                                       .state_bytes = sizeof(struct heard),
                                       .handlers = handlers,
                                       .handler_count = sizeof handlers / sizeof *handlers};

static blitz_actor_id given_a_hearer(void)
{
    blitz_actor_id id;
    CHECK_EQ(blitz_actor_spawn(&hearer, NULL, NULL, &id), 0);
    return id;
}

static int ask(blitz_actor_id id, uint32_t what, const void *data, size_t size)
{
    int answer = -1;
    int rc = blitz_actor_call(id, what, data, size, &answer, sizeof answer, BLITZ_FOREVER);
    return rc < 0 ? rc : answer;
}

static int downs_of(blitz_actor_id id)
{
    int counts[2] = {-1, -1};
    CHECK_EQ(blitz_actor_call(id, DO_TELL, NULL, 0, counts, sizeof counts, BLITZ_FOREVER),
             (int)sizeof counts);
    return counts[0];
}

static int exits_of(blitz_actor_id id)
{
    int counts[2] = {-1, -1};
    CHECK_EQ(blitz_actor_call(id, DO_TELL, NULL, 0, counts, sizeof counts, BLITZ_FOREVER),
             (int)sizeof counts);
    return counts[1];
}

static void end_of(blitz_actor_id id, blitz_exit_kind kind, int code)
{
    blitz_exit_reason why = {.kind = kind, .code = code, .text = "told"};
    CHECK_EQ(blitz_actor_send(id, DO_END, &why, sizeof why), 0);
    int rc = blitz_actor_join(id, NULL, BLITZ_FOREVER);
    CHECK(rc == 0 || rc == -ESRCH);
}

/* How an actor that is not sent anything ended. */
static blitz_exit_reason reason_of(blitz_actor_id id)
{
    blitz_exit_reason why = {.kind = BLITZ_EXIT_NOPROC};
    int rc = blitz_actor_join(id, &why, BLITZ_FOREVER);
    CHECK(rc == 0 || rc == -ESRCH);
    return why;
}

/* ---- links ---- */

static int links(void *arg)
{
    (void)arg;
    blitz_actor_id a = given_a_hearer(), b = given_a_hearer(), c = given_a_hearer();
    CHECK_EQ(ask(a, DO_LINK, &a, sizeof a), -EINVAL);
    CHECK_EQ(ask(a, DO_LINK, &b, sizeof b), 0);
    CHECK_EQ(ask(c, DO_LINK, &b, sizeof b), 0);
    CHECK_EQ(ask(c, DO_UNLINK, &b, sizeof b), 0);
    blitz_actor_join_future f;
    blitz_exit_reason why = {.kind = BLITZ_EXIT_NOPROC};
    blitz_actor_join_future_init(&f, a, &why);
    CHECK_EQ(blitz_await(&f.future, blitz_after(1)), -ETIMEDOUT);
    end_of(b, BLITZ_EXIT_ERROR, -EIO);
    why = reason_of(a);
    CHECK(why.kind == BLITZ_EXIT_ERROR || why.kind == BLITZ_EXIT_NOPROC);
    CHECK(!blitz_actor_is_alive(a));
    CHECK(blitz_actor_is_alive(c)); /* it was unlinked */
    CHECK_EQ(exits_of(c), 0);
    return 0;
}

TEST(relate, a_link_passes_a_failure_on_and_an_unlinked_one_does_not)
{
    CHECK_EQ(t_run_alone(links, NULL), 0);
    CHECK_EQ(blitz_run(links, NULL, &(blitz_runtime_opts){.procs = 2}), 0);
}

static int ends_normally(void *arg)
{
    (void)arg;
    blitz_actor_id a = given_a_hearer(), b = given_a_hearer(), c = given_a_hearer();
    CHECK_EQ(ask(c, DO_TRAP, &(bool){true}, sizeof(bool)), 0);
    CHECK_EQ(ask(a, DO_LINK, &b, sizeof b), 0);
    CHECK_EQ(ask(c, DO_LINK, &b, sizeof b), 0);
    end_of(b, BLITZ_EXIT_NORMAL, 0);
    CHECK_EQ(exits_of(a), 0);
    while (exits_of(c) == 0)
        blitz_yield();
    CHECK_EQ(exits_of(c), 1);
    /* To the dead, and trapped: an exit signal that says so. */
    CHECK_EQ(ask(c, DO_LINK, &b, sizeof b), 0);
    while (exits_of(c) == 1)
        blitz_yield();
    CHECK_EQ(exits_of(c), 2);
    CHECK(blitz_actor_is_alive(a));
    /* An exit signal without a link. */
    blitz_exit_reason why = {.kind = BLITZ_EXIT_ERROR, .code = 7};
    CHECK_EQ(blitz_actor_exit_send(c, &why), 0);
    CHECK_EQ(exits_of(c), 3);
    CHECK_EQ(blitz_actor_exit_send(a, &(blitz_exit_reason){.kind = BLITZ_EXIT_NORMAL}), 0);
    CHECK_EQ(exits_of(a), 0);
    CHECK_EQ(blitz_actor_exit_send(a, &why), 0);
    (void)reason_of(a);
    CHECK(!blitz_actor_is_alive(a));
    return 0;
}

TEST(relate, a_normal_end_harms_no_link_and_a_trap_makes_it_a_message)
{
    CHECK_EQ(t_run_alone(ends_normally, NULL), 0);
}

/* A kill cannot be trapped. Its links hear `killed`, which they may trap. */
static int kills(void *arg)
{
    (void)arg;
    blitz_actor_id a = given_a_hearer(), b = given_a_hearer();
    CHECK_EQ(ask(a, DO_TRAP, &(bool){true}, sizeof(bool)), 0);
    CHECK_EQ(ask(b, DO_TRAP, &(bool){true}, sizeof(bool)), 0);
    CHECK_EQ(ask(a, DO_LINK, &b, sizeof b), 0);
    CHECK_EQ(blitz_actor_send(b, DO_WAIT, NULL, 0), 0);
    for (int i = 0; i < 3; i++)
        blitz_yield();
    CHECK_EQ(blitz_actor_kill(b), 0);
    (void)reason_of(b);
    CHECK(!blitz_actor_is_alive(b));
    while (exits_of(a) == 0)
        blitz_yield();
    CHECK_EQ(exits_of(a), 1);
    return 0;
}

TEST(relate, a_kill_is_not_trapped)
{
    CHECK_EQ(t_run_alone(kills, NULL), 0);
}

/* ---- monitors ---- */

static int watches(void *arg)
{
    (void)arg;
    blitz_actor_id a = given_a_hearer(), b = given_a_hearer();
    CHECK_EQ(ask(a, DO_MONITOR, &b, sizeof b), 0);
    end_of(b, BLITZ_EXIT_ERROR, -EIO);
    while (downs_of(a) == 0)
        blitz_yield();
    CHECK_EQ(downs_of(a), 1);
    CHECK_EQ(ask(a, DO_DEMONITOR, NULL, 0), -ESRCH);
    /* Of an actor that has ended before. */
    CHECK_EQ(ask(a, DO_MONITOR, &b, sizeof b), 0);
    CHECK_EQ(downs_of(a), 2);
    /* Demonitored: none comes. */
    b = given_a_hearer();
    CHECK_EQ(ask(a, DO_MONITOR, &b, sizeof b), 0);
    CHECK_EQ(ask(a, DO_DEMONITOR, NULL, 0), 0);
    end_of(b, BLITZ_EXIT_ERROR, -EIO);
    for (int i = 0; i < 10; i++)
        blitz_yield();
    CHECK_EQ(downs_of(a), 2);
    return 0;
}

TEST(relate, a_monitor_is_told_once)
{
    CHECK_EQ(t_run_alone(watches, NULL), 0);
    CHECK_EQ(blitz_run(watches, NULL, &(blitz_runtime_opts){.procs = 2}), 0);
}

static int outside(void *arg)
{
    uint64_t ref;
    blitz_actor_id id = given_a_hearer();
    (void)arg;
    CHECK_EQ(blitz_actor_link(id), -EINVAL);
    CHECK_EQ(blitz_actor_unlink(id), -EINVAL);
    CHECK_EQ(blitz_actor_monitor(id, &ref), -EINVAL);
    CHECK_EQ(blitz_actor_demonitor(1), -EINVAL);
    CHECK(!blitz_actor_trap_exit(true));
    CHECK_EQ(blitz_actor_exit(&(blitz_exit_reason){.kind = BLITZ_EXIT_NORMAL}), -EINVAL);
    CHECK_EQ(blitz_actor_reply_keep((blitz_reply_to){0, 1, 0}), -EINVAL);
    CHECK_EQ(blitz_actor_spawn(&hearer, NULL, &(blitz_actor_opts){.link = true}, NULL), -EINVAL);
    return 0;
}

TEST(relate, links_and_monitors_are_for_actors)
{
    CHECK_EQ(t_run_alone(outside, NULL), 0);
}

/* ---- many crashes ---- */

struct nurse {
    long rounds, downs, exits;
    uint64_t ref;
    blitz_reply_to reply;
};

static int init_fails(void *state)
{
    (void)state;
    return -EIO;
}

static const blitz_behaviour stillborn = {.name = "stillborn", .init = init_fails};

static int next_patient(struct nurse *n)
{
    if (n->rounds-- > 0)
        return blitz_actor_spawn(&stillborn, NULL,
                                 &(blitz_actor_opts){.link = true, .monitor = &n->ref}, NULL);
    return blitz_actor_reply(n->reply, &n->downs, sizeof n->downs);
}

BLITZ_HANDLER(on_crashes, struct nurse, long)
{
    blitz_actor_trap_exit(true);
    state->rounds = *data;
    state->reply = m->reply;
    int rc = blitz_actor_reply_keep(m->reply);
    return rc != 0 ? rc : next_patient(state);
}

BLITZ_HANDLER(on_patient_down, struct nurse, blitz_down)
{
    (void)m;
    if (data->ref != state->ref || data->reason.code != -EIO)
        return -EBADMSG;
    state->downs++;
    return state->downs == state->exits ? next_patient(state) : 0;
}

BLITZ_HANDLER(on_patient_exit, struct nurse, blitz_down)
{
    (void)m, (void)data;
    state->exits++;
    return state->downs == state->exits ? next_patient(state) : 0;
}

static const blitz_handler nursing[] = {BLITZ_ON(0, long, on_crashes),
                                        BLITZ_ON(BLITZ_MSG_DOWN, blitz_down, on_patient_down),
                                        BLITZ_ON(BLITZ_MSG_EXIT, blitz_down, on_patient_exit)};
static const blitz_behaviour nurse = {
    .name = "nurse", .state_bytes = sizeof(struct nurse), .handlers = nursing, .handler_count = 3};

static int crashes(void *arg)
{
    long rounds = *(long *)arg, downs = 0;
    blitz_actor_id id;
    CHECK_EQ(blitz_actor_spawn(&nurse, NULL, NULL, &id), 0);
    CHECK_EQ(blitz_actor_call(id, 0, &rounds, sizeof rounds, &downs, sizeof downs, BLITZ_FOREVER),
             (int)sizeof downs);
    CHECK_EQ(downs, rounds);
    return 0;
}

TEST(relate, bug_39_each_of_many_crashes_is_told_once)
{
    CHECK_EQ(t_run_alone(crashes, &(long){20000}), 0);
    CHECK_EQ(blitz_run(crashes, &(long){20000}, &(blitz_runtime_opts){.procs = 2}), 0);
}

/* ---- texts ---- */

static _Atomic size_t text_length;

BLITZ_HANDLER(on_text, void, blitz_down)
{
    (void)state, (void)m;
    text_length = strnlen(data->reason.text, BLITZ_EXIT_TEXT_MAX);
    return BLITZ_ACTOR_STOP;
}

static int sends_a_long_text(void *arg)
{
    static const blitz_handler h[] = {BLITZ_ON(BLITZ_MSG_EXIT, blitz_down, on_text)};
    static const blitz_behaviour b = {.name = "reader", .handlers = h, .handler_count = 1};
    blitz_exit_reason why = {.kind = BLITZ_EXIT_ERROR, .code = -EIO};
    blitz_actor_id id;
    (void)arg;
    memset(why.text, 'x', sizeof why.text); /* without an end */
    CHECK_EQ(blitz_actor_spawn(&b, NULL, &(blitz_actor_opts){.trap_exit = true}, &id), 0);
    CHECK_EQ(blitz_actor_exit_send(id, &why), 0);
    int rc = blitz_actor_join(id, NULL, BLITZ_FOREVER);
    CHECK(rc == 0 || rc == -ESRCH);
    CHECK_EQ(text_length, (size_t)BLITZ_EXIT_TEXT_MAX - 1);
    return 0;
}

/* A handler that prints it read behind it. */
TEST(relate, the_text_of_a_sent_reason_has_an_end)
{
    CHECK_EQ(blitz_run(sends_a_long_text, NULL, &(blitz_runtime_opts){.procs = 1}), 0);
}

/* ---- a kill between news ---- */

struct news {
    int downs, messages;
};

static struct news told;

/* Watch it five times, so that five signals wait; and a message. */
BLITZ_HANDLER(on_watch, struct news, blitz_actor_id)
{
    uint64_t ref;
    (void)state, (void)m;
    for (int i = 0; i < 5; i++)
        CHECK_EQ(blitz_actor_monitor(*data, &ref), 0);
    return blitz_actor_send(blitz_actor_self(), DO_WAIT, NULL, 0);
}

BLITZ_HANDLER(on_news, struct news, blitz_down)
{
    (void)data, (void)m;
    told.downs = ++state->downs;
    return state->downs == 1 ? blitz_actor_kill(blitz_actor_self()) : 0;
}

BLITZ_HANDLER(on_message, struct news, void)
{
    (void)data, (void)m;
    told.messages = ++state->messages;
    return 0;
}

static int is_killed_between_news(void *arg)
{
    static const blitz_handler news_handlers[] = {BLITZ_ON(DO_MONITOR, blitz_actor_id, on_watch),
                                                  BLITZ_ON_EMPTY(DO_WAIT, on_message),
                                                  BLITZ_ON(BLITZ_MSG_DOWN, blitz_down, on_news)};
    static const blitz_behaviour watcher = {.name = "watcher",
                                            .state_bytes = sizeof(struct news),
                                            .handlers = news_handlers,
                                            .handler_count = 3};
    static const blitz_actor_id nobody = {1000000, 1, 0, 0};
    blitz_actor_id id;
    blitz_exit_reason why = {.kind = BLITZ_EXIT_NOPROC};
    (void)arg;
    CHECK_EQ(blitz_actor_spawn(&watcher, NULL, NULL, &id), 0);
    CHECK_EQ(blitz_actor_send(id, DO_MONITOR, &nobody, sizeof nobody), 0);
    CHECK_EQ(blitz_actor_join(id, &why, BLITZ_FOREVER), 0);
    CHECK_EQ(why.kind, BLITZ_EXIT_KILLED);
    CHECK_EQ(told.downs, 1);
    CHECK_EQ(told.messages, 0);
    return 0;
}

TEST(relate, no_handler_runs_after_a_kill_in_the_handler_of_an_end)
{
    CHECK_EQ(t_run_alone(is_killed_between_news, NULL), 0);
}
