/*
 * runtimes.h - the list of this process's runtimes, for debuggers.
 */
#ifndef BZ_RUNTIMES_H
#define BZ_RUNTIMES_H

#include <stdint.h>

struct bz_runtime;

/* Add a complete runtime to the list; remove one before it is taken apart. Any thread. */
void bz_runtimes_add(struct bz_runtime *rt);
void bz_runtimes_remove(struct bz_runtime *rt);

/* The runtime with that number (rt->creation); NULL: there is none any more. The caller knows that it stays. Any thread. */
struct bz_runtime *bz_runtimes_find(uint32_t creation);

#endif
