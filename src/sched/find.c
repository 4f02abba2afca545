/*
 * find.c - what a machine runs next.
 *
 * A machine looks at its sources in this order:
 *   1  the injector, every pace.every runs (pace.h), so that a busy proc cannot starve it
 *   2  the `next` slot
 *   3  the proc's own ring
 *   4  due timers
 *   5  the proc's inbox
 *   6  the injector
 * Then it searches the other procs, and sleeps if it finds no work: search.c.
 *
 * If the injector has urgent entries (injector.h), the machine looks there again after each run.
 * While runs are long, it looks for urgent entries after each run in any case. The monitor hurries a
 * machine whose first run is long.
 *
 * Two tasks that wake each other could use the `next` slot for ever. After BZ_NEXT_ROW uses in a row,
 * the task in the slot goes to the end of the ring.
 *
 * One CAS on the ring takes several entries: the owner takes up to BZ_BATCH_MAX entries into its
 * private batch, if no proc sleeps or searches. Other workers cannot take entries of the batch. So if
 * a proc sleeps or searches, the owner takes one entry at a time, and returns all but the next entry of
 * its batch to the ring. If a machine runs one task for long, the monitor empties its batch.
 *
 * With thousands of tasks, a task's state is not in cache when its turn comes, and each piece of it is
 * found through the one before. The tasks in the batch are known, so the owner prefetches their state
 * while other tasks run.
 *
 * Every TIMERS_EVERY runs the machine looks at its timers and its inbox, whatever the ring holds. It
 * also looks at its poll, if the poll has files and the last look was at least HEAR_NS ago: that look
 * is a system call. Both looks share one reading of the clock.
 *
 * Rejected: looks that are 128 runs apart while runs are short. It saves another 1 ns of a message beside a socket, but when
 * 127 long runs follow short ones, a timer waits for all of them.
 *
 * A proc may be retired (retire.c). Its machine notices that at these looks, and when its own queues are empty.
 *
 * All these duties share one test, of the tick against the tick of the next duty. While no duty is
 * due, the fast path of quick.h takes the next task, inline in the switch and in the loop. When one is due, a yield and a
 * wait do only the duties (bz_find_duties), and then take the fast path again.
 *
 * I1  A machine that returns a task is not counted as searching: before it runs the task, it has
 *     passed on the duty to look for more work.
 */
#include "life/deadlines.h"
#include "life/stacks.h"
#include "proc/batch.h"
#include "proc/enter.h"
#include "proc/fresh.h"
#include "proc/monitor_wake.h"
#include "proc/place.h"
#include "proc/retire.h"
#include "proc/state.h"
#include "sched/loop.h"
#include "sched/quick.h"
#include "sched/reap.h"

enum { TIMERS_EVERY = 32, HEAR_NS = 50000, HEAR_MAX_NS = 1000000 };

/* Return the system's time, and note the time of the runtime. */
static uint64_t now(struct bz_machine *m)
{
    uint64_t ns = bz_os_now(m->rt->os);
    bz_age_update(&m->rt->clock, ns);
    m->now_ns = BZ_LIKELY(m->time == m->rt->os) ? ns : bz_os_now(m->time);
    return ns;
}

/* Claim a first run of an entry that was taken. Return 0 if the entry is a tombstone: claim.c. */
static bz_entry win(bz_entry e)
{
    if (bz_entry_tag(e) != BZ_ENTRY_FIRST)
        return e;
    struct bz_task *t = bz_entry_task(e);
    if (bz_word_claim(&t->word, 0))
        return bz_entry_resumed(t);
    bz_drop_tombstone(e);
    return 0;
}

/* Return how many entries to take from the injector: one to run, and half of the free room in the ring. Entries
 * that did not fit would go back to the injector, behind all the others. */
static unsigned batch_for(struct bz_proc *p)
{
    unsigned most = 1 + (BZ_RUNQ_CAP - bz_runq_count(&p->ring)) / 2;
    return most < BZ_INJECTOR_BATCH ? most : BZ_INJECTOR_BATCH;
}

