/*
 * state.h - what a runtime, a proc and a machine consist of, and the functions that the scheduler's folders share.
 *
 * docs/architecture.md lists the folders and their files.
 *
 * A *proc* is the right to run tasks, with the state that belongs to it. A *machine* is a thread. Procs move: a
 * machine whose task runs for too long loses its proc to another machine (monitor.c, proc.c). From then on the
 * runtime treats the machine as a plain thread that happens to run a task: the tasks that it spawns or wakes go
 * through the injector. When its task waits or ends, the thread goes back to the pool.
 *
 * Rule: read m->proc only between bz_enter and bz_leave. In user code another machine may have taken the proc.
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
#include "queue/age.h"
#include "proc/ask.h"
#include "proc/config.h"
#include "proc/counters.h"
#include "monitor/deadlock.h"
#include "queue/deque.h"
#include "proc/gather.h"
#include "runtime/guest.h"
#include "sched/host.h"
#include "queue/idle.h"
#include "queue/inbox.h"
#include "queue/injector.h"
#include "sched/locked.h"
#include "queue/pace.h"
#include "thread/pool.h"
#include "proc/proc.h"
#include "life/job.h"
#include "monitor/monitor.h"
#include "queue/retake.h"
#include "queue/runq.h"
#include "life/tasks.h"
#include "trace/trace.h"
#include "sched/turns.h"
#include "proc/selfcheck.h"
#include "task/stack.h"
#include "task/task.h"
#include "time/wheel.h"
#include "wait/waiter.h"

struct bz_machine;

/* A callback at a point in time. Its memory belongs to the waiting frame. */
struct bz_timer {
    struct bz_wheel_timer in; /* proc->wheel while armed; guarded by the proc's timer_lock */
    struct bz_proc *proc;     /* its proc; constant while armed */
    /* Called once, under the lock, when the timer is due. The timer is no longer armed then, and
     * its memory may be gone as soon as the lock is dropped. Returns the wake-up to deliver, or
     * BZ_WAKE_NONE. */
    struct bz_wake (*fire)(struct bz_timer *timer);
};

/* A waiter for a task's end, blocking or polled. */
struct bz_join {
    blitz_future f;            /* used if polled */
    struct bz_task *task;      /* constant */
    struct bz_request request; /* its waiter is in task->joiners; guarded by task->lock */
};

/* The batch: a few entries that the owner has taken out of its ring with one CAS. */
enum { BZ_HAND_MAX = 8 };
struct bz_hand {
    bz_shared(bz_entry) entry[BZ_HAND_MAX]; /* valid from at to count; 0: claimed */
    bz_atomic(uint32_t) at, count;          /* accessed like the entries; the monitor peeks */
};

struct bz_proc {
    struct bz_runtime *rt;    /* constant */
    unsigned index;           /* constant */
    bool is_plain;            /* constant: bz_is_plain(rt), on a cache line of the fast paths */
    unsigned next_row;        /* how many tasks from `next` ran in a row; the machine's alone */
    bz_atomic(uint32_t) tick; /* tasks run; written by the machine, the monitor peeks */
    uint32_t duty_at;         /* the tick at which to check other queues and timers: find.c */
    bz_atomic(bz_entry) next; /* runs next here; accessed by the rules of retake.h, or peeked at */
    struct bz_hand hand;      /* taken out of the ring in advance; likewise */
    struct bz_runq ring;
    bz_atomic(uint32_t) state;   /* the state and the holder: proc.h */
    struct bz_pace pace;         /* of its checks of the injector; the machine's alone */
    bz_atomic(uint64_t) busy_ns; /* its time at work; written by the machine, the monitor peeks */
    uint32_t timers_at;          /* the tick of the next check of timers and inbox; likewise */
    struct bz_rng rng;           /* the machine's alone */
    unsigned tombstones;      /* tombstones to leave until the next tidying; the machine's alone */
    struct bz_entries hungry; /* fresh tasks that wait for a stack; the machine's alone */
    struct bz_inbox inbox;    /* tasks that must start here */
    struct bz_lock timer_lock;
    struct bz_wheel wheel;           /* guarded by timer_lock */
    bz_atomic(uint64_t) timer_first; /* the earliest; written under timer_lock, read by the owner */
    struct bz_counters counters;     /* for statistics; written by the machine */
    struct bz_task_home tasks;       /* its task headers, and counts of tasks: tasks.h */
    struct bz_monitor_seen seen;     /* the monitor's */
    BZ_OWN_LINE struct bz_poll poll; /* where its machine sleeps */
};

