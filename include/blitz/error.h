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

/* Linux, macOS, the BSDs and Windows all define these:
 * E2BIG EACCES EADDRINUSE EADDRNOTAVAIL EAGAIN EALREADY EBADF EBUSY ECANCELED ECHILD ECONNABORTED ECONNREFUSED.
 * ECONNRESET EDEADLK EDESTADDRREQ EEXIST EFAULT EFBIG EHOSTUNREACH EINPROGRESS EINVAL EIO EISDIR ELOOP EMFILE EMLINK.
 * EMSGSIZE ENAMETOOLONG ENETUNREACH ENFILE ENODEV ENOENT ENOEXEC ENOLCK ENOMEM ENOSPC ENOTCONN ENOTDIR ENOTEMPTY.
 * EOPNOTSUPP EOVERFLOW EPERM EPIPE EPROTO ERANGE EROFS ESPIPE ESRCH ETIMEDOUT EXDEV. */
#if !defined(ENODATA) /* FreeBSD, OpenBSD */
#define ENODATA 9919
#endif
#if !defined(EDQUOT) /* Windows: the value of WSAEDQUOT */
#define EDQUOT 10069
#endif
#if !defined(ESHUTDOWN) /* Windows: the value of WSAESHUTDOWN */
#define ESHUTDOWN 10058
#endif

#endif
