/*
 * unusual.h - one word of the process that is 0 while every fast path may be taken.
 *
 * A fast path is for the usual case: no runtime is traced, none is of the plain form, stacks are not short, no thread
 * walks over the tasks. Each of these conditions is rare and has a slow path that checks it exactly. So the fast paths share one
 * counter: it is the number of such conditions that hold now, in all runtimes of the process. If it is not 0,
 * take the slow path. This costs one load and one branch, however many conditions there are.
 *
 * [U] end: unusual release -> is_usual: unusual acquire   what was done under the condition comes before the fast path
 *
 * A begin orders nothing. If the fast path must not overlap with the condition, the thread that begins it pays a
 * barrier and waits for brief sections: queue/retake.h.
 */
#ifndef BZ_UNUSUAL_H
#define BZ_UNUSUAL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bz_atomic.h"
#include "base/compiler.h"

extern BZ_HIDDEN bz_atomic(uint32_t) bz_unusual;

static inline void bz_unusual_begin(void)
{
    bz_fetch_add_relaxed(&bz_unusual, 1); /* relaxed: a hint, or a barrier follows */
}

static inline void bz_unusual_end(void)
{
    bz_fetch_sub_release(&bz_unusual, 1); /* [U] */
}

/* True if the fast paths may be taken. */
static BZ_ALWAYS_INLINE bool bz_is_usual(void)
{
    return BZ_LIKELY(bz_equals_acquire(&bz_unusual, 0)); /* [U] */
}

#endif