enum { BZ_SCRAP_BYTES = 80 };

struct bz_machine {
    struct bz_deque deque; /* first: blitz/fork.h */
    struct bz_jobs jobs;
    struct bz_seat seat;    /* turns.h */
    struct bz_retake taken; /* whether it is in the runtime, and whether it has lost its proc */
    struct bz_runtime *rt;  /* constant */
    struct bz_proc *proc;   /* NULL: lost. Private to the thread, like most other fields */
    struct bz_proc *last;   /* the proc it has, or had */
    unsigned index;         /* in rt->machines; constant */
    bool is_used;           /* a thread runs it; guarded by rt->start_lock, like */
    const struct bz_os_thread *thread;
    bz_atomic(uint32_t) is_guest;  /* run by a plain thread: guest.c. Constant while in use */
    struct bz_machine *next_guest; /* in rt->guests.idle; guarded by its lock */
    bz_atomic(uint32_t) is_stray;  /* the monitor took its proc, and it has not returned yet */
    uint64_t burnt_ns;             /* CPU time of its thread when the monitor last looked */
    uint64_t astray_ns;            /* when the monitor took its proc; the monitor's */
    uint64_t base_ns;              /* ... and when it began its task, or later; the monitor's */
    bool is_proven;                /* it has used enough CPU time to be stopped; the monitor's */
    bool burns;                    /* ... and whether it still uses CPU as a stray; the monitor's */
    bz_atomic(uint32_t) calls;     /* system calls it has announced; the monitor peeks */
    unsigned holds_on;             /* > 0: no call out of the runtime may lose the proc */
    struct bz_ctx g0;              /* its native stack, while it runs on another */
    struct bz_stack *runner;       /* the stack it runs on; NULL on g0 */
    struct bz_stack *spare;        /* kept so that a suspension cannot fail */
    struct bz_task *current;       /* NULL in the loop */
    uint64_t heard_ns;             /* when it last polled for events while busy */
    uint64_t now_ns;               /* its last reading of the clock; 0: none yet */
    bz_entry handed;               /* found before the switch to this loop: run it first */
    struct bz_locked locked;       /* to a task: locked.h */
    bool is_searching;             /* counted as a searcher in rt->idle */
    bool was_roused;               /* ... and has found nothing since */
    unsigned spins_more;           /* turns before it sleeps: search.c */
    struct bz_rng rng;             /* for the tasks it runs: selects draw from it */
    void *scrap;                   /* BZ_SCRAP_BYTES, or NULL: scrap.h */
    struct bz_stack_cache stacks;
    struct bz_harvest heard; /* events of its last poll or sleep, before delivery */
    /* The row that records its events; NULL: none. */
    struct bz_trace_row *trace;
#if defined(BZ_WATCH)
    struct bz_watch watch; /* selfcheck.h */
#endif
};

/*
 * Where new threads and stacks begin, and how the last header ends. The code that starts them is below the code that
 * they run: this table, made by runtime.c, keeps the call graph without a circle.
 */
struct bz_mains {
    void (*machine)(void *machine);         /* the thread of a machine: machine.c */
    void (*monitor)(void *runtime);         /* monitor.c */
    void (*stack)(void *unused);            /* the bottom of a stack for one task: machine.c */
    void (*release)(struct bz_runtime *rt); /* free the runtime: runtime.c */
};

