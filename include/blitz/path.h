/*
 * blitz/path.h - names in the file system: facts, directories, links, renames, removals, temporary names.
 *
 *     int err = blitz_fs_mkdir_all(NULL, "var/cache/app", 0755, until);
 *     err = blitz_fs_rename(NULL, "app.new", NULL, "app", NULL, until);
 *     err = blitz_fs_remove_all(cache, "old", until);              // below an open directory
 *
 * A relative path begins at the directory `at` (blitz/dir.h); NULL is the working directory. A path is any string
 * of bytes but '/' as a separator; it need not be text.
 *
 * The calls run on the calling thread, and other tasks run meanwhile if one takes long; the removal of a tree runs on a
 * thread of the pool. A call whose deadline is past or whose task is cancelled returns -ETIMEDOUT or -ECANCELED, and
 * has done nothing. A call of many steps (mkdir_all, remove_all) may have done some of them: what is done stays
 * done, and the call can be repeated.
 *
 * Errors that any of them may return: -ENOENT (no such name, or no such directory on the way), -ENOTDIR, -EACCES, -EPERM,
 * -ELOOP, -ENAMETOOLONG, -EROFS, -ENOSPC, -EDQUOT, -EIO, -ENOMEM, -EINVAL (a NULL argument), -ETIMEDOUT, -ECANCELED.
 */
#ifndef BLITZ_PATH_H
#define BLITZ_PATH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "blitz/api.h"
#include "blitz/dir.h"
#include "blitz/file.h"
#include "blitz/fs_future.h"
#include "blitz/time.h"

BLITZ_BEGIN_DECLS

/* Room for any path, with the zero behind it. */
#define BLITZ_PATH_ROOM 4096

/*
 * Read the facts of a name. stat follows symbolic links; lstat reads those of the link itself.
 * Owns:     *out is the caller's, written only on 0.
 * Suspends: perhaps, while the disk works. Call from anywhere.
 * Returns:  0, or an error of the list above.
 */
BLITZ_API BLITZ_SUSPENDS BLITZ_MUST_USE int
blitz_fs_stat(blitz_dir *at, const char *path, blitz_file_facts *out, blitz_deadline until);
BLITZ_API BLITZ_SUSPENDS BLITZ_MUST_USE int
blitz_fs_lstat(blitz_dir *at, const char *path, blitz_file_facts *out, blitz_deadline until);

/*
 * Change the permissions (07777) or the times of a name, through symbolic links. BLITZ_TIME_UNKNOWN leaves a time as
 * it is; BLITZ_TIME_NOW is the current time.
 * Owns:     borrows the path until it returns.
 * Suspends: perhaps, while the disk works. Call from anywhere.
 * Returns:  0, or an error of the list above.
 */
BLITZ_API BLITZ_SUSPENDS BLITZ_MUST_USE int blitz_fs_set_permissions(blitz_dir *at,
                                                                     const char *path,
                                                                     uint32_t permissions,
                                                                     blitz_deadline until);
BLITZ_API BLITZ_SUSPENDS BLITZ_MUST_USE int blitz_fs_set_times(blitz_dir *at, const char *path,
                                                               int64_t accessed_ns,
                                                               int64_t modified_ns,
                                                               blitz_deadline until);

/*
 * Make a directory; mkdir_all also makes those on the way, and accepts one that exists. `permissions` are those of the
 * new directories, less the umask.
 * Owns:     borrows the path until it returns.
 * Suspends: perhaps, while the disk works. Call from anywhere.
 * Returns:  0; mkdir: -EEXIST; mkdir_all: -ENOTDIR (something else has the name); an error of the list above.
 */
BLITZ_API BLITZ_SUSPENDS BLITZ_MUST_USE int
blitz_fs_mkdir(blitz_dir *at, const char *path, uint32_t permissions, blitz_deadline until);
BLITZ_API BLITZ_SUSPENDS BLITZ_MUST_USE int
blitz_fs_mkdir_all(blitz_dir *at, const char *path, uint32_t permissions, blitz_deadline until);

