/* blitz/notify.h: a notification for all reaches every waiter, of every form, and leaves nothing behind. */
#include "harness.h"

#include "blitz.h"
#include "observe/view.h"
#include "proc/state.h"
#include "support/on_each.h"

static blitz_notify bell;

static int waits_as_a_fiber(void *arg)
{
    (void)arg;
    return blitz_notify_wait(&bell, BLITZ_FOREVER);
}

struct polled {
    blitz_frame frame;
    blitz_sync_future wait;
};

static blitz_poll waits_without_a_stack(void *state, blitz_cx *cx)
{
    struct polled *me = state;
    int rc;
    BLITZ_BEGIN(&me->frame, cx);
    blitz_notify_wait_future_init(&me->wait, &bell);
    BLITZ_AWAIT(rc, &me->wait.future);
    CHECK_EQ(rc, 0);
    BLITZ_END(me->wait.result);
}

static void until_it_waits(blitz_task *t)
{
    struct bz_view v;
    do {
        blitz_yield();
        bz_view_take(&v, (struct bz_task *)t, false);
    } while (v.state != BZ_VIEW_WAITING);
}

static int notify_a_crowd(void *arg)
{
    enum { N = 40 }; /* more than one wake list holds */
    blitz_task *t[N];
    struct polled state = {.frame = {0}};
    (void)arg;
    blitz_notify_init(&bell);
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < N; i++)
            CHECK_EQ(
                i % 2 ? blitz_spawn(waits_as_a_fiber, NULL, NULL, &t[i])
                      : blitz_spawn_poll(waits_without_a_stack, &state, sizeof state, NULL, &t[i]),
                0);
        for (int i = 0; i < N; i++)
            until_it_waits(t[i]);
        blitz_notify_all(&bell);
        for (int i = 0; i < N; i++) {
            int result = -1;
            CHECK_EQ(blitz_task_join(t[i], &result, BLITZ_FOREVER), 0);
            CHECK_EQ(result, 0);
        }
        CHECK_EQ(blitz_notify_try_wait(&bell), -EAGAIN);
    }
    return 0;
}

TEST(notify, all_wakes_every_waiter_and_keeps_nothing)
{
    t_on_each(notify_a_crowd, NULL, 0);
}

/* With no waiter there is nothing to wake, and nothing to keep for later. */
TEST(notify, all_without_a_waiter_is_forgotten_and_one_is_kept)
{
    blitz_notify_init(&bell);
    blitz_notify_all(&bell);
    CHECK_EQ(blitz_notify_try_wait(&bell), -EAGAIN);
    blitz_notify_one(&bell);
    blitz_notify_one(&bell); /* one is kept, not two */
    blitz_notify_all(&bell);
    CHECK_EQ(blitz_notify_try_wait(&bell), 0);
    CHECK_EQ(blitz_notify_try_wait(&bell), -EAGAIN);
}
