/*
 * blitz/error.h - every error that the headers name, on every system.
 *
 * A call that fails returns the negative of a number from <errno.h>. If a system does not have the number, this header
 * defines it. Where two names mean the same, blitz uses one on every system:
 *
 *   EAGAIN       not EWOULDBLOCK
 *   EOPNOTSUPP   not ENOTSUP. It also means that this system, socket or place does not support the call:
 *                docs/platforms.md
 */
#ifndef BLITZ_ERROR_H
#define BLITZ_ERROR_H

#include <errno.h>

/* Linux, macOS, the BSDs and Windows all define these: EACCES EADDRINUSE EADDRNOTAVAIL EAGAIN EALREADY EBADF EBUSY
 * ECANCELED ECONNREFUSED ECONNRESET EDEADLK.
 * EDESTADDRREQ EEXIST EHOSTUNREACH EINPROGRESS EINVAL EIO EMFILE EMSGSIZE ENAMETOOLONG ENETUNREACH ENFILE ENODEV.
 * ENOENT ENOMEM ENOSPC ENOTCONN EOPNOTSUPP EOVERFLOW EPERM EPIPE ERANGE ETIMEDOUT. */
#if !defined(ENODATA) /* FreeBSD, OpenBSD */
#define ENODATA 9919
#endif
#if !defined(ESHUTDOWN) /* Windows: the value of WSAESHUTDOWN */
#define ESHUTDOWN 10058
#endif

#endif
