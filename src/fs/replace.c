/*
 * replace.c - replace a file in one step.
 *
 * A temporary file in the same directory gets the new content. It is synced and closed, then it is renamed, then the
 * directory is synced. Each step matters:
 *
 *   the same directory        a rename to another file system fails
 *   sync before the rename    after a crash the name could lead to a file without its bytes
 *   close before the rename   some file systems report a lost write only then
 *   sync of the directory     after a crash the name could still be the old file's, though we returned 0
 *
 * The directory is opened first, and both names are relative to it. So it is the same directory for all steps, even if
 * it is renamed meanwhile.
 *
 * An error before the rename removes the temporary file. A program that is killed leaves it: its name begins with
 * ".blitz-".
 */
#include "fs/replace.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "blitz/path.h"

/* Open the directory of the last part of the path, and find that part. */
static int open_parent(int at, const char *path, const char **name)
{
    char parent[BLITZ_PATH_ROOM];
    const char *slash = strrchr(path, '/');
    const char *last = slash != NULL ? slash + 1 : path;
    size_t length = slash == NULL ? 0 : slash == path ? 1 : (size_t)(slash - path);
    if (*last == '\0' || bz_is_dots(last))
        return -EINVAL;
    if (length >= sizeof parent)
        return -ENAMETOOLONG;
    memcpy(parent, length > 0 ? path : ".", length > 0 ? length : 1);
    parent[length > 0 ? length : 1] = '\0';
    *name = last;
    int fd;
    bz_fs_again(fd, bz_fsys->open(at, parent, O_RDONLY | O_DIRECTORY, 0));
    return fd;
}

static int make_temp(struct bz_replacement *r, unsigned mode)
{
    for (int i = 0; i < 16; i++) {
        uint64_t chance;
        int err = bz_fs_random(&chance);
        if (err != 0)
            return err;
        snprintf(r->temp, sizeof r->temp, ".blitz-%016llx", (unsigned long long)chance);
        int fd;
        bz_fs_again(fd,
                    bz_fsys->open(r->dir, r->temp, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, mode));
        if (fd != -EEXIST)
            return fd;
    }
    return -EEXIST;
}

/* The permissions of the file that is replaced; 0: there is none. */
static int old_permissions(const struct bz_replacement *r, uint32_t *out)
{
    struct bz_fs_facts facts;
    int err;
    *out = 0;
    bz_fs_again(err, bz_fsys->find(r->dir, r->name, BZ_FS_NO_FOLLOW, &facts));
    if (err == -ENOENT)
        return 0;
    if (err == 0 && (r->flags & BZ_REPLACE_IS_NEW))
        return -EEXIST;
    if (err == 0 && facts.kind == BZ_FS_DIR)
        return -EISDIR;
    if (err == 0 && facts.kind == BZ_FS_FILE)
        *out = facts.mode;
    return err;
}

static int make(struct bz_replacement *r, uint32_t permissions)
{
    uint32_t old;
    int err = old_permissions(r, &old);
    if (err != 0)
        return err;
    uint32_t mode = permissions != 0 ? permissions : old;
    r->fd = make_temp(r, mode != 0 ? mode & 0777 : 0666);
    if (r->fd < 0)
        return r->fd;
    if (mode != 0) /* the umask has no say */
        bz_fs_again(err, bz_fsys->fchmod(r->fd, mode));
    if (err == 0)
        return 0;
    (void)bz_fsys->unlink(r->dir, r->temp, false);
    (void)bz_fs_close(r->fd);
    return err;
}

int bz_replace_begin(struct bz_replacement *r, int at, const char *path, uint32_t permissions,
                     unsigned flags)
{
    r->flags = flags;
    r->dir = open_parent(at, path, &r->name);
    if (r->dir < 0)
        return r->dir;
    int err = make(r, permissions);
    if (err != 0)
        (void)bz_fs_close(r->dir);
    return err;
}

static void unlink_temp(struct bz_replacement *r)
{
    int err;
    bz_fs_again(err, bz_fsys->unlink(r->dir, r->temp, false));
    (void)err; /* there is an error already */
    (void)bz_fs_close(r->dir);
}

void bz_replace_abandon(struct bz_replacement *r)
{
    (void)bz_fs_close(r->fd);
    unlink_temp(r);
}

static int sync_fd(int fd)
{
    int err;
    bz_fs_again(err, bz_fsys->sync(fd, false));
    return err;
}

int bz_replace_finish(struct bz_replacement *r)
{
    bool syncs = !(r->flags & BZ_REPLACE_NO_SYNC);
    int err = syncs ? sync_fd(r->fd) : 0;
    int closed = bz_fs_close(r->fd);
    if (err == 0)
        err = closed;
    if (err == 0)
        bz_fs_again(err, bz_fsys->rename(r->dir, r->temp, r->dir, r->name,
                                         (r->flags & BZ_REPLACE_IS_NEW) != 0));
    if (err != 0) {
        unlink_temp(r);
        return err;
    }
    err = syncs ? sync_fd(r->dir) : 0;
    (void)bz_fs_close(r->dir);
    return err;
}
