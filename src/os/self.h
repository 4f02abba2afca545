/*
 * self.h - the runtime's only thread-local: one pointer to the current machine.
 *
 * A task may suspend on one thread and resume on another. Compilers do not know this: they keep the
 * *address* of a thread-local in a register across calls, in every TLS model, and would then read
 * the old thread's slot (measured: stale in 999 of 999 migrations). So only self.c accesses the
 * slot in C. All other code reads it by a volatile asm that names the thread register. Two such
 * reads are never merged, and no read moves across another volatile asm (such as the switch) or an
 * opaque call. The address of the slot is never in a register. The *offset* from the thread
 * register may be kept, because it is the same in every thread: its load is a plain asm that the
 * compiler may hoist.
 *
 * The model is initial-exec: one GOT load (the linker turns it into a constant in executables) and
 * one load through the thread register, no call. It takes eight bytes of the static TLS block,
 * which dlopen always has in reserve.
 *
 * Rejected: __thread with a memory clobber (does not help), a noinline accessor everywhere (2 ns
 *           instead of 0.4 for a load; kept as the fallback for other architectures), rseq's CPU
 *           number (identifies the CPU, not the thread).
 *
 * Under sim all threads are coroutines of one OS thread; the slot is saved and set at each switch.
 *
 * Next to the slot is a count of the runtime's locks that the thread holds (os/lock.h,
 * chan/chan_lock.h). The signal handler that stops threads checks it (sched/turns.c): a thread that
 * holds a runtime lock is never stopped. bz_self_hold() comes before the lock and bz_self_release()
 * after the unlock, on the same thread. So the count may be too high for a moment, but never too
 * low. One instruction each.
 */
#ifndef BZ_OS_SELF_H
#define BZ_OS_SELF_H

#include <stdint.h>

#include "base/compiler.h"

/* Out-of-line accessors: for other architectures, and for tests that compare the fast form with
 * them. */
void *bz_self_get_slow(void);
void bz_self_set_slow(void *self);
void bz_self_hold_slow(int by);

/* Get the number of runtime locks that the calling thread holds or is about to take; set it, for
 * sim. */
int bz_self_holds(void);
void bz_self_holds_set(int count);

/* The value last set by bz_self_set() on this thread; NULL if it was never called. */
#if defined(BZ_MODEL)

/* All threads of the model checker are one OS thread: a model may tell them apart (fiber_toy.h). */
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
static BZ_ALWAYS_INLINE void *bz_self_get(void)
{
    void *self;
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

#elif defined(__x86_64__) && defined(_WIN32)

/* Two slots of the system in the thread block (windows_self.c): their distance from gs, constant. */
extern uint32_t bz_self_at, bz_self_holds_at;

static BZ_ALWAYS_INLINE void *bz_self_get(void)
{
    void *self;
    __asm__ volatile("movq %%gs:(%1), %0" : "=r"(self) : "r"((uintptr_t)bz_self_at));
    return self;
}
static BZ_ALWAYS_INLINE void bz_self_set(void *self)
{
    __asm__ volatile("movq %0, %%gs:(%1)" : : "r"(self), "r"((uintptr_t)bz_self_at) : "memory");
}
static BZ_ALWAYS_INLINE void bz_self_hold(void)
{
    __asm__ volatile("incq %%gs:(%0)" : : "r"((uintptr_t)bz_self_holds_at) : "memory", "cc");
}
static BZ_ALWAYS_INLINE void bz_self_release(void)
{
    __asm__ volatile("decq %%gs:(%0)" : : "r"((uintptr_t)bz_self_holds_at) : "memory", "cc");
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
