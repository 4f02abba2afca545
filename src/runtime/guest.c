/*
 * guest.c - a plain thread runs a task itself, instead of waiting for a worker that does.
 *
 * A call from outside could be injected, and the thread could wait. That takes two futex wakes: 20 to 60
 * microseconds before the call starts, for a loop that takes one. And the thread is there, on a CPU with
 * the caller's data in its cache. So it *visits*: it becomes a machine of the runtime without a proc. The
 * scheduler already knows such machines: their proc was taken away while their task went on (proc.c).
 * Such a machine runs one task, on a runner stack. Its forked jobs are in its deque, where workers find
 * them. Tasks that it spawns or wakes go to the injector. A guest differs in three ways:
 *  - it wants no proc (proc.c, syscall.c): it runs only its own task;
 *  - when its task has to wait, it leaves the task on its stack, like any machine, and goes home to the
 *    thread's own stack. There it is no longer a machine. The thread waits for the task, which workers
 *    resume;
 *  - when its task ends it goes home, too.
 *
 *     thread:  [caller|call] --> [task ......... end]          no thread had to be roused
 *
 *     thread:  [caller|call] --> [task .. join]                its job was taken, and takes longer
 *              waits for the end <--'      |
 *     worker:                              '--> [.. end]loop   the stack is a worker's now
 *
 * So for a moment one more thread computes than there are procs. The thread is the user's, and would
 * wait otherwise: it shares a CPU with a worker until its task waits or ends.
 *
 * A guest's machine, with a stack and a cache of stacks, is kept for the next call. A thread that calls
 * again pays for a lock, a header and two switches, some 150 nanoseconds. There are as many guests as
 * threads have been inside at the same time; beyond BZ_GUESTS_MAX a call is injected.
 *
 * The monitor takes care of jobs that guests expose while every proc sleeps: it does not doze while a
 * guest is inside.
 *
 * The end of the runtime. A task that ends is counted out before its guest has left. So the runtime
 * waits for guests that are on their way out (fini). A later call is refused when its task is counted in.
 *
 * Rejected: taking a proc that sleeps. The guest would have to give it back at the end, with its queue
 * and its timers: a thread to rouse and a barrier to pay for. Rejected: staying a worker until the task
 * has ended. The caller would wait for an unrelated task of any length.
 *
 * I1  A guest at home has an empty deque, no current task, and `where` is the runtime.
 * I2  A guest has no proc, except while its task is locked to its thread (locked.c). It passes that proc
 *     on when the task yields, waits or ends, and runs no other task on it.
 */
#include "runtime/guest.h"

#include <errno.h>

#include "life/spawn.h"
#include "life/stacks.h"
#include "proc/retire.h"
#include "proc/state.h"
#include "sched/loop.h"

void bz_guests_init(struct bz_guests *g)
{
    bz_lock_init_ranked(&g->lock, BZ_RANK_GUESTS);
    g->idle = NULL;
    g->made = 0;
    g->is_ending = false;
    bz_atomic_init(&g->inside, 0);
    bz_atomic_init(&g->left, 0);
}

/* ---- coming and going ---- */

/* Return a new machine, which is a guest from now on. */
static struct bz_machine *guest_new(struct bz_runtime *rt)
{
    struct bz_machine *m = NULL;
    bz_lock_take(&rt->start_lock, rt->os);
    if (!bz_load_relaxed(&rt->is_ending) && rt->guests.made < BZ_GUESTS_MAX) /* relaxed: locked */
        m = bz_machines_take(rt);
    if (m != NULL)
        rt->guests.made++;
    bz_lock_drop(&rt->start_lock, rt->os);
    if (m == NULL)
        return NULL;
    bz_store_relaxed(&m->is_guest, 1); /* relaxed: ours; the monitor peeks */
    m->is_searching = m->was_roused = false;
    bz_machine_hold(m, NULL);
    m->last = &rt->procs[m->index % bz_procs_active(rt)];
    m->runner = m->spare = NULL;
    m->current = NULL;
    m->handed = 0;
    m->thread = NULL;
    bz_store_relaxed(&m->taken.where, BZ_IN_RUNTIME); /* relaxed: I1; no thread takes from it */
    bz_stack_cache_init(&m->stacks, &rt->stacks);
    return m;
}

