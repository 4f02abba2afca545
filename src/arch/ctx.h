/*
 * ctx.h - leave one stack, go on on another: the contract of the context switch.
 *
 * A context is a place where somebody stopped: stack pointer, frame pointer, address. A switch
 * fills one in and goes on at another, for ever or until somebody switches back. It is symmetric:
 * there is no caller and no callee, any context may go to any other, on whichever thread it is.
 *
 * The post-switch hook. What leaves a stack usually has one more thing to do that must not happen
 * while it still stands there: publish the task that may now be resumed, put the stack in a cache,
 * unlock a channel. So {hook, argument} travel through the switch in registers and the *target*
 * calls hook(argument) as its first act, after everything about the left context has been saved.
 *   - The hook runs on the target's stack; "who am I" must be read afresh in it.
 *   - After its one publishing store what was left may already run elsewhere, or be gone.
 *   - It does not wait, switch, or touch the left stack.
 *
 * The switch is inline assembly, for the few sites that leave a stack: a wait, a yield, a loop that
 * ends (sched/machine.c). Three other forms were tried (x86_64, ns per switch in a tight loop):
 *   restore and `ret`              12-13   the return predictor expects the old stack's caller
 *   a called function, `jmp *reg`  2.4-3   but every `ret` above it is then off by one: 40 ns in
 *                                          real call depth where the inline form takes 28
 *   inline, `jmp *reg`             1.4-1.7 the form below
 * It names every register as clobbered instead of saving any: the compiler then keeps what is live
 * at such a site, which is next to nothing. It pushes nothing, so the red zone below the stack
 * pointer of a leaf stays whole. The frame pointer is the exception: a compiler that keeps one will
 * not have it named, so it is saved by hand, and serves debuggers that way.
 *
 * Floating point: rounding mode, flush-to-zero and exception masks belong to the context, as they
 * do to a thread; the sticky status flags do not: they may or may not survive a switch. The control
 * words are stored when a context is left, and on arrival compared with those of the context one came
 * from and loaded only if they differ, because loading can cost tens of nanoseconds; the status flags
 * are masked out of the comparison, or else every inexact division would make the next switch load
 * them. (Where loading is cheaper than looking, it is done without: ctx_x86_64.h.)
 *
 * C++: the exceptions that are being handled belong to the context as well (eh.h).
 *
 * Unwinding: a stack's bottom frame is the thunk of ctx.c, whose unwind information says "no
 * caller" and whose frame record is two zeros: debuggers, backtrace() and frame-pointer walkers all
 * end there. A parked context is unwound from its three words (tools/gdb/blitz.py does). In the few
 * instructions where the registers already are the target's, the code still is that of the site
 * that was left; its frames keep a frame pointer, as those of the others do. A fresh stack begins with a
 * record that ends the walk.
 *
 * What an architecture's header owes:
 *   struct bz_fpcw, bz_fpcw_save(), bz_fpcw_restore(mine, theirs)
 *                                            the floating-point control words; theirs are in force
 *   bz_fpcw_read(), bz_fpcw_load()           the same as a number, no status bits
 *   bz_ctx_jump(to, &landing)                the switch itself; landing->left is filled in, and
 *                                            *landing goes through it
 *   bz_ctx_jump_last(to, &landing)           the same, saving nothing; does not return
 *   BZ_CTX_FP_BIAS                           from a frame record's address to the frame pointer
 *   BZ_CTX_THUNK                             the first code on a fresh stack: calls start->main
 *                                            (start, hook, arg, left), start being at sp
 *
 * Thread identity: a context may go on on another thread than it left. Nothing here reads
 * thread-local storage; what does so above must read it afresh after a switch (docs/architecture.md).
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

/* What goes through the switch in registers, from the leaver to the target. */
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

/* Where somebody stopped. Written by the switch that leaves it, read by the one that goes there;
 * whoever hands a context to another thread orders the two. The assembly knows these offsets. */
struct bz_ctx {
    void *sp;
    void *fp;
    void *pc;
    struct bz_fpcw fpcw;
    struct bz_eh eh; /* while it is parked; zeros until it was left */
    struct bz_notes notes;
};
_Static_assert(offsetof(struct bz_ctx, sp) == 0, "the assembly says 0");
_Static_assert(offsetof(struct bz_ctx, fp) == 8, "the assembly says 8");
_Static_assert(offsetof(struct bz_ctx, pc) == 16, "the assembly says 16");

/*
 * Make `c` a context that begins with entry(arg) on the stack [low, top). It starts with the
 * control words `fpcw`: a pool of stacks passes those its founder had, as threads inherit theirs,
 * rather than those of whoever happened to need a stack.
 * Needs:  low 16-aligned; top too; at least 1 KiB between them (none of it is read before use).
 *         entry never returns (it leaves by bz_ctx_leave); if it does, the process aborts.
 * Owns:   the stack, until bz_ctx_fini; writes a few words at its top now.
 */
void bz_ctx_init(struct bz_ctx *c, void *low, void *top, void (*entry)(void *arg), void *arg,
                 uint64_t fpcw);

/* Before `c` is first gone to: it begins with the caller's exceptions (eh.h), as a call would. */
void bz_ctx_inherit(struct bz_ctx *c);

/* `c` is where the calling thread itself will stop: its own stack. */
void bz_ctx_adopt(struct bz_ctx *c);

/* The context is over or was never entered; nobody stands on its stack. */
void bz_ctx_fini(struct bz_ctx *c);

/* After arriving in a program with C++: save the exceptions of `left` (NULL: it has ended), load ours. */
BZ_COLD void bz_ctx_exchange_eh(struct bz_ctx *me, struct bz_ctx *left);

/* After arriving: the left one's control words are in force, and its hook is to be run. */
static BZ_ALWAYS_INLINE void bz_ctx_landed(struct bz_ctx *me, const struct bz_ctx_landing *l)
{
    bz_note_landed(&me->notes, l->left != NULL ? &l->left->notes : NULL);
    if (!BZ_BROKEN(41))
        bz_fpcw_restore(&me->fpcw, l->left != NULL ? &l->left->fpcw : NULL);
    if (bz_eh_is_used() && !BZ_BROKEN(290))
        bz_ctx_exchange_eh(me, l->left);
    if (l->hook != NULL)
        l->hook(l->arg);
}

/*
 * Stop here, in `from`; go on at `to`, which calls hook(arg) first. Returns when somebody switches
 * to `from`, after having called their hook.
 */
static BZ_ALWAYS_INLINE void bz_ctx_switch(struct bz_ctx *from, struct bz_ctx *to,
                                           bz_ctx_hook *hook, void *arg)
{
    struct bz_ctx_landing l = {hook, arg, from};
    bz_fpcw_save(&from->fpcw);
    bz_note_leaving(&from->notes, &to->notes);
    if (BZ_BROKEN(40) && hook != NULL) { /* the classic: published before it is saved */
        hook(arg);
        l.hook = NULL;
    }
    bz_ctx_jump(to, &l);
    bz_ctx_landed(from, &l);
}

/* The same for good: this context ends. Its stack may be used again as soon as the hook runs. */
BZ_NORETURN static BZ_ALWAYS_INLINE void bz_ctx_leave(struct bz_ctx *to, bz_ctx_hook *hook,
                                                      void *arg)
{
    struct bz_ctx_landing l = {hook, arg, NULL};
    bz_note_leaving(NULL, &to->notes);
    bz_ctx_jump_last(to, &l);
}

#endif
