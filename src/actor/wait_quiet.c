/*
 * wait_quiet.c - wait until no actor has anything to handle.
 *
 * busy.h counts the actors that are not idle. Here are the waiters: a queue for each runtime, under one lock, in the form of
 * park/closed.h. While a thread waits, each actor that comes to rest adds the counts up, which is as many loads as there are
 * machines. The actor that was the last takes the lock, adds up again, and releases all waiters of that moment.
 *
 * The second sum is under the lock because a waiter may have entered in between: after a send of its own, which the first sum
 * did not include.
 *
 * I1  A waiter is counted as a watcher from before it enters until it has left.
 */
#include "actor/wait_quiet.h"

#include <assert.h>
#include <errno.h>

#include "actor/actors.h"
#include "park/closed.h"
#include "wait/waker.h"

/* ---- the counts ---- */

/* Machines stay while the runtime lives, and so do their counts. */
static struct bz_busy_count *count_at(void *runtime, unsigned i)
{
    struct bz_runtime *rt = runtime;
    struct bz_machine *m = i < rt->machines.max ? bz_machines_at(rt, i) : NULL;
    return m != NULL ? &m->busy : NULL;
}

/* ---- the queue ---- */

static void lock(void *runtime)
{
    struct bz_runtime *rt = runtime;
    bz_lock_take(&bz_actors_of(rt)->quiet_lock, rt->os);
}

static void unlock(void *runtime)
{
    struct bz_runtime *rt = runtime;
    bz_lock_drop(&bz_actors_of(rt)->quiet_lock, rt->os);
}

static struct bz_list *queue(void *runtime)
{
    struct bz_runtime *rt = runtime;
    return bz_busy_is_none(&rt->busy, count_at, rt) ? NULL : &bz_actors_of(rt)->quiet;
}

static const struct bz_closed_ops quiet = BZ_CLOSED_OPS("quiet actors", lock, unlock, queue);

void bz_quiet_look(struct bz_runtime *rt)
{
    if (!bz_busy_was_last(&rt->busy, count_at, rt))
        return;
    lock(rt);
    if (queue(rt) == NULL)
        bz_closed_end(&quiet, rt, &bz_actors_of(rt)->quiet);
    else
        unlock(rt);
}

static void look(void *runtime)
{
    bz_quiet_look(runtime);
}

static void nothing(void *runtime)
{
    (void)runtime;
}

struct bz_wake bz_quiet_wake(struct bz_runtime *rt)
{
    static const blitz_waker_ops ops = {nothing, look, look, nothing};
    return (struct bz_wake){.kind = BZ_WAKE_WAKER, .waker = {&ops, rt}};
}

/* ---- the call and the future ---- */

/* Begin to wait. 0: the caller watches; 1: no actor was ever there; else an error. */
static int begin(struct bz_runtime *rt)
{
    struct bz_actor *me = bz_actor_self();
    if (rt == NULL)
        return -EINVAL;
    if (me != NULL && me->task.rt == rt)
        return -EDEADLK; /* it would wait for itself */
    if (bz_actors_of(rt) == NULL)
        return 1;
    bz_busy_watch(&rt->busy, &rt->barrier); /* I1 */
    return 0;
}

int blitz_actors_wait_quiet(blitz_runtime *runtime, blitz_deadline until)
{
    struct bz_runtime *rt = bz_actor_runtime_or_mine(runtime);
    int rc = begin(rt);
    if (rc != 0)
        return rc > 0 ? 0 : rc;
    rc = bz_closed_wait(&quiet, rt, bz_os_here(), until);
    bz_busy_unwatch(&rt->busy); /* I1 */
    return rc;
}

struct quiet_wait {
    struct bz_closed_wait wait;
    bool is_begun;
};

static_assert(sizeof(struct quiet_wait) <= sizeof(((blitz_actors_wait_quiet_future *)NULL)->inside),
              "it has room");

static blitz_actors_wait_quiet_future *future_of(blitz_future *future)
{
    return BZ_CONTAINER_OF(future, blitz_actors_wait_quiet_future, future);
}

static struct quiet_wait *wait_of(blitz_actors_wait_quiet_future *f)
{
    return (struct quiet_wait *)f->inside;
}

static void end(struct quiet_wait *w)
{
    struct bz_runtime *rt = w->wait.of;
    bz_busy_unwatch(&rt->busy); /* I1 */
}

static blitz_poll quiet_poll(blitz_future *future, const blitz_waker *waker)
{
    blitz_actors_wait_quiet_future *f = future_of(future);
    struct quiet_wait *w = wait_of(f);
    if (f->result != -EINPROGRESS)
        return BLITZ_READY;
    int rc = w->is_begun ? 0 : begin(w->wait.of);
    if (rc != 0) {
        f->result = rc > 0 ? 0 : rc;
        return BLITZ_READY;
    }
    w->is_begun = true;
    if (bz_closed_wait_poll(&w->wait, &f->result, waker) != BLITZ_READY)
        return BLITZ_PENDING;
    end(w);
    return BLITZ_READY;
}

static void quiet_cancel(blitz_future *future)
{
    blitz_actors_wait_quiet_future *f = future_of(future);
    struct quiet_wait *w = wait_of(f);
    if (f->result != -EINPROGRESS)
        return;
    if (!w->is_begun) {
        f->result = -ECANCELED;
        return;
    }
    bz_closed_wait_cancel(&w->wait, &f->result);
    end(w);
}

static int quiet_output(blitz_future *future)
{
    return future_of(future)->result;
}

void blitz_actors_wait_quiet_future_init(blitz_actors_wait_quiet_future *f, blitz_runtime *runtime)
{
    static const blitz_future_ops ops = {"quiet actors", BLITZ_REVOCABLE, quiet_poll, quiet_cancel,
                                         quiet_output};
    f->future.ops = &ops;
    f->result = -EINPROGRESS;
    *wait_of(f) = (struct quiet_wait){.is_begun = false};
    bz_closed_wait_init(&wait_of(f)->wait, &quiet, bz_actor_runtime_or_mine(runtime));
}
