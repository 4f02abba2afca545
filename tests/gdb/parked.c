/*
 * For tests/gdb/run: two coroutines that park three functions deep, and a place to stop at.
 */
#include <stdio.h>

#include "support/coro.h"

_Alignas(16) static char stacks[2][65536];
static struct bz_coro parked[2];
static volatile int passed;

BZ_NOINLINE static int third(struct bz_coro *c, int n)
{
    bz_coro_yield(c); /* parked here */
    return n + passed++;
}
BZ_NOINLINE static int second(struct bz_coro *c, int n)
{
    return third(c, n + 1) + 1;
}
BZ_NOINLINE static int first(struct bz_coro *c, int n)
{
    return second(c, n + 1) + 1;
}
static void body(struct bz_coro *c, void *arg)
{
    for (int i = 0; i < 3; i++)
        passed += first(c, *(int *)arg);
}

BZ_NOINLINE static void stop_here(void)
{
    __asm__ volatile("");
}

int main(void)
{
    int arg = 5;
    for (int i = 0; i < 2; i++) {
        bz_coro_init(&parked[i], stacks[i], stacks[i] + sizeof stacks[i], body, &arg);
        bz_coro_resume(&parked[i]);
    }
    stop_here();
    bz_coro_resume(&parked[0]); /* stepped over */
    bz_coro_resume(&parked[1]); /* stepped into, to the other side */
    stop_here();
    printf("passed %d\n", passed);
    return 0;
}
