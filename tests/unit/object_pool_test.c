/* Object pools: what is made, kept, used again and dropped, and by whom. */
#include "harness.h"
#include "support/bell.h"
#include "support/on_each.h"

#include <stdlib.h>

struct shop {
    int made, dropped, refuses; /* accessed by one thread at a time */
    int bad_below;              /* objects with a smaller number are not good any more */
};

static int shop_make(void **out, void *ctx)
{
    struct shop *s = ctx;
    if (s->refuses > 0) {
        s->refuses--;
        return -ECONNREFUSED;
    }
    int *object = malloc(sizeof *object);
    CHECK_NOT_NULL(object);
    *object = s->made++;
    *out = object;
    return 0;
}

static void shop_drop(void *object, void *ctx)
{
    ((struct shop *)ctx)->dropped++;
    free(object);
}

static bool shop_is_good(void *object, void *ctx)
{
    return *(int *)object >= ((struct shop *)ctx)->bad_below;
}

static blitz_object_pool *pool_of(struct shop *s, size_t objects_max, size_t idle_max)
{
    blitz_object_pool *p;
    const blitz_object_pool_opts opts = {.make = shop_make,
                                         .drop = shop_drop,
                                         .is_good = shop_is_good,
                                         .ctx = s,
                                         .objects_max = objects_max,
                                         .idle_max = idle_max};
    CHECK_EQ(blitz_object_pool_new(&opts, &p), 0);
    return p;
}

TEST(object_pool, bad_options_are_refused)
{
    blitz_object_pool *p;
    CHECK_EQ(blitz_object_pool_new(NULL, &p), -EINVAL);
    CHECK_EQ(blitz_object_pool_new(&(blitz_object_pool_opts){.objects_max = 1}, &p), -EINVAL);
    CHECK_EQ(blitz_object_pool_new(
                 &(blitz_object_pool_opts){.make = shop_make, .idle_max = SIZE_MAX}, &p),
             -EINVAL);
    blitz_object_pool_unref(NULL);
}

TEST(object_pool, the_object_released_last_is_acquired_first)
{
    struct shop s = {0};
    blitz_object_pool *p = pool_of(&s, 0, 0);
    void *a, *b, *c;
    CHECK_EQ(blitz_object_pool_acquire(p, &a, 0), 0);
    CHECK_EQ(blitz_object_pool_acquire(p, &b, 0), 0);
    CHECK_EQ(s.made, 2);
    CHECK_EQ(blitz_object_pool_used(p), 2u);
    blitz_object_pool_release(p, a);
    blitz_object_pool_release(p, b);
    CHECK_EQ(blitz_object_pool_idle(p), 2u);
    CHECK_EQ(blitz_object_pool_acquire(p, &c, 0), 0);
    CHECK(c == b);
    blitz_object_pool_discard(p, c);
    CHECK_EQ(s.dropped, 1);
    CHECK_EQ(blitz_object_pool_idle(p), 1u);
    blitz_object_pool_unref(blitz_object_pool_ref(p));
    blitz_object_pool_unref(p);
    CHECK_EQ(s.dropped, s.made);
}

TEST(object_pool, bad_objects_are_dropped_by_the_next_caller)
{
    struct shop s = {0};
    blitz_object_pool *p = pool_of(&s, 3, 2);
    void *o[3];
    for (int i = 0; i < 3; i++)
        CHECK_EQ(blitz_object_pool_acquire(p, &o[i], 0), 0);
    CHECK_EQ(blitz_object_pool_acquire(p, &o[0], 0), -ETIMEDOUT);
    for (int i = 0; i < 3; i++)
        blitz_object_pool_release(p, o[i]);
    CHECK_EQ(s.dropped, 1); /* two are kept */
    s.bad_below = 3;
    CHECK_EQ(blitz_object_pool_acquire(p, &o[0], 0), 0);
    CHECK_EQ(s.dropped, 3);
    CHECK_EQ(*(int *)o[0], 3);
    blitz_object_pool_release(p, o[0]);
    blitz_object_pool_unref(p);
    CHECK_EQ(s.dropped, s.made);
}

