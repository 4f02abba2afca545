/*
 * streams.h - the scene of byte streams: pairs of connected sockets, with a writer and a reader each.
 *
 * Byte n of a stream is a function of n and of the pair, so a reader detects a byte that is lost, that comes twice or
 * that comes too early. A call that fails says how many bytes it has moved. When its writer has left, the
 * reader reads the end of the stream, and must have got each byte that was written. A reader that is no
 * keeper may leave before; then the writer gets -EPIPE. The buffers are small, so writers wait.
 */
#ifndef MIX_STREAMS_H
#define MIX_STREAMS_H

#include <fcntl.h>

#include "base/compiler.h"
#include "support/mix/net.h"

enum { STREAMS_WRITE, STREAMS_READ };
enum { STREAMS_PAIRS = 4 };

static struct {
    blitz_tcp *end[STREAMS_PAIRS][2];
    uint64_t bytes[STREAMS_PAIRS][2]; /* written and read so far, each by its party */
    bool has_ended[STREAMS_PAIRS];    /* the reader has read the end */
    unsigned pairs;
} streams;

/* ---- verbs: op->n bytes of op->bytes; the result is 0 or an error, and op->moved ---- */

/* The outcome of a call that returns its progress: the end of a stream is -ENODATA. */
static int mix_moved(struct mix_op *op, int64_t rc)
{
    op->moved = rc > 0 ? (size_t)rc : 0;
    return rc == 0 ? -ENODATA : rc > 0 ? 0 : (int)rc;
}
static int mix_bytes_result(struct mix_op *op, int rc)
{
    return mix_moved(op, mix_result_of(op, op->f.net.result, rc));
}

/* Two pieces of different length. */
static void mix_cut(struct mix_op *op)
{
    size_t first = op->n / 3;
    op->piece[0] = (blitz_piece){.data = op->bytes, .bytes = first};
    op->piece[1] = (blitz_piece){.data = op->bytes + first, .bytes = op->n - first};
}

