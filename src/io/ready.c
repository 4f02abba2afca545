/*
 * ready.c - operations by readiness: try, and wait until another try may succeed.
 *
 * The kernel reports once when a descriptor *becomes* ready (an edge). So we remember it: a half is
 * ready until a try has found that it is not. A wrong "ready" costs a useless system call; a wrong
 * "not ready" loses a wake-up forever. The two sides:
 *
 *      a try                                  an edge
 *      1  lock; ready = false; unlock         1  lock; ready = true
 *      2  the system call                     2  a waiter? ready = false, notify it
 *      3  lock; if more may be left:             unlock
 *         ready = true; unlock
 *
 * Ready is cleared *before* the call. The call sees the effect of any edge before the clearing; an
 * edge after it sets ready again, and only another try clears that. Rejected: clearing after the
 * call, guarded by a counter in the same word, as other runtimes do. If the counter is too narrow,
 * a new edge is mistaken for the old one (bug class 13). Here there is no counter.
 *
 * A notification uses up the readiness: the edge clears ready on behalf of the waiter that it notifies.
 * So a notified waiter makes its call at once, without step 1. It entered the file when it began to
 * wait, so the descriptor is open. It reads is_closing without the lock: a close that notified it is
 * visible, because the claim of its wait, or the lock that its poll took, came after. A close that is
 * later than the notification may be missed; then the call comes before the close.
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
 * I1  If a half has waiters, it is not ready. If an end, an error or urgent data makes a try worthwhile
 *     nevertheless (is_over), one waiter was notified and has not tried yet.
 *
 * A notified waiter may find that a new operation was faster. Then it waits again, behind the
 * others.
 */
#include "io/ready.h"

#include <errno.h>

#include "base/compiler.h"

/* Most files have no waiter, or only the notified one. */
static inline void wake_first(struct bz_half *h, struct bz_wake *wake)
{
    wake->kind = BZ_WAKE_NONE;
    if (!bz_list_is_empty(&h->waiting))
        bz_ready_wake_one(h, wake);
}

/* Other operations wait for the same half and are not notified: a backend that passes its list at
 * each wait must know of them. */
void bz_ready_notify_next(struct bz_file *f, enum bz_side side, struct bz_wake *next)
{
    struct bz_half *h = &f->half[side];
    bz_ready_wake_one(h, next);
    if (f->poll != NULL && f->poll->ops->want != NULL && !bz_half_is_worth_a_try(h) &&
        !bz_list_is_empty(&h->waiting))
        f->poll->ops->want(f->poll, f, side);
}

void bz_ready_refuse_unlock(struct bz_file *f, struct bz_op *op)
{
    op->result = -EBADF;
    op->state = BZ_OP_DONE;
    if (op->is_in) /* it was in progress when the file was closed */
        bz_file_leave_unlock(f, op);
    else
        bz_file_unlock(f);
}

bool bz_ready_call_end(struct bz_file *f, const struct bz_call *c, int64_t n, struct bz_wake *next)
{
    struct bz_half *h = &f->half[bz_op_side(c->code)];
    next->kind = BZ_WAKE_NONE;
    bz_file_lock(f);
    if (n <= 0 ? n != -EAGAIN : bz_call_left_more(f, c, n))
        bz_half_set_ready(h, true);
    if (!bz_list_is_empty(&h->waiting))
        bz_ready_notify_next(f, bz_op_side(c->code), next);
    if (--f->users == 0)
        bz_file_end_unlock(f);
    else
        bz_file_unlock(f);
    return n != -EAGAIN && n != -EINTR;
}

bool bz_ready_try(struct bz_op *op, struct bz_wake *next)
{
    return bz_ready_try_as(op, (enum bz_op_code)op->code, next);
}

void bz_ready_revoke(struct bz_op *op, struct bz_wake *next)
{
    next->kind = BZ_WAKE_NONE;
    if (op->state == BZ_OP_WAITS)
        bz_waiter_leave(&op->request.waiter);
    else if (op->state == BZ_OP_NOTIFIED) {
        bz_half_set_ready(&op->file->half[op->side], true); /* it was used up for this operation */
        wake_first(&op->file->half[op->side], next);
    }
    op->state = BZ_OP_NEW;
}

void bz_ready_wake_out(struct bz_file *f, struct bz_wake *wake)
{
    bz_ready_wake_one(&f->half[BZ_SIDE_OUT], wake);
}

static void half_is_over(struct bz_half *h)
{
    bz_half_set_over(h, true);
    /* relaxed: under the lock; a try that reads it without the lock may read it early, but not late */
    bz_store_relaxed(&h->overs, bz_load_relaxed(&h->overs) + 1);
}

/* With thousands of files, an event leads to a chain of cache misses: the file, the operation, the
 * task. So they are prefetched while earlier events are processed; the files themselves when their
 * events arrive. */
void bz_ready_look_ahead(struct bz_poll *poll, const struct bz_reaped *reaped)
{
    enum { WAITERS = 8 };
    unsigned at = reaped->at;
    for (unsigned i = at == 0 ? 0 : at + WAITERS; i <= at + WAITERS && i < reaped->count; i++)
        bz_file_fetch_waiter(poll->files, reaped->entry[i].key);
}

void bz_ready_event_over(struct bz_file *f, unsigned events, struct bz_wake wakes[BZ_SIDES])
{
    half_is_over(&f->half[BZ_SIDE_IN]);
    if (events & BZ_READY_OVER)
        half_is_over(&f->half[BZ_SIDE_OUT]);
    unsigned more = events & BZ_READY_OVER ? BZ_READY_IN | BZ_READY_OUT : BZ_READY_IN;
    bz_ready_event(f, (events | more) & (BZ_READY_IN | BZ_READY_OUT), wakes);
}
