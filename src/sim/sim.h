/*
 * sim.h - the simulated OS backend: a whole program on one OS thread, in virtual time, from a seed.
 *
 *     static void scenario(const struct bz_os *os, void *arg) { bz_os_thread_start(os, ...); ... }
 *
 *     struct bz_sim_result r;
 *     int err = bz_sim_run(&(struct bz_sim_config){.seed = 42}, scenario, NULL, &r);
 *
 * The threads of the scenario are coroutines, and only one runs at a time. At every sleep-word
 * operation, relax, barrier, delay point, thread start, join and end the seed chooses the next
 * thread. The same seed gives the same run, step by step, in any process. r.hash is equal if and
 * only if two runs made the same choices and saw the same events (except for a collision of 64
 * bits).
 *
 * Time. The clock is virtual. Computation takes no time; sleeping, bz_sim_burn() and spinning do.
 * While a thread can run, the clock stands still. When every thread sleeps or burns, the clock
 * jumps to the next deadline or end of burning. Burning threads share `cpus` CPUs evenly: three
 * threads that burn on two CPUs take 1.5 times as long, and thread CPU clocks show the share of
 * each. A clock read takes a few nanoseconds, so that a loop that polls the clock ends. A delay point
 * may hold up its thread; that time is not in the thread's CPU clock.
 *
 * Detected errors. If all threads sleep forever, it is a deadlock. A thread that relaxes spins_max
 * times without another operation spins endlessly. Threads left unjoined when the scenario returns,
 * and more steps than steps_max, are errors, too. Each is reported with the seed, the time and the
 * state and stack of every thread, and returned as an error. Resources of the threads are then
 * lost: the threads are abandoned.
 *
 * Limits. Plain computation is never interrupted between two decision points, and memory is
 * sequentially consistent: the model checker covers weak orders, stress tests real parallelism. A
 * loop without relax hangs the simulation; the harness's time limit ends it. Under ThreadSanitizer
 * coroutines count as threads, so a data race is reported although only one runs at a time.
 *
 * An interrupt (bz_os_thread_interrupt) calls its function on the interrupted thread at some later
 * decision point of that thread; a burning thread has one at once. The seed chooses the point, so
 * an interrupt may also come late, and inside the runtime.
 *
 * Signal stacks are not simulated; pages and guards are real.
 */
#ifndef BZ_SIM_H
#define BZ_SIM_H

#include "os/os.h"

enum bz_sim_mode {
    BZ_SIM_BY_SEED = 0, /* the seed picks one of the others, and the rate of switches */
    BZ_SIM_RANDOM,      /* a random walk: at each point any runnable thread may be next */
    /* strict priorities that change at a few random points: finds orders in which one thread is
     * delayed for long */
    BZ_SIM_PRIORITY
};

struct bz_sim_config {
    uint64_t seed;
    enum bz_sim_mode mode;
    int cpus;            /* 0: 4. The result of bz_os_cpus(), shared by burning threads */
    uint64_t steps_max;  /* 0: ten million decision points */
    uint32_t spins_max;  /* 0: 100,000 rounds of one spin */
    size_t stack_bytes;  /* 0: 256 KiB; the default of each thread */
    bool has_no_barrier; /* bz_os_barrier() does not exist: tests the runtime's form with fences */
    bool
        has_no_interrupt; /* threads cannot be interrupted: bz_os_interrupt_watch() returns -ENOSYS */
    bool has_no_spurious; /* waits return 0 only when woken */
    /* NULL, or a word that becomes 1 at decision point number poke_at; its sleeper is roused and
     * runs at once. So a test can make an event happen at every point of a run, one after the
     * other. */
    bz_os_word *poke;
    uint64_t poke_at;                            /* counted from 1 */
    void (*report)(void *ctx, const char *line); /* NULL: standard error. Gets no newline */
    void *report_ctx;
};

struct bz_sim_result {
    uint64_t hash;     /* hash of all choices and events */
    uint64_t steps;    /* decision points */
    uint64_t switches; /* decision points that switched to another thread */
    uint64_t ns;       /* virtual time that passed */
    uint32_t threads;  /* threads started, the first included */
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

/* True if the caller is a simulated thread. */
bool bz_sim_is_running(void);

/* Use a CPU for `ns` of virtual time, while other threads run or burn. From a simulated thread. */
void bz_sim_burn(uint64_t ns);

/* The number of the calling simulated thread, 0 for the first. Numbers are unique in a run. */
uint32_t bz_sim_thread(void);

/* Call fn at the end of every simulated thread, on that thread, with its number; NULL: stop. A new
 * run starts without fn. */
void bz_sim_at_thread_end(void (*fn)(uint32_t thread));

/* Mix an observation of the scenario into the trace hash. From a simulated thread. */
void bz_sim_trace(uint64_t what);

#endif
