/*
 * select.c - wait for the first of several things, on a stack.
 *
 * Two phases. First each case is tried by itself, under its channel's lock: if one can be done, it
 * is done, and that is all. Else the task leaves its stack, and the hook takes the locks of *all* its
 * channels, in the order of their addresses; tries each case again; and if none will do, puts an op
 * of each case into its line, all of them with one and the same wait, and lets the locks go. From then
 * on whoever comes to one of the channels wins the wait or does not, by its arbiter: one case is done,
 * and with it all others have lost. The task takes them off their lines when it goes on; somebody who
 * comes across one of them before that cannot win it, and passes on.
 *
 * So two selects that meet never have to claim two waits at once: one of them stands in line, all of
 * its ops, and the other one runs, holds the lock, and has no op in any line. It wins the other's wait
 * and is itself nobody's to win. For the same reason a select that both sends to a channel and
 * receives from it never meets itself.
 *
 * Rejected: joining line by line, each under its own lock. A waker could win the wait when half of the
 * ops stand in line, while the hook tries the next case: then both waits must be claimed, in the order
 * of their addresses, and a claim undone if the second one fails. That is more steps on every path,
 * and what it saves, holding several locks, happens only when the task is about to sleep anyway.
 *
 * A time is a deadline of the wait. Which of the times it was is the earliest.
 *
 * I1  The hook's last touch of the frame is before it drops the lock with the highest address, and the
 *     task takes that lock (every lock of its cases) before it leaves: so the frame is there.
 * I2  While all locks are held and no op is in line, nobody can win the wait.
 */
#include <assert.h>

#include "chan/select.h"

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

bool bz_select_is_bad(const blitz_select_case *cases, size_t count)
{
    if (count > BLITZ_SELECT_MAX || (cases == NULL && count > 0))
        return true;
    for (size_t i = 0; i < count; i++) {
        if ((unsigned)cases[i].kind > BLITZ_SELECT_FUTURE)
            return true;
        if (cases[i].kind == BLITZ_SELECT_FUTURE && cases[i].of == NULL)
            return true;
    }
    return false;
}

/* A few bits of chance, from the first channel there is: enough that no case is favoured, and the
 * same in every run of a simulation. */
