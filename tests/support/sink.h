/*
 * sink.h - an actor that takes messages quickly, slowly or not at all, for tests of back-pressure. One test program at a time.
 */
#ifndef T_SINK_H
#define T_SINK_H

#include <stdatomic.h>

#include "blitz.h"
#include "harness.h"

enum { HIGH = 20 };
enum { TAKE, ASK };

/* The way in which sinks take a message. */
enum mood {
    QUICK,
    SLOW,  /* let others run for a while, without a wait */
    STUCK, /* ... until the mood changes */
    ASLEEP /* wait until the event */
};
static atomic_int mood;
static blitz_event dawn;
static atomic_long begun, taken, last_taken, out_of_order;

static inline void given(enum mood m)
{
    mood = m;
    begun = taken = last_taken = out_of_order = 0;
    blitz_event_init(&dawn);
}

static inline int take(long value)
{
    begun++;
    for (int i = 0; mood == STUCK || (mood == SLOW && i < 3); i++)
        blitz_yield();
    if (mood == ASLEEP) {
        int rc = blitz_event_wait(&dawn, BLITZ_FOREVER);
        if (rc != 0)
            return rc;
    }
    out_of_order += value <= last_taken;
    last_taken = value;
    taken++;
    return 0;
}

BLITZ_HANDLER(on_take, void, long)
{
    (void)state, (void)m;
    return take(*data);
}

BLITZ_HANDLER(on_ask, void, void)
{
    (void)state, (void)data;
    return blitz_actor_reply(m->reply, NULL, 0);
}

static const blitz_handler sink_handlers[] = {BLITZ_ON(TAKE, long, on_take),
                                              BLITZ_ON_EMPTY(ASK, on_ask)};
static const blitz_behaviour sink = {
    .name = "sink", .handlers = sink_handlers, .handler_count = 2, .mailbox_high = HIGH};

static inline blitz_actor_id spawn_sink(const blitz_behaviour *b)
{
    blitz_actor_id id;
    CHECK_EQ(blitz_actor_spawn(b, NULL, NULL, &id), 0);
    return id;
}

static inline blitz_actor_info info_of(blitz_actor_id id)
{
    blitz_actor_info info = {.state = BLITZ_ACTOR_DEAD};
    (void)blitz_actor_info_get(id, &info);
    return info;
}

static inline void await_state(blitz_actor_id id, blitz_actor_state state)
{
    while (info_of(id).state != state)
        blitz_yield();
}

static inline void await_count(atomic_long *count, long want)
{
    while (*count < want)
        blitz_yield();
}

#endif
