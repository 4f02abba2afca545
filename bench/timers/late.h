/*
 * late.h - many sleepers, when each is due, and how late it was.
 *
 * Each is due at a moment of its own, between half a second and a second and a half after it was made,
 * evenly at random: about as many are due in each millisecond. Moments are planned a batch at a time,
 * so that reading the clock is not what is measured. Peers in other languages do the same.
 */
#ifndef BENCH_LATE_H
#define BENCH_LATE_H

#include "bench.h"

enum { LATE_BATCH = 1000 };

static uint64_t *late_due, *late_by;
static uint64_t late_count, late_base, late_seed;

/* Room for `count` of them, and for as many handles, touched before anything is measured. */
static inline void *late_begin(uint64_t count, size_t handle_bytes)
{
    static void *handles;
    if (late_count < count) {
        free(late_due);
        free(late_by);
        free(handles);
        late_due = malloc(count * sizeof *late_due);
        late_by = malloc(count * sizeof *late_by);
        handles = malloc(count * handle_bytes);
        if (late_due == NULL || late_by == NULL || handles == NULL)
            bench_die("out of memory");
        memset(late_due, 1, count * sizeof *late_due);
        memset(handles, 1, count * handle_bytes);
    }
    late_count = count;
    late_seed = 12345;
    memset(late_by, 0, count * sizeof *late_by);
    return handles;
}

static inline void late_plan(uint64_t i)
{
    if (i % LATE_BATCH == 0)
        late_base = bench_now_ns() + 500000000;
    late_seed = late_seed * 6364136223846793005u + 1442695040888963407u;
    late_due[i] = late_base + (late_seed >> 33) % 1000000000;
}

static inline void late_woke(uint64_t i, uint64_t now)
{
    if (now < late_due[i])
        bench_die("woke %llu ns early", (unsigned long long)(late_due[i] - now));
    late_by[i] = now - late_due[i];
}

static inline int late_compare(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

static inline double late_p99_ms(void)
{
    qsort(late_by, late_count, sizeof *late_by, late_compare);
    return (double)late_by[late_count - 1 - late_count / 100] / 1e6;
}

#endif
