/*
 * linux_thread.c - threads on pthreads, each with an alternate signal stack.
 *
 * A fiber's stack is small and ends in a guard. A signal handler on it needs room for the CPU's
 * state (12 KB with AVX-512 and AMX, from AT_MINSIGSTKSZ), and the handler of a fault at the guard
 * has no room at all. So every thread gets an alternate stack before it runs any code, whether or
 * not the program installs a handler: a handler with SA_ONSTACK then works. The alternate stack
 * ends in its own guard page, so that a handler that overflows it faults instead of writing into
 * other memory. A sanitizer may have given the thread an alternate stack already and expects it
 * when the thread ends: it is restored.
 *
 * Everything that can fail happens in the starter, before the thread exists: mapping the signal
 * stack, and pthread_create with stack size and affinity in its attributes. Rejected: setting the
 * affinity from inside the thread (it would run on another CPU first, and could not report a bad
 * mask). The thread sets its own name, because prctl names only the calling thread, and a failure
 * there does not matter.
 *
 * I1  The fields of *t that the thread reads are written before pthread_create, which publishes
 *     them. Only the starter reads `native`.
 */
#include "os/linux.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#if !defined(AT_MINSIGSTKSZ)
#define AT_MINSIGSTKSZ 51
#endif

#define SIGFRAME_BYTES_MIN 4096     /* kernels without AT_MINSIGSTKSZ have small frames */
#define SIGHANDLER_BYTES (48 << 10) /* room for a handler that formats text and walks a stack */

static_assert(sizeof(unsigned long) == sizeof(uint64_t),
              "affinity is given to the kernel as it is");

static size_t round_up(size_t n, size_t unit)
{
    return (n + unit - 1) / unit * unit;
}

static int sigstack_map(struct bz_os_thread *t, size_t page)
{
    size_t frame = getauxval(AT_MINSIGSTKSZ);
    size_t bytes = page + round_up(SIGHANDLER_BYTES +
                                       (frame > SIGFRAME_BYTES_MIN ? frame : SIGFRAME_BYTES_MIN),
                                   page);
    void *map = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);

    if (map == MAP_FAILED)
        return -ENOMEM;
    if (mprotect(map, page, PROT_NONE) != 0) {
        munmap(map, bytes);
        return -ENOMEM;
    }
    bz_linux_pages_name(map, bytes, "blitz-signal-stack");
    t->sigstack = map;
    t->sigstack_bytes = bytes;
    return 0;
}

static void sigstack_unmap(struct bz_os_thread *t)
{
    munmap(t->sigstack, t->sigstack_bytes);
    t->sigstack = NULL;
}

static void *thread_main(void *arg)
{
    struct bz_os_thread *t = arg;
    size_t page = bz_linux_page_bytes(NULL);
    stack_t ours = {.ss_sp = (char *)t->sigstack + page, .ss_size = t->sigstack_bytes - page};
    stack_t before;

    int err = sigaltstack(&ours, &before);
    BZ_CHECK(err == 0, "sigaltstack of %zu bytes: errno %d", ours.ss_size, errno);
    if (t->is_named)
        prctl(PR_SET_NAME, t->name);
    if (t->is_prompt)
        prctl(PR_SET_TIMERSLACK, 1UL); /* the default is 50 us */
    t->fn(t->arg);
    bz_linux_interrupt_forget();
    sigaltstack(&before, NULL);
    return NULL;
}

static int attr_fill(pthread_attr_t *attr, const struct bz_os_thread_opts *opts, size_t page)
{
    if (opts->stack_bytes > 0) {
        /* The C library puts thread-locals and its descriptor on the stack. */
        size_t own = (size_t)sysconf(_SC_THREAD_STACK_MIN);
        if (opts->stack_bytes > SIZE_MAX / 2)
            return -EINVAL;
        if (pthread_attr_setstacksize(attr, round_up(own + opts->stack_bytes, page)) != 0)
            return -EINVAL;
    }
    return 0;
}

/* A cpu_set_t is an array of unsigned long, as our mask is. */
#if defined(__GLIBC__)
static int create(pthread_t *out, pthread_attr_t *attr, const struct bz_os_thread_opts *opts,
                  struct bz_os_thread *t)
{
    int err = 0;
    if (opts->affinity != NULL)
        err = pthread_attr_setaffinity_np(attr, opts->affinity_words * sizeof(uint64_t),
                                          (const cpu_set_t *)(const void *)opts->affinity);
    return err != 0 ? -err : -pthread_create(out, attr, thread_main, t); /* I1 */
}
#else
/* musl has no affinity in the attributes: the new thread inherits the mask of this one. */
static int create(pthread_t *out, pthread_attr_t *attr, const struct bz_os_thread_opts *opts,
                  struct bz_os_thread *t)
{
    size_t bytes = opts->affinity_words * sizeof(uint64_t);
    cpu_set_t before;
    if (opts->affinity == NULL)
        return -pthread_create(out, attr, thread_main, t); /* I1 */
    if (sched_getaffinity(0, sizeof before, &before) != 0 ||
        sched_setaffinity(0, bytes, (const cpu_set_t *)(const void *)opts->affinity) != 0)
        return -errno;
    int err = -pthread_create(out, attr, thread_main, t); /* I1 */
    (void)sched_setaffinity(0, sizeof before, &before);   /* it was this thread's a moment ago */
    return err;
}
#endif

int bz_linux_thread_start(const struct bz_os *os, struct bz_os_thread *t,
                          const struct bz_os_thread_opts *opts, void (*fn)(void *), void *arg)
{
    static const struct bz_os_thread_opts defaults;
    size_t page = bz_linux_page_bytes(os);
    pthread_attr_t attr;
    pthread_t native = 0;

    if (opts == NULL)
        opts = &defaults;
    *t = (struct bz_os_thread){
        .fn = fn, .arg = arg, .is_named = opts->name != NULL, .is_prompt = opts->is_prompt};
    if (opts->name != NULL)
        memcpy(t->name, opts->name, strnlen(opts->name, BZ_OS_NAME_MAX - 1));
    int err = sigstack_map(t, page);
    if (err != 0)
        return err;
    err = -pthread_attr_init(&attr);
    if (err != 0)
        goto unmap_sigstack;
    err = attr_fill(&attr, opts, page);
    if (err == 0)
        err = create(&native, &attr, opts, t);
    pthread_attr_destroy(&attr);
    if (err != 0)
        goto unmap_sigstack;
    t->native = (uintptr_t)native;
    return 0;

unmap_sigstack:
    sigstack_unmap(t);
    return err;
}

int bz_linux_thread_join(const struct bz_os *os, struct bz_os_thread *t)
{
    (void)os;
    if (pthread_equal(pthread_self(), (pthread_t)t->native))
        return -EDEADLK;
    int err = pthread_join((pthread_t)t->native, NULL);
    BZ_CHECK(err == 0, "join of thread %s: error %d", t->name, err);
    sigstack_unmap(t);
    return 0;
}

void bz_linux_thread_detach(const struct bz_os *os, struct bz_os_thread *t)
{
    (void)os;
    int err = pthread_detach((pthread_t)t->native);
    BZ_CHECK(err == 0, "detach of thread %s: error %d", t->name, err);
}

/* The signal stack is not in use: no handler runs on this thread, and none will use that stack
 * again. */
void bz_linux_thread_quit(const struct bz_os *os, struct bz_os_thread *t)
{
    stack_t none = {.ss_flags = SS_DISABLE};
    (void)os;
    sigaltstack(&none, NULL);
    sigstack_unmap(t);
}
