/*
 * ready.h - operations by readiness: try, and wait until another try may succeed. ready.c has the
 * rules.
 *
 * For backends that report readiness of descriptors (epoll, poll, kqueue).
 */
#ifndef BZ_IO_READY_H
#define BZ_IO_READY_H

#include "io/attempt.h"
#include "io/file.h"
#include "io/poll.h"

/*
 * Try the operation if the file is probably ready. No lock is held.
 * Returns: true: done, op->result; *next is the wake-up of the next waiter, or BZ_WAKE_NONE. False:
 *          it must wait; no waiter was claimed, and it may not have entered the file.
 */
BZ_MUST_USE bool bz_ready_try(struct bz_op *op, struct bz_wake *next);

/* Under the file's lock, after enter and attach: return true if another try may succeed already.
 * Else the operation waits from here on. */
BZ_MUST_USE static BZ_ALWAYS_INLINE bool bz_ready_wait(struct bz_op *op)
{
    struct bz_file *f = op->file;
    struct bz_half *h = &f->half[op->side];
    if (bz_half_is_worth_a_try(h))
        return true;
    bz_waiter_queue(&op->request.waiter, &h->waiting);
    op->state = BZ_OP_WAITS;
    if (BZ_UNLIKELY(f->poll->ops->want != NULL))
        f->poll->ops->want(f->poll, f, op->side);
    return false;
}

/* Under the file's lock: end the wait. If the operation was notified, *next is the waiter that is
 * notified instead. */
void bz_ready_revoke(struct bz_op *op, struct bz_wake *next);

/* Notify the first waiter of a half, on account of a readiness that this uses up: ready.c, I1. Under the lock.
 * `claim` as in bz_waiter_claim_by(). Return false if there is none left. *wake is BZ_WAKE_NONE before. */
BZ_MUST_USE static BZ_ALWAYS_INLINE bool bz_ready_notify_by(struct bz_half *h, struct bz_wake *wake,
                                                            bz_wait_claimer *claim)
{
    while (!bz_list_is_empty(&h->waiting)) {
        struct bz_op *op = bz_op_of(h->waiting.next);
        op->state = BZ_OP_NOTIFIED;
        if (BZ_LIKELY(bz_waiter_claim_by(&op->request.waiter, 0, wake, claim)))
            return true;
        op->state = BZ_OP_NEW; /* the waiter had left: it takes the lock before it goes */
    }
    return false;
}

/* Notify the first waiter of a half that is worth a try. Likewise. */
static BZ_ALWAYS_INLINE void bz_ready_wake_one(struct bz_half *h, struct bz_wake *wake)
{
    if (bz_half_is_worth_a_try(h) && bz_ready_notify_by(h, wake, NULL))
        bz_half_set_ready(h, false); /* used up */
}

/* Process an edge of the file. Under its lock. The wakes are BZ_WAKE_NONE before. */
enum { BZ_READY_IN = 1, BZ_READY_OUT = 2, BZ_READY_OVER = 4, BZ_READY_IN_OVER = 8 };
void bz_ready_event_over(struct bz_file *f, unsigned events, struct bz_wake wakes[BZ_SIDES]);
void bz_ready_wake_out(struct bz_file *f,
                       struct bz_wake *wake); /* bz_ready_wake_one for the side out */
static BZ_ALWAYS_INLINE void bz_ready_event_by(struct bz_file *f, unsigned events,
                                               struct bz_wake wakes[BZ_SIDES],
                                               bz_wait_claimer *claim)
{
    struct bz_half *in = &f->half[BZ_SIDE_IN], *out = &f->half[BZ_SIDE_OUT];
    if (BZ_UNLIKELY(events & (BZ_READY_OVER | BZ_READY_IN_OVER))) {
        bz_ready_event_over(f, events, wakes);
        return;
    }
    if (events & BZ_READY_IN) {
        if (bz_ready_notify_by(in, &wakes[BZ_SIDE_IN], claim))
            bz_half_set_ready(in, false); /* used up */
        else
            bz_half_set_ready(in, true);
    }
    if (events & BZ_READY_OUT) { /* a reader's event says so each time */
        bz_half_set_ready(out, true);
        if (BZ_UNLIKELY(!bz_list_is_empty(&out->waiting)))
            bz_ready_wake_out(f, &wakes[BZ_SIDE_OUT]);
    }
}
static BZ_ALWAYS_INLINE void bz_ready_event(struct bz_file *f, unsigned events,
                                            struct bz_wake wakes[BZ_SIDES])
{
    bz_ready_event_by(f, events, wakes, NULL);
}

