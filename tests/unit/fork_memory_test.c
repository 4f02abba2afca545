/* Fork and join need no memory besides the caller's frame: malloc is counted, for the whole program. */
#include "harness.h"
#include "support/alone.h"
#include "support/mallocs.h"

#include "blitz.h"

static int returns_one(void *arg)
{
    (void)arg;
    return 1;
}

/* A fork on an empty deque takes the slow path each time: the job is shared at once. */
static int lone_forks(int n)
{
    int sum = 0;
    for (int i = 0; i < n; i++) {
        blitz_job job;
        blitz_fork(&job, returns_one, NULL);
        sum += blitz_join(&job);
    }
    return sum;
}

static int tree(void *arg)
{
    intptr_t depth = (intptr_t)arg;
    blitz_job left;
    if (depth == 0)
        return 1;
    blitz_fork(&left, tree, (void *)(depth - 1));
    int right = tree((void *)(depth - 1));
    return right + blitz_join(&left);
}

enum { ROUNDS = 1000, DEPTH = 10 };

static void forks_of_every_shape(void)
{
    CHECK_EQ(lone_forks(ROUNDS), ROUNDS);
    CHECK_EQ(tree((void *)(intptr_t)DEPTH), 1 << DEPTH);
}

static int counts_mallocs_of_forks(void *arg)
{
    blitz_stats before, after;
    (void)arg;
    forks_of_every_shape(); /* the monitor starts, caches fill */
    uint64_t mallocs = t_count_mallocs();
    CHECK_EQ(blitz_stats_read(NULL, &before), 0);
    forks_of_every_shape();
    CHECK_EQ(blitz_stats_read(NULL, &after), 0);
    CHECK_EQ(t_count_mallocs() - mallocs, 0u);
    CHECK_GE(after.forks_shared - before.forks_shared,
             (uint64_t)ROUNDS); /* slow paths were taken */
    return 0;
}

/* One proc: no other machine starts meanwhile, so the count is exact. */
TEST(fork_memory, forks_and_joins_on_every_path_allocate_nothing)
{
    CHECK_EQ(t_run_alone(counts_mallocs_of_forks, NULL), 0);
}
