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
 * stores the control words of the left context, compares them with those of the target, and loads
 * the latter only if they differ, because a load can cost tens of nanoseconds. The comparison
 * ignores the status flags, or else every inexact division would make the next switch load them.
 * (If a load is cheaper than the comparison, the switch always loads: ctx_x86_64.h.)
 *
 * C++: the exceptions being handled belong to the context as well (eh.h).
 *
 * Both are exchanged before the jump. The leaving side has the two contexts in registers, and knows
 * that there is one to save. On arrival a site would have to keep its own context in its frame, and
 * to ask whether there is a left one. One word, bz_ctx_extras, tells whether a switch has more to do
 * than to compare. Rejected: load the control words on arrival where they are always loaded. Two
 * contexts that switch back and forth, with nothing in between, take 5.2 ns a switch instead of 7.4
 * (EPYC, bench-switch); but a yield takes 9.06 ns instead of 8.81, and 4 instructions more.
 *
 * Unwinding: a stack's bottom frame is the thunk of ctx.c, whose unwind information says "no
 * caller" and whose frame record is two zeros: debuggers, backtrace() and frame-pointer walkers all
 * end there. A parked context is unwound from its three words (tools/gdb/blitz.py does). For a few
 * instructions the registers are already the target's while the code is still that of the left
 * site; both have frame pointers. A fresh stack begins with a record that ends the walk.
 *
 * The header of an architecture provides:
 *   struct bz_fpcw, bz_fpcw_save(), bz_fpcw_restore(), bz_fpcw_is_same()
 *                                            the floating-point control words
 *   bz_fpcw_read(), bz_fpcw_load(), bz_fpcw_of()   the same as a number, no status bits
 *   bz_ctx_jump(to, &landing)                the switch itself; landing->left is filled in, and
 *                                            *landing goes through it
 *   bz_ctx_jump_last(to, &landing)           the same, saving nothing; does not return
 *   BZ_CTX_FP_BIAS                           from a frame record's address to the frame pointer
 *   BZ_CTX_THUNK                             the first code on a fresh stack: calls start->main
 *                                            (start, hook, arg, left), start being at sp
 *   BZ_CTX_BOUNDS                            fields of a context that the switch exchanges with the system's record
 *                                            of the thread's stack; bz_ctx_bounds_set(), bz_ctx_bounds_read().
 *                                            Only where the system has such a record
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

/* The duties of a switch besides the comparison of the control words. Bits of bz_ctx_extras. */
enum {
    BZ_CTX_LOADS_FPCW = 1, /* always load them: it is cheaper than the comparison */
    BZ_CTX_HAS_EH = 2      /* exchange the C++ exceptions */
};

/* Constant once the first context is made and C++ is found. Hidden, so that a switch needs no GOT access. */
extern BZ_HIDDEN bz_atomic(uint32_t) bz_ctx_extras;

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
#if defined(BZ_CTX_BOUNDS)
    BZ_CTX_BOUNDS
#endif
    struct bz_fpcw fpcw; /* valid while it is parked */
    struct bz_eh eh;     /* likewise; zeros before the first switch away */
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

/* Before a switch in a program with C++: save the exceptions of `from` (NULL: it ends), load those
 * of `to`. */
BZ_COLD void bz_ctx_exchange_eh(struct bz_ctx *to, struct bz_ctx *from);

/* Before a switch: save the control words and the C++ exceptions in `from`, and load those of `to`. */
static BZ_ALWAYS_INLINE void bz_ctx_exchange(struct bz_ctx *from, struct bz_ctx *to)
{
    bz_fpcw_save(&from->fpcw);
    /* relaxed: a constant, once set */
    if (BZ_LIKELY(bz_equals_relaxed(&bz_ctx_extras, 0)) && bz_fpcw_is_same(&to->fpcw, &from->fpcw))
        return;
    uint32_t extras = bz_load_relaxed(&bz_ctx_extras); /* relaxed: likewise */
    if ((extras & BZ_CTX_LOADS_FPCW) || !bz_fpcw_is_same(&to->fpcw, &from->fpcw))
        bz_fpcw_restore(&to->fpcw);
    if (extras & BZ_CTX_HAS_EH)
        bz_ctx_exchange_eh(to, from);
}

/* After a switch: run the hook of the left context. */
static BZ_ALWAYS_INLINE void bz_ctx_landed(struct bz_ctx *me, const struct bz_ctx_landing *l)
{
    bz_note_landed(&me->notes, l->left != NULL ? &l->left->notes : NULL);
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
    bz_ctx_exchange(from, to);
    bz_note_leaving(&from->notes, &to->notes);
    bz_ctx_jump(to, &l);
    bz_ctx_landed(from, &l);
}

/* The same, but this context ends. Its stack may be reused as soon as the hook runs. */
BZ_NORETURN static BZ_ALWAYS_INLINE void bz_ctx_leave(struct bz_ctx *to, bz_ctx_hook *hook,
                                                      void *arg)
{
    struct bz_ctx_landing l = {hook, arg, NULL};
    bz_fpcw_restore(&to->fpcw);
    if (bz_eh_is_used())
        bz_ctx_exchange_eh(to, NULL);
    bz_note_leaving(NULL, &to->notes);
    bz_ctx_jump_last(to, &l);
}

#endif
