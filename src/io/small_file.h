/*
 * small_file.h - read a small configuration file as a whole, and see whether it has changed.
 *
 * These calls may block for as long as the disk takes: read on a thread of the pool. A stamp needs no data of the file.
 */
#ifndef BZ_IO_SMALL_FILE_H
#define BZ_IO_SMALL_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/alloc.h"
#include "base/compiler.h"

/* Which content a path has. A file that does not exist has a stamp, too. */
struct bz_file_stamp {
    uint64_t device, inode, bytes;
    int64_t changed_s, changed_ns;
    int error; /* 0, or why there is no file: -ENOENT */
};

void bz_small_file_stamp(const char *path, struct bz_file_stamp *out);
bool bz_file_stamp_is(const struct bz_file_stamp *a, const struct bz_file_stamp *b);

/*
 * Read a file of at most `max` bytes.
 * Owns:    *data is the caller's, of *bytes + 1 bytes, the last of which is 0: bz_free().
 * Returns: 0; -EOVERFLOW (more than `max`), -ENOMEM, an error of the system. On an error only *stamp is written. It is
 *          taken before the bytes: a change in between is seen as one later.
 */
BZ_MUST_USE int bz_small_file_read(const char *path, size_t max, const blitz_allocator *alloc,
                                   char **data, size_t *bytes, struct bz_file_stamp *stamp);

#endif
