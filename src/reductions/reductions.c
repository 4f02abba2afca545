/*
 * reductions.c - what code built with -fsanitize-coverage=trace-pc calls at every step.
 *
 * A library of its own, because its one symbol has a name that belongs to sanitizers: a program that
 * does not want it must not get it. It stands on the public headers alone.
 *
 * The count is a thread-local of the hook, not of the task: one subtraction through the thread
 * register, whatever the thread is. So a task that begins late in another's count yields early, once;
 * a yield with nobody ready costs less than a hundred steps. When the count is used up the hook
 * raises the flag that BLITZ_POLL() looks at and looks: then the runtime decides whether here is a
 * place to yield. If it is not, the flag stays up, and the next look or the next end of the count sees
 * it.
 *
 * The hook is called between any two steps of the compiler's making, but as a function: registers
 * are kept as by any call. What it must carry over by itself is errno, which a yield may change, and
 * which is another thread's afterwards: it is read and written by functions the compiler cannot look
 * into, since it believes that the address of errno never changes.
 *
 * Rejected: counting in the worker (one more load a step, and a count the runtime would have to
 * refill at each task), a yield that skips the runtime's question (an allocator of the program's own,
 * called from the middle of the runtime, may be built with the flag by mistake).
 *
 * I1  left is only touched by its own thread, and by one instruction at a time between suspensions: its
 *     address is not kept over the yield.
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
    /* NOLINTNEXTLINE(concurrency-mt-unsafe): who changes it meanwhile cannot be helped */
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

/* By calls: the thread may be another one each time. */
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
