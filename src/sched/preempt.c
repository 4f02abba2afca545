/*
 * preempt.c - threads that burn past the limit are stopped where they are, and take turns.
 *
 * By the time a machine is stopped its proc has moved away (monitor.c), or is about to: nobody waits
 * for it. What the stop gives is a bound on the threads that burn CPU time, so that any number of
 * endless loops share what `burning_max` of them would take. The monitor decides (rotate), a signal
 * makes the thread look (os/urge.h), and the handler refuses unless the thread holds nothing that
 * others need: it is in user code of a task, at an instruction of registered code (text.h), and
 * nobody has paused it. Then it sleeps right there (halt.h). It goes on in the same place on the same
 * thread, so there is nothing to be saved: the kernel has the registers, and no thread-local moves.
 *
 * The handler itself, blitz and the C library are never in registered text: bz_text_add is refused
 * a range with code of ours in it.
 *
 * Turns. All burning machines, those that ran longest first: as many as are past the limit are asked
 * to stop, and as many as wait for a turn, once they have run for SLICE_NS. When one has stopped, the one
 * that has waited longest goes on. A machine that refuses (it is in malloc each time we look) is asked
 * again after RETRY_NS, and after PATIENCE tries somebody else is asked as well, so that one who
 * cannot be stopped costs the others no turn.
 *
 * A cancelled task is not stopped, and one that is stopped is let go when it is cancelled: the
 * handler looks every BZ_HALT_LOOK_NS. That is also how a runtime's end reaches them: shutdown cancels.
 *
 * Rejected: switching to another task in the handler (halt.c); a timer per thread that raises the
 * signal (timer_create: signals without need, and a policy spread over the handlers); a policy by CPU
 * time used instead of turns (the thread's clock is a system call a look, and equal slices come to
 * the same).
 *
 * I1  A machine is asked, let go and looked at by the monitor alone; a thread that begins forgets what the
 *     last one was asked.
 * I2  seat->thread is the kernel's id of the thread that runs the machine, or 0. If it ends or the
 *     machine changes threads after we read it, the signal goes to nobody, or to a thread of ours that was
 *     asked for nothing.
 */
#include "sched/preempt.h"

#include <errno.h>

#include "base/log.h"
#include "os/urge.h"
#include "sched/sched.h"
#include "sched/text.h"

enum { SLICE_NS = 10000000, RETRY_NS = 1000000, PATIENCE = 16 };

static struct bz_text text; /* of the process */

/* ---- what may be interrupted ---- */

static void on_urged(uintptr_t pc);

/* Code of ours lies there. (Not by the address of a public function: to a program that may be the jump
 * to it in its own text.) */
static bool is_ours(uintptr_t from, uintptr_t to)
{
    return from <= (uintptr_t)on_urged && (uintptr_t)on_urged < to;
}

int blitz_preempt_register(const void *start, const void *end)
{
    uintptr_t from = (uintptr_t)start, to = (uintptr_t)end;
    if (from == 0 || from >= to || is_ours(from, to))
        return -EINVAL;
    return bz_text_add(&text, &bz_os_linux, from, to);
}

int blitz_preempt_unregister(const void *start, const void *end)
{
    if (start == NULL || start == end)
        return -ENOENT;
    return bz_text_remove(&text, &bz_os_linux, (uintptr_t)start, (uintptr_t)end);
}

static int register_segment(uintptr_t start, uintptr_t end)
{
    return blitz_preempt_register((const void *)start, (const void *)end);
}

int blitz_preempt_register_program(void)
{
    return bz_urge_each_of_program(register_segment);
}

/* ---- the handler ---- */

static bool is_cancelled(void *machine)
{
    struct bz_machine *m = machine;
    /* relaxed: seen at the next look if not at this; its shield does not matter, it shall end soon */
    return (bz_load_relaxed(&m->current->word) & BZ_WORD_CANCELLED) != 0;
}

static void count(bz_atomic(uint64_t) *statistic)
{
    bz_store_relaxed(statistic, bz_load_relaxed(statistic) + 1); /* relaxed: one writer */
}

static void on_urged(uintptr_t pc)
{
    struct bz_machine *m = bz_machine_self();
    if (m == NULL || !bz_halt_is_asked(&m->seat.halt))
        return;
    bool may = bz_machine_may_interrupt(m) && (bz_text_has(&text, pc) || BZ_BROKEN(106)) &&
               !is_cancelled(m);
    if (may && bz_halt_here(&m->seat.halt, m->rt->os, is_cancelled, m))
        count(&m->seat.stopped);
    else
        count(&m->seat.refused);
}

int bz_preempt_init(struct bz_runtime *rt)
{
    if (!rt->is.is_preemptive)
        return 0;
    int err = rt->os->thread_urge != NULL ? bz_urge_watch(on_urged) : -ENOSYS;
    if (err != 0)
        bz_log(BLITZ_LOG_ERROR, "config.preempt = 1: threads cannot be interrupted here (error %d)",
               -err);
    return err;
}

void bz_preempt_fini(struct bz_runtime *rt)
{
    if (rt->is.is_preemptive)
        bz_urge_unwatch();
}

