/*
 * os.h - the operating-system functions that blitz needs: the contract, and its backends.
 *
 * A *backend* is a table of functions, struct bz_os, bound when a runtime is made. All code in src/
 * that needs a thread, a sleep, the time, pages, randomness or a pause in a spin calls its backend
 * and nothing else. So the same scheduler runs on real threads (bz_os_system), in virtual time from
 * a seed (sim/sim.h), or on either with the n-th call of a kind made to fail (sim/fault.h).
 *
 * Every function takes the backend first, so a backend with state (sim, fault) can embed the table
 * and find its state. Callers use the inline names below, which check preconditions in debug
 * builds: bz_os_now(os), bz_os_wait(os, word, ...).
 *
 * The table costs a well-predicted indirect call, 1 to 2 ns. A clock read is 25 to 60 ns, a futex
 * call above 200 ns and a pause 10 to 40 ns, so nothing here needs a direct call. Two operations
 * that are cheaper than the call do not use the table: thread identity (os/self.h, one load) and
 * delay points (compiled out of release builds).
 *
 * Functions that can fail return 0 (or a count) or -errno, and write *out only on success. "Any
 * thread" includes threads that the backend did not start, except under sim, where only simulated
 * threads may call.
 */
#ifndef BZ_OS_H
#define BZ_OS_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bz_atomic.h"
#include "base/check.h"
#include "base/compiler.h"

struct bz_os;

/* A deadline that never comes. All deadlines are absolute, in nanoseconds of bz_os_now(). */
#define BZ_OS_FOREVER UINT64_MAX

/* A sleep word: an ordinary atomic that threads can sleep on while it keeps a value. */
typedef bz_atomic(uint32_t) bz_os_word;

/* ---- threads ---------------------------------------------------------------------------------- */

#define BZ_OS_NAME_MAX 16 /* bytes of a thread's name, the final 0 included */

struct bz_os_thread_opts {
    const char *name;   /* copied, cut to BZ_OS_NAME_MAX - 1 bytes; NULL: the starter's name */
    size_t stack_bytes; /* 0: the system's default; else at least this much, rounded up */
    const uint64_t *affinity; /* bit c of word c / 64 allows CPU c; NULL: the starter's. Copied. */
    size_t affinity_words;
    /* its timed waits end as precisely as the system can, at the cost of some power */
    bool is_prompt;
};

/*
 * A thread. The caller owns the memory and keeps it in place until the join. The fields belong to
 * the backend: start writes them before the thread runs, and they are constant afterwards.
 */
struct bz_os_thread {
    void (*fn)(void *arg);
    void *arg;
    uintptr_t native;      /* the backend's own handle */
    void *sigstack;        /* alternate signal stack: the mapping, its guard page included */
    size_t sigstack_bytes; /* of the mapping */
    bool is_named, is_prompt;
    char name[BZ_OS_NAME_MAX];
};

/* ---- pages ------------------------------------------------------------------------------------ */

enum bz_os_slab_flags {
    BZ_OS_SLAB_PLAIN = 0,
    BZ_OS_SLAB_SMALL_PAGES = 1 /* no huge pages: one touched byte must not cost 2 MiB */
};

enum bz_os_guard {
    BZ_OS_GUARD_BEST = 0,  /* as an argument: the first of the following that works */
    BZ_OS_GUARD_LIGHT = 1, /* page-table markers: no VMA is split, any number of them */
    BZ_OS_GUARD_PROTECT =
        2 /* page protection: two VMAs each, so a process has room for thousands */
};

/*
 * A range of pages. The caller owns the struct; its fields are constant between reserve and
 * release, except the guards' count. Calls with the same slab must not run concurrently.
 */
struct bz_os_slab {
    char *base;
    size_t bytes;
    uint32_t protect_guards; /* BZ_OS_GUARD_PROTECT guards in it, which count against a limit */
};

/* `count` guards of `bytes` each, the first at `first` bytes into the slab, one every `stride`. */
struct bz_os_guards {
    size_t first, stride, bytes, count;
};

/* ---- delay points ----------------------------------------------------------------------------- */

