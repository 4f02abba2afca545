/*
 * fsys.h - the system calls for files and directories, as a table.
 *
 * All calls of src/fs on names, files and directories go through bz_fsys: the real calls, or those of an
 * in-memory file system (sim/disk.h), which forgets at a crash what was not synced. A test may put a table
 * of its own in front of either, to count the calls, to fail one, or to end the process at one. Exceptions
 * are reads, writes and syncs that a ring makes (io/op.h), which no other table has.
 *
 * Each call returns 0 or more, or a negative errno. `at` is the descriptor of a directory, or BZ_FS_CWD.
 * Descriptors are close-on-exec. A call that a signal interrupts returns -EINTR; bz_fs_again() repeats it.
 * The flags are those of POSIX and Linux.
 */
#ifndef BZ_IO_FSYS_H
#define BZ_IO_FSYS_H

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "blitz/piece.h"

#define BZ_FS_CWD AT_FDCWD

/* Kinds of a name. */
enum bz_fs_kind {
    BZ_FS_UNKNOWN,
    BZ_FS_FILE,
    BZ_FS_DIR,
    BZ_FS_SYMLINK,
    BZ_FS_FIFO,
    BZ_FS_SOCKET,
    BZ_FS_BLOCK_DEVICE,
    BZ_FS_CHAR_DEVICE
};

/* The facts of a name or a file. Times are nanoseconds since 1970. */
struct bz_fs_facts {
    uint64_t size, blocks_bytes, inode, device, links;
    int64_t accessed_ns, modified_ns, changed_ns, born_ns; /* born: INT64_MIN if not known */
    uint32_t mode, uid, gid;
    enum bz_fs_kind kind;
};

/* Links that bz_fsys->find follows. */
enum { BZ_FS_FOLLOW = 0, BZ_FS_NO_FOLLOW = 1 };

struct bz_fsys {
    bool is_simulated;
    bool has_rings; /* reads, writes and syncs may be given to a ring instead */

    int (*open)(int at, const char *path, int flags, unsigned mode);
    int (*close)(int fd);
    /* at < 0: at the file position. */
    int64_t (*read)(int fd, const blitz_piece *v, int count, int64_t at);
    int64_t (*write)(int fd, const blitz_piece *v, int count, int64_t at);
    /* Read only bytes that are in memory. -EAGAIN: there are none; -EOPNOTSUPP: the file cannot tell. */
    int64_t (*read_cached)(int fd, const blitz_piece *v, int count, int64_t at);
    int (*sync)(int fd, bool is_data_only);
    int (*resize)(int fd, uint64_t bytes);
    int64_t (*seek)(int fd, int64_t by, int whence);
    int (*facts)(int fd, struct bz_fs_facts *out);
    int (*find)(int at, const char *path, int follow, struct bz_fs_facts *out);
    int (*chmod)(int at, const char *path, unsigned mode);
    int (*fchmod)(int fd, unsigned mode);
    /* INT64_MIN: as it is; INT64_MAX: now. path NULL: of the descriptor. */
    int (*set_times)(int at, const char *path, int follow, int64_t accessed_ns,
                     int64_t modified_ns);
    int (*mkdir)(int at, const char *path, unsigned mode);
    int (*rename)(int at, const char *from, int to_at, const char *to, bool is_new);
    int (*link)(int at, const char *from, int to_at, const char *to);
    int (*symlink)(const char *target, int at, const char *path);
    int64_t (*readlink)(int at, const char *path, char *out, size_t room);
    int (*unlink)(int at, const char *path, bool is_dir);
    /* The absolute path of a name that exists, with a zero. Returns its length; -ERANGE. */
    int64_t (*canonical)(int at, const char *path, char *out, size_t room);
    /* Write the next names of a directory, as bz_fs_name below reads them. Returns bytes; 0: the end. */
    int64_t (*list)(int fd, void *names, size_t bytes);
    int (*clone)(int from, int to);
    int64_t (*copy_range)(int from, int to, size_t bytes); /* at their positions */
    int (*lock)(int fd, bool is_shared);                   /* never waits: -EAGAIN */
    int (*unlock)(int fd);
};

/* One name in what `list` writes; the next begins `bytes` further. */
struct bz_fs_name {
    uint64_t inode;
    int64_t next; /* the system's */
    uint16_t bytes;
    uint8_t type; /* the system's: bz_fs_name_kind() */
    char text[];
};
enum bz_fs_kind bz_fs_name_kind(const struct bz_fs_name *n);

/* The real system calls. */
extern const struct bz_fsys bz_fsys_system;

/* The calls in use. Changed only while no call is in progress. */
extern const struct bz_fsys *bz_fsys;

/* Repeat a call that a signal interrupted. close() is not repeated: the descriptor is gone in any case. */
#define bz_fs_again(result, call) \
    do {                          \
        (result) = (call);        \
    } while ((result) == -EINTR)

/* Close a descriptor. An interrupted close has closed it. */
static inline int bz_fs_close(int fd)
{
    int err = bz_fsys->close(fd);
    return err == -EINTR ? 0 : err;
}

/* True if the descriptor's file system keeps its files in memory: a read never waits for a device. */
bool bz_fs_is_in_memory(int fd);

#endif
