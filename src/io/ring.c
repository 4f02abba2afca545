/*
 * ring.c - one io_uring, used through system calls directly.
 *
 * A ring is two queues in memory shared with the kernel. To submit, we write an entry and advance
 * the tail; the kernel advances the head in the system call that submits. Completions are between
 * head and tail; after reading one we advance the head.
 *
 * Any thread may submit and take completions, one at a time. Two modes bind a ring to one thread (SINGLE_ISSUER,
 * DEFER_TASKRUN), but a proc moves between threads. So we use the mode between: a completion does not interrupt the
 * thread that submitted the operation (COOP_TASKRUN, Linux 5.19). The kernel posts the completion when that
 * thread enters the kernel next, for any reason, at the latest with the next timer tick. A flag in the ring says that
 * completions wait for that (TASKRUN_FLAG), and bz_ring_fetch then enters for them.
 *
 * Rejected: registering the ring's descriptor with the kernel, to save its lookup in each enter.
 * The registration is per thread, and rings move between threads. It also keeps the ring open in
 * every thread that has used it, even after a close. An enter with a NOP took 372 ns instead of
 * 427, and a message of 7 us takes one with 4 connections and a tenth of one with 64: less than 1
 * %.
 *
 * The call that sleeps also submits, and is made without the lock. Meanwhile other threads may add
 * and submit entries under the lock. That is safe: the kernel takes submissions under its own lock,
 * in order, at most as many as requested and as are visible. So the second thread submits fewer
 * than it intended, and then the kernel does not sleep. Pending entries are therefore not counted
 * here but computed from the kernel's head: no failure and no other thread can make the two differ.
 *
 * A ring is tested before it is used: bz_ring_open() completes a NOP. A system call filter may
 * allow io_uring_setup and refuse io_uring_enter; such a ring would accept operations and never
 * complete one.
 *
 * The other halves of the pairings are in the kernel: it acquires sq_tail and releases sq_head,
 * releases cq_tail and acquires cq_head.
 */
#include "io/ring.h"

#include <errno.h>
#include <string.h>

#include "io/attempt.h"
#include "io/sys.h"
#include "io/sys_rings.h"

static int setup(unsigned entries, struct bz_uring_params *p)
{
    int fault = bz_io_fault_of("io_uring_setup");
    if (fault != 0)
        return -fault;
    int fd = bz_sys_rings->ring_setup(entries, p);
    return fd >= 0 ? fd : -errno;
}

/* Make a ring, by preference one that does not interrupt its threads. Kernels before 5.19 refuse that. */
static int setup_best(unsigned entries, unsigned completions, struct bz_uring_params *p)
{
    unsigned quiet =
        BZ_RING_IS_PLAIN ? 0 : BZ_URING_SETUP_COOP_TASKRUN | BZ_URING_SETUP_TASKRUN_FLAG;
    int fd;
    do {
        memset(p, 0, sizeof *p);
        p->flags = BZ_URING_SETUP_CQSIZE | quiet;
        p->cq_entries = completions;
        fd = setup(entries, p);
    } while (fd == -EINVAL && quiet != 0 && (quiet = 0, true));
    return fd;
}

static int enter(int fd, unsigned submit, unsigned min, unsigned flags, const void *arg,
                 size_t bytes)
{
    int fault = bz_io_fault_of("io_uring_enter");
    if (fault != 0)
        return -fault;
    int n = bz_sys_rings->ring_enter(fd, submit, min, flags, arg, bytes);
    return n >= 0 ? n : -errno;
}

int bz_ring_register(const struct bz_ring *r, unsigned what, void *arg, unsigned count)
{
    int fault = bz_io_fault_of("io_uring_register");
    if (fault != 0)
        return -fault;
    return bz_sys_rings->ring_register(r->fd, what, arg, count) >= 0 ? 0 : -errno;
}

static void *map(int fd, size_t bytes, uint64_t at)
{
    return bz_io_fault_of("mmap") == 0 ? bz_sys_rings->ring_map(fd, bytes, at) : NULL;
}

