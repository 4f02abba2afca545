/*
 * rights.h - descriptors that go with the bytes of a message, between processes.
 */
#ifndef BZ_IO_RIGHTS_H
#define BZ_IO_RIGHTS_H

#include "io/msg.h"

enum { BZ_RIGHTS_MAX = 32 };

/* Room for the descriptors of one message, as the system encodes them: its header and the numbers. */
struct bz_rights {
    BZ_ALIGNED(8) unsigned char bytes[16 + BZ_RIGHTS_MAX * sizeof(int)];
};

/* Attach up to BZ_RIGHTS_MAX descriptors to a message. It keeps a pointer to *room; 0 descriptors attach nothing. */
void bz_rights_attach(struct bz_msg *msg, struct bz_rights *room, const blitz_fd *fds,
                      size_t fd_count);
/* Take the descriptors of a received message; close those that do not fit. Returns the number that came. */
size_t bz_rights_detach(struct bz_msg *msg, blitz_fd *fds, size_t room);

#endif
