/*
 * handover.c - the proc moves, the thread stays: what the monitor does about hogs and long calls.
 *
 * A task that has run for HOG_NS is a hog. A task that keeps spawning other tasks, or joining them by
 * running them itself, gets LIVELY_NS. Without a proc all these operations would take the slow path.
 * Also, such a task has been asked (ask.c) and lets other tasks run at its next join. The runtime
 * cannot stop a hog, but no other task has to wait for it: its thread keeps the hog, and its proc
 * moves to another machine. As long as another proc is live, no proc moves: other workers can steal
 * from the hog's queue, and the monitor fires its timers. A proc is live if it sleeps or gets from one
 * task to the next. If no proc is live and a task waits to run, one proc is moved. The same holds for a
 * proc whose machine is in a system call that it announced (blitz_syscall_enter). After CALL_NS that
 * proc moves as soon as a task waits and no proc sleeps.
 *
 * A task that was asked to begin on a certain proc waits in its inbox (queue/inbox.h), and no other proc runs it. So the
 * proc of a hog or of a call moves if its inbox is not empty, also while other procs sleep.
 *
 * A machine that lost its proc is a *stray* until it is home or has another proc. Any number of strays
 * may burn CPU, up to the limit on threads. A program that wants fewer sets `burning_max`; at that
 * number no further proc is moved. Once every BURN_NS a stray's CPU clock tells whether it burns or is
 * blocked in a call of its own. Until that is known, the stray counts as burning.
 *
 * Hogs often come in crowds. Moving past a queue of a hundred hogs would take HOG_NS for each, and a
 * task that wakes meanwhile would wait for all of them. Two rules bound that wait. A task that wakes
 * while hogs hold the procs is urgent (injector.h), and a proc that has just moved runs urgent tasks
 * first. And a task is a hog after a fifth of HOG_NS if there is evidence: a stray burns and an urgent
 * task waits, or a stray has burnt for OLD_NS. One late task among many of 12 ms is no such evidence.
 * If it were, a batch of them would run on hundreds of threads at once.
 *
 * A move is retake.h's handshake, in the same round as the monitor's other takes and with the same
 * barrier. Then the proc is STARTING, and bz_proc_start finds a thread for it. If the system has no
 * thread, the proc is an ORPHAN. The machine that lost it takes it back when it enters the runtime, or
 * a later look of the monitor finds a thread.
 *
 * A task that blocks its thread in a call that it did not announce burns nothing. Its proc moves as
 * soon as a second look finds the thread asleep (os.h, thread_sleeps), like that of an announced call.
 * Every other such proc moves at the same look. Such tasks come in crowds, too, and on one proc each of them blocks as
 * soon as the proc has moved to it. So for BLOCKING_NS after such a move, the monitor reads the clock of a task at
 * its first sight, and looks again BLOCKED_NS later: a crowd of them passes at two a millisecond.
 *
 * Strays take turns on the CPUs (turns.c). So any number of hogs share the CPU time that is left to
 * them. A hog whose proc other tasks could use costs them no more if it is a stray. Therefore, where
 * strays take turns, the procs of all hogs move, one at a look, while a task waits. Where strays do
 * not take turns, one proc moves if no other proc is live.
 *
 * When the monitor looks again: while a proc is in a call, soon, and then less and less often (CALL_NS
 * doubled up to the usual pace). A take makes it soon again. While a task is about to become a hog, the
 * monitor looks at the time when the task will be one. For LATELY_NS after the move of a hog it looks as if tasks were
 * waiting, because the timers of the next hog's proc wait until two looks have found the hog. The time of a task counts
 * from the look that first sees it, so for BEGINS_NS after a move it looks several times for the proc's first task.
 *
 * Rejected: a signal that makes the hog switch to another task (it may hold any lock of its libraries);
 * moving every hogged proc at once (each costs a thread).
 */
#include "monitor/monitor.h"

