/*
 * interrupt.h - interrupt a thread at any instruction, by SIGURG: the Linux part of bz_os_interrupt_watch
 * (os/os.h).
 *
 * SIGURG, because its default action is to do nothing, debuggers pass it through, and programs that
 * use it (out-of-band data) must tolerate spurious signals. Our handler is installed from the first
 * watch to the last unwatch. The previous handler gets every signal that is not ours.
 */
#ifndef BZ_URGE_H
#define BZ_URGE_H

#include <stdbool.h>
#include <stdint.h>

/*
 * True if a thread may be stopped at this instruction. False in code that may hold a lock that
 * other threads need: the C library, the loader, the allocator, the unwinder. code.c has the rules.
 * For signal handlers.
 */
bool bz_code_may_stop(uintptr_t pc);

/* True if the instruction is in blitz itself: base/text.h. False on architectures without a trap. For signal handlers. */
bool bz_code_is_ours(uintptr_t pc);

/* Find this code. Takes the loader's lock; call it before the first thread is stopped. */
void bz_code_find(void);
/* The same again if it was found before: a library has come or gone. */
void bz_code_renew(void);

#endif
