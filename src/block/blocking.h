/*
 * blocking.h - a blocking call on this thread: syscall.c.
 */
#ifndef BZ_BLOCK_BLOCKING_H
#define BZ_BLOCK_BLOCKING_H

#include "proc/state.h"

/* syscall.c: announce a blocking call and make it on this thread, whatever the backend. */
int bz_call_here(int (*fn)(void *arg), void *arg);

#endif
