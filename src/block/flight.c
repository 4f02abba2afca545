/*
 * flight.c - operations by completion: submitted to the kernel, with their buffers, until they complete.
 *
 * An operation is a request (park/request.h), under the file's lock. To enter is to submit it. A blocking
 * call enters in the hook of its wait, so the completion, which comes through the same lock, finds the wait
 * published. To leave is to ask the kernel to end the operation: the kernel still has the buffers. A task
 * waits until the operation has ended; no deadline or cancel ends that wait. If the operation completed
 * nevertheless, its result is returned, so no byte is lost. Only if nothing was done does the caller get the
 * deadline's or the cancel's error.
 *
 * A future of this kind is pinned, for the same reason. While the operation flies, the backend owns its
 * state, and the state is read only under the file's lock. An owner that saw the end without the lock
 * could free the memory before the backend is done with it. op->is_seen, which says that the owner has
 * seen the end, is the owner's own. A blocking call sees the end by its wait: the claim of the wait is the last
 * access of the backend to the operation (io/uring.c, uring_deliver), so the call continues without the lock.
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

/* ---- the request: until it has ended ---- */

static BZ_ALWAYS_INLINE bool flight_enter(struct bz_request *r, struct bz_wakelist *wakes)
{
    struct bz_op *op = bz_io_op_of(r);
    (void)wakes;
    int err = op->state == BZ_OP_NEW ? submit(op) : 0;
    if (err != 0) {
        op->result = err;
        op->state = BZ_OP_DONE;
    }
    op->is_seen = op->state == BZ_OP_DONE;
    if (!op->is_seen)
        r->waiter.state = BZ_WAITER_QUEUED; /* the backend has put it into a list of the file */
    return op->is_seen;
}

/* Ask the kernel to end it. The owner must wait until it has ended. */
static bool flight_leave(struct bz_request *r, struct bz_wakelist *wakes)
{
    struct bz_op *op = bz_io_op_of(r);
    (void)wakes;
    if (op->state == BZ_OP_IN_FLIGHT)
        op->poll->ops->cancel(op->poll, op);
    else if (op->state == BZ_OP_NEW && !r->waiter.is_polled)
        op->is_seen = 1; /* a blocking call that was refused its wait */
    return true;
}

const struct bz_request_ops bz_flight_request = {
    .what = "I/O",
    .lock = bz_io_lock,
    .unlock = bz_io_unlock,
    .enter = flight_enter,
    .leave = flight_leave,
    .is_tried = true,
};

/* ---- fibers and threads ---- */

BZ_REQUEST_HOOKS(flight_hooks, &bz_flight_request);

/* Wait until an operation that was asked to end has ended. */
static bool end_hook(struct bz_wait *w, void *arg)
{
    struct bz_op *op = arg;
    bz_file_lock(op->file);
    if (op->state == BZ_OP_DONE) {
        bz_file_unlock(op->file);
        return bz_wait_over(w, BZ_WAIT_WOKEN);
    }
    op->request.waiter.wait = w; /* no more than that: the operation is in a list of its file */
    bool waits = bz_wait_publish(w);
    bz_file_unlock(op->file);
    return waits;
}

/* A deadline or a cancel has asked the operation to end: the kernel has the buffers until it completes. */
static int64_t bring_down(struct bz_op *op, const char *what, int64_t why)
{
    struct bz_wait w;
    bz_wait_begin_sole(&w, bz_io_os(op), what);
    (void)!bz_wait_park(&w, end_hook, op); /* it has only one outcome */
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
    if (until == 0)
        return try_flying(op);
    struct bz_wait w;
    bz_wait_begin(&w, bz_io_os(op), what, until);
    op->request.ops = &bz_flight_request;
    bz_waiter_init(&op->request.waiter, &w, BZ_WAIT_WOKEN);
    int err = bz_request_park_by(&op->request, &w, flight_hooks, &bz_flight_request);
    if (err != 0)
        return op->is_seen ? err : bring_down(op, what, err);
    bz_io_leave_file(op); /* if it could not be submitted */
    return op->result;
}

/* ---- futures ---- */

static blitz_poll flying_poll(blitz_future *future, const blitz_waker *waker)
{
    struct bz_op *op = &bz_io_future_of(future)->op;
    if (op->is_seen)
        return BLITZ_READY; /* as before: its file may be gone */
    if (!bz_request_poll(&op->request, waker))
        return BLITZ_PENDING;
    bz_io_leave_file(op); /* if it could not be submitted */
    return BLITZ_READY;
}

/* The future is pinned: it keeps its waker, and is polled until the operation has ended. */
static void flying_cancel(blitz_future *future)
{
    struct bz_op *op = &bz_io_future_of(future)->op;
    if (!op->is_seen)
        (void)!bz_request_leave_now(&op->request);
}

const blitz_future_ops bz_flight_future_ops = {
    .name = "I/O",
    .kind = BLITZ_PINNED,
    .poll = flying_poll,
    .cancel = flying_cancel,
    .output = bz_io_future_output,
};
