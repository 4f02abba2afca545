/*
 * sys_rings.h - the system calls on rings, as a table: io/sys.h has the reasons. Only the ring needs them.
 */
#ifndef BZ_IO_SYS_RINGS_H
#define BZ_IO_SYS_RINGS_H

#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"

struct bz_uring_params;

struct bz_sys_rings {
    int (*ring_setup)(unsigned entries, struct bz_uring_params *p);
    int (*ring_enter)(int fd, unsigned submit, unsigned min, unsigned flags, const void *arg,
                      size_t bytes);
    int (*ring_register)(int fd, unsigned what, void *arg, unsigned count);
    void *(*ring_map)(int fd, size_t bytes, uint64_t at); /* NULL: errno */
    void (*ring_unmap)(void *start, size_t bytes);
};

/* The real system calls. */
extern BZ_HIDDEN const struct bz_sys_rings bz_sys_rings_system;

/* The calls in use, as bz_sys. */
extern BZ_HIDDEN const struct bz_sys_rings *bz_sys_rings;

#endif
