/*
 * quiet.h - calls on a broken pipe return an error without SIGPIPE. quiet.c has the design.
 */
#ifndef BZ_IO_QUIET_H
#define BZ_IO_QUIET_H

#include <signal.h>
#include <stdbool.h>

struct bz_quiet {
    sigset_t was;    /* the thread's mask before */
    bool is_pending; /* the signal was pending before: leave it */
};

/* Use around one call, on one thread, without waiting in between. errno is preserved. */
void bz_quiet_begin(struct bz_quiet *q);
/* is_whole: the call did everything requested. Else the signal may be pending, even after a
 * success. */
void bz_quiet_end(struct bz_quiet *q, bool is_whole);

#endif
