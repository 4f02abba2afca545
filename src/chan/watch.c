/*
 * watch.c - the latest value, its version, and those who wait for another.
 *
 * A lock, a value, a number. Who waits on a stack is given the value by the sender that changes it; a
 * future is told, and looks. Nobody waits for one version: whoever comes to the lock gets the latest.
 *
 * Rejected: a sequence lock for readers. It saves a locked instruction where a value is small and never
 * changes, but readers race with the copy of the writer, which C has no word for.
 *
 * I1  Who is in line has seen the latest version, but for those that a sender is about to come back
 *     for.
 *
 * [A] unref: refs acq_rel -> unref: refs acq_rel    all uses come before the free
 */
#include <assert.h>

#include "base/alloc.h"
#include "blitz/watch.h"
#include "chan/line.h"

struct blitz_watch {
    struct bz_lock lock; /* rank WAIT; guards what is not said to be constant */
    bool is_closed;
    uint64_t version;
    struct bz_list receivers; /* those who wait */
    bz_atomic(uint32_t) refs;
    const struct bz_os *os; /* constant, as is */
    size_t size;
    _Alignas(max_align_t) char value[];
};

/* One receive. */
struct receive {
    struct bz_waiter waiter;
    struct blitz_watch *of;
    void *value;
    uint64_t *seen;
};

int blitz_watch_new(size_t value_size, const void *value, blitz_watch **out)
{
    if (value_size == 0 || value_size > PTRDIFF_MAX / 2 || value == NULL || out == NULL)
        return -EINVAL;
    struct blitz_watch *w =
        bz_alloc(&bz_allocator_libc, sizeof *w + value_size, _Alignof(max_align_t));
    if (w == NULL)
        return -ENOMEM;
    *w = (struct blitz_watch){.version = 1, .os = bz_os_here(), .size = value_size};
    bz_lock_init_ranked(&w->lock, BZ_RANK_WAIT);
    bz_list_init(&w->receivers);
    bz_atomic_init(&w->refs, 1);
    bz_value_copy(w->value, value, value_size);
    *out = w;
    return 0;
}

blitz_watch *blitz_watch_ref(blitz_watch *w)
{
    bz_fetch_add_relaxed(&w->refs, 1); /* relaxed: the caller holds one */
    return w;
}

void blitz_watch_unref(blitz_watch *w)
{
    if (w == NULL || bz_fetch_sub_acqrel(&w->refs, 1) != 1) /* [A] */
        return;
    BZ_CHECK(bz_list_is_empty(&w->receivers), "watch %p: its last holder goes while somebody waits",
             (void *)w);
    bz_free(&bz_allocator_libc, w, sizeof *w + w->size);
}

/* One step, under the lock: 0, -EAGAIN, -EPIPE. */
static int look(struct receive *r)
{
    struct blitz_watch *w = r->of;
    if (*r->seen == w->version)
        return w->is_closed ? -EPIPE : -EAGAIN;
    bz_value_copy(r->value, w->value, w->size);
    *r->seen = w->version;
    return 0;
}

/* Serve those who wait; true: not all of them. */
static bool settle(struct blitz_watch *of, struct bz_owed *owed)
{
    struct bz_waiter *w;
    while (!bz_owed_is_full(owed) && (w = bz_line_first(&of->receivers)) != NULL) {
        struct receive *r = BZ_CONTAINER_OF(w, struct receive, waiter);
        if (*r->seen == of->version && !of->is_closed)
            return false; /* it came since, and so did all behind it: I1 */
        if (w->wait == NULL)
            bz_waiter_notify(w, owed);
        else if (bz_waiter_win(w, 0, owed))
            w->result = look(r);
    }
    return !bz_list_is_empty(&of->receivers);
}

/* Under the lock, which is dropped: something has changed for all who wait. */
static void tell_all(struct blitz_watch *w)
{
    struct bz_owed owed;
    bool has_more;
    do {
        bz_owed_init(&owed);
        has_more = settle(w, &owed);
        bz_lock_drop(&w->lock, w->os);
        bz_owed_pay(&owed);
        if (has_more)
            bz_lock_take(&w->lock, w->os);
    } while (has_more);
}

int blitz_watch_send(blitz_watch *w, const void *value)
{
    bz_lock_take(&w->lock, w->os);
    if (w->is_closed) {
        bz_lock_drop(&w->lock, w->os);
        return -EPIPE;
    }
    bz_value_copy(w->value, value, w->size);
    w->version++;
    tell_all(w);
    return 0;
}

void blitz_watch_close(blitz_watch *w)
{
    bz_lock_take(&w->lock, w->os);
    w->is_closed = true;
    tell_all(w);
}

uint64_t blitz_watch_get(blitz_watch *w, void *value)
{
    bz_lock_take(&w->lock, w->os);
    bz_value_copy(value, w->value, w->size);
    uint64_t version = w->version;
    bz_lock_drop(&w->lock, w->os);
    return version;
}