struct bz_runtime {
    const struct bz_os *os; /* constant, like the next fields */
    const struct bz_mains *mains;
    blitz_allocator alloc;
    unsigned proc_count;
    bool is_plain; /* no fast paths: a BZ_PLAIN build, or the system has no barriers */
    bool
        watches_overflows; /* its stacks are on the list of task/overflow.c; its user's thread only */
    bz_age_word clock;     /* not constant, but seldom written: age.h */
    /* Every event reads its first word. */
    struct bz_trace trace;
    enum bz_stack_class stack_class;
    size_t claim_bytes; /* half a stack of that class: claim.c */
    uint64_t fpcw;      /* the floating-point control words of the creating thread */
    struct bz_settings is;
    struct bz_proc *procs;
    struct bz_machines machines;
    struct bz_files files; /* the open files: io.c */
    struct bz_guests guests;
    struct bz_injector injector;
    struct bz_barrier barrier; /* unused if plain */
    struct bz_idle idle;
    struct bz_gather gather; /* the proc that polls files for all */
    struct bz_pool pool;     /* all threads except the monitor's */
    struct bz_monitor monitor;
    struct bz_turns turns;
    struct bz_stack_pool stacks;
    struct bz_kept kept;            /* stacks of last resort: host.h */
    bool is_up;                     /* its first machine has started; under start_lock */
    struct bz_tasks tasks;          /* headers, and counts of them */
    struct bz_counters counters;    /* of threads without a proc */
    bz_atomic(uint32_t) is_ending;  /* set: machines leave */
    bz_atomic(uint32_t) locked;     /* tasks that run on one thread only, now */
    struct bz_runtime *older;       /* runtimes.c uses it */
    struct bz_deadlock deadlock;    /* the monitor's */
    bz_atomic(uint32_t) dump_asked; /* 1: by SIGQUIT; dump.c */
    struct bz_lock stop_lock;       /* rank: first; held while the tasks are asked to end */
    struct bz_lock start_lock; /* rank: after stop_lock; held while a thread is started or ends */
};

/* The current machine; NULL on a plain thread. */
static inline struct bz_machine *bz_machine_self(void)
{
    return bz_self_get();
}

/* True if a plain thread runs it. The monitor also asks for machines that are not in use: a hint
 * there. */
static inline bool bz_machine_is_guest(struct bz_machine *m)
{
    return bz_load_relaxed(&m->is_guest) != 0; /* relaxed: ours, or a hint */
}

/* The calling task, or NULL on a plain thread. */
static inline struct bz_task *bz_task_self(void)
{
    struct bz_machine *m = bz_machine_self();
    return m != NULL ? m->current : NULL;
}

/* The approximate time for a new task of rt. A plain thread reads the clock, because the last
 * update may be old. */
static inline uint32_t bz_age_here(struct bz_runtime *rt)
{
    struct bz_machine *m = bz_machine_self();
    if (m == NULL || m->rt != rt)
        bz_age_update(&rt->clock, bz_os_now(rt->os));
    return bz_age_now(&rt->clock);
}

/* True if there are no fast paths. In a BZ_PLAIN build this is a compile-time constant. */
static inline bool bz_is_plain(const struct bz_runtime *rt)
{
#if defined(BZ_PLAIN)
    (void)rt;
    return true;
#else
    return rt->is_plain;
#endif
}

/* bz_enter for the current machine. True if it has a proc. */
BZ_MUST_USE static BZ_ALWAYS_INLINE bool bz_enter_on(struct bz_machine *m, uint32_t *was)
{
    if (BZ_UNLIKELY(!bz_retake_enter(&m->taken, was)))
        bz_proc_lost(m);
    return BZ_LIKELY(m->proc != NULL);
}

/* bz_leave for a machine that is still current: the caller has not suspended since bz_enter_on. */
static BZ_ALWAYS_INLINE void bz_leave_on(struct bz_machine *m, uint32_t was)
{
    bz_retake_leave(&m->taken, was);
}

/*
 * Begin to access the private state of the proc: retake.h. *was is for bz_leave. May be nested.
 * Returns: the current machine, if it has a proc. NULL: the caller is a plain thread, or a machine that has
 *          lost its proc; it acts as a plain thread until bz_leave.
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

/* The same for a caller that is a machine, with a proc or without. */
static BZ_ALWAYS_INLINE struct bz_machine *bz_enter_as(uint32_t *was)
{
    (void)!bz_enter(was);
    return bz_machine_self();
}

/* End bz_enter, on the current machine: the task may have suspended and moved since. */
static BZ_ALWAYS_INLINE void bz_leave(uint32_t was)
{
    struct bz_machine *m = bz_machine_self();
    if (BZ_LIKELY(m != NULL))
        bz_retake_leave(&m->taken, was);
}

