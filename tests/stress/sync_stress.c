/*
 * The primitives on real threads, for as long as it takes to meet: scenes and crowds at 1, 2 and 8
 * procs, with plain threads among them; sanitizers watch frames and futures come and go.
 */
#include "harness.h"

#include "blitz.h"
#include "support/sync_crowd.h"
#include "support/sync_scenes.h"

static const unsigned procs_of[] = {1, 2, 8};

static void scenes(int (*scene)(void *), uint64_t full)
{
    for (size_t p = 0; p < BZ_ARRAY_LEN(procs_of); p++)
        for (uint64_t i = 0, n = t_scaled(full); i < n; i++) {
            struct scene_seed seed = {t_random()};
            t_watch("%u procs, seed 0x%llx", procs_of[p], (unsigned long long)seed.seed);
            CHECK_EQ(blitz_run(scene, &seed, &(blitz_runtime_opts){.procs = procs_of[p]}), 0);
        }
}

TEST(sync, notifications_are_not_lost)
{
    scenes(scene_notify, 100);
}

TEST(sync, signals_are_not_missed)
{
    scenes(scene_condition, 100);
}

TEST(sync, meetings_are_complete)
{
    scenes(scene_barrier, 100);
}

TEST(sync, values_are_made_once)
{
    scenes(scene_once, 100);
}

TEST(sync, released_waiters_free_their_groups)
{
    scenes(scene_group, 200);
}

/* ---- a mix: all three locks at once, by all three kinds of waiters, with deadlines ---- */

static blitz_mutex mutex;
static blitz_semaphore semaphore;
static blitz_rwlock rwlock;
static int counter, guarded; /* by the mutex; by the rwlock */
static bz_atomic(int) counted, written, inside;

enum { PERMITS = 3 };

static blitz_deadline soon(struct bz_rng *rng)
{
    uint64_t us = bz_rng_below(rng, 8);
    return us == 0 ? BLITZ_FOREVER : blitz_after(us * BLITZ_US);
}

static void counts(void)
{
    counter++;
    bz_fetch_add_relaxed(&counted, 1); /* relaxed: a count */
}

static void uses_permits(struct bz_rng *rng, int n)
{
    if (blitz_semaphore_acquire(&semaphore, (uint32_t)n, soon(rng)) != 0)
        return;
    CHECK_LE(bz_fetch_add_relaxed(&inside, n) + n, PERMITS); /* relaxed: a count */
    if (bz_rng_below(rng, 2) == 0)
        blitz_yield();
    bz_fetch_sub_relaxed(&inside, n); /* relaxed: a count */
    CHECK_EQ(blitz_semaphore_release(&semaphore, (uint32_t)n), 0);
}

static void reads_or_writes(struct bz_rng *rng)
{
    if (bz_rng_below(rng, 4) == 0) {
        if (blitz_rwlock_write(&rwlock, soon(rng)) != 0)
            return;
        guarded++;
        bz_fetch_add_relaxed(&written, 1); /* relaxed: a count */
        blitz_rwlock_downgrade(&rwlock);
        blitz_rwlock_read_unlock(&rwlock);
    } else if (blitz_rwlock_read(&rwlock, soon(rng)) == 0) {
        CHECK_GE(guarded, 0); /* a read, for those who look for races */
        blitz_rwlock_read_unlock(&rwlock);
    }
}

static int mixes(void *arg)
{
    struct bz_rng rng;
    bz_rng_init(&rng, t_random());
    for (intptr_t i = 0; i < (intptr_t)arg; i++) {
        if (blitz_mutex_lock(&mutex, soon(&rng)) == 0) {
            counts();
            blitz_mutex_unlock(&mutex);
        }
        uses_permits(&rng, 1 + (int)bz_rng_below(&rng, PERMITS));
        reads_or_writes(&rng);
    }
    return 0;
}

static blitz_poll mixes_by_poll(void *state, blitz_cx *cx)
{
    struct crowd_state *me = state;
    int rc;
    BLITZ_BEGIN(&me->frame, cx);
    while (me->left-- > 0) {
        blitz_mutex_lock_future_init(&me->f, &mutex);
        BLITZ_AWAIT(rc, &me->f.future);
        CHECK_EQ(rc, 0);
        counts();
        blitz_mutex_unlock(&mutex);
        blitz_rwlock_write_future_init(&me->f, &rwlock);
        BLITZ_AWAIT(rc, &me->f.future);
        CHECK_EQ(rc, 0);
        guarded++;
        bz_fetch_add_relaxed(&written, 1); /* relaxed: a count */
        blitz_rwlock_write_unlock(&rwlock);
    }
    BLITZ_END(0);
}

TEST(sync, a_mix_of_locks_and_waiters_adds_up)
{
    struct crowd c = {mixes, mixes_by_poll, (int)t_scaled(400)};
    for (size_t p = 0; p < BZ_ARRAY_LEN(procs_of); p++) {
        blitz_mutex_init(&mutex);
        blitz_rwlock_init(&rwlock);
        blitz_semaphore_init(&semaphore, PERMITS);
        counter = guarded = 0;
        bz_atomic_init(&counted, 0);
        bz_atomic_init(&written, 0);
        crowd_run(&c, procs_of[p]);
        CHECK_EQ(counter, bz_load_relaxed(&counted));
        CHECK_EQ(guarded, bz_load_relaxed(&written));
        CHECK_EQ(blitz_semaphore_permits(&semaphore), PERMITS);
        CHECK_EQ(blitz_mutex_try_lock(&mutex), 0);
        CHECK_EQ(blitz_rwlock_try_write(&rwlock), 0);
    }
}

/* ---- plain threads alone ---- */

static blitz_semaphore ping, pong;

static void answers(void *arg)
{
    for (uint64_t i = *(uint64_t *)arg; i > 0; i--) {
        CHECK_EQ(blitz_semaphore_acquire(&ping, 1, BLITZ_FOREVER), 0);
        CHECK_EQ(blitz_semaphore_release(&pong, 1), 0);
    }
}

/* Bug class 26: threads park on futex words of ours and on nothing of the C library's; a wake that is
 * lost hangs this. The deadline, always far, is armed and passed by. */
TEST(sync, bug_26_threads_that_wake_each_other_lose_no_wake)
{
    uint64_t rounds = t_scaled(3000);
    struct bz_os_thread thread;
    blitz_semaphore_init(&ping, 0);
    blitz_semaphore_init(&pong, 0);
    CHECK_EQ(bz_os_thread_start(&bz_os_system, &thread, NULL, answers, &rounds), 0);
    for (uint64_t i = 0; i < rounds; i++) {
        CHECK_EQ(blitz_semaphore_release(&ping, 1), 0);
        CHECK_EQ(
            blitz_semaphore_acquire(&pong, 1, i % 2 ? BLITZ_FOREVER : blitz_after(BLITZ_S * 60)),
            0);
    }
    CHECK_EQ(bz_os_thread_join(&bz_os_system, &thread), 0);
}
