/*
 * readable.h - a descriptor that is readable or not, as its owner says. For poll loops that are none of ours.
 */
#ifndef BZ_IO_READABLE_H
#define BZ_IO_READABLE_H

#include <stdbool.h>

#include "base/compiler.h"

/* Make one that is not readable: the descriptor, or a negative errno. */
BZ_MUST_USE int bz_readable_open(void);
void bz_readable_close(int fd);

/* Change it. It must be what `is_readable` is not. False: the descriptor was changed by other code. */
BZ_MUST_USE bool bz_readable_set(int fd, bool is_readable);

#endif
