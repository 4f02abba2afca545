/*
 * signals.c - see signals.h.
 *
 * The handler may run on any thread, at any instruction, and during a watch or unwatch on the same thread. So it takes
 * no lock and calls nothing but atomics and the wake of a sleep word. It counts, then rings, then calls the previous
 * handler if a watcher asked for that:
 *
 *      handler                        listener
 *      1  arrived + 1                 1  load the ring
 *      2  ring + 1, wake              2  load the counts; nothing new: sleep while the ring is as in 1
 *
 * A signal after 2 has changed the ring, so the sleep does not begin: no arrival is lost between the look and the
 * sleep.
 *
 * SA_RESTART: system calls that can be restarted are. SA_ONSTACK: a fiber's stack has no room for a signal frame.
 * errno is kept.
 *
 * SIGQUIT already has a handler with several watchers, for dumps (sigquit.h). We are one of them, so that neither
 * handler ends up below the other. Its previous handler is always called.
 *
 * Rejected: signalfd(2). The signal must be blocked in every thread, also in those of other libraries, and a blocked
 *           signal stays blocked in a program that is started by exec.
 *
 * A handler of other code that was installed over ours calls ours even after the last unwatch. Without a watcher ours
 * only forwards.
 *
 * I1  `watchers` is written under the lock; `previous` is guarded by it.
 *
 * [P] keep: earlier release -> handler: earlier acquire     the form of the function, before the first signal
 * [A] handler: arrived release -> reader: arrived acquire   all that came before the signal was handled
 * [R] handler: ring release -> listener: ring acquire       the count is there before the ring
 */
#include "os/signals.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>

#include "base/bz_atomic.h"
#include "os/lock.h"
#include "os/sigquit.h"

static bz_atomic(uint64_t) arrived[BZ_SIGNAL_MAX + 1];
static bz_atomic(uint32_t)
    chained[BZ_SIGNAL_MAX + 1];            /* watchers that ask for the previous handler */
static struct bz_lock lock = BZ_LOCK_INIT; /* rank WAIT: SIGQUIT has a lock of its own */
static bz_atomic(uint32_t) watchers[BZ_SIGNAL_MAX + 1]; /* I1 */
static struct sigaction previous[BZ_SIGNAL_MAX + 1];    /* I1 */
typedef void earlier_fn(int signal, siginfo_t *info, void *context);
static bz_atomic(earlier_fn *)
    earlier[BZ_SIGNAL_MAX + 1]; /* of `previous`, for the handler; NULL: none */
static bz_atomic(bool) earlier_has_info[BZ_SIGNAL_MAX + 1];

bz_os_word bz_signals_ring;

static int linux_unblock(const sigset_t *set)
{
    return -pthread_sigmask(SIG_UNBLOCK, set, NULL);
}

const struct bz_signal_sys bz_signal_sys_linux = {.action = sigaction, .unblock = linux_unblock};
const struct bz_signal_sys *bz_signal_sys = &bz_signal_sys_linux;

/* ---- the handler ---- */

void bz_signals_ring_now(void)
{
    bz_fetch_add_release(&bz_signals_ring, 1); /* [R] */
    bz_os_wake(bz_os_outside(), &bz_signals_ring, 1);
}

uint32_t bz_signals_rung(void)
{
    return bz_load_acquire(&bz_signals_ring); /* [R] */
}

static void count(int signal)
{
    bz_fetch_add_release(&arrived[signal], 1); /* [A] */
    bz_signals_ring_now();
}

static void call_earlier_handler(int signal, siginfo_t *info, void *context)
{
    earlier_fn *fn = bz_load_acquire(&earlier[signal]); /* [P] */
    if (fn == NULL)
        return;
    if (bz_load_relaxed(&earlier_has_info[signal])) /* relaxed: [P] */
        fn(signal, info, context);
    else
        ((void (*)(int))(void *)fn)(signal);
}

/* Simulated threads share one errno, of which ThreadSanitizer must not hear. */
#define UNWATCHED __attribute__((noinline, no_sanitize("thread")))

static UNWATCHED int errno_now(void)
{
    return errno;
}

static UNWATCHED void errno_restore(int saved)
{
    errno = saved;
}

static void on_signal(int signal, siginfo_t *info, void *context)
{
    int saved = errno_now();
    /* relaxed: a signal beside a watch or unwatch may count as before or after it. Look before the count: a listener
     * that receives the signal may be the last one, and gone, before this handler goes on. */
    bool forwards =
        bz_load_relaxed(&chained[signal]) > 0 || bz_load_relaxed(&watchers[signal]) == 0;
    count(signal);
    if (forwards)
        call_earlier_handler(signal, info, context);
    errno_restore(saved);
}

static void on_quit(void *ctx)
{
    (void)ctx;
    count(SIGQUIT);
}

/* ---- watching ---- */

bool bz_signal_is_open(int signal)
{
    switch (signal) {
    case SIGKILL:
    case SIGSTOP:
    case SIGSEGV:
    case SIGBUS:
    case SIGFPE:
    case SIGILL:
    case SIGURG:
        return false;
    default:
        return (signal > 0 && signal < 32) || (signal >= SIGRTMIN && signal <= SIGRTMAX);
    }
}

