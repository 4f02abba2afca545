/*
 * loops.h - our loops and reductions, for blitz.c.
 */
#ifndef BENCH_PAR_LOOPS_H
#define BENCH_PAR_LOOPS_H

#include <blitz.h>

#include "par/cases.h"

static void loop_must(int rc, const char *what)
{
    if (rc != 0)
        bench_die("%s: error %d", what, -rc);
}

/* ---- sum ---- */

static void sum_init(void *acc, void *arg)
{
    (void)arg;
    *(double *)acc = 0;
}

static int sum_map(void *acc, size_t from, size_t to, void *arg)
{
    *(double *)acc += sum_stretch(arg, from, to);
    return 0;
}

static void sum_combine(void *acc, const void *right, void *arg)
{
    (void)arg;
    *(double *)acc += *(const double *)right;
}

static const blitz_reduction sum_of_doubles = {sizeof(double), sum_init, sum_map, sum_combine};

static double case_sum(uint64_t ops)
{
    static double *numbers;
    if (numbers == NULL)
        numbers = sum_numbers();
    uint64_t began = tasks_now_ns();
    for (uint64_t i = 0; i < ops; i++) {
        double sum = 0;
        loop_must(blitz_reduce(SUM_COUNT, &sum_of_doubles, numbers, &sum, NULL), "reduce");
        if (sum != SUM_RESULT)
            bench_die("the sum is %f, not %f", sum, SUM_RESULT);
    }
    return (double)(tasks_now_ns() - began) / 1e6;
}

/* ---- orbit ---- */

static void orbit_init(void *acc, void *arg)
{
    (void)arg;
    *(uint64_t *)acc = 0;
}

static int orbit_map(void *acc, size_t from, size_t to, void *arg)
{
    uint64_t sum = 0;
    (void)arg;
    for (size_t i = from; i < to; i++)
        sum += orbit(i);
    *(uint64_t *)acc += sum;
    return 0;
}

static void orbit_combine(void *acc, const void *right, void *arg)
{
    (void)arg;
    *(uint64_t *)acc += *(const uint64_t *)right;
}

static const blitz_reduction sum_of_orbits = {sizeof(uint64_t), orbit_init, orbit_map,
                                              orbit_combine};

static double case_orbit(uint64_t ops)
{
    uint64_t want = orbit_result(), began = tasks_now_ns();
    for (uint64_t i = 0; i < ops; i++) {
        uint64_t sum = 0;
        loop_must(blitz_reduce(ORBIT_COUNT, &sum_of_orbits, NULL, &sum, NULL), "reduce");
        if (sum != want)
            bench_die("a wrong number");
    }
    return (double)(tasks_now_ns() - began) / 1e6;
}

/* ---- tiny ---- */

static int tiny_body(size_t from, size_t to, void *arg)
{
    (void)arg;
    tiny_stretch(from, to);
    return 0;
}

static void tiny_loop(void)
{
    loop_must(blitz_for(TINY_COUNT, tiny_body, NULL, NULL), "for");
}

static double case_tiny(uint64_t ops)
{
    return tiny_often(ops, tiny_loop);
}

static double case_tiny_idle(uint64_t ops)
{
    (void)ops;
    return tiny_now_and_then(tiny_loop);
}

#endif
