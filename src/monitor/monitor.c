/*
 * monitor.c - rescue the private tasks, timers and files of a machine whose task runs for too long.
 *
 * A machine has some state that only it touches, because that is cheap: the task in its `next`
 * slot, the batch that it took out of its ring, the timers of its proc. A task that computes for a
 * second would delay them while another proc sleeps. The monitor is a thread without a proc that
 * looks at the procs from time to time. A proc is stuck if its machine is in user code and has not started
 * anything since the last look. For a stuck proc:
 *  - the monitor empties the next slot and the batch into the injector, by the handshake of retake.h. It does so if
 *    a proc that could run the entries sleeps, and if they were there at the last look;
 *  - if tasks are queued in its ring and a proc sleeps, the monitor rouses that proc: the machine kept the tasks
 *    because they seemed short (rouse.c);
 *  - the monitor fires timers that are due: the wheel has a lock;
 *  - the monitor polls its files. If it listens for all procs, that ends after HOME_NS (gather.c);
 *  - the monitor shares the woken tasks of its inbox with all procs: after HOME_NS if it listens for all procs or once
 *    did, otherwise after SLOW_NS. Tasks that were asked to begin there wait for the proc, up to PINNED_NS;
 *  - for a lone forked job that is still exposed the monitor rouses a proc (job.c). The monitor fetches the jobs
 *    behind it when that job has been taken and the frame has not noticed;
 *  - if it stays stuck, and no other proc could run the waiting tasks, the monitor gives the proc to another machine
 *    (handover.c).
 *
 * How often it looks:
 *  - If a machine has something that only it can run while a proc sleeps, the second look comes NEAR_NS after the
 *    first. So a lone task waits for about 100 microseconds.
 *  - If no machine has anything private, the monitor naps for NAP_NS and says so (RESTS). A machine that then fills
 *    its next slot, forks or makes a call raises it. That costs the machine a futex wake, so the monitor naps only
 *    while it has credit. If a program raises it again and again in vain, the monitor stays up.
 *  - While all procs sleep: with credit it rests for SLOW_NS, without credit it looks by its budget. So a server that
 *    sleeps after each message does not raise it each time.
 *  - Its first nap is short, because a machine may have read its state just before.
 *  - Otherwise, while a proc sleeps and another runs, it looks every LOOK_NS, within a budget. At most one
 *    BUDGET_SHARE-th of the time may be CPU time of the monitor, saved up to CREDIT_NS. The cost of a look
 *    (5 to 10 microseconds, most of it the kernel's) is measured each time, barriers included. A look that
 *    fetched something was useful: it is not charged, and restores the credit.
 *  - Without credit, looks come as often as the budget allows, every 1 to 2 ms, at least every SLOW_NS. But the
 *    second look at something that may be stuck comes NEAR_NS after the first, up to a limit on credit.
 *  - If no proc sleeps: every SLOW_NS, for the timers and for hogs. A machine that then goes to sleep tells the
 *    monitor (it has time for that).
 *  - If all procs are hogged: at the first timer. A thread that injects a task tells the monitor.
 *  - If no proc runs, it soon sleeps without a timeout, until a machine that wakes up or fills its next slot raises
 *    it.
 * The state "no proc sleeps" begins after CALM_NS and "no proc runs" after SLOW_NS, so that a runtime with bursts of
 * work does not pay for a wake-up of its monitor each time.
 *
 * To doze, the monitor says so in `state`, then makes sure that no proc runs:
 *
 *      machine                                 monitor
 *      1  wakes up: clears its bit             1  state = dozes
 *         (compiler barrier)                   2  a barrier on every thread
 *      2  state: dozes? raise                  3  any bit clear? go on
 *
 * Either the machine sees that the monitor dozes, or the monitor sees the machine awake [S]. A guest
 * (guest.c) does the same: it counts itself in, and raises the monitor when it forks.
 *
 * Rejected:
 *  - rousing a proc for each lone task in a next slot: the task usually runs here within a
 *    microsecond, and a wake costs both sides tens of them;
 *  - a signal to the stuck thread: it would arrive in user code.
 *
 * I1  One monitor for each runtime: it is the only taker in the sense of retake.h.
 * I2  While it takes from a proc it waits for nothing but the barrier.
 *
 * [S] idle.c, stay: the bit, compiler barrier, woke: state -> doze: state, barrier, bits   see above
 * [T] monitor_wake.c, tell: told release -> doze, main: told acquire   why it was told, be it that the runtime ends
 */
