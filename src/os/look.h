/*
 * look.h - inspect the own process while it runs: memory that may change or be unmapped, names of
 * functions.
 *
 * A dump reads tasks that run, park and end at the same time. The memory may have been reused or
 * unmapped; that must never cause a fault or a wait, only a missing line. So the kernel copies any
 * memory that may be freed: it returns -EFAULT where a load would crash, and needs no cooperation
 * of other threads. The copy need not be consistent: its user checks afterwards that the object
 * still exists.
 *
 * All of it is for rare use: a copy takes half a microsecond or more. Nothing here allocates or
 * waits. Function names take the loader's lock (dladdr); everything else takes no lock.
 */
#ifndef BZ_OS_LOOK_H
#define BZ_OS_LOOK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"

/*
 * Copy `bytes` from memory that may change or be unmapped.
 * Returns: 0, -EFAULT (part of it is not mapped), -ENOSYS (the system forbids it: a sandbox).
 */
BZ_MUST_USE int bz_look_copy(void *out, const void *from, size_t bytes);

/* Load a mapped word that other threads write with plain stores. */
uintptr_t bz_look_word(const void *at);
uint32_t bz_look_half(const void *at);

/*
 * Copy a string that may be unmapped, truncated to size - 1 bytes, with '?' for unprintable bytes.
 * Returns: its length; 0 and an empty string if it cannot be read.
 */
size_t bz_look_text(char *out, size_t size, const char *from);

/*
 * Name the code at `pc`: "function+0x12 (file)", or "file+0x1234" if no symbol is known.
 * Returns: true; false and an empty string if `pc` is in no loaded file.
 */
bool bz_look_symbol(char *out, size_t size, uintptr_t pc);

/* Write all bytes. Returns: 0, -errno of write(2). */
int bz_look_say(int fd, const char *text, size_t length);

#endif
