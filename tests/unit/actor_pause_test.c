/* A collection is the pause of its own actor alone: the others of its proc go on. */
#include "harness.h"

#include <stdatomic.h>

#include "blitz.h"

enum { MAKE, COLLECT, TICK };

struct slow {
    long key;
};

static atomic_bool is_over; /* another actor has run during the collection */
static atomic_int visits;

/* A long collection: the look at this object lasts until another actor of the same proc has run. */
static void visit_slow(void *object, blitz_visitor *v)
{
    (void)object, (void)v;
    atomic_fetch_add(&visits, 1);
    while (!atomic_load(&is_over))
        ;
}
BLITZ_TYPE_VISIT(actor_pause_slow, struct slow, visit_slow);

struct owner {
    struct slow *slow;
};
BLITZ_TYPE(actor_pause_owner, struct owner, slow);

/* The runtime collects behind this handler. */
BLITZ_HANDLER(on_make, struct owner, blitz_actor_id)
{
    (void)m;
    state->slow = (struct slow *)blitz_actor_alloc(&actor_pause_slow);
    for (int i = 0; i < 600; i++)
        (void)blitz_actor_string("garbage that makes a collection due");
    return blitz_actor_send(*data, TICK, NULL, 0);
}

BLITZ_HANDLER(on_collect, struct owner, blitz_actor_id)
{
    (void)m;
    struct slow *slow = (struct slow *)blitz_actor_alloc(&actor_pause_slow);
    int rc = blitz_actor_send(*data, TICK, NULL, 0);
    return rc != 0 ? rc : BLITZ_ACTOR_COLLECT(&slow);
}

static int on_tick(void *state, const blitz_msg *m)
{
    (void)state, (void)m;
    atomic_store(&is_over, true);
    return 0;
}

static const blitz_handler owner_handlers[] = {BLITZ_ON(MAKE, blitz_actor_id, on_make),
                                               BLITZ_ON(COLLECT, blitz_actor_id, on_collect)};
static const blitz_behaviour owner = {.name = "owner",
                                      .state_bytes = sizeof(struct owner),
                                      .state_type = &actor_pause_owner,
                                      .handlers = owner_handlers,
                                      .handler_count = 2};
static const blitz_handler ticker_handlers[] = {
    {MAKE, 0, NULL}, {COLLECT, 0, NULL}, BLITZ_ON_EMPTY(TICK, on_tick)};
static const blitz_behaviour ticker = {
    .name = "ticker", .handlers = ticker_handlers, .handler_count = 3};

static int collect_long(void *arg)
{
    const uint32_t *what = arg;
    blitz_actor_id busy, other;
    atomic_store(&is_over, false);
    atomic_store(&visits, 0);
    CHECK_EQ(blitz_actor_spawn(&owner, NULL, NULL, &busy), 0);
    CHECK_EQ(blitz_actor_spawn(&ticker, NULL, NULL, &other), 0);
    CHECK_EQ(blitz_actor_send(busy, *what, &other, sizeof other), 0);
    CHECK_EQ(blitz_actors_wait_quiet(NULL, BLITZ_FOREVER), 0);
    CHECK_GT(atomic_load(&visits), 0);
    CHECK(atomic_load(&is_over));
    CHECK_EQ(blitz_actor_stop(busy), 0);
    CHECK_EQ(blitz_actor_stop(other), 0);
    return 0;
}

static void collect_on(unsigned procs, uint32_t what)
{
    CHECK_EQ(blitz_run(collect_long, &what, &(blitz_runtime_opts){.procs = procs}), 0);
}

/* The only proc is taken from the machine that collects, as from any that computes for long. */
TEST(actor_pause, others_run_beside_a_collection_between_two_messages)
{
    collect_on(1, MAKE);
    collect_on(2, MAKE);
}

TEST(actor_pause, others_run_beside_a_collection_inside_a_handler)
{
    collect_on(1, COLLECT);
    collect_on(2, COLLECT);
}