/* Take a batch from the injector: one to run, the rest into the ring. Between the two queues the entries are in
 * neither of them: a searcher may have looked just then and gone to sleep. */
bz_entry bz_take_injected(struct bz_machine *m)
{
    bz_entry batch[BZ_INJECTOR_BATCH];
    unsigned count, i;
    bz_entry won = 0;
    while (won == 0 && (count = bz_injector_take(&m->rt->injector, batch, batch_for(m->proc),
                                                 bz_procs_active(m->rt))) != 0) {
        bz_count(&m->proc->counters, injector_batches);
        bz_count_many(&m->proc->counters, injected, count);
        for (i = 0; won == 0 && i < count; i++)
            won = win(batch[i]);
        bz_os_delay(m->rt->os, BZ_OS_AT_PUBLISH);
        bool is_more = i < count;
        for (; i < count; i++)
            bz_push_here(m, batch[i]);
        if (is_more) {
            bz_rouse_one(m->rt);            /* between the queues no searcher saw them */
            (void)!bz_monitor_is_up(m->rt); /* the first may be a hog */
        }
    }
    if (bz_injector_urgent(&m->rt->injector) > 0)
        bz_proc_hurry(m->proc); /* the ring may be full of hogs: look here again first */
    return won;
}

/* Take a batch out of the ring, if no proc sleeps or searches and the ring has more than a few entries. */
static bool fill_batch(struct bz_machine *m)
{
    struct bz_proc *p = m->proc;
    struct bz_batch *h = &p->batch;
    if (p->is_plain || p->ring.is_lone || bz_runq_queued_here(&p->ring) < BZ_BATCH_FROM ||
        !bz_idle_is_quiet(&m->rt->idle))
        return false;
    unsigned count = bz_runq_take_some(&p->ring, h->entry, BZ_BATCH_MAX);
    bz_store_relaxed(&h->at, 0);        /* relaxed: ours to touch */
    bz_store_relaxed(&h->count, count); /* relaxed: likewise */
    for (unsigned i = 1; i < count; i++)
        __builtin_prefetch((void *)(bz_get(&h->entry[i]) & ~(bz_entry)BZ_ENTRY_TAG_MASK));
    return count > 0;
}

/* A proc sleeps or searches: return all but the next entry of the batch to the ring, where others can steal them. */
static void open_batch(struct bz_machine *m)
{
    struct bz_batch *h = &m->proc->batch;
    while (bz_batch_left(h) > 1) {
        unsigned last = bz_load_relaxed(&h->count) - 1; /* relaxed: ours to touch */
        bz_store_relaxed(&h->count, last);              /* relaxed: likewise */
        bz_entry e = bz_get(&h->entry[last]);
        if (e != 0)
            bz_push_here(m, e);
    }
    bz_rouse_one(m->rt);
}

static bz_entry take_ring(struct bz_machine *m)
{
    struct bz_batch *h = &m->proc->batch;
    bz_entry won = 0;
    m->proc->next_row = 0;
    if (bz_batch_left(h) > 1 && !bz_idle_is_quiet(&m->rt->idle))
        open_batch(m);
    do {
        bool is_in_batch = bz_batch_left(h) > 0 || fill_batch(m);
        bz_entry e = is_in_batch ? bz_batch_take_first(h) : bz_runq_take(&m->proc->ring);
        if (e == 0 && !is_in_batch)
            return 0;
        won = e != 0 ? win(e) : 0; /* 0: it was claimed out of the batch */
    } while (won == 0);
    return won;
}

bz_entry bz_take_own(struct bz_machine *m)
{
    struct bz_proc *p = m->proc;
    bz_entry next = bz_load_relaxed(&p->next); /* relaxed: ours to touch */
    if (next == 0)
        return take_ring(m);
    bz_store_relaxed(&p->next, 0); /* relaxed: likewise */
    if (p->next_row++ < BZ_NEXT_ROW && (next = win(next)) != 0) {
        bz_count(&p->counters, next_hits);
        return next;
    }
    if (next != 0)
        bz_push_here(m, next); /* no rouse: the entry that runs instead was visible, too */
    return take_ring(m);
}

