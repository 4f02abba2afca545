/* Senders that wait until no receiver is left: channels, oneshots, broadcasts and watches, by one table. */
#include "harness.h"

#include <errno.h>

#include "base/bz_atomic.h"
#include "base/compiler.h"
#include "blitz.h"
#include "support/bell.h"
#include "support/on_each.h"

/* An object with one receiver. */
struct sender {
    blitz_chan *chan;
    blitz_oneshot *oneshot;
    blitz_broadcast *broadcast;
    blitz_broadcast_rx rx;
    blitz_watch *watch;
};

struct kind {
    const char *name;
    void (*make)(struct sender *s);
    void (*end)(struct sender *s);  /* the receiver goes */
    void (*drop)(struct sender *s); /* the sender goes */
    int (*wait)(struct sender *s, blitz_deadline until);
    void (*future)(blitz_closed_future *f, struct sender *s);
};

static void chan_make(struct sender *s)
{
    CHECK_EQ(blitz_chan_new(sizeof(int), 1, NULL, &s->chan), 0);
    CHECK_EQ(blitz_chan_receiver_add(s->chan), 0);
}
static void chan_end(struct sender *s)
{
    blitz_chan_receiver_drop(s->chan);
}
static void chan_drop(struct sender *s)
{
    blitz_chan_unref(s->chan);
}
static int chan_wait(struct sender *s, blitz_deadline until)
{
    return blitz_chan_wait_closed(s->chan, until);
}
static void chan_future(blitz_closed_future *f, struct sender *s)
{
    blitz_chan_wait_closed_future_init(f, s->chan);
}

static void oneshot_make(struct sender *s)
{
    CHECK_EQ(blitz_oneshot_new(sizeof(int), NULL, &s->oneshot), 0);
}
static void oneshot_end(struct sender *s)
{
    blitz_oneshot_receiver_drop(s->oneshot);
}
static void oneshot_drop(struct sender *s)
{
    blitz_oneshot_sender_drop(s->oneshot);
}
static int oneshot_wait(struct sender *s, blitz_deadline until)
{
    return blitz_oneshot_wait_closed(s->oneshot, until);
}
static void oneshot_future(blitz_closed_future *f, struct sender *s)
{
    blitz_oneshot_wait_closed_future_init(f, s->oneshot);
}

static void broadcast_make(struct sender *s)
{
    CHECK_EQ(blitz_broadcast_new(sizeof(int), 1, &s->broadcast), 0);
    blitz_broadcast_subscribe(s->broadcast, &s->rx);
}
static void broadcast_end(struct sender *s)
{
    blitz_broadcast_unsubscribe(&s->rx);
}
static void broadcast_drop(struct sender *s)
{
    blitz_broadcast_unref(s->broadcast);
}
static int broadcast_wait(struct sender *s, blitz_deadline until)
{
    return blitz_broadcast_wait_closed(s->broadcast, until);
}
static void broadcast_future(blitz_closed_future *f, struct sender *s)
{
    blitz_broadcast_wait_closed_future_init(f, s->broadcast);
}

static void watch_make(struct sender *s)
{
    CHECK_EQ(blitz_watch_new(sizeof(int), &(int){0}, &s->watch), 0);
    blitz_watch_receiver_add(s->watch);
}
static void watch_end(struct sender *s)
{
    blitz_watch_receiver_drop(s->watch);
}
static void watch_drop(struct sender *s)
{
    blitz_watch_unref(s->watch);
}
static int watch_wait(struct sender *s, blitz_deadline until)
{
    return blitz_watch_wait_closed(s->watch, until);
}
static void watch_future(blitz_closed_future *f, struct sender *s)
{
    blitz_watch_wait_closed_future_init(f, s->watch);
}

static const struct kind kinds[] = {
    {"channel", chan_make, chan_end, chan_drop, chan_wait, chan_future},
    {"oneshot", oneshot_make, oneshot_end, oneshot_drop, oneshot_wait, oneshot_future},
    {"broadcast", broadcast_make, broadcast_end, broadcast_drop, broadcast_wait, broadcast_future},
    {"watch", watch_make, watch_end, watch_drop, watch_wait, watch_future},
};

#define EACH_KIND(kind) \
    for (const struct kind *kind = kinds; kind < kinds + BZ_ARRAY_LEN(kinds); kind++)

/* ---- alone ---- */

