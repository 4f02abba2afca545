/*
 * keepers.h - run a scenario on every I/O backend of this system, regardless of BLITZ_IO.
 */
#ifndef T_KEEPERS_H
#define T_KEEPERS_H

#include "harness.h"

#include "base/compiler.h"
#include "blitz.h"
#include "io/ring.h"

static inline bool t_has_rings(void)
{
    struct bz_ring r;
    if (bz_ring_open(&r, 2, 4) != 0)
        return false;
    bz_ring_close(&r);
    return true;
}

/* With one proc, and with two. Rings may be forbidden at any time (kernel.io_uring_disabled);
 * the runtime then uses epoll. */
static inline void t_on_keepers(int (*fn)(void *), void *arg)
{
    static const char *const keepers[] = {"epoll", "poll", "uring"};
    size_t count = BZ_ARRAY_LEN(keepers) - !t_has_rings();
    for (size_t i = 0; i < count; i++) {
        for (unsigned procs = 1; procs <= 2; procs++) {
            t_watch("%s, %u procs", keepers[i], procs);
            int err = blitz_run(fn, arg, &(blitz_runtime_opts){.procs = procs, .io = keepers[i]});
            CHECK_EQ(err, 0);
        }
    }
}

#endif
