/*
 * preempt.c - two ways for a tight loop to yield to other tasks.
 *
 *     preempt                   a loop that calls BLITZ_POLL()
 *     preempt spin 8            eight loops that do not: they share the CPUs
 *     preempt cost              the cost of a BLITZ_POLL() in a loop of a few instructions
 *     preempt_counted spin      a loop that does not, built to count its steps: blitz/reductions.h
 *
 * Other tasks run in any case (preempt spin): a loop that never yields keeps its thread, other
 * tasks continue on another thread, and many such loops share the CPUs. But each such loop costs a
 * thread. A loop that polls or counts shares its thread with other tasks.
 *
 * For each way, the program runs a ticker of 5 ms beside the loops and prints its delays and the
 * progress of each loop.
 */
#include <blitz.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { LOOPS_MAX = 64, TICKS = 40, PERIOD_MS = 5 };

struct loop {
    unsigned long long rounds; /* one writer: the loop */
};

static struct loop loop[LOOPS_MAX];
static atomic_bool is_over;

/* ---- two loops ---- */

/* One poll a round: about a nanosecond. */
static int polls(void *arg)
{
    struct loop *l = arg;
    while (!atomic_load_explicit(&is_over, memory_order_relaxed)) {
        BLITZ_POLL();
        l->rounds++;
    }
    return 0;
}

/* Nothing in it that blitz could see. */
static int spins(void *arg)
{
    struct loop *l = arg;
    while (!atomic_load_explicit(&is_over, memory_order_relaxed))
        l->rounds++;
    return 0;
}

/* ---- beside them ---- */

/* Late by how much, at the worst? */
static uint64_t tick(void)
{
    uint64_t start = blitz_now(), worst = 0;
    for (int i = 1; i <= TICKS; i++) {
        uint64_t when = start + (uint64_t)i * PERIOD_MS * BLITZ_MS;
        if (blitz_sleep_until(when) != 0)
            break; /* cancelled */
        uint64_t late = blitz_now() - when;
        worst = late > worst ? late : worst;
    }
    return worst;
}

struct scene {
    int (*fn)(void *);
    int loops;
};

static int play(void *arg)
{
    const struct scene *s = arg;
    blitz_task *t[LOOPS_MAX];
    for (int i = 0; i < s->loops; i++)
        if (blitz_spawn(s->fn, &loop[i], NULL, &t[i]) != 0)
            return 1;
    uint64_t worst = tick();
    atomic_store(&is_over, true);
    for (int i = 0; i < s->loops; i++)
        blitz_task_join(t[i], NULL, BLITZ_FOREVER);
    printf("%d ticks beside %d loops, the latest %.1f ms late; rounds:", TICKS, s->loops,
           (double)worst / 1e6);
    for (int i = 0; i < s->loops; i++)
        printf(" %.1fM", (double)loop[i].rounds / 1e6);
    printf("\n");
    return 0;
}

/* ---- the cost of a poll ---- */

static double cpu_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

enum { ROUNDS = 20000000, TRIES = 7 };

static uint64_t step(uint64_t x, uint64_t i)
{
    x = x * 3 + i;
    __asm__ volatile("" : "+r"(x)); /* the compiler is not to see through it */
    return x;
}

static double least(double a, double b)
{
    return a < b ? a : b;
}

static int cost(void *arg)
{
    double without = 1e9, with = 1e9;
    uint64_t x = 1;
    (void)arg;
    for (int n = 0; n < TRIES; n++) {
        double start = cpu_ns();
        for (uint64_t i = 0; i < ROUNDS; i++)
            x = step(x, i);
        double middle = cpu_ns();
        for (uint64_t i = 0; i < ROUNDS; i++) {
            BLITZ_POLL();
            x = step(x, i);
        }
        with = least(with, (cpu_ns() - middle) / ROUNDS);
        without = least(without, (middle - start) / ROUNDS);
    }
    printf("%.2f ns a round without, %.2f ns with BLITZ_POLL()\n", without, with);
    return 0;
}

int main(int argc, char **argv)
{
    struct scene scene = {polls, 1};
    blitz_runtime_opts config = {.procs = 1};
    if (argc > 1 && strcmp(argv[1], "cost") == 0)
        return blitz_run(cost, NULL, &config);
    if (argc > 1 && strcmp(argv[1], "spin") == 0)
        scene = (struct scene){spins, argc > 2 ? atoi(argv[2]) : 1};
    if (scene.loops < 1 || scene.loops > LOOPS_MAX)
        return 2;
    return blitz_run(play, &scene, &config);
}