TEST(closed, a_wait_ends_at_once_after_the_end_and_not_before)
{
    EACH_KIND(kind)
    {
        struct sender s = {0};
        t_watch("%s", kind->name);
        kind->make(&s);
        CHECK_EQ(kind->wait(&s, 0), -ETIMEDOUT);
        CHECK_EQ(kind->wait(&s, blitz_after(BLITZ_MS)), -ETIMEDOUT);
        kind->end(&s);
        CHECK_EQ(kind->wait(&s, 0), 0);
        CHECK_EQ(kind->wait(&s, BLITZ_FOREVER), 0);
        kind->drop(&s);
    }
}

TEST(closed, a_future_is_ready_at_the_end_and_drops_its_waker)
{
    EACH_KIND(kind)
    {
        struct t_bell bell = {.holders = 1};
        blitz_waker w = t_bell_waker(&bell);
        struct sender s = {0};
        blitz_closed_future f;
        t_watch("%s", kind->name);
        kind->make(&s);
        kind->future(&f, &s);
        CHECK_EQ(f.future.ops->poll(&f.future, &w), BLITZ_PENDING);
        CHECK_EQ(f.future.ops->poll(&f.future, &w), BLITZ_PENDING);
        CHECK_EQ(bell.holders, 2);
        kind->end(&s);
        CHECK_EQ(bell.rung, 1);
        CHECK_EQ(bell.holders, 1);
        CHECK_EQ(f.future.ops->poll(&f.future, &w), BLITZ_READY);
        CHECK_EQ(f.future.ops->poll(&f.future, &w), BLITZ_READY);
        CHECK_EQ(f.result, 0);
        CHECK_EQ(f.future.ops->output(&f.future), 0);
        f.future.ops->cancel(&f.future); /* too late */
        CHECK_EQ(f.result, 0);
        kind->future(&f, &s); /* a new one is ready at once */
        CHECK_EQ(f.future.ops->poll(&f.future, &w), BLITZ_READY);
        CHECK_EQ(bell.holders, 1);
        kind->drop(&s);
    }
}

/* A select cancels the cases that have lost: before their first poll, while they wait, and after their wake-up. */
TEST(closed, a_cancelled_future_leaves_nothing_behind)
{
    EACH_KIND(kind)
    {
        for (int polls = 0; polls < 3; polls++) {
            struct t_bell bell = {.holders = 1};
            blitz_waker w = t_bell_waker(&bell);
            struct sender s = {0};
            blitz_closed_future f;
            t_watch("%s, %d", kind->name, polls);
            kind->make(&s);
            kind->future(&f, &s);
            if (polls > 0)
                CHECK_EQ(f.future.ops->poll(&f.future, &w), BLITZ_PENDING);
            if (polls == 2)
                kind->end(&s);
            f.future.ops->cancel(&f.future);
            CHECK_EQ(f.result, polls == 2 ? 0 : -ECANCELED); /* it says what it knows */
            f.future.ops->cancel(&f.future);
            CHECK_EQ(bell.holders, 1);
            if (polls != 2)
                kind->end(&s);
            CHECK_EQ(bell.rung, polls == 2);
            kind->drop(&s);
        }
    }
}

/* ---- many, of every form ---- */

enum { MANY = 40 }; /* more than a wake list holds */

struct crowd {
    const struct kind *kind;
    struct sender s;
    bz_atomic(int) waiting, released;
};

static int waits(void *arg)
{
    struct crowd *c = arg;
    bz_fetch_add_seqcst(&c->waiting, 1); /* seq_cst: a count of the test */
    CHECK_EQ(c->kind->wait(&c->s, BLITZ_FOREVER), 0);
    bz_fetch_add_seqcst(&c->released, 1); /* seq_cst: likewise */
    return 0;
}

static int awaits(void *arg)
{
    struct crowd *c = arg;
    blitz_closed_future f;
    bz_fetch_add_seqcst(&c->waiting, 1); /* seq_cst: likewise */
    c->kind->future(&f, &c->s);
    CHECK_EQ(blitz_await(&f.future, BLITZ_FOREVER), 0);
    CHECK_EQ(f.result, 0);
    bz_fetch_add_seqcst(&c->released, 1); /* seq_cst: likewise */
    return 0;
}

static int releases_a_crowd(void *arg)
{
    struct crowd *c = arg;
    blitz_task *t[MANY];
    c->kind->make(&c->s);
    bz_store_seqcst(&c->waiting, 0);  /* seq_cst: likewise */
    bz_store_seqcst(&c->released, 0); /* seq_cst: likewise */
    for (int i = 0; i < MANY; i++)
        CHECK_EQ(blitz_spawn(i % 2 ? waits : awaits, c, NULL, &t[i]), 0);
    while (bz_load_seqcst(&c->waiting) != MANY) /* seq_cst: likewise */
        blitz_yield();
    CHECK_EQ(bz_load_seqcst(&c->released), 0); /* seq_cst: likewise */
    c->kind->end(&c->s);
    for (int i = 0; i < MANY; i++)
        CHECK_EQ(blitz_task_join(t[i], NULL, BLITZ_FOREVER), 0);
    c->kind->drop(&c->s);
    return 0;
}