/* Take an entry that must start on this proc. */
static bz_entry take_inbox(struct bz_machine *m)
{
    bz_entry e = bz_inbox_take(&m->proc->inbox, m->rt->os);
    return e != 0 ? win(e) : 0;
}

/* Fire due timers. Without a timer, do not read the clock. Return true if any fired and we still have the proc: a
 * waker may have run for so long that the monitor took it. has_read: the clock was read just now. */
static bool fire_timers(struct bz_machine *m, bool has_read)
{
    if (bz_timers_first(m->proc) == BZ_OS_FOREVER)
        return false;
    if (!has_read)
        (void)now(m);
    return bz_timers_fire(m->proc, m->now_ns) && m->proc != NULL;
}

/* Poll for I/O now and then: a busy machine does not sleep in its poll. Poll less often while the ring is half
 * full: new entries would push the oldest out into the injector, and would be served before them. Return true if the clock was read,
 * and nothing was done since. */
static bool hear(struct bz_machine *m)
{
    struct bz_proc *p = m->proc;
    if (!bz_poll_is_used(&p->poll))
        return false;
    bool is_full = bz_runq_count(&p->ring) > BZ_RUNQ_CAP / 2 - BZ_HARVEST_MAX;
    uint64_t ns = now(m);
    if (ns - m->heard_ns < (is_full ? HEAR_MAX_NS : HEAR_NS))
        return true;
    m->heard_ns = ns;
    bz_io_reap(p, &m->heard);
    return false;
}

/* The proc is gone: queue the entry for other workers. */
static BZ_NOINLINE bz_entry give_up(struct bz_machine *m, bz_entry e)
{
    if (e != 0)
        bz_place_outside(m->rt, e);
    return 0;
}

/* True if runs take a tenth of a millisecond and more: then a look for urgent tasks after each costs nothing. */
static bool are_runs_long(const struct bz_proc *p)
{
    return p->pace.every == BZ_PACE_MIN;
}

/* Set the next tick at which a duty is due. The fresh list is empty: fresh.c I3. */
static void set_duty(struct bz_proc *p, uint32_t tick)
{
    if (are_runs_long(p)) {
        bz_tick_set_duty(&p->tick, tick + 1);
        return;
    }
    uint32_t looked = tick - p->pace.at_tick;
    uint32_t injector = looked < p->pace.due ? p->pace.due - looked : 1;
    uint32_t timers = (int32_t)(p->timers_at - tick) > 0 ? p->timers_at - tick : 1;
    bz_tick_set_duty(&p->tick, tick + (timers < injector ? timers : injector));
}

/* Count the time since the last look as busy. */
static void count_busy(struct bz_proc *p, uint64_t ns)
{
    uint64_t busy = bz_load_relaxed(&p->busy_ns); /* relaxed: ours; the monitor peeks */
    if (ns > p->pace.at_ns)
        bz_store_relaxed(&p->busy_ns, busy + (ns - p->pace.at_ns)); /* relaxed: likewise */
}

/* Look at the poll, the timers, the injector and the inbox, as far as each is due. While hogs hold procs, look at
 * all of them: the next run may take a slice. Return the entry to run; 0 also if the proc is gone. */
