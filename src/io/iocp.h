/*
 * iocp.h - the backend of Windows, by completion ports (io/poll.h). On other systems it is not there: no_iocp.c.
 */
#ifndef BZ_IO_IOCP_H
#define BZ_IO_IOCP_H

#include "io/poll.h"

bool bz_poll_iocp_is_there(void);

/* Opens nothing before the first operation. Returns 0, -ENOMEM, -ENOSYS. */
BZ_MUST_USE int bz_poll_iocp_init(struct bz_poll *poll, const struct bz_os *os,
                                  struct bz_files *files);

#endif