#include "life/deadlines.h"
#include "proc/ask.h"
#include "proc/fresh.h"
#include "proc/place.h"
#include "proc/retire.h"
#include "proc/state.h"

enum {
    HOG_NS = 10000000,
    LIVELY_NS = 100000000,
    CALL_NS = 20000,
    CALL_NS_MAX = 10000000,
    BURN_NS = 10000000,
    OLD_NS = 100000000,     /* a stray that has burnt so long is taken for an endless loop */
    CROWD_NS = 2500000,     /* between two looks while all procs are busy and something waits */
    LATELY_NS = 1000000000, /* after the move of a hog: the next one may come */
    BEGINS_NS = 500000,     /* after a move: within that time the next task begins */
    EVIDENCE = 5,           /* with evidence of hogs a task is one after this part of the time */
    BLOCKED_NS = 400000,    /* in user code, asleep: its proc moves */
    BLOCKING_NS = 5000000,  /* after such a move: the next task may block likewise */
    HELD_UP_NS = 5000000,   /* in the runtime, asleep: it waits for a lock */
    CPU_PART = 8,           /* a hog has had the CPU for at least this part of the time */
    PROOF_NS = 1000000, /* CPU time that a task has used when it is stopped for the first time */
    BURN_SHARE = 50     /* less CPU than a 50th of the time is not burning */
};

uint64_t bz_hog_ns = HOG_NS;

/* ---- stuck procs ---- */

/* Return the time after which a task is asked to let other tasks run. */
static uint64_t long_after(struct bz_runtime *rt)
{
    const struct bz_monitor *mon = &rt->monitor;
    bool is_evident =
        mon->old_strays > 0 || (mon->burning > 0 && bz_injector_urgent(&rt->injector) > 0);
    return is_evident ? bz_hog_ns / EVIDENCE : bz_hog_ns;
}

/* True if its task has had the machine for `ns`. Time in which the thread had no CPU does not count. */
static bool has_run_for(const struct bz_proc *p, uint64_t now, uint64_t ns)
{
    const struct bz_monitor_seen *seen = &p->seen;
    bool has_clock = seen->has_clock && seen->clock_ns >= seen->since_ns;
    return bz_proc_state_of(seen->word) == BZ_PROC_HELD && now - seen->since_ns >= ns &&
           (!has_clock || seen->used_ns - seen->base_ns >= ns / CPU_PART);
}

static bool is_long_at_it(const struct bz_proc *p, uint64_t now)
{
    return has_run_for(p, now, long_after(p->rt));
}

static bool is_hog(const struct bz_proc *p, uint64_t now)
{
    uint64_t ns = long_after(p->rt);
    return has_run_for(p, now, p->seen.is_lively && ns < LIVELY_NS ? LIVELY_NS : ns);
}

static bool is_in_call(const struct bz_proc *p, uint64_t now)
{
    return p->seen.call_since_ns != 0 && now - p->seen.call_since_ns >= CALL_NS;
}

static bool is_live(const struct bz_proc *p, uint64_t now)
{
    enum bz_proc_state state = bz_proc_state_of(p->seen.word);
    return state != BZ_PROC_ORPHAN && state < BZ_PROC_RETIRED && !is_hog(p, now) &&
           !is_in_call(p, now) && !p->seen.is_blocked;
}

/* True if a task or job waits to be run on this proc, or because of it. */
static bool has_work(struct bz_proc *p)
{
    struct bz_batch *h = &p->batch;
    return bz_runq_count(&p->ring) > 0 || p->seen.next != 0 || !bz_inbox_is_empty(&p->inbox) ||
           bz_fresh_count(p) > 0 ||
           bz_load_relaxed(&h->at) < bz_load_relaxed(&h->count); /* relaxed: hints */
}

static bool is_anything_waiting(struct bz_runtime *rt)
{
    if (bz_injector_length(&rt->injector) > 0 || bz_job_is_any(rt))
        return true;
    for (unsigned i = 0; i < rt->proc_count; i++)
        if (has_work(&rt->procs[i]))
            return true;
    return false;
}