static BZ_NOINLINE bz_entry do_duties(struct bz_machine *m, uint32_t tick)
{
    struct bz_proc *p = m->proc;
    bz_entry e = 0;
    bool are_timers_due = (int32_t)(tick - p->timers_at) >= 0 || bz_monitor_sees_hogs(m->rt);
    if (are_timers_due) {
        p->timers_at = tick + TIMERS_EVERY;
        if (bz_proc_is_retired(p)) {
            bz_retire_shed(m);
            bz_tick_set_duty(&p->tick, tick + 1);
            return 0;
        }
        bool has_read = hear(m);
        if (!fire_timers(m, has_read) && m->proc == NULL)
            return 0;
    }
    if (bz_pace_is_due(&p->pace, tick)) {
        uint64_t ns = now(m);
        count_busy(p, ns);
        bz_pace_look(&p->pace, tick, ns);
        e = bz_take_injected(m);
    } else if (bz_injector_urgent(&m->rt->injector) > 0) {
        e = bz_take_injected(m);
    }
    if (p->ring.is_lone)
        bz_runq_rebase_lone(&p->ring);
    if (bz_fresh_count(p) > 0) /* a timer or an event has started tasks */
        bz_fresh_publish(m);
    set_duty(p, tick);
    return e != 0 || !are_timers_due ? e : take_inbox(m);
}

/* Look further: the proc's own queues are empty. */
static BZ_NOINLINE bz_entry find_further(struct bz_machine *m)
{
    if (bz_proc_is_retired(m->proc))
        return 0; /* the loop serves: retire.c */
    bz_entry e = fire_timers(m, false) ? bz_take_own(m) : 0;
    if (BZ_UNLIKELY(m->proc == NULL))
        return give_up(m, e);
    if (e == 0)
        e = take_inbox(m);
    return e != 0 ? e : bz_take_injected(m);
}

bool bz_find_duties(struct bz_machine *m, bz_entry *e)
{
    struct bz_proc *p = m->proc;
    *e = 0;
    if (!bz_tick_is_due(&p->tick))
        return false;
    if (bz_fresh_count(p) > 0)
        bz_fresh_publish(m);
    *e = do_duties(m, bz_tick_now(&p->tick) + 1);
    if (*e != 0)
        (void)bz_tick_step(&p->tick); /* else the next fast path counts it */
    return true;
}

bz_entry bz_find_near(struct bz_machine *m)
{
    struct bz_proc *p = m->proc;
    bool is_due = bz_tick_step(&p->tick);
    if (BZ_UNLIKELY(bz_fresh_count(p) > 0)) {
        bz_fresh_publish(m);
        is_due = true; /* fresh.c I3 */
    }
    if (BZ_UNLIKELY(is_due)) {
        bz_entry e = do_duties(m, bz_tick_now(&p->tick));
        if (e != 0 || m->proc == NULL)
            return e;
    }
    bz_entry e = bz_take_own(m);
    return e != 0 ? e : find_further(m);
}

/* True if this machine can run e now. A new task needs a stack to run on; a job also needs a header. A machine in
 * its loop stands on a stack; a machine on g0 needs its spare stack. */
static bool can_run(struct bz_machine *m, bz_entry e)
{
    bool is_job = bz_entry_tag(e) == BZ_ENTRY_JOB;
    if (!is_job && bz_entry_task(e)->stack != NULL)
        return true;
    bool has_stack = bz_machine_has_spare(m) || m->runner != NULL;
    return has_stack && (!is_job || bz_job_has_header(m));
}

/* Return true if this machine can run e. If it cannot, find another way (host.c) or put e aside. */
static bool may_run(struct bz_machine *m, bz_entry e)
{
    if (BZ_LIKELY(can_run(m, e)))
        return true;
    enum bz_without way = bz_do_without(m, e);
    if (way == BZ_WITHOUT_WAITS)
        bz_entries_push(&m->proc->want_stack, e);
    return way == BZ_WITHOUT_RUNS;
}

/* Try a sixteenth of the entries in want_stack, so that a cancelled entry is found within sixteen calls. The machine runs
 * the first entry that can run now, and returns the others to the ring. (If all went to the ring, a machine
 * without a stack could steal them while we hold the stack; then we could steal them back, without end.) An entry
 * that cannot run goes to the end of the list. So a job without a header does not delay a task that needs only a
 * stack. */
