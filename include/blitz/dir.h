/*
 * blitz/dir.h - directories: a place to begin paths at, and a stream of the names in it.
 *
 *     blitz_dir *d;
 *     blitz_dir_entry e;
 *     int err = blitz_dir_open(NULL, "spool", &d, until);
 *     while ((err = blitz_dir_next(d, &e, until)) > 0)
 *         if (e.kind == BLITZ_FILE_REGULAR)
 *             err = blitz_fs_rename(d, e.name, done, e.name, NULL, until);
 *     blitz_dir_close(d);
 *
 * Every call with a path has an argument `at`, the directory at which a relative path begins. So a program finds the
 * same files if the directory is renamed meanwhile or the working directory changes. NULL is the working directory.
 *
 * Whole trees: blitz/walk.h.
 */
#ifndef BLITZ_DIR_H
#define BLITZ_DIR_H

#include <stddef.h>
#include <stdint.h>

#include "blitz/api.h"
#include "blitz/file.h"
#include "blitz/fs_future.h"
#include "blitz/time.h"

BLITZ_BEGIN_DECLS

typedef struct blitz_dir blitz_dir;

/* The longest name in a directory, with the zero behind it. */
#define BLITZ_NAME_ROOM 256

typedef struct blitz_dir_entry {
    blitz_file_kind
        kind; /* BLITZ_FILE_UNKNOWN if the file system does not say: ask blitz_fs_lstat() */
    uint64_t inode;
    char name[BLITZ_NAME_ROOM]; /* without a directory */
} blitz_dir_entry;

/*
 * Open a directory.
 * Owns:     *out is the caller's: blitz_dir_close(). Borrows the rest until it returns.
 * Suspends: perhaps, while the disk works. Call from anywhere.
 * Returns:  0, -ENOENT, -ENOTDIR, -EACCES, -ELOOP, -EMFILE, -ENFILE, -ENOMEM, -EINVAL, -ETIMEDOUT, -ECANCELED, other
 *           errors of the system. *out is written only on 0.
 */
BLITZ_API BLITZ_SUSPENDS BLITZ_MUST_USE int blitz_dir_open(blitz_dir *at, const char *path,
                                                           blitz_dir **out, blitz_deadline until);

/*
 * Return the next name, in no particular order, without "." and "..". Names that are made or removed meanwhile may or
 * may not appear. A handle has one stream: calls must not overlap.
 * Owns:     *out is the caller's, written only on 1.
 * Suspends: perhaps, while the disk works. Call from anywhere.
 * Returns:  1; 0: the end; -EBUSY (another call reads the stream), -EIO, -ENOENT (the directory was removed), -ENOMEM,
 *           -EINVAL, -ETIMEDOUT, -ECANCELED, other errors of the system.
 */
BLITZ_API BLITZ_SUSPENDS BLITZ_MUST_USE int blitz_dir_next(blitz_dir *d, blitz_dir_entry *out,
                                                           blitz_deadline until);

/*
 * Begin the stream again at its first name.
 * Owns:     borrows the directory until it returns.
 * Suspends: never. Call from any thread.
 * Returns:  0, -EBUSY (another call reads the stream), -EINVAL, other errors of the system.
 */
BLITZ_API int blitz_dir_rewind(blitz_dir *d);

/*
 * Bring the names in the directory to the disk: after a crash, files that were made, renamed or removed in it are so.
 * Owns:     borrows the directory until it returns.
 * Suspends: until the disk is done. Call from anywhere.
 * Returns:  0, -EIO, -EROFS, -EINVAL, -ETIMEDOUT, -ECANCELED, other errors of the system.
 */
BLITZ_API BLITZ_SUSPENDS BLITZ_MUST_USE int blitz_dir_sync(blitz_dir *d, blitz_deadline until);

/*
 * Return the descriptor, to pass it to other code.
 * Owns:     the descriptor stays the handle's.
 * Suspends: never. Call from any thread.
 * Returns:  the descriptor.
 */
BLITZ_API blitz_fd blitz_dir_fd(const blitz_dir *d);

/*
 * Add a reference; release one. The last release closes the directory. ref returns its argument; close ignores NULL.
 * Owns:     ref: the result is a reference of its own. close takes one.
 * Suspends: never. Call from any thread.
 * Returns:  ref: the directory.
 */
BLITZ_API blitz_dir *blitz_dir_ref(blitz_dir *d);
BLITZ_API void blitz_dir_close(blitz_dir *d);

/*
 * Make a future of the call of that name. f->result is what the call would return.
 * Owns:     borrows everything until the future is ready.
 * Suspends: never. Call from any thread.
 */
BLITZ_API void blitz_dir_open_future_init(blitz_fs_future *f, blitz_dir *at, const char *path,
                                          blitz_dir **out);
BLITZ_API void blitz_dir_next_future_init(blitz_fs_future *f, blitz_dir *d, blitz_dir_entry *out);
BLITZ_API void blitz_dir_sync_future_init(blitz_fs_future *f, blitz_dir *d);

BLITZ_END_DECLS

#endif
