/*
 * clock_calls.c - pause, move and resume the virtual clock of a runtime: the calls of blitz/clock.h.
 *
 * clockwork.c moves the clock. A call to move it is a request (park/request.h): it says which moment it wants, waits in
 * the list of callers, and is granted when the clock is there and every task waits.
 *
 * All changes are under the lock of the clockwork. After each of them the machines are told, without the lock.
 *
 * No atomics: see clockwork.c and time/clock.c.
 */
#include "blitz/clock.h"

#include <assert.h>
#include <errno.h>

#include "park/request.h"
#include "proc/now.h"
#include "proc/state.h"
#include "runtime/clockwork.h"
#include "wait/waker.h"

static struct bz_runtime *runtime_of(blitz_runtime *rt)
{
    struct bz_machine *m = bz_machine_self();
    return rt != NULL ? (struct bz_runtime *)rt : m != NULL ? m->rt : NULL;
}

/* Return why this runtime has no clock to be paused: 0, -EINVAL, -EOPNOTSUPP. */
static int refuse(const struct bz_runtime *rt)
{
    if (rt == NULL)
        return -EINVAL;
    return rt->time != rt->os ? 0 : -EOPNOTSUPP;
}

static void lock(struct bz_runtime *rt)
{
    bz_lock_take(&rt->clockwork.lock, rt->os);
}

static void unlock(struct bz_runtime *rt)
{
    bz_lock_drop(&rt->clockwork.lock, rt->os);
}

int blitz_clock_pause(blitz_runtime *runtime, blitz_clock_mode mode)
{
    struct bz_runtime *rt = runtime_of(runtime);
    uint64_t at;
    int err = refuse(rt);
    if (err != 0)
        return err;
    if (mode != BLITZ_CLOCK_MANUAL && mode != BLITZ_CLOCK_AUTO)
        return -EINVAL;
    struct bz_clockwork *c = &rt->clockwork;
    lock(rt);
    if (bz_clock_is_paused(&c->clock, &at)) {
        err = -EBUSY;
    } else {
        bz_clock_pause(&c->clock);
        c->is_auto = mode == BLITZ_CLOCK_AUTO;
        bz_clockwork_say_wanted(c);
    }
    unlock(rt);
    if (err == 0)
        bz_clockwork_tell(rt);
    return err;
}

/* Under the lock: refuse callers that wait, as many as fit into the list. Return true if some are left. */
static bool refuse_callers(struct bz_clockwork *c, struct bz_wakelist *wakes)
{
    struct bz_waiter *w;
    while ((w = bz_waiter_first(&c->callers)) != NULL) {
        if (bz_wakelist_is_full(wakes))
            return true;
        bz_set(&w->result, -EINVAL);
        (void)!bz_request_grant(BZ_CONTAINER_OF(w, struct bz_request, waiter), wakes);
    }
    bz_clockwork_say_wanted(c);
    return false;
}

int blitz_clock_resume(blitz_runtime *runtime)
{
    struct bz_runtime *rt = runtime_of(runtime);
    struct bz_wakelist wakes;
    uint64_t at;
    bool has_more = true;
    int err = refuse(rt);
    if (err != 0)
        return err;
    lock(rt);
    if (bz_clock_is_paused(&rt->clockwork.clock, &at)) {
        bz_clock_resume(&rt->clockwork.clock);
        rt->clockwork.is_auto = false;
    } else {
        err = -EINVAL;
    }
    unlock(rt);
    while (err == 0 && has_more) {
        bz_wakelist_init(&wakes);
        lock(rt);
        has_more = refuse_callers(&rt->clockwork, &wakes);
        unlock(rt);
        bz_wakelist_deliver(&wakes);
    }
    if (err == 0)
        bz_clockwork_tell(rt);
    return err;
}

blitz_instant blitz_clock_now(blitz_runtime *rt)
{
    return rt != NULL ? bz_os_now(((struct bz_runtime *)rt)->time) : bz_time_here();
}

bool blitz_clock_is_paused(blitz_runtime *runtime)
{
    struct bz_runtime *rt = runtime_of(runtime);
    uint64_t at;
    return refuse(rt) == 0 && bz_clock_is_paused(&rt->clockwork.clock, &at);
}

/* ---- moving it ---- */

