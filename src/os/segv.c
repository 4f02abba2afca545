/*
 * segv.c - the handler of faults. See segv.h.
 *
 * Guards raise SIGSEGV, and on some systems SIGBUS; a watcher needs both. A trap needs SIGFPE and SIGILL, too. We remember the
 * previous action of each. The previous handler is called as the kernel would call it: with its mask and its
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
 * A trap changes the saved registers, and the handler returns. So the kernel restores the signal mask, and the alternate stack is
 * free again. (siglongjmp would save the mask at each call, a system call.)
 *
 * The walk uses the unwinder of the compiler's runtime library: tables describe the code at every instruction, also where a
 * frame is not complete yet. Rejected: frame pointers (programs are compiled without). The unwinder starts in the handler and
 * steps through the signal frame, so the first address of interest is that of the fault. libblitz.so needs the C library
 * alone, so it is not linked with that library: the first trap loads it, unless the program has it. A program without a dynamic
 * loader has a trap only if it links the unwinder itself.
 *
 * [W] watch: `explainer` release -> handler: acquire   the previous actions are written before it
 * [T] trap: `trapper` release -> handler: acquire   likewise
 */
#include "os/segv.h"

#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <ucontext.h>
#include <unistd.h>
#include <unwind.h>

#include "base/bz_atomic.h"
#include "os/loaded.h"

#if defined(__has_include)
#if __has_include(<execinfo.h>)
#include <execinfo.h>
#define HAS_BACKTRACE 1
#endif
#endif

#pragma weak _Unwind_Backtrace
#pragma weak _Unwind_GetIP
#pragma weak dlopen
#pragma weak dlsym

enum { FRAMES = 24, OWN_FRAMES = 2 /* the handler and the kernel's trampoline */ };

#if defined(__x86_64__)
#define CAN_TRAP 1
#define PC_OF(uc) ((uintptr_t)(uc)->uc_mcontext.gregs[REG_RIP])
#define SP_OF(uc) ((uintptr_t)(uc)->uc_mcontext.gregs[REG_RSP])
enum { DIRECTION = 1 << 10, ALIGNMENT = 1 << 18 }; /* flags that a call expects to be clear */
static void registers_set(ucontext_t *uc, uintptr_t pc, uintptr_t sp)
{
    uc->uc_mcontext.gregs[REG_RIP] = (greg_t)pc;
    uc->uc_mcontext.gregs[REG_RSP] = (greg_t)sp;
    uc->uc_mcontext.gregs[REG_EFL] &= ~(greg_t)(DIRECTION | ALIGNMENT);
}
#else
#define CAN_TRAP 0
#define PC_OF(uc) ((void)(uc), (uintptr_t)0)
#define SP_OF(uc) ((void)(uc), (uintptr_t)0)
static void registers_set(ucontext_t *uc, uintptr_t pc, uintptr_t sp)
{
    (void)uc, (void)pc, (void)sp;
}
#endif

static const int signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL};
enum { EXPLAINED = 2, TRAPPED = BZ_ARRAY_LEN(signals) }; /* so many of them, from the first */
static struct sigaction previous[BZ_ARRAY_LEN(signals)]; /* written before [W] and [T] */
static bz_atomic(bz_segv_explain *) explainer;           /* NULL: no watcher */
static bz_atomic(bz_segv_trap_fn *) trapper;             /* NULL: no trap */
static unsigned traps;                                   /* calls of trap, less those of untrap */

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
/* musl has no backtrace(): the addresses alone, if the program has an unwinder. */
struct frames {
    void **at;
    int count;
};
static void backtrace_prepare(void) {}
static _Unwind_Reason_Code frame_take(struct _Unwind_Context *context, void *arg)
{
    struct frames *f = arg;
    if (f->count == FRAMES)
        return _URC_END_OF_STACK;
    f->at[f->count++] = (void *)_Unwind_GetIP(context);
    return _URC_NO_REASON;
}
static int frames_take(void **frame)
{
    struct frames f = {frame, 0};
    if (_Unwind_Backtrace != NULL && _Unwind_GetIP != NULL)
        (void)_Unwind_Backtrace(frame_take, &f);
    return f.count;
}
static void frames_say(void *const *frame, int count)
{
    char line[32];
    for (int i = 0; i < count; i++)
        say(line, (size_t)snprintf(line, sizeof line, "[%p]\n", frame[i]));
}
#define BACKTRACE(frame) frames_take(frame)
#define BACKTRACE_SAY(frame, count) frames_say(frame, count)
#endif

static void restore_default(int signal)
{
    struct sigaction plain = {.sa_handler = SIG_DFL};
    sigaction(signal, &plain, NULL);
}

