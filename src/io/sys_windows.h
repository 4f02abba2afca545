/*
 * sys_windows.h - the part of sys.h on Windows: the calls of the layers above that do not wait.
 *
 * The socket headers of Windows define common words (near, far, interface), so this one does without them. The calls are in winsock.c.
 */
#ifndef BZ_IO_SYS_WINDOWS_H
#define BZ_IO_SYS_WINDOWS_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "blitz/api.h"

#define BZ_HAS_DIRECT 0

/* A socket here is never waited for by a call, and a broken connection raises no signal. */
enum { MSG_DONTWAIT = 0, MSG_NOSIGNAL = 0 };

/* lint: allow one-name: sys.h includes this file instead of defining its own */
struct bz_sys {
    bool is_simulated;
    int (*close)(blitz_fd fd);
};

extern BZ_HIDDEN const struct bz_sys bz_sys_system;
extern BZ_HIDDEN const struct bz_sys *bz_sys;

static BZ_ALWAYS_INLINE int bz_sys_flags(int flags)
{
    return flags;
}

static BZ_ALWAYS_INLINE bool bz_sys_is_usual(void)
{
    return true;
}

/* Bytes, or a negative errno. */
int64_t bz_sys_recv(blitz_fd fd, void *data, size_t bytes, int flags);
int64_t bz_sys_send(blitz_fd fd, const void *data, size_t bytes, int flags);

#endif
