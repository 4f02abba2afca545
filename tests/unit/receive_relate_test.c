/* Links and monitors of tasks that receive: both ways, traps, one DOWN for each monitor, and what unlink and demonitor remove. */
#include "harness.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>

#include "blitz.h"
#include "support/alone.h"
#include "support/on_each.h"
#include "support/refuse_each.h"

enum { FAIL, STOP, LINK, ASK };

/* ---- an actor as the other side ---- */

struct peer {
    atomic_int *heard; /* codes of exits that it was told of; NULL: not wanted */
};

BLITZ_HANDLER(on_fail, struct peer, int)
{
    (void)state, (void)m;
    return blitz_actor_fail(*data, "as asked");
}

BLITZ_HANDLER(on_stop, struct peer, void)
{
    (void)state, (void)data, (void)m;
    return BLITZ_ACTOR_STOP;
}

BLITZ_HANDLER(on_exit_of, struct peer, blitz_down)
{
    (void)m;
    if (state->heard != NULL)
        *state->heard += data->reason.code;
    return 0;
}

static const blitz_handler handlers[] = {BLITZ_ON(FAIL, int, on_fail),
                                         BLITZ_ON_EMPTY(STOP, on_stop),
                                         BLITZ_ON(BLITZ_MSG_EXIT, blitz_down, on_exit_of)};
static const blitz_behaviour peer = {
    .name = "peer", .state_bytes = sizeof(struct peer), .handlers = handlers, .handler_count = 3};

static blitz_actor_id spawn_peer(bool traps, atomic_int *heard)
{
    blitz_actor_id id;
    struct peer p = {heard};
    CHECK_EQ(blitz_actor_spawn(&peer, &p, &(blitz_actor_opts){.trap_exit = traps}, &id), 0);
    return id;
}

static void fail(blitz_actor_id id, int code)
{
    CHECK_EQ(blitz_actor_send(id, FAIL, &code, sizeof code), 0);
}

static bool is_what(const blitz_msg *m, void *what)
{
    return m->what == *(uint32_t *)what;
}

static blitz_down expect(uint32_t what)
{
    const blitz_msg *m;
    blitz_down down;
    CHECK_EQ(blitz_receive(is_what, &what, &m, BLITZ_FOREVER), 0);
    CHECK_EQ(m->size, sizeof down);
    memcpy(&down, m->data, sizeof down);
    CHECK(blitz_actor_id_equal(m->from, down.who));
    return down;
}

/* All actors are at rest: what was to come has come. */
static void expect_nothing(void)
{
    const blitz_msg *m;
    CHECK_EQ(blitz_actors_wait_quiet(NULL, BLITZ_FOREVER), 0);
    CHECK_EQ(blitz_receive(NULL, NULL, &m, 0), -ETIMEDOUT);
}

/* Run it as a task of its own, which begins to receive. */
static int in_a_task(int (*fn)(void *), void *arg)
{
    blitz_task *t;
    int result;
    CHECK_EQ(blitz_spawn(fn, arg, NULL, &t), 0);
    CHECK_EQ(blitz_task_join(t, &result, BLITZ_FOREVER), 0);
    return result;
}

static void begin(bool traps)
{
    CHECK_EQ(blitz_receiver_begin(&(blitz_actor_opts){.trap_exit = traps}, NULL), 0);
}

/* ---- links ---- */

static int links_and_fails(void *id)
{
    begin(false);
    CHECK_EQ(blitz_actor_link(*(blitz_actor_id *)id), 0);
    return -EIO;
}

