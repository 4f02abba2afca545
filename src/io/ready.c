/*
 * ready.c - operations by readiness: try, and wait until another try may succeed.
 *
 * The kernel reports once when a descriptor *becomes* ready (an edge). So we remember it: a half is
 * ready until a try has found that it is not. A wrong "ready" costs a useless system call; a wrong
 * "not ready" loses a wake-up forever. The two sides:
 *
 *      a try                                  an edge
 *      1  lock; ready = false; unlock         1  lock; ready = true
 *      2  the system call                     2  notify the first waiter; unlock
 *      3  lock; if more may be left:
 *         ready = true; unlock
 *
 * Ready is cleared *before* the call. The call sees the effect of any edge before the clearing; an
 * edge after it sets ready again, and only another try clears that. Rejected: clearing after the
 * call, guarded by a counter in the same word, as other runtimes do. If the counter is too narrow,
 * a new edge is mistaken for the old one (bug class 13). Here there is no counter.
 *
 * A try first checks without the lock. If the half is not ready, as in most reads of a next
 * message, the operation goes to wait without entering the file or making a call. The unlocked
 * check is a hint: the wait checks again under the lock, after it has entered the file.
 *
 * More may be left if the call filled its buffer, took one of several connections, or returned an
 * end or an error, which the next call returns again. If a stream returned less than requested, it
 * is empty, and the next read waits without a system call. But the end of a stream may arrive with
 * the last bytes, in the same edge. So an edge with "hung up" leaves the half ready permanently
 * (is_over). So does an edge with an error or urgent data, which make a read short before the
 * stream is empty. A later call that returns -EAGAIN shows that there was no end and no rest, and
 * clears is_over (unless a new edge came during the call: `overs` counts them). A Unix stream also
 * returns less where descriptors are attached to the bytes: there a short read proves nothing
 * (BZ_FILE_PASSES_FDS).
 *
 * The same applies to both halves, and to several waiters for the same half (accept by many tasks).
 * Each edge notifies the first waiter. A waiter that finds more than it takes notifies the next
 * one, and so does a notified waiter that leaves without a try (a cancelled future). So a
 * connection does not wake all waiters (bug class 20), and no waiter sleeps beside a ready half:
 *
 * I1  If a half is ready and has waiters, one waiter was notified and has not tried yet.
 *
 * A notified waiter may find that a new operation was faster. Then it waits again, behind the
 * others.
 */
#include "io/ready.h"

#include <errno.h>

#include "base/compiler.h"
#include "io/attempt.h"
#include "io/file.h"
#include "io/poll.h"

/* I1. Under the lock. */
static void wake_one(struct bz_half *h, struct bz_wake *wake)
{
    while (bz_half_is_worth_a_try(h) && !bz_list_is_empty(&h->waiting)) {
        struct bz_op *op = bz_op_of(h->waiting.next);
        op->state = BZ_OP_NOTIFIED;
        if (bz_waiter_claim(&op->request.waiter, 0, wake))
            return; /* else the waiter had left: try the next one */
    }
}

/* Most files have no waiter, or only the notified one. */
static inline void wake_first(struct bz_half *h, struct bz_wake *wake)
{
    wake->kind = BZ_WAKE_NONE;
    if (!bz_list_is_empty(&h->waiting))
        wake_one(h, wake);
}

/* Other operations wait for the same half and are not notified: a backend that passes its list at
 * each wait must know of them. */
static BZ_NOINLINE void notify_next(struct bz_file *f, const struct bz_op *op, struct bz_wake *next)
{
    struct bz_half *h = &f->half[op->side];
    wake_one(h, next);
    if (f->poll != NULL && f->poll->ops->want != NULL && !bz_half_is_worth_a_try(h) &&
        !bz_list_is_empty(&h->waiting))
        f->poll->ops->want(f->poll, f, op->side);
}

/* End the operation without a call. */
static BZ_NOINLINE void refuse_unlock(struct bz_file *f, struct bz_op *op)
{
    op->result = -EBADF;
    op->state = BZ_OP_DONE;
    if (op->is_in) /* it was in progress when the file was closed */
        bz_file_leave_unlock(f, op);
    else
        bz_file_unlock(f);
}

bool bz_ready_try(struct bz_op *op, struct bz_wake *next)
{
    struct bz_file *f = op->file;
    struct bz_half *h = &f->half[op->side];
    next->kind = BZ_WAKE_NONE;
    if (!op->is_in && !bz_half_is_worth_a_try(h))
        return false; /* a hint: a wait checks again under the lock */
    bz_file_lock(f);
    if (BZ_UNLIKELY(!bz_file_enter(f, op))) {
        refuse_unlock(f, op);
        return true;
    }
    bool is_worth = bz_half_is_worth_a_try(h);
    uint32_t overs = h->overs;
    bz_half_set_ready(h, false);
    bz_file_unlock(f);
    if (!is_worth)
        return false;
    __builtin_prefetch(op->next); /* the prefetch completes during the call */
    int64_t result = bz_attempt(op);
    bz_os_delay(f->files->os, BZ_OS_AT_PUBLISH);
    bz_file_lock(f);
    if (result == -EAGAIN) {
        if (h->overs == overs)
            bz_half_set_over(h, false); /* an error that was returned already: not the end */
        bz_file_unlock(f);
        return false;
    }
    if (bz_attempt_left_more(op, result))
        bz_half_set_ready(h, true);
    if (BZ_UNLIKELY(!bz_list_is_empty(&h->waiting)))
        notify_next(f, op, next);
    op->result = result;
    op->state = BZ_OP_DONE;
    bz_file_leave_unlock(f, op);
    return true;
}

bool bz_ready_wait(struct bz_op *op)
{
    struct bz_file *f = op->file;
    struct bz_half *h = &f->half[op->side];
    if (bz_half_is_worth_a_try(h))
        return true;
    bz_waiter_queue(&op->request.waiter, &h->waiting);
    op->state = BZ_OP_WAITS;
    if (f->poll->ops->want != NULL)
        f->poll->ops->want(f->poll, f, op->side);
    return false;
}

void bz_ready_revoke(struct bz_op *op, struct bz_wake *next)
{
    next->kind = BZ_WAKE_NONE;
    if (op->state == BZ_OP_WAITS)
        bz_waiter_leave(&op->request.waiter);
    else if (op->state == BZ_OP_NOTIFIED)
        wake_first(&op->file->half[op->side], next);
    op->state = BZ_OP_NEW;
}

static void half_is_over(struct bz_half *h)
{
    bz_half_set_over(h, true);
    h->overs++;
}

void bz_ready_event(struct bz_file *f, unsigned events, struct bz_wake wakes[BZ_SIDES])
{
    struct bz_half *in = &f->half[BZ_SIDE_IN], *out = &f->half[BZ_SIDE_OUT];
    if (events & (BZ_READY_IN | BZ_READY_OVER | BZ_READY_IN_OVER))
        bz_half_set_ready(in, true);
    if (events & (BZ_READY_OUT | BZ_READY_OVER))
        bz_half_set_ready(out, true);
    if (events & (BZ_READY_OVER | BZ_READY_IN_OVER))
        half_is_over(in);
    if (events & BZ_READY_OVER)
        half_is_over(out);
    wake_first(in, &wakes[BZ_SIDE_IN]);
    wake_first(out, &wakes[BZ_SIDE_OUT]);
}
