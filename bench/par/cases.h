/*
 * cases.h - what the cases of bench-par are, for ours and for the peers in C and C++; the peer in Rust
 * says the same again. It knows nothing of blitz. The frame is that of bench-tasks (tasks/tasks.h).
 *
 *   fork          a fork and a join without a steal, the forked function called: ns
 *   fib           fib(38), every node forks one half and calls the other: ms
 *   queens        nqueens(13), a task for every placement, all solutions counted: ms
 *   sum           the sum of 100 million doubles: ms
 *   orbit         a reduction that computes: ms
 *   sort-*        10 million uint64, random, sorted, or random among a hundred values: ms
 *   compare-*     the same, told by a comparator what is less, as qsort is: ms
 *   tiny-inside   a loop of 1000 additions, called where the workers are: ns a loop
 *   tiny-outside  the same, from a thread that is no worker, one after another: ns a loop
 *   tiny-idle     the same, every 4 ms, while nothing else happens: ns, the median
 *   steal, stolen-join   ours alone: steals.h
 *
 * Runtimes that need more than 100 ns a task count fib(30) and say what fib(38) would take by the
 * number of nodes: 38 itself takes them a quarter of a minute.
 */
#ifndef BENCH_PAR_CASES_H
#define BENCH_PAR_CASES_H

#include "tasks/fib.h"
#include "tasks/tasks.h"

enum {
    FIB_NODES = 126491971,
    FIB_LESS_N = 30,
    FIB_LESS_RESULT = 832040,
    FIB_LESS_NODES = 2692537,
    QUEENS_N = 13,
    QUEENS_RESULT = 73712,
    SUM_COUNT = 100 * 1000 * 1000,
    ORBIT_COUNT = 100 * 1000,
    ORBIT_STEPS = 200,
    SORT_COUNT = 10 * 1000 * 1000,
    TINY_COUNT = 1000,
    TINY_IDLE_ROUNDS = 50,
};

#define TINY_IDLE_NS 4000000

/* ---- queens: where no queen may stand, as bits of a row ---- */

#define QUEENS_ALL ((1u << QUEENS_N) - 1)

struct queens {
    uint32_t columns, left, right;
};

static inline uint32_t queens_free(struct queens q)
{
    return QUEENS_ALL & ~(q.columns | q.left | q.right);
}

/* The board below a queen on the lowest of the free places. */
static inline struct queens queens_place(struct queens q, uint32_t free)
{
    uint32_t bit = free & (0 - free);
    struct queens next = {q.columns | bit, ((q.left | bit) << 1) & QUEENS_ALL,
                          (q.right | bit) >> 1};
    return next;
}

/* ---- sum: multiples of a quarter, so that every order adds up to the same ---- */

static inline double *sum_numbers(void)
{
    double *numbers = (double *)malloc(SUM_COUNT * sizeof(double));
    if (numbers == NULL)
        bench_die("no memory for %d doubles", SUM_COUNT);
    for (int i = 0; i < SUM_COUNT; i++)
        numbers[i] = 0.25 * (i % 1000);
    return numbers;
}

#define SUM_RESULT (0.25 * 999 * 1000 / 2 * (SUM_COUNT / 1000))

/*
 * Sum a range with eight accumulators: a single one would wait for each addition, and a parallel
 * sum has no fixed order anyway. All contenders use this, so that only the splitting differs.
 */
static inline double sum_stretch(const double *numbers, size_t from, size_t to)
{
    double lanes[8] = {0}, sum = 0;
    for (; to - from >= 8; from += 8)
        for (int k = 0; k < 8; k++)
            lanes[k] += numbers[from + (size_t)k];
    for (; from < to; from++)
        sum += numbers[from];
    for (int k = 0; k < 8; k++)
        sum += lanes[k];
    return sum;
}

/* ---- orbit: a chain of multiplications no compiler can shorten; an item takes a third of a us ---- */

static inline uint64_t orbit(uint64_t i)
{
    double x = (double)(i % 1000) / 1000;
    for (int k = 0; k < ORBIT_STEPS; k++)
        x = x * x - 0.75;
    return (uint64_t)((x + 2) * 1024);
}

/* The expected result of the reduction: items repeat after a thousand. */
static inline uint64_t orbit_result(void)
{
    uint64_t result = 0;
    for (uint64_t i = 0; i < 1000; i++)
        result += orbit(i) * (ORBIT_COUNT / 1000);
    return result;
}

