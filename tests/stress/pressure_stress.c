/* Overloaded actors on real threads: random graphs, as in the simulation. */
#include "harness.h"

#include <stdatomic.h>

#include "support/pressure_graph.h"

TEST_LIMIT(pressure_stress, bug_39_overloaded_graphs_with_cycles_make_progress, 120)
{
    for (uint64_t i = 0; i < 20; i++) {
        struct flow g = {t_seed() + i, 60, i % 2 == 0};
        unsigned procs = 1 + (unsigned)(i / 2 % 4);
        t_watch("graph %llu, %u procs", (unsigned long long)g.seed, procs);
        flow_prepare(&g);
        CHECK_EQ(blitz_run(flow_play, &g, &(blitz_runtime_opts){.procs = procs}), 0);
    }
}

/* ---- a hundred senders ---- */

enum { SENDERS = 100, TAKE = 0, GO = 0 };
static atomic_long taken;
static blitz_actor_id sink;

BLITZ_HANDLER(on_take, void, long)
{
    (void)state, (void)data, (void)m;
    for (volatile int i = 0; i < 300; i++) /* slower than the senders */
        ;
    taken++;
    return 0;
}

/* Send one message, and come back at once. */
BLITZ_HANDLER(on_go, void, void)
{
    (void)state, (void)data, (void)m;
    int rc = blitz_actor_send(sink, TAKE, &(long){1}, sizeof(long));
    return rc != 0 ? rc : blitz_actor_send(blitz_actor_self(), GO, NULL, 0);
}

static int overloads(void *arg)
{
    static const blitz_handler takes[] = {BLITZ_ON(TAKE, long, on_take)};
    static const blitz_handler goes[] = {BLITZ_ON_EMPTY(GO, on_go)};
    static const blitz_behaviour one = {.name = "sink", .handlers = takes, .handler_count = 1};
    static const blitz_behaviour many = {.name = "sender", .handlers = goes, .handler_count = 1};
    blitz_actor_info info = {.mailbox = 0};
    uint32_t longest = 0;
    (void)arg;
    taken = 0;
    CHECK_EQ(blitz_actor_spawn(&one, NULL, NULL, &sink), 0);
    for (int i = 0; i < SENDERS; i++) {
        blitz_actor_id id;
        CHECK_EQ(blitz_actor_spawn(&many, NULL, NULL, &id), 0);
        CHECK_EQ(blitz_actor_send(id, GO, NULL, 0), 0);
    }
    while (taken < (long)t_scaled(200000)) {
        CHECK_EQ(blitz_actor_info_get(sink, &info), 0);
        longest = info.mailbox > longest ? info.mailbox : longest;
        blitz_yield();
    }
    t_note("the longest mailbox had %u messages", longest);
    /* Each sends one more message when its time is over: ten times in the first second in which the sink has no CPU. */
    CHECK(longest <= 1000 + 20 * SENDERS);
    return 0;
}

/* Without back-pressure a hundred senders fill the memory: 100,000 messages, and then they fail. */
TEST_LIMIT(pressure_stress, bug_39_a_hundredfold_overload_keeps_the_mailbox_short, 120)
{
    bz_mute_ns = BLITZ_MS;
    for (unsigned procs = 1; procs <= 4; procs++)
        CHECK_EQ(blitz_run(overloads, NULL, &(blitz_runtime_opts){.procs = procs}), 0);
}
