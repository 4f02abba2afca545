/* Select: one of several happens, with all the others nothing was done. */
#include "harness.h"

#include <errno.h>

#include "blitz.h"
#include "chan/chan.h"
#include "support/bell.h"
#include "support/event.h"
#include "support/on_each.h"
#include "wait/waker.h"

static blitz_chan *chan_of_ints(size_t capacity)
{
    blitz_chan *c;
    CHECK_EQ(blitz_chan_new(sizeof(int), capacity, NULL, &c), 0);
    return c;
}

static void send_now(blitz_chan *c, int value)
{
    CHECK_EQ(blitz_chan_try_send(c, &value), 0);
}

static void check(blitz_chan *c, size_t len)
{
    CHECK_EQ(blitz_chan_len(c), len);
    bz_chan_lock(c);
    CHECK(bz_list_is_empty(&c->receivers) && bz_list_is_empty(&c->senders));
    CHECK_EQ(c->notified_receivers + c->notified_senders, 0u);
    bz_chan_check(c);
    bz_chan_unlock(c);
}

/* ---- ready cases ---- */

TEST(select, takes_the_case_that_is_ready)
{
    blitz_chan *a = chan_of_ints(1), *b = chan_of_ints(1);
    int in = 7, out = 0;
    send_now(b, 5);
    blitz_select_case cases[] = {blitz_case_recv(a, &out), blitz_case_recv(b, &out)};
    CHECK_EQ(blitz_select_wait(cases, 2, 0, 0), 1);
    CHECK_EQ(cases[1].error, 0);
    CHECK_EQ(out, 5);
    cases[0] = blitz_case_recv(a, &out);
    cases[1] = blitz_case_send(b, &in);
    CHECK_EQ(blitz_select_wait(cases, 2, 0, BLITZ_FOREVER), 1);
    CHECK_EQ(blitz_select_wait(cases, 2, 0, 0), -ETIMEDOUT);
    CHECK_EQ(blitz_select_wait(cases, 2, BLITZ_SELECT_NOW, BLITZ_FOREVER), -EAGAIN);
    blitz_chan_close(a);
    CHECK_EQ(blitz_select_wait(cases, 2, 0, 0), 0);
    CHECK_EQ(cases[0].error, -EPIPE);
    check(b, 1);
    blitz_chan_unref(a);
    blitz_chan_unref(b);
}

TEST(select, bad_input_is_refused)
{
    blitz_select_case cases[BLITZ_SELECT_MAX + 1];
    for (int i = 0; i <= BLITZ_SELECT_MAX; i++)
        cases[i] = blitz_case_recv(NULL, NULL);
    CHECK_EQ(blitz_select_wait(cases, BLITZ_SELECT_MAX + 1, 0, 0), -EINVAL);
    CHECK_EQ(blitz_select_wait(cases, BLITZ_SELECT_MAX, 0, 0), -ETIMEDOUT);
    CHECK_EQ(blitz_select_wait(NULL, 1, 0, 0), -EINVAL);
    CHECK_EQ(blitz_select_wait(NULL, 0, 0, 0), -ETIMEDOUT);
    cases[0] = blitz_case_future(NULL);
    CHECK_EQ(blitz_select_wait(cases, 1, 0, 0), -EINVAL);
    cases[0].kind = (blitz_select_kind)9;
    CHECK_EQ(blitz_select_wait(cases, 1, 0, 0), -EINVAL);
    blitz_select_future f;
    blitz_select_wait_future_init(&f, cases, 1, 0);
    CHECK_EQ(blitz_await(&f.future, BLITZ_FOREVER), 0);
    CHECK_EQ(f.result, -EINVAL);
}

