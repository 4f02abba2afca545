/*
 * sim.h - scenarios on the simulated OS backend, for tests.
 *
 *     t_sim_each_seed(200, scenario, arg);     must end well with 200 seeds of this run
 *     int err = t_sim(seed, scenario, arg);    one seed; what came of it
 *
 * The report of a run that ends badly is kept (t_sim_report) and shown when it was not expected.
 */
#ifndef T_SIM_H
#define T_SIM_H

#include "harness.h"
#include "sim/sim.h"

typedef void (*t_scenario)(const struct bz_os *os, void *arg);

/* The report of the last run; empty if it ended well. */
static struct {
    size_t used;
    char text[65536];
} t_sim_report;

static inline void t_sim_keep(void *ctx, const char *line)
{
    (void)ctx;
    size_t room = sizeof t_sim_report.text - t_sim_report.used;
    int n = snprintf(t_sim_report.text + t_sim_report.used, room, "%s\n", line);
    if (n > 0)
        t_sim_report.used += (size_t)n < room ? (size_t)n : room - 1;
}

/* Run with that configuration; the report is kept. */
static inline int t_sim_with(struct bz_sim_config config, t_scenario fn, void *arg,
                             struct bz_sim_result *out)
{
    t_sim_report.used = 0;
    t_sim_report.text[0] = '\0';
    config.report = t_sim_keep;
    return bz_sim_run(&config, fn, arg, out);
}

static inline int t_sim(uint64_t seed, t_scenario fn, void *arg)
{
    return t_sim_with((struct bz_sim_config){.seed = seed}, fn, arg, NULL);
}

static inline bool t_sim_report_has(const char *text)
{
    return strstr(t_sim_report.text, text) != NULL;
}

/* Every one of `count` seeds of this run must end well. */
static inline void t_sim_each_seed(uint64_t count, t_scenario fn, void *arg)
{
    for (uint64_t i = t_scaled(count); i > 0; i--) {
        uint64_t seed = t_random();
        int err = t_sim(seed, fn, arg);
        if (err != 0)
            FAIL("seed 0x%llx of the simulation: error %d\n%s", (unsigned long long)seed, err,
                 t_sim_report.text);
    }
}

/* How many of `count` seeds end with `want`. */
static inline uint64_t t_sim_count(uint64_t count, int want, t_scenario fn, void *arg)
{
    uint64_t found = 0;
    for (uint64_t i = 0; i < count; i++)
        found += t_sim(t_random(), fn, arg) == want;
    return found;
}

/* A hog: use a CPU for that much virtual time. */
static inline void t_burn(uint64_t ns)
{
    bz_sim_burn(ns);
}

#endif