/* The current machine, if it belongs to that runtime and has a proc; else NULL. In the runtime. */
static BZ_ALWAYS_INLINE struct bz_machine *bz_machine_in(const struct bz_runtime *rt)
{
    struct bz_machine *m = bz_machine_self();
    if (m == NULL || m->rt != rt || m->proc == NULL)
        return NULL;
    BZ_ASSERT(bz_retake_where(&m->taken) == BZ_IN_RUNTIME);
    return m;
}

/* The proc for the caller's timers, which have a lock: the proc that the machine has, or had. */
static inline struct bz_proc *bz_proc_for_timers(void)
{
    return bz_machine_self()->last;
}

/* For messages. */
static inline const char *bz_task_name(const struct bz_task *t)
{
    return t->name != NULL ? t->name : "unnamed";
}

/* Count an event of the machine, in the runtime. */
#define bz_count_many_here(m, name, n)                         \
    do {                                                       \
        if (BZ_LIKELY((m)->proc != NULL))                      \
            bz_count_many(&(m)->proc->counters, name, n);      \
        else                                                   \
            bz_count_many_shared(&(m)->rt->counters, name, n); \
    } while (0)
#define bz_count_here(m, name) bz_count_many_here(m, name, 1)

/* job.c: the current task is about to leave its stack. Move its pending jobs to the queues. */
static inline void bz_evacuate(struct bz_machine *m)
{
    if (BZ_LIKELY(bz_deque_is_surely_empty(&m->deque)))
        return;
    if (!bz_deque_is_empty(&m->deque) && !BZ_BROKEN(72))
        bz_evacuate_slow(m);
    m->deque.may_be_shown = false;
}

/* The number of entries left in the batch. */
static inline unsigned bz_hand_left(struct bz_hand *h)
{
    return bz_load_relaxed(&h->count) - bz_load_relaxed(&h->at); /* relaxed: ours to touch */
}

/* An urgent task waits in the injector: check the injector after the current run. */
static inline void bz_proc_hurry(struct bz_proc *p)
{
    bz_pace_hurry(&p->pace);
    p->duty_at = bz_load_relaxed(&p->tick) + 1; /* relaxed: ours */
}

static inline bool bz_next_is_set(struct bz_proc *p)
{
    return bz_load_relaxed(&p->next) != 0; /* relaxed: ours to touch */
}

/* True if the monitor can rescue a task from a next slot that its machine does not reach. Starts it
 * if need be. */
static inline bool bz_monitor_is_up(struct bz_runtime *rt)
{
    /* relaxed: monitor.c [S] */
    return BZ_LIKELY(bz_load_relaxed(&rt->monitor.state) >= BZ_MONITOR_UP) || bz_monitor_raise(rt);
}

/* True if tasks have kept a proc for too long, or machines without a proc still run a hog. */
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
/* Free the memory. No thread holds the runtime or any of its task headers any more. */
void bz_runtime_release(struct bz_runtime *rt);

/* syscall.c: announce a blocking call and make it on this thread, whatever the backend. */
int bz_call_here(int (*fn)(void *arg), void *arg);

/* machine.c: the functions of rt->mains. */
void bz_machine_main(void *arg);
void bz_class_main(void *arg);

/* start.c */
/* Start a thread for a proc that is STARTING. On error it stays STARTING. Under start_lock. */
BZ_MUST_USE int bz_machine_start(struct bz_proc *p, bool is_searching);
/* The same for any caller: 0, also if the runtime ends; on error the proc is an ORPHAN. */
BZ_MUST_USE int bz_proc_start(struct bz_proc *p, bool is_searching);

/* machine.c */
/* Leave the stack of the current task; hook(arg) runs after the switch. Returns when the task is
 * resumed, perhaps on another machine. */
void bz_suspend(bz_ctx_hook *hook, void *arg);
/* Park the current task until it is woken. Return at once if it was woken since it last ran. */
void bz_park(void);
/* On g0: resume a task that has a stack. Returns when the machine switches back to g0. */
void bz_resume_from_home(struct bz_machine *m, struct bz_task *t);
void bz_yield(void);
/* Start t on m, a guest with a spare stack. Call from a plain thread. Returns when t has ended or
 * waits. */
