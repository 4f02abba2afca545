/*
 * bridge.c - a program with a poll loop of its own uses blitz for work that waits.
 *
 * The loop must not block: it has a clock to draw. It hands jobs to a runtime and takes their results when the
 * descriptor of the bridge becomes readable, on its own thread. So the program needs no locks.
 */
#include <poll.h>
#include <stdio.h>

#include "blitz.h"

enum { JOBS = 8 };

/* A request to a slow server: it waits, and the worker runs other jobs meanwhile. */
static int fetch(void *number)
{
    int n = *(int *)number, err = blitz_sleep((unsigned)(JOBS - n) * 5 * BLITZ_MS);
    return err != 0 ? err : n * n;
}

/* One turn of the loop: draw, then wait for results for at most 3 ms. Returns the number of results. */
static int turn(blitz_bridge *bridge, int *ticks)
{
    struct pollfd watched = {.fd = (int)blitz_bridge_fd(bridge), .events = POLLIN};
    blitz_bridge_result r;
    int count = 0;
    ++*ticks;
    if (poll(&watched, 1, 3) <= 0)
        return 0;
    for (; blitz_bridge_take(bridge, &r) == 0; count++)
        printf("job %d: %d\n", *(int *)r.arg, r.result);
    return count;
}

int main(void)
{
    int number[JOBS], ticks = 0, results = 0, err;
    blitz_runtime *runtime;
    blitz_bridge *bridge;
    err = blitz_runtime_new(NULL, &runtime);
    if (err == 0)
        err = blitz_bridge_new(runtime, &bridge);
    for (int i = 0; err == 0 && i < JOBS; i++) {
        number[i] = i;
        err = blitz_bridge_submit(bridge, fetch, &number[i], NULL);
    }
    if (err != 0)
        return 1;
    while (results < JOBS)
        results += turn(bridge, &ticks);
    printf("%d results, and the loop made %d turns meanwhile\n", results, ticks);
    blitz_bridge_unref(bridge);
    err = blitz_runtime_shutdown(runtime, BLITZ_FOREVER);
    return blitz_runtime_unref(runtime) != 0 || err != 0;
}
