/*
 * Ours. Every case runs in the first task of a runtime with as many procs as were asked for.
 * What each case is: bench/sync.toml. Only public headers: what a user can have.
 */
#include "sync/locks.h"
#include "sync/sync.h"

static const struct tasks_case cases[] = {
    LOCK_CASES,
};

int main(int argc, char **argv)
{
    return tasks_main(argc, argv, cases, sizeof cases / sizeof cases[0], ours_start);
}
