/*
 * blitz/fork.h - fork and join: parts of one computation at the same time.
 *
 *     static int fib(void *arg)
 *     {
 *         intptr_t n = (intptr_t)arg;
 *         blitz_job job;
 *         if (n < 2)
 *             return (int)n;
 *         blitz_fork(&job, fib, (void *)(n - 2));
 *         int left = fib((void *)(n - 1));
 *         return left + blitz_join(&job);
 *     }
 *
 * A fork says that fn(arg) may run at the same time as what follows; the join says that its result
 * is needed now. If no worker had time for it, the join calls fn itself: then a fork and a join cost
 * about a nanosecond more than the call. So fork generously: who has nothing to do takes the
 * oldest job, which is the largest part of the work left.
 *
 * The rules:
 *   - Every fork is joined, once, by the task that forked, before the job's memory goes away; it
 *     usually lies in the frame of the function that forks and joins.
 *   - Join in the reverse order of the forks. Another order works, but is slow.
 *   - A job may do anything a task may: fork, spawn, wait, sleep, take a lock. A join that waits for
 *     a job another worker has taken suspends the task, and the worker does something else; it never
 *     runs a stranger's work on top of the waiting frame. So a lock of blitz's held over a join is
 *     not taken again underneath it, and the stack does not grow by helping.
 *   - A job belongs to the task that forked it: it has its name and its id. A cancel of that task
 *     reaches the jobs others run for it; what must not be cancelled in a job is shielded there.
 *   - A join may continue on another thread: see blitz/task.h for what that means.
 *   - A job must not unwind: no longjmp or C++ exception past a fork that is not joined.
 *   - On a plain thread, outside any worker, nothing is taken by anybody: the join calls fn. To have
 *     others help there, run the whole computation by blitz_par_run().
 */
#ifndef BLITZ_FORK_H
#define BLITZ_FORK_H

#include <stddef.h>
#include <stdint.h>

#include "blitz/api.h"

BLITZ_BEGIN_DECLS

/* A forked call. The memory is the caller's; the fields are blitz's. */
typedef struct blitz_job {
    uintptr_t link_;    /* to the next older job, or to the next in a queue */
    int (*fn_)(void *); /* what to call */
    void *arg_;         /* with what */
    uintptr_t latch_;   /* meaningless until the job is shown to others */
    void *task_;        /* who forked it; likewise */
    int result_;        /* written by whoever ran it, before the latch */
} blitz_job;

/* What fork and join see of the worker they run on. Not for programs. */
struct blitz_worker_ {
    struct blitz_job *newest_; /* linked to the next older one */
    uintptr_t attention_;      /* not 0: forks and joins take the long way */
    uintptr_t asked_;          /* not 0: the task has run for long; blitz/yield.h */
    uintptr_t paused_;         /* not 0: it is not to be taken away from here; likewise */
};

#if defined(__GNUC__) && !defined(BLITZ_BUILDING) /* callers keep them out of the way, we do not */
#define BLITZ_COLD_ __attribute__((cold))
#else
#define BLITZ_COLD_
#endif

/* The long ways; join: was it done by somebody else? Not for programs. */
BLITZ_API BLITZ_COLD_ void blitz_fork_slow_(blitz_job *job);
BLITZ_API BLITZ_SUSPENDS BLITZ_COLD_ int blitz_join_slow_(blitz_job *job);
BLITZ_API BLITZ_COLD_ void blitz_share_slow_(void);
BLITZ_API struct blitz_worker_ *blitz_worker_slow_(void);

#if defined(__GNUC__)
#define BLITZ_LIKELY_(x) __builtin_expect(!!(x), 1)
#else
#define BLITZ_LIKELY_(x) (x)
#endif
/* A look at what others may store to: relaxed. A program has no bz_atomic.h. */
#if !defined(BLITZ_PEEK_) /* the model checker brings its own */
#if defined(__GNUC__)
#define BLITZ_PEEK_(p) __atomic_load_n(p, __ATOMIC_RELAXED) /* lint: allow raw-atomic: as above */
#else
#define BLITZ_PEEK_(p) (*(volatile uintptr_t *)(p)) /* lint: allow raw-atomic: as above */
#endif
#endif

