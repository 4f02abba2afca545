/*
 * chans.h - the scene of channels and selects.
 *
 * One to three channels of random capacities. Senders send (one value, several, by permits, or
 * only if it takes no waiting) and leave after a number of steps. Receivers receive until the end.
 * A sending select has at least one send among its cases, so it can always continue; a receiving
 * select has only receives, and continues until all its channels have ended. For each channel one
 * keeper receives until the end. Some parties wait for the end alone.
 *
 * `debt` of a channel is its senders << 32, plus the values sent and not yet received. The operation
 * that brings it to 0 closes the channel, unless the round closes it earlier: when its last sender
 * leaves, or suddenly.
 */
#ifndef MIX_CHANS_H
#define MIX_CHANS_H

#include "support/mix/closed.h"
#include "support/mix/ledger.h"

enum { CHANS_SEND, CHANS_RECV, CHANS_SELECT_SEND, CHANS_SELECT_RECV, CHANS_WAIT, CHANS_END };
enum { CLOSE_DRAINED, CLOSE_EARLY, CLOSE_COUNTED, CLOSE_SUDDENLY };
enum { CHANS_CASES = 6 };

#define MIX_SENDER (INT64_C(1) << 32)

static struct {
    unsigned count;
    unsigned closing;
    bool is_shut; /* a sudden end drops what is left */
    size_t bytes; /* of a value */
    blitz_chan *chan[MIX_CHANS];
    size_t capacity[MIX_CHANS];
    struct mix_count debt[MIX_CHANS];
} chans;

/* p->scratch: the channel of a receiver or of the step; the channels that a select has not seen end;
 * and the permit's state. */
enum { CHANS_OF, CHANS_OPEN, CHANS_PERMIT };

static const size_t mix_capacities[] = {0, 1, 2, 7, 64, BLITZ_UNBOUNDED};

static void chans_drop(void *value, void *ctx)
{
    struct mix_value v = {0};
    (void)ctx;
    memcpy(&v, value, chans.bytes);
    mix_ledger_gone(&v, chans.bytes);
}

static void chans_owe(unsigned i, int64_t by)
{
    int64_t debt = mix_add(&chans.debt[i], by);
    bool is_early = chans.closing == CLOSE_EARLY && by == -MIX_SENDER && debt < MIX_SENDER / 2;
    if ((debt == 0 && chans.closing != CLOSE_COUNTED) || is_early)
        blitz_chan_close(chans.chan[i]);
}

/* ---- making ---- */

static bool chans_sends(const struct mix_party *p)
{
    return p->role == CHANS_SEND || p->role == CHANS_SELECT_SEND;
}

static void chans_make_channels(struct mix_round *r)
{
    chans.count = 1 + (unsigned)mix_die(&r->dice, 8) / 4 + mix_one_in(&r->dice, 4);
    chans.bytes = mix_one_in(&r->dice, 2) ? 8 : sizeof(struct mix_value);
    chans.closing = (unsigned)mix_die(&r->dice, 9) / 2;
    chans.closing = chans.closing > CLOSE_SUDDENLY ? CLOSE_DRAINED : chans.closing;
    chans.is_shut = mix_one_in(&r->dice, 2);
    for (unsigned i = 0; i < chans.count; i++) {
        uint64_t die = mix_die(&r->dice, 12);
        chans.capacity[i] = mix_capacities[die < 6 ? die : die < 8 ? 0 : die < 11 ? 1 : 2];
        CHECK_EQ(blitz_chan_new(chans.bytes, chans.capacity[i],
                                &(blitz_chan_opts){.drop = chans_drop}, &chans.chan[i]),
                 0);
        mix_set(&chans.debt[i], 0);
        mix_say(r, " capacity %zd", (ssize_t)chans.capacity[i]);
    }
    static const char *const closing[] = {"when drained", "early", "by counted senders",
                                          "suddenly"};
    mix_say(r, ", %zu bytes, closed %s", chans.bytes, closing[chans.closing]);
}

