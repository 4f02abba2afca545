/*
 * closed.h - the verbs of senders that wait until no receiver is left.
 */
#ifndef MIX_CLOSED_H
#define MIX_CLOSED_H

#include "support/mix/op.h"

/* A cancel of the future may find that the wait was over: then the result is 0. */
static int mix_closed_result(struct mix_op *op, int rc)
{
    return rc == 0 || op->f.closed.result == 0 ? op->f.closed.result : rc;
}

#define MIX_CLOSED_VERB(verb_, text_, wait_, init_)                  \
    static int verb_##_call(struct mix_op *op, blitz_deadline until) \
    {                                                                \
        return wait_(op->of, until);                                 \
    }                                                                \
    static blitz_future *verb_##_future(struct mix_op *op)           \
    {                                                                \
        init_(&op->f.closed, op->of);                                \
        return &op->f.closed.future;                                 \
    }                                                                \
    static const struct mix_verb verb_ = {                           \
        text_, verb_##_call, verb_##_future, mix_closed_result, 0, 0};

MIX_CLOSED_VERB(mix_chan_closed, "wait closed", blitz_chan_wait_closed,
                blitz_chan_wait_closed_future_init)
MIX_CLOSED_VERB(mix_oneshot_closed, "wait closed", blitz_oneshot_wait_closed,
                blitz_oneshot_wait_closed_future_init)
MIX_CLOSED_VERB(mix_broadcast_closed, "wait closed", blitz_broadcast_wait_closed,
                blitz_broadcast_wait_closed_future_init)
MIX_CLOSED_VERB(mix_watch_closed, "wait closed", blitz_watch_wait_closed,
                blitz_watch_wait_closed_future_init)

#endif
