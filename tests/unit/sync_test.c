/* Mutex, rwlock and semaphore between fibers, stackless tasks, threads and runtimes: waits,
 * wake-ups, and the effects of deadlines and cancels. */
#include "harness.h"

#include "blitz.h"
#include "support/alone.h"
#include "support/askers.h"
#include "support/death.h"
#include "support/dumped.h"
#include "support/on_each.h"
#include "support/sync_crowd.h"
#include "support/tasks.h"
#include "support/test_alloc.h"

static int counter; /* not atomic: guarded by what is tested */

/* ---- mutex ---- */

static blitz_mutex mutex;

static int counts_locked(void *arg)
{
    for (intptr_t i = 0; i < (intptr_t)arg; i++) {
        CHECK_EQ(blitz_mutex_lock(&mutex, BLITZ_FOREVER), 0);
        int was = counter;
        if (i % 3 == 0)
            blitz_yield(); /* with the mutex held; nothing on a plain thread */
        counter = was + 1;
        blitz_mutex_unlock(&mutex);
    }
    return 0;
}

static blitz_poll polls_locked(void *state, blitz_cx *cx)
{
    struct crowd_state *s = state;
    int rc;
    BLITZ_BEGIN(&s->frame, cx);
    while (s->left-- > 0) {
        blitz_mutex_lock_future_init(&s->f, &mutex);
        BLITZ_AWAIT(rc, &s->f.future);
        CHECK_EQ(rc, 0);
        CHECK_EQ(s->f.result, 0);
        counter++;
        blitz_mutex_unlock(&mutex);
    }
    BLITZ_END(0);
}

TEST(sync, a_mutex_lets_one_in_be_it_fiber_stackless_or_thread_of_two_runtimes)
{
    struct crowd c = {counts_locked, polls_locked, (int)t_scaled(200)};
    for (unsigned procs = 1; procs <= 8; procs *= 2) {
        counter = 0;
        blitz_mutex_init(&mutex);
        crowd_run(&c, procs);
        CHECK_EQ(counter, crowd_counts(&c));
        CHECK(!blitz_mutex_is_locked(&mutex));
    }
}

static int locks_until(void *arg)
{
    int err = blitz_mutex_lock(&mutex, *(blitz_deadline *)arg);
    if (err == 0)
        blitz_mutex_unlock(&mutex);
    return err;
}

static int give_up_a_mutex(void *arg)
{
    blitz_deadline soon = blitz_after(BLITZ_MS), never = BLITZ_FOREVER;
    blitz_task *late, *cancelled;
    int result = 1;
    (void)arg;
    blitz_mutex_init(&mutex);
    CHECK_EQ(blitz_mutex_lock(&mutex, 0),
             0); /* a deadline in the past does not matter if it is free */
    CHECK_EQ(blitz_mutex_holder(&mutex), blitz_task_id(NULL));
    CHECK_EQ(blitz_mutex_try_lock(&mutex), -EAGAIN);
    CHECK_EQ(blitz_mutex_lock(&mutex, 0), -ETIMEDOUT);
    CHECK_EQ(blitz_spawn(locks_until, &soon, NULL, &late), 0);
    CHECK_EQ(blitz_spawn(locks_until, &never, NULL, &cancelled), 0);
    blitz_yield();
    blitz_task_cancel(cancelled);
    CHECK_EQ(blitz_task_join(late, &result, BLITZ_FOREVER), 0);
    CHECK_EQ(result, -ETIMEDOUT);
    CHECK_EQ(blitz_task_join(cancelled, &result, BLITZ_FOREVER), 0);
    CHECK_EQ(result, -ECANCELED);
    blitz_mutex_unlock(&mutex);
    CHECK_EQ(blitz_mutex_try_lock(&mutex), 0); /* they left nothing behind */
    blitz_mutex_unlock(&mutex);
    return 0;
}

TEST(sync, a_cancelled_lock_does_not_hold_the_mutex)
{
    t_on_each(give_up_a_mutex, NULL, 0);
}

static int locks_when_cancelled(void *arg)
{
    (void)arg;
    CHECK_EQ(blitz_sleep_until(BLITZ_FOREVER), -ECANCELED);
    CHECK_EQ(blitz_mutex_lock(&mutex, BLITZ_FOREVER), 0); /* it need not wait */
    blitz_mutex_unlock(&mutex);
    return 0;
}

