/*
 * provided.c - provided buffers of io_uring: the kernel picks one for a receive when data arrives.
 *
 * With a plain receive the kernel may write into the caller's buffer at any moment until the
 * completion, invisible to checkers and debuggers. Instead we provide a group of buffers, and the
 * kernel picks one when data arrives. When we process the completion, a memcpy copies the bytes to
 * the caller. So an idle connection holds no buffer in the kernel. A cancelled receive that
 * completed anyway is copied by us while its owner still waits. If an owner frees its buffer too
 * early, AddressSanitizer and a debugger report it, instead of memory that changes silently.
 *
 * It costs 170 to 220 ns a receive for the kernel's buffer selection, and the copy. Of 7.6 us that
 * a message on loopback takes at both ends, that is 3 % with 64 bytes and 5 % with 4 KiB. A receive
 * that expects to wait (uring.c) saves half of it, because it selects a buffer only once.
 *
 * Only receives that fit into a provided buffer use one, so that the result is the same: a datagram
 * is not truncated, a long read is not shortened. Longer receives use the caller's buffer, and so
 * do receives with flags: a peek leaves the data in the socket, MSG_WAITALL may need several
 * buffers, and MSG_TRUNC may return more than the buffer holds.
 *
 * If no buffer is left the receive ends with -ENOBUFS, with or without data. It is submitted again
 * with the caller's buffer, and the group grows by one. So the group adapts to the number of
 * receives that complete between two polls. More buffers would only cost cache, because all are
 * used in turn.
 *
 * The group is made with the first receive, by a call of Linux 5.19. If that fails, or there is no
 * memory, all receives use their callers' buffers. They also do in plain builds.
 *
 * The other half of its ordering is in the kernel, which acquires the tail.
 *
 * I1  Each of the `count` buffers is provided to the kernel, or named by a completion that was not
 *     processed yet.
 */
#include "io/provided.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "base/check.h"
#include "io/attempt.h"

enum { RING_BYTES = BZ_PROVIDED_MAX * sizeof(struct bz_uring_buf) };
enum { ALL_BYTES = RING_BYTES + BZ_PROVIDED_MAX * BZ_PROVIDED_BYTES };

static void lend(struct bz_provided *l, uint16_t id)
{
    struct bz_uring_buf *e = &l->entry[l->tail++ % BZ_PROVIDED_MAX];
    e->addr = (uint64_t)(uintptr_t)(l->data + (size_t)id * BZ_PROVIDED_BYTES);
    e->bytes = BZ_PROVIDED_BYTES;
    e->id = id;
    bz_store_release(l->shared_tail, l->tail); /* release: the entry is written, the buffer read */
}

static void lend_up_to(struct bz_provided *l, unsigned count)
{
    while (l->count < count && l->count < BZ_PROVIDED_MAX)
        lend(l, l->count++);
}

static void *map_all(void)
{
    if (bz_io_fault_of("mmap") != 0)
        return NULL;
    void *p = mmap(NULL, ALL_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return p != MAP_FAILED ? p : NULL;
}

static void make(struct bz_provided *l, const struct bz_ring *r)
{
    char *all = BZ_RING_IS_PLAIN ? NULL : map_all();
    l->state = BZ_PROVIDED_REFUSED;
    if (all == NULL)
        return;
    struct bz_uring_buf_reg reg = {.addr = (uint64_t)(uintptr_t)all, .entries = BZ_PROVIDED_MAX};
    if (bz_ring_register(r, BZ_URING_REGISTER_PBUF_RING, &reg, 1) != 0) {
        munmap(all, ALL_BYTES);
        return;
    }
    l->entry = (void *)all;
    l->shared_tail = (void *)&l->entry[0].tail;
    l->data = all + RING_BYTES;
    l->state = BZ_PROVIDED_THERE;
    lend_up_to(l, BZ_PROVIDED_FIRST);
}

bool bz_provided_is_ready(struct bz_provided *l, const struct bz_ring *r)
{
    if (BZ_UNLIKELY(l->state == BZ_PROVIDED_UNTRIED))
        make(l, r);
    return l->state == BZ_PROVIDED_THERE;
}

bool bz_provided_is_for(const struct bz_op *op)
{
    return op->code == BZ_OP_RECV && op->flags == 0 && !op->has_own && op->buffer.bytes > 0 &&
           op->buffer.bytes <= BZ_PROVIDED_BYTES;
}

void bz_provided_select(struct bz_uring_sqe *sqe)
{
    sqe->flags = BZ_URING_SQE_BUFFER_SELECT;
    sqe->buf_index = 0; /* the kernel's id of the group */
    sqe->addr = 0;
}

void bz_provided_copy(struct bz_provided *l, const struct bz_uring_cqe *c, const struct bz_op *op)
{
    uint16_t id = (uint16_t)(c->flags >> BZ_URING_CQE_BUFFER_SHIFT);
    BZ_CHECK(id < l->count && op->code == BZ_OP_RECV, "buffer %u of %u, operation %u", id, l->count,
             op->code);
    BZ_CHECK(c->res <= 0 || (size_t)c->res <= op->buffer.bytes, "%d bytes received for %zu", c->res,
             op->buffer.bytes);
    if (c->res > 0)
        memcpy(op->buffer.data, l->data + (size_t)id * BZ_PROVIDED_BYTES, (size_t)c->res);
    l->served++;
    lend(l, id); /* I1 */
}

void bz_provided_more(struct bz_provided *l)
{
    l->dry++;
    lend_up_to(l, l->count + 1u);
}

void bz_provided_fini(struct bz_provided *l)
{
    if (l->state == BZ_PROVIDED_THERE)
        munmap(l->entry, ALL_BYTES);
    l->state = BZ_PROVIDED_REFUSED;
}
