/*
 * park.h - the wait of a task, inline, for waits whose hook is known at compile time. park.c has the rules.
 */
#ifndef BZ_PARK_PARK_H
#define BZ_PARK_PARK_H

#include "life/deadlines.h"
#include "proc/place.h"
#include "sched/suspend.h"
#include "wait/wait.h"

/* On the next stack: register by `hook`, and resume the task at once if there is nothing to wait for. */
static BZ_ALWAYS_INLINE void bz_wait_register_by(struct bz_wait *w, bz_wait_hook *hook,
                                                 bool is_plain)
{
    struct bz_task *t = w->task;
    struct bz_runtime *rt = t->rt;
    bz_os_delay(rt->os, BZ_OS_AT_PUBLISH);
    if (!hook(w, w->arg)) {
        bz_trace_wake(t, t->id); /* by itself */
        bz_task_resume(t);
    }
    if (is_plain && bz_word_step(&t->word, BZ_PARK) == BZ_OWES_ENQUEUE) /* park.c, I3 */
        bz_place(rt, bz_entry_resumed(t));
}

static BZ_ALWAYS_INLINE void bz_wait_register(struct bz_wait *w, bz_wait_hook *hook)
{
    bz_wait_register_by(w, hook, bz_is_plain(w->task->rt));
}

/* park.c: the wait was resumed by an old clone of the task's waker. Only in the plain form. */
void bz_wait_park_again(struct bz_wait *w);

/* bz_wait_park of a task, with the hook of the switch: it calls bz_wait_register. w->arg is set. */
static BZ_ALWAYS_INLINE uint32_t bz_wait_park_task(struct bz_wait *w, bz_ctx_hook *hook)
{
    uint32_t outcome;
    BZ_ASSERT_SLOW((bz_wait_check(w), true));
    bz_trace(w->task->rt, park, w->task->id, 0, w->what);
    bz_suspend_inline(hook, w);
    /* arbiter.c [A] */
    while (BZ_UNLIKELY((outcome = bz_load_acquire(&w->arbiter)) == BZ_WAIT_OPEN))
        bz_wait_park_again(w);
    if (BZ_UNLIKELY(w->timer.proc != NULL) && outcome != BZ_WAIT_TIMED_OUT)
        bz_timer_disarm(&w->timer);
    if (w->is_published)
        bz_wait_leave(w->task); /* park.c, I2 */
    return outcome;
}

/* The same after bz_suspend_begin() has returned true, for a wait that has no deadline. */
static BZ_ALWAYS_INLINE uint32_t bz_wait_park_begun(struct bz_machine *m, struct bz_task *me,
                                                    struct bz_wait *w, bz_ctx_hook *hook)
{
    BZ_ASSERT_SLOW((bz_wait_check(w), true));
    bz_suspend_end(m, me, hook, w);
    uint32_t outcome = bz_load_acquire(&w->arbiter); /* arbiter.c [A] */
    BZ_ASSERT(outcome != BZ_WAIT_OPEN);              /* only in the plain form */
    bz_wait_leave_by(w->task, false); /* park.c, I2. Not me: that would need a place in the frame */
    return outcome;
}

/* The same after bz_wait_is_usual() has returned true. The hook calls bz_wait_register_by with false. */
static BZ_ALWAYS_INLINE uint32_t bz_wait_park_usual(struct bz_machine *m, struct bz_task *me,
                                                    struct bz_wait *w, bz_ctx_hook *hook)
{
    BZ_ASSERT_SLOW((bz_wait_check(w), true));
    bz_suspend_usual(m, hook, w);
    uint32_t outcome = bz_load_acquire(&w->arbiter); /* arbiter.c [A] */
    BZ_ASSERT(outcome != BZ_WAIT_OPEN);              /* only in the plain form */
    if (BZ_UNLIKELY(w->timer.proc != NULL) && outcome != BZ_WAIT_TIMED_OUT)
        bz_timer_disarm(&w->timer);
    if (w->is_published)
        bz_wait_leave_by(me, false); /* park.c, I2 */
    return outcome;
}

#endif
