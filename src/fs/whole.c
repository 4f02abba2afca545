/*
 * whole.c - whole files: read, write, append, copy.
 *
 * A read takes the size that the file says as a first guess, and one byte more: the end is seen without a second
 * buffer. A file that says 0 may still have content (proc, pipes). The buffer doubles when it is full.
 *
 * A copy asks the file system to share the content, then the kernel to copy it, and copies through memory last. Each
 * way continues where the one before has stopped: both files keep their position.
 */
#include <errno.h>
#include <string.h>

#include "blitz/path.h"
#include "blitz/whole_file.h"
#include "fs/replace.h"

#define READ_MAX_DEFAULT ((size_t)1 << 30)
enum { GUESS_BYTES = 4096, COPY_BYTES = 256 * 1024, RANGE_BYTES = 8 * 1024 * 1024 };

static int open_at(struct blitz_dir *at, const char *path, int flags, unsigned mode)
{
    int fd;
    bz_fs_again(fd, bz_fsys->open(bz_dir_at(at), path, flags, mode));
    return fd;
}

static int64_t read_some(int fd, void *data, size_t bytes)
{
    blitz_piece v = {data, bytes};
    int64_t n;
    bz_fs_again(n, bz_fsys->read(fd, &v, 1, -1));
    return n;
}

/* ---- reading ---- */

struct content {
    char *data;
    size_t used, room, most;
};

/* Make room for another read. The last byte is for the zero. */
static int grow(struct content *t)
{
    if (t->used > t->most)
        return -EFBIG;
    if (t->used + 1 < t->room)
        return 0;
    size_t room = t->room < SIZE_MAX / 2 ? t->room * 2 : SIZE_MAX;
    if (room > t->most + 2)
        room = t->most + 2; /* one byte more shows that it is too long */
    char *data = bz_alloc(&bz_allocator_libc, room, 1);
    if (data == NULL)
        return -ENOMEM;
    memcpy(data, t->data, t->used);
    bz_free(&bz_allocator_libc, t->data, t->room);
    t->data = data;
    t->room = room;
    return 0;
}

static int read_all(struct bz_fs_call *c, int fd, struct content *t)
{
    for (;;) {
        int err = bz_fs_stopped(c);
        if (err == 0)
            err = grow(t);
        if (err != 0)
            return err;
        int64_t n = read_some(fd, t->data + t->used, t->room - 1 - t->used);
        if (n <= 0)
            return (int)n;
        t->used += (size_t)n;
    }
}

static int read_open(struct bz_fs_call *c, int fd, struct content *t)
{
    struct bz_fs_facts facts;
    int err;
    bz_fs_again(err, bz_fsys->facts(fd, &facts));
    if (err != 0)
        return err;
    if (facts.kind == BZ_FS_DIR)
        return -EISDIR;
    if (facts.kind == BZ_FS_FILE && facts.size > t->most)
        return -EFBIG;
    t->room = (facts.kind == BZ_FS_FILE && facts.size > 0 ? (size_t)facts.size : GUESS_BYTES) + 2;
    t->data = bz_alloc(&bz_allocator_libc, t->room, 1);
    if (t->data == NULL)
        return -ENOMEM;
    err = read_all(c, fd, t);
    if (err == 0 && t->used > t->most)
        err = -EFBIG;
    if (err != 0)
        bz_free(&bz_allocator_libc, t->data, t->room);
    return err;
}

static int64_t run_read_file(struct bz_fs_call *c)
{
    struct content t = {.most = (size_t)c->args.number[0]};
    int fd = open_at(c->args.at, c->args.path, O_RDONLY, 0);
    if (fd < 0)
        return fd;
    int err = read_open(c, fd, &t);
    (void)bz_fs_close(fd); /* it was only read */
    if (err != 0)
        return err;
    t.data[t.used] = '\0';
    *(void **)c->args.out = t.data;
    *(size_t *)c->args.out_too = t.used;
    return 0;
}

/* ---- writing ---- */

static int64_t run_write_file(struct bz_fs_call *c)
{
    struct bz_replacement r;
    int err =
        bz_replace_begin(&r, bz_dir_at(c->args.at), c->args.path, c->args.mode, c->args.flags);
    if (err != 0)
        return err;
    err = bz_fs_write_all(c, r.fd, c->args.memory.data, c->args.memory.bytes);
    if (err == 0)
        return bz_replace_finish(&r);
    bz_replace_abandon(&r);
    return err;
}

static int file_size(int fd, uint64_t *out)
{
    struct bz_fs_facts facts = {.size = 0};
    int err;
    bz_fs_again(err, bz_fsys->facts(fd, &facts));
    *out = facts.size;
    return err;
}

