/*
 * fsys.c - the real system calls for files and directories.
 *
 * The read of cached bytes is the hot call. It bypasses the C library, which makes it a cancellation point
 * with two locked instructions; threads of the runtime are never cancelled by pthread_cancel. Sanitizer
 * builds use the library's function, which tells the sanitizer about the bytes.
 *
 * statx gives the time of birth, but older systems and some filters refuse it: then fstatat does without. The struct
 * has the kernel's layout, and the call goes by number where the C library has none: glibc before 2.28, musl before 1.2.5.
 */
#define _GNU_SOURCE 1
#include "io/fsys.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <unistd.h>

#include "arch/notes.h"
#include "base/compiler.h"
#include "base/error.h"

/* Numbers of the kernel's interface that headers may lack. */
enum { RWF_NOWAIT_ = 8, RENAME_NOREPLACE_ = 1 };
#define FICLONE_ 0x40049409ul

static int64_t outcome(int64_t result)
{
    return result >= 0 ? result : -bz_error_of(errno);
}

static int done(int result)
{
    return (int)outcome(result);
}

static int sys_open(int at, const char *path, int flags, unsigned mode)
{
    return done(openat(at, path, flags | O_CLOEXEC, mode));
}

static int sys_close(int fd)
{
    return done(close(fd));
}

static_assert(sizeof(blitz_piece) == sizeof(struct iovec), "a piece is what the system takes");
static_assert(offsetof(blitz_piece, data) == offsetof(struct iovec, iov_base), "likewise");
static_assert(offsetof(blitz_piece, bytes) == offsetof(struct iovec, iov_len), "likewise");

static const struct iovec *vector_of(const blitz_piece *v)
{
    return (const struct iovec *)v;
}

static int64_t sys_read(int fd, const blitz_piece *v, int count, int64_t at)
{
    if (at < 0)
        return outcome(count == 1 ? read(fd, v->data, v->bytes) : readv(fd, vector_of(v), count));
    return outcome(count == 1 ? pread(fd, v->data, v->bytes, at)
                              : preadv(fd, vector_of(v), count, at));
}

static int64_t sys_write(int fd, const blitz_piece *v, int count, int64_t at)
{
    if (at < 0)
        return outcome(count == 1 ? write(fd, v->data, v->bytes) : writev(fd, vector_of(v), count));
    return outcome(count == 1 ? pwrite(fd, v->data, v->bytes, at)
                              : pwritev(fd, vector_of(v), count, at));
}

/* A kernel or a filter without the call cannot tell of any file what is cached. */
static int64_t cached_outcome(ssize_t n)
{
    int64_t read = outcome(n);
    return read == -ENOSYS || read == -EPERM ? -EOPNOTSUPP : read;
}

#if defined(SYS_preadv2) && defined(__LP64__) && !BZ_ASAN && !BZ_TSAN
static int64_t sys_read_cached(int fd, const blitz_piece *v, int count, int64_t at)
{
    return cached_outcome(
        syscall(SYS_preadv2, fd, v, (long)count, (long)at, 0l, (long)RWF_NOWAIT_));
}
#else
static int64_t sys_read_cached(int fd, const blitz_piece *v, int count, int64_t at)
{
    return cached_outcome(preadv2(fd, vector_of(v), count, at, RWF_NOWAIT_));
}
#endif

static int sys_sync(int fd, bool is_data_only)
{
    return done(is_data_only ? fdatasync(fd) : fsync(fd));
}

static int sys_resize(int fd, uint64_t bytes)
{
    return bytes <= INT64_MAX ? done(ftruncate(fd, (off_t)bytes)) : -EFBIG;
}

static int64_t sys_seek(int fd, int64_t by, int whence)
{
    return outcome(lseek(fd, by, whence));
}

/* ---- facts ---- */

static enum bz_fs_kind kind_of(uint32_t mode)
{
    switch (mode & S_IFMT) {
    case S_IFREG:
        return BZ_FS_FILE;
    case S_IFDIR:
        return BZ_FS_DIR;
    case S_IFLNK:
        return BZ_FS_SYMLINK;
    case S_IFIFO:
        return BZ_FS_FIFO;
    case S_IFSOCK:
        return BZ_FS_SOCKET;
    case S_IFBLK:
        return BZ_FS_BLOCK_DEVICE;
    case S_IFCHR:
        return BZ_FS_CHAR_DEVICE;
    default:
        return BZ_FS_UNKNOWN;
    }
}

static int64_t ns_of(int64_t s, int64_t ns)
{
    return s * 1000000000 + ns;
}

static void facts_of_stat(const struct stat *st, struct bz_fs_facts *out)
{
    *out = (struct bz_fs_facts){
        .size = (uint64_t)st->st_size,
        .blocks_bytes = (uint64_t)st->st_blocks * 512,
        .inode = st->st_ino,
        .device = st->st_dev,
        .links = st->st_nlink,
        .accessed_ns = ns_of(st->st_atim.tv_sec, st->st_atim.tv_nsec),
        .modified_ns = ns_of(st->st_mtim.tv_sec, st->st_mtim.tv_nsec),
        .changed_ns = ns_of(st->st_ctim.tv_sec, st->st_ctim.tv_nsec),
        .born_ns = INT64_MIN,
        .mode = st->st_mode & 07777,
        .uid = st->st_uid,
        .gid = st->st_gid,
        .kind = kind_of(st->st_mode),
    };
}