static int cancel_then_lock(void *arg)
{
    blitz_task *t;
    int result = 1;
    (void)arg;
    blitz_mutex_init(&mutex);
    CHECK_EQ(blitz_spawn(locks_when_cancelled, NULL, NULL, &t), 0);
    blitz_yield();
    blitz_task_cancel(t);
    CHECK_EQ(blitz_task_join(t, &result, BLITZ_FOREVER), 0);
    return result;
}

TEST(sync, a_cancelled_task_locks_a_free_mutex)
{
    t_on_each(cancel_then_lock, NULL, 0);
}

static int locks_and_leaves(void *arg)
{
    (void)arg;
    return blitz_mutex_lock(&mutex, BLITZ_FOREVER);
}

static int unlock_anothers(void *arg)
{
    blitz_task *t;
    (void)arg;
    blitz_mutex_init(&mutex);
    CHECK_EQ(blitz_spawn(locks_and_leaves, NULL, NULL, &t), 0);
    CHECK_EQ(blitz_task_join(t, NULL, BLITZ_FOREVER), 0);
    blitz_mutex_unlock(&mutex);
    return 0;
}

/* Debug builds name it. */
TEST(sync, a_mutex_that_another_task_locked_is_not_ours_to_unlock)
{
#if defined(BZ_DEBUG)
    DIES("but it is task", (void)blitz_run(unlock_anothers, NULL, NULL));
#else
    CHECK_EQ(blitz_run(unlock_anothers, NULL, NULL), 0);
#endif
}

static int dump_a_waiter(void *arg)
{
    static struct t_dumped seen;
    char want[64];
    blitz_task *t;
    blitz_deadline never = BLITZ_FOREVER;
    (void)arg;
    blitz_mutex_init(&mutex);
    CHECK_EQ(blitz_mutex_lock(&mutex, 0), 0);
    CHECK_EQ(blitz_spawn(locks_until, &never, &(blitz_spawn_opts){.name = "wants it"}, &t), 0);
    for (int i = 0; i < 10; i++)
        blitz_yield();
    t_dump(&seen, NULL, 0);
    snprintf(want, sizeof want, "mutex of task %llu", (unsigned long long)blitz_task_id(NULL));
    CHECK(t_dump_has(&seen, want));
    blitz_mutex_unlock(&mutex);
    return blitz_task_join(t, NULL, BLITZ_FOREVER);
}

TEST(sync, a_dump_names_the_holder_of_the_mutex)
{
    CHECK_EQ(t_run_alone(dump_a_waiter, NULL), 0);
}

/* ---- semaphore ---- */

static blitz_semaphore semaphore;
static bz_atomic(int) inside, most_inside;

enum { PERMITS = 3 };

static void enters(int n)
{
    int now = bz_fetch_add_relaxed(&inside, n) + n;                      /* relaxed: a count */
    int most = bz_load_relaxed(&most_inside);                            /* relaxed: a statistic */
    while (now > most && !bz_cas_weak_rlx_rlx(&most_inside, &most, now)) /* relaxed: likewise */
        ;
    CHECK_LE(now, PERMITS);
}

static int takes_permits(void *arg)
{
    for (intptr_t i = 0; i < (intptr_t)arg; i++) {
        int n = 1 + (int)(i % PERMITS);
        CHECK_EQ(blitz_semaphore_acquire(&semaphore, (uint32_t)n, BLITZ_FOREVER), 0);
        enters(n);
        if (i % 4 == 0)
            blitz_yield();
        bz_fetch_sub_relaxed(&inside, n); /* relaxed: a count */
        CHECK_EQ(blitz_semaphore_release(&semaphore, (uint32_t)n), 0);
    }
    return 0;
}

