/* Run a scenario with one proc, with two, with an odd number and with more than there are CPUs. */
#ifndef T_ON_EACH_H
#define T_ON_EACH_H

#include "harness.h"

#include "base/compiler.h"
#include "blitz.h"

static inline void t_on_each(int (*fn)(void *), void *arg, int want)
{
    static const unsigned procs[] = {1, 2, 3, 8};
    for (size_t i = 0; i < BZ_ARRAY_LEN(procs); i++) {
        t_watch("%u procs", procs[i]);
        CHECK_EQ(blitz_run(fn, arg, &(blitz_runtime_opts){.procs = procs[i]}), want);
    }
}

#endif
