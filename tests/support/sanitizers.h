/*
 * sanitizers.h - skip tests that cannot work under a sanitizer or an emulator, with the reason.
 */
#ifndef T_SANITIZERS_H
#define T_SANITIZERS_H

#include "harness.h"
#if !defined(_WIN32)
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>
#endif

#if defined(__SANITIZE_THREAD__)
#define T_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define T_TSAN 1
#endif
#endif
#if !defined(T_TSAN)
#define T_TSAN 0
#endif
#if defined(__SANITIZE_ADDRESS__)
#define T_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define T_ASAN 1
#endif
#endif
#if !defined(T_ASAN)
#define T_ASAN 0
#endif

/* ThreadSanitizer holds a signal back until the thread enters a function it intercepts, and the
 * system call a sleep word makes is none: the handler would not run during the sleep. */
static inline void t_skip_if_signals_are_deferred(void)
{
    if (T_TSAN)
        t_skip("ThreadSanitizer defers signals for a thread that sleeps on a word");
}

/* Sanitizers map shadow memory and thread states when they like: counting mappings is vain. */
static inline void t_skip_if_mappings_are_not_ours(void)
{
    if (T_TSAN || T_ASAN)
        t_skip("a sanitizer's own mappings come and go");
}

#if defined(_WIN32)

/* No kernel of Linux, no emulator of one. */
static inline void t_skip_if_emulated(const char *what)
{
    (void)what;
}
static inline void t_skip_if_memory_is_hidden(void) {}

#else

/* qemu-user says yes to advice that does not exist; a kernel never does. */
static inline bool t_is_emulated(void)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    void *p = mmap(NULL, page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    bool says_yes = p != MAP_FAILED && madvise(p, page, 9999) == 0;
    munmap(p, page);
    return says_yes;
}

static inline void t_skip_if_emulated(const char *what)
{
    if (t_is_emulated())
        t_skip("an emulator %s", what);
}

/* qemu-user has no process_vm_readv, so a dump cannot look at tasks. */
static inline void t_skip_if_memory_is_hidden(void)
{
    char from = 0, to;
    struct iovec at = {&from, 1}, into = {&to, 1};
    if (t_is_emulated() && process_vm_readv(getpid(), &into, 1, &at, 1, 0) != 1)
        t_skip("an emulator does not copy memory of a process");
}

#endif

/* valgrind plays the kernel: it keeps the list of mappings and their number, and checks the memory
 * that a system call names although the kernel does not touch it. */
static inline void t_skip_under_valgrind(const char *what)
{
    if (t_under_valgrind())
        t_skip("valgrind %s", what);
}

#endif