static int links_and_waits(void *id)
{
    const blitz_msg *m;
    blitz_actor_id me;
    CHECK_EQ(blitz_receiver_begin(NULL, &me), 0);
    CHECK_EQ(blitz_actor_link(*(blitz_actor_id *)id), 0);
    fail(*(blitz_actor_id *)id, -ENOSPC);
    CHECK_EQ(blitz_receive(NULL, NULL, &m, BLITZ_FOREVER), -ECANCELED);
    while (blitz_actor_is_alive(me)) /* the cancel comes a moment before the end of the id */
        blitz_yield();
    CHECK_EQ(blitz_actor_link(*(blitz_actor_id *)id), -ECANCELED);
    CHECK_EQ(blitz_actor_monitor(*(blitz_actor_id *)id, &(uint64_t){0}), -ECANCELED);
    CHECK_EQ(blitz_actor_unlink(*(blitz_actor_id *)id), -ECANCELED);
    CHECK_EQ(blitz_actor_demonitor(1), -ECANCELED);
    CHECK_EQ(blitz_actor_spawn(&peer, NULL, &(blitz_actor_opts){.link = true}, NULL), -ECANCELED);
    return 7;
}

static int links_to_one_that_stops(void *id)
{
    begin(false);
    CHECK_EQ(blitz_actor_link(*(blitz_actor_id *)id), 0);
    CHECK_EQ(blitz_actor_send(*(blitz_actor_id *)id, STOP, NULL, 0), 0);
    expect_nothing();
    return 8;
}

static int linked(void *arg)
{
    atomic_int heard = 0;
    blitz_actor_id traps = spawn_peer(true, &heard), mortal = spawn_peer(false, NULL);
    (void)arg;
    CHECK_EQ(in_a_task(links_and_fails, &traps), -EIO);
    CHECK_EQ(blitz_actors_wait_quiet(NULL, BLITZ_FOREVER), 0);
    CHECK_EQ(heard, -EIO);
    CHECK_EQ(in_a_task(links_and_fails, &mortal), -EIO);
    CHECK_EQ(blitz_actors_wait_quiet(NULL, BLITZ_FOREVER), 0);
    CHECK(!blitz_actor_is_alive(mortal));
    mortal = spawn_peer(false, NULL);
    CHECK_EQ(in_a_task(links_and_waits, &mortal), 7);
    mortal = spawn_peer(false, NULL);
    CHECK_EQ(in_a_task(links_to_one_that_stops, &mortal), 8);
    return 0;
}

/* A failure goes from the task to the actor and back; a normal end does not. */
TEST(receive_relate, a_link_passes_a_failure_on_in_both_directions)
{
    t_on_each(linked, NULL, 0);
}

static int traps_exits(void *arg)
{
    (void)arg;
    begin(false);
    CHECK(!blitz_actor_trap_exit(true));
    CHECK(blitz_actor_trap_exit(true));
    blitz_actor_id a = spawn_peer(false, NULL), dead = spawn_peer(false, NULL);
    CHECK_EQ(blitz_actor_link(a), 0);
    CHECK_EQ(blitz_actor_link(a), 0); /* a second link is the same */
    fail(a, -EIO);
    blitz_down down = expect(BLITZ_MSG_EXIT);
    CHECK(blitz_actor_id_equal(down.who, a));
    CHECK_EQ(down.ref, 0u);
    CHECK_EQ(down.reason.kind, BLITZ_EXIT_ERROR);
    CHECK_EQ(down.reason.code, -EIO);
    CHECK_STR_EQ(down.reason.text, "as asked");
    expect_nothing();
    CHECK_EQ(blitz_actor_kill(dead), 0);
    int rc = blitz_actor_join(dead, NULL, BLITZ_FOREVER);
    CHECK(rc == 0 || rc == -ESRCH);      /* it may be gone already */
    CHECK_EQ(blitz_actor_link(dead), 0); /* told at once */
    CHECK_EQ(expect(BLITZ_MSG_EXIT).reason.kind, BLITZ_EXIT_NOPROC);
    CHECK_EQ(blitz_actor_exit_send(blitz_actor_self(),
                                   &(blitz_exit_reason){.kind = BLITZ_EXIT_ERROR, .code = -EPERM}),
             0);
    down = expect(BLITZ_MSG_EXIT); /* an exit signal needs no link */
    CHECK_EQ(down.reason.code, -EPERM);
    CHECK(blitz_actor_id_equal(down.who, blitz_actor_self()));
    expect_nothing();
    CHECK(blitz_actor_trap_exit(false));
    return 0;
}

