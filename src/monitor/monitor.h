/*
 * monitor.h - a thread without a proc that rescues the private tasks of a busy machine.
 *
 * monitor.c has the design. Its rules for other code: before a machine puts a lone task into its `next` slot it
 * calls bz_monitor_is_up(), because only the monitor would take the task out again. Machines that fall asleep or
 * wake up tell the monitor, if its state requires it.
 */
#ifndef BZ_MONITOR_H
#define BZ_MONITOR_H

#include "os/os.h"
#include "proc/selfcheck.h"
#include "task/entry.h"

struct bz_machine;
struct bz_proc;
struct bz_runtime;

enum bz_monitor_state {
    BZ_MONITOR_NONE = 0, /* not started: raise it when needed */
    BZ_MONITOR_DOZES,    /* asleep until it is raised: no proc runs */
    BZ_MONITOR_RESTS,    /* looks seldom: all slept. A machine that needs it raises it */
    BZ_MONITOR_UP,       /* looks, many times a second */
    BZ_MONITOR_SLOW,     /* looks seldom: no proc sleeps. A machine that goes to sleep tells it */
    BZ_MONITOR_HOGGED    /* likewise: all procs are hogged. A thread that injects tells it */
};

/* The monitor's record of a proc at its last look; private to the monitor. */
struct bz_monitor_seen {
    uint32_t word; /* its state and its holder */
    uint32_t tick;
    uint32_t calls; /* system calls of its machine */
    uint64_t deeds; /* tasks spawned on it, and claimed */
    bool is_lively; /* more of these since the last look */
    bz_entry next;
    uint64_t since_ns;      /* when it was first seen in its current task */
    uint64_t moved_ns;      /* when it last moved to another machine */
    uint64_t call_since_ns; /* when it was first seen in this system call; 0: in none */
    bool is_away;           /* in user code, or in a call */
    bool is_stuck;          /* ... at two looks, in the same task */
    bool is_target;         /* to take entries from, at this look */
    bool is_hurried;        /* to check for urgent tasks, at this look */
    bool moves;             /* the whole proc moves */
    bool was_home;          /* it listens for all procs, or once did: gather.c */
    bool is_blocked;        /* its thread sleeps in a call that it did not announce */
    bool has_clock;         /* the CPU clock of its thread could be read */
    uint64_t clock_ns;      /* when the CPU clock of its thread was last read */
    uint64_t used_ns;       /* ... and its value */
    uint64_t base_ns;       /* ... and its first value during this task */
};

struct bz_monitor {
    struct bz_os_thread thread;
    bool is_started; /* guarded by rt->start_lock, like the next */
    bool is_refused; /* the thread could not be started: there is no monitor */
    BZ_OWN_LINE bz_atomic(uint32_t) state; /* enum bz_monitor_state; read at every push */
    bz_atomic(uint32_t) sees_hogs;         /* 1: woken tasks are urgent (place.c) */
    BZ_OWN_LINE bz_os_word woken;          /* 1: look now */
    bz_atomic(uint64_t) looks;             /* statistics, like the next ones; by its thread */
    bz_atomic(uint64_t) rescued;           /* entries taken out of next slots and batches */
    bz_atomic(uint64_t) fired;             /* times it fired the timers of a proc */
    bz_atomic(uint64_t) moved;             /* procs it has handed off */
    bz_atomic(uint64_t) shared;            /* tasks taken out of inboxes, to begin on any proc */
    /* The rest is private to its thread. */
    int64_t credit_ns;    /* CPU time it may use at once */
    uint64_t since_ns;    /* when it last looked */
    bool is_useful;       /* the last look fetched, fired or moved something */
    bool is_near;         /* ... saw something that may be stuck: look again soon */
    uint64_t calm_ns;     /* since when no proc runs, or no proc sleeps; 0: not now */
    uint64_t calls_ns;    /* until the next look while a machine is in a call */
    uint64_t burn_ns;     /* when it last checked which machines use CPU */
    unsigned burning;     /* machines that do, without a proc */
    unsigned old_strays;  /* of these, machines that have done so for long */
    unsigned unproven;    /* strays not yet known to use CPU */
    bool is_crowded;      /* all procs are busy and a task waits */
    uint64_t turn_ns;     /* when the first turn of a hog is over */
    uint64_t hogs_ns;     /* until then another hog may come, as one did */
    uint64_t blocking_ns; /* until then a task that begins may block at once, as others did */
    bool is_hogged;       /* no proc is live: handover.c */
    uint64_t nap_ns;      /* since when no machine has anything private; 0: not now */
    uint64_t jobs_ns;     /* when it last looked at the jobs of machines */
#if defined(BZ_WATCH)
    struct bz_watch_dog dog; /* for the machines that were never started */
#endif
};

/* A task that has run for so long is a hog. For tests: a larger value keeps the proc, however long
 * the system delays its thread. Set it before there is a runtime. */
extern uint64_t bz_hog_ns;

void bz_monitor_init(struct bz_monitor *mon);

/* Its thread: rt->mains. */
void bz_monitor_main(void *arg);

/* monitor_wake.c */
/* The slow half of bz_monitor_is_up: start or rouse it. False if its thread cannot be started. */
BZ_MUST_USE bool bz_monitor_raise(struct bz_runtime *rt);
/* A machine woke up, and may run one task for long. */
void bz_monitor_woke(struct bz_machine *m);
/* A task was injected, and there was no proc to rouse. */
void bz_monitor_nudge(struct bz_runtime *rt);
/* The monitor looks seldom, and a machine went to sleep: there may be something to fetch. */
void bz_monitor_tell(struct bz_runtime *rt);
/* monitor.c: the runtime ends. No machine raises the monitor from here on. */
void bz_monitor_stop(struct bz_runtime *rt);

/* handover.c: at a look, after the procs were seen: choose the procs to move (seen.moves). */
void bz_handover_choose(struct bz_runtime *rt, uint64_t now_ns);
/* ... after the barrier: move that proc, if it still can be moved. */
void bz_handover_move(struct bz_proc *p, uint64_t now_ns);
/* ... and the latest time of the next look for this purpose. */
uint64_t bz_handover_next(struct bz_runtime *rt, uint64_t now_ns);

/* One look, as its thread does it. Returns when to look again; BZ_OS_FOREVER: when raised. */
uint64_t bz_monitor_look(struct bz_runtime *rt, uint64_t now_ns, uint64_t cost_ns);

#endif
