/*
 * select.h - the inside of a select: its cases as operations, and all their channels locked at once.
 *
 *   select.c          on a stack: one shared wait; and the statement
 *   select_future.c   polled: with futures among the cases, or without a stack
 */
#ifndef BZ_CHAN_SELECT_H
#define BZ_CHAN_SELECT_H

#include "blitz/select.h"
#include "chan/chan.h"

/* The channels of a select's cases, each once, in the order of their addresses. */
struct bz_chans {
    unsigned count;
    struct blitz_chan *c[BLITZ_SELECT_MAX];
};

static inline struct bz_chan_op *bz_case_op(blitz_select_case *x)
{
    return (struct bz_chan_op *)x->inside;
}

/* A case of a channel; those of no channel are never ready. */
static inline bool bz_case_is_chan(const blitz_select_case *x)
{
    return x->kind <= BLITZ_SELECT_RECV && x->of != NULL;
}

/* The i-th case to ask, of `count`, beginning with `start`. */
static inline size_t bz_case_at(size_t start, size_t i, size_t count)
{
    return start + i < count ? start + i : start + i - count;
}

/* What the op is to do; its waiter is to be initialized besides. */
void bz_case_op_init(blitz_select_case *x);
/* Where to begin: 0 if they are asked in order. */
size_t bz_select_start(const blitz_select_case *cases, size_t count, unsigned how);
bool bz_select_is_bad(const blitz_select_case *cases, size_t count);

void bz_chans_of(struct bz_chans *chans, blitz_select_case *cases, size_t count);
void bz_chans_lock(const struct bz_chans *chans);
/* Drop the locks, the last address last, then pay. All channels are held by the caller. */
void bz_chans_done(const struct bz_chans *chans, struct bz_owed *owed);

/* Under all locks: do the first case that can be done. Its number, or -1. */
int bz_cases_try(blitz_select_case *cases, size_t count, size_t start, struct bz_owed *owed);

/* select_future.c: blitz_select_wait() with futures among the cases. Suspends. */
int bz_select_await(blitz_select_case *cases, size_t count, unsigned how, blitz_deadline until);

#endif