/* Of four that are ready each is taken at least half as often as its share; in order, only the first. */
TEST(select, fair_favours_none_and_biased_the_first)
{
    enum { N = 4, ROUNDS = 4000 };
    blitz_chan *c[N];
    int taken[N] = {0}, out;
    blitz_select_case cases[N];
    for (int i = 0; i < N; i++) {
        c[i] = chan_of_ints(1);
        send_now(c[i], i);
        cases[i] = blitz_case_recv(c[i], &out);
    }
    for (int i = 0; i < ROUNDS; i++) {
        int chosen = blitz_select_wait(cases, N, BLITZ_SELECT_FAIR, 0);
        CHECK_EQ(out, chosen);
        taken[chosen]++;
        send_now(c[chosen], chosen);
        CHECK_EQ(blitz_select_wait(cases, N, BLITZ_SELECT_BIASED, 0), 0);
        send_now(c[0], 0);
    }
    for (int i = 0; i < N; i++) {
        CHECK_GE(taken[i], ROUNDS / N / 2);
        blitz_chan_unref(c[i]);
    }
}

/* ---- the statement ---- */

TEST(select, the_statement_runs_one_block)
{
    blitz_chan *a = chan_of_ints(1), *b = chan_of_ints(1);
    int out = 0, err = 1, ran = 0, evaluated = 0, nine = 9;
    send_now(a, 3);
    blitz_select(BLITZ_FOREVER)
    {
        blitz_on_recv((evaluated++, a), &out, &err)
        {
            ran += 1;
        }
        blitz_on_recv(b, &out, &err)
        {
            ran += 10;
        }
        blitz_on_timeout
        {
            ran += 100;
        }
    }
    CHECK_EQ(ran, 1);
    CHECK_EQ(evaluated, 1);
    CHECK_EQ(out, 3);
    CHECK_EQ(err, 0);
    blitz_select(BLITZ_FOREVER)
    {
        blitz_on_recv(a, &out, &err)
        {
            ran += 1;
        }
        blitz_on_recv(b, &out, NULL)
        {
            ran += 10;
        }
        blitz_otherwise
        {
            ran += 1000;
        }
    }
    CHECK_EQ(ran, 1001);
    blitz_select_biased(BLITZ_FOREVER)
    {
        blitz_on_send(a, &nine, NULL)
        {
            ran = 5;
            break;
        }
        blitz_on_send(b, &nine, NULL)
        {
            ran = 6;
        }
    }
    CHECK_EQ(ran, 5);
    blitz_select(0)
    {
        blitz_on_recv(NULL, &out, &err)
        {
            ran = 7;
        }
        blitz_on_timeout
        {
            ran = 8;
        }
        blitz_on_cancel
        {
            ran = 9;
        }
    }
    CHECK_EQ(ran, 8);
    blitz_chan_close(b);
    blitz_select(BLITZ_FOREVER)
    {
        blitz_on_send(b, &out, &err)
        {
            ran = 10;
        }
        blitz_on_time(BLITZ_FOREVER)
        {
            ran = 11;
        }
    }
    CHECK_EQ(ran, 10);
    CHECK_EQ(err, -EPIPE);
    blitz_select(BLITZ_FOREVER)
    {
        blitz_on_time(blitz_after(BLITZ_MS))
        {
            ran = 12;
        }
        blitz_on_time(BLITZ_FOREVER)
        {
            ran = 13;
        }
        blitz_on_timeout
        {
            ran = 14;
        }
    }
    CHECK_EQ(ran, 12);
    check(a, 1);
    blitz_chan_unref(a);
    blitz_chan_unref(b);
}

/* ---- waiting ---- */

enum { ROUNDS = 300 };

struct pair {
    blitz_chan *a, *b;
    blitz_task *task;
};

static int selects_from_both(void *arg)
{
    struct pair *p = arg;
    int seen[2] = {0, 0};
    while (seen[0] < ROUNDS || seen[1] < ROUNDS) {
        int out = -1, err = 1;
        blitz_select(BLITZ_FOREVER)
        {
            blitz_on_recv(p->a, &out, &err)
            {
                CHECK_EQ(out, seen[0]++);
            }
            blitz_on_recv(p->b, &out, &err)
            {
                CHECK_EQ(out, seen[1]++);
            }
            blitz_on_time(blitz_after(1000 * BLITZ_S))
            {
                FAIL("too late");
            }
        }
        CHECK_EQ(err, 0);
    }
    return 0;
}

