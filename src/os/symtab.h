/*
 * symtab.h - names of functions from the symbol table of a file.
 */
#ifndef BZ_SYMTAB_H
#define BZ_SYMTAB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Write the name of the function that contains the address, and set *from_start to the distance
 * from its start. `base` is the address of the file's mapping. Reads the file: not for signal
 * handlers. Allocates nothing.
 * Returns: false if the file has no symbol table (it was stripped), or no function contains the
 *          address.
 */
bool bz_symtab_find(const char *path, uintptr_t base, uintptr_t pc, char *name, size_t size,
                    uintptr_t *from_start);

#endif
