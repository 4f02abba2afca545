/*
 * twin.h - time a computation and its sequential version. The examples of parallel operations share
 * this.
 */
#ifndef EXAMPLES_TWIN_H
#define EXAMPLES_TWIN_H

#include <stdio.h>

#include <blitz.h>

/* Call it twice and return the milliseconds of the second: the first one warms up. */
static inline double twin_ms(int (*run)(void *), void *arg, int *err)
{
    *err = run(arg);
    if (*err != 0)
        return 0;
    uint64_t began = blitz_now();
    *err = run(arg);
    return (double)(blitz_now() - began) / 1e6;
}

/* Time both and print the ratio. Return 0 or the first error. Call from a task. */
static inline int twin_race(int (*one)(void *), int (*all)(void *), void *arg)
{
    int err;
    double alone = twin_ms(one, arg, &err);
    double together = err == 0 ? twin_ms(all, arg, &err) : 0;
    if (err == 0)
        printf("one after another %.1f ms, in parallel %.1f ms: %.2f times as fast\n", alone,
               together, alone / together);
    return err;
}

#endif
