/*
 * runtimes.h - the list of this process's runtimes, for debuggers.
 */
#ifndef BZ_RUNTIMES_H
#define BZ_RUNTIMES_H

struct bz_runtime;

/* Add a complete runtime to the list; remove one before it is taken apart. Any thread. */
void bz_runtimes_add(struct bz_runtime *rt);
void bz_runtimes_remove(struct bz_runtime *rt);

#endif
