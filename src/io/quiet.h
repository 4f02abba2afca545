/*
 * quiet.h - a call that finds nobody at the other end says so, and raises no signal. quiet.c says how.
 */
#ifndef BZ_IO_QUIET_H
#define BZ_IO_QUIET_H

#include <signal.h>
#include <stdbool.h>

struct bz_quiet {
    sigset_t was;    /* the thread's mask before */
    bool is_pending; /* so was the signal: it is somebody else's */
};

/* Around one call, on one thread, without waiting in between. errno is left as it is. */
void bz_quiet_begin(struct bz_quiet *q);
/* is_whole: all that was asked for was done. Else the signal may have come, also beside a success. */
void bz_quiet_end(struct bz_quiet *q, bool is_whole);

#endif
