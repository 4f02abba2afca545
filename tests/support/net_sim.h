/*
 * net_sim.h - scenes on a simulated network (sim/network.h), with every backend.
 *
 *     net_on_seeds(scene, arg, (struct bz_sim_net_config){.reset_one_in = 40}, 60);
 *
 * runs scene(arg) as the first task of a runtime, under 60 seeds (scaled): the seed picks 1 to 4
 * procs and the backend, unless BLITZ_IO names one. A third as many further seeds are for the kqueue
 * backend, which the simulated kernel alone runs here. At the end nothing may be left open or in
 * flight. Random numbers of a scene come from the seed as well: net_dice().
 */
#ifndef T_NET_SIM_H
#define T_NET_SIM_H

#include "sim/network.h"
#include "runtime/runtime.h"
#include "support/sched_sim.h"

struct net_scene {
    struct sim_scene scene;
    struct bz_sim_net_config net;
    const char *io;
    struct bz_sim_net_books books; /* at the end */
};

/* From 0 below n, as the seed says. */
static inline uint32_t net_dice(uint32_t n)
{
    uint32_t drawn;
    CHECK_EQ(bz_os_entropy(bz_os_outside(), &drawn, sizeof drawn), 0);
    return drawn % n;
}

static inline void net_play(const struct bz_os *os, void *arg)
{
    struct net_scene *s = arg;
    struct bz_runtime *rt;
    CHECK_EQ(bz_sim_net_begin(os, &s->net), 0);
    CHECK_EQ(bz_runtime_new(os, &(blitz_runtime_opts){.procs = s->scene.procs, .io = s->io}, &rt),
             0);
    CHECK_EQ(blitz_runtime_block_on((blitz_runtime *)rt, s->scene.fn, s->scene.arg), s->scene.want);
    CHECK_EQ(blitz_runtime_shutdown((blitz_runtime *)rt, BLITZ_FOREVER), 0);
    CHECK_EQ(blitz_runtime_unref((blitz_runtime *)rt), 0);
    s->books = bz_sim_net_end();
    CHECK_EQ(s->books.fds, 0u);
    CHECK_EQ(s->books.flights, 0u);
}

static inline const char *net_keeper(uint64_t seed)
{
    static const char *const names[] = {"epoll", "uring", "epoll", "uring", "poll"};
    const char *asked = getenv("BLITZ_IO");
    return asked != NULL && *asked != '\0' ? asked : names[seed / 4 % BZ_ARRAY_LEN(names)];
}

static inline bool net_is_free_to_choose(void)
{
    const char *asked = getenv("BLITZ_IO");
    return asked == NULL || *asked == '\0';
}

/* Play one scene on one backend, under a seed of its own. Adds to the counts. */
static inline void net_on_keeper(int (*fn)(void *), void *arg, struct bz_sim_net_config net,
                                 unsigned least, unsigned most, const char *io,
                                 struct bz_sim_net_books *sum)
{
    uint64_t seed = sim_next_seed();
    unsigned procs = least + (unsigned)(seed % (most - least + 1));
    struct net_scene s = {.scene = {procs, fn, arg, 0}, .net = net};
    s.io = io != NULL ? io : net_keeper(seed);
    s.net.busy_one_in = 4;
    t_watch("simulation seed 0x%llx, %u procs, %s", (unsigned long long)seed, procs, s.io);
    CHECK_EQ(bz_sim_run(&(struct bz_sim_config){.seed = seed}, net_play, &s, NULL), 0);
    sum->told += s.books.told;
    sum->resets += s.books.resets;
}

static inline void net_on_procs(int (*fn)(void *), void *arg, struct bz_sim_net_config net,
                                uint64_t seeds, unsigned least, unsigned most)
{
    struct bz_sim_net_books sum = {0};
    uint64_t n = sim_seeds(seeds), more = net_is_free_to_choose() ? n / 3 + 1 : 0;
    for (uint64_t i = 0; i < n; i++)
        net_on_keeper(fn, arg, net, least, most, NULL, &sum);
    for (uint64_t i = 0; i < more; i++)
        net_on_keeper(fn, arg, net, least, most, "kqueue", &sum);
    t_note("%llu seeds, %llu told, %llu resets", (unsigned long long)(n + more),
           (unsigned long long)sum.told, (unsigned long long)sum.resets);
}

static inline void net_on_seeds(int (*fn)(void *), void *arg, struct bz_sim_net_config net,
                                uint64_t seeds)
{
    net_on_procs(fn, arg, net, seeds, 1, 4);
}

#endif
