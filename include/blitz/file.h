/*
 * blitz/file.h - open, read and write files.
 *
 *     blitz_file *f;
 *     int err = blitz_file_open(NULL, "table.db", &(blitz_file_opts){.can_write = true, .can_read = true}, &f, until);
 *     int64_t n = blitz_file_read_at(f, page, sizeof page, 7 * sizeof page, until);
 *     err = blitz_file_write_all_at(f, page, sizeof page, 7 * sizeof page, NULL, until);
 *     err = blitz_file_sync(f, until);
 *     blitz_file_close(f);
 *
 * Whole files in one call: blitz/whole_file.h. Names and directories: blitz/path.h, blitz/dir.h.
 *
 * How a call runs, so that a slow disk does not stop other tasks:
 *
 *   reads      If the bytes are in the page cache, the call copies them at once. Otherwise a ring reads them (the
 *              backend "uring"), or a thread of the pool.
 *   writes     The page cache takes the bytes at once, on the calling thread. If the system makes the writer wait, other
 *              tasks run meanwhile. Files opened with is_synced or is_direct are written by a ring or the pool.
 *   syncs      by a ring or the pool.
 *   the rest   on the calling thread. If it takes long, other tasks run meanwhile.
 *
 * A plain thread makes every call itself.
 *
 * Deadlines and cancels. A read that needs no disk is done for any deadline. Otherwise a call whose deadline is past, or
 * whose task is cancelled, returns -ETIMEDOUT or -ECANCELED and has done nothing. Once the disk works for a call, it is
 * waited for: the kernel or a thread uses your memory, and the call returns only when they are done with it. So a call
 * on a dead network file system may outlast its deadline.
 *
 * A handle is reference-counted and belongs to no runtime. Any number of tasks and threads may use one at the same time,
 * each with a reference of its own. Reads and writes at an offset do not touch the position; those without one share it.
 *
 * Pipes, terminals and sockets: use blitz/stream.h, which waits for them without a thread. They can be opened here,
 * and each read or write then takes a thread of the pool until it ends.
 */
#ifndef BLITZ_FILE_H
#define BLITZ_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "blitz/api.h"
#include "blitz/fs_future.h"
#include "blitz/piece.h"
#include "blitz/time.h"

BLITZ_BEGIN_DECLS

typedef struct blitz_file blitz_file;
struct blitz_dir;

/* ---- opening ---- */

/* A zeroed struct, or NULL: open an existing file to read. */
typedef struct blitz_file_opts {
    bool can_read;     /* implied if none of the next two is set */
    bool can_write;    /* at the position, or at an offset */
    bool is_append;    /* can write, and always at the end, also if several processes do */
    bool is_created;   /* make the file if it does not exist */
    bool is_new;       /* make the file; -EEXIST if there is one, or a symbolic link */
    bool is_truncated; /* make it empty; needs can_write */
    bool no_follow;    /* -ELOOP if the last part of the path is a symbolic link */
    bool is_synced;    /* each write returns when its bytes are on the disk */
    bool
        is_direct; /* bypass the page cache; buffers, sizes and offsets must be aligned (open(2)) */
    uint32_t mode; /* permissions of a new file, less the umask; 0: 0666 */
} blitz_file_opts;

/*
 * Open a file. A relative path begins at the directory `at`; NULL: at the working directory.
 * Owns:     *out is the caller's: blitz_file_close(). Borrows the rest until it returns; opts may be NULL.
 * Suspends: perhaps, while the disk works. Call from anywhere.
 * Returns:  0, -ENOENT, -EACCES, -EEXIST, -EISDIR, -ELOOP, -ENOSPC, -EROFS, -EMFILE, -ENFILE, -ENOMEM, -EINVAL,
 *           -ETIMEDOUT, -ECANCELED, other errors of the system. *out is written only on 0.
 */
BLITZ_API BLITZ_SUSPENDS BLITZ_MUST_USE int blitz_file_open(struct blitz_dir *at, const char *path,
                                                            const blitz_file_opts *opts,
                                                            blitz_file **out, blitz_deadline until);

/*
 * Make a handle of a descriptor that the program has opened.
 * Owns:     takes the descriptor if it succeeds; blitz_file_close() closes it.
 * Suspends: never. Call from any thread.
 * Returns:  0, -EBADF, -ENOMEM, -EINVAL. *out is written only on 0.
 */
BLITZ_API BLITZ_MUST_USE int blitz_file_from_fd(blitz_fd fd, blitz_file **out);

/*
 * Return the descriptor, to pass it to other code.
 * Owns:     the descriptor stays the handle's.
 * Suspends: never. Call from any thread.
 * Returns:  the descriptor.
 */
