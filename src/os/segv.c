/*
 * segv.c - the handler of memory faults. See segv.h.
 *
 * Guards raise SIGSEGV, and on some systems SIGBUS; we handle both, and remember the previous
 * action of each. The previous handler is called as the kernel would call it: with its mask and its
 * kind of arguments. A default or ignored action is restored, and the fault happens again. A signal
 * that was sent (si_code <= 0) has no fault to repeat, so it is raised again.
 *
 * A previous handler is called after our explanation, too: a crash reporter or a sanitizer works as
 * without blitz. Only if there was none do we print a backtrace.
 *
 * If another handler was installed over ours, it may still call ours after unwatch. Then our code
 * stays mapped for good (os/loaded.h).
 *
 * backtrace() loads a library and allocates when it is first called, so that happens in watch.
 *
 * [W] watch: `explainer` release -> handler: acquire   the previous actions are written before it
 */
#include "os/segv.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "base/bz_atomic.h"
#include "os/loaded.h"

#if defined(__has_include)
#if __has_include(<execinfo.h>)
#include <execinfo.h>
#define HAS_BACKTRACE 1
#endif
#endif

enum { FRAMES = 24, OWN_FRAMES = 2 /* the handler and the kernel's trampoline */ };

static const int signals[] = {SIGSEGV, SIGBUS};
static struct sigaction previous[BZ_ARRAY_LEN(signals)]; /* written by watch before [W] */
static bz_atomic(bz_segv_explain *) explainer;           /* NULL: no watcher */

static void say(const char *text, size_t length)
{
    ssize_t ignored = write(STDERR_FILENO, text, length);
    (void)ignored;
}

#if defined(HAS_BACKTRACE)
static void backtrace_prepare(void)
{
    void *frame[1];
    (void)backtrace(frame, 1);
}
#define BACKTRACE(frame) backtrace(frame, FRAMES)
#define BACKTRACE_SAY(frame, count) backtrace_symbols_fd(frame, count, STDERR_FILENO)
#else
static void backtrace_prepare(void) {}
#define BACKTRACE(frame) ((void)(frame), 0)
#define BACKTRACE_SAY(frame, count) ((void)0)
#endif

static void restore_default(int signal)
{
    struct sigaction plain = {.sa_handler = SIG_DFL};
    sigaction(signal, &plain, NULL);
}

static const struct sigaction *previous_of(int signal)
{
    return &previous[signal == signals[0] ? 0 : 1];
}

/* True if a previous handler takes it. */
static bool has_previous(int signal)
{
    const struct sigaction *to = previous_of(signal);
    return to->sa_handler != SIG_DFL && to->sa_handler != SIG_IGN;
}

/* Do what would have happened without blitz. */
static void call_earlier_handler(int signal, siginfo_t *info, void *context)
{
    const struct sigaction *to = previous_of(signal);
    bool was_sent = info->si_code <= 0;

    if (to->sa_handler == SIG_IGN && was_sent)
        return;
    if (to->sa_handler == SIG_DFL || to->sa_handler == SIG_IGN) {
        restore_default(signal);
        if (was_sent)
            raise(signal); /* delivered when we return */
        return;
    }
    sigset_t mask;
    pthread_sigmask(SIG_BLOCK, &to->sa_mask, &mask);
    if (to->sa_flags & SA_SIGINFO)
        to->sa_sigaction(signal, info, context);
    else
        to->sa_handler(signal);
    pthread_sigmask(SIG_SETMASK, &mask, NULL);
}

static void on_fault(int signal, siginfo_t *info, void *context)
{
    int saved = errno;
    char text[512];
    void *frame[FRAMES];
    bz_segv_explain *explain = bz_load_acquire(&explainer); /* [W] */
    size_t length = 0;

    if (explain != NULL && info->si_code > 0)
        length = explain(info->si_addr, text, sizeof text);
    if (length == 0) {
        call_earlier_handler(signal, info, context);
    } else {
        say(text, length);
        if (!has_previous(signal)) {
            int count = BACKTRACE(frame);
            if (count > OWN_FRAMES)
                BACKTRACE_SAY(frame + OWN_FRAMES, count - OWN_FRAMES);
        }
        call_earlier_handler(signal, info, context); /* the default action: it happens again */
    }
    errno = saved;
}

static bool is_ours(const struct sigaction *action)
{
    return (action->sa_flags & SA_SIGINFO) && action->sa_sigaction == on_fault;
}

int bz_segv_watch(bz_segv_explain *explain)
{
    struct sigaction ours = {.sa_flags = SA_SIGINFO | SA_ONSTACK};
    ours.sa_sigaction = on_fault;
    sigemptyset(&ours.sa_mask);
    if (bz_load_relaxed(&explainer) != NULL) /* relaxed: a check only */
        return -EBUSY;
    static bool is_prepared; /* one watcher at a time */
    if (!is_prepared)
        backtrace_prepare();
    is_prepared = true;
    for (size_t i = 0; i < BZ_ARRAY_LEN(signals); i++) {
        struct sigaction was;
        if (sigaction(signals[i], NULL, &was) != 0)
            return -errno;
        if (is_ours(&was))
            continue; /* our handler is still installed from an earlier watch */
        previous[i] = was;
        if (sigaction(signals[i], &ours, NULL) != 0)
            return -errno;
    }
    bz_store_release(&explainer, explain); /* [W] */
    return 0;
}

/* Another handler is installed over ours and may call it at any time. */
static void stay_mapped(void)
{
    static bz_atomic(int) stays;
    if (!bz_xchg_relaxed(&stays, 1)) /* relaxed: only the first caller keeps the code */
        (void)bz_loaded_hold();
}

void bz_segv_unwatch(void)
{
    bz_store_relaxed(&explainer, NULL); /* relaxed: a running handler may still explain */
    for (size_t i = 0; i < BZ_ARRAY_LEN(signals); i++) {
        struct sigaction now;
        if (sigaction(signals[i], NULL, &now) != 0 || !is_ours(&now))
            stay_mapped();
        else
            sigaction(signals[i], &previous[i], NULL);
    }
}
