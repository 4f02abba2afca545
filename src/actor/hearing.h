/*
 * hearing.h - a request that can be withdrawn until its receiver has heard it.
 *
 * An actor that takes a request back would send a second signal after the first. If the receiver has not looked at the first
 * yet, the sender withdraws it instead: the receiver finds the mark and drops the request. So a pair costs one signal, not two.
 *
 *     SENT  --receiver-->  HEARD        the receiver acts on it; to end that, the sender sends a second signal
 *       \-----sender---->  WITHDRAWN    the receiver drops it
 *
 * One of the two wins the word. The receiver owns the memory of the request, and may free it. So the sender may look at the
 * request only while the receiver keeps it: relate.c I6 says how the sender knows.
 *
 * Rejected: the sender takes the request out of the receiver's stack of signals. A stack with many pushers and one taker has no
 * removal from its middle.
 *
 * [W] withdraw: state release -> hear: state acquire   the sender has left the request before the receiver frees it
 */
#ifndef BZ_ACTOR_HEARING_H
#define BZ_ACTOR_HEARING_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bz_atomic.h"
#include "base/compiler.h"

enum { BZ_HEARING_SENT, BZ_HEARING_HEARD, BZ_HEARING_WITHDRAWN };

struct bz_hearing {
    bz_atomic(uint32_t) state;
};

static inline void bz_hearing_init(struct bz_hearing *h)
{
    bz_atomic_init(&h->state, BZ_HEARING_SENT);
}

/* The receiver: act on the request. False: it is withdrawn. */
BZ_MUST_USE static inline bool bz_hearing_try_hear(struct bz_hearing *h)
{
    return bz_xchg_acquire(&h->state, BZ_HEARING_HEARD) == BZ_HEARING_SENT; /* [W] */
}

/* The sender, once: withdraw the request. False: the receiver has heard it. */
BZ_MUST_USE static inline bool bz_hearing_try_withdraw(struct bz_hearing *h)
{
    return bz_xchg_release(&h->state, BZ_HEARING_WITHDRAWN) == BZ_HEARING_SENT; /* [W] */
}

#endif
