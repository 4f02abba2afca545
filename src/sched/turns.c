/*
 * turns.c - hogs that have lost their proc take turns, in place.
 *
 * The proc of a hog moves to another thread (handover.c), and the hog runs on, without a proc: a *stray*. With 200
 * strays on 2 CPUs the kernel would leave the procs 2 of 202 shares. So strays take turns. As many run as leave the
 * procs their share: half of the CPUs while procs have work, all CPUs while they have none. The other strays are
 * stopped in a signal handler, on a futex (halt.h), until their next slice of SLICE_NS. The kernel preempts threads
 * in the same way, so it is safe at any instruction, with two exceptions that the handler checks:
 *
 *  - The runtime's needs. The thread is in user code of a task (retake.h), it has no proc, it holds no lock of ours
 *    (os/self.h), and the program has not paused it (blitz/yield.h).
 *  - The needs of other threads: the interrupted instruction is not in the C library, the loader or the allocator
 *    (os/code.c). A thread that is stopped in malloc would keep malloc's lock.
 *
 * A stray is stopped only after its thread's CPU clock has shown that it uses CPU: a task that lost its proc
 * because its thread had no CPU is not a hog.
 *
 * A thread that sleeps in a call is not signalled: the call would end with EINTR, and the thread uses no CPU.
 *
 * If the handler refuses because of the instruction, the thread interrupts itself again after AGAIN_NS, by a timer:
 * a hog that allocates all the time is outside malloc for a moment only. So the monitor need not look soon: it
 * tries again after RETRY_NS, and gives up for a slice after PATIENCE tries.
 *
 * The cost of turns. The monitor looks once a slice, for all hogs that run (EARLY_NS). Each turn costs 40 us, most
 * of it the signal and the futex call. With many hogs slices are longer (MANY). Beside 32 hogs that is 0.4% of a
 * CPU, beside 200 likewise. With a look every millisecond after each turn, and all hogs sorted at each, it was 1.0
 * and 1.9%.
 *
 * A stopped thread may still hold a lock of the program, or one that a library holds around a callback. Three
 * rules keep that harmless:
 *  1. If a worker with a proc sleeps in user code or in the runtime while hogs are stopped, all hogs run for a
 *     slice (thaw), at most every THAW_NS. If they held a lock that the worker waits for, it continues. If it does
 *     not continue, it may be blocked for another reason. Then the next thaw comes after twice the time, up to
 *     THAW_MAX_NS.
 *  2. Turning takes no foreign lock: it uses atomics, one futex call and one signal for each turn. The monitor does
 *     take foreign locks elsewhere, to start a thread. So the stopped threads watch the monitor: if it has not
 *     looked for STALL_NS, they let all hogs go. One of them, the guard, checks every STALL_NS; the others every
 *     WATCH_NS, in case there is no guard.
 *  3. Each hog has its turn, so a lock that a hog holds is released after N slices at the latest.
 *
 * A turn. The hog whose slice is over is asked to stop, and the hog that has been stopped longest continues at
 * once: it does not wait for the first to stop, which usually takes 20 microseconds. A hog whose task was cancelled
 * continues before the others, because it has to unwind.
 *
 * The signal handler is installed when strays and busy procs first exceed the CPUs, and not before: a
 * program without hogs has no handler of ours. With config.no_rotation there never is one, and strays share the CPUs
 * as the kernel shares them.
 *
 * Rejected:
 *  - switching to another task in the handler (halt.c);
 *  - a timer per thread that raises the signal (timer_create): signals without need, and a policy spread over the
 *    handlers;
 *  - a policy by CPU time used: the thread's clock is a system call a look, and equal slices come to the same;
 *  - a lower priority for strays: a thread needs a privilege to raise it again.
 *
 * I1  A machine is asked and looked at by the monitor alone. A new thread clears the request to its predecessor.
 * I2  turn->thread is the id of the thread that runs the machine, or 0. If the thread ends or the machine changes
 *     threads after we read it, the signal reaches no thread, or a thread of ours that was not asked.
 * I3  A machine that is stopped has no proc.
 */
