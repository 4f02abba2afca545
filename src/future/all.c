/*
 * all.c - every one of several futures.
 *
 * A poll asks those that are open. What a child's output says decides: nothing, until one fails;
 * then, failing fast, the rest are given up as a race gives up its losers, and the error is told when
 * nothing of them is left. Collecting, the first error is kept and the rest go on.
 *
 * Asked again for each wake, n children cost up to n * n / 2 polls in all. Few have many; whoever
 * has thousands spawns them into a scope (blitz/scope.h), where each is a task and is woken alone.
 */
#include <errno.h>

#include "future/children.h"

static blitz_all *all_of(blitz_future *f)
{
    return BZ_CONTAINER_OF(f, blitz_all, future);
}

/* A child has ended. */
static void note_output(blitz_all *a, size_t i)
{
    int output = blitz_future_output(a->child[i].future);
    if (output >= 0 || a->error != 0)
        return;
    a->error = output;
    a->failed = i;
    if (a->mode == BLITZ_FAIL_FAST)
        (void)bz_children_stop(a->child, a->count);
}

/* Ask those that are open, once each; a failure on the way may stop the ones behind. True: nothing
 * is open any more. */
static bool ask(blitz_all *a, const blitz_waker *waker)
{
    bool is_over = true;
    for (size_t i = 0; i < a->count; i++) {
        if (!bz_child_is_open(&a->child[i]))
            continue;
        if (bz_child_poll(&a->child[i], waker))
            note_output(a, i);
        else
            is_over = false;
    }
    return is_over;
}

static blitz_poll all_poll(blitz_future *f, const blitz_waker *waker)
{
    blitz_all *a = all_of(f);
    int was = a->error;
    bool is_over = ask(a, waker);
    if (!is_over && a->error != was && a->mode == BLITZ_FAIL_FAST)
        is_over =
            bz_children_settle(a->child, a->count, waker); /* some were asked before it failed */
    return is_over ? BLITZ_READY : BLITZ_PENDING;
}

static void all_cancel(blitz_future *f)
{
    blitz_all *a = all_of(f);
    (void)bz_children_stop(a->child, a->count);
}

static int all_output(blitz_future *f)
{
    return all_of(f)->error;
}

int blitz_all_init(blitz_all *all, blitz_child *child, size_t count, blitz_all_mode mode)
{
    static const blitz_future_ops revocable = {"all", BLITZ_REVOCABLE, all_poll, all_cancel,
                                               all_output},
                                  detachable = {"all", BLITZ_DETACHABLE, all_poll, all_cancel,
                                                all_output},
                                  pinned = {"all", BLITZ_PINNED, all_poll, all_cancel, all_output};
    static const blitz_future_ops *const ops[] = {&revocable, &detachable, &pinned};
    if (all == NULL || (child == NULL && count > 0))
        return -EINVAL;
    if (mode != BLITZ_FAIL_FAST && mode != BLITZ_COLLECT)
        return -EINVAL;
    *all = (blitz_all){.mode = mode, .failed = count, .child = child, .count = count};
    return bz_children_init(child, count, ops, &all->future);
}

int blitz_all_of(blitz_future *const *futures, size_t count, blitz_deadline until)
{
    blitz_child child[BLITZ_OF_MAX];
    blitz_all all;
    if (count > BLITZ_OF_MAX || (futures == NULL && count > 0))
        return -EINVAL;
    for (size_t i = 0; i < count; i++)
        child[i].future = futures[i];
    int err = blitz_all_init(&all, child, count, BLITZ_FAIL_FAST);
    if (err != 0)
        return err;
    err = blitz_await(&all.future, until);
    return all.error != 0 ? all.error : err;
}