/* Take back a part that was appended, if nothing follows it. */
static void take_back(int fd, uint64_t before)
{
    uint64_t now;
    int64_t end;
    bz_fs_again(end, bz_fsys->seek(fd, 0, SEEK_CUR)); /* behind our own part */
    if (file_size(fd, &now) == 0 && now > before && end == (int64_t)now)
        (void)bz_fsys->resize(fd, before);
}

static int append(struct bz_fs_call *c, int fd)
{
    uint64_t before;
    int err = file_size(fd, &before);
    if (err == 0)
        err = bz_fs_write_all(c, fd, c->args.memory.data, c->args.memory.bytes);
    if (err == 0 && !(c->args.flags & BZ_REPLACE_NO_SYNC))
        bz_fs_again(err, bz_fsys->sync(fd, false));
    if (err != 0)
        take_back(fd, before);
    return err;
}

static int64_t run_append_file(struct bz_fs_call *c)
{
    int fd = open_at(c->args.at, c->args.path, O_WRONLY | O_APPEND | O_CREAT,
                     c->args.mode != 0 ? c->args.mode : 0666);
    if (fd < 0)
        return fd;
    int err = append(c, fd);
    int closed = bz_fs_close(fd);
    bool is_synced = !(c->args.flags & BZ_REPLACE_NO_SYNC); /* then a close has no more to say */
    return err != 0 || is_synced ? err : closed;
}

/* ---- copying ---- */

/* Copy by the kernel. 1: it has copied all it can; the rest, if any, goes through memory. */
static int copy_ranges(struct bz_fs_call *c, int from, int to)
{
    for (;;) {
        int why = bz_fs_stopped(c);
        if (why != 0)
            return why;
        int64_t n;
        bz_fs_again(n, bz_fsys->copy_range(from, to, RANGE_BYTES));
        if (n == -EIO || n == -ENOSPC || n == -EDQUOT || n == -EFBIG || n == -ENOMEM)
            return (int)n;
        if (n <= 0)
            return 1; /* the end, or not between these two */
        c->args.done += (size_t)n;
    }
}

static int copy_bytes(struct bz_fs_call *c, int from, int to, void *buffer)
{
    for (;;) {
        int64_t n = read_some(from, buffer, COPY_BYTES);
        if (n <= 0)
            return (int)n;
        int err = bz_fs_write_all(c, to, buffer, (size_t)n);
        if (err != 0)
            return err;
        c->args.done += (size_t)n;
    }
}

static int copy_content(struct bz_fs_call *c, int from, int to, uint64_t size)
{
    int err;
    bz_fs_again(err, bz_fsys->clone(from, to));
    if (err == 0) {
        c->args.done = (size_t)size;
        return 0;
    }
    err = copy_ranges(c, from, to);
    if (err != 1)
        return err;
    void *buffer = bz_alloc(&bz_allocator_libc, COPY_BYTES, 1);
    if (buffer == NULL)
        return -ENOMEM;
    err = copy_bytes(c, from, to, buffer);
    bz_free(&bz_allocator_libc, buffer, COPY_BYTES);
    return err;
}

static int copy_open(struct bz_fs_call *c, int from)
{
    struct bz_replacement r;
    struct bz_fs_facts facts;
    int err;
    bz_fs_again(err, bz_fsys->facts(from, &facts));
    if (err == 0 && facts.kind == BZ_FS_DIR)
        err = -EISDIR;
    if (err != 0)
        return err;
    err = bz_replace_begin(&r, bz_dir_at(c->args.to_at), c->args.to,
                           c->args.mode != 0 ? c->args.mode : facts.mode, c->args.flags);
    if (err != 0)
        return err;
    err = copy_content(c, from, r.fd, facts.size);
    if (err == 0)
        return bz_replace_finish(&r);
    bz_replace_abandon(&r);
    return err;
}

static int64_t run_copy(struct bz_fs_call *c)
{
    int from = open_at(c->args.at, c->args.path, O_RDONLY, 0);
    if (from < 0)
        return from;
    c->args.done = 0;
    int err = copy_open(c, from);
    (void)bz_fs_close(from); /* it was only read */
    if (err == 0 && c->args.out != NULL)
        *(uint64_t *)c->args.out = c->args.done;
    return err;
}

/* ---- calls and futures ---- */

static const struct bz_fs_verb verb_read_file = BZ_FS_VERB("read file", run_read_file);
static const struct bz_fs_verb verb_write_file =
    BZ_FS_VERB("write file", run_write_file, .is_slow = bz_fs_is_slow);
static const struct bz_fs_verb verb_append_file =
    BZ_FS_VERB("append to file", run_append_file, .is_slow = bz_fs_is_slow);
static const struct bz_fs_verb verb_copy =
    BZ_FS_VERB("copy file", run_copy, .is_slow = bz_fs_is_slow);

static int now(const struct bz_fs_verb *verb, bool is_right, struct bz_fs_args args,
               blitz_deadline until)
{
    struct bz_fs_call c = {.args = args};
    return is_right ? bz_fs_do_int(verb, &c, until) : -EINVAL;
}

