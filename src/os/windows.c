/*
 * windows.c - the Windows backend of os.h: its table, and randomness.
 *
 * The other parts have their own files (windows_clock.c, windows_pages.c, windows_thread.c, windows_word.c). The rest
 * is in windows_look.c and windows_lacks.c.
 *
 * Threads have ids. They cannot be interrupted, and the system does not tell cheaply whether a thread sleeps. The number of
 * threads that can still act is not known, so a deadlock of all threads is not found.
 */
#include "os/windows.h"

#include <windows.h>

#include <bcrypt.h>
#include <errno.h>

static int windows_entropy(const struct bz_os *os, void *out, size_t bytes)
{
    unsigned char *at = out;
    (void)os;
    while (bytes > 0) {
        ULONG part = bytes < 1u << 30 ? (ULONG)bytes : 1u << 30;
        if (BCryptGenRandom(NULL, at, part, BCRYPT_USE_SYSTEM_PREFERRED_RNG) < 0)
            return -EIO;
        at += part;
        bytes -= part;
    }
    return 0;
}

static int windows_others(const struct bz_os *os)
{
    (void)os;
    return -ENOSYS;
}

const struct bz_os bz_os_system = {
    .name = "windows",
    .now = bz_windows_now,
    .wait = bz_windows_wait,
    .wake = bz_windows_wake,
    .relax = bz_windows_relax,
    .delay = NULL,
    .barrier = bz_windows_barrier,
    .barrier_register = bz_windows_barrier_register,
    .thread_start = bz_windows_thread_start,
    .thread_join = bz_windows_thread_join,
    .thread_detach = bz_windows_thread_detach,
    .thread_quit = bz_windows_thread_quit,
    .cpu_time = bz_windows_cpu_time,
    .thread_cpu_time = bz_windows_thread_cpu_time,
    .thread_id = bz_windows_thread_id,
    .page_bytes = bz_windows_page_bytes,
    .slab_reserve = bz_windows_slab_reserve,
    .slab_release = bz_windows_slab_release,
    .slab_guard = bz_windows_slab_guard,
    .pages_discard = bz_windows_pages_discard,
    .cpus = bz_windows_cpus,
    .others = windows_others,
    .entropy = windows_entropy,
};

const struct bz_os *bz_os_process = &bz_os_system;
