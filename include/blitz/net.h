/*
 * blitz/net.h - the network: everything that waits for another host, or for a descriptor.
 *
 *   addr.h     addresses: IPv4, IPv6, Unix
 *   tcp.h      streams of bytes: listen, accept, connect, read, write
 *
 * docs/networking.md is the guide.
 */
#ifndef BLITZ_NET_H
#define BLITZ_NET_H

#include "blitz/addr.h"
#include "blitz/net_future.h"
#include "blitz/tcp.h"

#endif
