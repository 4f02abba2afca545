/*
 * kick.h - wake a thread that waits in the kernel, through a descriptor. kick.c has the protocol.
 *
 * For backends that wait for descriptors: one of them becomes readable.
 */
#ifndef BZ_IO_KICK_H
#define BZ_IO_KICK_H

#include "os/lock.h"

struct bz_kick {
    struct bz_lock lock;
    unsigned inside; /* threads that wait, or are about to; guarded by lock, like the next */
    bool is_kicked;  /* the descriptor is readable */
    int in, out;     /* constant: the ends of a pipe, or one eventfd */
};

void bz_kick_init(struct bz_kick *k, int in, int out);

/* Call before a wait. Return false if `roused` is set: do not wait. */
BZ_MUST_USE bool bz_kick_enter(struct bz_kick *k, const struct bz_os *os, bz_os_word *roused);
/* Call after the wait. */
void bz_kick_leave(struct bz_kick *k, const struct bz_os *os);

/* Call after setting `roused`: end all waits in progress. */
void bz_kick(struct bz_kick *k, const struct bz_os *os);

#endif
