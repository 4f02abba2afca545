/*
 * kernel_ring.c - the simulated network: rings.
 *
 * The queues are memory with the layout of uring_abi.h, accessed as the kernel does, so ring.c and
 * uring.c run unchanged. A submission becomes a *flight*: it is tried, at once or a little later.
 * If it must wait, it is parked at its file and tried again after an edge. When it is done, its
 * completion becomes visible at once or a little later.
 *
 * The simulation includes the difficult cases:
 *   - A flight ends with -ECANCELED when the thread that submitted it ends.
 *   - A request to cancel comes too late, or while the operation completes anyway: the operation's
 *     own completion tells.
 *   - The completion queue is small: further completions wait, and a flag is set. While some wait
 *     the kernel may refuse new submissions (-EBUSY), and it may take fewer than requested.
 *   - A wait is interrupted.
 *   - A non-blocking descriptor returns -EAGAIN.
 *
 * Buffers are read and written when the operation completes, not when it is submitted. So a buffer
 * that was freed too early is found, by AddressSanitizer or by the test's data.
 *
 * Unsupported features (provided buffers, multishot) are refused with -EINVAL.
 */
#include <errno.h>

#include "base/check.h"
#include "sim/kernel.h"
#include "sim/sim.h"

/* Offsets in the memory of a ring. */
enum { AT_SQ = 0, AT_CQ = 64, AT_ARRAY = 128, SMALL = 4 };
struct sq_head {
    bz_atomic(uint32_t) head, tail;
    uint32_t mask, entries;
    bz_atomic(uint32_t) flags;
    uint32_t dropped;
};
struct cq_head {
    bz_atomic(uint32_t) head, tail;
    uint32_t mask, entries, overflow, reserved;
};

static struct sq_head *sq_of(struct sim_ring *r)
{
    return (void *)(r->slab.base + AT_SQ);
}

static struct cq_head *cq_of(struct sim_ring *r)
{
    return (void *)(r->slab.base + AT_CQ);
}

static uint32_t cqes_at(const struct sim_ring *r)
{
    return (AT_ARRAY + r->sq_entries * (uint32_t)sizeof(uint32_t) + 63) / 64 * 64;
}

static struct bz_uring_cqe *cqes_of(struct sim_ring *r)
{
    return (void *)(r->slab.base + cqes_at(r));
}

/* The submissions are on separate pages. */
static size_t sqes_at(const struct sim_ring *r)
{
    size_t page = bz_os_page_bytes(bz_sim_kernel->os);
    return (cqes_at(r) + r->cq_entries * sizeof(struct bz_uring_cqe) + page - 1) / page * page;
}

static struct bz_uring_sqe *sqes_of(struct sim_ring *r)
{
    return (void *)(r->slab.base + sqes_at(r));
}

/* ---- completions ---- */

static uint32_t waiting(struct sim_ring *r)
{
    struct cq_head *cq = cq_of(r);
    uint32_t head = bz_load_relaxed(&cq->head); /* relaxed: one simulated thread at a time */
    return bz_load_relaxed(&cq->tail) - head;   /* relaxed: we are its only writer */
}

/* End a flight: the kernel has no reference to it any more. */
static void flight_free(struct sim_flight *fl)
{
    struct sim_file *ring = fl->ring;
    fl->state = SIM_FLIGHT_FREE;
    fl->generation++;
    bz_sim_kernel->books.flights--;
    bz_sim_file_unref(ring);
}

static void put_cqe(struct sim_ring *r, struct sim_flight *fl)
{
    struct cq_head *cq = cq_of(r);
    uint32_t tail = bz_load_relaxed(&cq->tail); /* relaxed: we are its only writer */
    cqes_of(r)[tail & cq->mask] =
        (struct bz_uring_cqe){.user_data = fl->sqe.user_data, .res = fl->result};
    bz_store_release(&cq->tail, tail + 1);            /* ring.c, peek: the entry is complete */
    bz_fetch_add_relaxed(&bz_sim_kernel->changed, 1); /* relaxed: one simulated thread at a time */
    bz_sim_kernel->owes_wake = true;
    bz_sim_kernel->books.told++;
}