#include "monitor/monitor.h"

#include "life/deadlines.h"
#include "observe/dump.h"
#include "proc/batch.h"
#include "proc/fresh.h"
#include "proc/place.h"
#include "proc/retire.h"
#include "proc/state.h"
#include "sched/reap.h"

enum {
    LOOK_MIN_NS = 10000,
    LOOK_NS = 200000,
    NAP_NS = 2000000,    /* between two looks while no machine has anything private */
    NEAR_NS = 50000,     /* between two looks at something that may be stuck */
    JOBS_NS = 5000000,   /* between two looks at the jobs of machines while hogs are stopped */
    HOME_NS = 2000000,   /* a longer task ends the time of one listener: gather.c */
    USEFUL_NS = 1000000, /* a machine that is delayed for less would soon have polled its files */
    PINNED_NS =
        1000000000, /* a task with a proc hint waits that long for a proc that cannot be taken */
    SLOW_NS = 12000000,
    SLOWEST_NS = 16000000, /* ... if even such rare looks cost more than the budget */
    CALM_NS = 20000000,
    BUDGET_SHARE = 250, /* 0.4% of a CPU; the cost of measuring comes on top */
    CREDIT_NS = 1000000
};

void bz_monitor_init(struct bz_monitor *mon)
{
    *mon = (struct bz_monitor){.credit_ns = CREDIT_NS, .turn_ns = BZ_OS_FOREVER};
    bz_atomic_init(&mon->state, BZ_MONITOR_NONE);
    bz_atomic_init(&mon->woken, 0);
    bz_atomic_init(&mon->sees_hogs, 0);
    bz_atomic_init(&mon->looks, 0);
    bz_atomic_init(&mon->rescued, 0);
    bz_atomic_init(&mon->fired, 0);
    bz_atomic_init(&mon->moved, 0);
}

static void add(bz_atomic(uint64_t) *statistic, uint64_t n)
{
    bz_store_relaxed(statistic, bz_load_relaxed(statistic) + n); /* relaxed: one writer */
}

/* ---- fetching from stuck machines ---- */

/* True if its machine has had an entry that only it can run since the last look. A peek: the
 * machine may be at work. */
static bool has_private(struct bz_proc *p, const struct bz_monitor_seen *before)
{
    struct bz_batch *h = &p->batch;
    /* relaxed: hints; verified once access is granted */
    bool has_hand = bz_load_relaxed(&h->at) < bz_load_relaxed(&h->count) || bz_fresh_count(p) > 0;
    return has_hand || (p->seen.next != 0 && p->seen.next == before->next);
}

/* True if its ring has tasks that its machine meant to run itself (rouse.c) while another proc
 * sleeps. A hint. */
static bool has_queued(struct bz_proc *p)
{
    return bz_runq_count(&p->ring) > 0 && bz_idle_sleeping(&p->rt->idle) > 0;
}

/* Return when it entered its current system call, as far as seen; 0 if it is in none. */
static uint64_t call_since(const struct bz_monitor_seen *seen, const struct bz_monitor_seen *before,
                           enum bz_where where, uint64_t now)
{
    if (where < BZ_IN_SYSCALL) /* above: nested calls */
        return 0;
    bool is_same = before->call_since_ns != 0 && before->calls == seen->calls;
    return is_same ? before->call_since_ns : now;
}