#define MIX_BYTES_VERB(verb_, text_, call_, init_)                    \
    static int verb_##_call(struct mix_op *op, blitz_deadline until)  \
    {                                                                 \
        return mix_moved(op, call_(op->of, op->bytes, op->n, until)); \
    }                                                                 \
    static blitz_future *verb_##_future(struct mix_op *op)            \
    {                                                                 \
        init_(&op->f.net, op->of, op->bytes, op->n);                  \
        return &op->f.net.future;                                     \
    }                                                                 \
    static const struct mix_verb verb_ = {                            \
        text_, verb_##_call, verb_##_future, mix_bytes_result, 0, 0};

MIX_BYTES_VERB(mix_tcp_read, "read", blitz_tcp_read, blitz_tcp_read_future_init)
MIX_BYTES_VERB(mix_tcp_peek, "peek", blitz_tcp_peek, blitz_tcp_peek_future_init)
MIX_BYTES_VERB(mix_tcp_write, "write", blitz_tcp_write, blitz_tcp_write_future_init)

#define MIX_PIECES_VERB(verb_, text_, call_, init_)                                               \
    static int verb_##_call(struct mix_op *op, blitz_deadline until)                              \
    {                                                                                             \
        mix_cut(op);                                                                              \
        return mix_moved(op, call_(op->of, op->piece, 2, until));                                 \
    }                                                                                             \
    static blitz_future *verb_##_future(struct mix_op *op)                                        \
    {                                                                                             \
        mix_cut(op);                                                                              \
        init_(&op->f.pieces, op->of, op->piece, 2);                                               \
        return &op->f.pieces.future;                                                              \
    }                                                                                             \
    static int verb_##_result(struct mix_op *op, int rc)                                          \
    {                                                                                             \
        return mix_moved(op, mix_result_of(op, op->f.pieces.result, rc));                         \
    }                                                                                             \
    static const struct mix_verb verb_ = {text_, verb_##_call, verb_##_future, verb_##_result, 0, \
                                          0};

MIX_PIECES_VERB(mix_tcp_readv, "readv", blitz_tcp_readv, blitz_tcp_readv_future_init)
MIX_PIECES_VERB(mix_tcp_writev, "writev", blitz_tcp_writev, blitz_tcp_writev_future_init)

static int mix_exact_result(struct mix_op *op, int rc)
{
    op->moved = op->polled > 0 ? op->f.net.done : 0;
    return mix_result_of(op, op->f.net.result, rc);
}
#define MIX_EXACT_VERB(verb_, text_, call_, init_)                   \
    static int verb_##_call(struct mix_op *op, blitz_deadline until) \
    {                                                                \
        return call_(op->of, op->bytes, op->n, &op->moved, until);   \
    }                                                                \
    static blitz_future *verb_##_future(struct mix_op *op)           \
    {                                                                \
        init_(&op->f.net, op->of, op->bytes, op->n);                 \
        return &op->f.net.future;                                    \
    }                                                                \
    static const struct mix_verb verb_ = {                           \
        text_, verb_##_call, verb_##_future, mix_exact_result, 0, 0};

MIX_EXACT_VERB(mix_tcp_read_exact, "read exact", blitz_tcp_read_exact,
               blitz_tcp_read_exact_future_init)
MIX_EXACT_VERB(mix_tcp_write_all, "write all", blitz_tcp_write_all, blitz_tcp_write_all_future_init)

/* op->count: BLITZ_READABLE or BLITZ_WRITABLE. Then a try. */
static int mix_tcp_wait_call(struct mix_op *op, blitz_deadline until)
{
    op->moved = 0;
    return blitz_tcp_wait(op->of, op->count, until);
}
static blitz_future *mix_tcp_wait_future(struct mix_op *op)
{
    op->moved = 0;
    blitz_tcp_wait_future_init(&op->f.net, op->of, op->count);
    return &op->f.net.future;
}
static const struct mix_verb mix_tcp_wait = {
    "tcp wait", mix_tcp_wait_call, mix_tcp_wait_future, mix_net_result, 0, 0};

/* A descriptor goes with the bytes, and comes with them if the reader asks for it. */
static int mix_send_fds_call(struct mix_op *op, blitz_deadline until)
{
    op->fd[0] = 2;
    return mix_moved(op, blitz_unix_send_fds(op->of, op->bytes, op->n, op->fd, 1, until));
}
static blitz_future *mix_send_fds_future(struct mix_op *op)
{
    op->fd[0] = 2;
    blitz_unix_send_fds_future_init(&op->f.message, op->of, op->bytes, op->n, op->fd, 1);
    return &op->f.message.future;
}
static int mix_send_fds_result(struct mix_op *op, int rc)
{
    return mix_moved(op, mix_result_of(op, op->f.message.result, rc));
}
static const struct mix_verb mix_send_fds = {
    "send fds", mix_send_fds_call, mix_send_fds_future, mix_send_fds_result, 0, 0};

static void mix_close_fds(struct mix_op *op, size_t count)
{
    for (size_t i = 0; i < count; i++)
        CHECK_EQ(close(op->fd[i]), 0);
}
static int mix_recv_fds_call(struct mix_op *op, blitz_deadline until)
{
    size_t count = BZ_ARRAY_LEN(op->fd);
    int rc = mix_moved(op, blitz_unix_recv_fds(op->of, op->bytes, op->n, op->fd, &count, until));
    mix_close_fds(op, rc == 0 ? count : 0);
    return rc;
}
static blitz_future *mix_recv_fds_future(struct mix_op *op)
{
    blitz_unix_recv_fds_future_init(&op->f.message, op->of, op->bytes, op->n, op->fd,
                                    BZ_ARRAY_LEN(op->fd));
    return &op->f.message.future;
}
static int mix_recv_fds_result(struct mix_op *op, int rc)
{
    rc = mix_moved(op, mix_result_of(op, op->f.message.result, rc));
    mix_close_fds(op, rc == 0 ? op->f.message.fd_count : 0);
    return rc;
}
static const struct mix_verb mix_recv_fds = {
    "recv fds", mix_recv_fds_call, mix_recv_fds_future, mix_recv_fds_result, 0, 0};

/* ---- the scene: p->scratch[0] is the pair ---- */

static unsigned char streams_byte(uint64_t pair, uint64_t at)
{
    return (unsigned char)(at * 131 + at / 256 * 7 + pair);
}

static int streams_open(void *arg)
{
    (void)arg;
    for (unsigned i = 0; i < streams.pairs; i++) {
        CHECK_EQ(blitz_unix_pair(streams.end[i]), 0);
        CHECK_EQ(blitz_tcp_set_buffers(streams.end[i][STREAMS_WRITE], 4096, 4096), 0);
    }
    return 0;
}

static void streams_make(struct mix_round *r)
{
    memset(&streams, 0, sizeof streams);
    streams.pairs = 1 + (unsigned)mix_die(&r->dice, STREAMS_PAIRS);
    CHECK_EQ(blitz_runtime_block_on(r->rt, streams_open, NULL), 0);
    for (unsigned i = 0; i < streams.pairs; i++)
        for (unsigned role = 0; role < 2; role++) {
            struct mix_party *p = mix_join_in(r, role, role == STREAMS_READ && i % 3 != 2);
            p->scratch[0] = i;
            p->left = 1 + (unsigned)mix_die(&r->dice, 30);
        }
    mix_say(r, " %u pairs", streams.pairs);
}

static bool streams_next(struct mix_party *p)
{
    static const struct mix_verb *const verbs[2][6] = {
        {&mix_tcp_write, &mix_tcp_writev, &mix_tcp_write_all, &mix_tcp_write_all, &mix_tcp_wait,
         &mix_send_fds},
        {&mix_tcp_read, &mix_tcp_readv, &mix_tcp_peek, &mix_tcp_read_exact, &mix_tcp_wait,
         &mix_recv_fds}};
    uint64_t pair = p->scratch[0];
    bool is_unbounded = p->role == STREAMS_READ && p->is_keeper;
    if (!is_unbounded && p->left-- == 0)
        return false;
    const struct mix_verb *verb = verbs[p->role][mix_die(&p->dice, 6)];
    p->op.n = 3 + mix_die(&p->dice, MIX_BYTES - 2);
    p->op.count = p->role == STREAMS_WRITE ? BLITZ_WRITABLE : BLITZ_READABLE;
    p->is_idle = verb == &mix_tcp_wait || verb == &mix_tcp_peek;
    if (p->role == STREAMS_WRITE)
        for (uint64_t i = 0; i < p->op.n; i++)
            p->op.bytes[i] = streams_byte(pair, streams.bytes[pair][STREAMS_WRITE] + i);
    mix_begin(p, verb, streams.end[pair][p->role]);
    return true;
}

/* After a wait: try. */
static int streams_try(struct mix_party *p)
{
    struct mix_op *op = &p->op;
    int rc = mix_moved(op, p->role == STREAMS_WRITE ? blitz_tcp_try_write(op->of, op->bytes, op->n)
                                                    : blitz_tcp_try_read(op->of, op->bytes, op->n));
    CHECK_NE(rc, -ETIMEDOUT);
    return rc == -EAGAIN ? -ETIMEDOUT : rc;
}

static void streams_done(struct mix_party *p, int rc)
{
    uint64_t pair = p->scratch[0], *at = &streams.bytes[pair][p->role];
    bool is_peek = p->op.verb == &mix_tcp_peek;
    if (p->op.verb == &mix_tcp_wait && rc == 0)
        rc = streams_try(p);
    /* The kernel says ECONNRESET instead of EPIPE if the reader closes during a write, with bytes that it has not read. */
    if (rc == -ECONNRESET && p->role == STREAMS_WRITE)
        rc = -EPIPE;
    if (rc != 0 && rc != -ETIMEDOUT && rc != -ECANCELED)
        CHECK_EQ(rc, p->role == STREAMS_WRITE ? -EPIPE : -ENODATA);
    CHECK_LE(p->op.moved, p->op.n);
    if (p->role == STREAMS_READ)
        for (uint64_t i = 0; i < p->op.moved; i++)
            CHECK_EQ(p->op.bytes[i], streams_byte(pair, *at + i));
    if (p->op.moved > 0 && !is_peek)
        mix_add(&p->round->progress, 1);
    *at += is_peek ? 0 : p->op.moved;
    p->is_over |= rc == -EPIPE || rc == -ENODATA;
    if (rc == -ENODATA)
        streams.has_ended[pair] = true;
}

static void streams_leave(struct mix_party *p)
{
    blitz_tcp_close(streams.end[p->scratch[0]][p->role]);
}

static void streams_check(struct mix_round *r)
{
    (void)r;
    for (unsigned i = 0; i < streams.pairs; i++) {
        CHECK_LE(streams.bytes[i][STREAMS_READ], streams.bytes[i][STREAMS_WRITE]);
        CHECK(streams.has_ended[i] || i % 3 == 2); /* else a keeper has left early */
        if (streams.has_ended[i])
            CHECK_EQ(streams.bytes[i][STREAMS_READ], streams.bytes[i][STREAMS_WRITE]);
    }
}

static const struct mix_scene mix_scene_streams = {
    "streams", 2, streams_make, streams_next, streams_done, streams_leave, streams_check};

#endif
