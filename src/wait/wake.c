/*
 * wake.c - deliver a wake-up (wait/wake.h): resume the task, or wake the thread.
 */
#include "proc/place.h"
#include "wait/wait.h"

void bz_task_resume(struct bz_task *t)
{
    if (bz_is_plain(t->rt)) {
        bz_task_wake(t);
    } else {
        bz_trace_wake(t, 0);
        bz_place(t->rt, bz_entry_resumed(t));
    }
}

static BZ_NOINLINE void deliver_rarer(struct bz_wake *wake)
{
    if (wake->kind == BZ_WAKE_HELD_TASK) {
        bz_task_resume(wake->task);
        bz_task_unref(wake->task);
    } else if (wake->kind == BZ_WAKE_THREAD) {
        bz_os_wake(wake->thread.os, wake->thread.word, 1); /* by address: the frame may be gone */
    } else if (wake->kind == BZ_WAKE_WAKER) {
        blitz_waker_wake(&wake->waker);
    }
}

void bz_wake_deliver(struct bz_wake *wake)
{
    if (BZ_UNLIKELY(wake->kind != BZ_WAKE_TASK)) {
        deliver_rarer(wake);
        return;
    }
    struct bz_machine *m = bz_machine_self();
    struct bz_task *t = wake->task;
    BZ_ASSERT(m != NULL && m->rt == t->rt && !bz_is_plain(t->rt)); /* arbiter.c, must_hold */
    bz_trace_wake(t, 0);
    bz_place_by(m, bz_entry_resumed(t));
}