void bz_guest_run(struct bz_machine *m, struct bz_task *t);
/* True if the system has refused a stack, and not given one since. A hint. */
static inline bool bz_is_short(struct bz_runtime *rt)
{
    return bz_load_relaxed(&rt->tasks.is_short) != 0; /* relaxed: a hint */
}
/* Traits for a new task: while stacks are short, the task starts on a stack that its spawn has
 * taken. */
static inline unsigned bz_reserve_traits(struct bz_runtime *rt)
{
    return BZ_UNLIKELY(bz_is_short(rt)) ? BZ_TASK_CLASS | BZ_TASK_STAYS : 0;
}
/* stacks.c */
/* While stacks are short: a machine that goes to sleep gives its unused stacks to the pool. */
void bz_machine_share_stacks(struct bz_machine *m);
/* Make sure of a spare stack; false if none is available. */
BZ_MUST_USE bool bz_machine_has_spare(struct bz_machine *m);
/* Take the stack for a task whose class differs from the runtime's, or give it back if the task
 * does not start. Any thread. */
BZ_MUST_USE int bz_task_take_stack(struct bz_task *t);
void bz_task_give_stack(struct bz_task *t);
/* Let t, which has no stack, begin on s. The caller has claimed t. */
void bz_task_begin_on(struct bz_task *t, struct bz_stack *s);

/* machine.c: park or requeue a task that returned before its end and has no stack. */
void bz_task_set_aside(struct bz_task *t, enum bz_ran ran);

/* batch.c: empty `next` and the batch into out[], oldest first. The caller must have access by
 * retake.h. Returns how many. */
unsigned bz_empty_hand(struct bz_proc *p, bz_entry out[BZ_HAND_MAX + 1]);
/* Prefetch the stack of the task after the current one. In the runtime, with a proc. */
void bz_warm_next(struct bz_machine *m);
/* find.c */
/* Take an entry from its own slot, batch or ring; 0 if all are empty. */
bz_entry bz_take_own(struct bz_machine *m);
/* Take an entry without stealing or sleeping; 0 if there is none. */
bz_entry bz_find_near(struct bz_machine *m);
/* Return the next task to run on this machine; sleep if there is none. 0: the runtime ends, or the
 * machine has lost its proc. */
bz_entry bz_find(struct bz_machine *m);
/* Take a batch from the injector: return one entry, push the rest on the ring. */
bz_entry bz_take_injected(struct bz_machine *m);
/* True if the runtime has ended and machines leave. */
static inline bool bz_is_ending(struct bz_machine *m)
{
    return bz_load_acquire(&m->rt->is_ending) != 0; /* runtime.c [A] */
}

/* search.c: steal from other machines, unless enough searchers do so already; or sleep until work
 * arrives. False: another machine took the proc meanwhile. */
bz_entry bz_search(struct bz_machine *m);
BZ_MUST_USE bool bz_go_to_sleep(struct bz_machine *m);

/* place.c */
/* Queue a task that has become runnable and is in no queue, and rouse a proc if needed. Any
 * thread. */
void bz_place(struct bz_runtime *rt, bz_entry e);
/* Queue a task that must start on that proc. */
void bz_place_on(struct bz_runtime *rt, unsigned proc, bz_entry e);
/* Rouse a proc that the idle set has chosen, or start its thread; BZ_NOBODY: do nothing. */
void bz_rouse(struct bz_runtime *rt, int proc);
/* Other procs can take new work: rouse one if needed. */
void bz_rouse_one(struct bz_runtime *rt);
/* rouse.c: several tasks were queued at once: rouse a proc, unless this proc reaches them soon. */
void bz_rouse_for_batch(struct bz_machine *m);
/* ... A searcher has found a task, or a forked job, and runs it: stop counting it as a searcher. */
void bz_search_ended(struct bz_machine *m, bool is_job);
/* Drop the tombstones at the injector's front. Returns how many. */
unsigned bz_tidy_injector(struct bz_runtime *rt);
/* A tombstone was taken from a queue: drop its reference. */
void bz_drop_tombstone(bz_entry e);
/* Push although the machine's ring is full: spill its oldest entries to the injector. Rouses. */
void bz_push_full(struct bz_machine *m, bz_entry e);
/* Push on the machine's own ring. Rouses no proc, unless the ring was full. */
static inline void bz_push_here(struct bz_machine *m, bz_entry e)
{
    if (BZ_UNLIKELY(!bz_runq_try_push(&m->proc->ring, e)))
        bz_push_full(m, e);
}
/* The same, and rouse a proc that may take it. The object of e may be gone on return. */
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
/* Push to the injector, for any proc to take. Any thread. */
void bz_place_outside(struct bz_runtime *rt, bz_entry e);
/* Push a task that yielded to the end of this machine's ring. In the runtime. */
static BZ_ALWAYS_INLINE void bz_place_last(bz_entry e)
{
    struct bz_machine *m = bz_machine_self();
    bz_os_delay(m->rt->os, BZ_OS_AT_PUBLISH);
    if (BZ_LIKELY(m->proc != NULL))
        bz_push_for_all(m, e);
    else
        bz_place_outside(m->rt, e);
}