/* Places where the order of events matters: a test backend may delay the thread here. */
enum bz_os_point {
    BZ_OS_AT_PUBLISH, /* before something becomes visible to other threads */
    BZ_OS_AT_SWITCH,  /* between leaving one stack and running on the next */
    BZ_OS_AT_SLEEP,   /* between deciding to sleep and sleeping */
    BZ_OS_AT_LOCK,  /* just before a lock is taken, just after it is dropped, or while it is held */
    BZ_OS_AT_CLAIM, /* after a wait was claimed, before its waker does the rest */
    BZ_OS_POINTS
};

/* ---- interrupts ------------------------------------------------------------------------------- */

/*
 * Called on an interrupted thread, by a signal handler on its alternate stack. `pc` is the next
 * instruction of the thread. errno is preserved. The function may sleep; no further interrupt
 * arrives meanwhile. It is also called for signals that are not ours.
 */
typedef void bz_os_interrupted_fn(uintptr_t pc);

/* ---- the table -------------------------------------------------------------------------------- */

struct bz_os {
    const char *name; /* "linux", "sim", "fault" */

    /* Hot. */
    uint64_t (*now)(const struct bz_os *os);
    int (*wait)(const struct bz_os *os, bz_os_word *word, uint32_t expected, uint64_t until_ns);
    void (*wake)(const struct bz_os *os, bz_os_word *word, uint32_t count_max);
    void (*relax)(const struct bz_os *os, unsigned round);
    void (*delay)(const struct bz_os *os, enum bz_os_point at); /* NULL: no delays */
    int (*barrier)(const struct bz_os *os);

    /* Cold. */
    int (*barrier_register)(const struct bz_os *os);
    int (*thread_start)(const struct bz_os *os, struct bz_os_thread *t,
                        const struct bz_os_thread_opts *opts, void (*fn)(void *), void *arg);
    int (*thread_join)(const struct bz_os *os, struct bz_os_thread *t);
    void (*thread_detach)(const struct bz_os *os, struct bz_os_thread *t); /* NULL: not supported */
    void (*thread_quit)(const struct bz_os *os, struct bz_os_thread *t);
    uint64_t (*cpu_time)(const struct bz_os *os);
    int (*thread_cpu_time)(const struct bz_os *os, const struct bz_os_thread *t, uint64_t *out_ns);
    /* The next functions may be NULL: then threads have no ids, and cannot be inspected or
     * interrupted. */
    uint32_t (*thread_id)(const struct bz_os *os);
    int (*thread_sleeps)(const struct bz_os *os, uint32_t id);
    int (*interrupt_watch)(const struct bz_os *os, bz_os_interrupted_fn *fn);
    void (*interrupt_unwatch)(const struct bz_os *os);
    int (*thread_interrupt)(const struct bz_os *os, uint32_t id);
    void (*interrupt_again)(const struct bz_os *os, uint64_t ns);
    size_t (*page_bytes)(const struct bz_os *os);
    int (*slab_reserve)(const struct bz_os *os, struct bz_os_slab *slab, size_t bytes, size_t align,
                        enum bz_os_slab_flags flags, const char *name);
    void (*slab_release)(const struct bz_os *os, struct bz_os_slab *slab);
    int (*slab_guard)(const struct bz_os *os, struct bz_os_slab *slab, enum bz_os_guard how,
                      const struct bz_os_guards *where);
    int (*pages_discard)(const struct bz_os *os, void *start, size_t bytes);
    int (*cpus)(const struct bz_os *os);
    int (*others)(const struct bz_os *os);
    int (*entropy)(const struct bz_os *os, void *out, size_t bytes);
};

/* The real system. It has no state: any number of runtimes may share it. */
extern const struct bz_os bz_os_system;

/* The backend of the threads that belong to no runtime: the real system, or the simulation while one
 * runs. Only the simulator changes it, while the process has one thread. */
extern const struct bz_os *bz_os_process;

static inline const struct bz_os *bz_os_outside(void)
{
    return bz_os_process;
}

/* True while a simulation runs in this process. */
static inline bool bz_os_is_simulated(void)
{
    return bz_os_process != &bz_os_system;
}

/* ---- time ------------------------------------------------------------------------------------- */