static blitz_poll polls_permits(void *state, blitz_cx *cx)
{
    struct crowd_state *s = state;
    int rc;
    BLITZ_BEGIN(&s->frame, cx);
    while (s->left-- > 0) {
        blitz_semaphore_acquire_future_init(&s->f, &semaphore, 1);
        BLITZ_AWAIT(rc, &s->f.future);
        CHECK_EQ(rc, 0);
        enters(1);
        bz_fetch_sub_relaxed(&inside, 1); /* relaxed: a count */
        CHECK_EQ(blitz_semaphore_release(&semaphore, 1), 0);
    }
    BLITZ_END(0);
}

TEST(sync, a_semaphore_has_as_many_permits_as_it_says)
{
    struct crowd c = {takes_permits, polls_permits, (int)t_scaled(100)};
    for (unsigned procs = 1; procs <= 8; procs *= 2) {
        blitz_semaphore_init(&semaphore, PERMITS);
        crowd_run(&c, procs);
        CHECK_EQ(blitz_semaphore_permits(&semaphore), PERMITS);
    }
}

static int acquires_one(void *arg)
{
    return blitz_semaphore_acquire(&semaphore, (uint32_t)(intptr_t)arg, BLITZ_FOREVER);
}

static int close_on_waiters(void *arg)
{
    enum { WAITERS = 20 };
    blitz_task *t[WAITERS];
    (void)arg;
    blitz_semaphore_init(&semaphore, 0);
    for (intptr_t i = 0; i < WAITERS; i++)
        CHECK_EQ(blitz_spawn(acquires_one, (void *)(1 + i), NULL, &t[i]), 0);
    blitz_yield();
    blitz_semaphore_close(&semaphore);
    blitz_semaphore_close(&semaphore);
    for (int i = 0; i < WAITERS; i++) {
        int result = 1;
        CHECK_EQ(blitz_task_join(t[i], &result, BLITZ_FOREVER), 0);
        CHECK_EQ(result, -EPIPE);
    }
    CHECK_EQ(blitz_semaphore_release(&semaphore, 7), 0);
    CHECK_EQ(blitz_semaphore_permits(&semaphore), 7);
    CHECK_EQ(blitz_semaphore_acquire(&semaphore, 1, BLITZ_FOREVER), -EPIPE);
    CHECK_EQ(blitz_semaphore_try_acquire(&semaphore, 1), -EPIPE);
    return 0;
}

TEST(sync, closing_a_semaphore_ends_all_waits)
{
    t_on_each(close_on_waiters, NULL, 0);
}

TEST(sync, permits_beyond_the_most_are_refused_and_nothing_happened)
{
    blitz_semaphore s = BLITZ_SEMAPHORE_INIT(BLITZ_PERMITS_MAX - 1);
    CHECK_EQ(blitz_semaphore_release(&s, 2), -EOVERFLOW);
    CHECK_EQ(blitz_semaphore_release(&s, 1), 0);
    CHECK_EQ(blitz_semaphore_release(&s, 1), -EOVERFLOW);
    CHECK_EQ(blitz_semaphore_permits(&s), BLITZ_PERMITS_MAX);
    CHECK_EQ(blitz_semaphore_acquire(&s, BLITZ_PERMITS_MAX, 0), 0);
    CHECK_EQ(blitz_semaphore_acquire(&s, 0, 0), 0);
    CHECK_EQ(blitz_semaphore_acquire(&s, 1, 0), -ETIMEDOUT);
}

static int big_before_small(void *arg)
{
    blitz_task *big, *small;
    (void)arg;
    blitz_semaphore_init(&semaphore, 1);
    CHECK_EQ(blitz_spawn(acquires_one, (void *)(intptr_t)3, NULL, &big), 0);
    blitz_yield();
    while (blitz_semaphore_try_acquire(&semaphore, 0) == 0)
        blitz_yield(); /* until it is queued */
    CHECK_EQ(blitz_spawn(acquires_one, (void *)(intptr_t)1, NULL, &small), 0);
    CHECK_EQ(blitz_semaphore_try_acquire(&semaphore, 1), -EAGAIN); /* although there is one */
    CHECK_EQ(blitz_semaphore_release(&semaphore, 2), 0);
    CHECK_EQ(blitz_task_join(big, NULL, BLITZ_FOREVER), 0);
    CHECK_EQ(blitz_semaphore_permits(&semaphore), 0);
    blitz_task_cancel(small);
    CHECK_EQ(blitz_task_join(small, NULL, BLITZ_FOREVER), 0);
    return 0;
}