/* ---- burning strays ---- */

static bool is_stray(struct bz_machine *m)
{
    return m->is_used && !bz_machine_is_guest(m) &&
           bz_load_relaxed(&m->is_stray) != 0; /* relaxed: a hint */
}

/* True if this stray burns CPU. Under start_lock, so that no thread joins the stray's thread meanwhile. */
static bool does_burn(struct bz_machine *m, uint64_t now, uint64_t passed)
{
    uint64_t used = 0;
    if (!is_stray(m))
        return false;
    if (bz_halt_is_stopped(&m->turn.halt) || now - m->turn.thawed_ns < 2 * BURN_NS)
        return m->burns; /* it takes turns: its clock says little */
    if (bz_os_thread_cpu_time(m->rt->os, m->thread, &used) != 0)
        return false;
    m->is_proven |= used - m->base_ns >= PROOF_NS;
    if (passed < BURN_NS)
        return m->burns; /* the call was only for is_proven */
    uint64_t more = used - m->burnt_ns;
    m->burnt_ns = used;
    /* relaxed: turns.c I2. A thread that could run and got no CPU burns, too. */
    m->burns = more >= passed / BURN_SHARE ||
               bz_os_thread_sleeps(m->rt->os, bz_load_relaxed(&m->turn.thread)) == 0;
    return m->burns;
}

static bool is_old(const struct bz_machine *m, uint64_t now)
{
    return m->burns && now - m->astray_ns >= OLD_NS;
}

/* Read clocks every BURN_NS. Read those of new strays at every look, until it is known whether they burn. If the
 * last look found a burning stray, look again, even if that stray's thread has ended since. Otherwise it would
 * count as burning for ever. */
static void see_who_burns(struct bz_runtime *rt, uint64_t now)
{
    struct bz_monitor *mon = &rt->monitor;
    uint64_t passed = now - mon->burn_ns;
    bool is_none = bz_machines_count(rt) <= rt->proc_count && mon->burning == 0;
    if (is_none || (passed < BURN_NS && mon->unproven == 0))
        return;
    if (passed >= BURN_NS)
        mon->burn_ns = now;
    mon->burning = mon->old_strays = mon->unproven = 0;
    bz_lock_take(&rt->start_lock, rt->os);
    for (unsigned i = bz_machines_count(rt); i-- > 0;) {
        struct bz_machine *m = bz_machines_at(rt, i);
        bool is_new = m->burns && !m->is_proven;
        bool burns =
            passed >= BURN_NS || is_new ? does_burn(m, now, passed) : is_stray(m) && m->burns;
        mon->burning += burns;
        mon->unproven += burns && !m->is_proven;
        mon->old_strays += burns && is_old(m, now);
    }
    bz_lock_drop(&rt->start_lock, rt->os);
}

/* ---- clocks: computing or blocked ---- */

/* Read the CPU time of its thread. Under start_lock: its starter is done with it, and no thread joins it. */
static int cpu_time(struct bz_machine *m, uint64_t *out)
{
    if (!m->is_used || bz_machine_is_guest(m))
        return -ESRCH;
    return bz_os_thread_cpu_time(m->rt->os, m->thread, out);
}

/* Read the clock of a worker that stays at one task, and note the CPU time that the task has used. Return true if
 * the thread has not run since the last look. */
static bool read_clock(struct bz_proc *p, struct bz_machine *m, uint64_t now)
{
    struct bz_monitor_seen *seen = &p->seen;
    uint64_t used = 0, passed = now - seen->clock_ns, before = seen->used_ns;
    bool is_first = seen->clock_ns < seen->since_ns;
    seen->has_clock = cpu_time(m, &used) == 0;
    if (!seen->has_clock)
        return false;
    seen->clock_ns = now;
    seen->used_ns = used;
    if (is_first)
        seen->base_ns = used;
    return !is_first && used - before < passed / BURN_SHARE;
}

