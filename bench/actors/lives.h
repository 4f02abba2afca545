/*
 * lives.h - ours: actors that are created, called, related, restarted, and idle.
 */
#ifndef BENCH_ACTORS_LIVES_H
#define BENCH_ACTORS_LIVES_H

#include <errno.h>

#include "actors/ours.h"

/* ---- create, message, end ---- */

enum { DIE };

/* The message is the id of its parent, if the child is the last of its batch. */
BLITZ_HANDLER(on_die, void, blitz_actor_id)
{
    (void)state, (void)m;
    if (data->generation != 0)
        tell(*data, 0, NULL, 0);
    return BLITZ_ACTOR_STOP;
}

static const blitz_handler child_handlers[] = {BLITZ_ON(DIE, blitz_actor_id, on_die)};
static const blitz_behaviour child = {
    .name = "child", .handlers = child_handlers, .handler_count = 1};

enum { MAKE };

BLITZ_HANDLER(on_make, uint64_t, void)
{
    static const blitz_actor_id none;
    blitz_actor_id me = blitz_actor_self();
    (void)data, (void)m;
    if (*state == 0)
        blitz_notify_one(&done);
    uint64_t now = smaller(*state, BATCH);
    *state -= now;
    for (; now > 0; now--)
        tell(start(&child, NULL), DIE, now == 1 ? &me : &none, sizeof me);
    return 0;
}

static const blitz_handler parent_handlers[] = {BLITZ_ON_EMPTY(MAKE, on_make)};
static const blitz_behaviour parent = {.name = "parent",
                                       .state_bytes = sizeof(uint64_t),
                                       .handlers = parent_handlers,
                                       .handler_count = 1};

static uint64_t tasks_alive(void)
{
    blitz_stats s;
    must(blitz_stats_read(NULL, &s), "stats");
    return s.spawned - s.ended;
}

static double case_create(uint64_t ops)
{
    blitz_actor_id id = start(&parent, &ops);
    uint64_t alive = tasks_alive(), began = tasks_now_ns();
    tell(id, MAKE, NULL, 0);
    must(blitz_notify_wait(&done, BLITZ_FOREVER), "wait");
    while (tasks_alive() != alive) /* on two procs a few children of the last batch may be left */
        blitz_yield();
    double ns = (double)(tasks_now_ns() - began);
    stop(id);
    return ns;
}

/* ---- a call in a handler ---- */

enum { ASK };

BLITZ_HANDLER(on_ask, uint64_t, void)
{
    (void)data;
    ++*state;
    return blitz_actor_reply(m->reply, state, sizeof *state);
}

static const blitz_handler server_handlers[] = {BLITZ_ON_EMPTY(ASK, on_ask)};
static const blitz_behaviour server = {.name = "server",
                                       .state_bytes = sizeof(uint64_t),
                                       .handlers = server_handlers,
                                       .handler_count = 1};

enum { CALL, LINK, MONITOR };

struct partner {
    blitz_actor_id other;
    uint64_t left;
};

BLITZ_HANDLER(on_call, struct partner, void)
{
    uint64_t answer = 0;
    (void)data, (void)m;
    for (uint64_t i = 0; i < state->left; i++)
        must(blitz_actor_call(state->other, ASK, NULL, 0, &answer, sizeof answer, BLITZ_FOREVER),
             "call");
    if (answer != state->left)
        bench_die("%llu calls of %llu", (unsigned long long)answer,
                  (unsigned long long)state->left);
    blitz_notify_one(&done);
    return 0;
}

/* ---- links and monitors ---- */

/* A batch of pairs is done. */
static void go_on(struct partner *p, uint64_t pairs, uint32_t what)
{
    p->left -= pairs;
    if (p->left > 0)
        tell(blitz_actor_self(), what, NULL, 0);
    else
        blitz_notify_one(&done);
}

BLITZ_HANDLER(on_link, struct partner, void)
{
    uint64_t now = smaller(state->left, BATCH);
    (void)data, (void)m;
    for (uint64_t i = 0; i < now; i++) {
        must(blitz_actor_link(state->other), "link");
        must(blitz_actor_unlink(state->other), "unlink");
    }
    go_on(state, now, LINK);
    return 0;
}

