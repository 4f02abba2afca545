/* Waits until no actor has anything to handle: what counts, what does not, and every form of the wait. */
#include "harness.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>

#include "blitz.h"
#include "proc/state.h"
#include "support/alone.h"
#include "support/on_each.h"

enum { PASS, SLEEP, ASK_QUIET, AWAIT_QUIET, FLOOD, NOTHING };

struct pass {
    blitz_actor_id other;
    uint32_t left;
};

static atomic_int handled;

BLITZ_HANDLER(on_pass, void, struct pass)
{
    (void)state, (void)m;
    struct pass on = {blitz_actor_self(), data->left - 1};
    handled++;
    return data->left > 0 ? blitz_actor_send(data->other, PASS, &on, sizeof on) : 0;
}

BLITZ_HANDLER(on_sleep, void, blitz_duration)
{
    (void)state, (void)m;
    (void)!blitz_sleep(*data);
    handled++;
    return 0;
}

BLITZ_HANDLER(on_ask_quiet, void, void)
{
    (void)state, (void)data;
    return blitz_actor_reply_error(m->reply, blitz_actors_wait_quiet(NULL, BLITZ_FOREVER));
}

BLITZ_HANDLER(on_await_quiet, void, void)
{
    blitz_actors_wait_quiet_future f;
    (void)state, (void)data;
    blitz_actors_wait_quiet_future_init(&f, NULL);
    int rc = blitz_await(&f.future, BLITZ_FOREVER);
    return blitz_actor_reply_error(m->reply, rc == 0 ? f.result : rc);
}

/* Send more to an actor than it may have: the sender is muted. */
BLITZ_HANDLER(on_flood, void, blitz_actor_id)
{
    (void)state, (void)m;
    for (int i = 0; i < 100; i++)
        if (blitz_actor_send(*data, NOTHING, NULL, 0) != 0)
            return -EIO;
    return 0;
}

BLITZ_HANDLER(on_nothing, void, void)
{
    (void)state, (void)data, (void)m;
    blitz_yield();
    handled++;
    return 0;
}

static const blitz_handler handlers[] = {
    BLITZ_ON(PASS, struct pass, on_pass),      BLITZ_ON(SLEEP, blitz_duration, on_sleep),
    BLITZ_ON_EMPTY(ASK_QUIET, on_ask_quiet),   BLITZ_ON_EMPTY(AWAIT_QUIET, on_await_quiet),
    BLITZ_ON(FLOOD, blitz_actor_id, on_flood), BLITZ_ON_EMPTY(NOTHING, on_nothing),
};
static const blitz_behaviour worker = {
    .name = "worker", .handlers = handlers, .handler_count = 6, .mailbox_high = 20};

static blitz_actor_id spawn_worker(void)
{
    blitz_actor_id id;
    CHECK_EQ(blitz_actor_spawn(&worker, NULL, NULL, &id), 0);
    return id;
}

/* No thread watches any more: rests are cheap again. */
static void no_watcher_is_left(void)
{
    CHECK_EQ(bz_load_relaxed(&bz_machine_self()->rt->busy.watchers) & ~BZ_BUSY_PLAIN, 0u);
}

static int wait_quiet(void)
{
    return blitz_actors_wait_quiet(NULL, BLITZ_FOREVER);
}

/* ---- actors at work ---- */

static int chain(void *arg)
{
    blitz_actor_id a = spawn_worker(), b = spawn_worker();
    (void)arg;
    handled = 0;
    for (int i = 1; i <= 20; i++) {
        struct pass p = {b, 50};
        CHECK_EQ(blitz_actor_send(a, PASS, &p, sizeof p), 0);
        CHECK_EQ(wait_quiet(), 0);
        CHECK_EQ(handled, i * 51);
    }
    no_watcher_is_left();
    return 0;
}

