/* Reply tokens and timers: their tickets are used again at once, and what is old reaches no later user. */
#include "harness.h"

#include <errno.h>

#include "blitz.h"
#include "support/alone.h"
#include "support/counted.h"

enum { ASK, KEEP, ADD };

struct server {
    blitz_reply_to last; /* the token of the last call */
    int kept;            /* tokens so far that were not answered at once */
    long sum;
};

static struct server *shared; /* of the one actor; all run on one proc */

static int begin(void *state)
{
    shared = state;
    return 0;
}

BLITZ_HANDLER(on_ask, struct server, void)
{
    (void)data;
    state->last = m->reply;
    return blitz_actor_reply(m->reply, &(long){1}, sizeof(long));
}

BLITZ_HANDLER(on_keep, struct server, void)
{
    (void)data;
    state->last = m->reply;
    state->kept++;
    return blitz_actor_reply_keep(m->reply);
}

BLITZ_HANDLER(on_add, struct server, long)
{
    (void)m;
    state->sum += *data;
    return 0;
}

static const blitz_handler handlers[] = {BLITZ_ON_EMPTY(ASK, on_ask), BLITZ_ON_EMPTY(KEEP, on_keep),
                                         BLITZ_ON(ADD, long, on_add)};
static const blitz_behaviour server = {.name = "server",
                                       .state_bytes = sizeof(struct server),
                                       .init = begin,
                                       .handlers = handlers,
                                       .handler_count = 3};

static blitz_actor_id start(void)
{
    blitz_actor_id id;
    CHECK_EQ(blitz_actor_spawn(&server, NULL, NULL, &id), 0);
    blitz_yield();
    return id;
}

struct caller {
    blitz_actor_id to;
    long got;
};

static int call_keep(void *arg)
{
    struct caller *c = arg;
    return blitz_actor_call(c->to, KEEP, NULL, 0, &c->got, sizeof c->got, BLITZ_FOREVER);
}

/* Begin a call that is answered later. Returns when the actor has its token. */
static blitz_task *begin_call(struct caller *c)
{
    blitz_task *t;
    int before = shared->kept;
    CHECK_EQ(blitz_spawn(call_keep, c, NULL, &t), 0);
    while (shared->kept == before)
        blitz_yield();
    return t;
}

static void end_call(struct caller *c, blitz_task *t)
{
    int rc;
    CHECK_EQ(blitz_actor_reply(shared->last, &(long){222}, sizeof(long)), 0);
    CHECK_EQ(blitz_task_join(t, &rc, BLITZ_FOREVER), 0);
    CHECK_EQ(rc, (int)sizeof(long));
    CHECK_EQ(c->got, 222);
}

static int answers_twice(void *arg)
{
    struct caller c = {start(), 0};
    long got = 0;
    (void)arg;
    CHECK_EQ(blitz_actor_call(c.to, ASK, NULL, 0, &got, sizeof got, BLITZ_FOREVER),
             (int)sizeof got);
    blitz_reply_to old = shared->last;
    blitz_task *t = begin_call(&c);
    CHECK_EQ(shared->last.index, old.index); /* the same ticket, or the test shows nothing */

    CHECK_EQ(blitz_actor_reply(old, &(long){111}, sizeof(long)), 0);
    CHECK_EQ(blitz_actor_reply_error(old, -EIO), 0);

    end_call(&c, t);
    return 0;
}

/* A caller that gets the answer to another question goes wrong without a sign. */
TEST(token, a_second_answer_does_not_reach_the_next_call)
{
    CHECK_EQ(t_run_alone(answers_twice, NULL), 0);
}

static int cancels_what_was_sent(void *arg)
{
    struct caller c = {start(), 0};
    uint64_t timer;
    (void)arg;
    CHECK_EQ(blitz_actor_send_after(c.to, ADD, &(long){5}, sizeof(long), 0, &timer), 0);
    while (shared->sum == 0)
        CHECK_EQ(blitz_sleep_until(blitz_after(BLITZ_MS)), 0);
    blitz_task *t = begin_call(&c);
    CHECK_EQ(shared->last.index, (uint32_t)timer); /* the same ticket */
    CHECK_NE(shared->last.generation, timer >> 32);

    CHECK_EQ(blitz_actor_timer_cancel(c.to, timer), -ESRCH);

    end_call(&c, t);
    CHECK_EQ(shared->sum, 5);
    return 0;
}

