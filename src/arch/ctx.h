/*
 * ctx.h - the contract of the context switch: leave one stack, continue on another.
 *
 * A context is the place where code stopped: stack pointer, frame pointer, address. A switch saves
 * the current context and continues at another, until a later switch returns to the first. It is
 * symmetric: there is no caller and no callee. Any context may switch to any other, on any thread.
 *
 * The post-switch hook. Code that leaves a stack usually has one more step that must not happen
 * while it still runs there. It publishes the task that may now be resumed, puts the stack in a
 * cache, or unlocks a channel. So {hook, argument} pass through the switch in registers, and the
 * *target* calls hook(argument) first, after the left context has been saved completely.
 *   - The hook runs on the target's stack; it must read the current machine again.
 *   - After its publishing store the left context may already run elsewhere, or be freed.
 *   - It does not wait, switch, or touch the left stack.
 *
 * The switch is inline assembly, for the few sites that leave a stack: a wait, a yield, a loop that
 * ends (sched/machine.c). Three other forms were tried (x86_64, ns per switch in a tight loop):
 *   restore and `ret`              12-13   the return predictor expects the old stack's caller
 *   a called function, `jmp *reg`  2.4-3   but every `ret` above it is then off by one: 40 ns in
 *                                          real call depth where the inline form takes 28
 *   inline, `jmp *reg`             1.4-1.7 the form below
 * It lists every register as clobbered and saves none, so the compiler saves only the live
 * values at such a site, which are few. It pushes nothing, so the red zone below the stack
 * pointer of a leaf stays intact. The frame pointer is the exception: compilers do not allow it
 * in the clobber list, so the switch saves it itself, which also serves debuggers.
 *
 * Floating point: rounding mode, flush-to-zero and exception masks belong to the context, as they
 * do to a thread; the sticky status flags do not: they may or may not survive a switch. A switch
 * stores the control words of the left context. On arrival they are compared with those of the
 * target and loaded only if they differ, because a load can cost tens of nanoseconds. The
 * comparison ignores the status flags, or else every inexact division would make the next switch
 * load them. (If a load is cheaper than the comparison, the switch always loads: ctx_x86_64.h.)
 *
 * C++: the exceptions being handled belong to the context as well (eh.h).
 *
 * Unwinding: a stack's bottom frame is the thunk of ctx.c, whose unwind information says "no
 * caller" and whose frame record is two zeros: debuggers, backtrace() and frame-pointer walkers all
 * end there. A parked context is unwound from its three words (tools/gdb/blitz.py does). For a few
 * instructions the registers are already the target's while the code is still that of the left
 * site; both have frame pointers. A fresh stack begins with a record that ends the walk.
 *
 * The header of an architecture provides:
 *   struct bz_fpcw, bz_fpcw_save(), bz_fpcw_restore(mine, theirs)
 *                                            the floating-point control words; theirs are active
 *   bz_fpcw_read(), bz_fpcw_load()           the same as a number, no status bits
 *   bz_ctx_jump(to, &landing)                the switch itself; landing->left is filled in, and
 *                                            *landing goes through it
 *   bz_ctx_jump_last(to, &landing)           the same, saving nothing; does not return
 *   BZ_CTX_FP_BIAS                           from a frame record's address to the frame pointer
 *   BZ_CTX_THUNK                             the first code on a fresh stack: calls start->main
 *                                            (start, hook, arg, left), start being at sp
 *
 * Thread identity: a context may continue on another thread. Nothing here reads thread-local
 * storage; code above must read it again after a switch (docs/architecture.md).
 */
#ifndef BZ_CTX_H
#define BZ_CTX_H

#include <stddef.h>
#include <stdint.h>

#include "arch/eh.h"
#include "arch/notes.h"
#include "base/bz_atomic.h"
#include "base/compiler.h"

struct bz_ctx;
typedef void bz_ctx_hook(void *arg);

/* The values that pass through the switch in registers, from the left context to the target. */
struct bz_ctx_landing {
    bz_ctx_hook *hook; /* NULL: nothing to do */
    void *arg;
    struct bz_ctx *left; /* valid until the hook publishes it; NULL if it ended */
};