static void post(struct sim_flight *fl)
{
    struct sim_ring *r = &fl->ring->ring;
    if (waiting(r) < r->cq_entries && bz_list_is_empty(&r->overflow)) {
        put_cqe(r, fl);
        flight_free(fl);
        return;
    }
    bz_list_push_back(&r->overflow, &fl->overflow);
    bz_fetch_or_relaxed(&sq_of(r)->flags, BZ_URING_SQ_OVERFLOW); /* relaxed: a hint */
    bz_fetch_add_relaxed(&bz_sim_kernel->changed, 1); /* relaxed: one simulated thread at a time */
    bz_sim_kernel->owes_wake = true;
}

static void post_overflow(struct sim_ring *r)
{
    while (waiting(r) < r->cq_entries && !bz_list_is_empty(&r->overflow)) {
        struct sim_flight *fl =
            BZ_CONTAINER_OF(bz_list_take_front(&r->overflow), struct sim_flight, overflow);
        put_cqe(r, fl);
        flight_free(fl);
    }
    if (bz_list_is_empty(&r->overflow))
        bz_fetch_and_relaxed(&sq_of(r)->flags,
                             ~(uint32_t)BZ_URING_SQ_OVERFLOW); /* relaxed: a hint */
}

static void complete(struct sim_flight *fl, int64_t result)
{
    bz_list_remove(&fl->parked);
    if (fl->file != NULL)
        bz_sim_file_unref(fl->file);
    fl->file = NULL;
    fl->state = SIM_COMPLETED;
    fl->result = (int32_t)result;
    if (bz_sim_odd(3))
        bz_sim_send_event(SIM_POST, fl->ring, fl, bz_sim_delay());
    else
        post(fl);
}

/* ---- operations ---- */

static int64_t try_connect(struct sim_flight *fl)
{
    struct sim_file *f = fl->file;
    if (!fl->is_begun) {
        fl->is_begun = true;
        int64_t result = bz_sim_connect(f, (const struct sockaddr *)(uintptr_t)fl->sqe.addr,
                                        (socklen_t)fl->sqe.off);
        return result == -EINPROGRESS && f->blocks ? -EAGAIN : result;
    }
    if (f->socket.state == SIM_CONNECTS)
        return -EAGAIN;
    return -bz_sim_error_of(f);
}

static int64_t try_poll(struct sim_flight *fl)
{
    unsigned mask = bz_sim_mask(fl->file) & (fl->sqe.op_flags | EPOLLERR | EPOLLHUP);
    return mask != 0 ? (int64_t)mask : -EAGAIN;
}

static int64_t attempt(struct sim_flight *fl)
{
    const struct bz_uring_sqe *sqe = &fl->sqe;
    void *at = (void *)(uintptr_t)sqe->addr;
    struct iovec piece = {at, sqe->len};
    struct msghdr *message = at;
    switch (sqe->opcode) {
    case BZ_URING_OP_POLL_ADD:
        return sqe->len != 0 ? -EINVAL : try_poll(fl);
    case BZ_URING_OP_RECV:
        return sqe->flags != 0 || sqe->ioprio != 0
                   ? -EINVAL
                   : bz_sim_recv(fl->file, &piece, 1, (int)sqe->op_flags);
    case BZ_URING_OP_SEND:
        return sqe->ioprio != 0 ? -EINVAL : bz_sim_send(fl->file, &piece, 1);
    case BZ_URING_OP_RECVMSG:
        message->msg_controllen = 0;
        message->msg_flags = 0;
        return bz_sim_recv(fl->file, message->msg_iov, message->msg_iovlen, (int)sqe->op_flags);
    case BZ_URING_OP_SENDMSG:
        return bz_sim_send(fl->file, message->msg_iov, message->msg_iovlen);
    case BZ_URING_OP_ACCEPT:
        return sqe->ioprio != 0 ? -EINVAL
                                : bz_sim_accept(fl->file, at, (void *)(uintptr_t)sqe->off, true);
    case BZ_URING_OP_CONNECT:
        return try_connect(fl);
    default:
        return -EINVAL;
    }
}

