/*
 * net.h - the scenes of datagrams and descriptors, on sockets and pipes of the system.
 *
 * udp: senders and receivers on two Unix datagram sockets, which lose nothing. Each datagram that was sent is
 * received once, and those of one sender come to one receiver in their order. In half of the rounds only the
 * senders' socket is connected: then the system takes ten datagrams, and senders wait. A send or receive
 * that returns -ETIMEDOUT or -ECANCELED has moved nothing. A wait for readiness is followed by a call
 * with the deadline 0. The receivers' socket is closed when the senders have left and all was received.
 *
 * fd: bytes in a pipe. Tasks wait for its descriptor and read one byte. The pipe is closed when the writers
 * have left and all was read.
 *
 * A wait that returns without success in the call after it is not progress: else two waiters that wake each
 * other would look alive.
 */
#ifndef MIX_NET_H
#define MIX_NET_H

#include <fcntl.h>
#include <unistd.h>

#include "support/mix/ledger.h"
#include "support/mix/party.h"

/* ---- verbs ---- */

/* After a cancel the result says whether the transfer was done all the same. If a deadline was the reason for the
 * cancel, the result of the call would be -ETIMEDOUT. */
static int mix_result_of(struct mix_op *op, int64_t result, int rc)
{
    if (op->polled == 0 || (rc != 0 && result < 0))
        return rc;
    return result == -ECANCELED && op->waited != -ECANCELED ? -ETIMEDOUT : (int)result;
}
static int mix_net_result(struct mix_op *op, int rc)
{
    return mix_result_of(op, op->f.net.result, rc);
}
static int mix_message_result(struct mix_op *op, int rc)
{
    return mix_result_of(op, op->f.message.result, rc);
}

static int mix_udp_recv_call(struct mix_op *op, blitz_deadline until)
{
    return (int)blitz_udp_recv(op->of, op->value, sizeof op->value[0], until);
}
static blitz_future *mix_udp_recv_future(struct mix_op *op)
{
    blitz_udp_recv_future_init(&op->f.net, op->of, op->value, sizeof op->value[0]);
    return &op->f.net.future;
}
static const struct mix_verb mix_udp_recv = {
    "udp recv", mix_udp_recv_call, mix_udp_recv_future, mix_net_result, 0, 0};

static int mix_udp_recv_from_call(struct mix_op *op, blitz_deadline until)
{
    return (int)blitz_udp_recv_from(op->of, op->value, sizeof op->value[0], &op->addr, until);
}
static blitz_future *mix_udp_recv_from_future(struct mix_op *op)
{
    blitz_udp_recv_from_future_init(&op->f.message, op->of, op->value, sizeof op->value[0],
                                    &op->addr);
    return &op->f.message.future;
}
static const struct mix_verb mix_udp_recv_from = {
    "udp recv from", mix_udp_recv_from_call, mix_udp_recv_from_future, mix_message_result, 0, 0};

static int mix_udp_peek_call(struct mix_op *op, blitz_deadline until)
{
    return (int)blitz_udp_peek(op->of, op->value, sizeof op->value[0], until);
}
static blitz_future *mix_udp_peek_future(struct mix_op *op)
{
    blitz_udp_peek_future_init(&op->f.net, op->of, op->value, sizeof op->value[0]);
    return &op->f.net.future;
}
static const struct mix_verb mix_udp_peek = {
    "udp peek", mix_udp_peek_call, mix_udp_peek_future, mix_net_result, 0, 0};

static int mix_udp_peek_from_call(struct mix_op *op, blitz_deadline until)
{
    return (int)blitz_udp_peek_from(op->of, op->value, sizeof op->value[0], &op->addr, until);
}
static blitz_future *mix_udp_peek_from_future(struct mix_op *op)
{
    blitz_udp_peek_from_future_init(&op->f.message, op->of, op->value, sizeof op->value[0],
                                    &op->addr);
    return &op->f.message.future;
}
static const struct mix_verb mix_udp_peek_from = {
    "udp peek from", mix_udp_peek_from_call, mix_udp_peek_from_future, mix_message_result, 0, 0};