struct statx_time {
    int64_t tv_sec;
    uint32_t tv_nsec, spare;
};

struct statx_facts {
    uint32_t stx_mask, stx_blksize;
    uint64_t stx_attributes;
    uint32_t stx_nlink, stx_uid, stx_gid;
    uint16_t stx_mode, spare;
    uint64_t stx_ino, stx_size, stx_blocks, stx_attributes_mask;
    struct statx_time stx_atime, stx_btime, stx_ctime, stx_mtime;
    uint32_t stx_rdev_major, stx_rdev_minor, stx_dev_major, stx_dev_minor;
    uint64_t later[14];
};
static_assert(sizeof(struct statx_facts) == 256, "the kernel's layout");
static_assert(offsetof(struct statx_facts, stx_dev_major) == 0x88, "likewise");

enum { BASIC_STATS = 0x7ff, BIRTH_TIME = 0x800 };

static int call_statx(int at, const char *path, int flags, struct statx_facts *out)
{
#if defined(STATX_BASIC_STATS)
    return statx(at, path, flags, BASIC_STATS | BIRTH_TIME, (struct statx *)(void *)out);
#elif defined(SYS_statx)
    return (int)syscall(SYS_statx, at, path, flags, BASIC_STATS | BIRTH_TIME, out);
#else
    (void)at;
    (void)path;
    (void)flags;
    (void)out;
    errno = ENOSYS;
    return -1;
#endif
}

static void facts_of_statx(const struct statx_facts *st, struct bz_fs_facts *out)
{
    *out = (struct bz_fs_facts){
        .size = st->stx_size,
        .blocks_bytes = st->stx_blocks * 512,
        .inode = st->stx_ino,
        .device = makedev(st->stx_dev_major, st->stx_dev_minor),
        .links = st->stx_nlink,
        .accessed_ns = ns_of(st->stx_atime.tv_sec, st->stx_atime.tv_nsec),
        .modified_ns = ns_of(st->stx_mtime.tv_sec, st->stx_mtime.tv_nsec),
        .changed_ns = ns_of(st->stx_ctime.tv_sec, st->stx_ctime.tv_nsec),
        .born_ns = (st->stx_mask & BIRTH_TIME) ? ns_of(st->stx_btime.tv_sec, st->stx_btime.tv_nsec)
                                               : INT64_MIN,
        .mode = st->stx_mode & 07777u,
        .uid = st->stx_uid,
        .gid = st->stx_gid,
        .kind = kind_of(st->stx_mode),
    };
}

static int find_at(int at, const char *path, int flags, struct bz_fs_facts *out)
{
    struct statx_facts x;
    struct stat st;
    int err = done(call_statx(at, path, flags, &x));
    if (err == 0) {
        facts_of_statx(&x, out);
        return 0;
    }
    if (err != -ENOSYS && err != -EPERM)
        return err;
    err = done(fstatat(at, path, &st, flags));
    if (err == 0)
        facts_of_stat(&st, out);
    return err;
}

static int sys_facts(int fd, struct bz_fs_facts *out)
{
    return find_at(fd, "", AT_EMPTY_PATH, out);
}

static int sys_find(int at, const char *path, int follow, struct bz_fs_facts *out)
{
    return find_at(at, path, follow == BZ_FS_FOLLOW ? 0 : AT_SYMLINK_NOFOLLOW, out);
}

static int sys_chmod(int at, const char *path, unsigned mode)
{
    return done(fchmodat(at, path, mode, 0));
}

static int sys_fchmod(int fd, unsigned mode)
{
    return done(fchmod(fd, mode));
}

static struct timespec time_of(int64_t ns)
{
    if (ns == INT64_MIN)
        return (struct timespec){0, UTIME_OMIT};
    if (ns == INT64_MAX)
        return (struct timespec){0, UTIME_NOW};
    int64_t s = ns / 1000000000, rest = ns % 1000000000;
    return (struct timespec){s - (rest < 0), rest + (rest < 0 ? 1000000000 : 0)};
}

static int sys_set_times(int at, const char *path, int follow, int64_t accessed_ns,
                         int64_t modified_ns)
{
    const struct timespec both[2] = {time_of(accessed_ns), time_of(modified_ns)};
    if (path == NULL)
        return done(futimens(at, both));
    return done(utimensat(at, path, both, follow == BZ_FS_FOLLOW ? 0 : AT_SYMLINK_NOFOLLOW));
}

/* ---- names ---- */

static int sys_mkdir(int at, const char *path, unsigned mode)
{
    return done(mkdirat(at, path, mode));
}

