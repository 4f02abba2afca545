/*
 * tree.c - remove a directory and everything below it.
 *
 * The tree is visited depth first, with a frame on the heap for each directory on the way: its descriptor, its name in
 * the frame above, and a buffer of names. Every name is relative to the descriptor of its directory, and a directory is
 * opened with O_NOFOLLOW. So a directory that is replaced by a symbolic link meanwhile is not entered: the open fails,
 * and the link is removed as a name. A path from the top would follow it.
 *
 * The depth is bounded by DEPTH_MAX descriptors. A directory below that is renamed into the top directory, under a name
 * by chance, and is removed from there later: it goes in any case. Rejected: a frame without a descriptor, which
 * comes back by ".." (the directory may have been moved, and ".." then leads out of the tree).
 *
 * Some file systems skip names if others are removed while they are listed. If a directory is not empty at its end and
 * no name in it has failed, it is listed again, a few times.
 *
 * The first error is kept, and the rest is removed all the same. A name that is gone already is no error.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "blitz/path.h"
#include "fs/fs.h"

enum { DEPTH_MAX = 64, NAMES_BYTES = 4096, AGAIN_MAX = 8 };

struct frame {
    struct frame *up;
    int fd;
    unsigned depth, again;
    int err;           /* of its listing */
    bool has_failed;   /* a name in it could not be removed, or not be listed */
    bool was_added_to; /* a deep directory was moved here */
    uint32_t at, end;
    char name[BLITZ_NAME_ROOM]; /* in the frame above; of the top: not used */
    _Alignas(struct bz_fs_name) char names[NAMES_BYTES];
};

struct removal {
    struct bz_fs_call *call;
    struct frame *top, *here;
    int err; /* the first one */
};

static void fail(struct removal *r, struct frame *f, int err)
{
    if (r->err == 0)
        r->err = err;
    if (f != NULL)
        f->has_failed = true;
}

static int unlink_at(int at, const char *name, bool is_dir)
{
    int err;
    bz_fs_again(err, bz_fsys->unlink(at, name, is_dir));
    return err;
}

/* Enter a directory. -ENOTDIR, -ELOOP: it is none, by now. */
static int enter(struct removal *r, int at, const char *name, bool is_top)
{
    int fd;
    bz_fs_again(fd, bz_fsys->open(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0));
    if (fd < 0)
        return fd;
    struct frame *f = bz_alloc(&bz_allocator_libc, sizeof *f, _Alignof(struct frame));
    if (f == NULL) {
        (void)bz_fs_close(fd);
        return -ENOMEM;
    }
    f->up = r->here;
    f->fd = fd;
    f->depth = r->here != NULL ? r->here->depth + 1 : 0;
    f->again = f->at = f->end = 0;
    f->err = 0;
    f->has_failed = f->was_added_to = false;
    f->name[0] = '\0';
    if (!is_top)
        snprintf(f->name, sizeof f->name, "%s", name);
    r->here = f;
    if (is_top)
        r->top = f;
    return 0;
}

/* Too deep: move the directory to the top, where it is found again. */
static int move_up(struct removal *r, const char *name)
{
    char to[32];
    uint64_t chance;
    int err = bz_fs_random(&chance);
    if (err != 0)
        return err;
    snprintf(to, sizeof to, ".removed-%016llx", (unsigned long long)chance);
    bz_fs_again(err, bz_fsys->rename(r->here->fd, name, r->top->fd, to, false));
    r->top->was_added_to |= err == 0;
    return err;
}

/* Remove one name of the current directory, or enter it. */
static void remove_name(struct removal *r, const char *name, enum bz_fs_kind kind)
{
    struct frame *f = r->here;
    int err = kind == BZ_FS_DIR ? -EISDIR : unlink_at(f->fd, name, false);
    if (err == -EISDIR || err == -EPERM) {
        int as_dir = f->depth + 1 < DEPTH_MAX ? enter(r, f->fd, name, false) : move_up(r, name);
        bool is_none = as_dir == -ENOTDIR || as_dir == -ELOOP;
        if (is_none && err == -EISDIR)
            err = unlink_at(f->fd, name, false); /* it is a directory no more */
        else if (!is_none)
            err = as_dir;
    }
    if (err != 0 && err != -ENOENT)
        fail(r, f, err);
}

