/*
 * blitz/net.h - the network: everything that waits for another host, or for a descriptor.
 *
 *   addr.h     addresses: IPv4, IPv6, Unix
 *   tcp.h      streams of bytes: listen, accept, connect, read, write
 *   udp.h      datagrams, multicast groups
 *   unix.h     pairs, descriptor passing, the identity of the peer
 *   resolve.h  addresses by name
 *   fd.h       descriptors that other code owns
 *
 * docs/networking.md is the guide.
 */
#ifndef BLITZ_NET_H
#define BLITZ_NET_H

#include "blitz/addr.h"
#include "blitz/fd.h"
#include "blitz/net_future.h"
#include "blitz/resolve.h"
#include "blitz/tcp.h"
#include "blitz/udp.h"
#include "blitz/unix.h"

#endif
