/*
 * op.h - operations on files: what is asked for, and how it went.
 *
 * An *operation* is one call on a file, handed to the keeper of a proc's poll, and complete some
 * time later, with a result: bytes, a descriptor, 0, or a negative errno. The memory is the caller's,
 * a frame or a future; so are the buffers. Once it is complete, or was revoked, the keeper has
 * nothing of it any more.
 *
 * A *file* is a descriptor that operations are done on: a socket, a pipe, whatever else. It lives in
 * a table that never gives its memory back while the runtime lives, and has a generation: what a keeper
 * hears late of a file that was closed, or of a descriptor that is another's by now, is told apart
 * by it (bug class 14).
 *
 * The words are POSIX's, not a kernel's: iovec, msghdr, sockaddr. A keeper for a system without them
 * translates.
 *
 * Who may touch what: the fields of an operation are its owner's until it is handed in and once it is
 * complete; in between `waiter`, `state` and `result` are guarded by the file's lock and the rest is
 * constant. A file's fields are guarded by its lock, but for those said to be constant.
 */
#ifndef BZ_IO_OP_H
#define BZ_IO_OP_H

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "base/list.h"
#include "os/lock.h"
#include "wait/waiter.h"

struct bz_file;
struct bz_op;
struct bz_poll;

enum bz_op_code {
    BZ_OP_POLL,    /* is it readable, writable? */
    BZ_OP_ACCEPT,  /* result: a descriptor, not inherited, that does not block */
    BZ_OP_RECV,    /* and peek: flags */
    BZ_OP_RECVMSG, /* addresses, descriptors, credentials */
    BZ_OP_READV,   /* at an offset, or where the file stands: -1 */
    BZ_OP_CONNECT,
    BZ_OP_SEND,
    BZ_OP_SENDMSG,
    BZ_OP_WRITEV,
    BZ_OP_RECVMMSG, /* several messages at once; result: how many */
    BZ_OP_SENDMMSG,
    BZ_OP_SENDFILE,  /* out of a regular file, where it stands, into a socket that does not block */
    BZ_OP_SPLICE_IN, /* out of a socket that does not block into a pipe that is empty */
    BZ_OP_SPLICE_OUT, /* out of a pipe that holds so much into such a socket */
    BZ_OP_FSYNC,      /* from here on: never ready, never not; they take the time they take */
    BZ_OP_OPENAT,
    BZ_OP_STATX,
    BZ_OP_CLOSE,
    BZ_OP_CODES
};

/* flags of a BZ_OP_POLL: take the keeper's word for it, make no call to see. */
enum { BZ_POLL_HINT = 1 };

/* Which half of a file an operation waits for. */
enum bz_side { BZ_SIDE_IN = 0, BZ_SIDE_OUT = 1, BZ_SIDES };

enum bz_op_state {
    BZ_OP_NEW,   /* its owner's */
    BZ_OP_WAITS, /* in a list of its file: until it is ready */
    BZ_OP_TOLD,  /* it is: to be tried again */
    BZ_OP_FLIES, /* the kernel has it, and its buffers */
    BZ_OP_DONE   /* its owner's; result says how it went */
};

struct bz_op {
    struct bz_waiter waiter; /* its owner; in file->half[].waiting, or in file->flying */
    struct bz_file *file;    /* constant; NULL: an operation without one */
    union {
        struct bz_poll *poll; /* while it flies: whose keeper has it */
        const void *next;     /* by readiness: what its owner looks at when it is done, or NULL */
    };
    uint8_t code;        /* enum bz_op_code */
    uint8_t side;        /* enum bz_side */
    uint8_t state;       /* enum bz_op_state */
    uint8_t is_in;       /* counted among the file's users */
    uint8_t is_begun;    /* a connect that is under way */
    uint8_t is_asked;    /* to end: the owner, or whoever closed the file, wants it back */
    uint8_t has_own;     /* a receive that does without the keeper's buffers */
    uint8_t is_seen;     /* its future has said ready; the owner's alone */
    uint32_t generation; /* the file's use that is meant; 0: whatever it is. Constant */
    int flags;           /* of the call */
    int64_t result;
    union {
        struct {
            void *data;
            size_t bytes;
        } buffer; /* RECV, SEND */
        struct {
            const struct iovec *vector;
            int count;
            int64_t at;
        } v; /* READV, WRITEV */
        struct {
            struct msghdr *header;
        } msg; /* RECVMSG, SENDMSG */
        struct {
            struct mmsghdr *headers;
            unsigned count;
        } mmsg; /* RECVMMSG, SENDMMSG */
        struct {
            blitz_fd fd;
            size_t bytes;
        } from; /* SENDFILE; SPLICE_IN, SPLICE_OUT: the pipe */
        struct {
            struct sockaddr *address;
            socklen_t bytes; /* room, then how long it is */
        } name;              /* ACCEPT, CONNECT */
        struct {
            const char *path;
            void *out;
            int at, mode;
            unsigned mask;
        } path;       /* OPENAT, STATX */
        short events; /* POLL: those of poll(2); so is the result */
    };
};

