/*
 * urge.h - interrupt a thread wherever it is, by SIGURG. Opt-in: until bz_urge_watch is called blitz
 * installs no handler, and after the last bz_urge_unwatch there is none of ours again.
 *
 * SIGURG, because its default action is to do nothing, debuggers pass it through, and programs that
 * use it (out-of-band data) have to live with it coming for no reason. Whoever had it before us gets
 * all that is not ours, as the kernel would have given it to him.
 */
#ifndef BZ_URGE_H
#define BZ_URGE_H

#include <stdint.h>

#include "base/compiler.h"

/*
 * In the handler, on the interrupted thread's alternate stack: `pc` is what it was about to execute.
 * errno is kept. May sleep; SIGURG is blocked meanwhile. Called for any SIGURG, ours or not.
 */
typedef void bz_urge_fn(uintptr_t pc);

/*
 * Install the handler, or count one more user of it. All users give the same fn.
 * Returns: 0; -ENOSYS (this CPU or this kind of build has no way to do it), -errno of sigaction.
 */
BZ_MUST_USE int bz_urge_watch(bz_urge_fn *fn);

/* One user less. With the last one the handler before ours is back; if somebody has put his over
 * ours meanwhile, ours stays beneath it and passes everything on. */
void bz_urge_unwatch(void);

/*
 * Call fn for each run of executable pages of the program itself, not of its libraries, until one
 * returns an error. The loader's lock is held meanwhile.
 * Returns: 0, what fn returned, -EINVAL (nothing is known of the program).
 */
BZ_MUST_USE int bz_urge_each_of_program(int (*fn)(uintptr_t start, uintptr_t end));

#endif
