/*
 * windows_self.c - the slots of self.h on Windows.
 *
 * Two thread-local slots of the system, taken when the program or the DLL is loaded, before any of its threads runs code of ours. The
 * first 64 slots are in the thread block itself, at gs:0x1480, and the asm of self.h reads only these. A program starts with all of
 * them, so only a program that has used up 64 slots before it loads blitz as a DLL is refused.
 *
 * The value of a slot is 0 in every thread at first.
 *
 * I1  The offsets are constant once the constructor has run.
 */
#include "os/self.h"

#include <windows.h>

#include "base/check.h"

enum { SLOTS_AT = 0x1480, SLOTS_MAX = 64 };

uint32_t bz_self_at, bz_self_holds_at;

static uint32_t take_slot(void)
{
    DWORD slot = TlsAlloc();
    BZ_CHECK(slot < SLOTS_MAX, "thread-local slot %lu: the first %d are in use", slot, SLOTS_MAX);
    return SLOTS_AT + (uint32_t)slot * sizeof(void *);
}

__attribute__((constructor(101))) static void take_slots(void)
{
    bz_self_at = take_slot(); /* I1 */
    bz_self_holds_at = take_slot();
}

__attribute__((destructor(101))) static void give_slots(void)
{
    TlsFree((bz_self_at - SLOTS_AT) / sizeof(void *));
    TlsFree((bz_self_holds_at - SLOTS_AT) / sizeof(void *));
}

static DWORD slot_of(uint32_t at)
{
    return (at - SLOTS_AT) / sizeof(void *);
}

BZ_NOINLINE void *bz_self_get_slow(void)
{
    return TlsGetValue(slot_of(bz_self_at));
}

BZ_NOINLINE void bz_self_set_slow(void *self)
{
    TlsSetValue(slot_of(bz_self_at), self);
}

BZ_NOINLINE void bz_self_hold_slow(int by)
{
    bz_self_holds_set(bz_self_holds() + by);
}

BZ_NOINLINE int bz_self_holds(void)
{
    return (int)(intptr_t)TlsGetValue(slot_of(bz_self_holds_at));
}

BZ_NOINLINE void bz_self_holds_set(int count)
{
    TlsSetValue(slot_of(bz_self_holds_at), (void *)(intptr_t)count);
}
