/*
 * guard.h - call a function such that a signal handler can make the call return.
 *
 * bz_guard_call saves the registers that a function must preserve on the stack, stores the stack pointer in the guard, and calls.
 * A handler of a synchronous signal sets the interrupted context to bz_guard_landing() and guard->sp, and returns. The thread
 * then goes on behind the call: the registers are restored from the stack, and bz_guard_call returns. Its result means
 * nothing then; the handler leaves word elsewhere. The frames in between are gone, without any clean-up.
 *
 * The guarded function may suspend and go on on another thread: all that is saved is on its stack.
 *
 * After a landing the caller calls bz_guard_landed() first. It puts right what else the skipped frames may have left: the
 * floating-point state, the C++ exceptions that were being handled, the records of sanitizers.
 *
 *   ASan   the skipped frames have poisoned the stack: it is unpoisoned.
 *   TSan   its record of calls is not unwound, and would overflow after enough landings. So a guarded call runs on a TSan
 *          fiber of its own, which the stack keeps as its fiber meanwhile. It is destroyed behind the call.
 *
 * The cost is 20 instructions a call on x86_64, besides the call itself.
 *
 * Rejected: sigsetjmp (it must not be called from a function that inlines, and saves the mask by a system call);
 *           __builtin_setjmp (compilers disagree about the registers that live across it).
 *
 * An architecture provides BZ_GUARD_CODE: the code of bz_guard_enter, with the label bz_guard_land behind the call.
 */
#ifndef BZ_GUARD_H
#define BZ_GUARD_H

#include "arch/ctx.h"

typedef int bz_guard_fn(void *a, const void *b);

struct bz_guard {
    void *sp;             /* first: the assembly says 0. Written by bz_guard_call */
    uint64_t fpcw;        /* control words to load after a landing; set by the caller */
    struct bz_ctx *stack; /* the context of the stack that the call runs on; set by the caller */
#if BZ_TSAN
    void *fiber; /* of the stack, without the call */
#endif
};

/* Return fn(a, b), or anything if a handler has made it land. */
int bz_guard_call(struct bz_guard *g, bz_guard_fn *fn, void *a, const void *b);

/* The address at which a landing begins; 0: this architecture has none. It is also the return address of the call. */
uintptr_t bz_guard_landing(void);

/* Behind a call that has landed: put right the state of the thread and of the sanitizers. `sp`: of the fault. */
void bz_guard_landed(struct bz_guard *g, uintptr_t sp);

#endif