static void find_fields(struct bz_ring *r, const struct bz_uring_params *p)
{
    char *base = r->rings;
    r->sq_head = (void *)(base + p->sq.head);
    r->sq_tail = (void *)(base + p->sq.tail);
    r->sq_flags = (void *)(base + p->sq.flags);
    r->sq_mask = *(uint32_t *)(void *)(base + p->sq.mask);
    r->sq_array = (void *)(base + p->sq.array);
    r->cq_head = (void *)(base + p->cq.head);
    r->cq_tail = (void *)(base + p->cq.tail);
    r->cq_mask = *(uint32_t *)(void *)(base + p->cq.mask);
    r->cqe = (void *)(base + p->cq.cqes);
    r->sqe = r->sqes;
    r->sq_entries = p->sq_entries;
    r->tail = bz_load_relaxed(r->sq_tail); /* relaxed: not shared yet */
}

/* Check that the kernel has all operations that we need; else it is too old. */
static bool can_do_it_all(const struct bz_ring *r)
{
    static const uint8_t needed[] = {
        BZ_URING_OP_POLL_ADD, BZ_URING_OP_SENDMSG, BZ_URING_OP_RECVMSG, BZ_URING_OP_ACCEPT,
        BZ_URING_OP_CONNECT,  BZ_URING_OP_SEND,    BZ_URING_OP_RECV,    BZ_URING_OP_ASYNC_CANCEL};
    struct bz_uring_probe probe;
    memset(&probe, 0, sizeof probe);
    if (bz_ring_register(r, BZ_URING_REGISTER_PROBE, &probe, BZ_URING_OP_LAST) != 0)
        return false;
    for (size_t i = 0; i < BZ_ARRAY_LEN(needed); i++)
        if (needed[i] > probe.last_op || !(probe.ops[needed[i]].flags & BZ_URING_PROBE_HAS))
            return false;
    return true;
}

uint32_t bz_ring_pending(struct bz_ring *r)
{
    return r->tail - bz_load_acquire(r->sq_head); /* acquire: the kernel has read the old entry */
}

const struct bz_uring_sqe *bz_ring_unput(struct bz_ring *r)
{
    if (bz_ring_pending(r) == 0)
        return NULL;
    r->tail--;
    bz_store_release(r->sq_tail, r->tail); /* release: the kernel acquires it, as after show() */
    return &r->sqe[r->tail & r->sq_mask];
}

bool bz_ring_has(struct bz_ring *r, uint64_t key)
{
    for (uint32_t i = r->tail - bz_ring_pending(r); i != r->tail; i++)
        if (r->sqe[i & r->sq_mask].user_data == key)
            return true;
    return false;
}

struct bz_uring_sqe *bz_ring_put(struct bz_ring *r)
{
    if (bz_ring_pending(r) >= r->sq_entries)
        return NULL;
    uint32_t at = r->tail & r->sq_mask;
    struct bz_uring_sqe *sqe = &r->sqe[at];
    memset(sqe, 0, sizeof *sqe);
    r->sq_array[at] = at;
    r->tail++;
    return sqe;
}

static void show(struct bz_ring *r)
{
    bz_store_release(r->sq_tail, r->tail); /* release: the entries are written */
}

int bz_ring_submit(struct bz_ring *r)
{
    uint32_t pending;
    show(r);
    while ((pending = bz_ring_pending(r)) > 0) {
        int n = enter(r->fd, pending, 0, 0, NULL, 0);
        if (n == -EINTR || n > 0)
            continue;
        if (n < 0)
            return n;
        if (bz_ring_pending(r) > 0) /* none, if a sleeping thread has submitted them */
            return -EAGAIN;
    }
    return 0;
}

const struct bz_uring_cqe *bz_ring_peek(struct bz_ring *r)
{
    uint32_t head = bz_load_relaxed(r->cq_head); /* relaxed: only we write it */
    if (head == bz_load_acquire(r->cq_tail))     /* acquire: the entry is complete */
        return NULL;
    return &r->cqe[head & r->cq_mask];
}

void bz_ring_seen(struct bz_ring *r)
{
    bz_store_release(r->cq_head, bz_load_relaxed(r->cq_head) +
                                     1); /* release: it has been read; relaxed: only we write it */
}