/*
 * Monotonic time in nanoseconds since some moment in the past; it stops while the machine is
 * suspended. It never goes back, across threads either. Never BZ_OS_FOREVER.
 */
static inline uint64_t bz_os_now(const struct bz_os *os)
{
    return os->now(os);
}

/* CPU time the calling thread has used, in nanoseconds. */
static inline uint64_t bz_os_cpu_time(const struct bz_os *os)
{
    return os->cpu_time(os);
}

/*
 * CPU time of another thread. With it the monitor tells a task that computes from one that blocks.
 * One system call.
 * Requires: `t` was started and not joined, and is not joined meanwhile.
 * Returns:  0, -ESRCH (it has ended).
 */
static inline int bz_os_thread_cpu_time(const struct bz_os *os, const struct bz_os_thread *t,
                                        uint64_t *out_ns)
{
    return os->thread_cpu_time(os, t, out_ns);
}

/* ---- sleep words ------------------------------------------------------------------------------ */

/*
 * Sleep while *word is `expected`, until a wake, or `until_ns`. The check of the word and the start
 * of the sleep are atomic with respect to wakes: a wake after the change of the word is never lost.
 * A signal does not end the sleep: it resumes with the same deadline. The wait orders nothing by
 * itself: the waiter sees the waker's writes through acquire loads of the word.
 * Suspends: the thread. Call from any thread.
 * Returns:  0 (woken, or spuriously: check again), -EAGAIN (the word had another value; returned
 *           even if the deadline is past), -ETIMEDOUT (not before `until_ns`). Nothing else.
 */
static inline int bz_os_wait(const struct bz_os *os, bz_os_word *word, uint32_t expected,
                             uint64_t until_ns)
{
    BZ_ASSERT(((uintptr_t)word & 3) == 0);
    return os->wait(os, word, expected, until_ns);
}

/*
 * Rouse up to `count_max` threads that sleep on `word`, in no defined order. The word may be freed
 * already (its owner returned by another cause and freed it): the address is only a key, its memory
 * is not accessed. So a reused address may get a wake meant for the old word, which is one cause of
 * spurious wake-ups. Never fails. It does not say how many threads it roused: not every system knows.
 */
static inline void bz_os_wake(const struct bz_os *os, bz_os_word *word, uint32_t count_max)
{
    os->wake(os, word, count_max);
}

/*
 * One round of a spin: `round` starts at 0 and grows by one each time. The pause grows with it, and
 * late rounds yield the CPU, because the awaited thread may need it.
 *
 *     for (unsigned round = 0; !done(); round++)
 *         bz_os_relax(os, round);
 */
static inline void bz_os_relax(const struct bz_os *os, unsigned round)
{
    os->relax(os, round);
}

/* ---- delay points ----------------------------------------------------------------------------- */

/*
 * In test builds (BZ_DELAY; every debug build) the backend may delay the thread here; under sim the
 * seed chooses the next thread. In a release build this is empty.
 */
#if defined(BZ_DELAY) || defined(BZ_DEBUG)
#define bz_os_delay(os, at) bz_os_delay_here(os, at)
#else
#define bz_os_delay(os, at) ((void)sizeof((os)->delay), (void)(at))
#endif

/* The same, in every build: for tests. */
static inline void bz_os_delay_here(const struct bz_os *os, enum bz_os_point at)
{
    if (os->delay != NULL)
        os->delay(os, at);
}

/* ---- barriers --------------------------------------------------------------------------------- */

/*
 * Register this process for bz_os_barrier(). Once a runtime, before its first barrier.
 * Returns:  0: from now on barriers succeed. -ENOSYS, -EPERM: there are no barriers here. Then both
 *           sides need a sequentially consistent fence: every push, and every final check before a
 *           sleep. The backend does not emulate barriers from the start, because every emulation we know
 *           is wrong somewhere (mprotect sends no interrupt on aarch64) or slow. If the system refuses them
 *           later, it does: by then fences on the other side would come too late.
 */
static inline int bz_os_barrier_register(const struct bz_os *os)
{
    return os->barrier_register(os);
}

