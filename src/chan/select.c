/*
 * select.c - wait for the first of several events: the request (park/request.h), and the blocking call.
 *
 * There are two phases. First the select tries each case by itself, under its channel's lock. If one can be done, it
 * is done, and the select returns. Otherwise the select is a request whose lock is the locks of *all* its channels,
 * taken in the order of their addresses:
 *
 *   enter   tries each case again. If none can be done, it puts an op of each case into its queue.
 *   leave   removes all of them.
 *
 * The blocking call and the future (select_future.c) use the same four functions. The ops of a blocking call share one
 * wait. A party that comes to one of the channels must claim the wait, by its arbiter. One claim succeeds: that case
 * is done, and all others have lost. The task removes the ops from the queues when it resumes. A party that
 * finds one of these ops before that cannot claim it, and goes on to the next waiter.
 *
 * So two selects that meet never have to claim two waits at once. One of them waits with all its ops in the queues.
 * The other one runs, holds the lock, and has no op in any queue. It claims the wait of the first, and no thread can
 * claim its own. For the same reason a select that both sends to a channel and receives from it never meets itself.
 *
 * Rejected: joining queue by queue, each under its own lock. A waker could claim the wait when half of the ops are in
 * their queues, while the hook tries the next case. Then both waits must be claimed, in the order of their addresses,
 * and the first claim undone if the second one fails. That is more steps on every path. It would avoid holding
 * several locks, but that happens only when the task is about to park anyway.
 *
 * A time case is a deadline of the wait: the earliest one. When it has passed, the select chooses one of the time
 * cases that have passed.
 *
 * The choice among several ready cases must be a fair draw. A random start and then one after the other
 * is not: of cases 0 and 1 ready among 16, case 0 would be taken 15 times of 16. So the cases are tried
 * in a random order, each of the n! orders equally likely: then each ready case is equally likely to be
 * the first ready one, whatever the others are. The order is drawn step by step (Fisher and Yates), and a
 * select that finds its first case ready draws no more than that. One 64-bit number is enough for all
 * steps: as a fraction of 2^64, times n - i, its whole part chooses the i-th case and the rest is the
 * fraction for the next step. 16! is 2^44.3, so no order is more likely than another by more than one in
 * 2^19. The ops join their queues in the same order: two cases on one channel have equal chances, too.
 *
 * The random numbers are those of the machine, so no two threads share them and a simulation repeats. A plain
 * thread has no machine and draws from the first channel of the select, whose seed is drawn when it is
 * first needed. If all threads drew from the channel, the first select on each new channel, or on
 * each new pair of them, would choose alike.
 *
 * I1  The hook's last access to the frame is before it drops the lock with the highest address, and the
 *     task takes that lock (every lock of its cases) before it leaves: so the frame is there.
 * I2  While all locks are held and no op is in a queue, no thread can claim the wait.
 */
#include <assert.h>

#include "chan/select.h"
#include "chan/short.h"
#include "wait/waker.h"

static_assert(sizeof(struct bz_chan_op) <= sizeof(((blitz_select_case *)NULL)->inside),
              "it has room");

/* ---- the cases ---- */

void bz_case_op_init(blitz_select_case *x)
{
    struct bz_chan_op *op = bz_case_op(x);
    op->c = x->of;
    op->kind = x->kind == BLITZ_SELECT_SEND ? BZ_CHAN_SEND : BZ_CHAN_RECV;
    op->is_done = false;
    op->value = x->value;
}

int bz_select_look(const blitz_select_case *cases, size_t count)
{
    int has_future = 0;
    if (count > BLITZ_SELECT_MAX || (cases == NULL && count > 0))
        return -EINVAL;
    for (size_t i = 0; i < count; i++) {
        if (BZ_LIKELY((unsigned)cases[i].kind < BLITZ_SELECT_FUTURE))
            continue;
        if (cases[i].kind != BLITZ_SELECT_FUTURE || cases[i].of == NULL)
            return -EINVAL;
        has_future = 1;
    }
    return has_future;
}