static int sys_rename(int at, const char *from, int to_at, const char *to, bool is_new)
{
    if (!is_new)
        return done(renameat(at, from, to_at, to));
    return done((int)syscall(SYS_renameat2, at, from, to_at, to, RENAME_NOREPLACE_));
}

static int sys_link(int at, const char *from, int to_at, const char *to)
{
    return done(linkat(at, from, to_at, to, 0));
}

static int sys_symlink(const char *target, int at, const char *path)
{
    return done(symlinkat(target, at, path));
}

static int64_t sys_readlink(int at, const char *path, char *out, size_t room)
{
    return outcome(readlinkat(at, path, out, room));
}

static int sys_unlink(int at, const char *path, bool is_dir)
{
    return done(unlinkat(at, path, is_dir ? AT_REMOVEDIR : 0));
}

/* Without the proc file system: the C library's walk over the path. */
static int64_t canonical_by_walk(int at, const char *path, char *out, size_t room)
{
    if (at != AT_FDCWD && path[0] != '/')
        return -EOPNOTSUPP;
    char found[PATH_MAX];
    if (realpath(path, found) == NULL)
        return -bz_error_of(errno);
    size_t length = strlen(found);
    bool fits = length < room;
    if (fits)
        memcpy(out, found, length + 1);
    return fits ? (int64_t)length : -ERANGE;
}

/* True if that path leads to the open file. */
static bool leads_to(const char *path, int fd)
{
    struct stat a, b;
    return stat(path, &a) == 0 && fstat(fd, &b) == 0 && a.st_dev == b.st_dev &&
           a.st_ino == b.st_ino;
}

static int64_t sys_canonical(int at, const char *path, char *out, size_t room)
{
    char link[64];
    int fd = openat(at, path, O_PATH | O_CLOEXEC);
    if (fd < 0)
        return -bz_error_of(errno);
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    int64_t length = outcome(readlink(link, out, room));
    if (length == (int64_t)room)
        length = -ERANGE;
    else if (length >= 0)
        out[length] = '\0';
    bool is_lost = length >= 0 && !leads_to(out, fd);
    close(fd);
    if (length == -ENOENT || length == -EACCES)
        return canonical_by_walk(at, path, out, room);
    return is_lost ? -ENOENT : length;
}

static_assert(offsetof(struct bz_fs_name, text) == 19, "as struct linux_dirent64 has it");

static int64_t sys_list(int fd, void *names, size_t bytes)
{
    return outcome(syscall(SYS_getdents64, fd, names, bytes));
}

enum bz_fs_kind bz_fs_name_kind(const struct bz_fs_name *n)
{
    return n->type == DT_UNKNOWN ? BZ_FS_UNKNOWN : kind_of((uint32_t)DTTOIF(n->type));
}

/* ---- copies and locks ---- */

static int sys_clone(int from, int to)
{
    return done(ioctl(to, FICLONE_, from));
}

static int64_t sys_copy_range(int from, int to, size_t bytes)
{
    return outcome(copy_file_range(from, NULL, to, NULL, bytes, 0));
}

static int sys_lock(int fd, bool is_shared)
{
    return done(flock(fd, (is_shared ? LOCK_SH : LOCK_EX) | LOCK_NB));
}

static int sys_unlock(int fd)
{
    return done(flock(fd, LOCK_UN));
}

bool bz_fs_is_in_memory(int fd)
{
    /* tmpfs, ramfs, hugetlbfs, proc, sysfs, cgroup2, devpts, debugfs, tracefs, bpf, securityfs */
    static const uint32_t kinds[] = {0x01021994, 0x858458f6, 0x958458f6, 0x9fa0,
                                     0x62656572, 0x63677270, 0x1cd1,     0x64626720,
                                     0x74726163, 0xcafe4a11, 0x73636673};
    struct statfs st;
    if (bz_fsys->is_simulated || fstatfs(fd, &st) != 0)
        return bz_fsys->is_simulated;
    for (size_t i = 0; i < BZ_ARRAY_LEN(kinds); i++)
        if ((uint32_t)st.f_type == kinds[i])
            return true;
    return false;
}

const struct bz_fsys bz_fsys_system = {
    .has_rings = true,
    .open = sys_open,
    .close = sys_close,
    .read = sys_read,
    .write = sys_write,
    .read_cached = sys_read_cached,
    .sync = sys_sync,
    .resize = sys_resize,
    .seek = sys_seek,
    .facts = sys_facts,
    .find = sys_find,
    .chmod = sys_chmod,
    .fchmod = sys_fchmod,
    .set_times = sys_set_times,
    .mkdir = sys_mkdir,
    .rename = sys_rename,
    .link = sys_link,
    .symlink = sys_symlink,
    .readlink = sys_readlink,
    .unlink = sys_unlink,
    .canonical = sys_canonical,
    .list = sys_list,
    .clone = sys_clone,
    .copy_range = sys_copy_range,
    .lock = sys_lock,
    .unlock = sys_unlock,
};

const struct bz_fsys *bz_fsys = &bz_fsys_system;
