/*
 * disk_calls.c - the system calls of the file system in memory. disk.h has its rules, disk.c its state.
 *
 * Each call counts itself first, and fails if the system has crashed. A change is made in the state that calls see, and
 * written to the log.
 */
#include <errno.h>

#include "sim/disk_inner.h"
#include "sim/kernel.h"

/* ---- paths ---- */

static struct bz_disk_file *file_of(int fd)
{
    int i = fd - BZ_DISK_FIRST_FD;
    return i >= 0 && i < BZ_DISK_FDS && bz_disk.file[i].is_used ? &bz_disk.file[i] : NULL;
}

/* The directory in which the last part of the path is, and that part. */
static int walk(int at, const char *path, const char **last)
{
    const struct bz_disk_file *f = file_of(at);
    int here = at == BZ_FS_CWD || path[0] == '/' ? BZ_DISK_ROOT
               : f != NULL                       ? f->inode
                                                 : BZ_DISK_NONE;
    if (here == BZ_DISK_NONE)
        return -EBADF;
    while (*path == '/')
        path++;
    const char *slash;
    while (*(slash = bz_disk_end_of_part(path)) != '\0') {
        char part[BZ_DISK_NAME_BYTES];
        size_t room = (size_t)(slash - path) + 1;
        bz_disk_text(part, path, room < sizeof part ? room : sizeof part);
        const struct bz_disk_name *n = bz_disk_find_name(&bz_disk.inode[here].now, part);
        if (n == NULL && !bz_disk_is_same(part, "."))
            return -ENOENT;
        here = n != NULL ? n->inode : here;
        if (!bz_disk.inode[here].is_dir)
            return -ENOTDIR;
        path = slash + 1;
    }
    *last = path;
    return here;
}

/* The inode of a path. */
static int lookup(int at, const char *path)
{
    const char *last = NULL;
    int dir = walk(at, path, &last);
    if (dir < 0 || *last == '\0' || bz_disk_is_same(last, "."))
        return dir;
    const struct bz_disk_name *n = bz_disk_find_name(&bz_disk.inode[dir].now, last);
    return n != NULL ? n->inode : -ENOENT;
}

static int make_inode(bool is_dir, unsigned mode)
{
    for (int i = 0; i < BZ_DISK_INODES; i++) {
        bool is_open = false;
        for (int f = 0; f < BZ_DISK_FDS; f++)
            is_open |= bz_disk.file[f].is_used && bz_disk.file[f].inode == i;
        for (unsigned l = 0; l < bz_disk.log_count; l++)
            is_open |= bz_disk_is_of(&bz_disk.log[l], i) || bz_disk.log[l].to[0] == i ||
                       bz_disk.log[l].to[1] == i;
        if (bz_disk.inode[i].is_used || is_open)
            continue;
        bz_sim_zero(&bz_disk.inode[i], sizeof bz_disk.inode[i]);
        bz_disk.inode[i].is_used = true;
        bz_disk.inode[i].is_dir = is_dir;
        bz_disk.inode[i].mode = mode;
        return i;
    }
    return -ENOSPC;
}

static int make_name(int dir, const char *name, bool is_dir, unsigned mode)
{
    if (bz_disk_length(name) >= BZ_DISK_NAME_BYTES)
        return -ENAMETOOLONG;
    int inode = make_inode(is_dir, mode);
    if (inode < 0)
        return inode;
    if (!bz_disk_set_name(&bz_disk.inode[dir].now, name, inode))
        return -ENOSPC;
    bz_disk_log_name(dir, name, inode, BZ_DISK_NONE, NULL, BZ_DISK_NONE);
    return inode;
}

/* ---- calls ---- */

static int disk_open(int at, const char *path, int flags, unsigned mode)
{
    const char *last = NULL;
    int err = bz_disk_begin();
    int inode = err != 0 ? err : lookup(at, path);
    if (inode >= 0 && (flags & O_EXCL))
        return -EEXIST;
    if (inode == -ENOENT && (flags & O_CREAT)) {
        int dir = walk(at, path, &last);
        inode = dir < 0 ? dir : make_name(dir, last, false, mode);
    }
    if (inode < 0)
        return inode;
    if ((flags & O_DIRECTORY) && !bz_disk.inode[inode].is_dir)
        return -ENOTDIR;
    for (int i = 0; i < BZ_DISK_FDS; i++)
        if (!bz_disk.file[i].is_used) {
            bz_disk.file[i] = (struct bz_disk_file){true, (flags & O_APPEND) != 0, inode, 0};
            return BZ_DISK_FIRST_FD + i;
        }
    return -EMFILE;
}