static int sends_to_a(void *arg)
{
    for (int i = 0; i < ROUNDS; i++)
        CHECK_EQ(blitz_chan_send(((struct pair *)arg)->a, &i, BLITZ_FOREVER), 0);
    return 0;
}

static int selects_beside_senders(void *arg)
{
    (void)arg;
    for (size_t capacity = 0; capacity < 3; capacity++) {
        struct pair p = {chan_of_ints(capacity), chan_of_ints(capacity), NULL};
        blitz_task *t;
        CHECK_EQ(blitz_spawn(selects_from_both, &p, NULL, &p.task), 0);
        CHECK_EQ(blitz_spawn(sends_to_a, &p, NULL, &t), 0);
        for (int i = 0; i < ROUNDS; i++)
            CHECK_EQ(blitz_chan_send(p.b, &i, BLITZ_FOREVER), 0);
        CHECK_EQ(blitz_task_join(t, NULL, BLITZ_FOREVER), 0);
        CHECK_EQ(blitz_task_join(p.task, NULL, BLITZ_FOREVER), 0);
        check(p.a, 0);
        check(p.b, 0);
        blitz_chan_unref(p.a);
        blitz_chan_unref(p.b);
    }
    return 0;
}

TEST(select, waits_for_whichever_comes)
{
    t_on_each(selects_beside_senders, NULL, 0);
}

/* Sends to one and receives from the other, by turns of the order; sums tell if anything was lost. */
static int swaps(void *arg)
{
    struct pair *p = arg;
    int sent = 0, received = 0;
    while (sent < ROUNDS || received < ROUNDS) {
        int out, chosen;
        blitz_select_case cases[2];
        cases[0] = blitz_case_send(sent < ROUNDS ? p->a : NULL, &sent);
        cases[1] = blitz_case_recv(received < ROUNDS ? p->b : NULL, &out);
        chosen = blitz_select_wait(cases, 2, sent % 2 ? BLITZ_SELECT_BIASED : 0, BLITZ_FOREVER);
        CHECK_EQ(cases[chosen].error, 0);
        if (chosen == 0)
            sent++;
        else
            CHECK_EQ(out, received++);
    }
    return 0;
}

static int selects_meet(void *arg)
{
    (void)arg;
    for (size_t capacity = 0; capacity < 2; capacity++) {
        blitz_chan *a = chan_of_ints(capacity), *b = chan_of_ints(capacity);
        struct pair p[2] = {{a, b, NULL}, {b, a, NULL}};
        for (int i = 0; i < 2; i++)
            CHECK_EQ(blitz_spawn(swaps, &p[i], NULL, &p[i].task), 0);
        for (int i = 0; i < 2; i++)
            CHECK_EQ(blitz_task_join(p[i].task, NULL, BLITZ_FOREVER), 0);
        check(a, 0);
        check(b, 0);
        blitz_chan_unref(a);
        blitz_chan_unref(b);
    }
    return 0;
}

/* Bug class 25: each holds, as it were, what the other one waits for; in both orders of addresses. */
TEST(select, bug_25_two_that_send_to_each_other_do_not_block)
{
    t_on_each(selects_meet, NULL, 0);
}

static int never_meets_itself(void *arg)
{
    blitz_chan *c = chan_of_ints(0);
    int in = 1, out = 2;
    (void)arg;
    blitz_select_case cases[] = {blitz_case_send(c, &in), blitz_case_recv(c, &out),
                                 blitz_case_send(c, &in)};
    CHECK_EQ(blitz_select_wait(cases, 3, 0, blitz_after(BLITZ_MS)), -ETIMEDOUT);
    CHECK_EQ(out, 2);
    check(c, 0);
    blitz_chan_unref(c);
    return 0;
}

/* A select that both sends to a channel and receives from it. */
TEST(select, never_meets_itself)
{
    t_on_each(never_meets_itself, NULL, 0);
    CHECK_EQ(never_meets_itself(NULL), 0); /* a plain thread */
}

static int waits_in_a_select(void *arg)
{
    struct pair *p = arg;
    int out, in = 3;
    blitz_select_case cases[] = {blitz_case_recv(p->a, &out), blitz_case_send(p->b, &in)};
    return blitz_select_wait(cases, 2, 0, BLITZ_FOREVER);
}

