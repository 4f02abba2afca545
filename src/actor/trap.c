/*
 * trap.c - a fault inside a behaviour ends its actor, not the process.
 *
 * A behaviour with trap_faults is called through a guard (arch/guard.h), which the stack knows while the call lasts. The handler of
 * SIGSEGV, SIGBUS, SIGFPE and SIGILL (os/segv.c) asks here. If the fault may be trapped, it makes the guard's call return. From then on
 * the actor is one whose handler has failed: with -EFAULT, and the signal and its addresses as the text. All cleaning up of an
 * actor's end is the usual one. A stack overflow is a SIGSEGV in the guard page of the stack.
 *
 * To skip frames is only safe if no other code counts on them. A fault is trapped if all of this holds, and else it takes its course:
 *
 *   this process   the thread is the one that runs the machine: not its copy in a child of fork() or vfork(), which has a number of
 *                  its own. A child would go on as the actor, and as the whole runtime, beside the parent
 *   user code      the thread is in user code of a task (retake.h), and the program has not paused it (blitz/yield.h)
 *   this actor     the task is the actor that was called through the guard: not a job that the actor's thread has stolen, and not
 *                  a child that a join runs on the actor's stack
 *   no lock        the thread holds no lock of the runtime (os/self.h), the actor no mutex or rwlock of blitz
 *   nothing open   no fork and no scope of the actor is open, and it is in no wait (proc/opened.h, the deque, the wait)
 *   own frames     the fault and each caller up to the guard is in code of the program: not in the C library, the loader, the
 *                  allocator or the unwinder (os/code.c), and not in blitz (base/text.h). So a callback of qsort() or of a
 *                  parallel loop is not skipped. A frame without unwind tables ends the walk, and the fault is not trapped
 *
 * The walk reads the tables for each frame, and finds the backtrace for the log as well. It reads the stack of the fault. If that is
 * damaged, the walk may fault; the signal is blocked then, and the kernel ends the process.
 *
 * A call of an address without code (a NULL function) faults at that address, where no table describes a caller. The instruction has
 * done nothing but push the return address. So the walk begins behind the call.
 *
 * The handler takes no lock: all that it looks at belongs to the thread or to the task.
 *
 * Rejected: a reason by siglongjmp (arch/guard.h); a check of the fault's address alone (a fault in malloc would leave its lock
 *           held); a separate process for each such actor (a message would cost a system call).
 *
 * I1  stack->trap is not NULL while a guarded call of the task on that stack lasts, also while the task waits.
 * I2  A trap is written by its own thread: by the call, or by the handler that interrupts it.
 *
 * [B] begin: traps release -> begin: acquire   the handler is installed before a second spawner goes on
 */
#include "actor/trap.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "actor/actors.h"
#include "base/log.h"
#include "os/interrupt.h"
#include "os/look.h"
#include "proc/opened.h"
#include "task/overflow.h"

enum {
    INNER = 5,
    OUTER = 3,
    REACH = 1 << 20 /* the largest frame that may have jumped over a stack's low end */
};

struct bz_trap {
    struct bz_guard guard;
    const struct bz_task *task;
    struct bz_segv_fault fault; /* signal 0: none */
    unsigned count;             /* of the frames that were skipped */
    uintptr_t inner[INNER];     /* the innermost of them */
    uintptr_t outer[OUTER];     /* the outermost: frame i is at i % OUTER */
};

/* ---- in the handler ---- */

static bool is_skippable(uintptr_t pc)
{
    return bz_code_may_stop(pc) && !bz_code_is_ours(pc);
}

struct search {
    struct bz_trap *trap;
    uintptr_t landing;
    bool is_home; /* the guard was reached, and all frames before it may be skipped */
};

static bool visit(uintptr_t pc, void *ctx)
{
    struct search *s = ctx;
    struct bz_trap *t = s->trap;
    s->is_home = pc == s->landing;
    if (s->is_home || !is_skippable(t->count > 0 ? pc - 1 : pc))
        return false;
    if (t->count < INNER)
        t->inner[t->count] = pc;
    t->outer[t->count++ % OUTER] = pc;
    return true;
}

static bool leads_home(struct bz_trap *t, const struct bz_segv_fault *f)
{
    struct search s = {t, bz_guard_landing(), false};
    t->count = 0;
    bz_segv_walk(f, visit, &s);
    return s.is_home;
}

/* A call of an address without code: walk from the caller. */
static bool caller_leads_home(struct bz_trap *t, const struct bz_segv_fault *f)
{
    struct bz_segv_fault caller = *f;
    memcpy(&caller.pc, (const void *)f->sp, sizeof caller.pc);
    caller.sp += sizeof caller.pc;
    bz_segv_go_on(f, caller.pc, caller.sp);
    if (leads_home(t, &caller))
        return true;
    bz_segv_go_on(f, f->pc, f->sp);
    return false;
}

static bool is_wild_call(const struct bz_segv_fault *f)
{
    return f->signal == SIGSEGV && f->pc == (uintptr_t)f->address;
}

/* True if nothing of the actor is open, and the fault is on its stack, beneath the guard. */
static bool is_free(struct bz_machine *m, const struct bz_trap *t, const struct bz_segv_fault *f)
{
    struct bz_task *me = m->current;
    uintptr_t top = (uintptr_t)t->guard.sp, low = (uintptr_t)m->runner->low - REACH;
    return bz_deque_is_empty(&m->deque) && /* before the next one: opened.h [O] */
           bz_opened_is_none(me) && bz_load_relaxed(&me->wait) == 0 && /* relaxed: ours */
           low <= f->sp && f->sp < top;
}