static int disk_close(int fd)
{
    struct bz_disk_file *f = file_of(fd);
    if (f == NULL)
        return -EBADF;
    f->is_used = false; /* also if it fails */
    return bz_disk_begin();
}

/* Some of the bytes, if the test wants short transfers. */
static size_t some(size_t bytes)
{
    return bz_disk.config.short_seed != 0 && bytes > 1 ? 1 + bz_rng_below(&bz_disk.dice, bytes)
                                                       : bytes;
}

static int64_t disk_read(int fd, const blitz_piece *v, int count, int64_t at)
{
    int err = bz_disk_begin();
    struct bz_disk_file *f = file_of(fd);
    if (err != 0 || f == NULL)
        return err != 0 ? err : -EBADF;
    if (bz_disk.inode[f->inode].is_dir)
        return -EISDIR;
    const struct bz_disk_state *s = &bz_disk.inode[f->inode].now;
    size_t from = at < 0 ? f->at : (size_t)at, done = 0;
    for (int i = 0; i < count && from < s->size; i++) {
        size_t n = v[i].bytes < s->size - from ? v[i].bytes : s->size - from;
        n = n > 0 ? some(n) : 0;
        bz_sim_copy(v[i].data, s->bytes + from, n);
        from += n;
        done += n;
        if (n < v[i].bytes)
            break;
    }
    if (at < 0)
        f->at = from;
    return (int64_t)done;
}

static int64_t disk_read_cached(int fd, const blitz_piece *v, int count, int64_t at)
{
    return disk_read(fd, v, count, at);
}

static int64_t write_one(struct bz_disk_file *f, const blitz_piece *v, size_t from)
{
    struct bz_disk_inode *in = &bz_disk.inode[f->inode];
    size_t bytes = some(v->bytes);
    if (from + bytes > BZ_DISK_BYTES || bz_disk.data_used + bytes > BZ_DISK_LOG_BYTES)
        return -ENOSPC;
    if (from > in->now.size)
        bz_disk_keep_size(&in->now, from);
    bz_disk_keep_bytes(&in->now, from, v->data, bytes);
    struct bz_disk_entry *e = bz_disk_log_next();
    e->what = BZ_CHANGE_BYTES;
    e->inode = f->inode;
    e->at = from;
    e->bytes = bytes;
    e->data = bz_disk.data_used;
    bz_sim_copy(bz_disk.data + bz_disk.data_used, v->data, bytes);
    bz_disk.data_used += bytes;
    return (int64_t)bytes;
}

static int64_t disk_write(int fd, const blitz_piece *v, int count, int64_t at)
{
    int err = bz_disk_begin();
    struct bz_disk_file *f = file_of(fd);
    if (err != 0 || f == NULL)
        return err != 0 ? err : -EBADF;
    size_t from = f->appends ? bz_disk.inode[f->inode].now.size : at < 0 ? f->at : (size_t)at;
    int64_t done = 0;
    for (int i = 0; i < count; i++) {
        int64_t n = v[i].bytes > 0 ? write_one(f, &v[i], from + (size_t)done) : 0;
        if (n < 0)
            return done > 0 ? done : n;
        done += n;
        if ((size_t)n < v[i].bytes)
            break;
    }
    if (at < 0)
        f->at = from + (size_t)done;
    return done;
}

static int disk_sync(int fd, bool is_data_only)
{
    int err = bz_disk_begin();
    const struct bz_disk_file *f = file_of(fd);
    (void)is_data_only;
    if (err != 0 || f == NULL)
        return err != 0 ? err : -EBADF;
    bz_disk_log_sync(f->inode);
    return 0;
}