static int is_cancelled_or_closed(void *arg)
{
    (void)arg;
    for (int round = 0; round < 3; round++) {
        struct pair p = {chan_of_ints(0), chan_of_ints(0), NULL};
        int result = -1, out = 0;
        CHECK_EQ(blitz_spawn(waits_in_a_select, &p, NULL, &p.task), 0);
        blitz_yield();
        if (round == 0)
            blitz_task_cancel(p.task);
        else if (round == 1)
            blitz_chan_close(p.b);
        else
            CHECK_EQ(blitz_chan_recv(p.b, &out, BLITZ_FOREVER), 0);
        CHECK_EQ(blitz_task_join(p.task, &result, BLITZ_FOREVER), 0);
        CHECK_EQ(result, round == 0 ? -ECANCELED : 1);
        CHECK_EQ(out, round == 2 ? 3 : 0);
        check(p.a, 0);
        check(p.b, 0);
        blitz_chan_unref(p.a);
        blitz_chan_unref(p.b);
    }
    return 0;
}

TEST(select, ends_by_a_cancel_or_a_close_and_leaves_no_trace)
{
    t_on_each(is_cancelled_or_closed, NULL, 0);
}

/* ---- futures ---- */

static int with_a_future(void *arg)
{
    blitz_chan *c = chan_of_ints(0);
    struct t_event e;
    int out = 0;
    (void)arg;
    t_event_init(&e, bz_os_here());
    blitz_select_case cases[] = {blitz_case_recv(c, &out), blitz_case_future(&e.f),
                                 blitz_case_time(blitz_after(BLITZ_MS))};
    CHECK_EQ(blitz_select_wait(cases, 3, 0, BLITZ_FOREVER), 2);
    CHECK_EQ(blitz_select_wait(cases, 2, 0, blitz_after(BLITZ_MS)), -ETIMEDOUT);
    CHECK_EQ(blitz_select_wait(cases, 2, BLITZ_SELECT_NOW, BLITZ_FOREVER), -EAGAIN);
    t_event_set(&e);
    cases[1].error = 77;
    CHECK_EQ(blitz_select_wait(cases, 2, 0, BLITZ_FOREVER), 1);
    CHECK_EQ(cases[1].error, 0); /* it has no output */
    check(c, 0);
    blitz_chan_unref(c);
    return 0;
}

TEST(select, takes_any_future_for_a_case)
{
    t_on_each(with_a_future, NULL, 0);
    CHECK_EQ(with_a_future(NULL), 0); /* a plain thread */
}

static int swaps_by_futures(void *arg)
{
    struct pair *p = arg;
    struct t_event never;
    int sent = 0, received = 0;
    t_event_init(&never, bz_os_here());
    while (sent < ROUNDS || received < ROUNDS) {
        int out = -1;
        blitz_select_case cases[3];
        cases[0] = blitz_case_send(sent < ROUNDS ? p->a : NULL, &sent);
        cases[1] = blitz_case_future(&never.f);
        cases[2] = blitz_case_recv(received < ROUNDS ? p->b : NULL, &out);
        int chosen = blitz_select_wait(cases, 3, 0, BLITZ_FOREVER);
        CHECK_EQ(cases[chosen].error, 0);
        if (chosen == 0)
            sent++;
        else
            CHECK_EQ(out, received++);
    }
    return 0;
}

static int polled_selects_meet(void *arg)
{
    for (size_t capacity = 0; capacity < 2; capacity++) {
        blitz_chan *a = chan_of_ints(capacity), *b = chan_of_ints(capacity);
        struct pair p[2] = {{a, b, NULL}, {b, a, NULL}};
        CHECK_EQ(blitz_spawn(swaps_by_futures, &p[0], NULL, &p[0].task), 0);
        CHECK_EQ(blitz_spawn(arg, &p[1], NULL, &p[1].task), 0);
        for (int i = 0; i < 2; i++)
            CHECK_EQ(blitz_task_join(p[i].task, NULL, BLITZ_FOREVER), 0);
        check(a, 0);
        check(b, 0);
        blitz_chan_unref(a);
        blitz_chan_unref(b);
    }
    return 0;
}

