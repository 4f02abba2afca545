/*
 * attempt.c - try operations as non-blocking system calls.
 *
 * There is one function for each operation code, all of the same form. An interrupted call is
 * repeated: it had no effect. Socket calls use MSG_DONTWAIT, so that a blocking socket from other
 * code does no harm; pipes and similar descriptors must be non-blocking themselves.
 *
 * A broken pipe is an error without a signal (quiet.c, for calls without a flag for that).
 */
#include "base/error.h"
#include "io/attempt.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stddef.h>
#include <sys/sendfile.h>
#include <unistd.h>

#include "base/compiler.h"
#include "io/quiet.h"
#include "io/sys.h"

int (*bz_io_fault)(const char *call);

static int64_t outcome(int64_t result)
{
    return result >= 0 ? result : -bz_error_of(errno);
}

static int64_t do_poll(struct bz_op *op)
{
    struct pollfd p = {.fd = op->file->fd, .events = op->events};
    if (op->flags & BZ_POLL_HINT)
        return op->events;
    int n = bz_sys->poll(&p, 1, 0);
    return n < 0 ? outcome(n) : n == 0 ? -EAGAIN : p.revents;
}

static int64_t do_accept(struct bz_op *op)
{
    op->name.bytes = op->name.address != NULL ? (uint32_t)sizeof(struct bz_sockname) : 0;
    return outcome(bz_sys->accept4(op->file->fd, bz_sys_name(op->name.address),
                                   op->name.address != NULL ? &op->name.bytes : NULL,
                                   SOCK_CLOEXEC | SOCK_NONBLOCK));
}

/* Start the connect once; afterwards SO_ERROR has the result. An interrupted connect also
 * continues. */
static int64_t do_connect(struct bz_op *op)
{
    int fd = op->file->fd, err = 0;
    socklen_t bytes = sizeof err;
    if (!op->is_begun) {
        op->is_begun = 1;
        if (bz_sys->connect(fd, bz_sys_name(op->name.address), op->name.bytes) == 0)
            return 0;
        return errno == EINPROGRESS || errno == EINTR ? -EAGAIN : -errno;
    }
    struct pollfd p = {.fd = fd, .events = POLLOUT};
    if (bz_sys->poll(&p, 1, 0) == 0)
        return -EAGAIN;
    if (bz_sys->getsockopt(fd, SOL_SOCKET, SO_ERROR, &err, &bytes) != 0)
        return -errno;
    return -err;
}

static int64_t do_recv(struct bz_op *op)
{
    struct bz_call call = bz_call_of(op, BZ_OP_RECV);
    return bz_call_make(op->file->fd, &call);
}

static int64_t do_send(struct bz_op *op)
{
    struct bz_call call = bz_call_of(op, BZ_OP_SEND);
    return bz_call_make(op->file->fd, &call);
}

static int64_t do_recvmsg(struct bz_op *op)
{
    return outcome(bz_sys->recvmsg(op->file->fd, bz_sys_msg(op->msg.header),
                                   bz_sys_flags(op->flags) | MSG_DONTWAIT | MSG_CMSG_CLOEXEC));
}

static int64_t do_sendmsg(struct bz_op *op)
{
    return outcome(bz_sys->sendmsg(op->file->fd, bz_sys_msg(op->msg.header),
                                   bz_sys_flags(op->flags) | MSG_DONTWAIT | MSG_NOSIGNAL));
}

static int64_t do_recvmmsg(struct bz_op *op)
{
    return outcome(bz_sys->recvmmsg(op->file->fd, bz_sys_msgs(op->mmsg.headers), op->mmsg.count,
                                    bz_sys_flags(op->flags) | MSG_DONTWAIT | MSG_CMSG_CLOEXEC,
                                    NULL));
}

static int64_t do_sendmmsg(struct bz_op *op)
{
    return outcome(bz_sys->sendmmsg(op->file->fd, bz_sys_msgs(op->mmsg.headers), op->mmsg.count,
                                    bz_sys_flags(op->flags) | MSG_DONTWAIT | MSG_NOSIGNAL));
}

