/*
 * op.h - I/O operations on files, and their results.
 *
 * An *operation* is one call on a file. It is given to the backend of a proc's poll and completes
 * later with a result: bytes, a descriptor, 0, or a negative errno. The caller owns its memory, in
 * a frame or a future, and its buffers. Once it has completed or was revoked, the backend has no
 * reference to it.
 *
 * A *file* is a descriptor with operations: a socket, a pipe and so on. It is in a table whose
 * memory stays while the runtime exists, and has a generation: it distinguishes late events of a
 * closed file from those of the next user of the descriptor (bug class 14).
 *
 * The types are our own: pieces of memory, messages and addresses (msg.h). So the layers above include no header of a
 * system. A backend hands them to its system, which costs nothing where the layouts agree, as on Linux.
 *
 * Access: the owner may access the fields of an operation before it is submitted and after it has
 * completed. In between, the file's lock guards `request`, `state` and `result`, and the rest is
 * constant. A file's lock guards its fields, except those marked constant.
 */
#ifndef BZ_IO_OP_H
#define BZ_IO_OP_H

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "io/msg.h"
#include "os/lock.h"
#include "wait/waiter.h"

struct bz_file;
struct bz_op;
struct bz_poll;

enum bz_op_code {
    BZ_OP_POLL,    /* wait until readable or writable */
    BZ_OP_ACCEPT,  /* result: a non-blocking, close-on-exec descriptor */
    BZ_OP_RECV,    /* and peek: flags */
    BZ_OP_RECVMSG, /* addresses, descriptors, credentials */
    BZ_OP_CONNECT,
    BZ_OP_SEND,
    BZ_OP_SENDMSG,
    BZ_OP_RECVMMSG, /* several messages; result: their number */
    BZ_OP_SENDMMSG,
    BZ_OP_SENDFILE,   /* from a regular file, at its position, to a non-blocking socket */
    BZ_OP_SPLICE_IN,  /* from a non-blocking socket to an empty pipe */
    BZ_OP_SPLICE_OUT, /* from a pipe that holds this many bytes to such a socket */
    BZ_OP_READV, /* from here on: only by completion, on a descriptor of the disk (fs/transfer.c) */
    BZ_OP_WRITEV,
    BZ_OP_FSYNC, /* flags: 1: data only */
    BZ_OP_CODES
};

/* flags of a BZ_OP_POLL: trust the backend's event, make no call to check. */
enum { BZ_POLL_HINT = 1 };

/* The half of a file that an operation waits for. */
enum bz_side { BZ_SIDE_IN = 0, BZ_SIDE_OUT = 1, BZ_SIDES };

enum bz_op_state {
    BZ_OP_NEW,       /* owned by the caller */
    BZ_OP_WAITS,     /* in a list of its file, until the half is ready */
    BZ_OP_NOTIFIED,  /* notified: to be tried again */
    BZ_OP_IN_FLIGHT, /* in flight: the kernel has it and its buffers */
    BZ_OP_DONE       /* owned by the caller; result is set */
};

struct bz_op {
    struct bz_request request; /* its waiter is in file->half[].waiting, or in file->flying */
    struct bz_file *file;      /* constant; NULL: an operation without one */
    union {
        struct bz_poll *poll; /* while in flight: the poll whose backend has it */
        const void *next;     /* by readiness: data of the owner to prefetch, or NULL */
    };
    uint8_t code;         /* enum bz_op_code */
    uint8_t side;         /* enum bz_side */
    uint8_t state;        /* enum bz_op_state */
    uint8_t is_in;        /* counted among the file's users */
    uint8_t is_begun;     /* a connect in progress */
    uint8_t is_cancelled; /* a cancel was requested, by the owner or by a close of the file */
    uint8_t has_own;      /* a receive that does not use provided buffers */
    uint8_t
        is_seen; /* by completion: the owner knows that it is not in flight; the owner's alone */
    uint32_t generation; /* the expected generation of the file; 0: any. Constant */
    int flags;           /* of the call */
    int64_t result;
    union {
        struct {
            void *data;
            size_t bytes;
        } buffer; /* RECV, SEND */
        struct {
            struct bz_msg *header;
        } msg; /* RECVMSG, SENDMSG */
        struct {
            struct bz_msg_of_many *headers;
            unsigned count;
        } mmsg; /* RECVMMSG, SENDMMSG */
        struct {
            blitz_fd fd;
            size_t bytes;
        } from; /* SENDFILE; SPLICE_IN, SPLICE_OUT: the pipe */
        struct {
            struct bz_sockname *address;
            uint32_t bytes; /* size of the buffer, then length of the name */
        } name;             /* ACCEPT, CONNECT */
        struct {
            const blitz_piece *vector;
            int64_t at; /* -1: at the file position */
        } v;            /* READV, WRITEV; flags: the number of pieces */
        short events;   /* POLL: those of poll(2); so is the result */
    };
};

/* The known state of a file's half. The flags are written under the lock; without it they are
 * hints. */
