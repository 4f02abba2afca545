/*
 * select_future.c - a select that is polled: for stackless tasks, and with futures among the cases.
 *
 * A poll tries each case in turn, as if it were alone: a channel by a step under its lock, a future by its poll. If
 * none is ready, the poll enters the request of select.c, and each op has a clone of the waker. These ops are
 * notified, not granted anything. So whatever else becomes ready, they lose nothing when they leave their
 * queues; an op that had been notified passes the notification on. The request lives only in the frame of a poll:
 * between two polls, is_in_line is all there is to know. bz_request_poll is not used, because it has one waker.
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

/* Poll the future of a case. Return true if it is ready. */
static bool ask_future(blitz_select_future *f, size_t at, const blitz_waker *waker)
{
    struct inner *in = inner_of(f);
    blitz_future *future = f->cases[at].of;
    if (future->ops->poll(future, waker) == BLITZ_PENDING) {
        in->polled |= 1u << at;
        return false;
    }
    in->polled &= ~(1u << at);
    f->cases[at].error = future->ops->output != NULL ? future->ops->output(future) : 0;
    return true;
}

/* Try a case, whose op is in no queue. Return true if it is ready and so chosen. */
static bool ask(blitz_select_future *f, size_t at, const blitz_waker *waker, uint64_t *now)
{
    struct inner *in = inner_of(f);
    if (f->cases[at].kind == BLITZ_SELECT_FUTURE)
        return ask_future(f, at, waker);
    if (bz_case_try(&f->cases[at], now))
        return true; /* a time before its alarm, which is late, or without an alarm */
    if ((int)at != in->time)
        return false;
    in->has_alarm = in->alarm.future.ops->poll(&in->alarm.future, waker) == BLITZ_PENDING;
    return !in->has_alarm;
}

/* ---- the end ---- */

/* Record the chosen case, and cancel the futures of all others. */
static void decide(blitz_select_future *f, int chosen)
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

/* ---- the channels ---- */

/* The request of this poll, or of a cancel. */
static void selection_of(blitz_select_future *f, struct bz_selection *s, blitz_waker *wakers)
{
    s->request.ops = &bz_select_request;
    bz_waiter_init_polled(&s->request.waiter);
    s->cases = f->cases;
    s->count = f->count;
    s->chosen = -1;
    s->wakers = wakers;
}

static void drop_wakers(struct bz_selection *s)
{
    for (size_t i = 0; i < s->count; i++)
        if (s->wakers[i].ops != NULL)
            blitz_waker_drop(&s->wakers[i]);
}

/* Remove every op from its queue. If a send was done meanwhile, s->chosen is its case. */
static void leave_lines(blitz_select_future *f, struct bz_selection *s)
{
    if (!inner_of(f)->is_in_line)
        return;
    inner_of(f)->is_in_line = false;
    bz_chans_of(&s->chans, s->cases, s->count);
    for (size_t i = 0; i < s->count; i++)
        s->wakers[i] = (blitz_waker){NULL, NULL};
    (void)!bz_request_leave_now(&s->request); /* s->chosen tells */
    drop_wakers(s);
}

/* Try all cases once more, under all locks. If none can be done, all ops join their queues. */
static void join_lines(blitz_select_future *f, struct bz_selection *s, const blitz_waker *waker)
{
    bz_chans_of(&s->chans, s->cases, s->count);
    if (s->chans.count == 0)
        return;
    for (size_t i = 0; i < s->count; i++)
        s->wakers[i] =
            bz_case_is_chan(&s->cases[i]) ? blitz_waker_clone(waker) : (blitz_waker){NULL, NULL};
    inner_of(f)->is_in_line = !bz_request_enter_by(&s->request, &bz_select_request);
    drop_wakers(s);
}

/* ---- polling ---- */

/* Run one round. Return the number of the case that was done, or -1 if none was. */
static int round_of(blitz_select_future *f, const blitz_waker *waker)
{
    struct bz_selection s;
    blitz_waker wakers[BLITZ_SELECT_MAX];
    uint64_t now = 0;
    selection_of(f, &s, wakers);
    leave_lines(f, &s);
    bz_order_init(&s.order, f->cases, f->count, f->how);
    for (size_t i = 0; i < f->count && s.chosen < 0; i++) {
        size_t at = bz_order_next(&s.order, i, f->count);
        if (ask(f, at, waker, &now))
            s.chosen = (int)at;
    }
    if (s.chosen < 0 && !(f->how & BLITZ_SELECT_NOW))
        join_lines(f, &s, waker);
    return s.chosen;
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
        decide(f, chosen);
    }
    return poll_pinned(f, waker);
}

static void select_cancel(blitz_future *future)
{
    blitz_select_future *f = select_of(future);
    if (f->result != -EINPROGRESS)
        return;
    struct bz_selection s;
    blitz_waker wakers[BLITZ_SELECT_MAX];
    selection_of(f, &s, wakers);
    leave_lines(f, &s);
    decide(f, s.chosen >= 0 ? s.chosen : -ECANCELED);
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
