/*
 * all.c - every one of several futures.
 *
 * A poll polls the open children. The output of a child matters only if it is an error. In the mode BLITZ_FAIL_FAST
 * the remaining children are then cancelled, as a race cancels its losers, and the error is reported when none of them
 * is open. In the mode BLITZ_COLLECT the first error is kept and the others go on.
 *
 * The first poll polls every child. A later one polls those that were woken, if there is a list of them
 * (children.c), so n children cost 2 * n polls in all. Without a list it polls all open children.
 *
 * I1  `open` is the number of children that are not ready and not given up. It counts from the first full
 *     pass on; was_polled_whole is false if the next poll must make one.
 */
#include <errno.h>

#include "future/children.h"

static blitz_all *all_of(blitz_future *f)
{
    return BZ_CONTAINER_OF(f, blitz_all, future);
}

/* Record the output of a child that has ended. */
static void note_output(blitz_all *a, size_t i)
{
    int output = blitz_future_output(a->child[i].future);
    if (output >= 0 || a->result != 0)
        return;
    a->result = output;
    a->failed = i;
    if (a->mode == BLITZ_FAIL_FAST)
        (void)bz_children_stop(a->child, a->count);
}

static void ask_child(blitz_all *a, size_t i, const blitz_waker *waker)
{
    if (bz_child_poll(&a->child[i], waker)) {
        a->open--;
        note_output(a, i);
    }
}

/* Poll each open child once. A failure may cancel those behind it. */
static BZ_ALWAYS_INLINE void ask_all(blitz_all *a, struct bz_readylist *list,
                                     const blitz_waker *waker)
{
    a->open = 0;
    for (size_t i = 0; i < a->count; i++) {
        blitz_waker room;
        if (!bz_child_is_open(&a->child[i]))
            continue;
        a->open++;
        ask_child(a, i, bz_child_waker(list, i, waker, &room));
    }
    a->was_polled_whole = true;
}

static void ask_woken(blitz_all *a)
{
    for (struct bz_ready_entry *e; (e = bz_readylist_next(a->list)) != NULL;) {
        size_t i = bz_readylist_index(e);
        blitz_waker its = bz_readylist_waker(e);
        if (bz_child_is_open(&a->child[i]))
            ask_child(a, i, &its);
    }
}

static void close_list(blitz_all *a)
{
    if (a->list != NULL)
        bz_readylist_close(a->list);
    a->list = NULL;
}

/* True if all children have ended. Called after a pass over some of the children; `was` is the error before it. */
static bool is_over(blitz_all *a, const blitz_waker *waker, int was)
{
    if (a->result != was && a->mode == BLITZ_FAIL_FAST)
        a->open = bz_children_poll_stopping(a->child, a->count, a->list, waker);
    return a->open == 0;
}

static BZ_NOINLINE blitz_poll poll_many(blitz_all *a, const blitz_waker *waker)
{
    int was = a->result;
    if (!a->is_begun) {
        a->is_begun = true;
        a->list = bz_readylist_new(a->count, waker);
    }
    if (a->list != NULL)
        bz_readylist_begin(a->list, waker);
    if (!a->was_polled_whole || a->list == NULL)
        ask_all(a, a->list, waker);
    else
        ask_woken(a);
    if (is_over(a, waker, was)) {
        close_list(a);
        return BLITZ_READY;
    }
    if (a->list != NULL)
        bz_readylist_end(a->list, waker);
    return BLITZ_PENDING;
}

static blitz_poll all_poll(blitz_future *f, const blitz_waker *waker)
{
    blitz_all *a = all_of(f);
    int was = a->result;
    if (BZ_UNLIKELY(a->count > bz_children_few))
        return poll_many(a, waker);
    ask_all(a, NULL, waker);
    return is_over(a, waker, was) ? BLITZ_READY : BLITZ_PENDING;
}

static void all_cancel(blitz_future *f)
{
    blitz_all *a = all_of(f);
    a->was_polled_whole = false; /* the next poll polls those that are stopping */
    if (!bz_children_stop(a->child, a->count))
        close_list(a);
}

static int all_output(blitz_future *f)
{
    return all_of(f)->result;
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
    return all.result != 0 ? all.result : err;
}
