/*
 * windows_clock.c - the monotonic clock and thread CPU clocks.
 *
 * QueryPerformanceCounter: 20 to 30 ns from the CPU's counter. Its frequency is constant since the start of the system, 10 MHz
 * on most machines, so a reading is 100 ns coarse. It goes on while the machine is suspended.
 * Rejected: QueryUnbiasedInterruptTime, which stops then, but moves only with the timer interrupt (up to 15.6 ms).
 *
 * The CPU time of a thread is counted at timer interrupts, so it is coarse: 15.6 ms, or 10 ms under Wine.
 */
#include "os/windows.h"

#include <windows.h>

#include <errno.h>

static bz_atomic(uint64_t) ticks_per_s; /* 0: not read yet */

static uint64_t frequency(void)
{
    uint64_t known = bz_load_relaxed(&ticks_per_s); /* relaxed: a constant once read */
    LARGE_INTEGER f;
    if (BZ_LIKELY(known != 0))
        return known;
    BZ_CHECK(QueryPerformanceFrequency(&f) && f.QuadPart > 0, "no performance counter");
    bz_store_relaxed(&ticks_per_s, (uint64_t)f.QuadPart); /* relaxed: as above */
    return (uint64_t)f.QuadPart;
}

uint64_t bz_windows_now(const struct bz_os *os)
{
    LARGE_INTEGER at;
    uint64_t hz = frequency();
    (void)os;
    QueryPerformanceCounter(&at);
    uint64_t ticks = (uint64_t)at.QuadPart;
    if (BZ_LIKELY(hz == 10000000u))
        return ticks * 100;
    return ticks / hz * 1000000000u + ticks % hz * 1000000000u / hz;
}

static int cpu_time_of(HANDLE thread, uint64_t *out_ns)
{
    FILETIME made, ended, kernel, user;
    if (!GetThreadTimes(thread, &made, &ended, &kernel, &user))
        return -ESRCH;
    *out_ns = 100 * (((uint64_t)kernel.dwHighDateTime << 32 | kernel.dwLowDateTime) +
                     ((uint64_t)user.dwHighDateTime << 32 | user.dwLowDateTime));
    return 0;
}

uint64_t bz_windows_cpu_time(const struct bz_os *os)
{
    uint64_t ns = 0;
    (void)os;
    int err = cpu_time_of(GetCurrentThread(), &ns);
    BZ_CHECK(err == 0, "the CPU time of this thread cannot be read: %lu", GetLastError());
    return ns;
}

int bz_windows_thread_cpu_time(const struct bz_os *os, const struct bz_os_thread *t,
                               uint64_t *out_ns)
{
    HANDLE thread = (HANDLE)t->native;
    (void)os;
    if (WaitForSingleObject(thread, 0) == WAIT_OBJECT_0)
        return -ESRCH; /* it has ended: its clock could still be read */
    return cpu_time_of(thread, out_ns);
}
