/* proc/ask.h: every call that may wait checks the flag, even if it need not wait. */
#include "harness.h"

#include "blitz.h"
#include "proc/state.h"
#include "support/alone.h"

static int ran; /* by others, on the one proc there is */

static int other(void *arg)
{
    (void)arg;
    ran++;
    return 0;
}

/* Asked in the middle of a turn: has this call let the other one run? Its time is never up by itself. */
static bool lets_others_run(int (*call)(void), int want)
{
    blitz_task *t;
    ran = 0;
    CHECK_EQ(blitz_spawn(other, NULL, NULL, &t), 0);
    bz_machine_ask(bz_machine_self());
    CHECK_EQ(call(), want);
    bool has_run = ran == 1;
    CHECK_EQ(blitz_task_join(t, NULL, BLITZ_FOREVER), 0);
    BLITZ_POLL(); /* the flag is down for the next one */
    return has_run;
}

struct scene {
    void (*calls)(void);
};

static int play(void *scene)
{
    ((struct scene *)scene)->calls();
    return 0;
}

static void on_one_proc(void (*calls)(void))
{
    struct scene scene = {calls};
    CHECK_EQ(t_run_alone(play, &scene), 0);
}

/* ---- locks ---- */

static blitz_mutex mutex;
static blitz_rwlock rwlock;
static blitz_semaphore semaphore;
static blitz_event event;
static blitz_latch latch;
static blitz_wait_group group;
static blitz_notify notify;
static blitz_once once;

static int lock(void)
{
    int rc = blitz_mutex_lock(&mutex, BLITZ_FOREVER);
    blitz_mutex_unlock(&mutex);
    return rc;
}

static int read_lock(void)
{
    int rc = blitz_rwlock_read(&rwlock, BLITZ_FOREVER);
    blitz_rwlock_read_unlock(&rwlock);
    return rc;
}

static int write_lock(void)
{
    int rc = blitz_rwlock_write(&rwlock, BLITZ_FOREVER);
    blitz_rwlock_write_unlock(&rwlock);
    return rc;
}

static int acquire(void)
{
    int rc = blitz_semaphore_acquire(&semaphore, 1, BLITZ_FOREVER);
    CHECK_EQ(blitz_semaphore_release(&semaphore, 1), 0);
    return rc;
}

static int await_event(void)
{
    return blitz_event_wait(&event, BLITZ_FOREVER);
}

static int await_latch(void)
{
    return blitz_latch_wait(&latch, BLITZ_FOREVER);
}

static int await_group(void)
{
    return blitz_wait_group_wait(&group, BLITZ_FOREVER);
}

static int await_notification(void)
{
    blitz_notify_one(&notify);
    return blitz_notify_wait(&notify, BLITZ_FOREVER);
}

static int make_nothing(void *arg, void **out)
{
    *out = arg;
    return 0;
}

static int get_once(void)
{
    return blitz_once_get(&once, make_nothing, NULL, NULL, BLITZ_FOREVER);
}

static void takes_what_is_free(void)
{
    blitz_mutex_init(&mutex);
    blitz_rwlock_init(&rwlock);
    blitz_semaphore_init(&semaphore, 1);
    blitz_event_init(&event);
    blitz_event_set(&event);
    blitz_latch_init(&latch, 0);
    blitz_wait_group_init(&group);
    blitz_notify_init(&notify);
    blitz_once_init(&once);
    CHECK(lets_others_run(lock, 0));
    CHECK(lets_others_run(read_lock, 0));
    CHECK(lets_others_run(write_lock, 0));
    CHECK(lets_others_run(acquire, 0));
    CHECK(lets_others_run(await_event, 0));
    CHECK(lets_others_run(await_latch, 0));
    CHECK(lets_others_run(await_group, 0));
    CHECK(lets_others_run(await_notification, 0));
    CHECK(lets_others_run(get_once, 0));
    CHECK(lets_others_run(get_once, 0)); /* also when it is there */
}

/* A loop that locks and unlocks has its proc for itself, else. */
TEST(ask_calls, locks_that_are_free_look_at_the_flag)
{
    on_one_proc(takes_what_is_free);
}

static int try_all(void)
{
    int rc = blitz_mutex_try_lock(&mutex);
    blitz_mutex_unlock(&mutex);
    return rc;
}

static void tries(void)
{
    blitz_mutex_init(&mutex);
    CHECK(!lets_others_run(try_all, 0));
}

/* It never suspends: its caller may hold what blitz knows nothing of. */
TEST(ask_calls, one_that_only_tries_does_not)
{
    on_one_proc(tries);
}

