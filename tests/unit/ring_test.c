/* io/ring.h and io/sqe.h beside a kernel that does what the case says: short counts, interruptions, refusals. */
#include "harness.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

#include "io/ring.h"
#include "io/sqe.h"
#include "io/sys.h"
#include "io/sys_rings.h"

/* ---- a kernel ---- */

enum { ENTRIES = 8 };

static struct kernel {
    struct {
        uint32_t sq_head, sq_tail, sq_mask, sq_flags, sq_array[ENTRIES];
        uint32_t cq_head, cq_tail, cq_mask;
        struct bz_uring_cqe cqe[2 * ENTRIES];
    } ring;
    struct bz_uring_sqe sqe[ENTRIES];
    int answers
        [8]; /* of the next enters: > 0 takes so many at most, < 0 fails with that; 0: takes all */
    unsigned next, enters, unmaps;
    int nop; /* the result of a NOP */
} kernel;

static int kernel_setup(unsigned entries, struct bz_uring_params *p)
{
    CHECK_EQ(entries, (unsigned)ENTRIES);
    p->sq_entries = ENTRIES;
    p->cq_entries = 2 * ENTRIES;
    p->features = BZ_URING_FEAT_NODROP | BZ_URING_FEAT_FAST_POLL | BZ_URING_FEAT_EXT_ARG;
    kernel.ring.sq_mask = ENTRIES - 1;
    kernel.ring.cq_mask = 2 * ENTRIES - 1;
#define AT(field) (uint32_t)((char *)&kernel.ring.field - (char *)&kernel.ring)
    p->sq = (struct bz_uring_sq_offsets){.head = AT(sq_head), .tail = AT(sq_tail)};
    p->sq.mask = AT(sq_mask);
    p->sq.flags = AT(sq_flags);
    p->sq.array = AT(sq_array);
    p->cq = (struct bz_uring_cq_offsets){.head = AT(cq_head), .tail = AT(cq_tail)};
    p->cq.mask = AT(cq_mask);
    p->cq.cqes = AT(cqe);
#undef AT
    return 77;
}

static int kernel_enter(int fd, unsigned submit, unsigned min, unsigned flags, const void *arg,
                        size_t bytes)
{
    (void)min, (void)flags, (void)arg, (void)bytes;
    CHECK_EQ(fd, 77);
    int answer = kernel.next < BZ_ARRAY_LEN(kernel.answers) ? kernel.answers[kernel.next++] : 0;
    kernel.enters++;
    if (answer < 0) {
        errno = -answer;
        return -1;
    }
    unsigned most = answer == 0 ? submit : (unsigned)answer, n = 0;
    for (; n < most && n < submit && kernel.ring.sq_head != kernel.ring.sq_tail; n++) {
        const struct bz_uring_sqe *sqe =
            &kernel.sqe[kernel.ring.sq_array[kernel.ring.sq_head++ % ENTRIES]];
        struct bz_uring_cqe *cqe = &kernel.ring.cqe[kernel.ring.cq_tail++ % (2 * ENTRIES)];
        *cqe = (struct bz_uring_cqe){.user_data = sqe->user_data, .res = kernel.nop};
    }
    return (int)n;
}

static int kernel_register(int fd, unsigned what, void *arg, unsigned count)
{
    struct bz_uring_probe *probe = arg;
    CHECK_EQ(fd, 77);
    CHECK_EQ(what, (unsigned)BZ_URING_REGISTER_PROBE);
    probe->last_op = (uint8_t)(count - 1);
    for (unsigned i = 0; i < count; i++)
        probe->ops[i].flags = BZ_URING_PROBE_HAS;
    return 0;
}

static void *kernel_map(int fd, size_t bytes, uint64_t at)
{
    CHECK_EQ(fd, 77);
    CHECK_LE(bytes, at == BZ_URING_AT_SQ ? sizeof kernel.ring : sizeof kernel.sqe);
    return at == BZ_URING_AT_SQ ? (void *)&kernel.ring : (void *)kernel.sqe;
}

static void kernel_unmap(void *start, size_t bytes)
{
    CHECK(start == &kernel.ring || start == kernel.sqe);
    CHECK_LE(bytes, start == &kernel.ring ? sizeof kernel.ring : sizeof kernel.sqe);
    kernel.unmaps++;
}

static int kernel_close(int fd)
{
    CHECK_EQ(fd, 77);
    return 0;
}

static struct bz_sys calls;
static struct bz_sys_rings ring_calls;

/* A ring that has been tried, on a kernel that then answers as it is told. */
static void ring_on_kernel(struct bz_ring *r)
{
    memset(&kernel, 0, sizeof kernel);
    calls = bz_sys_system;
    ring_calls = bz_sys_rings_system;
    ring_calls.ring_setup = kernel_setup;
    ring_calls.ring_enter = kernel_enter;
    ring_calls.ring_register = kernel_register;
    ring_calls.ring_map = kernel_map;
    ring_calls.ring_unmap = kernel_unmap;
    calls.close = kernel_close;
    bz_sys = &calls;
    bz_sys_rings = &ring_calls;
    CHECK_EQ(bz_ring_open(r, ENTRIES, 2 * ENTRIES), 0);
    CHECK_EQ(kernel.enters, 1u);
    kernel.next = kernel.enters = 0;
}

