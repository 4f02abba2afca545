/*
 * handover.c - the proc moves, the thread stays: what the monitor does about hogs and long calls.
 *
 * A task that has run HOG_NS is a hog; one that goes on spawning others, or joining them by running
 * them itself, is given LIVELY_NS: without a proc all that would go the long way, and it has been
 * asked (ask.c): its next join lets others run. Nobody can stop it, but nobody has to wait for it
 * either: its thread keeps it, and its proc goes on with another machine. What the hog's queue holds
 * others can steal, and the monitor fires its timers; so that is not done as long as some other proc
 * lives, that is, sleeps, or gets from one task to the next. If none does, and something waits to be
 * run, one proc is moved. The same goes for a proc whose machine is in a system call that it announced
 * (blitz_syscall_enter): after CALL_NS it moves as soon as something waits and nobody sleeps.
 *
 * A machine that lost its proc is a *stray* until it is home or has another. Any number of strays may
 * burn, up to the limit on threads; a program that wants fewer sets `burning_max`, and with so many no
 * further proc is moved. A stray's CPU clock tells whether it burns or is blocked in a call of its own,
 * once every BURN_NS; a stray counts as burning until that is known.
 *
 * Hogs often come in crowds. A queue of a hundred of them would take HOG_NS each to move past, and a task
 * that wakes meanwhile would wait for all of them. Two rules bound that. A task that wakes while hogs hold
 * the procs is urgent (injector.h), and a proc that has just moved runs urgent tasks first. And a
 * task is a hog after a fifth of HOG_NS if there is evidence: a stray burns and an urgent task waits, or a
 * stray has burnt for OLD_NS. One late task among many of 12 ms is no such evidence; else a batch of them
 * would run on hundreds of threads at once.
 *
 * Moving is retake.h's handshake, in the same round as the monitor's other takings and with the same
 * barrier. Then the proc is STARTING, and bz_proc_start finds a thread for it. If the system has none
 * the proc is an ORPHAN: the machine that lost it takes it back when it comes into the runtime, or a
 * later look finds a thread.
 *
 * With preemption (preempt.c, if the config asks for it) the cap is on those that run: whoever burns
 * past it is stopped where it is, and all take turns. A stopped thread does not burn, so there is
 * room for the next proc to be moved, and any number of endless loops share what burning_max of them
 * would take.
 *
 * When to look again: while a proc is in a call, soon, and then less and less often (CALL_NS doubled
 * up to the usual pace); a take makes it soon again. While a task is on its way to be a hog: when it
 * will be one.
 *
 * Rejected: a signal that makes the hog switch (it may hold any lock of its libraries; preempt.c, for
 * those who ask for it, does not switch either); handing over every hogged proc at once (each costs
 * a thread, and one live proc serves all that do not hog).
 */
#include "sched/monitor.h"

#include "sched/ask.h"
#include "sched/sched.h"

enum {
    HOG_NS = 10000000,
    LIVELY_NS = 100000000,
    CALL_NS = 20000,
    CALL_NS_MAX = 10000000,
    BURN_NS = 10000000,
    OLD_NS = 100000000, /* a stray that has burnt so long is taken for an endless loop */
    CROWD_NS = 2500000, /* between two looks while all procs are busy and something waits */
    EVIDENCE = 5,       /* with evidence of hogs a task is one after this part of the time */
    BURN_SHARE = 50,    /* of the time: less CPU than a 50th of it is not burning */
    TURNS_MAX = 512     /* machines that take turns; more are let burn */
};

uint64_t bz_hog_ns = HOG_NS;

/* ---- who is stuck ---- */

/* After what time is a task asked to let others run? */
static uint64_t long_after(struct bz_runtime *rt)
{
    const struct bz_monitor *mon = &rt->monitor;
    bool is_evident =
        mon->old_strays > 0 || (mon->burning > 0 && bz_injector_urgent(&rt->injector) > 0);
    return is_evident ? bz_hog_ns / EVIDENCE : bz_hog_ns;
}

static bool is_long_at_it(const struct bz_proc *p, uint64_t now)
{
    return bz_proc_state_of(p->seen.word) == BZ_PROC_HELD &&
           now - p->seen.since_ns >= long_after(p->rt);
}

static uint64_t hog_after(const struct bz_proc *p)
{
    uint64_t ns = long_after(p->rt);
    return p->seen.is_lively && ns < LIVELY_NS ? LIVELY_NS : ns;
}

