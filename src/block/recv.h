/*
 * recv.h - a receive that begins with a wait: the fast path, inline. io.c has the rules, and does everything else.
 *
 * A server answers a request and reads the next one, so nearly each of its reads begins with a wait. The fast path is for a
 * task that reads from a handle without a deadline, while nothing unusual holds (base/unusual.h) and its file is used by
 * readiness. The caller checks that, and that the half is not ready.
 *
 * The wait and the operation lie in one frame at a constant distance. The hook on the next stack (bz_io_recv_hook) initialises
 * the waiter and enters the file. The edge notifies the waiter, so the task makes the call at once: ready.c. If the wait ends
 * in another way, or the call does not return fewer bytes than the buffer holds, a function of io.c goes on with the operation.
 * A wait with a deadline takes the general path.
 */
#ifndef BZ_BLOCK_RECV_H
#define BZ_BLOCK_RECV_H

#include "block/io.h"
#include "park/park.h"

struct bz_recv {
    struct bz_wait wait;
    struct bz_op op;
};

/* True if bz_recv_wait() can be used. m: the current machine, or NULL. */
BZ_MUST_USE static BZ_ALWAYS_INLINE bool bz_recv_is_usual(struct bz_machine *m, struct bz_file *f,
                                                          blitz_deadline until)
{
    return BZ_LIKELY(until == BLITZ_FOREVER) && bz_wait_is_usual(m) && bz_io_fault == NULL &&
           BZ_LIKELY(!f->files->completes && !bz_half_is_over(&f->half[BZ_SIDE_IN]));
}

/* Initialise the operation (but for its waiter, see the hook) and the wait. `owner`: data to prefetch. */
static BZ_ALWAYS_INLINE void bz_recv_init(struct bz_recv *r, struct bz_task *me, struct bz_file *f,
                                          uint32_t generation, const void *owner,
                                          const struct bz_call *c, const char *what)
{
    bz_op_init_call(&r->op, f, BZ_OP_RECV);
    r->op.request.ops = &bz_io_by_readiness;
    r->op.next = owner;
    r->op.generation = generation;
    r->op.buffer.data = c->data;
    r->op.buffer.bytes = c->bytes;
    bz_wait_begin_as(&r->wait, me, me->rt, me->rt->os, what, BLITZ_FOREVER);
}

/* Make the call after the wait. The operation was notified. Its arguments are read from the operation, so that none is kept
 * beside it over the wait. */
static BZ_ALWAYS_INLINE int64_t bz_recv_try(struct bz_recv *r, const char *what)
{
    struct bz_op *op = &r->op;
    struct bz_file *f = op->file;
    struct bz_half *in = &f->half[BZ_SIDE_IN];
    struct bz_call call = {BZ_OP_RECV, 0, op->buffer.data, op->buffer.bytes};
    uint32_t overs =
        bz_load_relaxed(&in->overs); /* relaxed: if it is old, only is_over stays set */
    op->state = BZ_OP_NEW;           /* readiness was used up for it */
    __builtin_prefetch(op->next);    /* the prefetch completes during the call */
    int64_t n = bz_call_make(f->fd, &call);
    if (BZ_UNLIKELY(n == -EINTR))
        n = bz_attempt(op);
    bz_os_delay(f->files->os, BZ_OS_AT_PUBLISH);
    bz_file_lock(f);
    if (BZ_UNLIKELY(n <= 0 || bz_call_left_more(f, &call, n) || !bz_list_is_empty(&in->waiting) ||
                    f->users == 1)) /* we are the last: it was closed */
        return bz_io_recv_end(op, what, overs, n);
    f->users--;
    bz_file_unlock(f);
    return n;
}

/*
 * Wait until a try is worthwhile, and receive.
 * Owns:     borrows the buffer until it returns.
 * Suspends: until there are bytes, or a cancel of the calling task.
 * Returns:  as bz_io_recv().
 */
static BZ_ALWAYS_INLINE int64_t bz_recv_wait(struct bz_machine *m, struct bz_file *f,
                                             uint32_t generation, const void *owner,
                                             const struct bz_call *c, const char *what)
{
    struct bz_recv r;
    struct bz_task *me = m->current;
    bz_recv_init(&r, me, f, generation, owner, c, what);
    uint32_t outcome = bz_wait_park_usual(m, me, &r.wait, bz_io_recv_hook);
    if (BZ_UNLIKELY(outcome < BZ_WAIT_WOKEN || r.op.state != BZ_OP_NOTIFIED ||
                    bz_file_is_closing(r.op.file)))
        return bz_io_recv_after(&r.op, what, outcome);
    return bz_recv_try(&r, what);
}

#endif
