/*
 * sim_signals.h - simulated signals: the contract of os/signals.h without the system.
 *
 *     bz_sim_signals_begin();
 *     ... blitz_signal_listen() ... bz_sim_raise(SIGTERM) ...
 *     CHECK_EQ(bz_sim_signals_end(), 0);
 *
 * A raise calls the handler on the calling simulated thread, as the kernel would on any thread. With the poke of
 * sim/sim.h a test raises a signal at every decision point of a run, one after the other.
 */
#ifndef BZ_SIM_SIGNALS_H
#define BZ_SIM_SIGNALS_H

/* Simulate bz_signal_sys from here on, with default actions everywhere; or go back to the system. No listener may
 * exist. Returns: end: how many signals have an action that is not the default: handlers that were not restored. */
void bz_sim_signals_begin(void);
int bz_sim_signals_end(void);

/* Deliver a signal. Returns the number of handlers called: 0 if the action is the default or to ignore it. */
int bz_sim_raise(int signal);

#endif
