/* The end of a runtime finds actors in every state, and ends all of them. */
#include "harness.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include "actor/pressure.h"
#include "blitz.h"
#include "support/counted.h"
#include "support/on_each.h"

enum { SLEEP, CALL, SPIN, FLOOD, TAKE };
enum { EACH = 10 };

static atomic_int begun, ended, dropped, waits;

static int on_begin(void *state)
{
    (void)state;
    begun++;
    return 0;
}

static void on_end(void *state, const blitz_exit_reason *why)
{
    (void)state;
    CHECK_EQ(why->kind, BLITZ_EXIT_SHUTDOWN);
    ended++;
}

static void on_drop(void *value, void *ctx)
{
    (void)value, (void)ctx;
    dropped++;
}

BLITZ_HANDLER(on_sleep, void, void)
{
    (void)state, (void)data, (void)m;
    waits++;
    CHECK_EQ(blitz_sleep(3600 * BLITZ_S), -ECANCELED);
    return 0;
}

/* Call an actor that never answers. */
BLITZ_HANDLER(on_call, void, blitz_actor_id)
{
    (void)state, (void)m;
    waits++;
    int rc = blitz_actor_call(*data, CALL, data, sizeof *data, NULL, 0, BLITZ_FOREVER);
    CHECK(rc == -ECANCELED ||
          rc == -ESRCH); /* the call is cancelled, or its receiver has ended first */
    return 0;
}

BLITZ_HANDLER(on_spin, void, void)
{
    (void)state, (void)data, (void)m;
    int rc = blitz_actor_send(blitz_actor_self(), SPIN, NULL, 0);
    CHECK(rc == 0 || rc == -ESRCH);
    return 0;
}

/* Send more than the other takes; it takes one, and spins. */
BLITZ_HANDLER(on_flood, void, blitz_actor_id)
{
    (void)state, (void)m;
    for (int i = 0; i < 20; i++) {
        int rc = blitz_actor_send(*data, TAKE, NULL, 0);
        CHECK(rc == 0 || rc == -ESRCH || rc == -EAGAIN);
    }
    int rc = blitz_actor_send(blitz_actor_self(), FLOOD, data, sizeof *data);
    CHECK(rc == 0 || rc == -ESRCH);
    return 0;
}

BLITZ_HANDLER(on_take, void, void)
{
    (void)state, (void)data, (void)m;
    blitz_yield();
    return 0;
}

static const blitz_handler handlers[] = {
    BLITZ_ON_EMPTY(SLEEP, on_sleep), BLITZ_ON(CALL, blitz_actor_id, on_call),
    BLITZ_ON_EMPTY(SPIN, on_spin), BLITZ_ON(FLOOD, blitz_actor_id, on_flood),
    BLITZ_ON_EMPTY(TAKE, on_take)};
static const blitz_behaviour worker = {.name = "worker",
                                       .init = on_begin,
                                       .handlers = handlers,
                                       .handler_count = 5,
                                       .exit = on_end,
                                       .drop = on_drop,
                                       .mailbox_high = 20};

static blitz_actor_id spawn_worker(void)
{
    blitz_actor_id id;
    CHECK_EQ(blitz_actor_spawn(&worker, NULL, NULL, &id), 0);
    return id;
}

static int receiver(void *arg)
{
    const blitz_msg *m;
    (void)arg;
    CHECK_EQ(blitz_receiver_begin(NULL, NULL), 0);
    waits++;
    CHECK_EQ(blitz_receive(NULL, NULL, &m, BLITZ_FOREVER), -ECANCELED);
    return 0;
}

static void await_muted(blitz_actor_id id)
{
    blitz_actor_info info = {.state = BLITZ_ACTOR_IDLE};
    while (info.state != BLITZ_ACTOR_MUTED) {
        CHECK_EQ(blitz_actor_info_get(id, &info), 0);
        blitz_yield();
    }
}