/* Park a flight that must wait, unless the descriptor is non-blocking. */
static void try_flight(struct sim_flight *fl)
{
    int64_t result = attempt(fl);
    bool waits = result == -EAGAIN && (fl->file->blocks || fl->sqe.opcode == BZ_URING_OP_POLL_ADD ||
                                       (fl->is_begun && fl->sqe.opcode == BZ_URING_OP_CONNECT));
    if (waits)
        bz_list_push_back(&fl->file->parked, &fl->parked);
    else
        complete(fl, result);
}

void bz_sim_flight_event(struct sim_event *e)
{
    if (e->kind == SIM_POST)
        post(e->flight);
    else if (e->flight->state == SIM_IN_FLIGHT)
        try_flight(e->flight);
}

void bz_sim_flights_edge(struct sim_file *f)
{
    while (!bz_list_is_empty(&f->parked)) {
        struct sim_flight *fl =
            BZ_CONTAINER_OF(bz_list_take_front(&f->parked), struct sim_flight, parked);
        bz_sim_send_event(SIM_TRY, fl->ring, fl, bz_sim_delay());
    }
}

/* The last try: complete it if possible. */
static void bring_down(struct sim_flight *fl)
{
    int64_t result = -ECANCELED;
    if (bz_sim_odd(4))
        result = attempt(fl);
    complete(fl, result == -EAGAIN ? -ECANCELED : result);
}

void bz_sim_flights_of(uint32_t thread)
{
    struct sim_kernel *k = bz_sim_kernel;
    for (struct sim_flight *fl = k->flight; fl < k->flight + SIM_FLIGHTS; fl++)
        if (fl->state == SIM_IN_FLIGHT && fl->thread == thread)
            complete(fl, -ECANCELED);
}

static int64_t cancel(struct sim_file *ring, uint64_t user_data)
{
    struct sim_kernel *k = bz_sim_kernel;
    bool is_completed = false;
    for (struct sim_flight *fl = k->flight; fl < k->flight + SIM_FLIGHTS; fl++) {
        if (fl->state == SIM_FLIGHT_FREE || fl->ring != ring || fl->sqe.user_data != user_data)
            continue;
        if (fl->state == SIM_IN_FLIGHT) {
            bring_down(fl);
            return 0;
        }
        is_completed = true;
    }
    return is_completed ? -EALREADY : -ENOENT;
}

/* ---- submissions ---- */

static struct sim_flight *flight_new(struct sim_file *ring, const struct bz_uring_sqe *sqe)
{
    struct sim_kernel *k = bz_sim_kernel;
    struct sim_flight *fl = k->flight;
    while (fl < k->flight + SIM_FLIGHTS && fl->state != SIM_FLIGHT_FREE)
        fl++;
    BZ_CHECK(fl < k->flight + SIM_FLIGHTS, "simulated rings have room for %d operations",
             SIM_FLIGHTS);
    uint32_t generation = fl->generation;
    *fl = (struct sim_flight){.state = SIM_IN_FLIGHT,
                              .generation = generation,
                              .thread = bz_sim_thread(),
                              .ring = ring,
                              .sqe = *sqe};
    bz_list_init(&fl->parked);
    bz_list_init(&fl->overflow);
    ring->refs++;
    k->books.flights++;
    return fl;
}

static void begin(struct sim_file *ring, const struct bz_uring_sqe *sqe)
{
    struct sim_flight *fl = flight_new(ring, sqe);
    if (sqe->opcode == BZ_URING_OP_NOP || sqe->opcode == BZ_URING_OP_ASYNC_CANCEL) {
        complete(fl, sqe->opcode == BZ_URING_OP_NOP ? 0 : cancel(ring, sqe->addr));
        return;
    }
    fl->file = bz_sim_file_of(sqe->fd, SIM_NO_FILE);
    fl->file->refs++;
    if (bz_sim_odd(4))
        bz_sim_send_event(SIM_TRY, ring, fl, bz_sim_delay());
    else
        try_flight(fl);
}