/* ---- sorts ---- */

static inline uint64_t par_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

enum sort_input { SORT_RANDOM, SORT_SORTED, SORT_FEW };

static inline uint64_t *sort_numbers(enum sort_input input)
{
    uint64_t *numbers = (uint64_t *)malloc(SORT_COUNT * sizeof(uint64_t));
    uint64_t state = 88172645463325252u;
    if (numbers == NULL)
        bench_die("no memory for %d numbers", SORT_COUNT);
    for (uint64_t i = 0; i < SORT_COUNT; i++)
        numbers[i] = input == SORT_SORTED   ? i
                     : input == SORT_RANDOM ? par_random(&state)
                                            : par_random(&state) % 100;
    return numbers;
}

/* Sort a fresh copy each time; milliseconds. The result is in order and has the same sum. */
static inline double sort_once(enum sort_input input, void (*sort)(uint64_t *numbers, size_t count))
{
    static uint64_t *fresh, *numbers;
    uint64_t sum = 0;
    if (fresh == NULL) {
        fresh = sort_numbers(input);
        numbers = (uint64_t *)malloc(SORT_COUNT * sizeof(uint64_t));
    }
    if (numbers == NULL)
        bench_die("no memory");
    memcpy(numbers, fresh, SORT_COUNT * sizeof(uint64_t));
    uint64_t began = tasks_now_ns();
    sort(numbers, SORT_COUNT);
    double ms = (double)(tasks_now_ns() - began) / 1e6;
    for (int i = 0; i < SORT_COUNT; i++) {
        sum += fresh[i] - numbers[i];
        if (i > 0 && numbers[i - 1] > numbers[i])
            bench_die("not in order at %d", i);
    }
    if (sum != 0)
        bench_die("other numbers than before");
    return ms;
}

/* The three cases of a way to sort: random, sorted, and few different values. */
#define SORT_CASES(name, sort)                       \
    static double case_##name##_random(uint64_t ops) \
    {                                                \
        (void)ops;                                   \
        return sort_once(SORT_RANDOM, sort);         \
    }                                                \
    static double case_##name##_sorted(uint64_t ops) \
    {                                                \
        (void)ops;                                   \
        return sort_once(SORT_SORTED, sort);         \
    }                                                \
    static double case_##name##_few(uint64_t ops)    \
    {                                                \
        (void)ops;                                   \
        return sort_once(SORT_FEW, sort);            \
    }

static inline int sort_compare(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* ---- tiny loops ---- */

static uint32_t tiny[TINY_COUNT] __attribute__((aligned(64)));

static inline void tiny_stretch(size_t from, size_t to)
{
    for (size_t i = from; i < to; i++)
        tiny[i] += 1;
}

/* Each item was visited so many times more. */
static inline void tiny_check(uint64_t times)
{
    for (int i = 0; i < TINY_COUNT; i++) {
        if (tiny[i] != (uint32_t)times)
            bench_die("item %d was visited %u times, not %llu", i, tiny[i],
                      (unsigned long long)times);
        tiny[i] = 0;
    }
}

/* Call the loop so many times: nanoseconds of all. */
static inline double tiny_often(uint64_t ops, void (*loop)(void))
{
    uint64_t began = bench_now_ns();
    for (uint64_t i = 0; i < ops; i++)
        loop();
    double ns = (double)(bench_now_ns() - began);
    tiny_check(ops);
    return ns;
}

static inline int tiny_compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Call it now and then: the median of its nanoseconds. */
static inline double tiny_now_and_then(void (*loop)(void))
{
    double ns[TINY_IDLE_ROUNDS];
    const struct timespec rest = {0, TINY_IDLE_NS};
    loop();
    for (int i = 0; i < TINY_IDLE_ROUNDS; i++) {
        nanosleep(&rest, NULL);
        uint64_t began = bench_now_ns();
        loop();
        ns[i] = (double)(bench_now_ns() - began);
    }
    tiny_check(TINY_IDLE_ROUNDS + 1);
    qsort(ns, TINY_IDLE_ROUNDS, sizeof(*ns), tiny_compare);
    return ns[TINY_IDLE_ROUNDS / 2];
}

#endif
