/*
 * message.c - futures of calls with a message: several buffers, addresses, descriptors.
 *
 * udp.c and unix.c set up the messages, for the blocking calls as well. The message is in the future, with the
 * operation. So nothing is allocated, and a completion backend may use it until the operation has ended.
 * The received address or descriptors are unpacked when the operation has ended, also after a cancel: the
 * caller owns received descriptors in any case.
 *
 * Calls with several buffers need only the header; their future ends behind it.
 */
#include <assert.h>
#include <errno.h>

#include "blitz/tcp.h"
#include "blitz/unix.h"
#include "io/sockaddr.h"
#include "net/net_future.h"

static_assert(offsetof(struct bz_message_future, message.piece) <= sizeof(blitz_pieces_future),
              "room");
static_assert(sizeof(struct bz_message_future) <= sizeof(blitz_message_future), "room");
static_assert(offsetof(struct bz_net_future, result) == offsetof(blitz_pieces_future, result),
              "the same");
static_assert(offsetof(struct bz_net_future, result) == offsetof(blitz_message_future, result),
              "the same");
static_assert(offsetof(struct bz_net_future, done) == offsetof(blitz_message_future, fd_count),
              "the same");

static struct bz_message_future *message_of(struct bz_net_future *f)
{
    return BZ_CONTAINER_OF(f, struct bz_message_future, net);
}

static struct bz_socket *stream(blitz_tcp *t)
{
    return t != NULL ? &t->s : NULL;
}

static struct bz_socket *datagrams(blitz_udp *u)
{
    return u != NULL ? &u->s : NULL;
}

/* Submit the filled-in header. */
static void begin(struct bz_message_future *m, enum bz_op_code code, int flags)
{
    bz_net_future_begin(&m->net, code);
    bz_net_future_class(&m->net);
    m->net.in.io.op.msg.header = &m->message.header;
    m->net.in.io.op.flags = flags;
}

/* Start a message that was set up, or end with the error of its arguments. */
static void begin_or_end(struct bz_message_future *m, int err, enum bz_op_code code, int flags)
{
    if (err != 0)
        (void)bz_net_future_over(&m->net, err);
    else
        begin(m, code, flags);
}

/* ---- pieces ---- */

static void pieces_init(blitz_pieces_future *out, blitz_tcp *t, enum bz_op_code code,
                        const blitz_piece *pieces, size_t count)
{
    struct bz_message_future *m = message_of(bz_net_future_init(out, BZ_CALL_PLAIN, stream(t)));
    int err = bz_stream_pieces(stream(t), code, pieces, count, &m->message.header);
    if (err == 1)
        begin(m, code, 0);
    else
        (void)bz_net_future_over(&m->net, err);
}

void blitz_tcp_readv_future_init(blitz_pieces_future *f, blitz_tcp *t, const blitz_piece *pieces,
                                 size_t count)
{
    pieces_init(f, t, BZ_OP_RECVMSG, pieces, count);
}

void blitz_tcp_writev_future_init(blitz_pieces_future *f, blitz_tcp *t, const blitz_piece *pieces,
                                  size_t count)
{
    pieces_init(f, t, BZ_OP_SENDMSG, pieces, count);
}

/* ---- addresses ---- */

static void recv_from_init(blitz_message_future *f, blitz_udp *u, void *data, size_t bytes,
                           blitz_addr *from, int flags)
{
    struct bz_message_future *m = message_of(bz_net_future_init(f, BZ_CALL_FROM, datagrams(u)));
    int err = bz_message_to_recv_from(&m->message, datagrams(u), data, bytes);
    m->from = from;
    begin_or_end(m, err, BZ_OP_RECVMSG, BZ_MSG_TRUNC | flags);
}

void blitz_udp_recv_from_future_init(blitz_message_future *f, blitz_udp *u, void *data,
                                     size_t bytes, blitz_addr *from)
{
    recv_from_init(f, u, data, bytes, from, 0);
}

void blitz_udp_peek_from_future_init(blitz_message_future *f, blitz_udp *u, void *data,
                                     size_t bytes, blitz_addr *from)
{
    recv_from_init(f, u, data, bytes, from, BZ_MSG_PEEK);
}

void blitz_udp_send_to_future_init(blitz_message_future *f, blitz_udp *u, const void *data,
                                   size_t bytes, const blitz_addr *to)
{
    struct bz_message_future *m = message_of(bz_net_future_init(f, BZ_CALL_PLAIN, datagrams(u)));
    begin_or_end(m, bz_message_to_send_to(&m->message, datagrams(u), data, bytes, to),
                 BZ_OP_SENDMSG, 0);
}

/* ---- descriptors ---- */

void blitz_unix_send_fds_future_init(blitz_message_future *f, blitz_tcp *t, const void *data,
                                     size_t bytes, const blitz_fd *fds, size_t fd_count)
{
    struct bz_message_future *m = message_of(bz_net_future_init(f, BZ_CALL_PLAIN, stream(t)));
    begin_or_end(m, bz_message_to_send_fds(&m->message, stream(t), data, bytes, fds, fd_count),
                 BZ_OP_SENDMSG, 0);
}

void blitz_unix_recv_fds_future_init(blitz_message_future *f, blitz_tcp *t, void *data,
                                     size_t bytes, blitz_fd *fds, size_t room)
{
    struct bz_message_future *m = message_of(bz_net_future_init(f, BZ_CALL_FDS, stream(t)));
    int err = bz_message_to_recv_fds(&m->message, stream(t), data, bytes, fds, room);
    m->fds = fds;
    m->room = room;
    begin_or_end(m, err, BZ_OP_RECVMSG, 0);
}

/* ---- received addresses and descriptors ---- */

int64_t bz_message_came(struct bz_net_future *f, int64_t result)
{
    struct bz_message_future *m = message_of(f);
    if (result < 0)
        return result;
    if (f->call == BZ_CALL_FDS)
        f->done = bz_rights_detach(&m->message.header, m->fds, m->room);
    else if (m->from != NULL)
        bz_sockaddr_to(&m->message.beside.name, m->message.header.name_bytes, m->from);
    return result;
}
