/* Watches: the latest value, and waiting for another. */
#include "harness.h"

#include <errno.h>

#include "blitz.h"
#include "support/bell.h"
#include "support/on_each.h"

static blitz_watch *watch(int value)
{
    blitz_watch *w;
    CHECK_EQ(blitz_watch_new(sizeof(int), &value, &w), 0);
    return w;
}

TEST(watch_value, only_the_latest_value_counts)
{
    blitz_watch *w = watch(1), *none;
    uint64_t seen = 0;
    int out = 0;
    CHECK_EQ(blitz_watch_new(0, &out, &none), -EINVAL);
    CHECK_EQ(blitz_watch_new(4, NULL, &none), -EINVAL);
    CHECK_EQ(blitz_watch_new(4, &out, NULL), -EINVAL);
    CHECK_EQ(blitz_watch_recv(w, &out, &seen, 0), 0); /* the current value has not been seen */
    CHECK_EQ(out, 1);
    CHECK_EQ(seen, 1u);
    CHECK_EQ(blitz_watch_recv(w, &out, &seen, 0), -ETIMEDOUT);
    CHECK_EQ(blitz_watch_send(w, &(int){2}), 0);
    CHECK_EQ(blitz_watch_send(w, &(int){3}), 0);
    CHECK_EQ(blitz_watch_get(w, &out), 3u);
    CHECK_EQ(out, 3);
    out = 0;
    CHECK_EQ(blitz_watch_recv(w, &out, &seen, 0), 0);
    CHECK_EQ(out, 3);
    blitz_watch_close(w);
    CHECK_EQ(blitz_watch_send(w, &(int){4}), -EPIPE);
    CHECK_EQ(blitz_watch_recv(w, &out, &seen, BLITZ_FOREVER), -EPIPE);
    CHECK_EQ(blitz_watch_get(w, &out), 3u);
    CHECK_EQ(out, 3);
    blitz_watch_unref(blitz_watch_ref(w));
    blitz_watch_unref(w);
    blitz_watch_unref(NULL);
}

enum { N = 40, LAST = 60 };
static blitz_watch *shared;

static int follows(void *arg)
{
    uint64_t seen = 0;
    int out = -1, before = -1, rc;
    (void)arg;
    while ((rc = blitz_watch_recv(shared, &out, &seen, blitz_after(1000 * BLITZ_S))) == 0) {
        CHECK_GT(out, before); /* never back */
        before = out;
    }
    CHECK_EQ(rc, -EPIPE);
    return out;
}

static int changes(void *arg)
{
    static blitz_task *t[N];
    (void)arg;
    shared = watch(0);
    for (int i = 0; i < N; i++)
        CHECK_EQ(blitz_spawn(follows, NULL, NULL, &t[i]), 0);
    for (int i = 1; i <= LAST; i++) {
        if (i % 4 == 0)
            blitz_yield();
        CHECK_EQ(blitz_watch_send(shared, &i), 0);
    }
    blitz_watch_close(shared);
    for (int i = 0; i < N; i++) {
        int result = 0;
        CHECK_EQ(blitz_task_join(t[i], &result, BLITZ_FOREVER), 0);
        CHECK_EQ(result, LAST); /* no receiver misses the last value */
    }
    blitz_watch_unref(shared);
    return 0;
}

TEST(watch_value, all_waiters_see_the_last_value)
{
    t_on_each(changes, NULL, 0);
}

TEST(watch_value, the_future_completes_or_is_cancelled)
{
    blitz_watch *w = watch(1);
    struct t_bell bell = {.holders = 1};
    blitz_waker waker = t_bell_waker(&bell);
    blitz_watch_future f;
    uint64_t seen = 1;
    int out = 0;
    blitz_watch_recv_future_init(&f, w, &out, &seen);
    CHECK_EQ(f.future.ops->poll(&f.future, &waker), BLITZ_PENDING);
    CHECK_EQ(f.future.ops->poll(&f.future, &waker), BLITZ_PENDING);
    CHECK_EQ(blitz_watch_send(w, &(int){2}), 0);
    CHECK_EQ(blitz_watch_send(w, &(int){3}), 0);
    CHECK_EQ(bell.rung, 1);
    CHECK_EQ(f.future.ops->poll(&f.future, &waker), BLITZ_READY);
    CHECK_EQ(out, 3);
    CHECK_EQ(f.future.ops->output(&f.future), 0);
    blitz_watch_recv_future_init(&f, w, &out, &seen);
    CHECK_EQ(f.future.ops->poll(&f.future, &waker), BLITZ_PENDING);
    f.future.ops->cancel(&f.future);
    f.future.ops->cancel(&f.future);
    CHECK_EQ(bell.holders, 1);
    blitz_watch_close(w);
    CHECK_EQ(bell.rung, 1);
    blitz_watch_recv_future_init(&f, w, &out, &seen);
    CHECK_EQ(f.future.ops->poll(&f.future, &waker), BLITZ_READY);
    CHECK_EQ(f.result, -EPIPE);
    blitz_watch_unref(w);
}