/* Record the state of the proc's machine, and whether it has done the same thing since the last
 * look. */
static void see(struct bz_proc *p, uint64_t now)
{
    struct bz_monitor_seen *seen = &p->seen, before = *seen;
    seen->word = bz_load_acquire(&p->state); /* machines.c [M]: the machine it names */
    bool is_held = bz_proc_state_of(seen->word) == BZ_PROC_HELD;
    struct bz_machine *m = is_held ? bz_proc_machine(p->rt, seen->word) : NULL;
    enum bz_where where = is_held ? bz_retake_where(&m->taken) : BZ_IN_RUNTIME;
    seen->tick = bz_tick_now(&p->tick);
    seen->next = bz_load_relaxed(&p->next);                 /* relaxed: a hint, as are these */
    seen->calls = is_held ? bz_load_relaxed(&m->calls) : 0; /* relaxed: as above */
    seen->deeds = bz_load_relaxed(&p->tasks.live.spawned) + /* relaxed: as above */
                  bz_load_relaxed(&p->counters.claimed);    /* relaxed: as above */
    seen->is_lively = seen->deeds != before.deeds;
    seen->is_away = where != BZ_IN_RUNTIME;
    bool is_same = before.word == seen->word && before.tick == seen->tick;
    seen->since_ns = is_same ? before.since_ns : now;
    seen->call_since_ns = call_since(seen, &before, where, now);
    bool is_orphan = bz_proc_state_of(seen->word) == BZ_PROC_ORPHAN;
    seen->is_stuck = is_orphan || (is_same && before.is_away && seen->is_away);
    seen->is_target = seen->is_stuck && is_held && has_private(p, &before);
    seen->moves = false;
    p->rt->monitor.is_near |= seen->is_away && has_private(p, seen);
}

static void share(struct bz_proc *p, bz_entry e)
{
    add(&p->rt->monitor.shared, 1);
    bz_place_outside(p->rt, e);
}

/* Queue tasks of the inbox for any proc: this one is busy for too long. A task that was asked to begin here waits until
 * the proc moves to another machine, unless it cannot (PINNED_NS): blitz_on_each_worker relies on that. */
static void share_inbox(struct bz_proc *p, uint64_t stuck_ns)
{
    bz_entry e;
    bool are_all = stuck_ns >= PINNED_NS || bz_proc_state_of(p->seen.word) == BZ_PROC_ORPHAN;
    struct bz_entries woken = bz_inbox_take_resumed(&p->inbox, p->rt->os);
    while ((e = bz_entries_take(&woken)) != 0)
        share(p, e);
    while (are_all && (e = bz_inbox_take(&p->inbox, p->rt->os)) != 0)
        share(p, e);
}

/* True if it listens for all procs. Then it must not run one task for long. */
static bool is_home(struct bz_proc *p)
{
    return bz_gather_home(p->rt, bz_gather_word(&p->rt->gather)) == p;
}

/* Return how long the inbox of a stuck proc waits for its machine. Other procs pass on tasks that I/O has woken to
 * the inbox of the home. A machine may read the decision, and push its task after another decision. So a proc that was
 * home once keeps the shorter limit. */
static uint64_t inbox_waits(const struct bz_proc *p)
{
    return p->seen.was_home ? HOME_NS : SLOW_NS;
}

/* Poll its files, because its machine does not get to it. */
static bool hear_for(struct bz_proc *p)
{
    struct bz_reaped heard;
    return bz_poll_is_used(&p->poll) && bz_io_reap(p, &heard);
}

