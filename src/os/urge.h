/*
 * urge.h - interrupt a thread wherever it is, by SIGURG: the Linux half of bz_os_urge_watch (os/os.h).
 *
 * SIGURG, because its default action is to do nothing, debuggers pass it through, and programs that
 * use it (out-of-band data) have to live with it coming for no reason. No handler is installed before the
 * first watch, and after the last unwatch the earlier one is back. An earlier handler gets every signal that
 * is not ours.
 */
#ifndef BZ_URGE_H
#define BZ_URGE_H

#include <stdbool.h>
#include <stdint.h>

/*
 * May a thread be stopped at this instruction? False in code that may hold a lock which other threads need:
 * the C library, the loader, the allocator, the unwinder. code.c has the rules. For signal handlers.
 */
bool bz_code_may_stop(uintptr_t pc);

/* Find that code. Takes the loader's lock; call it before the first thread is stopped. */
void bz_code_find(void);

#endif
