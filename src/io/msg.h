/*
 * msg.h - messages and addresses of operations, without a system's header.
 *
 * A message is several pieces of memory, perhaps with the address of a peer or with descriptors. The layers above fill it
 * in; the backend hands it to the system. Its layout is that of msghdr on Linux, which io/sys.h asserts: so the call
 * costs no conversion. A system with another layout converts there.
 *
 * Flags of a call have one value on all systems; bz_sys_flags() translates, which is nothing on Linux.
 */
#ifndef BZ_IO_MSG_H
#define BZ_IO_MSG_H

#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "blitz/fd.h"
#include "blitz/piece.h"

/* Flags of a receive. */
enum {
    BZ_MSG_PEEK = 2, /* leave the bytes in the socket */
    BZ_MSG_TRUNC =
        0x20, /* the result is the length of the datagram, also if that is more than the room */
};

/* An address as the system writes it: io/sockaddr.h converts. The system's largest fits. */
struct bz_sockname {
    BZ_ALIGNED(8) unsigned char bytes[128];
};

struct BZ_MAY_ALIAS bz_msg {
    struct bz_sockname *name; /* to or from; NULL: none */
    uint32_t name_bytes;      /* of a receive: the room, then the length */
    const blitz_piece *pieces;
    size_t piece_count;
    void *beside; /* descriptors beside the bytes (io/rights.h); NULL: none */
    size_t beside_bytes;
    int flags; /* set by a receive */
};

/* One of several messages in one call. */
struct BZ_MAY_ALIAS bz_msg_of_many {
    struct bz_msg msg;
    unsigned bytes; /* set by the call */
};

#endif