/* ---- receiving ---- */

static bool receive_hook(struct bz_wait *w, void *arg)
{
    struct receive *r = arg;
    struct blitz_watch *of = r->of;
    const struct bz_os *os = of->os;
    bool waits;
    bz_lock_take(&of->lock, os);
    int rc = look(r);
    if (rc == -EAGAIN) {
        bz_list_push_back(&of->receivers, &r->waiter.in);
        waits = bz_wait_publish(w);
    } else {
        r->waiter.result = rc;
        waits = bz_wait_over(w, BZ_WAIT_WOKEN);
    }
    bz_lock_drop(&of->lock, os);
    return waits;
}

static int receive_waiting(struct receive *r, blitz_deadline until)
{
    struct blitz_watch *of = r->of;
    struct bz_wait w;
    bz_wait_begin(&w, of->os, "watch", until);
    uint32_t outcome = bz_wait_refuse(&w);
    if (outcome != BZ_WAIT_OPEN)
        return bz_wait_error(outcome);
    bz_waiter_init(&r->waiter, &w, BZ_WAIT_WOKEN);
    outcome = bz_wait_park(&w, receive_hook, r);
    if (outcome < BZ_WAIT_WOKEN || bz_wait_is_early(&w)) {
        bz_lock_take(&of->lock, of->os);
        if (outcome < BZ_WAIT_WOKEN)
            bz_list_remove(&r->waiter.in);
        bz_lock_drop(&of->lock, of->os);
    }
    return outcome < BZ_WAIT_WOKEN ? bz_wait_error(outcome) : r->waiter.result;
}

/* NOLINTNEXTLINE(readability-non-const-parameter): it is written through the request */
int blitz_watch_recv(blitz_watch *w, void *value, uint64_t *seen, blitz_deadline until)
{
    struct receive r = {.of = w, .value = value, .seen = seen};
    bz_lock_take(&w->lock, w->os);
    int rc = look(&r);
    bz_lock_drop(&w->lock, w->os);
    return rc == -EAGAIN ? receive_waiting(&r, until) : rc;
}

/* ---- as a future ---- */

static_assert(sizeof(struct receive) <= sizeof(((blitz_watch_future *)NULL)->inside),
              "it has room");

static struct receive *receive_of(blitz_future *future)
{
    return (struct receive *)BZ_CONTAINER_OF(future, blitz_watch_future, future)->inside;
}

static blitz_poll watch_poll(blitz_future *future, const blitz_waker *waker)
{
    blitz_watch_future *f = BZ_CONTAINER_OF(future, blitz_watch_future, future);
    struct receive *r = receive_of(future);
    if (f->result != -EINPROGRESS)
        return BLITZ_READY; /* as before */
    struct blitz_watch *w = r->of;
    blitz_waker mine = blitz_waker_clone(waker);
    bz_lock_take(&w->lock, w->os);
    blitz_waker old = r->waiter.waker;
    r->waiter.waker = (blitz_waker){NULL, NULL};
    bz_list_remove(&r->waiter.in);
    int rc = look(r);
    if (rc == -EAGAIN) {
        r->waiter.waker = mine;
        mine = (blitz_waker){NULL, NULL};
        bz_list_push_back(&w->receivers, &r->waiter.in);
    }
    bz_lock_drop(&w->lock, w->os);
    blitz_waker_drop(&old);
    blitz_waker_drop(&mine);
    f->result = rc == -EAGAIN ? -EINPROGRESS : rc;
    return rc == -EAGAIN ? BLITZ_PENDING : BLITZ_READY;
}

static void watch_cancel(blitz_future *future)
{
    blitz_watch_future *f = BZ_CONTAINER_OF(future, blitz_watch_future, future);
    struct receive *r = receive_of(future);
    struct blitz_watch *w = r->of;
    if (f->result != -EINPROGRESS)
        return;
    f->result = -ECANCELED;
    bz_lock_take(&w->lock, w->os);
    bz_list_remove(&r->waiter.in);
    bz_lock_drop(&w->lock, w->os);
    blitz_waker_drop(&r->waiter.waker);
}

static int watch_output(blitz_future *future)
{
    return BZ_CONTAINER_OF(future, blitz_watch_future, future)->result;
}

/* NOLINTNEXTLINE(readability-non-const-parameter): as above */
void blitz_watch_future_init(blitz_watch_future *f, blitz_watch *w, void *value, uint64_t *seen)
{
    static const blitz_future_ops ops = {"watch", BLITZ_REVOCABLE, watch_poll, watch_cancel,
                                         watch_output};
    struct receive *r = receive_of(&f->future);
    f->future.ops = &ops;
    f->result = -EINPROGRESS;
    *r = (struct receive){.of = w, .value = value, .seen = seen};
    bz_waiter_init(&r->waiter, NULL, 0);
}
