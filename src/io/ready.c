/*
 * ready.c - operations by readiness: try, and wait until it is worth another try.
 *
 * The kernel tells when a descriptor *becomes* ready (an edge), once. So what it told is kept: a half
 * is ready until a try has found that it is not. Kept wrongly in one direction that costs a system
 * call for nothing, in the other a wake-up is lost for ever. Where the two meet:
 *
 *      who tries                              who hears the edge
 *      1  lock; ready = false; unlock         1  lock; ready = true
 *      2  the system call                     2  tell the first that waits; unlock
 *      3  lock; if more may be left:
 *         ready = true; unlock
 *
 * Ready is cleared *before* the call. An edge from before the clearing is answered by the call, which
 * comes after it; an edge from after sets it again, and nobody but another try clears that. Rejected:
 * clearing after the call what was set before it, guarded by a counter in the same word. That is what
 * others do, and with a counter that is too narrow an edge is taken for the old one (bug class 13).
 * Here there is no counter.
 *
 * Before that comes a look without the lock: one that finds a half not ready, as most do that come to
 * read the next message, goes to wait and neither enters the file nor calls. It is a hint, and whoever
 * waits asks again under the lock, having entered.
 *
 * More may be left: when the call filled its buffer, took one of many connections, or told of an end or
 * an error, which it will tell again. Not if a stream gave less than was asked: then it is empty, and
 * the next read waits without asking the kernel. But the end of a stream may have come with the last
 * bytes, in the same edge; so an edge that says "hung up" leaves the half ready for ever (is_over). So does
 * one that tells of an error or of urgent data, which end a read before the stream is empty; a call that would
 * have to wait shows that it was neither the end nor the rest, and ends that (unless the edge came in the
 * middle of it: `overs` counts them). A Unix stream gives less as well where descriptors travel with the
 * bytes: there a short read says nothing (BZ_FILE_CARGO).
 *
 * The same for both halves, the room to write included; and for several that wait for the same half
 * (accept by many): each edge tells the first one; one who found more than it took tells the next; one
 * that was told and goes without trying (a future that is cancelled) does so, too. So connections are
 * not announced to a herd (bug class 20), and nobody sleeps beside a ready half:
 *
 * I1  If a half is ready and somebody waits for it, somebody was told and has not tried yet.
 *
 * Whoever was told tries like anybody else, and may find that a newcomer has been faster. Then it
 * waits again, behind the others.
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
        op->state = BZ_OP_TOLD;
        if (bz_waiter_claim(&op->waiter, 0, wake))
            return; /* else it had gone: the next one */
    }
}

/* Most files have nobody who waits, or the one that is told. */
static inline void wake_first(struct bz_half *h, struct bz_wake *wake)
{
    wake->kind = BZ_WAKE_NONE;
    if (!bz_list_is_empty(&h->waiting))
        wake_one(h, wake);
}

/* Others wait for the same half. Those who are not told: a keeper that asks the kernel anew each time
 * must know of them. */
static BZ_NOINLINE void pass_on(struct bz_file *f, const struct bz_op *op, struct bz_wake *next)
{
    struct bz_half *h = &f->half[op->side];
    wake_one(h, next);
    if (f->poll != NULL && f->poll->ops->want != NULL && !bz_half_is_worth_a_try(h) &&
        !bz_list_is_empty(&h->waiting))
        f->poll->ops->want(f->poll, f, op->side);
}

/* It is over without a call. */
static BZ_NOINLINE void refuse_unlock(struct bz_file *f, struct bz_op *op)
{
    op->result = -EBADF;
    op->state = BZ_OP_DONE;
    if (op->is_in) /* it was under way when the file was closed */
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
        return false; /* a hint: who waits asks again, under the lock */
    bz_file_lock(f);
    if (BZ_UNLIKELY(!bz_file_enter(f, op))) {
        refuse_unlock(f, op);
        return true;
    }
    bool is_worth = bz_half_is_worth_a_try(h);
    uint32_t overs = h->overs;
    if (!BZ_BROKEN(141))
        bz_half_set_ready(h, false);
    bz_file_unlock(f);
    if (!is_worth)
        return false;
    __builtin_prefetch(op->next); /* the call takes long enough for it to come */
    int64_t result = bz_attempt(op);
    bz_os_delay(f->files->os, BZ_OS_AT_PUBLISH);
    bz_file_lock(f);
    if (BZ_BROKEN(141))
        bz_half_set_ready(h, false);
    if (result == -EAGAIN) {
        if (h->overs == overs || BZ_BROKEN(161))
            bz_half_set_over(h, false); /* an error that has been told: not the end */
        bz_file_unlock(f);
        return false;
    }
    if (bz_attempt_left_more(op, result))
        bz_half_set_ready(h, true);
    if (BZ_UNLIKELY(!bz_list_is_empty(&h->waiting)))
        pass_on(f, op, next);
    op->result = result;
    op->state = BZ_OP_DONE;
    bz_file_leave_unlock(f, op);
    return true;
}

bool bz_ready_wait(struct bz_op *op)
{
    struct bz_file *f = op->file;
    struct bz_half *h = &f->half[op->side];
    if (bz_half_is_worth_a_try(h) && !BZ_BROKEN(155))
        return true;
    bz_waiter_queue(&op->waiter, &h->waiting);
    op->state = BZ_OP_WAITS;
    if (f->poll->ops->want != NULL)
        f->poll->ops->want(f->poll, f, op->side);
    return false;
}

void bz_ready_revoke(struct bz_op *op, struct bz_wake *next)
{
    next->kind = BZ_WAKE_NONE;
    if (op->state == BZ_OP_WAITS)
        bz_waiter_leave(&op->waiter);
    else if (op->state == BZ_OP_TOLD && !BZ_BROKEN(142))
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
    if ((events & (BZ_READY_OVER | BZ_READY_IN_OVER)) && !BZ_BROKEN(143))
        half_is_over(in);
    if (events & BZ_READY_OVER)
        half_is_over(out);
    wake_first(in, &wakes[BZ_SIDE_IN]);
    wake_first(out, &wakes[BZ_SIDE_OUT]);
}