/* Try a send or a receive; the lock is held. Out of line, so that the fast path keeps its registers. */
static BZ_NOINLINE bool try_in_full(blitz_select_case *x)
{
    struct bz_chan_op op; /* a try does not read the other fields */
    op.c = x->of;
    op.kind = x->kind == BLITZ_SELECT_SEND ? BZ_CHAN_SEND : BZ_CHAN_RECV;
    op.value = x->value;
    x->error = bz_chan_once_locked(&op);
    return x->error != -EAGAIN;
}

bool bz_case_try(blitz_select_case *x, uint64_t *now)
{
    if (x->kind == BLITZ_SELECT_TIME) {
        if (*now == 0)
            *now = blitz_now();
        x->error = 0;
        return *now >= x->until;
    }
    struct blitz_chan *c = x->of;
    if (c == NULL)
        return false;
    bz_chan_lock(c);
    if (x->kind == BLITZ_SELECT_RECV ? bz_chan_take_short(c, x->value)
                                     : bz_chan_put_short(c, x->value)) {
        bz_chan_unlock(c);
        x->error = 0;
        return true;
    }
    return try_in_full(x);
}

/* ---- random order ---- */

static uint64_t entropy(const struct bz_os *os)
{
    uint64_t x = 0;
    return bz_os_entropy(os, &x, sizeof x) == 0 ? x : bz_os_now(os);
}

/* Return a random number on a plain thread. */
static BZ_NOINLINE uint64_t draw_outside(const blitz_select_case *cases, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (!bz_case_is_chan(&cases[i]))
            continue;
        struct blitz_chan *c = cases[i].of;
        struct bz_rng rng = {
            bz_load_relaxed(&c->chance)}; /* relaxed: two threads may draw the same number */
        if (rng.state == 0)
            rng.state = entropy(c->os);
        uint64_t x = bz_rng_next(&rng);
        bz_store_relaxed(&c->chance, rng.state); /* relaxed: likewise */
        return x;
    }
    return entropy(bz_os_here());
}

void bz_order_init(struct bz_order *o, const blitz_select_case *cases, size_t count, unsigned how)
{
    static const struct bz_order in_order = {
        0, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}};
    struct bz_machine *m = bz_machine_self();
    static_assert(BLITZ_SELECT_MAX == 16, "all of them");
    *o = in_order;
    if ((how & BLITZ_SELECT_BIASED) || count < 2)
        return;
    o->chance = BZ_LIKELY(m != NULL) ? bz_rng_next(&m->rng) : draw_outside(cases, count);
}

int bz_select_time(const blitz_select_case *cases, size_t count, unsigned how, uint64_t now)
{
    struct bz_order order;
    int first = -1;
    bz_order_init(&order, cases, count, how);
    for (size_t i = 0; i < count; i++) {
        int at = (int)bz_order_next(&order, i, count);
        if (cases[at].kind != BLITZ_SELECT_TIME)
            continue;
        if (cases[at].until <= now)
            return at;
        if (first < 0 || cases[at].until < cases[first].until)
            first = at; /* the clock is behind the timer */
    }
    return first;
}

/* ---- all channels at once ---- */

void bz_chans_of(struct bz_chans *chans, blitz_select_case *cases, size_t count)
{
    chans->count = 0;
    for (size_t i = 0; i < count; i++) {
        struct blitz_chan *c = cases[i].of;
        unsigned at = chans->count;
        if (!bz_case_is_chan(&cases[i]))
            continue;
        while (at > 0 && (uintptr_t)chans->c[at - 1] > (uintptr_t)c)
            at--;
        if (at > 0 && chans->c[at - 1] == c)
            continue;
        for (unsigned k = chans->count; k > at; k--)
            chans->c[k] = chans->c[k - 1];
        chans->c[at] = c;
        chans->count++;
    }
}

/* ---- the request ---- */

static struct bz_selection *selection_of(struct bz_request *r)
{
    return BZ_CONTAINER_OF(r, struct bz_selection, request);
}

static BZ_ALWAYS_INLINE void select_lock(struct bz_request *r)
{
    const struct bz_chans *chans = &selection_of(r)->chans;
    for (unsigned i = 0; i < chans->count; i++)
        bz_chan_lock(chans->c[i]);
}

