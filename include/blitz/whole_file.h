/*
 * blitz/whole_file.h - read, write, append to and copy whole files.
 *
 *     void *text;
 *     size_t bytes;
 *     int err = blitz_fs_read_file(NULL, "settings.json", NULL, &text, &bytes, until);
 *     ...
 *     free(text);
 *     err = blitz_fs_write_file(NULL, "settings.json", new_text, new_bytes, NULL, until);
 *
 * A write or a copy replaces the file in one step. A reader, also after a crash of the program or of the system, finds
 * the old content or the new content, whole. It is a new file under the old name: a symbolic link of that name is
 * replaced and not followed, and other names of the old file (hard links) keep the old content.
 *
 * Paths and `at`: blitz/path.h. Its list of errors holds here, too. Writes and copies run on a thread of the pool.
 */
#ifndef BLITZ_WHOLE_FILE_H
#define BLITZ_WHOLE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "blitz/api.h"
#include "blitz/dir.h"
#include "blitz/fs_future.h"
#include "blitz/time.h"

BLITZ_BEGIN_DECLS

typedef struct blitz_fs_read_opts {
    size_t bytes_max; /* a longer file is refused; 0: 1 GiB */
} blitz_fs_read_opts;

/*
 * Read a file to its end, also one whose size is not known before (a pipe, a file of the proc file system).
 * Owns:     *data is the caller's: free(). A zero byte stands behind the content, so that a text is a string; *bytes
 *           does not count it. Both are written only on 0. opts may be NULL.
 * Suspends: while the disk works, until `until` or a cancel. Call from anywhere.
 * Returns:  0; -EFBIG (longer than bytes_max), -EISDIR, -EMFILE, -ENFILE; an error of the list.
 */
BLITZ_API BLITZ_SUSPENDS BLITZ_MUST_USE int blitz_fs_read_file(blitz_dir *at, const char *path,
                                                               const blitz_fs_read_opts *opts,
                                                               void **data, size_t *bytes,
                                                               blitz_deadline until);

typedef struct blitz_fs_write_opts {
    uint32_t permissions; /* 0: those of the old file; of a new one 0666 less the umask */
    bool is_new;          /* -EEXIST if the file exists */
    bool no_sync; /* faster; after a crash of the system the file may be old, new, empty or torn */
} blitz_fs_write_opts;

/*
 * Write a file, whole or not at all: into a temporary file in the same directory (".blitz-" and 16 digits), which is
 * synced and then renamed; then the directory is synced.
 * Owns:     borrows the data until it returns; opts may be NULL.
 * Suspends: until it is on the disk. At `until` or a cancel it stops, unless it has renamed already. Call from anywhere.
 * Returns:  0: the new content is there, and survives a crash. An error: the old content is there, and no temporary
 *           file is left. The exception is an error of the last sync: the new content is there, but may not survive.
 *           -ENOSPC, -EDQUOT, -EIO, -EROFS, -EISDIR, -EEXIST, -EMFILE, -ENFILE, -EINVAL (the path names no file); an
 *           error of the list.
 */
BLITZ_API BLITZ_SUSPENDS BLITZ_MUST_USE int blitz_fs_write_file(blitz_dir *at, const char *path,
                                                                const void *data, size_t bytes,
                                                                const blitz_fs_write_opts *opts,
                                                                blitz_deadline until);

/*
 * Append to a file, which is made if it does not exist. Appends of several processes do not overwrite each other.
 * Owns:     borrows the data until it returns; of the options `no_sync` counts, and for a new file `permissions`.
 *           NULL: synced, as with blitz_fs_write_file().
 * Suspends: until it is on the disk, `until` or a cancel. Call from anywhere.
 * Returns:  0; an error as blitz_fs_write_file(). On error the file has its old length again, unless others have
 *           appended meanwhile.
 */
BLITZ_API BLITZ_SUSPENDS BLITZ_MUST_USE int blitz_fs_append_file(blitz_dir *at, const char *path,
                                                                 const void *data, size_t bytes,
                                                                 const blitz_fs_write_opts *opts,
                                                                 blitz_deadline until);

/*
 * Copy a file, with its permissions, whole or not at all as blitz_fs_write_file(). If the file system can share the
 * content between files, no bytes are copied (a reflink). Otherwise the kernel copies them, if it can.
 * Owns:     borrows the paths until it returns. *copied (may be NULL) is the number of bytes, written only on 0. opts may
 *           be NULL; with permissions 0 the copy has those of the source.
 * Suspends: until it is done. At `until` or a cancel it stops, and nothing is left. Call from anywhere.
 * Returns:  0; an error as blitz_fs_write_file(); -EISDIR (the source is a directory).
 */
BLITZ_API BLITZ_SUSPENDS BLITZ_MUST_USE int blitz_fs_copy(blitz_dir *at, const char *path,
                                                          blitz_dir *to_at, const char *to,
                                                          const blitz_fs_write_opts *opts,
                                                          uint64_t *copied, blitz_deadline until);

/*
 * Make a future of the call of that name. f->result is what the call would return.
 * Owns:     copies the options. Borrows everything else until the future is ready.
 * Suspends: never. Call from any thread.
 */
BLITZ_API void blitz_fs_read_file_future_init(blitz_fs_future *f, blitz_dir *at, const char *path,
                                              const blitz_fs_read_opts *opts, void **data,
                                              size_t *bytes);
BLITZ_API void blitz_fs_write_file_future_init(blitz_fs_future *f, blitz_dir *at, const char *path,
                                               const void *data, size_t bytes,
                                               const blitz_fs_write_opts *opts);
BLITZ_API void blitz_fs_append_file_future_init(blitz_fs_future *f, blitz_dir *at, const char *path,
                                                const void *data, size_t bytes,
                                                const blitz_fs_write_opts *opts);
BLITZ_API void blitz_fs_copy_future_init(blitz_fs_future *f, blitz_dir *at, const char *path,
                                         blitz_dir *to_at, const char *to,
                                         const blitz_fs_write_opts *opts, uint64_t *copied);

BLITZ_END_DECLS

#endif
