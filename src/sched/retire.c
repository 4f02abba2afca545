/*
 * retire.c - a proc that runs no tasks any more.
 *
 * blitz_runtime_resize() sets how many procs run tasks, as GOMAXPROCS does in Go. The arrays have room for procs_max.
 * The procs from `active` on are *retired*. A retired proc hands over all its tasks, and gets no others: it is not in
 * the idle set, so no thread rouses it for work, and its machine does not search.
 *
 * Its timers and its files stay. An armed timer knows its proc, and its owner disarms it there without a lock that
 * would hold the timer still meanwhile; an operation of io_uring is in the ring of its proc. So the machine stays,
 * too, and serves both: it sleeps in the poll of the proc, fires timers, delivers events, and passes the woken tasks
 * on. New timers and files are on the procs that run tasks, and those of the retired proc end one by one. The price
 * is a thread that sleeps. A proc that never had a machine needs none, unless a timer is armed there.
 *
 *   state     from            how                                                to
 *   HELD      its machine     serve, before it sleeps: store                     RETIRED
 *   RETIRED   its machine     serve, after it slept: store                       HELD
 *   FREE      resize          claimed in the idle set, then adopt: CAS           STARTING, then UNUSED: store
 *   UNUSED    resize          to use it again: CAS                               STARTING
 *   UNUSED    a thread that rouses it for a timer or an inbox: CAS               STARTING
 *
 * A machine learns that its proc is retired when its own queues are empty, when it is about to sleep, and at the
 * latest after 32 runs (find.c). So the running task is not interrupted. A machine in the middle of a switch only
 * passes its tasks on; it serves from its loop.
 *
 * Rejected: moving the timers. Each disarm would have to look up the proc of its timer under that proc's lock, and try
 * again if it has moved. Rejected: stopping all machines, as Go does. Nothing here needs a moment at which all agree.
 *
 * I1  A retired proc is not in the idle set, once its machine serves.
 * I2  While a machine serves, the queues of its proc are empty, except between an event and shed().
 *
 * [R] resize.c: active, full fence, then the idle set (wanted) or the poll (rouse) -> the full fence of idle.c, announce,
 *     or that of serve, then active: a machine sees that its proc was retired, or is used again, before it sleeps; or
 *     it is roused
 * [S] serve: state, full fence, then inbox and timers -> place.c, rouse_for: inbox or timer, the full fence of idle.c,
 *     then state   the machine sees what it must serve, or is roused in its poll
 */
#include "life/deadlines.h"
#include "life/stacks.h"
#include "proc/batch.h"
#include "proc/enter.h"
#include "proc/place.h"
#include "proc/retire.h"
#include "sched/loop.h"
#include "sched/reap.h"

void bz_retire_shed(struct bz_machine *m)
{
    struct bz_proc *p = m->proc;
    struct bz_runtime *rt = m->rt;
    bz_entry e, out[BZ_PRIVATE_MAX];
    unsigned count = bz_batch_empty(p, out);
    for (unsigned i = 0; i < count; i++)
        bz_place_outside(rt, out[i]);
    while ((e = bz_runq_take(&p->ring)) != 0)
        bz_place_outside(rt, e);
    while ((e = bz_inbox_take(&p->inbox, rt->os)) != 0)
        bz_place_outside(rt, e);
    while ((e = bz_entries_take(&p->want_stack)) != 0)
        bz_place_outside(rt, e);
}

/* Another proc searches in its stead. */
static void stop_searching(struct bz_machine *m)
{
    if (!m->is_searching)
        return;
    m->is_searching = false;
    bz_rouse(m->rt, bz_idle_found(&m->rt->idle));
}

/* A virtual clock moves when a machine looks before it sleeps (clockwork.c), and this one does not look. Another machine
 * may have relied on it, before its proc was retired. Or the clock has moved to a timer of this proc, and no task came
 * of it. The first proc is never retired. */
static void ask_for_a_look(struct bz_runtime *rt)
{
    if (bz_load_acquire(&rt->clockwork.is_wanted)) /* clockwork.c [A] */
        (void)bz_rouse_for(&rt->procs[0]);
}

/* Sleep in the poll until an event, the first timer or a rouse. */
static void sleep_retired(struct bz_machine *m)
{
    struct bz_proc *p = m->proc;
    struct bz_runtime *rt = m->rt;
    m->heard.count = m->heard.at = 0;
    bz_poll_prepare(&p->poll);
    bz_os_delay(rt->os, BZ_OS_AT_SLEEP);
    bz_store_release(&p->state, bz_proc_word(BZ_PROC_RETIRED, m->index)); /* [S] */
    bz_fence_seqcst();                                                    /* [S] */
    uint64_t until = bz_timers_first(p);
    if (BZ_UNLIKELY(rt->time != rt->os)) {
        until = bz_clock_to_system(&rt->clockwork.clock, until);
        ask_for_a_look(rt);
    }
    if (bz_inbox_is_empty(&p->inbox) && bz_proc_is_retired(p) && !bz_is_ending(m)) /* [R] */
        bz_poll_wait(&p->poll, until, &m->heard);
    bz_store_release(&p->state, bz_proc_word(BZ_PROC_HELD, m->index)); /* proc.c [S] */
}

void bz_retire_serve(struct bz_machine *m)
{
    struct bz_proc *p;
    struct bz_clockwork *c = &m->rt->clockwork;
    stop_searching(m);
    bz_machine_share_stacks(m); /* they are for tasks */
    while ((p = m->proc) != NULL && bz_proc_is_retired(p) && !bz_is_ending(m)) {
        bz_clockwork_moves(c); /* it moves tasks, and no tick tells: clockwork.c, 3 */
        bz_retire_shed(m);
        bz_clockwork_moved(c);
        sleep_retired(m);
        bz_clockwork_moves(c);
        bz_io_deliver(p, &m->heard);
        (void)!bz_timers_fire(p, bz_os_now(m->time)); /* a foreign waker may cost us the proc */
        bz_clockwork_moved(c);
    }
}