/* Return the number of submissions taken. */
static int64_t take(struct sim_file *f, unsigned count)
{
    struct sim_ring *r = &f->ring;
    struct sq_head *sq = sq_of(r);
    const uint32_t *array = (const void *)(r->slab.base + AT_ARRAY);
    uint32_t head = bz_load_relaxed(&sq->head); /* relaxed: we are its only writer */
    /* ring.c, submit: the entries are complete */
    uint32_t have = bz_load_acquire(&sq->tail) - head;
    unsigned n = count < have ? count : have;
    if (n > 0 && !bz_list_is_empty(&r->overflow) && bz_sim_odd(bz_sim_kernel->config.busy_one_in))
        return -EBUSY;
    if (n > 1 && bz_sim_odd(8))
        n = 1 + bz_sim_below(n);
    n = n < have ? n : have;
    for (unsigned i = 0; i < n; i++, head++) {
        struct bz_uring_sqe sqe = sqes_of(r)[array[head & sq->mask]];
        begin(f, &sqe);
    }
    bz_store_release(&sq->head, head); /* ring.c, put: they have been read */
    return n;
}

static uint64_t until_of(unsigned flags, const void *arg)
{
    const struct bz_uring_wait_arg *wait = arg;
    if (!(flags & BZ_URING_ENTER_EXT_ARG) || wait == NULL || wait->timespec == 0)
        return BZ_OS_FOREVER;
    const struct bz_uring_timespec *left = (const void *)(uintptr_t)wait->timespec;
    if (left->s >= 1000000000)
        return BZ_OS_FOREVER;
    return bz_os_now(bz_sim_kernel->os) + (uint64_t)left->s * 1000000000 + (uint64_t)left->ns;
}

static int64_t wait_in(struct sim_file *f, unsigned min, uint64_t until_ns)
{
    for (;;) {
        uint32_t was = bz_sim_changes();
        post_overflow(&f->ring);
        if (waiting(&f->ring) >= min)
            return 0;
        if (bz_os_now(bz_sim_kernel->os) >= until_ns)
            return -ETIME;
        if (bz_sim_odd(64))
            return -EINTR;
        bz_sim_sleep(was, until_ns);
    }
}

/* ---- calls ---- */

static int sim_ring_enter(int fd, unsigned submit, unsigned min, unsigned flags, const void *arg,
                          size_t bytes)
{
    (void)bytes;
    bz_sim_call();
    struct sim_file *f = bz_sim_file_of(fd, SIM_RING);
    f->refs++;
    int64_t taken = submit > 0 ? take(f, submit) : 0, err = 0;
    bool waits = taken == (int64_t)submit; /* else the caller must take completions first */
    if (waits && (flags & BZ_URING_ENTER_GETEVENTS))
        err = wait_in(f, min, until_of(flags, arg));
    bz_sim_file_unref(f);
    return (int)bz_sim_outcome(taken != 0 ? taken : err);
}

static void fill_params(struct bz_uring_params *p, const struct sim_ring *r)
{
    p->sq_entries = r->sq_entries;
    p->cq_entries = r->cq_entries;
    p->features = BZ_URING_FEAT_NODROP | BZ_URING_FEAT_FAST_POLL | BZ_URING_FEAT_EXT_ARG;
    p->sq.head = AT_SQ + offsetof(struct sq_head, head);
    p->sq.tail = AT_SQ + offsetof(struct sq_head, tail);
    p->sq.mask = AT_SQ + offsetof(struct sq_head, mask);
    p->sq.entries = AT_SQ + offsetof(struct sq_head, entries);
    p->sq.flags = AT_SQ + offsetof(struct sq_head, flags);
    p->sq.dropped = AT_SQ + offsetof(struct sq_head, dropped);
    p->sq.array = AT_ARRAY;
    p->cq.head = AT_CQ + offsetof(struct cq_head, head);
    p->cq.tail = AT_CQ + offsetof(struct cq_head, tail);
    p->cq.mask = AT_CQ + offsetof(struct cq_head, mask);
    p->cq.entries = AT_CQ + offsetof(struct cq_head, entries);
    p->cq.overflow = AT_CQ + offsetof(struct cq_head, overflow);
    p->cq.cqes = cqes_at(r);
}

