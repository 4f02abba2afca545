/*
 * chan.h - channels, select, oneshot, broadcast, watch.
 */
#ifndef BENCH_BUDGET_CHAN_H
#define BENCH_BUDGET_CHAN_H

#include "budget/budget.h"

static blitz_chan *chan_new(size_t capacity)
{
    blitz_chan *c;
    must(blitz_chan_new(sizeof(uint64_t), capacity, NULL, &c), "chan");
    return c;
}

static void chan_send(blitz_chan *c, uint64_t value)
{
    must(blitz_chan_send(c, &value, BLITZ_FOREVER), "send");
}

static uint64_t chan_recv(blitz_chan *c)
{
    uint64_t value = 0;
    must(blitz_chan_recv(c, &value, BLITZ_FOREVER), "recv");
    return value;
}

struct talk {
    blitz_chan *to, *from;
    uint64_t count;
};

static int echo(void *arg)
{
    struct talk *t = arg;
    for (uint64_t i = 0; i < t->count; i++)
        chan_send(t->from, chan_recv(t->to));
    return 0;
}

static void ping_pong(uint64_t rounds, size_t capacity)
{
    struct talk talk = {chan_new(capacity), chan_new(capacity), rounds};
    blitz_task *t = spawn(echo, &talk);
    for (; rounds > 0; rounds--) {
        chan_send(talk.to, rounds);
        keep(chan_recv(talk.from));
    }
    join(t);
    blitz_chan_unref(talk.to);
    blitz_chan_unref(talk.from);
}

static void rendezvous(uint64_t rounds)
{
    ping_pong(rounds, 0);
}

static void ping_pong_1(uint64_t rounds)
{
    ping_pong(rounds, 1);
}

static int send_many(void *arg)
{
    struct talk *t = arg;
    for (uint64_t i = 0; i < t->count; i++)
        chan_send(t->to, i);
    return 0;
}

static void stream_128(uint64_t rounds)
{
    struct talk talk = {chan_new(128), NULL, rounds};
    blitz_task *t = spawn(send_many, &talk);
    for (; rounds > 0; rounds--)
        keep(chan_recv(talk.to));
    join(t);
    blitz_chan_unref(talk.to);
}

static void send_recv(uint64_t rounds)
{
    blitz_chan *c = chan_new(1);
    for (; rounds > 0; rounds--) {
        chan_send(c, rounds);
        keep(chan_recv(c));
    }
    blitz_chan_unref(c);
}

/* A select over 4 channels that all have a value, and a send that replaces the one it took. */
static void select_4(uint64_t rounds)
{
    blitz_chan *c[4];
    uint64_t value = 0;
    for (int i = 0; i < 4; i++) {
        c[i] = chan_new(1);
        chan_send(c[i], 1);
    }
    for (; rounds > 0; rounds--) {
        blitz_chan *taken = NULL;
        blitz_select(BLITZ_FOREVER)
        {
            blitz_on_recv(c[0], &value, NULL)
            {
                taken = c[0];
            }
            blitz_on_recv(c[1], &value, NULL)
            {
                taken = c[1];
            }
            blitz_on_recv(c[2], &value, NULL)
            {
                taken = c[2];
            }
            blitz_on_recv(c[3], &value, NULL)
            {
                taken = c[3];
            }
        }
        chan_send(taken, value);
    }
    for (int i = 0; i < 4; i++)
        blitz_chan_unref(c[i]);
}

/* The receiver selects over two empty channels and waits; the sender fills one of them. */
static int send_for_select(void *arg)
{
    struct talk *t = arg;
    for (uint64_t i = 0; i < t->count; i++)
        chan_send(i % 2 ? t->to : t->from, i);
    return 0;
}

static void select_waits(uint64_t rounds)
{
    struct talk talk = {chan_new(0), chan_new(0), rounds};
    uint64_t value = 0;
    blitz_task *t = spawn(send_for_select, &talk);
    for (; rounds > 0; rounds--)
        blitz_select(BLITZ_FOREVER)
        {
            blitz_on_recv(talk.to, &value, NULL)
            {
                keep(value);
            }
            blitz_on_recv(talk.from, &value, NULL)
            {
                keep(value);
            }
        }
    join(t);
    blitz_chan_unref(talk.to);
    blitz_chan_unref(talk.from);
}

static void oneshot(uint64_t rounds)
{
    for (; rounds > 0; rounds--) {
        blitz_oneshot *o;
        uint64_t value = 0;
        must(blitz_oneshot_new(sizeof value, NULL, &o), "oneshot");
        must(blitz_oneshot_send(o, &rounds), "send");
        must(blitz_oneshot_recv(o, &value, BLITZ_FOREVER), "recv");
        blitz_oneshot_receiver_drop(o);
        keep(value);
    }
}

static void broadcast(uint64_t rounds)
{
    blitz_broadcast *b;
    blitz_broadcast_rx rx;
    uint64_t value = 0, missed = 0;
    must(blitz_broadcast_new(sizeof value, 16, &b), "broadcast");
    blitz_broadcast_subscribe(b, &rx);
    for (; rounds > 0; rounds--) {
        must(blitz_broadcast_send(b, &rounds), "send");
        must(blitz_broadcast_recv(&rx, &value, &missed, BLITZ_FOREVER), "recv");
        keep(value);
    }
    blitz_broadcast_unsubscribe(&rx);
    blitz_broadcast_unref(b);
}

static void watch(uint64_t rounds)
{
    blitz_watch *w;
    uint64_t value = 0, seen = 0;
    must(blitz_watch_new(sizeof value, &value, &w), "watch");
    seen = blitz_watch_get(w, &value);
    for (; rounds > 0; rounds--) {
        must(blitz_watch_send(w, &rounds), "send");
        must(blitz_watch_recv(w, &value, &seen, BLITZ_FOREVER), "recv");
        keep(value);
    }
    blitz_watch_unref(w);
}

/* clang-format off */
#define BUDGET_CHAN                                                                          \
    {"rendezvous there and back", rendezvous}, {"ping-pong, capacity 1", ping_pong_1},       \
    {"stream, capacity 128", stream_128}, {"send + receive, one task", send_recv},           \
    {"select, 4 ready", select_4}, {"select that waits", select_waits},                      \
    {"oneshot", oneshot}, {"broadcast send + receive", broadcast},                           \
    {"watch send + receive", watch}
/* clang-format on */

#endif