/*
 * A full memory barrier on every running thread of the process. The caller sees each access that a
 * thread made before the call began; each access after the return sees the caller's earlier writes.
 * The other side needs only a compiler barrier.
 * Returns:  0; the error of register, if that failed.
 */
static inline int bz_os_barrier(const struct bz_os *os)
{
    return os->barrier(os);
}

/* ---- threads ---------------------------------------------------------------------------------- */

/*
 * Start a thread that runs fn(arg). It has an alternate signal stack with a guard page, large
 * enough for the signal frame of this CPU and a handler that prints a backtrace. No handler is
 * installed. Signals blocked in the starter are blocked in it. bz_self_get() is NULL in it.
 * Owns:     borrows `t` until the join; copies `opts` (NULL: all defaults).
 * Returns:  0, -EAGAIN (a limit on threads), -ENOMEM, -EINVAL (an affinity without any CPU of
 *           ours). On error nothing was started or allocated.
 */
BZ_MUST_USE static inline int bz_os_thread_start(const struct bz_os *os, struct bz_os_thread *t,
                                                 const struct bz_os_thread_opts *opts,
                                                 void (*fn)(void *), void *arg)
{
    BZ_ASSERT(fn != NULL);
    return os->thread_start(os, t, opts, fn, arg);
}

/*
 * Wait for the end of a thread and release its resources. Every started thread is joined exactly
 * once, or detached.
 * Suspends: the thread, until `t` has returned from its function.
 * Returns:  0, -EDEADLK (a thread that joins itself; nothing happened).
 */
static inline int bz_os_thread_join(const struct bz_os *os, struct bz_os_thread *t)
{
    return os->thread_join(os, t);
}

/*
 * Detach a thread that will not be joined: one that is blocked in a foreign call and outlives its
 * runtime. Only if os->thread_detach is not NULL. As its last step before it returns, the thread
 * calls bz_os_thread_quit() with a copy of `t`, which releases the resources that a join would
 * release.
 */
static inline void bz_os_thread_detach(const struct bz_os *os, struct bz_os_thread *t)
{
    os->thread_detach(os, t);
}
static inline void bz_os_thread_quit(const struct bz_os *os, struct bz_os_thread *t)
{
    os->thread_quit(os, t);
}

/* An id of the calling thread, unique among the existing threads of the process; 0: none. */
static inline uint32_t bz_os_thread_id(const struct bz_os *os)
{
    return os->thread_id != NULL ? os->thread_id(os) : 0;
}

/*
 * Return 1 if the thread with this id sleeps in the kernel, in a blocking call or a page fault. A
 * runnable thread without a CPU does not sleep. Takes a few microseconds.
 * Returns:  1, 0; -ESRCH (it has ended), -ENOSYS (the system does not tell).
 */
static inline int bz_os_thread_sleeps(const struct bz_os *os, uint32_t id)
{
    return os->thread_sleeps != NULL ? os->thread_sleeps(os, id) : -ENOSYS;
}

/*
 * Call fn on threads that bz_os_thread_interrupt() interrupts, until there are as many unwatches as
 * watches. All users pass the same fn. May allocate and take locks of the C library and the loader.
 * Returns:  0; -ENOSYS (this CPU, backend or kind of build does not support it), -errno of
 *           sigaction.
 */
BZ_MUST_USE static inline int bz_os_interrupt_watch(const struct bz_os *os,
                                                    bz_os_interrupted_fn *fn)
{
    return os->interrupt_watch != NULL ? os->interrupt_watch(os, fn) : -ENOSYS;
}
static inline void bz_os_interrupt_unwatch(const struct bz_os *os)
{
    os->interrupt_unwatch(os);
}

/*
 * Interrupt the thread with this id: the function given to bz_os_interrupt_watch is called on it as soon
 * as it next runs. Any thread may call, also for a thread that has ended.
 * Returns:  0: sent. -ESRCH (it has ended), -ENOSYS (this backend cannot interrupt threads),
 *           -EAGAIN (the system lacks a resource).
 */
static inline int bz_os_thread_interrupt(const struct bz_os *os, uint32_t id)
{
    return os->thread_interrupt != NULL ? os->thread_interrupt(os, id) : -ENOSYS;
}