static bool is_hog(const struct bz_proc *p, uint64_t now)
{
    return bz_proc_state_of(p->seen.word) == BZ_PROC_HELD && now - p->seen.since_ns >= hog_after(p);
}

static bool is_in_call(const struct bz_proc *p, uint64_t now)
{
    return p->seen.call_since_ns != 0 && now - p->seen.call_since_ns >= CALL_NS;
}

static bool is_live(const struct bz_proc *p, uint64_t now)
{
    return bz_proc_state_of(p->seen.word) != BZ_PROC_ORPHAN && !is_hog(p, now) &&
           !is_in_call(p, now);
}

/* Is there something that waits to be run on this proc, or because of it? */
static bool has_work(struct bz_proc *p)
{
    struct bz_hand *h = &p->hand;
    return bz_runq_count(&p->ring) > 0 || p->seen.next != 0 || !bz_inbox_is_empty(&p->inbox) ||
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

/* ---- who burns ---- */

/* Under start_lock: nobody joins its thread meanwhile. */
static bool does_burn(struct bz_machine *m, uint64_t passed)
{
    uint64_t used = 0;
    if (!m->is_used || m->is_guest || !bz_load_relaxed(&m->is_stray)) /* relaxed: a hint */
        return false;
    if (bz_os_thread_cpu_time(m->rt->os, m->thread, &used) != 0)
        return false;
    uint64_t more = used - m->burnt_ns;
    m->burnt_ns = used;
    m->burns = more >= passed / BURN_SHARE;
    return m->burns;
}

static bool is_old(const struct bz_machine *m, uint64_t now)
{
    return m->burns && now - m->astray_ns >= OLD_NS;
}

static void see_who_burns(struct bz_runtime *rt, uint64_t now)
{
    struct bz_monitor *mon = &rt->monitor;
    uint64_t passed = now - mon->burn_ns;
    if ((mon->burning == 0 && !rt->is.is_preemptive) || passed < BURN_NS)
        return;
    mon->burn_ns = now;
    mon->burning = mon->old_strays = 0;
    bz_lock_take(&rt->start_lock, rt->os);
    for (unsigned i = bz_machines_count(rt); i-- > 0;) {
        struct bz_machine *m = bz_machines_at(rt, i);
        bool burns = does_burn(m, passed);
        mon->burning += burns;
        mon->old_strays += burns && is_old(m, now);
    }
    bz_lock_drop(&rt->start_lock, rt->os);
}

/* ---- turns ---- */

/* A machine that burns, and is not in the list yet. */
static void enlist(struct bz_machine **list, unsigned *n, struct bz_machine *m, uint64_t now)
{
    if (*n < TURNS_MAX && m->seat.seen_ns != now)
        list[(*n)++] = m;
    m->seat.seen_ns = now;
}

/* Strays that burn, or were stopped while they did. One that is in nobody's way any more is told so. */
static void enlist_stray(struct bz_machine **list, unsigned *n, struct bz_machine *m, uint64_t now)
{
    bool is_stray = bz_load_relaxed(&m->is_stray) != 0; /* relaxed: a hint */
    if (is_stray && (m->burns || bz_preempt_has_turn(m, now)))
        enlist(list, n, m, now);
    else if (m->seat.seen_ns != now && !bz_halt_is_running(&m->seat.halt))
        bz_preempt_go(m, now);
}

/* Those that burn take turns, if they were to. Returns how many run now. */
static unsigned take_turns(struct bz_runtime *rt, uint64_t now)
{
    struct bz_machine *list[TURNS_MAX];
    unsigned n = 0, running = 0;
    for (unsigned i = 0; i < rt->proc_count; i++)
        if (is_hog(&rt->procs[i], now) && !is_in_call(&rt->procs[i], now))
            enlist(list, &n, bz_proc_machine(rt, rt->procs[i].seen.word), now);
    for (unsigned i = bz_machines_count(rt); i-- > 0;)
        enlist_stray(list, &n, bz_machines_at(rt, i), now);
    rt->monitor.turn_ns = bz_preempt_rotate(rt, now, list, n, rt->is.burning_max);
    for (unsigned i = 0; i < n; i++)
        running += !bz_preempt_is_stopped(list[i]);
    return running;
}

/* ---- choosing ---- */

static void choose(struct bz_proc *p)
{
    if (!BZ_BROKEN(92))
        p->seen.moves = p->seen.is_asked = true;
}

/* One of the hogs: the first that has something only it can run, or any. */
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
        if (is_in_call(&rt->procs[i], now)) {
            choose(&rt->procs[i]);
            is_any = true;
        }
    return is_any;
}

