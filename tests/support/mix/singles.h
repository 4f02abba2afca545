/*
 * singles.h - the scenes of values that are made or passed once: oneshot, promise, once.
 */
#ifndef MIX_SINGLES_H
#define MIX_SINGLES_H

#include "support/mix/closed.h"
#include "support/mix/party.h"

enum { SINGLES_SEND, SINGLES_RECV, SINGLES_FAIL, SINGLES_GIVE_UP, SINGLES_SET };
enum { SINGLES_PAIRS = 6, SINGLES_EACH = 8 };

static struct {
    unsigned each; /* exchanges of a pair */
    blitz_oneshot *oneshot[SINGLES_PAIRS][SINGLES_EACH];
    bool is_sent[SINGLES_PAIRS][SINGLES_EACH]; /* written by the sender */
    bool is_left[SINGLES_PAIRS]
                [SINGLES_EACH]; /* the receiver goes, and the sender waits for that */
    struct mix_count gone[SINGLES_PAIRS][SINGLES_EACH];
    blitz_promise *promise;
    struct mix_count kept, taken, freed;
    blitz_lazy lazy; /* some calls get the value with blitz_lazy_get(), others from its cell */
    struct mix_count makers, made, fails;
    uint64_t value;
} singles;

/* ---- oneshot: p->scratch[0] is the pair, [1] the exchange ---- */

static void oneshot_gone(uint64_t id)
{
    CHECK_LT(id, SINGLES_PAIRS * SINGLES_EACH);
    CHECK_EQ(mix_add(&singles.gone[id / SINGLES_EACH][id % SINGLES_EACH], 1), 1);
}

static void oneshot_drop(void *value, void *ctx)
{
    (void)ctx;
    oneshot_gone(((struct mix_value *)value)->id);
}

static void oneshot_make(struct mix_round *r)
{
    memset(&singles, 0, sizeof singles);
    unsigned pairs = 1 + (unsigned)mix_die(&r->dice, SINGLES_PAIRS);
    singles.each = 1 + (unsigned)mix_die(&r->dice, SINGLES_EACH);
    for (unsigned i = 0; i < pairs; i++) {
        for (unsigned k = 0; k < singles.each; k++)
            CHECK_EQ(blitz_oneshot_new(sizeof(struct mix_value),
                                       &(blitz_oneshot_opts){.drop = oneshot_drop},
                                       &singles.oneshot[i][k]),
                     0);
        for (unsigned k = 0; k < singles.each; k++)
            singles.is_left[i][k] = mix_one_in(&r->dice, 3);
        for (unsigned role = 0; role < 2; role++) {
            struct mix_party *p = mix_join_in(r, role, role == SINGLES_SEND || i % 2);
            p->scratch[0] = i;
            p->left = singles.each;
        }
    }
    mix_say(r, " %u pairs", pairs);
}

static bool oneshot_next(struct mix_party *p)
{
    struct mix_op *op = &p->op;
    if (p->scratch[1] == singles.each)
        return false;
    op->n = mix_die(&p->dice, 4) * mix_die(&p->dice, 4) * BLITZ_US;
    bool is_left = singles.is_left[p->scratch[0]][p->scratch[1]];
    mix_begin(p, p->role == SINGLES_RECV ? &mix_oneshot : &mix_pause,
              singles.oneshot[p->scratch[0]][p->scratch[1]]);
    if (is_left)
        op->verb = p->role == SINGLES_RECV ? &mix_pause : &mix_oneshot_closed;
    return true;
}

/* A step of an exchange whose receiver goes without a receive. False: the sender is to send now. */
static bool oneshot_left(struct mix_party *p, int rc)
{
    blitz_oneshot *o = singles.oneshot[p->scratch[0]][p->scratch[1]];
    if (p->role == SINGLES_RECV) {
        blitz_oneshot_receiver_drop(o);
        p->scratch[1]++;
        return true;
    }
    CHECK(rc == 0 || rc == -ETIMEDOUT);
    CHECK(rc != 0 || blitz_oneshot_is_closed(o));
    return rc != 0 && mix_one_in(&p->dice, 2);
}