/* Look at all procs, and fire the due timers of stuck procs. */
static void see_all(struct bz_runtime *rt, uint64_t now)
{
    bool is_real = rt->time == rt->os;
    for (unsigned i = 0; i < rt->proc_count; i++) {
        struct bz_proc *p = &rt->procs[i];
        see(p, now);
        p->seen.was_home |= is_home(p);
        if (!p->seen.is_stuck)
            continue;
        bz_store_relaxed(&rt->monitor.sees_hogs,
                         1); /* relaxed: a hint. Tasks woken here are urgent */
        if (bz_timers_fire(p, is_real ? now : bz_os_now(rt->time))) {
            add(&rt->monitor.fired, 1);
            rt->monitor.is_useful = true;
        }
        bool has_heard = hear_for(p);
        rt->monitor.is_useful |= has_heard && now - p->seen.since_ns >= USEFUL_NS;
        if (is_home(p) && now - p->seen.since_ns >= HOME_NS)
            bz_gather_end(rt, now);
        if (now - p->seen.since_ns >= inbox_waits(p) && !bz_inbox_is_empty(&p->inbox))
            share_inbox(p, now - p->seen.since_ns);
        if (has_queued(p))
            bz_rouse_one(rt); /* its machine kept them because they seemed short, and one is not */
    }
}

/* True if it has run one task since the last look while an urgent task waits. Its machine may check
 * the injector only after many more runs. */
static bool does_keep_waiting(struct bz_runtime *rt, const struct bz_proc *p)
{
    return bz_injector_urgent(&rt->injector) > 0 && p->seen.is_stuck &&
           bz_proc_state_of(p->seen.word) == BZ_PROC_HELD;
}

/* Ask for access to the procs that delay others. True if there are any. */
static bool ask_the_stuck(struct bz_runtime *rt, uint64_t now, bool is_wanted)
{
    bool is_any = false;
    for (unsigned i = 0; i < rt->proc_count; i++)
        rt->procs[i].seen.is_target &= is_wanted;
    bz_handover_choose(rt, now);
    for (unsigned i = 0; i < rt->proc_count; i++) {
        struct bz_proc *p = &rt->procs[i];
        p->seen.is_hurried = !p->seen.is_target && does_keep_waiting(rt, p);
        if (p->seen.is_target || p->seen.is_hurried)
            (void)bz_retake_ask(&bz_proc_machine(rt, p->seen.word)->taken);
        is_any |= p->seen.is_target || p->seen.is_hurried;
    }
    return is_any;
}

/* Move the private entries of its machine to the injector. */
static void take_from(struct bz_runtime *rt, struct bz_proc *p)
{
    bz_entry out[BZ_PRIVATE_MAX];
    struct bz_retake *taken = &bz_proc_machine(rt, p->seen.word)->taken;
    /* acquire: the same machine still holds it, with all its entries */
    bool may = bz_retake_may(taken) && bz_load_acquire(&p->state) == p->seen.word;
    unsigned count = may ? bz_batch_empty(p, out) : 0;
    bz_retake_end(taken, false); /* I2 */
    bz_os_delay(rt->os, BZ_OS_AT_PUBLISH);
    for (unsigned i = 0; i < count; i++)
        bz_injector_push(&rt->injector, out[i]);
    if (count > 0)
        bz_rouse_one(rt);
    add(&rt->monitor.rescued, count);
    rt->monitor.is_useful |= count > 0;
}

/* Make its machine check for urgent tasks after its current one. */
static void hurry(struct bz_runtime *rt, struct bz_proc *p)
{
    struct bz_retake *taken = &bz_proc_machine(rt, p->seen.word)->taken;
    /* acquire: the same machine still holds it, with all its entries */
    if (bz_retake_may(taken) && bz_load_acquire(&p->state) == p->seen.word)
        bz_proc_hurry(p);
    bz_retake_end(taken, false); /* I2 */
}

static void pay(struct bz_runtime *rt)
{
    if (bz_is_plain(rt))
        bz_fence_seqcst(); /* retake.h [C], and [S] */
    else
        bz_barrier_pay(&rt->barrier); /* retake.h [C], and [S] */
}

