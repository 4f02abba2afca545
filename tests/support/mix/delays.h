/*
 * delays.h - the scenes of rates and delay queues: what is to be had at a time, and not before.
 *
 * rate: all parties take permits. The sum that they have taken never exceeds the burst and what the time has brought.
 *
 * delay: inserters insert values with times near and far, and move and remove some of them. Each value is received or
 * removed once, and not before its time. The last inserter closes the queue. A receiver that was not woken waits beside
 * a value that is due.
 */
#ifndef MIX_DELAYS_H
#define MIX_DELAYS_H

#include "support/mix/round.h"

enum { DELAYS_INSERT, DELAYS_RECV };
enum { DELAYS_EACH = 16, DELAYS_PER_NS = 3000 };

static struct {
    blitz_rate rate;
    uint64_t burst;
    blitz_instant began;
    struct mix_count taken;
    blitz_delay_queue *queue;
    struct mix_count inserters;
    struct mix_count when[MIX_PARTIES]
                         [DELAYS_EACH]; /* raised before the entry is moved back, lowered after */
    struct mix_count gone[MIX_PARTIES][DELAYS_EACH];
} delays;

/* ---- rate ---- */

static int mix_rate_call(struct mix_op *op, blitz_deadline until)
{
    return blitz_rate_acquire(op->of, op->n, until);
}
static blitz_future *mix_rate_future(struct mix_op *op)
{
    blitz_rate_acquire_future_init(&op->f.rate, op->of, op->n);
    return &op->f.rate.future;
}
static int mix_rate_result(struct mix_op *op, int rc)
{
    return rc == 0 ? op->f.rate.result : rc;
}
static const struct mix_verb mix_rate = {"rate", mix_rate_call, mix_rate_future, mix_rate_result, 0,
                                         0};

static void rate_make(struct mix_round *r)
{
    memset(&delays, 0, sizeof delays);
    delays.burst = 1 + mix_die(&r->dice, 4);
    CHECK_EQ(blitz_rate_init(&delays.rate, 1, DELAYS_PER_NS, delays.burst), 0);
    delays.began = blitz_now();
    for (uint64_t n = 2 + mix_die(&r->dice, 8); n > 0; n--)
        mix_join_in(r, 0, mix_one_in(&r->dice, 3))->left = 1 + (unsigned)mix_die(&r->dice, 12);
    mix_say(r, " burst %u", (unsigned)delays.burst);
}

static bool rate_next(struct mix_party *p)
{
    if (p->left == 0)
        return false;
    p->left--;
    p->op.n = mix_die(&p->dice, (unsigned)delays.burst + 1);
    mix_begin(p, &mix_rate, &delays.rate);
    return true;
}

static void rate_done(struct mix_party *p, int rc)
{
    CHECK(rc == 0 || rc == -ETIMEDOUT || rc == -ECANCELED);
    if (rc == 0)
        mix_add(&delays.taken, (int64_t)p->op.n);
}

static void rate_leave(struct mix_party *p)
{
    (void)p;
}

static void rate_check(struct mix_round *r)
{
    uint64_t brought = (blitz_now() - delays.began) / DELAYS_PER_NS + 1;
    uint64_t taken = (uint64_t)mix_get(&delays.taken);
    (void)r;
    CHECK_LE(taken, delays.burst + brought);
    CHECK_LE(blitz_rate_permits(&delays.rate), delays.burst);
    CHECK_EQ(blitz_rate_acquire(&delays.rate, delays.burst, BLITZ_FOREVER),
             0); /* no turn is lost */
}

static const struct mix_scene mix_scene_rate = {"rate",    2,          rate_make, rate_next,
                                                rate_done, rate_leave, rate_check};

/* ---- delay queue ---- */

static int mix_delay_call(struct mix_op *op, blitz_deadline until)
{
    return blitz_delay_queue_recv(op->of, op->value, until);
}
static blitz_future *mix_delay_future(struct mix_op *op)
{
    blitz_delay_queue_recv_future_init(&op->f.delay, op->of, op->value);
    return &op->f.delay.future;
}
static int mix_delay_result(struct mix_op *op, int rc)
{
    return rc == 0 ? op->f.delay.result : rc;
}
static const struct mix_verb mix_delay = {
    "delay queue", mix_delay_call, mix_delay_future, mix_delay_result, 0, 0};

