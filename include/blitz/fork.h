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
 * A fork says that fn(arg) may run at the same time as the code that follows. The join says that its result is needed
 * now. If no other worker has taken the job, the join calls fn itself: then a fork and a join cost about a nanosecond
 * more than the call. So fork generously: an idle worker takes the oldest job, which is the largest part of the
 * remaining work.
 *
 * The rules:
 *   - The task that forked joins each fork once, before the job's memory goes away. The job usually lies in the frame
 *     of the function that forks and joins.
 *   - Join in the reverse order of the forks. Another order works, but is slow.
 *   - A job may do anything a task may: fork, spawn, wait, sleep, take a lock. If another worker has taken the job, the
 *     join suspends the task, and the worker runs something else. It never runs unrelated work on top of the waiting
 *     frame. So a blitz lock that is held over a join is not taken again underneath it, and helping does not make the
 *     stack grow.
 *   - A job belongs to the task that forked it: it has the task's name and id. A cancel of that task reaches the jobs
 *     that other workers run for it. Shield the parts of a job that must not be cancelled.
 *   - A join may continue on another thread: see blitz/task.h for the consequences.
 *   - A job must not unwind: no longjmp or C++ exception past a fork that is not joined.
 *   - On a plain thread, outside any worker, no job is taken: the join calls fn. To let workers help there, run the
 *     whole computation by blitz_par_run().
 */
#ifndef BLITZ_FORK_H
#define BLITZ_FORK_H

#include <stddef.h>
#include <stdint.h>

#include "blitz/api.h"

BLITZ_BEGIN_DECLS

/* A forked call. The memory is the caller's; the fields belong to blitz. */
typedef struct blitz_job {
    uintptr_t link_;    /* to the next older job, or to the next in a queue */
    int (*fn_)(void *); /* the function to call */
    void *arg_;         /* its argument */
    uintptr_t latch_;   /* undefined until the job is visible to other workers */
    void *task_;        /* the task that forked it; undefined until then, too */
    int result_;        /* written by the worker that ran it, before the latch */
    unsigned check_;    /* whether it was visible, and was joined; undefined until then */
} blitz_job;

/* The part of a worker that fork and join use. Not for programs. */
struct blitz_worker_ {
    uintptr_t newest_;    /* job, linked to the next older one */
    uintptr_t attention_; /* not 0: forks and joins take the slow path */
    uintptr_t asked_;     /* not 0: the task should yield; blitz/yield.h */
    uintptr_t paused_;    /* not 0: the task must not be preempted; blitz/yield.h */
};

#if defined(__GNUC__) && !defined(BLITZ_BUILDING) /* cold for callers, not in the library itself */
#define BLITZ_COLD_ __attribute__((cold))
#else
#define BLITZ_COLD_
#endif

/* The slow paths. join: not 0 if another worker ran the job. Not for programs. */
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
 * PEEK: a relaxed load of a word that other threads store to. POKE: a release store to a word that other threads load.
 * ORDER: a compiler fence between the two. src/queue/deque.c has the reasons. A program does not have bz_atomic.h, and
 * the model checker defines its own.
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

/* Load a word whose memory may already belong to another thread; the caller then ignores the value. ThreadSanitizer
 * would report the load. */
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

/* True if the word is 0: a PEEK, and a comparison. On x86-64 it compares in memory; of an atomic load and a comparison compilers
 * make one instruction more. ThreadSanitizer would not see it. */
#if defined(__x86_64__) && !defined(__ILP32__) && defined(__GCC_ASM_FLAG_OUTPUTS__) && \
    !defined(BLITZ_TSAN_) && !defined(__SANITIZE_THREAD__) && !defined(BZ_MODEL)
static inline BLITZ_WHOLE_ int blitz_is_0_(const uintptr_t *p)
{
    int zero;
    __asm__ volatile("cmpq $0, %1" : "=@ccz"(zero) : "m"(*p));
    return zero;
}
#else
#define blitz_is_0_(p) (BLITZ_PEEK_(p) == 0)
#endif

/*
 * Return the worker of the calling thread, or NULL. After a wait it may be another worker, but compilers would keep the
 * address of a thread-local. So an assembly statement that names the thread register reads it.
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

/* The fast paths, on a worker. Each first changes the deque, then checks whether it was allowed to. A push always stays
 * pushed; a pop is undone unless it returns 1. Not for programs. */
static inline BLITZ_WHOLE_ int blitz_push_(struct blitz_worker_ *w, blitz_job *job)
{
    job->link_ = w->newest_;
    BLITZ_POKE_(&w->newest_, (uintptr_t)job);
    BLITZ_ORDER_();
    return blitz_is_0_(&w->attention_);
}

static inline BLITZ_WHOLE_ int blitz_pop_(struct blitz_worker_ *w, blitz_job *job)
{
    if (w->newest_ != (uintptr_t)job)
        return 0;
    BLITZ_POKE_(&w->newest_, blitz_glance_(&job->link_));
    BLITZ_ORDER_();
    if (BLITZ_LIKELY_(blitz_is_0_(&w->attention_)))
        return 1;
    BLITZ_POKE_(&w->newest_, (uintptr_t)job);
    return 0;
}

/* A join without the call. 1: another worker has made the call; 0: the caller must. Not for programs. */
static inline BLITZ_WHOLE_ BLITZ_SUSPENDS int blitz_join_begin_(blitz_job *job)
{
    struct blitz_worker_ *w = blitz_worker_();
    return !BLITZ_LIKELY_(w != NULL && blitz_pop_(w, job)) && blitz_join_slow_(job);
}

