/*
 * promise.c - completed once, from anywhere.
 *
 * A promise is one object on the heap, because either end may be the last to leave, and one lock guards all of it.
 * Both ends are the same address under two names. A completion from a callback is rare compared with the work that it
 * waits for (a foreign library, a thread). So there is only the plain form: a completion
 * is two locked instructions, and waiting for one allocates nothing.
 *
 * A wait is a request (park/request.h), made by a blocking call or by a future. The completer notifies the waiters, as many
 * as fit into a wake list at a time. It holds the completing end meanwhile, so the promise stays. A waiter that is notified
 * enters again, and takes the result. So the value belongs to the promise until a waiter has run: one that leaves in
 * between leaves it to the next.
 *
 * Rejected: one word with a waker beside it, as oneshot channels have (blitz/chan.h): one waiter
 * only, and half the cost of a foreign callback is elsewhere. Freeing with the last completer:
 * a waiter may not have read the result yet.
 *
 * I1  is_over is set once, under the lock, together with error and value.
 * I2  A waiter joins the queue only while the promise is not is_over.
 * I3  refs is the number of handles of both ends; the thread that takes it to 0 has the only access.
 */
#include <assert.h>
#include <errno.h>

#include "base/alloc.h"
#include "base/list.h"
#include "blitz/promise.h"
#include "os/lock.h"
#include "park/request.h"
#include "proc/ask.h"
#include "proc/state.h"
#include "wait/waker.h"

struct promise {
    const struct bz_os *os; /* constant, as is the next */
    blitz_promise_opts opts;
    struct bz_lock lock;
    unsigned waiters, completers; /* handles of either end; guarded by lock, as is the rest */
    bool is_over;
    int error;
    void *value; /* until a waiter takes it */
    struct bz_list waiting;
};

struct promise_wait {
    struct bz_request request;
    struct promise *of; /* NULL: the future was ready */
    void *value;        /* once the request is done: the caller's */
};

static_assert(sizeof(struct promise_wait) <= sizeof(((blitz_promise_future *)NULL)->inside),
              "it has room");

static void lock(struct promise *p)
{
    bz_lock_take(&p->lock, p->os);
}

static void unlock(struct promise *p)
{
    bz_lock_drop(&p->lock, p->os);
}

int blitz_promise_new(const blitz_promise_opts *opts, blitz_promise **promise,
                      blitz_completer **completer)
{
    if (promise == NULL || completer == NULL)
        return -EINVAL;
    struct promise *p = bz_alloc(&bz_allocator_libc, sizeof *p, _Alignof(struct promise));
    if (p == NULL)
        return -ENOMEM;
    p->os = bz_os_here();
    p->opts = opts != NULL ? *opts : (blitz_promise_opts){NULL, NULL};
    bz_lock_init_ranked(&p->lock, BZ_RANK_WAIT);
    p->waiters = p->completers = 1;
    p->is_over = false;
    p->error = 0;
    p->value = NULL;
    bz_list_init(&p->waiting);
    *promise = (blitz_promise *)p;
    *completer = (blitz_completer *)p;
    return 0;
}

/* ---- completing ---- */

/* Notify waiters. Returns whether some are left, because the list is full. Under the lock. */
static bool notify(struct promise *p, struct bz_wakelist *wakes)
{
    struct bz_waiter *w;
    while ((w = bz_waiter_first(&p->waiting)) != NULL) {
        if (bz_wakelist_is_full(wakes))
            return true;
        (void)!bz_request_notify(BZ_CONTAINER_OF(w, struct bz_request, waiter), wakes);
    }
    return false;
}

/* Complete the promise and wake the waiters. Called under the lock, which it drops. The caller holds an end. */
static void end(struct promise *p, int error, void *value)
{
    struct bz_wakelist wakes;
    p->is_over = true; /* I1 */
    p->error = error;
    p->value = value;
    for (bool has_more = true; has_more;) {
        bz_wakelist_init(&wakes);
        has_more = notify(p, &wakes);
        unlock(p);
        bz_wakelist_deliver(&wakes);
        if (has_more)
            lock(p);
    }
}

static int try_end(struct promise *p, int error, void *value)
{
    lock(p);
    if (p->is_over) {
        unlock(p);
        return -EALREADY;
    }
    end(p, error, value);
    return 0;
}

int blitz_completer_complete(blitz_completer *c, void *value)
{
    return try_end((struct promise *)c, 0, value);
}

int blitz_completer_fail(blitz_completer *c, int error)
{
    return error < 0 ? try_end((struct promise *)c, error, NULL) : -EINVAL;
}

bool blitz_completer_is_wanted(blitz_completer *c)
{
    struct promise *p = (struct promise *)c;
    lock(p);
    bool is_wanted = p->waiters > 0;
    unlock(p);
    return is_wanted;
}

/* ---- handles ---- */