BLITZ_API blitz_fd blitz_file_fd(const blitz_file *f);

/*
 * Add a reference. Returns its argument.
 * Owns:     the result is a reference of its own: blitz_file_close().
 * Suspends: never. Call from any thread.
 * Returns:  the file.
 */
BLITZ_API blitz_file *blitz_file_ref(blitz_file *f);

/*
 * Release a reference. The last one closes the descriptor, and returns the error of an earlier write that the system
 * reports only now (network file systems, quotas). Bytes that must survive a crash need blitz_file_sync() before. NULL
 * is ignored.
 * Owns:     takes the reference, also on error.
 * Suspends: perhaps, while the disk works. A cancel does not end it. Call from anywhere.
 * Returns:  0; -EIO, -ENOSPC, -EDQUOT: bytes written earlier are lost.
 */
BLITZ_API BLITZ_SUSPENDS int blitz_file_close(blitz_file *f);

/* ---- reading ---- */

/*
 * Read at the position, which moves on; or at an offset. The first two read into one buffer, the others into several, in
 * order (blitz/piece.h).
 * Owns:     borrows the memory until it returns.
 * Suspends: until the disk has the bytes, `until`, or a cancel. Call from anywhere.
 * Returns:  the number of bytes, fewer than asked for only near the end of the file or of the cached part; 0: the end.
 *           -ETIMEDOUT, -ECANCELED: nothing was read. -EIO, -EISDIR, -EBADF (not opened to read), -EINVAL, -ENOMEM,
 *           other errors of the system.
 */
BLITZ_API BLITZ_SUSPENDS int64_t blitz_file_read(blitz_file *f, void *data, size_t bytes,
                                                 blitz_deadline until);
BLITZ_API BLITZ_SUSPENDS int64_t blitz_file_read_at(blitz_file *f, void *data, size_t bytes,
                                                    uint64_t offset, blitz_deadline until);
BLITZ_API BLITZ_SUSPENDS int64_t blitz_file_readv(blitz_file *f, const blitz_piece *pieces,
                                                  size_t count, blitz_deadline until);
BLITZ_API BLITZ_SUSPENDS int64_t blitz_file_readv_at(blitz_file *f, const blitz_piece *pieces,
                                                     size_t count, uint64_t offset,
                                                     blitz_deadline until);

/*
 * Read exactly `bytes` bytes at an offset.
 * Owns:     borrows `data` until it returns. *done (may be NULL) is how many bytes were read in any case.
 * Suspends: as blitz_file_read().
 * Returns:  0; -EPIPE: the file ends before; otherwise as blitz_file_read().
 */
BLITZ_API BLITZ_SUSPENDS int blitz_file_read_exact_at(blitz_file *f, void *data, size_t bytes,
                                                      uint64_t offset, size_t *done,
                                                      blitz_deadline until);

/* ---- writing ---- */

/*
 * Write at the position, which moves on; or at an offset. The first two write one buffer, the others several, in
 * order (blitz/piece.h). If the file was opened with is_append, all of them write at its end.
 * Owns:     borrows the memory until it returns.
 * Suspends: while the disk works. Call from anywhere.
 * Returns:  the number of bytes, at least one; fewer than asked for if the disk is full or a limit is reached.
 *           -ETIMEDOUT, -ECANCELED: nothing was written. -ENOSPC, -EDQUOT, -EFBIG, -EIO, -EROFS, -EBADF (not opened to
 *           write), -EPIPE, -EINVAL, -ENOMEM, other errors of the system.
 */
BLITZ_API BLITZ_SUSPENDS int64_t blitz_file_write(blitz_file *f, const void *data, size_t bytes,
                                                  blitz_deadline until);
BLITZ_API BLITZ_SUSPENDS int64_t blitz_file_write_at(blitz_file *f, const void *data, size_t bytes,
                                                     uint64_t offset, blitz_deadline until);
BLITZ_API BLITZ_SUSPENDS int64_t blitz_file_writev(blitz_file *f, const blitz_piece *pieces,
                                                   size_t count, blitz_deadline until);
BLITZ_API BLITZ_SUSPENDS int64_t blitz_file_writev_at(blitz_file *f, const blitz_piece *pieces,
                                                      size_t count, uint64_t offset,
                                                      blitz_deadline until);

/*
 * Write all bytes, at the position or at an offset.
 * Owns:     borrows `data` until it returns. *done (may be NULL) is how many bytes were written in any case.
 * Suspends: as blitz_file_write().
 * Returns:  0; otherwise as blitz_file_write().
 */
BLITZ_API BLITZ_SUSPENDS int blitz_file_write_all(blitz_file *f, const void *data, size_t bytes,
                                                  size_t *done, blitz_deadline until);
