/*
 * no_iocp.c - the place of the backend by completion ports on a system without them.
 */
#include "io/iocp.h"

bool bz_poll_iocp_is_there(void)
{
    return false;
}

int bz_poll_iocp_init(struct bz_poll *poll, const struct bz_os *os, struct bz_files *files)
{
    (void)poll;
    (void)os;
    (void)files;
    return -ENOSYS;
}
