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
#ifndef BZ_PROC_STATE_H
#define BZ_PROC_STATE_H

#include "base/rng.h"
#include "base/slab.h"
#include "blitz/future.h"
#include "blitz/poll.h"
#include "blitz/runtime.h"
#include "blitz/task.h"
#include "io/poll.h"
#include "life/job.h"
#include "life/tasks.h"
#include "monitor/deadlock.h"
#include "monitor/monitor.h"
#include "os/self.h"
#include "proc/ask.h"
#include "runtime/config.h"
#include "proc/counters.h"
#include "proc/gather.h"
#include "proc/private.h"
#include "proc/proc.h"
#include "proc/selfcheck.h"
#include "proc/tick.h"
#include "queue/age.h"
#include "queue/busy.h"
#include "queue/deque.h"
#include "queue/idle.h"
#include "queue/inbox.h"
#include "queue/injector.h"
#include "queue/pace.h"
#include "queue/retake.h"
#include "queue/runq.h"
#include "runtime/clockwork.h"
#include "runtime/guest.h"
#include "sched/host.h"
#include "sched/locked.h"
#include "sched/turns.h"
#include "task/stack.h"
#include "task/task.h"
#include "thread/pool.h"
#include "time/wheel.h"
#include "trace/trace.h"
#include "wait/waiter.h"

struct bz_machine;

struct bz_proc {
    struct bz_runtime *rt;    /* constant */
    unsigned index;           /* constant */
    bool is_plain;            /* constant: bz_is_plain(rt), on a cache line of the fast paths */
    unsigned next_row;        /* how many tasks from `next` ran in a row; the machine's alone */
    bz_tick tick;             /* tasks run, and the next duty; written by the machine: tick.h */
    bz_atomic(bz_entry) next; /* runs next here; accessed by the rules of retake.h, or peeked at */
    struct bz_batch batch;    /* taken out of the ring in advance; likewise */
    struct bz_runq ring;
    bz_atomic(uint32_t) state;   /* the state and the holder: proc.h */
    struct bz_pace pace;         /* of its checks of the injector; the machine's alone */
    bz_atomic(uint64_t) busy_ns; /* its time at work; written by the machine, the monitor peeks */
    uint32_t timers_at;          /* the tick of the next check of timers and inbox; likewise */
    struct bz_rng rng;           /* the machine's alone */
    unsigned tombstones; /* tombstones to leave until the next tidying; the machine's alone */
    unsigned gather_in;  /* joins until the next bz_fresh_gather(); likewise */
    struct bz_fresh fresh;
    struct bz_entries want_stack; /* fresh tasks that wait for a stack; the machine's alone */
    struct bz_inbox inbox;        /* tasks that must start here */
    struct bz_lock timer_lock;
    struct bz_wheel wheel;           /* guarded by timer_lock */
    bz_atomic(uint64_t) timer_first; /* the earliest; written under timer_lock, read by the owner */
    struct bz_counters counters;     /* for statistics; written by the machine */
    struct bz_task_home tasks;       /* its task headers, and counts of tasks: tasks.h */
    struct bz_monitor_seen seen;     /* the monitor's */
    BZ_OWN_LINE struct bz_poll poll; /* where its machine sleeps */
};

enum { BZ_SMALL_BLOCK_BYTES = 96 };

