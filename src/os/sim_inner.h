/*
 * sim_inner.h - what the files of the simulated keeper share.
 *
 *   sim.c         the table: each operation is a point of choice, then its effect
 *   sim_sched.c   who runs next, and the virtual clock
 *   sim_coro.c    coroutines: stacks, the switch, sanitizers
 *   sim_report.c  what every thread was doing when it ended badly
 */
#ifndef BZ_OS_SIM_INNER_H
#define BZ_OS_SIM_INNER_H

#include <ucontext.h>

#include "base/list.h"
#include "base/rng.h"
#include "os/held.h"
#include "os/linux.h"
#include "os/sim.h"

/* ---- coroutines (sim_coro.c) ------------------------------------------------------------------ */

struct sim_coro {
    ucontext_t context;
    void *frame;     /* frame pointer where it was left: its stack is walked from here */
    void *self;      /* its bz_self_get() while it is left */
    int holds;       /* its bz_self_holds(), likewise */
    int saved_errno; /* its errno while it is left */
#if defined(BZ_WATCH)
    struct bz_held held; /* the locks it holds */
#endif
    void (*main)(void *arg);
    void *arg;
    const char *stack; /* lowest byte */
    size_t stack_bytes;
    void *fake_stack; /* AddressSanitizer's */
    void *fiber;      /* ThreadSanitizer's, of the place where it was left */
    unsigned valgrind_id;
    void *own_fiber; /* the one it began on, ours to destroy */
};

/* Make `c` run main(arg) on that stack when it is first switched to. It must never return. */
void bz_sim_coro_init(struct sim_coro *c, void *stack, size_t stack_bytes, void (*main)(void *),
                      void *arg);
/* `c` does not run and never will again; all it did precedes what the caller does next. */
void bz_sim_coro_fini(struct sim_coro *c);
/* The context that bz_sim_run() was called in. */
void bz_sim_coro_init_home(struct sim_coro *home);

enum sim_leave { SIM_COMES_BACK, SIM_NEVER_COMES_BACK };
void bz_sim_coro_switch(struct sim_coro *from, struct sim_coro *to, enum sim_leave leave,
                        struct sim_coro *home);

/* ---- threads and the run ---------------------------------------------------------------------- */

enum sim_state { SIM_READY, SIM_ASLEEP, SIM_BURNING, SIM_JOINING, SIM_DONE };

/* Lies at the top of its own stack, so that a thread is one mapping and nothing else. */
struct sim_thread {
    struct bz_list link; /* sim->threads */
    struct bz_sim *sim;
    struct sim_coro coro;
    struct bz_os_slab slab; /* stack and this */
    void (*fn)(void *arg);
    void *arg;
    uint32_t id; /* 0 is the scenario's own thread */
    char name[BZ_OS_NAME_MAX];
    enum sim_state state;
    int result;               /* ASLEEP: what the wait will return */
    bz_os_word *word;         /* ASLEEP: on what */
    uint64_t until_ns;        /* ASLEEP: until when */
    uint64_t since_ns;        /* when it last went to sleep, burn or join */
    uint64_t burn_ns;         /* BURNING: CPU time still to be had */
    uint64_t cpu_ns;          /* CPU time it has had */
    uint64_t priority;        /* BZ_SIM_PRIORITY: the highest runs */
    uint32_t spins;           /* relaxes in a row without anything else */
    struct sim_thread *joins; /* JOINING: whom */
    bool is_urged;            /* an interrupt is on its way */
    bool is_interrupted;      /* the interrupt's function runs */
};

struct bz_sim {
    struct bz_os os; /* first: the table's functions find the rest from it */
    struct bz_sim_config config;
    struct bz_list threads; /* not yet joined, by age: the order in which choices are counted */
    struct sim_thread *current;
    struct sim_coro home;
    struct bz_rng choices, entropy; /* two streams: asking for randomness shifts no schedule */
    enum bz_sim_mode mode;
    unsigned stay_in_8;        /* RANDOM: how often of 8 the current thread simply goes on */
    unsigned demote_one_in;    /* PRIORITY: a change of priorities every so many steps */
    uint64_t priority_lowest;  /* PRIORITY: below all; counts down */
    uint64_t now_ns, start_ns; /* virtual */
    struct bz_sim_result result;
    bz_os_urged_fn *urged; /* what an interrupt calls; NULL: nothing */
    unsigned urge_users;   /* of it */
    void (*at_thread_end)(uint32_t thread);
    int end; /* 0, or why it ended badly: -EDEADLK, -ELOOP, -ETIME, -ECHILD */
};

/* What happened, for the hash. The numbers are part of it: append only. */
enum sim_event {
    SIM_EV_STEP = 1,
    SIM_EV_CHOICE,
    SIM_EV_WAIT,
    SIM_EV_WAKE,
    SIM_EV_RELAX,
    SIM_EV_DELAY,
    SIM_EV_BARRIER,
    SIM_EV_START,
    SIM_EV_JOIN,
    SIM_EV_END,
    SIM_EV_BURN,
    SIM_EV_CLOCK,
    SIM_EV_USER,
    SIM_EV_URGE
};

/* ---- sim_sched.c ------------------------------------------------------------------------------ */

void bz_sim_sched_init(struct bz_sim *sim);
void bz_sim_mix(struct bz_sim *sim, enum sim_event what, uint64_t value);
/* A point of choice: returns when the current thread is chosen again, and it is READY. */
void bz_sim_step(struct bz_sim *sim, enum sim_event what, uint64_t value);
/* The current thread has ended; someone else goes on. */
BZ_NORETURN void bz_sim_leave(struct bz_sim *sim);
/* End the whole run with that error; every thread is abandoned. */
BZ_NORETURN void bz_sim_end(struct bz_sim *sim, int err);
void bz_sim_clock_move(struct bz_sim *sim, uint64_t to_ns);
/* True once in `n` times. */
bool bz_sim_coin(struct bz_sim *sim, uint32_t n);

/* ---- sim_report.c ----------------------------------------------------------------------------- */

void bz_sim_report(struct bz_sim *sim);

#define SIM_THREAD_OF(node) BZ_CONTAINER_OF(node, struct sim_thread, link)

#endif