static void mix_udp_datagrams(struct mix_op *op)
{
    for (unsigned i = 0; i < op->count; i++)
        op->datagram[i] = (blitz_datagram){.data = &op->value[i], .bytes = sizeof op->value[i]};
}
static int mix_udp_recv_many_call(struct mix_op *op, blitz_deadline until)
{
    mix_udp_datagrams(op);
    return blitz_udp_recv_many(op->of, op->datagram, op->count, until);
}
static blitz_future *mix_udp_recv_many_future(struct mix_op *op)
{
    mix_udp_datagrams(op);
    blitz_udp_recv_many_future_init(&op->f.net, op->of, op->datagram, op->count);
    return &op->f.net.future;
}
static const struct mix_verb mix_udp_recv_many = {
    "udp recv many", mix_udp_recv_many_call, mix_udp_recv_many_future, mix_net_result, 0, 0};

static int mix_udp_send_call(struct mix_op *op, blitz_deadline until)
{
    return (int)blitz_udp_send(op->of, op->value, sizeof op->value[0], until);
}
static blitz_future *mix_udp_send_future(struct mix_op *op)
{
    blitz_udp_send_future_init(&op->f.net, op->of, op->value, sizeof op->value[0]);
    return &op->f.net.future;
}
static const struct mix_verb mix_udp_send = {
    "udp send", mix_udp_send_call, mix_udp_send_future, mix_net_result, 0, 0};

static int mix_udp_send_to_call(struct mix_op *op, blitz_deadline until)
{
    return (int)blitz_udp_send_to(op->of, op->value, sizeof op->value[0], &op->addr, until);
}
static blitz_future *mix_udp_send_to_future(struct mix_op *op)
{
    blitz_udp_send_to_future_init(&op->f.message, op->of, op->value, sizeof op->value[0],
                                  &op->addr);
    return &op->f.message.future;
}
static const struct mix_verb mix_udp_send_to = {
    "udp send to", mix_udp_send_to_call, mix_udp_send_to_future, mix_message_result, 0, 0};

static int mix_udp_send_many_call(struct mix_op *op, blitz_deadline until)
{
    mix_udp_datagrams(op);
    return blitz_udp_send_many(op->of, op->datagram, op->count, until);
}
static blitz_future *mix_udp_send_many_future(struct mix_op *op)
{
    mix_udp_datagrams(op);
    blitz_udp_send_many_future_init(&op->f.net, op->of, op->datagram, op->count);
    return &op->f.net.future;
}
static const struct mix_verb mix_udp_send_many = {
    "udp send many", mix_udp_send_many_call, mix_udp_send_many_future, mix_net_result, 0, 0};

/* op->n: BLITZ_READABLE or BLITZ_WRITABLE. */
static int mix_udp_wait_call(struct mix_op *op, blitz_deadline until)
{
    return blitz_udp_wait(op->of, (unsigned)op->n, until);
}
static blitz_future *mix_udp_wait_future(struct mix_op *op)
{
    blitz_udp_wait_future_init(&op->f.net, op->of, (unsigned)op->n);
    return &op->f.net.future;
}
static const struct mix_verb mix_udp_wait = {
    "udp wait", mix_udp_wait_call, mix_udp_wait_future, mix_net_result, 0, 0};

/* op->n: the descriptor. */
static int mix_fd_wait_call(struct mix_op *op, blitz_deadline until)
{
    return blitz_fd_wait((blitz_fd)op->n, BLITZ_FD_READ, until);
}
static blitz_future *mix_fd_wait_future(struct mix_op *op)
{
    blitz_fd_wait_future_init(&op->f.net, (blitz_fd)op->n, BLITZ_FD_READ);
    return &op->f.net.future;
}
static const struct mix_verb mix_fd_wait = {
    "fd wait", mix_fd_wait_call, mix_fd_wait_future, mix_net_result, 0, 0};

/* ---- udp ---- */

enum { NET_SEND, NET_RECV };

static struct {
    blitz_udp *end[2];     /* by role; the receivers' end is closed at the end */
    bool has_addr;         /* the receivers' end has an address; else the ends are a pair */
    blitz_addr addr;       /* that address */
    struct mix_count debt; /* senders << 32, plus datagrams sent, minus those received */
    int pipe[2];
    struct mix_count sum; /* fd: of the bytes written, minus those read */
} net;

static int udp_open(void *round)
{
    struct mix_round *r = round;
    char name[64];
    blitz_addr at;
    if (!net.has_addr)
        return blitz_unix_datagram_pair(net.end);
    for (int role = 0; role < 2; role++) {
        int n = snprintf(name, sizeof name, "blitz-mix-%d-%llx-%d", (int)getpid(),
                         (unsigned long long)r->seed, role);
        CHECK_EQ(blitz_addr_abstract(name, (size_t)n, &at), 0);
        CHECK_EQ(blitz_udp_bind(&at, NULL, &net.end[role]), 0);
    }
    net.addr = at; /* of NET_RECV */
    return blitz_udp_connect(net.end[NET_SEND], &net.addr);
}

