/*
 * self.h - who am I: the runtime's one thread-local, one pointer.
 *
 * A task may suspend on one thread and resume on another. Compilers know nothing of that: they keep
 * the *address* of a thread-local in a register across calls, in every TLS model, and so would read
 * the old thread's slot (measured: stale in 999 of 999 migrations). So the slot has no C access at all
 * outside self.c. It is read by a volatile asm that names the thread register itself: two reads are
 * never merged, none is moved across another volatile asm (the switch is one) or an opaque call, and
 * no address of the slot ever exists. What may be kept is its *offset* from the thread register,
 * which is the same in every thread: that load is a plain asm the compiler may hoist.
 *
 * The model is initial-exec: one GOT load (the linker turns it into a constant in executables) and
 * one load through the thread register, no call. It takes eight bytes of the static TLS block, which
 * dlopen always has to spare.
 *
 * Rejected: __thread with a memory clobber (does not help), a noinline accessor everywhere (2 ns
 * where a load is 0.4; kept as the fallback for architectures without a paragraph below), rseq's CPU
 * number (says where, not who).
 *
 * Under sim all threads are coroutines of one OS thread; the slot is saved and set at each switch.
 *
 * Beside it lies a count of the runtime's locks that the thread holds (os/lock.h, chan/gate.h). A signal
 * handler that is about to stop the thread looks at it (sched/turns.c): a thread that holds a lock of ours is
 * never stopped. bz_self_hold() comes before the lock is taken and bz_self_release() after it is dropped, on
 * the same thread, so the count may be too high for a moment and never too low. One instruction each.
 */
#ifndef BZ_OS_SELF_H
#define BZ_OS_SELF_H

#include <stdint.h>

#include "base/compiler.h"

/* By a call that cannot be inlined: for architectures without a paragraph below, and so that tests
 * can hold the fast form against it. */
void *bz_self_get_slow(void);
void bz_self_set_slow(void *self);
void bz_self_hold_slow(int by);

/* How many locks of ours the calling thread holds, or is about to take; and set it, for sim. */
int bz_self_holds(void);
void bz_self_holds_set(int count);

/* What bz_self_set() last set on this thread; NULL on a thread where it was never called. */
#if defined(BZ_MODEL)

/* All threads of the model checker are one of the system's: a model may tell them apart (fiber_toy.h). */
static inline void *bz_self_get(void)
{
    return bz_self_get_slow();
}
static inline void bz_self_set(void *self)
{
    bz_self_set_slow(self);
}
static inline void bz_self_hold(void) {}
static inline void bz_self_release(void) {}

#elif defined(__x86_64__) && defined(__linux__) && !defined(__ILP32__)

static BZ_ALWAYS_INLINE uintptr_t bz_self_offset_(void)
{
    uintptr_t offset;
    __asm__("movq bz_self_slot@gottpoff(%%rip), %0" : "=r"(offset));
    return offset;
}
/* How not to: two such reads may be merged, over a migration as well. */
static BZ_ALWAYS_INLINE void *bz_self_kept_(void)
{
    void *self;
    __asm__("movq %%fs:(%1), %0" : "=r"(self) : "r"(bz_self_offset_()));
    return self;
}
static BZ_ALWAYS_INLINE void *bz_self_get(void)
{
    void *self = bz_self_kept_(); /* a dead load, which compilers drop, unless the bug is planted */
    if (!BZ_BROKEN(46))
        __asm__ volatile("movq %%fs:(%1), %0" : "=r"(self) : "r"(bz_self_offset_()));
    return self;
}
static BZ_ALWAYS_INLINE void bz_self_set(void *self)
{
    __asm__ volatile("movq %0, %%fs:(%1)" : : "r"(self), "r"(bz_self_offset_()) : "memory");
}

static BZ_ALWAYS_INLINE uintptr_t bz_self_holds_offset_(void)
{
    uintptr_t offset;
    __asm__("movq bz_self_holds_slot@gottpoff(%%rip), %0" : "=r"(offset));
    return offset;
}
static BZ_ALWAYS_INLINE void bz_self_hold(void)
{
    __asm__ volatile("incl %%fs:(%0)" : : "r"(bz_self_holds_offset_()) : "memory", "cc");
}
static BZ_ALWAYS_INLINE void bz_self_release(void)
{
    __asm__ volatile("decl %%fs:(%0)" : : "r"(bz_self_holds_offset_()) : "memory", "cc");
}

#elif defined(__aarch64__) && defined(__linux__)

#define BZ_SELF_HOLDS_BY_CALL 1

static BZ_ALWAYS_INLINE uintptr_t bz_self_offset_(void)
{
    uintptr_t offset;
    __asm__("adrp %0, :gottprel:bz_self_slot\n\tldr %0, [%0, #:gottprel_lo12:bz_self_slot]"
            : "=r"(offset));
    return offset;
}
static BZ_ALWAYS_INLINE void *bz_self_get(void)
{
    void *self;
    __asm__ volatile("mrs %0, tpidr_el0\n\tldr %0, [%0, %1]"
                     : "=&r"(self)
                     : "r"(bz_self_offset_()));
    return self;
}
static BZ_ALWAYS_INLINE void bz_self_set(void *self)
{
    uintptr_t scratch;
    __asm__ volatile("mrs %0, tpidr_el0\n\tstr %1, [%0, %2]"
                     : "=&r"(scratch)
                     : "r"(self), "r"(bz_self_offset_())
                     : "memory");
}

#elif defined(__riscv) && __riscv_xlen == 64 && defined(__linux__)

#define BZ_SELF_HOLDS_BY_CALL 1

static BZ_ALWAYS_INLINE uintptr_t bz_self_offset_(void)
{
    uintptr_t offset;
    __asm__("la.tls.ie %0, bz_self_slot" : "=r"(offset));
    return offset;
}
static BZ_ALWAYS_INLINE void *bz_self_get(void)
{
    void *self;
    __asm__ volatile("add %0, tp, %1\n\tld %0, 0(%0)" : "=&r"(self) : "r"(bz_self_offset_()));
    return self;
}
static BZ_ALWAYS_INLINE void bz_self_set(void *self)
{
    uintptr_t scratch;
    __asm__ volatile("add %0, tp, %2\n\tsd %1, 0(%0)"
                     : "=&r"(scratch)
                     : "r"(self), "r"(bz_self_offset_())
                     : "memory");
}

#else

#define BZ_SELF_HOLDS_BY_CALL 1

static inline void *bz_self_get(void)
{
    return bz_self_get_slow();
}
static inline void bz_self_set(void *self)
{
    bz_self_set_slow(self);
}

#endif

#if defined(BZ_SELF_HOLDS_BY_CALL)
static inline void bz_self_hold(void)
{
    bz_self_hold_slow(1);
}
static inline void bz_self_release(void)
{
    bz_self_hold_slow(-1);
}
#endif

#endif
