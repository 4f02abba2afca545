/*
 * flight.h - what io.c and flight.c share: operations by readiness, and by completion.
 */
#ifndef BZ_SCHED_FLIGHT_H
#define BZ_SCHED_FLIGHT_H

#include "block/io.h"
#include "wait/wait.h"

/* An outcome of waits: the wait failed, and op->result has the reason. */
enum { BZ_IO_FAILED = BZ_WAIT_WOKEN + 1 };

static inline struct bz_runtime *bz_io_runtime(const struct bz_file *f)
{
    return BZ_CONTAINER_OF(f->files, struct bz_runtime, files);
}

static inline struct bz_io_future *bz_io_future_of(blitz_future *f)
{
    return BZ_CONTAINER_OF(f, struct bz_io_future, future);
}

int bz_io_future_output(blitz_future *future);

/* bz_io_run for a completion backend. */
int64_t bz_flight_run(struct bz_op *op, const char *what, blitz_deadline until);
extern const blitz_future_ops bz_flight_future_ops;

#endif
