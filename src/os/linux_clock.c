/*
 * linux_clock.c - the monotonic clock and thread CPU clocks.
 *
 * CLOCK_MONOTONIC through the vDSO: 20 to 30 ns, no system call. It stops while the machine is
 * suspended, and so do futex deadlines on it, so a watchdog does not fire after a suspend.
 * Rejected: CLOCK_BOOTTIME (would fire every timer at once on resume), CLOCK_MONOTONIC_COARSE (up
 *           to 4 ms stale: the wheel's slots are 1 ms). Also the raw TSC: we would have to handle
 *           guests and unstable clocks, as the vDSO does.
 *
 * Thread CPU clocks are system calls (150 to 300 ns); only the monitor reads those of other
 * threads.
 */
#include "os/linux.h"

#include <errno.h>
#include <pthread.h>
#include <time.h>

static uint64_t clock_read(clockid_t clock)
{
    struct timespec t;
    int err = clock_gettime(clock, &t);
    BZ_CHECK(err == 0, "clock %d cannot be read: errno %d", (int)clock, errno);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

uint64_t bz_linux_now(const struct bz_os *os)
{
    (void)os;
    return clock_read(CLOCK_MONOTONIC);
}

uint64_t bz_linux_cpu_time(const struct bz_os *os)
{
    (void)os;
    return clock_read(CLOCK_THREAD_CPUTIME_ID);
}

/* The number of a clock has the complement of a thread's number from bit 3 on. Zero is the caller, and no thread has it as a
 * number. musl forgets the number of a thread that has ended, and answers with that clock. */
static bool is_own_clock(clockid_t clock)
{
    return ~clock >> 3 == 0;
}

int bz_linux_thread_cpu_time(const struct bz_os *os, const struct bz_os_thread *t, uint64_t *out_ns)
{
    clockid_t clock;
    struct timespec used;

    (void)os;
    if (pthread_getcpuclockid((pthread_t)t->native, &clock) != 0 || is_own_clock(clock))
        return -ESRCH;
    if (clock_gettime(clock, &used) != 0)
        return -ESRCH; /* the thread has ended: the kernel returns EINVAL */
    *out_ns = (uint64_t)used.tv_sec * 1000000000u + (uint64_t)used.tv_nsec;
    return 0;
}
