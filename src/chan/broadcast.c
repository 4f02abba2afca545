/*
 * broadcast.c - every receiver gets every value: a ring that senders overwrite.
 *
 * The values of a broadcast are numbered from 0; the ring holds the last `slots` of them. A receiver
 * is only the number of the value it wants next. So many receivers cost nothing, and
 * a send does not touch those that do not wait. If a receiver's number has fallen out of the ring, it continues
 * with the oldest value, and gets the number of missed values. listeners.c implements the waiting; the number of the listeners
 * is that of the next value.
 */
#include <assert.h>

#include "base/alloc.h"
#include "blitz/broadcast.h"
#include "chan/listeners.h"

struct blitz_broadcast {
    struct bz_listeners listeners;
    size_t size, slots; /* constant */
    _Alignas(max_align_t) char ring[];
};

static size_t bytes_for(size_t value_size, size_t capacity)
{
    return sizeof(struct blitz_broadcast) + value_size * capacity;
}

static char *slot(struct blitz_broadcast *b, uint64_t number)
{
    return b->ring + number % b->slots * b->size;
}

static const struct bz_request_ops receiving = BZ_LISTENERS_REQUEST("broadcast");

static void copy_next(struct bz_receive *r)
{
    struct blitz_broadcast *b = BZ_CONTAINER_OF(r->of, struct blitz_broadcast, listeners);
    uint64_t sent = b->listeners.number, next = *r->at;
    uint64_t oldest = sent > b->slots ? sent - b->slots : 0;
    r->missed = next < oldest ? oldest - next : 0;
    if (r->missed > 0)
        next = oldest;
    bz_value_copy(r->value, slot(b, next), b->size);
    *r->at = next + 1;
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
    bz_listeners_init(&b->listeners, "broadcast", copy_next);
    b->size = value_size;
    b->slots = capacity;
    *out = b;
    return 0;
}

blitz_broadcast *blitz_broadcast_ref(blitz_broadcast *b)
{
    bz_listeners_ref(&b->listeners);
    return b;
}

void blitz_broadcast_unref(blitz_broadcast *b)
{
    if (b != NULL && bz_listeners_unref(&b->listeners))
        bz_free(&bz_allocator_libc, b, bytes_for(b->size, b->slots));
}

int blitz_broadcast_send(blitz_broadcast *b, const void *value)
{
    if (!bz_listeners_begin(&b->listeners))
        return -EPIPE;
    bz_value_copy(slot(b, b->listeners.number), value, b->size);
    b->listeners.number++;
    bz_listeners_end(&b->listeners);
    return 0;
}

void blitz_broadcast_close(blitz_broadcast *b)
{
    bz_listeners_close(&b->listeners);
}

static void lock(struct blitz_broadcast *b)
{
    bz_lock_take(&b->listeners.lock, b->listeners.os);
}

static void unlock(struct blitz_broadcast *b)
{
    bz_lock_drop(&b->listeners.lock, b->listeners.os);
}

void blitz_broadcast_subscribe(blitz_broadcast *b, blitz_broadcast_rx *rx)
{
    rx->of = blitz_broadcast_ref(b);
    lock(b);
    rx->next = b->listeners.number;
    b->listeners.counted++;
    unlock(b);
}

void blitz_broadcast_resubscribe(const blitz_broadcast_rx *other, blitz_broadcast_rx *rx)
{
    blitz_broadcast_subscribe(other->of, rx);
    rx->next = other->next;
}

void blitz_broadcast_unsubscribe(blitz_broadcast_rx *rx)
{
    bz_listeners_remove(&rx->of->listeners);
    blitz_broadcast_unref(rx->of);
    rx->of = NULL;
}

size_t blitz_broadcast_receivers(blitz_broadcast *b)
{
    return bz_listeners_count(&b->listeners);
}

int blitz_broadcast_wait_closed(blitz_broadcast *b, blitz_deadline until)
{
    return bz_listeners_wait_closed(&b->listeners, until);
}

void blitz_broadcast_wait_closed_future_init(blitz_closed_future *f, blitz_broadcast *b)
{
    bz_listeners_wait_closed_future_init(f, &b->listeners);
}

size_t blitz_broadcast_length(const blitz_broadcast_rx *rx)
{
    lock(rx->of);
    uint64_t ahead = rx->of->listeners.number - rx->next;
    unlock(rx->of);
    return ahead < rx->of->slots ? (size_t)ahead : rx->of->slots;
}

/* ---- receiving ---- */

static struct bz_receive receive_by(blitz_broadcast_rx *rx, void *value)
{
    return (struct bz_receive){
        .request.ops = &receiving, .of = &rx->of->listeners, .at = &rx->next, .value = value};
}

static int told(int rc, const struct bz_receive *r, uint64_t *missed)
{
    if (missed != NULL)
        *missed = rc == 0 ? r->missed : 0;
    return rc;
}

int blitz_broadcast_recv(blitz_broadcast_rx *rx, void *value, uint64_t *missed,
                         blitz_deadline until)
{
    struct bz_receive r = receive_by(rx, value);
    return told(bz_listeners_wait(&r, until), &r, missed);
}

int blitz_broadcast_try_recv(blitz_broadcast_rx *rx, void *value, uint64_t *missed)
{
    struct bz_receive r = receive_by(rx, value);
    return told(bz_listeners_try(&r), &r, missed);
}

/* ---- as a future ---- */

static_assert(sizeof(struct bz_receive) <= sizeof(((blitz_broadcast_future *)NULL)->inside),
              "it has room");

static blitz_broadcast_future *of(blitz_future *future)
{
    return BZ_CONTAINER_OF(future, blitz_broadcast_future, future);
}

static struct bz_receive *receive_of(blitz_future *future)
{
    return (struct bz_receive *)of(future)->inside;
}

static blitz_poll broadcast_poll(blitz_future *future, const blitz_waker *waker)
{
    blitz_broadcast_future *f = of(future);
    struct bz_receive *r = receive_of(future);
    blitz_poll poll = bz_listeners_poll(r, &f->result, waker);
    f->missed = f->result == 0 ? r->missed : 0;
    return poll;
}

static void broadcast_cancel(blitz_future *future)
{
    bz_listeners_cancel(receive_of(future), &of(future)->result);
}

static int broadcast_output(blitz_future *future)
{
    return of(future)->result;
}

void blitz_broadcast_recv_future_init(blitz_broadcast_future *f, blitz_broadcast_rx *rx,
                                      void *value)
{
    static const blitz_future_ops ops = {"broadcast", BLITZ_REVOCABLE, broadcast_poll,
                                         broadcast_cancel, broadcast_output};
    struct bz_receive *r = receive_of(&f->future);
    f->future.ops = &ops;
    f->result = -EINPROGRESS;
    f->missed = 0;
    *r = receive_by(rx, value);
    bz_waiter_init_polled(&r->request.waiter);
}