struct bz_machine {
    struct bz_deque deque; /* first: blitz/fork.h */
    struct bz_jobs jobs;
    struct bz_turn turn;    /* turns.h */
    struct bz_retake taken; /* whether it is in the runtime, and whether it has lost its proc */
    struct bz_runtime *rt;  /* constant */
    struct bz_proc *proc;   /* NULL: lost. Private to the thread, as most fields; bz_machine_hold */
    struct bz_proc *last;   /* the proc it has, or had */
    unsigned index;         /* in rt->machines; constant */
    bool is_used;           /* a thread runs it; guarded by rt->start_lock, like */
    const struct bz_os_thread *thread;
    bz_atomic(uint32_t) is_guest;  /* run by a plain thread: guest.c. Constant while in use */
    struct bz_machine *next_guest; /* in rt->guests.idle; guarded by its lock */
    bz_atomic(uint32_t) is_stray;  /* the monitor took its proc, and it has not returned yet */
    bz_atomic(uint32_t) is_going;  /* it gave its proc away, and its task may not wait yet */
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
    const struct bz_os *time;      /* rt->time; constant */
    uint64_t now_ns;               /* its last reading of that clock; 0: none yet */
    bz_entry handed;               /* found before the switch to this loop: run it first */
    struct bz_locked locked;       /* to a task: locked.h */
    bool is_searching;             /* counted as a searcher in rt->idle */
    bool was_roused;               /* ... and has found nothing since */
    unsigned spins_more;           /* turns before it sleeps: search.c */
    struct bz_rng rng;             /* for the tasks it runs: selects draw from it */
    void *small_block;             /* BZ_SMALL_BLOCK_BYTES, or NULL: small_block.h */
    struct bz_stack_cache stacks;
    struct bz_reaped heard;    /* events of its last poll or sleep, before delivery */
    struct bz_busy_count busy; /* actors that it has made busy, and that came to rest on it */
    /* The row that records its events; NULL: none. */
    struct bz_trace_row *trace;
#if defined(BZ_WATCH)
    struct bz_watch watch; /* selfcheck.h */
#endif
};

/* Note the proc that the machine has from now on; NULL: none. Written only here: deque.rare tells the fast paths. A guest is
 * rare with a proc, too: its fast paths would switch to the tasks of that proc, on the thread of its user (guest.c, I2). */
static inline void bz_machine_hold(struct bz_machine *m, struct bz_proc *p)
{
    m->proc = p;
    if (p != NULL && !bz_load_relaxed(&m->is_guest)) /* relaxed: constant while in use */
        m->deque.rare &= (uint8_t)~BZ_RARE_NO_PROC;
    else
        m->deque.rare |= BZ_RARE_NO_PROC;
}

/*
 * Where new threads and stacks begin, how the last header ends, and who moves a virtual clock. The code that calls them
 * is below the code that they run: this table, made by runtime.c, keeps the call graph without a circle.
 */
struct bz_mains {
    void (*machine)(void *machine);         /* the thread of a machine: machine.c */
    void (*monitor)(void *runtime);         /* monitor.c */
    void (*stack)(void *unused);            /* the bottom of a stack for one task: machine.c */
    void (*release)(struct bz_runtime *rt); /* free the runtime: runtime.c */
    bool (*clock)(struct bz_machine *m, uint64_t *until); /* before a sleep: clockwork.c */
};

struct bz_runtime {
    const struct bz_os *os; /* constant, like the next fields */
    /* The clock of its timers and tasks: os, or its virtual clock. Only `now` may be called. */
    const struct bz_os *time;
    const struct bz_mains *mains;
    blitz_allocator alloc;
    unsigned proc_count;    /* of the array. Those below idle.active run tasks: retire.c */
    bool is_plain;          /* no fast paths: a BZ_PLAIN build, or the system has no barriers */
    bool watches_overflows; /* its stacks are in task/overflow.c's list; its user's thread only */
    bz_age_word clock;      /* not constant, but seldom written: age.h */
    /* Every event reads its first word. */
    struct bz_trace trace;
    enum bz_stack_class stack_class;
    uint64_t fpcw; /* the floating-point control words of the creating thread */
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
    struct bz_busy busy;            /* actors that are not idle: busy.c */
    struct bz_counters counters;    /* of threads without a proc */
    bz_atomic(uint32_t) is_ending;  /* set: machines leave */
    bz_atomic(uint32_t) locked;     /* tasks that run on one thread only, now */
    struct bz_runtime *older;       /* runtimes.c uses it */
    bz_atomic(uint32_t) visits;     /* threads that are not ours, and use it: runtimes.c */
    uint32_t creation;              /* its number in this process, from 1; constant */
    struct bz_deadlock deadlock;    /* the monitor's */
    struct bz_clockwork clockwork;  /* of a virtual clock */
    bz_atomic(uint32_t) dump_asked; /* 1: by SIGQUIT; dump.c */
    struct bz_lock stop_lock;       /* rank: first; held while the tasks are asked to end */
    struct bz_lock resize_lock;     /* rank: likewise; held while the number of procs changes */
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

/* For messages. */
static inline const char *bz_task_name(const struct bz_task *t)
{
    return t->name != NULL ? t->name : "unnamed";
}

#endif
