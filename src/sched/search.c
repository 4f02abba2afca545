/*
 * search.c - a proc without work of its own: search the others, spin a little, sleep.
 *
 * A searcher asks the others in turn, from a random one on: every machine for its oldest job, then
 * every proc for half of its ring. Then the injector. A searcher does not take the `next` slot of another proc: its
 * task is usually about to run there, and the monitor takes it out if it does not.
 *
 * If there is no work anywhere, the machine spins before it sleeps. A futex wake costs the waker 11 to 26
 * microseconds and the sleeper 33 to 65; a searcher that still spins takes new work in about one.
 * While it spins it counts as searching, so that publishers need not rouse a proc. The best spin time
 * depends on the program: a spin that found work lengthens the next one, a spin in
 * vain shortens it, between about 1 and 15 microseconds in all. The pauses grow, so that most of
 * the time the spin touches no cache lines of other CPUs. A machine spins only while another proc is awake,
 * which may create work, or while a call is running on the pool, whose end is likely to be the next event.
 * Alone, it sleeps at once: only the kernel can bring work then, and wakes it (rouse.c).
 *
 * Then it announces its sleep. If it was the last searcher, it checks all queues once more. If
 * not, the other searchers are responsible for all shared work, and it checks only its private state (idle.c).
 * It sleeps, in its proc's poll (io/poll.h), until its first timer or until it is roused.
 *
 * In a runtime with a virtual clock the machine first looks whether it is time to move that clock (clockwork.c).
 */
#include "life/deadlines.h"
#include "life/stacks.h"
#include "proc/enter.h"
#include "proc/monitor_wake.h"
#include "proc/place.h"
#include "proc/retire.h"
#include "proc/state.h"
#include "sched/loop.h"
#include "sched/reap.h"

enum {
    HUNGRY_NS = 1000000, /* how long to wait for a stack to be given back */
    SPINS = 4,           /* turns, at least: pauses double up to the seventh, then stay */
    SPINS_MORE = 6       /* at most: beyond these bz_os_relax yields the CPU */
};

/* Steal half of the victim's ring: return one, put the others into our ring. */
static bz_entry steal_tasks(struct bz_machine *m, struct bz_proc *victim)
{
    struct bz_runq *mine = &m->proc->ring;
    uint64_t before = bz_load_relaxed(&mine->tail); /* relaxed: ours */
    bz_entry e = bz_runq_steal(&victim->ring, mine);
    if (e != 0) {
        uint64_t moved = bz_load_relaxed(&mine->tail) - before; /* relaxed: ours */
        bz_count(&m->proc->counters, steals);
        bz_count_many(&m->proc->counters, stolen, 1 + moved);
    }
    return e;
}

static bz_entry steal(struct bz_machine *m)
{
    unsigned count = m->rt->proc_count;
    unsigned start = bz_rng_below(&m->proc->rng, count);
    for (unsigned i = 0; i < count; i++) {
        struct bz_proc *victim = &m->rt->procs[(start + i) % count];
        bz_entry e = victim != m->proc ? steal_tasks(m, victim) : 0;
        if (e != 0) {
            bz_trace(m->rt, steal, 0, victim->index, NULL);
            return e;
        }
    }
    return 0;
}

/* Steal the oldest job of a machine, even of one that has lost its proc. A job is usually worth
 * more than a task: it stands for half of the work that a frame has left. */
static bz_entry steal_job(struct bz_machine *m)
{
    unsigned count = bz_machines_count(m->rt);
    unsigned start = count > 0 ? bz_rng_below(&m->proc->rng, count) : 0;
    for (unsigned i = 0; i < count; i++) {
        struct bz_machine *victim = bz_machines_at(m->rt, (start + i) % count);
        if (victim == m || !bz_deque_has_work(&victim->deque))
            continue;
        if (!bz_job_has_header(m))
            return 0; /* no memory: the frame that forked it runs it */
        bz_entry e = bz_job_steal(victim);
        if (e != 0) {
            bz_count(&m->proc->counters, jobs_stolen);
            bz_trace(m->rt, steal, 0, victim->index, NULL);
            return e;
        }
    }
    return 0;
}

static bz_entry take_from_others(struct bz_machine *m)
{
    bz_count(&m->proc->counters, searches);
    bz_entry e = steal_job(m);
    if (e == 0)
        e = steal(m);
    return e != 0 ? e : bz_take_injected(m);
}

/* True if there is anything that another proc could run. */
static bool has_shared_work(struct bz_machine *m)
{
    if (bz_injector_length(&m->rt->injector) > 0)
        return true;
    for (unsigned i = 0; i < m->rt->proc_count; i++)
        if (bz_runq_count(&m->rt->procs[i].ring) > 0)
            return true;
    return bz_job_is_any(m->rt) && bz_job_has_header(m);
}

/* Spin, and look for work. */
static bz_entry spin(struct bz_machine *m)
{
    bz_entry e = 0;
    for (unsigned round = 0; e == 0 && round < SPINS + m->spins_more && !bz_is_ending(m); round++) {
        bz_os_relax(m->rt->os, round);
        if (bz_poll_is_used(&m->proc->poll) && bz_io_reap(m->proc, &m->heard) &&
            (e = bz_take_own(m)) != 0)
            break;
        if (has_shared_work(m))
            e = take_from_others(m);
    }
    if (e != 0 && m->spins_more < SPINS_MORE)
        m->spins_more++;
    else if (e == 0 && m->spins_more > 0)
        m->spins_more--;
    return e;
}

