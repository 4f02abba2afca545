/*
 * Crashes under supervision: each is told once and restarted, and no memory is left or grows.
 *
 *     BLITZ_TEST_CRASHES=1000000 build/release/tests/stress/stress_crash        so many, at each number of procs
 */
#include "harness.h"

#include <errno.h>
#include <stdlib.h>

#include "blitz.h"
#include "support/counted.h"

enum { WORKERS = 8 };
enum { CRASH }; /* a worker */
enum { BEGIN, LOOK };

BLITZ_HANDLER(on_crash, void, void)
{
    (void)state, (void)data, (void)m;
    return blitz_actor_fail(-EIO, "planned");
}

static const blitz_handler worker_handlers[] = {BLITZ_ON_EMPTY(CRASH, on_crash)};
static const blitz_behaviour worker = {
    .name = "worker", .state_bytes = sizeof(int), .handlers = worker_handlers, .handler_count = 1};
static const char *const names[WORKERS] = {"w0", "w1", "w2", "w3", "w4", "w5", "w6", "w7"};

/* Watches each life of each worker, and crashes it. */
struct watcher {
    blitz_reply_to asked;
    long want, begun, downs, blocks;
    uint64_t ref[WORKERS]; /* 0: it has no monitor */
    blitz_actor_id id[WORKERS];
};

static int look_again(int i)
{
    return blitz_actor_send(blitz_actor_self(), LOOK, &i, sizeof i);
}

BLITZ_HANDLER(on_begin, struct watcher, long)
{
    int rc = blitz_actor_reply_keep(m->reply);
    state->want = *data;
    state->asked = m->reply;
    for (int i = 0; i < WORKERS && rc == 0; i++)
        rc = look_again(i);
    return rc;
}

BLITZ_HANDLER(on_look, struct watcher, int)
{
    int i = *data;
    blitz_actor_id id = blitz_actor_whereis(NULL, names[i]);
    (void)m;
    if (state->begun == state->want)
        return 0;
    if (id.generation == 0 || blitz_actor_id_equal(id, state->id[i])) {
        blitz_yield(); /* its supervisor is about to start it */
        return look_again(i);
    }
    state->id[i] = id;
    state->begun++;
    int rc = blitz_actor_monitor(id, &state->ref[i]);
    return rc != 0 ? rc : blitz_actor_send(id, CRASH, NULL, 0);
}

BLITZ_HANDLER(on_down, struct watcher, blitz_down)
{
    int i = 0;
    (void)m;
    while (i < WORKERS && state->ref[i] != data->ref)
        i++;
    CHECK(i < WORKERS); /* told once, and of ours */
    CHECK(blitz_actor_id_equal(data->who, state->id[i]));
    CHECK_EQ(data->reason.code, -EIO);
    state->ref[i] = 0;
    state->downs++;
    if (state->downs == state->want / 10)
        state->blocks = counted_blocks();
    if (state->downs < state->want)
        return look_again(i);
    CHECK_LE(counted_blocks(),
             state->blocks + 20); /* slabs and tables, whose number does not grow */
    return blitz_actor_reply(state->asked, &state->downs, sizeof state->downs);
}

static const blitz_handler watcher_handlers[] = {BLITZ_ON(BEGIN, long, on_begin),
                                                 BLITZ_ON(LOOK, int, on_look),
                                                 BLITZ_ON(BLITZ_MSG_DOWN, blitz_down, on_down)};
static const blitz_behaviour watcher = {.name = "watcher",
                                        .state_bytes = sizeof(struct watcher),
                                        .handlers = watcher_handlers,
                                        .handler_count = 3};

static int crashes(void *arg)
{
    long want = *(long *)arg, downs = 0;
    blitz_child_spec child[WORKERS];
    blitz_actor_id sup, id;
    blitz_supervisor_counts counts;
    for (int i = 0; i < WORKERS; i++)
        child[i] = (blitz_child_spec){.id = names[i], .name = names[i], .behaviour = &worker};
    blitz_supervisor_plan plan = {
        .intensity = 1000, .period = 1, .children = child, .child_count = WORKERS};
    CHECK_EQ(blitz_supervisor_spawn(&plan, NULL, &sup), 0);
    CHECK_EQ(blitz_actor_spawn(&watcher, NULL, NULL, &id), 0);
    CHECK_EQ(blitz_actor_call(id, BEGIN, &want, sizeof want, &downs, sizeof downs, BLITZ_FOREVER),
             (int)sizeof downs);
    CHECK_EQ(downs, want);
    do
        CHECK_EQ(blitz_supervisor_count(sup, &counts), 0);
    while (counts.restarts < (uint64_t)want);
    CHECK_EQ(counts.restarts, (uint64_t)want);
    CHECK_EQ(counts.active, WORKERS);
    return 0;
}

TEST_LIMIT(crash_stress, bug_39_each_crash_is_told_once_and_restarted_and_leaves_nothing, 600)
{
    const char *asked = getenv("BLITZ_TEST_CRASHES");
    long want = asked != NULL ? atol(asked) : (long)t_scaled(20000);
    for (unsigned procs = 1; procs <= 3; procs++) {
        t_watch("%ld crashes, %u procs", want, procs);
        CHECK_EQ(
            blitz_run(crashes, &want, &(blitz_runtime_opts){.procs = procs, .allocator = &counted}),
            0);
        CHECK_EQ(counted_blocks(), 0);
    }
}