/* Its message was sent, and its ticket has another user. */
TEST(token, the_cancel_of_a_timer_that_has_fired_reaches_no_later_call)
{
    CHECK_EQ(t_run_alone(cancels_what_was_sent, NULL), 0);
}

static int cancels_twice(void *arg)
{
    blitz_actor_id to = start();
    uint64_t first, second;
    (void)arg;
    CHECK_EQ(blitz_actor_send_after(to, ADD, &(long){1}, sizeof(long), blitz_after(3600 * BLITZ_S),
                                    &first),
             0);
    CHECK_EQ(blitz_actor_timer_cancel(to, first), 0);
    CHECK_EQ(
        blitz_actor_send_after(to, ADD, &(long){7}, sizeof(long), blitz_after(BLITZ_MS), &second),
        0);
    CHECK_EQ((uint32_t)first, (uint32_t)second); /* the same ticket */

    CHECK_EQ(blitz_actor_timer_cancel(to, first), -ESRCH);

    while (shared->sum == 0)
        CHECK_EQ(blitz_sleep_until(blitz_after(BLITZ_MS)), 0);
    CHECK_EQ(shared->sum, 7);
    CHECK_EQ(blitz_actor_timer_cancel(to, second), -ESRCH);
    return 0;
}

TEST(token, a_timer_that_is_cancelled_twice_takes_no_other_with_it)
{
    CHECK_EQ(t_run_alone(cancels_twice, NULL), 0);
}

enum { CALLERS = 100 }; /* more than a proc keeps tickets for */

static int many_at_once(void *arg)
{
    blitz_actor_id to = start();
    blitz_task *t[CALLERS];
    blitz_reply_to token[CALLERS];
    struct caller c[CALLERS];
    (void)arg;
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < CALLERS; i++) {
            c[i] = (struct caller){to, 0};
            t[i] = begin_call(&c[i]);
            token[i] = shared->last;
        }
        for (long i = 0; i < CALLERS; i++)
            CHECK_EQ(blitz_actor_reply(token[i], &i, sizeof i), 0);
        for (int i = 0; i < CALLERS; i++) {
            int rc;
            CHECK_EQ(blitz_task_join(t[i], &rc, BLITZ_FOREVER), 0);
            CHECK_EQ(rc, (int)sizeof(long));
            CHECK_EQ(c[i].got, i);
        }
    }
    return 0;
}

TEST(token, each_of_many_calls_gets_its_own_answer)
{
    CHECK_EQ(t_run_alone(many_at_once, NULL), 0);
}

/* ---- kept tokens ---- */

enum { KEEPS = 20000, HELD = 100 };

/* A server that keeps each token and answers the oldest of a hundred. */
static int keeps_and_answers(void *arg)
{
    static struct caller c[HELD];
    static blitz_task *t[HELD];
    static blitz_reply_to token[HELD];
    blitz_actor_id to = start();
    long before = 0;
    int rc;
    (void)arg;
    for (long i = 0; i < KEEPS + HELD; i++) {
        long at = i % HELD;
        if (i == KEEPS / 4)
            before = counted_blocks();
        if (i >= HELD) {
            CHECK_EQ(blitz_actor_reply(token[at], &i, sizeof i), 0);
            CHECK_EQ(blitz_task_join(t[at], &rc, BLITZ_FOREVER), 0);
            CHECK_EQ(rc, (int)sizeof(long));
            CHECK_EQ(c[at].got, i);
        }
        if (i >= KEEPS)
            continue;
        c[at] = (struct caller){to, 0};
        t[at] = begin_call(&c[at]);
        token[at] = shared->last;
    }
    CHECK_LE(counted_blocks(), before + 2); /* blocks of the slabs of messages */
    return 0;
}

/* Each answered token stayed in the list of its actor until its end. */
TEST(token, an_actor_that_keeps_tokens_and_answers_them_for_ever_keeps_nothing)
{
    CHECK_EQ(blitz_run(keeps_and_answers, NULL,
                       &(blitz_runtime_opts){.procs = 1, .allocator = &counted}),
             0);
    CHECK_EQ(counted_blocks(), 0);
}