/* Bug class 25: many small ones do not starve a large one. */
TEST(sync, bug_25_a_waiter_for_many_permits_is_not_overtaken)
{
    t_on_each(big_before_small, NULL, 0);
}

static int acquires_for_ever(void *arg)
{
    (void)arg;
    return blitz_semaphore_acquire(&semaphore, 1, BLITZ_FOREVER);
}

static int gives_to_one_who_goes(void *arg)
{
    (void)arg;
    for (int i = 0; i < 10; i++) {
        blitz_task *t;
        int result = 0;
        blitz_semaphore_init(&semaphore, 0);
        CHECK_EQ(blitz_spawn(acquires_for_ever, NULL, NULL, &t), 0);
        while (blitz_semaphore_try_acquire(&semaphore, 0) == 0)
            blitz_yield(); /* until it is queued */
        /* it has lost its wait, and leaves the queue when it runs: after us */
        blitz_task_cancel(t);
        CHECK_EQ(blitz_semaphore_release(&semaphore, 1), 0);
        CHECK_EQ(blitz_task_join(t, &result, BLITZ_FOREVER), 0);
        CHECK_EQ(result, -ECANCELED);
        CHECK_EQ(blitz_semaphore_permits(&semaphore), 1);
    }
    return 0;
}

/* Bug class 22: a permit that is given to one whose wait has just ended otherwise stays. */
TEST(sync, bug_22_a_grant_to_a_cancelled_waiter_is_not_lost)
{
    CHECK_EQ(t_run_alone(gives_to_one_who_goes, NULL), 0);
}

/* ---- rwlock ---- */

static blitz_rwlock rwlock;
static bz_atomic(int) readers;

static int reads_and_writes(void *arg)
{
    for (intptr_t i = 0; i < (intptr_t)arg; i++) {
        if (i % 4 == 0) {
            CHECK_EQ(blitz_rwlock_write(&rwlock, BLITZ_FOREVER), 0);
            CHECK_EQ(bz_load_relaxed(&readers), 0); /* relaxed: the lock */
            counter++;
            if (i % 8 == 0)
                blitz_yield();
            blitz_rwlock_downgrade(&rwlock);
        } else {
            CHECK_EQ(blitz_rwlock_read(&rwlock, BLITZ_FOREVER), 0);
        }
        bz_fetch_add_relaxed(&readers, 1); /* relaxed: the lock */
        if (i % 3 == 0)
            blitz_yield();
        bz_fetch_sub_relaxed(&readers, 1); /* relaxed: the lock */
        blitz_rwlock_read_unlock(&rwlock);
    }
    return 0;
}

static blitz_poll polls_rwlock(void *state, blitz_cx *cx)
{
    struct crowd_state *s = state;
    int rc;
    BLITZ_BEGIN(&s->frame, cx);
    for (; s->left > 0; s->left--) {
        if (s->left % 4 == 0)
            blitz_rwlock_write_future_init(&s->f, &rwlock);
        else
            blitz_rwlock_read_future_init(&s->f, &rwlock);
        BLITZ_AWAIT(rc, &s->f.future);
        CHECK_EQ(rc, 0);
        if (s->left % 4 == 0) {
            CHECK_EQ(bz_load_relaxed(&readers), 0); /* relaxed: the lock */
            counter++;
            blitz_rwlock_write_unlock(&rwlock);
        } else {
            blitz_rwlock_read_unlock(&rwlock);
        }
    }
    BLITZ_END(0);
}

TEST(sync, a_rwlock_lets_readers_in_together_and_writers_alone)
{
    struct crowd c = {reads_and_writes, polls_rwlock, 4 * (int)t_scaled(30)};
    for (unsigned procs = 1; procs <= 8; procs *= 2) {
        counter = 0;
        blitz_rwlock_init(&rwlock);
        crowd_run(&c, procs);
        CHECK_EQ(counter, crowd_counts(&c) / 4);
        CHECK_EQ(blitz_rwlock_try_write(&rwlock), 0);
    }
}

static int writes_once(void *arg)
{
    int err = blitz_rwlock_write(&rwlock, *(blitz_deadline *)arg);
    if (err == 0)
        blitz_rwlock_write_unlock(&rwlock);
    return err;
}

