/*
 * join.h - a join as a future: struct bz_join (life/joiner.h) polled and cancelled. join.c has the rules.
 */
#ifndef BZ_PARK_JOIN_H
#define BZ_PARK_JOIN_H

#include "life/joiner.h"
#include "proc/state.h"

void bz_join_init(struct bz_join *j, const blitz_future_ops *ops, struct bz_task *t);
blitz_poll bz_join_poll(blitz_future *future, const blitz_waker *waker);
void bz_join_cancel(blitz_future *future);

#endif
