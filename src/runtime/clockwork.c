/*
 * clockwork.c - when a paused clock moves, and how far.
 *
 * The clock of a test should move as if everything but waiting took no time: all tasks run until each of them waits.
 * Then the clock goes to the first timer, that timer fires, and so on. It stops where the caller of
 * blitz_clock_advance() wants it. If it moves by itself, it goes on while there are timers.
 *
 * Who moves it. The last machine that falls asleep does, after it has announced its sleep (search.c). No thread of
 * its own is needed, and no task pays for a test clock. If a machine finds another one awake, that one looks in its
 * turn before it sleeps.
 *
 * "Every task waits" must be certain: a clock that moves too early makes a timeout fire that was never due. The
 * machine looks twice at all procs, and between the two looks at everything else:
 *
 *   1  every other proc sleeps (its state), and has announced it (the idle set)
 *   2  no machine has a task without a proc: no stray, no guest, no machine that gave its proc to a locked task
 *      (locked.c) while its own task is on its way into a wait
 *   3  no thread moves tasks from queue to queue without a proc, or for a retired one: the monitor, a sleeper that lost
 *      its proc, a machine that serves (retire.c)
 *   4  no queue has a task, no frame has a job to be stolen, no task waits for a stack
 *   5  again 1, and no proc has looked for a task since: the sum of the ticks is the same
 *
 * A proc that was asleep at both looks and whose tick has not changed has slept all the time. So there was a moment at
 * which all procs slept, and no task was in a queue or on a thread. Only a thread from outside can change that.
 *
 * A clock that moves by itself also waits for these to end, since their end is an event that a test expects before
 * the next timeout:
 *
 *   6  work on the pool: blocking calls, files
 *   7  operations of I/O that wait for the kernel
 *
 * blitz_clock_advance() does not wait for them, or a server that waits for a connection would keep it from ever
 * arriving. The runtime knows nothing about plain threads of the program, or about other runtimes: blitz/clock.h says
 * so.
 *
 * If 2, 3, 4, 6 or 7 fails, no proc need be woken when that changes: a stray may end without a wake-up. So the machine
 * sleeps for a short time and looks again. If another proc is awake, it does not: that proc looks.
 *
 * A machine that serves a retired proc runs no tasks and does not look. It rouses the first proc before each sleep, which
 * looks in its stead.
 *
 * Two machines may be between their announcement and their sleep, and see each other's proc held. Then neither may
 * rely on the other: both look again soon (UNSETTLED).
 *
 * The step is made under the lock. Read the first timer of each proc. Go to the earliest of these, or to the earliest
 * moment that a caller wants. If no timer is due at that moment, wake the callers that have arrived. If one is, it
 * fires first, and the tasks that it wakes run before the caller continues. The procs with due timers are roused, as
 * for a timer that another thread armed (deadlines.c).
 *
 * bz_wheel_next() may be earlier than the first deadline, if a timer was disarmed. The clock then stops once more than
 * needed, at a moment at which nothing fires.
 *
 * Rejected: moving the timers instead of the clock. Every wheel would be rebuilt at each step, and deadlines that tasks
 * keep in variables would be wrong.
 * Rejected: counting the waiting tasks. Each park and each wake-up would pay for it.
 *
 * [A] tell: is_wanted, word, then the full fence of idle.c, wanted -> the full fence of idle.c, announce, then
 *     is_wanted and word: a machine sees what was changed before it sleeps, or is seen asleep and roused
 * [D] moves: movers acq_rel, then the queues -> look: the queues, then movers acquire   a task that was taken out of a
 *     queue that looks empty is in another one, or its mover is seen
 * [Q] proc.c, locked.c, machine.c, guest.c: is_stray, is_going release -> look: acquire   a machine that does not run its task
 *     any more has armed its timer, or got a proc before
 */
#include "runtime/clockwork.h"

#include "life/deadlines.h"
#include "life/stacks.h"
#include "park/request.h"
#include "proc/enter.h"
#include "proc/fresh.h"
#include "proc/monitor_wake.h"
#include "proc/place.h"
#include "proc/retire.h"
#include "proc/state.h"

enum {
    AGAIN_NS = 1000000, /* between two looks while something is under way that wakes no proc */
    SOON_NS = 50000     /* ... or while another machine is about to sleep */
};

void bz_clockwork_init(struct bz_clockwork *c, const struct bz_os *os)
{
    bz_clock_init(&c->clock, os);
    bz_lock_init_ranked(&c->lock, BZ_RANK_WAIT);
    bz_list_init(&c->callers);
    c->is_auto = false;
    bz_atomic_init(&c->is_wanted, 0);
    bz_atomic_init(&c->movers, 0);
}

void bz_clockwork_say_wanted(struct bz_clockwork *c)
{
    bool is_wanted = c->is_auto || !bz_list_is_empty(&c->callers);
    bz_store_release(&c->is_wanted, is_wanted); /* [A]; stronger than needed */
}

/* Rouse a proc that sleeps: its machine looks at its timers and at the clock. Of an orphan the monitor fires the
 * timers. */
