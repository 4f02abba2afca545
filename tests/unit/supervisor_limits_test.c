/* Every strategy with every restart type, every kind of end and several limits: a table of what becomes of the children. */
#include "harness.h"

#include <errno.h>

#include "blitz.h"
#include "support/on_each.h"

enum { CRASH, QUIT };

BLITZ_HANDLER(on_crash, void, void)
{
    (void)state, (void)data, (void)m;
    return blitz_actor_fail(-EIO, "as asked");
}

BLITZ_HANDLER(on_quit, void, void)
{
    (void)state, (void)data, (void)m;
    return BLITZ_ACTOR_STOP;
}

static const blitz_handler handlers[] = {BLITZ_ON_EMPTY(CRASH, on_crash),
                                         BLITZ_ON_EMPTY(QUIT, on_quit)};
static const blitz_behaviour worker = {.name = "worker", .handlers = handlers, .handler_count = 2};
static const char *const ids[] = {"a", "b", "c"};

struct row {
    blitz_strategy strategy;
    blitz_restart restart;
    uint32_t what; /* how a child ends */
    unsigned intensity;
};

static void settle(void)
{
    CHECK_EQ(blitz_actors_wait_quiet(NULL, BLITZ_FOREVER), 0);
}

static blitz_actor_id begin(const struct row *r)
{
    blitz_child_spec children[3];
    blitz_actor_id sup;
    for (int i = 0; i < 3; i++)
        children[i] = (blitz_child_spec){
            .id = ids[i], .behaviour = &worker, .restart = r->restart, .shutdown = BLITZ_MS};
    blitz_supervisor_plan plan = {.strategy = r->strategy,
                                  .intensity = r->intensity,
                                  .period = 3600 * BLITZ_S,
                                  .children = children,
                                  .child_count = 3};
    CHECK_EQ(blitz_supervisor_spawn(&plan, NULL, &sup), 0);
    settle();
    return sup;
}

/* Let a child end, and its supervisor act. Returns its id before. */
static blitz_actor_id end_child(blitz_actor_id sup, const char *id, uint32_t what)
{
    blitz_actor_id was;
    CHECK_EQ(blitz_supervisor_which(sup, id, &was), 0);
    CHECK_EQ(blitz_actor_send(was, what, NULL, 0), 0);
    settle();
    CHECK(!blitz_actor_is_alive(was));
    return was;
}

static blitz_supervisor_counts counts_of(blitz_actor_id sup)
{
    blitz_supervisor_counts c;
    CHECK_EQ(blitz_supervisor_count(sup, &c), 0);
    return c;
}

/* So many ends are restarts; one more ends the supervisor and all children. */
static void up_to_the_limit(const struct row *r, blitz_actor_id sup)
{
    blitz_actor_id child[3];
    for (unsigned i = 1; i <= r->intensity; i++) {
        blitz_actor_id was = end_child(sup, "b", r->what), now;
        CHECK_EQ(blitz_supervisor_which(sup, "b", &now), 0);
        CHECK(blitz_actor_is_alive(now) && !blitz_actor_id_equal(was, now));
        CHECK_EQ(counts_of(sup).active, 3u);
        CHECK_EQ(counts_of(sup).restarts, i);
    }
    for (int i = 0; i < 3; i++)
        CHECK_EQ(blitz_supervisor_which(sup, ids[i], &child[i]), 0);
    (void)end_child(sup, "b", r->what);
    CHECK(!blitz_actor_is_alive(sup));
    for (int i = 0; i < 3; i++)
        CHECK(!blitz_actor_is_alive(child[i]));
}

/* No end is a restart, and none counts. */
static void without_restarts(const struct row *r, blitz_actor_id sup)
{
    for (unsigned i = 0; i < 3; i++) {
        (void)end_child(sup, ids[i], r->what);
        CHECK(blitz_actor_is_alive(sup));
        CHECK_EQ(counts_of(sup).active, 2u - i);
        CHECK_EQ(counts_of(sup).restarts, 0u);
    }
    CHECK_EQ(blitz_actor_stop(sup), 0);
    settle();
    CHECK(!blitz_actor_is_alive(sup));
}

static int table(void *arg)
{
    static const blitz_strategy strategy[] = {BLITZ_ONE_FOR_ONE, BLITZ_ONE_FOR_ALL,
                                              BLITZ_REST_FOR_ONE, BLITZ_DYNAMIC};
    static const struct {
        blitz_restart restart;
        uint32_t what;
        bool restarts;
    } ends[] = {{BLITZ_PERMANENT, CRASH, true},  {BLITZ_PERMANENT, QUIT, true},
                {BLITZ_TRANSIENT, CRASH, true},  {BLITZ_TRANSIENT, QUIT, false},
                {BLITZ_TEMPORARY, CRASH, false}, {BLITZ_TEMPORARY, QUIT, false}};
    (void)arg;
    for (unsigned i = 0; i < 4 * 6 * 4; i++) {
        struct row r = {strategy[i / 24], ends[i % 6].restart, ends[i % 6].what, 1 + i / 6 % 4};
        t_watch("strategy %u, restart type %u, end %u, intensity %u", r.strategy, r.restart, r.what,
                r.intensity);
        blitz_actor_id sup = begin(&r);
        if (ends[i % 6].restarts)
            up_to_the_limit(&r, sup);
        else
            without_restarts(&r, sup);
    }
    return 0;
}

TEST(supervisor_limits, each_strategy_with_each_restart_type_and_each_limit)
{
    t_on_each(table, NULL, 0);
}
