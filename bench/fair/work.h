/*
 * work.h - work that is measured beside endless loops: how much of the CPUs does it get? It knows nothing of blitz;
 * the peers in other languages do the same.
 *
 * reduce: the sum of 1/i for i from 1 to a million, in a thousand parts that run in parallel. It takes some
 * milliseconds on one CPU. request: 20,000 of these terms (some 50 us), then a message to another task and its answer.
 * The loops come first and have 300 ms; then the work is repeated for a second. The figure is the rate.
 */
#ifndef BENCH_FAIR_WORK_H
#define BENCH_FAIR_WORK_H

#include "bench.h"

enum { WORK_PARTS = 1000, WORK_PART = 1000, WORK_REQUEST = 20000 };

static uint64_t work_end_ns;

static inline double work_sum(size_t from, size_t to)
{
    double sum = 0;
    for (size_t i = from; i < to; i++)
        sum += 1.0 / (double)(i + 1);
    return sum;
}

static inline double work_part(size_t part)
{
    return work_sum(part * WORK_PART, (part + 1) * WORK_PART);
}

static inline double work_request(void)
{
    return work_sum(0, WORK_REQUEST);
}

/* Let the loops run for 300 ms. Returns the time at which the second begins. */
static inline uint64_t work_begin(void)
{
    struct timespec t = {0, 300 * 1000 * 1000};
    nanosleep(&t, NULL);
    uint64_t since = bench_now_ns();
    work_end_ns = since + 1000000000;
    return since;
}

static inline bool work_is_over(void)
{
    return bench_now_ns() >= work_end_ns;
}

#endif