static int reads_once(void *arg)
{
    (void)arg;
    CHECK_EQ(blitz_rwlock_read(&rwlock, BLITZ_FOREVER), 0);
    blitz_rwlock_read_unlock(&rwlock);
    return 0;
}

/* A cancelled writer lets the waiters behind it continue. */
static int writer_gives_up(void *arg)
{
    blitz_deadline soon = blitz_after(BLITZ_MS);
    blitz_task *writer, *reader;
    int result = 1;
    (void)arg;
    blitz_rwlock_init(&rwlock);
    CHECK_EQ(blitz_rwlock_read(&rwlock, BLITZ_FOREVER), 0);
    CHECK_EQ(blitz_spawn(writes_once, &soon, NULL, &writer), 0);
    CHECK_EQ(blitz_spawn(reads_once, NULL, NULL, &reader), 0);
    CHECK_EQ(blitz_task_join(writer, &result, BLITZ_FOREVER), 0);
    CHECK_EQ(result, -ETIMEDOUT);
    CHECK_EQ(blitz_task_join(reader, &result, BLITZ_FOREVER), 0);
    CHECK_EQ(result, 0);
    blitz_rwlock_read_unlock(&rwlock);
    CHECK_EQ(blitz_rwlock_try_write(&rwlock), 0);
    return 0;
}

TEST(sync, bug_22_a_cancelled_writer_blocks_no_other_waiter)
{
    t_on_each(writer_gives_up, NULL, 0);
}

/* ---- between a thread and a task ---- */

static int sleeper;

static int unlock_for_a_thread(void *arg)
{
    (void)arg;
    CHECK(t_until_asleep(sleeper));
    CHECK_EQ(blitz_semaphore_release(&semaphore, 2), 0);
    return 0;
}

TEST(sync, a_task_wakes_a_thread_that_sleeps)
{
    blitz_runtime *rt;
    blitz_task *t;
    blitz_semaphore_init(&semaphore, 0);
    sleeper = t_tid();
    CHECK_EQ(blitz_runtime_new(NULL, &rt), 0);
    CHECK_EQ(blitz_spawn(unlock_for_a_thread, NULL, &(blitz_spawn_opts){.runtime = rt}, &t), 0);
    CHECK_EQ(blitz_semaphore_acquire(&semaphore, 2, BLITZ_FOREVER), 0);
    CHECK_EQ(blitz_task_join(t, NULL, BLITZ_FOREVER), 0);
    CHECK_EQ(blitz_semaphore_acquire(&semaphore, 1, blitz_after(BLITZ_MS)), -ETIMEDOUT);
    CHECK_EQ(blitz_runtime_shutdown(rt, BLITZ_FOREVER), 0);
    CHECK_EQ(blitz_runtime_unref(rt), 0);
}

/* ---- wakers are foreign code ---- */

static struct asker one, two;
static int depth;

/* Acquires the same semaphore, and cancels, inside its own waker. */
static void wakes_by_asking(void *data)
{
    struct asker *a = data;
    a->bell.rung++;
    if (depth++ > 0)
        return;
    CHECK_EQ(blitz_semaphore_try_acquire(&semaphore, 1), -EAGAIN);
    if (two.is_asking)
        asker_give_up(&two);
    CHECK_EQ(blitz_semaphore_release(&semaphore, 1), 0);
}

static void more(void *data)
{
    ((struct asker *)data)->bell.holders++;
}

static void less(void *data)
{
    ((struct asker *)data)->bell.holders--;
}

static void wakes_and_drops(void *data)
{
    wakes_by_asking(data);
    less(data);
}

