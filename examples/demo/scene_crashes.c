/*
 * scene_crashes.c - workers that crash, a supervisor that starts them again, and a sum that is right all the same.
 *
 * Clients are fibers that give orders to a hundred workers, and wait for each answer. Every thousandth order makes its worker
 * fail. The client and all others that wait for this worker are told. Its supervisor starts it again under the same name, and
 * they repeat their orders. The ledger is an actor of its own: a worker that fails cannot harm it.
 */
#include <errno.h>
#include <stdio.h>

#include <blitz.h>

#include "demo.h"

enum { WORKERS = 100, CLIENTS = 200, BAD_EVERY = 1000 };

/* ---- the ledger ---- */

enum { ENTER, SUM };

BLITZ_HANDLER(on_enter, uint64_t, void)
{
    (void)data, (void)m;
    ++*state;
    return 0;
}

BLITZ_HANDLER(on_sum, const uint64_t, void)
{
    (void)data;
    return blitz_actor_reply(m->reply, state, sizeof *state);
}

static const blitz_handler ledger_handlers[] = {BLITZ_ON_EMPTY(ENTER, on_enter),
                                                BLITZ_ON_EMPTY(SUM, on_sum)};
static const blitz_behaviour ledger = {.name = "ledger",
                                       .state_bytes = sizeof(uint64_t),
                                       .handlers = ledger_handlers,
                                       .handler_count = 2};

/* ---- the workers ---- */

enum { WORK };

static char names[WORKERS][24];

static bool is_bad(uint64_t order)
{
    return order % BAD_EVERY == 0;
}

/* The state is the id of the ledger. */
BLITZ_HANDLER(on_work, const blitz_actor_id, uint64_t)
{
    if (is_bad(*data))
        return blitz_actor_fail(-EIO, "a bad order");
    int rc = blitz_actor_send(*state, ENTER, NULL, 0);
    return rc != 0 ? rc : blitz_actor_reply(m->reply, NULL, 0);
}

static const blitz_handler worker_handlers[] = {BLITZ_ON(WORK, uint64_t, on_work)};
static const blitz_behaviour worker = {.name = "worker",
                                       .state_bytes = sizeof(blitz_actor_id),
                                       .handlers = worker_handlers,
                                       .handler_count = 1};

static int supervise(const blitz_actor_id *to, blitz_actor_id *out)
{
    blitz_child_spec children[WORKERS];
    for (int i = 0; i < WORKERS; i++) {
        snprintf(names[i], sizeof names[i], "worker %d", i);
        children[i] =
            (blitz_child_spec){.id = names[i], .behaviour = &worker, .state = to, .name = names[i]};
    }
    blitz_supervisor_plan plan = {/* one failure within a nanosecond is not too many */
                                  .intensity = 1,
                                  .period = 1,
                                  .children = children,
                                  .child_count = WORKERS};
    return blitz_supervisor_spawn(&plan, NULL, out);
}

/* ---- the clients ---- */

struct shop {
    uint64_t orders;            /* of each client */
    _Atomic uint64_t done;      /* of all clients */
    _Atomic uint64_t refusals;  /* answers that a worker has failed */
    uint64_t entered, restarts; /* the result */
};

struct client {
    struct shop *shop;
    uint64_t first;
};

/* The worker of an order. The bad ones are for all workers in turn. */
static const char *worker_of(uint64_t order)
{
    return names[(order + order / BAD_EVERY) % WORKERS];
}

/* Give an order to its worker; again if the worker has failed before it came to the order. */
static int give(struct shop *s, uint64_t order)
{
    for (;;) {
        blitz_actor_id to = blitz_actor_whereis(NULL, worker_of(order));
        int rc = blitz_actor_call(to, WORK, &order, sizeof order, NULL, 0, BLITZ_FOREVER);
        if (rc != -ESRCH)
            return rc;
        s->refusals++;
        if (is_bad(order))
            return 0;
        blitz_yield(); /* its supervisor is about to start it */
    }
}

static int serve(void *arg)
{
    struct client *c = arg;
    int rc = 0;
    for (uint64_t i = 0; rc == 0 && i < c->shop->orders; i++) {
        rc = give(c->shop, c->first + i);
        c->shop->done++;
    }
    return rc;
}

static int run(void *arg)
{
    struct shop *s = arg;
    struct client clients[CLIENTS];
    blitz_task *tasks[CLIENTS];
    blitz_supervisor_counts counts = {.restarts = 0};
    blitz_actor_id to, sup;
    int rc = blitz_actor_spawn(&ledger, NULL, NULL, &to), count = 0;
    if (rc == 0)
        rc = supervise(&to, &sup);
    for (; rc == 0 && count < CLIENTS; count += rc == 0) {
        clients[count] = (struct client){s, (uint64_t)count * s->orders};
        rc = blitz_spawn(serve, &clients[count], NULL, &tasks[count]);
    }
    for (int i = 0; i < count; i++) {
        int ended = 0;
        (void)!blitz_task_join(tasks[i], &ended, BLITZ_FOREVER);
        rc = rc == 0 ? ended : rc;
    }
    if (rc == 0)
        rc = blitz_supervisor_count(sup, &counts);
    if (rc == 0)
        rc = blitz_actor_call(to, SUM, NULL, 0, &s->entered, sizeof s->entered, BLITZ_FOREVER);
    s->restarts = counts.restarts;
    s->done = s->orders * CLIENTS; /* the watcher goes on, also after a failure */
    return rc < 0 ? rc : 0;
}

static void play(struct demo *d)
{
    struct shop s = {.orders = demo_scaled(d, 20000)};
    uint64_t total = s.orders * CLIENTS, bad = (total + BAD_EVERY - 1) / BAD_EVERY;
    blitz_runtime *rt;
    blitz_task *t;
    int rc = blitz_runtime_new(NULL, &rt);
    demo_claim(d, rc == 0, "no runtime");
    if (rc != 0)
        return;
    double start = demo_seconds();
    rc = blitz_spawn(run, &s, &(blitz_spawn_opts){.runtime = rt}, &t);
    if (rc == 0) {
        demo_watch(d, &s.done, total, "orders");
        (void)!blitz_task_join(t, &rc, BLITZ_FOREVER);
    }
    double seconds = demo_seconds() - start;
    demo_claim(d, rc == 0, "the shop failed with %d", rc);
    demo_claim(d, s.entered == total - bad, "the ledger has %s entries instead of %s",
               demo_count(s.entered), demo_count(total - bad));
    demo_result(d, "%s orders of %d clients in %.1f s: %s in the ledger, none lost or doubled",
                demo_count(total), CLIENTS, seconds, demo_count(s.entered));
    demo_result(d, "%s crashes and restarts; %s answers said that a worker had failed",
                demo_count(s.restarts), demo_count(s.refusals));
    blitz_runtime_shutdown(rt, BLITZ_FOREVER);
    (void)!blitz_runtime_unref(rt); /* it was shut down */
}

const struct demo_scene scene_crashes = {
    "crashes", "A hundred workers that crash and restart",
    "Each thousandth order makes its worker fail; a supervisor restarts it, and no order is lost.",
    play};
