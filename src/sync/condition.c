/*
 * condition.c - a queue of waiters for a signal, each with a mutex that it must lock again.
 *
 * A waiter first joins the queue and then unlocks the mutex. So a thread that changes the guarded state and signals
 * finds the waiter in the queue. Between the two steps the waiter is not parked yet. A signal that comes then marks
 * the node, and the park finds the mark (waitq.h). Unlocking from the park's hook instead would run the wakers of
 * unrelated futures there.
 *
 * Locking again cannot be given up: the caller holds the mutex before and after. So it is done under
 * a shield and without a deadline. A stackless waiter does it as the second half of its future, with
 * the same node, which is in one queue at a time. A cancel in that half leaves the queue of the mutex
 * and then gives the signal back to the condition, which the future remembers for that.
 *
 * Rejected: moving the woken nodes from this queue to the mutex's ("wait morphing"). An unlock wakes one waiter at a
 * time, so a broadcast causes no stampede for the mutex except for the wake-ups themselves. Wait morphing would also
 * have to hold the two locks at once.
 *
 * A broadcast wakes the tasks that wait at that moment. A round number tells them apart, as in notify.c.
 *
 * No atomics: the lock of the wait queue guards everything.
 */
#include "blitz/condition.h"

#include <assert.h>
#include <errno.h>

#include "sync/waitq.h"

struct bz_condition {
    struct bz_waitq q;
    uint64_t round;   /* number of broadcasts; guarded by q.lock */
    uint64_t signals; /* the current serve grants or drops them; guarded by q.lock */
};

enum { BY_BROADCAST = 1 };

static_assert(sizeof(struct bz_condition) <= sizeof(blitz_condition), "it has room");

static struct bz_condition *of(blitz_condition *condition)
{
    return (struct bz_condition *)condition;
}

/* ---- under the lock ---- */

static bool condition_enter(struct bz_request *r, struct bz_wakelist *wakes)
{
    struct bz_sync_op *n = bz_sync_op_of(r);
    (void)wakes;
    n->since = ((struct bz_condition *)n->owner)->round;
    bz_sync_op_join(n);
    return false;
}

static void condition_serve(void *owner, struct bz_wakelist *wakes)
{
    struct bz_condition *c = owner;
    for (struct bz_sync_op *n; (n = bz_waitq_first(&c->q)) != NULL;) {
        bool is_by_broadcast = n->since != c->round;
        if (!is_by_broadcast && c->signals == 0)
            return;
        if (bz_wakelist_is_full(wakes)) {
            wakes->has_more = true;
            return;
        }
        bz_set(&n->request.waiter.result, is_by_broadcast ? BY_BROADCAST : 0);
        if (bz_sync_op_give(n, wakes) && !is_by_broadcast)
            c->signals--;
    }
    c->signals = 0; /* no waiter: the signals are lost */
}

static void condition_give_back(struct bz_sync_op *n, struct bz_wakelist *wakes)
{
    (void)wakes;
    if (bz_get(&n->request.waiter.result) != BY_BROADCAST)
        ((struct bz_condition *)n->owner)->signals++;
}

static blitz_poll wait_future_poll(blitz_future *f, const blitz_waker *waker);

static const struct bz_sync_op_ops waiting = {
    .look.future = {"condition", BLITZ_REVOCABLE, wait_future_poll, bz_sync_future_cancel,
                    bz_sync_future_output},
    .request = BZ_SYNC_OP_REQUEST("condition", condition_enter, NULL),
    .serve = condition_serve,
    .give_back = condition_give_back};

/* ---- for users ---- */

void blitz_condition_init(blitz_condition *condition)
{
    *condition = (blitz_condition)BLITZ_CONDITION_INIT;
}

static void lock_again(blitz_mutex *m)
{
    blitz_shield();
    int err = blitz_mutex_lock(m, BLITZ_FOREVER);
    blitz_unshield();
    BZ_CHECK(err == 0, "a mutex could not be locked again: %d", err);
}

