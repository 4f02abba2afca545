// oneTBB: task_group for tasks, parallel_reduce, parallel_for and parallel_sort with its default
// partitioner for the rest. Of a node's tasks the last one is called (run_and_wait), the others are run.
// The calling thread is one of the workers, so outside and inside are the same here.

#include <tbb/blocked_range.h>
#include <tbb/global_control.h>
#include <tbb/parallel_for.h>
#include <tbb/parallel_reduce.h>
#include <tbb/parallel_sort.h>
#include <tbb/task_arena.h>
#include <tbb/task_group.h>

#include "par/cases.h"

static __attribute__((noinline)) int answer(int x)
{
    return x;
}

static double case_fork(uint64_t ops)
{
    uint64_t sum = 0, began = tasks_now_ns();
    for (uint64_t i = 0; i < ops; i++) {
        int result = 0;
        tbb::task_group group;
        group.run([&result] { result = answer(1); });
        group.wait();
        sum += (uint64_t)result;
    }
    double ns = (double)(tasks_now_ns() - began);
    if (sum != ops)
        bench_die("%llu tasks ran", (unsigned long long)sum);
    return ns;
}

static int fib(int n)
{
    if (n < 2)
        return n;
    int left = 0, right = 0;
    tbb::task_group group;
    group.run([&right, n] { right = fib(n - 2); });
    group.run_and_wait([&left, n] { left = fib(n - 1); });
    return left + right;
}

static double case_fib(uint64_t ops)
{
    uint64_t began = tasks_now_ns();
    for (uint64_t i = 0; i < ops; i++)
        if (fib(FIB_LESS_N) != FIB_LESS_RESULT)
            bench_die("a wrong number");
    return (double)(tasks_now_ns() - began) / 1e6 * FIB_NODES / FIB_LESS_NODES;
}

static int queens(struct queens q)
{
    int found[QUEENS_N], count = 0, sum = 0;
    if (q.columns == QUEENS_ALL)
        return 1;
    uint32_t free = queens_free(q);
    if (free == 0)
        return 0;
    tbb::task_group group;
    for (; (free & (free - 1)) != 0; free &= free - 1) {
        struct queens next = queens_place(q, free);
        int at = count++;
        group.run([&found, at, next] { found[at] = queens(next); });
    }
    group.run_and_wait([&sum, q, free] { sum = queens(queens_place(q, free)); });
    while (count > 0)
        sum += found[--count];
    return sum;
}

static double case_queens(uint64_t ops)
{
    uint64_t began = tasks_now_ns();
    for (uint64_t i = 0; i < ops; i++)
        if (queens({0, 0, 0}) != QUEENS_RESULT)
            bench_die("a wrong number");
    return (double)(tasks_now_ns() - began) / 1e6;
}

using range = tbb::blocked_range<size_t>;

static double case_sum(uint64_t ops)
{
    static double *numbers;
    if (numbers == NULL)
        numbers = sum_numbers();
    uint64_t began = tasks_now_ns();
    for (uint64_t i = 0; i < ops; i++) {
        double sum = tbb::parallel_reduce(
            range(0, SUM_COUNT), 0.0,
            [](const range &r, double acc) {
                return acc + sum_stretch(numbers, r.begin(), r.end());
            },
            [](double a, double b) { return a + b; });
        if (sum != SUM_RESULT)
            bench_die("a wrong sum");
    }
    return (double)(tasks_now_ns() - began) / 1e6;
}

static double case_orbit(uint64_t ops)
{
    uint64_t want = orbit_result(), began = tasks_now_ns();
    for (uint64_t i = 0; i < ops; i++) {
        uint64_t sum = tbb::parallel_reduce(
            range(0, ORBIT_COUNT), UINT64_C(0),
            [](const range &r, uint64_t acc) {
                for (size_t k = r.begin(); k < r.end(); k++)
                    acc += orbit(k);
                return acc;
            },
            [](uint64_t a, uint64_t b) { return a + b; });
        if (sum != want)
            bench_die("a wrong number");
    }
    return (double)(tasks_now_ns() - began) / 1e6;
}

static void by_value(uint64_t *numbers, size_t count)
{
    tbb::parallel_sort(numbers, numbers + count);
}

SORT_CASES(sort, by_value)

static void tiny_loop(void)
{
    tbb::parallel_for(range(0, TINY_COUNT),
                      [](const range &r) { tiny_stretch(r.begin(), r.end()); });
}

static double case_tiny(uint64_t ops)
{
    return tiny_often(ops, tiny_loop);
}

static double case_tiny_idle(uint64_t)
{
    return tiny_now_and_then(tiny_loop);
}

static const struct tasks_case cases[] = {
    {"fork", TASKS_PACED, case_fork, 0},
    {"fib", TASKS_FIXED, case_fib, 1},
    {"queens", TASKS_FIXED, case_queens, 1},
    {"sum", TASKS_FIXED, case_sum, 1},
    {"orbit", TASKS_FIXED, case_orbit, 1},
    {"sort-random", TASKS_FIXED, case_sort_random, 1},
    {"sort-sorted", TASKS_FIXED, case_sort_sorted, 1},
    {"sort-few", TASKS_FIXED, case_sort_few, 1},
    {"tiny-inside", TASKS_PACED, case_tiny, 0},
    {"tiny-outside", TASKS_PACED, case_tiny, 0},
    {"tiny-idle", TASKS_ONCE, case_tiny_idle, 1},
};

static void start(const struct tasks_case *c, const char *name)
{
    tbb::global_control limit(tbb::global_control::max_allowed_parallelism, tasks_procs);
    tbb::task_arena arena((int)tasks_procs);
    arena.execute([c, name] { tasks_measure(c, name); });
}

int main(int argc, char **argv)
{
    return tasks_main(argc, argv, cases, sizeof cases / sizeof cases[0], start);
}
