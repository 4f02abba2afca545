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
 * A barrier is FlushProcessWriteBuffers: it interrupts every CPU that runs a thread of the process.
 * [V] Wine has the function, but in version 8 it does nothing, and a barrier that is none loses wake-ups. So under Wine the caller
 *     runs on every CPU of the process in turn. A thread of ours that runs on a CPU when the caller arrives is switched out there, and
 *     a context switch is a full barrier. A thread that moves meanwhile is switched, too. It takes some 20 us a CPU.
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
        if (WaitOnAddress((void *)word, &expected, sizeof expected, ms))
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
    static bz_atomic(int) known;      /* 1: it is; -1: it is not; 0: not asked yet */
    int is = bz_load_relaxed(&known); /* relaxed: a constant once found */
    if (BZ_UNLIKELY(is == 0)) {
        HMODULE ntdll = GetModuleHandleA("ntdll.dll");
        is = ntdll != NULL && GetProcAddress(ntdll, "wine_get_version") != NULL ? 1 : -1;
        bz_store_relaxed(&known, is); /* relaxed: as above */
    }
    return is > 0;
}

/* [V] Returns 0, or -ENOSYS: threads may not choose their CPU. */
static int visit_every_cpu(void)
{
    HANDLE me = GetCurrentThread();
    DWORD_PTR ours, all, before = 0;
    bool is_whole = GetProcessAffinityMask(GetCurrentProcess(), &ours, &all) != 0;
    bz_fence_seqcst(); /* [V] */
    for (DWORD_PTR left = is_whole ? ours : 0; left != 0 && is_whole; left &= left - 1) {
        DWORD_PTR was = SetThreadAffinityMask(me, left & -left);
        is_whole = was != 0;
        before = before != 0 ? before : was;
    }
    if (before != 0)
        SetThreadAffinityMask(me, before);
    bz_fence_seqcst(); /* [V] */
    return is_whole ? 0 : -ENOSYS;
}

int bz_windows_barrier_register(const struct bz_os *os)
{
    return bz_windows_barrier(os);
}

int bz_windows_barrier(const struct bz_os *os)
{
    (void)os;
    if (is_wine())
        return visit_every_cpu();
    FlushProcessWriteBuffers();
    return 0;
}
