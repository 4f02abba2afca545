/*
 * prices.h - what the simulated machine charges, in picoseconds. docs/scaling.md has the sources.
 */
#ifndef SCALE_PRICES_H
#define SCALE_PRICES_H

#include "scale/world.h"

#define PRICES_OF_LINES                                                                        \
    {                                                                                          \
        .hit = 250, .cold = 20 * WORLD_NS, .move = 100 * WORLD_NS, .invalidate = 2 * WORLD_NS, \
        .share = 10 * WORLD_NS, .locked = 6 * WORLD_NS,                                        \
    }

#define FENCE_PS (UINT64_C(9) * WORLD_NS)
#define CLOCK_PS (UINT64_C(25) * WORLD_NS)
#define PAUSE_PS (UINT64_C(20) * WORLD_NS)
#define YIELD_PS (UINT64_C(300) * WORLD_NS)
#define SYSCALL_PS (UINT64_C(200) * WORLD_NS)

/* A wake-up of another CPU: for the waker, and until the woken thread runs. */
#define WAKE_PS (UINT64_C(1500) * WORLD_NS)
#define WAKE_DELAY_PS (UINT64_C(5000) * WORLD_NS)

/* A membarrier, and a change of mappings, interrupts each running CPU: for the caller, for each other CPU. */
#define BARRIER_PS (UINT64_C(4000) * WORLD_NS)
#define INTERRUPT_EACH_PS (UINT64_C(300) * WORLD_NS)
#define INTERRUPT_PS (UINT64_C(700) * WORLD_NS)

#define MAP_PS (UINT64_C(1500) * WORLD_NS)
#define THREAD_PS (UINT64_C(10000) * WORLD_NS)

#endif
