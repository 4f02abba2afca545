/*
 * chan_mix.h - parties of every form on the same channels: fibers, stackless tasks and plain threads.
 *
 *     struct mix w = {.os = os, .seed = seed};
 *     blitz_run(mix_main, &w, &config);          // in a runtime on `os`
 *
 * The seed draws two channels of capacity 0, 1 or 2 and up to eight parties. Each party draws its form
 * and performs operations one after the other: send, receive, reserve, or a select over up to three cases.
 * A case may be any of send and receive on any of the channels, also both on the same one. Each
 * operation is a blocking call, or a future that is awaited or polled.
 *
 *   senders     wait without a deadline until a given number of values is sent
 *   receivers   receive until the channels are closed; each channel has one
 *   guests      do anything; they have deadlines, or are cancelled
 *
 * Invariants:
 *   - progress: the senders end, because there are receivers. A wake-up that is lost stops one of them.
 *   - conservation: each value that a call says it sent is received once, and no other value.
 *   - no spinning: the polls of one operation are few, because each follows a step of another party.
 *   - the invariants of the channel (bz_chan_check) after every operation, and empty lines at the end.
 *
 * None of this knows of a certain bug. The mixes are what matters: most of them have no test of their own.
 */
#ifndef T_CHAN_MIX_H
#define T_CHAN_MIX_H

#include <errno.h>
#include <string.h>

#include "base/rng.h"
#include "blitz.h"
#include "chan/chan.h"
#include "harness.h"

enum { MIX_CHANS = 2, MIX_PARTIES = 8, MIX_CASES = 3, MIX_VALUES = 1024, MIX_POLLS_MAX = 20000 };

enum mix_form { MIX_FIBER, MIX_STACKLESS, MIX_THREAD, MIX_FORMS };
enum mix_role { MIX_SENDER, MIX_RECEIVER, MIX_GUEST };

struct mix;

/* One operation: that of cases[0], or a select over all of them. */
struct mix_op {
    unsigned count;
    bool is_select, is_future, is_permit;
    bool is_send[MIX_CASES];
    unsigned chan[MIX_CASES];
    int value[MIX_CASES]; /* from or to where */
    blitz_deadline until;
};

struct mix_party {
    struct mix *w;
    enum mix_form form;
    enum mix_role role;
    unsigned home;            /* a receiver's channel */
    int left;                 /* sends, or a guest's operations, that are left */
    bool is_closing;          /* a receiver's: a channel was closed, drain your own */
    bool is_over;             /* it has nothing to do any more */
    bz_atomic(int) has_ended; /* release and acquire: its counts */
    struct bz_rng rng;
    struct mix_op op;
    blitz_task *task;
    struct bz_os_thread thread;
    blitz_frame frame;    /* a stackless one's */
    blitz_future counted; /* counts the polls of the next one */
    unsigned polls;
    blitz_future *future;
    blitz_chan_future one;
    blitz_select_future select;
    blitz_select_case cases[MIX_CASES];
    blitz_sleep_future timer;
    blitz_permit permit;
};

struct mix {
    const struct bz_os *os; /* constant, as are the next two */
    uint64_t seed;
    unsigned naps_max; /* fail after so many looks without an end; 0: look on for ever */
    blitz_chan *c[MIX_CHANS];
    unsigned count;
    struct mix_party party[MIX_PARTIES];
    bz_atomic(int) next_value;
    bz_atomic(uint8_t) sent[MIX_VALUES],
        received[MIX_VALUES]; /* relaxed: read when all have ended */
};

static inline unsigned mix_draw(struct mix_party *me, unsigned below)
{
    return bz_rng_below(&me->rng, below);
}

/* ---- drawing an operation ---- */

static inline void mix_add_case(struct mix_party *me, bool is_send, unsigned chan)
{
    struct mix_op *op = &me->op;
    unsigned i = op->count++;
    op->is_send[i] = is_send;
    op->chan[i] = chan;
    op->value[i] =
        is_send ? bz_fetch_add_relaxed(&me->w->next_value, 1) : -1; /* relaxed: a number */
}

/* Up to three cases, the first one given; the others send only if the party may. */
static inline void mix_add_others(struct mix_party *me, bool may_send)
{
    unsigned n = mix_draw(me, 3);
    me->op.is_select = n > 0 || mix_draw(me, 4) == 0;
    for (; n > 0; n--)
        mix_add_case(me, may_send && mix_draw(me, 2), mix_draw(me, MIX_CHANS));
}