BLITZ_API BLITZ_SUSPENDS int blitz_file_write_all_at(blitz_file *f, const void *data, size_t bytes,
                                                     uint64_t offset, size_t *done,
                                                     blitz_deadline until);

/*
 * Bring everything that was written to the disk, so that it survives a crash of the system; sync_data leaves out facts
 * that are not needed to read it (times). A new file survives only if its directory is synced, too: blitz_dir_sync().
 * After an error the system may have dropped the bytes, and a second sync that succeeds proves nothing: write them
 * again.
 * Owns:     borrows the file until it returns.
 * Suspends: until the disk is done. Call from anywhere.
 * Returns:  0, -EIO, -ENOSPC, -EDQUOT, -EROFS, -EINVAL, -ETIMEDOUT, -ECANCELED, other errors of the system.
 */
BLITZ_API BLITZ_SUSPENDS BLITZ_MUST_USE int blitz_file_sync(blitz_file *f, blitz_deadline until);
BLITZ_API BLITZ_SUSPENDS BLITZ_MUST_USE int blitz_file_sync_data(blitz_file *f,
                                                                 blitz_deadline until);

/* ---- facts ---- */

typedef enum blitz_file_kind {
    BLITZ_FILE_UNKNOWN,
    BLITZ_FILE_REGULAR,
    BLITZ_FILE_DIR,
    BLITZ_FILE_SYMLINK,
    BLITZ_FILE_FIFO,
    BLITZ_FILE_SOCKET,
    BLITZ_FILE_BLOCK_DEVICE,
    BLITZ_FILE_CHAR_DEVICE
} blitz_file_kind;

/* Times are nanoseconds since the beginning of 1970, UTC. */
#define BLITZ_TIME_UNKNOWN INT64_MIN /* not known; to set: leave it as it is */
#define BLITZ_TIME_NOW INT64_MAX     /* to set: the current time */

typedef struct blitz_file_facts {
    uint64_t size;      /* in bytes */
    uint64_t allocated; /* bytes on the disk */
    uint64_t inode;     /* together with the device: the same file? */
    uint64_t device;
    uint64_t links;       /* names */
    int64_t accessed_ns;  /* the last read, roughly */
    int64_t modified_ns;  /* the last change of its content */
    int64_t changed_ns;   /* the last change of its content or its facts */
    int64_t born_ns;      /* BLITZ_TIME_UNKNOWN if the file system does not keep it */
    uint32_t permissions; /* 07777 */
    uint32_t uid, gid;
    blitz_file_kind kind;
} blitz_file_facts;

/*
 * Read the facts of an open file.
 * Owns:     *out is the caller's, written only on 0.
 * Suspends: perhaps, while the disk works. Call from anywhere.
 * Returns:  0, -EIO, -EINVAL, -ETIMEDOUT, -ECANCELED, other errors of the system.
 */
BLITZ_API BLITZ_SUSPENDS BLITZ_MUST_USE int blitz_file_stat(blitz_file *f, blitz_file_facts *out,
                                                            blitz_deadline until);

/*
 * Change the size, the permissions or the times. A larger size adds zeros, which take no room until they are written.
 * Owns:     borrows the file until it returns.
 * Suspends: perhaps, while the disk works. Call from anywhere.
 * Returns:  0, -EPERM, -EROFS, -EFBIG, -ENOSPC, -EIO, -EINVAL, -ETIMEDOUT, -ECANCELED, other errors of the system.
 */
BLITZ_API BLITZ_SUSPENDS BLITZ_MUST_USE int blitz_file_truncate(blitz_file *f, uint64_t bytes,
                                                                blitz_deadline until);
BLITZ_API BLITZ_SUSPENDS BLITZ_MUST_USE int
blitz_file_set_permissions(blitz_file *f, uint32_t permissions, blitz_deadline until);
BLITZ_API BLITZ_SUSPENDS BLITZ_MUST_USE int
blitz_file_set_times(blitz_file *f, int64_t accessed_ns, int64_t modified_ns, blitz_deadline until);

typedef enum blitz_seek { BLITZ_SEEK_START, BLITZ_SEEK_CURRENT, BLITZ_SEEK_END } blitz_seek;

/*
 * Move the position by `bytes`, counted from the start, the current position or the end.
 * Owns:     borrows the file until it returns.
 * Suspends: never. Call from any thread.
 * Returns:  the new position from the start; -EINVAL (before the start), -ESPIPE (a pipe).
 */
BLITZ_API int64_t blitz_file_seek(blitz_file *f, int64_t bytes, blitz_seek from);

