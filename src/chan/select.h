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

/* The order in which the cases of a select are asked: a random one, drawn step by step, or 0, 1, 2 ... */
struct bz_order {
    uint64_t chance; /* what is left of the random number; 0: in the order of the cases */
    uint8_t at[BLITZ_SELECT_MAX];
};

/* Choose the i-th case to ask, of `count`. Ask for i = 0, 1, 2 ...; what was chosen stays in at[i]. */
static inline size_t bz_order_next(struct bz_order *o, size_t i, size_t count)
{
    unsigned __int128 x = (unsigned __int128)o->chance * (count - i);
    size_t k = i + (BZ_BROKEN(201) && i > 0 ? 0 : (size_t)(x >> 64));
    uint8_t at = o->at[k];
    o->at[k] = o->at[i];
    o->at[i] = at;
    o->chance = (uint64_t)x;
    return at;
}

/* What the op is to do; its waiter is to be initialized besides. */
void bz_case_op_init(blitz_select_case *x);
/* An order that has not been asked yet; BLITZ_SELECT_BIASED: that of the cases. */
void bz_order_init(struct bz_order *o, const blitz_select_case *cases, size_t count, unsigned how);
/* A time whose moment has come, drawn evenly; biased: the first. There is one. */
int bz_select_time(const blitz_select_case *cases, size_t count, unsigned how, uint64_t now);
/* 1: there are futures among the cases; 0: none; -EINVAL: a case is bad, or there are too many. */
int bz_select_look(const blitz_select_case *cases, size_t count);

void bz_chans_of(struct bz_chans *chans, blitz_select_case *cases, size_t count);
void bz_chans_lock(const struct bz_chans *chans);
/* Drop the locks, the last address last, then pay. All channels are held by the caller. */
void bz_chans_done(const struct bz_chans *chans, struct bz_wakelist *wakes);

/* Under all locks: do the first case, in a drawn order, that can be done. Its number, or -1. */
int bz_cases_try(blitz_select_case *cases, size_t count, const struct bz_order *order,
                 struct bz_wakelist *wakes);

/* select_future.c: blitz_select_wait() with futures among the cases. Suspends. */
int bz_select_await(blitz_select_case *cases, size_t count, unsigned how, blitz_deadline until);

#endif
