/*
 * bench.h - the small change of a benchmark program: a clock, pinned threads, calibrated runs, and
 * the line protocol of tools/bench.
 *
 * A program lists its cases and calls bench_main(). A case is a function that performs `ops`
 * operations and returns how many nanoseconds each took; set-up and tear-down stay outside of what
 * it times. bench_main() finds out how many operations fill the time it was given, runs them, and
 * prints `CASE NANOSECONDS_PER_OPERATION`.
 *
 * Some peers fall into a rut in which an operation takes milliseconds (a thread that is off its CPU
 * while all others spin for it). So that they get a figure instead of a time-out, a case looks at
 * bench_is_over() as it goes and stops early when that says so, and divides by what it has done.
 *
 * Ours and the peers written in C or C++ include the same file, so that they wait, back off and pin
 * alike: what differs is what is measured. It knows nothing of blitz.
 */
#ifndef BENCH_H
#define BENCH_H

#if !defined(_GNU_SOURCE)
#error "compile with -D_GNU_SOURCE=1: pinning needs CPU sets"
#endif
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Perform `ops` operations, or fewer if bench_is_over(); return the nanoseconds of one. */
typedef double bench_run_fn(uint64_t ops);

struct bench_case {
    const char *name;
    bench_run_fn *run;
};

/* A failed benchmark says why and ends at once; tools/bench shows the line. */
#define bench_die(...)                \
    do {                              \
        fprintf(stderr, __VA_ARGS__); \
        fputc('\n', stderr);          \
        exit(1);                      \
    } while (0)

static inline uint64_t bench_now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* The CPU time of the calling thread, for single-threaded cases on a shared machine. */
static inline uint64_t bench_thread_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Keep the compiler from removing an unused result. */
static inline void bench_keep(uint64_t value)
{
    __asm__ volatile("" ::"r"(value) : "memory");
}

static inline void bench_relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __asm__ volatile("pause" ::: "memory");
#elif defined(__aarch64__)
    __asm__ volatile("isb" ::: "memory");
#else
    __asm__ volatile("" ::: "memory");
#endif
}

/*
 * Back off when a queue is empty or full: spin, twice as long each time, then yield the CPU. Start
 * with *tries = 0, and reset it to 0 after a success. All contenders use it. (To retry at once
 * would keep moving the cache line away from the thread that must write it.)
 */
#define BENCH_TRIES 7
static inline void bench_backoff(unsigned *tries)
{
    if (*tries == BENCH_TRIES) {
        sched_yield();
        return;
    }
    for (unsigned i = 0; i < 1u << *tries; i++)
        bench_relax();
    ++*tries;
}

/* The CPUs the process may use: looked up by bench_main, before any thread is pinned. */
static cpu_set_t bench_cpus;

static inline void bench_find_cpus(void)
{
    if (sched_getaffinity(0, sizeof(bench_cpus), &bench_cpus) != 0)
        bench_die("cannot tell which CPUs there are");
}

/* Pin the calling thread to the index-th of them, counting round and round. */
static inline void bench_pin(unsigned index)
{
    unsigned nth = index % (unsigned)CPU_COUNT(&bench_cpus);
    int cpu = 0;
    while (!CPU_ISSET(cpu, &bench_cpus) || nth-- > 0)
        cpu++;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    if (pthread_setaffinity_np(pthread_self(), sizeof(one), &one) != 0)
        bench_die("cannot pin a thread to CPU %d", cpu);
}

/* Set by bench_together when the time is up; on a line of its own, which is only read. */
static struct {
    bool is_over;
    uint64_t limit_ns;
} bench_time __attribute__((aligned(128)));

static inline bool bench_is_over(void)
{
    return __atomic_load_n(&bench_time.is_over, __ATOMIC_RELAXED);
}

/*
 * Threads that start together. Thread i is pinned to CPU i (round and round) and calls fn(arg + i *
 * size). Returns the nanoseconds from the moment all stood ready until the last one had returned
 * from fn: starting and ending threads is not part of it.
 */
struct bench_crew {
    void (*fn)(void *);
    pthread_barrier_t ready;
};

struct bench_hand {
    struct bench_crew *crew;
    void *arg;
    unsigned index;
    uint64_t began, ended;
    pthread_t thread;
};

static void *bench_hand_main(void *arg)
{
    struct bench_hand *h = (struct bench_hand *)arg;
    bench_pin(h->index);
    pthread_barrier_wait(&h->crew->ready);
    h->began = bench_now_ns();
    h->crew->fn(h->arg);
    h->ended = bench_now_ns();
    return NULL;
}