/*
 * Deliver the next entry of a ready list (io/poll.h) whose `what` are the bits above: of a backend that has edges.
 * files: poll->files. `claim` as above. The wakes are BZ_WAKE_NONE before.
 */
void bz_ready_look_ahead(struct bz_poll *poll, const struct bz_reaped *reaped);
static BZ_ALWAYS_INLINE void bz_ready_deliver_by(struct bz_poll *poll, struct bz_reaped *reaped,
                                                 struct bz_files *files,
                                                 struct bz_wake wakes[BZ_SIDES],
                                                 bz_wait_claimer *claim)
{
    if (BZ_UNLIKELY(reaped->is_far))
        bz_ready_look_ahead(poll, reaped);
    const struct bz_reaped_entry *entry = &reaped->entry[reaped->at];
    struct bz_file *f = bz_file_find(files, entry->key);
    if (BZ_UNLIKELY(f == NULL))
        return; /* the file was closed and its descriptor may have been reused */
    bz_ready_event_by(f, (unsigned)entry->what, wakes, claim);
    struct bz_poll *heir = bz_load_relaxed(&poll->heir); /* relaxed: a hint */
    if (BZ_UNLIKELY(heir != NULL) && f->poll == poll)
        bz_poll_move(heir, f);
    bz_file_unlock(f);
}

/* ---- a try whose kind of operation is known at compile time ---- */

/* The side of an operation with that code. A BZ_OP_POLL may be for either side. */
static BZ_ALWAYS_INLINE enum bz_side bz_ready_side(const struct bz_op *op, enum bz_op_code code)
{
    return code == BZ_OP_RECV || code == BZ_OP_SEND ? bz_op_side(code) : (enum bz_side)op->side;
}

/* End the operation without a call. Releases the lock. */
void bz_ready_refuse_unlock(struct bz_file *f, struct bz_op *op);
/* Under the lock: other operations wait for the same half. */
void bz_ready_notify_next(struct bz_file *f, enum bz_side side, struct bz_wake *next);

/* Step 1 of a try (ready.c): enter the file and use up its readiness. Returns: 1: make the call; 0: it must wait; -1: the
 * file was closed, and the operation has ended. */
BZ_MUST_USE static BZ_ALWAYS_INLINE int bz_ready_begin(struct bz_op *op, enum bz_op_code code,
                                                       uint32_t *overs)
{
    struct bz_file *f = op->file;
    struct bz_half *h = &f->half[bz_ready_side(op, code)];
    bz_file_lock(f);
    if (BZ_UNLIKELY(!bz_file_enter(f, op))) {
        bz_ready_refuse_unlock(f, op);
        return -1;
    }
    bool is_worth = bz_half_is_worth_a_try(h);
    *overs = bz_load_relaxed(&h->overs); /* relaxed: under the lock */
    bz_half_set_ready(h, false);
    bz_file_unlock(f);
    return is_worth;
}

/* Step 3 of a try (ready.c): note what the result of the call says of the half. Return true if the operation is
 * done. Under the lock, which it releases. */
BZ_MUST_USE static BZ_ALWAYS_INLINE bool bz_ready_end_unlock(struct bz_op *op, enum bz_op_code code,
                                                             uint32_t overs, int64_t result,
                                                             struct bz_wake *next)
{
    struct bz_file *f = op->file;
    struct bz_half *h = &f->half[bz_ready_side(op, code)];
    if (BZ_UNLIKELY(result == -EAGAIN)) {
        if (bz_load_relaxed(&h->overs) == overs) /* relaxed: under the lock */
            bz_half_set_over(h, false); /* an error that was returned already: not the end */
        bz_file_unlock(f);
        return false;
    }
    if (bz_attempt_left_more(op, code, result))
        bz_half_set_ready(h, true);
    if (BZ_UNLIKELY(!bz_list_is_empty(&h->waiting)))
        bz_ready_notify_next(f, bz_ready_side(op, code), next);
    op->result = result;
    op->state = BZ_OP_DONE;
    bz_file_leave_unlock(f, op);
    return true;
}