int blitz_condition_wait(blitz_condition *condition, blitz_mutex *m, blitz_deadline until)
{
    struct bz_condition *c = of(condition);
    const struct bz_os *os = bz_sync_os();
    struct bz_wait w;
    struct bz_sync_op n;
    bz_sync_op_init(&n, &c->q, c, &waiting, 0, false);
    n.request.waiter.wait = &w;
    bz_waitq_take(&c->q, os);
    (void)condition_enter(&n.request, NULL);
    bz_waitq_drop(&c->q, os);
    blitz_mutex_unlock(m);
    bz_wait_begin(&w, os, "condition", until);
    int err = bz_request_park(&n.request, &w);
    lock_again(m);
    return err;
}

void blitz_condition_signal(blitz_condition *condition)
{
    struct bz_condition *c = of(condition);
    const struct bz_os *os = bz_sync_os();
    struct bz_wakelist wakes;
    bz_wakelist_init(&wakes);
    bz_waitq_take(&c->q, os);
    c->signals++;
    condition_serve(c, &wakes);
    bz_waitq_end(&c->q, c, &waiting, &wakes, os);
}

void blitz_condition_broadcast(blitz_condition *condition)
{
    struct bz_condition *c = of(condition);
    const struct bz_os *os = bz_sync_os();
    struct bz_wakelist wakes;
    bz_wakelist_init(&wakes);
    bz_waitq_take(&c->q, os);
    c->round++;
    condition_serve(c, &wakes);
    bz_waitq_end(&c->q, c, &waiting, &wakes, os);
}

/* ---- as a future: first the signal, then the mutex ---- */

static blitz_mutex *mutex_of(const struct bz_sync_op *n)
{
    return (blitz_mutex *)(uintptr_t)n->want; /* NOLINT: a pointer in a number */
}

/* The second half of the future: the node is now a waiter of the mutex. */
struct relock {
    struct bz_sync_op node;
    struct bz_condition *condition; /* the signal came from it; NULL: a broadcast did */
};

static_assert(sizeof(struct relock) <= sizeof(((blitz_sync_future *)NULL)->inside), "it has room");

static struct relock *relock_of(blitz_future *future)
{
    return (struct relock *)BZ_CONTAINER_OF(future, blitz_sync_future, future)->inside;
}

static blitz_poll relock_poll(blitz_future *future, const blitz_waker *waker)
{
    return bz_sync_op_ops_of(&relock_of(future)->node)->look.future.poll(future, waker);
}

/* Leave the queue of the mutex. The signal goes to the next waiter of the condition. */
static void relock_cancel(blitz_future *future)
{
    struct relock *r = relock_of(future);
    struct bz_condition *c = r->node.q != NULL ? r->condition : NULL; /* NULL: it was ready */
    bz_sync_op_ops_of(&r->node)->look.future.cancel(future);
    if (c != NULL)
        blitz_condition_signal((blitz_condition *)c);
}

/* Turn the future into a wait for the mutex, because the signal has come. */
static blitz_poll go_on_to_lock(blitz_sync_future *f, struct bz_condition *c, blitz_mutex *m,
                                const blitz_waker *waker)
{
    static const blitz_future_ops ops = {"mutex", BLITZ_REVOCABLE, relock_poll, relock_cancel,
                                         bz_sync_future_output};
    struct relock *r = relock_of(&f->future);
    bool is_by_broadcast = f->result == BY_BROADCAST;
    blitz_mutex_lock_future_init(f, m);
    f->future.ops = &ops;
    r->condition = is_by_broadcast ? NULL : c;
    return relock_poll(&f->future, waker);
}

static blitz_poll wait_future_poll(blitz_future *future, const blitz_waker *waker)
{
    blitz_sync_future *f = BZ_CONTAINER_OF(future, blitz_sync_future, future);
    struct bz_sync_op *n = bz_sync_future_node(f);
    struct bz_condition *c = n->owner;
    blitz_mutex *m = mutex_of(n);
    bool is_first = !n->request.waiter.was_polled;
    blitz_poll poll = bz_sync_future_poll(future, waker);
    if (is_first)
        blitz_mutex_unlock(m);
    return poll == BLITZ_PENDING ? BLITZ_PENDING : go_on_to_lock(f, c, m, waker);
}

void blitz_condition_wait_future_init(blitz_sync_future *f, blitz_condition *condition,
                                      blitz_mutex *m)
{
    struct bz_condition *c = of(condition);
    bz_sync_future_init(f, &c->q, c, &waiting, (uintptr_t)m);
}
