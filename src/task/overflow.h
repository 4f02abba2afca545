/*
 * overflow.h - a stack overflow says whose it was. See os/segv.h.
 *
 *     blitz: stack overflow in task 12 "parser": address 0x7f21c80fefe8 is in the guard of its stack,
 *     256 KiB at 0x7f21c80ff000 (stack_bytes and BLITZ_STACK set the size)
 *     ./app(parse_list+0x1d)[0x55d0...]
 *     ...
 *     Segmentation fault (core dumped)
 */
#ifndef BZ_OVERFLOW_H
#define BZ_OVERFLOW_H

#include "task/stack.h"

/*
 * From now on a fault in a guard of this pool is explained before the process dies of it. Any
 * number of pools may be watched.
 * Returns: 0, -EALREADY (it is watched), -EBUSY (another copy of blitz in this process watches).
 */
BZ_MUST_USE int bz_overflow_watch(struct bz_stack_pool *p);

/* In a signal handler: write which task this thread runs, and return true. */
typedef bool bz_overflow_teller(char *text, size_t room);

/* From now on stacks without a name are told by `fn`. */
void bz_overflow_tell(bz_overflow_teller *fn);

/* Before the pool ends. With the last one our handler goes. */
void bz_overflow_unwatch(struct bz_stack_pool *p);

#endif