static int leaves_all(void *arg)
{
    blitz_actor_id sink = spawn_worker(), flood[EACH];
    (void)arg;
    for (int i = 0; i < EACH; i++) {
        blitz_actor_id a = spawn_worker(), b = spawn_worker();
        (void)spawn_worker(); /* idle */
        CHECK_EQ(blitz_actor_send(spawn_worker(), SLEEP, NULL, 0), 0);
        CHECK_EQ(blitz_actor_send(a, CALL, &b, sizeof b), 0); /* each waits for the other */
        CHECK_EQ(blitz_actor_send(b, CALL, &a, sizeof a), 0);
        CHECK_EQ(blitz_actor_send(spawn_worker(), SPIN, NULL, 0), 0);
        flood[i] = spawn_worker();
        CHECK_EQ(blitz_actor_send(flood[i], FLOOD, &sink, sizeof sink), 0);
        CHECK_EQ(blitz_actor_send_after(a, TAKE, NULL, 0, blitz_after(3600 * BLITZ_S), NULL), 0);
        CHECK_EQ(blitz_spawn(receiver, NULL, NULL, NULL), 0);
    }
    while (waits < 4 * EACH)
        blitz_yield();
    for (int i = 0; i < EACH; i++)
        await_muted(flood[i]);
    return 0;
}

/* A runtime that forgets one of them does not end, or leaks its state. */
TEST(actor_shutdown, ends_actors_that_wait_are_muted_idle_and_at_work)
{
    static const unsigned procs[] = {1, 2, 3, 8};
    for (int i = 0; i < 4 * 3; i++) {
        begun = ended = dropped = waits = 0;
        bz_mute_ns = i % 2 == 0 ? 3600 * BLITZ_S : BLITZ_MS;
        CHECK_EQ(blitz_run(leaves_all, NULL, &(blitz_runtime_opts){.procs = procs[i % 4]}), 0);
        CHECK_EQ(ended, begun);
        CHECK_EQ(dropped, 6 * EACH + 1); /* also of one whose init did not run */
    }
}

/* ---- callers of another runtime, and of none ---- */

enum { KEEP, HOLD };

static atomic_bool is_held, may_go;

BLITZ_HANDLER(on_keep, void, void)
{
    (void)state, (void)data;
    return blitz_actor_reply_keep(m->reply);
}

/* It keeps its thread, so that messages pile up. */
BLITZ_HANDLER(on_hold, void, void)
{
    (void)state, (void)data, (void)m;
    is_held = true;
    while (!may_go)
        sched_yield();
    return 0;
}

static const blitz_handler keeping[] = {BLITZ_ON_EMPTY(KEEP, on_keep),
                                        BLITZ_ON_EMPTY(HOLD, on_hold)};
static const blitz_behaviour keeper = {
    .name = "keeper", .handlers = keeping, .handler_count = 2, .mailbox_high = 20};

static blitz_runtime *given_keeper(blitz_actor_id *id)
{
    blitz_runtime *rt;
    const blitz_runtime_opts opts = {.procs = 1, .allocator = &counted};
    CHECK_EQ(blitz_runtime_new(&opts, &rt), 0);
    CHECK_EQ(blitz_actor_spawn(&keeper, NULL, &(blitz_actor_opts){.runtime = rt}, id), 0);
    return rt;
}

static void release(blitz_runtime *rt)
{
    CHECK_EQ(blitz_runtime_shutdown(rt, BLITZ_FOREVER), 0);
    CHECK_EQ(blitz_runtime_unref(rt), 0);
}

static void ignore(void *data)
{
    (void)data;
}

/* Fill its mailbox: these messages are not held back. */
static void flood(blitz_runtime *rt, blitz_actor_id id)
{
    CHECK_EQ(blitz_actor_send(id, HOLD, NULL, 0), 0);
    while (!is_held)
        sched_yield();
    CHECK_EQ(blitz_group_join("g", id), 0);
    for (int i = 0; i < 40; i++)
        CHECK_EQ(blitz_group_send(rt, "g", KEEP + 2, NULL, 0), 1);
}