TEST(receive_relate, a_trap_makes_an_exit_a_message)
{
    t_on_each(traps_exits, NULL, 0);
}

static int unlinks(void *arg)
{
    (void)arg;
    begin(true);
    blitz_actor_id a = spawn_peer(false, NULL), b = spawn_peer(false, NULL);
    CHECK_EQ(blitz_actor_link(a), 0);
    CHECK_EQ(blitz_actor_link(b), 0);
    CHECK_EQ(blitz_actor_unlink(a), 0);
    fail(a, -EIO);
    expect_nothing();
    fail(b, -EIO);
    CHECK_EQ(blitz_actors_wait_quiet(NULL, BLITZ_FOREVER), 0);
    CHECK_EQ(blitz_actor_unlink(b), 0); /* its exit is in the mailbox */
    expect_nothing();
    CHECK_EQ(blitz_actor_unlink(b), 0); /* there is no link */
    return 0;
}

TEST(receive_relate, after_an_unlink_no_exit_comes_though_it_was_in_the_mailbox)
{
    t_on_each(unlinks, NULL, 0);
}

/* ---- monitors ---- */

static int watches(void *arg)
{
    uint64_t ref[2], again;
    (void)arg;
    begin(false);
    blitz_actor_id a = spawn_peer(false, NULL);
    for (int i = 0; i < 2; i++)
        CHECK_EQ(blitz_actor_monitor(a, &ref[i]), 0);
    CHECK_NE(ref[0], ref[1]);
    fail(a, -EIO);
    blitz_down one = expect(BLITZ_MSG_DOWN), two = expect(BLITZ_MSG_DOWN);
    CHECK(one.ref != two.ref);
    CHECK((one.ref == ref[0] || one.ref == ref[1]) && (two.ref == ref[0] || two.ref == ref[1]));
    CHECK_EQ(one.reason.code, -EIO);
    expect_nothing();
    CHECK_EQ(blitz_actor_demonitor(ref[0]), -ESRCH); /* its message was received */
    CHECK_EQ(blitz_actor_monitor(a, &again), 0);     /* dead: told at once */
    CHECK_EQ(expect(BLITZ_MSG_DOWN).reason.kind, BLITZ_EXIT_NOPROC);
    CHECK_EQ(blitz_actor_monitor(blitz_actor_self(), &again), 0); /* itself: it hears nothing */
    expect_nothing();
    return 0;
}

TEST(receive_relate, a_monitor_is_told_once)
{
    t_on_each(watches, NULL, 0);
}

static int forgets(void *arg)
{
    uint64_t early, late;
    (void)arg;
    begin(false);
    blitz_actor_id a = spawn_peer(false, NULL);
    CHECK_EQ(blitz_actor_monitor(a, &early), 0);
    CHECK_EQ(blitz_actor_monitor(a, &late), 0);
    CHECK_EQ(blitz_actor_demonitor(early), 0);
    CHECK_EQ(blitz_actor_demonitor(early), -ESRCH);
    fail(a, -EIO);
    CHECK_EQ(blitz_actors_wait_quiet(NULL, BLITZ_FOREVER), 0);
    CHECK_EQ(blitz_actor_demonitor(late), 0); /* its message is in the mailbox, and is removed */
    expect_nothing();
    return 0;
}

TEST(receive_relate, after_a_demonitor_no_down_comes_though_it_was_in_the_mailbox)
{
    t_on_each(forgets, NULL, 0);
}

/* ---- spawns, tokens, misuse ---- */

static int spawns(void *arg)
{
    uint64_t ref;
    blitz_actor_id a;
    blitz_actor_opts both = {.link = true, .monitor = &ref};
    (void)arg;
    begin(true);
    for (int i = 0; i < 20; i++) {
        CHECK_EQ(blitz_actor_spawn(&peer, NULL, &both, &a), 0);
        fail(a, -i - 1);
        blitz_down down = expect(BLITZ_MSG_DOWN), exit = expect(BLITZ_MSG_EXIT);
        CHECK_EQ(down.ref, ref);
        CHECK_EQ(down.reason.code, -i - 1);
        CHECK_EQ(exit.reason.code, -i - 1);
        CHECK(blitz_actor_id_equal(down.who, a) && blitz_actor_id_equal(exit.who, a));
    }
    expect_nothing();
    return 0;
}