/* A sender that polls can be taken from while it looks elsewhere: then it has won, and nothing else. */
TEST(select, polled_ones_meet_polled_ones_and_others)
{
    t_on_each(polled_selects_meet, swaps_by_futures, 0);
    t_on_each(polled_selects_meet, swaps, 0);
}

/* The same by hand, at the one moment that matters. */
TEST(select, bug_21_a_send_that_was_taken_between_two_polls_is_the_one)
{
    blitz_chan *a = chan_of_ints(0), *b = chan_of_ints(1);
    struct t_bell bell = {.holders = 1};
    blitz_waker w = t_bell_waker(&bell);
    for (int is_cancelled = 0; is_cancelled < 2; is_cancelled++) {
        blitz_select_future f;
        int in = 4, out = 0, taken = 0;
        blitz_select_case cases[] = {blitz_case_recv(b, &out), blitz_case_send(a, &in)};
        blitz_select_wait_future_init(&f, cases, 2, 0);
        CHECK_EQ(f.future.ops->poll(&f.future, &w), BLITZ_PENDING);
        CHECK_EQ(blitz_chan_try_recv(a, &taken), 0);
        send_now(b, 8);
        if (is_cancelled)
            f.future.ops->cancel(&f.future);
        else
            CHECK_EQ(f.future.ops->poll(&f.future, &w), BLITZ_READY);
        CHECK_EQ(f.result, 1);
        CHECK_EQ(taken, 4);
        CHECK_EQ(out, 0); /* the value in b is still there */
        CHECK_EQ(blitz_chan_try_recv(b, &out), 0);
        CHECK_EQ(bell.holders, 1);
        check(a, 0);
        check(b, 0);
    }
    blitz_chan_unref(a);
    blitz_chan_unref(b);
}

static blitz_poll poll(blitz_select_future *f, struct t_bell *bell)
{
    blitz_waker w = t_bell_waker(bell);
    return f->future.ops->poll(&f->future, &w);
}

/* Two sends of one polled select wait at rendezvous channels: at most one of them is received. */
TEST(select, bug_51_a_polled_select_sends_at_most_once_between_two_polls)
{
    blitz_chan *c[] = {chan_of_ints(0), chan_of_ints(0)};
    for (int round = 0; round < 8; round++) {
        struct t_bell bell = {.holders = 1}, other = {.holders = 1};
        bool is_cancelled = round & 1, is_reversed = round & 2, is_polled = round & 4;
        int in[] = {4, 5}, out[] = {0, 0}, received = 0;
        blitz_select_future f;
        blitz_select_case cases[] = {blitz_case_send(c[0], &in[0]), blitz_case_send(c[1], &in[1])};
        blitz_select_wait_future_init(&f, cases, 2, 0);
        CHECK_EQ(poll(&f, &bell), BLITZ_PENDING);
        for (int i = 0; i < 2; i++) {
            int k = is_reversed ? 1 - i : i;
            blitz_chan_future r;
            blitz_chan_recv_future_init(&r, c[k], &out[k]);
            if (!is_polled) {
                received += blitz_chan_try_recv(c[k], &out[k]) == 0;
                continue;
            }
            blitz_waker w = t_bell_waker(&other);
            received += r.future.ops->poll(&r.future, &w) == BLITZ_READY;
            r.future.ops->cancel(&r.future);
        }
        if (is_cancelled)
            f.future.ops->cancel(&f.future);
        else
            CHECK_EQ(poll(&f, &bell), BLITZ_READY);
        CHECK_EQ(received, 1);
        CHECK_EQ(f.result, is_reversed);
        CHECK_EQ(out[f.result], in[f.result]);
        CHECK_EQ(out[1 - f.result], 0);
        CHECK_EQ(bell.holders + other.holders, 2);
        check(c[0], 0);
        check(c[1], 0);
    }
    blitz_chan_unref(c[0]);
    blitz_chan_unref(c[1]);
}

