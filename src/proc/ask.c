/*
 * ask.c - asking a task to let others run: the flag behind BLITZ_POLL().
 *
 * The flag is a word of the machine, beside the word that fork and join look at. So inline code reaches
 * it with one load through the thread register (blitz/fork.h). The monitor raises the flag when a task
 * has had its machine for long. The task that sees the flag lowers it and yields. The flag is a hint and
 * pairs with no other access: if it comes late, the next look sees it. The flag names the run that it is
 * meant for, by the proc's tick. If that task has left the machine meanwhile, the next task there does
 * not yield. The next task may be a ticker that just woke, and a yield would put it behind every hog in
 * the queue.
 *
 * Joins look as well, but their fast path reads only the attention word. So the monitor also alerts the
 * deque. That sends the next fork or join to the slow path, where the join looks at the flag. A fork
 * does not look: it never suspends, and its job is joined soon.
 *
 * When a task must not be interrupted. User code that the runtime has called may see the flag (an
 * allocator, with the compiler's hook of blitz-reductions in it): then `where` says that we are in the
 * runtime. Or the program itself has asked for no interruption: `paused_`.
 *
 * Rejected: a flag in the task (one more load, and the monitor would write into memory that may be
 * freed meanwhile). Rejected: one more bit in the attention word. That word is set whenever nothing is
 * exposed, so most tasks would poll by the slow path. Rejected: a yield whenever the flag is up, even
 * without ready tasks (a switch to oneself takes 17 ns, and bz_yield avoids it).
 *
 * I1  asked_ is written by the monitor (not 0) and by the machine's thread (0).
 */
#include "proc/ask.h"

#include "proc/enter.h"
#include "proc/state.h"

enum { ANY_TASK = 1, THAT_RUN = 2 };

/* Return a name for the run that began with that tick of that proc. With 32-bit pointers the tick is cut, which is
 * harmless. */
static uintptr_t run_of(const struct bz_proc *p, uint32_t tick)
{
    return (uintptr_t)((uint64_t)tick << 20 | (uint64_t)p->index << 2 | THAT_RUN);
}

static void ask(struct bz_machine *m, uintptr_t whom)
{
    bz_store_relaxed(bz_asked_of(&m->deque.ends), whom); /* relaxed: a hint */
    bz_deque_alert(&m->deque);
}

void bz_machine_ask(struct bz_machine *m)
{
    ask(m, ANY_TASK);
}

void bz_machine_ask_run(struct bz_machine *m, const struct bz_proc *p, uint32_t tick)
{
    ask(m, run_of(p, tick));
}

bool bz_ask_is_stale(struct bz_machine *m, uintptr_t asked)
{
    uint32_t was;
    if (asked & ANY_TASK)
        return false;
    bool has_proc = bz_enter_on(m, &was);
    bool is_other = has_proc && asked != run_of(m->proc, bz_tick_now(&m->proc->tick));
    bz_leave_on(m, was);
    return is_other;
}

bool bz_machine_may_interrupt(struct bz_machine *m)
{
    return m->current != NULL && bz_retake_where(&m->taken) == BZ_IN_USER &&
           m->deque.ends.paused_ == 0;
}