typedef struct blitz_fs_rename_opts {
    bool
        is_new; /* -EEXIST if the new name exists; -EINVAL or -EOPNOTSUPP where the system cannot tell in one step */
} blitz_fs_rename_opts;

/*
 * Rename. A file that has the new name is replaced in one step: at each moment the name is the old file or the new one.
 * The names survive a crash after blitz_dir_sync() of the directories.
 * Owns:     borrows the paths until it returns; opts may be NULL.
 * Suspends: perhaps, while the disk works. Call from anywhere.
 * Returns:  0; -EXDEV (another file system: copy it), -EISDIR, -ENOTEMPTY, -EEXIST; an error of the list above.
 */
BLITZ_API BLITZ_SUSPENDS BLITZ_MUST_USE int blitz_fs_rename(blitz_dir *at, const char *path,
                                                            blitz_dir *to_at, const char *to,
                                                            const blitz_fs_rename_opts *opts,
                                                            blitz_deadline until);

/*
 * Give a file a second name, of the same rank as the first. A symbolic link is linked itself.
 * Owns:     borrows the paths until it returns.
 * Suspends: perhaps, while the disk works. Call from anywhere.
 * Returns:  0; -EEXIST, -EXDEV, -EMLINK; an error of the list above.
 */
BLITZ_API BLITZ_SUSPENDS BLITZ_MUST_USE int blitz_fs_link(blitz_dir *at, const char *path,
                                                          blitz_dir *to_at, const char *to,
                                                          blitz_deadline until);

/*
 * Make a symbolic link at `path` that holds the text `target`, which need not exist.
 * Owns:     borrows the texts until it returns.
 * Suspends: perhaps, while the disk works. Call from anywhere.
 * Returns:  0; -EEXIST; an error of the list above.
 */
BLITZ_API BLITZ_SUSPENDS BLITZ_MUST_USE int
blitz_fs_symlink(const char *target, blitz_dir *at, const char *path, blitz_deadline until);

/*
 * Read the text of a symbolic link.
 * Owns:     writes it at `out`, with a zero behind it; on error nothing.
 * Suspends: perhaps, while the disk works. Call from anywhere.
 * Returns:  its length without the zero; -ERANGE (it does not fit into `room`), -EINVAL (no symbolic link); an
 *           error of the list above.
 */
BLITZ_API BLITZ_SUSPENDS int64_t blitz_fs_readlink(blitz_dir *at, const char *path, char *out,
                                                   size_t room, blitz_deadline until);

/*
 * Remove a name: a file, a symbolic link (not its target), or an empty directory.
 * Owns:     borrows the path until it returns.
 * Suspends: perhaps, while the disk works. Call from anywhere.
 * Returns:  0; -ENOTEMPTY, -EBUSY; an error of the list above.
 */
BLITZ_API BLITZ_SUSPENDS BLITZ_MUST_USE int blitz_fs_remove(blitz_dir *at, const char *path,
                                                            blitz_deadline until);

/*
 * Remove a name and, if it is a directory, everything below it. Symbolic links are removed and never followed, also
 * if a directory is replaced by a link meanwhile. A name that does not exist, also one that is removed by others
 * meanwhile, is no error. Only `path` itself is followed, up to its last part. It goes on after an error, and returns
 * the first one.
 * Owns:     borrows the path until it returns.
 * Suspends: until it is done. At `until` or a cancel it stops before the next name. Call from anywhere.
 * Returns:  0: the name does not exist; -EINVAL (the path is empty or ends with a slash, or its last part is "." or ".."); -ENOTEMPTY (names
 *           were made meanwhile), -EMFILE; an error of the list above: some names are left.
 */
BLITZ_API BLITZ_SUSPENDS BLITZ_MUST_USE int blitz_fs_remove_all(blitz_dir *at, const char *path,
                                                                blitz_deadline until);

/*
 * Find the absolute path of a name that exists, without symbolic links, "." and "..".
 * Owns:     writes it at `out`, with a zero behind it; on error nothing.
 * Suspends: perhaps, while the disk works. Call from anywhere.
 * Returns:  its length without the zero; -ERANGE (it does not fit into `room`); -ENOENT, also for a name that was
 *           removed; an error of the list above.
 */
