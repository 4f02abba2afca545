/*
 * os.h - what blitz asks of the system it runs on: the contract, and who keeps it.
 *
 * A *keeper* is a table of functions, struct bz_os, bound when a runtime is made. Whatever in src/
 * needs a thread, a sleep, the time, pages, randomness or a pause in a spin asks the keeper it was
 * given and nobody else; so the same scheduler runs on real threads (bz_os_linux), on a seed in
 * virtual time (os/sim.h), or on either with the n-th call of a kind made to fail (os/fault.h).
 *
 * Every function takes the keeper first, which lets a keeper with state (sim, fault) embed the table
 * and find itself. Callers use the inline names below, which check preconditions in debug builds:
 * bz_os_now(os), bz_os_wait(os, word, ...).
 *
 * What the table costs: an indirect call that the predictor always guesses, 1 to 2 ns. A clock read
 * is 25 to 60 ns, a futex call above 200 ns and a pause 10 to 40 ns, so nothing here is worth a
 * direct call. The two things that are cheaper than that call do not go through the table: thread
 * identity (os/self.h, one load) and delay points (compiled out of release builds).
 *
 * The words of this file: functions that can fail return 0 (or a count) or -errno, and write *out
 * only when they succeed. "Any thread" includes threads the keeper did not start, except under sim,
 * where only the simulated threads may call.
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
    bool is_prompt; /* its timed waits end as soon as the system can, at the price of some power */
};

/*
 * A thread. The memory is the caller's, must stay put until the join, and its fields belong to the
 * keeper: written by start before the thread runs, constant from then on.
 */
struct bz_os_thread {
    void (*fn)(void *arg);
    void *arg;
    uintptr_t native;      /* the keeper's own handle */
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
    BZ_OS_GUARD_BEST = 0,  /* asked for: the first of the following that works */
    BZ_OS_GUARD_LIGHT = 1, /* page-table markers: no VMA is split, any number of them */
    BZ_OS_GUARD_PROTECT =
        2 /* page protection: two VMAs each, so a process has room for thousands */
};

/*
 * A run of pages. The memory is the caller's; the fields are constant between reserve and release
 * but for the guards' count. One thread at a time may call with one slab.
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

/* Where the order of events decides: a keeper that looks for trouble lingers here. */
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
 * Called on a thread that was interrupted, by a signal handler on its alternate stack. `pc` is the
 * instruction that the thread was about to execute. errno is kept. The function may sleep; no further
 * interrupt arrives meanwhile. It is also called for signals that are not ours.
 */
typedef void bz_os_urged_fn(uintptr_t pc);

/* ---- the table -------------------------------------------------------------------------------- */

struct bz_os {
    const char *name; /* "linux", "sim", "fault" */

    /* Hot. */
    uint64_t (*now)(const struct bz_os *os);
    int (*wait)(const struct bz_os *os, bz_os_word *word, uint32_t expected, uint64_t until_ns);
    int (*wake)(const struct bz_os *os, bz_os_word *word, uint32_t count_max);
    void (*relax)(const struct bz_os *os, unsigned round);
    void (*delay)(const struct bz_os *os, enum bz_os_point at); /* NULL: nobody wants delays */
    int (*barrier)(const struct bz_os *os);

