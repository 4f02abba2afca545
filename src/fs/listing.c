/*
 * listing.c - directories: handles, and the stream of their names.
 *
 * The system writes as many names as fit into a buffer of the handle, and each call takes one. So most calls make no
 * system call: they are attempts that succeed. The buffer is made by the first call: a handle that only begins
 * paths has none.
 *
 * I1  A call that reads the stream owns the buffer: it has changed is_read from false to true. Another one gets
 *     -EBUSY. A lock would have to be held while the disk works.
 *
 * [A] stream_leave: is_read release -> stream_enter: is_read acquire   the buffer is as the last reader left it
 * [B] close: refs acq_rel -> close: refs acq_rel   the last holder sees what the others did before
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "fs/fs.h"

enum { NAMES_BYTES = 32768 };

int bz_dir_of(int fd, struct blitz_dir **out)
{
    blitz_dir *d = bz_alloc(&bz_allocator_libc, sizeof *d, _Alignof(blitz_dir));
    if (d == NULL)
        return -ENOMEM;
    *d = (blitz_dir){.fd = fd};
    bz_atomic_init(&d->refs, 1);
    bz_atomic_init(&d->is_read, false);
    *out = d;
    return 0;
}

blitz_fd blitz_dir_fd(const blitz_dir *d)
{
    return d->fd;
}

blitz_dir *blitz_dir_ref(blitz_dir *d)
{
    bz_fetch_add_relaxed(&d->refs, 1); /* relaxed: the caller holds one already */
    return d;
}

void blitz_dir_close(blitz_dir *d)
{
    if (d == NULL || bz_fetch_sub_acqrel(&d->refs, 1) != 1) /* [B] */
        return;
    (void)bz_fs_close(d->fd); /* nothing was written through it */
    bz_free(&bz_allocator_libc, d->names, NAMES_BYTES);
    bz_free(&bz_allocator_libc, d, sizeof *d);
}

/* ---- opening and syncing ---- */

static int64_t run_open_dir(struct bz_fs_call *c)
{
    int fd;
    bz_fs_again(fd, bz_fsys->open(bz_dir_at(c->args.at), c->args.path, O_RDONLY | O_DIRECTORY, 0));
    if (fd < 0)
        return fd;
    int err = bz_dir_of(fd, c->args.out);
    if (err != 0)
        (void)bz_fs_close(fd);
    return err;
}

static int64_t run_sync_dir(struct bz_fs_call *c)
{
    int err;
    bz_fs_again(err, bz_fsys->sync(c->args.at->fd, false));
    return err;
}

static const struct bz_fs_verb verb_open_dir = BZ_FS_VERB("open directory", run_open_dir);
static const struct bz_fs_verb verb_sync_dir =
    BZ_FS_VERB("directory sync", run_sync_dir, .is_slow = bz_fs_is_slow);

int blitz_dir_open(blitz_dir *at, const char *path, blitz_dir **out, blitz_deadline until)
{
    struct bz_fs_call c = {.args = {.at = at, .path = path, .out = out}};
    return path != NULL && out != NULL ? bz_fs_do_int(&verb_open_dir, &c, until) : -EINVAL;
}

void blitz_dir_open_future_init(blitz_fs_future *f, blitz_dir *at, const char *path,
                                blitz_dir **out)
{
    struct bz_fs_args a = {.at = at, .path = path, .out = out};
    if (path != NULL && out != NULL)
        bz_fs_future_begin(f, &verb_open_dir, &a);
    else
        bz_fs_future_fail(f, -EINVAL);
}

int blitz_dir_sync(blitz_dir *d, blitz_deadline until)
{
    struct bz_fs_call c = {.args = {.at = d}};
    return d != NULL ? bz_fs_do_int(&verb_sync_dir, &c, until) : -EINVAL;
}

void blitz_dir_sync_future_init(blitz_fs_future *f, blitz_dir *d)
{
    if (d != NULL)
        bz_fs_future_begin(f, &verb_sync_dir, &(struct bz_fs_args){.at = d});
    else
        bz_fs_future_fail(f, -EINVAL);
}

/* ---- the stream ---- */

static bool stream_enter(blitz_dir *d)
{
    bool is_read = false;
    return bz_cas_strong_acq_rlx(&d->is_read, &is_read, true); /* [A] */
}

static void stream_leave(blitz_dir *d)
{
    bz_store_release(&d->is_read, false); /* [A] */
}

/* Take a name out of the buffer. False: there is none. */
bool bz_dir_take(blitz_dir *d, blitz_dir_entry *out)
{
    while (d->at < d->end) {
        const struct bz_fs_name *n = (const void *)((const char *)d->names + d->at);
        d->at += n->bytes;
        if (bz_is_dots(n->text))
            continue;
        out->kind = (blitz_file_kind)bz_fs_name_kind(n);
        out->inode = n->inode;
        size_t bytes = strlen(n->text);
        bytes = bytes < sizeof out->name ? bytes : sizeof out->name - 1;
        memcpy(out->name, n->text, bytes);
        out->name[bytes] = '\0';
        return true;
    }
    return false;
}

/* Fill the buffer. Returns 1; 0: the end; an error. */
int64_t bz_dir_more(blitz_dir *d)
{
    if (d->names == NULL)
        d->names = bz_alloc(&bz_allocator_libc, NAMES_BYTES, _Alignof(struct bz_fs_name));
    if (d->names == NULL)
        return -ENOMEM;
    int64_t n;
    bz_fs_again(n, bz_fsys->list(d->fd, d->names, NAMES_BYTES));
    d->at = 0;
    d->end = n > 0 ? (uint32_t)n : 0;
    return n > 0 ? 1 : n;
}

static int64_t attempt_next(struct bz_fs_call *c)
{
    blitz_dir *d = c->args.at;
    if (!stream_enter(d))
        return -EBUSY;
    bool is_there = bz_dir_take(d, c->args.out);
    stream_leave(d);
    return is_there ? 1 : -EAGAIN;
}

static int64_t run_next(struct bz_fs_call *c)
{
    blitz_dir *d = c->args.at;
    int64_t more = 1;
    if (!stream_enter(d))
        return -EBUSY;
    while (more > 0 && !bz_dir_take(d, c->args.out))
        more = bz_dir_more(d);
    stream_leave(d);
    return more;
}

static const struct bz_fs_verb verb_next =
    BZ_FS_VERB("directory", run_next, .attempt = attempt_next);

int blitz_dir_next(blitz_dir *d, blitz_dir_entry *out, blitz_deadline until)
{
    struct bz_fs_call c = {.args = {.at = d, .out = out}};
    return d != NULL && out != NULL ? bz_fs_do_int(&verb_next, &c, until) : -EINVAL;
}

void blitz_dir_next_future_init(blitz_fs_future *f, blitz_dir *d, blitz_dir_entry *out)
{
    struct bz_fs_args a = {.at = d, .out = out};
    if (d != NULL && out != NULL)
        bz_fs_future_begin(f, &verb_next, &a);
    else
        bz_fs_future_fail(f, -EINVAL);
}

int blitz_dir_rewind(blitz_dir *d)
{
    if (d == NULL)
        return -EINVAL;
    if (!stream_enter(d))
        return -EBUSY;
    int64_t at = bz_fsys->seek(d->fd, 0, SEEK_SET);
    d->at = d->end = 0;
    stream_leave(d);
    return at < 0 ? (int)at : 0;
}