static int disk_resize(int fd, uint64_t bytes)
{
    int err = bz_disk_begin();
    const struct bz_disk_file *f = file_of(fd);
    if (err != 0 || f == NULL)
        return err != 0 ? err : -EBADF;
    if (bytes > BZ_DISK_BYTES)
        return -ENOSPC;
    bz_disk_keep_size(&bz_disk.inode[f->inode].now, (size_t)bytes);
    struct bz_disk_entry *e = bz_disk_log_next();
    e->what = BZ_CHANGE_SIZE;
    e->inode = f->inode;
    e->at = (size_t)bytes;
    return 0;
}

static int64_t disk_seek(int fd, int64_t by, int whence)
{
    int err = bz_disk_begin();
    struct bz_disk_file *f = file_of(fd);
    if (err != 0 || f == NULL)
        return err != 0 ? err : -EBADF;
    size_t from = whence == SEEK_SET   ? 0
                  : whence == SEEK_CUR ? f->at
                                       : bz_disk.inode[f->inode].now.size;
    f->at = (size_t)((int64_t)from + by);
    return (int64_t)f->at;
}

static int facts_of(int inode, struct bz_fs_facts *out)
{
    if (inode < 0)
        return inode;
    const struct bz_disk_inode *in = &bz_disk.inode[inode];
    *out = (struct bz_fs_facts){.size = in->now.size,
                                .inode = (uint64_t)inode + 1,
                                .device = 1,
                                .links = 1,
                                .born_ns = INT64_MIN,
                                .mode = in->mode,
                                .kind = in->is_dir ? BZ_FS_DIR : BZ_FS_FILE};
    return 0;
}

static int disk_facts(int fd, struct bz_fs_facts *out)
{
    int err = bz_disk_begin();
    const struct bz_disk_file *f = file_of(fd);
    return err != 0 ? err : f != NULL ? facts_of(f->inode, out) : -EBADF;
}

static int disk_find(int at, const char *path, int follow, struct bz_fs_facts *out)
{
    int err = bz_disk_begin();
    (void)follow;
    return err != 0 ? err : facts_of(lookup(at, path), out);
}

static int disk_chmod(int at, const char *path, unsigned mode)
{
    int err = bz_disk_begin(), inode = err != 0 ? err : lookup(at, path);
    if (inode >= 0)
        bz_disk.inode[inode].mode = mode;
    return inode < 0 ? inode : 0;
}

static int disk_fchmod(int fd, unsigned mode)
{
    int err = bz_disk_begin();
    const struct bz_disk_file *f = file_of(fd);
    if (err == 0 && f != NULL)
        bz_disk.inode[f->inode].mode = mode;
    return err != 0 ? err : f != NULL ? 0 : -EBADF;
}

static int disk_set_times(int at, const char *path, int follow, int64_t accessed_ns,
                          int64_t modified_ns)
{
    (void)at;
    (void)path;
    (void)follow;
    (void)accessed_ns;
    (void)modified_ns;
    return bz_disk_begin();
}

static int disk_mkdir(int at, const char *path, unsigned mode)
{
    const char *last = NULL;
    int err = bz_disk_begin(), there = err != 0 ? err : lookup(at, path);
    if (there != -ENOENT)
        return there < 0 ? there : -EEXIST;
    int dir = walk(at, path, &last);
    int inode = dir < 0 ? dir : make_name(dir, last, true, mode);
    return inode < 0 ? inode : 0;
}

static int disk_rename(int at, const char *from, int to_at, const char *to, bool is_new)
{
    const char *last = NULL, *to_last = NULL;
    int err = bz_disk_begin(), inode = err != 0 ? err : lookup(at, from);
    int dir = inode < 0 ? inode : walk(at, from, &last);
    int to_dir = dir < 0 ? dir : walk(to_at, to, &to_last);
    if (to_dir < 0)
        return to_dir;
    struct bz_disk_name *old = bz_disk_find_name(&bz_disk.inode[to_dir].now, to_last);
    if (is_new && old != NULL)
        return -EEXIST;
    if (!bz_disk_set_name(&bz_disk.inode[to_dir].now, to_last, inode))
        return -ENOSPC;
    (void)bz_disk_set_name(&bz_disk.inode[dir].now, last, BZ_DISK_NONE);
    bz_disk_log_name(dir, last, BZ_DISK_NONE, to_dir, to_last, inode);
    return 0;
}

