/*
 * names.c - what errors and paths are called.
 */
#include "record.h"

#if !defined(T_ROOT) /* CMake knows where the tree is */
#define T_ROOT ""
#endif
/* Systems lack some of them. */
#if !defined(EHOSTDOWN)
#define EHOSTDOWN (-1)
#endif
#if !defined(ESTALE)
#define ESTALE (-1)
#endif
#if !defined(EDQUOT)
#define EDQUOT (-1)
#endif
#define NAME(x) \
    {           \
        x, #x   \
    }

const char *t_errno_name(int err)
{
    static const struct {
        int number;
        const char *name;
    } names[] = {
        NAME(EPERM),           NAME(ENOENT),       NAME(ESRCH),
        NAME(EINTR),           NAME(EIO),          NAME(ENXIO),
        NAME(E2BIG),           NAME(ENOEXEC),      NAME(EBADF),
        NAME(ECHILD),          NAME(EAGAIN),       NAME(ENOMEM),
        NAME(EACCES),          NAME(EFAULT),       NAME(EBUSY),
        NAME(EEXIST),          NAME(EXDEV),        NAME(ENODEV),
        NAME(ENOTDIR),         NAME(EISDIR),       NAME(EINVAL),
        NAME(ENFILE),          NAME(EMFILE),       NAME(ENOTTY),
        NAME(ETXTBSY),         NAME(EFBIG),        NAME(ENOSPC),
        NAME(ESPIPE),          NAME(EROFS),        NAME(EMLINK),
        NAME(EPIPE),           NAME(EDOM),         NAME(ERANGE),
        NAME(EDEADLK),         NAME(ENAMETOOLONG), NAME(ENOLCK),
        NAME(ENOSYS),          NAME(ENOTEMPTY),    NAME(ELOOP),
        NAME(ENODATA),         NAME(ETIME),        NAME(EPROTO),
        NAME(EBADMSG),         NAME(EOVERFLOW),    NAME(EILSEQ),
        NAME(ENOTSOCK),        NAME(EDESTADDRREQ), NAME(EMSGSIZE),
        NAME(EPROTOTYPE),      NAME(ENOPROTOOPT),  NAME(EPROTONOSUPPORT),
        NAME(EOPNOTSUPP),      NAME(EAFNOSUPPORT), NAME(EADDRINUSE),
        NAME(EADDRNOTAVAIL),   NAME(ENETDOWN),     NAME(ENETUNREACH),
        NAME(ECONNABORTED),    NAME(ECONNRESET),   NAME(ENOBUFS),
        NAME(EISCONN),         NAME(ENOTCONN),     NAME(ETIMEDOUT),
        NAME(ECONNREFUSED),    NAME(EHOSTDOWN),    NAME(EHOSTUNREACH),
        NAME(EALREADY),        NAME(EINPROGRESS),  NAME(ESTALE),
        NAME(EDQUOT),          NAME(ECANCELED),    NAME(EOWNERDEAD),
        NAME(ENOTRECOVERABLE),
    };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (names[i].number == err)
            return names[i].name;
    return NULL;
}

/* The path from the root of the tree: debuggers' tables have it whole. */
const char *t_short_path(const char *file)
{
    size_t root = strlen(T_ROOT);
    return strncmp(file, T_ROOT, root) == 0 ? file + root : file;
}
