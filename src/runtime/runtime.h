/*
 * runtime.h - a runtime, for our own code and tests: runtime.c.
 */
#ifndef BZ_RUNTIME_RUNTIME_H
#define BZ_RUNTIME_RUNTIME_H

#include "proc/state.h"

BZ_MUST_USE int bz_runtime_new(const struct bz_os *os, const blitz_runtime_opts *config,
                               struct bz_runtime **out);
/* Free the memory. No thread holds the runtime or any of its task headers any more. */
void bz_runtime_release(struct bz_runtime *rt);

#endif
