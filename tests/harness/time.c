/*
 * time.c - the harness's clock. Waits are bounded by it and not by a number of naps, which take far
 * longer than asked for on a busy machine.
 */
#include "record.h"

#include <time.h>

uint64_t t_now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

void t_nap_ms(long ms)
{
    /* lint: allow test-sleep: between two looks at a condition, see t_waits */
    nanosleep(&(struct timespec){.tv_nsec = ms * 1000000}, NULL);
}

/* while (t_waits(&until_ns, 3000)) ...: true for that long, a millisecond at a time. */
bool t_waits(uint64_t *until_ns, unsigned ms)
{
    uint64_t now = t_now_ns();

    if (*until_ns == 0)
        *until_ns = now + ms * UINT64_C(1000000);
    else
        t_nap_ms(1);
    return now < *until_ns;
}
