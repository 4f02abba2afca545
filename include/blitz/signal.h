/*
 * blitz/signal.h - receive signals as a stream.
 *
 * A listener receives the signals that it names, one after the other, in a task or a plain thread. It needs no
 * restrictions of signal handlers: the code that receives may do anything.
 *
 *     blitz_signal *hup;
 *     blitz_signal_event got;
 *     if (blitz_signal_hangup(&hup) != 0) ...
 *     while (blitz_signal_recv(hup, &got, BLITZ_FOREVER) == 0)
 *         reload_configuration();
 *
 * Several listeners. Any number of listeners may name a signal, and each of them gets each signal. If several tasks
 * receive from one listener, each signal goes to one of them.
 *
 * Coalescing. A listener keeps a count for each of its signals, not a queue. If a signal arrives five times before the
 * listener looks, it receives one event with the count 5. The kernel coalesces too: while a standard signal is pending,
 * further ones of its number vanish. So a count says "at least". No signal that was sent after blitz_signal_listen()
 * returned is missed altogether. Different signals are received in turn. The values of queued real-time signals are
 * not kept.
 *
 * Handlers. The first listener of a signal installs our handler, and the last one to go restores the earlier handler.
 * Until then the signal's default action is not taken: Ctrl-C does not end the program. With `chains` an earlier
 * handler is called as well. System calls of other code that can be restarted are (SA_RESTART). One thread,
 * "blitz-signal", exists while there is a listener; it does not run your code.
 *
 * Signals that blitz uses itself:
 *
 *   SIGQUIT   may be listened to. Dumps on SIGQUIT (blitz/dump.h) work beside it, and an earlier handler is called.
 *   SIGURG    refused: the runtime stops its own threads with it
 *   SIGSEGV   refused, as SIGBUS, SIGFPE and SIGILL are: a fault belongs to the instruction that caused it
 *   SIGCHLD   may be listened to
 */
#ifndef BLITZ_SIGNAL_H
#define BLITZ_SIGNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "blitz/api.h"
#include "blitz/future.h"
#include "blitz/time.h"

BLITZ_BEGIN_DECLS

/* A listener. */
typedef struct blitz_signal blitz_signal;

typedef struct blitz_signal_opts {
    bool chains; /* call the earlier handlers of these signals, too */
} blitz_signal_opts;

typedef struct blitz_signal_event {
    int signal; /* its number: SIGINT ... */
    uint64_t
        count; /* how often it has arrived since this listener's last event of it, at least 1 */
} blitz_signal_event;

/*
 * Listen to `count` signals. opts may be NULL.
 * Owns:     copies the list. The listener is the caller's; give it up with blitz_signal_unref().
 * Suspends: never. Call from any thread.
 * Returns:  0; -EINVAL (no signal, the same one twice, one that may not be listened to, or no number of a signal), -ENOMEM,
 *           -EAGAIN (no thread), -EOPNOTSUPP (in the child of a fork). *out is written only on 0.
 */
BLITZ_API BLITZ_MUST_USE int blitz_signal_listen(const int *signals, size_t count,
                                                 const blitz_signal_opts *opts, blitz_signal **out);

/*
 * Listen to one signal: SIGINT, which a terminal sends at Ctrl-C; SIGTERM; SIGHUP; SIGCHLD.
 * Owns:     the listener is the caller's; give it up with blitz_signal_unref().
 * Suspends: never. Call from any thread.
 * Returns:  as blitz_signal_listen().
 */
BLITZ_API BLITZ_MUST_USE int blitz_signal_ctrl_c(blitz_signal **out);
BLITZ_API BLITZ_MUST_USE int blitz_signal_terminate(blitz_signal **out);
BLITZ_API BLITZ_MUST_USE int blitz_signal_hangup(blitz_signal **out);
BLITZ_API BLITZ_MUST_USE int blitz_signal_child(blitz_signal **out);

/*
 * Add a reference, or release one. The last release ends the listener: the earlier handler of each signal that no other
 * listener names is back when it returns. unref ignores NULL.
 * Owns:     ref: a reference more; unref: takes one.
 * Suspends: never. Call from any thread.
 * Returns:  ref: s.
 */
BLITZ_API blitz_signal *blitz_signal_ref(blitz_signal *s);
BLITZ_API void blitz_signal_unref(blitz_signal *s);

/*
 * Receive the next signal.
 * Owns:     *event is the caller's, and written only on 0.
 * Suspends: until a signal arrives, `until`, or a cancel. Call from anywhere.
 * Returns:  0, -ETIMEDOUT, -ECANCELED. On error no signal was taken: the next call gets it.
 */
BLITZ_API BLITZ_SUSPENDS BLITZ_MUST_USE int
blitz_signal_recv(blitz_signal *s, blitz_signal_event *event, blitz_deadline until);

/*
 * Receive the next signal if that is possible without waiting.
 * Owns:     *event is the caller's, and written only on 0.
 * Suspends: never. Call from any thread.
 * Returns:  0, -EAGAIN.
 */
BLITZ_API BLITZ_MUST_USE int blitz_signal_try_recv(blitz_signal *s, blitz_signal_event *event);

/* The receive as a future, also for blitz_select. Revocable: no signal was taken if it is cancelled. */
typedef struct blitz_signal_future {
    blitz_future future;      /* to be awaited */
    int result;               /* when ready: 0 */
    blitz_signal_event event; /* when ready: the signal */
    void *inside[11];
} blitz_signal_future;

/*
 * Make a future that receives the next signal.
 * Owns:     borrows s until it is ready or cancelled.
 * Suspends: never. Call from any thread.
 */
BLITZ_API void blitz_signal_recv_future_init(blitz_signal_future *f, blitz_signal *s);

/*
 * Return the name of a signal: "SIGTERM"; "SIGRT" for a real-time signal, "signal" for any other number.
 * Owns:     the text is constant.
 * Suspends: never. Call from any thread, also in a signal handler.
 * Returns:  the name.
 */
BLITZ_API const char *blitz_signal_name(int signal);

BLITZ_END_DECLS

#endif