/* Free the promise after the last handle is gone: I3. */
static void promise_free(struct promise *p)
{
    if (p->value != NULL && p->opts.drop != NULL)
        p->opts.drop(p->value, p->opts.ctx);
    bz_free(&bz_allocator_libc, p, sizeof *p);
}

blitz_promise *blitz_promise_ref(blitz_promise *promise)
{
    struct promise *p = (struct promise *)promise;
    lock(p);
    p->waiters++;
    unlock(p);
    return promise;
}

void blitz_promise_unref(blitz_promise *promise)
{
    struct promise *p = (struct promise *)promise;
    if (p == NULL)
        return;
    lock(p);
    bool is_last = --p->waiters == 0 && p->completers == 0; /* I3 */
    unlock(p);
    if (is_last)
        promise_free(p);
}

blitz_completer *blitz_completer_ref(blitz_completer *c)
{
    struct promise *p = (struct promise *)c;
    lock(p);
    p->completers++;
    unlock(p);
    return c;
}

void blitz_completer_unref(blitz_completer *c)
{
    struct promise *p = (struct promise *)c;
    if (p == NULL)
        return;
    lock(p);
    if (p->completers == 1 && !p->is_over) {
        end(p, -EPIPE, NULL); /* we are still counted: the promise stays while we wake */
        lock(p);
    }
    bool is_last = --p->completers == 0 && p->waiters == 0; /* I3 */
    unlock(p);
    if (is_last)
        promise_free(p);
}

/* ---- waiting: the request, under the lock ---- */

static struct promise_wait *wait_of(struct bz_request *r)
{
    return BZ_CONTAINER_OF(r, struct promise_wait, request);
}

static void wait_lock(struct bz_request *r)
{
    lock(wait_of(r)->of);
}

static void wait_unlock(struct bz_request *r, struct bz_wakelist *wakes)
{
    unlock(wait_of(r)->of);
    bz_wakelist_deliver(wakes);
}

/* Take the result, if there is one. */
static bool wait_enter(struct bz_request *r, struct bz_wakelist *wakes)
{
    struct promise *p = wait_of(r)->of;
    (void)wakes;
    if (!p->is_over) {
        bz_waiter_queue(&r->waiter, &p->waiting); /* I2 */
        return false;
    }
    bz_set(&r->waiter.result, p->error);
    wait_of(r)->value = p->value;
    p->value = NULL;
    return true;
}

static bool wait_leave(struct bz_request *r, struct bz_wakelist *wakes)
{
    (void)wakes;
    bz_waiter_leave(&r->waiter);
    return true;
}

static const struct bz_request_ops wait_ops = {.what = "promise",
                                               .lock = wait_lock,
                                               .unlock = wait_unlock,
                                               .enter = wait_enter,
                                               .leave = wait_leave};

/* ---- the blocking call, and the future ---- */

int blitz_promise_await(blitz_promise *promise, void **value, blitz_deadline until)
{
    struct promise_wait w = {.request.ops = &wait_ops, .of = (struct promise *)promise};
    bz_look_up(); /* ask.h */
    bz_waiter_init(&w.request.waiter, NULL, BZ_WAIT_WOKEN);
    int err = bz_request_wait(&w.request, bz_os_here(), until);
    if (value != NULL && err == 0)
        *value = w.value;
    return err;
}

static struct promise_wait *inside(blitz_promise_future *f)
{
    return (struct promise_wait *)(void *)f->inside;
}

static blitz_poll promise_poll(blitz_future *future, const blitz_waker *waker)
{
    blitz_promise_future *f = BZ_CONTAINER_OF(future, blitz_promise_future, future);
    struct promise_wait *w = inside(f);
    if (w->of == NULL)
        return BLITZ_READY; /* it was ready before */
    if (!bz_request_poll(&w->request, waker))
        return BLITZ_PENDING;
    f->result = bz_get(&w->request.waiter.result);
    f->value = w->value;
    w->of = NULL;
    return BLITZ_READY;
}

static void promise_cancel(blitz_future *future)
{
    struct promise_wait *w = inside(BZ_CONTAINER_OF(future, blitz_promise_future, future));
    if (w->of != NULL)
        (void)bz_request_cancel(&w->request);
}

static int promise_output(blitz_future *future)
{
    return BZ_CONTAINER_OF(future, blitz_promise_future, future)->result;
}

void blitz_promise_await_future_init(blitz_promise_future *f, blitz_promise *p)
{
    static const blitz_future_ops ops = {"promise", BLITZ_DETACHABLE, promise_poll, promise_cancel,
                                         promise_output};
    struct promise_wait *w = inside(f);
    f->future.ops = &ops;
    f->result = 0;
    f->value = NULL;
    *w = (struct promise_wait){.request.ops = &wait_ops, .of = (struct promise *)p};
    bz_waiter_init_polled(&w->request.waiter);
}