/* True if its thread sleeps, in a call that it did not announce or in the runtime. Reading the state of a thread
 * takes ten times as long as reading its clock. */
static bool does_sleep(struct bz_proc *p, struct bz_machine *m, uint64_t now)
{
    uint32_t thread = bz_load_relaxed(&m->turn.thread); /* relaxed: turns.c I2 */
    uint64_t after = p->seen.is_away ? BLOCKED_NS : HELD_UP_NS;
    return p->seen.call_since_ns == 0 && now - p->seen.since_ns >= after && thread != 0 &&
           bz_os_thread_sleeps(m->rt->os, thread) == 1;
}

/* Read the clocks of all workers. Return true if a worker is blocked. Stopped hogs may be the reason: they may hold
 * a lock of the program or of a library. */
static bool see_clocks(struct bz_runtime *rt, uint64_t now, bool is_wanted)
{
    bool is_any = false, is_blocking = now < rt->monitor.blocking_ns;
    bz_lock_take(&rt->start_lock, rt->os);
    for (unsigned i = 0; i < rt->proc_count; i++) {
        struct bz_proc *p = &rt->procs[i];
        p->seen.is_blocked = false;
        if (bz_proc_state_of(p->seen.word) != BZ_PROC_HELD ||
            (now == p->seen.since_ns && !is_blocking))
            continue;
        struct bz_machine *m = bz_proc_machine(rt, p->seen.word);
        p->seen.is_blocked = read_clock(p, m, now) && is_wanted && does_sleep(p, m, now);
        is_any |= p->seen.is_blocked;
    }
    bz_lock_drop(&rt->start_lock, rt->os);
    return is_any;
}

/* ---- choosing ---- */

static void choose(struct bz_proc *p)
{
    p->seen.moves = p->seen.is_target = true;
}

/* Choose one hog: the first that has work that only its proc can run, or any. */
static void choose_a_hog(struct bz_runtime *rt, uint64_t now)
{
    struct bz_proc *found = NULL;
    for (unsigned i = 0; i < rt->proc_count; i++) {
        struct bz_proc *p = &rt->procs[i];
        if (is_hog(p, now) && (found == NULL || !has_work(found)))
            found = p;
    }
    if (found != NULL)
        choose(found);
}

static bool choose_calls(struct bz_runtime *rt, uint64_t now)
{
    bool is_any = false;
    for (unsigned i = 0; i < rt->proc_count; i++)
        if (is_in_call(&rt->procs[i], now) ||
            (rt->procs[i].seen.is_blocked && rt->procs[i].seen.is_away)) {
            choose(&rt->procs[i]);
            is_any = true;
        }
    return is_any;
}

/* Choose the procs with tasks that must begin there and that a hog or a call holds up. It does not matter whether other
 * procs sleep. */
static bool choose_pinned(struct bz_runtime *rt, uint64_t now)
{
    bool is_any = false;
    for (unsigned i = 0; i < rt->proc_count; i++) {
        struct bz_proc *p = &rt->procs[i];
        if (!bz_inbox_is_empty(&p->inbox) && (is_hog(p, now) || is_in_call(p, now))) {
            choose(p);
            is_any = true;
        }
    }
    return is_any;
}

/* Try again to start procs that have no machine for want of a thread. */
static void start_orphans(struct bz_runtime *rt)
{
    for (unsigned i = 0; i < rt->proc_count; i++)
        if (bz_proc_state_of(rt->procs[i].seen.word) == BZ_PROC_ORPHAN &&
            bz_proc_adopt(&rt->procs[i]) && bz_proc_start(&rt->procs[i], false) != 0)
            return;
}

