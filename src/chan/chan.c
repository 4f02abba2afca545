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
    bz_atomic_init(&c->refs, 1);
    bz_atomic_init(&c->chance, 0);
    bz_atomic_init(&c->may_recv, 0);
    bz_atomic_init(&c->may_send, capacity != 0);
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
    BZ_CHECK(bz_list_is_empty(&c->receivers) && bz_list_is_empty(&c->senders),
             "chan %p: its last holder goes while somebody waits at it", (void *)c);
    blitz_allocator alloc = c->alloc;
    drop_all(c, &c->values);
    bz_free(&alloc, c, c->bytes);
}

void blitz_chan_close(blitz_chan *c)
{
    struct bz_wakelist wakes;
    bz_wakelist_init(&wakes);
    bz_chan_lock(c);
    c->is_closed = true;
    bz_chan_has_news(c);
    bz_chan_has_room(c);
    bz_chan_serve(c, &wakes);
    bz_chan_done(c, &wakes);
}

size_t blitz_chan_shut(blitz_chan *c)
{
    struct bz_wakelist wakes;
    bz_wakelist_init(&wakes);
    bz_chan_lock(c);
    struct bz_values left = c->values;
    c->values.count = 0;
    c->values.room = 0;
    c->values.first = c->values.last = c->values.end = c->values.retired = NULL;
    c->is_closed = c->is_shut = true;
    bz_chan_has_news(c);
    bz_chan_has_room(c);
    bz_chan_serve(c, &wakes);
    bz_chan_done(c, &wakes);
    return drop_all(c, &left);
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

/* Decrement the count of handles. Return true if it was the last one. */
static bool drop(blitz_chan *c, uint32_t *count)
{
    bz_chan_lock(c);
    BZ_CHECK(*count > 0, "chan %p: more handles are dropped than were added", (void *)c);
    bool is_last = --*count == 0;
    bz_chan_unlock(c);
    return is_last;
}

int blitz_chan_sender_add(blitz_chan *c)
{
    return add(c, &c->sender_count, &c->is_closed);
}

void blitz_chan_sender_drop(blitz_chan *c)
{
    if (drop(c, &c->sender_count))
        blitz_chan_close(c);
    blitz_chan_unref(c);
}

int blitz_chan_receiver_add(blitz_chan *c)
{
    return add(c, &c->receiver_count, &c->is_shut);
}

void blitz_chan_receiver_drop(blitz_chan *c)
{
    if (drop(c, &c->receiver_count))
        blitz_chan_shut(c);
    blitz_chan_unref(c);
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
