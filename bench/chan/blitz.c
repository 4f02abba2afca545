/*
 * Ours: channels. Every case runs in the first task of a runtime with as many procs as were asked for.
 * What each case is: bench/chan.toml. Only public headers: what a user can have.
 */
#include "tasks/ours.h"

enum { CAPACITY = 128 };

static blitz_task *spawn(int (*fn)(void *), void *arg)
{
    blitz_task *t;
    must(blitz_spawn(fn, arg, NULL, &t), "spawn");
    return t;
}

static void join(blitz_task *t)
{
    must(blitz_task_join(t, NULL, BLITZ_FOREVER), "join");
}

static blitz_chan *chan(size_t capacity)
{
    blitz_chan *c;
    must(blitz_chan_new(sizeof(uint64_t), capacity, NULL, &c), "chan");
    return c;
}

static void send(blitz_chan *c, uint64_t value)
{
    must(blitz_chan_send(c, &value, BLITZ_FOREVER), "send");
}

static uint64_t recv(blitz_chan *c)
{
    uint64_t value = 0;
    must(blitz_chan_recv(c, &value, BLITZ_FOREVER), "recv");
    return value;
}

/* ---- ping-pong: one operation is a round trip ---- */

struct talk {
    blitz_chan *to, *from;
    uint64_t count;
};

static int echo(void *arg)
{
    struct talk *t = arg;
    for (uint64_t i = 0; i < t->count; i++)
        send(t->from, recv(t->to));
    return 0;
}

static double ping_pong(uint64_t ops, size_t capacity)
{
    struct talk talk = {chan(capacity), chan(capacity), ops};
    uint64_t began = tasks_now_ns();
    blitz_task *t = spawn(echo, &talk);
    for (uint64_t i = 0; i < ops; i++) {
        send(talk.to, i);
        bench_keep(recv(talk.from));
    }
    join(t);
    double ns = (double)(tasks_now_ns() - began);
    blitz_chan_unref(talk.to);
    blitz_chan_unref(talk.from);
    return ns;
}

static double rendezvous(uint64_t ops)
{
    return ping_pong(ops, 0);
}

static double ping_pong_1(uint64_t ops)
{
    return ping_pong(ops, 1);
}

/* ---- streams: one operation is one message ---- */

static int sends_many(void *arg)
{
    struct talk *t = arg;
    for (uint64_t i = 0; i < t->count; i++)
        send(t->to, i);
    return 0;
}

static int receives_many(void *arg)
{
    struct talk *t = arg;
    for (uint64_t i = 0; i < t->count; i++)
        bench_keep(recv(t->to));
    return 0;
}

static double stream(uint64_t ops, unsigned pairs, size_t capacity)
{
    struct talk talk = {chan(capacity), NULL, ops / pairs + 1};
    blitz_task *s[8], *r[8];
    uint64_t began = tasks_now_ns();
    for (unsigned i = 0; i < pairs; i++) {
        s[i] = spawn(sends_many, &talk);
        r[i] = spawn(receives_many, &talk);
    }
    for (unsigned i = 0; i < pairs; i++) {
        join(s[i]);
        join(r[i]);
    }
    double ns = (double)(tasks_now_ns() - began);
    blitz_chan_unref(talk.to);
    return ns;
}

static double spsc(uint64_t ops)
{
    return stream(ops, 1, CAPACITY);
}

static double mpmc(uint64_t ops)
{
    return stream(ops, 4, CAPACITY);
}

/* ---- in one task ---- */

static double send_recv(uint64_t ops)
{
    blitz_chan *c = chan(1);
    uint64_t began = tasks_now_ns();
    for (uint64_t i = 0; i < ops; i++) {
        send(c, i);
        bench_keep(recv(c));
    }
    double ns = (double)(tasks_now_ns() - began);
    blitz_chan_unref(c);
    return ns;
}

static double oneshot(uint64_t ops)
{
    uint64_t began = tasks_now_ns();
    for (uint64_t i = 0; i < ops; i++) {
        blitz_oneshot *o;
        uint64_t value = 0;
        must(blitz_oneshot_new(sizeof value, NULL, &o), "oneshot");
        must(blitz_oneshot_send(o, &i), "send");
        must(blitz_oneshot_recv(o, &value, BLITZ_FOREVER), "recv");
        blitz_oneshot_receiver_drop(o);
        bench_keep(value);
    }
    return (double)(tasks_now_ns() - began);
}

/* A select over 4 channels that all have something, and a send that replaces what it took. */
static double select_ready(uint64_t ops)
{
    blitz_chan *c[4];
    uint64_t value = 0;
    for (int i = 0; i < 4; i++) {
        c[i] = chan(1);
        send(c[i], 1);
    }
    uint64_t began = tasks_now_ns();
    for (uint64_t i = 0; i < ops; i++) {
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
        send(taken, value);
    }
    double ns = (double)(tasks_now_ns() - began);
    for (int i = 0; i < 4; i++)
        blitz_chan_unref(c[i]);
    return ns;
}

static const struct tasks_case cases[] = {
    {"rendezvous", TASKS_PACED, rendezvous, 0},
    {"ping-pong-1", TASKS_PACED, ping_pong_1, 0},
    {"spsc", TASKS_PACED, spsc, 0},
    {"mpmc", TASKS_PACED, mpmc, 0},
    {"send-recv", TASKS_PACED, send_recv, 0},
    {"oneshot", TASKS_PACED, oneshot, 0},
    {"select-4", TASKS_PACED, select_ready, 0},
};

int main(int argc, char **argv)
{
    return tasks_main(argc, argv, cases, sizeof cases / sizeof *cases, ours_start);
}