static int sim_ring_setup(unsigned entries, struct bz_uring_params *p)
{
    bz_sim_call();
    if ((p->flags & ~(uint32_t)BZ_URING_SETUP_CQSIZE) != 0)
        return (int)bz_sim_outcome(-EINVAL);
    struct sim_file *f = bz_sim_file_new(SIM_RING);
    struct sim_ring *r = &f->ring;
    bool is_small = bz_sim_odd(2);
    r->sq_entries = is_small ? SMALL : entries;
    r->cq_entries = is_small                           ? SMALL
                    : p->flags & BZ_URING_SETUP_CQSIZE ? p->cq_entries
                                                       : 2 * entries;
    bz_list_init(&r->overflow);
    size_t page = bz_os_page_bytes(bz_sim_kernel->os);
    size_t bytes = sqes_at(r) + r->sq_entries * sizeof(struct bz_uring_sqe);
    bytes = (bytes + page - 1) / page * page;
    int err = bz_os_slab_reserve(bz_sim_kernel->os, &r->slab, bytes, 0, BZ_OS_SLAB_SMALL_PAGES,
                                 "blitz-sim-ring");
    if (err != 0) {
        f->kind = SIM_COUNTER; /* nothing to release */
        bz_sim_file_unref(f);
        return (int)bz_sim_outcome(err);
    }
    sq_of(r)->mask = r->sq_entries - 1;
    cq_of(r)->mask = r->cq_entries - 1;
    fill_params(p, r);
    return (int)bz_sim_outcome(bz_sim_fd_new(f));
}

/* Only the table of operations can be queried. */
static int sim_ring_register(int fd, unsigned what, void *arg, unsigned count)
{
    struct bz_uring_probe *probe = arg;
    bz_sim_call();
    (void)!bz_sim_file_of(fd, SIM_RING);
    if (what != BZ_URING_REGISTER_PROBE || count < BZ_URING_OP_LAST)
        return (int)bz_sim_outcome(-EINVAL);
    probe->last_op = BZ_URING_OP_RECV;
    for (unsigned i = 0; i <= BZ_URING_OP_RECV; i++)
        probe->ops[i].flags = BZ_URING_PROBE_HAS;
    return (int)bz_sim_outcome(0);
}

static void *sim_ring_map(int fd, size_t bytes, uint64_t at)
{
    struct sim_ring *r = &bz_sim_file_of(fd, SIM_RING)->ring;
    (void)bytes;
    return r->slab.base + (at == BZ_URING_AT_SQES ? sqes_at(r) : 0);
}

static void sim_ring_unmap(void *start, size_t bytes)
{
    (void)start;
    (void)bytes;
}

/* Remaining flights stay in the counts: their buffers were freed too early. A poll has none: it ends with its ring. */
void bz_sim_ring_closed(struct sim_file *f)
{
    struct sim_kernel *k = bz_sim_kernel;
    for (struct sim_flight *fl = k->flight; fl < k->flight + SIM_FLIGHTS; fl++) {
        if (fl->state == SIM_IN_FLIGHT && fl->ring == f && fl->sqe.opcode == BZ_URING_OP_POLL_ADD)
            complete(fl, -ECANCELED);
        if (fl->state != SIM_COMPLETED || fl->ring != f)
            continue;
        bz_list_remove(&fl->overflow);
        flight_free(fl);
    }
}

void bz_sim_ring_end(struct sim_file *f)
{
    bz_os_slab_release(bz_sim_kernel->os, &f->ring.slab);
}

const struct bz_sys_rings bz_sim_rings = {
    .ring_setup = sim_ring_setup,
    .ring_enter = sim_ring_enter,
    .ring_register = sim_ring_register,
    .ring_map = sim_ring_map,
    .ring_unmap = sim_ring_unmap,
};
