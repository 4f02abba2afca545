/*
 * box.h - the smallest thing that can be waited for: a box of values, first come first served.
 *
 * Written by the manual (wait/wait.h), so that waits can be tested before anything is built on
 * them. Nothing is lost: puts are takes that succeeded, and what is still in it.
 */
#ifndef T_BOX_H
#define T_BOX_H

#include "wait/wait.h"

struct box {
    const struct bz_os *os;
    struct bz_lock lock;
    struct bz_list takers; /* guarded by lock, as is */
    int values;
};

struct box_taker {
    struct box *box;
    struct bz_wait wait;
    struct bz_list in;
};

static inline void box_init(struct box *b, const struct bz_os *os)
{
    b->os = os;
    bz_lock_init_ranked(&b->lock, BZ_RANK_TASK);
    bz_list_init(&b->takers);
    b->values = 0;
}

static inline bool box_hook(struct bz_wait *w, void *arg)
{
    struct box_taker *t = arg;
    struct box *b = t->box;
    const struct bz_os *os = b->os;
    bz_lock_take(&b->lock, os);
    if (b->values > 0) {
        b->values--;
        bz_lock_drop(&b->lock, os);
        return bz_wait_over(w, BZ_WAIT_WOKEN);
    }
    bz_list_push_back(&b->takers, &t->in);
    bool waits = bz_wait_publish(w);
    bz_lock_drop(&b->lock, os);
    return waits;
}

/* Take a value: 0, -ETIMEDOUT, -ECANCELED. */
static inline int box_take(struct box *b, blitz_deadline until)
{
    struct box_taker t = {.box = b};
    bz_list_init(&t.in);
    bz_wait_begin(&t.wait, b->os, "box", until);
    uint32_t outcome = bz_wait_refuse(&t.wait);
    if (outcome != BZ_WAIT_OPEN)
        return bz_wait_error(outcome);
    outcome = bz_wait_park(&t.wait, box_hook, &t);
    if (outcome < BZ_WAIT_WOKEN) {
        bz_lock_take(&b->lock, b->os);
        bz_list_remove(&t.in);
        bz_lock_drop(&b->lock, b->os);
    }
    return bz_wait_error(outcome);
}

static inline void box_put(struct box *b)
{
    bool is_given = false;
    bz_lock_take(&b->lock, b->os);
    for (struct bz_list *l; !is_given && (l = bz_list_take_front(&b->takers)) != NULL;)
        is_given = bz_wait_wake(&BZ_CONTAINER_OF(l, struct box_taker, in)->wait, BZ_WAIT_WOKEN);
    if (!is_given)
        b->values++;
    bz_lock_drop(&b->lock, b->os);
}

#endif