bz_entry bz_search(struct bz_machine *m)
{
    if (!m->is_searching && !bz_idle_search(&m->rt->idle))
        return 0;
    m->is_searching = true;
    bz_entry e = take_from_others(m);
    if (e != 0 || bz_next_is_set(m->proc))
        return e; /* without a look at the idle set, a line that all procs write */
    bool is_alone = bz_idle_sleeping(&m->rt->idle) + 1 >= bz_procs_active(m->rt) &&
                    !bz_pool_is_working(&m->rt->pool);
    return is_alone ? 0 : spin(m);
}

static uint64_t sleep_until(struct bz_machine *m, uint64_t until, bool wants_stack)
{
    if (!wants_stack)
        return until;
    uint64_t soon = bz_os_now(m->rt->os) + HUNGRY_NS;
    return soon < until ? soon : until;
}

#if defined(BZ_WATCH)
static void sleep_now(struct bz_machine *m, uint64_t until, struct bz_reaped *heard)
{
    bz_watch_sleep(m, until, heard);
}
#else
static void sleep_now(struct bz_machine *m, uint64_t until, struct bz_reaped *heard)
{
    bz_poll_wait(&m->proc->poll, until, heard);
}
#endif

/* Sleep. The first time that tasks wait for long, start the monitor to check whether it is a
 * deadlock. */
static void sleep_patiently(struct bz_machine *m, uint64_t until, struct bz_reaped *heard)
{
    struct bz_runtime *rt = m->rt;
    uint64_t soon = bz_deadlock_patience(rt, until);
    sleep_now(m, soon, heard);
    if (BZ_UNLIKELY(soon < until) && bz_os_now(rt->os) >= soon)
        bz_deadlock_wants_monitor(rt);
}

static void count_sleep(struct bz_machine *m)
{
    bz_count(&m->proc->counters, sleeps);
    if (m->was_roused)
        bz_count(&m->proc->counters, useless_wakes);
    m->was_roused = false;
}

/* The proc was taken. Only we have these events: deliver them all the same. */
static BZ_NOINLINE bool deliver_without(struct bz_machine *m, struct bz_proc *p)
{
    m->is_searching = false;
    bz_clockwork_moves(&m->rt->clockwork);
    bz_io_deliver(p, &m->heard);
    bz_clockwork_moved(&m->rt->clockwork);
    return false;
}

/* Others may take the proc from lie_down on: touch nothing of it until we are up again. Lie down
 * only after the announcement: a machine that takes the proc takes back the announcement. False:
 * the proc was taken, and its taker is responsible for the idle set. */
static bool sleep_with_proc(struct bz_machine *m, uint64_t until)
{
    struct bz_proc *p = m->proc;
    m->heard.count = m->heard.at = 0;
    bz_proc_lie_down(m);
    bz_trace(m->rt, sleep, 0, 0, NULL);
    sleep_patiently(m, until, &m->heard);
    bz_trace(m->rt, roused, 0, 0, NULL);
    m->was_roused = bz_poll_was_roused(&p->poll);
    bool is_up = bz_proc_get_up(m);
    if (BZ_UNLIKELY(!is_up))
        return deliver_without(m, p);
    bz_io_deliver(p, &m->heard);
    return true;
}

/* The first timer, as a time of the system. Return false if there is something to do: do not sleep. */
static bool ask_clock(struct bz_machine *m, uint64_t *until)
{
    return BZ_LIKELY(m->time == m->rt->os) || !m->rt->mains->clock(m, until);
}

bool bz_go_to_sleep(struct bz_machine *m)
{
    struct bz_proc *p = m->proc;
    struct bz_runtime *rt = m->rt;
    bz_tasks_rest(&p->tasks);
    bool is_short = bz_is_short(rt);
    if (BZ_UNLIKELY(is_short)) {
        if (m->runner != NULL)
            return true; /* the loop leaves its stack first: find.c */
        bz_machine_share_stacks(m);
    }
    if (bz_next_is_set(p))
        return true; /* a destructor of the last task woke it: only we can run it */
    bool wants_stack = !bz_entries_is_empty(&p->want_stack);
    count_sleep(m);
    bz_poll_prepare(&p->poll);
    bool is_last = bz_idle_announce(&rt->idle, p->index, m->is_searching);
    bool will_search = bz_is_ending(m) || !bz_inbox_is_empty(&p->inbox) || /* inbox.h [A] */
                       (!is_short && bz_is_short(rt)) ||                   /* stacks.c [S] */
                       bz_proc_is_retired(p) ||                            /* retire.c [R] */
                       (is_last && has_shared_work(m));
    if (!will_search && bz_monitor_is_slow(rt))
        bz_monitor_tell(rt);
    bz_os_delay(rt->os, BZ_OS_AT_SLEEP);
    uint64_t first = bz_timers_first(p);
    if (!will_search && !ask_clock(m, &first))
        will_search = true;
    if (!will_search && !sleep_with_proc(m, sleep_until(m, first, wants_stack)))
        return false;
    m->is_searching = bz_idle_stay(&rt->idle, p->index, will_search);
    bz_monitor_woke(m);
    return true;
}
