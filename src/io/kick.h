/*
 * kick.h - ending a wait in the kernel by a descriptor. kick.c has the protocol.
 *
 * For keepers that wait for descriptors: one of their own among them that becomes readable.
 */
#ifndef BZ_IO_KICK_H
#define BZ_IO_KICK_H

#include "os/lock.h"

struct bz_kick {
    struct bz_lock lock;
    unsigned inside; /* threads that wait, or are about to; guarded by lock, as are the next */
    bool is_kicked;  /* the descriptor is readable */
    int in, out;     /* constant: the ends of a pipe, or one thing that is both */
};

void bz_kick_init(struct bz_kick *k, int in, int out);

/* About to wait. False: `roused` is set, do not. */
BZ_MUST_USE bool bz_kick_enter(struct bz_kick *k, const struct bz_os *os, bz_os_word *roused);
/* ... and back. */
void bz_kick_leave(struct bz_kick *k, const struct bz_os *os);

/* `roused` has been set: end all waits that are under way. */
void bz_kick(struct bz_kick *k, const struct bz_os *os);

#endif