/* True if it is the entry of a claimed task. It stays true. */
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
 * True: the child ran with result *ran, and the caller must do the loop's work after a run. */
BZ_MUST_USE bool bz_claim(struct bz_task *t, enum bz_ran *ran);
/* Run t, which the caller has claimed, on the stack of the current task. The caller must do the
 * loop's work after a run. */
enum bz_ran bz_run_here(struct bz_task *t);
/* True if the calling task's stack has the room that a child is promised. */
static BZ_ALWAYS_INLINE bool bz_claim_has_room(struct bz_machine *m)
{
    char *here = __builtin_frame_address(0);
    return (size_t)(here - m->runner->low) >= m->rt->claim_bytes;
}
/* Drop the tombstones that are left in the queues. Every machine has left. */
void bz_bury(struct bz_runtime *rt);

/* fiber.c */
extern const struct bz_task_ops bz_fiber_ops;
/* The runtime for a new task, or NULL. For all functions that create tasks. */
struct bz_runtime *bz_runtime_for(const blitz_spawn_opts *opts);
/* The initial references: the scheduler's and the handle's. */
static inline unsigned bz_task_refs(blitz_task **out)
{
    return out != NULL ? 2 : 1;
}
/* Fill in a header. Its creator has filled in the memory behind it. */
void bz_task_init(struct bz_task *t, struct bz_runtime *rt, const struct bz_task_ops *ops,
                  const blitz_spawn_opts *opts, unsigned traits, unsigned refs);
/* True if the options are not valid in that runtime. */
bool bz_opts_are_bad(const blitz_spawn_opts *opts, const struct bz_runtime *rt);
/* Create a fiber that is counted and started, with a handle. The caller runs it. */
BZ_MUST_USE int bz_fiber_begin(struct bz_runtime *rt, int (*fn)(void *arg), void *arg,
                               const char *name, struct bz_task **out);
/* Count the task and queue it. On error it was dropped. */
BZ_MUST_USE int bz_task_start(struct bz_task *t, const blitz_spawn_opts *opts, blitz_task **out);

/* Drop the reference of a handle. Aborts with the task's name if the handle was released before. */
void bz_handle_give_up(struct bz_task *t);

/* handle.c */
static inline int bz_task_result(const struct bz_task *t)
{
    return t->marks & BZ_MARK_POINTER ? 0 : t->result;
}
void *bz_task_take_pointer(struct bz_task *t);
typedef void bz_drop_fn(void *value, void *ctx);
/* Drop a pointer result that was not taken. `drop_result` may be NULL. */
void bz_task_drop_pointer(struct bz_task *t, bz_drop_fn *drop_result, void *ctx);
/* waker.c: true if waking it takes bounded time: it wakes a task or thread of blitz, or is
 * empty. */
bool bz_waker_is_ours(const blitz_waker *w);
/* stackless.c: spawn a stackless task with its own ops: the functions below, and a closer. */
enum bz_ran bz_poll_run(struct bz_task *t);
void bz_poll_drop(struct bz_task *t);
uintptr_t bz_poll_begun_in(const struct bz_task *t);
void *bz_poll_state(struct bz_task *t);
BZ_MUST_USE int bz_spawn_poll(const struct bz_task_ops *ops,
                              blitz_poll (*poll)(void *state, blitz_cx *cx), const void *state,
                              size_t state_bytes, const blitz_spawn_opts *opts, blitz_task **out);
