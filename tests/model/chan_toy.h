/*
 * chan_toy.h - what channels need of the runtime, for threads of the model checker (wait_toy.h), or for
 * fibers, if fiber_toy.h was included before.
 */
#ifndef MODEL_CHAN_TOY_H
#define MODEL_CHAN_TOY_H

#if !defined(MODEL_FIBER_TOY_H)
#include "wait_toy.h"
#endif

#include "base/alloc.h"
#include "chan/chan.h"
#include "wait/waker.h"

const struct bz_os *bz_os_here(void)
{
    return &m_os;
}

/* Memory that is watched. */
static void *toy_alloc(void *ctx, size_t size, size_t align)
{
    (void)ctx;
    (void)align;
    return m_alloc(size);
}

static void toy_free(void *ctx, void *memory, size_t size)
{
    (void)ctx;
    (void)size;
    m_free(memory);
}

const blitz_allocator bz_allocator_libc = {toy_alloc, toy_free, NULL};

/* A deadline that may pass at any moment. */
#define TOY_SOON (BLITZ_FOREVER - 1)

#endif