void bz_handover_choose(struct bz_runtime *rt, uint64_t now)
{
    struct bz_monitor *mon = &rt->monitor;
    unsigned hogs = 0, live = 0, sleeping = bz_idle_sleeping(&rt->idle);
    bool is_wanted = sleeping == 0 && is_anything_waiting(rt), is_held_up;
    see_who_burns(rt, now);
    is_held_up = see_clocks(rt, now, is_wanted || bz_turns_frozen(&rt->turns) > 0);
    for (unsigned i = 0; i < rt->proc_count; i++) {
        struct bz_proc *p = &rt->procs[i];
        if (is_long_at_it(p, now))
            bz_machine_ask_run(bz_proc_machine(rt, p->seen.word), p,
                               p->seen.tick); /* perhaps it looks up */
        hogs += is_hog(p, now);
        live += is_live(p, now);
    }
    bool may = hogs + mon->burning <= rt->is.burning_max;
    unsigned active = bz_procs_active(rt);
    mon->turn_ns = bz_turns_take(rt, now, active > sleeping ? active - sleeping : 0, is_held_up);
    mon->is_hogged = live == 0 && may;
    bz_store_relaxed(&mon->sees_hogs, hogs + mon->burning > 0); /* relaxed: a hint */
    bool was_crowded = mon->is_crowded;
    mon->is_crowded = is_wanted && may;
    bool is_any_pinned = may && choose_pinned(rt, now);
    if (!is_wanted)
        return;
    bool is_any_call = choose_calls(rt, now);
    start_orphans(rt);
    if (!is_any_call && !is_any_pinned && may &&
        (live == 0 || (was_crowded && !bz_turns_are_refused(&rt->turns))))
        choose_a_hog(rt, now);
}

/* ---- moving ---- */

static void went_astray(struct bz_machine *m, bool burns, uint64_t now)
{
    struct bz_monitor *mon = &m->rt->monitor;
    if (mon->burning == 0)
        mon->burn_ns = now;
    mon->burning += burns; /* until its clock says otherwise */
    m->burns = burns;
    m->burnt_ns = m->base_ns = 0;
    m->is_proven = false;
    m->astray_ns = now;
    bz_store_relaxed(&m->is_stray, 1); /* relaxed: a hint */
}

/* Note the CPU clock at which the machine becomes a stray. */
static void note_clock(struct bz_machine *m, const struct bz_monitor_seen *seen)
{
    uint64_t used = 0;
    bz_lock_take(&m->rt->start_lock, m->rt->os);
    if (cpu_time(m, &used) == 0) {
        m->burnt_ns = used;
        m->base_ns = seen->clock_ns >= seen->since_ns ? seen->base_ns : used;
        m->is_proven = used - m->base_ns >= PROOF_NS;
        m->rt->monitor.unproven += m->burns && !m->is_proven;
    }
    bz_lock_drop(&m->rt->start_lock, m->rt->os);
}

void bz_handover_move(struct bz_proc *p, uint64_t now)
{
    struct bz_machine *m = bz_proc_machine(p->rt, p->seen.word);
    /* acquire: what its machine left there. The same word: the proc is still that machine's. The same tick: the
     * machine is still at that task, not at one that has just begun. */
    bool may = bz_retake_may(&m->taken) && bz_load_acquire(&p->state) == p->seen.word &&
               bz_tick_now(&p->tick) == p->seen.tick;
    bz_os_delay(p->rt->os, BZ_OS_AT_PUBLISH);
    if (may) {
        went_astray(m, p->seen.call_since_ns == 0 && !p->seen.is_blocked, now);
        bz_proc_hurry(p); /* urgent tasks run before the ring */
        bz_store_release(&p->state, bz_proc_word(BZ_PROC_STARTING, 0)); /* proc.c [S] */
    }
    bz_retake_end(&m->taken, may);
    if (!may)
        return; /* its machine was in the runtime: try again soon, then less often */
    p->rt->monitor.calls_ns = CALL_NS;
    p->rt->monitor.is_useful = true;
    p->seen.moved_ns = now;
    if (p->seen.is_blocked)
        p->rt->monitor.blocking_ns = now + BLOCKING_NS;
    else if (p->seen.call_since_ns == 0)
        p->rt->monitor.hogs_ns = now + LATELY_NS;
    bz_trace(p->rt, handover, 0, p->index, NULL);
    note_clock(m, &p->seen);
    if (bz_proc_start(p, false) == 0) {
        bz_atomic(uint64_t) *moved = &p->rt->monitor.moved;
        bz_store_relaxed(moved, bz_load_relaxed(moved) + 1); /* relaxed: one writer */
    }
}

