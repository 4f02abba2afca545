/*
 * sim.h - the simulated keeper: a whole program on one OS thread, in virtual time, from a seed.
 *
 *     static void scenario(const struct bz_os *os, void *arg) { ... bz_os_thread_start(os, ...) ... }
 *
 *     struct bz_sim_result r;
 *     int err = bz_sim_run(&(struct bz_sim_config){.seed = 42}, scenario, NULL, &r);
 *
 * The threads of the scenario are coroutines, and only one runs at a time. At every sleep-word
 * operation, relax, barrier, delay point, thread start, join and end the seed decides who goes on.
 * The same seed gives the same run, step by step, in any process; r.hash is equal if and only if two
 * runs made the same choices and saw the same events (but for a collision of 64 bits).
 *
 * Time. The clock is virtual. Computing takes none of it; sleeping, bz_sim_burn() and spinning do.
 * While any thread can run, time stands still. When every thread sleeps or burns, the clock jumps to
 * the next deadline or end of burning. Burning threads share `cpus` CPUs evenly: three threads that
 * burn on two CPUs take half as long again, and thread CPU clocks show what each has had. Reading
 * the clock takes a few nanoseconds, so that a loop that watches it comes to an end.
 *
 * What is found. All threads asleep for ever is a deadlock; a thread that relaxes spins_max times
 * and does nothing else is endless spinning; threads left unjoined when the scenario returns, and
 * more steps than steps_max, end the run as well. Each is reported with the seed, the time and the
 * state and stack of every thread, and returned as an error. What the threads held then is lost:
 * they are abandoned where they stand.
 *
 * What is not. Plain computation is never interrupted between two of the points above, and memory is
 * sequentially consistent: weak orders are for the model checker, real parallelism for stress tests.
 * A loop without relax hangs here as it would hang a CPU; the harness's time limit ends it. Under
 * ThreadSanitizer coroutines count as threads, so a data race is reported although only one runs.
 *
 * An interrupt (bz_os_thread_urge) calls its function on the interrupted thread at some later point of choice of
 * that thread; a thread that burns has one at once. Which point it is the seed decides, so an interrupt also comes
 * late, and in the middle of the runtime.
 *
 * Signal stacks are not simulated; pages and guards are real.
 */
#ifndef BZ_OS_SIM_H
#define BZ_OS_SIM_H

#include "os/os.h"

enum bz_sim_mode {
    BZ_SIM_BY_SEED = 0, /* the seed picks one of the others, and how restless it is */
    BZ_SIM_RANDOM,      /* a random walk: at each point any thread that can run may be next */
    BZ_SIM_PRIORITY     /* strict priorities that change at a few random points: finds orders that
                           need one thread to be held back for a long time */
};

struct bz_sim_config {
    uint64_t seed;
    enum bz_sim_mode mode;
    int cpus;             /* 0: 4. What bz_os_cpus() says, and what burning threads share */
    uint64_t steps_max;   /* 0: ten million points of choice */
    uint32_t spins_max;   /* 0: 100,000 turns of one spin */
    size_t stack_bytes;   /* 0: 256 KiB; of each thread that does not ask for more */
    bool has_no_barrier;  /* bz_os_barrier() does not exist: the runtime's other form is tested */
    bool has_no_urge;     /* threads cannot be interrupted: bz_os_urge_watch() says -ENOSYS */
    bool has_no_spurious; /* waits return 0 only when woken */
    bz_os_word *poke;     /* NULL, or a word that becomes 1 at point of choice number poke_at: who
                             sleeps on it is roused and goes on there and then. So something can be made
                             to happen at every single point of a run, one after the other. */
    uint64_t poke_at;     /* counted from 1 */
    void (*report)(void *ctx, const char *line); /* NULL: standard error. Gets no newline */
    void *report_ctx;
};

struct bz_sim_result {
    uint64_t hash;     /* of all choices and events */
    uint64_t steps;    /* points of choice */
    uint64_t switches; /* those after which another thread went on */
    uint64_t ns;       /* virtual time that passed */
    uint32_t threads;  /* that were started, the first included */
};

/*
 * Run fn(os, arg) as the first thread of a simulation.
 * Suspends: until it has ended. One at a time in a process; not from inside another.
 * Returns:  0, -EDEADLK (deadlock), -ELOOP (endless spinning), -ETIME (steps_max), -ECHILD (threads
 *           left unjoined), -EBUSY (another simulation runs), -EINVAL, -ENOMEM. *out, if not NULL,
 *           is written in every case.
 */
BZ_MUST_USE int bz_sim_run(const struct bz_sim_config *config,
                           void (*fn)(const struct bz_os *os, void *arg), void *arg,
                           struct bz_sim_result *out);

/* Is the caller a simulated thread? */
bool bz_sim_is_running(void);

/* Use a CPU for `ns` of virtual time, while others run or burn beside. From a simulated thread. */
void bz_sim_burn(uint64_t ns);

/* The number of the calling simulated thread, 0 for the first. None is given twice in a run. */
uint32_t bz_sim_thread(void);

/* Have fn called at the end of every simulated thread, on that thread, with its number; NULL: no longer. The
 * next run begins without. */
void bz_sim_at_thread_end(void (*fn)(uint32_t thread));

/* Mix a number into the trace hash: what the scenario saw. From a simulated thread. */
void bz_sim_trace(uint64_t what);

#endif