static struct bz_goal *goal_of(struct bz_request *r)
{
    return BZ_CONTAINER_OF(r, struct bz_goal, request);
}

static void goal_lock(struct bz_request *r)
{
    lock(goal_of(r)->rt);
}

/* A caller that waits wants a machine to look at the clock. The first polls of many may tell in vain. */
static void goal_unlock(struct bz_request *r, struct bz_wakelist *wakes)
{
    struct bz_runtime *rt = goal_of(r)->rt;
    bool is_waiting = r->waiter.state == BZ_WAITER_QUEUED;
    unlock(rt); /* the request may be gone */
    bz_wakelist_deliver(wakes);
    if (is_waiting)
        bz_clockwork_tell(rt);
}

static bool goal_enter(struct bz_request *r, struct bz_wakelist *wakes)
{
    struct bz_goal *g = goal_of(r);
    struct bz_clockwork *c = &g->rt->clockwork;
    uint64_t now;
    (void)wakes;
    if (!bz_clock_is_paused(&c->clock, &now) || g->ns > BZ_CLOCK_LAST - now) {
        bz_set(&r->waiter.result, -EINVAL);
        return true;
    }
    g->at = now + g->ns;
    bz_waiter_queue(&r->waiter, &c->callers);
    bz_clockwork_say_wanted(c);
    return false;
}

static bool goal_leave(struct bz_request *r, struct bz_wakelist *wakes)
{
    (void)wakes;
    if (r->waiter.state == BZ_WAITER_GRANTED)
        return false; /* the clock was there before it could park, or before its next poll */
    bz_waiter_leave(&r->waiter);
    bz_clockwork_say_wanted(&goal_of(r)->rt->clockwork);
    return true;
}

static const struct bz_request_ops goal_ops = {.what = "clock",
                                               .lock = goal_lock,
                                               .unlock = goal_unlock,
                                               .enter = goal_enter,
                                               .leave = goal_leave};

int blitz_clock_advance(blitz_runtime *rt, blitz_duration ns, blitz_deadline until)
{
    struct bz_goal g = {.request.ops = &goal_ops, .rt = runtime_of(rt), .ns = ns};
    int err = refuse(g.rt);
    if (err != 0)
        return err;
    bz_waiter_init(&g.request.waiter, NULL, BZ_WAIT_WOKEN);
    return bz_request_wait(&g.request, bz_os_here(), until);
}

/* ---- as a future ---- */

static_assert(sizeof(struct bz_goal) <= sizeof(((blitz_sync_future *)NULL)->inside), "it has room");

static struct bz_goal *goal_in(blitz_sync_future *f)
{
    return (struct bz_goal *)f->inside;
}

static blitz_poll goal_poll(blitz_future *future, const blitz_waker *waker)
{
    blitz_sync_future *f = BZ_CONTAINER_OF(future, blitz_sync_future, future);
    if (f->result != -EINPROGRESS)
        return BLITZ_READY;
    if (!bz_request_poll(&goal_in(f)->request, waker))
        return BLITZ_PENDING;
    f->result = bz_get(&goal_in(f)->request.waiter.result);
    return BLITZ_READY;
}

static void goal_cancel(blitz_future *future)
{
    blitz_sync_future *f = BZ_CONTAINER_OF(future, blitz_sync_future, future);
    if (f->result == -EINPROGRESS)
        f->result = bz_request_cancel(&goal_in(f)->request)
                        ? -ECANCELED
                        : bz_get(&goal_in(f)->request.waiter.result);
}

static int goal_output(blitz_future *future)
{
    return BZ_CONTAINER_OF(future, blitz_sync_future, future)->result;
}

void blitz_clock_advance_future_init(blitz_sync_future *f, blitz_runtime *rt, blitz_duration ns)
{
    static const blitz_future_ops ops = {"clock", BLITZ_REVOCABLE, goal_poll, goal_cancel,
                                         goal_output};
    struct bz_goal g = {.request.ops = &goal_ops, .rt = runtime_of(rt), .ns = ns};
    int err = refuse(g.rt);
    f->future.ops = &ops;
    f->result = err != 0 ? err : -EINPROGRESS;
    *goal_in(f) = g;
    bz_waiter_init_polled(&goal_in(f)->request.waiter); /* in its place: it links to itself */
}
