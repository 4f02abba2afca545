/*
 * small_block.h - one small block that a machine keeps, for objects with short lives.
 *
 * A oneshot lives for one answer, and half of its cost was the C library's malloc and free. Yet most often
 * the requested block is the one that was just freed on the same thread. So a
 * machine keeps the last such block: taking and returning it are a load, a compare and a
 * store. Every block of at most BZ_SMALL_BLOCK_BYTES has that size, so any of them will do.
 *
 * The block still comes from the C library, and belongs to the next owner from the moment it is taken. It is freed
 * with the machine (proc.c). Plain threads have no machine. Test builds keep no block, so that
 * uses of a freed block are found.
 *
 * Rejected: a list of them (a second block is rare here, and would need a bound), and slabs (base/slab.h
 * has a lock or a runtime behind it, and a oneshot may outlive either).
 *
 * I1  machine->small_block is touched by the machine's thread alone, and by the thread that frees the machine.
 */
#ifndef BZ_SCRAP_H
#define BZ_SCRAP_H

#include "base/alloc.h"
#include "proc/state.h"

#if defined(BZ_PLAIN) || defined(BZ_WATCH) || defined(BZ_MODEL)
enum { BZ_SMALL_BLOCK_IS_KEPT = 0 };
#else
enum { BZ_SMALL_BLOCK_IS_KEPT = 1 };
#endif

/* Take a block; NULL if there is no memory. Aligned for any type. Any thread. */
static BZ_ALWAYS_INLINE void *bz_small_block_take(size_t bytes)
{
    struct bz_machine *m = BZ_SMALL_BLOCK_IS_KEPT ? bz_machine_self() : NULL;
    if (m != NULL && m->small_block != NULL && bytes <= BZ_SMALL_BLOCK_BYTES) {
        void *block = m->small_block;
        m->small_block = NULL; /* I1 */
        return block;
    }
    if (BZ_SMALL_BLOCK_IS_KEPT && bytes < BZ_SMALL_BLOCK_BYTES)
        bytes = BZ_SMALL_BLOCK_BYTES;
    return bz_alloc(&bz_allocator_libc, bytes, _Alignof(max_align_t));
}

/* Return a block of bz_small_block_take(), with the same size. Any thread. */
static BZ_ALWAYS_INLINE void bz_small_block_give(void *block, size_t bytes)
{
    struct bz_machine *m = BZ_SMALL_BLOCK_IS_KEPT ? bz_machine_self() : NULL;
    if (m != NULL && m->small_block == NULL && bytes <= BZ_SMALL_BLOCK_BYTES)
        m->small_block = block; /* I1 */
    else
        bz_free(&bz_allocator_libc, block, bytes);
}

#endif
