/*
 * locks.h - mutex, rwlock and semaphore: one task that has them for itself, and eight that want them.
 *
 * The section is one increment. Eight tasks with one worker meet only where a lock makes them (none
 * here suspends while it holds one); with two they meet on two CPUs.
 */
#ifndef BENCH_SYNC_LOCKS_H
#define BENCH_SYNC_LOCKS_H

#include "sync/sync.h"

enum { LOCKERS = 8, LOCK_PERMITS = 4, LOCK_WRITE_EVERY = 100 };

static _Alignas(128) blitz_mutex lock_mutex = BLITZ_MUTEX_INIT;
static _Alignas(128) blitz_rwlock lock_rwlock = BLITZ_RWLOCK_INIT;
static _Alignas(128) blitz_semaphore lock_semaphore = BLITZ_SEMAPHORE_INIT(LOCK_PERMITS);
static _Alignas(128) uint64_t lock_counter; /* guarded by the locks */

static int lock_mutex_often(void *arg)
{
    for (uint64_t n = *(uint64_t *)arg; n > 0; n--) {
        must(blitz_mutex_lock(&lock_mutex, BLITZ_FOREVER), "lock");
        lock_counter++;
        blitz_mutex_unlock(&lock_mutex);
    }
    return 0;
}

static int lock_read_often(void *arg)
{
    for (uint64_t n = *(uint64_t *)arg; n > 0; n--) {
        must(blitz_rwlock_read(&lock_rwlock, BLITZ_FOREVER), "read");
        bench_keep(lock_counter);
        blitz_rwlock_read_unlock(&lock_rwlock);
    }
    return 0;
}

static int lock_read_mostly(void *arg)
{
    for (uint64_t n = *(uint64_t *)arg; n > 0; n--)
        if (n % LOCK_WRITE_EVERY == 0) {
            must(blitz_rwlock_write(&lock_rwlock, BLITZ_FOREVER), "write");
            lock_counter++;
            blitz_rwlock_write_unlock(&lock_rwlock);
        } else {
            must(blitz_rwlock_read(&lock_rwlock, BLITZ_FOREVER), "read");
            bench_keep(lock_counter);
            blitz_rwlock_read_unlock(&lock_rwlock);
        }
    return 0;
}

static int lock_permit_often(void *arg)
{
    for (uint64_t n = *(uint64_t *)arg; n > 0; n--) {
        must(blitz_semaphore_acquire(&lock_semaphore, 1, BLITZ_FOREVER), "acquire");
        bench_keep(n);
        must(blitz_semaphore_release(&lock_semaphore, 1), "release");
    }
    return 0;
}

static double case_mutex(uint64_t ops)
{
    return sync_alone(lock_mutex_often, ops);
}

static double case_mutex_8(uint64_t ops)
{
    lock_counter = 0;
    double ns = sync_together(lock_mutex_often, ops, LOCKERS);
    if (lock_counter != ops / LOCKERS * LOCKERS)
        bench_die("the mutex let two in");
    return ns;
}

static double case_rwlock_read(uint64_t ops)
{
    return sync_alone(lock_read_often, ops);
}

static double case_rwlock_8(uint64_t ops)
{
    return sync_together(lock_read_mostly, ops, LOCKERS);
}

static double case_semaphore(uint64_t ops)
{
    return sync_alone(lock_permit_often, ops);
}

static double case_semaphore_8(uint64_t ops)
{
    return sync_together(lock_permit_often, ops, LOCKERS);
}

#define LOCK_CASES                                                                    \
    {"mutex", TASKS_PACED, case_mutex, 0}, {"mutex-8", TASKS_PACED, case_mutex_8, 0}, \
        {"rwlock-read", TASKS_PACED, case_rwlock_read, 0},                            \
        {"rwlock-8", TASKS_PACED, case_rwlock_8, 0},                                  \
        {"semaphore", TASKS_PACED, case_semaphore, 0},                                \
    {                                                                                 \
        "semaphore-8", TASKS_PACED, case_semaphore_8, 0                               \
    }

#endif
