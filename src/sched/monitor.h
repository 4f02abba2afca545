/*
 * monitor.h - one thread without a proc that looks after what a busy machine keeps to itself.
 *
 * monitor.c has the design. What others have to do with it: before a machine puts a lone task into
 * its `next` slot it asks bz_monitor_is_up(), because nobody else would fetch it out again; and
 * machines that fall asleep or wake up tell it when it has to be told.
 */
#ifndef BZ_MONITOR_H
#define BZ_MONITOR_H

#include "os/os.h"
#include "sched/watch.h"
#include "task/entry.h"

struct bz_machine;
struct bz_proc;
struct bz_runtime;

enum bz_monitor_state {
    BZ_MONITOR_NONE = 0, /* not started: raise it, when there is need */
    BZ_MONITOR_DOZES,    /* asleep until it is raised: nobody runs */
    BZ_MONITOR_RESTS,    /* looks seldom: all slept. Who counts on it raises it */
    BZ_MONITOR_UP,       /* looks, many times a second */
    BZ_MONITOR_SLOW,     /* looks seldom: nobody sleeps. Who goes to sleep tells it */
    BZ_MONITOR_HOGGED    /* likewise: all procs are hogged. Who injects something tells it */
};

/* What the monitor saw of a proc when it last looked; its own. */
struct bz_monitor_seen {
    uint32_t word; /* its state, and who held it */
    uint32_t tick;
    uint32_t calls; /* of its machine */
    uint64_t deeds; /* tasks spawned on it, and claimed */
    bool is_lively; /* there were more since the last look */
    bz_entry next;
    uint64_t since_ns;      /* when it was first seen at what it is at */
    uint64_t call_since_ns; /* when it was first seen in this system call; 0: it is in none */
    bool is_away;           /* it was in user code, or in a call */
    bool is_stuck;          /* ... at two looks, and at the same thing */
    bool is_asked;          /* to be taken from, at this look */
    bool is_hurried;        /* to look for urgent tasks, at this look */
    bool moves;             /* as a whole */
    bool is_blocked;        /* its thread sleeps, in a call that it did not announce */
    bool has_clock;         /* the CPU clock of its thread could be read */
    uint64_t clock_ns;      /* when the CPU clock of its thread was last read */
    uint64_t used_ns;       /* ... and what it said */
    uint64_t base_ns;       /* ... and what it said at first, during this task */
};

struct bz_monitor {
    struct bz_os_thread thread;
    bool is_started; /* guarded by rt->start_lock, as is the next */
    bool is_refused; /* the thread could not be started: there is no monitor */
    BZ_OWN_LINE bz_atomic(uint32_t) state; /* enum bz_monitor_state; read at every push */
    bz_atomic(uint32_t) sees_hogs;         /* 1: woken tasks are urgent (place.c) */
    BZ_OWN_LINE bz_os_word told;           /* 1: look now */
    bz_atomic(uint64_t) looks;             /* statistics, as are the next ones; its thread's */
    bz_atomic(uint64_t) rescued;           /* entries taken out of next slots and hands */
    bz_atomic(uint64_t) fired;             /* times it fired the timers of a proc */
    bz_atomic(uint64_t) moved;             /* procs it has handed over */
    /* The rest is its thread's own. */
    int64_t credit_ns;   /* CPU time it may use at once */
    uint64_t since_ns;   /* when it last looked */
    bool is_useful;      /* the last look fetched, fired or moved something */
    bool is_near;        /* ... saw something that may be stuck: look again soon */
    uint64_t calm_ns;    /* since when nobody runs, or nobody sleeps; 0: not now */
    uint64_t calls_ns;   /* until the next look while somebody is in a call */
    uint64_t burn_ns;    /* when it last looked who burns */
    unsigned burning;    /* machines that do, without a proc */
    unsigned old_strays; /* of these, machines that have done so for long */
    unsigned unproven;   /* strays of which it is not known yet whether they burn */
    bool is_crowded;     /* all procs are busy and something waits */
    uint64_t turn_ns;    /* when somebody's turn is over, of those that burn */
    bool is_hogged;      /* no proc lives */
    uint64_t nap_ns;     /* since when no machine has anything private; 0: not now */
    uint64_t jobs_ns;    /* when it last looked at the jobs of machines */
#if defined(BZ_WATCH)
    struct bz_watch_dog dog; /* for the machines that were never started */
#endif
};

/* A task that has run so long is a hog. For tests: with more of it a proc stays, however long the system
 * holds its thread up; set it before there is a runtime. */
extern uint64_t bz_hog_ns;

void bz_monitor_init(struct bz_monitor *mon);

/* The slow half of bz_monitor_is_up: start or rouse it. False if there is none to be had. */
BZ_MUST_USE bool bz_monitor_raise(struct bz_runtime *rt);
/* A machine woke up, and may be at one task for long. */
void bz_monitor_woke(struct bz_machine *m);
/* Something was injected, and nobody was there to be roused. */
void bz_monitor_nudge(struct bz_runtime *rt);
/* It looks seldom, and somebody went to sleep: there may be something to fetch. */
void bz_monitor_tell(struct bz_runtime *rt);
/* The runtime ends. No machine raises it from here on. */
void bz_monitor_stop(struct bz_runtime *rt);

/* handover.c: at a look, after the procs were seen: which of them are to move (seen.moves). */
void bz_handover_choose(struct bz_runtime *rt, uint64_t now_ns);
/* ... after the barrier: move that one, if it still can be. */
void bz_handover_move(struct bz_proc *p, uint64_t now_ns);
/* ... and when the next look is due on this account, at the latest. */
uint64_t bz_handover_next(struct bz_runtime *rt, uint64_t now_ns);

/* One look, as its thread takes it. Returns when to look again; BZ_OS_FOREVER: when raised. */
uint64_t bz_monitor_look(struct bz_runtime *rt, uint64_t now_ns, uint64_t cost_ns);

#endif
