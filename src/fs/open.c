/*
 * open.c - handles of files: open, close, facts, locks.
 *
 * A handle is a descriptor and a count. Unlike a socket's it belongs to no runtime: a ring gets a file of the
 * driver for one operation (fs_call.c).
 *
 * The lock is tried and tried again, with naps. Rejected: a thread of the pool that waits in the system's call.
 * It could not leave at a deadline, and a hundred waiters would fill the pool.
 *
 * [A] close: refs acq_rel -> close: refs acq_rel   the last holder sees what the others did before
 */
#include <errno.h>

#include "blitz/blocking.h"
#include "fs/fs.h"

int bz_file_of(int fd, bool is_direct, blitz_file **out)
{
    struct bz_fs_facts facts;
    int err;
    bz_fs_again(err, bz_fsys->facts(fd, &facts));
    if (err != 0)
        return err;
    blitz_file *f = bz_alloc(&bz_allocator_libc, sizeof *f, _Alignof(blitz_file));
    if (f == NULL)
        return -ENOMEM;
    f->fd = fd;
    f->is_regular = facts.kind == BZ_FS_FILE;
    f->is_direct = is_direct;
    bz_atomic_init(&f->refs, 1);
    bz_atomic_init(&f->cache, BZ_CACHE_TELLS);
    *out = f;
    return 0;
}

int blitz_file_from_fd(blitz_fd fd, blitz_file **out)
{
    if (out == NULL)
        return -EINVAL;
    return fd >= 0 ? bz_file_of(fd, false, out) : -EBADF;
}

blitz_fd blitz_file_fd(const blitz_file *f)
{
    return f->fd;
}

blitz_file *blitz_file_ref(blitz_file *f)
{
    bz_fetch_add_relaxed(&f->refs, 1); /* relaxed: the caller holds one already */
    return f;
}

int blitz_file_close(blitz_file *f)
{
    if (f == NULL || bz_fetch_sub_acqrel(&f->refs, 1) != 1) /* [A] */
        return 0;
    int fd = f->fd;
    bz_free(&bz_allocator_libc, f, sizeof *f);
    blitz_syscall_enter();
    int err = bz_fs_close(fd);
    blitz_syscall_leave();
    return err;
}

int64_t blitz_file_seek(blitz_file *f, int64_t bytes, blitz_seek from)
{
    static const int whence[] = {SEEK_SET, SEEK_CUR, SEEK_END};
    if (f == NULL || (unsigned)from > BLITZ_SEEK_END)
        return -EINVAL;
    return bz_fsys->seek(f->fd, bytes, whence[from]);
}

/* ---- opening ---- */

enum { DIRECT = 1 };

static int flags_of(const blitz_file_opts *o)
{
    bool writes = o->can_write || o->is_append;
    int flags = writes ? (o->can_read ? O_RDWR : O_WRONLY) : O_RDONLY;
    flags |= o->is_append ? O_APPEND : 0;
    flags |= o->is_created || o->is_new ? O_CREAT : 0;
    flags |= o->is_new ? O_EXCL : 0;
    flags |= o->is_truncated ? O_TRUNC : 0;
    flags |= o->no_follow ? O_NOFOLLOW : 0;
    flags |= o->is_synced ? O_SYNC : 0;
    flags |= o->is_direct ? O_DIRECT : 0;
    return flags;
}

static int64_t run_open(struct bz_fs_call *c)
{
    int fd;
    bz_fs_again(fd, bz_fsys->open(bz_dir_at(c->args.at), c->args.path, (int)c->args.number[0],
                                  c->args.mode));
    if (fd < 0)
        return fd;
    int err = bz_file_of(fd, c->args.flags & DIRECT, c->args.out);
    if (err != 0)
        (void)bz_fs_close(fd);
    return err;
}

static const struct bz_fs_verb verb_open = BZ_FS_VERB("open", run_open);

static int args_open(struct bz_fs_args *a, struct blitz_dir *at, const char *path,
                     const blitz_file_opts *opts, blitz_file **out)
{
    static const blitz_file_opts none;
    const blitz_file_opts *o = opts != NULL ? opts : &none;
    if (path == NULL || out == NULL || (o->is_truncated && !o->can_write))
        return -EINVAL;
    *a = (struct bz_fs_args){.at = at,
                             .path = path,
                             .number = {flags_of(o)},
                             .mode = o->mode != 0 ? o->mode : 0666,
                             .flags = o->is_synced || o->is_direct ? DIRECT : 0,
                             .out = out};
    return 0;
}

int blitz_file_open(struct blitz_dir *at, const char *path, const blitz_file_opts *opts,
                    blitz_file **out, blitz_deadline until)
{
    struct bz_fs_call c;
    int err = args_open(&c.args, at, path, opts, out);
    return err != 0 ? err : bz_fs_do_int(&verb_open, &c, until);
}

void blitz_file_open_future_init(blitz_fs_future *f, struct blitz_dir *at, const char *path,
                                 const blitz_file_opts *opts, blitz_file **out)
{
    struct bz_fs_args a;
    int err = args_open(&a, at, path, opts, out);
    if (err != 0)
        bz_fs_future_fail(f, err);
    else
        bz_fs_future_begin(f, &verb_open, &a);
}

/* ---- facts ---- */

void bz_facts_show(const struct bz_fs_facts *in, blitz_file_facts *out)
{
    *out = (blitz_file_facts){.size = in->size,
                              .allocated = in->blocks_bytes,
                              .inode = in->inode,
                              .device = in->device,
                              .links = in->links,
                              .accessed_ns = in->accessed_ns,
                              .modified_ns = in->modified_ns,
                              .changed_ns = in->changed_ns,
                              .born_ns = in->born_ns,
                              .permissions = in->mode,
                              .uid = in->uid,
                              .gid = in->gid,
                              .kind = (blitz_file_kind)in->kind};
}