/* A caller that waits for quiet relies on all that follows from its messages. */
TEST(quiet, comes_when_messages_and_those_that_follow_are_handled)
{
    t_on_each(chain, NULL, 0);
}

static int sleeper(void *arg)
{
    blitz_actor_id a = spawn_worker();
    blitz_duration ever = 3600 * BLITZ_S;
    (void)arg;
    handled = 0;
    CHECK_EQ(blitz_actor_send(a, SLEEP, &ever, sizeof ever), 0);
    CHECK_EQ(blitz_actors_wait_quiet(NULL, blitz_after(BLITZ_MS)), -ETIMEDOUT);
    CHECK_EQ(handled, 0);
    CHECK_EQ(blitz_actor_kill(a), 0);
    CHECK_EQ(wait_quiet(), 0);
    CHECK(!blitz_actor_is_alive(a));
    no_watcher_is_left();
    return 0;
}

/* A handler that waits has not handled its message. A death counts as rest. */
TEST(quiet, an_actor_that_waits_in_a_handler_is_not_quiet_and_a_dead_one_is)
{
    t_on_each(sleeper, NULL, 0);
}

static int flood(void *arg)
{
    blitz_actor_id slow = spawn_worker(), source = spawn_worker();
    (void)arg;
    handled = 0;
    for (int i = 0; i < 3; i++)
        CHECK_EQ(blitz_actor_send(source, FLOOD, &slow, sizeof slow), 0);
    CHECK_EQ(wait_quiet(), 0);
    CHECK_EQ(handled, 300);
    return 0;
}

/* A muted actor has messages left. */
TEST(quiet, a_muted_actor_is_not_quiet)
{
    t_on_each(flood, NULL, 0);
}

static int fails_to_begin(void *state)
{
    (void)state;
    blitz_yield();
    handled++;
    return -EIO;
}

static int births(void *arg)
{
    static const blitz_behaviour stillborn = {.name = "stillborn", .init = fails_to_begin};
    blitz_actor_opts named = {.name = "one"};
    (void)arg;
    handled = 0;
    for (int i = 0; i < 10; i++)
        CHECK_EQ(blitz_actor_spawn(&stillborn, NULL, NULL, NULL), 0);
    CHECK_EQ(wait_quiet(), 0);
    CHECK_EQ(handled, 10);
    CHECK_EQ(blitz_actor_spawn(&worker, NULL, &named, NULL), 0);
    CHECK_EQ(blitz_actor_spawn(&worker, NULL, &named, NULL), -EEXIST);
    CHECK_EQ(wait_quiet(), 0);
    return 0;
}

TEST(quiet, init_counts_and_a_spawn_that_was_refused_does_not)
{
    t_on_each(births, NULL, 0);
}

/* ---- messages that do not count ---- */

static int later(void *arg)
{
    blitz_actor_id a = spawn_worker(), me;
    uint64_t timer;
    const blitz_msg *m;
    (void)arg;
    handled = 0;
    CHECK_EQ(blitz_actor_send_after(a, NOTHING, NULL, 0, blitz_after(3600 * BLITZ_S), &timer), 0);
    CHECK_EQ(wait_quiet(), 0);
    CHECK_EQ(handled, 0);
    CHECK_EQ(blitz_actor_timer_cancel(a, timer), 0);
    CHECK_EQ(blitz_receiver_begin(NULL, &me), 0);
    CHECK_EQ(blitz_actor_send(me, NOTHING, NULL, 0), 0);
    CHECK_EQ(wait_quiet(), 0);
    CHECK_EQ(blitz_receive(NULL, NULL, &m, 0), 0); /* it is in the inbox by now */
    CHECK_EQ(m->what, NOTHING);
    return 0;
}

TEST(quiet, timers_that_are_not_due_and_inboxes_do_not_count)
{
    t_on_each(later, NULL, 0);
}

