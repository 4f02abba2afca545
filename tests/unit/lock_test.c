/* os/lock.h, os/brief_lock.h: one holder at a time, and no waiter misses an unlock. */
#include "harness.h"

#include "os/brief_lock.h"

static struct bz_lock lock = BZ_LOCK_INIT;
static uint64_t plain_count; /* guarded by lock */
static uint64_t rounds;

TEST(lock, a_held_lock_is_refused_to_a_try)
{
    CHECK(bz_lock_try(&lock));
    CHECK(!bz_lock_try(&lock));
    bz_lock_drop(&lock, &bz_os_system);
    CHECK(bz_lock_try(&lock));
    bz_lock_drop(&lock, &bz_os_system);
}

TEST(lock, without_waiters_there_is_no_wake)
{
    bz_lock_take(&lock, &bz_os_system);
    CHECK_EQ(bz_load_relaxed(&lock.word), (uint32_t)BZ_LOCK_HELD);
    bz_lock_drop(&lock, &bz_os_system);
    CHECK_EQ(bz_load_relaxed(&lock.word), (uint32_t)BZ_LOCK_FREE);
}

static void add_under_the_lock(void *arg, int index)
{
    (void)arg;
    (void)index;
    for (uint64_t i = 0; i < rounds; i++) {
        bz_lock_take(&lock, &bz_os_system);
        plain_count++;
        bz_lock_drop(&lock, &bz_os_system);
    }
}

/* More threads than CPUs: holders lose their CPU and the others must sleep and be roused. */
TEST(lock, eight_threads_count_without_a_loss)
{
    rounds = t_scaled(20000);
    t_threads(8, add_under_the_lock, NULL);
    CHECK_EQ(plain_count, 8 * rounds);
    CHECK_EQ(bz_load_relaxed(&lock.word), (uint32_t)BZ_LOCK_FREE);
}

static void add_under_the_brief_lock(void *arg, int index)
{
    (void)arg;
    (void)index;
    for (uint64_t i = 0; i < rounds; i++) {
        bz_brief_take(&lock, &bz_os_system);
        plain_count++;
        bz_brief_drop(&lock, &bz_os_system);
    }
}

/* A drop rouses no thread, so a thread that sleeps must retry by itself. */
TEST(lock, eight_threads_count_without_a_loss_under_a_brief_lock)
{
    rounds = t_scaled(20000);
    plain_count = 0;
    t_threads(8, add_under_the_brief_lock, NULL);
    CHECK_EQ(plain_count, 8 * rounds);
    CHECK_EQ(bz_load_relaxed(&lock.word), (uint32_t)BZ_LOCK_FREE);
}
