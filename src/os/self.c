/*
 * self.c - the slot of self.h, and the accessors for architectures without assembly in self.h.
 *
 * The accessors are out of line and opaque, so that each call computes the address of the slot
 * again and no caller keeps it. The empty asm keeps the compiler from merging two calls, and from
 * cloning the body into callers.
 *
 * I1  Only this file and the asm of self.h access the slot, so no code caches its address.
 */
#include "os/self.h"

/* The asm of self.h names the slot, which link-time optimization cannot see: hence `used`, and
 * gcc's externally_visible. Hidden visibility: each copy of blitz in a process has its own slot. */
#if defined(__clang__)
#define SLOT_ATTRIBUTES tls_model("initial-exec"), visibility("hidden"), used
#else
#define SLOT_ATTRIBUTES tls_model("initial-exec"), visibility("hidden"), used, externally_visible
#endif
extern _Thread_local void *bz_self_slot;
__attribute__((SLOT_ATTRIBUTES)) _Thread_local void *bz_self_slot;

/* The threads of a simulation share one slot, which each switch saves and restores. For
 * ThreadSanitizer they are several threads. */
#if defined(__clang__)
#define UNWATCHED __attribute__((no_sanitize("thread")))
#else
#define UNWATCHED
#endif

extern _Thread_local int bz_self_holds_slot;
__attribute__((SLOT_ATTRIBUTES)) _Thread_local int bz_self_holds_slot;

/* The same slot under the name used by the inline code of blitz/fork.h. */
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