static void chans_make(struct mix_round *r)
{
    mix_ledger_clear();
    chans_make_channels(r);
    if (mix_one_in(&r->dice, 3)) {
        mix_join_in(r, CHANS_SELECT_RECV, true)->scratch[CHANS_OPEN] = (1u << chans.count) - 1;
    } else {
        for (unsigned i = 0; i < chans.count; i++)
            mix_join_in(r, CHANS_RECV, true)->scratch[CHANS_OF] = i;
    }
    mix_join_in(r, mix_one_in(&r->dice, 2) ? CHANS_SEND : CHANS_SELECT_SEND, false);
    for (uint64_t more = mix_die(&r->dice, mix_one_in(&r->dice, 2) ? 4 : 9); more > 0; more--) {
        struct mix_party *p = mix_join_in(r, (unsigned)mix_die(&r->dice, CHANS_END), false);
        p->scratch[CHANS_OF] = mix_die(&r->dice, chans.count);
        p->scratch[CHANS_OPEN] = 1 + mix_die(&r->dice, (1u << chans.count) - 1);
    }
    uint64_t most = mix_one_in(&r->dice, 2) ? 4 : 40;
    for (unsigned i = 0; i < r->count; i++) {
        struct mix_party *p = &r->party[i];
        p->left = 1 + (unsigned)mix_die(&r->dice, most);
        for (unsigned k = 0; k < chans.count && chans_sends(p); k++) {
            mix_add(&chans.debt[k], MIX_SENDER);
            if (chans.closing == CLOSE_COUNTED)
                CHECK_EQ(blitz_chan_sender_add(chans.chan[k]), 0);
        }
    }
    if (chans.closing == CLOSE_SUDDENLY)
        mix_join_in(r, CHANS_END, false)->left = 1 + (unsigned)mix_die(&r->dice, 4);
}

/* ---- scripts ---- */

static void chans_choose_send(struct mix_party *p)
{
    unsigned i = (unsigned)mix_die(&p->dice, chans.count);
    uint64_t way = mix_die(&p->dice, 8);
    struct mix_op *op = &p->op;
    p->scratch[CHANS_OF] = i;
    op->n = chans.bytes;
    if (way == 0 && chans.capacity[i] != 0) {
        mix_begin(p, &mix_reserve, chans.chan[i]);
        return;
    }
    if (way == 3 && chans.capacity[i] != 0) {
        size_t most = chans.capacity[i] < MIX_VALUES ? chans.capacity[i] : MIX_VALUES;
        mix_begin(p, &mix_reserve_many, chans.chan[i]);
        op->count = 1 + (unsigned)mix_die(&p->dice, most);
        return;
    }
    mix_begin(p, way == 1 ? &mix_send_many : &mix_send, chans.chan[i]);
    op->count = way == 1 ? 1 + (unsigned)mix_die(&p->dice, MIX_VALUES) : 1;
    for (unsigned k = 0; k < op->count; k++)
        mix_ledger_offer(p, &op->value[k]);
    if (way != 2)
        return;
    op->verb = NULL; /* only if it takes no waiting */
    int rc = blitz_chan_try_send(chans.chan[i], op->value);
    CHECK(rc == 0 || rc == -EAGAIN || rc == -EPIPE);
    if (rc != 0)
        return;
    mix_ledger_sent(op->value);
    chans_owe(i, 1);
}

static void chans_take(struct mix_party *p, unsigned i, const struct mix_value *v)
{
    mix_ledger_received(p, i, v, chans.bytes);
    chans_owe(i, -1);
}

static void chans_choose_recv(struct mix_party *p)
{
    unsigned i = (unsigned)p->scratch[CHANS_OF];
    uint64_t way = mix_die(&p->dice, 8);
    p->op.n = chans.bytes;
    p->op.count = 1 + (unsigned)mix_die(&p->dice, MIX_VALUES);
    p->op.value[0].id = MIX_NO_VALUE;
    if (way == 0 && blitz_chan_try_recv(chans.chan[i], p->op.value) == 0) {
        chans_take(p, i, p->op.value);
        return;
    }
    mix_begin(p, way == 1 ? &mix_recv_many : &mix_recv, chans.chan[i]);
}

/* Case k sends to channel i, or receives from it. */
static void chans_case(struct mix_party *p, unsigned k, unsigned i, bool is_send)
{
    struct mix_op *op = &p->op;
    if (is_send)
        mix_ledger_offer(p, &op->value[k]);
    else
        op->value[k].id = MIX_NO_VALUE;
    op->cases[k] = is_send ? blitz_case_send(chans.chan[i], &op->value[k])
                           : blitz_case_recv(chans.chan[i], &op->value[k]);
}

/* One more case: a time, or a future that is ready then. */
static void chans_case_of_time(struct mix_op *op, blitz_deadline when)
{
    blitz_sleep_until_future_init(&op->nap, when);
    op->cases[op->count++] = when % 2 ? blitz_case_time(when) : blitz_case_future(&op->nap.future);
}