static void udp_make(struct mix_round *r)
{
    memset(&net, 0, sizeof net);
    mix_ledger_clear();
    net.has_addr = mix_one_in(&r->dice, 2);
    CHECK_EQ(blitz_runtime_block_on(r->rt, udp_open, r), 0);
    mix_join_in(r, NET_RECV, true);
    mix_join_in(r, NET_SEND, false);
    for (uint64_t n = mix_die(&r->dice, 8); n > 0; n--)
        mix_join_in(r, (unsigned)mix_die(&r->dice, 2), mix_one_in(&r->dice, 2));
    for (unsigned i = 0; i < r->count; i++) {
        struct mix_party *p = &r->party[i];
        (void)blitz_udp_ref(net.end[p->role]);
        p->left = 1 + (unsigned)mix_die(&r->dice, 12);
        if (p->role == NET_SEND)
            mix_add(&net.debt, INT64_C(1) << 32);
    }
    mix_say(r, "%s", net.has_addr ? " addresses" : " a pair");
}

/* True of calls that leave the datagram where it is. */
static bool udp_takes_nothing(const struct mix_verb *verb)
{
    return verb == &mix_udp_wait || verb == &mix_udp_peek || verb == &mix_udp_peek_from;
}

static bool udp_next_recv(struct mix_party *p)
{
    static const struct mix_verb *const verbs[] = {&mix_udp_recv,      &mix_udp_recv_from,
                                                   &mix_udp_recv_many, &mix_udp_wait,
                                                   &mix_udp_peek,      &mix_udp_peek_from};
    const struct mix_verb *verb = verbs[mix_die(&p->dice, 6)];
    if (!p->is_keeper && p->left-- == 0)
        return false;
    p->is_idle = udp_takes_nothing(verb);
    p->op.n = BLITZ_READABLE;
    p->op.count = 1 + (unsigned)mix_die(&p->dice, MIX_DATAGRAMS);
    mix_begin(p, verb, net.end[NET_RECV]);
    return true;
}

static bool udp_next(struct mix_party *p)
{
    static const struct mix_verb *const verbs[] = {&mix_udp_send, &mix_udp_send_many, &mix_udp_wait,
                                                   &mix_udp_send_to};
    if (p->role == NET_RECV)
        return udp_next_recv(p);
    if (p->left-- == 0)
        return false;
    const struct mix_verb *verb = verbs[mix_die(&p->dice, net.has_addr ? 4 : 3)];
    p->op.n = BLITZ_WRITABLE;
    p->op.addr = net.addr;
    p->op.count = verb == &mix_udp_send_many ? 1 + (unsigned)mix_die(&p->dice, MIX_DATAGRAMS) : 1;
    for (unsigned i = 0; i < p->op.count; i++)
        mix_ledger_offer(p, &p->op.value[i]);
    mix_begin(p, verb, net.end[NET_SEND]);
    return true;
}

static void udp_owe(int64_t by)
{
    if (mix_add(&net.debt, by) == 0)
        blitz_udp_close(net.end[NET_RECV]);
}

/* How many datagrams a call has moved that returned rc. */
static unsigned udp_moved(struct mix_party *p, int rc)
{
    bool is_many = p->op.verb == &mix_udp_recv_many || p->op.verb == &mix_udp_send_many;
    if (rc < 0)
        return 0;
    if (!is_many && rc != (int)sizeof(struct mix_value))
        FAIL("party %u: %s has moved %d bytes", p->index, p->op.verb->name, rc);
    CHECK_LE(rc, is_many ? (int)p->op.count : rc);
    return is_many ? (unsigned)rc : 1;
}