static const struct sigaction *previous_of(int signal)
{
    size_t i = BZ_ARRAY_LEN(signals) - 1;
    while (i > 0 && signals[i] != signal)
        i--;
    return &previous[i];
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

/* True if the trap has given the thread another place to go on. */
static bool is_trapped(int signal, const siginfo_t *info, void *context)
{
    bz_segv_trap_fn *trap = bz_load_acquire(&trapper); /* [T] */
    if (trap == NULL || info->si_code <= 0)            /* a signal that was sent is no fault */
        return false;
    struct bz_segv_fault fault = {signal, info->si_addr, PC_OF((ucontext_t *)context),
                                  SP_OF((ucontext_t *)context), context};
    return trap(&fault);
}

void bz_segv_go_on(const struct bz_segv_fault *fault, uintptr_t pc, uintptr_t sp)
{
    registers_set(fault->context, pc, sp);
}

/* The unwinder; written under the lock of traps before the handler may walk, and never again. */
static struct {
    _Unwind_Reason_Code (*walk)(_Unwind_Trace_Fn, void *);
    __typeof__(_Unwind_GetIP) *pc_of;
} unwinder;

static bool unwinder_find(void)
{
    void *library = NULL;
    if (unwinder.walk != NULL)
        return true;
    if (_Unwind_Backtrace != NULL && _Unwind_GetIP != NULL) {
        unwinder.pc_of = _Unwind_GetIP;
        unwinder.walk = _Unwind_Backtrace;
        return true;
    }
    if (dlopen != NULL && dlsym != NULL)
        library = dlopen("libgcc_s.so.1", RTLD_NOW | RTLD_LOCAL);
    if (library == NULL)
        return false;
    *(void **)&unwinder.pc_of = dlsym(library, "_Unwind_GetIP");
    if (unwinder.pc_of != NULL)
        *(void **)&unwinder.walk = dlsym(library, "_Unwind_Backtrace");
    return unwinder.walk != NULL; /* the library stays */
}

struct walk {
    uintptr_t from;
    bz_segv_visit *visit;
    void *ctx;
    bool has_begun;
};

static _Unwind_Reason_Code step(struct _Unwind_Context *frame, void *arg)
{
    struct walk *w = arg;
    uintptr_t pc = unwinder.pc_of(frame);
    w->has_begun |= pc == w->from; /* the handler's own frames come before */
    return !w->has_begun || w->visit(pc, w->ctx) ? _URC_NO_REASON : _URC_END_OF_STACK;
}

void bz_segv_walk(const struct bz_segv_fault *fault, bz_segv_visit *visit, void *ctx)
{
    struct walk w = {fault->pc, visit, ctx, false};
    (void)unwinder.walk(step, &w);
}

static void explain_or_forward(int signal, siginfo_t *info, void *context)
{
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
}

static void on_fault(int signal, siginfo_t *info, void *context)
{
    int saved = errno;
    if (!is_trapped(signal, info, context))
        explain_or_forward(signal, info, context);
    errno = saved;
}

static bool is_ours(const struct sigaction *action)
{
    return (action->sa_flags & SA_SIGINFO) && action->sa_sigaction == on_fault;
}

/* Another handler is installed over ours and may call it at any time. */
static void stay_mapped(void)
{
    static bz_atomic(int) stays;
    if (!bz_xchg_relaxed(&stays, 1)) /* relaxed: only the first caller keeps the code */
        (void)bz_loaded_hold();
}

/* Remove our handler from signals[from, to). */
static void restore(size_t from, size_t to)
{
    for (size_t i = from; i < to; i++) {
        struct sigaction now;
        if (sigaction(signals[i], NULL, &now) != 0 || !is_ours(&now))
            stay_mapped();
        else
            sigaction(signals[i], &previous[i], NULL);
    }
}

/* Install it for the first `to` signals, as far as it is not there. */
static int install(size_t to)
{
    struct sigaction ours = {.sa_flags = SA_SIGINFO | SA_ONSTACK};
    ours.sa_sigaction = on_fault;
    sigemptyset(&ours.sa_mask);
    static bool is_prepared; /* under the lock of overflow.c */
    if (!is_prepared)
        backtrace_prepare();
    is_prepared = true;
    for (size_t i = 0; i < to; i++) {
        struct sigaction was;
        if (sigaction(signals[i], NULL, &was) != 0)
            return -errno;
        if (is_ours(&was))
            continue; /* from an earlier watch or trap */
        previous[i] = was;
        if (sigaction(signals[i], &ours, NULL) != 0)
            return -errno;
    }
    return 0;
}

int bz_segv_watch(bz_segv_explain *explain)
{
    if (bz_load_relaxed(&explainer) != NULL) /* relaxed: a check only */
        return -EBUSY;
    int err = install(EXPLAINED);
    if (err == 0)
        bz_store_release(&explainer, explain); /* [W] */
    return err;
}

void bz_segv_unwatch(void)
{
    bz_store_relaxed(&explainer, NULL); /* relaxed: a running handler may still explain */
    if (traps == 0)
        restore(0, EXPLAINED);
}

/* The first walk of a process may allocate. */
static bool stop_at_once(uintptr_t pc, void *ctx)
{
    (void)pc, (void)ctx;
    return false;
}

static void walk_prepare(void)
{
    struct walk w = {0, stop_at_once, NULL, true};
    (void)unwinder.walk(step, &w);
}

int bz_segv_trap(bz_segv_trap_fn *trap)
{
    if (!CAN_TRAP)
        return -EOPNOTSUPP;
    if (traps > 0) {
        traps++;
        return 0;
    }
    if (!unwinder_find())
        return -EOPNOTSUPP;
    walk_prepare();
    int err = install(TRAPPED);
    if (err != 0) {
        restore(bz_load_relaxed(&explainer) != NULL ? EXPLAINED : 0, TRAPPED); /* relaxed: ours */
        return err;
    }
    traps = 1;
    bz_store_release(&trapper, trap); /* [T] */
    return 0;
}

void bz_segv_untrap(void)
{
    if (--traps > 0)
        return;
    bz_store_relaxed(&trapper, NULL); /* relaxed: a running handler may still call it */
    restore(bz_load_relaxed(&explainer) != NULL ? EXPLAINED : 0, TRAPPED); /* relaxed: ours */
}

const char *bz_segv_name(int signal)
{
    static const struct {
        int signal;
        const char *name;
    } names[] = {{SIGSEGV, "SIGSEGV"}, {SIGBUS, "SIGBUS"}, {SIGFPE, "SIGFPE"}, {SIGILL, "SIGILL"}};
    size_t i = 0;
    while (i + 1 < BZ_ARRAY_LEN(names) && names[i].signal != signal)
        i++;
    return names[i].name;
}