/* ---- channels ---- */

static blitz_chan *chan;
static int value;

static int send_one(void)
{
    return blitz_chan_send(chan, &value, BLITZ_FOREVER);
}

static int recv_one(void)
{
    return blitz_chan_recv(chan, &value, BLITZ_FOREVER);
}

static int send_several(void)
{
    int values[] = {1, 2};
    return blitz_chan_send_many(chan, values, 2, NULL, BLITZ_FOREVER);
}

static int recv_several(void)
{
    int values[2];
    size_t n;
    return blitz_chan_recv_many(chan, values, 2, &n, BLITZ_FOREVER);
}

static int reserve(void)
{
    blitz_permit permit;
    int rc = blitz_chan_reserve(chan, &permit, BLITZ_FOREVER);
    blitz_permit_drop(&permit);
    return rc;
}

static int select_one(void)
{
    blitz_select_case cases[] = {blitz_case_send(chan, &value)};
    return blitz_select_wait(cases, 1, 0, BLITZ_FOREVER);
}

static void sends_and_receives(size_t capacity)
{
    CHECK_EQ(blitz_chan_new(sizeof value, capacity, NULL, &chan), 0);
    CHECK(lets_others_run(send_one, 0));
    CHECK(lets_others_run(send_several, 0));
    CHECK(lets_others_run(recv_one, 0));
    CHECK(lets_others_run(recv_several, 0));
    CHECK(lets_others_run(select_one, 0));
    CHECK(lets_others_run(recv_one, 0));
    CHECK(lets_others_run(reserve, 0));
    blitz_chan_unref(chan);
}

static void ring(void *bell)
{
    (void)bell;
}

/* A polling receiver is notified, and the sender continues at once: it has not waited. */
static void sends_beside_a_receiver_that_polls(size_t capacity)
{
    static const blitz_waker_ops ops = {ring, ring, ring, ring};
    blitz_waker waker = {&ops, NULL};
    blitz_chan_future f;
    int out = 0;
    CHECK_EQ(blitz_chan_new(sizeof value, capacity, NULL, &chan), 0);
    blitz_chan_recv_future_init(&f, chan, &out);
    CHECK_EQ(f.future.ops->poll(&f.future, &waker), BLITZ_PENDING);
    CHECK(lets_others_run(send_one, 0));
    CHECK_EQ(f.future.ops->poll(&f.future, &waker), BLITZ_READY);
    blitz_chan_unref(chan);
}

static void uses_rings_and_blocks(void)
{
    sends_and_receives(4);
    sends_and_receives(BLITZ_UNBOUNDED);
    sends_beside_a_receiver_that_polls(4);
    sends_beside_a_receiver_that_polls(BLITZ_UNBOUNDED);
}

TEST(ask_calls, channels_with_room_and_values_look_at_the_flag)
{
    on_one_proc(uses_rings_and_blocks);
}

static blitz_oneshot *oneshot;
static blitz_watch *watch;
static blitz_broadcast *broadcast;
static blitz_broadcast_rx rx;

static int recv_oneshot(void)
{
    return blitz_oneshot_recv(oneshot, &value, BLITZ_FOREVER);
}

static int recv_watch(void)
{
    uint64_t seen = 0;
    return blitz_watch_recv(watch, &value, &seen, BLITZ_FOREVER);
}

static int recv_broadcast(void)
{
    uint64_t missed;
    return blitz_broadcast_recv(&rx, &value, &missed, BLITZ_FOREVER);
}

static void receives_what_is_there(void)
{
    CHECK_EQ(blitz_oneshot_new(sizeof value, NULL, &oneshot), 0);
    CHECK_EQ(blitz_oneshot_send(oneshot, &value), 0);
    CHECK(lets_others_run(recv_oneshot, 0));
    blitz_oneshot_receiver_drop(oneshot);
    CHECK_EQ(blitz_watch_new(sizeof value, &value, &watch), 0);
    CHECK(lets_others_run(recv_watch, 0));
    blitz_watch_unref(watch);
    CHECK_EQ(blitz_broadcast_new(sizeof value, 4, &broadcast), 0);
    blitz_broadcast_subscribe(broadcast, &rx);
    CHECK_EQ(blitz_broadcast_send(broadcast, &value), 0);
    CHECK(lets_others_run(recv_broadcast, 0));
    blitz_broadcast_unsubscribe(&rx);
    blitz_broadcast_unref(broadcast);
}

TEST(ask_calls, oneshots_watches_and_broadcasts_look_at_the_flag)
{
    on_one_proc(receives_what_is_there);
}
