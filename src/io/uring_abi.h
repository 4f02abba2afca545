/*
 * uring_abi.h - the part of the kernel's io_uring interface that the backend uses.
 *
 * Defined here because system headers may be older than the kernel, and kernel features are
 * detected at run time anyway (uring.c). The numbers are kernel ABI and do not change.
 */
#ifndef BZ_IO_URING_ABI_H
#define BZ_IO_URING_ABI_H

#include <stdint.h>

enum { BZ_SYS_URING_SETUP = 425, BZ_SYS_URING_ENTER = 426, BZ_SYS_URING_REGISTER = 427 };

enum {
    BZ_URING_OP_NOP = 0,
    BZ_URING_OP_READV = 1,
    BZ_URING_OP_WRITEV = 2,
    BZ_URING_OP_FSYNC = 3,
    BZ_URING_OP_POLL_ADD = 6,
    BZ_URING_OP_SENDMSG = 9,
    BZ_URING_OP_RECVMSG = 10,
    BZ_URING_OP_ACCEPT = 13,
    BZ_URING_OP_ASYNC_CANCEL = 14,
    BZ_URING_OP_CONNECT = 16,
    BZ_URING_OP_SEND = 26,
    BZ_URING_OP_RECV = 27,
    BZ_URING_OP_LAST = 64
};

enum {
    BZ_URING_ENTER_GETEVENTS = 1,
    BZ_URING_ENTER_EXT_ARG = 8,
    BZ_URING_FEAT_NODROP = 2,     /* completions beyond the queue are kept: 5.5 */
    BZ_URING_FEAT_FAST_POLL = 32, /* sockets wait without a kernel thread: 5.7 */
    BZ_URING_FEAT_EXT_ARG = 256,  /* a wait with a deadline: 5.11 */
    BZ_URING_SETUP_CQSIZE = 8,
    BZ_URING_SETUP_COOP_TASKRUN = 256, /* no interrupt for a completion: 5.19 */
    BZ_URING_SETUP_TASKRUN_FLAG = 512, /* a flag instead: 5.19 */
    BZ_URING_REGISTER_PROBE = 8,
    BZ_URING_REGISTER_PBUF_RING = 22, /* buffers to choose from: 5.19 */
    BZ_URING_PROBE_HAS = 1,
    BZ_URING_SQ_OVERFLOW = 2, /* a flag of the submission ring: completions overflowed */
    BZ_URING_SQ_TASKRUN = 4,  /* likewise: an enter will find completions */
    BZ_URING_SQE_BUFFER_SELECT = 32,
    BZ_URING_CQE_BUFFER = 1, /* a provided buffer was used; its id is in the upper half */
    BZ_URING_CQE_BUFFER_SHIFT = 16,
    BZ_URING_CQE_MORE = 2,        /* a poll that goes on: 5.13 */
    BZ_URING_CQE_NONEMPTY = 4,    /* there is more to receive: 5.19 */
    BZ_URING_RECV_POLL_FIRST = 1, /* in ioprio: expect to wait: 5.19 */
    BZ_URING_POLL_MULTI = 1,      /* in len: a poll that goes on: 5.13 */
    BZ_URING_FSYNC_DATA = 1
};

#define BZ_URING_AT_SQ UINT64_C(0)
#define BZ_URING_AT_SQES UINT64_C(0x10000000)

struct bz_uring_sq_offsets {
    uint32_t head, tail, mask, entries, flags, dropped, array, reserved;
    uint64_t user;
};
struct bz_uring_cq_offsets {
    uint32_t head, tail, mask, entries, overflow, cqes, flags, reserved;
    uint64_t user;
};
struct bz_uring_params {
    uint32_t sq_entries, cq_entries, flags, thread_cpu, thread_idle, features, wq_fd, reserved[3];
    struct bz_uring_sq_offsets sq;
    struct bz_uring_cq_offsets cq;
};

/* A submission: 64 bytes. The names are the meanings for most operations. */
struct bz_uring_sqe {
    uint8_t opcode, flags;
    uint16_t ioprio;
    int32_t fd;
    uint64_t off;  /* an offset, or an address */
    uint64_t addr; /* an address */
    uint32_t len;
    uint32_t op_flags;
    uint64_t user_data;
    uint16_t buf_index, personality;
    int32_t file_index;
    uint64_t more[2];
};

struct bz_uring_cqe {
    uint64_t user_data;
    int32_t res;
    uint32_t flags;
};

/* A provided buffer. They form a ring, whose tail is in the first one. */
struct bz_uring_buf {
    uint64_t addr;
    uint32_t bytes;
    uint16_t id, tail;
};
struct bz_uring_buf_reg {
    uint64_t addr;
    uint32_t entries;
    uint16_t group, flags;
    uint64_t reserved[3];
};

struct bz_uring_timespec {
    int64_t s;
    long long ns;
};
struct bz_uring_wait_arg {
    uint64_t mask;
    uint32_t mask_bytes, reserved;
    uint64_t timespec;
};

struct bz_uring_probe_op {
    uint8_t op, reserved;
    uint16_t flags;
    uint32_t reserved2;
};
struct bz_uring_probe {
    uint8_t last_op, ops_len;
    uint16_t reserved;
    uint32_t reserved2[3];
    struct bz_uring_probe_op ops[BZ_URING_OP_LAST];
};

#endif