static void rescue(struct bz_runtime *rt, uint64_t now, bool is_wanted)
{
    see_all(rt, now);
    if (!ask_the_stuck(rt, now, is_wanted))
        return;
    pay(rt);
    for (unsigned i = 0; i < rt->proc_count; i++) {
        struct bz_proc *p = &rt->procs[i];
        if (p->seen.is_target && !p->seen.moves)
            take_from(rt, p);
        else if (p->seen.is_hurried)
            hurry(rt, p);
    }
    for (unsigned i = 0; i < rt->proc_count; i++)
        if (rt->procs[i].seen.moves)
            bz_handover_move(&rt->procs[i], now);
}

/* Let sleeping procs run the jobs of frames that run for too long. */
static void fetch_jobs(struct bz_runtime *rt, uint64_t now)
{
    struct bz_monitor *mon = &rt->monitor;
    if (bz_turns_frozen(&rt->turns) > 0 && now - mon->jobs_ns < JOBS_NS)
        return; /* there are many machines, and most of them are stopped */
    mon->jobs_ns = now;
    if (!bz_jobs_look(rt))
        return;
    bz_jobs_ask(rt);
    pay(rt); /* deque.c [H], too */
    rt->monitor.is_useful |= bz_jobs_fetch(rt) > 0;
}

/* ---- how often ---- */

/* Return the time of the next look by the budget alone. */
static uint64_t by_budget(struct bz_monitor *mon, uint64_t now, uint64_t cost)
{
    uint64_t passed = mon->since_ns != 0 ? now - mon->since_ns : 0;
    mon->since_ns = now;
    mon->credit_ns += (int64_t)(passed / BUDGET_SHARE);
    if (!mon->is_useful)
        mon->credit_ns -= (int64_t)cost;
    else
        mon->credit_ns = CREDIT_NS; /* useful looks are free */
    if (mon->credit_ns > CREDIT_NS)
        mon->credit_ns = CREDIT_NS;
    if (mon->credit_ns >= 0)
        return now + LOOK_NS;
    uint64_t owed = (uint64_t)-mon->credit_ns * BUDGET_SHARE;
    return now + (owed < LOOK_NS ? LOOK_NS : owed < SLOW_NS ? owed : SLOW_NS);
}

static enum bz_monitor_state state_for(struct bz_runtime *rt, bool is_calm, bool is_idle)
{
    if (rt->monitor.is_hogged)
        return BZ_MONITOR_HOGGED;
    if (is_calm)
        return BZ_MONITOR_SLOW;
    return is_idle ? BZ_MONITOR_RESTS : BZ_MONITOR_UP;
}

/* True if there is anything that only one machine can reach. If not, a machine that creates some
 * raises the monitor. */
static bool has_any_private(struct bz_runtime *rt)
{
    for (unsigned i = 0; i < rt->proc_count; i++) {
        struct bz_proc *p = &rt->procs[i];
        if (p->seen.is_away && (has_private(p, &p->seen) || has_queued(p)))
            return true;
        if (p->seen.call_since_ns != 0)
            return true; /* a call: handover.c checks it soon */
    }
    return bz_jobs_are_any(rt);
}