static bool is_empty(const struct bz_disk_state *s)
{
    for (int i = 0; i < BZ_DISK_NAMES; i++)
        if (s->names[i].text[0] != '\0')
            return false;
    return true;
}

static int disk_unlink(int at, const char *path, bool is_dir)
{
    const char *last = NULL;
    int err = bz_disk_begin(), inode = err != 0 ? err : lookup(at, path);
    if (inode < 0)
        return inode;
    if (is_dir != bz_disk.inode[inode].is_dir)
        return is_dir ? -ENOTDIR : -EISDIR;
    if (is_dir && !is_empty(&bz_disk.inode[inode].now))
        return -ENOTEMPTY;
    int dir = walk(at, path, &last);
    (void)bz_disk_set_name(&bz_disk.inode[dir].now, last, BZ_DISK_NONE);
    bz_disk_log_name(dir, last, BZ_DISK_NONE, BZ_DISK_NONE, NULL, BZ_DISK_NONE);
    return 0;
}

static int64_t disk_list(int fd, void *names, size_t bytes)
{
    int err = bz_disk_begin();
    struct bz_disk_file *f = file_of(fd);
    size_t used = 0;
    if (err != 0 || f == NULL)
        return err != 0 ? err : -EBADF;
    for (; f->at < BZ_DISK_NAMES; f->at++) {
        const struct bz_disk_name *from = &bz_disk.inode[f->inode].now.names[f->at];
        size_t room =
            (offsetof(struct bz_fs_name, text) + bz_disk_length(from->text) + 8) & ~(size_t)7;
        if (from->text[0] == '\0')
            continue;
        if (used + room > bytes)
            break;
        struct bz_fs_name *n = (void *)((char *)names + used);
        n->inode = (uint64_t)from->inode + 1;
        n->next = 0;
        n->bytes = (uint16_t)room;
        n->type = 0;
        bz_sim_copy(n->text, from->text, bz_disk_length(from->text) + 1);
        used += room;
    }
    return (int64_t)used;
}

/* ---- not here ---- */

static int no_link(int at, const char *from, int to_at, const char *to)
{
    (void)at;
    (void)from;
    (void)to_at;
    (void)to;
    return -EOPNOTSUPP;
}

static int no_symlink(const char *target, int at, const char *path)
{
    (void)target;
    (void)at;
    (void)path;
    return -EOPNOTSUPP;
}

/* NOLINTNEXTLINE(readability-non-const-parameter): the contract's */
static int64_t no_text(int at, const char *path, char *out, size_t room)
{
    (void)at;
    (void)path;
    (void)out;
    (void)room;
    return -EOPNOTSUPP;
}

static int no_clone(int from, int to)
{
    (void)from;
    (void)to;
    return -EOPNOTSUPP;
}

static int64_t no_range(int from, int to, size_t bytes)
{
    (void)from;
    (void)to;
    (void)bytes;
    return -EOPNOTSUPP;
}

static int no_lock(int fd, bool is_shared)
{
    (void)fd;
    (void)is_shared;
    return -EOPNOTSUPP;
}

static int no_unlock(int fd)
{
    (void)fd;
    return -EOPNOTSUPP;
}

const struct bz_fsys bz_disk_table = {
    .is_simulated = true,
    .open = disk_open,
    .close = disk_close,
    .read = disk_read,
    .write = disk_write,
    .read_cached = disk_read_cached,
    .sync = disk_sync,
    .resize = disk_resize,
    .seek = disk_seek,
    .facts = disk_facts,
    .find = disk_find,
    .chmod = disk_chmod,
    .fchmod = disk_fchmod,
    .set_times = disk_set_times,
    .mkdir = disk_mkdir,
    .rename = disk_rename,
    .link = no_link,
    .symlink = no_symlink,
    .readlink = no_text,
    .unlink = disk_unlink,
    .canonical = no_text,
    .list = disk_list,
    .clone = no_clone,
    .copy_range = no_range,
    .lock = no_lock,
    .unlock = no_unlock,
};
