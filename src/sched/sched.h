/*
 * sched.h - the scheduler's inside: runtime, procs and machines, and who calls whom.
 *
 *   config.c    what a runtime is to be like
 *   runtime.c   makes and unmakes a runtime; shutdown
 *   overdue.c   which tasks keep a shutdown waiting
 *   stats.c     figures for users
 *   tasks.c     task headers, and how to find all of them
 *   live.c      counting tasks, and the last one's end
 *   machine.c   threads: g0, the runner's loop, suspend
 *   proc.c      who holds a proc: asleep, taken, regained
 *   find.c      what to run next
 *   pool.c      threads to run machines and blocking calls on
 *   blocking.c  calls that block, on threads of the pool; larger stacks
 *   turns.c     hogs that have lost their proc take turns: halt.c
 *   syscall.c   calls that block, made in place
 *   locked.c    a task that runs on one thread only
 *   monitor.c   looks after what a busy machine keeps to itself
 *   search.c    when there is nothing at hand: searching, sleeping
 *   place.c     where a task that became runnable goes, and whom to rouse for it
 *   claim.c     a join that runs the child itself
 *   host.c      tasks that find no stack
 *   fiber.c     spawn
 *   poll.c      stackless tasks
 *   handle.c    what a handle is good for, and pointer results
 *   locals.c    task-local storage
 *   join.c      waking and ending a task, and waiting for its end
 *   deque.c     forked jobs of the frames that stand on a machine
 *   job.c       forked jobs that somebody else runs
 *   invoke.c    a few calls at the same time
 *   outside.c   parallel calls from plain threads
 *   guest.c     plain threads that run a task of their own
 *   ask.c       a task that has run for long is asked to let others run
 *   await.c     futures, wakers
 *   io.c        operations on files, and who hears of them; flight.c: those the kernel has
 *   timer.c     deadlines: a wheel a proc
 *   trace.c     what happened when, for people
 *   watch.c     test builds look after themselves
 *   futures.c   sleeps and joins as values
 *   wait.c      what a task waits in, and cancelling
 *   request.c   operations that may have to wait: the drivers
 *
 * A *proc* is the right to run tasks and what belongs to it; a *machine* is a thread. Procs move: a
 * machine whose task is long at it loses its proc to another one (monitor.c, proc.c). From then on it
 * is in the runtime's eyes a plain thread that happens to run a task: what it spawns or wakes goes
 * through the injector. When its task waits or ends the thread goes back to the pool.
 *
 * Rule: m->proc is looked at between bz_enter and bz_leave only. In user code it may be another's.
 */
#ifndef BZ_SCHED_H
#define BZ_SCHED_H

#include "base/rng.h"
#include "base/slab.h"
#include "blitz/future.h"
#include "blitz/poll.h"
#include "blitz/runtime.h"
#include "blitz/task.h"
#include "io/poll.h"
#include "os/self.h"
#include "sched/age.h"
#include "sched/ask.h"
#include "sched/config.h"
#include "sched/counters.h"
#include "sched/deadlock.h"
#include "sched/deque.h"
#include "sched/gather.h"
#include "sched/guest.h"
#include "sched/host.h"
#include "sched/idle.h"
#include "sched/inbox.h"
#include "sched/injector.h"
#include "sched/locked.h"
#include "sched/pace.h"
#include "sched/pool.h"
#include "sched/proc.h"
#include "sched/job.h"
#include "sched/monitor.h"
#include "sched/retake.h"
#include "sched/runq.h"
#include "sched/tasks.h"
#include "sched/trace.h"
#include "sched/turns.h"
#include "sched/watch.h"
#include "task/stack.h"
#include "task/task.h"
#include "time/wheel.h"
#include "wait/waiter.h"

struct bz_machine;

/* A moment at which something is to happen. The memory is the waiting frame's. */
struct bz_timer {
    struct bz_wheel_timer in; /* proc->wheel while armed; guarded by the proc's timer_lock */
    struct bz_proc *proc;     /* whose; constant while armed */
    /* Called under the lock, once, when it is due. The timer is not armed any more then, and its memory may
     * be gone as soon as the lock is dropped. Returns the wake-up to deliver, or BZ_WAKE_NONE. */
    struct bz_wake (*fire)(struct bz_timer *timer);
};