/* A polled select that sends to a rendezvous channel and receives from it is woken by others only. */
TEST(select, a_polled_select_never_meets_itself)
{
    blitz_chan *c = chan_of_ints(0);
    for (int is_reversed = 0; is_reversed < 2; is_reversed++) {
        struct t_bell bell[2] = {{.holders = 1}, {.holders = 1}};
        blitz_select_future f[2];
        blitz_select_case cases[2][3];
        int in[2] = {4, 5}, out[2] = {0, 0};
        for (int i = 0; i < 2; i++) {
            cases[i][is_reversed] = blitz_case_recv(c, &out[i]);
            cases[i][!is_reversed] = blitz_case_send(c, &in[i]);
            cases[i][2] = blitz_case_recv(c, &out[i]);
            blitz_select_wait_future_init(&f[i], cases[i], 3, 0);
        }
        CHECK_EQ(poll(&f[0], &bell[0]), BLITZ_PENDING);
        CHECK_EQ(poll(&f[0], &bell[0]), BLITZ_PENDING);
        CHECK_EQ(bell[0].rung, 0);
        CHECK_EQ(poll(&f[1], &bell[1]), BLITZ_READY); /* it receives from the other select */
        CHECK_EQ(bell[0].rung, 1);
        CHECK_EQ(poll(&f[0], &bell[0]), BLITZ_READY);
        CHECK_EQ(f[0].result, !is_reversed);
        CHECK_EQ(out[1], 4);
        CHECK_EQ(out[0], 0);
        check(c, 0);
    }
    blitz_chan_unref(c);
}

/* A receive future waits behind the receive of a select whose send it can take: it is the one to wake. */
TEST(select, a_polled_select_does_not_block_its_receivers)
{
    blitz_chan *c = chan_of_ints(0);
    struct t_bell s = {.holders = 1}, r = {.holders = 1};
    blitz_waker w = t_bell_waker(&r);
    int in = 4, out[2] = {0, 0};
    blitz_select_future f;
    blitz_chan_future recv;
    blitz_select_case cases[] = {blitz_case_recv(c, &out[0]), blitz_case_send(c, &in)};
    blitz_chan_recv_future_init(&recv, c, &out[1]);
    CHECK_EQ(recv.future.ops->poll(&recv.future, &w), BLITZ_PENDING);
    blitz_select_wait_future_init(&f, cases, 2, 0);
    CHECK_EQ(poll(&f, &s), BLITZ_PENDING);
    CHECK_EQ(r.rung, 1);
    recv.future.ops->cancel(&recv.future);
    CHECK_EQ(s.rung, 0);
    blitz_chan_recv_future_init(&recv, c, &out[1]);
    CHECK_EQ(recv.future.ops->poll(&recv.future, &w), BLITZ_READY);
    CHECK_EQ(out[1], 4);
    CHECK_EQ(poll(&f, &s), BLITZ_READY);
    CHECK_EQ(f.result, 1);
    check(c, 0);
    blitz_chan_unref(c);
}

/* A future that sends a value and closes the channel while it is polled, and is never ready. */
struct meddler {
    blitz_future f;
    blitz_chan *c;
};

static blitz_poll meddler_poll(blitz_future *f, const blitz_waker *w)
{
    struct meddler *m = BZ_CONTAINER_OF(f, struct meddler, f);
    int in = 4;
    (void)w;
    CHECK_EQ(blitz_chan_try_send(m->c, &in), 0);
    blitz_chan_close(m->c);
    return BLITZ_PENDING;
}

static void meddler_cancel(blitz_future *f)
{
    (void)f;
}

/*
 * Between the first check of a polled select and its registration the channel gets a value and is
 * closed. Many receive futures wait there; the first of them is notified of the value. The select
 * takes the value: now all others must learn that the channel is over, however many they are.
 */
