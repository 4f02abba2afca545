/*
 * broadcast.c - every receiver gets every value: a ring that senders overwrite.
 *
 * The values of a broadcast are numbered from 0; the ring holds the last `slots` of them. A receiver
 * is nothing but the number of the value it wants next, so it costs nothing to have many of them, and
 * a send does not look at those who are not waiting. One whose number has fallen out of the ring goes on
 * with the oldest there is, and is told the difference.
 *
 * Who waits wants the value that comes next. On a stack it is given it by the sender; a future is
 * told, and looks. If more wait than can be owed at a time, the sender comes back for the rest, which
 * may have missed some by then like anybody else who is slow.
 *
 * I1  Receivers in line want a number that is not there: next == sent, but for those that a sender is
 *     about to come back for.
 *
 * [A] unref: refs acq_rel -> unref: refs acq_rel    all uses come before the free
 */
#include <assert.h>

#include "base/alloc.h"
#include "blitz/broadcast.h"
#include "chan/line.h"

struct blitz_broadcast {
    struct bz_lock lock; /* rank WAIT; guards what is not said to be constant */
    bool is_closed;
    uint64_t sent;            /* the number of the next value */
    struct bz_list receivers; /* those who wait */
    bz_atomic(uint32_t) refs;
    const struct bz_os *os; /* constant, as are the next ones */
    size_t size, slots;
    _Alignas(max_align_t) char ring[];
};

/* One receive. */
struct receive {
    struct bz_waiter waiter;
    blitz_broadcast_rx *rx;
    void *value;
    uint64_t missed;
};

static size_t bytes_for(size_t value_size, size_t capacity)
{
    return sizeof(struct blitz_broadcast) + value_size * capacity;
}

int blitz_broadcast_new(size_t value_size, size_t capacity, blitz_broadcast **out)
{
    if (value_size == 0 || capacity == 0 || out == NULL || value_size > PTRDIFF_MAX / 2 ||
        capacity > (PTRDIFF_MAX / 2 - sizeof(struct blitz_broadcast)) / value_size)
        return -EINVAL;
    struct blitz_broadcast *b =
        bz_alloc(&bz_allocator_libc, bytes_for(value_size, capacity), _Alignof(max_align_t));
    if (b == NULL)
        return -ENOMEM;
    *b = (struct blitz_broadcast){.os = bz_os_here(), .size = value_size, .slots = capacity};
    bz_lock_init_ranked(&b->lock, BZ_RANK_WAIT);
    bz_list_init(&b->receivers);
    bz_atomic_init(&b->refs, 1);
    *out = b;
    return 0;
}

blitz_broadcast *blitz_broadcast_ref(blitz_broadcast *b)
{
    bz_fetch_add_relaxed(&b->refs, 1); /* relaxed: the caller holds one */
    return b;
}

void blitz_broadcast_unref(blitz_broadcast *b)
{
    if (b == NULL || bz_fetch_sub_acqrel(&b->refs, 1) != 1) /* [A] */
        return;
    BZ_CHECK(bz_list_is_empty(&b->receivers),
             "broadcast %p: its last holder goes while somebody waits", (void *)b);
    bz_free(&bz_allocator_libc, b, bytes_for(b->size, b->slots));
}

static char *slot(struct blitz_broadcast *b, uint64_t number)
{
    return b->ring + number % b->slots * b->size;
}

/* One step, under the lock: 0, -EAGAIN, -EPIPE. */
static int take(struct blitz_broadcast *b, struct receive *r)
{
    uint64_t oldest = b->sent > b->slots ? b->sent - b->slots : 0;
    uint64_t next = r->rx->next;
    if (next == b->sent)
        return b->is_closed ? -EPIPE : -EAGAIN;
    r->missed = next < oldest ? oldest - next : 0;
    if (r->missed > 0 && !BZ_BROKEN(117))
        next = oldest;
    bz_value_copy(r->value, slot(b, next), b->size);
    r->rx->next = next + 1;
    return 0;
}

/* Serve those who wait; true: not all of them. */
static bool settle(struct blitz_broadcast *b, struct bz_owed *owed)
{
    struct bz_waiter *w;
    while (!bz_owed_is_full(owed) && (w = bz_line_first(&b->receivers)) != NULL) {
        struct receive *r = BZ_CONTAINER_OF(w, struct receive, waiter);
        if (r->rx->next == b->sent && !b->is_closed)
            return false; /* it came since, and so did all behind it: I1 */
        if (w->wait == NULL)
            bz_waiter_notify(w, owed);
        else if (bz_waiter_win(w, 0, owed))
            w->result = take(b, r);
    }
    return !bz_list_is_empty(&b->receivers);
}

/* Under the lock, which is dropped: something has changed for all who wait. */
static void tell_all(struct blitz_broadcast *b)
{
    struct bz_owed owed;
    bool has_more;
    do {
        bz_owed_init(&owed);
        has_more = settle(b, &owed);
        bz_lock_drop(&b->lock, b->os);
        bz_owed_pay(&owed);
        if (has_more)
            bz_lock_take(&b->lock, b->os);
    } while (has_more);
}

int blitz_broadcast_send(blitz_broadcast *b, const void *value)
{
    bz_lock_take(&b->lock, b->os);
    if (b->is_closed) {
        bz_lock_drop(&b->lock, b->os);
        return -EPIPE;
    }
    bz_value_copy(slot(b, b->sent), value, b->size);
    b->sent++;
    tell_all(b);
    return 0;
}

void blitz_broadcast_close(blitz_broadcast *b)
{
    bz_lock_take(&b->lock, b->os);
    b->is_closed = true;
    tell_all(b);
}