static void oneshot_done(struct mix_party *p, int rc)
{
    uint64_t pair = p->scratch[0], k = p->scratch[1];
    struct mix_value v = {pair * SINGLES_EACH + k, ~(pair * SINGLES_EACH + k), 0};
    if (singles.is_left[pair][k] && oneshot_left(p, rc))
        return;
    if (p->role == SINGLES_SEND) {
        int waited = rc;
        p->scratch[1]++;
        if (mix_one_in(&p->dice, 5)) {
            blitz_oneshot_sender_drop(singles.oneshot[pair][k]);
            return;
        }
        rc = blitz_oneshot_send(singles.oneshot[pair][k], &v);
        CHECK(rc == 0 || rc == -EPIPE);
        CHECK(!singles.is_left[pair][k] || waited != 0 || rc == -EPIPE);
        singles.is_sent[pair][k] = rc == 0;
        return;
    }
    CHECK(rc == 0 || rc == -EPIPE || rc == -ETIMEDOUT || rc == -ECANCELED);
    if (rc == 0) {
        CHECK_EQ(p->op.value[0].id, v.id);
        CHECK_EQ(p->op.value[0].twin, v.twin);
        oneshot_gone(v.id);
    }
    if (rc == 0 || rc == -EPIPE) {
        blitz_oneshot_receiver_drop(singles.oneshot[pair][k]);
        p->scratch[1]++;
    }
}

static void oneshot_leave(struct mix_party *p)
{
    for (; p->role == SINGLES_RECV && p->scratch[1] < singles.each; p->scratch[1]++)
        blitz_oneshot_receiver_drop(singles.oneshot[p->scratch[0]][p->scratch[1]]);
}

static void oneshot_check(struct mix_round *r)
{
    for (unsigned i = 0; i < r->count / 2; i++)
        for (unsigned k = 0; k < singles.each; k++)
            CHECK_EQ(mix_get(&singles.gone[i][k]), singles.is_sent[i][k]);
}

static const struct mix_scene mix_scene_oneshot = {
    "oneshot", 2, oneshot_make, oneshot_next, oneshot_done, oneshot_leave, oneshot_check};

/* ---- promise: the completer is p->op.with, kept in scratch[0] ---- */

static void promise_free(void *value, void *ctx)
{
    (void)ctx;
    mix_add(&singles.freed, 1);
    free(value);
}

static void promise_make(struct mix_round *r)
{
    blitz_completer *completer;
    memset(&singles, 0, sizeof singles);
    CHECK_EQ(blitz_promise_new(&(blitz_promise_opts){.drop = promise_free}, &singles.promise,
                               &completer),
             0);
    for (uint64_t n = 1 + mix_die(&r->dice, 6); n > 0; n--) {
        struct mix_party *p = mix_join_in(r, SINGLES_RECV, mix_one_in(&r->dice, 2));
        p->left = 1;
        (void)blitz_promise_ref(singles.promise);
    }
    for (uint64_t n = 1 + mix_die(&r->dice, 3); n > 0; n--) {
        static const unsigned roles[] = {SINGLES_SEND, SINGLES_FAIL, SINGLES_GIVE_UP};
        struct mix_party *p = mix_join_in(r, roles[mix_die(&r->dice, 3)], true);
        p->left = 1;
        p->scratch[0] = (uintptr_t)blitz_completer_ref(completer);
    }
    blitz_completer_unref(completer);
}

static bool promise_next(struct mix_party *p)
{
    if (p->left == 0)
        return false;
    p->op.n = mix_die(&p->dice, 4) * mix_die(&p->dice, 15) * BLITZ_US;
    mix_begin(p, p->role == SINGLES_RECV ? &mix_promise : &mix_pause, singles.promise);
    return true;
}

static void promise_complete(struct mix_party *p)
{
    blitz_completer *completer =
        (blitz_completer *)(uintptr_t)p->scratch[0]; /* NOLINT: a pointer in a number */
    p->left = 0;
    if (p->role == SINGLES_FAIL) {
        int rc = blitz_completer_fail(completer, -EIO);
        CHECK(rc == 0 || rc == -EALREADY);
    } else if (p->role == SINGLES_SEND) {
        uint64_t *value = malloc(sizeof *value);
        CHECK_NOT_NULL(value);
        *value = p->round->seed;
        int rc = blitz_completer_complete(completer, value);
        CHECK(rc == 0 || rc == -EALREADY);
        mix_add(&singles.kept, rc == 0);
        if (rc != 0)
            free(value);
    }
    blitz_completer_unref(completer);
}