#include "sched/turns.h"

#include <errno.h>

#include "base/log.h"
#include "os/interrupt.h"
#include "proc/state.h"

enum {
    SLICE_NS = 10000000,
    EARLY_NS = 3000000, /* slices that end within this time end together: one look for all */
    RETRY_NS = 10000000,
    PROOF_NS = 1000000, /* until the next look at a stray that is not yet known to use CPU */
    AGAIN_NS = 20000,   /* between two interrupts of a thread in a library */
    PATIENCE = 2,
    MANY =
        32, /* for each so many hogs a slice is SLICE_NS longer, up to 40 ms: a turn costs 40 us */
    BUSY_NS = 20000000,  /* procs that had work within this time count as busy */
    THAW_NS = 100000000, /* between two thaws; doubled after each that did not help */
    STALL_NS = 50000000, /* the monitor looks more often than that while hogs are stopped */
    WATCH_NS = 1000000000,
    HOGS_MAX = 1024 /* machines that take turns; the others run */
};

#define THAW_MAX_NS (32 * (uint64_t)THAW_NS)

static void count(bz_atomic(uint64_t) *statistic)
{
    bz_store_relaxed(statistic, bz_load_relaxed(statistic) + 1); /* relaxed: one writer */
}

static void thaw_all(struct bz_runtime *rt)
{
    for (unsigned i = bz_machines_count(rt); i-- > 0;)
        (void)bz_halt_go(&bz_machines_at(rt, i)->turn.halt, rt->os);
}

/* ---- the handler: the stopped thread ---- */

/* Watch the monitor while this hog is stopped. Return the time until the next check; 0:
 * continue. */
static uint64_t watch_monitor(void *machine)
{
    struct bz_machine *m = machine;
    struct bz_runtime *rt = m->rt;
    struct bz_turn *turn = &m->turn;
    uint32_t guard = 0, me = m->index + 1;
    bool is_guard = bz_load_relaxed(&rt->turns.guard) == me || /* relaxed: a role, not an order */
                    bz_cas_strong_rlx_rlx(&rt->turns.guard, &guard, me); /* relaxed: likewise */
    uint64_t looks = bz_load_relaxed(&rt->monitor.looks),
             now = bz_os_now(rt->os); /* relaxed: a hint */
    if (looks != turn->looks_seen || turn->seen_ns == 0) {
        turn->looks_seen = looks;
        turn->seen_ns = now;
    } else if (now - turn->seen_ns >= STALL_NS) {
        thaw_all(rt);
        return 0;
    }
    return is_guard ? STALL_NS : WATCH_NS;
}

static void stop_here(struct bz_machine *m)
{
    struct bz_turn *turn = &m->turn;
    uint32_t me = m->index + 1;
    turn->seen_ns = 0;
    bz_store_relaxed(&turn->task, m->current); /* relaxed: a hint for the monitor */
    if (bz_halt_here(&turn->halt, m->rt->os, watch_monitor, m))
        count(&turn->stopped);
    (void)bz_cas_strong_rlx_rlx(&m->rt->turns.guard, &me, 0); /* relaxed: a role, not an order */
}

/* True if the monitor has taken its proc, whether the machine knows it yet or not. */
static bool has_no_proc(struct bz_machine *m)
{
    /* relaxed: written by this thread, or by the monitor, which does not give it back in user
     * code */
    bool is_taken = bz_load_relaxed(&m->taken.retake) != BZ_TAKING_NONE &&
                    bz_load_relaxed(&m->is_stray) != 0; /* relaxed: likewise */
    return m->proc == NULL || is_taken;
}

