/*
 * flight.h - what io.c and flight.c share: operations by readiness, and by completion.
 */
#ifndef BZ_SCHED_FLIGHT_H
#define BZ_SCHED_FLIGHT_H

#include "block/io.h"
#include "park/request.h"

static inline struct bz_runtime *bz_io_runtime(const struct bz_file *f)
{
    return BZ_CONTAINER_OF(f->files, struct bz_runtime, files);
}

static inline struct bz_io_future *bz_io_future_of(blitz_future *f)
{
    return BZ_CONTAINER_OF(f, struct bz_io_future, future);
}

int bz_io_future_output(blitz_future *future);

/* ---- a request (park/request.h) of either kind, under the file's lock ---- */

static inline struct bz_op *bz_io_op_of(struct bz_request *r)
{
    return BZ_CONTAINER_OF(r, struct bz_op, request);
}

static BZ_ALWAYS_INLINE void bz_io_lock(struct bz_request *r)
{
    bz_file_lock(bz_io_op_of(r)->file);
}

static BZ_ALWAYS_INLINE void bz_io_unlock(struct bz_request *r, struct bz_wakelist *wakes)
{
    struct bz_file *f = bz_io_op_of(r)->file;
    struct bz_runtime *rt = bz_io_runtime(f);
    bz_file_unlock(f); /* the operation may be gone */
    for (unsigned i = 0; i < wakes->count; i++)
        bz_io_wake(rt, &wakes->wake[i]);
}

/* Leave the file, if the operation still counts as its user. The operation is neither queued nor in flight. */
static inline void bz_io_leave_file(struct bz_op *op)
{
    if (!op->is_in)
        return; /* the file may be closed by now */
    bz_file_lock(op->file);
    bz_file_leave_unlock(op->file, op);
}

/* The system of the waiting thread. */
static inline const struct bz_os *bz_io_os(const struct bz_op *op)
{
    struct bz_task *me = bz_task_self();
    return me != NULL ? me->rt->os : op->file->files->os;
}

/* bz_io_run for a completion backend. */
int64_t bz_flight_run(struct bz_op *op, const char *what, blitz_deadline until);
extern const struct bz_request_ops bz_flight_request;
extern const blitz_future_ops bz_flight_future_ops;

#endif
