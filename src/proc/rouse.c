/*
 * rouse.c - when new work rouses a sleeping thread, and when the running thread keeps it.
 *
 * The policy, in one place. idle.c has the protocol that loses no wake-up, place.c the queues, search.c the
 * spin, gather.c the proc that listens for files.
 *
 * A wake-up through the kernel costs the waking thread 11 to 26 us and the woken one 33 to 65 us (2 CPUs of a
 * virtual machine). A task of a network server takes 2 to 4 us, most of it system calls. So a thread that is roused
 * for a few of them comes too late, and each message costs more. Before these rules it cost 20 to 45% more with 2
 * procs than with 1, and the p99 was twice as high (redis-benchmark -c 50 -P 1).
 *
 * New work rouses a sleeping proc at once:
 *   - a spawned or yielded task in the ring or the injector, and a forked job that is exposed. Its run time
 *     is not known, and fork-join must reach all procs in one wake-up;
 *   - a batch of tasks that I/O has made runnable, if all tasks queued on this proc take longer than ROUSE_NS. The
 *     estimate is their number times the average run of this proc (pace.h). ROUSE_NS is 200 us: a helper arrives
 *     after about 50 us and takes half of the rest, so it saves at most 75 us of latency, for 50 to 90 us of CPU.
 *     At 50 us a batch of 48 requests cost 1.13 times as much on 2 procs as on 1, at 200 us 1.02 times
 *     (bench-wakes, epoll-50);
 *   - a timer or a pinned task of a proc that sleeps.
 *
 * New work is left to the running thread:
 *   - a lone task in the next slot (place.c);
 *   - a batch that is done soon, as above;
 *   - a lone task that a searcher has found. A searcher that sees no more work rouses no other proc in its place.
 *     It looks at all queues once more instead (idle.c). Before, one connection on 2 procs made 1.97 futex calls
 *     per message on epoll and 2.94 on uring; now it makes 0.22 and 0.02.
 *     A forked job is different: the frame that forked it mostly has more, and forks are shown only when a searcher
 *     asks for them (deque.c). So a searcher that has found a job rouses the next one. Without this, loops of uneven
 *     bodies took over 1.25 times the ideal time in 7 of 60 simulated runs instead of 1.
 * If a task turns out to be long, the monitor sees it at two looks in a row. It rouses a proc for the tasks queued
 * behind it after 100 us to 2 ms, as its budget allows.
 *
 * A thread that finds nothing spins for 1 to 15 us before it sleeps, but only while another proc is awake, or a
 * call runs on the pool. Alone, only the kernel can bring work, and a thread that sleeps in its poll gets it at
 * once.
 *
 * At low load the files of all procs are in one poll (gather.c): else the kernel wakes a thread of each proc for its
 * share of the events.
 */
#include "proc/batch.h"
#include "proc/fresh.h"
#include "proc/monitor_wake.h"
#include "proc/place.h"
#include "proc/state.h"

enum { ROUSE_NS = 200000 };

/* True if this machine reaches all of its queued tasks soon. The monitor checks that it does. */
static bool is_soon_done(struct bz_machine *m)
{
    struct bz_proc *p = m->proc;
    unsigned count = bz_runq_queued_here(&p->ring) + bz_batch_left(&p->batch) + bz_fresh_count(p) +
                     bz_next_is_set(p);
    return bz_pace_takes_ns(&p->pace, count) <= ROUSE_NS && bz_monitor_is_up(m->rt);
}

void bz_rouse_for_batch(struct bz_machine *m)
{
    if (bz_idle_may_rouse(&m->rt->idle) && !is_soon_done(m))
        bz_rouse_one(m->rt);
}

/* True if there is work that a second machine should take, now that this one has a task to run. */
static bool has_work_for_others(struct bz_machine *m)
{
    struct bz_runtime *rt = m->rt;
    if (bz_injector_length(&rt->injector) > 0 || bz_job_is_any(rt))
        return true;
    for (unsigned i = 0; i < rt->proc_count; i++)
        if (&rt->procs[i] != m->proc && bz_runq_count(&rt->procs[i].ring) > 0)
            return true;
    return bz_runq_queued_here(&m->proc->ring) > 0 && !is_soon_done(m);
}

void bz_search_ended(struct bz_machine *m, bool is_job)
{
    struct bz_runtime *rt = m->rt;
    m->is_searching = false;
    m->was_roused = false;
    if (is_job || has_work_for_others(m))
        bz_rouse(rt, bz_idle_found(&rt->idle));
    else if (bz_idle_leave(&rt->idle) && has_work_for_others(m))
        bz_rouse_one(rt);
}
