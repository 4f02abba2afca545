/*
 * conns.h - the scene of connections: each connection that was made is accepted once.
 *
 * Connectors connect to one listener, and each sends a number through its connection. Acceptors accept and read the
 * number. Each number that was sent arrives once. A connect that was given up may leave a connection without a
 * number in the backlog. The listener is closed when the connectors have left and all numbers have arrived. So
 * an accept that is not woken, and one that loses a connection when it is cancelled, hang the round.
 */
#ifndef MIX_CONNS_H
#define MIX_CONNS_H

#include "support/mix/net.h"

enum { CONNS_CONNECT, CONNS_ACCEPT };

static struct {
    blitz_tcp_listener *listener;
    bool is_unix;          /* else TCP */
    blitz_addr addr[2];    /* the listener's, and one without a listener */
    struct mix_count debt; /* connectors << 32, plus numbers sent, minus numbers received */
    struct mix_count tries, ghosts;
} conns;

/* ---- verbs: with the result 0 or more, op->pointer is the connection ---- */

static int mix_conn_result(struct mix_op *op, int rc)
{
    rc = mix_result_of(op, op->f.net.result, rc);
    op->pointer = rc >= 0 ? op->f.net.tcp : NULL;
    return rc;
}

static int mix_accept_call(struct mix_op *op, blitz_deadline until)
{
    blitz_tcp *t = NULL;
    int rc = blitz_tcp_accept(op->of, &t, NULL, until);
    op->pointer = t;
    return rc;
}
static blitz_future *mix_accept_future(struct mix_op *op)
{
    blitz_tcp_accept_future_init(&op->f.net, op->of);
    return &op->f.net.future;
}
static const struct mix_verb mix_accept = {
    "accept", mix_accept_call, mix_accept_future, mix_conn_result, 0, 0};

static int mix_connect_call(struct mix_op *op, blitz_deadline until)
{
    blitz_tcp *t = NULL;
    int rc = blitz_tcp_connect(&conns.addr[0], &t, until);
    op->pointer = t;
    return rc;
}
static blitz_future *mix_connect_future(struct mix_op *op)
{
    blitz_tcp_connect_future_init(&op->f.net, &conns.addr[0]);
    return &op->f.net.future;
}
static const struct mix_verb mix_connect = {
    "connect", mix_connect_call, mix_connect_future, mix_conn_result, 0, 0};

/* The first address refuses. */
static int mix_connect_first_call(struct mix_op *op, blitz_deadline until)
{
    const blitz_addr to[2] = {conns.addr[1], conns.addr[0]};
    blitz_tcp *t = NULL;
    int rc = blitz_tcp_connect_first(to, 2, NULL, &t, until);
    op->pointer = t;
    CHECK_NE(rc, 0);
    return rc == 1 ? 0 : rc;
}
static blitz_future *mix_connect_first_future(struct mix_op *op)
{
    static blitz_addr to[MIX_PARTIES][2];
    blitz_addr *mine = to[op->n];
    mine[0] = conns.addr[1];
    mine[1] = conns.addr[0];
    blitz_tcp_connect_first_future_init(&op->f.first, mine, 2, NULL, BLITZ_FOREVER);
    return &op->f.first.future;
}
static int mix_connect_first_result(struct mix_op *op, int rc)
{
    rc = mix_result_of(op, op->f.first.result, rc);
    op->pointer = rc >= 0 ? op->f.first.tcp : NULL;
    CHECK_NE(rc, 0);
    return rc == 1 ? 0 : rc;
}
static const struct mix_verb mix_connect_first = {"connect first",
                                                  mix_connect_first_call,
                                                  mix_connect_first_future,
                                                  mix_connect_first_result,
                                                  0,
                                                  0};

/* ---- the scene ---- */

static void conns_address(struct mix_round *r, unsigned i)
{
    char name[64];
    int n = snprintf(name, sizeof name, "blitz-mix-%d-%llx-%u", (int)getpid(),
                     (unsigned long long)r->seed, i);
    CHECK_EQ(blitz_addr_abstract(name, (size_t)n, &conns.addr[i]), 0);
}

/* The address that refuses is always a Unix address: no other program listens there. */
static int conns_open(void *round)
{
    struct mix_round *r = round;
    blitz_tcp_listen_opts opts = {.backlog = conns.is_unix ? 2 : 0};
    conns_address(r, 1);
    if (conns.is_unix)
        conns_address(r, 0);
    else
        conns.addr[0] = blitz_addr_loopback_v4(0);
    CHECK_EQ(blitz_tcp_listen(&conns.addr[0], &opts, &conns.listener), 0);
    return blitz_tcp_listener_local(conns.listener, &conns.addr[0]);
}

