/*
 * symtab.h - names of functions that a file knows and the loader does not.
 */
#ifndef BZ_SYMTAB_H
#define BZ_SYMTAB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Write the name of the function of that file which holds the address, and set *from_start to the
 * distance from its beginning. `base` is where the file is mapped. Reads the file: not in a signal
 * handler. Allocates nothing.
 * Returns: false if the file has no symbol table (it was stripped), or none of its functions is there.
 */
bool bz_symtab_find(const char *path, uintptr_t base, uintptr_t pc, char *name, size_t size,
                    uintptr_t *from_start);

#endif
