/*
 * refuse_each.h - run a program again and again, each time with another allocation refused, until a run needs no more.
 *
 * Each run returns 0 or -ENOMEM, and leaves no block behind.
 */
#ifndef T_REFUSE_EACH_H
#define T_REFUSE_EACH_H

#include "harness.h"

#include <errno.h>

#include "blitz.h"
#include "support/counted.h"

/* all: every allocation from the refused one on fails as well. */
static inline void t_refuse_each(int (*fn)(void *), void *arg, bool all)
{
    for (long n = 1, rc = -1; rc != 0; n++) {
        CHECK(n < 2000);
        t_watch("allocation %ld is refused", n);
        counted_refuse(n, all);
        rc = blitz_run(fn, arg, &(blitz_runtime_opts){.procs = 1, .allocator = &counted});
        CHECK(rc == 0 || rc == -ENOMEM);
        CHECK_EQ(counted_blocks(), 0);
    }
}

#endif