static int64_t run_stat(struct bz_fs_call *c)
{
    struct bz_fs_facts facts;
    int err;
    bz_fs_again(err, bz_fsys->facts(c->args.file->fd, &facts));
    if (err == 0)
        bz_facts_show(&facts, c->args.out);
    return err;
}

static int64_t run_truncate(struct bz_fs_call *c)
{
    int err;
    bz_fs_again(err, bz_fsys->resize(c->args.file->fd, (uint64_t)c->args.number[0]));
    return err;
}

static int64_t run_permissions(struct bz_fs_call *c)
{
    int err;
    bz_fs_again(err, bz_fsys->fchmod(c->args.file->fd, c->args.mode));
    return err;
}

static int64_t run_times(struct bz_fs_call *c)
{
    int err;
    bz_fs_again(err, bz_fsys->set_times(c->args.file->fd, NULL, BZ_FS_FOLLOW, c->args.number[0],
                                        c->args.number[1]));
    return err;
}

static const struct bz_fs_verb verb_stat = BZ_FS_VERB("file stat", run_stat);
static const struct bz_fs_verb verb_truncate = BZ_FS_VERB("truncate", run_truncate);
static const struct bz_fs_verb verb_permissions = BZ_FS_VERB("file permissions", run_permissions);
static const struct bz_fs_verb verb_times = BZ_FS_VERB("file times", run_times);

/* A call on an open file, if its arguments are right. */
static int on_file(const struct bz_fs_verb *verb, bool is_right, struct bz_fs_args args,
                   blitz_deadline until)
{
    struct bz_fs_call c = {.args = args};
    return is_right ? bz_fs_do_int(verb, &c, until) : -EINVAL;
}

static void on_file_later(blitz_fs_future *f, const struct bz_fs_verb *verb, bool is_right,
                          struct bz_fs_args args)
{
    if (is_right)
        bz_fs_future_begin(f, verb, &args);
    else
        bz_fs_future_fail(f, -EINVAL);
}

static struct bz_fs_args args_of(blitz_file *f, void *out, uint32_t mode, int64_t a, int64_t b)
{
    return (struct bz_fs_args){.file = f, .out = out, .mode = mode, .number = {a, b}};
}

int blitz_file_stat(blitz_file *f, blitz_file_facts *out, blitz_deadline until)
{
    return on_file(&verb_stat, f != NULL && out != NULL, args_of(f, out, 0, 0, 0), until);
}

void blitz_file_stat_future_init(blitz_fs_future *f, blitz_file *file, blitz_file_facts *out)
{
    on_file_later(f, &verb_stat, file != NULL && out != NULL, args_of(file, out, 0, 0, 0));
}

int blitz_file_truncate(blitz_file *f, uint64_t bytes, blitz_deadline until)
{
    return on_file(&verb_truncate, f != NULL, args_of(f, NULL, 0, (int64_t)bytes, 0), until);
}

void blitz_file_truncate_future_init(blitz_fs_future *f, blitz_file *file, uint64_t bytes)
{
    on_file_later(f, &verb_truncate, file != NULL, args_of(file, NULL, 0, (int64_t)bytes, 0));
}

int blitz_file_set_permissions(blitz_file *f, uint32_t permissions, blitz_deadline until)
{
    return on_file(&verb_permissions, f != NULL && permissions <= 07777,
                   args_of(f, NULL, permissions, 0, 0), until);
}

void blitz_file_set_permissions_future_init(blitz_fs_future *f, blitz_file *file,
                                            uint32_t permissions)
{
    on_file_later(f, &verb_permissions, file != NULL && permissions <= 07777,
                  args_of(file, NULL, permissions, 0, 0));
}

int blitz_file_set_times(blitz_file *f, int64_t accessed_ns, int64_t modified_ns,
                         blitz_deadline until)
{
    return on_file(&verb_times, f != NULL, args_of(f, NULL, 0, accessed_ns, modified_ns), until);
}

void blitz_file_set_times_future_init(blitz_fs_future *f, blitz_file *file, int64_t accessed_ns,
                                      int64_t modified_ns)
{
    on_file_later(f, &verb_times, file != NULL, args_of(file, NULL, 0, accessed_ns, modified_ns));
}

/* ---- locks ---- */

enum { SHARED = 1 };

static int64_t attempt_lock(struct bz_fs_call *c)
{
    int err;
    bz_fs_again(err, bz_fsys->lock(c->args.file->fd, c->args.flags & SHARED));
    return err;
}

static const struct bz_fs_verb verb_lock =
    BZ_FS_VERB("file lock", NULL, .attempt = attempt_lock, .naps = true);

static struct bz_fs_args args_lock(blitz_file *f, const blitz_file_lock_opts *opts)
{
    return (struct bz_fs_args){.file = f, .flags = opts != NULL && opts->is_shared ? SHARED : 0};
}

int blitz_file_lock(blitz_file *f, const blitz_file_lock_opts *opts, blitz_deadline until)
{
    return on_file(&verb_lock, f != NULL, args_lock(f, opts), until);
}

void blitz_file_lock_future_init(blitz_fs_future *f, blitz_file *file,
                                 const blitz_file_lock_opts *opts)
{
    on_file_later(f, &verb_lock, file != NULL, args_lock(file, opts));
}

int blitz_file_unlock(blitz_file *f)
{
    int err = -EINVAL;
    if (f != NULL)
        bz_fs_again(err, bz_fsys->unlock(f->fd));
    return err;
}
