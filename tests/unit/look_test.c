/* wait/peek.h: a race that checks before it polls leaves nothing registered, and misses no
 * child. */
#include "harness.h"

#include <errno.h>

#include "blitz.h"
#include "support/on_each.h"

enum { WAITERS = 4 };

/* Everything that can be looked at, and cannot be had. */
struct shut {
    blitz_notify notify;
    blitz_semaphore semaphore;
    blitz_rwlock rwlock;
    blitz_event event;
    blitz_sync_future f[WAITERS];
};

static void shut_init(struct shut *s)
{
    blitz_notify_init(&s->notify);
    blitz_semaphore_init(&s->semaphore, 0);
    blitz_rwlock_init(&s->rwlock);
    CHECK_EQ(blitz_rwlock_try_write(&s->rwlock), 0);
    blitz_event_init(&s->event);
    blitz_notify_wait_future_init(&s->f[0], &s->notify);
    blitz_semaphore_acquire_future_init(&s->f[1], &s->semaphore, 1);
    blitz_rwlock_read_future_init(&s->f[2], &s->rwlock);
    blitz_event_wait_future_init(&s->f[3], &s->event);
}

/* The event of the n-th child has happened. */
static void shut_open(struct shut *s, int n)
{
    switch (n) {
    case 0:
        blitz_notify_one(&s->notify);
        break;
    case 1:
        CHECK_EQ(blitz_semaphore_release(&s->semaphore, 1), 0);
        break;
    case 2:
        blitz_rwlock_write_unlock(&s->rwlock);
        break;
    default:
        blitz_event_set(&s->event);
    }
}

/* To be given anything. */
static void then_nobody_is_in_line(struct shut *s)
{
    for (int i = 0; i < WAITERS; i++)
        shut_open(s, i);
    CHECK_EQ(blitz_notify_try_wait(&s->notify), 0);
    CHECK_EQ(blitz_semaphore_permits(&s->semaphore), 1);
    CHECK_EQ(blitz_rwlock_try_write(&s->rwlock), 0);
}

static int first_of_all(struct shut *s, blitz_future *last, blitz_deadline until)
{
    return BLITZ_FIRST_OF(until, &s->f[0].future, &s->f[1].future, &s->f[2].future, &s->f[3].future,
                          last);
}

static int races_with_one_that_is_ready(void *arg)
{
    struct shut s;
    blitz_ready_future ready;
    (void)arg;
    shut_init(&s);
    blitz_ready_future_init(&ready, 0);
    CHECK_EQ(first_of_all(&s, &ready.future, BLITZ_FOREVER), WAITERS);
    then_nobody_is_in_line(&s);
    return 0;
}

TEST(look, losers_of_a_race_that_is_over_at_once_stand_in_no_line)
{
    t_on_each(races_with_one_that_is_ready, NULL, 0);
    races_with_one_that_is_ready(NULL); /* and on a plain thread */
}

static int races_with_each_open(void *arg)
{
    (void)arg;
    for (int i = 0; i < WAITERS; i++) {
        struct shut s;
        shut_init(&s);
        shut_open(&s, i);
        CHECK_EQ(first_of_all(&s, blitz_pending_future(), BLITZ_FOREVER), i);
    }
    return 0;
}

TEST(look, one_that_is_there_is_seen)
{
    t_on_each(races_with_each_open, NULL, 0);
}

struct opening {
    struct shut *s;
    int n;
};

static int opens(void *arg)
{
    struct opening *o = arg;
    shut_open(o->s, o->n);
    return 0;
}

static int races_with_each_opened(void *arg)
{
    (void)arg;
    for (int round = 0; round < 4 * (int)t_scaled(100); round++) {
        struct shut s;
        struct opening o = {&s, round % WAITERS};
        blitz_task *t;
        shut_init(&s);
        CHECK_EQ(blitz_spawn(opens, &o, NULL, &t), 0);
        CHECK_EQ(first_of_all(&s, blitz_pending_future(), BLITZ_FOREVER), o.n);
        CHECK_EQ(blitz_task_join(t, NULL, BLITZ_FOREVER), 0);
    }
    return 0;
}

/* Also if it comes between the look and the asking: else it would wait for ever. */
TEST(look, one_that_comes_meanwhile_is_not_missed)
{
    t_on_each(races_with_each_opened, NULL, 0);
}

/* A race over events that never happen ends at its deadline, and was registered until then. */
static int races_in_vain(void *arg)
{
    struct shut s;
    (void)arg;
    shut_init(&s);
    CHECK_EQ(first_of_all(&s, blitz_pending_future(), blitz_after(BLITZ_MS)), -ETIMEDOUT);
    then_nobody_is_in_line(&s);
    return 0;
}

TEST(look, one_that_is_given_up_stands_in_no_line)
{
    t_on_each(races_in_vain, NULL, 0);
}