static void put(struct bz_ring *r, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        struct bz_uring_sqe *sqe = bz_ring_put(r);
        CHECK_NOT_NULL(sqe);
        sqe->user_data = i + 1;
    }
}

static void take(struct bz_ring *r, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        const struct bz_uring_cqe *c = bz_ring_peek(r);
        CHECK_NOT_NULL(c);
        CHECK_EQ(c->user_data, i + 1u);
        bz_ring_seen(r);
    }
    CHECK_NULL(bz_ring_peek(r));
}

/* ---- handing in ---- */

TEST(ring, a_submission_that_is_interrupted_is_made_again)
{
    struct bz_ring r;
    ring_on_kernel(&r);
    put(&r, 3);
    kernel.answers[0] = kernel.answers[1] = -EINTR;
    CHECK_EQ(bz_ring_submit(&r), 0);
    CHECK_EQ(kernel.enters, 3u);
    CHECK_EQ(bz_ring_pending(&r), 0u);
    take(&r, 3);
    bz_ring_close(&r);
}

TEST(ring, submissions_not_taken_at_once_are_submitted_again)
{
    struct bz_ring r;
    ring_on_kernel(&r);
    put(&r, ENTRIES);
    CHECK_NULL(bz_ring_put(&r)); /* it is full */
    kernel.answers[0] = 1;
    kernel.answers[1] = 2;
    CHECK_EQ(bz_ring_submit(&r), 0);
    CHECK_EQ(kernel.enters, 3u);
    take(&r, ENTRIES);
    bz_ring_close(&r);
}

/* The caller tries again later; nothing is lost. */
TEST(ring, refused_submissions_stay_pending)
{
    struct bz_ring r;
    ring_on_kernel(&r);
    put(&r, 3);
    kernel.answers[0] = 1;
    kernel.answers[1] = -EBUSY;
    CHECK_EQ(bz_ring_submit(&r), -EBUSY);
    CHECK_EQ(bz_ring_pending(&r), 2u);
    CHECK_EQ(bz_ring_submit(&r), 0);
    take(&r, 3);
    bz_ring_close(&r);
}

/* ---- sleeping ---- */

/* A filter that came after the start, or a lack that passes. An interrupt and a timeout are no errors. */
TEST(ring, a_sleep_tells_whether_the_system_refuses_it)
{
    static const int refusals[] = {-EPERM, -EACCES, -ENOSYS, -EBUSY, -EAGAIN, -ENOMEM};
    static const int others[] = {-EINTR, -ETIME};
    struct bz_ring r;
    ring_on_kernel(&r);
    for (size_t i = 0; i < BZ_ARRAY_LEN(refusals); i++) {
        struct bz_ring_nap nap = bz_ring_show(&r);
        kernel.next = 0;
        kernel.answers[0] = refusals[i];
        CHECK_EQ(bz_ring_sleep(&nap), refusals[i]);
    }
    for (size_t i = 0; i < BZ_ARRAY_LEN(others); i++) {
        struct bz_ring_nap nap = bz_ring_show(&r);
        kernel.next = 0;
        kernel.answers[0] = others[i];
        CHECK_EQ(bz_ring_sleep(&nap), 0);
    }
    bz_ring_close(&r);
}

/* ---- opening ---- */

/* A ring is used if it has completed a NOP. */
TEST(ring, a_ring_that_completes_nothing_is_not_opened)
{
    static const int refusals[] = {-EPERM, -EACCES, -ENOSYS, -ENOMEM};
    struct bz_ring r;
    ring_on_kernel(&r);
    bz_ring_close(&r);
    for (size_t i = 0; i < BZ_ARRAY_LEN(refusals); i++) {
        memset(&kernel, 0, sizeof kernel);
        kernel.answers[0] = -EINTR; /* which says nothing */
        kernel.answers[1] = refusals[i];
        CHECK_EQ(bz_ring_open(&r, ENTRIES, 2 * ENTRIES), refusals[i]);
        CHECK_EQ(r.fd, -1);
        CHECK_EQ(kernel.unmaps, 2u);
    }
    memset(&kernel, 0, sizeof kernel);
    kernel.nop = -EINVAL;
    CHECK_EQ(bz_ring_open(&r, ENTRIES, 2 * ENTRIES), -EINVAL);
}

/* ---- operations in the kernel's words ---- */

static struct bz_file file = {.fd = 5, .flags = BZ_FILE_STREAM};

static struct bz_uring_sqe filled(struct bz_op *op, bool is_its_own)
{
    struct bz_uring_sqe sqe;
    memset(&sqe, 0, sizeof sqe);
    CHECK_EQ(bz_sqe_fill(&sqe, op), is_its_own);
    CHECK_EQ(sqe.fd, 5);
    return sqe;
}

#define ADDRESS(x) (uint64_t)(uintptr_t)(x)

