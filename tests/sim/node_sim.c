/*
 * Nodes on the simulated network: two or three in one process, whose connections are cut, delayed, stopped in one direction and made again.
 * support/cluster_scene.h is the scene, support/cluster_model.h what must hold.
 */
#include "support/net_sim.h"

#include "support/cluster_scene.h"

/* One play. */
struct play {
    struct bz_sim_net_config net;
    unsigned procs;
    const char *io;
    struct bz_sim_net_books books;
    int (*fn)(void *);
    struct c_scene cluster;
};

static void play(const struct bz_os *os, void *arg)
{
    struct play *p = arg;
    CHECK_EQ(bz_sim_net_begin(os, &p->net), 0);
    sim_blocks = 0;
    struct bz_runtime *rt;
    blitz_runtime_opts opts = {.procs = p->procs, .io = p->io, .allocator = &sim_counted};
    CHECK_EQ(bz_runtime_new(os, &opts, &rt), 0);
    CHECK_EQ(blitz_runtime_block_on((blitz_runtime *)rt, p->fn, &p->cluster), 0);
    sim_end(rt); /* no block of memory is left */
    p->books = bz_sim_net_end();
    CHECK_EQ(p->books.fds, 0u);
    CHECK_EQ(p->books.flights, 0u);
}

struct sums {
    uint64_t hellos, of_port, downs, losses, exits, noprocs, stalls, resets;
};

static void add(struct sums *sum, struct play *p)
{
    sum->hellos += p->cluster.hellos;
    sum->of_port += p->cluster.of_port;
    sum->downs += p->cluster.downs;
    sum->losses += p->cluster.losses;
    sum->exits += p->cluster.exits;
    sum->noprocs += p->cluster.noprocs;
    sum->stalls += p->books.stalls;
    sum->resets += p->books.resets;
}

/* Set the scene as the seed says. */
static void choose(struct play *p, uint64_t seed, unsigned nodes)
{
    struct bz_rng rng;
    bz_rng_init(&rng, seed);
    struct c_scene *s = &p->cluster;
    s->seed = seed;
    s->nodes = nodes;
    s->steps = 4 + bz_rng_below(&rng, 24);
    s->lives_of_a_slot = 1 + bz_rng_below(&rng, 4);
    s->is_one_way = bz_rng_below(&rng, 2) == 0;
    s->restarts = bz_rng_below(&rng, 3) == 0;
    s->ends_first = bz_rng_below(&rng, 2) == 0;
    s->opts.tick_ns = BLITZ_S << bz_rng_below(&rng, 4);
    s->opts.connect_ns = BLITZ_S << bz_rng_below(&rng, 4);
    s->opts.queue_high = bz_rng_below(&rng, 3) == 0 ? 200 : 0;
    s->opts.queue_max = s->opts.queue_high != 0 && bz_rng_below(&rng, 2) == 0 ? 1500 : 0;
    p->procs = 1 + (unsigned)(seed % 4);
    p->io = net_keeper(seed);
    p->net.busy_one_in = 4;
}

/* restarts: always, and the actors end before their nodes. */
static void on_seeds(unsigned nodes, int (*fn)(void *), bool restarts, uint64_t seeds)
{
    static struct play p;
    struct sums sum = {0};
    uint64_t n = sim_seeds(seeds);
    for (uint64_t i = 0; i < n; i++) {
        uint64_t seed = sim_next_seed();
        memset(&p, 0, sizeof p);
        choose(&p, seed, nodes);
        p.fn = fn;
        p.cluster.restarts |= restarts;
        p.cluster.ends_first |= restarts;
        t_watch("simulation seed 0x%llx, %u nodes, %u procs, %s", (unsigned long long)seed, nodes,
                p.procs, p.io);
        CHECK_EQ(bz_sim_run(&(struct bz_sim_config){.seed = seed}, play, &p, NULL), 0);
        add(&sum, &p);
    }
    t_note("%llu seeds: %llu messages, %llu of a known connection; %llu downs and %llu exits, %llu "
           "by a loss, "
           "%llu of the dead; %llu resets, %llu stalls",
           (unsigned long long)n, (unsigned long long)sum.hellos, (unsigned long long)sum.of_port,
           (unsigned long long)sum.downs, (unsigned long long)sum.exits,
           (unsigned long long)sum.losses, (unsigned long long)sum.noprocs,
           (unsigned long long)sum.resets, (unsigned long long)sum.stalls);
}

TEST_LIMIT(node_sim, two_nodes_tell_each_end_once_and_keep_the_order, 300)
{
    on_seeds(2, c_play, false, 200);
}

TEST_LIMIT(node_sim, three_nodes_tell_each_end_once_and_keep_the_order, 300)
{
    on_seeds(3, c_play, false, 100);
}

/* Ids of an earlier life of a node are answered, and are not taken for those of the next. */
TEST_LIMIT(node_sim, nodes_that_start_again_answer_for_their_earlier_lives, 300)
{
    on_seeds(2, c_play, true, 100);
}

/* ---- many that wait for one connection ---- */

struct caller {
    struct c_scene *scene;
    struct bz_rng rng;
};

static int connect_again_and_again(void *arg)
{
    struct caller *c = arg;
    for (int i = 0; i < 6; i++) {
        int rc = blitz_node_connect(c->scene->node[0], c_node_name[1],
                                    bz_rng_below(&c->rng, 3) == 0
                                        ? blitz_after(1000u << bz_rng_below(&c->rng, 14))
                                        : BLITZ_FOREVER);
        CHECK(rc == 0 || rc == -ECONNREFUSED || rc == -ETIMEDOUT || rc == -ECONNRESET ||
              rc == -EACCES || rc == -ECANCELED || rc == -EPIPE);
        if (bz_rng_below(&c->rng, 2) == 0)
            (void)blitz_node_disconnect(c->scene->node[0], c_node_name[1]);
        if (bz_rng_below(&c->rng, 2) == 0)
            CHECK_EQ(blitz_sleep(1000u << bz_rng_below(&c->rng, 10)), 0);
    }
    return 0;
}

static int many_connect(void *arg)
{
    enum { CALLERS = 5 };
    struct c_scene *s = arg;
    struct caller caller[CALLERS];
    blitz_task *task[CALLERS];
    struct bz_rng rng;
    bool is_there = s->seed % 2 == 0;
    c_prepare(s);
    bz_rng_init(&rng, s->seed + 1);
    for (unsigned i = 0; i < 1u + is_there; i++) {
        blitz_node_opts opts = s->opts;
        opts.listen = &s->place[i].at;
        CHECK_EQ(blitz_node_start(c_node_name[i], "monster", &opts, &s->node[i]), 0);
    }
    for (unsigned i = 0; i < CALLERS; i++) {
        caller[i].scene = s;
        bz_rng_init(&caller[i].rng, s->seed * 31 + i);
        CHECK_EQ(blitz_spawn(connect_again_and_again, &caller[i], NULL, &task[i]), 0);
    }
    for (unsigned i = 0; i < CALLERS; i++)
        CHECK_EQ(blitz_task_join(task[i], NULL, BLITZ_FOREVER), 0);
    for (unsigned i = 0; i < s->nodes; i++)
        blitz_node_stop(s->node[i]);
    return 0;
}

/* A caller that is not told would wait for ever: a deadlock. */
TEST_LIMIT(node_sim, all_that_wait_for_a_connect_are_told, 300)
{
    on_seeds(2, many_connect, false, 200);
}