static int64_t do_sendfile(struct bz_op *op)
{
    struct bz_quiet quiet;
    bz_quiet_begin(&quiet);
    int64_t result = outcome(bz_sys->sendfile(op->file->fd, op->from.fd, NULL, op->from.bytes));
    bz_quiet_end(&quiet, result == (int64_t)op->from.bytes);
    return result;
}

static int64_t do_splice_in(struct bz_op *op)
{
    return bz_sys->splice == NULL
               ? -EINVAL
               : outcome(bz_sys->splice(op->file->fd, op->from.fd, op->from.bytes));
}

static int64_t do_splice_out(struct bz_op *op)
{
    struct bz_quiet quiet;
    if (bz_sys->splice == NULL)
        return -EINVAL;
    bz_quiet_begin(&quiet);
    int64_t result = outcome(bz_sys->splice(op->from.fd, op->file->fd, op->from.bytes));
    bz_quiet_end(&quiet, result == (int64_t)op->from.bytes);
    return result;
}

/* Operations that only rings make: elsewhere fs/transfer.c calls the system itself. */
static int64_t do_nothing(struct bz_op *op)
{
    (void)op;
    return -EOPNOTSUPP;
}

/* By code. */
static const struct {
    const char *name;
    int64_t (*make)(struct bz_op *op);
} calls[BZ_OP_CODES] = {
    [BZ_OP_POLL] = {"poll", do_poll},
    [BZ_OP_ACCEPT] = {"accept", do_accept},
    [BZ_OP_RECV] = {"recv", do_recv},
    [BZ_OP_RECVMSG] = {"recvmsg", do_recvmsg},
    [BZ_OP_CONNECT] = {"connect", do_connect},
    [BZ_OP_SEND] = {"send", do_send},
    [BZ_OP_SENDMSG] = {"sendmsg", do_sendmsg},
    [BZ_OP_RECVMMSG] = {"recvmmsg", do_recvmmsg},
    [BZ_OP_SENDMMSG] = {"sendmmsg", do_sendmmsg},
    [BZ_OP_SENDFILE] = {"sendfile", do_sendfile},
    [BZ_OP_SPLICE_IN] = {"splice", do_splice_in},
    [BZ_OP_SPLICE_OUT] = {"splice", do_splice_out},
    [BZ_OP_READV] = {"readv", do_nothing},
    [BZ_OP_WRITEV] = {"writev", do_nothing},
    [BZ_OP_FSYNC] = {"fsync", do_nothing},
};

int64_t bz_attempt(struct bz_op *op)
{
    int64_t result;
    do {
        int fault = bz_io_fault_of(calls[op->code].name);
        result = fault != 0 ? -fault : calls[op->code].make(op);
    } while (result == -EINTR);
    return result;
}

int64_t bz_attempt_if_ready(struct bz_op *op)
{
    struct pollfd p = {.fd = op->file->fd, .events = op->side == BZ_SIDE_IN ? POLLIN : POLLOUT};
    if (op->code == BZ_OP_POLL)
        p.events = op->events;
    return bz_sys->poll(&p, 1, 0) == 1 ? bz_attempt(op) : -EAGAIN;
}

void bz_let_block(blitz_fd fd)
{
    int flags = bz_sys->fcntl(fd, F_GETFL, 0);
    if (flags >= 0 && (flags & O_NONBLOCK))
        (void)bz_sys->fcntl(fd, F_SETFL, flags & ~O_NONBLOCK);
}

/* The bytes that a stream operation asked for; 0: a short result of it shows nothing. Neither a recv nor a send. */
static size_t asked_for(const struct bz_op *op)
{
    size_t bytes = 0;
    bool is_shown = (op->file->flags & BZ_FILE_STREAM) && !(op->flags & BZ_MSG_PEEK) &&
                    !(op->side == BZ_SIDE_IN && (op->file->flags & BZ_FILE_PASSES_FDS));
    if (!is_shown || (op->code != BZ_OP_RECVMSG && op->code != BZ_OP_SENDMSG))
        return 0;
    const struct bz_msg *header = op->msg.header;
    for (size_t i = 0; i < header->piece_count; i++)
        bytes += header->pieces[i].bytes;
    return bytes;
}

bool bz_attempt_left_more_in_full(const struct bz_op *op, int64_t result)
{
    return (size_t)result >= asked_for(op);
}
