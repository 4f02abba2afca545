/*
 * watch.c - the latest value, its version, and the waiters for another.
 *
 * A watch has a lock, a value and a number. The number is that of the listeners (listeners.c), and is the version. No receiver
 * waits for a particular version: a receiver that gets the lock reads the latest.
 *
 * Rejected: a sequence lock for readers. It saves a locked instruction where a value is small and never
 * changes, but readers race with the copy of the writer, which C has no word for.
 */
#include <assert.h>

#include "base/alloc.h"
#include "blitz/watch.h"
#include "chan/listeners.h"

struct blitz_watch {
    struct bz_listeners listeners;
    size_t size; /* constant */
    _Alignas(max_align_t) char value[];
};

static const struct bz_request_ops receiving = BZ_LISTENERS_REQUEST("watch");

static void copy_latest(struct bz_receive *r)
{
    struct blitz_watch *w = BZ_CONTAINER_OF(r->of, struct blitz_watch, listeners);
    bz_value_copy(r->value, w->value, w->size);
    *r->at = w->listeners.number;
}

int blitz_watch_new(size_t value_size, const void *value, blitz_watch **out)
{
    if (value_size == 0 || value_size > PTRDIFF_MAX / 2 || value == NULL || out == NULL)
        return -EINVAL;
    struct blitz_watch *w =
        bz_alloc(&bz_allocator_libc, sizeof *w + value_size, _Alignof(max_align_t));
    if (w == NULL)
        return -ENOMEM;
    bz_listeners_init(&w->listeners, "watch", copy_latest);
    w->listeners.number = 1; /* 0: a receiver that has seen nothing yet */
    w->size = value_size;
    bz_value_copy(w->value, value, value_size);
    *out = w;
    return 0;
}

blitz_watch *blitz_watch_ref(blitz_watch *w)
{
    bz_listeners_ref(&w->listeners);
    return w;
}

void blitz_watch_unref(blitz_watch *w)
{
    if (w != NULL && bz_listeners_unref(&w->listeners))
        bz_free(&bz_allocator_libc, w, sizeof *w + w->size);
}

/* Under the lock of bz_listeners_begin: replace the value, and drop the lock. */
static int replace(struct blitz_watch *w, const void *value)
{
    bz_value_copy(w->value, value, w->size);
    w->listeners.number++;
    bz_listeners_end(&w->listeners);
    return 0;
}

/* Likewise: leave the value as it is. */
static int refuse(struct blitz_watch *w, int why)
{
    bz_lock_drop(&w->listeners.lock, w->listeners.os);
    return why;
}

int blitz_watch_send(blitz_watch *w, const void *value)
{
    return bz_listeners_begin(&w->listeners) ? replace(w, value) : -EPIPE;
}

int blitz_watch_send_if_changed(blitz_watch *w, const void *value)
{
    if (!bz_listeners_begin(&w->listeners))
        return -EPIPE;
    return memcmp(w->value, value, w->size) != 0 ? replace(w, value) : refuse(w, -EALREADY);
}

int blitz_watch_send_if_version(blitz_watch *w, const void *value, uint64_t version)
{
    if (!bz_listeners_begin(&w->listeners))
        return -EPIPE;
    return w->listeners.number == version ? replace(w, value) : refuse(w, -EAGAIN);
}

void blitz_watch_close(blitz_watch *w)
{
    bz_listeners_close(&w->listeners);
}

void blitz_watch_receiver_add(blitz_watch *w)
{
    bz_listeners_ref(&w->listeners);
    bz_listeners_add(&w->listeners);
}

void blitz_watch_receiver_drop(blitz_watch *w)
{
    bz_listeners_remove(&w->listeners);
    blitz_watch_unref(w);
}

size_t blitz_watch_receivers(blitz_watch *w)
{
    return bz_listeners_count(&w->listeners);
}

int blitz_watch_wait_closed(blitz_watch *w, blitz_deadline until)
{
    return bz_listeners_wait_closed(&w->listeners, until);
}

void blitz_watch_wait_closed_future_init(blitz_closed_future *f, blitz_watch *w)
{
    bz_listeners_wait_closed_future_init(f, &w->listeners);
}

uint64_t blitz_watch_get(blitz_watch *w, void *value)
{
    bz_lock_take(&w->listeners.lock, w->listeners.os);
    bz_value_copy(value, w->value, w->size);
    uint64_t version = w->listeners.number;
    bz_lock_drop(&w->listeners.lock, w->listeners.os);
    return version;
}

/* NOLINTNEXTLINE(readability-non-const-parameter): it is written through the request */
int blitz_watch_recv(blitz_watch *w, void *value, uint64_t *seen, blitz_deadline until)
{
    struct bz_receive r = {
        .request.ops = &receiving, .of = &w->listeners, .at = seen, .value = value};
    return bz_listeners_wait(&r, until);
}

/* ---- as a future ---- */

static_assert(sizeof(struct bz_receive) <= sizeof(((blitz_watch_future *)NULL)->inside),
              "it has room");

static blitz_watch_future *of(blitz_future *future)
{
    return BZ_CONTAINER_OF(future, blitz_watch_future, future);
}

static struct bz_receive *receive_of(blitz_future *future)
{
    return (struct bz_receive *)of(future)->inside;
}

static blitz_poll watch_poll(blitz_future *future, const blitz_waker *waker)
{
    return bz_listeners_poll(receive_of(future), &of(future)->result, waker);
}

static void watch_cancel(blitz_future *future)
{
    bz_listeners_cancel(receive_of(future), &of(future)->result);
}

static int watch_output(blitz_future *future)
{
    return of(future)->result;
}

void blitz_watch_recv_future_init(blitz_watch_future *f, blitz_watch *w, void *value,
                                  uint64_t *seen) /* NOLINT(readability-non-const-parameter) */
{
    static const blitz_future_ops ops = {"watch", BLITZ_REVOCABLE, watch_poll, watch_cancel,
                                         watch_output};
    struct bz_receive *r = receive_of(&f->future);
    f->future.ops = &ops;
    f->result = -EINPROGRESS;
    *r = (struct bz_receive){
        .request.ops = &receiving, .of = &w->listeners, .at = seen, .value = value};
    bz_waiter_init_polled(&r->request.waiter);
}
