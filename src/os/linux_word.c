/*
 * linux_word.c - sleep words on futex(2), pauses for spins, and membarrier(2).
 *
 * Sleep words use the futex directly, because condition variables of the C library have lost
 * wake-ups (bug class 26). FUTEX_WAIT_BITSET takes an absolute CLOCK_MONOTONIC deadline. So a wait
 * that a signal interrupted is repeated with the same arguments: no remaining time is computed, and
 * many signals cannot lengthen the sleep. The futex is private to the process, which saves the
 * kernel a lookup of the mapping.
 *
 * relax: pauses double from 1 to 64 (a pause is 10 to 40 ns on x86_64, so a late round is 1 to 2
 * µs, about a cache miss under contention). From round RELAX_YIELD_FROM on the thread also yields,
 * because with more threads than CPUs the awaited thread may need this CPU.
 *
 * [M] A barrier is the heavy half of an asymmetric pair. The light half, on the hot path, is a
 *     compiler barrier (base/bz_atomic.h) between its store and its load. PRIVATE_EXPEDITED
 *     interrupts the CPUs that run threads of ours and no others.
 *     MEMBARRIER_CMD_GLOBAL is not used as a fallback: it waits for an RCU grace period,
 *     milliseconds on a path that runs before every sleep.
 * [V] A filter may refuse membarrier after the start, when the other threads already do without
 *     fences. Then the caller runs on every CPU in turn. A thread of ours that runs on a CPU when the
 *     caller arrives is switched out there, and a context switch is a full barrier. A thread that
 *     moves meanwhile is switched, too. CPUs outside of the process's cpuset are left out: no thread
 *     of ours runs there. It takes about 10 us a CPU.
 *     Rejected: a signal to every thread, whose handler fences (a thread may block the signal).
 */
#include "base/log.h"
#include "os/forked.h"
#include "os/linux.h"
#include "os/sleepers.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* The kernel's ABI. musl comes without the kernel's headers, and old ones have no linux/membarrier.h. */
#define FUTEX_PRIVATE_FLAG 128
#define FUTEX_WAKE_PRIVATE (1 | FUTEX_PRIVATE_FLAG)
#define FUTEX_WAIT_BITSET_PRIVATE (9 | FUTEX_PRIVATE_FLAG)
#define FUTEX_BITSET_MATCH_ANY 0xffffffffu
#define MEMBARRIER_PRIVATE_EXPEDITED (1 << 3)
#define MEMBARRIER_REGISTER_PRIVATE_EXPEDITED (1 << 4)

#define RELAX_PAUSES_LOG2_MAX 6u
#define RELAX_YIELD_FROM 10u

static_assert(sizeof(bz_os_word) == 4, "the kernel compares 32 bits");
static_assert(sizeof(time_t) == 8, "deadlines are 64-bit; a 32-bit time_t needs futex_time64");

static int wait_for(bz_os_word *word, uint32_t expected, uint64_t until_ns)
{
    struct timespec until = {.tv_sec = (time_t)(until_ns / 1000000000u),
                             .tv_nsec = (long)(until_ns % 1000000000u)};
    const struct timespec *deadline = until_ns == BZ_OS_FOREVER ? NULL : &until;

    for (;;) {
        if (syscall(SYS_futex, word, FUTEX_WAIT_BITSET_PRIVATE, expected, deadline, NULL,
                    FUTEX_BITSET_MATCH_ANY) == 0)
            return 0;
        int err = errno;
        if (err == EAGAIN || err == ETIMEDOUT)
            return -err;
        BZ_CHECK(err == EINTR, "futex wait on %p: errno %d", (void *)word, err);
    }
}

int bz_linux_wait(const struct bz_os *os, bz_os_word *word, uint32_t expected, uint64_t until_ns)
{
    struct bz_sleeper me;
    (void)os;
    if (until_ns != BZ_OS_FOREVER)
        return wait_for(word, expected, until_ns);
    if (bz_is_forked())
        bz_forked_abort(); /* no thread is left to wake us */
    bz_sleepers_enter(&me, word, expected);
    int err = wait_for(word, expected, until_ns);
    bz_sleepers_leave(&me);
    return err;
}