void bz_turns_interrupted(uintptr_t pc)
{
    struct bz_machine *m = bz_machine_self();
    if (m == NULL || !bz_halt_is_requested(&m->turn.halt))
        return;
    bool may = bz_machine_may_interrupt(m) && has_no_proc(m) && bz_self_holds() == 0;
    if (may && bz_code_may_stop(pc)) {
        stop_here(m);
        return;
    }
    count(&m->turn.refused);
    if (may) /* try at another instruction, with a varying delay */
        bz_os_interrupt_again(m->rt->os,
                              AGAIN_NS + bz_load_relaxed(&m->turn.refused) * 7919 % AGAIN_NS);
}

/* ---- its beginning and end ---- */

void bz_turns_init(struct bz_runtime *rt)
{
    rt->turns = (struct bz_turns){.cpus = (unsigned)bz_os_cpus(rt->os), .thaw_gap_ns = THAW_NS};
    bz_atomic_init(&rt->turns.guard, 0);
    bz_atomic_init(&rt->turns.is_over, 0);
    bz_atomic_init(&rt->turns.is_refused, rt->is.no_rotation);
    bz_atomic_init(&rt->turns.frozen, 0);
    bz_atomic_init(&rt->turns.thaws, 0);
}

void bz_turns_fini(struct bz_runtime *rt)
{
    if (rt->turns.is_watched)
        bz_os_interrupt_unwatch(rt->os);
}

void bz_turns_enter(struct bz_machine *m)
{
    (void)bz_halt_go(&m->turn.halt, m->rt->os); /* clear the request to the previous thread */
    bz_store_relaxed(&m->turn.thread, bz_os_thread_id(m->rt->os)); /* relaxed: I2 */
}

void bz_turns_leave(struct bz_machine *m)
{
    bz_store_relaxed(&m->turn.thread, 0); /* relaxed: I2 */
}

void bz_turns_end(struct bz_runtime *rt, bool is_over)
{
    bz_store_relaxed(&rt->turns.is_over, is_over); /* relaxed: the monitor looks again soon */
    if (is_over)
        thaw_all(rt);
}

/* Install the handler. False: hogs do not take turns here. */
static bool is_possible(struct bz_runtime *rt)
{
    struct bz_turns *t = &rt->turns;
    if (t->is_watched || bz_turns_are_refused(t))
        return t->is_watched;
    int err = bz_os_interrupt_watch(rt->os, bz_turns_interrupted);
    t->is_watched = err == 0;
    bz_store_relaxed(&t->is_refused, err != 0); /* relaxed: a hint to others */
    if (err != 0 && err != -ENOSYS)
        bz_log_once(BLITZ_LOG_WARN, "tasks that loop for ever cannot take turns (error %d)", -err);
    return t->is_watched;
}

/* ---- the monitor: one machine ---- */

/* Read the CPU time of its thread. False: not known. */
static bool cpu_time(struct bz_machine *m, uint64_t *out)
{
    struct bz_runtime *rt = m->rt;
    bz_lock_take(&rt->start_lock, rt->os); /* no thread joins it meanwhile */
    bool is_known = m->is_used && !bz_machine_is_guest(m) && m->thread != NULL &&
                    bz_os_thread_cpu_time(rt->os, m->thread, out) == 0;
    bz_lock_drop(&rt->start_lock, rt->os);
    return is_known;
}

/* True if it has computed for most of its turn. Then assume that it computes now: reading its clock
 * takes a tenth of the time of reading its state. */
static bool has_burnt_since(struct bz_machine *m, uint64_t now)
{
    uint64_t used = 0;
    return m->turn.used_ns != 0 && cpu_time(m, &used) &&
           used - m->turn.used_ns >= (now - m->turn.since_ns) / 2;
}

void bz_turns_go(struct bz_machine *m, uint64_t now)
{
    if (bz_halt_go(&m->turn.halt, m->rt->os)) {
        m->turn.thawed_ns = now;
        if (!cpu_time(m, &m->turn.used_ns))
            m->turn.used_ns = 0;
    }
    m->turn.since_ns = now;
    m->turn.was_stopped = false;
    m->turn.tries = 0;
}

