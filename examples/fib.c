/*
 * fib - the classic of fork and join: a tree of calls with nothing else in it.
 *
 *     fib [n]        n is 38 if not given; BLITZ_PROCS sets the number of workers
 *
 * Every node forks one half and calls the other: 63 million forks for n = 38. The program measures
 * the cost of a fork and a join against a plain call, and the speed-up of several workers.
 */
#include <stdio.h>
#include <stdlib.h>

#include <blitz.h>

/* Two real calls a node: left alone, compilers unroll the tree and make a loop of the second. */
__attribute__((noinline)) static int fib_calls(int n)
{
    if (n < 2)
        return n;
    int right = fib_calls(n - 2);
    int left = fib_calls(n - 1);
    __asm__ volatile("" : "+r"(left));
    return left + right;
}

static int fib_forks(void *arg)
{
    intptr_t n = (intptr_t)arg;
    blitz_job right;
    if (n < 2)
        return (int)n;
    blitz_fork(&right, fib_forks, (void *)(n - 2));
    int left = fib_forks((void *)(n - 1));
    return left + blitz_join(&right);
}

static int compare(void *arg)
{
    int n = *(int *)arg;
    uint64_t start = blitz_now();
    int want = fib_calls(n);
    uint64_t calls = blitz_now() - start;
    start = blitz_now();
    int got = fib_forks((void *)(intptr_t)n);
    uint64_t forks = blitz_now() - start;
    printf("fib(%d) = %d: calls %.1f ms, forks %.1f ms, %.2f times as long\n", n, got,
           (double)calls / 1e6, (double)forks / 1e6, (double)forks / (double)calls);
    return got == want ? 0 : 1;
}

int main(int argc, char **argv)
{
    int n = argc > 1 ? atoi(argv[1]) : 38;
    return blitz_run(compare, &n, NULL);
}
