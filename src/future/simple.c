/*
 * simple.c - futures to make others of: ready, pending, defer, map, then.
 *
 * The child of defer and then is not known when they are made, and the class of a future is
 * constant. So both are pinned: a cancel is passed on, and the awaiting code polls once more. If the
 * cancelled child is not pinned itself, the answer is "ready" at once. Rejected: asking for the class
 * beforehand (one more argument that can be wrong), or changing it on the way (a race above has
 * chosen its own class by it already).
 *
 * I1  make, next and fn are called once, or never.
 * I2  Nothing is polled after it was ready or, unless it is pinned, cancelled.
 */
#include <errno.h>

#include "base/compiler.h"
#include "blitz/futures.h"
#include "proc/state.h"
#include "wait/waker.h"

/* ---- ready and pending ---- */

static blitz_poll ready_poll(blitz_future *f, const blitz_waker *waker)
{
    (void)f;
    (void)waker;
    return BLITZ_READY;
}

static void nothing_to_cancel(blitz_future *f)
{
    (void)f;
}

static int ready_output(blitz_future *f)
{
    return BZ_CONTAINER_OF(f, blitz_ready_future, future)->result;
}

void blitz_ready_future_init(blitz_ready_future *f, int output)
{
    static const blitz_future_ops ops = {"ready", BLITZ_REVOCABLE, ready_poll, nothing_to_cancel,
                                         ready_output};
    f->future.ops = &ops;
    f->result = output;
}

static blitz_poll pending_poll(blitz_future *f, const blitz_waker *waker)
{
    (void)f;
    (void)waker;
    return BLITZ_PENDING;
}

blitz_future *blitz_pending_future(void)
{
    static const blitz_future_ops ops = {"pending", BLITZ_REVOCABLE, pending_poll,
                                         nothing_to_cancel, NULL};
    static blitz_future pending = {&ops};
    return &pending;
}

/* ---- futures made of others ---- */

enum step { FRESH, WAITING, OVER };

/* Cancel the child. Return the next step. */
static int cancel_one(blitz_future *f)
{
    return bz_future_cancel(f) ? WAITING : OVER; /* I2 */
}

static blitz_defer_future *defer_of(blitz_future *f)
{
    return BZ_CONTAINER_OF(f, blitz_defer_future, future);
}

static blitz_poll defer_poll(blitz_future *f, const blitz_waker *waker)
{
    blitz_defer_future *l = defer_of(f);
    if (l->step == FRESH) {
        l->made = l->make(l->arg); /* I1 */
        l->step = l->made != NULL ? WAITING : OVER;
    }
    if (l->step == OVER)
        return BLITZ_READY;
    if (l->made->ops->poll(l->made, waker) == BLITZ_PENDING)
        return BLITZ_PENDING;
    l->step = OVER;
    l->result = blitz_future_output(l->made);
    return BLITZ_READY;
}

static void defer_cancel(blitz_future *f)
{
    blitz_defer_future *l = defer_of(f);
    if (l->step == OVER)
        return;
    l->step = l->step == WAITING ? cancel_one(l->made) : OVER;
    if (l->step == OVER)
        l->result = -ECANCELED;
}

static int defer_output(blitz_future *f)
{
    return defer_of(f)->result;
}

void blitz_defer_future_init(blitz_defer_future *f, blitz_future *(*make)(void *arg), void *arg)
{
    static const blitz_future_ops ops = {"deferred", BLITZ_PINNED, defer_poll, defer_cancel,
                                         defer_output};
    *f = (blitz_defer_future){.future = {&ops}, .make = make, .arg = arg};
}

/* ---- map ---- */

static blitz_map_future *map_of(blitz_future *f)
{
    return BZ_CONTAINER_OF(f, blitz_map_future, future);
}

static blitz_poll map_poll(blitz_future *f, const blitz_waker *waker)
{
    blitz_map_future *m = map_of(f);
    if (m->step == OVER)
        return BLITZ_READY;
    if (m->child->ops->poll(m->child, waker) == BLITZ_PENDING)
        return BLITZ_PENDING;
    m->step = OVER;
    m->result = m->fn(m->arg, m->child); /* I1 */
    return BLITZ_READY;
}

static void map_cancel(blitz_future *f)
{
    blitz_map_future *m = map_of(f);
    if (m->step != OVER)
        m->child->ops->cancel(m->child);
}

static int map_output(blitz_future *f)
{
    return map_of(f)->result;
}

void blitz_map_future_init(blitz_map_future *f, blitz_future *child,
                           int (*fn)(void *arg, blitz_future *child), void *arg)
{
    static const blitz_future_ops ops[] = {
        [BLITZ_REVOCABLE] = {"map", BLITZ_REVOCABLE, map_poll, map_cancel, map_output},
        [BLITZ_DETACHABLE] = {"map", BLITZ_DETACHABLE, map_poll, map_cancel, map_output},
        [BLITZ_PINNED] = {"map", BLITZ_PINNED, map_poll, map_cancel, map_output}};
    *f = (blitz_map_future){
        .future = {&ops[child->ops->kind]}, .child = child, .fn = fn, .arg = arg};
}

/* ---- then ---- */

static blitz_then_future *then_of(blitz_future *f)
{
    return BZ_CONTAINER_OF(f, blitz_then_future, future);
}

/* Make the second future, if there is one, after the first is ready. */
static void then_go_on(blitz_then_future *t)
{
    t->result = blitz_future_output(t->first);
    if (t->result >= 0 && t->step == FRESH)
        t->second = t->next(t->arg, t->first); /* I1 */
    t->step = t->second != NULL ? WAITING : OVER;
}

static blitz_poll then_poll(blitz_future *f, const blitz_waker *waker)
{
    blitz_then_future *t = then_of(f);
    if (t->step != OVER && t->second == NULL) {
        if (t->first->ops->poll(t->first, waker) == BLITZ_PENDING)
            return BLITZ_PENDING;
        then_go_on(t);
    }
    if (t->step == OVER)
        return BLITZ_READY;
    if (t->second->ops->poll(t->second, waker) == BLITZ_PENDING)
        return BLITZ_PENDING;
    t->step = OVER;
    t->result = blitz_future_output(t->second);
    return BLITZ_READY;
}

/* Cancel the current child. If the first is not ready, WAITING means that it was cancelled: there will be no second. */
static void then_cancel(blitz_future *f)
{
    blitz_then_future *t = then_of(f);
    if (t->step == OVER)
        return;
    t->step = cancel_one(t->second != NULL ? t->second : t->first);
    if (t->step == OVER)
        t->result = -ECANCELED;
}

static int then_output(blitz_future *f)
{
    return then_of(f)->result;
}

void blitz_then_future_init(blitz_then_future *f, blitz_future *first,
                            blitz_future *(*next)(void *arg, blitz_future *first), void *arg)
{
    static const blitz_future_ops ops = {"then", BLITZ_PINNED, then_poll, then_cancel, then_output};
    *f = (blitz_then_future){.future = {&ops}, .first = first, .next = next, .arg = arg};
}
