/*
 * Channels with real threads: fibers, futures, selects and plain threads on the same channels, at
 * 1, 2 and 8 procs. For the sanitizers; the received values must be those sent.
 */
#include "harness.h"

#include <errno.h>

#include "base/bz_atomic.h"
#include "base/compiler.h"
#include "blitz.h"

enum { FIBERS = 6 };

static blitz_chan *chan[3]; /* a rendezvous, one slot, unbounded */
static blitz_broadcast *broadcast;
static blitz_watch *watch;
static bz_atomic(uint64_t) sent, received; /* sums; relaxed: read when all have ended */
static uint64_t rounds;

static uint64_t value_of(uint64_t who, uint64_t i)
{
    return who << 32 | (i + 1);
}

static void has_sent(uint64_t value)
{
    bz_fetch_add_relaxed(&sent, value); /* relaxed: as above */
}

static void has_received(uint64_t value)
{
    bz_fetch_add_relaxed(&received, value); /* relaxed: as above */
}

/* Send by one of four ways; a deadline may pass, then it is tried once more. */
static void send_one(blitz_chan *c, uint64_t value, uint64_t i)
{
    blitz_chan_future f;
    blitz_permit permit;
    int rc = -ETIMEDOUT;
    while (rc == -ETIMEDOUT) {
        blitz_deadline until = i % 5 == 0 ? blitz_after(20 * BLITZ_US) : BLITZ_FOREVER;
        switch (i % 4) {
        case 0:
            blitz_chan_send_future_init(&f, c, &value);
            rc = blitz_await(&f.future, until);
            rc = f.result == -ECANCELED ? rc : f.result;
            break;
        case 1:
            rc = blitz_chan_reserve(c, &permit, until);
            if (rc == 0)
                blitz_permit_send(&permit, &value);
            else if (rc == -EOPNOTSUPP)
                rc = blitz_chan_send(c, &value, until);
            break;
        default:
            rc = blitz_chan_send(c, &value, until);
        }
    }
    CHECK_EQ(rc, 0);
    has_sent(value);
}

static int sends(void *arg)
{
    uint64_t who = (uint64_t)(uintptr_t)arg;
    for (uint64_t i = 0; i < rounds; i++) {
        send_one(chan[(i + who) % 3], value_of(who, i), i);
        if (i % 16 == 0) {
            CHECK_EQ(blitz_broadcast_send(broadcast, &i), 0);
            CHECK_EQ(blitz_watch_send(watch, &i), 0);
        }
    }
    return 0;
}

/* From all three, by a select, until all are closed and empty. */
static int receives(void *arg)
{
    uint64_t who = (uint64_t)(uintptr_t)arg;
    blitz_chan *from[3] = {chan[0], chan[1], chan[2]};
    for (uint64_t i = who; from[0] != NULL || from[1] != NULL || from[2] != NULL; i++) {
        uint64_t value;
        blitz_select_case cases[4];
        for (int k = 0; k < 3; k++)
            cases[k] = blitz_case_recv(from[k], &value);
        cases[3] = blitz_case_time(blitz_after(i % 7 == 0 ? 10 * BLITZ_US : BLITZ_S));
        int chosen;
        if (i % 3 == 0) {
            blitz_select_future f;
            blitz_select_wait_future_init(&f, cases, 4, 0);
            CHECK_EQ(blitz_await(&f.future, BLITZ_FOREVER), 0);
            chosen = f.result;
        } else {
            chosen = blitz_select_wait(cases, 4, 0, BLITZ_FOREVER);
        }
        CHECK_GE(chosen, 0);
        if (chosen < 3 && cases[chosen].error == -EPIPE)
            from[chosen] = NULL;
        else if (chosen < 3)
            has_received(value);
    }
    return 0;
}

/* Each is cancelled in the middle of something, and counts what it has done. */
static int is_cancelled_soon(void *arg)
{
    uint64_t who = (uint64_t)(uintptr_t)arg;
    for (uint64_t i = 0;; i++) {
        uint64_t in = value_of(who, i), out;
        blitz_select_case cases[2];
        cases[0] = blitz_case_send(chan[i % 2], &in);
        cases[1] = blitz_case_recv(chan[(i + 1) % 2], &out);
        int chosen = blitz_select_wait(cases, 2, 0, BLITZ_FOREVER);
        if (chosen < 0)
            return chosen;
        if (cases[chosen].error != 0)
            return cases[chosen].error;
        if (chosen == 0)
            has_sent(in);
        else
            has_received(out);
        if (blitz_is_cancelled())
            return -ECANCELED;
    }
}

static int follows(void *arg)
{
    blitz_broadcast_rx rx;
    uint64_t value, missed, seen = 0;
    (void)arg;
    blitz_broadcast_subscribe(broadcast, &rx);
    while (blitz_broadcast_recv(&rx, &value, &missed, BLITZ_FOREVER) == 0)
        if (blitz_watch_recv(watch, &value, &seen, blitz_after(10 * BLITZ_US)) == -EPIPE)
            break;
    blitz_broadcast_unsubscribe(&rx);
    return 0;
}

