/*
 * suspend.h - leave the stack of the current task: the fast path, inline. machine.c has the rules and the slow path.
 *
 * A wait spends a third of its instructions here. Inline in the code that waits (park/park.h) it saves a call, and the
 * registers that both would save. The model checker has a toy scheduler instead, behind the function bz_suspend.
 */
#ifndef BZ_SCHED_SUSPEND_H
#define BZ_SCHED_SUSPEND_H

#include "proc/enter.h"
#include "sched/loop.h"
#include "sched/quick.h"

/* Begin to run a task that was taken from a queue. A task that only yielded is still running in its word. */
static BZ_ALWAYS_INLINE void bz_begin(struct bz_task *t)
{
    if (bz_word_life(&t->word) == BZ_RUNNING)
        return;
    enum bz_owes owes = bz_word_step(&t->word, BZ_RUN);
    BZ_ASSERT(owes == BZ_OWES_NOTHING);
    (void)owes;
}

/* The current task is about to leave its stack: store the stack in the task, I3 of machine.c. */
static BZ_ALWAYS_INLINE void bz_stay_behind(struct bz_machine *m, struct bz_task *me,
                                            bz_ctx_hook **hook, void **arg)
{
    me->stack = m->runner;
    me->marks |= BZ_MARK_WAITED;
    bz_watch_leave(m, me, hook, arg);
}

/* Switch straight from the current task, me, which the hook queues or registers, to t, which is running in its word. */
static BZ_ALWAYS_INLINE void bz_switch_to_begun(struct bz_machine *m, struct bz_task *me,
                                                struct bz_task *t, bz_ctx_hook *hook, void *arg)
{
    struct bz_stack *from = m->runner, *to = t->stack;
    BZ_ASSUME(from != NULL && to != NULL); /* I3 of machine.c */
    bz_stay_behind(m, me, &hook, &arg);
    t->stack = NULL;
    m->current = t;
    m->runner = to;
    bz_watch_begin(m, t);
    bz_os_delay(m->rt->os, BZ_OS_AT_SWITCH);
    bz_ctx_switch(&from->ctx, &to->ctx, hook, arg);
}

/* The same for any t that was taken from a queue. */
static BZ_ALWAYS_INLINE void bz_switch_to(struct bz_machine *m, struct bz_task *me,
                                          struct bz_task *t, bz_ctx_hook *hook, void *arg)
{
    bz_begin(t);
    bz_switch_to_begun(m, me, t, hook, arg);
}

/* True if the current task can leave its stack by the fast path. */
static BZ_ALWAYS_INLINE bool bz_may_leave_quickly(struct bz_machine *m)
{
    return bz_deque_is_usual(&m->deque) && BZ_LIKELY(!m->proc->is_plain && !bz_trace_is_on());
}

/* The task is about to park: release stack pages that it does not need. Do so the first time it parks, and then
 * now and then. */
static BZ_ALWAYS_INLINE void bz_trim_stack(struct bz_machine *m)
{
    struct bz_stack *s = m->runner;
    if (BZ_UNLIKELY(--s->parks_left == 0))
        bz_stack_trim(s); /* the park may be long */
}

/* machine.c: the rest of a suspension. The fast path has found no successor, or `t`, to which it cannot switch. In
 * the runtime. */
void bz_suspend_slowly(struct bz_machine *m, struct bz_task *t, bz_ctx_hook *hook, void *arg);

/* bz_suspend. The caller is a task. */
static BZ_ALWAYS_INLINE void bz_suspend_inline(bz_ctx_hook *hook, void *arg)
{
#if defined(BZ_MODEL)
    bz_suspend(hook, arg);
#else
    uint32_t was;
    struct bz_machine *m = bz_machine_self();
    (void)!bz_enter_on(m, &was); /* with a proc or without */
    struct bz_task *t = bz_may_leave_quickly(m) ? bz_quick_find(m->proc, &m->rt->idle) : NULL;
    bz_trim_stack(m);
    if (BZ_LIKELY(t != NULL && bz_quick_may_switch(t))) {
        bz_count(&m->proc->counters, relays);
        bz_switch_to(m, m->current, t, hook, arg);
    } else {
        bz_suspend_slowly(m, t, hook, arg);
    }
    bz_leave_on(bz_machine_self(), was); /* on the machine that we are on now */
#endif
}