/* A party that waits for a task's end, blocking or polled. */
struct bz_join {
    blitz_future f;            /* of a polled one */
    struct bz_task *task;      /* constant */
    struct bz_request request; /* its waiter stands in task->joiners; guarded by task->lock */
};

/* A few entries the owner has taken out of its ring with one CAS. */
enum { BZ_HAND_MAX = 8 };
struct bz_hand {
    bz_shared(bz_entry) entry[BZ_HAND_MAX]; /* from at to count; 0: it was claimed */
    bz_atomic(uint32_t) at, count;          /* touched as they are; the monitor peeks */
};

struct bz_proc {
    struct bz_runtime *rt;    /* constant */
    unsigned index;           /* constant */
    bool is_plain;            /* constant: bz_is_plain(rt), where the fast paths look anyway */
    unsigned next_row;        /* how many of `next` ran in a row; the machine's alone */
    bz_atomic(uint32_t) tick; /* tasks run; the machine's, the monitor peeks */
    uint32_t duty_at;         /* the tick at which other queues and timers are due: find.c */
    bz_atomic(bz_entry) next; /* runs next here; touched as retake.h says, or peeked at */
    struct bz_hand hand;      /* taken out of the ring in advance; likewise */
    struct bz_runq ring;
    bz_atomic(uint32_t) state; /* and who holds it: proc.h */
    struct bz_pace pace;       /* of its looks at the injector; the machine's alone */
    bz_atomic(uint64_t)
        busy_ns;         /* how long it was at work; the machine's to write, the monitor peeks */
    uint32_t timers_at;  /* the tick of the next look at timers and inbox; likewise */
    struct bz_rng rng;   /* the machine's alone */
    unsigned tombstones; /* to be left behind until we tidy up; the machine's alone */
    struct bz_entries hungry; /* fresh tasks that wait for a stack; the machine's alone */
    struct bz_inbox inbox;    /* what is to begin here */
    struct bz_lock timer_lock;
    struct bz_wheel wheel;           /* guarded by timer_lock */
    bz_atomic(uint64_t) timer_first; /* the earliest; written under timer_lock, read by the owner */
    struct bz_counters counters;     /* for statistics; the machine's to write */
    struct bz_task_home tasks;       /* its task headers, and counts of tasks: tasks.h */
    struct bz_monitor_seen seen;     /* the monitor's */
    BZ_OWN_LINE struct bz_poll poll; /* where its machine sleeps */
};

enum { BZ_SCRAP_BYTES = 80 };

struct bz_machine {
    struct bz_deque deque; /* first: blitz/fork.h */
    struct bz_jobs jobs;
    struct bz_seat seat;    /* turns.h */
    struct bz_retake taken; /* where it is, and whether it has lost its proc */
    struct bz_runtime *rt;  /* constant */
    struct bz_proc *proc;   /* NULL: it has lost it. The thread's own, as is most of the rest */
    struct bz_proc *last;   /* the proc it has, or had */
    unsigned index;         /* in rt->machines; constant */
    bool is_used;           /* a thread runs it; guarded by rt->start_lock, as is */
    const struct bz_os_thread *thread;
    bz_atomic(uint32_t) is_guest;  /* run by a plain thread: guest.c. Constant while in use */
    struct bz_machine *next_guest; /* rt->guests.idle; guarded by its lock */
    bz_atomic(uint32_t) is_stray;  /* the monitor took its proc, and it is not home yet */
    uint64_t burnt_ns;             /* CPU time of its thread when the monitor last looked */
    uint64_t astray_ns;            /* when the monitor took its proc; the monitor's */
    uint64_t base_ns;              /* ... and when it began its task, or later; the monitor's */
    bool is_proven;                /* it has burnt enough to be stopped; the monitor's */
    bool burns;                    /* ... and whether it did, as a stray; the monitor's */
    bz_atomic(uint32_t) calls;     /* system calls it has announced; the monitor peeks */
    unsigned holds_on;             /* > 0: no call out of the runtime may cost us the proc */
    struct bz_ctx g0;              /* its native stack, while it runs on another */
    struct bz_stack *runner;       /* the stack it stands on; NULL on g0 */
    struct bz_stack *spare;        /* so that a suspension cannot fail */
    struct bz_task *current;       /* NULL in the loop */
    uint64_t heard_ns;             /* when it last asked the poll while it was busy */
    uint64_t now_ns;               /* what the clock said when it last looked; 0: it has not yet */
    bz_entry handed;               /* found by whoever left for this loop: run it first */
    struct bz_locked locked;       /* to a task: locked.h */
    bool is_searching;             /* counted so in rt->idle */
    bool was_roused;               /* and has found nothing since */
    unsigned spins_more;           /* turns before it sleeps: search.c */
    struct bz_rng rng;             /* of the tasks it runs: selects draw from it */
    void *scrap;                   /* BZ_SCRAP_BYTES, or NULL: scrap.h */
    struct bz_stack_cache stacks;
    struct bz_harvest heard; /* what it hears, when it sleeps or asks; then it is delivered */
    /* Where its events are recorded; NULL: it had none. */
    struct bz_trace_row *trace;
#if defined(BZ_WATCH)
    struct bz_watch watch; /* watch.h */
#endif
};