TEST(select, a_polled_select_that_takes_the_last_value_wakes_all_later_waiters)
{
    static const blitz_future_ops ops = {"meddler", BLITZ_REVOCABLE, meddler_poll, meddler_cancel,
                                         NULL};
    enum { MANY = 40 };
    blitz_chan *c = chan_of_ints(1);
    struct meddler meddler = {{&ops}, c};
    struct t_bell bell[MANY], mine = {.holders = 1};
    blitz_chan_future recv[MANY];
    int out[MANY], got = 0;
    for (int i = 0; i < MANY; i++) {
        bell[i] = (struct t_bell){.holders = 1};
        blitz_waker w = t_bell_waker(&bell[i]);
        blitz_chan_recv_future_init(&recv[i], c, &out[i]);
        CHECK_EQ(recv[i].future.ops->poll(&recv[i].future, &w), BLITZ_PENDING);
    }
    blitz_select_future f;
    blitz_select_case cases[] = {blitz_case_recv(c, &got), blitz_case_future(&meddler.f)};
    blitz_select_wait_future_init(&f, cases, 2, BLITZ_SELECT_BIASED);
    CHECK_EQ(poll(&f, &mine), BLITZ_READY);
    CHECK_EQ(f.result, 0);
    CHECK_EQ(got, 4);
    for (int i = 0; i < MANY; i++) {
        CHECK_GE(bell[i].rung, 1);
        blitz_waker w = t_bell_waker(&bell[i]);
        CHECK_EQ(recv[i].future.ops->poll(&recv[i].future, &w), BLITZ_READY);
        CHECK_EQ(recv[i].result, -EPIPE);
    }
    blitz_chan_unref(c);
}

/* A time that has come is an outcome without an error. */
TEST(select, a_polled_select_that_ends_by_a_time_has_no_error)
{
    blitz_chan *c = chan_of_ints(1);
    struct t_bell bell = {.holders = 1};
    blitz_select_future f;
    int out = 0;
    blitz_select_case cases[] = {blitz_case_recv(c, &out), blitz_case_time(0)};
    cases[1].error = 5;
    blitz_select_wait_future_init(&f, cases, 2, 0);
    CHECK_EQ(poll(&f, &bell), BLITZ_READY);
    CHECK_EQ(f.result, 1);
    CHECK_EQ(cases[1].error, 0);
    blitz_chan_unref(c);
}

/* ---- pinned futures: asked to stop, waited for ---- */

struct pin {
    blitz_future f;
    int polls, cancels;
    bool is_done;
};

static blitz_poll pin_poll(blitz_future *f, const blitz_waker *w)
{
    struct pin *p = BZ_CONTAINER_OF(f, struct pin, f);
    (void)w;
    p->polls++;
    return p->is_done ? BLITZ_READY : BLITZ_PENDING;
}

static void pin_cancel(blitz_future *f)
{
    BZ_CONTAINER_OF(f, struct pin, f)->cancels++;
}

TEST(select, a_pinned_loser_is_waited_for)
{
    static const blitz_future_ops ops = {"pin", BLITZ_PINNED, pin_poll, pin_cancel, NULL};
    blitz_chan *c = chan_of_ints(1);
    struct t_bell bell = {.holders = 1};
    blitz_waker w = t_bell_waker(&bell);
    for (int is_cancelled = 0; is_cancelled < 2; is_cancelled++) {
        struct pin pin = {{&ops}, 0, 0, false};
        blitz_select_future f;
        int out = 0;
        blitz_select_case cases[] = {blitz_case_future(&pin.f), blitz_case_recv(c, &out)};
        blitz_select_wait_future_init(&f, cases, 2, BLITZ_SELECT_BIASED);
        CHECK_EQ(f.future.ops->kind, BLITZ_PINNED);
        CHECK_EQ(f.future.ops->poll(&f.future, &w), BLITZ_PENDING);
        if (is_cancelled)
            f.future.ops->cancel(&f.future);
        else
            send_now(c, 2);
        CHECK_EQ(f.future.ops->poll(&f.future, &w), BLITZ_PENDING);
        CHECK_EQ(pin.cancels, 1);
        pin.is_done = true;
        CHECK_EQ(f.future.ops->poll(&f.future, &w), BLITZ_READY);
        CHECK_EQ(f.result, is_cancelled ? -ECANCELED : 1);
        CHECK_EQ(out, is_cancelled ? 0 : 2);
        CHECK_EQ(bell.holders, 1);
        check(c, 0);
    }
    blitz_chan_unref(c);
}
