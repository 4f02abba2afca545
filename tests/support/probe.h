/*
 * probe.h - a future of any class that becomes ready on request and checks its caller.
 *
 *     struct t_probe p;
 *     t_probe_init(&p, os, BLITZ_PINNED);
 *     t_probe_set(&p, -EIO);            any thread: it is ready, with that output
 *
 * It fails the test when it is polled after it was ready or revoked, or cancelled twice. It counts
 * how often it is abandoned or cancelled. A cancelled pinned probe is ready only when it is set,
 * like a kernel operation.
 */
#ifndef T_PROBE_H
#define T_PROBE_H

#include "base/compiler.h"
#include "blitz/future.h"
#include "harness.h"
#include "os/lock.h"

struct t_probe {
    blitz_future f;
    const struct bz_os *os;
    struct bz_lock lock;
    int polls, cancels, told; /* guarded by lock, like the rest; told: it has returned "ready" */
    bool is_set;
    int output;
    blitz_waker waker;
};

static inline struct t_probe *t_probe_of(blitz_future *f)
{
    return BZ_CONTAINER_OF(f, struct t_probe, f);
}

static inline blitz_poll t_probe_poll(blitz_future *f, const blitz_waker *waker)
{
    struct t_probe *p = t_probe_of(f);
    blitz_waker spare = blitz_waker_clone(waker);
    bz_lock_take(&p->lock, p->os);
    bool is_set = p->is_set,
         may_ask = p->told == 0 && (p->cancels == 0 || f->ops->kind == BLITZ_PINNED);
    p->polls++;
    p->told += is_set;
    if (!is_set) {
        blitz_waker old = p->waker;
        p->waker = spare;
        spare = old;
    }
    bz_lock_drop(&p->lock, p->os);
    blitz_waker_drop(&spare);
    CHECK(may_ask);
    return is_set ? BLITZ_READY : BLITZ_PENDING;
}

static inline blitz_waker t_probe_take_waker(struct t_probe *p)
{
    blitz_waker w = p->waker;
    p->waker = (blitz_waker){NULL, NULL};
    return w;
}

static inline void t_probe_cancel(blitz_future *f)
{
    struct t_probe *p = t_probe_of(f);
    blitz_waker w = {NULL, NULL};
    bz_lock_take(&p->lock, p->os);
    bool may_cancel = p->cancels++ == 0 && p->polls > 0 && p->told == 0;
    if (f->ops->kind != BLITZ_PINNED)
        w = t_probe_take_waker(p);
    bz_lock_drop(&p->lock, p->os);
    blitz_waker_drop(&w);
    CHECK(may_cancel);
}

static inline int t_probe_output(blitz_future *f)
{
    CHECK_EQ(t_probe_of(f)->told, 1);
    return t_probe_of(f)->output;
}

static inline void t_probe_init(struct t_probe *p, const struct bz_os *os, blitz_class kind)
{
    static const blitz_future_ops ops[] = {
        {"probe", BLITZ_REVOCABLE, t_probe_poll, t_probe_cancel, t_probe_output},
        {"probe", BLITZ_DETACHABLE, t_probe_poll, t_probe_cancel, t_probe_output},
        {"probe", BLITZ_PINNED, t_probe_poll, t_probe_cancel, t_probe_output}};
    *p = (struct t_probe){.f = {&ops[kind]}, .os = os};
    bz_lock_init(&p->lock);
}

/* The probe may be gone when the wake has been said; the lock is dropped before. */
static inline void t_probe_set(struct t_probe *p, int output)
{
    bz_lock_take(&p->lock, p->os);
    p->is_set = true;
    p->output = output;
    blitz_waker w = t_probe_take_waker(p);
    bz_lock_drop(&p->lock, p->os);
    blitz_waker_wake(&w);
}

/* After its combinator is over: exactly one of the three ends, and no waker is kept. */
static inline void t_probe_check(struct t_probe *p, int is_ended, int is_given_up)
{
    CHECK_EQ(p->told, is_ended);
    if (p->polls > 0 && p->f.ops->kind != BLITZ_PINNED)
        CHECK_EQ(p->cancels, is_given_up);
    CHECK_EQ(p->told + (p->cancels > 0 && p->f.ops->kind != BLITZ_PINNED) <= 1, 1);
    CHECK(p->waker.ops == NULL);
}

#endif
