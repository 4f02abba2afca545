/*
 * error.h - one name for each error of the system's.
 *
 * EAGAIN and EWOULDBLOCK, and EOPNOTSUPP and ENOTSUP, are one number each on Linux only. The errno of a system
 * call goes through bz_error_of() before it is compared or returned; above that, the two other names do not occur.
 */
#ifndef BASE_ERROR_H
#define BASE_ERROR_H

#include "blitz/api.h"

/* Errors of a peer's host that some systems lack: numbers that no call there returns. */
#if !defined(EHOSTDOWN)
#define EHOSTDOWN 9918
#endif
#if !defined(ENONET)
#define ENONET 9917
#endif

/* The number that blitz uses for that error. */
static inline int bz_error_of(int error)
{
    if (error == EWOULDBLOCK) /* lint: allow error-name: translated here */
        return EAGAIN;
    if (error == ENOTSUP) /* lint: allow error-name: translated here */
        return EOPNOTSUPP;
    return error;
}

#endif
