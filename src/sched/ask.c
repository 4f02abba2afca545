/*
 * ask.c - asking a task to let others run: the flag behind BLITZ_POLL().
 *
 * The flag is a word of the machine, beside the one fork and join look at, so that inline code
 * reaches it with one load through the thread register (blitz/fork.h). The monitor raises it when a
 * task has had its machine for long; whoever looks lowers it and yields. It is a hint and has no
 * partner: if it comes late, the next look sees it. The flag names the run that it is meant for, by the proc's tick: if
 * that task has left the machine meanwhile, the next one there does not yield. It may be a ticker that just woke, and a yield
 * would put it behind every hog in the queue.
 *
 * Joins look as well, but their short way reads the attention word alone. So the monitor alerts the
 * deque too, which sends the next fork or join the long way: there the join looks at the flag. A
 * fork does not: it never suspends. What has been forked is joined soon.
 *
 * When a task must not be taken away. The flag may be seen in user code that the runtime has called
 * from its middle (an allocator, with the compiler's hook of blitz-reductions in it): then `where`
 * says that we are in the runtime. Or the program has said so itself: `paused_`.
 *
 * Rejected: a flag in the task (one more load, and the monitor would write into memory that may be
 * freed under it), one bit more in the attention word (which is set whenever nothing is exposed, so
 * most tasks would poll the long way), and a yield whenever the flag is up, ready tasks or not (a
 * switch to oneself is 17 ns, and is what bz_yield avoids).
 *
 * I1  asked_ is written by the monitor (not 0) and by the machine's thread (0).
 */
#include "sched/ask.h"

#include "sched/sched.h"

enum { ANY_TASK = 1, THAT_RUN = 2 };

/* The run that began with that tick of that proc. Where pointers have 32 bits the tick is cut, which is harmless. */
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

/* It was asked of an earlier task on this machine, which has ended or waits. */
static bool is_stale(struct bz_machine *m, uintptr_t asked)
{
    uint32_t was;
    if (asked & ANY_TASK || BZ_BROKEN(275))
        return false;
    bool has_proc = bz_enter_on(m, &was);
    /* relaxed: ours */
    bool is_other = has_proc && asked != run_of(m->proc, bz_load_relaxed(&m->proc->tick));
    bz_leave_on(m, was);
    return is_other;
}

bool bz_machine_may_interrupt(struct bz_machine *m)
{
    return m->current != NULL && bz_retake_where(&m->taken) == BZ_IN_USER &&
           m->deque.ends.paused_ == 0;
}

void blitz_poll_slow_(void)
{
    struct bz_machine *m = bz_machine_self();
    if (m == NULL || !bz_machine_may_interrupt(m))
        return;
    blitz_share_slow_(); /* in the runtime: until then the monitor may be taking them */
    uintptr_t asked = bz_load_relaxed(bz_asked_of(&m->deque.ends)); /* relaxed: a hint */
    if (asked == 0)
        return;
    bz_store_relaxed(bz_asked_of(&m->deque.ends), 0); /* relaxed: a hint, I1 */
    if (!is_stale(m, asked) && !BZ_BROKEN(104))
        bz_yield();
}
