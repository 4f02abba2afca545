/*
 * sync_toy.h - what the primitives need of the runtime, for threads of the model checker (wait_toy.h).
 * Futures are polled by hand, with a waker that only says that it was woken.
 */
#ifndef MODEL_SYNC_TOY_H
#define MODEL_SYNC_TOY_H

#include "wait_toy.h"

#include "blitz/sync.h"
#include "wait/peek.h"

static bz_atomic(int) rung;

static void toy_nothing(void *data)
{
    (void)data;
}

static void toy_ring(void *data)
{
    (void)data;
    bz_store_release(&rung, 1);
}

static const blitz_waker_ops toy_ops = {toy_nothing, toy_ring, toy_ring, toy_nothing};
static const blitz_waker toy_waker = {&toy_ops, NULL};

void bz_look_cancel(blitz_future *f) /* as in await.c */
{
    ((const struct bz_look_ops *)f->ops)->cancel(f);
}

static inline bool toy_poll(blitz_sync_future *f)
{
    return f->future.ops->poll(&f->future, &toy_waker) == BLITZ_READY;
}

static inline void toy_cancel(blitz_sync_future *f)
{
    f->future.ops->cancel(&f->future);
}

#endif