BLITZ_API BLITZ_SUSPENDS int64_t blitz_fs_canonicalize(blitz_dir *at, const char *path, char *out,
                                                       size_t room, blitz_deadline until);

/*
 * Make a new file, or a new directory, that only this user may open. Its name is `prefix` and 13 letters and digits by
 * chance: "build/part-" makes "build/part-4cxq0w1ktr8dz". With name NULL the file has no name: it ends with its last
 * handle; `prefix` then only says in which directory. A file is opened to read and write.
 * Owns:     writes the name at `name`, relative to `at` as the prefix is. *out is the caller's: blitz_file_close(). The
 *           name is the caller's to remove.
 * Suspends: perhaps, while the disk works. Call from anywhere.
 * Returns:  0; -ERANGE (the name does not fit into `room`), -EMFILE, -ENFILE; an error of the list above.
 */
BLITZ_API BLITZ_SUSPENDS BLITZ_MUST_USE int blitz_fs_temp_file(blitz_dir *at, const char *prefix,
                                                               char *name, size_t room,
                                                               blitz_file **out,
                                                               blitz_deadline until);
BLITZ_API BLITZ_SUSPENDS BLITZ_MUST_USE int
blitz_fs_temp_dir(blitz_dir *at, const char *prefix, char *name, size_t room, blitz_deadline until);

/* ---- the same as futures: blitz/fs_future.h ---- */

/*
 * Make a future of the call of that name. f->result is what the call would return.
 * Owns:     copies the options. Borrows everything else until the future is ready.
 * Suspends: never. Call from any thread.
 */
BLITZ_API void blitz_fs_stat_future_init(blitz_fs_future *f, blitz_dir *at, const char *path,
                                         blitz_file_facts *out);
BLITZ_API void blitz_fs_lstat_future_init(blitz_fs_future *f, blitz_dir *at, const char *path,
                                          blitz_file_facts *out);
BLITZ_API void blitz_fs_set_permissions_future_init(blitz_fs_future *f, blitz_dir *at,
                                                    const char *path, uint32_t permissions);
BLITZ_API void blitz_fs_set_times_future_init(blitz_fs_future *f, blitz_dir *at, const char *path,
                                              int64_t accessed_ns, int64_t modified_ns);
BLITZ_API void blitz_fs_mkdir_future_init(blitz_fs_future *f, blitz_dir *at, const char *path,
                                          uint32_t permissions);
BLITZ_API void blitz_fs_mkdir_all_future_init(blitz_fs_future *f, blitz_dir *at, const char *path,
                                              uint32_t permissions);
BLITZ_API void blitz_fs_rename_future_init(blitz_fs_future *f, blitz_dir *at, const char *path,
                                           blitz_dir *to_at, const char *to,
                                           const blitz_fs_rename_opts *opts);
BLITZ_API void blitz_fs_link_future_init(blitz_fs_future *f, blitz_dir *at, const char *path,
                                         blitz_dir *to_at, const char *to);
BLITZ_API void blitz_fs_symlink_future_init(blitz_fs_future *f, const char *target, blitz_dir *at,
                                            const char *path);
BLITZ_API void blitz_fs_readlink_future_init(blitz_fs_future *f, blitz_dir *at, const char *path,
                                             char *out, size_t room);
BLITZ_API void blitz_fs_remove_future_init(blitz_fs_future *f, blitz_dir *at, const char *path);
BLITZ_API void blitz_fs_remove_all_future_init(blitz_fs_future *f, blitz_dir *at, const char *path);
BLITZ_API void blitz_fs_canonicalize_future_init(blitz_fs_future *f, blitz_dir *at,
                                                 const char *path, char *out, size_t room);
BLITZ_API void blitz_fs_temp_file_future_init(blitz_fs_future *f, blitz_dir *at, const char *prefix,
                                              char *name, size_t room, blitz_file **out);
BLITZ_API void blitz_fs_temp_dir_future_init(blitz_fs_future *f, blitz_dir *at, const char *prefix,
                                             char *name, size_t room);

BLITZ_END_DECLS

#endif
