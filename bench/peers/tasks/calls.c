/*
 * Plain C: fib(38) by two real calls a node. By default gcc turns the second call into a loop and
 * inlines several levels of the first. A fork that may be stolen cannot do that, so both are
 * disabled here.
 */
#include "tasks/cases.h"

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

static const struct tasks_case cases[] = {{"fib", TASKS_FIXED, case_fib, 1}};

static void start(const struct tasks_case *c, const char *name)
{
    tasks_measure(c, name);
}

int main(int argc, char **argv)
{
    return tasks_main(argc, argv, cases, sizeof cases / sizeof cases[0], start);
}
