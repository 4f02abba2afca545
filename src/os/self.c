/*
 * self.c - the slot of self.h, and the accessors for architectures without an assembly of their own.
 *
 * The accessors are out of line and opaque (the empty asm keeps the compiler from deducing that two
 * calls return the same, and from cloning the body into callers), so that the address of the slot
 * is computed afresh in each call and dies with it.
 *
 * I1  Nothing but this file and the asm of self.h touches the slot, so no address of it is cached.
 */
#include "os/self.h"

/* The asm of self.h names it, which link-time optimization cannot see: hence `used`, and gcc's
 * externally_visible. Hidden: each copy of blitz in a process has its own. */
#if defined(__clang__)
#define SLOT_ATTRIBUTES tls_model("initial-exec"), visibility("hidden"), used
#else
#define SLOT_ATTRIBUTES tls_model("initial-exec"), visibility("hidden"), used, externally_visible
#endif
extern _Thread_local void *bz_self_slot;
__attribute__((SLOT_ATTRIBUTES)) _Thread_local void *bz_self_slot;

/* The threads of a simulation share one slot, which they save and restore as they take turns. For
 * ThreadSanitizer they are several threads. */
#if defined(__clang__)
#define UNWATCHED __attribute__((no_sanitize("thread")))
#else
#define UNWATCHED
#endif

extern _Thread_local int bz_self_holds_slot;
__attribute__((SLOT_ATTRIBUTES)) _Thread_local int bz_self_holds_slot;

/* The same slot by the name under which the inline code of blitz/fork.h reads it. */
extern _Thread_local void *blitz_self_;
__attribute__((tls_model("initial-exec"), visibility("default"),
               alias("bz_self_slot"))) extern _Thread_local void *blitz_self_;

BZ_NOINLINE void *bz_self_get_slow(void)
{
    __asm__ volatile("");
    return bz_self_slot;
}

BZ_NOINLINE void bz_self_set_slow(void *self)
{
    __asm__ volatile("");
    bz_self_slot = self;
}

UNWATCHED BZ_NOINLINE void bz_self_hold_slow(int by)
{
    __asm__ volatile("");
    bz_self_holds_slot += by;
}

UNWATCHED BZ_NOINLINE int bz_self_holds(void)
{
    __asm__ volatile("" ::: "memory");
    return bz_self_holds_slot;
}

UNWATCHED BZ_NOINLINE void bz_self_holds_set(int count)
{
    __asm__ volatile("");
    bz_self_holds_slot = count;
}
