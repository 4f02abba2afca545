/*
 * timeouts.c - six ways not to wait too long.
 *
 *   1  a deadline on one call
 *   2  one deadline for several calls: an absolute time that can be passed down
 *   3  a deadline on a future, inside a race
 *   4  a timer that is moved at each sign of life: "idle for 30 ms"
 *   5  ticks, and a policy for missed ticks
 *   6  a function that is called later, unless the answer comes first: no task waits for its time
 *
 * The slow server is a task that sleeps.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "blitz.h"

static int server(void *ms)
{
    int err = blitz_sleep(*(unsigned *)ms * BLITZ_MS);
    return err != 0 ? err : (int)*(unsigned *)ms;
}

static const char *say(int err)
{
    return err >= 0 ? "in time" : err == -ETIMEDOUT ? "too late" : strerror(-err);
}

/* Send a request and wait until the deadline. If it expires, the server has been cancelled and has
 * stopped. */
static int ask(unsigned ms, blitz_deadline until)
{
    blitz_task *t;
    blitz_join_future answer;
    int err = blitz_spawn(server, &ms, NULL, &t);
    if (err != 0)
        return err;
    blitz_task_join_linked_future_init(&answer, t);
    err = blitz_await(&answer.future, until);
    return err != 0 ? err : answer.value;
}

static int one_deadline_for_all(blitz_deadline until)
{
    for (unsigned i = 1; i <= 3; i++) {
        int err = ask(4 * i, until); /* 4, 8, 12 ms; all three by `until` */
        printf("  request %u: %s\n", i, say(err));
        if (err < 0)
            return err;
    }
    return 0;
}

/* The first of two servers, neither of which may take longer than 10 ms. */
static int first_in_time(void)
{
    unsigned ms[2] = {3, 300};
    blitz_join_future answer[2];
    blitz_timeout timeout[2];
    blitz_future *either[2];
    for (int i = 0; i < 2; i++) {
        blitz_task *t;
        int err = blitz_spawn(server, &ms[i], NULL, &t);
        if (err != 0)
            return err;
        blitz_task_join_linked_future_init(&answer[i], t);
        blitz_timeout_init(&timeout[i], &answer[i].future, blitz_after(10 * BLITZ_MS));
        either[i] = &timeout[i].future;
    }
    return blitz_first_of(either, 2, BLITZ_FOREVER);
}

static int talker(void *timer)
{
    for (int i = 0; i < 5; i++) {
        if (blitz_sleep(2 * BLITZ_MS) != 0)
            return -ECANCELED;
        blitz_timer_reset(timer, blitz_after(30 * BLITZ_MS)); /* still there */
    }
    return 0;
}

static int until_it_is_idle(void)
{
    blitz_timer idle;
    blitz_task *t;
    uint64_t begin = blitz_now();
    blitz_timer_init(&idle, blitz_after(30 * BLITZ_MS));
    int err = blitz_spawn(talker, &idle, NULL, &t);
    if (err != 0)
        return err;
    if ((err = blitz_await(&idle.future, BLITZ_FOREVER)) != 0)
        return err;
    printf("  closed: it talked for 10 ms, then was idle for 30: %s\n",
           blitz_time_between(begin, blitz_now()) >= 40 * BLITZ_MS ? "40 ms or more" : "too early");
    return blitz_task_join(t, NULL, BLITZ_FOREVER);
}

static int ticks(void)
{
    blitz_interval tick;
    int err = blitz_interval_init(&tick, blitz_now(), 5 * BLITZ_MS, BLITZ_SKIP);
    for (int i = 0; err == 0 && i < 3; i++) {
        err = blitz_interval_tick(&tick, BLITZ_FOREVER);
        printf("  tick %d\n", i);
        if (i == 0)
            err = blitz_sleep(12 * BLITZ_MS); /* misses two */
    }
    return err;
}

static void remind(void *server)
{
    printf("  a reminder to the %s server\n", (const char *)server);
}

/* Ask, and send a reminder if the answer takes longer than 5 ms. */
static int ask_with_a_reminder(unsigned ms, const char *name)
{
    blitz_later *reminder;
    int err = blitz_later_at(blitz_after(5 * BLITZ_MS), remind, (void *)name, NULL, &reminder);
    if (err != 0)
        return err;
    err = ask(ms, BLITZ_FOREVER);
    if (blitz_later_cancel(reminder) == 0)
        printf("  no reminder to the %s server\n", name);
    blitz_later_unref(reminder);
    return err;
}

static int main_task(void *arg)
{
    (void)arg;
    puts("a deadline on one call");
    printf("  fast: %s\n", say(ask(2, blitz_after(1000 * BLITZ_MS))));
    printf("  slow: %s\n", say(ask(1000, blitz_after(10 * BLITZ_MS))));
    puts("one deadline for three");
    printf("  together: %s\n", say(one_deadline_for_all(blitz_after(15 * BLITZ_MS))));
    puts("the first of two that is in time");
    int first = first_in_time();
    printf("  server %d\n", first);
    puts("a timer that is moved");
    int err = until_it_is_idle();
    puts("ticks");
    err = err != 0 ? err : ticks();
    puts("a reminder");
    err = err < 0 ? err : ask_with_a_reminder(1, "fast");
    err = err < 0 ? err : ask_with_a_reminder(50, "slow");
    return err < 0 ? err : 0;
}

int main(void)
{
    return blitz_run(main_task, NULL, NULL) == 0 ? 0 : 1;
}
