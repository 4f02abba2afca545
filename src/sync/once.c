/*
 * once.c - empty, being made, or there for good.
 *
 *            enter           made          failed         set
 *   EMPTY    BUSY: make it   -             -              DONE
 *   BUSY     waits           DONE          EMPTY          refused
 *   DONE     has it          -             -              refused
 *
 * The word: maker << 2 | state. The maker is a task id. A maker that asks for the value it is making gets an error
 * instead of waiting for itself. Getting a value that is there is one load.
 *
 * After a failure the cell is empty. The first waiter is granted the turn, not the error: it may
 * have another function, or better luck. If that waiter has left, the next one gets the turn.
 *
 * All changes are made under the lock of the wait queue; only DONE is read without it.
 *
 * I1  BUSY -> exactly one caller, or future that was granted its turn, must make the value.
 * I2  value is written before DONE and constant after.
 *
 * [V] done: word release -> get: word acquire   the value, and all writes of its maker, are visible
 */
#include "blitz/once.h"

#include <assert.h>
#include <errno.h>

#include "sync/waitq.h"

enum { EMPTY, BUSY, DONE, STATE = 3, SHIFT = 2 };

/* The waiter's result if it must make the value. Neither an errno nor a result for the user. */
enum { YOUR_TURN = 1 };

struct bz_once {
    bz_atomic(uint64_t) word;
    bz_shared(void *) value;
    struct bz_waitq q;
};

static_assert(sizeof(struct bz_once) <= sizeof(blitz_once), "it has room");

static struct bz_once *of(blitz_once *once)
{
    return (struct bz_once *)once;
}

static uint64_t id_of_caller(void)
{
    struct bz_task *me = bz_task_self();
    return me != NULL ? me->id : 0;
}

/* ---- under the lock ---- */

static uint64_t word_of(struct bz_once *o)
{
    return bz_load_relaxed(&o->word); /* relaxed: the lock is held */
}

static bool once_enter(struct bz_request *r, struct bz_wakelist *wakes)
{
    struct bz_sync_op *n = bz_sync_op_of(r);
    struct bz_once *o = n->owner;
    uint64_t word = word_of(o);
    (void)wakes;
    n->want = id_of_caller();
    switch (word & STATE) {
    case EMPTY:
        bz_store_relaxed(&o->word, n->want << SHIFT | BUSY); /* relaxed: the lock is held */
        bz_set(&n->request.waiter.result, YOUR_TURN);
        return true;
    case BUSY:
        if (n->want != 0 && word >> SHIFT == n->want) {
            bz_set(&n->request.waiter.result, -EDEADLK);
            return true;
        }
        bz_sync_op_join(n);
        return false;
    default:
        return true;
    }
}

static void once_serve(void *owner, struct bz_wakelist *wakes)
{
    struct bz_once *o = owner;
    for (struct bz_sync_op *n; (n = bz_waitq_first(&o->q)) != NULL;) {
        uint64_t state = word_of(o) & STATE;
        if (state == BUSY)
            return;
        if (bz_wakelist_is_full(wakes)) {
            wakes->has_more = true;
            return;
        }
        bz_set(&n->request.waiter.result, state == EMPTY ? YOUR_TURN : 0);
        if (state == EMPTY)
            bz_store_relaxed(&o->word, n->want << SHIFT | BUSY); /* relaxed: the lock is held */
        if (!bz_sync_op_give(n, wakes) && state == EMPTY)
            bz_store_relaxed(&o->word, EMPTY); /* relaxed: the lock is held */
    }
}

static void once_give_back(struct bz_sync_op *n, struct bz_wakelist *wakes)
{
    (void)wakes;
    if (bz_get(&n->request.waiter.result) == YOUR_TURN)
        bz_store_relaxed(&((struct bz_once *)n->owner)->word,
                         EMPTY); /* relaxed: the lock is held */
}

static blitz_poll once_future_poll(blitz_future *f, const blitz_waker *waker);

static const struct bz_sync_op_ops getting = {
    .look.future = {"once", BLITZ_REVOCABLE, once_future_poll, bz_sync_future_cancel,
                    bz_sync_future_output},
    .request = BZ_SYNC_OP_REQUEST("once", once_enter, NULL),
    .serve = once_serve,
    .give_back = once_give_back};

