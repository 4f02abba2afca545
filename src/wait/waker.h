/*
 * waker.h - the waker of a plain thread. waker.c has all wakers that are ours.
 */
#ifndef BZ_WAKER_H
#define BZ_WAKER_H

#include "proc/state.h"

/* A plain thread that waits for a future. It is counted: a clone of its waker may outlive the wait. */
struct bz_parker {
    const struct bz_os *os;
    bz_os_word woken;
    bz_atomic(uint32_t) refs;
    uint64_t by; /* when to poll again at the latest; the thread's own */
};

extern const blitz_waker_ops bz_parker_waker;

/* NULL: no memory. */
struct bz_parker *bz_parker_new(const struct bz_os *os);

#endif