static void count_inside(struct bz_guests *g, int more)
{
    uint32_t inside = bz_load_relaxed(&g->inside);         /* relaxed: written under the lock */
    bz_store_relaxed(&g->inside, inside + (uint32_t)more); /* relaxed: monitor.c [S] */
}

/* Return a guest that is not in use, or NULL. Counts as inside in any case. */
static struct bz_machine *come_in(struct bz_runtime *rt)
{
    struct bz_guests *g = &rt->guests;
    bz_lock_take(&g->lock, rt->os);
    struct bz_machine *m = g->idle;
    if (m != NULL)
        g->idle = m->next_guest;
    count_inside(g, 1);
    bz_lock_drop(&g->lock, rt->os);
    return m;
}

/* Leave. After that the runtime may be gone. */
static void go_out(struct bz_runtime *rt, struct bz_machine *m)
{
    struct bz_guests *g = &rt->guests;
    const struct bz_os *os = rt->os;
    bz_lock_take(&g->lock, os);
    if (m != NULL) {
        if (BZ_UNLIKELY(bz_is_short(rt)))
            bz_machine_share_stacks(m);
        m->next_guest = g->idle;
        g->idle = m;
    }
    count_inside(g, -1);
    bool is_last = g->is_ending && !bz_guests_inside(g);
    if (is_last)
        bz_store_relaxed(&g->left, 1); /* relaxed: looked at under the lock */
    bz_lock_drop(&g->lock, os);
    if (is_last)
        bz_os_wake(os, &g->left, 1); /* an address: it may be gone */
}

static void await_last(struct bz_runtime *rt)
{
    struct bz_guests *g = &rt->guests;
    bz_lock_take(&g->lock, rt->os);
    g->is_ending = true;
    while (bz_guests_inside(g)) {
        bz_lock_drop(&g->lock, rt->os);
        bz_os_delay(rt->os, BZ_OS_AT_SLEEP);
        bz_os_wait(rt->os, &g->left, 0, BZ_OS_FOREVER);
        bz_lock_take(&g->lock, rt->os);
    }
    bz_lock_drop(&g->lock, rt->os);
}

void bz_guests_fini(struct bz_runtime *rt)
{
    await_last(rt);
    for (struct bz_machine *m = rt->guests.idle; m != NULL; m = m->next_guest) {
        if (m->spare != NULL)
            bz_stack_give(&m->stacks, m->spare);
        m->spare = NULL;
        bz_stack_cache_fini(&m->stacks);
        bz_jobs_fini(m);
    }
}

/* ---- a visit ---- */

/* Become that machine until the task has ended or has left this thread. */
static void visit(struct bz_machine *m, struct bz_task *t)
{
    m->now_ns = 0;
    bz_self_set(m);
    bz_guest_run(m, t);
    while (BZ_UNLIKELY(bz_load_relaxed(&m->locked.task) != NULL)) /* relaxed: ours */
        bz_locked_wait(m);
    bz_store_release(&m->is_stray, 0); /* clockwork.c [Q] */
    bz_store_release(&m->is_going, 0); /* clockwork.c [Q] */
    bz_self_set(NULL);
    BZ_ASSERT(bz_deque_is_empty(&m->deque) && m->proc == NULL); /* I1, I2 */
}

/* Run fn as a task, with a machine and a stack to run on. The task may be refused. */
static int call_as(struct bz_machine *m, int (*fn)(void *arg), void *arg, struct bz_task **out)
{
    if (m == NULL)
        return -EAGAIN;
    if (!bz_machine_has_spare(m))
        return -ENOMEM;
    int err = bz_fiber_begin(m->rt, fn, arg, "parallel", out);
    if (err == 0)
        visit(m, *out);
    return err;
}

int bz_guest_call(struct bz_runtime *rt, int (*fn)(void *arg), void *arg, int *result)
{
    struct bz_task *t;
    struct bz_machine *m = come_in(rt);
    if (m == NULL)
        m = guest_new(rt);
    int err = call_as(m, fn, arg, &t);
    go_out(rt, m);
    return err != 0 ? err : blitz_task_join((blitz_task *)t, result, BLITZ_FOREVER);
}
