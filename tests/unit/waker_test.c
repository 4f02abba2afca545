/*
 * Wakers alone: the references after each of their four operations.
 */
#include <blitz.h>

#include "harness.h"
#include "support/bell.h"

/* A clone is a reference like the first: both must be dropped. */
TEST(waker, clone_makes_one_more_holder)
{
    struct t_bell b = {1, 0};
    blitz_waker w = t_bell_waker(&b);

    blitz_waker other = blitz_waker_clone(&w);

    CHECK_EQ(b.holders, 2);
    blitz_waker_drop(&other);
    blitz_waker_drop(&w);
    CHECK_EQ(b.holders, 0);
    CHECK_EQ(b.rung, 0);
}

/* A wake consumes the waker; a second wake is harmless. */
TEST(waker, wake_uses_it_up)
{
    struct t_bell b = {1, 0};
    blitz_waker w = t_bell_waker(&b);

    blitz_waker_wake(&w);
    blitz_waker_wake(&w);
    blitz_waker_drop(&w);

    CHECK_EQ(b.rung, 1);
    CHECK_EQ(b.holders, 0);
    CHECK_NULL(w.ops);
}

/* A source that rings again and again keeps its waker. */
TEST(waker, wake_by_ref_keeps_it)
{
    struct t_bell b = {1, 0};
    blitz_waker w = t_bell_waker(&b);

    blitz_waker_wake_by_ref(&w);
    blitz_waker_wake_by_ref(&w);

    CHECK_EQ(b.rung, 2);
    CHECK_EQ(b.holders, 1);
    blitz_waker_drop(&w);
    CHECK_EQ(b.holders, 0);
}

/* An empty waker does nothing; callers need no check. */
TEST(waker, an_empty_one_does_nothing)
{
    blitz_waker w = {NULL, NULL};

    blitz_waker c = blitz_waker_clone(&w);
    blitz_waker_wake_by_ref(&w);
    blitz_waker_wake(&w);
    blitz_waker_drop(&w);

    CHECK_NULL(c.ops);
    CHECK_NULL(w.ops);
}

/* It is passed and kept by value, so its size is part of the contract. */
TEST(waker, is_two_words)
{
    CHECK_EQ(sizeof(blitz_waker), 2 * sizeof(void *));
}
