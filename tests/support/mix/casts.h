/*
 * casts.h - the scenes of broadcast and watch: every receiver gets every value, or the latest.
 *
 * The object is closed when the senders have left and every keeper has seen all there was. Until then
 * a receiver that was not woken waits beside a value. Some parties wait until no receiver is left.
 */
#ifndef MIX_CASTS_H
#define MIX_CASTS_H

#include "base/compiler.h"
#include "support/mix/closed.h"
#include "support/mix/round.h"

enum { CASTS_SEND, CASTS_RECV, CASTS_WAIT };

static struct {
    blitz_broadcast *broadcast;
    blitz_broadcast_rx rx[MIX_PARTIES];
    int64_t keepers;
    struct mix_count debt; /* broadcast: senders << 32, plus what each keeper has not had */
    struct mix_count sent;
    blitz_watch *watch;
    struct mix_count senders;
    uint64_t seen[MIX_PARTIES];          /* a receiver's own */
    struct mix_count shown[MIX_PARTIES]; /* the same, for all to see */
} casts;

/* p->scratch: values had and missed; did it see the end; and the last number of each sender. */
enum { CASTS_HAD, CASTS_ENDED };

static uint64_t casts_last[MIX_PARTIES][MIX_PARTIES];

static void casts_make_parties(struct mix_round *r)
{
    memset(&casts, 0, sizeof casts);
    memset(casts_last, 0, sizeof casts_last);
    mix_join_in(r, CASTS_RECV, true);
    mix_join_in(r, CASTS_SEND, false);
    for (uint64_t n = mix_die(&r->dice, 10); n > 0; n--)
        mix_join_in(r, (unsigned)mix_die(&r->dice, 3) != 0, mix_one_in(&r->dice, 2));
    for (uint64_t n = mix_die(&r->dice, 3); n > 0; n--)
        mix_join_in(r, CASTS_WAIT, false);
    for (unsigned i = 0; i < r->count; i++) {
        struct mix_party *p = &r->party[i];
        p->left = 1 + (unsigned)mix_die(&r->dice, 12);
        casts.keepers += p->role == CASTS_RECV && p->is_keeper;
        if (p->role == CASTS_SEND)
            mix_add(&casts.senders, 1);
    }
}

/* Values of one sender come in order. */
static void casts_received(struct mix_party *p)
{
    const struct mix_value *v = p->op.value;
    CHECK_EQ(v->twin, ~v->id);
    if (v->id == 0)
        return; /* the first value of a watch */
    CHECK_LT(v->id >> 32, MIX_PARTIES);
    CHECK_GT(v->id & 0xffffffff, casts_last[p->index][v->id >> 32]);
    casts_last[p->index][v->id >> 32] = v->id & 0xffffffff;
}

static struct mix_value casts_value(struct mix_party *p)
{
    uint64_t id = (uint64_t)p->index << 32 | ++casts_last[p->index][p->index];
    return (struct mix_value){id, ~id, id};
}

static void casts_pause(struct mix_party *p)
{
    p->op.n = mix_die(&p->dice, 3) * mix_die(&p->dice, 15) * BLITZ_US;
    mix_begin(p, &mix_pause, NULL);
}

/* The wait of a sender has ended. It was true that no receiver is left, or that the object is closed; both last. */
static void casts_waited(struct mix_party *p, int rc, bool is_closed)
{
    CHECK(rc == 0 || rc == -ETIMEDOUT || rc == -ECANCELED);
    CHECK(rc != 0 || is_closed);
    p->is_over = rc == 0;
}

/* ---- broadcast ---- */

static void broadcast_make(struct mix_round *r)
{
    static const size_t capacities[] = {1, 2, 7, 64};
    size_t capacity = capacities[mix_die(&r->dice, 4)];
    casts_make_parties(r);
    CHECK_EQ(blitz_broadcast_new(sizeof(struct mix_value), capacity, &casts.broadcast), 0);
    mix_set(&casts.debt, mix_get(&casts.senders) << 32);
    for (unsigned i = 0; i < r->count; i++)
        if (r->party[i].role == CASTS_RECV)
            blitz_broadcast_subscribe(casts.broadcast, &casts.rx[i]);
    mix_say(r, " capacity %zu", capacity);
}