void bz_linux_wake(const struct bz_os *os, bz_os_word *word, uint32_t count_max)
{
    uint32_t count = count_max < INT_MAX ? count_max : INT_MAX;

    (void)os;
    if (count == 0)
        return; /* the kernel wakes one thread even if the count is 0 */
    /* EFAULT: the word was freed and its page unmapped, which os.h allows. No thread sleeps
     * there. */
    (void)syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, count, NULL, NULL, 0);
}

/* Execute one pause instruction: a hint to the CPU that this is a spin loop. */
#if defined(__x86_64__) || defined(__i386__)
#define PAUSE_ASM "pause"
#elif defined(__aarch64__)
#define PAUSE_ASM "isb" /* `yield` is a nop on most cores; isb waits about 10 ns */
#elif defined(__riscv)
#define PAUSE_ASM ".4byte 0x0100000f" /* pause, of Zihintpause; a nop without it */
#else
#define PAUSE_ASM ""
#endif

void bz_linux_relax(const struct bz_os *os, unsigned round)
{
    unsigned log2 = round < RELAX_PAUSES_LOG2_MAX ? round : RELAX_PAUSES_LOG2_MAX;

    (void)os;
    for (unsigned n = 1u << log2; n > 0; n--)
        __asm__ volatile(PAUSE_ASM ::: "memory");
    if (round >= RELAX_YIELD_FROM)
        sched_yield();
}

/* ---- barriers ---- */

static int membarrier_here(int command)
{
    if (syscall(SYS_membarrier, command, 0, 0) == 0)
        return 0;
    return errno == EPERM ? -EPERM : -ENOSYS; /* EINVAL: a kernel without this command */
}

static bz_atomic(long) cpus_known; /* CPUs to visit; 0: no registration has succeeded */

int bz_linux_barrier_register(const struct bz_os *os)
{
    (void)os;
    int err = membarrier_here(MEMBARRIER_REGISTER_PRIVATE_EXPEDITED);
    if (err == 0) /* test a call: a seccomp filter may refuse only the second command */
        err = membarrier_here(MEMBARRIER_PRIVATE_EXPEDITED);
    if (err != 0)
        return err;
    long cpus = sysconf(_SC_NPROCESSORS_CONF);
    bz_store_relaxed(&cpus_known, cpus > 0 ? cpus : 1); /* relaxed: a number */
    return 0;
}

enum { CPUS_MAX = 8192, BITS = 8 * sizeof(unsigned long) };

/* Run on one CPU. 0; -EINVAL: not a CPU for us, or offline. */
static int move_to(long cpu)
{
    unsigned long one[CPUS_MAX / BITS] = {0};
    one[cpu / BITS] = 1ul << (cpu % BITS);
    return syscall(SYS_sched_setaffinity, 0, sizeof one, one) == 0 ? 0 : -errno;
}

static int visit_every_cpu(long cpus)
{
    unsigned long before[CPUS_MAX / BITS] = {0};
    int visited = 0, err = 0;
    if (cpus > CPUS_MAX || syscall(SYS_sched_getaffinity, 0, sizeof before, before) < 0)
        return -ENOSYS;
    bz_fence_seqcst(); /* [V] */
    for (long cpu = 0; cpu < cpus && (err == 0 || err == -EINVAL); cpu++) {
        err = move_to(cpu);
        visited += err == 0;
    }
    (void)syscall(SYS_sched_setaffinity, 0, sizeof before,
                  before); /* at worst we stay where we are */
    bz_fence_seqcst();     /* [V] */
    return visited > 0 && (err == 0 || err == -EINVAL) ? 0 : -ENOSYS;
}

int bz_linux_barrier(const struct bz_os *os)
{
    (void)os;
    int err = membarrier_here(MEMBARRIER_PRIVATE_EXPEDITED); /* [M] */
    long cpus = bz_load_relaxed(&cpus_known);                /* relaxed: a number */
    if (BZ_LIKELY(err == 0) || cpus == 0)
        return err;
    int saved = visit_every_cpu(cpus);
    bz_log_once(saved == 0 ? BLITZ_LOG_WARN : BLITZ_LOG_ERROR,
                "membarrier is refused (error %d) since the start: %s", -err,
                saved == 0 ? "a thread visits every CPU instead, which is slow"
                           : "and threads may not choose their CPU");
    return saved;
}
