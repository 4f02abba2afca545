/*
 * joiner.h - a waiter for the end of a task, blocking or polled: join.c, futures.c.
 */
#ifndef BZ_LIFE_JOINER_H
#define BZ_LIFE_JOINER_H

#include "proc/state.h"

/* A waiter for a task's end, blocking or polled. */
struct bz_join {
    blitz_future f;            /* used if polled */
    struct bz_task *task;      /* constant */
    struct bz_request request; /* its waiter is in task->joiners; guarded by task->lock */
};

/* The public future that a join by future belongs to. */
static inline const blitz_future *bz_join_future_of(const struct bz_join *j)
{
    const void *at = (const char *)j - offsetof(blitz_join_future, inside);
    return &((const blitz_join_future *)at)->future;
}

#endif
