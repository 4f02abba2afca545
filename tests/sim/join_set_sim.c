/* Join sets in virtual time, from seeds: each member comes out once. */
#include "support/sched_sim.h"

#include "support/set_program.h"

struct play {
    uint64_t seed;
    unsigned procs;
};

static void play(const struct bz_os *os, void *arg)
{
    const struct play *p = arg;
    set_play(os, p->seed, p->procs);
}

TEST_LIMIT(join_set, random_programs_take_each_member_out_once, 300)
{
    uint64_t n = sim_seeds(1000);
    for (uint64_t i = 0; i < n; i++) {
        uint64_t seed = sim_next_seed();
        struct play p = {seed, 1 + (unsigned)(seed % 4)};
        t_watch("simulation seed 0x%llx, %u procs", (unsigned long long)seed, p.procs);
        CHECK_EQ(bz_sim_run(&(struct bz_sim_config){.seed = seed}, play, &p, NULL), 0);
    }
    t_note("%llu programs", (unsigned long long)n);
}

/* ---- an add, and the end of the member ---- */

enum { ADDS = 6 };

static struct {
    blitz_join_set *set;
    blitz_ready_future future[ADDS];
} adding;

static int add_all(void *arg)
{
    (void)arg;
    for (int i = 0; i < ADDS; i++) {
        blitz_ready_future_init(&adding.future[i], i);
        CHECK_EQ(blitz_join_set_add_future(adding.set, &adding.future[i].future, NULL), 0);
    }
    return 0;
}

/* Detach, or cancel and take out, whatever is in the set, until all adds are done. */
static int end_members(bool is_detach)
{
    blitz_joined out;
    blitz_task *adder;
    CHECK_EQ(blitz_join_set_new(&adding.set), 0);
    CHECK_EQ(blitz_spawn(add_all, NULL, NULL, &adder), 0);
    while (blitz_task_try_join(adder, NULL) == -EAGAIN) {
        if (is_detach) {
            CHECK_EQ(blitz_join_set_detach(adding.set), 0);
        } else {
            blitz_join_set_cancel(adding.set);
            (void)blitz_join_set_try_next(adding.set, &out);
        }
        CHECK_EQ(blitz_sleep(100), 0); /* a decision point, in builds whose locks have none */
    }
    blitz_join_set_unref(adding.set);
    return 0;
}

static int detach_members(void *arg)
{
    (void)arg;
    return end_members(true);
}

static int cancel_members(void *arg)
{
    (void)arg;
    return end_members(false);
}

/* A member is in the set before its adder has queued it. A detach, or a taker that a cancel has woken, may take it out
 * in between, and free it under the adder. AddressSanitizer reports that. */
TEST(join_set, bug_54_a_detach_ends_a_member_that_is_being_added)
{
    sim_on_procs(detach_members, NULL, 0, 400, 2, 4);
}

TEST(join_set, bug_54_a_cancel_ends_a_member_that_is_being_added)
{
    sim_on_procs(cancel_members, NULL, 0, 400, 2, 4);
}
