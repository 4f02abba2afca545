/*
 * scene_fib.c - fork and join at their finest grain: one fork for every addition.
 *
 * fib(n) consists of calls only, so it shows the cost of a fork compared with a call. It also shows
 * the gain of a second worker although no piece of work is longer than nanoseconds: an idle worker
 * steals the oldest job, which is the largest.
 */
#include <stdlib.h>
#include <unistd.h>

#include <blitz.h>

#include "demo.h"

static int fib(void *arg)
{
    intptr_t n = (intptr_t)arg;
    blitz_job job;
    if (n < 2)
        return (int)n;
    blitz_fork(&job, fib, (void *)(n - 2));
    int left = fib((void *)(n - 1));
    return left + blitz_join(&job);
}

/* Two real calls, as the fork has them: the compiler would make a loop of the second. */
static __attribute__((noinline)) int fib_calls(int n)
{
    if (n < 2)
        return n;
    int left = fib_calls(n - 1), right = fib_calls(n - 2);
    __asm__ volatile("" : "+r"(right));
    return left + right;
}

/* How often fib(n) adds. */
static uint64_t additions(int n)
{
    uint64_t a = 0, b = 0; /* of fib(n - 2), of fib(n - 1) */
    for (int i = 2; i <= n; i++) {
        uint64_t c = a + b + 1;
        a = b;
        b = c;
    }
    return b;
}

struct sum {
    int n, result;
    double seconds;
};

static int timed(void *arg)
{
    struct sum *s = arg;
    double start = demo_seconds();
    s->result = fib((void *)(intptr_t)s->n);
    s->seconds = demo_seconds() - start;
    return 0;
}

static double forked_seconds(struct demo *d, int n, unsigned procs, int expected)
{
    blitz_runtime_opts config = {.procs = procs};
    struct sum s = {.n = n};
    int err = blitz_run(timed, &s, &config);
    demo_claim(d, err == 0 && s.result == expected, "fib(%d) is %d, not %d (error %d)", n, expected,
               s.result, -err);
    return s.seconds;
}

static void play(struct demo *d)
{
    int n = demo_scaled(d, 10) == 10 ? 40 : 34;
    unsigned cpus = (unsigned)sysconf(_SC_NPROCESSORS_ONLN);
    demo_progress(d, 0, 3, "of 3 ways");
    double start = demo_seconds();
    int expected = fib_calls(n);
    double calls = demo_seconds() - start;
    demo_progress(d, 1, 3, "of 3 ways");
    double one = forked_seconds(d, n, 1, expected);
    demo_progress(d, 2, 3, "of 3 ways");
    demo_result(d, "fib(%d) = %s by plain calls: %.0f ms", n, demo_count((uint64_t)expected),
                calls * 1e3);
    demo_result(d, "with a fork and a join for each of %s additions, one worker: %.0f ms",
                demo_count(additions(n)), one * 1e3);
    if (cpus > 1) {
        double all = forked_seconds(d, n, cpus, expected);
        demo_result(d, "%u workers: %.0f ms, %.2f times as fast", cpus, all * 1e3, one / all);
    }
}

const struct demo_scene scene_fib = {
    "fib", "A fork for every addition",
    "The finest grain there is: a fork that nobody takes costs about a nanosecond.", play};