/*
 * Let fn(arg) run at the same time as the code that follows.
 * Owns:     borrows `job` until blitz_join(&job) returns; `arg` is passed to fn.
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
 * Wait for a forked call, or make the call now if no worker has taken it.
 * Owns:     gives `job` back. All the job did is visible to the caller.
 * Suspends: until the worker that took the job has finished it. A cancel does not end the wait; it is passed on to the
 *           job. Call where the fork was called.
 * Returns:  what fn returned.
 */
static inline BLITZ_WHOLE_ BLITZ_SUSPENDS int blitz_join(blitz_job *job)
{
    if (blitz_join_begin_(job))
        return job->result_;
    return job->fn_(job->arg_);
}

/*
 * Share work from within a long computation: if another worker is idle, it can take the oldest pending job of this one.
 * Forks and joins do that anyway; one check costs a nanosecond or two.
 * Suspends: never. Call from anywhere.
 */
static inline BLITZ_WHOLE_ void blitz_share(void)
{
    struct blitz_worker_ *w = blitz_worker_();
    if (w != NULL && !BLITZ_LIKELY_(blitz_is_0_(&w->attention_)))
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
 * Write types so that a name can follow them: for an array or a function use a typedef. The result carries a failure: a
 * negative int, or a struct with an error in it.
 */
#define BLITZ_FORK_DEFINE(name, type, ...) \
    BLITZ_FORK_NTH_(__VA_ARGS__, 6, 5, 4, 3, 2, 1, 0)(name, type, __VA_ARGS__)

/* The parts of BLITZ_FORK_DEFINE. Not for programs. */
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
 * Make up to eight calls, at the same time if other workers are free, and wait for all:
 *
 *     err = BLITZ_INVOKE({sort_half, &left}, {sort_half, &right});
 *
 * All calls are made, also if one fails. Exception: if the calling task is cancelled, calls that have not begun are not
 * made and count as if they had returned -ECANCELED. The caller makes the first call.
 * Owns:     borrows `calls` until it returns.
 * Suspends: until all have returned. Call from anywhere; on a plain thread it works as blitz_par_run().
 * Returns:  0 if all returned 0; else the first result other than 0, in the order given. -EINVAL: more than
 *           BLITZ_INVOKE_MAX calls, or a call without a function; none was made.
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

/* The slow path of the next function. Not for programs. */
BLITZ_API BLITZ_SUSPENDS int blitz_par_outside_(int (*fn)(void *arg), void *arg);

/* The entry of every parallel function: on a worker a call of fn, elsewhere blitz_par_run(NULL, ...). Not for
 * programs. */
static inline BLITZ_SUSPENDS int blitz_par_call_(int (*fn)(void *arg), void *arg)
{
    return BLITZ_LIKELY_(blitz_worker_() != NULL) ? fn(arg) : blitz_par_outside_(fn, arg);
}

/*
 * Run fn(arg) where workers can help with its forks, and wait for it. Loops, sorts and the other parallel functions do
 * that by themselves. Call it around several of them to enter the runtime once.
 *
 * In a task of that runtime it is a plain call. Elsewhere fn runs as a task: it has a stack of the runtime's size, and
 * perhaps other thread-locals than the caller. If the runtime refuses the task (shut down, no memory), fn is called
 * here, and its joins make the forked calls. So it does not fail.
 * Owns:     borrows the runtime until it returns; NULL: that of blitz_par_runtime(). `arg` is passed to fn.
 * Suspends: the calling task or thread until fn has returned. Call from anywhere.
 * Returns:  what fn returned; -EINVAL (fn is NULL).
 */
BLITZ_API BLITZ_SUSPENDS int blitz_par_run(struct blitz_runtime *rt, int (*fn)(void *arg),
                                           void *arg);

/*
 * Return the runtime in which parallel functions run that are called here. In a task it is the task's own. On a plain
 * thread it is the one chosen by blitz_par_use(), or else one for the whole process. The first call makes that one,
 * with the default options (BLITZ_PROCS and the others apply). Only blitz_par_end() ends it. Its idle workers sleep,
 * and end with the process. After a fork() the child must not call parallel functions if the parent had: see
 * blitz/runtime.h.
 * Owns:     the runtime is not the caller's: read it (blitz/stats.h) and use it, but do not end it.
 * Suspends: never. Call from any thread.
 * Returns:  the runtime. NULL: there is none, and none could be made. Then parallel functions run on the calling thread
 *           alone.
 */
BLITZ_API struct blitz_runtime *blitz_par_runtime(void);

/*
 * Choose the runtime for parallel functions that plain threads call. NULL: the process's own again.
 * Owns:     borrows the runtime until another is chosen and the calls that began before have ended.
 * Suspends: never. Call from any thread.
 */
BLITZ_API void blitz_par_use(struct blitz_runtime *rt);

/*
 * End the process's own runtime, if there is one. For a program that must leave no threads behind, such as a library
 * that is about to be unloaded, or a test. The next call makes another.
 * Owns:     takes the runtime. No other thread may be in a parallel function or about to enter one.
 * Suspends: never a task: it blocks the calling thread, which must not be a worker, until its workers
 *           have ended.
 * Returns:  0; -EBUSY (called from a task of that runtime). Nothing happened.
 */
BLITZ_API int blitz_par_end(void);

BLITZ_END_DECLS

#endif