/* Swap the first case with another one, so that it is not always the first. */
static inline void mix_shuffle(struct mix_party *me)
{
    struct mix_op *op = &me->op, old = *op;
    unsigned i = mix_draw(me, op->count);
    op->is_send[0] = old.is_send[i], op->chan[0] = old.chan[i], op->value[0] = old.value[i];
    op->is_send[i] = old.is_send[0], op->chan[i] = old.chan[0], op->value[i] = old.value[0];
}

static inline blitz_deadline mix_deadline(struct mix_party *me)
{
    if (me->role != MIX_GUEST || (me->form != MIX_THREAD && mix_draw(me, 3) == 0))
        return BLITZ_FOREVER; /* a guest that is a task is cancelled in the end */
    return mix_draw(me, 4) == 0 ? 0 : bz_os_now(me->w->os) + mix_draw(me, 5) * BLITZ_US;
}

/* Draw the next operation. False: the party is done. */
static inline bool mix_next(struct mix_party *me)
{
    struct mix_op *op = &me->op;
    if (me->is_over || (me->role != MIX_RECEIVER && me->left == 0))
        return false;
    *op = (struct mix_op){.is_future = me->form == MIX_STACKLESS || mix_draw(me, 2)};
    if (me->role == MIX_SENDER) {
        mix_add_case(me, true, mix_draw(me, MIX_CHANS));
        mix_add_others(me, true);
    } else if (me->role == MIX_RECEIVER) {
        mix_add_case(me, false, me->home);
        if (!me->is_closing)
            mix_add_others(me, me->left > 0);
    } else {
        mix_add_case(me, mix_draw(me, 2), mix_draw(me, MIX_CHANS));
        mix_add_others(me, true);
        me->left--;
    }
    op->is_permit = !op->is_select && op->is_send[0] && mix_draw(me, 3) == 0 &&
                    me->w->c[op->chan[0]]->capacity > 0;
    mix_shuffle(me);
    op->until = mix_deadline(me);
    return true;
}

/* ---- performing it ---- */

static inline blitz_poll mix_counted_poll(blitz_future *f, const blitz_waker *waker)
{
    struct mix_party *me = BZ_CONTAINER_OF(f, struct mix_party, counted);
    if (++me->polls > MIX_POLLS_MAX)
        FAIL("%u polls of one operation", me->polls);
    return me->future->ops->poll(me->future, waker);
}

static inline void mix_counted_cancel(blitz_future *f)
{
    struct mix_party *me = BZ_CONTAINER_OF(f, struct mix_party, counted);
    me->future->ops->cancel(me->future);
}

/* Prepare the operation as a future: me->counted, around me->future. */
static inline void mix_begin(struct mix_party *me)
{
    static const blitz_future_ops counted = {"counted", BLITZ_REVOCABLE, mix_counted_poll,
                                             mix_counted_cancel, NULL};
    struct mix_op *op = &me->op;
    blitz_chan *c = me->w->c[op->chan[0]];
    me->counted.ops = &counted;
    me->polls = 0;
    for (unsigned i = 0; i < op->count; i++) {
        blitz_chan *of = me->w->c[op->chan[i]];
        me->cases[i] = op->is_send[i] ? blitz_case_send(of, &op->value[i])
                                      : blitz_case_recv(of, &op->value[i]);
    }
    me->future = op->is_select ? &me->select.future : &me->one.future;
    if (op->is_select)
        blitz_select_wait_future_init(&me->select, me->cases, op->count, BLITZ_SELECT_FAIR);
    else if (op->is_permit)
        blitz_chan_reserve_future_init(&me->one, c, &me->permit);
    else if (op->is_send[0])
        blitz_chan_send_future_init(&me->one, c, &op->value[0]);
    else
        blitz_chan_recv_future_init(&me->one, c, &op->value[0]);
}

/* The result of the future, awaited with `rc`: the case, or an error; *error is the case's. */
static inline int mix_outcome(struct mix_party *me, int rc, int *error)
{
    int result = me->op.is_select ? me->select.result : me->one.result;
    if (result == -ECANCELED)
        return rc;
    if (me->op.is_select) {
        *error = result >= 0 ? me->cases[result].error : result;
        return result;
    }
    *error = result;
    return 0;
}

