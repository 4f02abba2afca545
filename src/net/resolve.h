/*
 * resolve.h - what connecting by name needs of a lookup beyond blitz/resolve.h.
 */
#ifndef BZ_NET_RESOLVE_H
#define BZ_NET_RESOLVE_H

#include "blitz/resolve.h"

/* Make a lookup. by NULL: the resolver of the process. An eager one may end with the addresses of one family. */
void bz_resolve_init(blitz_resolve_future *f, blitz_resolver *by, const char *host,
                     const char *service, blitz_addr *out, size_t room, bool is_eager);
/* True if an eager lookup, when ready, has the addresses of one family and waits for those of the other no more. */
bool bz_resolve_is_partial(const blitz_resolve_future *f);

#endif
