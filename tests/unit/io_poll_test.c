/* io/poll.h with the null backend: sleeping and rousing, step by step. */
#include "harness.h"

#include "io/poll.h"

#define MS UINT64_C(1000000)

static struct bz_poll poll;

static uint64_t now(void)
{
    return bz_os_now(&bz_os_system);
}

/* The rouse came between the announcement and the wait. */
TEST(io_poll, a_rouse_after_prepare_ends_a_wait_that_has_not_begun)
{
    bz_poll_null_init(&poll, &bz_os_system);
    bz_poll_prepare(&poll);
    bz_poll_rouse(&poll);
    CHECK_EQ(bz_poll_wait(&poll, BZ_OS_FOREVER, NULL), 0);
    CHECK(bz_poll_was_roused(&poll));
    bz_poll_fini(&poll);
}

/* A rouse whose reason has been seen must not cost a wake. */
TEST(io_poll, a_rouse_before_prepare_is_forgotten)
{
    bz_poll_null_init(&poll, &bz_os_system);
    bz_poll_rouse(&poll);
    bz_poll_prepare(&poll);
    CHECK(!bz_poll_was_roused(&poll));
    CHECK_EQ(bz_poll_wait(&poll, now() + MS, NULL), -ETIMEDOUT);
    bz_poll_fini(&poll);
}

TEST(io_poll, a_wait_does_not_end_before_its_time)
{
    bz_poll_null_init(&poll, &bz_os_system);
    for (int i = 0; i < 5; i++) {
        uint64_t until = now() + MS;
        bz_poll_prepare(&poll);
        while (bz_poll_wait(&poll, until, NULL) != -ETIMEDOUT)
            ; /* for no reason */
        CHECK_GE(now(), until);
    }
    bz_poll_fini(&poll);
}

TEST(io_poll, a_deadline_in_the_past_does_not_sleep)
{
    bz_poll_null_init(&poll, &bz_os_system);
    bz_poll_prepare(&poll);
    CHECK_EQ(bz_poll_wait(&poll, 0, NULL), -ETIMEDOUT);
    bz_poll_fini(&poll);
}

enum { ROUNDS = 2000 };
static bz_atomic(int) announced, answered;

/* The machine announces itself and sleeps, again and again; the other rouses it each time. */
static void sleeper_and_rouser(void *arg, int index)
{
    (void)arg;
    for (int i = 1, n = (int)t_scaled(ROUNDS); i <= n; i++) {
        if (index == 0) {
            bz_poll_prepare(&poll);
            bz_store_release(&announced, i); /* a rouse after prepare reaches the other */
            while (!bz_poll_was_roused(&poll))
                bz_poll_wait(&poll, BZ_OS_FOREVER, NULL);
            CHECK_EQ(bz_load_relaxed(&answered), i); /* relaxed: poll.h [A] */
        } else {
            for (unsigned round = 0; bz_load_acquire(&announced) < i; round++) /* as above */
                bz_os_relax(&bz_os_system, round);
            bz_store_relaxed(&answered, i); /* relaxed: poll.h [A] */
            bz_poll_rouse(&poll);
        }
    }
}

TEST(io_poll, bug_01_no_rouse_after_an_announcement_is_lost)
{
    bz_poll_null_init(&poll, &bz_os_system);
    t_threads(2, sleeper_and_rouser, NULL);
    bz_poll_fini(&poll);
}
