/*
 * await.h - waiting for a future: await.c.
 */
#ifndef BZ_PARK_AWAIT_H
#define BZ_PARK_AWAIT_H

#include "proc/state.h"

/* await.c: poll a future that is one of several. Debug builds warn if it waits inside its poll. */
blitz_poll bz_future_poll(blitz_future *f, const blitz_waker *w);
/* await.c: blitz_await for a caller that may be a plain thread of `os`. */
int bz_await(const struct bz_os *os, blitz_future *f, blitz_deadline until);

#endif
