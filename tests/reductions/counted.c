/* Built with the compiler's flag for reductions: nothing in here yields by itself. */
#include "counted.h"

#include <stdint.h>

#include "blitz/fork.h"

static volatile unsigned long g;

unsigned long counted_until(atomic_int *is_over)
{
    unsigned long n = 0;
    while (!atomic_load_explicit(is_over, memory_order_relaxed))
        n++;
    return n;
}

void counted_times(unsigned long n)
{
    for (unsigned long i = 0; i < n; i++)
        g = i;
}

int counted_fib(void *arg)
{
    intptr_t n = (intptr_t)arg;
    blitz_job job;
    if (n < 2)
        return (int)n;
    blitz_fork(&job, counted_fib, (void *)(n - 2));
    int left = counted_fib((void *)(n - 1));
    return left + blitz_join(&job);
}
