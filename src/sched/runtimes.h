/*
 * runtimes.h - the list of this process's runtimes, for debuggers.
 */
#ifndef BZ_RUNTIMES_H
#define BZ_RUNTIMES_H

struct bz_runtime;

/* It is complete, or about to be taken apart. Any thread. */
void bz_runtimes_add(struct bz_runtime *rt);
void bz_runtimes_remove(struct bz_runtime *rt);

#endif
