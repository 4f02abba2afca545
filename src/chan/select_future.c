/*
 * select_future.c - a select that is polled: for stackless tasks, and with futures among the cases.
 *
 * A poll tries each case in turn, as if it were alone: a channel by a step under its lock, a future by its poll. If
 * none is ready, the poll locks all channels at once (select.h) and tries again. Then it puts an op of each case into
 * its queue with a clone of the waker. These ops are notified, not granted anything. So whatever else becomes
 * ready, they lose nothing when they leave their queues; an op that had been notified passes the notification on.
 *
 * The exception is a send to a rendezvous, which a receiver may take at any time while it is in the queue
 * (core.c). So a poll first removes these sends. If one of them is done, it is the chosen case. If not, none is
 * in any queue while other cases are tried, and nothing else can happen meanwhile. This implements the rule "losers
 * are revoked before the winner commits". Several sends may be in the queues of several
 * channels at once: the receivers agree on one by the select's claim (core.c, I4).
 *
 * Futures that have lost are cancelled. A pinned one must be polled until it is ready. The select is
 * ready when all pinned ones are, and still reports the case that was chosen.
 *
 * I1  `polled` are the futures that were polled and were not ready; `pinned` those that were asked
 *     to stop and are not ready yet.
 * I2  chosen is -EINPROGRESS until a case was done or the select was cancelled.
 */
#include <assert.h>

#include "blitz/futures.h"
#include "chan/select.h"

struct inner {
    blitz_sleep_future alarm;  /* for the earliest time; first: it needs all but the last words */
    uint32_t polled, pinned;   /* I1; one bit a case */
    int time;                  /* the case the alarm is for; -1: none */
    bool has_alarm;            /* it was polled and not ready */
    bool is_in_line;           /* the ops have joined their queues, and were not revoked since */
    bz_atomic(uint32_t) claim; /* 1: a receiver has taken a send of this select (core.c, I4) */
};

static_assert(sizeof(struct inner) <= sizeof(((blitz_select_future *)NULL)->inside), "it has room");

static struct inner *inner_of(blitz_select_future *f)
{
    return (struct inner *)f->inside;
}

static blitz_select_future *select_of(blitz_future *future)
{
    return BZ_CONTAINER_OF(future, blitz_select_future, future);
}

/* ---- one case ---- */

/* Remove an op from its queue, and pass its notification on to another waiter. Return true if a receiver had taken
 * its value. */
static bool revoke(blitz_select_case *x)
{
    struct bz_chan_op *op = bz_case_op(x);
    struct blitz_chan *c = op->c;
    struct bz_wakelist wakes;
    bz_wakelist_init(&wakes);
    bz_chan_lock(c);
    if (bz_chan_untell(op))
        bz_chan_settle(c, &wakes);
    bz_waiter_leave(&op->request.waiter);
    blitz_waker waker = bz_waiter_take_waker(&op->request.waiter);
    bool is_done = op->is_done;
    bz_chan_done(c, &wakes);
    blitz_waker_drop(&waker);
    if (is_done)
        x->error = 0;
    return is_done;
}

/* Try a case. Return true if it is ready and so chosen. */
static bool ask(blitz_select_future *f, size_t at, const blitz_waker *waker)
{
    blitz_select_case *x = &f->cases[at];
    struct inner *in = inner_of(f);
    if (x->kind == BLITZ_SELECT_TIME) {
        x->error = 0;
        bool is_first = (int)at == in->time;
        if ((!is_first || in->has_alarm) && x->until <= blitz_now())
            return true; /* before its alarm, which is late, or without an alarm */
        if (!is_first)
            return false;
        in->has_alarm = in->alarm.future.ops->poll(&in->alarm.future, waker) == BLITZ_PENDING;
        return !in->has_alarm;
    }
    if (x->kind == BLITZ_SELECT_FUTURE) {
        blitz_future *future = x->of;
        if (future->ops->poll(future, waker) == BLITZ_PENDING) {
            in->polled |= 1u << at;
            return false;
        }
        in->polled &= ~(1u << at);
        x->error = future->ops->output != NULL ? future->ops->output(future) : 0;
        return true;
    }
    if (x->of == NULL)
        return false;
    x->error = bz_chan_once(bz_case_op(x)); /* not in a queue: the caller has revoked it */
    return x->error != -EAGAIN;
}

/* ---- the end ---- */

/* Record the chosen case, and cancel the futures of all others. */
static void settle_on(blitz_select_future *f, int chosen)
{
    struct inner *in = inner_of(f);
    f->result = chosen; /* I2 */
    for (size_t i = 0; i < f->count; i++) {
        blitz_future *future = f->cases[i].of;
        if (!(in->polled & 1u << i))
            continue;
        future->ops->cancel(future);
        if (future->ops->kind == BLITZ_PINNED)
            in->pinned |= 1u << i;
    }
    in->polled = 0;
    if (in->has_alarm)
        in->alarm.future.ops->cancel(&in->alarm.future);
    in->has_alarm = false;
}

/* Poll the pinned futures that were asked to stop. Return BLITZ_READY when all have completed. */
static blitz_poll poll_pinned(blitz_select_future *f, const blitz_waker *waker)
{
    struct inner *in = inner_of(f);
    for (size_t i = 0; i < f->count; i++) {
        blitz_future *future = f->cases[i].of;
        if ((in->pinned & 1u << i) && future->ops->poll(future, waker) == BLITZ_READY)
            in->pinned &= ~(1u << i);
    }
    return in->pinned == 0 ? BLITZ_READY : BLITZ_PENDING;
}