static void delay_make(struct mix_round *r)
{
    memset(&delays, 0, sizeof delays);
    CHECK_EQ(blitz_delay_queue_new(sizeof(struct mix_value), &delays.queue), 0);
    mix_join_in(r, DELAYS_RECV, true);
    mix_join_in(r, DELAYS_INSERT, true);
    for (uint64_t n = mix_die(&r->dice, 8); n > 0; n--) {
        unsigned role = (unsigned)mix_die(&r->dice, 3) != 0;
        mix_join_in(r, role, role == DELAYS_INSERT || mix_one_in(&r->dice, 2));
    }
    for (unsigned i = 0; i < r->count; i++) {
        r->party[i].left = 1 + (unsigned)mix_die(&r->dice, DELAYS_EACH);
        if (r->party[i].role == DELAYS_INSERT)
            mix_add(&delays.inserters, 1);
    }
}

static bool delay_next(struct mix_party *p)
{
    bool is_unbounded = p->role == DELAYS_RECV && p->is_keeper;
    if (!is_unbounded && p->left == 0)
        return false;
    p->left -= !is_unbounded;
    p->op.n = mix_die(&p->dice, 3) * mix_die(&p->dice, 15) * BLITZ_US;
    mix_begin(p, p->role == DELAYS_RECV ? &mix_delay : &mix_pause, delays.queue);
    return true;
}

static void delay_gone(uint64_t id)
{
    CHECK_LT(id, MIX_PARTIES * DELAYS_EACH);
    CHECK_EQ(mix_add(&delays.gone[id / DELAYS_EACH][id % DELAYS_EACH], 1), 1);
}

static blitz_deadline delay_time(struct mix_party *p)
{
    return blitz_after(mix_die(&p->dice, 4) * mix_die(&p->dice, 20) * BLITZ_US);
}

/* Move an entry, or remove it, while receivers try to take it. */
static void delay_change(struct mix_party *p, uint64_t k, blitz_delay_key key, blitz_deadline when)
{
    struct mix_value v;
    if (mix_one_in(&p->dice, 4)) {
        int rc = blitz_delay_queue_remove(delays.queue, key, &v);
        CHECK(rc == 0 || rc == -ENOENT);
        if (rc == 0)
            delay_gone(v.id);
    } else if (mix_one_in(&p->dice, 2)) {
        blitz_deadline moved = delay_time(p);
        mix_set(&delays.when[p->index][k], (int64_t)(moved < when ? moved : when));
        int rc = blitz_delay_queue_move(delays.queue, key, moved);
        CHECK(rc == 0 || rc == -ENOENT);
    }
}

static void delay_insert(struct mix_party *p)
{
    blitz_delay_key key;
    uint64_t k = p->scratch[0]++, id = p->index * (uint64_t)DELAYS_EACH + k;
    struct mix_value v = {id, ~id, id};
    blitz_deadline when = delay_time(p);
    mix_set(&delays.when[p->index][k], (int64_t)when);
    CHECK_EQ(blitz_delay_queue_insert(delays.queue, &v, when, &key), 0);
    delay_change(p, k, key, when);
}

static void delay_done(struct mix_party *p, int rc)
{
    const struct mix_value *v = p->op.value;
    if (p->role == DELAYS_INSERT) {
        delay_insert(p);
        return;
    }
    CHECK(rc == 0 || rc == -EPIPE || rc == -ETIMEDOUT || rc == -ECANCELED);
    p->is_over = rc == -EPIPE;
    if (rc != 0)
        return;
    CHECK_EQ(v->twin, ~v->id);
    delay_gone(v->id);
    CHECK_GE((int64_t)blitz_now(), mix_get(&delays.when[v->id / DELAYS_EACH][v->id % DELAYS_EACH]));
}

static void delay_leave(struct mix_party *p)
{
    if (p->role == DELAYS_INSERT && mix_add(&delays.inserters, -1) == 0)
        blitz_delay_queue_close(delays.queue);
}

static void delay_check(struct mix_round *r)
{
    CHECK_EQ(blitz_delay_queue_length(delays.queue), 0u);
    for (unsigned i = 0; i < r->count; i++)
        for (uint64_t k = 0; k < r->party[i].scratch[0] && r->party[i].role == DELAYS_INSERT; k++)
            CHECK_EQ(mix_get(&delays.gone[i][k]), 1);
    blitz_delay_queue_unref(delays.queue);
}

static const struct mix_scene mix_scene_delay = {"delay",    2,           delay_make, delay_next,
                                                 delay_done, delay_leave, delay_check};

#endif