static void later(blitz_fs_future *f, const struct bz_fs_verb *verb, bool is_right,
                  struct bz_fs_args args)
{
    if (is_right)
        bz_fs_future_begin(f, verb, &args);
    else
        bz_fs_future_fail(f, -EINVAL);
}

static struct bz_fs_args args_read(blitz_dir *at, const char *path, const blitz_fs_read_opts *opts,
                                   void **data, size_t *bytes)
{
    size_t most = opts != NULL && opts->bytes_max != 0 ? opts->bytes_max : READ_MAX_DEFAULT;
    most = most < SIZE_MAX / 4 ? most : SIZE_MAX / 4;
    return (struct bz_fs_args){
        .at = at, .path = path, .out = data, .out_too = bytes, .number = {(int64_t)most}};
}

static struct bz_fs_args with_opts(struct bz_fs_args a, const blitz_fs_write_opts *opts)
{
    if (opts == NULL)
        return a;
    a.mode = opts->permissions;
    a.flags = (uint16_t)((opts->is_new ? BZ_REPLACE_IS_NEW : 0) |
                         (opts->no_sync ? BZ_REPLACE_NO_SYNC : 0));
    return a;
}

static struct bz_fs_args args_write(blitz_dir *at, const char *path, const void *data, size_t bytes,
                                    const blitz_fs_write_opts *opts)
{
    struct bz_fs_args a = {.at = at, .path = path, .memory = {(void *)(uintptr_t)data, bytes}};
    return with_opts(a, opts);
}

static bool is_write(const char *path, const void *data, size_t bytes,
                     const blitz_fs_write_opts *opts)
{
    return path != NULL && (data != NULL || bytes == 0) &&
           (opts == NULL || opts->permissions <= 07777);
}

static struct bz_fs_args args_copy(blitz_dir *at, const char *path, blitz_dir *to_at,
                                   const char *to, const blitz_fs_write_opts *opts,
                                   uint64_t *copied) /* NOLINT(readability-non-const-parameter) */
{
    struct bz_fs_args a = {.at = at, .path = path, .to_at = to_at, .to = to, .out = copied};
    return with_opts(a, opts);
}

int blitz_fs_read_file(blitz_dir *at, const char *path, const blitz_fs_read_opts *opts, void **data,
                       size_t *bytes, blitz_deadline until)
{
    return now(&verb_read_file, path != NULL && data != NULL && bytes != NULL,
               args_read(at, path, opts, data, bytes), until);
}

void blitz_fs_read_file_future_init(blitz_fs_future *f, blitz_dir *at, const char *path,
                                    const blitz_fs_read_opts *opts, void **data, size_t *bytes)
{
    later(f, &verb_read_file, path != NULL && data != NULL && bytes != NULL,
          args_read(at, path, opts, data, bytes));
}

int blitz_fs_write_file(blitz_dir *at, const char *path, const void *data, size_t bytes,
                        const blitz_fs_write_opts *opts, blitz_deadline until)
{
    return now(&verb_write_file, is_write(path, data, bytes, opts),
               args_write(at, path, data, bytes, opts), until);
}

void blitz_fs_write_file_future_init(blitz_fs_future *f, blitz_dir *at, const char *path,
                                     const void *data, size_t bytes,
                                     const blitz_fs_write_opts *opts)
{
    later(f, &verb_write_file, is_write(path, data, bytes, opts),
          args_write(at, path, data, bytes, opts));
}

int blitz_fs_append_file(blitz_dir *at, const char *path, const void *data, size_t bytes,
                         const blitz_fs_write_opts *opts, blitz_deadline until)
{
    return now(&verb_append_file, is_write(path, data, bytes, opts),
               args_write(at, path, data, bytes, opts), until);
}

void blitz_fs_append_file_future_init(blitz_fs_future *f, blitz_dir *at, const char *path,
                                      const void *data, size_t bytes,
                                      const blitz_fs_write_opts *opts)
{
    later(f, &verb_append_file, is_write(path, data, bytes, opts),
          args_write(at, path, data, bytes, opts));
}

int blitz_fs_copy(blitz_dir *at, const char *path, blitz_dir *to_at, const char *to,
                  const blitz_fs_write_opts *opts, uint64_t *copied, blitz_deadline until)
{
    return now(&verb_copy, is_write(path, "", 0, opts) && to != NULL,
               args_copy(at, path, to_at, to, opts, copied), until);
}

void blitz_fs_copy_future_init(blitz_fs_future *f, blitz_dir *at, const char *path,
                               blitz_dir *to_at, const char *to, const blitz_fs_write_opts *opts,
                               uint64_t *copied)
{
    later(f, &verb_copy, is_write(path, "", 0, opts) && to != NULL,
          args_copy(at, path, to_at, to, opts, copied));
}
