/*
 * ring.h - io_uring by its system calls, as much of it as the raw server needs: a ring, its two queues, and a ring
 * of buffers that receives choose from.
 *
 * The floor may have what a runtime may not: SINGLE_ISSUER and DEFER_TASKRUN, since one thread does everything.
 */
#ifndef NET_RING_H
#define NET_RING_H

#include "bench.h"

#include <errno.h>
#include <linux/io_uring.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

struct ring {
    int fd;
    unsigned enter_flags; /* IORING_ENTER_REGISTERED_RING, if fd is such a number */
    unsigned pending;     /* filled entries that the kernel has not been told of */
    unsigned tail;        /* of the submission queue, ours */
    unsigned sq_mask, sq_size, cq_mask;
    _Atomic unsigned *sq_head, *sq_tail, *cq_head, *cq_tail;
    struct io_uring_sqe *sqes;
    struct io_uring_cqe *cqes;
};

static inline int ring_enter_raw(struct ring *r, unsigned submit, unsigned wait, unsigned flags)
{
    return (int)syscall(SYS_io_uring_enter, r->fd, submit, wait, flags | r->enter_flags, NULL, 0);
}

static inline int ring_register(struct ring *r, unsigned what, void *arg, unsigned count)
{
    return (int)syscall(SYS_io_uring_register, r->fd, what, arg, count);
}

static inline void ring_map(struct ring *r, const struct io_uring_params *p)
{
    size_t sq = p->sq_off.array + p->sq_entries * sizeof(unsigned);
    size_t cq = p->cq_off.cqes + p->cq_entries * sizeof(struct io_uring_cqe);
    char *at = mmap(NULL, sq > cq ? sq : cq, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE,
                    r->fd, IORING_OFF_SQ_RING);
    r->sqes = mmap(NULL, p->sq_entries * sizeof(struct io_uring_sqe), PROT_READ | PROT_WRITE,
                   MAP_SHARED | MAP_POPULATE, r->fd, IORING_OFF_SQES);
    if (at == MAP_FAILED || r->sqes == MAP_FAILED)
        bench_die("mapping the ring: %s", strerror(errno));
    r->sq_head = (_Atomic unsigned *)(at + p->sq_off.head);
    r->sq_tail = (_Atomic unsigned *)(at + p->sq_off.tail);
    r->cq_head = (_Atomic unsigned *)(at + p->cq_off.head);
    r->cq_tail = (_Atomic unsigned *)(at + p->cq_off.tail);
    r->cqes = (struct io_uring_cqe *)(at + p->cq_off.cqes);
    r->sq_size = p->sq_entries;
    r->sq_mask = p->sq_entries - 1;
    r->cq_mask = p->cq_entries - 1;
    unsigned *array = (unsigned *)(at + p->sq_off.array);
    for (unsigned i = 0; i < p->sq_entries; i++)
        array[i] = i;
}

static inline void ring_init(struct ring *r, unsigned entries, unsigned completions)
{
    struct io_uring_params p = {
        .flags = IORING_SETUP_CQSIZE | IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN,
        .cq_entries = completions,
    };
    memset(r, 0, sizeof *r);
    r->fd = (int)syscall(SYS_io_uring_setup, entries, &p);
    if (r->fd < 0)
        bench_die("no io_uring here: %s", strerror(errno));
    if (!(p.features & IORING_FEAT_SINGLE_MMAP))
        bench_die("this kernel's io_uring is too old");
    ring_map(r, &p);
    struct io_uring_rsrc_update own = {.offset = ~0u, .data = (unsigned)r->fd};
    if (ring_register(r, IORING_REGISTER_RING_FDS, &own, 1) == 1) {
        r->fd = (int)own.offset;
        r->enter_flags = IORING_ENTER_REGISTERED_RING;
    }
}

/* Tell the kernel of what is filled in, and wait for so many completions. */
static inline void ring_enter(struct ring *r, unsigned wait)
{
    atomic_store_explicit(r->sq_tail, r->tail, memory_order_release);
    int n = ring_enter_raw(r, r->pending, wait, wait > 0 ? IORING_ENTER_GETEVENTS : 0);
    if (n < 0 && errno != EINTR && errno != EBUSY && errno != EAGAIN)
        bench_die("io_uring_enter: %s", strerror(errno));
    r->pending -= n < 0 ? 0 : (unsigned)n;
}

static inline struct io_uring_sqe *ring_get(struct ring *r)
{
    if (r->pending == r->sq_size)
        ring_enter(r, 0);
    struct io_uring_sqe *e = &r->sqes[r->tail++ & r->sq_mask];
    r->pending++;
    memset(e, 0, sizeof *e);
    return e;
}

/* The next completion, or NULL; *head is how far the caller has read. */
static inline struct io_uring_cqe *ring_peek(struct ring *r, unsigned head)
{
    if (head == atomic_load_explicit(r->cq_tail, memory_order_acquire))
        return NULL;
    return &r->cqes[head & r->cq_mask];
}

/* Buffers that receives choose from: `count` of them, a power of two, of `bytes` each. */
struct ring_buffers {
    struct io_uring_buf_ring *ring;
    char *memory;
    unsigned count, bytes;
    uint16_t tail;
};

static inline char *ring_buffer(const struct ring_buffers *b, unsigned id)
{
    return b->memory + (size_t)id * b->bytes;
}

static inline void ring_give(struct ring_buffers *b, unsigned id)
{
    struct io_uring_buf *slot = &b->ring->bufs[b->tail & (b->count - 1)];
    slot->addr = (uint64_t)(uintptr_t)ring_buffer(b, id);
    slot->len = b->bytes;
    slot->bid = (uint16_t)id;
    b->tail++;
}

static inline void ring_give_done(struct ring_buffers *b)
{
    atomic_store_explicit((_Atomic uint16_t *)&b->ring->tail, b->tail, memory_order_release);
}

static inline void ring_buffers_init(struct ring *r, struct ring_buffers *b, unsigned count,
                                     unsigned bytes)
{
    *b = (struct ring_buffers){.count = count, .bytes = bytes};
    int how = MAP_PRIVATE | MAP_ANONYMOUS;
    b->ring = mmap(NULL, count * sizeof(struct io_uring_buf), PROT_READ | PROT_WRITE, how, -1, 0);
    b->memory = mmap(NULL, (size_t)count * bytes, PROT_READ | PROT_WRITE, how, -1, 0);
    if (b->ring == MAP_FAILED || b->memory == MAP_FAILED)
        bench_die("no memory for buffers");
    struct io_uring_buf_reg about = {.ring_addr = (uint64_t)(uintptr_t)b->ring,
                                     .ring_entries = count};
    struct io_uring_buf_reg *arg = &about;
    unsigned what = IORING_REGISTER_PBUF_RING;
    if (r->enter_flags & IORING_ENTER_REGISTERED_RING)
        what |= 1u << 31; /* IORING_REGISTER_USE_REGISTERED_RING, newer than Debian's header */
    if (ring_register(r, what, arg, 1) != 0)
        bench_die("no ring of buffers: %s", strerror(errno));
    for (unsigned i = 0; i < count; i++)
        ring_give(b, i);
    ring_give_done(b);
}

#endif
