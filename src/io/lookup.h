/*
 * lookup.h - resolve names with the system's resolver. It blocks: call it on a pool thread.
 */
#ifndef BZ_IO_LOOKUP_H
#define BZ_IO_LOOKUP_H

#include <stdbool.h>
#include <stddef.h>

#include "blitz/addr.h"

/*
 * Returns: the number of addresses written; -ENOENT (no such host), -EAGAIN (no answer), -EIO,
 *          -EINVAL (no such service), -ENOMEM, another errno.
 */
int bz_lookup(const char *host, const char *service, blitz_addr *out, size_t room);

/* True for "localhost" and every name below it, in any case, with or without the dot of the root. */
bool bz_is_localhost(const char *host);

/* True if this host can reach ::1. Does not block. */
bool bz_has_v6_loopback(void);

/* For tests: called instead of the resolver. */
extern int (*bz_lookup_instead)(const char *host, const char *service, blitz_addr *out,
                                size_t room);

#endif
