/*
 * Plain sequential C: the lower bound. fib makes two real calls a node. By default gcc turns the
 * second call into a loop and inlines several levels of the first. A fork that may be stolen cannot
 * do that, so both are disabled here. Queens likewise is one real call a placement. Sorting is
 * qsort, once: it is the same each time and takes seconds.
 */
#include "par/cases.h"

__attribute__((noipa)) static int answer(int x)
{
    return x;
}

/* The call alone, without a fork and a join. */
static double case_fork(uint64_t ops)
{
    uint64_t sum = 0, began = tasks_now_ns();
    for (uint64_t i = 0; i < ops; i++)
        sum += (uint64_t)answer(1);
    double ns = (double)(tasks_now_ns() - began);
    if (sum != ops)
        bench_die("a wrong number");
    return ns;
}

__attribute__((noipa, optimize("no-optimize-sibling-calls"))) static int fib(int n)
{
    return n < 2 ? n : fib(n - 1) + fib(n - 2);
}

static double case_fib(uint64_t ops)
{
    uint64_t began = tasks_now_ns();
    for (uint64_t i = 0; i < ops; i++)
        if (fib(FIB_N) != FIB_RESULT)
            bench_die("a wrong number");
    return (double)(tasks_now_ns() - began) / 1e6;
}

/* Three numbers and not the struct: those are three registers. */
__attribute__((noipa)) static int queens(uint32_t columns, uint32_t left, uint32_t right)
{
    struct queens q = {columns, left, right};
    int found = 0;
    if (q.columns == QUEENS_ALL)
        return 1;
    for (uint32_t free = queens_free(q); free != 0; free &= free - 1) {
        struct queens next = queens_place(q, free);
        found += queens(next.columns, next.left, next.right);
    }
    return found;
}

static double case_queens(uint64_t ops)
{
    uint64_t began = tasks_now_ns();
    for (uint64_t i = 0; i < ops; i++)
        if (queens(0, 0, 0) != QUEENS_RESULT)
            bench_die("a wrong number");
    return (double)(tasks_now_ns() - began) / 1e6;
}

static double case_sum(uint64_t ops)
{
    static double *numbers;
    if (numbers == NULL)
        numbers = sum_numbers();
    uint64_t began = tasks_now_ns();
    for (uint64_t i = 0; i < ops; i++)
        if (sum_stretch(numbers, 0, SUM_COUNT) != SUM_RESULT)
            bench_die("a wrong sum");
    return (double)(tasks_now_ns() - began) / 1e6;
}

static double case_orbit(uint64_t ops)
{
    uint64_t want = orbit_result(), began = tasks_now_ns();
    for (uint64_t i = 0; i < ops; i++) {
        uint64_t sum = 0;
        for (uint64_t k = 0; k < ORBIT_COUNT; k++)
            sum += orbit(k);
        if (sum != want)
            bench_die("a wrong number");
    }
    return (double)(tasks_now_ns() - began) / 1e6;
}

static void by_qsort(uint64_t *numbers, size_t count)
{
    qsort(numbers, count, sizeof(*numbers), sort_compare);
}

SORT_CASES(compare, by_qsort)

__attribute__((noipa)) static void tiny_loop(void)
{
    tiny_stretch(0, TINY_COUNT);
}

static double case_tiny(uint64_t ops)
{
    return tiny_often(ops, tiny_loop);
}

static const struct tasks_case cases[] = {
    {"fork", TASKS_PACED, case_fork, 0},
    {"fib", TASKS_FIXED, case_fib, 1},
    {"queens", TASKS_FIXED, case_queens, 1},
    {"sum", TASKS_FIXED, case_sum, 1},
    {"orbit", TASKS_FIXED, case_orbit, 1},
    {"compare-random", TASKS_ONCE, case_compare_random, 1},
    {"compare-sorted", TASKS_ONCE, case_compare_sorted, 1},
    {"compare-few", TASKS_ONCE, case_compare_few, 1},
    {"tiny-inside", TASKS_PACED, case_tiny, 0},
};

static void start(const struct tasks_case *c, const char *name)
{
    tasks_measure(c, name);
}

int main(int argc, char **argv)
{
    return tasks_main(argc, argv, cases, sizeof cases / sizeof cases[0], start);
}