#if defined(__x86_64__)
#include "arch/ctx_x86_64.h"
#elif defined(__aarch64__)
#include "arch/ctx_aarch64.h"
#elif defined(__riscv) && __riscv_xlen == 64
#include "arch/ctx_riscv64.h"
#else
#error "blitz has no context switch for this architecture: see arch/ctx.h for what one owes"
#endif

/* A stopped context. The switch that leaves it writes it; the switch that resumes it reads it. If
 * they run on different threads, the code that passes the context orders the two. The assembly
 * depends on these offsets. */
struct bz_ctx {
    void *sp;
    void *fp;
    void *pc;
    struct bz_fpcw fpcw;
    struct bz_eh eh; /* valid while it is parked; zeros before the first switch away */
    struct bz_notes notes;
};
_Static_assert(offsetof(struct bz_ctx, sp) == 0, "the assembly says 0");
_Static_assert(offsetof(struct bz_ctx, fp) == 8, "the assembly says 8");
_Static_assert(offsetof(struct bz_ctx, pc) == 16, "the assembly says 16");

/*
 * Make `c` a context that begins with entry(arg) on the stack [low, top). It starts with the
 * control words `fpcw`. A pool of stacks passes those of its creator, as threads inherit theirs,
 * not those of the current user of a stack.
 * Needs:  low 16-aligned; top too; at least 1 KiB between them (none of it is read before use).
 *         entry never returns (it leaves by bz_ctx_leave); if it does, the process aborts.
 * Owns:   the stack, until bz_ctx_fini; writes a few words at its top now.
 */
void bz_ctx_init(struct bz_ctx *c, void *low, void *top, void (*entry)(void *arg), void *arg,
                 uint64_t fpcw);

/* Call before the first switch to `c`: it starts with the caller's exceptions (eh.h), as a call
 * would. */
void bz_ctx_inherit(struct bz_ctx *c);

/* Make `c` the context of the calling thread itself, on its own stack. */
void bz_ctx_adopt(struct bz_ctx *c);

/* Destroy a context that has ended or was never entered. Its stack is not in use. */
void bz_ctx_fini(struct bz_ctx *c);

/* After a switch in a program with C++: save the exceptions of `left` (NULL: it has ended), load
 * ours. */
BZ_COLD void bz_ctx_exchange_eh(struct bz_ctx *me, struct bz_ctx *left);

/* After a switch: restore the control words, which are still those of the left context, and run its
 * hook. */
static BZ_ALWAYS_INLINE void bz_ctx_landed(struct bz_ctx *me, const struct bz_ctx_landing *l)
{
    bz_note_landed(&me->notes, l->left != NULL ? &l->left->notes : NULL);
    bz_fpcw_restore(&me->fpcw, l->left != NULL ? &l->left->fpcw : NULL);
    if (bz_eh_is_used())
        bz_ctx_exchange_eh(me, l->left);
    if (l->hook != NULL)
        l->hook(l->arg);
}

/*
 * Save the current context in `from` and continue at `to`, which calls hook(arg) first. Returns
 * when another context switches to `from`, after calling the hook of that switch.
 */
static BZ_ALWAYS_INLINE void bz_ctx_switch(struct bz_ctx *from, struct bz_ctx *to,
                                           bz_ctx_hook *hook, void *arg)
{
    struct bz_ctx_landing l = {hook, arg, from};
    bz_fpcw_save(&from->fpcw);
    bz_note_leaving(&from->notes, &to->notes);
    bz_ctx_jump(to, &l);
    bz_ctx_landed(from, &l);
}

/* The same, but this context ends. Its stack may be reused as soon as the hook runs. */
BZ_NORETURN static BZ_ALWAYS_INLINE void bz_ctx_leave(struct bz_ctx *to, bz_ctx_hook *hook,
                                                      void *arg)
{
    struct bz_ctx_landing l = {hook, arg, NULL};
    bz_note_leaving(NULL, &to->notes);
    bz_ctx_jump_last(to, &l);
}

#endif