static bool broadcast_next(struct mix_party *p)
{
    bool is_unbounded = p->role == CASTS_WAIT || (p->role == CASTS_RECV && p->is_keeper);
    if (!is_unbounded && p->left-- == 0)
        return false;
    if (p->role == CASTS_SEND)
        casts_pause(p);
    else if (p->role == CASTS_WAIT)
        mix_begin(p, &mix_broadcast_closed, casts.broadcast);
    else
        mix_begin(p, &mix_broadcast, &casts.rx[p->index]);
    return true;
}

static void broadcast_owe(int64_t by)
{
    if (mix_add(&casts.debt, by) == 0)
        blitz_broadcast_close(casts.broadcast);
}

static void broadcast_done(struct mix_party *p, int rc)
{
    if (p->role == CASTS_WAIT) {
        casts_waited(p, rc,
                     mix_get(&casts.debt) == 0 || blitz_broadcast_receivers(casts.broadcast) == 0);
        return;
    }
    if (p->role == CASTS_SEND) {
        struct mix_value v = casts_value(p);
        mix_add(&casts.debt, casts.keepers);
        mix_add(&casts.sent, 1);
        CHECK_EQ(blitz_broadcast_send(casts.broadcast, &v), 0);
        return;
    }
    CHECK(rc == 0 || rc == -EPIPE || rc == -ETIMEDOUT || rc == -ECANCELED);
    p->is_over = rc == -EPIPE;
    p->scratch[CASTS_ENDED] = rc == -EPIPE;
    if (rc != 0)
        return;
    casts_received(p);
    p->scratch[CASTS_HAD] += 1 + p->op.n;
    if (p->is_keeper)
        broadcast_owe(-(int64_t)(1 + p->op.n));
}

static void broadcast_leave(struct mix_party *p)
{
    if (p->role == CASTS_SEND)
        broadcast_owe(-(INT64_C(1) << 32));
    else if (p->role == CASTS_RECV)
        blitz_broadcast_unsubscribe(&casts.rx[p->index]);
}

static void broadcast_check(struct mix_round *r)
{
    for (unsigned i = 0; i < r->count; i++) {
        struct mix_party *p = &r->party[i];
        if (p->role == CASTS_RECV && p->scratch[CASTS_ENDED])
            CHECK_EQ(p->scratch[CASTS_HAD], mix_get(&casts.sent));
        CHECK(p->role != CASTS_RECV || !p->is_keeper || p->scratch[CASTS_ENDED]);
    }
    blitz_broadcast_unref(casts.broadcast);
}

static const struct mix_scene mix_scene_broadcast = {
    "broadcast",    2, broadcast_make, broadcast_next, broadcast_done, broadcast_leave,
    broadcast_check};

/* ---- watch ---- */

/* A keeper wants every value, because it must see the last one; the others want every second one. */
static bool casts_is_wanted(const void *value, void *arg)
{
    const struct mix_party *p = arg;
    return p->is_keeper || ((const struct mix_value *)value)->id % 2 == 0;
}

static int mix_wait_for_call(struct mix_op *op, blitz_deadline until)
{
    struct mix_party *p = BZ_CONTAINER_OF(op, struct mix_party, op);
    return blitz_watch_wait_for(op->of, casts_is_wanted, p, op->value, op->with, until);
}
static blitz_future *mix_wait_for_future(struct mix_op *op)
{
    struct mix_party *p = BZ_CONTAINER_OF(op, struct mix_party, op);
    blitz_watch_wait_for_future_init(&op->f.wait_for, op->of, casts_is_wanted, p, op->value,
                                     op->with);
    return &op->f.wait_for.future;
}
static int mix_wait_for_result(struct mix_op *op, int rc)
{
    return rc == 0 ? op->f.wait_for.result : rc;
}
static const struct mix_verb mix_wait_for = {
    "wait for", mix_wait_for_call, mix_wait_for_future, mix_wait_for_result, 0, 0};