size_t bz_select_start(const blitz_select_case *cases, size_t count, unsigned how)
{
    if ((how & BLITZ_SELECT_BIASED) || count < 2)
        return 0;
    for (size_t i = 0; i < count; i++) {
        if (!bz_case_is_chan(&cases[i]))
            continue;
        struct blitz_chan *c = cases[i].of;
        uint32_t x = bz_load_relaxed(&c->turn); /* relaxed: chance, whoever else draws it too */
        x ^= x << 13;
        x ^= x >> 17;
        x ^= x << 5;
        bz_store_relaxed(&c->turn, x); /* relaxed: likewise */
        return (size_t)(((uint64_t)x * count) >> 32);
    }
    return 0;
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

void bz_chans_lock(const struct bz_chans *chans)
{
    for (unsigned i = 0; i < chans->count; i++)
        bz_chan_lock(chans->c[i]);
}

void bz_chans_done(const struct bz_chans *chans, struct bz_owed *owed)
{
    struct bz_block *retired[BLITZ_SELECT_MAX];
    for (unsigned i = 0; i < chans->count; i++) {
        retired[i] = bz_values_retired(&chans->c[i]->values);
        bz_chan_unlock(chans->c[i]);
    }
    bool has_more = owed->has_more;
    bz_owed_pay(owed);
    for (unsigned i = 0; i < chans->count; i++) {
        bz_blocks_free(&chans->c[i]->values, retired[i], &chans->c[i]->alloc);
        if (has_more)
            bz_chan_settle_all(chans->c[i]);
    }
}

int bz_cases_try(blitz_select_case *cases, size_t count, size_t start, struct bz_owed *owed)
{
    for (size_t i = 0; i < count; i++) {
        size_t at = bz_case_at(start, i, count);
        blitz_select_case *x = &cases[at];
        if (!bz_case_is_chan(x))
            continue;
        int rc = bz_chan_try(bz_case_op(x), owed);
        if (rc == -EAGAIN)
            continue;
        x->error = rc;
        return (int)at;
    }
    return -1;
}

/* ---- on a stack ---- */

struct selection {
    blitz_select_case *cases;
    size_t count, start;
    int chosen; /* by the hook; -1: none */
    struct bz_chans chans;
};

static bool select_hook(struct bz_wait *w, void *arg)
{
    struct selection *s = arg;
    struct bz_chans chans = s->chans; /* I1 */
    struct bz_owed owed;
    bz_owed_init(&owed);
    bz_chans_lock(&chans);
    s->chosen = bz_cases_try(s->cases, s->count, s->start, &owed);
    if (s->chosen >= 0) { /* I2 */
        bz_chans_done(&chans, &owed);
        return bz_wait_over(w, BZ_WAIT_WOKEN + (uint32_t)s->chosen);
    }
    for (size_t i = 0; i < s->count; i++)
        if (bz_case_is_chan(&s->cases[i])) /* one is told by each at most, so there is room */
            bz_chan_join_line(bz_case_op(&s->cases[i]), false, &owed);
    bool waits = bz_wait_publish(w);
    for (unsigned i = 0; i < chans.count; i++)
        bz_chan_unlock(chans.c[i]); /* I1 */
    bz_owed_pay(&owed);
    return waits;
}

/* Take every op off its line. */
static void leave_lines(struct selection *s)
{
    for (unsigned k = 0; k < s->chans.count; k++) {
        struct blitz_chan *c = s->chans.c[k];
        bz_chan_lock(c); /* I1 */
        for (size_t i = 0; i < s->count; i++)
            if (s->cases[i].of == c && bz_case_is_chan(&s->cases[i]))
                bz_list_remove(&bz_case_op(&s->cases[i])->waiter.in);
        bz_chan_unlock(c);
    }
}

/* The earliest of the times; -1 if there is none. */
static int first_time(const blitz_select_case *cases, size_t count)
{
    int first = -1;
    for (size_t i = 0; i < count; i++)
        if (cases[i].kind == BLITZ_SELECT_TIME &&
            (first < 0 || cases[i].until < cases[first].until))
            first = (int)i;
    return first;
}

static int wait_for_one(struct selection *s, blitz_deadline until)
{
    struct bz_wait w;
    int time = first_time(s->cases, s->count);
    bool is_time =
        time >= 0 && s->cases[time].until <= until && s->cases[time].until != BLITZ_FOREVER;
    bz_chans_of(&s->chans, s->cases, s->count);
    const struct bz_os *os = s->chans.count > 0 ? s->chans.c[0]->os : bz_os_here();
    bz_wait_begin(&w, os, "select", is_time ? s->cases[time].until : until);
    w.is_shared = true;
    for (size_t i = 0; i < s->count; i++)
        if (bz_case_is_chan(&s->cases[i])) {
            bz_case_op_init(&s->cases[i]);
            bz_waiter_init(&bz_case_op(&s->cases[i])->waiter, &w, BZ_WAIT_WOKEN + (uint32_t)i);
        }
    s->chosen = -1;
    uint32_t outcome = bz_wait_refuse(&w);
    if (outcome == BZ_WAIT_OPEN) {
        outcome = bz_wait_park(&w, s->chans.count > 0 ? select_hook : NULL, s);
        if (s->chosen < 0 && !BZ_BROKEN(95))
            leave_lines(s);
    }
    if (outcome == BZ_WAIT_TIMED_OUT && is_time) {
        s->cases[time].error = 0;
        return time;
    }
    if (outcome < BZ_WAIT_WOKEN)
        return bz_wait_error(outcome);
    int chosen = (int)(outcome - BZ_WAIT_WOKEN);
    if (s->chosen < 0)
        s->cases[chosen].error = bz_get(&bz_case_op(&s->cases[chosen])->waiter.result);
    return chosen;
}

/* The first phase, one case: 0 done or over (x->error), -EAGAIN. */
static int try_case(blitz_select_case *x, uint64_t *now)
{
    if (x->kind == BLITZ_SELECT_TIME) {
        if (*now == 0)
            *now = blitz_now();
        x->error = 0;
        return *now >= x->until ? 0 : -EAGAIN;
    }
    if (x->of == NULL)
        return -EAGAIN;
    struct bz_chan_op op = {.c = x->of,
                            .kind = x->kind == BLITZ_SELECT_SEND ? BZ_CHAN_SEND : BZ_CHAN_RECV,
                            .value = x->value};
    x->error = bz_chan_once(&op);
    return x->error == -EAGAIN ? -EAGAIN : 0;
}

static bool has_future(const blitz_select_case *cases, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (cases[i].kind == BLITZ_SELECT_FUTURE)
            return true;
    return false;
}

int blitz_select_wait(blitz_select_case *cases, size_t count, unsigned how, blitz_deadline until)
{
    uint64_t now = 0;
    if (bz_select_is_bad(cases, count))
        return -EINVAL;
    if (has_future(cases, count))
        return bz_select_await(cases, count, how, until);
    struct selection s;
    s.cases = cases;
    s.count = count;
    s.start = bz_select_start(cases, count, how);
    for (size_t i = 0; i < count; i++) {
        size_t at = bz_case_at(s.start, i, count);
        if (try_case(&cases[at], &now) == 0) {
            bz_look_up(); /* ask.h */
            return (int)at;
        }
    }
    return how & BLITZ_SELECT_NOW ? -EAGAIN : wait_for_one(&s, until);
}

/* ---- the statement ---- */

void blitz_selection_full_(void)
{
    BZ_CHECK(0, "select: more than %d cases", BLITZ_SELECT_MAX);
}

int blitz_selection_next_(blitz_selection_ *s)
{
    if (s->pass == 1) {
        s->chosen = blitz_select_wait(s->cases, s->count, s->how, s->until);
        BZ_CHECK(s->chosen != -EINVAL, "select: a case of no future%s", "");
        if (s->chosen >= 0 && s->error[s->chosen] != NULL)
            *s->error[s->chosen] = s->cases[s->chosen].error;
    }
    s->at = 0;
    return s->pass++ < 2;
}
