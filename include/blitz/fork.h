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
    unsigned check_;    /* was it shown to others, was it joined? Likewise meaningless before */
} blitz_job;

/* What fork and join see of the worker they run on. Not for programs. */
struct blitz_worker_ {
    uintptr_t newest_;    /* job, linked to the next older one */
    uintptr_t attention_; /* not 0: forks and joins take the long way */
    uintptr_t asked_;     /* not 0: the task has run for long; blitz/yield.h */
    uintptr_t paused_;    /* not 0: it is not to be taken away from here; likewise */
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
/*
 * A look at what others may store to, relaxed; a store that others may look at, release; and the
 * compiler's promise that the one stays behind the other: src/sched/deque.c has the reasons. A
 * program has no bz_atomic.h, and the model checker brings its own.
 */
#if !defined(BLITZ_PEEK_)
#if defined(__GNUC__)
/* lint: allow raw-atomic: as above, all three */
#define BLITZ_PEEK_(p) __atomic_load_n(p, __ATOMIC_RELAXED)
/* lint: allow raw-atomic: as above */
#define BLITZ_POKE_(p, v) __atomic_store_n(p, v, __ATOMIC_RELEASE)
/* lint: allow raw-atomic: as above */
#define BLITZ_ORDER_() __atomic_signal_fence(__ATOMIC_SEQ_CST)
#else
#define BLITZ_PEEK_(p) (*(volatile uintptr_t *)(p))          /* lint: allow raw-atomic: as above */
#define BLITZ_POKE_(p, v) (*(volatile uintptr_t *)(p) = (v)) /* lint: allow raw-atomic: as above */
#define BLITZ_ORDER_() ((void)0)
#endif
#endif

/* A look at what may be another's by now: then what was seen is not believed. ThreadSanitizer would say
 * so. */
#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define BLITZ_TSAN_ 1
#endif
#endif
#if defined(BLITZ_TSAN_) || defined(__SANITIZE_THREAD__)
static BLITZ_WHOLE_ __attribute__((noinline, unused, no_sanitize("thread"))) uintptr_t
blitz_glance_(const uintptr_t *p)
{
    return *(const volatile uintptr_t *)p; /* lint: allow raw-atomic: as above */
}
#else
#define blitz_glance_(p) BLITZ_PEEK_(p)
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

/* The short ways, on a worker: first done, then asked whether it was all right. Pushed in any case;
 * popped only if it says so. Not for programs. */
static inline BLITZ_WHOLE_ int blitz_push_(struct blitz_worker_ *w, blitz_job *job)
{
    job->link_ = w->newest_;
    BLITZ_POKE_(&w->newest_, (uintptr_t)job);
    BLITZ_ORDER_();
    return BLITZ_PEEK_(&w->attention_) == 0;
}

static inline BLITZ_WHOLE_ int blitz_pop_(struct blitz_worker_ *w, blitz_job *job)
{
    if (w->newest_ != (uintptr_t)job)
        return 0;
    BLITZ_POKE_(&w->newest_, blitz_glance_(&job->link_));
    BLITZ_ORDER_();
    if (BLITZ_LIKELY_(BLITZ_PEEK_(&w->attention_) == 0))
        return 1;
    BLITZ_POKE_(&w->newest_, (uintptr_t)job);
    return 0;
}

/* A join but for the call: 1: somebody else has made it; 0: the caller is to. Not for programs. */
static inline BLITZ_WHOLE_ BLITZ_SUSPENDS int blitz_join_begin_(blitz_job *job)
{
    struct blitz_worker_ *w = blitz_worker_();
    return !BLITZ_LIKELY_(w != NULL && blitz_pop_(w, job)) && blitz_join_slow_(job);
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
    if (blitz_join_begin_(job))
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

/* ---- values ---- */

/*
 * Forks of an ordinary function, with its arguments and its result by value:
 *
 *     static long fib(long n);
 *     BLITZ_FORK_DEFINE(fib, long, long)      result, then up to six parameters
 *
 *     static long fib(long n)
 *     {
 *         struct fib_job job;
 *         if (n < 2)
 *             return n;
 *         fib_fork(&job, n - 2);
 *         long left = fib(n - 1);
 *         return left + fib_join(&job);
 *     }
 *
 * BLITZ_FORK_DEFINE(name, type, ...) defines, for a function `type name(...)` that was declared before:
 *     struct name_job                              a forked call: a blitz_job, arguments and result
 *     void name_fork(struct name_job *j, ...)      as blitz_fork; copies the arguments
 *     type name_join(struct name_job *j)           as blitz_join; the function's result
 * Types are written so that a name can follow them: an array or a function by a typedef. A failure
 * inside is what the result says it is: a negative int, a struct with an error in it.
 */
#define BLITZ_FORK_DEFINE(name, type, ...) \
    BLITZ_FORK_NTH_(__VA_ARGS__, 6, 5, 4, 3, 2, 1, 0)(name, type, __VA_ARGS__)

/* What it is made of. Not for programs. */
#define BLITZ_FORK_NTH_(a, b, c, d, e, f, n, ...) BLITZ_FORK_##n##_
#define BLITZ_FORK_BODY_(name, type, call)                                  \
    static BLITZ_MAYBE_UNUSED int name##_run_(void *arg)                    \
    {                                                                       \
        struct name##_job *j = (struct name##_job *)arg;                    \
        j->result_ = call;                                                  \
        return 0;                                                           \
    }                                                                       \
    static inline BLITZ_MAYBE_UNUSED type name##_join(struct name##_job *j) \
    {                                                                       \
        if (blitz_join_begin_(&j->job_))                                    \
            return j->result_;                                              \
        return call;                                                        \
    }
#define BLITZ_FORK_1_(name, type, t1)                                              \
    struct name##_job {                                                            \
        blitz_job job_;                                                            \
        t1 a1_;                                                                    \
        type result_;                                                              \
    };                                                                             \
    BLITZ_FORK_BODY_(name, type, name(j->a1_))                                     \
    static inline BLITZ_MAYBE_UNUSED void name##_fork(struct name##_job *j, t1 a1) \
    {                                                                              \
        j->a1_ = a1;                                                               \
        blitz_fork(&j->job_, name##_run_, j);                                      \
    }
#define BLITZ_FORK_2_(name, type, t1, t2)                                                 \
    struct name##_job {                                                                   \
        blitz_job job_;                                                                   \
        t1 a1_;                                                                           \
        t2 a2_;                                                                           \
        type result_;                                                                     \
    };                                                                                    \
    BLITZ_FORK_BODY_(name, type, name(j->a1_, j->a2_))                                    \
    static inline BLITZ_MAYBE_UNUSED void name##_fork(struct name##_job *j, t1 a1, t2 a2) \
    {                                                                                     \
        j->a1_ = a1;                                                                      \
        j->a2_ = a2;                                                                      \
        blitz_fork(&j->job_, name##_run_, j);                                             \
    }
#define BLITZ_FORK_3_(name, type, t1, t2, t3)                                                    \
    struct name##_job {                                                                          \
        blitz_job job_;                                                                          \
        t1 a1_;                                                                                  \
        t2 a2_;                                                                                  \
        t3 a3_;                                                                                  \
        type result_;                                                                            \
    };                                                                                           \
    BLITZ_FORK_BODY_(name, type, name(j->a1_, j->a2_, j->a3_))                                   \
    static inline BLITZ_MAYBE_UNUSED void name##_fork(struct name##_job *j, t1 a1, t2 a2, t3 a3) \
    {                                                                                            \
        j->a1_ = a1;                                                                             \
        j->a2_ = a2;                                                                             \
        j->a3_ = a3;                                                                             \
        blitz_fork(&j->job_, name##_run_, j);                                                    \
    }
#define BLITZ_FORK_4_(name, type, t1, t2, t3, t4)                                                \
    struct name##_job {                                                                          \
        blitz_job job_;                                                                          \
        t1 a1_;                                                                                  \
        t2 a2_;                                                                                  \
        t3 a3_;                                                                                  \
        t4 a4_;                                                                                  \
        type result_;                                                                            \
    };                                                                                           \
    BLITZ_FORK_BODY_(name, type, name(j->a1_, j->a2_, j->a3_, j->a4_))                           \
    static inline BLITZ_MAYBE_UNUSED void name##_fork(struct name##_job *j, t1 a1, t2 a2, t3 a3, \
                                                      t4 a4)                                     \
    {                                                                                            \
        j->a1_ = a1;                                                                             \
        j->a2_ = a2;                                                                             \
        j->a3_ = a3;                                                                             \
        j->a4_ = a4;                                                                             \
        blitz_fork(&j->job_, name##_run_, j);                                                    \
    }
#define BLITZ_FORK_5_(name, type, t1, t2, t3, t4, t5)                                            \
    struct name##_job {                                                                          \
        blitz_job job_;                                                                          \
        t1 a1_;                                                                                  \
        t2 a2_;                                                                                  \
        t3 a3_;                                                                                  \
        t4 a4_;                                                                                  \
        t5 a5_;                                                                                  \
        type result_;                                                                            \
    };                                                                                           \
    BLITZ_FORK_BODY_(name, type, name(j->a1_, j->a2_, j->a3_, j->a4_, j->a5_))                   \
    static inline BLITZ_MAYBE_UNUSED void name##_fork(struct name##_job *j, t1 a1, t2 a2, t3 a3, \
                                                      t4 a4, t5 a5)                              \
    {                                                                                            \
        j->a1_ = a1;                                                                             \
        j->a2_ = a2;                                                                             \
        j->a3_ = a3;                                                                             \
        j->a4_ = a4;                                                                             \
        j->a5_ = a5;                                                                             \
        blitz_fork(&j->job_, name##_run_, j);                                                    \
    }
#define BLITZ_FORK_6_(name, type, t1, t2, t3, t4, t5, t6)                                        \
    struct name##_job {                                                                          \
        blitz_job job_;                                                                          \
        t1 a1_;                                                                                  \
        t2 a2_;                                                                                  \
        t3 a3_;                                                                                  \
        t4 a4_;                                                                                  \
        t5 a5_;                                                                                  \
        t6 a6_;                                                                                  \
        type result_;                                                                            \
    };                                                                                           \
    BLITZ_FORK_BODY_(name, type, name(j->a1_, j->a2_, j->a3_, j->a4_, j->a5_, j->a6_))           \
    static inline BLITZ_MAYBE_UNUSED void name##_fork(struct name##_job *j, t1 a1, t2 a2, t3 a3, \
                                                      t4 a4, t5 a5, t6 a6)                       \
    {                                                                                            \
        j->a1_ = a1;                                                                             \
        j->a2_ = a2;                                                                             \
        j->a3_ = a3;                                                                             \
        j->a4_ = a4;                                                                             \
        j->a5_ = a5;                                                                             \
        j->a6_ = a6;                                                                             \
        blitz_fork(&j->job_, name##_run_, j);                                                    \
    }

/* ---- several at once ---- */

typedef struct blitz_call {
    int (*fn)(void *arg);
    void *arg;
} blitz_call;

enum { BLITZ_INVOKE_MAX = 8 };

/*
 * Make up to eight calls, at the same time if others have time for them, and wait for all:
 *
 *     err = BLITZ_INVOKE({sort_half, &left}, {sort_half, &right});
 *
 * All are made, also if one fails, but for those that have not begun when the calling task is
 * cancelled: they count as if they had returned -ECANCELED. The first one is made by the caller.
 * Owns:     borrows `calls` until it returns.
 * Suspends: until all have returned. Call from anywhere; on a plain thread as blitz_par_run().
 * Returns:  0 if all returned 0; else the result of the first, in the order given, that did not.
 *           -EINVAL: more than BLITZ_INVOKE_MAX, or without a function; none was made.
 */
BLITZ_API BLITZ_SUSPENDS int blitz_invoke(const blitz_call *calls, size_t count);

#if defined(__cplusplus)
#define BLITZ_INVOKE(...)                                              \
    ([&]() -> int {                                                    \
        const blitz_call calls_[] = {__VA_ARGS__};                     \
        return blitz_invoke(calls_, sizeof calls_ / sizeof calls_[0]); \
    }())
#else
#define BLITZ_INVOKE(...)                           \
    blitz_invoke((const blitz_call[]){__VA_ARGS__}, \
                 sizeof((const blitz_call[]){__VA_ARGS__}) / sizeof(blitz_call))
#endif

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
 * makes, with the default options (BLITZ_PROCS and the others are heeded). Nobody ends that one but
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