/*
 * Interrupt the calling thread again after about `ns`. Only in the function given to
 * bz_os_interrupt_watch. If the system lacks a resource, nothing happens.
 */
static inline void bz_os_interrupt_again(const struct bz_os *os, uint64_t ns)
{
    if (os->interrupt_again != NULL)
        os->interrupt_again(os, ns);
}

/* ---- pages ------------------------------------------------------------------------------------ */

/* The unit of the functions below, a power of two; constant while the process lives. */
static inline size_t bz_os_page_bytes(const struct bz_os *os)
{
    return os->page_bytes(os);
}

/*
 * Reserve readable and writable, zeroed pages. They cost address space until they are touched.
 * Requires: `bytes` a multiple of the page, more than 0; `align` 0 or a power of two.
 * Owns:     the caller owns the slab; release it with bz_os_slab_release(). `name` is shown in the
 *           list of mappings if the system supports that; copied.
 * Returns:  0, -EINVAL, -ENOMEM. On error *slab is untouched.
 */
BZ_MUST_USE static inline int bz_os_slab_reserve(const struct bz_os *os, struct bz_os_slab *slab,
                                                 size_t bytes, size_t align,
                                                 enum bz_os_slab_flags flags, const char *name)
{
    return os->slab_reserve(os, slab, bytes, align, flags, name);
}

/* Release the slab with its guards. *slab can be reused afterwards. Never fails. */
static inline void bz_os_slab_release(const struct bz_os *os, struct bz_os_slab *slab)
{
    os->slab_release(os, slab);
}

/*
 * Turn pages into guards: any access is a SIGSEGV with the exact address, a system call gets
 * EFAULT. All or none: on error the guards placed by this call are removed. Guards survive
 * bz_os_pages_discard(). The content of the pages is lost.
 * Requires: multiples of the page; every guard inside the slab; stride >= bytes if count > 1.
 * Returns:  the kind that was placed (BZ_OS_GUARD_LIGHT or _PROTECT, both > 0), -EINVAL (the
 *           requirements), -ENOSYS (that kind does not exist here), -ENOMEM (the system's limit on
 *           mappings is near; a quarter of it is left to the rest of the program). With -ENOSYS and
 *           -ENOMEM the caller can fall back to canaries.
 */
BZ_MUST_USE static inline int bz_os_slab_guard(const struct bz_os *os, struct bz_os_slab *slab,
                                               enum bz_os_guard how,
                                               const struct bz_os_guards *where)
{
    return os->slab_guard(os, slab, how, where);
}

/*
 * Return the memory of pages to the system at once; they read as zero afterwards. Guards stay.
 * Requires: whole pages of one slab.
 * Returns:  0, -EINVAL (not whole pages), -ENOMEM (not mapped).
 */
static inline int bz_os_pages_discard(const struct bz_os *os, void *start, size_t bytes)
{
    return os->pages_discard(os, start, bytes);
}

/* ---- the rest --------------------------------------------------------------------------------- */

/*
 * The number of CPUs that the process may use now: its affinity mask, and the CPU quota of its
 * cgroup and all its ancestors, fractions rounded up. At least 1. Reads files: not for hot paths.
 */
static inline int bz_os_cpus(const struct bz_os *os)
{
    return os->cpus(os);
}

/*
 * Count the other threads that can still act: the threads of the process except the caller, minus
 * those that sleep on an unchanged sleep word without a deadline. 0 is a proof: no other thread
 * will ever run again, unless the caller wakes it. Any other number may be outdated. For rare use:
 * reads a file.
 * Returns:  the count; -ENOSYS (the system does not tell).
 */
static inline int bz_os_others(const struct bz_os *os)
{
    return os->others(os);
}

/*
 * Fill `out` with unpredictable bytes (under sim: derived from the seed).
 * Suspends: never waits for entropy.
 * Returns:  0, -EIO (no source of randomness; `out` is undefined).
 */
BZ_MUST_USE static inline int bz_os_entropy(const struct bz_os *os, void *out, size_t bytes)
{
    return os->entropy(os, out, bytes);
}

#endif
