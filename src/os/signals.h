/*
 * signals.h - count signals as they arrive, and ring a sleep word. Opt-in: without a watcher blitz installs no
 * handler.
 *
 * The previous handler is restored after the last unwatch of a signal. If another handler was installed over ours,
 * ours stays below it and forwards the signal to the previous one.
 *
 * The calls on the system go through bz_signal_sys, so that a simulation can have signals of its own.
 */
#ifndef BZ_SIGNALS_H
#define BZ_SIGNALS_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "os/os.h"

enum { BZ_SIGNAL_MAX = 64 }; /* signals are 1 to this */

/* The system calls of this file. */
struct bz_signal_sys {
    bool is_simulated;
    int (*action)(int signal, const struct sigaction *set, struct sigaction *was);
    int (*unblock)(const sigset_t *set); /* in the calling thread */
};

extern const struct bz_signal_sys bz_signal_sys_linux;
/* The calls in use. Changed only while there is no watcher. */
extern const struct bz_signal_sys *bz_signal_sys;

/*
 * True if a program may listen to this signal. Not the four of a fault, which end the instruction that raised them,
 * not SIGKILL and SIGSTOP, not SIGURG, which the runtime sends to its own threads, and not the two of the C library.
 */
bool bz_signal_is_open(int signal);

/*
 * Count the signal from here on, or stop. With `chains` the previous handler is called too, after ours, as long as one
 * watcher asks for it.
 * Requires: bz_signal_is_open(signal).
 * Returns:  watch: 0, -errno of sigaction, -EAGAIN (SIGQUIT: sigquit.h).
 */
BZ_MUST_USE int bz_signals_watch(int signal, bool chains);
void bz_signals_unwatch(int signal, bool chains);

/* Arrivals of a signal since the process began. They are counted while it is watched. */
uint64_t bz_signals_arrived(int signal);

/* A word that changes at every arrival, after the count; one sleeper is woken. Read it with bz_signals_rung(), before
 * the counts. */
extern bz_os_word bz_signals_ring;
uint32_t bz_signals_rung(void);
/* Change the word and wake its sleeper, as an arrival does. For signal handlers, too. */
void bz_signals_ring_now(void);

/* Let the calling thread take every signal that is watched. */
void bz_signals_take_here(void);

/* The name of a signal: "SIGINT"; "SIGRT" for the real-time signals; "signal" for any other number. */
const char *bz_signal_name(int signal);

#endif
