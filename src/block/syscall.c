/*
 * syscall.c - blocking calls that a task makes on its own thread, and announces.
 *
 * Most calls that could block do not: a read of a file that is in memory, a lock that is free. Sending
 * each of them to another thread costs microseconds. So the machine only records that it is in
 * a call (retake.h), which is two stores, and makes it. If the call takes long and a task waits to
 * run, the monitor moves the proc to another machine (handover.c). On return, the machine checks
 * whether it still has a proc:
 *
 *      it has                     continue: a few nanoseconds in all
 *      gone, but the old one or   it takes that (proc.c, regain): its cache is warm there
 *      another is idle
 *      gone, and all are busy     the task goes to the end of the queue, the thread to the pool: no
 *                                 more tasks run at a time than there are procs
 *
 * Calls nest: the depth is counted in `where` itself, above BZ_IN_SYSCALL. So the count moves with the
 * task if it waits inside the call: every function that leaves the runtime restores `where` as it found it.
 *
 * Forked jobs that are not joined yet would be stuck behind the call, except the one that is
 * exposed. So they go to the queues first. A call without such jobs pays a compare.
 *
 * On a thread that is no worker of ours these functions do nothing.
 *
 * With the uring backend blitz_block_in_place() uses the pool, and the pool's fallback is a call in place. The
 * fallback is therefore bz_call_here(), which needs no resources: two fallbacks that call each other would
 * never end if both lack a thread.
 *
 * [A] enter: where release -> retake.h [A]   the taker sees what the machine did in its proc
 */
#include "blitz/blocking.h"

#include <errno.h>

#include "block/blocking.h"
#include "block/io.h"
#include "life/evacuate.h"
#include "proc/enter.h"
#include "proc/monitor_wake.h"
#include "proc/state.h"
#include "sched/loop.h"

/* Move forked jobs to the queues, so that they do not wait for the end of the call. */
static BZ_NOINLINE void publish_jobs(void)
{
    uint32_t was;
    bz_evacuate(bz_enter_as(&was));
    bz_leave(was);
}

static BZ_ALWAYS_INLINE void enter(struct bz_machine *m)
{
    if (BZ_UNLIKELY(!bz_deque_is_empty(&m->deque)) && m->current != NULL)
        publish_jobs();
    uint32_t where = bz_load_relaxed(&m->taken.where); /* relaxed: ours */
    if (BZ_UNLIKELY(where != BZ_IN_USER)) {
        if (where >= BZ_IN_SYSCALL) /* else: called back by the runtime, which keeps its proc */
            bz_store_release(&m->taken.where, where + 1); /* [A] */
        return;
    }
    (void)!bz_monitor_is_up(m->rt);                   /* without it, queued tasks wait for us */
    uint32_t calls = bz_load_relaxed(&m->calls);      /* relaxed: ours; the monitor peeks */
    bz_store_relaxed(&m->calls, calls + 1);           /* relaxed: a hint */
    bz_store_release(&m->taken.where, BZ_IN_SYSCALL); /* [A] */
}

/* The proc was taken during the call. */
static BZ_NOINLINE void come_back(struct bz_machine *m)
{
    if (bz_machine_is_guest(m)) { /* it had no proc */
        bz_leave(BZ_IN_USER);
        return;
    }
    bool is_back = bz_proc_regain(m);
    bz_count_here(m, calls_moved);
    if (is_back)
        bz_count_here(m, calls_regained);
    bz_leave(BZ_IN_USER);
    if (!is_back && m->current != NULL)
        bz_yield();
}

static BZ_ALWAYS_INLINE void leave(struct bz_machine *m)
{
    uint32_t where = bz_load_relaxed(&m->taken.where); /* relaxed: ours */
    BZ_ASSERT(where != BZ_IN_USER);                    /* a leave without an enter */
    if (BZ_UNLIKELY(where != BZ_IN_SYSCALL)) {
        if (where > BZ_IN_SYSCALL)
            bz_store_release(&m->taken.where, where - 1); /* [A] */
        return;
    }
    if (BZ_LIKELY(bz_enter(&where) != NULL))
        bz_leave(BZ_IN_USER);
    else
        come_back(m);
}

/* The task that makes the call, for traces; 0: none. */
static inline uint64_t caller(const struct bz_machine *m)
{
    return m->current != NULL ? m->current->id : 0;
}

void blitz_syscall_enter(void)
{
    struct bz_machine *m = bz_machine_self();
    if (BZ_UNLIKELY(m == NULL))
        return;
    bz_trace(m->rt, syscall_enter, caller(m), 0, NULL);
    enter(m);
}

void blitz_syscall_leave(void)
{
    struct bz_machine *m = bz_machine_self();
    if (BZ_UNLIKELY(m == NULL))
        return;
    bz_trace(m->rt, syscall_leave, caller(m), 0, NULL);
    leave(m);
}

int bz_call_here(int (*fn)(void *arg), void *arg)
{
    blitz_syscall_enter();
    int result = fn(arg);
    blitz_syscall_leave(); /* on any machine: fn may have waited */
    return result;
}

int blitz_block_in_place(int (*fn)(void *arg), void *arg)
{
    if (fn == NULL)
        return -EINVAL;
    struct bz_task *me = bz_task_self();
    if (me != NULL && bz_io_interrupts(me->rt))
        return blitz_blocking(fn, arg); /* the kernel would interrupt it here: io/uring.c */
    return bz_call_here(fn, arg);
}