/* Bug class 23: no lock is held while a waker runs, so it may call any function. */
TEST(sync, bug_23_a_waker_may_use_the_primitive_that_wakes_it)
{
    static const blitz_waker_ops ops = {more, wakes_and_drops, wakes_by_asking, less};
    blitz_waker w = {&ops, &one};
    depth = 0;
    blitz_semaphore_init(&semaphore, 0);
    blitz_semaphore_acquire_future_init(&one.f, &semaphore, 1);
    asker_begin(&one);
    CHECK_EQ(one.f.future.ops->poll(&one.f.future, &w), BLITZ_PENDING);
    blitz_semaphore_acquire_future_init(&two.f, &semaphore, 1);
    asker_begin(&two);
    CHECK(!asker_ask(&two));
    CHECK_EQ(blitz_semaphore_release(&semaphore, 1), 0);
    CHECK_EQ(one.bell.rung, 1);
    CHECK_EQ(one.f.future.ops->poll(&one.f.future, &w), BLITZ_READY);
    CHECK_EQ(blitz_semaphore_permits(&semaphore), 1);
    CHECK_EQ(one.bell.holders, 1);
}

/* More waiters than fit into one wake list, and each is woken once. */
TEST(sync, many_futures_are_woken_by_one_release)
{
    enum { MANY = 50 };
    static struct asker a[MANY];
    blitz_semaphore_init(&semaphore, 0);
    for (int i = 0; i < MANY; i++) {
        blitz_semaphore_acquire_future_init(&a[i].f, &semaphore, 1);
        asker_begin(&a[i]);
        CHECK(!asker_ask(&a[i]));
    }
    CHECK_EQ(blitz_semaphore_release(&semaphore, MANY + 3), 0);
    for (int i = 0; i < MANY; i++) {
        CHECK_EQ(a[i].bell.rung, 1);
        CHECK(asker_ask(&a[i]));
    }
    CHECK_EQ(blitz_semaphore_permits(&semaphore), 3);
}

/* Likewise when a writer lets a crowd of readers in. */
TEST(sync, many_read_futures_are_woken_by_one_unlock)
{
    enum { MANY = 50 };
    static struct asker a[MANY];
    static blitz_rwlock shared = BLITZ_RWLOCK_INIT;
    CHECK_EQ(blitz_rwlock_try_write(&shared), 0);
    for (int i = 0; i < MANY; i++) {
        blitz_rwlock_read_future_init(&a[i].f, &shared);
        asker_begin(&a[i]);
        CHECK(!asker_ask(&a[i]));
    }
    blitz_rwlock_write_unlock(&shared);
    for (int i = 0; i < MANY; i++)
        CHECK_EQ(a[i].bell.rung, 1);
    for (int i = 0; i < MANY; i++) {
        CHECK(asker_ask(&a[i]));
        blitz_rwlock_read_unlock(&shared);
    }
    CHECK_EQ(blitz_rwlock_try_write(&shared), 0);
}

/* ---- memory ---- */

static struct test_alloc memory = TEST_ALLOC;

static int contends(void *arg)
{
    (void)arg;
    for (int i = 0; i < 20; i++) {
        CHECK_EQ(blitz_mutex_lock(&mutex, BLITZ_FOREVER), 0);
        blitz_yield();
        blitz_mutex_unlock(&mutex);
        CHECK_EQ(blitz_semaphore_acquire(&semaphore, 1, blitz_after(BLITZ_S * 60)), 0);
        blitz_yield();
        CHECK_EQ(blitz_semaphore_release(&semaphore, 1), 0);
    }
    return 0;
}

static size_t allocations_of_a_crowd(void)
{
    enum { N = 30 };
    blitz_task *t[N];
    for (int i = 0; i < N; i++)
        CHECK_EQ(blitz_spawn(contends, NULL, NULL, &t[i]), 0);
    size_t before = memory.calls;
    for (int i = 0; i < N; i++)
        CHECK_EQ(blitz_task_join(t[i], NULL, BLITZ_FOREVER), 0);
    return memory.calls - before;
}

static int wait_without_memory(void *arg)
{
    (void)arg;
    (void)allocations_of_a_crowd(); /* stacks and headers come into their caches */
    CHECK_EQ(allocations_of_a_crowd(), 0);
    return 0;
}

TEST(sync, waiting_allocates_nothing)
{
    blitz_allocator a = test_allocator(&memory);
    blitz_mutex_init(&mutex);
    blitz_semaphore_init(&semaphore, 2);
    CHECK_EQ(
        blitz_run(wait_without_memory, NULL, &(blitz_runtime_opts){.procs = 1, .allocator = &a}),
        0);
    CHECK_EQ(memory.live, 0);
}
