/*
 * attempt.h - try an operation as a non-blocking system call.
 */
#ifndef BZ_IO_ATTEMPT_H
#define BZ_IO_ATTEMPT_H

#include "base/error.h"
#include "io/op.h"
#include "io/sys.h"

/*
 * Make the call. Any thread; no lock is held.
 * Returns: bytes, a descriptor or 0; -EAGAIN (it would block); any other -errno.
 */
int64_t bz_attempt(struct bz_op *op);

/* The same for a blocking descriptor: only if it is ready. */
int64_t bz_attempt_if_ready(struct bz_op *op);
/* Make the descriptor blocking. */
void bz_let_block(blitz_fd fd);

/* For tests: called with the name of each call before it. If it returns an errno, the call is not
 * made and fails with it. NULL: none. */
extern BZ_HIDDEN int (*bz_io_fault)(const char *call);

/* The same hook for the calls of a backend. */
static inline int bz_io_fault_of(const char *call)
{
    return __builtin_expect(bz_io_fault != NULL, 0) ? bz_io_fault(call) : 0;
}

/* One of the two hot calls: BZ_OP_RECV or BZ_OP_SEND, if possible a constant. */
struct bz_call {
    enum bz_op_code code;
    int flags;
    void *data;
    size_t bytes;
};

/* True if no test has replaced the calls. */
static BZ_ALWAYS_INLINE bool bz_call_is_usual(void)
{
    return BZ_LIKELY(bz_io_fault == NULL) && bz_sys_is_usual();
}

/* Make it, if bz_call_is_usual(). Returns bytes, or a system's error as a negative number: bz_call_outcome(). */
static BZ_ALWAYS_INLINE int64_t bz_call_make_usual(blitz_fd fd, const struct bz_call *c)
{
#if BZ_HAS_DIRECT
    return c->code == BZ_OP_RECV
               ? bz_direct_call(SYS_recvfrom, fd, c->data, c->bytes,
                                bz_sys_flags(c->flags) | MSG_DONTWAIT)
               : bz_direct_call(SYS_sendto, fd, c->data, c->bytes,
                                bz_sys_flags(c->flags) | MSG_DONTWAIT | MSG_NOSIGNAL);
#else
    return c->code == BZ_OP_RECV
               ? bz_sys_recv(fd, c->data, c->bytes, bz_sys_flags(c->flags) | MSG_DONTWAIT)
               : bz_sys_send(fd, c->data, c->bytes,
                             bz_sys_flags(c->flags) | MSG_DONTWAIT | MSG_NOSIGNAL);
#endif
}

static BZ_ALWAYS_INLINE int64_t bz_call_outcome(int64_t n)
{
    return BZ_LIKELY(n >= 0) ? n : -bz_error_of((int)-n);
}

/* Make it. Returns as bz_attempt, and -EINTR. */
static BZ_ALWAYS_INLINE int64_t bz_call_make(blitz_fd fd, const struct bz_call *c)
{
    int64_t n = c->code == BZ_OP_RECV
                    ? bz_sys_recv(fd, c->data, c->bytes, bz_sys_flags(c->flags) | MSG_DONTWAIT)
                    : bz_sys_send(fd, c->data, c->bytes,
                                  bz_sys_flags(c->flags) | MSG_DONTWAIT | MSG_NOSIGNAL);
    return bz_call_outcome(n);
}

/* True if, after n bytes, the next call may succeed without waiting. */
static BZ_ALWAYS_INLINE bool bz_call_left_more(const struct bz_file *f, const struct bz_call *c,
                                               int64_t n)
{
    unsigned asked = BZ_FILE_STREAM;
    if (c->code == BZ_OP_SEND && (size_t)n >= c->bytes)
        return true; /* the most frequent answer first */
    if (c->code == BZ_OP_RECV)
        asked |= BZ_FILE_PASSES_FDS;
    bool is_shown = (f->flags & asked) == BZ_FILE_STREAM && !(c->flags & BZ_MSG_PEEK);
    return !is_shown || (size_t)n >= c->bytes;
}

static BZ_ALWAYS_INLINE struct bz_call bz_call_of(const struct bz_op *op, enum bz_op_code code)
{
    return (struct bz_call){code, op->flags, op->buffer.data, op->buffer.bytes};
}

/* True if, after this result, the next call may succeed without waiting. `code` is op->code, perhaps a constant. */
bool bz_attempt_left_more_in_full(const struct bz_op *op, int64_t result);
static BZ_ALWAYS_INLINE bool bz_attempt_left_more(const struct bz_op *op, enum bz_op_code code,
                                                  int64_t result)
{
    struct bz_call call = bz_call_of(op, code);
    if (result <= 0)
        return true;
    if (code == BZ_OP_RECV || code == BZ_OP_SEND)
        return bz_call_left_more(op->file, &call, result);
    return bz_attempt_left_more_in_full(op, result);
}

/* bz_attempt; `code` is op->code, perhaps a constant: a receive or a send is then made here. */
static BZ_ALWAYS_INLINE int64_t bz_attempt_as(struct bz_op *op, enum bz_op_code code)
{
    if ((code != BZ_OP_RECV && code != BZ_OP_SEND) || BZ_UNLIKELY(bz_io_fault != NULL))
        return bz_attempt(op);
    struct bz_call call = bz_call_of(op, code);
    int64_t n = bz_call_make(op->file->fd, &call);
    return BZ_LIKELY(n != -EINTR) ? n : bz_attempt(op);
}

#endif
