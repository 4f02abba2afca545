/* os/held.h: test builds report a lock taken out of order, or released by another thread. */
#include "harness.h"

#include "os/lock.h"

#if defined(BZ_WATCH)

static const struct bz_os *const os = &bz_os_system;
static struct bz_lock outer, inner, leaf, other_leaf;

static void given_four_locks(void)
{
    bz_lock_init_ranked(&outer, BZ_RANK_RUNTIME);
    bz_lock_init_ranked(&inner, BZ_RANK_INJECTOR);
    bz_lock_init(&leaf);
    bz_lock_init(&other_leaf);
}

TEST(held, locks_in_order_are_nobodys_business)
{
    given_four_locks();
    bz_lock_take(&outer, os);
    bz_lock_take(&inner, os);
    bz_lock_take(&leaf, os);
    CHECK_EQ(bz_held_count(), 3u);
    bz_lock_drop(&inner, os); /* dropping knows no order */
    bz_lock_drop(&leaf, os);
    bz_lock_drop(&outer, os);
    CHECK_EQ(bz_held_count(), 0u);
    bz_held_none();
}

static void take_in_the_wrong_order(void *arg)
{
    (void)arg;
    bz_lock_take(&inner, os);
    bz_lock_take(&outer, os);
}

static void take_two_leaves(void *arg)
{
    (void)arg;
    bz_lock_take(&leaf, os);
    bz_lock_take(&other_leaf, os);
}

static void take_twice(void *arg)
{
    (void)arg;
    bz_lock_take(&outer, os);
    bz_lock_take(&outer, os);
}

static void drop_a_strangers(void *arg)
{
    (void)arg;
    bz_atomic_init(&leaf.word, BZ_LOCK_HELD);
    bz_lock_drop(&leaf, os);
}

static void suspend_with_one(void *arg)
{
    (void)arg;
    bz_lock_take(&inner, os);
    bz_held_none();
}

/* A deadlock needs two threads and bad luck; the order needs neither. */
TEST(held, bug_07_a_lock_out_of_order_is_named_with_the_one_that_is_held)
{
    given_four_locks();
    CHECK_ABORTS(take_in_the_wrong_order, NULL, "(runtime) is taken while");
    CHECK_ABORTS(take_in_the_wrong_order, NULL, "(injector) is held");
    CHECK_ABORTS(take_two_leaves, NULL, "(leaf) is taken while");
    CHECK_ABORTS(take_twice, NULL, "is taken by its holder");
    CHECK_ABORTS(drop_a_strangers, NULL, "is dropped by a thread that does not hold it");
}

TEST(held, bug_07_a_suspension_with_a_lock_held_is_named)
{
    given_four_locks();
    CHECK_ABORTS(suspend_with_one, NULL, "a task suspends while its thread holds lock");
}

/* It cannot wait, so it cannot deadlock; but what it took is held. */
TEST(held, a_try_may_come_in_any_order)
{
    given_four_locks();
    bz_lock_take(&leaf, os);
    CHECK(bz_lock_try(&outer));
    CHECK(!bz_lock_try(&outer));
    CHECK_EQ(bz_held_count(), 2u);
    bz_lock_drop(&outer, os);
    bz_lock_drop(&leaf, os);
}

/* Released by a hook, on another stack: no owner in between. */
TEST(held, a_lock_that_was_passed_on_may_be_dropped_by_another)
{
    given_four_locks();
    bz_lock_take(&leaf, os);
    bz_lock_pass(&leaf);
    bz_held_none();
    CHECK(!bz_lock_try(&leaf));
    bz_lock_drop(&leaf, os);
    bz_lock_take(&leaf, os); /* and is an ordinary lock again */
    CHECK_EQ(bz_held_count(), 1u);
    bz_lock_drop(&leaf, os);
}

static void holds_its_own(void *arg, int index)
{
    struct bz_lock mine;
    (void)arg;
    (void)index;
    bz_lock_init(&mine);
    CHECK_EQ(bz_held_count(), 0u);
    bz_lock_take(&mine, os);
    CHECK_EQ(bz_held_count(), 1u);
    bz_lock_drop(&mine, os);
}

TEST(held, every_thread_has_a_list_of_its_own)
{
    given_four_locks();
    bz_lock_take(&outer, os);
    t_threads(3, holds_its_own, NULL);
    CHECK_EQ(bz_held_count(), 1u);
    bz_lock_drop(&outer, os);
}

#else

TEST(held, bug_07_a_lock_out_of_order_is_named_with_the_one_that_is_held)
{
    t_skip("locks are not watched in this build: see the debug and sanitizer builds");
}

#endif