struct bz_runtime {
    const struct bz_os *os; /* constant, as are the next ones */
    blitz_allocator alloc;
    unsigned proc_count;
    bool is_plain;          /* no fast paths: built so, or the system has no barriers */
    bool watches_overflows; /* its stacks are on the list of task/overflow.c; its user's */
    bz_age_word clock;      /* not constant, but seldom written: age.h */
    /* Its first word is read at every event. */
    struct bz_trace trace;
    enum bz_stack_class stack_class;
    size_t claim_bytes; /* half a stack of that class: claim.c */
    uint64_t fpcw;      /* the founder's floating-point control words */
    struct bz_settings is;
    struct bz_proc *procs;
    struct bz_machines machines;
    struct bz_files files; /* that are open: io.c */
    struct bz_guests guests;
    struct bz_injector injector;
    struct bz_barrier barrier; /* not if plain */
    struct bz_idle idle;
    struct bz_gather gather; /* who listens for files */
    struct bz_pool pool;     /* its threads, but for the monitor's */
    struct bz_monitor monitor;
    struct bz_turns turns;
    struct bz_stack_pool stacks;
    struct bz_kept kept;            /* stacks of last resort: host.h */
    bool is_up;                     /* its first machine has started; under start_lock */
    struct bz_tasks tasks;          /* headers, and counts of them */
    struct bz_counters counters;    /* of threads without a proc */
    bz_atomic(uint32_t) is_ending;  /* machines leave */
    bz_atomic(uint32_t) locked;     /* tasks that run on one thread only, now */
    struct bz_runtime *older;       /* runtimes.c's */
    struct bz_deadlock deadlock;    /* the monitor's */
    bz_atomic(uint32_t) dump_asked; /* 1: by SIGQUIT; dump.c */
    struct bz_lock stop_lock;       /* rank: first; held while the tasks are asked to end */
    struct bz_lock start_lock; /* rank: after stop_lock; held while a thread is started or ends */
};

/* What a plain thread is in: NULL. */
static inline struct bz_machine *bz_machine_self(void)
{
    return bz_self_get();
}

/* Is it run by a plain thread? The monitor asks of machines that are not in use, too: a hint there. */
static inline bool bz_machine_is_guest(struct bz_machine *m)
{
    return bz_load_relaxed(&m->is_guest) != 0; /* relaxed: ours, or a hint */
}

/* The task that calls, or NULL on a plain thread. */
static inline struct bz_task *bz_task_self(void)
{
    struct bz_machine *m = bz_machine_self();
    return m != NULL ? m->current : NULL;
}

/* The rough time for a new task of rt. A thread that is none of its workers reads the clock: nobody
 * may have done so for long. */
static inline uint32_t bz_age_here(struct bz_runtime *rt)
{
    struct bz_machine *m = bz_machine_self();
    if (m == NULL || m->rt != rt)
        bz_age_update(&rt->clock, bz_os_now(rt->os));
    return bz_age_now(&rt->clock);
}

/* No fast paths here? In such a build the compiler knows. */
static inline bool bz_is_plain(const struct bz_runtime *rt)
{
#if defined(BZ_PLAIN)
    (void)rt;
    return true;
#else
    return rt->is_plain;
#endif
}