TEST(closed, the_end_releases_all_waiters)
{
    EACH_KIND(kind)
    {
        struct crowd c = {.kind = kind};
        t_on_each(releases_a_crowd, &c, 0);
    }
}

/* Thread 0 is the receiver; the others are senders. */
static void thread_waits_or_ends(void *arg, int index)
{
    struct crowd *c = arg;
    if (index == 0) {
        while (bz_load_seqcst(&c->waiting) != 3) /* seq_cst: a count of the test */
            blitz_yield();
        c->kind->end(&c->s);
    } else if (index % 2) {
        waits(c);
    } else {
        awaits(c);
    }
}

TEST(closed, plain_threads_wait_too)
{
    EACH_KIND(kind)
    {
        struct crowd c = {.kind = kind};
        kind->make(&c.s);
        t_threads(4, thread_waits_or_ends, &c);
        CHECK_EQ(bz_load_seqcst(&c.released), 3); /* seq_cst: likewise */
        kind->drop(&c.s);
    }
}

static int is_cancelled(void *arg)
{
    struct crowd *c = arg;
    bz_fetch_add_seqcst(&c->waiting, 1); /* seq_cst: likewise */
    return c->kind->wait(&c->s, BLITZ_FOREVER);
}

static int cancels_some(void *arg)
{
    struct crowd *c = arg;
    blitz_task *t[MANY];
    c->kind->make(&c->s);
    bz_store_seqcst(&c->waiting, 0); /* seq_cst: likewise */
    for (int i = 0; i < MANY; i++)
        CHECK_EQ(blitz_spawn(is_cancelled, c, NULL, &t[i]), 0);
    while (bz_load_seqcst(&c->waiting) != MANY) /* seq_cst: likewise */
        blitz_yield();
    for (int i = 0; i < MANY; i += 2)
        blitz_task_cancel(t[i]);
    for (int i = 0; i < MANY; i += 2) {
        int result = 1;
        CHECK_EQ(blitz_task_join(t[i], &result, BLITZ_FOREVER), 0);
        CHECK_EQ(result, -ECANCELED);
    }
    c->kind->end(&c->s);
    for (int i = 1; i < MANY; i += 2) {
        int result = 1;
        CHECK_EQ(blitz_task_join(t[i], &result, BLITZ_FOREVER), 0);
        CHECK_EQ(result, 0);
    }
    c->kind->drop(&c->s);
    return 0;
}

TEST(closed, a_cancel_ends_one_wait_and_leaves_the_others)
{
    EACH_KIND(kind)
    {
        struct crowd c = {.kind = kind};
        t_on_each(cancels_some, &c, 0);
    }
}

/* ---- each kind has its own ends ---- */

TEST(closed, a_channel_ends_by_close_by_shut_and_by_its_counted_handles)
{
    for (int how = 0; how < 4; how++) {
        struct t_bell bell = {.holders = 1};
        blitz_waker w = t_bell_waker(&bell);
        blitz_closed_future f;
        blitz_chan *c;
        CHECK_EQ(blitz_chan_new(sizeof(int), how, NULL, &c), 0);
        CHECK_EQ(blitz_chan_sender_add(c), 0);
        CHECK_EQ(blitz_chan_receiver_add(c), 0);
        blitz_chan_wait_closed_future_init(&f, c);
        CHECK_EQ(f.future.ops->poll(&f.future, &w), BLITZ_PENDING);
        if (how == 0)
            blitz_chan_close(c);
        else if (how == 1)
            CHECK_EQ(blitz_chan_shut(c), 0u);
        if (how != 2)
            blitz_chan_sender_drop(c);
        else
            blitz_chan_receiver_drop(c);
        CHECK_EQ(f.future.ops->poll(&f.future, &w), BLITZ_READY);
        CHECK_EQ(blitz_chan_wait_closed(c, 0), 0);
        if (how == 2)
            blitz_chan_sender_drop(c);
        else
            blitz_chan_receiver_drop(c);
        CHECK_EQ(bell.rung, 1);
        blitz_chan_unref(c);
    }
}

static int dropped;

static void drops(void *value, void *ctx)
{
    (void)ctx;
    dropped += *(int *)value;
}

