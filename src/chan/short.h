/*
 * short.h - the fast paths of a channel with a ring: a value goes in or comes out, and no task has to be woken.
 *
 * Call under the lock. Each does what bz_chan_try() would do, or nothing. A build with BZ_PLAIN has none of them.
 */
#ifndef BZ_CHAN_SHORT_H
#define BZ_CHAN_SHORT_H

#include "chan/chan.h"

/* True if no receiver waits, and there is room in the ring. */
static BZ_ALWAYS_INLINE bool bz_chan_has_room_in_ring(const struct blitz_chan *c)
{
    const struct bz_values *v = &c->values;
    return BZ_CHAN_SHORT && bz_list_is_empty(&c->receivers) && v->ring != NULL &&
           v->count + c->permits < c->capacity;
}

/* True if a value can be put. */
static BZ_ALWAYS_INLINE bool bz_chan_has_short_room(const struct blitz_chan *c)
{
    return bz_chan_has_room_in_ring(c) && !c->is_closed;
}

/* The place for that value. */
static BZ_ALWAYS_INLINE void *bz_chan_short_room(struct blitz_chan *c)
{
    struct bz_values *v = &c->values;
    return bz_values_at(v, bz_values_wrap(v, v->head + v->count));
}

/* The value is in its place. */
static BZ_ALWAYS_INLINE void bz_chan_was_put_short(struct blitz_chan *c)
{
    c->values.count++;
    bz_chan_has_news(c);
}

/* True if there is a value in the ring, and no sender waits for its slot. */
static BZ_ALWAYS_INLINE bool bz_chan_has_value_in_ring(const struct blitz_chan *c)
{
    return BZ_CHAN_SHORT && c->values.count != 0 && c->values.ring != NULL &&
           bz_list_is_empty(&c->senders);
}

/* True if a value can be taken by a fast path. */
static BZ_ALWAYS_INLINE bool bz_chan_has_short_value(const struct blitz_chan *c)
{
    return bz_chan_has_value_in_ring(c) && !c->is_closed;
}

/* The place of that value. */
static BZ_ALWAYS_INLINE const void *bz_chan_short_value(const struct blitz_chan *c)
{
    return bz_values_at(&c->values, c->values.head);
}

/* The value has been copied. */
static BZ_ALWAYS_INLINE void bz_chan_was_taken_short(struct blitz_chan *c)
{
    struct bz_values *v = &c->values;
    v->head = bz_values_wrap(v, v->head + 1);
    v->count--;
    bz_chan_has_room(c);
}

/* Put a value if that needs no waiting and no wake-up. */
static inline bool bz_chan_put_short(struct blitz_chan *c, const void *value)
{
    if (!bz_chan_has_short_room(c))
        return false;
    bz_value_copy(bz_chan_short_room(c), value, c->values.size);
    bz_chan_was_put_short(c);
    return true;
}

/* Take a value if that needs no waiting and no wake-up. */
static inline bool bz_chan_take_short(struct blitz_chan *c, void *value)
{
    if (!bz_chan_has_short_value(c))
        return false;
    bz_value_copy(value, bz_chan_short_value(c), c->values.size);
    bz_chan_was_taken_short(c);
    return true;
}

/* The same for small values (chan/copy.h), without a call. */
static BZ_ALWAYS_INLINE bool bz_chan_put_small(struct blitz_chan *c, const void *value)
{
    if (!bz_chan_has_room_in_ring(c) || BZ_UNLIKELY(c->is_slow))
        return false;
    bz_value_copy_small(bz_chan_short_room(c), value, c->values.size);
    bz_chan_was_put_short(c);
    return true;
}

static BZ_ALWAYS_INLINE bool bz_chan_take_small(struct blitz_chan *c, void *value)
{
    if (!bz_chan_has_value_in_ring(c) || BZ_UNLIKELY(c->is_slow))
        return false;
    bz_value_copy_small(value, bz_chan_short_value(c), c->values.size);
    bz_chan_was_taken_short(c);
    return true;
}

#endif
