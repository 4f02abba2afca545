/*
 * reductions.c - the hook that code built with -fsanitize-coverage=trace-pc calls at every step.
 *
 * It is a separate library, because its only symbol has a name that belongs to sanitizers: a
 * program must opt in. It uses only public headers.
 *
 * The count is per thread, not per task: one subtraction through the thread register. So a task
 * that starts late in the count of another task yields early, once; a yield without other ready
 * tasks costs less than a hundred steps. When the count reaches zero, the hook sets the flag that
 * BLITZ_POLL() checks and polls: the runtime then decides whether to yield here. If not, the flag
 * stays set for the next poll or the next end of the count.
 *
 * The compiler may insert a call of the hook between any two steps, as an ordinary call: registers
 * are preserved. The hook itself must preserve errno: a yield may change it, and afterwards it
 * belongs to another thread. It is read and written by opaque functions, because the compiler
 * assumes that the address of errno never changes.
 *
 * Rejected: counting in the worker (one more load a step, and the runtime would have to reset the
 *           count for each task). Also a yield without the runtime's check (an allocator of the
 *           program, called inside the runtime, may be built with the flag by mistake).
 *
 * I1  Only its own thread accesses `left`, by single instructions between suspensions: its address
 *     is not kept across the yield.
 */
#include "blitz/reductions.h"

#include <errno.h>
#include <stdlib.h>

#define DEFAULT 4000

static _Thread_local int left __attribute__((tls_model("initial-exec"))); /* 0 at first: fill it */
static int limit;                                                         /* 0: not known yet */

/* lint: allow raw-atomic: this library has no base beneath it */
#define LOAD(p) __atomic_load_n(p, __ATOMIC_RELAXED)         /* lint: allow raw-atomic: as above */
#define STORE(p, v) __atomic_store_n(p, v, __ATOMIC_RELAXED) /* lint: allow raw-atomic: as above */

static int limit_of_environment(void)
{
    /* NOLINTNEXTLINE(concurrency-mt-unsafe): a concurrent change cannot be prevented */
    const char *text = getenv("BLITZ_REDUCTIONS");
    char *end = NULL;
    long n = text != NULL ? strtol(text, &end, 10) : 0;
    return n >= 1 && n <= 1000000000 && *end == '\0' ? (int)n : DEFAULT;
}

int blitz_reductions_set(int count)
{
    if (count < 1)
        return -EINVAL;
    STORE(&limit, count);
    return 0;
}

/* Through calls: the thread may differ each time. */
static __attribute__((noinline)) int errno_get(void)
{
    __asm__ volatile("");
    return errno;
}

static __attribute__((noinline)) void errno_put(int value)
{
    __asm__ volatile("");
    errno = value;
}

static __attribute__((noinline)) void refill(void)
{
    int n = LOAD(&limit);
    if (n == 0) {
        n = limit_of_environment();
        STORE(&limit, n);
    }
    left = n;
}

static __attribute__((noinline, cold)) void spent(void)
{
    struct blitz_worker_ *w = blitz_worker_();
    int saved = errno_get();
    refill();
    if (w != NULL) {
        STORE(&w->asked_, 1);
        blitz_poll_slow_();
    }
    errno_put(saved);
}

void __sanitizer_cov_trace_pc(void)
{
    if (__builtin_expect(--left < 0, 0))
        spent();
}