/*
 * The worker this runs on, or NULL. After a wait it may be another one, and compilers would keep the
 * address of a thread-local; so it is read by an assembly that names the thread register itself.
 */
#if defined(__x86_64__) && defined(__linux__) && !defined(__ILP32__) && defined(__GNUC__)
static inline BLITZ_WHOLE_ struct blitz_worker_ *blitz_worker_(void)
{
    uintptr_t offset;
    struct blitz_worker_ *w;
    __asm__("movq blitz_self_@gottpoff(%%rip), %0" : "=r"(offset));
    __asm__ volatile("movq %%fs:(%1), %0" : "=r"(w) : "r"(offset));
    return w;
}
#elif defined(__aarch64__) && defined(__linux__) && defined(__GNUC__)
static inline BLITZ_WHOLE_ struct blitz_worker_ *blitz_worker_(void)
{
    uintptr_t offset;
    struct blitz_worker_ *w;
    __asm__("adrp %0, :gottprel:blitz_self_\n\tldr %0, [%0, #:gottprel_lo12:blitz_self_]"
            : "=r"(offset));
    __asm__ volatile("mrs %0, tpidr_el0\n\tldr %0, [%0, %1]" : "=&r"(w) : "r"(offset));
    return w;
}
#elif defined(__riscv) && __riscv_xlen == 64 && defined(__linux__) && defined(__GNUC__)
static inline BLITZ_WHOLE_ struct blitz_worker_ *blitz_worker_(void)
{
    uintptr_t offset;
    struct blitz_worker_ *w;
    __asm__("la.tls.ie %0, blitz_self_" : "=r"(offset));
    __asm__ volatile("add %0, tp, %1\n\tld %0, 0(%0)" : "=&r"(w) : "r"(offset));
    return w;
}
#else
static inline BLITZ_WHOLE_ struct blitz_worker_ *blitz_worker_(void)
{
    return blitz_worker_slow_();
}
#endif

/* The short ways, on a worker. Not for programs. */
static inline BLITZ_WHOLE_ int blitz_push_(struct blitz_worker_ *w, blitz_job *job)
{
    if (BLITZ_PEEK_(&w->attention_) != 0)
        return 0;
    job->link_ = (uintptr_t)w->newest_;
    w->newest_ = job;
    return 1;
}

static inline BLITZ_WHOLE_ int blitz_pop_(struct blitz_worker_ *w, blitz_job *job)
{
    if (w->newest_ != job || BLITZ_PEEK_(&w->attention_) != 0)
        return 0;
    w->newest_ = (struct blitz_job *)job->link_;
    return 1;
}

/*
 * Let fn(arg) run at the same time as what follows.
 * Owns:     borrows `job` until blitz_join(&job) returns; `arg` is fn's.
 * Suspends: never. Call from a task, a job, or a plain thread (then the join will call fn).
 */
static inline BLITZ_WHOLE_ void blitz_fork(blitz_job *job, int (*fn)(void *arg), void *arg)
{
    struct blitz_worker_ *w = blitz_worker_();
    job->fn_ = fn;
    job->arg_ = arg;
    if (!BLITZ_LIKELY_(w != NULL && blitz_push_(w, job)))
        blitz_fork_slow_(job);
}

/*
 * Wait for a forked call, or make it now if nobody has taken it.
 * Owns:     gives `job` back. All the job did is visible to the caller.
 * Suspends: until whoever took the job has finished it; a cancel does not end the wait, it is passed
 *           on to the job. Call where the fork was called.
 * Returns:  what fn returned.
 */
