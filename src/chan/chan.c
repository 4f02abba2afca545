/*
 * chan.c - channels: making them, ending them, counting their handles.
 *
 * One allocation holds the channel and, if it is bounded, its ring. It is reference-counted: every reference,
 * every counted sender or receiver and every permit holds one. A waiter uses the channel on behalf of a holder, so
 * the queues are empty when the last holder leaves.
 *
 * Values that remain at the end are dropped outside of the lock, because the drop hook is user code and may use this
 * very channel. A shut takes the whole store out under the lock and drops the values afterwards. No other thread
 * touches that store then: sends, permits and receives check is_shut first.
 *
 * [A] unref: refs acq_rel -> unref: refs acq_rel    all uses come before the free
 */
#include "chan/chan.h"
#include "wait/waker.h"

static bool is_too_large(size_t value_size, size_t slots)
{
    return value_size > PTRDIFF_MAX / 2 ||
           slots > (PTRDIFF_MAX / 2 - sizeof(struct blitz_chan)) / value_size;
}

/* Return the offset of the ring, which lies behind the channel, aligned for any type. */
static size_t ring_at(void)
{
    size_t align = _Alignof(max_align_t);
    return (sizeof(struct blitz_chan) + align - 1) / align * align;
}

static void store_init(struct blitz_chan *c, size_t value_size, size_t capacity)
{
    bool is_bounded = capacity != 0 && capacity != BLITZ_UNBOUNDED;
    c->values = (struct bz_values){.size = value_size, .slots = capacity};
    if (is_bounded)
        c->values.ring = (char *)c + ring_at();
    else if (capacity == BLITZ_UNBOUNDED)
        c->values.slots = bz_values_block_slots(value_size);
}

int blitz_chan_new(size_t value_size, size_t capacity, const blitz_chan_opts *opts,
                   blitz_chan **out)
{
    size_t slots = capacity == BLITZ_UNBOUNDED ? 0 : capacity;
    const blitz_allocator *alloc = opts != NULL ? opts->alloc : NULL;
    if (alloc == NULL)
        alloc = &bz_allocator_libc;
    if (value_size == 0 || out == NULL || is_too_large(value_size, slots > 0 ? slots : 16))
        return -EINVAL;
    size_t bytes = ring_at() + slots * value_size;
    struct blitz_chan *c = bz_alloc(alloc, bytes, _Alignof(max_align_t));
    if (c == NULL)
        return -ENOMEM;
    *c = (struct blitz_chan){.os = bz_os_here(), .capacity = capacity, .bytes = bytes};
    c->alloc = *alloc;
    if (opts != NULL) {
        c->drop = opts->drop;
        c->drop_ctx = opts->ctx;
    }
    bz_chan_lock_init(&c->lock);
    store_init(c, value_size, capacity);
    bz_list_init(&c->receivers);
    bz_list_init(&c->senders);
    bz_list_init(&c->closing);
    bz_atomic_init(&c->refs, 1);
    bz_atomic_init(&c->chance, 0);
    bz_atomic_init(&c->may_recv, 0);
    bz_atomic_init(&c->may_send, capacity != 0);
    c->is_slow = !bz_value_is_small(value_size);
    *out = c;
    return 0;
}

/* ---- the end ---- */

/* Drop all values that were not received, and free the store. Only the caller has access to the store. */
static size_t drop_all(struct blitz_chan *c, struct bz_values *left)
{
    size_t count = left->count;
    while (left->count > 0) {
        void *value = bz_values_take(left);
        if (c->drop != NULL)
            c->drop(value, c->drop_ctx);
    }
    bz_values_fini(left, &c->alloc);
    return count;
}

blitz_chan *blitz_chan_ref(blitz_chan *c)
{
    bz_fetch_add_relaxed(&c->refs, 1); /* relaxed: the caller holds one */
    return c;
}

void blitz_chan_unref(blitz_chan *c)
{
    if (c == NULL || bz_fetch_sub_acqrel(&c->refs, 1) != 1) /* [A] */
        return;
    BZ_CHECK(bz_list_is_empty(&c->receivers) && bz_list_is_empty(&c->senders) &&
                 bz_list_is_empty(&c->closing),
             "chan %p: its last holder goes while a task waits at it", (void *)c);
    blitz_allocator alloc = c->alloc;
    drop_all(c, &c->values);
    bz_free(&alloc, c, c->bytes);
}