/* The next name of the current directory, or NULL. */
static const struct bz_fs_name *next_name(struct removal *r)
{
    struct frame *f = r->here;
    if (f->at >= f->end) {
        int64_t n;
        bz_fs_again(n, bz_fsys->list(f->fd, f->names, NAMES_BYTES));
        f->at = 0;
        f->end = n > 0 ? (uint32_t)n : 0;
        if (n < 0) { /* it counts only if the directory cannot be removed */
            f->err = (int)n;
            f->has_failed = true;
        }
        if (n <= 0)
            return NULL;
    }
    const struct bz_fs_name *name = (const void *)(f->names + f->at);
    f->at += name->bytes;
    return name;
}

/* List the directory again, if that may help. */
static bool begin_again(struct frame *f)
{
    bool is_worth = f->was_added_to || (!f->has_failed && f->again < AGAIN_MAX);
    if (!is_worth || bz_fsys->seek(f->fd, 0, SEEK_SET) != 0)
        return false;
    f->again += !f->was_added_to;
    f->was_added_to = false;
    f->at = f->end = 0;
    return true;
}

static void drop_frame(struct removal *r)
{
    struct frame *f = r->here;
    r->here = f->up;
    (void)bz_fs_close(f->fd);
    bz_free(&bz_allocator_libc, f, sizeof *f);
}

/* All names of the current directory were listed: remove it and return to the one above. */
static void leave(struct removal *r)
{
    struct frame *f = r->here;
    bool is_top = f->up == NULL;
    int at = is_top ? bz_dir_at(r->call->args.at) : f->up->fd;
    int err = unlink_at(at, is_top ? r->call->args.path : f->name, true);
    if ((err == -ENOTEMPTY || err == -EEXIST) && begin_again(f))
        return;
    if (err != 0 && err != -ENOENT)
        fail(r, f->up, f->err != 0 ? f->err : err);
    drop_frame(r);
}

static void walk(struct removal *r)
{
    while (r->here != NULL) {
        int why = bz_fs_stopped(r->call);
        if (why != 0) {
            r->err = why;
            return;
        }
        const struct bz_fs_name *n = next_name(r);
        if (n == NULL)
            leave(r);
        else if (!bz_is_dots(n->text))
            remove_name(r, n->text, bz_fs_name_kind(n));
    }
}

static int64_t run_remove_all(struct bz_fs_call *c)
{
    struct removal r = {.call = c};
    int at = bz_dir_at(c->args.at);
    int err = unlink_at(at, c->args.path, false);
    if (err == 0 || err == -ENOENT)
        return 0;
    if (err != -EISDIR && err != -EPERM)
        return err;
    int as_dir = enter(&r, at, c->args.path, true);
    if (as_dir != 0)
        return as_dir == -ENOENT ? 0 : as_dir == -ENOTDIR || as_dir == -ELOOP ? err : as_dir;
    walk(&r);
    while (r.here != NULL)
        drop_frame(&r);
    return r.err;
}

static const struct bz_fs_verb verb_remove_all =
    BZ_FS_VERB("remove all", run_remove_all, .is_slow = bz_fs_is_slow);

/* True if the path names something that can be removed: not "", "/", "." or "..". */
static bool is_removable(const char *path)
{
    size_t length = path != NULL ? strlen(path) : 0;
    while (length > 0 && path[length - 1] == '/')
        length--;
    size_t from = length;
    while (from > 0 && path[from - 1] != '/')
        from--;
    size_t last = length - from;
    bool is_one_dot = last == 1 && path[from] == '.';
    bool is_two_dots = last == 2 && path[from] == '.' && path[from + 1] == '.';
    return last > 0 && !is_one_dot && !is_two_dots && path[length] != '/';
}

int blitz_fs_remove_all(blitz_dir *at, const char *path, blitz_deadline until)
{
    struct bz_fs_call c = {.args = {.at = at, .path = path}};
    return is_removable(path) ? bz_fs_do_int(&verb_remove_all, &c, until) : -EINVAL;
}

void blitz_fs_remove_all_future_init(blitz_fs_future *f, blitz_dir *at, const char *path)
{
    if (is_removable(path))
        bz_fs_future_begin(f, &verb_remove_all, &(struct bz_fs_args){.at = at, .path = path});
    else
        bz_fs_future_fail(f, -EINVAL);
}