static inline BLITZ_WHOLE_ BLITZ_SUSPENDS int blitz_join(blitz_job *job)
{
    struct blitz_worker_ *w = blitz_worker_();
    if (!BLITZ_LIKELY_(w != NULL && blitz_pop_(w, job)) && blitz_join_slow_(job))
        return job->result_;
    return job->fn_(job->arg_);
}

/*
 * Look up from a long computation: if another worker has nothing to do, it can take the oldest job
 * this one has pending. Forks and joins do that anyway; one look costs a nanosecond or two.
 * Suspends: never. Call from anywhere.
 */
static inline BLITZ_WHOLE_ void blitz_share(void)
{
    struct blitz_worker_ *w = blitz_worker_();
    if (w != NULL && BLITZ_PEEK_(&w->attention_) != 0)
        blitz_share_slow_();
}

/* ---- on a plain thread ---- */

struct blitz_runtime; /* blitz/runtime.h */

/* The long way of what follows. Not for programs. */
BLITZ_API BLITZ_SUSPENDS int blitz_par_outside_(int (*fn)(void *arg), void *arg);

/* What every parallel function begins with: on a worker a call, elsewhere blitz_par_run(NULL, ...).
 * Not for programs. */
static inline BLITZ_SUSPENDS int blitz_par_call_(int (*fn)(void *arg), void *arg)
{
    return BLITZ_LIKELY_(blitz_worker_() != NULL) ? fn(arg) : blitz_par_outside_(fn, arg);
}

/*
 * Run fn(arg) where workers can help with what it forks, and wait for it. Loops, sorts and the other
 * parallel functions do that by themselves; call it around several of them to enter once.
 * In a task of that runtime it is a call. Elsewhere fn runs as a task: it has a stack of the
 * runtime's size, and other thread-locals, perhaps, than the caller. A runtime that will not have it
 * (shut down, no memory) is done without: fn is called here, and what it forks by its joins. So it
 * does not fail.
 * Owns:     borrows the runtime until it returns; NULL: that of blitz_par_runtime(). `arg` is fn's.
 * Suspends: the calling task or thread until fn has returned. Call from anywhere.
 * Returns:  what fn returned; -EINVAL (fn is NULL).
 */
BLITZ_API BLITZ_SUSPENDS int blitz_par_run(struct blitz_runtime *rt, int (*fn)(void *arg),
                                           void *arg);

/*
 * The runtime in which parallel functions run that are called here: in a task its own; on a plain
 * thread the one chosen by blitz_par_use(), or else one for the whole process, which the first call
 * makes, with the default config (BLITZ_PROCS and the others are heeded). Nobody ends that one but
 * blitz_par_end(): its workers sleep when there is nothing to do, and go with the process. After a
 * fork() the child must not call parallel functions if the parent had: see blitz/runtime.h.
 * Owns:     the runtime is not the caller's: to be looked at (blitz/stats.h), and used, not ended.
 * Suspends: never. Call from any thread.
 * Returns:  the runtime; NULL: there is none, and none could be made. Then parallel functions run on
 *           the calling thread alone.
 */
BLITZ_API struct blitz_runtime *blitz_par_runtime(void);

/*
 * Have the parallel functions that plain threads call run in that runtime. NULL: in the process's own
 * again.
 * Owns:     borrows the runtime until another is chosen and the calls that began before have ended.
 * Suspends: never. Call from any thread.
 */
BLITZ_API void blitz_par_use(struct blitz_runtime *rt);

/*
 * End the process's own runtime, if there is one: for who must leave no threads behind, be it a
 * library that is about to be unloaded or a test. The next call makes another.
 * Owns:     takes the runtime. No other thread may be in a parallel function, or about to begin one.
 * Suspends: never a task: it blocks the calling thread, which must not be a worker, until its workers
 *           have ended.
 * Returns:  0; -EBUSY (called from a task of that runtime). Nothing happened.
 */
BLITZ_API int blitz_par_end(void);

BLITZ_END_DECLS

#endif