struct bz_half {
    bz_atomic(bool) is_ready;  /* probably ready: worth a try */
    bz_atomic(bool) is_over;   /* always ready: hung up, in error, or not pollable */
    bz_atomic(uint32_t) overs; /* number of such edges */
    struct bz_list waiting;    /* waiting operations, first in first out */
};

enum bz_file_flags {
    BZ_FILE_STREAM = 1,    /* a short read has emptied it, a short write has filled it */
    BZ_FILE_FOREIGN = 2,   /* we do not close the descriptor */
    BZ_FILE_DISK = 4,      /* always ready, but may be slow */
    BZ_FILE_PASSES_FDS = 8 /* a stream that carries descriptors: a short read proves nothing */
};

/* The fields that each message uses come first, in one cache line. */
struct bz_file {
    BZ_OWN_LINE struct bz_lock lock;
    uint32_t index;                /* in the table; constant */
    uint32_t generation;           /* incremented by each close: file.c, I3 */
    blitz_fd fd;                   /* constant while it is in use; BLITZ_NO_FD: it is not */
    unsigned users;                /* operations in progress, plus one while it is open */
    uint8_t flags;                 /* enum bz_file_flags; constant while it is in use */
    uint8_t gathered;              /* the decision under which it was attached: proc/gather.h */
    bz_atomic(bool) is_closing;    /* no further operation may begin */
    bz_atomic(uint8_t) near_lines; /* a hint: from near_wait to the operation */
    struct bz_half half[BZ_SIDES];
    struct bz_poll *poll;           /* the poll it is attached to; NULL: none yet */
    struct bz_files *files;         /* constant */
    bz_atomic(uintptr_t) near_wait; /* prefetch hints of the last waiter; the memory may */
    bz_atomic(uintptr_t) near_task; /* already be freed */
    struct bz_list flying;          /* operations in flight */
    union {
        uintptr_t kept;            /* used by the backend while it is attached */
        struct bz_file *next_free; /* guarded by the table's lock, while it is not open */
    };
};
#if !defined(BZ_WATCH) && !defined(BZ_DEBUG) && !defined(_WIN32)
static_assert(sizeof(struct bz_file) <= 128, "an idle connection is small");
#endif

/* True if a system call will probably succeed. Without the lock: a hint. */
static inline bool bz_half_is_worth_a_try(struct bz_half *h)
{
    return bz_load_relaxed(&h->is_ready) ||
           bz_load_relaxed(&h->is_over); /* relaxed: a hint, or the lock */
}
static inline bool bz_half_is_over(struct bz_half *h)
{
    return bz_load_relaxed(&h->is_over); /* relaxed: likewise */
}
static inline bool bz_half_is_ready(struct bz_half *h)
{
    return bz_load_relaxed(&h->is_ready); /* relaxed: likewise */
}
static inline void bz_half_set_ready(struct bz_half *h, bool is_ready)
{
    bz_store_relaxed(&h->is_ready, is_ready); /* relaxed: under the lock */
}
static inline void bz_half_set_over(struct bz_half *h, bool is_over)
{
    bz_store_relaxed(&h->is_over, is_over); /* relaxed: under the lock */
}

/* True if no further operation may begin. Without the lock: a hint. */
static inline bool bz_file_is_closing(struct bz_file *f)
{
    return bz_load_relaxed(&f->is_closing); /* relaxed: a hint, or the lock */
}

/* The operation that has this node in a list of its file. */
static inline struct bz_op *bz_op_of(struct bz_list *in)
{
    return BZ_CONTAINER_OF(in, struct bz_op, request.waiter.in);
}

/* Properties of an operation code: its side, and whether it can be tried without waiting. */
static inline enum bz_side bz_op_side(enum bz_op_code code)
{
    switch (code) {
    case BZ_OP_CONNECT:
    case BZ_OP_SEND:
    case BZ_OP_SENDMSG:
    case BZ_OP_SENDMMSG:
    case BZ_OP_SENDFILE:
    case BZ_OP_SPLICE_OUT:
    case BZ_OP_WRITEV:
        return BZ_SIDE_OUT;
    default:
        return BZ_SIDE_IN;
    }
}

/* Initialise an operation but for its waiter, which a blocking call initialises when it must wait. */
static BZ_ALWAYS_INLINE void bz_op_init_call(struct bz_op *op, struct bz_file *file,
                                             enum bz_op_code code)
{
    op->file = file;
    op->generation = 0;
    op->code = (uint8_t)code;
    op->side = (uint8_t)bz_op_side(code);
    op->state = BZ_OP_NEW;
    op->is_in = 0;
    op->is_begun = 0;
    op->is_cancelled = 0;
    op->has_own = 0;
    op->is_seen = 0;
    op->poll = NULL;
    op->flags = 0;
    op->result = 0;
}

/* Initialise an operation; the caller then fills in the arguments of its kind. */
static inline void bz_op_init(struct bz_op *op, struct bz_file *file, enum bz_op_code code)
{
    bz_waiter_init(&op->request.waiter, NULL, 0); /* a wait sets its own */
    bz_op_init_call(op, file, code);
}

#endif