/* bz_enter for the machine we are known to be. True if it has a proc. */
BZ_MUST_USE static BZ_ALWAYS_INLINE bool bz_enter_on(struct bz_machine *m, uint32_t *was)
{
    if (BZ_UNLIKELY(!bz_retake_enter(&m->taken, was)))
        bz_proc_lost(m);
    return BZ_LIKELY(m->proc != NULL);
}

/* bz_leave for the machine we are known to be still: nothing has suspended since. */
static BZ_ALWAYS_INLINE void bz_leave_on(struct bz_machine *m, uint32_t was)
{
    bz_retake_leave(&m->taken, was);
}

/*
 * Begin to touch what is the proc's alone: retake.h. *was is for bz_leave. May be nested.
 * Returns: the machine we are, if it has a proc. NULL: we are a plain thread, or a machine that has
 *          lost its proc and from here to bz_leave does as a plain thread does.
 */
BZ_MUST_USE static BZ_ALWAYS_INLINE struct bz_machine *bz_enter(uint32_t *was)
{
    struct bz_machine *m = bz_machine_self();
    if (BZ_UNLIKELY(m == NULL)) {
        *was = BZ_IN_USER;
        return NULL;
    }
    return bz_enter_on(m, was) ? m : NULL;
}

/* The same for the caller that is a machine, with a proc or without. */
static BZ_ALWAYS_INLINE struct bz_machine *bz_enter_as(uint32_t *was)
{
    (void)!bz_enter(was);
    return bz_machine_self();
}

/* Whoever we are now: a suspension may lie between. */
static BZ_ALWAYS_INLINE void bz_leave(uint32_t was)
{
    struct bz_machine *m = bz_machine_self();
    if (BZ_LIKELY(m != NULL))
        bz_retake_leave(&m->taken, was);
}

/* The machine we are, if it is one of that runtime and has a proc; else NULL. In the runtime. */
static BZ_ALWAYS_INLINE struct bz_machine *bz_machine_in(const struct bz_runtime *rt)
{
    struct bz_machine *m = bz_machine_self();
    if (m == NULL || m->rt != rt || m->proc == NULL)
        return NULL;
    BZ_ASSERT(bz_retake_where(&m->taken) == BZ_IN_RUNTIME);
    return m;
}

/* A proc of ours for timers, which have a lock: the one we have, or had. */
static inline struct bz_proc *bz_proc_for_timers(void)
{
    return bz_machine_self()->last;
}

/* For messages. */
static inline const char *bz_task_name(const struct bz_task *t)
{
    return t->name != NULL ? t->name : "unnamed";
}

/* Count something that the machine does, in the runtime. */
#define bz_count_many_here(m, name, n)                         \
    do {                                                       \
        if (BZ_LIKELY((m)->proc != NULL))                      \
            bz_count_many(&(m)->proc->counters, name, n);      \
        else                                                   \
            bz_count_many_shared(&(m)->rt->counters, name, n); \
    } while (0)
#define bz_count_here(m, name) bz_count_many_here(m, name, 1)

/* job.c: the current task is about to leave its stack. Its pending jobs go to the queues. */
static inline void bz_evacuate(struct bz_machine *m)
{
    if (BZ_LIKELY(bz_deque_is_surely_empty(&m->deque)))
        return;
    if (!bz_deque_is_empty(&m->deque) && !BZ_BROKEN(72))
        bz_evacuate_slow(m);
    m->deque.may_be_shown = false;
}

/* How many entries are in the hand. */
static inline unsigned bz_hand_left(struct bz_hand *h)
{
    return bz_load_relaxed(&h->count) - bz_load_relaxed(&h->at); /* relaxed: ours to touch */
}

/* Something urgent waits in the injector: look there after the current run. */
static inline void bz_proc_hurry(struct bz_proc *p)
{
    bz_pace_hurry(&p->pace);
    p->duty_at = bz_load_relaxed(&p->tick) + 1; /* relaxed: ours */
}

static inline bool bz_next_is_set(struct bz_proc *p)
{
    return bz_load_relaxed(&p->next) != 0; /* relaxed: ours to touch */
}

/* Is there somebody who would fetch a task out of a next slot that is not looked at? */
static inline bool bz_monitor_is_up(struct bz_runtime *rt)
{
    /* relaxed: monitor.c [S] */
    return BZ_LIKELY(bz_load_relaxed(&rt->monitor.state) >= BZ_MONITOR_UP) || bz_monitor_raise(rt);
}