void bz_turns_stop(struct bz_machine *m, uint64_t now)
{
    struct bz_turn *turn = &m->turn;
    uint32_t thread = bz_load_relaxed(&turn->thread); /* relaxed: I2 */
    if (thread == 0)
        return;
    if (!has_burnt_since(m, now) && bz_os_thread_sleeps(m->rt->os, thread) == 1) {
        m->burns = false; /* a signal would end its call with EINTR, and it needs no CPU */
        bz_turns_go(m, now);
        return;
    }
    bz_halt_ask(&turn->halt);
    turn->sent_ns = now;
    turn->tries++;
    (void)bz_os_thread_interrupt(m->rt->os, thread); /* a failed signal is sent again */
}

/* Record since when it has been in its state. */
static void look_at(struct bz_machine *m, uint64_t now)
{
    struct bz_turn *turn = &m->turn;
    bool is_stopped = bz_halt_is_stopped(&turn->halt);
    if (is_stopped != turn->was_stopped || turn->since_ns == 0) {
        turn->since_ns = now;
        turn->tries = 0;
    }
    turn->was_stopped = is_stopped;
    turn->is_deaf &= !is_stopped;
}

/* ---- the monitor: turns ---- */

static bool is_cancelled(struct bz_machine *m)
{
    struct bz_task *t = bz_load_relaxed(&m->turn.task); /* relaxed: a hint; headers stay mapped */
    return t != NULL &&
           (bz_load_relaxed(&t->word) & BZ_WORD_CANCELLED) != 0; /* relaxed: likewise */
}

/* Order: cancelled tasks first, then the longest stopped. */
static bool goes_before(struct bz_machine *a, struct bz_machine *b)
{
    bool is_first = is_cancelled(a);
    if (is_first != is_cancelled(b))
        return is_first;
    return a->turn.since_ns < b->turn.since_ns;
}

static void swap(struct bz_machine **a, struct bz_machine **b)
{
    struct bz_machine *was = *a;
    *a = *b;
    *b = was;
}

/* Put the stopped hogs before the others. Returns how many are stopped. */
static unsigned part(struct bz_machine **hogs, unsigned n)
{
    unsigned stopped = 0;
    for (unsigned i = 0; i < n; i++)
        if (hogs[i]->turn.was_stopped)
            swap(&hogs[i], &hogs[stopped++]);
    return stopped;
}

/* Put the hog that continues next before the other stopped ones. A few continue at a time, so this
 * is less work than sorting them all. */
static void choose_next(struct bz_machine **hogs, unsigned n)
{
    for (unsigned i = 1; i < n; i++)
        if (goes_before(hogs[i], hogs[0]))
            swap(&hogs[i], &hogs[0]);
}

/* Sort the running hogs, the longest first. There are few. */
static void sort(struct bz_machine **hogs, unsigned n)
{
    for (unsigned i = 1; i < n; i++) {
        struct bz_machine *m = hogs[i];
        unsigned at = i;
        for (; at > 0 && m->turn.since_ns < hogs[at - 1]->turn.since_ns; at--)
            hogs[at] = hogs[at - 1];
        hogs[at] = m;
    }
}

static uint64_t slice_for(unsigned hogs)
{
    unsigned more = hogs / MANY;
    return SLICE_NS * (1 + (more < 3 ? more : 3));
}

