/* Rates and retries at their edges. tests/sim/rate_sim.c has their times. */
#include "harness.h"
#include "support/bell.h"
#include "support/on_each.h"

/* ---- rate ---- */

TEST(rate, bad_numbers_are_refused)
{
    blitz_rate r;
    CHECK_EQ(blitz_rate_init(&r, 0, BLITZ_S, 1), -EINVAL);
    CHECK_EQ(blitz_rate_init(&r, 1, 0, 1), -EINVAL);
    CHECK_EQ(blitz_rate_init(&r, 1, BLITZ_S, 0), -EINVAL);
    CHECK_EQ(blitz_rate_init(&r, 1, BLITZ_S, UINT64_MAX / BLITZ_S), -EINVAL);
    CHECK_EQ(blitz_rate_init(&r, 1, BLITZ_FOREVER, 1), -EINVAL);
    CHECK_EQ(blitz_rate_init(&r, UINT64_MAX, 1, 1), -EINVAL);
    CHECK_EQ(blitz_rate_init(&r, INT64_MAX, INT64_MAX, 1), 0);
    CHECK_EQ(blitz_rate_try_acquire(&r, 1), 0);
}

TEST(rate, a_full_bucket_has_its_burst_at_once_and_no_more)
{
    blitz_rate r;
    CHECK_EQ(blitz_rate_init(&r, 1, 3600 * BLITZ_S, 5), 0);
    CHECK_EQ(blitz_rate_permits(&r), 5u);
    CHECK_EQ(blitz_rate_try_acquire(&r, 6), -EINVAL);
    CHECK_EQ(blitz_rate_acquire(&r, 6, BLITZ_FOREVER), -EINVAL);
    CHECK_EQ(blitz_rate_acquire(&r, 3, 0), 0);
    CHECK_EQ(blitz_rate_try_acquire(&r, 2), 0);
    CHECK_EQ(blitz_rate_try_acquire(&r, 1), -EAGAIN);
    CHECK_EQ(blitz_rate_try_acquire(&r, 0), 0);
    CHECK_EQ(blitz_rate_permits(&r), 0u);
}

/* A plain thread and a task: a deadline takes nothing. */
static int gives_up(void *arg)
{
    blitz_rate *r = arg;
    CHECK_EQ(blitz_rate_acquire(r, 1, 0), -ETIMEDOUT);
    CHECK_EQ(blitz_rate_acquire(r, 1, blitz_after(BLITZ_MS)), -ETIMEDOUT);
    return 0;
}

TEST(rate, a_deadline_takes_nothing)
{
    blitz_rate r;
    CHECK_EQ(blitz_rate_init(&r, 1, 3600 * BLITZ_S, 1), 0);
    CHECK_EQ(blitz_rate_try_acquire(&r, 1), 0);
    CHECK_EQ(gives_up(&r), 0);
    t_on_each(gives_up, &r, 0);
}

static blitz_poll ask(blitz_future *f, struct t_bell *b)
{
    blitz_waker w = t_bell_waker(b);
    return f->ops->poll(f, &w);
}

/* While one waits, no other call takes permits; the waiter that leaves lets them go on. */
TEST(rate, a_waiter_is_not_passed_and_passes_its_turn_on)
{
    blitz_rate r;
    blitz_rate_future big, small;
    struct t_bell bell = {0}, other = {0};
    CHECK_EQ(blitz_rate_init(&r, 1, 3600 * BLITZ_S, 3), 0);
    CHECK_EQ(blitz_rate_try_acquire(&r, 1), 0);
    blitz_rate_acquire_future_init(&big, &r, 3);
    blitz_rate_acquire_future_init(&small, &r, 1);
    CHECK_EQ(ask(&big.future, &bell), BLITZ_PENDING);
    CHECK_EQ(blitz_rate_try_acquire(&r, 1), -EAGAIN);
    CHECK_EQ(ask(&small.future, &other), BLITZ_PENDING);
    big.future.ops->cancel(&big.future);
    CHECK_GE(other.rung, 1);
    CHECK_EQ(ask(&small.future, &other), BLITZ_READY);
    CHECK_EQ(blitz_future_output(&small.future), 0);
    CHECK_EQ(ask(&small.future, &other), BLITZ_READY);
    CHECK_EQ(blitz_rate_try_acquire(&r, 1), 0);
    CHECK_EQ(bell.holders, 0);
    CHECK_EQ(other.holders, 0);
}

TEST(rate, a_future_for_more_than_the_burst_is_ready_with_an_error)
{
    blitz_rate r;
    blitz_rate_future f;
    struct t_bell bell = {0};
    CHECK_EQ(blitz_rate_init(&r, 1, BLITZ_S, 3), 0);
    blitz_rate_acquire_future_init(&f, &r, 4);
    CHECK_EQ(ask(&f.future, &bell), BLITZ_READY);
    CHECK_EQ(f.result, -EINVAL);
    blitz_rate_acquire_future_init(&f, &r, 4);
    f.future.ops->cancel(&f.future); /* never polled */
    CHECK_EQ(blitz_rate_permits(&r), 3u);
}

