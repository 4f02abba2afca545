/* Actors without memory: each allocation refused in turn, and from one on; nothing is lost or leaked. */
#include "harness.h"

#include <errno.h>
#include <stdatomic.h>

#include "base/alloc.h"
#include "blitz.h"
#include "support/alone.h"

/* An allocator that refuses the nth request, or all from the nth on, and counts its blocks. */
static atomic_long asked, refuse_from, blocks;
static atomic_bool refuses_all;

static void *scarce_alloc(void *ctx, size_t size, size_t align)
{
    (void)ctx;
    long n = atomic_fetch_add(&asked, 1) + 1;
    if (n == refuse_from || (refuses_all && n > refuse_from && refuse_from > 0))
        return NULL;
    void *block = bz_alloc(&bz_allocator_libc, size, align);
    atomic_fetch_add(&blocks, block != NULL);
    return block;
}

static void scarce_free(void *ctx, void *block, size_t size)
{
    (void)ctx;
    atomic_fetch_sub(&blocks, 1);
    bz_free(&bz_allocator_libc, block, size);
}

static const blitz_allocator scarce = {scarce_alloc, scarce_free, NULL};

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

/* Refuse each allocation in turn, until a run that needs no more. */
static void refuse_each(int (*fn)(void *), bool all)
{
    refuses_all = all;
    for (long n = 1, rc = -1; rc != 0; n++) {
        CHECK(n < 2000);
        t_watch("allocation %ld is refused", n);
        asked = blocks = 0;
        refuse_from = n;
        rc = blitz_run(fn, NULL, &(blitz_runtime_opts){.procs = 1, .allocator = &scarce});
        CHECK(rc == 0 || rc == -ENOMEM);
        CHECK_EQ(blocks, 0);
    }
}

TEST_LIMIT(actor_memory, each_refused_allocation_is_an_error_and_no_leak, 120)
{
    t_hold_procs();
    refuse_each(steps, false);
    refuse_each(supervised, false);
}

TEST_LIMIT(actor_memory, an_actor_ends_and_tells_although_there_is_no_memory_left, 120)
{
    t_hold_procs();
    refuse_each(steps, true);
    refuse_each(supervised, true);
}