static void conns_make(struct mix_round *r)
{
    memset(&conns, 0, sizeof conns);
    mix_ledger_clear();
    r->kinds &= ~(1u << MIX_THREAD); /* accept and connect are for tasks */
    r->kinds |= r->kinds == 0 ? 1u << MIX_FIBER : 0;
    conns.is_unix = mix_one_in(&r->dice, 2);
    CHECK_EQ(blitz_runtime_block_on(r->rt, conns_open, r), 0);
    mix_join_in(r, CONNS_ACCEPT, true);
    mix_join_in(r, CONNS_CONNECT, false);
    for (uint64_t n = mix_die(&r->dice, 6); n > 0; n--)
        mix_join_in(r, (unsigned)mix_die(&r->dice, 2), mix_one_in(&r->dice, 2));
    for (unsigned i = 0; i < r->count; i++) {
        struct mix_party *p = &r->party[i];
        (void)blitz_tcp_listener_ref(conns.listener);
        p->left = 1 + (unsigned)mix_die(&r->dice, 6);
        if (p->role == CONNS_CONNECT)
            mix_add(&conns.debt, INT64_C(1) << 32);
    }
    mix_say(r, conns.is_unix ? " Unix" : " TCP");
}

static bool conns_next(struct mix_party *p)
{
    bool is_unbounded = p->role == CONNS_ACCEPT && p->is_keeper;
    if (!is_unbounded && p->left-- == 0)
        return false;
    p->op.pointer = NULL;
    p->op.n = p->index;
    if (p->role == CONNS_ACCEPT) {
        mix_begin(p, &mix_accept, conns.listener);
        return true;
    }
    mix_add(&conns.tries, 1);
    mix_begin(p, mix_one_in(&p->dice, 3) ? &mix_connect_first : &mix_connect, NULL);
    return true;
}

static void conns_owe(int64_t by)
{
    if (mix_add(&conns.debt, by) == 0)
        blitz_tcp_listener_close(conns.listener);
}

/* Send the number. A new connection has room for it. */
static void conns_connected(struct mix_party *p)
{
    mix_ledger_offer(p, p->op.value);
    CHECK_EQ(blitz_tcp_try_write(p->op.pointer, p->op.value, sizeof p->op.value[0]),
             (int64_t)sizeof p->op.value[0]);
    mix_ledger_sent(p->op.value);
    conns_owe(1);
}

/* Read the number. The connector sends it at once, or has left. */
static void conns_accepted(struct mix_party *p)
{
    size_t done = 0;
    blitz_shield();
    int rc = blitz_tcp_read_exact(p->op.pointer, p->op.value, sizeof p->op.value[0], &done,
                                  BLITZ_FOREVER);
    blitz_unshield();
    if (rc == 0) {
        mix_ledger_gone(p->op.value, sizeof p->op.value[0]);
        conns_owe(-1);
        return;
    }
    CHECK(rc == -ENODATA || rc == -ECONNRESET);
    CHECK_EQ(done, 0u);
    mix_add(&conns.ghosts, 1);
}

static void conns_done(struct mix_party *p, int rc)
{
    CHECK(rc == 0 || rc == -ETIMEDOUT || rc == -ECANCELED ||
          (rc == -EBADF && p->role == CONNS_ACCEPT));
    p->is_over |= rc == -EBADF;
    CHECK_EQ(p->op.pointer != NULL, rc == 0);
    if (rc != 0)
        return;
    if (p->role == CONNS_CONNECT)
        conns_connected(p);
    else
        conns_accepted(p);
    blitz_tcp_close(p->op.pointer);
}

static void conns_leave(struct mix_party *p)
{
    if (p->role == CONNS_CONNECT)
        conns_owe(-(INT64_C(1) << 32));
    blitz_tcp_listener_unref(conns.listener);
}

static void conns_check(struct mix_round *r)
{
    mix_ledger_check(r);
    CHECK_EQ(mix_get(&conns.debt), 0);
    CHECK_LE(mix_get(&conns.ghosts), mix_get(&conns.tries));
}

static const struct mix_scene mix_scene_conns = {"conns",    1,           conns_make, conns_next,
                                                 conns_done, conns_leave, conns_check};

#endif
