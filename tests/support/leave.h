/*
 * leave.h - a blocking call that its caller leaves at a deadline: the future of blitz_blocking(), awaited.
 */
#ifndef SUPPORT_LEAVE_H
#define SUPPORT_LEAVE_H

#include <errno.h>

#include "blitz/blocking.h"

/* Returns 0 and *result (may be NULL), or the error of the await or the future. */
static inline int leave_at(int (*fn)(void *arg), void *arg, void (*drop)(void *value, void *ctx),
                           int *result, blitz_deadline until)
{
    blitz_blocking_future f;
    blitz_blocking_future_init(&f, fn, arg, &(blitz_blocking_opts){.drop = drop});
    int err = blitz_await(&f.future, until);
    if (err == 0 && (f.result == -ENOMEM || f.result == -EINVAL))
        return f.result;
    if (err == 0 && result != NULL)
        *result = f.result;
    return err;
}

#endif