static void watch_make(struct mix_round *r)
{
    struct mix_value first = {0, ~UINT64_C(0), 0};
    casts_make_parties(r);
    CHECK_EQ(blitz_watch_new(sizeof first, &first, &casts.watch), 0);
    for (unsigned i = 0; i < r->count; i++)
        if (r->party[i].role == CASTS_RECV)
            blitz_watch_receiver_add(casts.watch);
}

static bool watch_next(struct mix_party *p)
{
    bool is_unbounded = p->role == CASTS_WAIT || (p->role == CASTS_RECV && p->is_keeper);
    if (!is_unbounded && p->left-- == 0)
        return false;
    if (p->role == CASTS_SEND) {
        casts_pause(p);
        return true;
    }
    if (p->role == CASTS_WAIT) {
        mix_begin(p, &mix_watch_closed, casts.watch);
        return true;
    }
    p->op.with = &casts.seen[p->index];
    mix_begin(p, mix_one_in(&p->dice, 3) ? &mix_wait_for : &mix_watch, casts.watch);
    return true;
}

/* Close it if the senders have left and every keeper has seen the last version. */
static void watch_maybe_close(struct mix_round *r)
{
    struct mix_value v;
    if (mix_get(&casts.senders) != 0)
        return;
    uint64_t last = blitz_watch_get(casts.watch, &v);
    for (unsigned i = 0; i < r->count; i++)
        if (r->party[i].role == CASTS_RECV && r->party[i].is_keeper &&
            (uint64_t)mix_get(&casts.shown[i]) != last)
            return;
    blitz_watch_close(casts.watch);
}

static void watch_send(struct mix_party *p, const struct mix_value *v)
{
    struct mix_value old;
    int rc;
    switch (mix_die(&p->dice, 3)) {
    case 0:
        CHECK_EQ(blitz_watch_send(casts.watch, v), 0);
        break;
    case 1:
        CHECK_EQ(blitz_watch_send_if_changed(casts.watch, v), 0);
        break;
    default:
        do {
            rc = blitz_watch_send_if_version(casts.watch, v, blitz_watch_get(casts.watch, &old));
            CHECK(rc == 0 || rc == -EAGAIN);
        } while (rc != 0);
    }
}

static void watch_done(struct mix_party *p, int rc)
{
    if (p->role == CASTS_WAIT) {
        casts_waited(p, rc,
                     mix_get(&casts.senders) == 0 || blitz_watch_receivers(casts.watch) == 0);
        return;
    }
    if (p->role == CASTS_SEND) {
        struct mix_value v = casts_value(p);
        mix_add(&casts.sent, 1);
        watch_send(p, &v);
        return;
    }
    CHECK(rc == 0 || rc == -EPIPE || rc == -ETIMEDOUT || rc == -ECANCELED);
    p->is_over = rc == -EPIPE;
    if (rc != 0)
        return;
    casts_received(p);
    CHECK_GT(casts.seen[p->index], (uint64_t)mix_get(&casts.shown[p->index]));
    mix_set(&casts.shown[p->index], (int64_t)casts.seen[p->index]);
    watch_maybe_close(p->round);
}

static void watch_leave(struct mix_party *p)
{
    if (p->role == CASTS_RECV)
        blitz_watch_receiver_drop(casts.watch);
    if (p->role != CASTS_SEND)
        return;
    mix_add(&casts.senders, -1);
    watch_maybe_close(p->round);
}

static void watch_check(struct mix_round *r)
{
    struct mix_value v;
    (void)r;
    CHECK_EQ(blitz_watch_get(casts.watch, &v), (uint64_t)mix_get(&casts.sent) + 1);
    blitz_watch_unref(casts.watch);
}

static const struct mix_scene mix_scene_watch = {"watch",    2,           watch_make, watch_next,
                                                 watch_done, watch_leave, watch_check};

#endif