static uint64_t sooner(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* Handle a hog that was asked and has not stopped: ask again, or give up for a slice. A hog that
 * could not be stopped the last time gets fewer tries. Returns when to look again. */
static uint64_t insist(struct bz_machine *m, uint64_t now)
{
    struct bz_turn *turn = &m->turn;
    if (now - turn->sent_ns < RETRY_NS)
        return turn->sent_ns + RETRY_NS;
    if (turn->tries < (turn->is_deaf ? 1 : PATIENCE)) {
        bz_turns_stop(m, now);
    } else {
        bz_turns_go(m, now);
        turn->is_deaf = true;
    }
    return now + RETRY_NS;
}

/* Ask running hogs to stop, the longest first: `over` of them are too many, `waiting` are stopped
 * and want a turn. Returns how many were asked, and in *next when to look again. */
static unsigned make_room(struct bz_machine **hogs, unsigned n, uint64_t now, uint64_t slice,
                          unsigned over, unsigned waiting, uint64_t *next)
{
    unsigned asked = 0;
    for (unsigned i = 0; i < n; i++) {
        struct bz_machine *m = hogs[i];
        uint64_t ran = now - m->turn.since_ns;
        if (bz_halt_is_requested(&m->turn.halt))
            continue;
        if (m->is_proven && (asked < over || (asked < over + waiting && ran + EARLY_NS >= slice))) {
            bz_turns_stop(m, now);
            asked++;
            *next = sooner(*next, now + RETRY_NS);
        } else if (over + waiting > 0) {
            *next = sooner(*next, !m->is_proven  ? now + PROOF_NS
                                  : ran >= slice ? now + RETRY_NS
                                                 : m->turn.since_ns + slice);
        }
    }
    return asked;
}

uint64_t bz_turns_rotate(struct bz_runtime *rt, uint64_t now, struct bz_machine **hogs, unsigned n,
                         unsigned allowed)
{
    uint64_t next = BZ_OS_FOREVER, slice = slice_for(n);
    unsigned running = 0, gone = 0;
    for (unsigned i = 0; i < n; i++)
        look_at(hogs[i], now);
    unsigned stopped = part(hogs, n);
    for (unsigned i = stopped; i < n; i++) {
        if (!bz_halt_is_running(&hogs[i]->turn.halt) && n <= allowed)
            bz_turns_go(hogs[i], now); /* there is room for all */
        if (bz_halt_is_requested(&hogs[i]->turn.halt))
            next = sooner(next, insist(hogs[i], now));
        running += bz_halt_is_running(&hogs[i]->turn.halt);
    }
    sort(hogs + stopped, n - stopped); /* not before: insist() may have given one up for a slice */
    unsigned over = running > allowed ? running - allowed : 0;
    unsigned free = running < allowed ? allowed - running : 0;
    unsigned waiting = stopped > free ? stopped - free : 0;
    running -= make_room(hogs + stopped, n - stopped, now, slice, over, waiting, &next);
    for (; gone < stopped && running < allowed; gone++, running++) {
        choose_next(hogs + gone, stopped - gone);
        bz_turns_go(hogs[gone], now);
    }
    if (gone > 0 && gone < stopped)
        next = sooner(next, now + slice);
    bz_store_relaxed(&rt->turns.frozen, stopped - gone); /* relaxed: one writer */
    return next;
}

/* ---- the monitor: a look ---- */

/* True if the machine takes part: a stray that uses CPU, or that is stopped or asked. If the
 * machine has returned or is blocked, withdraw a request to stop. */
static bool takes_part(struct bz_machine *m, uint64_t now)
{
    bool is_stopped = bz_halt_is_stopped(&m->turn.halt);
    bool is_hog = bz_load_relaxed(&m->is_stray) != 0 && m->burns; /* relaxed: a hint */
    if (!is_hog && !bz_halt_is_running(&m->turn.halt))
        bz_turns_go(m, now);
    return is_hog || is_stopped;
}

static unsigned list_hogs(struct bz_runtime *rt, uint64_t now, struct bz_machine **list)
{
    unsigned n = 0;
    for (unsigned i = bz_machines_count(rt); i-- > 0;) {
        struct bz_machine *m = bz_machines_at(rt, i);
        if (takes_part(m, now) && n < HOGS_MAX)
            list[n++] = m;
    }
    return n;
}

/* The number of hogs that may run: half of the CPUs, or those that procs leave, while procs have
 * work; else all. */
static unsigned allowed(struct bz_turns *t, uint64_t now, unsigned busy)
{
    if (busy > 0 && t->was_busy)
        t->busy_ns = now;
    t->was_busy = busy > 0;
    if (t->busy_ns == 0 || now - t->busy_ns >= BUSY_NS)
        return t->cpus;
    unsigned left = t->cpus > busy ? t->cpus - busy : 0, half = t->cpus / 2;
    unsigned most = left > half ? left : half;
    return most > 0 ? most : 1;
}

/* True during a thaw. Begin one if a worker is held up and the last thaw was long enough ago. */
static bool is_thaw(struct bz_runtime *rt, uint64_t now, bool is_held_up)
{
    struct bz_turns *t = &rt->turns;
    if (is_held_up)
        t->held_ns = now;
    else if (now - t->held_ns >= THAW_NS)
        t->thaw_gap_ns = THAW_NS; /* it continued */
    if (is_held_up && bz_turns_frozen(t) > 0 && now >= t->thaw_ns) {
        t->thaw_end_ns = now + SLICE_NS;
        t->thaw_ns = now + t->thaw_gap_ns;
        if (t->thaw_gap_ns < THAW_MAX_NS)
            t->thaw_gap_ns *= 2; /* it may be blocked for another reason */
        count(&t->thaws);
    }
    return now < t->thaw_end_ns;
}

/* True if nothing has changed since the last look at all hogs. Then only hogs that were asked and
 * have not stopped need a look. */
static bool is_quiet(struct bz_turns *t, uint64_t now, unsigned may, unsigned burning)
{
    return now < t->full_ns && may == t->may && burning == t->burning;
}

/* Look at the few hogs that were asked. */
static uint64_t look_at_asked(struct bz_turns *t, uint64_t now)
{
    uint64_t next = t->full_ns;
    unsigned left = 0;
    for (unsigned i = 0; i < t->asked_count; i++) {
        struct bz_machine *m = t->asked[i];
        if (!bz_halt_is_requested(&m->turn.halt))
            continue;
        next = sooner(next, insist(m, now));
        t->asked[left++] = m;
    }
    t->asked_count = left;
    return next;
}

static void note_asked(struct bz_turns *t, struct bz_machine **hogs, unsigned n)
{
    t->asked_count = 0;
    for (unsigned i = 0; i < n; i++)
        if (bz_halt_is_requested(&hogs[i]->turn.halt) && t->asked_count < BZ_TURNS_ASKED)
            t->asked[t->asked_count++] = hogs[i];
}

/* Return the end of the first slice: until then no turn changes. */
static uint64_t first_end(struct bz_machine **hogs, unsigned n, uint64_t now)
{
    uint64_t slice = slice_for(n), end = now + slice;
    for (unsigned i = 0; i < n; i++)
        if (bz_halt_is_running(&hogs[i]->turn.halt))
            end = sooner(end, hogs[i]->is_proven ? hogs[i]->turn.since_ns + slice : now + PROOF_NS);
    return end > now + PROOF_NS ? end : now + PROOF_NS;
}

uint64_t bz_turns_take(struct bz_runtime *rt, uint64_t now, unsigned busy, bool is_held_up)
{
    struct bz_turns *t = &rt->turns;
    struct bz_machine *hogs[HOGS_MAX];
    if (bz_turns_are_refused(t))
        return BZ_OS_FOREVER;
    bool is_over = bz_load_relaxed(&t->is_over) != 0; /* relaxed: seen at this look or the next */
    bool is_all = is_over || is_thaw(rt, now, is_held_up);
    unsigned may = is_all ? HOGS_MAX : allowed(t, now, busy);
    if (is_quiet(t, now, may, rt->monitor.burning))
        return look_at_asked(t, now);
    unsigned n = list_hogs(rt, now, hogs);
    if (!t->is_watched && (n <= may || n + busy <= t->cpus))
        return BZ_OS_FOREVER;
    if (!is_possible(rt))
        return BZ_OS_FOREVER;
    uint64_t next = bz_turns_rotate(rt, now, hogs, n, may);
    note_asked(t, hogs, n);
    t->may = may;
    t->burning = rt->monitor.burning;
    t->full_ns = next != BZ_OS_FOREVER ? first_end(hogs, n, now) : 0;
    return now < t->thaw_end_ns ? sooner(next, t->thaw_end_ns) : next;
}
