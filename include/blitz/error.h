/*
 * blitz/error.h - every error that the headers name, on every system.
 *
 * A call that fails returns the negative of a number of <errno.h>. Where a system has no such number this header
 * defines it. Of two names for one idea blitz uses one, whatever the system says:
 *
 *   EAGAIN       not EWOULDBLOCK
 *   EOPNOTSUPP   not ENOTSUP. Also what a call says that this system, socket or place does not have:
 *                docs/platforms.md
 */
#ifndef BLITZ_ERROR_H
#define BLITZ_ERROR_H

#include <errno.h>

/* EACCES EADDRINUSE EADDRNOTAVAIL EAGAIN EALREADY EBADF EBUSY ECANCELED ECONNREFUSED ECONNRESET EDEADLK
 * EDESTADDRREQ EEXIST EHOSTUNREACH EINPROGRESS EINVAL EIO EMFILE EMSGSIZE ENAMETOOLONG ENETUNREACH ENFILE ENODEV
 * ENOENT ENOMEM ENOSPC ENOTCONN EOPNOTSUPP EOVERFLOW EPERM EPIPE ERANGE ETIMEDOUT are there on Linux, macOS, the
 * BSDs and Windows. */
#if !defined(ENODATA) /* FreeBSD, OpenBSD */
#define ENODATA 9919
#endif
#if !defined(ESHUTDOWN) /* Windows: what its sockets call WSAESHUTDOWN */
#define ESHUTDOWN 10058
#endif

#endif
