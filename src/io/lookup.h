/*
 * lookup.h - addresses by name, from the system's resolver. It blocks: call it where that is fine.
 */
#ifndef BZ_IO_LOOKUP_H
#define BZ_IO_LOOKUP_H

#include <stddef.h>

#include "blitz/addr.h"

/*
 * Returns: how many addresses were written; -ENOENT (no such host), -EAGAIN (no answer), -EIO,
 *          -EINVAL (no such service), -ENOMEM, another errno.
 */
int bz_lookup(const char *host, const char *service, blitz_addr *out, size_t room);

/* For tests: called instead. */
extern int (*bz_lookup_instead)(const char *host, const char *service, blitz_addr *out,
                                size_t room);

#endif