/* The operation as a blocking call. */
static inline int mix_call(struct mix_party *me, int *error)
{
    struct mix_op *op = &me->op;
    blitz_chan *c = me->w->c[op->chan[0]];
    int rc;
    if (op->is_select) {
        rc = blitz_select_wait(me->cases, op->count, BLITZ_SELECT_FAIR, op->until);
        *error = rc >= 0 ? me->cases[rc].error : rc;
        return rc;
    }
    if (op->is_permit)
        rc = blitz_chan_reserve(c, &me->permit, op->until);
    else if (op->is_send[0])
        rc = blitz_chan_send(c, &op->value[0], op->until);
    else
        rc = blitz_chan_recv(c, &op->value[0], op->until);
    *error = rc;
    return rc == -ETIMEDOUT || rc == -ECANCELED ? rc : 0;
}

/* The invariants. More may wait than are served at a time when it closes, so not then. */
static inline void mix_check(struct mix *w)
{
    for (int i = 0; i < MIX_CHANS; i++) {
        bz_chan_lock(w->c[i]);
        if (!w->c[i]->is_closed)
            bz_chan_check(w->c[i]);
        bz_chan_unlock(w->c[i]);
    }
}

/* Case `chosen` was done: count it. */
static inline void mix_count(struct mix_party *me, unsigned chosen)
{
    struct mix_op *op = &me->op;
    int value = op->value[chosen];
    CHECK(value >= 0 && value < MIX_VALUES);
    if (!op->is_send[chosen]) {
        bz_fetch_add_relaxed(&me->w->received[value], 1); /* relaxed: as above */
        return;
    }
    if (op->is_permit)
        blitz_permit_send(&me->permit, &value);
    bz_fetch_add_relaxed(&me->w->sent[value], 1); /* relaxed: as above */
    if (me->role != MIX_GUEST)
        me->left--;
}

static inline void mix_end(struct mix_party *me, int chosen, int error)
{
    if (chosen < 0) {
        CHECK(me->role == MIX_GUEST); /* only a deadline or a cancel ends a wait without success */
        CHECK(chosen == -ETIMEDOUT || chosen == -ECANCELED);
        me->is_over |= chosen == -ECANCELED;
    } else if (error == -EPIPE) {
        CHECK(me->role == MIX_RECEIVER);
        me->is_over = !me->op.is_send[chosen] && me->op.chan[chosen] == me->home;
        me->is_closing = true;
    } else {
        CHECK_EQ(error, 0);
        mix_count(me, (unsigned)chosen);
    }
    mix_check(me->w);
}

/* ---- the forms ---- */

static inline void mix_loop(struct mix_party *me)
{
    while (mix_next(me)) {
        int error = 0, chosen;
        mix_begin(me);
        if (me->op.is_future)
            chosen = mix_outcome(me, blitz_await(&me->counted, me->op.until), &error);
        else
            chosen = mix_call(me, &error);
        mix_end(me, chosen, error);
    }
    bz_store_release(&me->has_ended, 1); /* above */
}

static inline void mix_thread(void *party)
{
    mix_loop(party);
}

static inline int mix_fiber(void *party)
{
    mix_loop(party);
    return 0;
}

static inline blitz_poll mix_poll(void *state, blitz_cx *cx)
{
    struct mix_party *me = *(struct mix_party **)state;
    int rc, chosen, error = 0;
    BLITZ_BEGIN(&me->frame, cx);
    while (mix_next(me)) {
        mix_begin(me);
        if (me->op.until == BLITZ_FOREVER)
            BLITZ_AWAIT(rc, &me->counted);
        else
            BLITZ_AWAIT_UNTIL(rc, &me->counted, &me->timer, me->op.until);
        chosen = mix_outcome(me, rc, &error);
        mix_end(me, chosen, error);
    }
    bz_store_release(&me->has_ended, 1); /* above */
    BLITZ_END(0);
}

/* ---- all of them ---- */

static inline void mix_start(struct mix *w, struct bz_rng *rng, enum mix_role role, unsigned home)
{
    struct mix_party *me = &w->party[w->count++];
    me->w = w;
    me->role = role;
    me->home = home;
    me->rng = bz_rng_split(rng);
    me->form = (enum mix_form)mix_draw(me, MIX_FORMS);
    me->left = 1 + (int)mix_draw(me, 5);
    bz_atomic_init(&me->has_ended, 0);
    if (me->form == MIX_FIBER)
        CHECK_EQ(blitz_spawn(mix_fiber, me, NULL, &me->task), 0);
    else if (me->form == MIX_STACKLESS)
        CHECK_EQ(blitz_spawn_poll(mix_poll, &me, sizeof me, NULL, &me->task), 0);
    else
        CHECK_EQ(bz_os_thread_start(w->os, &me->thread, NULL, mix_thread, me), 0);
}