/* Procs that nobody has, for want of a thread: perhaps there is one now. */
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
    unsigned hogs = 0, live = 0;
    see_who_burns(rt, now);
    for (unsigned i = 0; i < rt->proc_count; i++) {
        struct bz_proc *p = &rt->procs[i];
        if (is_long_at_it(p, now))
            bz_machine_ask(bz_proc_machine(rt, p->seen.word)); /* perhaps it looks up */
        hogs += is_hog(p, now);
        live += is_live(p, now);
    }
    unsigned burning = rt->is.is_preemptive ? take_turns(rt, now) : hogs + mon->burning;
    bool may = burning <= rt->is.burning_max;
    mon->is_hogged = live == 0 && may;
    mon->is_crowded = false;
    bz_store_relaxed(&mon->sees_hogs, hogs + mon->burning > 0); /* relaxed: a hint */
    if (bz_idle_sleeping(&rt->idle) > 0 || !is_anything_waiting(rt))
        return;
    mon->is_crowded = may;
    bool is_any_call = choose_calls(rt, now);
    start_orphans(rt);
    if (!is_any_call && live == 0 && may)
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
    m->burnt_ns = 0;
    m->astray_ns = now;
    bz_store_relaxed(&m->is_stray, 1); /* relaxed: a hint */
}

/* From when on it burns as a stray. Under the lock: its starter is through with its thread, which
 * may have begun before that, and nobody joins it. */
static void read_clock(struct bz_machine *m)
{
    uint64_t used = 0;
    bz_lock_take(&m->rt->start_lock, m->rt->os);
    if (m->is_used && !m->is_guest && bz_os_thread_cpu_time(m->rt->os, m->thread, &used) == 0)
        m->burnt_ns = used;
    bz_lock_drop(&m->rt->start_lock, m->rt->os);
}

void bz_handover_move(struct bz_proc *p, uint64_t now)
{
    struct bz_machine *m = bz_proc_machine(p->rt, p->seen.word);
    /* acquire: what its machine left there; the same word: it is still that machine's */
    bool may = bz_retake_may(&m->taken) && bz_load_acquire(&p->state) == p->seen.word;
    bz_os_delay(p->rt->os, BZ_OS_AT_PUBLISH);
    if (may) {
        went_astray(m, p->seen.call_since_ns == 0, now);
        bz_proc_hurry(p); /* what is urgent runs before the ring */
        bz_store_release(&p->state, bz_proc_word(BZ_PROC_STARTING, 0)); /* proc.c [S] */
    }
    bz_retake_end(&m->taken, may);
    if (!may)
        return; /* it was in the runtime: soon again, and less and less often */
    p->rt->monitor.calls_ns = CALL_NS;
    p->rt->monitor.is_useful = true;
    bz_trace(p->rt, handover, 0, p->index, NULL);
    read_clock(m);
    if (bz_proc_start(p, false) == 0) {
        bz_atomic(uint64_t) *moved = &p->rt->monitor.moved;
        bz_store_relaxed(moved, bz_load_relaxed(moved) + 1); /* relaxed: one writer */
    }
}

/* ---- when again ---- */

uint64_t bz_handover_next(struct bz_runtime *rt, uint64_t now)
{
    struct bz_monitor *mon = &rt->monitor;
    uint64_t next = mon->turn_ns, after = long_after(rt);
    bool is_any_call = false;
    if (mon->is_crowded && now + CROWD_NS < next)
        next = now + CROWD_NS;
    for (unsigned i = 0; i < rt->proc_count; i++) {
        struct bz_proc *p = &rt->procs[i];
        uint64_t timer = p->seen.is_stuck ? bz_timers_first(p) : BZ_OS_FOREVER;
        next = timer < next ? timer : next;
        is_any_call |= p->seen.call_since_ns != 0 || p->seen.moves;
        if (bz_proc_state_of(p->seen.word) == BZ_PROC_HELD && !is_long_at_it(p, now) &&
            p->seen.since_ns + after < next)
            next = p->seen.since_ns + after;
    }
    mon->calls_ns = !is_any_call                  ? CALL_NS
                    : mon->calls_ns < CALL_NS_MAX ? 2 * mon->calls_ns
                                                  : CALL_NS_MAX;
    if (is_any_call && now + mon->calls_ns / 2 < next)
        next = now + mon->calls_ns / 2;
    return next;
}
