/*
 * sockaddr.h - addresses of ours as the system writes them, and back. Neither direction can fail for
 * an address that blitz/addr.h made.
 */
#ifndef BZ_IO_SOCKADDR_H
#define BZ_IO_SOCKADDR_H

#include <sys/socket.h>

#include "base/compiler.h"
#include "blitz/addr.h"

/* How many bytes of *out were written, or -EINVAL: it is no address, or a Unix one without a name. */
BZ_MUST_USE int bz_sockaddr_of(const blitz_addr *a, struct sockaddr_storage *out);

/* BLITZ_ADDR_NONE if it is of another kind. */
void bz_sockaddr_to(const struct sockaddr_storage *from, socklen_t bytes, blitz_addr *out);

/* The system's word for the kind of an address; -EINVAL. */
int bz_sockaddr_family(const blitz_addr *a);

#endif
