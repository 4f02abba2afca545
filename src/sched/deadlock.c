/*
 * deadlock.c - report a deadlock, only if it is one.
 *
 * A runtime that waits for a thread of the program, for a timer or for I/O looks exactly like one that
 * waits for ever. To tell them apart it would have to know everybody who could still act; and it does
 * not know the program's threads, who holds a promise or a waker, or what they are at. The kernel
 * does: it knows how many threads there are. So the rule is about threads:
 *
 *   A task waits; and every thread of the process, but for the monitor that looks, sleeps on a word of
 *   ours, without a deadline, that nobody has changed.
 *
 * Then nobody is left to change one (os/sleepers.c has the proof). Whatever could still act breaks the
 * rule by itself, with nothing to keep track of:
 *   a timer                          its machine sleeps with a deadline, or the monitor does
 *   I/O                              its machine sleeps in the kernel's poll, not on a word of ours
 *   blocking work                    its thread is not asleep on a word of ours
 *   a plain thread of the program    likewise, unless it waits for blitz itself: in a join, a block_on
 *                                    or a channel. One that does cannot act before a task does
 *   a promise or a waker             needs a thread to use it
 *   another runtime                  has threads, too
 * A thread that is in a wait of ours *with* a deadline, or in anybody else's, may act: no report.
 *
 * A deadlock of some tasks while others run is not found by this; the dump shows it to whoever asks.
 *
 * When. A machine that has slept for a while beside a task that waits sees to it that there is a monitor. That asks when it has seen nobody run for a while and would sleep until it is told. A
 * thread that has just ended or is about to fall asleep spoils the proof, so it asks again a few times,
 * further and further apart, the last time when idle threads of the pool have gone as well. Once
 * reported, never again: the program may have been meant so.
 *
 * Rejected: a graph of who waits for whom. Wakers can be held by anybody, in the heap, so it would be a
 * guess, and a false alarm is worse than none.
 */
#include "sched/deadlock.h"

#include "base/log.h"
#include "sched/dump.h"
#include "sched/sched.h"

/* Between two looks; the last is after BZ_POOL_IDLE_NS. */
static const uint64_t pause_ns[] = {50000000, 500000000, 5000000000, 15000000000};

static bool has_timer(struct bz_runtime *rt)
{
    for (unsigned i = 0; i < rt->proc_count; i++)
        if (bz_timers_first(&rt->procs[i]) != BZ_OS_FOREVER)
            return true;
    return false;
}

static uint64_t tasks_alive(struct bz_runtime *rt)
{
    uint64_t ended = bz_live_ended(&rt->tasks.live); /* first: never more than were spawned */
    return bz_live_spawned(&rt->tasks.live) - ended;
}

static int to_log(void *ctx, const char *line, size_t length)
{
    (void)ctx;
    bz_log(BLITZ_LOG_ERROR, "%.*s", (int)(length - 1), line); /* without its newline */
    return 0;
}

static void report(struct bz_runtime *rt, uint64_t tasks)
{
    rt->deadlock.is_reported = true;
    bz_log(
        BLITZ_LOG_ERROR,
        "deadlock: %llu tasks of runtime %s wait, and every thread of the process waits for them",
        (unsigned long long)tasks, rt->is.name);
    (void)!bz_dump(rt, to_log, NULL, BLITZ_DUMP_FRAMES); /* it cannot fail: to_log does not */
}

uint64_t bz_deadlock_look(struct bz_runtime *rt, uint64_t now)
{
    struct bz_deadlock *d = &rt->deadlock;
    uint64_t tasks = tasks_alive(rt);
    if (d->is_reported || tasks == 0 || d->looks == BZ_ARRAY_LEN(pause_ns))
        return BZ_OS_FOREVER;
    if (!has_timer(rt) && bz_os_others(rt->os) == 0) {
        report(rt, tasks);
        return BZ_OS_FOREVER;
    }
    return now + pause_ns[d->looks++];
}

uint64_t bz_deadlock_patience(struct bz_runtime *rt, uint64_t until)
{
    /* relaxed: once it is started it stays; likewise, and one look more or less */
    if (BZ_LIKELY(bz_load_relaxed(&rt->monitor.state) != BZ_MONITOR_NONE) ||
        until != BZ_OS_FOREVER || bz_load_relaxed(&rt->deadlock.is_blind) || tasks_alive(rt) == 0)
        return until;
    return bz_os_now(rt->os) + pause_ns[0];
}

void bz_deadlock_wants_monitor(struct bz_runtime *rt)
{
    if (!bz_monitor_raise(rt))
        bz_store_relaxed(&rt->deadlock.is_blind, 1); /* relaxed: as above */
}

void bz_deadlock_over(struct bz_runtime *rt)
{
    rt->deadlock.looks = 0;
}
