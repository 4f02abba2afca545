/*
 * scrap.h - one small block that a machine keeps, for what is made and ended all the time.
 *
 * A oneshot lives for one answer, and half of what it cost was the C library's malloc and free, though
 * most often the block that is asked for is the one that was just given back on the same thread. So a
 * machine keeps the last such block: asking for it and giving it back are a load, a compare and a
 * store. Every block of at most BZ_SCRAP_BYTES is that large, so any of them will do.
 *
 * The block is the C library's as before, and the next owner's from the moment it is taken; it goes
 * with the machine (proc.c). Plain threads have no machine, and test builds keep nothing: there a
 * block that is used after its end shall be found.
 *
 * Rejected: a list of them (a second block is rare here, and would need a bound), and slabs (base/slab.h
 * has a lock or a runtime behind it, and a oneshot may outlive either).
 *
 * I1  machine->scrap is touched by the machine's thread alone, and by who frees the machine.
 */
#ifndef BZ_SCRAP_H
#define BZ_SCRAP_H

#include "base/alloc.h"
#include "sched/sched.h"

#if defined(BZ_PLAIN) || defined(BZ_WATCH) || defined(BZ_MODEL)
enum { BZ_SCRAP_IS_KEPT = 0 };
#else
enum { BZ_SCRAP_IS_KEPT = 1 };
#endif

/* NULL if there is no memory. Aligned for anything. Any thread. */
static BZ_ALWAYS_INLINE void *bz_scrap_take(size_t bytes)
{
    struct bz_machine *m = BZ_SCRAP_IS_KEPT ? bz_machine_self() : NULL;
    if (m != NULL && m->scrap != NULL && bytes <= BZ_SCRAP_BYTES) {
        void *block = m->scrap;
        m->scrap = NULL; /* I1 */
        return block;
    }
    if (BZ_SCRAP_IS_KEPT && bytes < BZ_SCRAP_BYTES)
        bytes = BZ_SCRAP_BYTES;
    return bz_alloc(&bz_allocator_libc, bytes, _Alignof(max_align_t));
}

/* What bz_scrap_take() gave, with the same number. Any thread. */
static BZ_ALWAYS_INLINE void bz_scrap_give(void *block, size_t bytes)
{
    struct bz_machine *m = BZ_SCRAP_IS_KEPT ? bz_machine_self() : NULL;
    if (m != NULL && m->scrap == NULL && bytes <= BZ_SCRAP_BYTES)
        m->scrap = block; /* I1 */
    else
        bz_free(&bz_allocator_libc, block, bytes);
}

#endif
