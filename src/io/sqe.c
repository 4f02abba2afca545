/*
 * sqe.c - encode an operation as an io_uring submission.
 *
 * One function for each kind of arguments, and a flat switch. Operations that rings do not have
 * (several messages at once) are polled for; when the file is ready, the thread that processes the
 * completion makes the call.
 */
#include "io/sqe.h"

#include <poll.h>
#include <sys/socket.h>

#include "io/sys.h"

static short events_of(const struct bz_op *op)
{
    return op->code == BZ_OP_POLL ? op->events : op->side == BZ_SIDE_IN ? POLLIN : POLLOUT;
}

void bz_sqe_poll(struct bz_uring_sqe *sqe, const struct bz_op *op)
{
    sqe->opcode = BZ_URING_OP_POLL_ADD;
    sqe->fd = op->file->fd;
    sqe->op_flags = (uint32_t)(unsigned short)events_of(op);
}

static void fill_buffer(struct bz_uring_sqe *sqe, const struct bz_op *op, uint8_t opcode, int flags)
{
    sqe->opcode = opcode;
    sqe->addr = (uint64_t)(uintptr_t)op->buffer.data;
    sqe->len = op->buffer.bytes < INT32_MAX ? (uint32_t)op->buffer.bytes : INT32_MAX;
    sqe->op_flags = (uint32_t)(bz_sys_flags(op->flags) | flags);
}

static void fill_msg(struct bz_uring_sqe *sqe, const struct bz_op *op, uint8_t opcode, int flags)
{
    sqe->opcode = opcode;
    sqe->addr = (uint64_t)(uintptr_t)op->msg.header;
    sqe->len = 1;
    sqe->op_flags = (uint32_t)(bz_sys_flags(op->flags) | flags);
}

/*
 * The flags of a send. A datagram is not left in the ring to wait for room. Linux 6.18 sends an
 * empty datagram then: a Unix datagram socket takes the bytes before it finds the queue of the receiver full,
 * and the second try of the ring finds none. With MSG_DONTWAIT the send ends with -EAGAIN. The backend then polls
 * the file and submits the send again.
 */
static int send_flags(const struct bz_op *op)
{
    return MSG_NOSIGNAL | ((op->file->flags & BZ_FILE_STREAM) ? 0 : MSG_DONTWAIT);
}

static void fill_accept(struct bz_uring_sqe *sqe, struct bz_op *op)
{
    op->name.bytes = (uint32_t)sizeof(struct bz_sockname);
    sqe->opcode = BZ_URING_OP_ACCEPT;
    sqe->addr = (uint64_t)(uintptr_t)op->name.address;
    sqe->off = op->name.address != NULL ? (uint64_t)(uintptr_t)&op->name.bytes : 0;
    sqe->op_flags = SOCK_CLOEXEC;
}

static void fill_connect(struct bz_uring_sqe *sqe, const struct bz_op *op)
{
    sqe->opcode = BZ_URING_OP_CONNECT;
    sqe->addr = (uint64_t)(uintptr_t)op->name.address;
    sqe->off = op->name.bytes;
}

static void fill_vector(struct bz_uring_sqe *sqe, const struct bz_op *op, uint8_t opcode)
{
    sqe->opcode = opcode;
    sqe->addr = (uint64_t)(uintptr_t)op->v.vector;
    sqe->len = (uint32_t)op->flags;
    sqe->off = (uint64_t)op->v.at; /* -1: at the file position */
}

static void fill_fsync(struct bz_uring_sqe *sqe, const struct bz_op *op)
{
    sqe->opcode = BZ_URING_OP_FSYNC;
    sqe->op_flags = op->flags != 0 ? BZ_URING_FSYNC_DATA : 0;
}

bool bz_sqe_fill(struct bz_uring_sqe *sqe, struct bz_op *op)
{
    sqe->fd = op->file->fd;
    switch ((enum bz_op_code)op->code) {
    case BZ_OP_ACCEPT:
        fill_accept(sqe, op);
        return true;
    case BZ_OP_RECV:
        fill_buffer(sqe, op, BZ_URING_OP_RECV, 0);
        return true;
    case BZ_OP_SEND:
        fill_buffer(sqe, op, BZ_URING_OP_SEND, send_flags(op));
        return true;
    case BZ_OP_RECVMSG:
        fill_msg(sqe, op, BZ_URING_OP_RECVMSG, MSG_CMSG_CLOEXEC);
        return true;
    case BZ_OP_SENDMSG:
        fill_msg(sqe, op, BZ_URING_OP_SENDMSG, send_flags(op));
        return true;
    case BZ_OP_CONNECT:
        fill_connect(sqe, op);
        return true;
    case BZ_OP_READV:
        fill_vector(sqe, op, BZ_URING_OP_READV);
        return true;
    case BZ_OP_WRITEV:
        fill_vector(sqe, op, BZ_URING_OP_WRITEV);
        return true;
    case BZ_OP_FSYNC:
        fill_fsync(sqe, op);
        return true;
    default: /* POLL, and operations that rings do not have */
        bz_sqe_poll(sqe, op);
        return op->code == BZ_OP_POLL;
    }
}