static int ends_with_tokens(void *arg)
{
    static struct caller c[HELD];
    static blitz_task *t[HELD];
    blitz_actor_id to = start();
    (void)arg;
    for (int i = 0; i < HELD;
         i++) { /* every third is answered; the look between must not lose one */
        c[i] = (struct caller){to, 0};
        t[i] = begin_call(&c[i]);
        if (i % 3 == 0)
            CHECK_EQ(blitz_actor_reply(shared->last, NULL, 0), 0);
    }
    CHECK_EQ(blitz_actor_stop(to), 0);
    for (int i = 0; i < HELD; i++) {
        int rc;
        CHECK_EQ(blitz_task_join(t[i], &rc, BLITZ_FOREVER), 0);
        CHECK_EQ(rc, i % 3 == 0 ? 0 : -ESRCH);
    }
    return 0;
}

TEST(token, each_kept_token_that_is_not_answered_is_answered_by_the_end)
{
    CHECK_EQ(t_run_alone(ends_with_tokens, NULL), 0);
}

/* ---- a token that goes to another runtime ---- */

static blitz_actor_id abroad;
static int own_call; /* of a caller there, with a token of the same numbers */

BLITZ_HANDLER(on_pass, void, void)
{
    (void)state, (void)data;
    return blitz_actor_send(abroad, KEEP, &m->reply, sizeof m->reply);
}

static const blitz_handler passing[] = {BLITZ_ON_EMPTY(ASK, on_pass)};
static const blitz_behaviour passer = {.name = "passer", .handlers = passing, .handler_count = 1};

/* Keep the token in the message, and end. */
BLITZ_HANDLER(on_foreign, void, blitz_reply_to)
{
    (void)state, (void)m;
    CHECK_EQ(blitz_actor_reply_keep(*data), 0);
    return BLITZ_ACTOR_STOP;
}

static const blitz_handler foreign[] = {BLITZ_ON(KEEP, blitz_reply_to, on_foreign)};
static const blitz_behaviour keeper = {.name = "keeper", .handlers = foreign, .handler_count = 1};

static int call_and_wait(void *arg)
{
    own_call = blitz_actor_call(*(blitz_actor_id *)arg, KEEP, NULL, 0, NULL, 0, BLITZ_FOREVER);
    return 0;
}

/* In the other runtime: a server with an open call, and the keeper. */
static int opens(void *arg)
{
    static blitz_actor_id id;
    blitz_task *t;
    (void)arg;
    id = start();
    CHECK_EQ(blitz_spawn(call_and_wait, &id, NULL, &t), 0);
    blitz_task_detach(t);
    while (shared->kept == 0)
        blitz_yield();
    CHECK_EQ(blitz_actor_spawn(&keeper, NULL, NULL, &abroad), 0);
    return 0;
}

static int answers_own(void *arg)
{
    (void)arg;
    CHECK_EQ(blitz_actor_reply(shared->last, NULL, 0), 0);
    while (own_call == 1)
        blitz_yield();
    CHECK_EQ(own_call, 0);
    return 0;
}

static int calls_abroad(void *arg)
{
    blitz_actor_id to;
    (void)arg;
    CHECK_EQ(blitz_actor_spawn(&passer, NULL, NULL, &to), 0);
    return blitz_actor_call(to, ASK, NULL, 0, NULL, 0, BLITZ_FOREVER);
}

/* The end of its keeper answered a call of the keeper's runtime with the same numbers, and the caller waited for ever. */
TEST(token, one_that_is_kept_in_another_runtime_is_answered_by_the_end_of_its_keeper)
{
    blitz_runtime *other;
    own_call = 1;
    CHECK_EQ(blitz_runtime_new(&(blitz_runtime_opts){.procs = 1}, &other), 0);
    CHECK_EQ(blitz_runtime_block_on(other, opens, NULL), 0);
    CHECK_EQ(blitz_run(calls_abroad, NULL, &(blitz_runtime_opts){.procs = 1}), -ESRCH);
    CHECK_EQ(blitz_runtime_block_on(other, answers_own, NULL), 0);
    CHECK_EQ(blitz_runtime_shutdown(other, BLITZ_FOREVER), 0);
    CHECK_EQ(blitz_runtime_unref(other), 0);
}
