/*
 * lent.c - buffers that a ring of the kernel's may fill: a receive takes one when there is data.
 *
 * A receive that flies would have the kernel write into its caller's buffer at any moment until its
 * completion, seen by no checker and no debugger. Instead the kernel is lent a group of buffers, from
 * which it takes one when the data is there and not before; the bytes are copied to the caller when the
 * completion is taken, by a memcpy of ours. So a connection that is idle holds no buffer in the kernel,
 * however many there are; what a receive that was asked to end did in spite of it is written where its
 * owner, who waits, can see it, by us; and a buffer whose owner has left too early is an error
 * that AddressSanitizer and a debugger name, instead of memory that changes by itself.
 *
 * It costs 170 to 220 ns a receive in the kernel, which looks for a buffer, and the copy: of 7.6 us that a
 * message on loopback takes both ends, 3 % with 64 bytes and 5 % with 4 KiB. A receive that expects to wait
 * (uring.c) gets half of that back, since it does not look for a buffer twice.
 *
 * Only for receives that have no more room than a buffer has bytes, so that what they get is what they
 * would have got: a datagram is not cut, a long read is not made short. Longer ones are handed in
 * with the caller's buffer, as are those with flags: a peek leaves the data where it is, one that waits for
 * all may need several, and one that asks for the true length may be told more than there is.
 *
 * When none is left the receive ends with -ENOBUFS, whether there is data or not. It is begun again with
 * its caller's buffer, and the group grows by one: it comes to hold as many as complete between two looks,
 * and no more, since all of them are used in turn and cost cache.
 *
 * The group is made with the first receive, by a call of Linux 5.19. Where that is refused, or there
 * is no memory, receives have their callers' buffers for good. So they do in plain builds.
 *
 * The other halves of its order are the kernel's, which acquires the tail.
 *
 * I1  Of `count` buffers each is lent to the kernel, or named by a completion that was not taken yet.
 */
#include "io/lent.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "base/check.h"
#include "io/attempt.h"

enum { RING_BYTES = BZ_LENT_MAX * sizeof(struct bz_uring_buf) };
enum { ALL_BYTES = RING_BYTES + BZ_LENT_MAX * BZ_LENT_BYTES };

static void lend(struct bz_lent *l, uint16_t id)
{
    struct bz_uring_buf *e = &l->entry[l->tail++ % BZ_LENT_MAX];
    e->addr = (uint64_t)(uintptr_t)(l->data + (size_t)id * BZ_LENT_BYTES);
    e->bytes = BZ_LENT_BYTES;
    e->id = id;
    bz_store_release(l->shared_tail, l->tail); /* release: the entry is whole, the buffer read */
}

static void lend_up_to(struct bz_lent *l, unsigned count)
{
    while (l->count < count && l->count < BZ_LENT_MAX)
        lend(l, l->count++);
}

static void *map_all(void)
{
    if (bz_io_fault_of("mmap") != 0)
        return NULL;
    void *p = mmap(NULL, ALL_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return p != MAP_FAILED ? p : NULL;
}

static void make(struct bz_lent *l, const struct bz_ring *r)
{
    char *all = BZ_RING_IS_PLAIN ? NULL : map_all();
    l->state = BZ_LENT_REFUSED;
    if (all == NULL)
        return;
    struct bz_uring_buf_reg reg = {.addr = (uint64_t)(uintptr_t)all, .entries = BZ_LENT_MAX};
    if (bz_ring_register(r, BZ_URING_REGISTER_PBUF_RING, &reg, 1) != 0) {
        munmap(all, ALL_BYTES);
        return;
    }
    l->entry = (void *)all;
    l->shared_tail = (void *)&l->entry[0].tail;
    l->data = all + RING_BYTES;
    l->state = BZ_LENT_THERE;
    lend_up_to(l, BZ_LENT_FIRST);
}

bool bz_lent_is_there(struct bz_lent *l, const struct bz_ring *r)
{
    if (BZ_UNLIKELY(l->state == BZ_LENT_UNTRIED))
        make(l, r);
    return l->state == BZ_LENT_THERE;
}

bool bz_lent_is_for(const struct bz_op *op)
{
    return op->code == BZ_OP_RECV && op->flags == 0 && !op->has_own && op->buffer.bytes > 0 &&
           op->buffer.bytes <= BZ_LENT_BYTES;
}

void bz_lent_select(struct bz_uring_sqe *sqe)
{
    sqe->flags = BZ_URING_SQE_BUFFER_SELECT;
    sqe->buf_index = 0; /* the kernel's name for the group */
    sqe->addr = 0;
}

void bz_lent_copy(struct bz_lent *l, const struct bz_uring_cqe *c, const struct bz_op *op)
{
    uint16_t id = (uint16_t)(c->flags >> BZ_URING_CQE_BUFFER_SHIFT);
    BZ_CHECK(id < l->count && op->code == BZ_OP_RECV, "buffer %u of %u, operation %u", id, l->count,
             op->code);
    BZ_CHECK(c->res <= 0 || (size_t)c->res <= op->buffer.bytes, "%d bytes received for %zu", c->res,
             op->buffer.bytes);
    if (c->res > 0)
        memcpy(op->buffer.data, l->data + (size_t)id * BZ_LENT_BYTES, (size_t)c->res);
    l->served++;
    if (!BZ_BROKEN(146))
        lend(l, id); /* I1 */
}

void bz_lent_more(struct bz_lent *l)
{
    l->dry++;
    lend_up_to(l, l->count + 1u);
}

void bz_lent_fini(struct bz_lent *l)
{
    if (l->state == BZ_LENT_THERE)
        munmap(l->entry, ALL_BYTES);
    l->state = BZ_LENT_REFUSED;
}
