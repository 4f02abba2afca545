/*
 * linux.c - the Linux backend of os.h: its table, and randomness.
 *
 * The other parts have their own files (linux_clock.c, linux_cpus.c, linux_pages.c, linux_thread.c,
 * linux_word.c). Where Debian's headers are older than the kernel, they define system call numbers
 * and constants themselves. They detect kernel features at run time: one binary runs on all
 * kernels.
 *
 * Entropy: getrandom(2) without waiting. Early in a boot it may return EAGAIN, and old kernels and
 * strict sandboxes do not have it; then we read /dev/urandom, which never waits. With neither we
 * return -EIO. A caller that needs only variety (the scheduler's random choices) can use the clock;
 * a caller that needs secrecy must see the error.
 */
#include "os/linux.h"
#include "os/sleepers.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/random.h>
#include <unistd.h>

static int entropy_from_device(unsigned char *out, size_t bytes)
{
    int fd = open("/dev/urandom", O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -EIO;
    while (bytes > 0) {
        ssize_t n = read(fd, out, bytes);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            break;
        out += n;
        bytes -= (size_t)n;
    }
    close(fd);
    return bytes == 0 ? 0 : -EIO;
}

int bz_linux_entropy(const struct bz_os *os, void *out, size_t bytes)
{
    unsigned char *at = out;

    (void)os;
    while (bytes > 0) {
        ssize_t n = getrandom(at, bytes, GRND_NONBLOCK);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return entropy_from_device(at, bytes);
        at += n; /* above 256 bytes a signal may shorten the read */
        bytes -= (size_t)n;
    }
    return 0;
}

const struct bz_os bz_os_system = {
    .name = "linux",
    .now = bz_linux_now,
    .wait = bz_linux_wait,
    .wake = bz_linux_wake,
    .relax = bz_linux_relax,
    .delay = NULL,
    .barrier = bz_linux_barrier,
    .barrier_register = bz_linux_barrier_register,
    .thread_start = bz_linux_thread_start,
    .thread_join = bz_linux_thread_join,
    .thread_detach = bz_linux_thread_detach,
    .thread_quit = bz_linux_thread_quit,
    .cpu_time = bz_linux_cpu_time,
    .thread_cpu_time = bz_linux_thread_cpu_time,
    .thread_id = bz_linux_thread_id,
    .thread_sleeps = bz_linux_thread_sleeps,
    .interrupt_watch = bz_linux_interrupt_watch,
    .interrupt_unwatch = bz_linux_interrupt_unwatch,
    .thread_interrupt = bz_linux_thread_interrupt,
    .interrupt_again = bz_linux_interrupt_again,
    .page_bytes = bz_linux_page_bytes,
    .slab_reserve = bz_linux_slab_reserve,
    .slab_release = bz_linux_slab_release,
    .slab_guard = bz_linux_slab_guard,
    .pages_discard = bz_linux_pages_discard,
    .cpus = bz_linux_cpus,
    .others = bz_linux_others,
    .entropy = bz_linux_entropy,
};

const struct bz_os *bz_os_process = &bz_os_system;