/* Remove every op from its queue. Return a send that was done meanwhile, or -1. */
static int revoke_all(blitz_select_future *f)
{
    int done = -1;
    if (!inner_of(f)->is_in_line)
        return -1;
    inner_of(f)->is_in_line = false;
    for (size_t i = 0; i < f->count; i++)
        if (bz_case_is_chan(&f->cases[i]) && revoke(&f->cases[i]) && done < 0)
            done = (int)i;
    return done;
}

/* ---- polling ---- */

/* Take all locks and try all cases once more. Return the case that was done, or -1 if all ops have joined their
 * queues. */
static int join_lines(blitz_select_future *f, const struct bz_order *order,
                      const blitz_waker *waker)
{
    blitz_waker mine[BLITZ_SELECT_MAX];
    struct bz_chans chans;
    struct bz_wakelist wakes;
    bz_chans_of(&chans, f->cases, f->count);
    if (chans.count == 0)
        return -1;
    for (size_t i = 0; i < f->count; i++)
        mine[i] =
            bz_case_is_chan(&f->cases[i]) ? blitz_waker_clone(waker) : (blitz_waker){NULL, NULL};
    bz_wakelist_init(&wakes);
    bz_chans_lock(&chans);
    int chosen = bz_cases_try(f->cases, f->count, order, &wakes);
    for (size_t i = 0; i < f->count && chosen < 0; i++) {
        size_t at = order->at[i];
        if (!bz_case_is_chan(&f->cases[at]))
            continue;
        bz_case_op(&f->cases[at])->request.waiter.waker = mine[at];
        mine[at] = (blitz_waker){NULL, NULL};
        bz_chan_join_line(bz_case_op(&f->cases[at]), false, &wakes);
    }
    inner_of(f)->is_in_line = chosen < 0;
    bz_chans_done(&chans, &wakes);
    for (size_t i = 0; i < f->count; i++)
        blitz_waker_drop(&mine[i]);
    return chosen;
}

/* Run one round. Return the number of the case that was done, or -1 if none was. */
static int round_of(blitz_select_future *f, const blitz_waker *waker)
{
    int chosen = revoke_all(f);
    struct bz_order order;
    bz_order_init(&order, f->cases, f->count, f->how);
    for (size_t i = 0; i < f->count && chosen < 0; i++) {
        size_t at = bz_order_next(&order, i, f->count);
        if (ask(f, at, waker))
            chosen = (int)at;
    }
    if (chosen < 0 && !(f->how & BLITZ_SELECT_NOW))
        chosen = join_lines(f, &order, waker);
    return chosen;
}

static blitz_poll select_poll(blitz_future *future, const blitz_waker *waker)
{
    blitz_select_future *f = select_of(future);
    if (f->result == -EINPROGRESS) {
        int chosen = round_of(f, waker);
        if (chosen < 0 && (f->how & BLITZ_SELECT_NOW))
            chosen = -EAGAIN;
        else if (chosen < 0)
            return BLITZ_PENDING;
        settle_on(f, chosen);
    }
    return poll_pinned(f, waker);
}

static void select_cancel(blitz_future *future)
{
    blitz_select_future *f = select_of(future);
    if (f->result != -EINPROGRESS)
        return;
    int done = revoke_all(f);
    settle_on(f, done >= 0 ? done : -ECANCELED);
}

static int select_output(blitz_future *future)
{
    return select_of(future)->result;
}

/* ---- making ---- */

static void prepare(blitz_select_future *f)
{
    struct inner *in = inner_of(f);
    for (size_t i = 0; i < f->count; i++) {
        blitz_select_case *x = &f->cases[i];
        if (bz_case_is_chan(x)) {
            bz_case_op_init(x);
            bz_case_op(x)->claim = &in->claim;
            bz_waiter_init_polled(&bz_case_op(x)->request.waiter);
        } else if (x->kind == BLITZ_SELECT_TIME &&
                   (in->time < 0 || x->until < f->cases[in->time].until)) {
            in->time = (int)i;
        }
    }
    if (in->time >= 0)
        blitz_sleep_until_future_init(&in->alarm, f->cases[in->time].until);
}

static bool has_pinned(const blitz_select_case *cases, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (cases[i].kind == BLITZ_SELECT_FUTURE &&
            ((blitz_future *)cases[i].of)->ops->kind == BLITZ_PINNED)
            return true;
    return false;
}

void blitz_select_wait_future_init(blitz_select_future *f, blitz_select_case *cases, size_t count,
                                   unsigned how)
{
    static const blitz_future_ops revocable = {"select", BLITZ_REVOCABLE, select_poll,
                                               select_cancel, select_output};
    static const blitz_future_ops pinned = {"select", BLITZ_PINNED, select_poll, select_cancel,
                                            select_output};
    bool is_bad = bz_select_look(cases, count) < 0;
    *f = (blitz_select_future){.future = {&revocable}, .how = how, .cases = cases};
    f->result = is_bad ? -EINVAL : -EINPROGRESS;
    f->count = is_bad ? 0 : count;
    inner_of(f)->time = -1;
    bz_atomic_init(&inner_of(f)->claim, 0);
    if (has_pinned(f->cases, f->count))
        f->future.ops = &pinned;
    prepare(f);
}

int bz_select_await(blitz_select_case *cases, size_t count, unsigned how, blitz_deadline until)
{
    blitz_select_future f;
    blitz_select_wait_future_init(&f, cases, count, how);
    int rc = blitz_await(&f.future, until);
    return f.result == -ECANCELED ? rc : f.result;
}
