/*
 * frames.h - who called whom on a stack that nobody stands on.
 *
 * A parked context is three words: stack pointer, frame pointer, address. From there the frame
 * records lead to the callers, one after the other, as far as the code in between keeps a frame
 * pointer. Ours does, in every build. Code that does not keep one ends the walk: its caller's record
 * is not where ours points. What it called of ours is still shown with the address it called from, so
 * there is always at least the place at which a task waits.
 *
 * The stack may be resumed, given back or unmapped while we look: every step is a copy that can say
 * no (os/look.h), stays between the stack pointer and the top and goes upward only; and when the
 * walk is over the three words must be what they were.
 */
#ifndef BZ_FRAMES_H
#define BZ_FRAMES_H

#include <stdint.h>

#include "task/stack.h"

enum { BZ_FRAMES_MAX = 24 };

/*
 * Fill pc[] with where the context that is parked on `s` goes on, and the return addresses of its
 * callers, innermost first. `s` need not be a stack any more. Any thread.
 * Returns: how many there are; 0: it does not stand still, or cannot be read.
 */
unsigned bz_frames_walk(const struct bz_stack *s, uintptr_t pc[BZ_FRAMES_MAX]);

#endif
