/* Actors without memory: each allocation refused in turn, and from one on; nothing is lost or leaked. */
#include "harness.h"

#include <errno.h>

#include "blitz.h"
#include "support/alone.h"
#include "support/refuse_each.h"

/* ---- a pair of actors that know each other ---- */

enum { RELATE, ASK, END };

struct state {
    unsigned char room[1000]; /* far from its slot */
    int heard;
};

BLITZ_HANDLER(on_relate, struct state, blitz_actor_id)
{
    uint64_t ref;
    (void)state;
    int rc = blitz_actor_link(*data);
    if (rc == 0)
        rc = blitz_actor_monitor(*data, &ref);
    return rc < 0 ? blitz_actor_reply_error(m->reply, rc) : blitz_actor_reply(m->reply, NULL, 0);
}

BLITZ_HANDLER(on_ask, struct state, int)
{
    (void)state;
    return blitz_actor_reply(m->reply, data, sizeof *data);
}

BLITZ_HANDLER(on_end, struct state, void)
{
    (void)state, (void)data, (void)m;
    return blitz_actor_fail(-EIO, "ends");
}

BLITZ_HANDLER(on_told, struct state, blitz_down)
{
    (void)data, (void)m;
    state->heard++;
    return 0;
}

static const blitz_handler handlers[] = {BLITZ_ON(RELATE, blitz_actor_id, on_relate),
                                         BLITZ_ON(ASK, int, on_ask), BLITZ_ON_EMPTY(END, on_end),
                                         BLITZ_ON(BLITZ_MSG_DOWN, blitz_down, on_told),
                                         BLITZ_ON(BLITZ_MSG_EXIT, blitz_down, on_told)};
static const blitz_behaviour pair = {
    .state_bytes = sizeof(struct state), .handlers = handlers, .handler_count = 5};

/* The first error of the steps; 0: all of them worked. */
static int steps(void *arg)
{
    blitz_actor_id a, b;
    int answer = 0;
    uint64_t timer;
    (void)arg;
    int rc =
        blitz_actor_spawn(&pair, NULL, &(blitz_actor_opts){.trap_exit = true, .name = "a"}, &a);
    if (rc == 0)
        rc = blitz_actor_spawn(&pair, NULL, NULL, &b);
    if (rc == 0)
        rc = blitz_actor_call(a, RELATE, &b, sizeof b, NULL, 0, BLITZ_FOREVER);
    if (rc == 0)
        rc = blitz_actor_register("another", a);
    if (rc == 0)
        rc = blitz_actor_send_after(a, ASK, &answer, sizeof answer, blitz_after(3600 * BLITZ_S),
                                    &timer);
    if (rc == 0 && (rc = blitz_actor_call(a, ASK, &(int){7}, sizeof(int), &answer, sizeof answer,
                                          BLITZ_FOREVER)) > 0)
        rc = answer == 7 ? 0 : -EBADMSG;
    if (rc == 0)
        rc = blitz_actor_send(b, END, NULL, 0);
    if (rc == 0) {
        rc = blitz_actor_join(b, NULL, BLITZ_FOREVER);
        rc = rc == -ESRCH ? 0 : rc;
    }
    return rc;
}

static int supervised(void *arg)
{
    blitz_child_spec children[] = {{.id = "a", .behaviour = &pair, .name = "a"},
                                   {.id = "b", .behaviour = &pair}};
    blitz_supervisor_plan opts = {.children = children, .child_count = 2};
    blitz_actor_id sup, b;
    (void)arg;
    int rc = blitz_supervisor_spawn(&opts, NULL, &sup);
    if (rc == 0)
        rc = blitz_supervisor_which(sup, "b", &b);
    if (rc == 0)
        rc = blitz_actor_send(b, END, NULL, 0);
    return rc == -ESRCH ? -ENOMEM : rc; /* it may have given up for want of memory */
}

/* Cargo: what is refused stays with its sender, and what was sent is freed. */
static int carried(void *arg)
{
    blitz_actor_id id;
    blitz_binary *all = NULL, *part = NULL;
    void *block = blitz_msg_alloc(1000);
    uint64_t timer;
    (void)arg;
    int rc = block != NULL ? blitz_actor_spawn(&pair, NULL, NULL, &id) : -ENOMEM;
    if (rc == 0)
        rc = blitz_binary_new(1000, &all);
    if (rc == 0)
        rc = blitz_binary_slice(all, 10, 20, &part);
    if (rc == 0)
        rc = blitz_actor_send_with(id, ASK, &rc, sizeof rc, &(blitz_cargo){.binary = part});
    if (rc == 0)
        rc = blitz_actor_send_after_with(id, ASK, &rc, sizeof rc,
                                         &(blitz_cargo){.move = BLITZ_MOVE(block)},
                                         blitz_after(3600 * BLITZ_S), &timer);
    CHECK((rc == 0) == (block == NULL) || rc == -ENOMEM);
    blitz_msg_drop(block);
    blitz_binary_unref(part);
    blitz_binary_unref(all);
    return rc;
}

/* Overload: the count of dropped messages may be missing, nothing else. */
static int flooded(void *arg)
{
    static const blitz_behaviour drops = {.state_bytes = sizeof(struct state),
                                          .handlers = handlers,
                                          .handler_count = 5,
                                          .mailbox_high = 16,
                                          .policy = BLITZ_OVERLOAD_DROP_NEWEST};
    blitz_actor_id id;
    blitz_actor_info info;
    (void)arg;
    int rc = blitz_actor_spawn(&drops, NULL, NULL, &id);
    for (int i = 0; rc == 0 && i < 60; i++)
        rc = blitz_actor_send(id, ASK, &i, sizeof i);
    if (rc == 0) {
        CHECK_EQ(blitz_actor_info_get(id, &info), 0);
        CHECK(info.dropped >= 43 &&
              info.dropped <= 44); /* one count was refused, and the next was not */
    }
    return rc;
}

struct run {
    int (*fn)(void *);
};

/* The actors come to rest, with or without memory. */
static int run_and_rest(void *arg)
{
    const struct run *r = arg;
    int rc = r->fn(NULL);
    CHECK_EQ(blitz_actors_wait_quiet(NULL, BLITZ_FOREVER), 0);
    return rc;
}

static void refuse_each(int (*fn)(void *), bool all)
{
    t_refuse_each(run_and_rest, &(struct run){fn}, all);
}

TEST_LIMIT(actor_memory, each_refused_allocation_is_an_error_and_no_leak, 120)
{
    t_hold_procs();
    refuse_each(steps, false);
    refuse_each(supervised, false);
    refuse_each(carried, false);
    refuse_each(flooded, false);
}

TEST_LIMIT(actor_memory, an_actor_ends_and_tells_although_there_is_no_memory_left, 120)
{
    t_hold_procs();
    refuse_each(steps, true);
    refuse_each(supervised, true);
    refuse_each(carried, true);
}