static void chans_choose_select(struct mix_party *p, bool has_sends)
{
    struct mix_op *op = &p->op;
    unsigned sure = (unsigned)mix_die(&p->dice, 1 + mix_die(&p->dice, CHANS_CASES));
    uint64_t open = p->scratch[CHANS_OPEN];
    mix_begin(p, &mix_select, NULL);
    op->count = sure + 1 + (unsigned)mix_die(&p->dice, CHANS_CASES - sure);
    op->is_biased = mix_one_in(&p->dice, 6);
    op->is_statement = mix_one_in(&p->dice, 2);
    op->is_now = mix_one_in(&p->dice, 10);
    for (unsigned k = 0; k < op->count; k++) {
        unsigned i = (unsigned)mix_die(&p->dice, chans.count);
        bool is_send = has_sends && (k == sure || mix_one_in(&p->dice, 2));
        while (!has_sends && !(open & 1u << i))
            i = (unsigned)mix_die(&p->dice, chans.count);
        chans_case(p, k, i, is_send);
    }
    /* A receiving select must wait for all that are open, or it may wait beside a value. */
    for (unsigned i = 0; i < chans.count && !has_sends; i++)
        if (open & 1u << i) {
            unsigned k = i < op->count ? i : op->count++;
            chans_case(p, k, i, false);
        }
    if (p->round->has_deadlines && mix_one_in(&p->dice, 5))
        chans_case_of_time(op, blitz_after(mix_die(&p->dice, 60) * BLITZ_US));
}

static bool chans_end_suddenly(struct mix_party *p)
{
    p->op.n = mix_die(&p->dice, 100) * BLITZ_US;
    mix_begin(p, &mix_pause, NULL);
    return p->left-- > 0;
}

static bool chans_next(struct mix_party *p)
{
    bool is_bounded = chans_sends(p) || !p->is_keeper;
    if (p->role == CHANS_END)
        return chans_end_suddenly(p);
    if (p->role == CHANS_WAIT) {
        mix_begin(p, &mix_chan_closed, chans.chan[p->scratch[CHANS_OF]]);
        return true;
    }
    if (p->scratch[CHANS_PERMIT]) {
        mix_begin(p, &mix_pause, NULL);
        return true;
    }
    if (is_bounded && p->left-- == 0)
        return false;
    if (p->role == CHANS_SEND)
        chans_choose_send(p);
    else if (p->role == CHANS_RECV)
        chans_choose_recv(p);
    else if (p->role == CHANS_SELECT_RECV && p->scratch[CHANS_OPEN] == 0)
        return false;
    else
        chans_choose_select(p, p->role == CHANS_SELECT_SEND);
    return true;
}

/* ---- outcomes ---- */

static void chans_done_select(struct mix_party *p, int rc)
{
    struct mix_op *op = &p->op;
    for (int k = 0; k < (int)op->count; k++) /* the other cases had no effect */
        if (op->cases[k].kind == BLITZ_SELECT_RECV && (k != rc || op->cases[k].error != 0))
            CHECK_EQ(op->value[k].id, MIX_NO_VALUE);
    if (rc < 0) {
        CHECK(rc == -ETIMEDOUT || rc == -ECANCELED || (rc == -EAGAIN && op->is_now));
        return;
    }
    CHECK_LT(rc, (int)op->count);
    if (op->cases[rc].kind == BLITZ_SELECT_TIME || op->cases[rc].kind == BLITZ_SELECT_FUTURE)
        return;
    unsigned i = 0;
    while (chans.chan[i] != op->cases[rc].of)
        i++;
    if (op->cases[rc].error == -EPIPE) {
        p->scratch[CHANS_OPEN] &= ~(1ull << i);
        p->is_over |= op->cases[rc].kind == BLITZ_SELECT_SEND;
        return;
    }
    CHECK_EQ(op->cases[rc].error, 0);
    if (op->cases[rc].kind == BLITZ_SELECT_RECV) {
        chans_take(p, i, &op->value[rc]);
        return;
    }
    mix_ledger_sent(&op->value[rc]);
    chans_owe(i, 1);
}

/* All or some of several permits are used; the others are given back. */
static void chans_use_permits(struct mix_party *p)
{
    unsigned i = (unsigned)p->scratch[CHANS_OF];
    while (blitz_permits_left(&p->op.permits) > 0 && !mix_one_in(&p->dice, 6)) {
        mix_ledger_offer(p, p->op.value);
        mix_ledger_sent(p->op.value);
        blitz_permits_send(&p->op.permits, p->op.value);
        chans_owe(i, 1);
    }
    blitz_permits_drop(&p->op.permits);
}

