/*
 * uring_submit.c - submissions of the completion backend, and the kernel that refuses them. The essay is in uring.c.
 */
#define _GNU_SOURCE 1
#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>

#include "base/check.h"
#include "base/log.h"
#include "io/sqe.h"
#include "io/sys.h"
#include "io/uring_own.h"

enum { HAND_IN_ROUNDS = 100, PAUSE_NS = 100000 };

/* Wake the threads that sleep in the ring, without an enter. Under the lock. */
static void ring_bell(struct bz_uring_own *own)
{
    uint64_t one = 1;
    if (own->inside > 0 && own->bell >= 0)
        (void)!bz_sys->write(own->bell, &one, sizeof one);
}

/* An enter was refused. Under the lock. */
void bz_uring_was_refused(struct bz_uring_own *own, int err)
{
    if (own->is_denied)
        return;
    if (!bz_is_denied(err)) {
        own->refusals++;
        bz_log_once(BLITZ_LOG_WARN, "io_uring_enter fails (error %d): it is tried again", -err);
        return;
    }
    own->is_denied = true;
    bz_log_once(BLITZ_LOG_ERROR,
                "io_uring_enter is refused (error %d) since the start: operations on files fail",
                -err);
    ring_bell(own);
}

static void fill(struct bz_uring_own *own, struct bz_uring_sqe *sqe, const struct bz_later *l);

/* Put entries that came while the ring was full into it, as far as there is room. Under the lock. */
static BZ_NOINLINE void put_later(struct bz_uring_own *own)
{
    size_t done = 0;
    struct bz_uring_sqe *sqe;
    while (done < own->later_count && !own->later[done].is_over &&
           (sqe = bz_ring_put(&own->ring)) != NULL)
        fill(own, sqe, &own->later[done++]);
    own->later_count -= done;
    memmove(own->later, own->later + done, own->later_count * sizeof *own->later);
}

/* Submit the pending entries. Returns 0, or a negative errno: they are still pending. Under the
 * lock. */
int bz_uring_submit(struct bz_poll *poll)
{
    struct bz_uring_own *own = bz_uring_own_of(poll);
    int err = own->is_denied ? -EIO : bz_ring_submit(&own->ring);
    if (BZ_UNLIKELY(own->later_count > 0) && err == 0) {
        put_later(own);
        err = bz_ring_submit(&own->ring);
    }
    if (BZ_LIKELY(err == 0))
        own->refusals = 0;
    else
        bz_uring_was_refused(own, err);
    return err;
}

/* Make sure that an array has room for one more. Under the lock. */
static bool has_room(struct bz_poll *poll, void **array, size_t *room, size_t count, size_t bytes)
{
    size_t more = *room != 0 ? 2 * *room : 16;
    if (count < *room)
        return true;
    void *larger = bz_alloc(poll->files->alloc, more * bytes, _Alignof(max_align_t));
    if (larger == NULL)
        return false;
    if (*array != NULL) {
        memcpy(larger, *array, count * bytes);
        bz_free(poll->files->alloc, *array, *room * bytes);
    }
    *array = larger;
    *room = more;
    return true;
}

/* Submit entries for a waiter on another thread. If the kernel refuses for longer, a thread that
 * sleeps in the ring is woken and tries again. Under the lock. */
void bz_uring_hand_in(struct bz_poll *poll)
{
    struct bz_uring_own *own = bz_uring_own_of(poll);
    int err;
    for (unsigned round = 0;
         (err = bz_uring_submit(poll)) != 0 && !own->is_denied && round < HAND_IN_ROUNDS; round++)
        bz_os_relax(poll->os, round);
    if (err != 0)
        ring_bell(own);
}

/* Get room in the ring; a submit makes some. Under the lock. */
struct bz_uring_sqe *bz_uring_put(struct bz_poll *poll)
{
    struct bz_ring *ring = &bz_uring_own_of(poll)->ring;
    struct bz_uring_sqe *sqe = bz_ring_put(ring);
    if (BZ_LIKELY(sqe != NULL))
        return sqe;
    bz_uring_hand_in(poll);
    return bz_ring_put(ring);
}

/* Options of a receive on kernels with provided buffers. */
static void refine(struct bz_uring_own *own, const struct bz_op *op, struct bz_uring_sqe *sqe)
{
    if (!bz_provided_is_ready(&own->provided, &own->ring))
        return;
    if (bz_provided_is_for(op))
        bz_provided_select(sqe);
    if (!bz_load_relaxed(&op->file->half[BZ_SIDE_IN].is_ready)) /* relaxed: under the file's lock */
        sqe->ioprio = BZ_URING_RECV_POLL_FIRST;
}