TEST(object_pool, a_failed_make_takes_nothing)
{
    struct shop s = {.refuses = 2};
    blitz_object_pool *p = pool_of(&s, 1, 0);
    blitz_object_pool_future f;
    struct t_bell bell = {0};
    blitz_waker w = t_bell_waker(&bell);
    void *o = NULL;
    CHECK_EQ(blitz_object_pool_acquire(p, &o, 0), -ECONNREFUSED);
    CHECK_NULL(o);
    blitz_object_pool_acquire_future_init(&f, p);
    CHECK_EQ(f.future.ops->poll(&f.future, &w), BLITZ_READY);
    CHECK_EQ(blitz_future_output(&f.future), -ECONNREFUSED);
    CHECK_EQ(blitz_object_pool_used(p), 0u);
    CHECK_EQ(blitz_object_pool_acquire(p, &o, 0), 0);
    blitz_object_pool_release(p, o);
    blitz_object_pool_unref(p);
}

TEST(object_pool, a_waiter_gets_the_object_that_is_released)
{
    struct shop s = {0};
    blitz_object_pool *p = pool_of(&s, 1, 0);
    blitz_object_pool_future f, g;
    struct t_bell bell = {0}, other = {0};
    blitz_waker w = t_bell_waker(&bell), v = t_bell_waker(&other);
    void *o;
    CHECK_EQ(blitz_object_pool_acquire(p, &o, 0), 0);
    blitz_object_pool_acquire_future_init(&f, p);
    blitz_object_pool_acquire_future_init(&g, p);
    CHECK_EQ(f.future.ops->poll(&f.future, &w), BLITZ_PENDING);
    CHECK_EQ(g.future.ops->poll(&g.future, &v), BLITZ_PENDING);
    f.future.ops->cancel(&f.future);
    blitz_object_pool_release(p, o);
    CHECK_GE(other.rung, 1);
    CHECK_EQ(g.future.ops->poll(&g.future, &v), BLITZ_READY);
    CHECK(g.object == o);
    CHECK_EQ(s.made, 1);
    CHECK_EQ(bell.holders + other.holders, 0);
    blitz_object_pool_release(p, g.object);
    blitz_object_pool_unref(p);
}

/* A combinator may poll a child again that was ready, and cancels it at the end. */
TEST(object_pool, a_future_that_is_ready_takes_no_second_object)
{
    struct shop s = {0};
    blitz_object_pool *p = pool_of(&s, 2, 0);
    blitz_object_pool_future f;
    struct t_bell bell = {0};
    blitz_waker w = t_bell_waker(&bell);
    blitz_object_pool_acquire_future_init(&f, p);
    CHECK_EQ(f.future.ops->poll(&f.future, &w), BLITZ_READY);
    void *first = f.object;
    CHECK_EQ(f.future.ops->poll(&f.future, &w), BLITZ_READY);
    f.future.ops->cancel(&f.future);
    CHECK(f.object == first);
    CHECK_EQ(s.made, 1);
    CHECK_EQ(blitz_object_pool_used(p), 1u);
    blitz_object_pool_release(p, first);
    blitz_object_pool_unref(p);
}

TEST(object_pool, a_close_drops_what_is_idle_and_later_what_was_in_use)
{
    struct shop s = {0};
    blitz_object_pool *p = pool_of(&s, 2, 0);
    void *a, *b, *c;
    CHECK_EQ(blitz_object_pool_acquire(p, &a, 0), 0);
    CHECK_EQ(blitz_object_pool_acquire(p, &b, 0), 0);
    blitz_object_pool_release(p, a);
    blitz_object_pool_close(p);
    CHECK_EQ(s.dropped, 1);
    CHECK_EQ(blitz_object_pool_acquire(p, &c, BLITZ_FOREVER), -EPIPE);
    blitz_object_pool_release(p, b);
    CHECK_EQ(s.dropped, 2);
    blitz_object_pool_unref(p);
}
