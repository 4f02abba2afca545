/*
 * locked.c - blitz_thread_lock: a task that runs on one thread, and a thread that runs one task.
 *
 * Some libraries are tied to a thread: graphics contexts, a Python interpreter, anything with
 * thread-local state or a lock that its locking thread must unlock. A task that locks its thread resumes
 * there after every wait, and no other task runs there until it unlocks, or ends.
 *
 *      machine M, locked by task T              machine W, any other
 *
 *      T waits: M passes its proc on,           ... runs others, on that proc or another
 *      leaves for g0; the hook publishes T      T is woken; it is queued like any task
 *      M sleeps on its offer word              W takes T out of a queue, sees that it is locked,
 *                                               finds M, gives it its proc and leaves for the pool
 *      M wakes with that proc, goes on with T
 *
 * So a wait of a locked task costs two thread switches: about what Go's LockOSThread costs, and for the
 * same reason. All other tasks pay one branch each time they are taken out of a queue, on a byte of a
 * cache line that is read next anyway.
 *
 * M resets the offer word before T is published, so that W can never come too early. M also gives up
 * its own proc before that, and so never has two.
 *
 * A thread must be there to take over M's proc, or all procs could wait for tasks that no thread is left
 * to run. So a lock makes the pool keep one more idle thread for machines (pool.h), and is refused if
 * there is none. Also, the number of locked tasks is limited: threads_max of the runtime options, less
 * one thread for every proc. If a machine has taken that thread for another purpose, the proc is an
 * orphan (proc.c) for a while, and M asks again every RETRY_NS.
 *
 * A locked task that joins a child does not run it in its own place (claim.c). The child may wait, and
 * then resume elsewhere, with the locked frames beneath it. In a stackless task the lock ends with the
 * poll.
 *
 * Rejected: a separate queue for each locked task (wakers would have to know). Rejected: sleeping with
 * the proc until another task needs it (a separate path through the idle set, for something this rare).
 *
 * I1  m->locked.task is the task with BZ_MARK_LOCKED that stands on m or waits for it, or NULL.
 * I2  A machine with a locked task that does not run has no proc.
 * I3  deque.rare has BZ_RARE_LOCKED while m->locked.task is set, so that a locked task takes the slow paths.
 *
 * [E] hand_over: offer release -> wait: offer acquire (handoff.h [A])   which proc it is
 */
#include "sched/locked.h"

#include <errno.h>

#include "blitz/blocking.h"
#include "proc/place.h"
#include "proc/state.h"
#include "sched/loop.h"

enum { RETRY_NS = 1000000 };

/* ---- locking ---- */

static void lock(struct bz_machine *m, struct bz_task *t)
{
    m->locked.depth = 1;
    t->marks |= BZ_MARK_LOCKED;
    m->deque.rare |= BZ_RARE_LOCKED;      /* I3 */
    bz_store_relaxed(&m->locked.task, t); /* relaxed: others look for it once t was published */
}

void bz_locked_end(struct bz_machine *m)
{
    struct bz_task *t = bz_load_relaxed(&m->locked.task); /* relaxed: ours */
    BZ_ASSERT(t != NULL && (t->marks & BZ_MARK_LOCKED));  /* I1 */
    t->marks &= (uint8_t)~BZ_MARK_LOCKED;
    m->deque.rare &= (uint8_t)~BZ_RARE_LOCKED; /* I3 */
    m->locked.depth = 0;
    bz_store_relaxed(&m->locked.task, NULL); /* relaxed: no thread looks for a running task */
    bz_fetch_sub_relaxed(&m->rt->locked, 1); /* relaxed: a count */
    bz_pool_unkeep(&m->rt->pool);
}

int blitz_thread_lock(void)
{
    struct bz_machine *m = bz_machine_self();
    if (m == NULL || m->current == NULL)
        return 0;
    if (m->current->marks & BZ_MARK_LOCKED) {
        m->locked.depth++;
        return 0;
    }
    struct bz_runtime *rt = m->rt;
    int err = -EAGAIN;
    /* relaxed: a count, here and below */
    if (bz_fetch_add_relaxed(&rt->locked, 1) < rt->is.threads_max - rt->proc_count)
        err = bz_pool_keep(&rt->pool);
    if (err == 0)
        lock(m, m->current);
    else
        bz_fetch_sub_relaxed(&rt->locked, 1); /* relaxed: as above */
    return err;
}

int blitz_thread_unlock(void)
{
    struct bz_machine *m = bz_machine_self();
    if (m == NULL || m->current == NULL)
        return 0;
    if (!(m->current->marks & BZ_MARK_LOCKED))
        return -EPERM;
    if (--m->locked.depth == 0)
        bz_locked_end(m);
    return 0;
}

/* ---- waiting ---- */

void bz_locked_release_proc(struct bz_machine *m)
{
    struct bz_proc *p = m->proc;
    bz_handoff_rest(&m->locked.offer, false);
    m->locked.left_orphan = false;
    if (p == NULL)
        return;
    bz_machine_hold(m, NULL);                                       /* I2 */
    bz_store_relaxed(&m->is_going, 1);                              /* relaxed: the next */
    bz_store_release(&p->state, bz_proc_word(BZ_PROC_STARTING, 0)); /* proc.c [S] */
    m->locked.left_orphan = bz_proc_start(p, false) != 0;
}

static struct bz_machine *machine_of(struct bz_runtime *rt, const struct bz_task *t)
{
    for (unsigned i = 0, n = bz_machines_count(rt); i < n; i++) {
        struct bz_machine *m = bz_machines_at(rt, i);
        if (bz_load_relaxed(&m->locked.task) ==
            t) /* relaxed: t came out of a queue, so it is set */
            return m;
    }
    return NULL;
}

void bz_locked_hand_over(struct bz_machine *m, bz_entry e)
{
    struct bz_task *t = bz_entry_task(e);
    struct bz_machine *home = machine_of(m->rt, t);
    struct bz_proc *p = m->proc;
    BZ_CHECK(home != NULL && home != m, "task %llu is locked to a thread that is not there",
             (unsigned long long)t->id);
    bz_machine_hold(m, NULL);
    bz_store_relaxed(&m->is_going, 1);                              /* relaxed: the next */
    bz_store_release(&p->state, bz_proc_word(BZ_PROC_STARTING, 0)); /* proc.c [S] */
    home->locked.gift = p;
    bz_os_delay(m->rt->os, BZ_OS_AT_PUBLISH);
    bz_handoff_give(&home->locked.offer, m->rt->os); /* [E] */
}

/* Return when to ask again for a thread for the proc we gave up, if there was none. */
static uint64_t when_to_ask(struct bz_machine *m)
{
    return m->locked.left_orphan ? bz_os_now(m->rt->os) + RETRY_NS : BZ_OS_FOREVER;
}

void bz_locked_wait(struct bz_machine *m)
{
    struct bz_task *t = bz_load_relaxed(&m->locked.task); /* relaxed: ours */
    const struct bz_os *os = m->rt->os;
    bz_store_release(&m->is_stray, 0); /* clockwork.c [Q]. It does not burn */
    bz_store_release(&m->is_going, 0); /* clockwork.c [Q]. Its task waits */
    bz_os_delay(os, BZ_OS_AT_SLEEP);
    while (!bz_handoff_sleep(&m->locked.offer, os, when_to_ask(m))) /* [E] */
        m->locked.left_orphan = bz_proc_adopt(m->last) && bz_proc_start(m->last, false) != 0;
    bz_proc_give(m->locked.gift, m);
    bz_resume_from_home(m, t);
}