BZ_MUST_USE static BZ_ALWAYS_INLINE bool bz_ready_end(struct bz_op *op, enum bz_op_code code,
                                                      uint32_t overs, int64_t result,
                                                      struct bz_wake *next)
{
    bz_file_lock(op->file);
    return bz_ready_end_unlock(op, code, overs, result, next);
}

/* bz_ready_try of an operation with that code. */
BZ_MUST_USE static BZ_ALWAYS_INLINE bool bz_ready_try_as(struct bz_op *op, enum bz_op_code code,
                                                         struct bz_wake *next)
{
    struct bz_file *f = op->file;
    struct bz_half *h = &f->half[bz_ready_side(op, code)];
    next->kind = BZ_WAKE_NONE;
    if (!op->is_in && !bz_half_is_worth_a_try(h))
        return false;                            /* a hint: a wait checks again under the lock */
    uint32_t overs = bz_load_relaxed(&h->overs); /* relaxed: if it is old, only is_over stays set */
    if (op->state == BZ_OP_NOTIFIED && BZ_LIKELY(!bz_file_is_closing(f))) {
        op->state = BZ_OP_NEW; /* readiness was used up for it */
    } else {
        int begun = bz_ready_begin(op, code, &overs);
        if (BZ_UNLIKELY(begun <= 0))
            return begun < 0;
    }
    __builtin_prefetch(op->next); /* the prefetch completes during the call */
    int64_t result = bz_attempt_as(op, code);
    bz_os_delay(f->files->os, BZ_OS_AT_PUBLISH);
    return bz_ready_end(op, code, overs, result, next);
}

/*
 * A receive or a send that has not begun, without an operation: the common case, in which the half is ready and the
 * call is made. In three steps, so that a caller can put what is rare between them into functions of its own:
 *
 *     bz_ready_call_begin()   enter the file and use up its readiness. False: nothing was done; make an operation of it
 *     the call
 *     bz_ready_call_end_usual()   the rest, if the result is the ordinary one. False: nothing was done
 *     bz_ready_call_end()     the rest after any result
 */
BZ_MUST_USE static BZ_ALWAYS_INLINE bool bz_ready_call_begin(struct bz_file *f, uint32_t generation,
                                                             enum bz_side side)
{
    struct bz_half *h = &f->half[side];
    if (!bz_half_is_ready(h) || BZ_UNLIKELY(!bz_file_try_lock(f)))
        return false;
    if (BZ_UNLIKELY(f->generation != generation || !bz_half_is_ready(h))) {
        bz_file_unlock(f);
        return false;
    }
    f->users++; /* the file is open in this generation: file.c, I1 and I3 */
    bz_half_set_ready(h, false);
    bz_file_unlock(f);
    return true;
}

BZ_MUST_USE static BZ_ALWAYS_INLINE bool bz_ready_call_end_usual(struct bz_file *f,
                                                                 const struct bz_call *c, int64_t n)
{
    struct bz_half *h = &f->half[bz_op_side(c->code)];
    if (BZ_UNLIKELY(n <= 0 || !bz_file_try_lock(f)))
        return false;
    unsigned users = f->users - 1;
    if (BZ_UNLIKELY(!bz_list_is_empty(&h->waiting) || users == 0)) { /* 0: it was closed */
        bz_file_unlock(f);
        return false;
    }
    f->users = users;
    if (bz_call_left_more(f, c, n))
        bz_half_set_ready(h, true);
    bz_file_unlock(f);
    return true;
}

/* n: as from bz_call_outcome(). *next as in bz_ready_try. Return true if the call is done; false: make an operation of it. */
BZ_MUST_USE bool bz_ready_call_end(struct bz_file *f, const struct bz_call *c, int64_t n,
                                   struct bz_wake *next);

#endif