static void rouse(struct bz_proc *p)
{
    (void)bz_rouse_for(p);                                              /* [A] */
    if (bz_proc_state_of(bz_load_acquire(&p->state)) == BZ_PROC_ORPHAN) /* proc.c [S] */
        (void)!bz_monitor_raise(p->rt);
}

/* Procs with timers must learn their new sleep. The first proc always has a machine: it looks for the callers. */
void bz_clockwork_tell(struct bz_runtime *rt)
{
    uint32_t was;
    (void)!bz_enter(&was);
    for (unsigned i = 0; i < rt->proc_count; i++)
        if (i == 0 || bz_timers_first(&rt->procs[i]) != BZ_OS_FOREVER)
            rouse(&rt->procs[i]);
    bz_leave(was);
}

/* ---- does every task wait? ---- */

enum rest {
    AWAKE,     /* another proc runs: it looks before it sleeps */
    UNSETTLED, /* a proc is about to sleep, or a task is between two queues */
    BUSY,      /* something is under way whose end may wake no proc */
    QUIET      /* every task waits */
};

/* Tell whether a proc is in the idle set, and cannot leave it but by a rouse. */
static enum rest proc_rests(struct bz_runtime *rt, struct bz_proc *p)
{
    uint32_t word = bz_load_acquire(&p->state); /* proc.c [S] */
    enum bz_proc_state state = bz_proc_state_of(word);
    bool is_announced = bz_idle_is_asleep(&rt->idle, p->index);
    if (state == BZ_PROC_ORPHAN || state == BZ_PROC_RETIRED || state == BZ_PROC_UNUSED)
        return QUIET; /* the monitor, or its machine, fires its timers */
    if (state == BZ_PROC_STARTING)
        return BUSY; /* its thread may not start, and then does not look */
    if (bz_proc_is_retired(p))
        return UNSETTLED; /* its machine runs, or was roused, and does not look before it sleeps */
    if (!is_announced)
        return AWAKE;
    return state == BZ_PROC_ASLEEP || state == BZ_PROC_FREE ? QUIET : UNSETTLED;
}

/* 1 and 5: look at all procs but that of the calling machine. *ticks is a sum that only grows. */
static enum rest procs_rest(struct bz_machine *m, uint64_t *ticks)
{
    struct bz_runtime *rt = m->rt;
    enum rest all = QUIET;
    *ticks = 0;
    for (unsigned i = 0; i < rt->proc_count; i++) {
        struct bz_proc *p = &rt->procs[i];
        enum rest one = p != m->proc ? proc_rests(rt, p) : QUIET;
        *ticks += bz_tick_now(&p->tick); /* proc_rests has acquired it */
        all = one < all ? one : all;
    }
    return all;
}

/* 2. A guest counts itself in before it runs its task (guest.c). */
static bool runs_apart(struct bz_runtime *rt)
{
    for (unsigned i = bz_machines_count(rt); i-- > 0;) {
        struct bz_machine *m = bz_machines_at(rt, i);
        if (bz_load_acquire(&m->is_stray) != 0 || bz_load_acquire(&m->is_going) != 0) /* [Q] */
            return true;
    }
    return bz_guests_inside(&rt->guests);
}

/* 4. The queues of sleeping procs: no thread but a mover changes them. */
static bool has_tasks(struct bz_runtime *rt)
{
    if (bz_injector_length(&rt->injector) > 0 || bz_job_is_any(rt) || bz_is_short(rt))
        return true;
    for (unsigned i = 0; i < rt->proc_count; i++) {
        struct bz_proc *p = &rt->procs[i];
        bz_os_delay(rt->os, BZ_OS_AT_SLEEP); /* the simulator lets others move tasks here */
        if (bz_runq_count(&p->ring) > 0 || bz_next_is_set(p) || !bz_inbox_is_empty(&p->inbox) ||
            bz_fresh_count(p) > 0)
            return true;
    }
    return false;
}

/* 7. */
static bool waits_for_io(struct bz_runtime *rt)
{
    uint64_t key;
    for (unsigned i = 0; i < rt->proc_count; i++) {
        struct bz_poll *poll = &rt->procs[i].poll;
        size_t at = 0;
        if (!bz_poll_is_used(poll))
            continue;
        if (poll->ops->completes || bz_files_waited_for(poll->files, poll, &at, &key, 1) > 0)
            return true;
    }
    return false;
}

/* 6 and 7. */
static bool waits_for_system(struct bz_runtime *rt)
{
    return !bz_pool_is_quiet(&rt->pool) || waits_for_io(rt);
}

/* Ask whether every task waits, and whether an operation or a call is under way outside (6, 7). The order is that in
 * which a task may get from place to place: a machine without a proc starts an operation, whose end puts the task into
 * a queue. So a task that is on its way is seen at least once. */