/* ---- retry ---- */

TEST(retry, exact_pauses_double_up_to_the_longest)
{
    blitz_backoff b;
    blitz_backoff_init(&b, &(blitz_backoff_opts){.first = 3, .most = 20, .is_exact = true});
    static const uint64_t want[] = {3, 6, 12, 20, 20};
    for (size_t i = 0; i < 5; i++)
        CHECK_EQ(blitz_backoff_next(&b), want[i]);
    for (int i = 0; i < 200; i++)
        CHECK_EQ(blitz_backoff_next(&b), 20u);
    blitz_backoff_reset(&b);
    CHECK_EQ(blitz_backoff_next(&b), 3u);
}

TEST(retry, defaults_and_corners)
{
    blitz_backoff b;
    blitz_backoff_init(&b, NULL);
    CHECK_LE(blitz_backoff_next(&b), 100 * BLITZ_MS);
    for (int i = 0; i < 100; i++)
        (void)blitz_backoff_next(&b);
    CHECK_GE(blitz_backoff_next(&b), 15 * BLITZ_S);
    blitz_backoff_init(&b, &(blitz_backoff_opts){.first = BLITZ_S, .most = 1, .is_exact = true});
    CHECK_EQ(blitz_backoff_next(&b), BLITZ_S);
    CHECK_EQ(blitz_backoff_next(&b), BLITZ_S);
    blitz_backoff_init(
        &b, &(blitz_backoff_opts){.first = 1, .most = BLITZ_FOREVER - 1, .is_exact = true});
    for (int i = 0; i < 100; i++)
        (void)blitz_backoff_next(&b);
    CHECK_EQ(blitz_backoff_next(&b), BLITZ_FOREVER - 1);
}

/* Between half and all, and not always the same. */
TEST(retry, a_random_part_is_left_out)
{
    blitz_backoff b;
    uint64_t least = UINT64_MAX, most = 0;
    blitz_backoff_init(&b, &(blitz_backoff_opts){.first = 1000, .most = 1000});
    for (int i = 0; i < 1000; i++) {
        uint64_t pause = blitz_backoff_next(&b);
        CHECK_GE(pause, 500u);
        CHECK_LE(pause, 1000u);
        least = pause < least ? pause : least;
        most = pause > most ? pause : most;
    }
    CHECK_LT(least, 550u);
    CHECK_GT(most, 950u);
}

TEST(retry, the_last_try_is_the_last)
{
    blitz_backoff b;
    blitz_backoff_init(&b, &(blitz_backoff_opts){.first = 1, .tries_max = 3});
    CHECK_NE(blitz_backoff_next(&b), BLITZ_FOREVER);
    CHECK_NE(blitz_backoff_next(&b), BLITZ_FOREVER);
    CHECK_EQ(blitz_backoff_next(&b), BLITZ_FOREVER);
    CHECK_EQ(blitz_backoff_wait(&b, BLITZ_FOREVER), -ETIMEDOUT);
    blitz_backoff_init(&b, &(blitz_backoff_opts){.first = BLITZ_S});
    CHECK_EQ(blitz_backoff_wait(&b, 0), -ETIMEDOUT); /* at once: the next try is due after that */
}

struct tries {
    int left, result, made;
};

static int fails_at_first(void *arg)
{
    struct tries *t = arg;
    t->made++;
    return t->left-- > 0 ? t->result : 7;
}

static bool is_any(int rc, void *arg)
{
    (void)arg;
    return rc < 0;
}

static int retries(void *arg)
{
    blitz_backoff_opts opts = {.first = 1000, .most = 1000};
    struct tries t = {.left = 4, .result = -EIO};
    (void)arg;
    CHECK_EQ(blitz_retry(fails_at_first, &t, &opts, BLITZ_FOREVER), 7);
    CHECK_EQ(t.made, 5);
    t = (struct tries){.left = 4, .result = -EINVAL};
    CHECK_EQ(blitz_retry(fails_at_first, &t, &opts, BLITZ_FOREVER), -EINVAL);
    CHECK_EQ(t.made, 1);
    opts.is_worth = is_any;
    t = (struct tries){.left = 1, .result = -EINVAL};
    CHECK_EQ(blitz_retry(fails_at_first, &t, &opts, BLITZ_FOREVER), 7);
    opts.tries_max = 3;
    t = (struct tries){.left = 9, .result = -EAGAIN};
    CHECK_EQ(blitz_retry(fails_at_first, &t, &opts, BLITZ_FOREVER), -EAGAIN);
    CHECK_EQ(t.made, 3);
    t = (struct tries){.left = 9, .result = -EAGAIN};
    CHECK_EQ(blitz_retry(fails_at_first, &t, &opts, 0), -EAGAIN);
    CHECK_EQ(t.made, 1);
    return 0;
}

TEST(retry, stops_at_success_at_a_lasting_error_at_the_last_try_and_at_the_deadline)
{
    CHECK_EQ(retries(NULL), 0);
    t_on_each(retries, NULL, 0);
}