static BZ_NOINLINE void give_stacks(struct bz_machine *m)
{
    enum { FEED_MIN = 16 };
    struct bz_entries *want_stack = &m->proc->want_stack;
    size_t count = FEED_MIN + want_stack->count / FEED_MIN;
    if (count > want_stack->count)
        count = want_stack->count;
    bool is_any = false, is_short = false;
    for (; count > 0; count--) {
        bz_entry e = bz_entries_take(want_stack);
        bool is_job = bz_entry_tag(e) == BZ_ENTRY_JOB;
        bool can = (is_job || !is_short) && can_run(m, e);
        enum bz_without way = can ? BZ_WITHOUT_RUNS : bz_do_without(m, e);
        is_short = is_short || (!can && !is_job); /* one refusal by the system is enough */
        if (way == BZ_WITHOUT_RUNS && m->handed == 0) {
            m->handed = e;
        } else if (way == BZ_WITHOUT_RUNS) {
            bz_push_here(m, e);
            is_any = true;
        } else if (way == BZ_WITHOUT_WAITS) {
            bz_entries_push(want_stack, e);
        }
        if (BZ_UNLIKELY(m->proc == NULL))
            return;
    }
    if (is_any)
        bz_rouse_one(m->rt);
}

/* Abort if a machine neither runs a task nor sleeps: it lacks something that no other thread will provide. */
#if defined(BZ_DEBUG) || defined(BZ_WATCH)
static void check_progress(unsigned *empty)
{
    enum { EMPTY_MAX = 1 << 24 };
    BZ_CHECK(++*empty < EMPTY_MAX, "no progress: a machine has found nothing to run %u times",
             *empty);
}
#else
static void check_progress(unsigned *empty)
{
    (void)empty;
}
#endif

static bz_entry take_handed(struct bz_machine *m)
{
    bz_entry e = m->handed;
    m->handed = 0;
    return e;
}

/* The proc was idle: count its next duties from now. */
static void restart_pace(struct bz_machine *m)
{
    struct bz_proc *p = m->proc;
    uint32_t tick = bz_tick_now(&p->tick);
    bz_pace_restart(&p->pace, tick, now(m));
    set_duty(p, tick);
}

/* The proc has nothing to run. Learn from the runs so far, unless this look for work was the only one. */
static void pause_pace(struct bz_machine *m)
{
    struct bz_proc *p = m->proc;
    uint32_t tick = bz_tick_now(&p->tick);
    if (tick - p->pace.at_tick <= 1)
        return;
    uint64_t ns = now(m);
    count_busy(p, ns);
    bz_pace_pause(&p->pace, tick, ns);
    set_duty(p, tick);
}

bz_entry bz_find(struct bz_machine *m)
{
    BZ_ASSERT(bz_deque_is_empty(&m->deque)); /* no frame but the loop's stands on this machine */
    unsigned empty = 0;
    while (m->proc != NULL && !bz_is_ending(m)) {
        if (BZ_UNLIKELY(!bz_entries_is_empty(&m->proc->want_stack)))
            give_stacks(m);
        bz_entry e = take_handed(m);
        if (BZ_UNLIKELY(m->proc == NULL))
            return give_up(m, e);
        if (e == 0)
            e = bz_find_near(m);
        if (m->proc == NULL)
            continue;
        if (e == 0 && bz_proc_is_retired(m->proc)) {
            bz_retire_serve(m);
            if (m->proc != NULL)
                restart_pace(m);
            continue;
        }
        if (e == 0)
            pause_pace(m);
        if (e == 0 && (e = bz_search(m)) != 0 && (e = win(e)) == 0)
            continue;
        if (e == 0) {
            if (BZ_UNLIKELY(bz_is_short(m->rt)) && m->runner != NULL)
                return 0; /* another task needs the stack that we stand on: sleep on g0 */
            check_progress(&empty);
            if (bz_go_to_sleep(m))
                restart_pace(m);
            continue;
        }
        if (m->is_searching)
            bz_search_ended(m, bz_entry_tag(e) == BZ_ENTRY_JOB); /* I1 */
        if (may_run(m, e))
            return bz_entry_tag(e) == BZ_ENTRY_JOB ? bz_job_adopt(m, e) : e;
        check_progress(&empty);
    }
    return 0;
}
