/*
 * sockaddr.h - convert our addresses to the system's and back. Neither direction fails for an address
 * made by blitz/addr.h.
 */
#ifndef BZ_IO_SOCKADDR_H
#define BZ_IO_SOCKADDR_H

#include "base/compiler.h"
#include "blitz/addr.h"
#include "io/msg.h"

/* Return the number of bytes of *out written, or -EINVAL: not an address, or a Unix address without
 * a name. */
BZ_MUST_USE int bz_sockaddr_of(const blitz_addr *a, struct bz_sockname *out);

/* BLITZ_ADDR_NONE if it is of another kind. */
void bz_sockaddr_to(const struct bz_sockname *from, uint32_t bytes, blitz_addr *out);

/* The address family of an address; -EINVAL. */
int bz_sockaddr_family(const blitz_addr *a);

#endif