/* Are there tasks that have had a proc for long, or machines that lost theirs to burn on? */
static inline bool bz_monitor_sees_hogs(struct bz_runtime *rt)
{
    return bz_load_relaxed(&rt->monitor.sees_hogs) != 0; /* relaxed: a hint */
}

static inline bool bz_monitor_is_slow(struct bz_runtime *rt)
{
    return bz_load_relaxed(&rt->monitor.state) == BZ_MONITOR_SLOW; /* relaxed: a hint */
}

/* runtime.c */
BZ_MUST_USE int bz_runtime_new(const struct bz_os *os, const blitz_runtime_opts *config,
                               struct bz_runtime **out);
/* Nobody holds the runtime or any of its task headers any more: free the memory. */
void bz_runtime_release(struct bz_runtime *rt);

/* syscall.c: announce a blocking call and make it on this thread, whatever the backend. */
int bz_call_here(int (*fn)(void *arg), void *arg);

/* machine.c */
/* Start a thread for a proc that is STARTING. On error it still is. Under start_lock. */
BZ_MUST_USE int bz_machine_start(struct bz_proc *p, bool is_searching);
/* The same for anybody: 0, also if the runtime ends; on error the proc is an ORPHAN. */
BZ_MUST_USE int bz_proc_start(struct bz_proc *p, bool is_searching);
/* Leave the stack the current task stands on; hook(arg) runs once it is left. Returns when the
 * task is resumed, perhaps on another machine. */
void bz_suspend(bz_ctx_hook *hook, void *arg);
/* The current task waits until it is woken; returns at once if it was since it last ran. */
void bz_park(void);
/* On g0: go on with a task that has a stack. Returns when the stacks are left for g0 again. */
void bz_resume_from_home(struct bz_machine *m, struct bz_task *t);
void bz_yield(void);
/* A plain thread begins t on m, a guest with a spare stack; returns when that has ended or waits. */
void bz_guest_run(struct bz_machine *m, struct bz_task *t);
/* Has the system refused a stack, and not given one since? A hint. */
static inline bool bz_is_short(struct bz_runtime *rt)
{
    return bz_load_relaxed(&rt->tasks.is_short) != 0; /* relaxed: a hint */
}
/* Traits for a new task: while stacks are short it begins on one that its spawn has taken. */
static inline unsigned bz_reserve_traits(struct bz_runtime *rt)
{
    return BZ_UNLIKELY(bz_is_short(rt)) ? BZ_TASK_CLASS | BZ_TASK_STAYS : 0;
}
/* While stacks are short: what a machine that goes to sleep does not need goes to the pool. */
void bz_machine_share_stacks(struct bz_machine *m);
/* Make sure of a spare stack; false if there is none to be had. */
BZ_MUST_USE bool bz_machine_has_spare(struct bz_machine *m);
/* Take the stack that a task of another class than the runtime's begins on, and give it back if it
 * does not come to that. Any thread. */
BZ_MUST_USE int bz_task_take_stack(struct bz_task *t);
void bz_task_give_stack(struct bz_task *t);
/* Let t, which has no stack, begin on s. The caller has t in hand. */
void bz_task_begin_on(struct bz_task *t, struct bz_stack *s);

/* What ran has returned without being done, and stands on no stack: it waits, or for its turn. */
void bz_task_set_aside(struct bz_task *t, enum bz_ran ran);

/* find.c: empty `next` and the hand into out[], oldest first. Whoever may touch them: retake.h.
 * Returns how many. */
unsigned bz_empty_hand(struct bz_proc *p, bz_entry out[BZ_HAND_MAX + 1]);
/* Have the CPU fetch what the task after the current one stands on. In the runtime, with a proc. */
void bz_warm_next(struct bz_machine *m);
/* What is in its own slot, hand and ring; 0 if there is nothing. */
bz_entry bz_take_own(struct bz_machine *m);
/* What is at hand without disturbing anybody; 0 if there is nothing. */
bz_entry bz_find_near(struct bz_machine *m);
/* The next task to run on this machine; sleeps if there is none. 0: the runtime ends, or the machine
 * has no proc any more. */
