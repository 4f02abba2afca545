/*
 * rights.c - descriptors that go with the bytes of a message, between processes.
 *
 * The system calls them rights: the receiver gets new descriptors of the same files. They are encoded behind a header of
 * the system, and only this file knows it.
 *
 * Descriptors that do not fit into the receiver's array are closed: an unknown descriptor would be a leak, and perhaps a
 * security hole.
 */
#define _GNU_SOURCE 1
#include "io/rights.h"

#include <assert.h>
#include <string.h>
#include <sys/socket.h>

#include "io/sock.h"
#include "io/sys.h"

static_assert(sizeof(struct bz_rights) >= CMSG_SPACE(BZ_RIGHTS_MAX * sizeof(blitz_fd)), "room");
static_assert(_Alignof(struct bz_rights) >= _Alignof(struct cmsghdr), "it may lie there");

void bz_rights_attach(struct bz_msg *msg, struct bz_rights *room, const blitz_fd *fds,
                      size_t fd_count)
{
    if (fd_count == 0)
        return;
    memset(room, 0, sizeof *room);
    msg->beside = room;
    msg->beside_bytes = CMSG_SPACE(fd_count * sizeof(blitz_fd));
    struct cmsghdr *c = CMSG_FIRSTHDR(bz_sys_msg(msg));
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(fd_count * sizeof(blitz_fd));
    memcpy(CMSG_DATA(c), fds, fd_count * sizeof(blitz_fd));
}

/* Unpack one control message; close descriptors that do not fit. */
static void unload(const struct cmsghdr *c, blitz_fd *fds, size_t room, size_t *count)
{
    size_t n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(blitz_fd);
    for (size_t i = 0; i < n; i++) {
        blitz_fd fd;
        memcpy(&fd, CMSG_DATA(c) + i * sizeof fd, sizeof fd);
        if (*count < room)
            fds[*count] = fd;
        else
            bz_sock_close(fd);
        ++*count;
    }
}

size_t bz_rights_detach(struct bz_msg *msg, blitz_fd *fds, size_t room)
{
    size_t count = 0;
    struct msghdr *m = bz_sys_msg(msg);
    for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c != NULL; c = CMSG_NXTHDR(m, c))
        if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS)
            unload(c, fds, room, &count);
    return count;
}