/* The guarded call that this thread is in, if it may be interrupted here. */
static struct bz_trap *trap_here(struct bz_machine *m)
{
    if (m == NULL || !bz_machine_may_interrupt(m) || bz_self_holds() != 0 || m->holds_on > 0)
        return NULL;
    if (bz_os_thread_id(m->rt->os) != bz_load_relaxed(&m->turn.thread)) /* relaxed: ours */
        return NULL;
    struct bz_trap *t = m->runner != NULL ? m->runner->trap : NULL;
    return t != NULL && t->task == m->current ? t : NULL;
}

static bool on_fault(const struct bz_segv_fault *f)
{
    struct bz_machine *m = bz_machine_self();
    struct bz_trap *t = trap_here(m);
    if (t == NULL || !is_free(m, t, f))
        return false;
    if (is_wild_call(f) ? !caller_leads_home(t, f) : !leads_home(t, f))
        return false;
    t->fault = *f;
    bz_segv_go_on(f, bz_guard_landing(), (uintptr_t)t->guard.sp);
    return true;
}

/* ---- behind a fault ---- */

static void describe(const struct bz_trap *t, char *text, size_t size)
{
    snprintf(text, size, "%s at 0x%llx, pc 0x%llx", bz_segv_name(t->fault.signal),
             (unsigned long long)(uintptr_t)t->fault.address, (unsigned long long)t->fault.pc);
}

/* Write the fault and its callers to the log. */
static void report(struct bz_actor *a, const struct bz_trap *t, const char *what)
{
    char text[512], symbol[64];
    int used = snprintf(text, sizeof text, "actor %u.%u (%s) has faulted: %s", a->task.slot.index,
                        bz_actor_generation(a), bz_task_name(&a->task), what);
    for (unsigned i = 0; i < t->count && used < (int)sizeof text; i++) {
        unsigned left = t->count - i;
        if (i >= INNER && left > OUTER) {
            used += snprintf(text + used, sizeof text - (size_t)used, " < %u more", left - OUTER);
            i = t->count - OUTER;
        }
        uintptr_t pc = i < INNER ? t->inner[i] : t->outer[i % OUTER];
        if (!bz_look_symbol(symbol, sizeof symbol, pc))
            snprintf(symbol, sizeof symbol, "0x%llx", (unsigned long long)pc);
        if (used < (int)sizeof text)
            used += snprintf(text + used, sizeof text - (size_t)used, "%s%s",
                             i == 0 ? "; in " : " < ", symbol);
    }
    bz_log(BLITZ_LOG_ERROR, "%s", text);
}

/* The call has landed. Put the thread right, and say what has happened. */
static BZ_NOINLINE void land(struct bz_actor *a, struct bz_trap *t, char *text, size_t size)
{
    bz_guard_landed(&t->guard, t->fault.sp);
    describe(t, text, size);
    report(a, t, text);
}

/* ---- calls ---- */

static int call(struct bz_actor *a, struct bz_trap *t, bz_guard_fn *fn, void *x, const void *y)
{
    struct bz_stack *s = bz_machine_self()->runner;
    t->task = &a->task;
    t->fault.signal = 0;
    t->guard.stack = &s->ctx;
    t->guard.fpcw = a->task.rt->fpcw;
    s->trap = t; /* I1 */
    int rc = bz_guard_call(&t->guard, fn, x, y);
    s->trap = NULL; /* the task is on the same stack, perhaps on another thread */
    return rc;
}

int bz_trap_call(struct bz_actor *a, bz_guard_fn *fn, void *x, const void *y, char *text)
{
    struct bz_trap t;
    text[0] = '\0';
    int rc = call(a, &t, fn, x, y);
    if (BZ_LIKELY(t.fault.signal == 0))
        return rc;
    land(a, &t, text, BLITZ_EXIT_TEXT_MAX);
    return -EFAULT;
}

void bz_trap_call_last(struct bz_actor *a, bz_guard_fn *fn, void *x, const void *y,
                       blitz_exit_reason *why)
{
    struct bz_trap t;
    char text[BLITZ_EXIT_TEXT_MAX];
    (void)call(a, &t, fn, x, y);
    if (BZ_LIKELY(t.fault.signal == 0))
        return;
    land(a, &t, text, sizeof text);
    if (why->kind == BLITZ_EXIT_ERROR && why->code == -EFAULT)
        return; /* the first fault is the cause */
    *why = (blitz_exit_reason){.kind = BLITZ_EXIT_ERROR, .code = -EFAULT};
    memcpy(why->text, text, sizeof text);
}

/* ---- per runtime ---- */

static void count_out(void)
{
    bz_fetch_sub_relaxed(&bz_opened_counted,
                         1); /* relaxed: no task of the runtime is left, or another counts it */
    bz_overflow_untrap();
}

int bz_traps_begin(struct bz_runtime *rt)
{
    struct bz_actors *all = bz_actors_of(rt);
    if (bz_load_acquire(&all->traps) != 0) /* [B] */
        return 0;
    if (bz_guard_landing() == 0 || bz_os_is_simulated())
        return -EOPNOTSUPP;
    bz_code_find();
    int err = bz_overflow_trap(on_fault);
    if (err != 0)
        return err;
    bz_fetch_add_relaxed(&bz_opened_counted, 1); /* relaxed: the actor is published later */
    if (bz_xchg_acqrel(&all->traps, 1) != 0)     /* [B] */
        count_out();                             /* another spawner was faster */
    return 0;
}

void bz_traps_end(struct bz_actors *all)
{
    if (bz_xchg_acqrel(&all->traps, 0) != 0) /* [B] */
        count_out();
}