void blitz_broadcast_subscribe(blitz_broadcast *b, blitz_broadcast_rx *rx)
{
    rx->of = blitz_broadcast_ref(b);
    bz_lock_take(&b->lock, b->os);
    rx->next = b->sent;
    bz_lock_drop(&b->lock, b->os);
}

void blitz_broadcast_unsubscribe(blitz_broadcast_rx *rx)
{
    blitz_broadcast_unref(rx->of);
    rx->of = NULL;
}

/* ---- receiving ---- */

static bool receive_hook(struct bz_wait *w, void *arg)
{
    struct receive *r = arg;
    struct blitz_broadcast *b = r->rx->of;
    const struct bz_os *os = b->os;
    bool waits;
    bz_lock_take(&b->lock, os);
    int rc = take(b, r);
    if (rc == -EAGAIN) {
        bz_list_push_back(&b->receivers, &r->waiter.in);
        waits = bz_wait_publish(w);
    } else {
        r->waiter.result = rc;
        waits = bz_wait_over(w, BZ_WAIT_WOKEN);
    }
    bz_lock_drop(&b->lock, os);
    return waits;
}

static int receive_waiting(struct receive *r, blitz_deadline until)
{
    struct blitz_broadcast *b = r->rx->of;
    struct bz_wait w;
    bz_wait_begin(&w, b->os, "broadcast", until);
    uint32_t outcome = bz_wait_refuse(&w);
    if (outcome != BZ_WAIT_OPEN)
        return bz_wait_error(outcome);
    bz_waiter_init(&r->waiter, &w, BZ_WAIT_WOKEN);
    outcome = bz_wait_park(&w, receive_hook, r);
    if (outcome < BZ_WAIT_WOKEN || bz_wait_is_early(&w)) {
        bz_lock_take(&b->lock, b->os);
        if (outcome < BZ_WAIT_WOKEN)
            bz_list_remove(&r->waiter.in);
        bz_lock_drop(&b->lock, b->os);
    }
    return outcome < BZ_WAIT_WOKEN ? bz_wait_error(outcome) : r->waiter.result;
}

static int receive(blitz_broadcast_rx *rx, void *value, const blitz_deadline *until,
                   uint64_t *missed)
{
    struct blitz_broadcast *b = rx->of;
    struct receive r = {.rx = rx, .value = value, .missed = 0};
    bz_lock_take(&b->lock, b->os);
    int rc = take(b, &r);
    bz_lock_drop(&b->lock, b->os);
    if (rc == -EAGAIN && until != NULL)
        rc = receive_waiting(&r, *until);
    if (missed != NULL)
        *missed = rc == 0 ? r.missed : 0;
    return rc;
}

int blitz_broadcast_recv(blitz_broadcast_rx *rx, void *value, blitz_deadline until,
                         uint64_t *missed)
{
    return receive(rx, value, &until, missed);
}

int blitz_broadcast_try_recv(blitz_broadcast_rx *rx, void *value, uint64_t *missed)
{
    return receive(rx, value, NULL, missed);
}

/* ---- as a future ---- */

static_assert(sizeof(struct receive) <= sizeof(((blitz_broadcast_future *)NULL)->inside),
              "it has room");

static struct receive *receive_of(blitz_future *future)
{
    return (struct receive *)BZ_CONTAINER_OF(future, blitz_broadcast_future, future)->inside;
}

static blitz_poll broadcast_poll(blitz_future *future, const blitz_waker *waker)
{
    blitz_broadcast_future *f = BZ_CONTAINER_OF(future, blitz_broadcast_future, future);
    struct receive *r = receive_of(future);
    if (f->result != -EINPROGRESS)
        return BLITZ_READY; /* as before */
    struct blitz_broadcast *b = r->rx->of;
    blitz_waker mine = blitz_waker_clone(waker);
    bz_lock_take(&b->lock, b->os);
    blitz_waker old = r->waiter.waker;
    r->waiter.waker = (blitz_waker){NULL, NULL};
    bz_list_remove(&r->waiter.in);
    int rc = take(b, r);
    if (rc == -EAGAIN) {
        r->waiter.waker = mine;
        mine = (blitz_waker){NULL, NULL};
        bz_list_push_back(&b->receivers, &r->waiter.in);
    }
    bz_lock_drop(&b->lock, b->os);
    blitz_waker_drop(&old);
    blitz_waker_drop(&mine);
    if (rc == -EAGAIN)
        return BLITZ_PENDING;
    f->missed = rc == 0 ? r->missed : 0;
    f->result = rc;
    return BLITZ_READY;
}

static void broadcast_cancel(blitz_future *future)
{
    blitz_broadcast_future *f = BZ_CONTAINER_OF(future, blitz_broadcast_future, future);
    struct receive *r = receive_of(future);
    struct blitz_broadcast *b = r->rx->of;
    if (f->result != -EINPROGRESS)
        return;
    f->result = -ECANCELED;
    bz_lock_take(&b->lock, b->os);
    bz_list_remove(&r->waiter.in);
    bz_lock_drop(&b->lock, b->os);
    blitz_waker_drop(&r->waiter.waker);
}

static int broadcast_output(blitz_future *future)
{
    return BZ_CONTAINER_OF(future, blitz_broadcast_future, future)->result;
}

void blitz_broadcast_future_init(blitz_broadcast_future *f, blitz_broadcast_rx *rx, void *value)
{
    static const blitz_future_ops ops = {"broadcast", BLITZ_REVOCABLE, broadcast_poll,
                                         broadcast_cancel, broadcast_output};
    struct receive *r = receive_of(&f->future);
    f->future.ops = &ops;
    f->result = -EINPROGRESS;
    f->missed = 0;
    *r = (struct receive){.rx = rx, .value = value};
    bz_waiter_init(&r->waiter, NULL, 0);
}