/* stackless.c: the state of a stackless task that has this poll function; NULL for any other task. */
void *bz_poll_state_if(struct bz_task *t, blitz_poll (*poll)(void *state, blitz_cx *cx));
/* deadlines.c: if the task exists to wake a foreign waker, wake it here and end the task. For a machine
 * on g0 that has claimed the task and has no stack for it: the waker may end the shortage. The proc
 * may be lost on return. */
BZ_MUST_USE bool bz_timer_wake_here(struct bz_task *t);
/* deadlines.c: wake it; if it is foreign, a task wakes it. */
void bz_waker_wake_apart(struct bz_runtime *rt, blitz_waker *w);
/* callout.c: call a user function that does not suspend, from the runtime or from user code: retake.h. */
void bz_call_out(void (*fn)(void *), void *arg);
void bz_drop_out(bz_drop_fn *drop, void *value, void *ctx);

/* locals.c: the task has returned; destroy its locals. In the task; may suspend. */
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
/* The public future that a join by future belongs to. */
static inline const blitz_future *bz_join_future_of(const struct bz_join *j)
{
    const void *at = (const char *)j - offsetof(blitz_join_future, inside);
    return &((const blitz_join_future *)at)->future;
}
/* place.c: wake a parked task. Any thread with a reference. */
void bz_task_wake(struct bz_task *t);
/* finish.c: its `run` returned BZ_RAN_DONE. */
void bz_task_finish(struct bz_task *t);

/* cancel.c */
void bz_task_cancel(struct bz_task *t); /* any thread with a reference */

/*
 * True if the time `when` has passed. Programs create millions of timers, and nearly all are far ahead. For those
 * the machine's last reading of the clock is enough, and the clock is not read (25 ns of the 80 that a timer took).
 * If a task has run for longer than BZ_FAR_NS, the answer may be "no" for a time that has just passed; a timer
 * for that time fires at the next check.
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

/* waker.c: the system of the calling thread: its machine's, or that of a plain thread. */
const struct bz_os *bz_os_here(void);
/* The waker of a task; its data is the task. */
extern const blitz_waker_ops bz_task_waker;
/* The clock for a poll with this waker. A plain thread has no timers, so it also polls again by
 * `when`. */
const struct bz_os *bz_waker_by(const blitz_waker *w, uint64_t when);
/* await.c: poll a future that is one of several. Debug builds warn if it waits inside its poll. */
blitz_poll bz_future_poll(blitz_future *f, const blitz_waker *w);
/* waker.c: cancel it. True: it is pinned, and must be polled until it is ready. False: it may be gone. */
BZ_MUST_USE bool bz_future_cancel(blitz_future *f);
/* await.c: blitz_await for a caller that may be a plain thread of `os`. */
int bz_await(const struct bz_os *os, blitz_future *f, blitz_deadline until);

/* deadlines.c */
/* A timer of proc p, not armed yet. */
void bz_timer_init(struct bz_timer *timer, struct bz_proc *p,
                   struct bz_wake (*fire)(struct bz_timer *timer));
void bz_timer_arm(struct bz_timer *timer, uint64_t when); /* any thread */
/* Disarm it; harmless if it has fired. Returns true if it was armed. Any thread. */
bool bz_timer_disarm(struct bz_timer *timer);
/* The steps of bz_timer_arm, for a caller that does more under the lock. */
void bz_timers_lock(struct bz_proc *p);
void bz_timer_arm_locked(struct bz_timer *timer, uint64_t when);
void bz_timers_unlock(struct bz_proc *p);
/* Rouse p if it sleeps and is not the caller's: the new timer may be its first. Any thread. */
void bz_timers_armed(struct bz_proc *p);
/* Fire due timers, one batch at most; true if there were any. Any thread. A foreign waker is called
 * outside the runtime: a machine may have lost its proc on return. */
bool bz_timers_fire(struct bz_proc *p, uint64_t now);
static inline uint64_t bz_timers_first(struct bz_proc *p)
{
    return bz_load_relaxed(&p->timer_first); /* relaxed: its machine armed those that matter */
}

#endif
