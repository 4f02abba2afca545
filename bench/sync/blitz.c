/*
 * Ours. Every case runs in the first task of a runtime with as many procs as were asked for.
 * What each case is: bench/sync.toml. Only public headers: what a user can have.
 */
#include "sync/locks.h"
#include "sync/sync.h"

static const struct tasks_case cases[] = {
    LOCK_CASES,
};

struct order {
    const struct tasks_case *c;
    const char *name;
};

static int measure(void *arg)
{
    struct order *o = arg;
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
