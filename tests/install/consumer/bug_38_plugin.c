/*
 * A plugin that computes in parallel on the thread of its caller. Its host knows nothing of blitz,
 * and closes it when it has its result.
 */
#include <blitz.h>
#include <stddef.h>

int plugin_sum(int n);
int plugin_end(void);

static int add(size_t from, size_t to, void *arg)
{
    for (size_t i = from; i < to; i++)
        __atomic_fetch_add((int *)arg, (int)i, __ATOMIC_RELAXED);
    return 0;
}

int plugin_sum(int n)
{
    int sum = 0;
    return blitz_for((size_t)n, add, &sum, NULL) == 0 ? sum : -1;
}

int plugin_end(void)
{
    return blitz_par_end();
}