/* ---- the time of the next look ---- */

/* Return the time between two looks while all procs are busy and a task waits. It is twice as long while no stray
 * burns and every proc gets from task to task: then there is no hog to find. */
static uint64_t crowd_ns(struct bz_runtime *rt, uint64_t now)
{
    bool is_lively = rt->monitor.burning == 0;
    for (unsigned i = 0; i < rt->proc_count; i++)
        is_lively &= rt->procs[i].seen.since_ns == now;
    return is_lively ? 2 * CROWD_NS : CROWD_NS;
}

/* Return the time at which this proc's task counts as blocked if it has not run since; BZ_OS_FOREVER if none is
 * expected to block, or if that time is over. */
static uint64_t blocked_at(const struct bz_proc *p, uint64_t now)
{
    const struct bz_monitor *mon = &p->rt->monitor;
    uint64_t at = p->seen.since_ns + BLOCKED_NS;
    bool may =
        mon->is_crowded && now < mon->blocking_ns && bz_proc_state_of(p->seen.word) == BZ_PROC_HELD;
    return may && at > now ? at : BZ_OS_FOREVER;
}

/* Return when to look for the first task of a proc that has just moved. The time of that task counts from the look
 * that first sees it. */
static uint64_t begins_at(const struct bz_proc *p, uint64_t now)
{
    bool may = !p->seen.is_away && now - p->seen.moved_ns < BEGINS_NS;
    return may ? now + BEGINS_NS / 4 : BZ_OS_FOREVER;
}

/* Return the system's time at which the first timer of the proc is due. */
static uint64_t timer_at(struct bz_proc *p)
{
    uint64_t first = bz_timers_first(p);
    return p->rt->time == p->rt->os ? first : bz_clock_to_system(&p->rt->clockwork.clock, first);
}

uint64_t bz_handover_next(struct bz_runtime *rt, uint64_t now)
{
    struct bz_monitor *mon = &rt->monitor;
    uint64_t next = mon->turn_ns, after = long_after(rt);
    bool is_any_call = false;
    bool are_hogs_near = mon->is_crowded || now < mon->hogs_ns;
    if (are_hogs_near && now + crowd_ns(rt, now) < next)
        next = now + crowd_ns(rt, now);
    for (unsigned i = 0; i < rt->proc_count; i++) {
        struct bz_proc *p = &rt->procs[i];
        uint64_t timer = p->seen.is_stuck ? timer_at(p) : BZ_OS_FOREVER;
        uint64_t blocked = blocked_at(p, now), begins = begins_at(p, now);
        next = timer < next ? timer : next;
        next = blocked < next ? blocked : next;
        next = begins < next ? begins : next;
        is_any_call |= p->seen.call_since_ns != 0 || p->seen.moves;
        bool is_new = p->seen.since_ns == now && after == bz_hog_ns; /* the usual pace will do */
        if (bz_proc_state_of(p->seen.word) == BZ_PROC_HELD && !is_new &&
            now - p->seen.since_ns < after && p->seen.since_ns + after < next)
            next = p->seen.since_ns + after;
    }
    mon->calls_ns = !is_any_call                  ? CALL_NS
                    : mon->calls_ns < CALL_NS_MAX ? 2 * mon->calls_ns
                                                  : CALL_NS_MAX;
    if (is_any_call && now + mon->calls_ns / 2 < next)
        next = now + mon->calls_ns / 2;
    return next;
}