uint64_t bz_monitor_look(struct bz_runtime *rt, uint64_t now, uint64_t cost)
{
    struct bz_monitor *mon = &rt->monitor;
    unsigned sleeping = bz_idle_sleeping(&rt->idle);
    bool is_idle = sleeping >= bz_procs_active(rt) && !bz_guests_inside(&rt->guests);
    bool is_quiet = sleeping == 0 || is_idle;
    uint64_t soon = by_budget(mon, now, cost);
    add(&mon->looks, 1);
    bz_age_update(&rt->clock, now);
    bz_idle_review(&rt->idle, now);
    bz_gather_review(rt, now);
    mon->is_useful = mon->is_near = false;
    bz_clockwork_moves(&rt->clockwork);
    rescue(rt, now, sleeping > 0 && !bz_is_plain(rt));
    if (sleeping > 0)
        fetch_jobs(rt, now);
    bz_clockwork_moved(&rt->clockwork);
    bool is_up_soon = mon->is_near && mon->credit_ns > -CREDIT_NS;
    bool has_credit = mon->credit_ns >= CREDIT_NS / 4;
    bool is_resting = is_idle && has_credit;
    bool is_napping = !is_quiet && !is_up_soon && has_credit && !has_any_private(rt);
    if (is_up_soon)
        soon = now + NEAR_NS; /* on credit: is it still stuck? */
    if (!is_napping && !is_resting)
        mon->nap_ns = 0;
    else if (mon->nap_ns == 0)
        mon->nap_ns = now;
    if (is_napping ||
        is_resting) /* the first nap is short: a machine may just have read our state */
        soon = now + (now - mon->nap_ns < NEAR_NS ? NEAR_NS : is_resting ? SLOW_NS : NAP_NS);
    if (!is_quiet)
        mon->calm_ns = 0;
    else if (mon->calm_ns == 0)
        mon->calm_ns = now;
    bool is_calm = is_quiet && now - mon->calm_ns >= (is_idle ? SLOW_NS : CALM_NS);
    if (is_calm && is_idle && mon->turn_ns == BZ_OS_FOREVER)
        return BZ_OS_FOREVER;
    bz_store_relaxed(&mon->state,
                     state_for(rt, is_calm, is_resting || is_napping)); /* relaxed: a hint */
    uint64_t slow = mon->credit_ns >= 0 ? SLOW_NS : SLOWEST_NS;
    uint64_t until = is_calm ? now + slow : soon;
    uint64_t due = bz_handover_next(rt, now);
    return due >= until ? until : due > now + LOOK_MIN_NS ? due : now + LOOK_MIN_NS;
}

/* ---- its thread ---- */

/* Sleep until a proc runs. */
static void doze(struct bz_runtime *rt)
{
    struct bz_monitor *mon = &rt->monitor;
    bz_store_relaxed(&mon->state, BZ_MONITOR_DOZES); /* relaxed: the barrier follows, [S] */
    pay(rt);                                         /* [S] */
    bz_os_delay(rt->os, BZ_OS_AT_SLEEP);
    while (bz_idle_all_sleep(&rt->idle) && !bz_guests_inside(&rt->guests) &&
           bz_load_acquire(&mon->woken) == 0) /* [T] */
        bz_os_wait(rt->os, &mon->woken, 0, bz_deadlock_look(rt, bz_os_now(rt->os)));
    bz_deadlock_over(rt);
    mon->calm_ns = 0;
    mon->since_ns = 0;
}

#if defined(BZ_WATCH)
static void watch(struct bz_runtime *rt)
{
    bz_watch_look(&rt->monitor.dog, rt);
}
#else
static void watch(struct bz_runtime *rt)
{
    (void)rt;
}
#endif

void bz_monitor_main(void *arg)
{
    struct bz_runtime *rt = arg;
    struct bz_monitor *mon = &rt->monitor;
    uint64_t used = bz_os_cpu_time(rt->os);
    while (bz_load_acquire(&rt->is_ending) == 0) { /* runtime.c [A] */
        uint64_t before = used;
        watch(rt);
        bz_dump_if_asked(rt);
        used = bz_os_cpu_time(rt->os);
        uint64_t until = bz_monitor_look(rt, bz_os_now(rt->os), used - before);
        if (until == BZ_OS_FOREVER)
            doze(rt);
        else
            bz_os_wait(rt->os, &mon->woken, 0, until);
        if (bz_xchg_acquire(&mon->woken, 0) != 0) /* [T] */
            mon->nap_ns = 0; /* a machine raises it before it fills its slot: look twice */
    }
}

void bz_monitor_stop(struct bz_runtime *rt)
{
    if (!rt->monitor.is_started)
        return;
    bz_monitor_tell(rt);
    bz_os_thread_join(rt->os, &rt->monitor.thread);
}