bz_entry bz_find(struct bz_machine *m);
/* Take a batch from the injector: one to run, the rest into the ring. */
bz_entry bz_take_injected(struct bz_machine *m);
/* The runtime has ended, machines leave. */
static inline bool bz_is_ending(struct bz_machine *m)
{
    return bz_load_acquire(&m->rt->is_ending) != 0; /* runtime.c [A] */
}

/* search.c: take from others, if not too many do that already; or sleep until there is a reason
 * not to. False: the proc was taken meanwhile. */
bz_entry bz_search(struct bz_machine *m);
BZ_MUST_USE bool bz_go_to_sleep(struct bz_machine *m);

/* place.c */
/* A task has become runnable and is in no queue: queue it and rouse whom it takes. Any thread. */
void bz_place(struct bz_runtime *rt, bz_entry e);
/* One that is to begin on that proc. */
void bz_place_on(struct bz_runtime *rt, unsigned proc, bz_entry e);
/* Rouse a proc that the idle set has named, or start its thread; BZ_NOBODY: nothing. */
void bz_rouse(struct bz_runtime *rt, int proc);
/* There is work that others can take: rouse somebody if it takes that. */
void bz_rouse_one(struct bz_runtime *rt);
/* rouse.c: several tasks were queued at once: rouse a proc, unless this one comes to them soon. */
void bz_rouse_for_batch(struct bz_machine *m);
/* ... A searcher has found work, and runs it: it no longer counts as searching. */
void bz_search_ended(struct bz_machine *m);
/* Drop what is dead at the injector's front. Returns how many. */
unsigned bz_tidy_injector(struct bz_runtime *rt);
/* A tombstone was taken from a queue: drop its reference. */
void bz_drop_tombstone(bz_entry e);
/* The machine's ring is full: push all the same; what spills goes to the injector. Rouses. */
void bz_push_full(struct bz_machine *m, bz_entry e);
/* Push on the machine's own ring. Rouses nobody, unless it was full. */
static inline void bz_push_here(struct bz_machine *m, bz_entry e)
{
    if (BZ_UNLIKELY(!bz_runq_try_push(&m->proc->ring, e)))
        bz_push_full(m, e);
}
/* The same, for anybody to take. What e points to may be gone when it returns. */
static BZ_ALWAYS_INLINE void bz_push_for_all(struct bz_machine *m, bz_entry e)
{
    struct bz_runtime *rt = m->rt;
    if (BZ_UNLIKELY(!bz_runq_try_push(&m->proc->ring, e)))
        bz_push_full(m, e);
    else if (BZ_UNLIKELY(bz_idle_may_rouse(&rt->idle)))
        bz_rouse_one(rt);
}
void bz_place_evicted(struct bz_machine *m, bz_entry e); /* the same, not inline */
/* bz_place on the caller's machine m, which is of the task's runtime. In the runtime. */
static BZ_ALWAYS_INLINE void bz_place_near(struct bz_machine *m, bz_entry e)
{
    struct bz_proc *p = m->proc;
    bz_entry old = e;
    if (bz_monitor_is_up(m->rt) && !bz_is_plain(m->rt)) {
        old = bz_load_relaxed(&p->next); /* relaxed: ours to touch */
        bz_store_relaxed(&p->next, e);   /* relaxed: likewise */
    }
    if (old != 0)
        bz_place_evicted(m, old);
}
/* To the injector, for anybody to take. Any thread. */
void bz_place_outside(struct bz_runtime *rt, bz_entry e);
/* One that yielded: to the end of this machine's ring. In the runtime. */
static BZ_ALWAYS_INLINE void bz_place_last(bz_entry e)
{
    struct bz_machine *m = bz_machine_self();
    bz_os_delay(m->rt->os, BZ_OS_AT_PUBLISH);
    if (BZ_LIKELY(m->proc != NULL))
        bz_push_for_all(m, e);
    else
        bz_place_outside(m->rt, e);
}

/* Is it the entry of a task that has been claimed? Once it is, it stays so. */
static inline bool bz_entry_is_tombstone(bz_entry e)
{
    return bz_entry_tag(e) == BZ_ENTRY_FIRST && bz_word_is_started(&bz_entry_task(e)->word);
}

/* Run a claimed child on the caller's stack. In a program with C++ (bz_run_apart) it sees none of the
 * joiner's exceptions, which may come back to another thread. */
