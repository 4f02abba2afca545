/*
 * frames.h - backtraces of parked stacks.
 *
 * A parked context is three words: stack pointer, frame pointer, address. From there the frame
 * records lead to the callers, as long as the code keeps a frame pointer. Our code does in every
 * build. Code without a frame pointer ends the walk. The blitz function that it called is still
 * shown with its return address, so there is always at least the place where a task waits.
 *
 * The stack may be resumed, freed or unmapped during the walk. So every step is a copy that may
 * fail (os/look.h), stays between the stack pointer and the top, and goes upward only. After the
 * walk the three words must be unchanged.
 */
#ifndef BZ_FRAMES_H
#define BZ_FRAMES_H

#include <stdint.h>

#include "task/stack.h"

enum { BZ_FRAMES_MAX = 24 };

/*
 * Fill pc[] with the address at which the context parked on `s` will continue, and the return
 * addresses of its callers, innermost first. `s` may already be freed. Any thread.
 * Returns: the number of addresses; 0: it changed meanwhile, or cannot be read.
 */
unsigned bz_frames_walk(const struct bz_stack *s, uintptr_t pc[BZ_FRAMES_MAX]);

#endif
