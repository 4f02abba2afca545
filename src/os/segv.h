/*
 * segv.h - explain a memory fault before it ends the process. Opt-in: until bz_segv_watch is called
 * blitz installs no signal handler, and after bz_segv_unwatch there is none of ours again.
 *
 * The handler runs on the alternate stack of the thread that faulted (threads of os.h have one; a
 * thread without one dies of an overflow unexplained, since there is no stack to explain it on). It
 * asks the watcher; if that knows the address, its message and a backtrace go to standard error and
 * the default action follows: the instruction faults again with nobody in the way, so a core file
 * shows the very place. Faults the watcher does not know go to whoever had the signal before.
 */
#ifndef BZ_SEGV_H
#define BZ_SEGV_H

#include <stddef.h>

#include "base/compiler.h"

/*
 * In a signal handler, with anything interrupted: no allocation, no lock that could be held here.
 * Writes a message of at most `room` bytes, newline included, and returns its length; 0 if the
 * address is none of ours.
 */
typedef size_t bz_segv_explain(const void *address, char *text, size_t room);

/* Returns: 0, -EBUSY (somebody watches already), -errno of sigaction. */
BZ_MUST_USE int bz_segv_watch(bz_segv_explain *explain);

/* No explanations any more. If somebody has put a handler over ours meanwhile, ours stays beneath it
 * and passes everything on. */
void bz_segv_unwatch(void);

#endif
