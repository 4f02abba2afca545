/*
 * segv.h - explain a memory fault before it ends the process. Our handler is installed from
 * bz_segv_watch to bz_segv_unwatch only.
 *
 * The handler runs on the alternate stack of the thread that faulted. Threads of os.h have one; on
 * a thread without one the handler cannot run, and an overflow ends the process without a message.
 * The handler calls the watcher. If the watcher knows the address, its message goes to standard
 * error. Then the previous handler is called, or the instruction faults again with the default
 * action, so that a core file shows the exact place.
 */
#ifndef BZ_SEGV_H
#define BZ_SEGV_H

#include <stddef.h>

#include "base/compiler.h"

/*
 * Called in a signal handler that may interrupt any code: no allocation, and no lock that the
 * thread may hold. Write a message of at most `room` bytes, newline included. Return its length; 0
 * if the address is not ours.
 */
typedef size_t bz_segv_explain(const void *address, char *text, size_t room);

/* Returns: 0, -EBUSY (there is a watcher already), -errno of sigaction. */
BZ_MUST_USE int bz_segv_watch(bz_segv_explain *explain);

/* Stop explaining. If another handler was installed over ours, ours stays and forwards all
 * signals. */
void bz_segv_unwatch(void);

#endif