/* What is known of a file's half. The flags are written under the lock; read without, they are hints. */
struct bz_half {
    bz_atomic(bool) is_ready; /* as far as is known: worth a try */
    bz_atomic(bool) is_over;  /* for ever: hung up, in error, or not a thing that waits */
    uint32_t overs;           /* edges that said so; not a hint */
    struct bz_list waiting;   /* operations, first come first served */
};

enum bz_file_flags {
    BZ_FILE_STREAM = 1,  /* a read that is short has emptied it, a write that is short filled it */
    BZ_FILE_FOREIGN = 2, /* the descriptor is not ours to close */
    BZ_FILE_DISK = 4,    /* always ready, and slow all the same */
    BZ_FILE_CARGO = 8    /* a stream with descriptors beside its bytes: a short read says nothing */
};

/* What each message touches comes first, a line of it. */
struct bz_file {
    BZ_OWN_LINE struct bz_lock lock;
    uint32_t index;                /* in the table; constant */
    uint32_t generation;           /* counts its uses */
    blitz_fd fd;                   /* constant while it is in use; BLITZ_NO_FD: it is not */
    unsigned users;                /* operations under way, and one for whoever has it open */
    uint8_t flags;                 /* enum bz_file_flags; constant while it is in use */
    uint8_t gathered;              /* the decision under which it was attached: sched/gather.h */
    bool is_closing;               /* no operation begins any more */
    bz_atomic(uint8_t) near_lines; /* a hint: from near_wait to the operation */
    struct bz_half half[BZ_SIDES];
    struct bz_poll *poll;           /* whose keeper knows it; NULL: none yet */
    struct bz_files *files;         /* constant */
    bz_atomic(uintptr_t) near_wait; /* hints for who will tell: addresses to fetch, perhaps of */
    bz_atomic(uintptr_t) near_task; /* memory that is gone. Of whoever came last to wait */
    struct bz_list flying;          /* operations the kernel has */
    union {
        uintptr_t kept;            /* the keeper's own, while it is attached */
        struct bz_file *next_free; /* guarded by the table's lock, while it is not open */
    };
};
#if !defined(BZ_WATCH) && !defined(BZ_DEBUG)
static_assert(sizeof(struct bz_file) <= 128, "an idle connection is small");
#endif

/* A system call is worth its price, as far as is known. Without the lock: a hint. */
static inline bool bz_half_is_worth_a_try(struct bz_half *h)
{
    return bz_load_relaxed(&h->is_ready) ||
           bz_load_relaxed(&h->is_over); /* relaxed: a hint, or the lock */
}
static inline void bz_half_set_ready(struct bz_half *h, bool is_ready)
{
    bz_store_relaxed(&h->is_ready, is_ready); /* relaxed: under the lock */
}
static inline void bz_half_set_over(struct bz_half *h, bool is_over)
{
    bz_store_relaxed(&h->is_over, is_over); /* relaxed: under the lock */
}

/* The operation that has this node in a list of its file. */
static inline struct bz_op *bz_op_of(struct bz_list *in)
{
    return BZ_CONTAINER_OF(in, struct bz_op, waiter.in);
}

/* Who wants what of a code: which side, and whether it can be tried without waiting at all. */
static inline enum bz_side bz_op_side(enum bz_op_code code)
{
    switch (code) {
    case BZ_OP_CONNECT:
    case BZ_OP_SEND:
    case BZ_OP_SENDMSG:
    case BZ_OP_WRITEV:
    case BZ_OP_SENDMMSG:
    case BZ_OP_SENDFILE:
    case BZ_OP_SPLICE_OUT:
        return BZ_SIDE_OUT;
    default:
        return BZ_SIDE_IN;
    }
}

/* A new operation; the arguments of its kind are then the caller's to fill in. */
static inline void bz_op_init(struct bz_op *op, struct bz_file *file, enum bz_op_code code)
{
    bz_waiter_init(&op->waiter, NULL, 0); /* whoever waits sets its own */
    op->file = file;
    op->generation = 0;
    op->code = (uint8_t)code;
    op->side = (uint8_t)bz_op_side(code);
    op->state = BZ_OP_NEW;
    op->is_in = 0;
    op->is_begun = 0;
    op->is_asked = 0;
    op->has_own = 0;
    op->is_seen = 0;
    op->poll = NULL;
    op->flags = 0;
    op->result = 0;
}

#endif
