/*
 * OpenMP, by gcc's libgomp and by LLVM's libomp: the same source built by either compiler. Tasks are
 * made in a parallel region by one of its threads, as its documentation does; each is a task (nothing
 * is cut off below some depth), the last of a node is called. Loops and reductions are `parallel for`
 * with the static schedule, which suits items that all take the same. The calling thread is one of the
 * workers, so outside and inside are the same here. Waiting threads wait as they do by default.
 */
#include <omp.h>

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
#pragma omp task shared(result)
        result = answer(1);
#pragma omp taskwait
        sum += (uint64_t)result;
    }
    double ns = (double)(tasks_now_ns() - began);
    if (sum != ops)
        bench_die("%llu tasks ran", (unsigned long long)sum);
    return ns;
}

static int fib(int n)
{
    int right = 0;
    if (n < 2)
        return n;
#pragma omp task shared(right)
    right = fib(n - 2);
    int left = fib(n - 1);
#pragma omp taskwait
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
    for (; (free & (free - 1)) != 0; free &= free - 1) {
        struct queens next = queens_place(q, free);
        int at = count++;
#pragma omp task shared(found)
        found[at] = queens(next);
    }
    if (free != 0)
        sum = queens(queens_place(q, free));
#pragma omp taskwait
    while (count > 0)
        sum += found[--count];
    return sum;
}

static double case_queens(uint64_t ops)
{
    const struct queens empty = {0, 0, 0};
    uint64_t began = tasks_now_ns();
    for (uint64_t i = 0; i < ops; i++)
        if (queens(empty) != QUEENS_RESULT)
            bench_die("a wrong number");
    return (double)(tasks_now_ns() - began) / 1e6;
}

static double sum_all(const double *numbers)
{
    double sum = 0;
#pragma omp parallel for simd reduction(+ : sum)
    for (int i = 0; i < SUM_COUNT; i++)
        sum += numbers[i];
    return sum;
}

static double case_sum(uint64_t ops)
{
    static double *numbers;
    if (numbers == NULL)
        numbers = sum_numbers();
    uint64_t began = tasks_now_ns();
    for (uint64_t i = 0; i < ops; i++)
        if (sum_all(numbers) != SUM_RESULT)
            bench_die("a wrong sum");
    return (double)(tasks_now_ns() - began) / 1e6;
}

static double case_orbit(uint64_t ops)
{
    uint64_t want = orbit_result(), began = tasks_now_ns();
    for (uint64_t i = 0; i < ops; i++) {
        uint64_t sum = 0;
#pragma omp parallel for reduction(+ : sum)
        for (int k = 0; k < ORBIT_COUNT; k++)
            sum += orbit((uint64_t)k);
        if (sum != want)
            bench_die("a wrong number");
    }
    return (double)(tasks_now_ns() - began) / 1e6;
}

static void tiny_loop(void)
{
#pragma omp parallel for
    for (int i = 0; i < TINY_COUNT; i++)
        tiny[i] += 1;
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

static const struct tasks_case tasks[] = {
    {"fork", TASKS_PACED, case_fork, 0},
    {"fib", TASKS_FIXED, case_fib, 1},
    {"queens", TASKS_FIXED, case_queens, 1},
};

static const struct tasks_case loops[] = {
    {"sum", TASKS_FIXED, case_sum, 1},
    {"orbit", TASKS_FIXED, case_orbit, 1},
    {"tiny-inside", TASKS_PACED, case_tiny, 0},
    {"tiny-outside", TASKS_PACED, case_tiny, 0},
    {"tiny-idle", TASKS_ONCE, case_tiny_idle, 1},
};

static void start_tasks(const struct tasks_case *c, const char *name)
{
    omp_set_dynamic(0);
    omp_set_num_threads((int)tasks_procs);
#pragma omp parallel
#pragma omp single
    tasks_measure(c, name);
}

static void start_loops(const struct tasks_case *c, const char *name)
{
    omp_set_dynamic(0);
    omp_set_num_threads((int)tasks_procs);
    tasks_measure(c, name);
}

int main(int argc, char **argv)
{
    if (argc > 1 && (strncmp(argv[1], "f", 1) == 0 || strncmp(argv[1], "q", 1) == 0))
        return tasks_main(argc, argv, tasks, sizeof tasks / sizeof tasks[0], start_tasks);
    return tasks_main(argc, argv, loops, sizeof loops / sizeof loops[0], start_loops);
}