/* Poll it, release the runtime, and poll it again or cancel it. Returns its result. */
static int outlive(blitz_future *f, blitz_runtime *rt, bool cancels)
{
    static const blitz_waker_ops ops = {ignore, ignore, ignore, ignore};
    const blitz_waker waker = {&ops, NULL};
    CHECK_EQ(f->ops->poll(f, &waker), BLITZ_PENDING);
    may_go = true;
    release(rt);
    CHECK_GT(counted_blocks(), 0);
    if (cancels)
        f->ops->cancel(f);
    else
        CHECK_EQ(f->ops->poll(f, &waker), BLITZ_READY);
    CHECK_EQ(counted_blocks(), 0);
    return f->ops->output(f);
}

/* The runtime is gone when it is polled again. Its memory is not, until then. */
TEST(actor_shutdown, a_future_outlives_the_runtime_of_its_actor)
{
    for (int i = 0; i < 6; i++) {
        blitz_actor_id id;
        blitz_runtime *rt = given_keeper(&id);
        blitz_actor_call_future call;
        blitz_actor_join_future join;
        blitz_actor_send_future send;
        blitz_future *all[] = {&call.future, &join.future, &send.future};
        bool cancels = i % 2;
        t_watch("future %d, cancels %d", i / 2, cancels);
        is_held = may_go = false;
        flood(rt, id);
        blitz_actor_call_future_init(&call, id, KEEP, NULL, 0, NULL, 0);
        blitz_actor_join_future_init(&join, id, NULL);
        blitz_actor_send_future_init(&send, id, KEEP, NULL, 0);
        int rc = outlive(all[i / 2], rt, cancels);
        CHECK(cancels ? rc == -ECANCELED : rc == -ESRCH || (rc == 0 && i / 2 > 0));
    }
}

static void *calls(void *arg)
{
    const blitz_actor_id *id = arg;
    begun++;
    CHECK_EQ(blitz_actor_call(*id, KEEP, NULL, 0, NULL, 0, BLITZ_FOREVER), -ESRCH);
    return NULL;
}

static void *joins(void *arg)
{
    const blitz_actor_id *id = arg;
    begun++;
    int rc = blitz_actor_join(*id, NULL, BLITZ_FOREVER);
    CHECK(rc == 0 || rc == -ESRCH);
    return NULL;
}

static void *refers(void *arg)
{
    const blitz_actor_id *id = arg;
    blitz_reference *none;
    int rc;
    begun++;
    while ((rc = blitz_reference_of(*id, &none)) == -EOPNOTSUPP)
        ;
    CHECK_EQ(rc, -ESRCH);
    return NULL;
}

static void *sends(void *arg)
{
    const blitz_actor_id *id = arg;
    int rc;
    begun++;
    do {
        blitz_actor_info info;
        (void)blitz_actor_info_get(*id, &info);
        rc = blitz_actor_send(*id, KEEP + 2, NULL, 0);
    } while (rc == 0);
    CHECK_EQ(rc, -ESRCH);
    return NULL;
}

/* A plain thread knows an id. It does not know when the runtime ends. */
TEST(actor_shutdown, threads_call_join_and_send_while_the_runtime_is_released)
{
    static void *(*const does[])(void *) = {calls, joins, sends, refers};
    for (int round = 0; round < 20; round++) {
        enum { THREADS = 8 };
        pthread_t thread[THREADS];
        blitz_actor_id id;
        blitz_runtime *rt = given_keeper(&id);
        begun = 0;
        for (int i = 0; i < THREADS; i++)
            CHECK_EQ(pthread_create(&thread[i], NULL, does[i % 4], &id), 0);
        while (begun < THREADS)
            sched_yield();
        release(rt);
        for (int i = 0; i < THREADS; i++)
            CHECK_EQ(pthread_join(thread[i], NULL), 0);
        CHECK_EQ(counted_blocks(), 0);
    }
}
