/*
 * spot.h - a spot, where a coroutine of the simulator stands, and the switch from one to another.
 *
 * Two files keep this contract. spot_libc.c uses the C library's contexts. spot_own.c uses a few instructions of our own,
 * for C libraries without contexts, as musl. The build defines BZ_SIM_OWN_SPOT for the second.
 *
 * A spot keeps the registers that a called function must preserve, and the control words of floating point.
 */
#ifndef BZ_SIM_SPOT_H
#define BZ_SIM_SPOT_H

#include <stddef.h>

#if defined(BZ_SIM_OWN_SPOT)
struct sim_spot {
    void *sp;
};
#else
#include <ucontext.h>
struct sim_spot {
    ucontext_t context;
};
#endif

/*
 * Make `p` a spot at which main(arg) begins on that stack, at the first switch there. main never returns.
 * Owns:     the stack, until the last switch away from it.
 * Suspends: never.
 * Returns:  nothing.
 */
void bz_sim_spot_init(struct sim_spot *p, void *stack, size_t stack_bytes, void (*main)(void *),
                      void *arg);

/* Save the current spot in `from` and continue at `to`. Return when another switch goes to `from`. */
void bz_sim_spot_switch(struct sim_spot *from, const struct sim_spot *to);

#endif