/* Drop the locks of a select that has done a case or has wake-ups. */
static BZ_NOINLINE void unlock_in_full(const struct bz_selection *s, struct bz_wakelist *wakes)
{
    struct bz_block *retired[BLITZ_SELECT_MAX];
    struct bz_chans chans = s->chans; /* I1 */
    for (unsigned i = 0; i < chans.count; i++) {
        retired[i] = bz_values_retired(&chans.c[i]->values);
        bz_chan_unlock(chans.c[i]);
    }
    bool has_more = wakes->has_more;
    bz_wakelist_deliver(wakes);
    for (unsigned i = 0; i < chans.count; i++) {
        if (retired[i] != NULL)
            bz_blocks_free(&chans.c[i]->values, retired[i], &chans.c[i]->alloc);
        if (has_more)
            bz_chan_serve_all(chans.c[i]);
    }
}

/* Drop the locks, the highest address last, then deliver the wake-ups. */
static BZ_ALWAYS_INLINE void select_unlock(struct bz_request *r, struct bz_wakelist *wakes)
{
    struct bz_selection *s = selection_of(r);
    if (s->chosen >= 0 || wakes->count != 0) {
        unlock_in_full(s, wakes);
        return;
    }
    for (unsigned i = 0, count = s->chans.count; i < count; i++)
        bz_chan_unlock(s->chans.c[i]); /* I1 */
}

/* Do the first case, in the drawn order, that can be done. Return false if there is none. */
static bool try_cases(struct bz_selection *s, struct bz_wakelist *wakes)
{
    for (size_t i = 0; i < s->count; i++) {
        size_t at = s->order.at[i];
        blitz_select_case *x = &s->cases[at];
        if (!bz_case_is_chan(x))
            continue;
        int rc = bz_chan_try(bz_case_op(x), wakes);
        if (rc == -EAGAIN)
            continue;
        x->error = rc;
        s->chosen = (int)at;
        return true;
    }
    return false;
}

static BZ_ALWAYS_INLINE bool select_enter(struct bz_request *r, struct bz_wakelist *wakes)
{
    struct bz_selection *s = selection_of(r);
    if (try_cases(s, wakes))
        return true; /* I2 */
    for (size_t i = 0; i < s->count; i++) {
        size_t at = s->order.at[i];
        blitz_select_case *x = &s->cases[at];
        if (!bz_case_is_chan(x))
            continue;
        struct bz_waiter *w = &bz_case_op(x)->request.waiter;
        if (r->waiter.is_polled) {
            w->waker = s->wakers[at];
            s->wakers[at] = (blitz_waker){NULL, NULL};
        } else {
            w->wait = r->waiter.wait;
        }
        /* each join notifies at most one waiter, so there is room */
        bz_chan_join_line(bz_case_op(x), false, wakes);
    }
    return false;
}

/* Remove every op from its queue. A polled op that was notified passes the notification on, and a polled send may be
 * done: a receiver has taken its value. */
static BZ_ALWAYS_INLINE bool select_leave(struct bz_request *r, struct bz_wakelist *wakes)
{
    struct bz_selection *s = selection_of(r);
    for (size_t i = 0; i < s->count; i++) {
        blitz_select_case *x = &s->cases[i];
        if (!bz_case_is_chan(x))
            continue;
        struct bz_chan_op *op = bz_case_op(x);
        if (BZ_UNLIKELY(bz_chan_untell(op)))
            bz_chan_serve(op->c, wakes);
        bz_waiter_leave(&op->request.waiter);
        if (!r->waiter.is_polled)
            continue;
        s->wakers[i] = bz_waiter_take_waker(&op->request.waiter);
        if (op->is_done && s->chosen < 0) {
            x->error = 0;
            s->chosen = (int)i;
        }
    }
    return s->chosen < 0;
}

/* A blocking select continues: one of its ops was claimed, or the hook has done a case. */
static BZ_ALWAYS_INLINE void select_resumed(struct bz_request *r, bool is_early)
{
    struct bz_selection *s = selection_of(r);
    (void)is_early; /* it takes the locks in any case */
    if (s->chosen < 0) {
        struct bz_wakelist wakes;
        bz_wakelist_init(&wakes);
        select_lock(r); /* I1 */
        (void)!select_leave(r, &wakes);
        select_unlock(r, &wakes);
        int chosen = (int)(bz_wait_outcome(r->waiter.wait) - BZ_WAIT_WOKEN);
        s->cases[chosen].error = bz_get(&bz_case_op(&s->cases[chosen])->request.waiter.result);
        s->chosen = chosen;
    }
    r->waiter.state = BZ_WAITER_GRANTED;
}