/* ---- making ---- */

/* Under the lock: publish the value, or return to EMPTY after an error. */
static void finish(struct bz_once *o, int err, void *value)
{
    if (err != 0) {
        bz_store_relaxed(&o->word, EMPTY); /* relaxed: the lock is held */
        return;
    }
    bz_set(&o->value, value);
    bz_store_release(&o->word, DONE); /* [V] */
}

/* Make the value. The caller has the turn: I1. */
static int make(struct bz_once *o, blitz_once_fn fn, void *arg)
{
    void *value = NULL;
    int err = fn(arg, &value);
    const struct bz_os *os = bz_sync_os(); /* after fn, which may have waited */
    struct bz_wakelist wakes;
    bz_wakelist_init(&wakes);
    bz_waitq_take(&o->q, os);
    finish(o, err, value);
    once_serve(o, &wakes);
    bz_waitq_end(&o->q, o, &getting, &wakes, os);
    return err;
}

/* ---- for users ---- */

void blitz_once_init(blitz_once *once)
{
    *once = (blitz_once)BLITZ_ONCE_INIT;
}

int blitz_once_try_get(blitz_once *once, void **out)
{
    struct bz_once *o = of(once);
    if (bz_load_acquire(&o->word) != DONE) /* [V] */
        return -EAGAIN;
    if (out != NULL)
        *out = bz_get(&o->value);
    return 0;
}

int blitz_once_get(blitz_once *once, blitz_once_fn fn, void *arg, void **out, blitz_deadline until)
{
    struct bz_once *o = of(once);
    bz_look_up(); /* ask.h */
    bz_os_delay(bz_sync_os(), BZ_OS_AT_PUBLISH);
    if (BZ_LIKELY(blitz_once_try_get(once, out) == 0))
        return 0;
    int err = bz_waitq_acquire(&o->q, o, &getting, 0, until);
    if (err == YOUR_TURN)
        err = make(o, fn, arg);
    return err != 0 ? err : blitz_once_try_get(once, out);
}

int blitz_once_set(blitz_once *once, void *value)
{
    struct bz_once *o = of(once);
    const struct bz_os *os = bz_sync_os();
    struct bz_wakelist wakes;
    bz_wakelist_init(&wakes);
    bz_waitq_take(&o->q, os);
    uint64_t state = word_of(o) & STATE;
    if (state == EMPTY)
        finish(o, 0, value);
    once_serve(o, &wakes);
    bz_waitq_end(&o->q, o, &getting, &wakes, os);
    return state == EMPTY ? 0 : state == BUSY ? -EBUSY : -EEXIST;
}

int blitz_lazy_get(blitz_lazy *l, void **out, blitz_deadline until)
{
    return blitz_once_get(&l->once, l->fn, l->arg, out, until);
}

/* ---- as a future ---- */

/* The first members are those of blitz_sync_future. */
static_assert(offsetof(blitz_once_future, result) == offsetof(blitz_sync_future, result) &&
                  offsetof(blitz_once_future, inside) == offsetof(blitz_sync_future, inside) &&
                  offsetof(blitz_once_future, value) == sizeof(blitz_sync_future),
              "one lies in the other");

static blitz_sync_future *wait_of(blitz_once_future *f)
{
    return (blitz_sync_future *)f;
}

static blitz_poll once_future_poll(blitz_future *future, const blitz_waker *waker)
{
    blitz_once_future *f = BZ_CONTAINER_OF(future, blitz_once_future, future);
    blitz_sync_future *wait = wait_of(f);
    bool was_ready = bz_sync_future_node(wait)->q == NULL;
    if (bz_sync_future_poll(future, waker) == BLITZ_PENDING)
        return BLITZ_PENDING;
    if (!was_ready && wait->result == YOUR_TURN)
        wait->result = make(of(f->once), f->fn, f->arg);
    if (wait->result == 0)
        (void)blitz_once_try_get(f->once, &f->value);
    return BLITZ_READY;
}

void blitz_once_get_future_init(blitz_once_future *f, blitz_once *once, blitz_once_fn fn, void *arg)
{
    f->value = NULL;
    f->once = once;
    f->fn = fn;
    f->arg = arg;
    bz_sync_future_init(wait_of(f), &of(once)->q, of(once), &getting, 0);
}
