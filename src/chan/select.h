/*
 * select.h - the inside of a select: its cases as operations, and all its channels as one request.
 *
 *   select.c          the request, the blocking call, and the statement
 *   select_future.c   polled: with futures among the cases, or for stackless tasks
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

/* True if the case is a send or receive on a channel. A case with a NULL channel is never ready. */
static inline bool bz_case_is_chan(const blitz_select_case *x)
{
    return x->kind <= BLITZ_SELECT_RECV && x->of != NULL;
}

/* The order in which a select tries its cases: random, drawn step by step, or 0, 1, 2 ... */
struct bz_order {
    uint64_t chance; /* the unused part of the random number; 0: in the order of the cases */
    uint8_t at[BLITZ_SELECT_MAX];
};

/* Choose the i-th case to try, of `count`. Call with i = 0, 1, 2 ...; the choice stays in at[i]. */
static inline size_t bz_order_next(struct bz_order *o, size_t i, size_t count)
{
    unsigned __int128 x = (unsigned __int128)o->chance * (count - i);
    size_t k = i + (size_t)(x >> 64);
    uint8_t at = o->at[k];
    o->at[k] = o->at[i];
    o->at[i] = at;
    o->chance = (uint64_t)x;
    return at;
}

/* Initialize the op of a case, except for its waiter. */
void bz_case_op_init(blitz_select_case *x);
/* Try a send, a receive or a time by itself. Return true if it is done: x->error has its result. *now is the time, or
 * 0 before the clock was read. */
BZ_MUST_USE bool bz_case_try(blitz_select_case *x, uint64_t *now);
/* Initialize an order before its first step. With BLITZ_SELECT_BIASED it is the order of the cases. */
void bz_order_init(struct bz_order *o, const blitz_select_case *cases, size_t count, unsigned how);
/* Return a time case whose time has come, drawn evenly; if biased, the first. There must be a time case. */
int bz_select_time(const blitz_select_case *cases, size_t count, unsigned how, uint64_t now);
/* Return 1 if there are futures among the cases, 0 if not, -EINVAL if a case is bad or there are too many. */
int bz_select_look(const blitz_select_case *cases, size_t count);

void bz_chans_of(struct bz_chans *chans, blitz_select_case *cases, size_t count);

/*
 * A select over channels as a request (park/request.h). Its lock is the locks of all its channels. The caller holds a
 * reference to each channel, and has initialized the op of each case.
 */
struct bz_selection {
    struct bz_request request;
    blitz_select_case *cases;
    size_t count;
    int chosen; /* the case that was done; -1: none yet */
    blitz_waker *
        wakers; /* polled: a waker for each case; enter moves them into the ops, leave moves them back */
    struct bz_order order; /* drawn in full */
    struct bz_chans chans;
};
extern const struct bz_request_ops bz_select_request;

/* select_future.c: blitz_select_wait() with futures among the cases. Suspends. */
int bz_select_await(blitz_select_case *cases, size_t count, unsigned how, blitz_deadline until);

#endif