/* Complete one NOP: a filter may allow a ring to be made but refuse every call that uses it. */
static int try_nop(struct bz_ring *r)
{
    struct bz_uring_timespec second = {1, 0};
    struct bz_uring_wait_arg arg = {.timespec = (uint64_t)(uintptr_t)&second};
    int n;
    bz_ring_put(r)->opcode = BZ_URING_OP_NOP;
    show(r);
    do
        n = enter(r->fd, bz_ring_pending(r), 1, BZ_URING_ENTER_GETEVENTS | BZ_URING_ENTER_EXT_ARG,
                  &arg, sizeof arg);
    while (n == -EINTR);
    const struct bz_uring_cqe *c = n >= 0 ? bz_ring_peek(r) : NULL;
    if (c == NULL)
        return n < 0 ? n : -EOPNOTSUPP;
    int err = c->res;
    bz_ring_seen(r);
    return err;
}

int bz_ring_open(struct bz_ring *r, unsigned submissions, unsigned completions)
{
    enum { NEEDED = BZ_URING_FEAT_NODROP | BZ_URING_FEAT_FAST_POLL | BZ_URING_FEAT_EXT_ARG };
    struct bz_uring_params p;
    memset(r, 0, sizeof *r);
    r->fd = setup_best(submissions, completions, &p);
    if (r->fd < 0)
        return r->fd;
    size_t sq = p.sq.array + p.sq_entries * sizeof(uint32_t);
    size_t cq = p.cq.cqes + p.cq_entries * sizeof(struct bz_uring_cqe);
    r->rings_bytes = sq > cq ? sq : cq;
    r->sqes_bytes = p.sq_entries * sizeof(struct bz_uring_sqe);
    r->features = p.features;
    bool is_fit = (p.features & NEEDED) == NEEDED && can_do_it_all(r);
    if (is_fit) {
        r->rings = map(r->fd, r->rings_bytes, BZ_URING_AT_SQ);
        r->sqes = map(r->fd, r->sqes_bytes, BZ_URING_AT_SQES);
    }
    if (r->rings == NULL || r->sqes == NULL) {
        bz_ring_close(r);
        return is_fit ? -ENOMEM : -EOPNOTSUPP;
    }
    find_fields(r, &p);
    int err = try_nop(r);
    if (err != 0)
        bz_ring_close(r);
    return err;
}

void bz_ring_close(struct bz_ring *r)
{
    if (r->rings != NULL)
        bz_sys_rings->ring_unmap(r->rings, r->rings_bytes);
    if (r->sqes != NULL)
        bz_sys_rings->ring_unmap(r->sqes, r->sqes_bytes);
    bz_sys->close(r->fd);
    r->fd = -1;
}

bool bz_ring_has_more(struct bz_ring *r)
{
    enum { MORE = BZ_URING_SQ_OVERFLOW | BZ_URING_SQ_TASKRUN };
    return (bz_load_relaxed(r->sq_flags) & MORE) != 0; /* relaxed: a hint */
}

void bz_ring_fetch(struct bz_ring *r)
{
    (void)enter(r->fd, 0, 0, BZ_URING_ENTER_GETEVENTS, NULL, 0);
}

struct bz_ring_nap bz_ring_show(struct bz_ring *r)
{
    show(r);
    return (struct bz_ring_nap){.fd = r->fd, .submit = bz_ring_pending(r), .is_for_ever = true};
}

int bz_ring_sleep(const struct bz_ring_nap *nap)
{
    struct bz_uring_timespec left = {(int64_t)(nap->left_ns / 1000000000),
                                     (long long)(nap->left_ns % 1000000000)};
    struct bz_uring_wait_arg arg = {.timespec = nap->is_for_ever ? 0 : (uint64_t)(uintptr_t)&left};
    int n = enter(nap->fd, nap->submit, 1, BZ_URING_ENTER_GETEVENTS | BZ_URING_ENTER_EXT_ARG, &arg,
                  sizeof arg);
    return n < 0 && n != -EINTR && n != -ETIME ? n : 0;
}
