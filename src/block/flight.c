/*
 * flight.c - operations by completion: submitted to the kernel, with their buffers, until they complete.
 *
 * The hook that parks the task submits the operation, under the file's lock. The completion comes
 * through the same lock, and finds the wait published. At a deadline or a cancel the kernel still has
 * the buffers. The task asks the kernel to end the operation and waits until it has ended; no deadline
 * or cancel ends that wait. If the operation completed nevertheless, its result is returned, so no byte
 * is lost. Only if nothing was done does the caller get the deadline's or the cancel's error.
 *
 * A future of this kind is pinned, for the same reason. While the operation flies, the backend owns its
 * state, and the state is read only under the file's lock. An owner that saw the end without the lock
 * could free the memory before the backend is done with it. op->is_seen, which says that the owner has
 * seen the end, is the owner's own.
 *
 * A call that may not wait (a deadline that is past) is not submitted: it is polled, and called if it
 * is ready. The descriptor may block, but a ready call does not wait, unless another reader is faster.
 * In that case the machine waits with it, as in any call.
 */
#include "block/flight.h"

#include <errno.h>

#include "io/attempt.h"
#include "proc/enter.h"
#include "wait/wait.h"

/* Return the poll to submit to: this proc's, or proc 0's without one. */
static struct bz_poll *poll_here(struct bz_runtime *rt)
{
    struct bz_machine *m = bz_machine_in(rt);
    return m != NULL ? &m->proc->poll : &rt->procs[0].poll;
}

/* Enter the file and submit the operation. Under the file's lock. */
static int submit(struct bz_op *op)
{
    uint32_t was;
    if (!bz_file_enter(op->file, op))
        return -EBADF;
    (void)!bz_enter(&was);
    struct bz_poll *poll = poll_here(bz_io_runtime(op->file));
    int err = poll->ops->submit(poll, op);
    struct bz_machine *m = bz_machine_in(bz_io_runtime(op->file));
    if (err == 0 && (m == NULL || poll != &m->proc->poll))
        bz_poll_rouse(poll); /* its machine submits it */
    bz_leave(was);
    return err;
}

static bool submit_hook(struct bz_wait *w, void *arg)
{
    struct bz_op *op = arg;
    struct bz_file *f = op->file;
    bz_file_lock(f);
    int err = submit(op);
    if (err != 0) {
        op->result = err;
        if (op->is_in)
            bz_file_leave_unlock(f, op);
        else
            bz_file_unlock(f);
        return bz_wait_over(w, BZ_IO_FAILED);
    }
    bool waits = bz_wait_publish(w);
    bz_file_unlock(f); /* the last thing */
    return waits;
}

/* Wait until an operation that was asked to end has ended. */
static bool end_hook(struct bz_wait *w, void *arg)
{
    struct bz_op *op = arg;
    bz_file_lock(op->file);
    if (op->state == BZ_OP_DONE) {
        bz_file_unlock(op->file);
        return bz_wait_over(w, BZ_WAIT_WOKEN);
    }
    op->waiter.wait = w; /* no more than that: the operation is in a list of its file */
    bool waits = bz_wait_publish(w);
    bz_file_unlock(op->file);
    return waits;
}

/* End the operation after a deadline or a cancel: the kernel has the buffers until it completes. */
static int64_t bring_down(struct bz_op *op, const char *what, const struct bz_os *os, int64_t why)
{
    struct bz_wait w;
    bz_file_lock(op->file);
    if (op->state == BZ_OP_IN_FLIGHT)
        op->poll->ops->cancel(op->poll, op);
    bz_file_unlock(op->file);
    bz_wait_begin_sole(&w, os, what);
    (void)!bz_wait_park(&w, end_hook, op); /* it has only one outcome */
    if (bz_wait_is_early(&w)) {
        bz_file_lock(op->file);
        bz_file_unlock(op->file);
    }
    return op->result == -ECANCELED ? why : op->result;
}

/* Try without waiting: call only if it is ready, since the descriptor may block. */
static int64_t try_flying(struct bz_op *op)
{
    struct bz_file *f = op->file;
    bz_file_lock(f);
    bool is_open = bz_file_enter(f, op);
    bz_file_unlock(f);
    if (!is_open)
        return -EBADF;
    int64_t result = bz_attempt_if_ready(op);
    bz_file_lock(f);
    bz_file_leave_unlock(f, op);
    return result == -EAGAIN ? -ETIMEDOUT : result;
}

int64_t bz_flight_run(struct bz_op *op, const char *what, blitz_deadline until)
{
    struct bz_wait w;
    struct bz_task *me = bz_task_self();
    const struct bz_os *os = me != NULL ? me->rt->os : op->file->files->os;
    if (until == 0)
        return try_flying(op);
    bz_wait_begin(&w, os, what, until);
    bz_waiter_init(&op->waiter, &w, BZ_WAIT_WOKEN);
    uint32_t outcome = bz_wait_refuse(&w);
    if (outcome != BZ_WAIT_OPEN)
        return bz_wait_error(outcome);
    outcome = bz_wait_park(&w, submit_hook, op);
    if (outcome == BZ_WAIT_WOKEN && bz_wait_is_early(&w)) {
        bz_file_lock(op->file);
        bz_file_unlock(op->file);
    }
    return outcome >= BZ_WAIT_WOKEN ? op->result : bring_down(op, what, os, bz_wait_error(outcome));
}

/* ---- futures ---- */

static blitz_poll flying_poll(blitz_future *future, const blitz_waker *waker)
{
    struct bz_io_future *f = bz_io_future_of(future);
    struct bz_op *op = &f->op;
    struct bz_file *file = op->file;
    if (op->is_seen)
        return BLITZ_READY;                       /* as before: its file may be gone */
    blitz_waker spare = blitz_waker_clone(waker); /* not under the lock: foreign code */
    bz_file_lock(file);
    int err = op->state == BZ_OP_NEW ? submit(op) : 0;
    if (err != 0) {
        op->result = err;
        op->state = BZ_OP_DONE;
    }
    bool flies = op->state == BZ_OP_IN_FLIGHT;
    if (flies) {
        spare = bz_waiter_set_waker(&op->waiter, spare);
    } else {
        op->is_seen = 1;
    }
    if (err != 0 && op->is_in)
        bz_file_leave_unlock(file, op);
    else
        bz_file_unlock(file);
    blitz_waker_drop(&spare);
    return flies ? BLITZ_PENDING : BLITZ_READY;
}

static void flying_cancel(blitz_future *future)
{
    struct bz_op *op = &bz_io_future_of(future)->op;
    if (op->is_seen)
        return;
    bz_file_lock(op->file);
    if (op->state == BZ_OP_IN_FLIGHT)
        op->poll->ops->cancel(op->poll, op);
    bz_file_unlock(op->file);
}

const blitz_future_ops bz_flight_future_ops = {
    .name = "I/O",
    .kind = BLITZ_PINNED,
    .poll = flying_poll,
    .cancel = flying_cancel,
    .output = bz_io_future_output,
};