static int due(void *arg)
{
    blitz_actor_id a = spawn_worker();
    blitz_duration nap = BLITZ_MS;
    (void)arg;
    handled = 0;
    CHECK_EQ(blitz_actor_send(a, SLEEP, &nap, sizeof nap), 0);
    for (int i = 0; i < 20; i++) /* they come while the actor sleeps and a caller waits */
        CHECK_EQ(blitz_actor_send_after(a, NOTHING, NULL, 0, blitz_after(i * 30000), NULL), 0);
    CHECK_EQ(wait_quiet(), 0);
    CHECK(handled >= 1);
    blitz_actor_info info;
    while (handled < 21) { /* others come later */
        CHECK_EQ(wait_quiet(), 0);
        CHECK_EQ(blitz_actor_info_get(a, &info), 0);
        blitz_yield();
    }
    return 0;
}

/* A timer that fires into a busy mailbox is counted in and out again. */
TEST(quiet, timers_that_fire_meanwhile_leave_the_counts_balanced)
{
    t_on_each(due, NULL, 0);
}

/* ---- misuse ---- */

static int actors_ask(void *arg)
{
    blitz_actor_id a = spawn_worker();
    (void)arg;
    CHECK_EQ(blitz_actor_call(a, ASK_QUIET, NULL, 0, NULL, 0, BLITZ_FOREVER), -EDEADLK);
    CHECK_EQ(blitz_actor_call(a, AWAIT_QUIET, NULL, 0, NULL, 0, BLITZ_FOREVER), -EDEADLK);
    no_watcher_is_left();
    return 0;
}

TEST(quiet, an_actor_cannot_wait_for_itself)
{
    CHECK_EQ(t_run_alone(actors_ask, NULL), 0);
}

static int no_actors(void *arg)
{
    blitz_actors_wait_quiet_future f;
    (void)arg;
    CHECK_EQ(wait_quiet(), 0);
    blitz_actors_wait_quiet_future_init(&f, NULL);
    CHECK_EQ(blitz_await(&f.future, 0), 0);
    CHECK_EQ(f.result, 0);
    return 0;
}

TEST(quiet, a_runtime_without_actors_is_quiet_and_no_runtime_is_an_error)
{
    blitz_actors_wait_quiet_future f;
    blitz_waker none = {NULL, NULL};
    CHECK_EQ(blitz_actors_wait_quiet(NULL, BLITZ_FOREVER), -EINVAL);
    blitz_actors_wait_quiet_future_init(&f, NULL);
    CHECK_EQ(f.future.ops->poll(&f.future, &none), BLITZ_READY);
    CHECK_EQ(f.result, -EINVAL);
    CHECK_EQ(blitz_run(no_actors, NULL, NULL), 0);
}

/* ---- every form ---- */

enum { PARTIES = 40 }; /* more than fit into one list of wake-ups */

static int waits(void *arg)
{
    (void)arg;
    return wait_quiet() != 0 || handled == 0 ? 1 : 0;
}

static int waits_by_a_future(void *arg)
{
    blitz_actors_wait_quiet_future f;
    (void)arg;
    blitz_actors_wait_quiet_future_init(&f, NULL);
    return blitz_await(&f.future, BLITZ_FOREVER) != 0 || f.result != 0 || handled == 0;
}

static blitz_poll waits_without_a_stack(void *state, blitz_cx *cx)
{
    blitz_actors_wait_quiet_future *f = state;
    if (f->future.ops == NULL)
        blitz_actors_wait_quiet_future_init(f, NULL);
    blitz_poll p = f->future.ops->poll(&f->future, cx->waker);
    if (p == BLITZ_READY)
        CHECK_EQ(f->result, 0);
    return p;
}