/* Wait for a thread; when the time is up, tell all of them, and wait on. */
static inline void bench_join(pthread_t thread)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += (time_t)(bench_time.limit_ns / 1000000000u);
    until.tv_nsec += (long)(bench_time.limit_ns % 1000000000u);
    if (until.tv_nsec >= 1000000000) {
        until.tv_sec++;
        until.tv_nsec -= 1000000000;
    }
    if (pthread_timedjoin_np(thread, NULL, &until) == 0)
        return;
    __atomic_store_n(&bench_time.is_over, true, __ATOMIC_RELAXED);
    pthread_join(thread, NULL);
}

static inline uint64_t bench_together(unsigned count, void (*fn)(void *), void *args, size_t size)
{
    struct bench_crew crew;
    struct bench_hand *hands = (struct bench_hand *)calloc(count, sizeof(*hands));
    uint64_t first = UINT64_MAX, last = 0;

    crew.fn = fn;
    bench_time.is_over = false;
    if (hands == NULL || pthread_barrier_init(&crew.ready, NULL, count) != 0)
        bench_die("out of memory");
    for (unsigned i = 0; i < count; i++) {
        hands[i].crew = &crew;
        hands[i].arg = (char *)args + i * size;
        hands[i].index = i;
        if (pthread_create(&hands[i].thread, NULL, bench_hand_main, &hands[i]) != 0)
            bench_die("cannot start thread %u of %u", i + 1, count);
    }
    for (unsigned i = 0; i < count; i++) {
        bench_join(hands[i].thread);
        first = hands[i].began < first ? hands[i].began : first;
        last = hands[i].ended > last ? hands[i].ended : last;
    }
    pthread_barrier_destroy(&crew.ready);
    free(hands);
    return last - first;
}

/* The line tools/bench reads. For programs whose unit is not ns per operation. */
static inline void bench_print(const char *name, double value)
{
    printf("%s %.6g\n", name, value);
}

/* Double the work until it fills a fifth of the time: that warms up, too. Then all of it. */
static inline double bench_calibrated(bench_run_fn *run, double seconds)
{
    double want_ns = seconds * 1e9;
    uint64_t ops = 64; /* few: see above of those that need a millisecond for one */
    double each_ns = run(ops);
    while (each_ns * (double)ops < want_ns / 5) {
        ops *= 2;
        each_ns = run(ops);
    }
    return run((uint64_t)(want_ns / each_ns) + 1);
}

static inline int bench_usage(const char *program)
{
    fprintf(stderr, "usage: %s CASE --seconds=S | CASE --ops=N | --list\n", program);
    return 2;
}

static inline int bench_one(const struct bench_case *c, const char *how)
{
    char *end = NULL;
    if (strncmp(how, "--seconds=", 10) == 0) {
        double seconds = strtod(how + 10, &end);
        if (end == how + 10 || *end != '\0' || !(seconds > 0 && seconds <= 60))
            return -1;
        bench_time.limit_ns = (uint64_t)(seconds * 3e9);
        bench_print(c->name, bench_calibrated(c->run, seconds));
        return 0;
    }
    if (strncmp(how, "--ops=", 6) == 0) {
        uint64_t ops = strtoull(how + 6, &end, 10);
        if (end == how + 6 || *end != '\0' || ops == 0)
            return -1;
        bench_time.limit_ns = 100 * UINT64_C(1000000000);
        bench_print(c->name, c->run(ops));
        return 0;
    }
    return -1;
}

static inline int bench_main(int argc, char **argv, const struct bench_case *cases, size_t count)
{
    if (argc == 2 && strcmp(argv[1], "--list") == 0) {
        for (size_t i = 0; i < count; i++)
            puts(cases[i].name);
        return 0;
    }
    if (argc != 3)
        return bench_usage(argv[0]);
    bench_find_cpus();
    for (size_t i = 0; i < count; i++) {
        if (strcmp(cases[i].name, argv[1]) == 0)
            return bench_one(&cases[i], argv[2]) == 0 ? 0 : bench_usage(argv[0]);
    }
    fprintf(stderr, "%s: no case '%s'\n", argv[0], argv[1]);
    return 2;
}

#define BENCH_MAIN(cases)                                                     \
    int main(int argc, char **argv)                                           \
    {                                                                         \
        return bench_main(argc, argv, cases, sizeof(cases) / sizeof(*cases)); \
    }

#endif
