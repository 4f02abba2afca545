/* wait/readylist.h alone: when the list is freed. */
#include "harness.h"

#include "support/bell.h"
#include "wait/readylist.h"

static int freed;

static void list_freed(struct bz_readylist *r)
{
    (void)r;
    freed++;
}

/* The owner's reference is the last one if no child's waker is out. */
TEST(readylist, a_list_that_is_closed_is_freed_with_the_last_waker)
{
    struct t_bell bell = {.holders = 1};
    blitz_waker parent = t_bell_waker(&bell);
    struct bz_readylist r;
    freed = 0;
    bz_readylist_init(&r, &parent, list_freed, NULL);
    bz_readylist_begin(&r, &parent);
    bz_readylist_end(&r, &parent);
    CHECK_EQ(freed, 0);
    bz_readylist_close(&r);
    CHECK_EQ(freed, 1);
    CHECK_EQ(bell.holders, 1); /* the parent's waker is given back */
}

TEST(readylist, a_waker_that_outlives_the_list_frees_it)
{
    struct t_bell bell = {.holders = 1};
    blitz_waker parent = t_bell_waker(&bell);
    struct bz_readylist *r = bz_readylist_new(2, &parent);
    CHECK_NOT_NULL(r);
    blitz_waker borrowed = bz_readylist_waker(bz_readylist_at(r, 0));
    blitz_waker child = blitz_waker_clone(&borrowed);
    bz_readylist_close(r);
    blitz_waker_wake(&child); /* no parent is left; the list goes with this waker */
    CHECK_EQ(bell.rung, 0);
    CHECK_EQ(bell.holders, 1);
}

/* The list of a join set has no parent at first. A timer that fires asks this, to call foreign code apart. */
TEST(readylist, a_child_of_a_foreign_parent_is_foreign)
{
    struct t_bell bell = {.holders = 1};
    blitz_waker parent = t_bell_waker(&bell), none = {NULL, NULL};
    struct bz_readylist *r = bz_readylist_new(1, &none);
    CHECK_NOT_NULL(r);
    blitz_waker child = bz_readylist_waker(bz_readylist_at(r, 0));
    CHECK(bz_readylist_is_ours(&child));
    bz_readylist_begin(r, &parent);
    CHECK(!bz_readylist_is_ours(&child));
    bz_readylist_end(r, &parent);
    bz_readylist_close(r);
}