static void promise_done(struct mix_party *p, int rc)
{
    if (p->role != SINGLES_RECV) {
        promise_complete(p);
        return;
    }
    CHECK(rc == 0 || rc == -EIO || rc == -EPIPE || rc == -ETIMEDOUT || rc == -ECANCELED);
    p->left = rc == -ETIMEDOUT;
    if (rc != 0 || p->op.pointer == NULL)
        return;
    CHECK_EQ(*(uint64_t *)p->op.pointer, p->round->seed);
    mix_add(&singles.taken, 1);
    free(p->op.pointer);
}

static void promise_leave(struct mix_party *p)
{
    if (p->role == SINGLES_RECV)
        blitz_promise_unref(singles.promise);
}

static void promise_check(struct mix_round *r)
{
    (void)r;
    blitz_promise_unref(singles.promise);
    CHECK_EQ(mix_get(&singles.kept), mix_get(&singles.taken) + mix_get(&singles.freed));
}

static const struct mix_scene mix_scene_promise = {
    "promise", 2, promise_make, promise_next, promise_done, promise_leave, promise_check};

/* ---- once ---- */

/* One caller at a time makes the value, and a value is made once. */
static int once_make_value(struct mix_round *r, void **value)
{
    bool is_failure = mix_add(&singles.fails, -1) >= 0;
    mix_add(&singles.makers, -1);
    if (is_failure)
        return -EIO;
    CHECK_EQ(mix_add(&singles.made, 1), 1);
    singles.value = r->seed;
    *value = &singles.value;
    return 0;
}

static int once_make_lazily(void *round, void **value)
{
    CHECK_EQ(mix_add(&singles.makers, 1), 1);
    blitz_yield();
    return once_make_value(round, value);
}

static void once_make(struct mix_round *r)
{
    memset(&singles, 0, sizeof singles);
    singles.lazy = (blitz_lazy)BLITZ_LAZY_INIT(once_make_lazily, r);
    mix_set(&singles.fails, (int64_t)mix_die(&r->dice, 5));
    for (uint64_t n = 2 + mix_die(&r->dice, 8); n > 0; n--)
        mix_join_in(r, SINGLES_RECV, mix_one_in(&r->dice, 2))->left = 1;
    if (mix_one_in(&r->dice, 4))
        mix_join_in(r, SINGLES_SET, true)->left = 1;
    mix_say(r, " fails %lld times", (long long)mix_get(&singles.fails));
}

static int mix_once_make(void *arg, void **value)
{
    struct mix_party *p = arg;
    const char *form = bz_load_relaxed(&p->form); /* relaxed: this party wrote it */
    CHECK_EQ(mix_add(&singles.makers, 1), 1);
    if (form == mix_form_name[MIX_CALL])
        mix_pause_here(mix_think(p)); /* elsewhere it would hold up the futures beside this one */
    return once_make_value(p->round, value);
}

static bool once_next(struct mix_party *p)
{
    if (p->left == 0)
        return false;
    p->op.n = mix_die(&p->dice, 30) * BLITZ_US;
    p->op.with = p;
    p->op.is_now = mix_one_in(&p->dice, 3);
    p->op.pointer = NULL;
    mix_begin(p, p->role == SINGLES_RECV ? &mix_once : &mix_pause, &singles.lazy.once);
    return true;
}

static void once_done(struct mix_party *p, int rc)
{
    if (p->role == SINGLES_SET) {
        p->left = 0;
        rc = blitz_once_set(&singles.lazy.once, &singles.value);
        CHECK(rc == 0 || rc == -EEXIST || rc == -EBUSY);
        if (rc == 0)
            CHECK_EQ(mix_add(&singles.made, 1), 1);
        return;
    }
    CHECK(rc == 0 || rc == -EIO || rc == -ETIMEDOUT || rc == -ECANCELED);
    if (rc != 0)
        return;
    p->left = 0;
    CHECK_EQ(p->op.pointer, &singles.value);
}

static void once_check(struct mix_round *r)
{
    void *value = NULL;
    (void)r;
    CHECK_EQ(mix_get(&singles.made), blitz_once_try_get(&singles.lazy.once, &value) == 0);
}

static const struct mix_scene mix_scene_once = {"once",    2,    once_make, once_next,
                                                once_done, NULL, once_check};

#endif