TEST(receive_relate, a_spawn_links_and_watches)
{
    t_on_each(spawns, NULL, 0);
}

static int keeps_a_token(void *arg)
{
    const blitz_msg *m;
    (void)arg;
    CHECK_EQ(blitz_receiver_begin(&(blitz_actor_opts){.name = "keeper"}, NULL), 0);
    CHECK_EQ(blitz_receive(NULL, NULL, &m, BLITZ_FOREVER), 0);
    CHECK_EQ(blitz_actor_reply_keep(m->reply), 0);
    CHECK_EQ(blitz_receive(NULL, NULL, &m, 0), -ETIMEDOUT); /* the message is gone */
    return 0;
}

static int tokens(void *arg)
{
    blitz_task *t;
    blitz_actor_id id;
    (void)arg;
    CHECK_EQ(blitz_spawn(keeps_a_token, NULL, NULL, &t), 0);
    while ((id = blitz_actor_whereis(NULL, "keeper")).generation == 0)
        blitz_yield();
    CHECK_EQ(blitz_actor_call(id, ASK, NULL, 0, NULL, 0, BLITZ_FOREVER), -ESRCH);
    CHECK_EQ(blitz_task_join(t, NULL, BLITZ_FOREVER), 0);
    return 0;
}

TEST(receive_relate, the_end_of_a_task_answers_the_tokens_that_it_has_kept)
{
    t_on_each(tokens, NULL, 0);
}

static int misuses(void *arg)
{
    uint64_t ref;
    blitz_actor_id a = spawn_peer(false, NULL);
    (void)arg;
    CHECK_EQ(blitz_actor_link(a), -EINVAL); /* it does not receive */
    CHECK_EQ(blitz_actor_monitor(a, &ref), -EINVAL);
    CHECK(!blitz_actor_trap_exit(true));
    begin(false);
    CHECK_EQ(blitz_actor_link(blitz_actor_self()), -EINVAL);
    CHECK_EQ(blitz_actor_monitor(a, NULL), -EINVAL);
    CHECK_EQ(blitz_actor_demonitor(12345), -ESRCH);
    CHECK(!blitz_actor_trap_exit(false)); /* a trap from before it began does not count */
    return 0;
}

TEST(receive_relate, is_for_tasks_that_receive)
{
    CHECK_EQ(t_run_alone(misuses, NULL), 0);
}

/* ---- no memory ---- */

static int scarce(void *arg)
{
    uint64_t ref;
    const blitz_msg *m;
    blitz_actor_id a;
    (void)arg;
    int rc = blitz_receiver_begin(&(blitz_actor_opts){.trap_exit = true}, NULL);
    if (rc == 0)
        rc = blitz_actor_spawn(&peer, NULL, &(blitz_actor_opts){.link = true}, &a);
    if (rc == 0)
        rc = blitz_actor_monitor(a, &ref);
    if (rc == 0)
        rc = blitz_actor_link(a);
    if (rc == 0)
        rc = blitz_actor_send(a, FAIL, &(int){-EIO}, sizeof(int));
    for (int i = 0; rc == 0 && i < 2; i++)
        rc = blitz_receive(NULL, NULL, &m, BLITZ_FOREVER);
    CHECK_EQ(blitz_actors_wait_quiet(NULL, BLITZ_FOREVER), rc == -ECANCELED ? -ECANCELED : 0);
    return rc == -ECANCELED ? -ENOMEM : rc; /* the porter had no memory for the message */
}

TEST(receive_relate, each_refused_allocation_is_an_error_and_no_leak)
{
    t_hold_procs();
    for (int all = 0; all < 2; all++)
        t_refuse_each(scarce, NULL, all);
}
