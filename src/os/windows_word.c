/*
 * windows_word.c - sleep words on WaitOnAddress, pauses for spins, and FlushProcessWriteBuffers.
 *
 * WaitOnAddress compares the word and goes to sleep in one step with respect to wakes, and may return spuriously: the contract of
 * a sleep word. Its timeout is relative, in milliseconds, and may end early by one tick of the system's timer. So a wait
 * rounds up, and waits again until the clock says that the deadline has passed. A timed wait is late by up to a tick (15.6 ms, unless
 * the program asked for a finer timer).
 *
 * A wake uses the address as a key and does not touch the memory, so the word may be freed already.
 *
 * [M] A barrier is FlushProcessWriteBuffers: it interrupts every CPU that runs a thread of the process.
 *     Wine has the function, but up to version 8 it does nothing there. A barrier that is none loses wake-ups, so under Wine there
 *     are no barriers, and the runtime uses fences.
 */
#include "os/windows.h"

#include <windows.h>

#include <errno.h>

#define RELAX_PAUSES_LOG2_MAX 6u
#define RELAX_YIELD_FROM 10u

/* Milliseconds to wait, rounded up; at most a day. */
static DWORD ms_until(uint64_t now, uint64_t until_ns)
{
    const uint64_t day_ms = 86400000;
    uint64_t ms = (until_ns - now - 1) / 1000000 + 1;
    return (DWORD)(ms < day_ms ? ms : day_ms);
}

int bz_windows_wait(const struct bz_os *os, bz_os_word *word, uint32_t expected, uint64_t until_ns)
{
    if (bz_load_relaxed(word) != expected) /* relaxed: os.h, the wait orders nothing */
        return -EAGAIN;
    for (;;) {
        DWORD ms = INFINITE;
        if (until_ns != BZ_OS_FOREVER) {
            uint64_t now = bz_windows_now(os);
            if (now >= until_ns)
                return -ETIMEDOUT;
            ms = ms_until(now, until_ns);
        }
        if (WaitOnAddress((volatile void *)word, &expected, sizeof expected, ms))
            return 0;
        DWORD err = GetLastError();
        BZ_CHECK(err == ERROR_TIMEOUT, "wait on %p: error %lu", (void *)word, err);
    }
}

void bz_windows_wake(const struct bz_os *os, bz_os_word *word, uint32_t count_max)
{
    enum { ONE_BY_ONE_MAX = 64 }; /* more: all of them, the rest spuriously */
    (void)os;
    if (count_max > ONE_BY_ONE_MAX) {
        WakeByAddressAll((void *)word);
        return;
    }
    for (; count_max > 0; count_max--)
        WakeByAddressSingle((void *)word);
}

void bz_windows_relax(const struct bz_os *os, unsigned round)
{
    unsigned log2 = round < RELAX_PAUSES_LOG2_MAX ? round : RELAX_PAUSES_LOG2_MAX;

    (void)os;
    for (unsigned n = 1u << log2; n > 0; n--)
        __asm__ volatile("pause" ::: "memory");
    if (round >= RELAX_YIELD_FROM)
        SwitchToThread();
}

/* ---- barriers ---- */

static bool is_wine(void)
{
    HMODULE ntdll = GetModuleHandleA("ntdll.dll");
    return ntdll != NULL && GetProcAddress(ntdll, "wine_get_version") != NULL;
}

int bz_windows_barrier_register(const struct bz_os *os)
{
    (void)os;
    return is_wine() ? -ENOSYS : 0; /* [M] */
}

int bz_windows_barrier(const struct bz_os *os)
{
    (void)os;
    if (is_wine())
        return -ENOSYS;
    FlushProcessWriteBuffers(); /* [M] */
    return 0;
}