static inline bool mix_is_over(struct mix *w, enum mix_role role)
{
    for (unsigned i = 0; i < w->count; i++)
        if (w->party[i].role == role && !bz_load_acquire(&w->party[i].has_ended)) /* above */
            return false;
    return true;
}

/* Look until the parties of that role have ended. In virtual time a nap passes when all others wait. */
static inline void mix_await(struct mix *w, enum mix_role role)
{
    static const char *const name[] = {"sender", "receiver", "guest"};
    for (unsigned naps = 0; !mix_is_over(w, role); naps++) {
        if (w->naps_max != 0 && naps > w->naps_max)
            FAIL("a %s waits for ever: seed 0x%llx, capacities %zu and %zu", name[role],
                 (unsigned long long)w->seed, w->c[0]->capacity, w->c[1]->capacity);
        CHECK_EQ(blitz_sleep(10 * BLITZ_US), 0);
    }
}

static inline void mix_cancel_guests(struct mix *w)
{
    for (unsigned i = 0; i < w->count; i++)
        if (w->party[i].role == MIX_GUEST && w->party[i].form != MIX_THREAD)
            blitz_task_cancel(w->party[i].task);
}

static inline void mix_join(struct mix *w)
{
    for (unsigned i = 0; i < w->count; i++)
        if (w->party[i].form == MIX_THREAD)
            bz_os_thread_join(w->os, &w->party[i].thread);
        else
            CHECK_EQ(blitz_task_join(w->party[i].task, NULL, BLITZ_FOREVER), 0);
}

static inline void mix_then(struct mix *w)
{
    for (int i = 0; i < MIX_CHANS; i++) {
        blitz_chan *c = w->c[i];
        bz_chan_lock(c);
        bz_chan_check(c);
        CHECK(bz_list_is_empty(&c->receivers) && bz_list_is_empty(&c->senders));
        CHECK_EQ(c->notified_receivers + c->notified_senders + c->permits + c->values.count, 0u);
        bz_chan_unlock(c);
        blitz_chan_unref(c);
    }
    for (int i = 0; i < bz_load_relaxed(&w->next_value); i++) { /* relaxed: all have ended */
        int sent = bz_load_relaxed(&w->sent[i]);                /* relaxed: likewise */
        int received = bz_load_relaxed(&w->received[i]);        /* relaxed: likewise */
        if (sent != received || sent > 1)
            FAIL("value %d: sent %d times, received %d times: seed 0x%llx, capacities %zu and %zu",
                 i, sent, received, (unsigned long long)w->seed, w->c[0]->capacity,
                 w->c[1]->capacity);
    }
}

/* One run, as a task of a runtime on w->os. `w` is zero but for its first three fields. */
static inline int mix_main(void *mix)
{
    struct mix *w = mix;
    struct bz_rng rng;
    bz_rng_init(&rng, w->seed);
    for (int i = 0; i < MIX_CHANS; i++)
        CHECK_EQ(blitz_chan_new(sizeof(int), bz_rng_below(&rng, 3), NULL, &w->c[i]), 0);
    for (unsigned i = 0; i < MIX_CHANS; i++)
        mix_start(w, &rng, MIX_RECEIVER, i);
    for (unsigned n = 2 + bz_rng_below(&rng, MIX_PARTIES - MIX_CHANS - 1); n > 0; n--)
        mix_start(w, &rng, bz_rng_below(&rng, 2) ? MIX_SENDER : MIX_GUEST, 0);
    for (unsigned n = bz_rng_below(&rng, 4); n > 0; n--) {
        struct mix_party *victim = &w->party[bz_rng_below(&rng, w->count)];
        CHECK_EQ(blitz_sleep(bz_rng_below(&rng, 3) * BLITZ_US), 0);
        if (victim->role == MIX_GUEST && victim->form != MIX_THREAD)
            blitz_task_cancel(victim->task);
    }
    mix_await(w, MIX_SENDER);
    mix_cancel_guests(w);
    mix_await(w, MIX_GUEST);
    for (int i = 0; i < MIX_CHANS; i++)
        blitz_chan_close(w->c[i]);
    mix_await(w, MIX_RECEIVER);
    mix_join(w);
    mix_then(w);
    return 0;
}

#endif
