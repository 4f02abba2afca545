/*
 * sync.h - locks, notifications, timers.
 */
#ifndef BENCH_BUDGET_SYNC_H
#define BENCH_BUDGET_SYNC_H

#include "budget/budget.h"

static blitz_mutex the_mutex = BLITZ_MUTEX_INIT;
static blitz_rwlock the_rwlock = BLITZ_RWLOCK_INIT;
static blitz_semaphore the_semaphore = BLITZ_SEMAPHORE_INIT(1);
static blitz_notify there = BLITZ_NOTIFY_INIT, back = BLITZ_NOTIFY_INIT;

static void mutex(uint64_t rounds)
{
    for (; rounds > 0; rounds--) {
        must(blitz_mutex_lock(&the_mutex, BLITZ_FOREVER), "lock");
        blitz_mutex_unlock(&the_mutex);
    }
}

/* The holder yields, so that every lock has to wait. */
static int lock_and_yield(void *arg)
{
    for (uint64_t n = *(uint64_t *)arg; n > 0; n--) {
        must(blitz_mutex_lock(&the_mutex, BLITZ_FOREVER), "lock");
        blitz_yield();
        blitz_mutex_unlock(&the_mutex);
    }
    return 0;
}

static void mutex_waits(uint64_t rounds)
{
    uint64_t each = rounds / 2;
    in_tasks(2, lock_and_yield, &each);
}

static void rwlock_read(uint64_t rounds)
{
    for (; rounds > 0; rounds--) {
        must(blitz_rwlock_read(&the_rwlock, BLITZ_FOREVER), "read");
        blitz_rwlock_read_unlock(&the_rwlock);
    }
}

static void rwlock_write(uint64_t rounds)
{
    for (; rounds > 0; rounds--) {
        must(blitz_rwlock_write(&the_rwlock, BLITZ_FOREVER), "write");
        blitz_rwlock_write_unlock(&the_rwlock);
    }
}

static void semaphore(uint64_t rounds)
{
    for (; rounds > 0; rounds--) {
        must(blitz_semaphore_acquire(&the_semaphore, 1, BLITZ_FOREVER), "acquire");
        must(blitz_semaphore_release(&the_semaphore, 1), "release");
    }
}

static int answer_notify(void *arg)
{
    for (uint64_t n = *(uint64_t *)arg; n > 0; n--) {
        must(blitz_notify_wait(&there, BLITZ_FOREVER), "wait");
        blitz_notify_one(&back);
    }
    return 0;
}

static void notify(uint64_t rounds)
{
    uint64_t count = rounds;
    blitz_task *t = spawn(answer_notify, &count);
    for (; rounds > 0; rounds--) {
        blitz_notify_one(&there);
        must(blitz_notify_wait(&back, BLITZ_FOREVER), "wait");
    }
    join(t);
}

/* A wait with a deadline that is never reached: a timer is armed and disarmed in each. */
static void timer_arm_cancel(uint64_t rounds)
{
    uint64_t count = rounds;
    blitz_task *t = spawn(answer_notify, &count);
    for (; rounds > 0; rounds--) {
        blitz_notify_one(&there);
        must(blitz_notify_wait(&back, blitz_after(BLITZ_S * 1000)), "wait");
    }
    join(t);
}

/* A thousand tasks sleep for a millisecond, again and again: one round is one sleep. */
static int sleep_often(void *arg)
{
    for (uint64_t n = *(uint64_t *)arg; n > 0; n--)
        must(blitz_sleep(BLITZ_MS), "sleep");
    return 0;
}

static void sleep_1000(uint64_t rounds)
{
    uint64_t each = rounds / 1000;
    in_tasks(1000, sleep_often, &each);
}

/* clang-format off */
#define BUDGET_SYNC                                                                          \
    {"mutex lock + unlock", mutex}, {"mutex that waits", mutex_waits},                       \
    {"rwlock read", rwlock_read}, {"rwlock write", rwlock_write},                            \
    {"semaphore", semaphore}, {"notify there and back", notify},                             \
    {"the same with a deadline", timer_arm_cancel}, {"sleep, 1000 tasks", sleep_1000}
/* clang-format on */

#endif
