/*
 * world.h - a machine of many CPUs, simulated with the price of every cache line that moves.
 *
 *     static void scene(const struct bz_os *os, void *arg) { ... bz_runtime_new(os, ...) ... }
 *
 *     int err = world_run(&(struct world_config){.seed = 1, .cpus = 64}, scene, NULL);
 *
 * A *world* is a backend of os/os.h. Its threads are coroutines of one OS thread. Each thread has a
 * CPU, a cache and a clock of its own. The thread with the smallest clock runs next, so the run is
 * a discrete-event simulation, and a function of its seed.
 *
 * The whole library is compiled with the instrumentation of ThreadSanitizer, but linked with
 * hooks.c instead of its runtime. So every load, store and atomic of blitz and of the scenes calls
 * the world first. The world finds the cache line in the coherence model (lines.h), adds the price
 * to the thread's clock, and lets other threads run if their clocks are behind.
 *
 * World time is in picoseconds, because a cache hit takes a fraction of a nanosecond.
 *
 * docs/scaling.md says what is modelled, and what is not. system.c has the system calls.
 */
#ifndef SCALE_WORLD_H
#define SCALE_WORLD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "os/os.h"

#define WORLD_THREADS_MAX 256 /* threads that a world starts, the first included */

#define WORLD_NS 1000u /* picoseconds */

struct world_config {
    uint64_t seed;
    int cpus; /* the result of bz_os_cpus(); threads are not bound by it */
};

/* Run fn(os, arg) as the first thread of a world, until it returns. It joins all its threads. One
 * world at a time in a process. */
void world_run(const struct world_config *config, void (*fn)(const struct bz_os *os, void *arg),
               void *arg);

/* Compute for that long, without a memory access. From a thread of the world. */
void world_burn(uint64_t ns);

/* ---- measurement ------------------------------------------------------------------------------ */

/* Sums since world_mark(). */
struct world_sums {
    uint64_t elapsed_ps;
    uint64_t cpu_ps;    /* of all threads: computation, misses and spinning, not sleep */
    uint64_t burnt_ps;  /* of it: world_burn() */
    uint64_t accesses;  /* loads, stores and atomics */
    uint64_t moves;     /* accesses that found their line in another cache */
    uint64_t queue_ps;  /* time that moves waited because the line was on its way elsewhere */
    uint64_t relax_ps;  /* in bz_os_relax(): spinning */
    uint64_t kernel_ps; /* in system calls that do not sleep, queues included */
    uint64_t wakes, sleeps, barriers, maps;
};

/* Begin a measurement: clear the sums and the sites. */
void world_mark(void);
struct world_sums world_since_mark(void);

/* ---- for hooks.c ------------------------------------------------------------------------------ */

enum world_access { WORLD_READ, WORLD_WRITE, WORLD_RMW };

/* One access of the instrumented code at `pc`. Nothing happens outside a world. */
void world_access(const volatile void *at, size_t bytes, enum world_access kind, uintptr_t pc);
void world_fence(void);

#endif
