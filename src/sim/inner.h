/*
 * inner.h - shared by the files of the simulated OS backend.
 *
 *   sim.c     the table: each operation is a decision point, then its effect
 *   sched.c   the choice of the next thread, and the virtual clock
 *   coro.c    coroutines: stacks, sanitizers
 *   spot.h   the switch of coroutines
 *   report.c  the report of all threads after an error
 */
#ifndef BZ_SIM_INNER_H
#define BZ_SIM_INNER_H

#include "base/list.h"
#include "base/rng.h"
#include "os/held.h"
#include "os/linux.h"
#include "sim/spot.h"
#include "sim/sim.h"

/* ---- coroutines (coro.c) ---------------------------------------------------------------------- */

struct sim_coro {
    struct sim_spot spot;
    void *frame;     /* frame pointer at the switch: a stack walk starts here */
    void *self;      /* its bz_self_get() while it is suspended */
    int holds;       /* its bz_self_holds(), likewise */
    int saved_errno; /* its errno while it is suspended */
#if defined(BZ_WATCH)
    struct bz_held held; /* the locks it holds */
#endif
    void (*main)(void *arg);
    void *arg;
    const char *stack; /* lowest byte */
    size_t stack_bytes;
    void *fake_stack; /* AddressSanitizer's */
    void *fiber;      /* ThreadSanitizer's fiber at the switch */
    unsigned valgrind_id;
    void *own_fiber; /* the first fiber, which we destroy */
};

/* Make `c` run main(arg) on that stack when it is first switched to. It must never return. */
void bz_sim_coro_init(struct sim_coro *c, void *stack, size_t stack_bytes, void (*main)(void *),
                      void *arg);
/* Destroy `c`, which will not run again. Its effects happen before the caller's next step. */
void bz_sim_coro_fini(struct sim_coro *c);
/* The context of the caller of bz_sim_run(). */
void bz_sim_coro_init_home(struct sim_coro *home);

enum sim_leave { SIM_COMES_BACK, SIM_NEVER_COMES_BACK };
void bz_sim_coro_switch(struct sim_coro *from, struct sim_coro *to, enum sim_leave leave,
                        struct sim_coro *home);

/* ---- threads and the run ---------------------------------------------------------------------- */

enum sim_state { SIM_READY, SIM_ASLEEP, SIM_BURNING, SIM_JOINING, SIM_DONE };

/* At the top of the thread's own stack, so that a thread is a single mapping. */
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
    bz_os_word *word;         /* ASLEEP: the word */
    uint64_t until_ns;        /* ASLEEP: until when */
    uint64_t since_ns;        /* when the current sleep, burn or join started */
    uint64_t burn_ns;         /* BURNING: remaining CPU time */
    uint64_t cpu_ns;          /* CPU time used so far */
    bool lingers;             /* BURNING at a delay point: the system holds it up. Not in cpu_ns */
    uint64_t priority;        /* BZ_SIM_PRIORITY: the highest runs */
    uint32_t spins;           /* consecutive relaxes */
    struct sim_thread *joins; /* JOINING: the joined thread */
    bool is_detached;         /* the run joins it at its end */
    bool has_interrupt;       /* an interrupt is pending */
    bool is_interrupted;      /* the interrupt's function runs */
};

struct bz_sim {
    struct bz_os os; /* first: the table's functions find the rest from it */
    struct bz_sim_config config;
    struct bz_list threads; /* not yet joined, by age: the order in which choices are counted */
    struct sim_thread *current;
    struct sim_coro home;
    /* two streams, so that random bytes do not change the schedule */
    struct bz_rng choices, entropy;
    enum bz_sim_mode mode;
    unsigned stay_in_8;        /* RANDOM: the current thread continues this many times of 8 */
    unsigned demote_one_in;    /* PRIORITY: average steps between two changes of priorities */
    uint64_t priority_lowest;  /* PRIORITY: below all; counts down */
    uint64_t now_ns, start_ns; /* virtual */
    struct bz_sim_result result;
    bz_os_interrupted_fn *interrupted; /* the function of interrupts; NULL: none */
    unsigned interrupt_users;          /* of it */
    void (*at_thread_end)(uint32_t thread);
    int end; /* 0, or why it ended badly: -EDEADLK, -ELOOP, -ETIME, -ECHILD */
};

/* Events for the hash. The numbers are part of the hash: append only. */
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

/* ---- sched.c ---------------------------------------------------------------------------------- */

void bz_sim_sched_init(struct bz_sim *sim);
void bz_sim_mix(struct bz_sim *sim, enum sim_event what, uint64_t value);
/* A decision point: returns when the current thread is READY and chosen again. */
void bz_sim_step(struct bz_sim *sim, enum sim_event what, uint64_t value);
/* End the current thread and run another one. */
BZ_NORETURN void bz_sim_leave(struct bz_sim *sim);
/* End the whole run with that error; every thread is abandoned. */
BZ_NORETURN void bz_sim_end(struct bz_sim *sim, int err);
void bz_sim_clock_move(struct bz_sim *sim, uint64_t to_ns);
/* True once in `n` times. */
bool bz_sim_coin(struct bz_sim *sim, uint32_t n);

/* ---- report.c --------------------------------------------------------------------------------- */

void bz_sim_report(struct bz_sim *sim);

#define SIM_THREAD_OF(node) BZ_CONTAINER_OF(node, struct sim_thread, link)

#endif