/* True if the caller is a task in user code, and nothing unusual holds (base/unusual.h): then its wait needs no trace, and
 * its runtime is not of the plain form. */
BZ_MUST_USE static BZ_ALWAYS_INLINE bool bz_wait_is_usual(struct bz_machine *m)
{
#if defined(BZ_MODEL)
    return m != NULL && m->current != NULL && !bz_is_plain(m->rt);
#else
    return BZ_LIKELY(m != NULL) && bz_retake_is_away(&m->taken) && bz_is_usual() &&
           BZ_LIKELY(m->current != NULL);
#endif
}

/* machine.c: the rest of bz_suspend_usual() in a rare case: the machine may have lost its proc. */
void bz_suspend_unusually(struct bz_machine *m, bz_ctx_hook *hook, void *arg);

/* Suspend the current task of m, a machine in the runtime, where nothing unusual holds. The task leaves its stack, goes
 * on, and is in the runtime then. */
static BZ_ALWAYS_INLINE void bz_suspend_here(struct bz_machine *m, struct bz_task *me,
                                             bz_ctx_hook *hook, void *arg)
{
    struct bz_proc *p = m->proc;
    BZ_ASSERT(p != NULL || !bz_deque_is_usual(&m->deque));
    struct bz_task *t = bz_deque_is_usual(&m->deque) ? bz_quick_find(p, &m->rt->idle) : NULL;
    bz_trim_stack(m);
    if (BZ_LIKELY(t != NULL && bz_quick_may_switch(t))) {
        bz_count(&p->counters, relays);
        bz_switch_to(m, me, t, hook, arg);
    } else {
        bz_suspend_slowly(m, t, hook, arg);
    }
}

/* bz_suspend_inline after bz_wait_is_usual() has returned true. */
static BZ_ALWAYS_INLINE void bz_suspend_usual(struct bz_machine *m, bz_ctx_hook *hook, void *arg)
{
#if defined(BZ_MODEL)
    (void)m;
    bz_suspend(hook, arg);
#else
    if (BZ_UNLIKELY(!bz_retake_enter_usual(&m->taken)))
        bz_suspend_unusually(m, hook, arg);
    else
        bz_suspend_here(m, m->current, hook, arg);
    bz_leave_on(bz_machine_self(), BZ_IN_USER); /* on the machine that we are on now */
#endif
}

/*
 * The same in two steps, for a wait whose driver checks everything first and then sets up the wait in the runtime.
 * bz_suspend_begin enters the runtime, if the caller is a task in user code and nothing unusual holds. Then
 * bz_suspend_end must follow, without a call in between. A cancel is found when the wait is published: wait.h [C].
 * Returns: false: nothing was done, take the slow path.
 */
BZ_MUST_USE static BZ_ALWAYS_INLINE bool bz_suspend_begin(struct bz_machine *m)
{
#if defined(BZ_MODEL)
    return bz_wait_is_usual(m);
#else
    if (BZ_UNLIKELY(m == NULL) || !bz_retake_is_away(&m->taken) || BZ_UNLIKELY(m->current == NULL))
        return false;
    if (BZ_LIKELY(bz_retake_enter_usual(&m->taken)))
        return true;
    bz_leave_on(m, BZ_IN_USER);
    return false;
#endif
}

static BZ_ALWAYS_INLINE void bz_suspend_end(struct bz_machine *m, struct bz_task *me,
                                            bz_ctx_hook *hook, void *arg)
{
#if defined(BZ_MODEL)
    (void)m;
    (void)me;
    bz_suspend(hook, arg);
#else
    bz_suspend_here(m, me, hook, arg);
    bz_leave_on(bz_machine_self(), BZ_IN_USER); /* on the machine that we are on now */
#endif
}

#endif
