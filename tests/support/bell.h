/*
 * bell.h - a waker that counts: how many hold it, and how often it was rung. One thread at a time.
 *
 *     struct t_bell b = {.holders = 1};
 *     blitz_waker w = t_bell_waker(&b);
 */
#ifndef T_BELL_H
#define T_BELL_H

#include "blitz.h"

struct t_bell {
    int holders, rung;
};

static inline void t_bell_clone(void *b)
{
    ((struct t_bell *)b)->holders++;
}

static inline void t_bell_wake_by_ref(void *b)
{
    ((struct t_bell *)b)->rung++;
}

static inline void t_bell_drop(void *b)
{
    ((struct t_bell *)b)->holders--;
}

static inline void t_bell_wake(void *b)
{
    t_bell_wake_by_ref(b);
    t_bell_drop(b);
}

static inline blitz_waker t_bell_waker(struct t_bell *b)
{
    static const blitz_waker_ops ops = {t_bell_clone, t_bell_wake, t_bell_wake_by_ref, t_bell_drop};
    return (blitz_waker){&ops, b};
}

#endif
