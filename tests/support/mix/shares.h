/*
 * shares.h - the scene of fair selects: each of the cases that are ready gets its share.
 *
 * One party selects again and again among up to 16 cases, of which the same few are ready each time:
 * receives, sends, futures that are ready, or times that have passed. In some rounds the ready
 * cases are all of one rendezvous, and a second party is the partner. After 200 selects for each
 * ready case none of them may have fewer than 116, six standard deviations below its share.
 */
#ifndef MIX_SHARES_H
#define MIX_SHARES_H

#include "support/mix/round.h"

enum { SHARES_SELECTS, SHARES_PARTNER };
enum { SHARES_FULL, SHARES_ROOM, SHARES_FUTURE, SHARES_TIME, SHARES_RENDEZVOUS, SHARES_KINDS };
enum { SHARES_EACH = 200, SHARES_LEAST = 116 };

static struct {
    unsigned kind, count, ready;
    bool is_ready[MIX_CASES];
    unsigned chosen[MIX_CASES];
    blitz_chan *chan[MIX_CASES];
    blitz_ready_future done[MIX_CASES];
} shares;

static const char *const shares_kind_name[] = {"receives", "sends", "futures", "times",
                                               "receives from one rendezvous"};

static void shares_make(struct mix_round *r)
{
    memset(&shares, 0, sizeof shares);
    r->has_deadlines = false;
    r->cancels = 0;
    shares.kind = (unsigned)mix_die(&r->dice, SHARES_KINDS);
    shares.count = 2 + (unsigned)mix_die(&r->dice, MIX_CASES - 1);
    unsigned want = 2 + (unsigned)mix_die(&r->dice, shares.count < 4 ? shares.count - 1 : 3);
    while (shares.ready < want) {
        unsigned i = (unsigned)mix_die(&r->dice, shares.count);
        shares.ready += !shares.is_ready[i];
        shares.is_ready[i] = true;
    }
    size_t capacity = shares.kind == SHARES_RENDEZVOUS ? 0 : 1;
    for (unsigned i = 0; i < shares.count; i++) {
        uint64_t value = i;
        CHECK_EQ(blitz_chan_new(sizeof(uint64_t), capacity, NULL, &shares.chan[i]), 0);
        if (shares.kind == SHARES_FULL && shares.is_ready[i])
            CHECK_EQ(blitz_chan_try_send(shares.chan[i], &value), 0);
        if (shares.kind == SHARES_ROOM && !shares.is_ready[i])
            CHECK_EQ(blitz_chan_try_send(shares.chan[i], &value), 0);
        blitz_ready_future_init(&shares.done[i], 0);
    }
    mix_join_in(r, SHARES_SELECTS, true)->left = SHARES_EACH * shares.ready;
    if (shares.kind == SHARES_RENDEZVOUS)
        mix_join_in(r, SHARES_PARTNER, true)->left = SHARES_EACH * shares.ready;
    for (unsigned i = 0; i < r->count; i++)
        r->party[i].is_brisk = true;
    mix_say(r, " %u %s are ready of %u", shares.ready, shares_kind_name[shares.kind], shares.count);
}

static blitz_select_case shares_case(struct mix_party *p, unsigned i)
{
    bool is_ready = shares.is_ready[i];
    switch (shares.kind) {
    case SHARES_ROOM:
        return blitz_case_send(shares.chan[i], &p->op.value[i]);
    case SHARES_FUTURE:
        return blitz_case_future(is_ready ? &shares.done[i].future : blitz_pending_future());
    case SHARES_TIME:
        return blitz_case_time(is_ready ? 1 : BLITZ_FOREVER);
    case SHARES_RENDEZVOUS:
        return blitz_case_recv(is_ready ? shares.chan[0] : shares.chan[i ? i : 1], &p->op.value[i]);
    default:
        return blitz_case_recv(shares.chan[i], &p->op.value[i]);
    }
}

static bool shares_next(struct mix_party *p)
{
    if (p->left-- == 0)
        return false;
    if (p->role == SHARES_PARTNER) {
        mix_begin(p, &mix_send, shares.chan[0]);
        return true;
    }
    mix_begin(p, &mix_select, NULL);
    p->op.count = shares.count;
    p->op.is_biased = p->op.is_now = false;
    p->op.is_statement = mix_one_in(&p->dice, 2);
    for (unsigned i = 0; i < shares.count; i++)
        p->op.cases[i] = shares_case(p, i);
    return true;
}

static void shares_done(struct mix_party *p, int rc)
{
    if (p->role == SHARES_PARTNER) {
        CHECK_EQ(rc, 0);
        return;
    }
    CHECK_GE(rc, 0);
    CHECK_LT(rc, (int)shares.count);
    CHECK(shares.is_ready[rc]);
    CHECK_EQ(p->op.cases[rc].error, 0);
    shares.chosen[rc]++;
    if (shares.kind == SHARES_FULL)
        CHECK_EQ(blitz_chan_try_send(shares.chan[rc], &p->op.value[rc]), 0);
    if (shares.kind == SHARES_ROOM)
        CHECK_EQ(blitz_chan_try_recv(shares.chan[rc], &p->op.value[rc]), 0);
}

static void shares_check(struct mix_round *r)
{
    (void)r;
    for (unsigned i = 0; i < shares.count; i++) {
        blitz_chan_unref(shares.chan[i]);
        if (!shares.is_ready[i] || shares.chosen[i] >= SHARES_LEAST)
            continue;
        FAIL("case %u of %u was chosen %u times in %u selects among %u that were ready", i,
             shares.count, shares.chosen[i], SHARES_EACH * shares.ready, shares.ready);
    }
}

static const struct mix_scene mix_scene_shares = {"shares",    1,    shares_make, shares_next,
                                                  shares_done, NULL, shares_check};

#endif
