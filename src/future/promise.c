/*
 * promise.c - completed once, from anywhere.
 *
 * A promise is one object on the heap, because either end may be the last to leave, and one lock guards all of it.
 * Both ends are the same address under two names. A completion from a callback is rare compared with the work that it
 * waits for (a foreign library, a thread). So there is only the plain form: a completion
 * is two locked instructions, and waiting for one allocates nothing.
 *
 * The waiters are nodes in their futures, on a list. The completer removes them one by one and
 * wakes each with the lock dropped, because wakers are user code. It holds the completing end meanwhile,
 * so the promise stays. A future that is cancelled removes itself under the lock. Its waker may be
 * in the completer's hands by then, and the completer owns it.
 *
 * Rejected: one word with a waker beside it, as oneshot channels have (blitz/chan.h): one waiter
 * only, and half the cost of a foreign callback is elsewhere. Freeing with the last completer:
 * a waiter may not have read the result yet.
 *
 * I1  is_over is set once, under the lock, together with error and value.
 * I2  A future is on the list only while it is out and not is_over. The
 *     completer, its own poll, or its cancel removes it.
 * I3  refs is the number of handles of both ends; the thread that takes it to 0 has the only access.
 */
#include <assert.h>
#include <errno.h>

#include "base/alloc.h"
#include "base/list.h"
#include "blitz/promise.h"
#include "os/lock.h"
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

struct waiter {
    struct promise *promise;
    struct bz_list in; /* guarded by the promise's lock, as is waker */
    blitz_waker waker;
};

static_assert(sizeof(struct waiter) <= sizeof(((blitz_promise_future *)NULL)->inside),
              "it has room");

static struct waiter *waiter_of(blitz_promise_future *f)
{
    return (struct waiter *)f->inside;
}

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
    bz_lock_init(&p->lock);
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

/* Remove one waiter and take its waker. Return false if there is none. */
static bool take_waiter(struct promise *p, blitz_waker *out)
{
    struct bz_list *first = bz_list_take_front(&p->waiting);
    if (first == NULL)
        return false;
    struct waiter *w = BZ_CONTAINER_OF(first, struct waiter, in);
    *out = w->waker;
    w->waker = (blitz_waker){NULL, NULL};
    return true;
}

/* Complete the promise and wake the waiters. Called under the lock, which it drops. The caller holds an end. */
static void end(struct promise *p, int error, void *value)
{
    blitz_waker waker;
    p->is_over = true; /* I1 */
    p->error = error;
    p->value = value;
    while (take_waiter(p, &waker)) {
        unlock(p);
        blitz_waker_wake(&waker);
        lock(p);
    }
    unlock(p);
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

/* ---- waiting ---- */

/* Take the result of a completed promise. Under the lock. */
static void take_outcome(blitz_promise_future *f, struct promise *p)
{
    f->result = p->error;
    f->value = p->value;
    p->value = NULL;
}

/* Register the new waker, and leave the old one in *waker for the caller to drop. If the promise is completed, take
 * the result and return false. */
static bool enlist(blitz_promise_future *f, blitz_waker *waker)
{
    struct waiter *w = waiter_of(f);
    struct promise *p = w->promise;
    lock(p);
    bool is_over = p->is_over;
    blitz_waker old = w->waker;
    if (is_over) {
        bz_list_remove(&w->in); /* I2 */
        w->waker = (blitz_waker){NULL, NULL};
        take_outcome(f, p);
    } else {
        w->waker = *waker;
        *waker = old;
        if (!bz_list_is_linked(&w->in))
            bz_list_push_back(&p->waiting, &w->in);
    }
    unlock(p);
    if (is_over)
        blitz_waker_drop(&old);
    return !is_over;
}

static blitz_poll promise_poll(blitz_future *future, const blitz_waker *waker)
{
    blitz_promise_future *f = BZ_CONTAINER_OF(future, blitz_promise_future, future);
    struct waiter *w = waiter_of(f);
    if (w->promise == NULL)
        return BLITZ_READY;                       /* it was ready before */
    blitz_waker spare = blitz_waker_clone(waker); /* not under the lock: it is user code */
    bool waits = enlist(f, &spare);
    blitz_waker_drop(&spare);
    if (waits)
        return BLITZ_PENDING;
    w->promise = NULL;
    return BLITZ_READY;
}

static void promise_cancel(blitz_future *future)
{
    struct waiter *w = waiter_of(BZ_CONTAINER_OF(future, blitz_promise_future, future));
    struct promise *p = w->promise;
    if (p == NULL)
        return;
    lock(p);
    bz_list_remove(&w->in); /* I2 */
    blitz_waker old = w->waker;
    w->waker = (blitz_waker){NULL, NULL};
    unlock(p);
    blitz_waker_drop(&old);
}

static int promise_output(blitz_future *future)
{
    return BZ_CONTAINER_OF(future, blitz_promise_future, future)->result;
}

void blitz_promise_await_future_init(blitz_promise_future *f, blitz_promise *p)
{
    static const blitz_future_ops ops = {"promise", BLITZ_DETACHABLE, promise_poll, promise_cancel,
                                         promise_output};
    f->future.ops = &ops;
    f->result = 0;
    f->value = NULL;
    struct waiter *w = waiter_of(f);
    w->promise = (struct promise *)p;
    bz_list_init(&w->in);
    w->waker = (blitz_waker){NULL, NULL};
}

int blitz_promise_await(blitz_promise *p, void **value, blitz_deadline until)
{
    blitz_promise_future f;
    blitz_promise_await_future_init(&f, p);
    int err = blitz_await(&f.future, until);
    if (err != 0)
        return err;
    if (value != NULL)
        *value = f.value;
    return f.result;
}