/* The permit is used after a pause, or given back. */
static void chans_use_permit(struct mix_party *p)
{
    unsigned i = (unsigned)p->scratch[CHANS_OF];
    bool is_many = p->scratch[CHANS_PERMIT] == 2;
    p->scratch[CHANS_PERMIT] = 0;
    if (is_many) {
        chans_use_permits(p);
        return;
    }
    if (mix_one_in(&p->dice, 3)) {
        blitz_permit_drop(&p->op.permit);
        return;
    }
    mix_ledger_offer(p, p->op.value);
    mix_ledger_sent(p->op.value);
    blitz_permit_send(&p->op.permit, p->op.value);
    chans_owe(i, 1);
}

static void chans_done_reserve(struct mix_party *p, int rc)
{
    if (rc != 0) {
        CHECK(rc == -ETIMEDOUT || rc == -ECANCELED || rc == -EPIPE);
        p->is_over = rc == -EPIPE;
        return;
    }
    bool is_many = p->op.verb == &mix_reserve_many;
    CHECK(!is_many || blitz_permits_left(&p->op.permits) == p->op.count);
    p->scratch[CHANS_PERMIT] = is_many ? 2 : 1;
    if (mix_one_in(&p->dice, 2))
        chans_use_permit(p);
    else
        p->op.n = mix_die(&p->dice, 20) * BLITZ_US;
}

static void chans_done_many(struct mix_party *p, int rc)
{
    unsigned i = (unsigned)p->scratch[CHANS_OF];
    bool is_send = p->op.verb == &mix_send_many;
    CHECK(rc == 0 || !is_send ? rc != 0 || p->op.moved > 0 : p->op.moved < p->op.count);
    CHECK(rc == 0 || is_send || p->op.moved == 0);
    for (size_t k = 0; k < p->op.moved; k++) {
        if (is_send)
            mix_ledger_sent(&p->op.value[k]);
        else
            mix_ledger_received(p, i, &p->op.value[k], chans.bytes);
    }
    chans_owe(i, is_send ? (int64_t)p->op.moved : -(int64_t)p->op.moved);
}

static void chans_done(struct mix_party *p, int rc)
{
    const struct mix_verb *verb = p->op.verb;
    unsigned i = (unsigned)p->scratch[CHANS_OF];
    if (verb == &mix_select) {
        chans_done_select(p, rc);
        return;
    }
    if (verb == &mix_reserve || verb == &mix_reserve_many) {
        chans_done_reserve(p, rc);
        return;
    }
    if (verb == &mix_pause) {
        if (p->scratch[CHANS_PERMIT])
            chans_use_permit(p);
        return;
    }
    if (verb == &mix_chan_closed) {
        CHECK(rc == 0 || rc == -ETIMEDOUT || rc == -ECANCELED);
        CHECK(rc != 0 || blitz_chan_is_closed(chans.chan[i]));
        p->is_over = rc == 0;
        return;
    }
    CHECK(rc == 0 || rc == -ETIMEDOUT || rc == -ECANCELED || rc == -EPIPE);
    p->is_over |= rc == -EPIPE;
    if (verb == &mix_send_many || verb == &mix_recv_many) {
        chans_done_many(p, rc);
    } else if (verb == &mix_recv) {
        if (rc == 0)
            chans_take(p, i, p->op.value);
        else
            CHECK_EQ(p->op.value[0].id, MIX_NO_VALUE);
    } else if (rc == 0) {
        mix_ledger_sent(p->op.value);
        chans_owe(i, 1);
    }
}

static void chans_leave(struct mix_party *p)
{
    for (unsigned i = 0; i < chans.count; i++) {
        if (chans_sends(p) && chans.closing == CLOSE_COUNTED)
            blitz_chan_sender_drop(chans.chan[i]);
        else if (chans_sends(p))
            chans_owe(i, -MIX_SENDER);
        if (p->role == CHANS_END && chans.is_shut)
            (void)blitz_chan_shut(chans.chan[i]);
        else if (p->role == CHANS_END)
            blitz_chan_close(chans.chan[i]);
    }
}

static void chans_check(struct mix_round *r)
{
    for (unsigned i = 0; i < chans.count; i++) {
        CHECK(blitz_chan_is_closed(chans.chan[i]));
        blitz_chan_unref(chans.chan[i]); /* drops what is left */
    }
    mix_ledger_check(r);
}

static const struct mix_scene mix_scene_chans = {"chans",    10,          chans_make, chans_next,
                                                 chans_done, chans_leave, chans_check};

#endif