static bool is_ours(const struct sigaction *action)
{
    return (action->sa_flags & SA_SIGINFO) && action->sa_sigaction == on_signal;
}

static bool is_shared(int signal)
{
    return signal == SIGQUIT && !bz_signal_sys->is_simulated;
}

/* Keep the action that was there. A handler that began before the last unwatch may still read it. Under the lock. */
static void keep(int signal, const struct sigaction *was)
{
    bool has_fn = was->sa_handler != SIG_DFL && was->sa_handler != SIG_IGN;
    previous[signal] = *was; /* I1 */
    bz_store_relaxed(&earlier_has_info[signal],
                     (was->sa_flags & SA_SIGINFO) != 0);                   /* relaxed: [P] */
    bz_store_release(&earlier[signal], has_fn ? was->sa_sigaction : NULL); /* [P] */
}

/* Under the lock. */
static int install(int signal)
{
    struct sigaction ours = {.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART}, was;
    if (is_shared(signal))
        return bz_sigquit_watch(on_quit, &arrived[SIGQUIT]);
    ours.sa_sigaction = on_signal;
    sigemptyset(&ours.sa_mask);
    if (bz_signal_sys->action(signal, NULL, &was) != 0)
        return -errno;
    if (is_ours(&was))
        return 0; /* our handler is still installed from an earlier watch */
    keep(signal, &was);
    return bz_signal_sys->action(signal, &ours, NULL) == 0 ? 0 : -errno;
}

/* Under the lock. */
static void restore(int signal)
{
    struct sigaction now;
    if (is_shared(signal))
        bz_sigquit_unwatch(&arrived[SIGQUIT]);
    else if (bz_signal_sys->action(signal, NULL, &now) == 0 && is_ours(&now))
        (void)bz_signal_sys->action(signal, &previous[signal], NULL);
}

int bz_signals_watch(int signal, bool chains)
{
    const struct bz_os *os = bz_os_outside();
    bz_lock_take_ranked(&lock, BZ_RANK_WAIT, os);
    int err = bz_load_relaxed(&watchers[signal]) == 0 ? install(signal) : 0; /* relaxed: I1 */
    if (err == 0) {
        bz_fetch_add_relaxed(&watchers[signal], 1);              /* relaxed: see the handler */
        bz_fetch_add_relaxed(&chained[signal], chains ? 1u : 0); /* relaxed: the same */
    }
    bz_lock_drop(&lock, os);
    return err;
}

void bz_signals_unwatch(int signal, bool chains)
{
    const struct bz_os *os = bz_os_outside();
    bz_lock_take_ranked(&lock, BZ_RANK_WAIT, os);
    bz_fetch_sub_relaxed(&chained[signal], chains ? 1u : 0); /* relaxed: see the handler */
    if (bz_fetch_sub_relaxed(&watchers[signal], 1) == 1)     /* relaxed: I1 */
        restore(signal);
    bz_lock_drop(&lock, os);
}

uint64_t bz_signals_arrived(int signal)
{
    return bz_load_acquire(&arrived[signal]); /* [A] */
}

void bz_signals_take_here(void)
{
    sigset_t set;
    sigemptyset(&set);
    bz_lock_take_ranked(&lock, BZ_RANK_WAIT, bz_os_outside());
    for (int s = 1; s <= BZ_SIGNAL_MAX; s++)
        if (bz_load_relaxed(&watchers[s]) > 0) /* relaxed: I1 */
            sigaddset(&set, s);
    bz_lock_drop(&lock, bz_os_outside());
    (void)bz_signal_sys->unblock(&set);
}

/* ---- names ---- */

#define NAME(s) [s] = #s
static const char *const names[] = {
    NAME(SIGHUP),    NAME(SIGINT),  NAME(SIGQUIT),  NAME(SIGILL),  NAME(SIGTRAP), NAME(SIGABRT),
    NAME(SIGBUS),    NAME(SIGFPE),  NAME(SIGKILL),  NAME(SIGUSR1), NAME(SIGSEGV), NAME(SIGUSR2),
    NAME(SIGPIPE),   NAME(SIGALRM), NAME(SIGTERM),  NAME(SIGCHLD), NAME(SIGCONT), NAME(SIGSTOP),
    NAME(SIGTSTP),   NAME(SIGTTIN), NAME(SIGTTOU),  NAME(SIGURG),  NAME(SIGXCPU), NAME(SIGXFSZ),
    NAME(SIGVTALRM), NAME(SIGPROF), NAME(SIGWINCH), NAME(SIGIO),   NAME(SIGPWR),  NAME(SIGSYS),
};

const char *bz_signal_name(int signal)
{
    static const char *const real_time = "SIGRT";
    if (signal > 0 && (size_t)signal < sizeof names / sizeof names[0] && names[signal] != NULL)
        return names[signal];
    return signal >= SIGRTMIN && signal <= SIGRTMAX ? real_time : "signal";
}
