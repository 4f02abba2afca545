/*
 * deadlock.c - report a deadlock, only if it is one.
 *
 * A runtime that waits for a thread of the program, for a timer or for I/O looks exactly like one that
 * waits for ever. To tell them apart, the runtime would have to know every thread that could still act.
 * It does not know the program's threads, which of them holds a promise or a waker, or what they do. The
 * kernel knows how many threads there are. So the rule is about threads:
 *
 *   A task waits; an idle actor does not. And every thread of the process, except the monitor that looks, sleeps on a word of
 *   ours, without a deadline, and no thread has changed that word.
 *
 * Then no thread is left to change a word (os/sleepers.c has the proof). Everything that could still act
 * breaks the rule by itself, without any bookkeeping:
 *   a timer                          its machine sleeps with a deadline, or the monitor does
 *   I/O                              its machine sleeps in the kernel's poll, not on a word of ours
 *   blocking work                    its thread is not asleep on a word of ours
 *   a plain thread of the program    likewise, unless it waits for blitz itself: in a join, a block_on
 *                                    or a channel. Such a thread cannot act before a task does
 *   a promise or a waker             needs a thread to use it
 *   another runtime                  has threads, too
 * A thread in a wait of ours *with* a deadline, or in a wait of other code, may act: no report.
 *
 * This does not find a deadlock of some tasks while others run. A dump on request shows it.
 *
 * When. A machine that has slept for a while beside a waiting task makes sure that there is a monitor.
 * The monitor checks when it has seen no task run for a while and would sleep until it is notified. A
 * thread that has just ended or is about to fall asleep spoils the proof. So the monitor checks again a
 * few times, at growing intervals, the last time when idle threads of the pool have gone as well. After
 * one report there is no other: the program may be meant to be so.
 *
 * Rejected: a graph of which task waits for which. Any code can hold a waker, in the heap. So the graph
 * would be a guess, and a false alarm is worse than none.
 */
#include "monitor/deadlock.h"

#include "base/log.h"
#include "life/deadlines.h"
#include "observe/dump.h"
#include "proc/state.h"

/* The time between two looks; the last is after BZ_POOL_IDLE_NS. */
static const uint64_t pause_ns[] = {BZ_DEADLOCK_FIRST_NS, 500000000, 5000000000, 15000000000};

static bool has_timer(struct bz_runtime *rt)
{
    for (unsigned i = 0; i < rt->proc_count; i++)
        if (bz_timers_first(&rt->procs[i]) != BZ_OS_FOREVER)
            return true;
    return false;
}

static void count_waiting(struct bz_task *t, void *count)
{
    const char *idles = t->ops->idles != NULL ? t->ops->idles(t) : NULL;
    if (!bz_word_is_complete(&t->word) && (idles == NULL || *idles != '\0'))
        ++*(uint64_t *)count;
}

/* The number of tasks that wait. Idle actors wait for nothing. */
static uint64_t waiting(struct bz_runtime *rt)
{
    uint64_t count = 0;
    bz_tasks_each(rt, count_waiting, &count);
    return count;
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
    uint64_t tasks = bz_live_alive(&rt->tasks.live);
    if (d->is_reported || tasks == 0 || d->looks == BZ_ARRAY_LEN(pause_ns))
        return BZ_OS_FOREVER;
    if (!has_timer(rt) && bz_os_others(rt->os) == 0) {
        tasks = waiting(rt); /* a walk, once every other thread sleeps */
        if (tasks > 0)
            report(rt, tasks);
        return BZ_OS_FOREVER;
    }
    return now + pause_ns[d->looks++];
}

void bz_deadlock_over(struct bz_runtime *rt)
{
    rt->deadlock.looks = 0;
}