static enum rest rests(struct bz_machine *m, bool *is_outside)
{
    struct bz_runtime *rt = m->rt;
    uint64_t before, after;
    enum rest rest = procs_rest(m, &before);
    if (rest != QUIET)
        return rest;
    uint32_t movers = bz_load_acquire(&rt->clockwork.movers); /* [D] */
    if (movers % BZ_MOVER != 0)
        return UNSETTLED;
    if (runs_apart(rt))
        return BUSY;
    *is_outside = waits_for_system(rt);
    if (has_tasks(rt))
        return UNSETTLED;
    if (bz_load_acquire(&rt->clockwork.movers) != movers) /* [D] */
        return UNSETTLED;
    rest = procs_rest(m, &after);
    return rest == QUIET && before != after ? UNSETTLED : rest;
}

/* ---- the step ---- */

static struct bz_goal *goal_of(struct bz_list *in)
{
    return BZ_CONTAINER_OF(bz_waiter_of(in), struct bz_goal, request.waiter);
}

static uint64_t first_timer(struct bz_runtime *rt)
{
    uint64_t first = BZ_OS_FOREVER;
    for (unsigned i = 0; i < rt->proc_count; i++) {
        uint64_t one = bz_timers_first(&rt->procs[i]);
        first = one < first ? one : first;
    }
    return first;
}

static uint64_t first_goal(struct bz_clockwork *c)
{
    uint64_t first = BZ_OS_FOREVER;
    for (struct bz_list *l = c->callers.next; l != &c->callers; l = l->next)
        first = goal_of(l)->at < first ? goal_of(l)->at : first;
    return first;
}

/* Wake the callers that have arrived, as many as one list holds. The others arrive at the next step. */
static void wake_callers(struct bz_clockwork *c, uint64_t now, struct bz_wakelist *wakes)
{
    for (struct bz_list *l = c->callers.next, *next; l != &c->callers; l = next) {
        next = l->next;
        if (goal_of(l)->at <= now && !bz_wakelist_is_full(wakes))
            (void)!bz_request_grant(&goal_of(l)->request, wakes); /* false: it has left */
    }
    bz_clockwork_say_wanted(c);
}

/* Every task waits. Under the lock: move the clock, or wake callers. `timer`: the first one, read before the look at the tasks.
 * If that one was due, it may have fired since the look, and its task runs. If not, no timer can fire before the clock moves.
 * Return the moment up to which timers are due; 0: nothing is to be done. */
static uint64_t step_locked(struct bz_runtime *rt, bool is_outside, uint64_t timer,
                            struct bz_wakelist *wakes)
{
    struct bz_clockwork *c = &rt->clockwork;
    uint64_t now, goal = first_goal(c), to;
    if (!bz_clock_is_paused(&c->clock, &now))
        return 0;
    if (timer <= now)
        return now; /* its proc is about to fire it, or has fired it */
    to = goal;
    if (timer < to && (goal != BZ_OS_FOREVER || (c->is_auto && !is_outside)))
        to = timer;
    if (to > BZ_CLOCK_LAST)
        return 0;
    if (to > now)
        bz_clock_set(&c->clock, to);
    if (timer > to)
        wake_callers(c, to, wakes);
    return to;
}

static bool step(struct bz_machine *m, bool is_outside, uint64_t timer)
{
    struct bz_runtime *rt = m->rt;
    struct bz_wakelist wakes;
    bz_wakelist_init(&wakes);
    bz_lock_take(&rt->clockwork.lock, rt->os);
    uint64_t due = step_locked(rt, is_outside, timer, &wakes);
    bz_lock_drop(&rt->clockwork.lock, rt->os);
    bool has_woken = wakes.count > 0;
    bz_wakelist_deliver(&wakes);
    for (unsigned i = 0; due != 0 && i < rt->proc_count; i++)
        if (&rt->procs[i] != m->proc && bz_timers_first(&rt->procs[i]) <= due)
            rouse(&rt->procs[i]);
    return has_woken || bz_timers_first(m->proc) <= due;
}

bool bz_clockwork_look(struct bz_machine *m, uint64_t *until)
{
    struct bz_runtime *rt = m->rt;
    bool is_outside = false;
    uint64_t now;
    bool is_paused = bz_clock_is_paused(&rt->clockwork.clock, &now);
    bool is_wanted = bz_load_acquire(&rt->clockwork.is_wanted) != 0; /* [A] */
    *until = bz_clock_to_system(&rt->clockwork.clock, *until);
    if (is_paused && *until == 0)
        return true; /* its own timer is due */
    if (!is_paused || !is_wanted)
        return false;
    uint64_t timer = first_timer(rt); /* before rests: step_locked */
    enum rest rest = rests(m, &is_outside);
    if (rest == QUIET && step(m, is_outside, timer))
        return true;
    if (rest == QUIET && timer <= now)
        rest = UNSETTLED; /* another machine is about to fire it */
    if (rest == AWAKE || (rest == QUIET && !is_outside))
        return false;
    uint64_t again = bz_os_now(rt->os) + (rest == UNSETTLED ? SOON_NS : AGAIN_NS);
    *until = again < *until ? again : *until;
    return false;
}