TEST(sqe, a_buffer_is_sent_and_received_as_the_kernel_calls_it)
{
    char data[10];
    struct bz_op op;
    struct bz_uring_sqe sqe;
    bz_op_init(&op, &file, BZ_OP_RECV);
    op.buffer.data = data;
    op.buffer.bytes = sizeof data;
    op.flags = MSG_PEEK;
    sqe = filled(&op, true);
    CHECK_EQ(sqe.opcode, BZ_URING_OP_RECV);
    CHECK_EQ(sqe.addr, ADDRESS(data));
    CHECK_EQ(sqe.len, sizeof data);
    CHECK_EQ(sqe.op_flags, (uint32_t)MSG_PEEK);
    bz_op_init(&op, &file, BZ_OP_SEND);
    op.buffer.data = data;
    op.buffer.bytes = SIZE_MAX; /* as much as the kernel takes at once */
    sqe = filled(&op, true);
    CHECK_EQ(sqe.opcode, BZ_URING_OP_SEND);
    CHECK_EQ(sqe.len, (uint32_t)INT32_MAX);
    CHECK_EQ(sqe.op_flags, (uint32_t)MSG_NOSIGNAL);
}

TEST(sqe, messages_too)
{
    struct bz_msg header;
    struct bz_op op;
    struct bz_uring_sqe sqe;
    memset(&header, 0, sizeof header);
    for (int is_send = 0; is_send < 2; is_send++) {
        bz_op_init(&op, &file, is_send ? BZ_OP_SENDMSG : BZ_OP_RECVMSG);
        op.msg.header = &header;
        sqe = filled(&op, true);
        CHECK_EQ(sqe.opcode, is_send ? BZ_URING_OP_SENDMSG : BZ_URING_OP_RECVMSG);
        CHECK_EQ(sqe.addr, ADDRESS(&header));
        CHECK_EQ(sqe.len, 1u);
        CHECK_EQ(sqe.op_flags, (uint32_t)(is_send ? MSG_NOSIGNAL : MSG_CMSG_CLOEXEC));
    }
}

TEST(sqe, a_datagram_is_not_left_in_the_ring_to_wait_for_room)
{
    struct bz_file datagrams = {.fd = 5};
    struct bz_msg header;
    char data[10];
    struct bz_op op;
    bz_op_init(&op, &datagrams, BZ_OP_SEND);
    op.buffer.data = data;
    op.buffer.bytes = sizeof data;
    CHECK_EQ(filled(&op, true).op_flags, (uint32_t)(MSG_NOSIGNAL | MSG_DONTWAIT));
    memset(&header, 0, sizeof header);
    bz_op_init(&op, &datagrams, BZ_OP_SENDMSG);
    op.msg.header = &header;
    CHECK_EQ(filled(&op, true).op_flags, (uint32_t)(MSG_NOSIGNAL | MSG_DONTWAIT));
}

TEST(sqe, an_accept_asks_for_the_address_only_if_there_is_room_for_it)
{
    struct bz_sockname name;
    struct bz_op op;
    struct bz_uring_sqe sqe;
    bz_op_init(&op, &file, BZ_OP_ACCEPT);
    op.name.address = &name;
    op.name.bytes = 1;
    sqe = filled(&op, true);
    CHECK_EQ(sqe.opcode, BZ_URING_OP_ACCEPT);
    CHECK_EQ(sqe.addr, ADDRESS(&name));
    CHECK_EQ(sqe.off, ADDRESS(&op.name.bytes));
    CHECK_EQ(op.name.bytes, (uint32_t)sizeof name);
    CHECK_EQ(sqe.op_flags, (uint32_t)SOCK_CLOEXEC);
    op.name.address = NULL;
    CHECK_EQ(filled(&op, true).off, 0u);
    bz_op_init(&op, &file, BZ_OP_CONNECT);
    op.name.address = &name;
    op.name.bytes = 16;
    sqe = filled(&op, true);
    CHECK_EQ(sqe.opcode, BZ_URING_OP_CONNECT);
    CHECK_EQ(sqe.addr, ADDRESS(&name));
    CHECK_EQ(sqe.off, 16u);
}

TEST(sqe, an_operation_that_rings_lack_is_polled_for)
{
    struct bz_op op;
    struct bz_uring_sqe sqe;
    bz_op_init(&op, &file, BZ_OP_POLL);
    op.events = POLLIN | POLLPRI;
    sqe = filled(&op, true);
    CHECK_EQ(sqe.opcode, BZ_URING_OP_POLL_ADD);
    CHECK_EQ(sqe.op_flags, (uint32_t)(POLLIN | POLLPRI));
    bz_op_init(&op, &file, BZ_OP_RECVMMSG);
    CHECK_EQ(filled(&op, false).op_flags, (uint32_t)POLLIN);
    bz_op_init(&op, &file, BZ_OP_SENDMMSG);
    CHECK_EQ(filled(&op, false).op_flags, (uint32_t)POLLOUT);
    bz_op_init(&op, &file, BZ_OP_SENDFILE);
    CHECK_EQ(filled(&op, false).op_flags, (uint32_t)POLLOUT);
}