static void udp_done(struct mix_party *p, int rc)
{
    CHECK(rc >= 0 || rc == -EBADF || rc == -ETIMEDOUT || rc == -ECANCELED);
    if (rc >= 0 && udp_takes_nothing(p->op.verb)) {
        CHECK_EQ(rc, p->op.verb == &mix_udp_wait ? 0 : (int)sizeof(struct mix_value));
        rc = p->role == NET_SEND ? mix_udp_send_call(&p->op, 0) : mix_udp_recv_call(&p->op, 0);
        CHECK(rc >= 0 || rc == -EBADF || rc == -ETIMEDOUT || rc == -ECANCELED);
        if (rc >= 0)
            mix_add(&p->round->progress, 1);
    }
    CHECK(rc != -EBADF || p->role == NET_RECV);
    p->is_over |= rc == -EBADF;
    unsigned moved = udp_moved(p, rc);
    for (unsigned i = 0; i < moved; i++) {
        if (p->role == NET_SEND)
            mix_ledger_sent(&p->op.value[i]);
        else
            mix_ledger_received(p, 0, &p->op.value[i], sizeof p->op.value[i]);
    }
    if (moved > 0)
        udp_owe(p->role == NET_SEND ? (int64_t)moved : -(int64_t)moved);
}

static void udp_leave(struct mix_party *p)
{
    if (p->role == NET_SEND)
        udp_owe(-(INT64_C(1) << 32));
    blitz_udp_unref(net.end[p->role]);
}

static void udp_check(struct mix_round *r)
{
    mix_ledger_check(r);
    CHECK_EQ(mix_get(&net.debt), 0);
    blitz_udp_close(net.end[NET_SEND]);
}

static const struct mix_scene mix_scene_udp = {"udp",    2,         udp_make, udp_next,
                                               udp_done, udp_leave, udp_check};

/* ---- fd ---- */

static void fd_make(struct mix_round *r)
{
    memset(&net, 0, sizeof net);
    r->kinds &= ~(1u << MIX_THREAD); /* blitz_fd_wait() is for tasks */
    r->kinds |= r->kinds == 0 ? 1u << MIX_FIBER : 0;
    CHECK_EQ(pipe2(net.pipe, O_NONBLOCK | O_CLOEXEC), 0);
    mix_join_in(r, NET_RECV, true);
    mix_join_in(r, NET_SEND, false);
    for (uint64_t n = mix_die(&r->dice, 8); n > 0; n--)
        mix_join_in(r, (unsigned)mix_die(&r->dice, 2), mix_one_in(&r->dice, 2));
    for (unsigned i = 0; i < r->count; i++) {
        struct mix_party *p = &r->party[i];
        p->left = 1 + (unsigned)mix_die(&r->dice, 8);
        p->is_thread = p->role == NET_SEND && mix_one_in(&r->dice, 4);
        if (p->role == NET_SEND)
            mix_add(&net.debt, INT64_C(1) << 32);
    }
}

static bool fd_next(struct mix_party *p)
{
    bool is_unbounded = p->role == NET_RECV && p->is_keeper;
    if (!is_unbounded && p->left-- == 0)
        return false;
    p->is_idle = p->role == NET_RECV;
    p->op.n = p->role == NET_RECV ? (uint64_t)net.pipe[0]
                                  : mix_die(&p->dice, 3) * mix_die(&p->dice, 15) * BLITZ_US;
    mix_begin(p, p->role == NET_RECV ? &mix_fd_wait : &mix_pause, NULL);
    return true;
}

static void fd_owe(int64_t by)
{
    if (mix_add(&net.debt, by) == 0)
        CHECK_EQ(close(net.pipe[1]), 0);
}

static void fd_done(struct mix_party *p, int rc)
{
    unsigned char byte = (unsigned char)mix_die(&p->dice, 256);
    if (p->role == NET_SEND) {
        mix_add(&net.sum, byte);
        CHECK_EQ(write(net.pipe[1], &byte, 1), 1);
        fd_owe(1);
        return;
    }
    CHECK(rc > 0 || rc == -ETIMEDOUT || rc == -ECANCELED);
    ssize_t n = rc > 0 ? read(net.pipe[0], &byte, 1) : -1;
    CHECK(n >= 0 || rc < 0 || errno == EAGAIN); /* another party was faster */
    p->is_over |= n == 0;
    if (n != 1)
        return;
    mix_add(&net.sum, -(int64_t)byte);
    mix_add(&p->round->progress, 1);
    fd_owe(-1);
}

static void fd_leave(struct mix_party *p)
{
    if (p->role == NET_SEND)
        fd_owe(-(INT64_C(1) << 32));
}

static void fd_check(struct mix_round *r)
{
    (void)r;
    CHECK_EQ(mix_get(&net.debt), 0);
    CHECK_EQ(mix_get(&net.sum), 0);
    CHECK_EQ(close(net.pipe[0]), 0);
}

static const struct mix_scene mix_scene_fd = {"fd",    1,        fd_make, fd_next,
                                              fd_done, fd_leave, fd_check};

#endif
