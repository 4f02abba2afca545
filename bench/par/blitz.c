/*
 * Ours. A case runs in the first task of a runtime with as many procs as were asked for, or, where its
 * name says so, on a plain thread beside one. What each is: par/cases.h. Only public headers.
 */
#include <blitz.h>

#include "par/cases.h"
#include "par/fork.h"

static void must(int rc, const char *what)
{
    if (rc < 0)
        bench_die("%s: error %d", what, -rc);
}

static const struct tasks_case cases[] = {
    {"fork", TASKS_PACED, case_fork, 0},
    {"fib", TASKS_FIXED, case_fib, 1},
    {"queens", TASKS_FIXED, case_queens, 1},
};

struct order {
    const struct tasks_case *c;
    const char *name;
};

static int measure(void *arg)
{
    const struct order *o = arg;
    tasks_measure(o->c, o->name);
    return 0;
}

static void start(const struct tasks_case *c, const char *name)
{
    blitz_config config = {.procs = tasks_procs};
    struct order o = {c, name};
    must(blitz_run(measure, &o, &config), "run");
}

int main(int argc, char **argv)
{
    return tasks_main(argc, argv, cases, sizeof cases / sizeof cases[0], start);
}