void bz_preempt_sit(struct bz_machine *m)
{
    if (!m->rt->is.is_preemptive)
        return;
    (void)bz_halt_go(&m->seat.halt, m->rt->os); /* what was asked of the last thread here */
    bz_store_relaxed(&m->seat.thread, bz_os_thread_id(m->rt->os)); /* relaxed: I2 */
}

void bz_preempt_rise(struct bz_machine *m)
{
    bz_store_relaxed(&m->seat.thread, 0); /* relaxed: I2 */
}

/* ---- the monitor: one machine ---- */

bool bz_preempt_is_stopped(struct bz_machine *m)
{
    return bz_halt_is_stopped(&m->seat.halt);
}

void bz_preempt_stop(struct bz_machine *m, uint64_t now)
{
    struct bz_preempt_seat *seat = &m->seat;
    uint32_t thread = bz_load_relaxed(&seat->thread); /* relaxed: I2 */
    uint64_t pause = seat->tries < PATIENCE ? RETRY_NS : SLICE_NS;
    if (thread == 0 || bz_halt_is_stopped(&seat->halt))
        return;
    if (bz_halt_is_asked(&seat->halt) && now - seat->sent_ns < pause)
        return; /* it is on its way */
    bz_halt_ask(&seat->halt);
    seat->sent_ns = now;
    if (seat->tries++ == 0)
        seat->asked_ns = now;
    (void)bz_os_thread_urge(m->rt->os, thread); /* what fails is tried again */
}

void bz_preempt_go(struct bz_machine *m, uint64_t now)
{
    (void)bz_halt_go(&m->seat.halt, m->rt->os);
    m->seat.since_ns = now;
    m->seat.was_stopped = false;
    m->seat.tries = 0;
}

bool bz_preempt_has_turn(struct bz_machine *m, uint64_t now)
{
    struct bz_preempt_seat *seat = &m->seat;
    return !bz_halt_is_running(&seat->halt) ||
           (seat->since_ns != 0 && now - seat->since_ns < SLICE_NS);
}

/* ---- the monitor: turns ---- */

/* Since when has it been as it is? Returns whether it is stopped. */
static bool look_at(struct bz_machine *m, uint64_t now)
{
    struct bz_preempt_seat *seat = &m->seat;
    bool is_stopped = bz_preempt_is_stopped(m);
    if (is_stopped && !seat->was_stopped)
        seat->late += now - seat->asked_ns > SLICE_NS;
    if (is_stopped != seat->was_stopped || seat->since_ns == 0) {
        seat->since_ns = now;
        seat->tries = 0;
    }
    seat->was_stopped = is_stopped;
    return is_stopped;
}

static bool goes_before(const struct bz_machine *a, const struct bz_machine *b)
{
    const struct bz_preempt_seat *x = &a->seat, *y = &b->seat;
    return x->was_stopped != y->was_stopped ? x->was_stopped : x->since_ns < y->since_ns;
}

/* The stopped first, the longest first. There are few, and they are nearly in order. */
static void sort(struct bz_machine **hogs, unsigned n)
{
    for (unsigned i = 1; i < n; i++) {
        struct bz_machine *m = hogs[i];
        unsigned at = i;
        for (; at > 0 && goes_before(m, hogs[at - 1]); at--)
            hogs[at] = hogs[at - 1];
        hogs[at] = m;
    }
}

/* Of n that run, the longest first: `over` of them are too many, `waiting` want a turn. Returns when to
 * look again. */
static uint64_t make_room(struct bz_machine **hogs, unsigned n, uint64_t now, unsigned over,
                          unsigned waiting)
{
    uint64_t next = BZ_OS_FOREVER;
    unsigned asked = 0;
    for (unsigned i = 0; i < n; i++) {
        struct bz_preempt_seat *seat = &hogs[i]->seat;
        bool is_over = now - seat->since_ns >= SLICE_NS;
        bool is_next = asked < over || (asked < over + waiting && is_over);
        if (is_next) {
            bz_preempt_stop(hogs[i], now);
            asked += seat->tries < PATIENCE;
            next = now + RETRY_NS;
        } else if (bz_halt_is_asked(&seat->halt)) {
            bz_preempt_go(hogs[i], now); /* no longer wanted */
        } else if (waiting > 0 && next > seat->since_ns + SLICE_NS) {
            next = is_over ? now + RETRY_NS : seat->since_ns + SLICE_NS;
        }
    }
    return next;
}

uint64_t bz_preempt_rotate(struct bz_runtime *rt, uint64_t now, struct bz_machine **hogs,
                           unsigned n, unsigned allowed)
{
    unsigned stopped = 0, gone = 0;
    if (!rt->is.is_preemptive)
        return BZ_OS_FOREVER;
    for (unsigned i = 0; i < n; i++)
        stopped += look_at(hogs[i], now);
    sort(hogs, n);
    unsigned running = n - stopped;
    for (; gone < stopped && running < allowed; gone++, running++)
        bz_preempt_go(hogs[gone], now);
    unsigned over = running > allowed ? running - allowed : 0;
    uint64_t next = make_room(hogs + stopped, n - stopped, now, over, stopped - gone);
    if (gone < stopped && next == BZ_OS_FOREVER)
        next = now + SLICE_NS; /* nobody runs but those that just went on */
    return next;
}