static void fill(struct bz_uring_own *own, struct bz_uring_sqe *sqe, const struct bz_later *l)
{
    struct bz_op *op = l->op;
    unsigned bit = BZ_URING_POLLED;
    if (l->what == BZ_LATER_END) {
        sqe->opcode = BZ_URING_OP_ASYNC_CANCEL;
        sqe->fd = -1;
        sqe->addr = l->key;
        sqe->user_data = BZ_URING_ASKED;
        return;
    }
    if (l->what == BZ_LATER_BEGIN_WITH_POLL)
        bz_sqe_poll(sqe, op);
    else if (bz_sqe_fill(sqe, op))
        bit = 0;
    if (op->code == BZ_OP_RECV && bit == 0)
        refine(own, op, sqe);
    sqe->user_data = (uint64_t)(uintptr_t)op | bit;
}

/* Put an entry into the ring; if the kernel takes none for now and the ring is full, keep it for later. 0, -EIO,
 * -ENOMEM. Under the lock. */
static int put_or_keep(struct bz_poll *poll, struct bz_later l)
{
    struct bz_uring_own *own = bz_uring_own_of(poll);
    struct bz_uring_sqe *sqe = own->is_denied || own->later_count > 0 ? NULL : bz_uring_put(poll);
    if (own->is_denied)
        return -EIO;
    if (BZ_LIKELY(sqe != NULL)) {
        fill(own, sqe, &l);
        return 0;
    }
    if (!has_room(poll, (void **)&own->later, &own->later_room, own->later_count, sizeof l))
        return -ENOMEM;
    own->later[own->later_count++] = l;
    return 0;
}

/* Put the operation, or a poll for it, into the ring. The machine submits it, at the latest before
 * it sleeps. If a machine already sleeps there, we submit: no other machine may do it. */
int bz_uring_begin(struct bz_poll *poll, struct bz_op *op, bool polls_first)
{
    bz_uring_lock(poll);
    int err = put_or_keep(
        poll, (struct bz_later){op, 0, polls_first ? BZ_LATER_BEGIN_WITH_POLL : BZ_LATER_BEGIN, 0});
    if (bz_uring_own_of(poll)->inside > 0)
        bz_uring_hand_in(poll);
    bz_uring_unlock(poll);
    return err;
}

/* Other threads may take completions meanwhile, which the kernel may be waiting for. */
static void let_others(struct bz_poll *poll, unsigned *round)
{
    bz_os_word never = 0;
    bz_uring_unlock(poll);
    if ((*round)++ < HAND_IN_ROUNDS)
        bz_os_relax(poll->os, *round);
    else
        (void)bz_os_wait(poll->os, &never, 0, bz_os_now(poll->os) + PAUSE_NS);
    bz_uring_lock(poll);
}

/* Abandon a poll in flight: it completes as cancelled. Under the lock. */
static void lose(struct bz_poll *poll, const struct bz_op *op)
{
    struct bz_uring_own *own = bz_uring_own_of(poll);
    uint64_t key = (uint64_t)(uintptr_t)op;
    if (op->code != BZ_OP_POLL || bz_ring_has(&own->ring, key) ||
        !has_room(poll, (void **)&own->lost, &own->lost_room, own->lost_count, sizeof *own->lost))
        return;
    own->lost[own->lost_count++] = (struct bz_lost){key, false};
}

/* True if the operation is kept for later: then it ends there. Under the lock. */
static bool end_later(struct bz_uring_own *own, const struct bz_op *op)
{
    for (size_t i = 0; i < own->later_count; i++)
        if (own->later[i].op == op) {
            own->later[i].is_over = 1;
            return true;
        }
    return false;
}

/* End an operation of a denied ring. Under the lock. */
static void end_otherwise(struct bz_poll *poll, const struct bz_op *op)
{
    if (bz_sys->shutdown(op->file->fd, SHUT_RDWR) != 0 && errno == ENOTSOCK)
        lose(poll, op);
    bz_os_wake(poll->os, &poll->roused, UINT32_MAX); /* the machine checks */
}

/* Submit the cancel at once, because the ring's machine may sleep. It must not be lost, because the
 * caller waits for its result without a deadline. If the kernel refuses for now, the request is
 * pending, and the ring's machine submits it. */
void bz_uring_request_end(struct bz_poll *poll, struct bz_op *op)
{
    struct bz_uring_own *own = bz_uring_own_of(poll);
    unsigned round = 0;
    uint64_t key = (uint64_t)(uintptr_t)op;
    bz_uring_lock(poll);
    bool is_late = end_later(own, op);
    for (unsigned bit = 0; bit <= BZ_URING_POLLED && !is_late; bit += BZ_URING_POLLED)
        while (put_or_keep(poll, (struct bz_later){NULL, key | bit, BZ_LATER_END, 0}) == -ENOMEM)
            let_others(poll, &round);
    if (!own->is_denied)
        bz_uring_hand_in(poll);
    if (own->is_denied)
        end_otherwise(poll, op);
    bz_uring_unlock(poll);
}
