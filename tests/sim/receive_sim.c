/* Tasks that receive in virtual time, from seeds: the scenes of receive_scene.h and relate_scene.h. */
#include "support/sched_sim.h"

#include "support/receive_scene.h"
#include "support/relate_scene.h"

struct play {
    struct receive_scene scene;
    unsigned procs;
};

static void play(const struct bz_os *os, void *arg)
{
    struct play *p = arg;
    struct sim_scene scene = {p->procs, receive_play, &p->scene, 0};
    sim_play(os, &scene);
}

TEST_LIMIT(receive_sim, bug_39_tasks_that_receive_end_with_their_ids_at_any_time, 300)
{
    uint64_t n = sim_seeds(1000);
    for (uint64_t i = 0; i < n; i++) {
        uint64_t seed = sim_next_seed();
        struct play p = {{seed, 6}, 1 + (unsigned)(seed % 4)};
        t_watch("simulation seed 0x%llx, %u procs", (unsigned long long)seed, p.procs);
        CHECK_EQ(bz_sim_run(&(struct bz_sim_config){.seed = seed}, play, &p, NULL), 0);
    }
    t_note("%llu runs", (unsigned long long)n);
}

struct related {
    struct relate_scene scene;
    unsigned procs;
};

static void play_related(const struct bz_os *os, void *arg)
{
    struct related *p = arg;
    struct sim_scene scene = {p->procs, relate_play, &p->scene, 0};
    sim_play(os, &scene);
}

TEST_LIMIT(receive_sim, bug_39_links_and_monitors_of_tasks_are_told_once_or_given_up, 300)
{
    uint64_t n = sim_seeds(1000);
    unsigned downs = 0, exits = 0, given_up = 0;
    for (uint64_t i = 0; i < n; i++) {
        uint64_t seed = sim_next_seed();
        struct related p = {{.seed = seed, .rounds = 15}, 1 + (unsigned)(seed % 4)};
        t_watch("simulation seed 0x%llx, %u procs", (unsigned long long)seed, p.procs);
        CHECK_EQ(bz_sim_run(&(struct bz_sim_config){.seed = seed}, play_related, &p, NULL), 0);
        downs += p.scene.downs, exits += p.scene.exits, given_up += p.scene.given_up;
    }
    t_note("%u downs, %u exits, %u given up", downs, exits, given_up);
    CHECK(downs > 0 && exits > 0 && given_up > 0);
}

/* ---- a task that loses its id while it links with an actor ---- */

static const blitz_behaviour linked = {.name = "linked"};

static int kills(void *arg)
{
    (void)!blitz_actor_kill(*(blitz_actor_id *)arg);
    return 0;
}

struct spawner {
    uint64_t seed;
    unsigned started, refused;
};

enum { CHILDREN = 30 };

static int spawns_with_a_link(void *arg)
{
    struct spawner *s = arg;
    blitz_actor_id id, child[CHILDREN];
    uint64_t ref;
    blitz_task *killer;
    int count = 0, rc = 0;
    bool links = s->seed / 4 % 2 != 0; /* to actors that are there already */
    for (int i = 0; links && i < CHILDREN; i++)
        CHECK_EQ(blitz_actor_spawn(&linked, NULL, NULL, &child[i]), 0);
    CHECK_EQ(blitz_receiver_begin(NULL, &id), 0);
    CHECK_EQ(blitz_spawn(kills, &id, NULL, &killer), 0);
    for (uint64_t i = s->seed % 4; i > 0; i--)
        blitz_yield();
    while (count < CHILDREN && rc == 0) {
        blitz_actor_opts opts = {.link = true, .monitor = &ref};
        rc = links ? blitz_actor_link(child[count])
                   : blitz_actor_spawn(&linked, NULL, &opts, &child[count]);
        CHECK(rc == 0 || rc == -ECANCELED);
        count += rc == 0;
    }
    blitz_shield(); /* the end of the id cancels us */
    CHECK_EQ(blitz_task_join(killer, NULL, BLITZ_FOREVER), 0);
    for (int i = 0; i < count; i++) {
        int end = blitz_actor_join(child[i], NULL, blitz_after(BLITZ_S));
        CHECK(end == 0 || end == -ESRCH);
    }
    blitz_unshield();
    s->started += (unsigned)count;
    s->refused += rc != 0;
    return 0;
}

static void play_spawns(const struct bz_os *os, void *arg)
{
    struct sim_scene scene = {2, spawns_with_a_link, arg, 0};
    sim_play(os, &scene);
}

/* The id ended between the two sides of the link. A new actor was told before it had a mailbox, another one before it was asked for
 * its side, and lived on. */
TEST(receive_sim, bug_39_an_actor_ends_with_a_task_whose_id_ends_while_it_links)
{
    uint64_t n = sim_seeds(2000);
    struct spawner s = {0, 0, 0};
    for (uint64_t i = 0; i < n; i++) {
        uint64_t seed = sim_next_seed();
        t_watch("simulation seed 0x%llx", (unsigned long long)seed);
        s.seed = seed;
        CHECK_EQ(bz_sim_run(&(struct bz_sim_config){.seed = seed}, play_spawns, &s, NULL), 0);
    }
    t_note("%u started, %u refused", s.started, s.refused);
    CHECK(s.started > 0 && s.refused > 0);
}
