/* As much of errno.h as the headers use. */
#define EPERM 1
#define ENOENT 2
#define EIO 5
#define EBADF 9
#define EAGAIN 11
#define ENOMEM 12
#define EACCES 13
#define EBUSY 16
#define EEXIST 17
#define ENODEV 19
#define EINVAL 22
#define ENFILE 23
#define EMFILE 24
#define ENOSPC 28
#define EPIPE 32
#define ERANGE 34
#define EDEADLK 36
#define ENAMETOOLONG 38
#define EADDRINUSE 100
#define EADDRNOTAVAIL 101
#define EALREADY 103
#define ECANCELED 105
#define ECONNREFUSED 107
#define ECONNRESET 108
#define EDESTADDRREQ 109
#define EHOSTUNREACH 110
#define EINPROGRESS 112
#define EMSGSIZE 115
#define ENETUNREACH 118
#define ENOTCONN 126
#define EOPNOTSUPP 130
#define EOVERFLOW 132
#define ETIMEDOUT 138
#if defined(LIBC_HAS_ENODATA)
#define ENODATA 120
#endif
#if defined(LIBC_HAS_ESHUTDOWN)
#define ESHUTDOWN 158
#endif