/* ---- waiting for the end ---- */

static void lock_of(void *c)
{
    bz_chan_lock(c);
}

static void unlock_of(void *c)
{
    bz_chan_unlock(c);
}

static struct bz_list *closing_of(void *chan)
{
    struct blitz_chan *c = chan;
    return c->is_closed ? NULL : &c->closing;
}

static const struct bz_closed_ops closed = BZ_CLOSED_OPS("close", lock_of, unlock_of, closing_of);

int blitz_chan_wait_closed(blitz_chan *c, blitz_deadline until)
{
    return bz_closed_wait(&closed, c, c->os, until);
}

void blitz_chan_wait_closed_future_init(blitz_closed_future *f, blitz_chan *c)
{
    bz_closed_future_init(f, &closed, c);
}

/* Close the channel, and drop the lock, which the caller holds. */
static void close_locked(struct blitz_chan *c)
{
    struct bz_wakelist wakes;
    bz_wakelist_init(&wakes);
    c->is_closed = c->is_slow = true;
    bz_chan_has_news(c);
    bz_chan_has_room(c);
    bz_chan_serve(c, &wakes);
    bool has_closing = !bz_list_is_empty(&c->closing);
    bz_chan_done(c, &wakes);
    if (!has_closing)
        return;
    bz_chan_lock(c); /* the channel stays closed, so no waiter has come since */
    bz_closed_end(&closed, c, &c->closing);
}

void blitz_chan_close(blitz_chan *c)
{
    bz_chan_lock(c);
    close_locked(c);
}

/* Shut the channel, and drop the lock, which the caller holds. Return the number of dropped values. */
static size_t shut_locked(struct blitz_chan *c)
{
    struct bz_values left = c->values;
    c->values.count = 0;
    c->values.room = 0;
    c->values.first = c->values.last = c->values.end = c->values.retired = NULL;
    c->is_shut = true;
    close_locked(c);
    return drop_all(c, &left);
}

size_t blitz_chan_shut(blitz_chan *c)
{
    bz_chan_lock(c);
    return shut_locked(c);
}

/* ---- counted handles ---- */

static int add(blitz_chan *c, uint32_t *count, const bool *is_over)
{
    bz_chan_lock(c);
    int rc = *is_over ? -EPIPE : 0;
    if (rc == 0)
        ++*count;
    bz_chan_unlock(c);
    if (rc == 0)
        blitz_chan_ref(c);
    return rc;
}

/* Decrement the count of handles. Return true, with the lock held, if it was the last one: the channel must end before
 * another handle is added. */
static bool drop_last(blitz_chan *c, uint32_t *count)
{
    bz_chan_lock(c);
    BZ_CHECK(*count > 0, "chan %p: more handles are dropped than were added", (void *)c);
    if (--*count == 0)
        return true;
    bz_chan_unlock(c);
    return false;
}

static size_t count_of(blitz_chan *c, const uint32_t *count)
{
    bz_chan_lock(c);
    size_t handles = *count;
    bz_chan_unlock(c);
    return handles;
}

int blitz_chan_sender_add(blitz_chan *c)
{
    return add(c, &c->sender_count, &c->is_closed);
}

void blitz_chan_sender_drop(blitz_chan *c)
{
    if (drop_last(c, &c->sender_count))
        close_locked(c);
    blitz_chan_unref(c);
}

size_t blitz_chan_senders(blitz_chan *c)
{
    return count_of(c, &c->sender_count);
}

int blitz_chan_receiver_add(blitz_chan *c)
{
    return add(c, &c->receiver_count, &c->is_shut);
}

void blitz_chan_receiver_drop(blitz_chan *c)
{
    if (drop_last(c, &c->receiver_count))
        shut_locked(c);
    blitz_chan_unref(c);
}

size_t blitz_chan_receivers(blitz_chan *c)
{
    return count_of(c, &c->receiver_count);
}

/* ---- queries ---- */

size_t blitz_chan_len(blitz_chan *c)
{
    bz_chan_lock(c);
    size_t count = c->values.count;
    bz_chan_unlock(c);
    return count;
}

size_t blitz_chan_capacity(const blitz_chan *c)
{
    return c->capacity;
}

bool blitz_chan_is_closed(blitz_chan *c)
{
    bz_chan_lock(c);
    bool is_closed = c->is_closed;
    bz_chan_unlock(c);
    return is_closed;
}