/* ---- locks ---- */

typedef struct blitz_file_lock_opts {
    bool is_shared; /* any number of holders share it; otherwise there is one */
} blitz_file_lock_opts;

/*
 * Lock the whole file against other processes, and other opens of it in this one (flock(2)). The lock is advisory: it
 * stops only those who lock. It belongs to the open file, and so to all references of the handle; it ends with an
 * unlock, a close of the last of them, or the process. A second lock changes its kind; the system may let others in
 * between. While the lock is taken, it is tried again after 1 ms at first and every 50 ms at last, so there is no order
 * among those who wait.
 * Owns:     borrows the file until it returns; opts may be NULL: not shared.
 * Suspends: until it is had, `until`, or a cancel. With a deadline of 0 it is tried once. Call from anywhere.
 * Returns:  0; -ETIMEDOUT, -ECANCELED: not locked by this call; -ENOLCK, -EINVAL, other errors of the system.
 */
BLITZ_API BLITZ_SUSPENDS BLITZ_MUST_USE int
blitz_file_lock(blitz_file *f, const blitz_file_lock_opts *opts, blitz_deadline until);

/*
 * End the lock.
 * Owns:     borrows the file until it returns.
 * Suspends: never. Call from any thread.
 * Returns:  0, -EINVAL, other errors of the system. Without a lock: 0.
 */
BLITZ_API int blitz_file_unlock(blitz_file *f);

/* ---- the same as futures: blitz/fs_future.h ---- */

/*
 * Make a future of the call of that name. f->result is what the call would return; f->done is its *done.
 * Owns:     copies the options. Borrows everything else until the future is ready.
 * Suspends: never. Call from any thread.
 */
BLITZ_API void blitz_file_open_future_init(blitz_fs_future *f, struct blitz_dir *at,
                                           const char *path, const blitz_file_opts *opts,
                                           blitz_file **out);
BLITZ_API void blitz_file_read_future_init(blitz_fs_future *f, blitz_file *file, void *data,
                                           size_t bytes);
BLITZ_API void blitz_file_read_at_future_init(blitz_fs_future *f, blitz_file *file, void *data,
                                              size_t bytes, uint64_t offset);
BLITZ_API void blitz_file_readv_future_init(blitz_fs_future *f, blitz_file *file,
                                            const blitz_piece *pieces, size_t count);
BLITZ_API void blitz_file_readv_at_future_init(blitz_fs_future *f, blitz_file *file,
                                               const blitz_piece *pieces, size_t count,
                                               uint64_t offset);
BLITZ_API void blitz_file_read_exact_at_future_init(blitz_fs_future *f, blitz_file *file,
                                                    void *data, size_t bytes, uint64_t offset);
BLITZ_API void blitz_file_write_future_init(blitz_fs_future *f, blitz_file *file, const void *data,
                                            size_t bytes);
BLITZ_API void blitz_file_write_at_future_init(blitz_fs_future *f, blitz_file *file,
                                               const void *data, size_t bytes, uint64_t offset);
BLITZ_API void blitz_file_writev_future_init(blitz_fs_future *f, blitz_file *file,
                                             const blitz_piece *pieces, size_t count);
BLITZ_API void blitz_file_writev_at_future_init(blitz_fs_future *f, blitz_file *file,
                                                const blitz_piece *pieces, size_t count,
                                                uint64_t offset);
BLITZ_API void blitz_file_write_all_future_init(blitz_fs_future *f, blitz_file *file,
                                                const void *data, size_t bytes);
BLITZ_API void blitz_file_write_all_at_future_init(blitz_fs_future *f, blitz_file *file,
                                                   const void *data, size_t bytes, uint64_t offset);
BLITZ_API void blitz_file_sync_future_init(blitz_fs_future *f, blitz_file *file);
BLITZ_API void blitz_file_sync_data_future_init(blitz_fs_future *f, blitz_file *file);
BLITZ_API void blitz_file_stat_future_init(blitz_fs_future *f, blitz_file *file,
                                           blitz_file_facts *out);
BLITZ_API void blitz_file_truncate_future_init(blitz_fs_future *f, blitz_file *file,
                                               uint64_t bytes);
BLITZ_API void blitz_file_set_permissions_future_init(blitz_fs_future *f, blitz_file *file,
                                                      uint32_t permissions);
BLITZ_API void blitz_file_set_times_future_init(blitz_fs_future *f, blitz_file *file,
                                                int64_t accessed_ns, int64_t modified_ns);
BLITZ_API void blitz_file_lock_future_init(blitz_fs_future *f, blitz_file *file,
                                           const blitz_file_lock_opts *opts);

BLITZ_END_DECLS

#endif