BZ_NOINLINE enum bz_ran bz_run_apart(struct bz_task *t);
static BZ_ALWAYS_INLINE enum bz_ran bz_run_child(struct bz_task *t)
{
    return bz_eh_is_used() && !BZ_BROKEN(291) ? bz_run_apart(t) : t->ops->run(t);
}

/* claim.c: run a child that has not started on the calling task's stack. False: nothing was done.
 * True: it ran, *ran says what became of it, and the caller owes what a loop would. */
BZ_MUST_USE bool bz_claim(struct bz_task *t, enum bz_ran *ran);
/* Run t, which the caller has in hand, on the stack of the current task. The caller owes what a loop would. */
enum bz_ran bz_run_here(struct bz_task *t);
/* Has the calling task's stack the room that a child is promised? */
static BZ_ALWAYS_INLINE bool bz_claim_has_room(struct bz_machine *m)
{
    char *here = __builtin_frame_address(0);
    return (size_t)(here - m->runner->low) >= m->rt->claim_bytes;
}
/* Drop the tombstones that are left in the queues. Every machine has gone. */
void bz_bury(struct bz_runtime *rt);

/* fiber.c */
extern const struct bz_task_ops bz_fiber_ops;
/* For all who make tasks: the runtime that is meant, or NULL. */
struct bz_runtime *bz_runtime_for(const blitz_spawn_opts *opts);
/* References to begin with: the scheduler's and the handle's. */
static inline unsigned bz_task_refs(blitz_task **out)
{
    return out != NULL ? 2 : 1;
}
/* Fill in a header. What its maker has behind it is there already. */
void bz_task_init(struct bz_task *t, struct bz_runtime *rt, const struct bz_task_ops *ops,
                  const blitz_spawn_opts *opts, unsigned traits, unsigned refs);
/* Its options make no sense in that runtime. */
bool bz_opts_are_bad(const blitz_spawn_opts *opts, const struct bz_runtime *rt);
/* A fiber that is counted in and begun, but by nobody yet: the caller runs it. With a handle. */
BZ_MUST_USE int bz_fiber_begin(struct bz_runtime *rt, int (*fn)(void *arg), void *arg,
                               const char *name, struct bz_task **out);
/* Count it in and queue it. On error it was dropped. */
BZ_MUST_USE int bz_task_start(struct bz_task *t, const blitz_spawn_opts *opts, blitz_task **out);

/* Drop the reference of a handle. Aborts, by the task's name, if it was given up before. */
void bz_handle_give_up(struct bz_task *t);

/* handle.c */
static inline int bz_task_result(const struct bz_task *t)
{
    return t->marks & BZ_MARK_POINTER ? 0 : t->result;
}
void *bz_task_take_pointer(struct bz_task *t);
typedef void bz_drop_fn(void *value, void *ctx);
/* At a drop: a pointer that was not taken. `drop_result` may be NULL. */
void bz_task_drop_pointer(struct bz_task *t, bz_drop_fn *drop_result, void *ctx);
/* await.c: does waking it end soon, because it is a task's or a thread's of ours, or none? */
bool bz_waker_is_ours(const blitz_waker *w);
/* poll.c: spawn a stackless task with ops of its own: those below, and a closer. */
enum bz_ran bz_poll_run(struct bz_task *t);
void bz_poll_drop(struct bz_task *t);
uintptr_t bz_poll_begun_in(const struct bz_task *t);
void *bz_poll_state(struct bz_task *t);
BZ_MUST_USE int bz_spawn_poll(const struct bz_task_ops *ops,
                              blitz_poll (*poll)(void *state, blitz_cx *cx), const void *state,
                              size_t state_bytes, const blitz_spawn_opts *opts, blitz_task **out);
/* poll.c: the state of a stackless task that has this poll function; NULL of any other task. */
void *bz_poll_state_if(struct bz_task *t, blitz_poll (*poll)(void *state, blitz_cx *cx));
/* timer.c: if the task is there to wake a foreign waker, do that here and end the task. For a machine on g0
 * that has won the task and has no stack for it: the waker may be what ends the shortage. The proc may be gone
 * when it returns. */