static int all_forms(void *arg)
{
    static const blitz_actors_wait_quiet_future none;
    blitz_task *t[PARTIES];
    blitz_actor_id a = spawn_worker();
    blitz_duration nap = BLITZ_MS;
    (void)arg;
    handled = 0;
    CHECK_EQ(blitz_actor_send(a, SLEEP, &nap, sizeof nap), 0);
    for (int i = 0; i < PARTIES; i++) {
        if (i % 3 == 2)
            CHECK_EQ(blitz_spawn_poll(waits_without_a_stack, &none, sizeof none, NULL, &t[i]), 0);
        else
            CHECK_EQ(blitz_spawn(i % 3 == 0 ? waits : waits_by_a_future, NULL, NULL, &t[i]), 0);
    }
    for (int i = 0; i < PARTIES; i++) {
        int result;
        CHECK_EQ(blitz_task_join(t[i], &result, BLITZ_FOREVER), 0);
        CHECK_EQ(result, 0);
    }
    no_watcher_is_left();
    return 0;
}

TEST(quiet, one_rest_releases_waiters_of_every_form)
{
    t_on_each(all_forms, NULL, 0);
}

static void *sends_and_waits(void *runtime)
{
    blitz_actor_id a = blitz_actor_whereis(runtime, "a"), b = blitz_actor_whereis(runtime, "b");
    for (int i = 1; i <= 100; i++) {
        struct pass p = {b, 5};
        handled = 0;
        CHECK_EQ(blitz_actor_send(a, PASS, &p, sizeof p), 0);
        CHECK_EQ(blitz_actors_wait_quiet(runtime, BLITZ_FOREVER), 0);
        CHECK_EQ(handled, 6);
    }
    return NULL;
}

TEST(quiet, a_plain_thread_sends_and_waits)
{
    blitz_runtime *rt;
    pthread_t thread;
    CHECK_EQ(blitz_runtime_new(&(blitz_runtime_opts){.procs = 2}, &rt), 0);
    for (int i = 0; i < 2; i++)
        CHECK_EQ(blitz_actor_spawn(&worker, NULL,
                                   &(blitz_actor_opts){.runtime = rt, .name = i ? "b" : "a"}, NULL),
                 0);
    CHECK_EQ(pthread_create(&thread, NULL, sends_and_waits, rt), 0);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    CHECK_EQ(blitz_runtime_shutdown(rt, BLITZ_FOREVER), 0);
    CHECK_EQ(blitz_runtime_unref(rt), 0);
}

/* ---- leaving ---- */

static int is_cancelled(void *arg)
{
    (void)arg;
    return wait_quiet() == -ECANCELED ? 0 : 1;
}

static int leaves(void *arg)
{
    blitz_actor_id a = spawn_worker();
    blitz_duration ever = 3600 * BLITZ_S;
    blitz_actors_wait_quiet_future f;
    blitz_waker none = {NULL, NULL};
    blitz_task *t;
    int result;
    (void)arg;
    CHECK_EQ(blitz_actor_send(a, SLEEP, &ever, sizeof ever), 0);
    CHECK_EQ(blitz_spawn(is_cancelled, NULL, NULL, &t), 0);
    blitz_yield();
    blitz_task_cancel(t);
    CHECK_EQ(blitz_task_join(t, &result, BLITZ_FOREVER), 0);
    CHECK_EQ(result, 0);
    blitz_actors_wait_quiet_future_init(&f, NULL);
    f.future.ops->cancel(&f.future); /* before its first poll */
    CHECK_EQ(f.result, -ECANCELED);
    blitz_actors_wait_quiet_future_init(&f, NULL);
    CHECK_EQ(f.future.ops->poll(&f.future, &none), BLITZ_PENDING);
    f.future.ops->cancel(&f.future);
    f.future.ops->cancel(&f.future);
    CHECK_EQ(f.result, -ECANCELED);
    CHECK_EQ(f.future.ops->poll(&f.future, &none), BLITZ_READY);
    no_watcher_is_left();
    return 0; /* the sleeper is left to the shutdown */
}

TEST(quiet, a_cancel_leaves_the_queue)
{
    t_on_each(leaves, NULL, 0);
}