    /* Cold. */
    int (*barrier_register)(const struct bz_os *os);
    int (*thread_start)(const struct bz_os *os, struct bz_os_thread *t,
                        const struct bz_os_thread_opts *opts, void (*fn)(void *), void *arg);
    int (*thread_join)(const struct bz_os *os, struct bz_os_thread *t);
    void (*thread_detach)(const struct bz_os *os, struct bz_os_thread *t); /* NULL: cannot be */
    void (*thread_quit)(const struct bz_os *os, struct bz_os_thread *t);
    uint64_t (*cpu_time)(const struct bz_os *os);
    int (*thread_cpu_time)(const struct bz_os *os, const struct bz_os_thread *t, uint64_t *out_ns);
    /* The next ones may be NULL: threads have no ids, and cannot be looked at or interrupted. */
    uint32_t (*thread_id)(const struct bz_os *os);
    int (*thread_sleeps)(const struct bz_os *os, uint32_t id);
    int (*urge_watch)(const struct bz_os *os, bz_os_urged_fn *fn);
    void (*urge_unwatch)(const struct bz_os *os);
    int (*thread_urge)(const struct bz_os *os, uint32_t id);
    void (*urge_again)(const struct bz_os *os, uint64_t ns);
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

/* The system itself. Has no state of its own: any number of runtimes may share it. */
extern const struct bz_os bz_os_linux;

/* Whose is a thread that belongs to no runtime? The running simulation's if there is one, else the
 * system's. */
const struct bz_os *bz_os_outside(void);

/* ---- time ------------------------------------------------------------------------------------- */

/*
 * Monotonic time in nanoseconds since some moment in the past; stands still while the machine is
 * suspended. Never goes back, also not between threads. Never BZ_OS_FOREVER.
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
 * CPU time another thread has used. This is how the monitor tells a task that burns from one that
 * blocks. One system call.
 * Requires: `t` was started and not joined; nobody joins it meanwhile.
 * Returns:  0, -ESRCH (it has ended).
 */
static inline int bz_os_thread_cpu_time(const struct bz_os *os, const struct bz_os_thread *t,
                                        uint64_t *out_ns)
{
    return os->thread_cpu_time(os, t, out_ns);
}

/* ---- sleep words ------------------------------------------------------------------------------ */

/*
 * Sleep while *word is `expected`, until a wake, or `until_ns`. The look at the word and the falling
 * asleep are one step against wakes: a wake that follows the change of the word is never lost.
 * A signal does not end the sleep: it is resumed with the same deadline.
 * Orders nothing by itself: what the waker wrote is seen through the word's own acquire loads.
 * Suspends: the thread. Call from any thread.
 * Returns:  0 (woken, or for no reason at all: look again), -EAGAIN (the word held something else;
 *           told even when the deadline is past), -ETIMEDOUT (not before `until_ns`). Nothing else.
 */
static inline int bz_os_wait(const struct bz_os *os, bz_os_word *word, uint32_t expected,
                             uint64_t until_ns)
{
    BZ_ASSERT(((uintptr_t)word & 3) == 0);
    return os->wait(os, word, expected, until_ns);
}

/*
 * Rouse up to `count_max` threads that sleep on `word`; which ones is not promised. The word may be
 * gone already (its owner woke by itself and freed it): its address is a name, its memory is not
 * touched. A reused address may so get a wake meant for the old word, which is one of the reasons
 * for which waits return 0.
 * Returns:  how many were roused; never fails.
 */
static inline int bz_os_wake(const struct bz_os *os, bz_os_word *word, uint32_t count_max)
{
    return os->wake(os, word, count_max);
}

/*
 * One turn of a spin: `round` is 0 at first and grows by one a turn; the pause grows with it, and
 * late rounds give the CPU away, because whoever we wait for may need it.
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
 * In builds that look for trouble (BZ_DELAY; every debug build) the keeper may linger here; under
 * sim it is a seeded choice of who runs next. In a release build the line is nothing.
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
 * Announce that this process will use bz_os_barrier(). Once a runtime, before its first barrier.
 * Returns:  0: from now on barriers succeed. -ENOSYS, -EPERM: there are none here, and the *only*
 *           right answer is a sequentially consistent fence on both sides: in every push as well as
 *           before every final look. The keeper does not paper over it, because every emulation we
 *           know is wrong somewhere (mprotect sends no interrupt on aarch64) or takes milliseconds
 *           (MEMBARRIER_CMD_GLOBAL, a signal to every thread).
 */
static inline int bz_os_barrier_register(const struct bz_os *os)
{
    return os->barrier_register(os);
}

/*
 * A full memory barrier on every running thread of the process: each access a thread made before
 * the call began is seen by whoever called, and each it makes after the return sees what the caller
 * wrote before. The other side needs a compiler barrier only.
 * Returns:  0; what register said, if that failed.
 */
static inline int bz_os_barrier(const struct bz_os *os)
{
    return os->barrier(os);
}

/* ---- threads ---------------------------------------------------------------------------------- */

/*
 * Start a thread that runs fn(arg). It has an alternate signal stack, large enough for the signal
 * frame of this CPU and a handler that prints a backtrace, with a guard page below it; no handler is
 * installed. Signals blocked in the starter are blocked in it. bz_self_get() is NULL in it.
 * Owns:     borrows `t` until the join; copies `opts` (NULL: all defaults).
 * Returns:  0, -EAGAIN (a limit on threads), -ENOMEM, -EINVAL (an affinity without any CPU of ours).
 *           On error nothing was started and nothing is left.
 */
BZ_MUST_USE static inline int bz_os_thread_start(const struct bz_os *os, struct bz_os_thread *t,
                                                 const struct bz_os_thread_opts *opts,
                                                 void (*fn)(void *), void *arg)
{
    BZ_ASSERT(fn != NULL);
    return os->thread_start(os, t, opts, fn, arg);
}

/*
 * Wait for the end of a thread and release what it held. Every started thread is joined exactly
 * once, or detached.
 * Suspends: the thread, until `t` has returned from its function.
 * Returns:  0, -EDEADLK (a thread that joins itself; nothing happened).
 */
static inline int bz_os_thread_join(const struct bz_os *os, struct bz_os_thread *t)
{
    return os->thread_join(os, t);
}

/*
 * A thread that will not be joined: one that is stuck in a foreign call and outlives its runtime. Only where
 * os->thread_detach is not NULL. The thread itself calls bz_os_thread_quit() as the last thing before it
 * returns, with a copy of `t`, which releases what a join would have.
 */
static inline void bz_os_thread_detach(const struct bz_os *os, struct bz_os_thread *t)
{
    os->thread_detach(os, t);
}
static inline void bz_os_thread_quit(const struct bz_os *os, struct bz_os_thread *t)
{
    os->thread_quit(os, t);
}

/* A number for the calling thread that no other thread of the process has while it lives; 0: none. */
static inline uint32_t bz_os_thread_id(const struct bz_os *os)
{
    return os->thread_id != NULL ? os->thread_id(os) : 0;
}

/*
 * Does the thread of that id sleep in the system, be it in a call that blocks or in a page fault? A thread
 * that could run and has no CPU does not. A few microseconds.
 * Returns:  1, 0; -ESRCH (it has ended), -ENOSYS (the system does not tell).
 */
static inline int bz_os_thread_sleeps(const struct bz_os *os, uint32_t id)
{
    return os->thread_sleeps != NULL ? os->thread_sleeps(os, id) : -ENOSYS;
}

/*
 * Have fn called on threads that bz_os_thread_urge() interrupts, until as many unwatches as watches. All
 * users give the same fn. May allocate and take locks of the C library and the loader.
 * Returns:  0; -ENOSYS (this CPU, keeper or kind of build cannot do it), -errno of sigaction.
 */
BZ_MUST_USE static inline int bz_os_urge_watch(const struct bz_os *os, bz_os_urged_fn *fn)
{
    return os->urge_watch != NULL ? os->urge_watch(os, fn) : -ENOSYS;
}
static inline void bz_os_urge_unwatch(const struct bz_os *os)
{
    os->urge_unwatch(os);
}

/*
 * Interrupt the thread of that id: the function given to bz_os_urge_watch is called on it, as
 * soon as the system has it run. Any thread may call, also for a thread that has ended.
 * Returns:  0: it was sent. -ESRCH (it has ended), -ENOSYS (this keeper's threads cannot be
 *           interrupted), -EAGAIN (the system is short of something).
 */
static inline int bz_os_thread_urge(const struct bz_os *os, uint32_t id)
{
    return os->thread_urge != NULL ? os->thread_urge(os, id) : -ENOSYS;
}

/*
 * Have the calling thread interrupted once more, after about `ns`. In the function given to bz_os_urge_watch.
 * If the system is short of something, nothing happens.
 */
static inline void bz_os_urge_again(const struct bz_os *os, uint64_t ns)
{
    if (os->urge_again != NULL)
        os->urge_again(os, ns);
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
 * Owns:     the slab is the caller's; give it back with bz_os_slab_release(). `name` is shown in
 *           the list of mappings where the system can; copied.
 * Returns:  0, -EINVAL, -ENOMEM. On error *slab is untouched.
 */
BZ_MUST_USE static inline int bz_os_slab_reserve(const struct bz_os *os, struct bz_os_slab *slab,
                                                 size_t bytes, size_t align,
                                                 enum bz_os_slab_flags flags, const char *name)
{
    return os->slab_reserve(os, slab, bytes, align, flags, name);
}

/* Give the slab back, guards and all. *slab is as good as new afterwards. Never fails. */
static inline void bz_os_slab_release(const struct bz_os *os, struct bz_os_slab *slab)
{
    os->slab_release(os, slab);
}

/*
 * Turn pages into guards: any access is a SIGSEGV with the exact address, a system call gets
 * EFAULT. All or none: on error those already placed by this call are gone again. Guards survive
 * bz_os_pages_discard(); what the pages held is lost.
 * Requires: multiples of the page; every guard inside the slab; stride >= bytes if count > 1.
 * Returns:  the kind that was placed (BZ_OS_GUARD_LIGHT or _PROTECT, both > 0), -EINVAL (the
 *           requirements), -ENOSYS (that kind does not exist here), -ENOMEM (the system's limit on
 *           mappings is near; a quarter of it is left to the rest of the program). With -ENOSYS
 *           and -ENOMEM the caller has canaries to fall back on.
 */
BZ_MUST_USE static inline int bz_os_slab_guard(const struct bz_os *os, struct bz_os_slab *slab,
                                               enum bz_os_guard how,
                                               const struct bz_os_guards *where)
{
    return os->slab_guard(os, slab, how, where);
}

/*
 * Give the memory behind pages back at once; they read as zero afterwards. Guards stay.
 * Requires: whole pages of one slab.
 * Returns:  0, -EINVAL (not whole pages), -ENOMEM (not mapped).
 */
static inline int bz_os_pages_discard(const struct bz_os *os, void *start, size_t bytes)
{
    return os->pages_discard(os, start, bytes);
}

/* ---- the rest --------------------------------------------------------------------------------- */

/*
 * How many CPUs' worth of time the process may use now: its affinity mask, and the CPU quota of its
 * cgroup and all its ancestors, fractions rounded up. At least 1. Reads files: not for hot paths.
 */
static inline int bz_os_cpus(const struct bz_os *os)
{
    return os->cpus(os);
}

/*
 * Who else could still act? Threads of the process but for the caller, less those that sleep on a sleep
 * word without a deadline, if nobody has changed the word. 0 is a proof: nobody but the caller will
 * ever do anything again, unless the caller wakes it. Any other number is of a moment that is over.
 * For rare use: reads a file.
 * Returns:  how many; -ENOSYS (the system does not say).
 */
static inline int bz_os_others(const struct bz_os *os)
{
    return os->others(os);
}

/*
 * Fill `out` with unpredictable bytes (under sim: with bytes that follow from the seed).
 * Suspends: never for want of entropy.
 * Returns:  0, -EIO (no source of randomness at all; `out` is undefined).
 */
BZ_MUST_USE static inline int bz_os_entropy(const struct bz_os *os, void *out, size_t bytes)
{
    return os->entropy(os, out, bytes);
}

#endif
