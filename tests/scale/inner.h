/*
 * inner.h - shared by the files of a world.
 *
 *   world.c   threads in the order of their clocks, the price of an access, the run
 *   system.c  the table of os/os.h: the price and the effect of each system call
 */
#ifndef SCALE_INNER_H
#define SCALE_INNER_H

#include "arch/ctx.h"
#include "base/rng.h"
#include "scale/world.h"

#define WORLD_NEVER UINT64_MAX

enum state { CAN_RUN, ASLEEP, JOINING, DONE };

struct thread {
    struct bz_ctx ctx;
    struct bz_os_slab stack;
    void (*fn)(void *arg);
    void *arg;
    unsigned index;
    enum state state;
    bz_os_word *word;     /* ASLEEP */
    struct thread *joins; /* JOINING */
    bool is_timed_out;
    uint64_t clock; /* now, on this CPU */
    uint64_t began; /* the thread */
    uint64_t since; /* ASLEEP, JOINING, DONE: from when */
    uint64_t slept; /* in all, before that */
    void *self;     /* bz_self_get() of a thread that does not run */
    int holds;      /* bz_self_holds(), likewise */
    int saved_errno;
};

struct world {
    struct bz_os os;
    bool is_inside; /* I1 */
    int cpus;
    struct thread *current; /* NULL: no world runs */
    struct bz_ctx home;
    struct thread *threads[WORLD_THREADS_MAX];
    uint64_t key[WORLD_THREADS_MAX]; /* I2 */
    unsigned count;
    uint64_t horizon;
    uint64_t barrier_free_at, maps_free_at;
    struct bz_rng jitter, entropy;
    uintptr_t tls; /* the thread pointer */
    struct world_sums sums;
    uint64_t mark_at, mark_cpu;
};
extern struct world world;

/* A call of the simulated system: enter() returns the calling thread, leave() ends it. */
struct thread *world_enter(void);
void world_leave(void);
/* Advance the clock of the calling thread; others whose clocks are behind run first. */
void world_spend(struct thread *me, uint64_t ps);
/* Sleep until another thread changes the state, or the deadline. */
void world_sleep_as(struct thread *me, enum state state, uint64_t until_ps);
/* Make a thread run that sleeps or joins; it starts a wake-up's delay after `at`. */
void world_rouse(struct thread *t, uint64_t at);
struct thread *world_thread_new(void (*fn)(void *), void *arg, uint64_t clock);
/* One access of the calling thread to one line. */
void world_access_line(struct thread *me, uintptr_t line, bool is_write, uintptr_t pc);
/* CPU time that a thread has used. */
uint64_t world_cpu_of(const struct thread *t);

extern const struct bz_os world_backend; /* system.c */

#endif
