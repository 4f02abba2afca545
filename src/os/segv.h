/*
 * segv.h - explain a memory fault before it ends the process. Until bz_segv_watch is called there is no
 * handler of ours, and after bz_segv_unwatch there is none again.
 *
 * The handler runs on the alternate stack of the thread that faulted. Threads of os.h have one; a
 * thread without one dies of an overflow unexplained, since there is no stack to explain it on. The
 * handler asks the watcher. If the watcher knows the address, its message goes to standard error.
 * Then whatever would have happened without us happens: the handler that was there before is called,
 * or the instruction faults again with nobody in the way, so that a core file shows the very place.
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
