/*
 * overflow.h - name the task of a stack overflow. See os/segv.h.
 *
 *     blitz: stack overflow in task 12 "parser": address 0x7f21c80fefe8 is in the guard of its
 *     stack,
 *     256 KiB at 0x7f21c80ff000 (stack_bytes and BLITZ_STACK set the size)
 *     ./app(parse_list+0x1d)[0x55d0...]
 *     ...
 *     Segmentation fault (core dumped)
 */
#ifndef BZ_OVERFLOW_H
#define BZ_OVERFLOW_H

#include "os/segv.h"
#include "task/stack.h"

/*
 * Explain faults in the guards of this pool from now on, before the process ends. Any number of
 * pools may be watched.
 * Returns: 0, -EALREADY (it is watched), -EBUSY (another copy of blitz in this process watches).
 */
BZ_MUST_USE int bz_overflow_watch(struct bz_stack_pool *p);

/* In a signal handler: write the name of the task that this thread runs, and return true. */
typedef bool bz_overflow_teller(char *text, size_t room);

/* Use `fn` to name stacks without a name from now on. */
void bz_overflow_tell(bz_overflow_teller *fn);

/* bz_segv_trap() and bz_segv_untrap(), under the lock of the watched pools. */
BZ_MUST_USE int bz_overflow_trap(bz_segv_trap_fn *trap);
void bz_overflow_untrap(void);

/* Call before the pool is destroyed. The last call removes our handler. */
void bz_overflow_unwatch(struct bz_stack_pool *p);

#endif
