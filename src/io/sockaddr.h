/*
 * sockaddr.h - convert our addresses to sockaddr and back. Neither direction fails for an address
 * made by blitz/addr.h.
 */
#ifndef BZ_IO_SOCKADDR_H
#define BZ_IO_SOCKADDR_H

#include <sys/socket.h>

#include "base/compiler.h"
#include "blitz/addr.h"

/* Return the number of bytes of *out written, or -EINVAL: not an address, or a Unix address without
 * a name. */
BZ_MUST_USE int bz_sockaddr_of(const blitz_addr *a, struct sockaddr_storage *out);

/* BLITZ_ADDR_NONE if it is of another kind. */
void bz_sockaddr_to(const struct sockaddr_storage *from, socklen_t bytes, blitz_addr *out);

/* The address family of an address; -EINVAL. */
int bz_sockaddr_family(const blitz_addr *a);

#endif
