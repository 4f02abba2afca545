/* Groups on real threads: actors join, leave and are killed, while others send to all. */
#include "harness.h"

#include <errno.h>

#include "base/bz_atomic.h"
#include "base/rng.h"
#include "blitz.h"
#include "support/counted.h"

enum { ACTORS = 40, DRIVERS = 3 };
enum { NOTE };

struct member {
    uint32_t last[DRIVERS];
};

struct note {
    uint32_t driver, seq;
};

static bz_atomic(uint64_t) handled, reached;
static blitz_actor_id actor[ACTORS];

BLITZ_HANDLER(on_note, struct member, struct note)
{
    (void)m;
    CHECK(data->seq > state->last[data->driver]); /* once, and in order */
    state->last[data->driver] = data->seq;
    bz_fetch_add_relaxed(&handled, 1); /* relaxed: a count */
    return 0;
}

static const blitz_handler handlers[] = {BLITZ_ON(NOTE, struct note, on_note)};
static const blitz_behaviour member = {
    .state_bytes = sizeof(struct member), .handlers = handlers, .handler_count = 1};

struct driver {
    uint32_t number;
    uint64_t seed;
};

static int drive(void *arg)
{
    const struct driver *d = arg;
    struct bz_rng rng;
    bz_rng_init(&rng, d->seed);
    for (uint32_t i = 1; i <= 1000; i++) {
        uint32_t value = (uint32_t)bz_rng_next(&rng);
        blitz_actor_id id = actor[value / 16 % ACTORS];
        const char *group = value % 2 == 0 ? "even" : "odd";
        int rc;
        switch (value / 1024 % 16) {
        case 0:
            (void)blitz_actor_kill(id);
            break;
        case 1:
        case 2:
        case 3:
            rc = blitz_group_leave(group, id);
            CHECK(rc == 0 || rc == -ESRCH);
            break;
        case 4:
        case 5:
            rc = blitz_group_send(NULL, "even", NOTE, &(struct note){d->number, i},
                                  sizeof(struct note));
            CHECK(rc >= 0 && rc <= ACTORS);
            bz_fetch_add_relaxed(&reached, (uint64_t)rc); /* relaxed: a count */
            break;
        default:
            rc = blitz_group_join(group, id);
            CHECK(rc == 0 || rc == -ESRCH || rc == -EEXIST);
        }
        if (value % 11 == 0)
            blitz_yield();
    }
    return 0;
}

static int play(void *seed)
{
    struct driver driver[DRIVERS];
    blitz_task *task[DRIVERS];
    for (int i = 0; i < ACTORS; i++)
        CHECK_EQ(blitz_actor_spawn(&member, NULL, NULL, &actor[i]), 0);
    for (uint32_t i = 0; i < DRIVERS; i++) {
        driver[i] = (struct driver){i, *(uint64_t *)seed * 31 + i};
        CHECK_EQ(blitz_spawn(drive, &driver[i], NULL, &task[i]), 0);
    }
    for (int i = 0; i < DRIVERS; i++)
        CHECK_EQ(blitz_task_join(task[i], NULL, BLITZ_FOREVER), 0);
    for (int i = 0; i < ACTORS; i++) {
        (void)blitz_actor_stop(actor[i]);
        int rc = blitz_actor_join(actor[i], NULL, BLITZ_FOREVER);
        CHECK(rc == 0 || rc == -ESRCH);
    }
    while (blitz_group_members(NULL, "even", 0, NULL) + blitz_group_members(NULL, "odd", 0, NULL) >
           0)
        blitz_yield(); /* a join of one that is ending does not wait for the last of it */
    return 0;
}

TEST_LIMIT(group_stress, bug_39_a_dead_actor_is_in_no_group, 120)
{
    for (uint64_t i = 0; i < 12; i++) {
        uint64_t seed = t_seed() + i;
        unsigned procs = 1 + (unsigned)(i % 4);
        t_watch("seed %llu, %u procs", (unsigned long long)seed, procs);
        bz_store_relaxed(&handled, 0); /* relaxed: alone */
        bz_store_relaxed(&reached, 0); /* relaxed: alone */
        CHECK_EQ(
            blitz_run(play, &seed, &(blitz_runtime_opts){.procs = procs, .allocator = &counted}),
            0);
        CHECK_EQ(counted_blocks(), 0);
        CHECK_LE(bz_load_relaxed(&handled), bz_load_relaxed(&reached)); /* relaxed: alone */
    }
}
