/*
 * temp.c - temporary files and directories.
 *
 * A name has 64 random bits, so that no other process can foresee it, and is made with O_EXCL: a name that exists,
 * also as a symbolic link, is never opened. A second try follows a collision, which happens by design only if the
 * random numbers are bad.
 *
 * A file without a name is O_TMPFILE where the file system has it. Otherwise it gets a name and loses it at once.
 */
#include <errno.h>
#include <string.h>

#include "blitz/path.h"
#include "fs/fs.h"
#include "wait/waker.h"

enum { DIGITS = 13, TRIES = 16, UNNAMED = 1 };

int bz_fs_random(uint64_t *out)
{
    return bz_os_entropy(bz_os_here(), out, sizeof *out);
}

/* Write the prefix, and a number by chance behind it. */
static int make_name(const char *prefix, char *out, size_t room)
{
    static const char digit[] = "0123456789abcdefghijklmnopqrstuvwxyz";
    size_t length = strlen(prefix);
    uint64_t chance;
    if (length + DIGITS >= room)
        return -ERANGE;
    int err = bz_fs_random(&chance);
    if (err != 0)
        return err;
    memcpy(out, prefix, length);
    for (int i = 0; i < DIGITS; i++, chance /= 36)
        out[length + (size_t)i] = digit[chance % 36];
    out[length + DIGITS] = '\0';
    return 0;
}

static int open_new(struct bz_fs_call *c, const char *name)
{
    int fd;
    bz_fs_again(fd, bz_fsys->open(bz_dir_at(c->args.at), name,
                                  O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, 0600));
    return fd;
}

/* Make it under new names until one is free. */
static int make(struct bz_fs_call *c, char *name, size_t room,
                int (*once)(struct bz_fs_call *c, const char *name))
{
    int err = -EEXIST;
    for (int i = 0; i < TRIES && err == -EEXIST; i++) {
        err = make_name(c->args.path, name, room);
        if (err == 0)
            err = once(c, name);
    }
    return err;
}

/* The directory part of the prefix: "." if it has none. */
static int open_unnamed(struct bz_fs_call *c, char *name, size_t room)
{
    const char *slash = strrchr(c->args.path, '/');
    size_t length = slash == NULL ? 0 : slash == c->args.path ? 1 : (size_t)(slash - c->args.path);
    if (length + 2 > room)
        return -ENAMETOOLONG;
    memcpy(name, slash == NULL ? "." : c->args.path, length == 0 ? 1 : length);
    name[length == 0 ? 1 : length] = '\0';
    int fd;
    bz_fs_again(fd, bz_fsys->open(bz_dir_at(c->args.at), name, O_RDWR | O_TMPFILE, 0600));
    if (fd != -EOPNOTSUPP && fd != -EISDIR && fd != -EINVAL)
        return fd;
    fd = make(c, name, room, open_new);
    if (fd >= 0) {
        int err;
        bz_fs_again(err, bz_fsys->unlink(bz_dir_at(c->args.at), name, false));
        (void)err; /* it stays, with its name: no reason to fail */
    }
    return fd;
}

static int64_t run_temp_file(struct bz_fs_call *c)
{
    char own[BLITZ_PATH_ROOM];
    bool is_unnamed = c->args.flags & UNNAMED;
    char *name = is_unnamed ? own : c->args.out_too;
    int fd = is_unnamed ? open_unnamed(c, own, sizeof own)
                        : make(c, name, c->args.memory.bytes, open_new);
    if (fd < 0)
        return fd;
    int err = bz_file_of(fd, false, c->args.out);
    if (err == 0)
        return 0;
    if (!is_unnamed)
        (void)bz_fsys->unlink(bz_dir_at(c->args.at), name, false);
    (void)bz_fs_close(fd);
    return err;
}

static int mkdir_new(struct bz_fs_call *c, const char *name)
{
    int err;
    bz_fs_again(err, bz_fsys->mkdir(bz_dir_at(c->args.at), name, 0700));
    return err;
}

static int64_t run_temp_dir(struct bz_fs_call *c)
{
    return make(c, c->args.out_too, c->args.memory.bytes, mkdir_new);
}

static const struct bz_fs_verb verb_temp_file = BZ_FS_VERB("temporary file", run_temp_file);
static const struct bz_fs_verb verb_temp_dir = BZ_FS_VERB("temporary directory", run_temp_dir);

static struct bz_fs_args args_of(blitz_dir *at, const char *prefix, char *name, size_t room,
                                 blitz_file **out)
{
    return (struct bz_fs_args){.at = at,
                               .path = prefix,
                               .out = out,
                               .out_too = name,
                               .memory.bytes = room,
                               .flags = name == NULL ? UNNAMED : 0};
}

int blitz_fs_temp_file(blitz_dir *at, const char *prefix, char *name, size_t room, blitz_file **out,
                       blitz_deadline until)
{
    struct bz_fs_call c = {.args = args_of(at, prefix, name, room, out)};
    return prefix != NULL && out != NULL ? bz_fs_do_int(&verb_temp_file, &c, until) : -EINVAL;
}

void blitz_fs_temp_file_future_init(blitz_fs_future *f, blitz_dir *at, const char *prefix,
                                    char *name, size_t room, blitz_file **out)
{
    struct bz_fs_args a = args_of(at, prefix, name, room, out);
    if (prefix != NULL && out != NULL)
        bz_fs_future_begin(f, &verb_temp_file, &a);
    else
        bz_fs_future_fail(f, -EINVAL);
}

int blitz_fs_temp_dir(blitz_dir *at, const char *prefix, char *name, size_t room,
                      blitz_deadline until)
{
    struct bz_fs_call c = {.args = args_of(at, prefix, name, room, NULL)};
    return prefix != NULL && name != NULL ? bz_fs_do_int(&verb_temp_dir, &c, until) : -EINVAL;
}

void blitz_fs_temp_dir_future_init(blitz_fs_future *f, blitz_dir *at, const char *prefix,
                                   char *name, size_t room)
{
    struct bz_fs_args a = args_of(at, prefix, name, room, NULL);
    if (prefix != NULL && name != NULL)
        bz_fs_future_begin(f, &verb_temp_dir, &a);
    else
        bz_fs_future_fail(f, -EINVAL);
}
