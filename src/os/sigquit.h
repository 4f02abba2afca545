/*
 * sigquit.h - be told when somebody sends SIGQUIT (control-backslash on a terminal). Opt-in: while
 * nobody watches, blitz has no handler there.
 *
 * Whoever had the signal before is called as well, after ours, and has it back when the last watcher
 * is gone; but the default action, to end the process with a core file, is not taken while somebody
 * watches. If another handler was put over ours meanwhile, ours stays beneath it and passes on.
 */
#ifndef BZ_SIGQUIT_H
#define BZ_SIGQUIT_H

#include "base/compiler.h"

enum { BZ_SIGQUIT_MAX = 16 };

/*
 * Call fn(ctx) from the handler at every SIGQUIT, with anything interrupted: it may store into atomics
 * and wake sleep words, and nothing else. Any thread.
 * Returns: 0, -EAGAIN (BZ_SIGQUIT_MAX watch already), -errno of sigaction.
 */
BZ_MUST_USE int bz_sigquit_watch(void (*fn)(void *ctx), void *ctx);

/* No more calls with this ctx; on return none is under way. Harmless if it does not watch. */
void bz_sigquit_unwatch(void *ctx);

#endif