static int pings(void *arg)
{
    for (uint64_t i = 0; i < rounds; i++) {
        blitz_oneshot *o;
        uint64_t value = 0;
        CHECK_EQ(blitz_oneshot_new(sizeof value, NULL, &o), 0);
        CHECK_EQ(blitz_chan_send(arg, &o, BLITZ_FOREVER), 0);
        int rc = blitz_oneshot_recv(o, &value, i % 3 ? BLITZ_FOREVER : blitz_after(5 * BLITZ_US));
        blitz_oneshot_receiver_drop(o);
        CHECK_EQ(value, rc == 0 ? 42u : 0u);
    }
    blitz_chan_close(arg);
    return 0;
}

static int pongs(void *arg)
{
    blitz_oneshot *o;
    for (uint64_t i = 0; blitz_chan_recv(arg, &o, BLITZ_FOREVER) == 0; i++) {
        if (i % 5 == 0)
            blitz_oneshot_sender_drop(o);
        else
            (void)!blitz_oneshot_send(o, &(uint64_t){42});
    }
    return 0;
}

/* The last sender, fiber or thread, closes. */
static void count_senders(int n)
{
    for (int i = 0; i < n; i++)
        for (int k = 0; k < 3; k++)
            CHECK_EQ(blitz_chan_sender_add(chan[k]), 0);
}

static void sender_ends(void)
{
    for (int k = 0; k < 3; k++)
        blitz_chan_sender_drop(chan[k]);
}

static int sends_and_ends(void *arg)
{
    sends(arg);
    sender_ends();
    return 0;
}

static int all_of_it(void *arg)
{
    blitz_task *t[16];
    blitz_chan *shots;
    int n = 0;
    (void)arg;
    CHECK_EQ(blitz_chan_new(sizeof(blitz_oneshot *), 1, NULL, &shots), 0);
    for (uintptr_t i = 0; i < 3; i++)
        CHECK_EQ(blitz_spawn(is_cancelled_soon, (void *)(100 + i), NULL, &t[n++]), 0);
    for (uintptr_t i = 0; i < FIBERS; i++)
        CHECK_EQ(blitz_spawn(i % 2 ? receives : sends_and_ends, (void *)(i + 1), NULL, &t[n++]), 0);
    CHECK_EQ(blitz_spawn(pings, shots, NULL, &t[n++]), 0);
    CHECK_EQ(blitz_spawn(pongs, shots, NULL, &t[n++]), 0);
    for (int i = 0; i < n; i++) {
        if (i < 3)
            blitz_task_cancel(t[i]);
        CHECK_EQ(blitz_task_join(t[i], NULL, BLITZ_FOREVER), 0);
        blitz_yield();
    }
    blitz_chan_unref(shots);
    return 0;
}

static unsigned procs;

/* One thread runs the runtime, the others are plain: a sender, a receiver, a follower. */
static void party(void *arg, int index)
{
    (void)arg;
    if (index == 0) {
        CHECK_EQ(blitz_run(all_of_it, NULL, &(blitz_runtime_opts){.procs = procs}), 0);
        blitz_broadcast_close(broadcast);
        blitz_watch_close(watch);
    } else if (index == 1) {
        sends_and_ends((void *)(uintptr_t)50);
    } else if (index == 2) {
        receives((void *)(uintptr_t)51);
    } else {
        follows(NULL);
    }
}

static void on_procs(unsigned count)
{
    static const size_t capacity[] = {0, 1, BLITZ_UNBOUNDED};
    procs = count;
    rounds = t_scaled(600);
    bz_atomic_init(&sent, 0);
    bz_atomic_init(&received, 0);
    for (int k = 0; k < 3; k++)
        CHECK_EQ(blitz_chan_new(sizeof(uint64_t), capacity[k], NULL, &chan[k]), 0);
    CHECK_EQ(blitz_broadcast_new(sizeof(uint64_t), 4, &broadcast), 0);
    CHECK_EQ(blitz_watch_new(sizeof(uint64_t), &rounds, &watch), 0);
    count_senders(FIBERS / 2 + 1);
    t_threads(4, party, NULL);
    CHECK_EQ(bz_load_relaxed(&received), bz_load_relaxed(&sent)); /* relaxed: all have ended */
    for (int k = 0; k < 3; k++) {
        CHECK_EQ(blitz_chan_len(chan[k]), 0u);
        blitz_chan_unref(chan[k]);
    }
    blitz_broadcast_unref(broadcast);
    blitz_watch_unref(watch);
}

TEST_LIMIT(chan_stress, nothing_is_lost_at_1_proc_with_plain_threads_beside, 120)
{
    on_procs(1);
}

TEST_LIMIT(chan_stress, nothing_is_lost_at_2_procs_with_plain_threads_beside, 120)
{
    on_procs(2);
}

TEST_LIMIT(chan_stress, nothing_is_lost_at_8_procs_with_plain_threads_beside, 120)
{
    on_procs(8);
}