BLITZ_HANDLER(on_monitor, struct partner, void)
{
    uint64_t now = smaller(state->left, BATCH), ref;
    (void)data, (void)m;
    for (uint64_t i = 0; i < now; i++) {
        must(blitz_actor_monitor(state->other, &ref), "monitor");
        must(blitz_actor_demonitor(ref), "demonitor");
    }
    go_on(state, now, MONITOR);
    return 0;
}

static const blitz_handler partner_handlers[] = {BLITZ_ON_EMPTY(CALL, on_call),
                                                 BLITZ_ON_EMPTY(LINK, on_link),
                                                 BLITZ_ON_EMPTY(MONITOR, on_monitor)};
static const blitz_behaviour partner = {.name = "partner",
                                        .state_bytes = sizeof(struct partner),
                                        .handlers = partner_handlers,
                                        .handler_count = 3};

static double together(uint64_t ops, uint32_t what)
{
    uint64_t zero = 0;
    blitz_actor_id other = start(&server, &zero);
    blitz_actor_id id = start(&partner, &(struct partner){other, ops});
    uint64_t began = tasks_now_ns();
    tell(id, what, NULL, 0);
    double ns = done_since(began);
    stop(id);
    stop(other);
    return ns;
}

static double case_call(uint64_t ops)
{
    return together(ops, CALL);
}

static double case_link(uint64_t ops)
{
    return together(ops, LINK);
}

static double case_monitor(uint64_t ops)
{
    return together(ops, MONITOR);
}

/* ---- crash and restart ---- */

static uint64_t crashes_left; /* only the child of the moment touches it */

enum { CRASH };

static int mortal_init(void *state)
{
    (void)state;
    if (crashes_left == 0) {
        blitz_notify_one(&done);
        return 0;
    }
    crashes_left--;
    return blitz_actor_send(blitz_actor_self(), CRASH, NULL, 0);
}

static int on_crash(void *state, const blitz_msg *m)
{
    (void)state, (void)m;
    return -EIO;
}

static const blitz_handler mortal_handlers[] = {BLITZ_ON_EMPTY(CRASH, on_crash)};
static const blitz_behaviour mortal = {
    .name = "mortal", .init = mortal_init, .handlers = mortal_handlers, .handler_count = 1};

/* One restart within a nanosecond is not too many: it never gives up. */
static double case_restart(uint64_t ops)
{
    blitz_child_spec spec = {.id = "mortal", .behaviour = &mortal};
    blitz_supervisor_plan plan = {.intensity = 1, .period = 1, .children = &spec, .child_count = 1};
    blitz_supervisor_counts counts;
    blitz_actor_id sup;
    crashes_left = ops;
    uint64_t began = tasks_now_ns();
    must(blitz_supervisor_spawn(&plan, NULL, &sup), "supervisor");
    double ns = done_since(began);
    must(blitz_supervisor_count(sup, &counts), "count");
    if (counts.restarts != ops)
        bench_die("%llu restarts", (unsigned long long)counts.restarts);
    stop(sup);
    return ns;
}

/* ---- idle actors ---- */

static uint64_t born; /* atomic */

static int idler_init(void *state)
{
    (void)state;
    __atomic_add_fetch(&born, 1, __ATOMIC_RELAXED);
    return 0;
}

/* The end of the runtime ends them all. */
static double idle(uint64_t count, size_t state_bytes)
{
    static blitz_behaviour idler = {.name = "idler", .init = idler_init};
    idler.state_bytes = state_bytes;
    blitz_actor_id first = start(&idler, NULL); /* it makes the part that all share */
    uint64_t before = tasks_memory();
    for (uint64_t i = 1; i <= count; i++) {
        (void)start(&idler, NULL);
        while (i % IDLE_STEP == 0 && __atomic_load_n(&born, __ATOMIC_RELAXED) <= i)
            blitz_yield();
    }
    double bytes = (double)(tasks_memory() - before) / (double)count;
    stop(first);
    return bytes;
}

static double case_idle_64(uint64_t ops)
{
    return idle(ops, 64);
}

static double case_idle_0(uint64_t ops)
{
    return idle(ops, 0);
}

#endif