/* ---- under a condition ---- */

TEST(watch_value, the_same_bytes_wake_no_waiter)
{
    blitz_watch *w;
    blitz_watch_future f;
    struct t_bell bell = {0};
    blitz_waker waker = t_bell_waker(&bell);
    int value = 7, got = 0;
    uint64_t seen = 1;
    CHECK_EQ(blitz_watch_new(sizeof value, &value, &w), 0);
    blitz_watch_recv_future_init(&f, w, &got, &seen);
    CHECK_EQ(f.future.ops->poll(&f.future, &waker), BLITZ_PENDING);
    CHECK_EQ(blitz_watch_send_if_changed(w, &value), -EALREADY);
    CHECK_EQ(bell.rung, 0);
    value = 8;
    CHECK_EQ(blitz_watch_send_if_changed(w, &value), 0);
    CHECK_EQ(bell.rung, 1);
    CHECK_EQ(f.future.ops->poll(&f.future, &waker), BLITZ_READY);
    CHECK_EQ(got, 8);
    blitz_watch_close(w);
    CHECK_EQ(blitz_watch_send_if_changed(w, &value), -EPIPE);
    blitz_watch_unref(w);
}

TEST(watch_value, a_send_by_version_loses_to_an_earlier_one)
{
    blitz_watch *w;
    int value = 7, got = 0;
    CHECK_EQ(blitz_watch_new(sizeof value, &value, &w), 0);
    uint64_t version = blitz_watch_get(w, &got);
    value = 8;
    CHECK_EQ(blitz_watch_send(w, &value), 0);
    value = 9;
    CHECK_EQ(blitz_watch_send_if_version(w, &value, version), -EAGAIN);
    CHECK_EQ(blitz_watch_get(w, &got), version + 1);
    CHECK_EQ(got, 8);
    CHECK_EQ(blitz_watch_send_if_version(w, &value, version + 1), 0);
    blitz_watch_close(w);
    CHECK_EQ(blitz_watch_send_if_version(w, &value, version + 2), -EPIPE);
    blitz_watch_unref(w);
}

static bool is_ten(const void *value, void *arg)
{
    ++*(int *)arg;
    return *(const int *)value == 10;
}

TEST(watch_value, a_wait_for_a_value_passes_over_the_others)
{
    blitz_watch *w;
    blitz_watch_wait_for_future f;
    struct t_bell bell = {0};
    blitz_waker waker = t_bell_waker(&bell);
    int value = 7, got = 0, looks = 0;
    uint64_t seen = 0;
    CHECK_EQ(blitz_watch_new(sizeof value, &value, &w), 0);
    blitz_watch_wait_for_future_init(&f, w, is_ten, &looks, &got, &seen);
    CHECK_EQ(f.future.ops->poll(&f.future, &waker), BLITZ_PENDING);
    CHECK_EQ(looks, 1);
    CHECK_EQ(blitz_watch_send(w, &(int){9}), 0);
    CHECK_EQ(f.future.ops->poll(&f.future, &waker), BLITZ_PENDING);
    CHECK_EQ(looks, 2);
    CHECK_EQ(blitz_watch_send(w, &(int){10}), 0);
    CHECK_EQ(f.future.ops->poll(&f.future, &waker), BLITZ_READY);
    CHECK_EQ(blitz_future_output(&f.future), 0);
    CHECK_EQ(seen, 3u);
    seen = 0;
    CHECK_EQ(blitz_watch_wait_for(w, is_ten, &looks, &got, &seen, 0), 0);
    CHECK_EQ(blitz_watch_wait_for(w, is_ten, &looks, &got, &seen, 0), -ETIMEDOUT);
    blitz_watch_close(w);
    CHECK_EQ(blitz_watch_wait_for(w, is_ten, &looks, &got, &seen, BLITZ_FOREVER), -EPIPE);
    CHECK_EQ(bell.holders, 0);
    blitz_watch_unref(w);
}
