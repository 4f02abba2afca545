/* Random graphs of actors that hold each other, in virtual time, from seeds: the scene of unreachable_scene.h. */
#include "support/sched_sim.h"

#include "support/unreachable_scene.h"

struct play {
    struct reach_scene scene;
    unsigned procs;
};

static void play(const struct bz_os *os, void *arg)
{
    struct play *p = arg;
    struct sim_scene scene = {p->procs, reach_play, &p->scene, 0};
    sim_play(os, &scene);
}

TEST_LIMIT(unreachable_sim, no_live_actor_is_ended_and_all_dead_ones_are, 300)
{
    uint64_t n = sim_seeds(1000);
    for (uint64_t i = 0; i < n; i++) {
        uint64_t seed = sim_next_seed();
        struct play p = {{seed, 120}, 1 + (unsigned)(seed % 4)};
        t_watch("simulation seed 0x%llx, %u procs", (unsigned long long)seed, p.procs);
        CHECK_EQ(bz_sim_run(&(struct bz_sim_config){.seed = seed}, play, &p, NULL), 0);
    }
    t_note("%llu runs", (unsigned long long)n);
}

/* ---- a message that finds its receiver dead ---- */

struct late {
    blitz_actor_id to;
    blitz_reference *cargo;
};

static int sends_a_reference(void *arg)
{
    const struct late *l = arg;
    uint32_t slot = 0;
    int rc = blitz_actor_send_with(l->to, REACH_SET, &slot, sizeof slot,
                                   &(blitz_cargo){.reference = l->cargo});
    return rc == 0 || rc == -ESRCH ? 0 : rc;
}

/* The receiver is killed while the message is on its way. In either order no reference is left in its mailbox. */
static int kills_the_receiver(void *arg)
{
    bz_detect_pause_ns = bz_detect_limit_ns = 0;
    for (int i = 0; i < 8; i++) {
        blitz_reference *to;
        struct late l;
        blitz_task *sender;
        int rc;
        CHECK_EQ(blitz_reference_spawn(&reach_behaviour, NULL, NULL, &to), 0);
        CHECK_EQ(blitz_reference_spawn(&reach_behaviour, NULL, NULL, &l.cargo), 0);
        l.to = blitz_reference_id(to);
        blitz_actor_id cargo = blitz_reference_id(l.cargo);
        CHECK_EQ(blitz_spawn(sends_a_reference, &l, NULL, &sender), 0);
        CHECK_EQ(blitz_sleep((blitz_duration)bz_rng_below(arg, 40)), 0);
        CHECK_EQ(blitz_actor_kill(l.to), 0);
        CHECK_EQ(blitz_task_join(sender, &rc, BLITZ_FOREVER), 0);
        CHECK_EQ(rc, 0);
        blitz_reference_unref(l.cargo);
        CHECK_EQ(blitz_actors_wait_quiet(NULL, BLITZ_FOREVER), 0);
        CHECK(!blitz_actor_is_alive(cargo));
        blitz_reference_unref(to);
    }
    return 0;
}

struct race {
    struct bz_rng rng;
    unsigned procs;
};

static void race(const struct bz_os *os, void *arg)
{
    struct race *r = arg;
    struct sim_scene scene = {r->procs, kills_the_receiver, &r->rng, 0};
    sim_play(os, &scene);
}

TEST_LIMIT(unreachable_sim, a_reference_to_a_receiver_that_dies_is_dropped, 300)
{
    uint64_t n = sim_seeds(300);
    for (uint64_t i = 0; i < n; i++) {
        uint64_t seed = sim_next_seed();
        struct race r = {.procs = 2 + (unsigned)(seed % 3)};
        bz_rng_init(&r.rng, seed);
        t_watch("simulation seed 0x%llx, %u procs", (unsigned long long)seed, r.procs);
        CHECK_EQ(bz_sim_run(&(struct bz_sim_config){.seed = seed}, race, &r, NULL), 0);
    }
}