const struct bz_request_ops bz_select_request = {
    .what = "select",
    .lock = select_lock,
    .unlock = select_unlock,
    .enter = select_enter,
    .leave = select_leave,
    .is_tried = true,
    .is_shared = true,
    .resumed = select_resumed,
};

/* ---- the blocking call ---- */

BZ_REQUEST_HOOKS(select_hooks, &bz_select_request);

/* Return the earliest time case, or -1 if there is none. */
static int first_time(const blitz_select_case *cases, size_t count)
{
    int first = -1;
    for (size_t i = 0; i < count; i++)
        if (cases[i].kind == BLITZ_SELECT_TIME &&
            (first < 0 || cases[i].until < cases[first].until))
            first = (int)i;
    return first;
}

static void prepare(struct bz_selection *s)
{
    s->request.ops = &bz_select_request;
    s->chosen = -1;
    bz_waiter_init(&s->request.waiter, NULL, BZ_WAIT_WOKEN); /* the driver sets the wait */
    bz_chans_of(&s->chans, s->cases, s->count);
    for (size_t i = 0; i < s->count; i++)
        if (bz_case_is_chan(&s->cases[i])) {
            bz_case_op_init(&s->cases[i]);
            bz_waiter_init(&bz_case_op(&s->cases[i])->request.waiter, NULL,
                           BZ_WAIT_WOKEN + (uint32_t)i);
        }
}

static int wait_for_one(struct bz_selection *s, unsigned how, blitz_deadline until)
{
    int time = first_time(s->cases, s->count);
    bool is_time =
        time >= 0 && s->cases[time].until <= until && s->cases[time].until != BLITZ_FOREVER;
    prepare(s);
    const struct bz_os *os = s->chans.count > 0 ? s->chans.c[0]->os : bz_os_here();
    int err = bz_request_wait_by(&s->request, os, is_time ? s->cases[time].until : until,
                                 select_hooks, &bz_select_request);
    if (err == -ETIMEDOUT && is_time) {
        time = bz_select_time(s->cases, s->count, how, blitz_now());
        s->cases[time].error = 0;
        return time;
    }
    return err != 0 ? err : s->chosen;
}

/* A select whose cases are valid, without futures among them. */
static BZ_ALWAYS_INLINE int select_plain(blitz_select_case *cases, size_t count, unsigned how,
                                         blitz_deadline until)
{
    uint64_t now = 0;
    struct bz_selection s;
    s.cases = cases;
    s.count = count;
    bz_order_init(&s.order, cases, count, how);
    for (size_t i = 0; i < count; i++) {
        size_t at = bz_order_next(&s.order, i, count);
        if (bz_case_try(&cases[at], &now)) {
            bz_look_up(); /* ask.h */
            return (int)at;
        }
    }
    return how & BLITZ_SELECT_NOW ? -EAGAIN : wait_for_one(&s, how, until);
}

int blitz_select_wait(blitz_select_case *cases, size_t count, unsigned how, blitz_deadline until)
{
    int has_future = bz_select_look(cases, count);
    if (BZ_UNLIKELY(has_future != 0))
        return has_future < 0 ? has_future : bz_select_await(cases, count, how, until);
    return select_plain(cases, count, how, until);
}

/* ---- the statement ---- */

void blitz_selection_full_(void)
{
    BZ_CHECK(0, "select: more than %d cases", BLITZ_SELECT_MAX);
}

/* The macros make no invalid case, except for a future that is NULL. */
int blitz_selection_wait_(blitz_selection_ *s)
{
    if (BZ_LIKELY(!s->has_future))
        return select_plain(s->cases, s->count, s->how, s->until);
    int chosen = blitz_select_wait(s->cases, s->count, s->how, s->until);
    BZ_CHECK(chosen != -EINVAL, "select: a case of no future%s", "");
    return chosen;
}