/* The sender has waited for the end before, so the receiver leaves the long way. */
TEST(closed, a_oneshot_is_sent_or_refused_after_a_wait)
{
    for (int order = 0; order < 4; order++) {
        blitz_oneshot *o;
        int out = 0;
        dropped = 0;
        CHECK_EQ(blitz_oneshot_new(sizeof(int), &(blitz_oneshot_opts){.drop = drops}, &o), 0);
        CHECK_EQ(blitz_oneshot_wait_closed(o, 0), -ETIMEDOUT);
        CHECK(!blitz_oneshot_is_closed(o));
        if (order < 2)
            CHECK_EQ(blitz_oneshot_send(o, &(int){7}), 0);
        if (order == 1)
            CHECK_EQ(blitz_oneshot_try_recv(o, &out), 0);
        blitz_oneshot_receiver_drop(o);
        if (order >= 2)
            CHECK(blitz_oneshot_is_closed(o));
        if (order == 2)
            CHECK_EQ(blitz_oneshot_send(o, &(int){7}), -EPIPE);
        else if (order == 3)
            blitz_oneshot_sender_drop(o);
        CHECK_EQ(dropped, order == 0 ? 7 : 0); /* a refused value is the sender's */
        CHECK_EQ(out, order == 1 ? 7 : 0);
    }
}

/* A waiter of a broadcast or a watch wants the end that comes after it. */
TEST(closed, a_receiver_that_comes_back_closes_the_way_for_later_waiters_only)
{
    struct t_bell bell = {.holders = 1};
    blitz_waker w = t_bell_waker(&bell);
    blitz_closed_future first, second;
    blitz_broadcast *b;
    blitz_broadcast_rx rx;
    CHECK_EQ(blitz_broadcast_new(sizeof(int), 1, &b), 0);
    CHECK_EQ(blitz_broadcast_wait_closed(b, 0), 0); /* no receiver yet */
    blitz_broadcast_subscribe(b, &rx);
    blitz_broadcast_wait_closed_future_init(&first, b);
    CHECK_EQ(first.future.ops->poll(&first.future, &w), BLITZ_PENDING);
    blitz_broadcast_unsubscribe(&rx);
    blitz_broadcast_subscribe(b, &rx);
    blitz_broadcast_wait_closed_future_init(&second, b);
    CHECK_EQ(second.future.ops->poll(&second.future, &w), BLITZ_PENDING);
    CHECK_EQ(first.future.ops->poll(&first.future, &w), BLITZ_READY);
    CHECK_EQ(bell.rung, 1);
    blitz_broadcast_close(b); /* the other end */
    CHECK_EQ(bell.rung, 2);
    CHECK_EQ(second.future.ops->poll(&second.future, &w), BLITZ_READY);
    blitz_broadcast_unsubscribe(&rx);
    blitz_broadcast_unref(b);
}

TEST(closed, a_watch_counts_its_receivers)
{
    blitz_watch *w;
    CHECK_EQ(blitz_watch_new(sizeof(int), &(int){0}, &w), 0);
    CHECK_EQ(blitz_watch_receivers(w), 0u);
    CHECK_EQ(blitz_watch_wait_closed(w, 0), 0);
    blitz_watch_receiver_add(w);
    blitz_watch_receiver_add(w);
    CHECK_EQ(blitz_watch_receivers(w), 2u);
    blitz_watch_receiver_drop(w);
    CHECK_EQ(blitz_watch_wait_closed(w, 0), -ETIMEDOUT);
    blitz_watch_unref(w); /* the receiver's reference keeps it */
    CHECK_EQ(blitz_watch_receivers(w), 1u);
    blitz_watch_close(w);
    CHECK_EQ(blitz_watch_wait_closed(w, 0), 0);
    blitz_watch_receiver_drop(w);
}

static void drops_too_often(void *arg)
{
    blitz_watch_receiver_drop(arg);
}

static void drops_with_a_waiter(void *arg)
{
    struct t_bell bell = {.holders = 1};
    blitz_waker waker = t_bell_waker(&bell);
    blitz_closed_future f;
    blitz_chan_wait_closed_future_init(&f, arg);
    (void)f.future.ops->poll(&f.future, &waker);
    blitz_chan_unref(arg);
}

TEST(closed, misuse_is_named)
{
    blitz_watch *w;
    blitz_chan *c;
    CHECK_EQ(blitz_watch_new(sizeof(int), &(int){0}, &w), 0);
    CHECK_ABORTS(drops_too_often, w, "more receivers are dropped than were added");
    blitz_watch_unref(w);
    CHECK_EQ(blitz_chan_new(sizeof(int), 0, NULL, &c), 0);
    CHECK_ABORTS(drops_with_a_waiter, c, "its last holder goes while a task waits");
    blitz_chan_unref(c);
}
