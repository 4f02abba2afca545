/*
 * look.h - look at one's own process while it goes on: memory that may change or be gone, what code
 * is called.
 *
 * A dump looks at tasks that run, park and end meanwhile. What it reads may be another's by then, or
 * not be mapped any more; that must never be a fault or a wait, only a line that is left out. So
 * whatever may go away is copied by the kernel, which says -EFAULT where we would crash, and needs
 * nobody's cooperation. The copy is of one moment only by luck: who uses it looks again afterwards
 * whether what it belongs to is still there.
 *
 * All of it is for rare use, half a microsecond a look and more. Nothing here allocates or waits; the
 * names of code take the loader's lock (dladdr), everything else takes none.
 */
#ifndef BZ_OS_LOOK_H
#define BZ_OS_LOOK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"

/*
 * Copy `bytes` from memory that may be changing or gone.
 * Returns: 0, -EFAULT (not all of it is there), -ENOSYS (the system does not let us: a sandbox).
 */
BZ_MUST_USE int bz_look_copy(void *out, const void *from, size_t bytes);

/* A word in memory that is there, but written by others with plain stores. */
uintptr_t bz_look_word(const void *at);
uint32_t bz_look_half(const void *at);

/*
 * Copy a string that may be gone, cut to size - 1 bytes, unprintable bytes shown as '?'.
 * Returns: its length; 0 and an empty string if it cannot be read.
 */
size_t bz_look_text(char *out, size_t size, const char *from);

/*
 * What the code at `pc` is called: "function+0x12 (file)", or "file+0x1234" where no symbol is known.
 * Returns: true; false and an empty string if there is no code of ours.
 */
bool bz_look_symbol(char *out, size_t size, uintptr_t pc);

/* Write all of it. Returns: 0, -errno of write(2). */
int bz_look_say(int fd, const char *text, size_t length);

#endif