BZ_MUST_USE bool bz_timer_wake_here(struct bz_task *t);
/* timer.c: wake it, and if it is foreign let a task do that. */
void bz_waker_wake_apart(struct bz_runtime *rt, blitz_waker *w);
/* Call a function of the user's that does not suspend, from wherever we are: retake.h. */
void bz_call_out(void (*fn)(void *), void *arg);
void bz_drop_out(bz_drop_fn *drop, void *value, void *ctx);

/* locals.c: the task has returned; destroy what it left. In the task; may suspend. */
void bz_locals_destroy(struct bz_task *t);
static inline void bz_locals_end(struct bz_task *t)
{
    if (t->locals != NULL)
        bz_locals_destroy(t);
}

/* join.c */
void bz_join_init(struct bz_join *j, const blitz_future_ops *ops, struct bz_task *t);
blitz_poll bz_join_poll(blitz_future *future, const blitz_waker *waker);
void bz_join_cancel(blitz_future *future);
/* futures.c: the public future that a join by future belongs to. */
const blitz_future *bz_join_future_of(const struct bz_join *j);
void bz_task_wake(struct bz_task *t);   /* any thread with a reference */
void bz_task_finish(struct bz_task *t); /* its `run` said that it is done */

/* wait.c */
void bz_task_cancel(struct bz_task *t); /* any thread with a reference */

/*
 * Has a moment passed? Timers are made by the million, and nearly all of them for a moment that is far
 * ahead: then what the clock said when this machine last looked is enough to know, and it is not read
 * (25 ns of the 80 that a timer took). A task that has been at it for longer than BZ_FAR_NS may be
 * told "no" of a moment that has just passed; a timer for it fires at the next look.
 */
#define BZ_FAR_NS (100 * UINT64_C(1000000))
static inline uint64_t bz_machine_now(struct bz_machine *m)
{
    if (BZ_UNLIKELY(m->now_ns == 0))
        m->now_ns = bz_os_now(m->rt->os); /* its first task */
    return m->now_ns;
}
static inline bool bz_has_passed(const struct bz_os *os, uint64_t when)
{
    struct bz_machine *m = bz_machine_self();
    if (when == BLITZ_FOREVER || (m != NULL && when > bz_machine_now(m) + BZ_FAR_NS))
        return false;
    return bz_os_now(os) >= when;
}

/* await.c: whose thread calls: its machine's system, or that of a plain thread. */
const struct bz_os *bz_os_here(void);
/* The waker of a task; its data is the task. */
extern const blitz_waker_ops bz_task_waker;
/* The clock of whoever asks with this waker; on a plain thread it is also told to ask again by
 * `when`, since it has no timers. */
const struct bz_os *bz_waker_by(const blitz_waker *w, uint64_t when);
/* Ask a future that stands beside others. Debug builds warn of one that waits meanwhile. */
blitz_poll bz_future_poll(blitz_future *f, const blitz_waker *w);
/* Give it up. True: it is pinned, and to be asked until it is ready. False: it may be gone. */
BZ_MUST_USE bool bz_future_cancel(blitz_future *f);
/* blitz_await for one who may be a plain thread of `os`. */
int bz_await(const struct bz_os *os, blitz_future *f, blitz_deadline until);

/* timer.c */
/* A timer of proc p, not armed yet. */
void bz_timer_init(struct bz_timer *timer, struct bz_proc *p,
                   struct bz_wake (*fire)(struct bz_timer *timer));
void bz_timer_arm(struct bz_timer *timer, uint64_t when); /* any thread */
/* It will not fire; harmless if it has. Returns true if it was armed. Any thread. */
bool bz_timer_disarm(struct bz_timer *timer);
/* To arm as part of something larger. */
void bz_timers_lock(struct bz_proc *p);
void bz_timer_arm_locked(struct bz_timer *timer, uint64_t when);
void bz_timers_unlock(struct bz_proc *p);
/* What was armed is its first, perhaps: rouse it if it sleeps, unless it is ours. Any thread. */
void bz_timers_armed(struct bz_proc *p);
/* Fire what is due, a batch at most; true if there was anything. Any thread. A waker that is not ours
 * is called out of the runtime: a machine may have lost its proc when it returns. */
bool bz_timers_fire(struct bz_proc *p, uint64_t now);
static inline uint64_t bz_timers_first(struct bz_proc *p)
{
    return bz_load_relaxed(&p->timer_first); /* relaxed: its machine armed what matters to it */
}

#endif
