/*
 * tune.c - what we run under: a sanitizer, valgrind, a machine in a hurry.
 *
 * The sanitizers' options are compiled in, so that a program started by hand behaves as under CTest;
 * the environment (ASAN_OPTIONS, ...) still has the last word. A report ends the process with
 * T_EXIT_SANITIZER. Crashes are left to our own handler, which reports them alike in every build.
 * No suppressions: what is reported is repaired.
 */
#include "record.h"

#include <signal.h>

#if defined(__has_feature)
#define HAS_FEATURE(x) __has_feature(x)
#else
#define HAS_FEATURE(x) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || HAS_FEATURE(address_sanitizer)
#define UNDER_ASAN 1
#else
#define UNDER_ASAN 0
#endif
#if defined(__SANITIZE_THREAD__) || HAS_FEATURE(thread_sanitizer)
#define UNDER_TSAN 1
#else
#define UNDER_TSAN 0
#endif

#define COMMON                                                         \
    "exitcode=99:abort_on_error=0:halt_on_error=1:print_stacktrace=1:" \
    "handle_segv=0:handle_sigbus=0:handle_abort=0:handle_sigill=0:handle_sigfpe=0"
#define ASKED_BY_A_SANITIZER __attribute__((visibility("default"), used, no_instrument_function))

ASKED_BY_A_SANITIZER const char *__asan_default_options(void);
ASKED_BY_A_SANITIZER const char *__tsan_default_options(void);
ASKED_BY_A_SANITIZER const char *__ubsan_default_options(void);
ASKED_BY_A_SANITIZER const char *__lsan_default_options(void);

const char *__asan_default_options(void)
{
    return COMMON ":detect_leaks=1:detect_stack_use_after_return=0:check_initialization_order=1";
}
const char *__tsan_default_options(void)
{
    return COMMON ":second_deadlock_stack=1:history_size=4";
}
const char *__ubsan_default_options(void)
{
    return COMMON;
}
const char *__lsan_default_options(void)
{
    return "exitcode=99";
}

__attribute__((weak)) int __lsan_do_recoverable_leak_check(void);

int t_leak_check(void)
{
    return __lsan_do_recoverable_leak_check != NULL ? __lsan_do_recoverable_leak_check() : 0;
}

bool t_under_valgrind(void)
{
    const char *preload = getenv("LD_PRELOAD");
    return preload != NULL && strstr(preload, "vgpreload") != NULL;
}

unsigned t_slowdown(void)
{
    return t_under_valgrind() ? 30 : UNDER_TSAN ? 8 : UNDER_ASAN ? 3 : 1;
}

int t_ask_signal(void)
{
    return UNDER_TSAN ? SIGSYS : SIGRTMIN + 5;
}

/* Less than the slowdown: t_scaled has taken its part already. */
unsigned t_patience(void)
{
    return t_under_valgrind() ? 10 : UNDER_TSAN ? 3 : UNDER_ASAN ? 2 : 1;
}

uint64_t t_scaled(uint64_t full)
{
    uint64_t part = full / t_slowdown();
    if (t_is_quick)
        part /= 10;
    return part > 0 ? part : 1;
}
