/*
 * dns_order.h - which address of a host to try first (RFC 6724, section 6). dns_order.c has the rules.
 */
#ifndef BZ_NET_DNS_ORDER_H
#define BZ_NET_DNS_ORDER_H

#include <stddef.h>

#include "blitz/addr.h"

/* Sort addresses, the best first. Asks the system for the source address of each, and sends nothing. */
void bz_dns_order(blitz_addr *at, size_t count);

/* The same for addresses whose sources are known; a source of BLITZ_ADDR_NONE: there is no route. Both are sorted. */
void bz_dns_order_by(blitz_addr *at, blitz_addr *source, size_t count);

/* Alternate between the families, the first address's first, and keep the order within each (RFC 8305, section 4). */
void bz_dns_interleave(blitz_addr *at, size_t count);

#endif
