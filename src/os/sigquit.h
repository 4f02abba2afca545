/*
 * sigquit.h - call a function at SIGQUIT (control-backslash on a terminal). Opt-in: without a
 * watcher blitz installs no handler.
 *
 * A previous handler is called too, after ours, and is restored after the last unwatch. The default
 * action, to end the process with a core file, is not taken while there is a watcher. If another
 * handler was installed over ours, ours stays and forwards the signal.
 */
#ifndef BZ_SIGQUIT_H
#define BZ_SIGQUIT_H

#include "base/compiler.h"

enum { BZ_SIGQUIT_MAX = 16 };

/*
 * Call fn(ctx) from the handler at every SIGQUIT. fn may interrupt any code: it may only store into
 * atomics and wake sleep words. Any thread.
 * Returns: 0, -EAGAIN (there are BZ_SIGQUIT_MAX watchers already), -errno of sigaction.
 */
BZ_MUST_USE int bz_sigquit_watch(void (*fn)(void *ctx), void *ctx);

/* Stop calls with this ctx. On return no call is in progress. Does nothing if ctx is not
 * watching. */
void bz_sigquit_unwatch(void *ctx);

#endif
