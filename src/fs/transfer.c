/*
 * transfer.c - read, write and sync an open file.
 *
 * A transfer is one system call, or several that count their progress: `memory`, the offset and `done` move on
 * after each, so that the next can be made in another way. A read begins with the cached bytes, and goes to the
 * disk for the rest only.
 *
 * A read of a regular file fills its buffer up to the end of the file. The system returns less if only some of the
 * bytes are cached, and a caller could not tell that from the end. So a short read is followed by a second one. An
 * error behind bytes that were read is left to the next call.
 *
 * Some file systems do not tell what is cached (-EOPNOTSUPP). If such a file is in memory (tmpfs, proc), it is read at
 * once. Otherwise it is read by a ring or the pool.
 *
 * A cached read is the hot path. It is made before the call is set up: 95 instructions in all (`make budget`).
 */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "fs/fs.h"
#include "io/op.h"
#include "io/quiet.h"

enum {
    WRITES = 1,
    ALL = 2,  /* until all bytes are done: the result is 0 */
    FILLS = 4 /* until the end of the file: the result is their number */
};

/* ---- one system call ---- */

static const blitz_piece *pieces_of(const struct bz_fs_args *a)
{
    return a->vector != NULL ? a->vector : &a->memory;
}

/* The system refuses to read only cached bytes: remember why. */
static BZ_NOINLINE int64_t read_untold(blitz_file *f, const blitz_piece *v, int count, int64_t at)
{
    bool is_memory = f->is_regular && bz_fs_is_in_memory(f->fd);
    uint8_t cache = is_memory ? BZ_CACHE_IS_MEMORY : BZ_CACHE_UNKNOWN;
    int64_t n = -EAGAIN;
    bz_store_relaxed(&f->cache, cache); /* relaxed: a hint */
    if (is_memory)
        bz_fs_again(n, bz_fsys->read(f->fd, v, count, at));
    return n;
}

/* Read what is in memory. -EAGAIN: it is not. */
static inline int64_t read_now(blitz_file *f, const blitz_piece *v, int count, int64_t at)
{
    uint8_t cache = bz_load_relaxed(&f->cache); /* relaxed: a hint */
    if (BZ_UNLIKELY(cache != BZ_CACHE_TELLS))
        return cache == BZ_CACHE_UNKNOWN ? -EAGAIN : read_untold(f, v, count, at);
    int64_t n = bz_fsys->read_cached(f->fd, v, count, at);
    if (BZ_UNLIKELY(n == -EOPNOTSUPP))
        return read_untold(f, v, count, at);
    return n == -EINTR ? -EAGAIN : n;
}

/* Write, on a thread that may wait. A pipe without a reader raises no signal. */
static int64_t write_once(const blitz_file *f, const blitz_piece *v, int count, int64_t at)
{
    struct bz_quiet quiet;
    int64_t n;
    if (f->is_regular) {
        bz_fs_again(n, bz_fsys->write(f->fd, v, count, at));
        return n;
    }
    bz_quiet_begin(&quiet);
    bz_fs_again(n, bz_fsys->write(f->fd, v, count, at));
    bz_quiet_end(&quiet, false);
    return n;
}

/* ---- progress ---- */

/* Count n bytes, or take an error. True: the transfer is over, with *n. */
static bool after(struct bz_fs_args *a, int64_t *n)
{
    if (*n < 0 || (a->flags & (ALL | FILLS)) == 0)
        return true;
    if (*n == 0) {
        *n = (a->flags & FILLS) ? (int64_t)a->done : (a->flags & WRITES) ? -EIO : -EPIPE;
        return true;
    }
    a->done += (size_t)*n;
    a->memory.data = (char *)a->memory.data + *n;
    a->memory.bytes -= (size_t)*n;
    if (a->number[0] >= 0)
        a->number[0] += *n;
    bool is_over = a->memory.bytes == 0;
    if (is_over)
        *n = (a->flags & FILLS) ? (int64_t)a->done : 0;
    return is_over;
}

static int64_t attempt_read(struct bz_fs_call *c)
{
    struct bz_fs_args *a = &c->args;
    int64_t n;
    do {
        n = read_now(a->file, pieces_of(a), a->count, a->number[0]);
    } while (n != -EAGAIN && !after(a, &n));
    return n;
}

static int64_t run_transfer(struct bz_fs_call *c)
{
    struct bz_fs_args *a = &c->args;
    int64_t n;
    do {
        int why = bz_fs_stopped(c);
        if (why != 0)
            return why;
        if (a->flags & WRITES)
            n = write_once(a->file, pieces_of(a), a->count, a->number[0]);
        else
            bz_fs_again(n, bz_fsys->read(a->file->fd, pieces_of(a), a->count, a->number[0]));
    } while (!after(a, &n));
    return n;
}

static bool is_write_slow(const struct bz_fs_call *c)
{
    return !c->args.file->is_regular || c->args.file->is_direct;
}

static bool transfer_for_ring(struct bz_fs_call *c, struct bz_op *op)
{
    const struct bz_fs_args *a = &c->args;
    op->code = (a->flags & WRITES) ? BZ_OP_WRITEV : BZ_OP_READV;
    op->flags = a->count;
    op->v.vector = pieces_of(a);
    op->v.at = a->number[0];
    return a->file->is_regular;
}

static bool transfer_landed(struct bz_fs_call *c, int64_t *result)
{
    return after(&c->args, result);
}

static const struct bz_fs_verb verb_read =
    BZ_FS_VERB("file read", run_transfer, .attempt = attempt_read, .is_slow = bz_fs_is_slow,
               .for_ring = transfer_for_ring, .landed = transfer_landed);
static const struct bz_fs_verb verb_write =
    BZ_FS_VERB("file write", run_transfer, .is_slow = is_write_slow, .for_ring = transfer_for_ring,
               .landed = transfer_landed);

int bz_fs_write_all(struct bz_fs_call *c, int fd, const void *data, size_t bytes)
{
    const char *p = data;
    while (bytes > 0) {
        blitz_piece v = {(void *)(uintptr_t)p, bytes < (1u << 30) ? bytes : 1u << 30};
        int64_t n = bz_fs_stopped(c);
        if (n == 0)
            bz_fs_again(n, bz_fsys->write(fd, &v, 1, -1));
        if (n <= 0)
            return n < 0 ? (int)n : -EIO;
        p += n;
        bytes -= (size_t)n;
    }
    return 0;
}

/* ---- arguments ---- */

/* The most bytes of one call: the system's limit is a little less than 2 GiB. */
#define BYTES_MAX ((size_t)1 << 62)

/* One buffer. at < 0: the position. */
static int one(struct bz_fs_args *a, blitz_file *f, const void *data, size_t bytes, int64_t at,
               unsigned flags)
{
    if (f == NULL || (data == NULL && bytes > 0) || bytes > BYTES_MAX)
        return -EINVAL;
    *a = (struct bz_fs_args){.file = f,
                             .memory = {(void *)(uintptr_t)data, bytes},
                             .number = {at},
                             .flags = (uint16_t)flags,
                             .count = 1};
    if (flags & FILLS)
        a->flags |= BZ_FS_PARTIAL;
    return 0;
}

static int several(struct bz_fs_args *a, blitz_file *f, const blitz_piece *pieces, size_t count,
                   int64_t at, unsigned flags)
{
    if (f == NULL || pieces == NULL || count == 0)
        return -EINVAL;
    count = count < BLITZ_PIECES_MAX ? count : BLITZ_PIECES_MAX;
    *a = (struct bz_fs_args){.file = f,
                             .vector = pieces,
                             .number = {at},
                             .flags = (uint16_t)flags,
                             .count = (uint16_t)count};
    return 0;
}

/* A read of a file of the disk fills its buffer. */
static unsigned fills(const blitz_file *f)
{
    bool is_disk = f != NULL && f->is_regular;
    return is_disk && bz_load_relaxed(&f->cache) != BZ_CACHE_IS_MEMORY /* relaxed: a hint */
               ? FILLS
               : 0;
}

/* An offset, or -1 (none of a file) if it is too large. */
static int64_t offset_of(uint64_t offset, int *err)
{
    if (*err == 0 && offset > INT64_MAX)
        *err = -EINVAL;
    return (int64_t)(offset & INT64_MAX);
}

static int64_t transfer(int err, struct bz_fs_call *c, blitz_deadline until)
{
    if (err != 0)
        return err;
    return bz_fs_do((c->args.flags & WRITES) ? &verb_write : &verb_read, c, until);
}

static void transfer_later(blitz_fs_future *f, int err, const struct bz_fs_args *a)
{
    if (err != 0)
        bz_fs_future_fail(f, err);
    else
        bz_fs_future_begin(f, (a->flags & WRITES) ? &verb_write : &verb_read, a);
}

/* All bytes of nothing are done. */
static void all_later(blitz_fs_future *f, int err, const struct bz_fs_args *a)
{
    if (err == 0 && a->memory.bytes == 0)
        bz_fs_future_fail(f, 0);
    else
        transfer_later(f, err, a);
}

/* Transfer all bytes, and say how many were done. */
static int transfer_all(int err, struct bz_fs_call *c, size_t *done, blitz_deadline until)
{
    if (err == 0 && c->args.memory.bytes > 0)
        err = (int)transfer(0, c, until);
    else
        c->args.done = 0;
    if (done != NULL)
        *done = c->args.done;
    return err;
}

/* ---- reading ---- */

/* The rest of a read whose first n bytes were cached, or none: -EAGAIN. */
static BZ_NOINLINE int64_t read_rest(blitz_file *f, void *data, size_t bytes, int64_t at, int64_t n,
                                     blitz_deadline until)
{
    struct bz_fs_call c;
    int err = one(&c.args, f, data, bytes, at, fills(f));
    if (err == 0 && n > 0 && ((c.args.flags & FILLS) == 0 || after(&c.args, &n)))
        return n;
    return transfer(err, &c, until);
}

static inline int64_t read_one(blitz_file *f, void *data, size_t bytes, int64_t at,
                               blitz_deadline until)
{
    if (BZ_UNLIKELY(f == NULL || (data == NULL && bytes > 0) || bytes > BYTES_MAX))
        return -EINVAL;
    blitz_piece v = {data, bytes};
    int64_t n = read_now(f, &v, 1, at);
    if (BZ_LIKELY(n == (int64_t)bytes || n == 0 || (n < 0 && n != -EAGAIN)))
        return n;
    return read_rest(f, data, bytes, at, n, until);
}

int64_t blitz_file_read(blitz_file *f, void *data, size_t bytes, blitz_deadline until)
{
    return read_one(f, data, bytes, -1, until);
}

int64_t blitz_file_read_at(blitz_file *f, void *data, size_t bytes, uint64_t offset,
                           blitz_deadline until)
{
    if (BZ_UNLIKELY(offset > INT64_MAX))
        return -EINVAL;
    return read_one(f, data, bytes, (int64_t)offset, until);
}

int64_t blitz_file_readv(blitz_file *f, const blitz_piece *pieces, size_t count,
                         blitz_deadline until)
{
    struct bz_fs_call c;
    return transfer(several(&c.args, f, pieces, count, -1, 0), &c, until);
}

int64_t blitz_file_readv_at(blitz_file *f, const blitz_piece *pieces, size_t count, uint64_t offset,
                            blitz_deadline until)
{
    struct bz_fs_call c;
    int err = 0;
    int64_t at = offset_of(offset, &err);
    return transfer(err != 0 ? err : several(&c.args, f, pieces, count, at, 0), &c, until);
}

int blitz_file_read_exact_at(blitz_file *f, void *data, size_t bytes, uint64_t offset, size_t *done,
                             blitz_deadline until)
{
    struct bz_fs_call c;
    int err = 0;
    int64_t at = offset_of(offset, &err);
    return transfer_all(err != 0 ? err : one(&c.args, f, data, bytes, at, ALL), &c, done, until);
}

void blitz_file_read_future_init(blitz_fs_future *f, blitz_file *file, void *data, size_t bytes)
{
    struct bz_fs_args a;
    transfer_later(f, one(&a, file, data, bytes, -1, fills(file)), &a);
}

void blitz_file_read_at_future_init(blitz_fs_future *f, blitz_file *file, void *data, size_t bytes,
                                    uint64_t offset)
{
    struct bz_fs_args a;
    int err = 0;
    int64_t at = offset_of(offset, &err);
    transfer_later(f, err != 0 ? err : one(&a, file, data, bytes, at, fills(file)), &a);
}

void blitz_file_readv_future_init(blitz_fs_future *f, blitz_file *file, const blitz_piece *pieces,
                                  size_t count)
{
    struct bz_fs_args a;
    transfer_later(f, several(&a, file, pieces, count, -1, 0), &a);
}

void blitz_file_readv_at_future_init(blitz_fs_future *f, blitz_file *file,
                                     const blitz_piece *pieces, size_t count, uint64_t offset)
{
    struct bz_fs_args a;
    int err = 0;
    int64_t at = offset_of(offset, &err);
    transfer_later(f, err != 0 ? err : several(&a, file, pieces, count, at, 0), &a);
}

void blitz_file_read_exact_at_future_init(blitz_fs_future *f, blitz_file *file, void *data,
                                          size_t bytes, uint64_t offset)
{
    struct bz_fs_args a;
    int err = 0;
    int64_t at = offset_of(offset, &err);
    all_later(f, err != 0 ? err : one(&a, file, data, bytes, at, ALL), &a);
}

/* ---- writing ---- */

int64_t blitz_file_write(blitz_file *f, const void *data, size_t bytes, blitz_deadline until)
{
    struct bz_fs_call c;
    return transfer(one(&c.args, f, data, bytes, -1, WRITES), &c, until);
}

int64_t blitz_file_write_at(blitz_file *f, const void *data, size_t bytes, uint64_t offset,
                            blitz_deadline until)
{
    struct bz_fs_call c;
    int err = 0;
    int64_t at = offset_of(offset, &err);
    return transfer(err != 0 ? err : one(&c.args, f, data, bytes, at, WRITES), &c, until);
}

int64_t blitz_file_writev(blitz_file *f, const blitz_piece *pieces, size_t count,
                          blitz_deadline until)
{
    struct bz_fs_call c;
    return transfer(several(&c.args, f, pieces, count, -1, WRITES), &c, until);
}

int64_t blitz_file_writev_at(blitz_file *f, const blitz_piece *pieces, size_t count,
                             uint64_t offset, blitz_deadline until)
{
    struct bz_fs_call c;
    int err = 0;
    int64_t at = offset_of(offset, &err);
    return transfer(err != 0 ? err : several(&c.args, f, pieces, count, at, WRITES), &c, until);
}

int blitz_file_write_all(blitz_file *f, const void *data, size_t bytes, size_t *done,
                         blitz_deadline until)
{
    struct bz_fs_call c;
    return transfer_all(one(&c.args, f, data, bytes, -1, WRITES | ALL), &c, done, until);
}

int blitz_file_write_all_at(blitz_file *f, const void *data, size_t bytes, uint64_t offset,
                            size_t *done, blitz_deadline until)
{
    struct bz_fs_call c;
    int err = 0;
    int64_t at = offset_of(offset, &err);
    return transfer_all(err != 0 ? err : one(&c.args, f, data, bytes, at, WRITES | ALL), &c, done,
                        until);
}

void blitz_file_write_future_init(blitz_fs_future *f, blitz_file *file, const void *data,
                                  size_t bytes)
{
    struct bz_fs_args a;
    transfer_later(f, one(&a, file, data, bytes, -1, WRITES), &a);
}

void blitz_file_write_at_future_init(blitz_fs_future *f, blitz_file *file, const void *data,
                                     size_t bytes, uint64_t offset)
{
    struct bz_fs_args a;
    int err = 0;
    int64_t at = offset_of(offset, &err);
    transfer_later(f, err != 0 ? err : one(&a, file, data, bytes, at, WRITES), &a);
}

void blitz_file_writev_future_init(blitz_fs_future *f, blitz_file *file, const blitz_piece *pieces,
                                   size_t count)
{
    struct bz_fs_args a;
    transfer_later(f, several(&a, file, pieces, count, -1, WRITES), &a);
}

void blitz_file_writev_at_future_init(blitz_fs_future *f, blitz_file *file,
                                      const blitz_piece *pieces, size_t count, uint64_t offset)
{
    struct bz_fs_args a;
    int err = 0;
    int64_t at = offset_of(offset, &err);
    transfer_later(f, err != 0 ? err : several(&a, file, pieces, count, at, WRITES), &a);
}

void blitz_file_write_all_future_init(blitz_fs_future *f, blitz_file *file, const void *data,
                                      size_t bytes)
{
    struct bz_fs_args a;
    all_later(f, one(&a, file, data, bytes, -1, WRITES | ALL), &a);
}

void blitz_file_write_all_at_future_init(blitz_fs_future *f, blitz_file *file, const void *data,
                                         size_t bytes, uint64_t offset)
{
    struct bz_fs_args a;
    int err = 0;
    int64_t at = offset_of(offset, &err);
    all_later(f, err != 0 ? err : one(&a, file, data, bytes, at, WRITES | ALL), &a);
}

/* ---- syncing ---- */

enum { DATA_ONLY = 1 };

static int64_t run_sync(struct bz_fs_call *c)
{
    int err;
    bz_fs_again(err, bz_fsys->sync(c->args.file->fd, c->args.flags & DATA_ONLY));
    return err;
}

static bool sync_for_ring(struct bz_fs_call *c, struct bz_op *op)
{
    op->code = BZ_OP_FSYNC;
    op->flags = c->args.flags & DATA_ONLY;
    return true;
}

/* NOLINTNEXTLINE(readability-non-const-parameter): one type for all verbs */
static bool sync_landed(struct bz_fs_call *c, int64_t *result)
{
    (void)c;
    (void)result;
    return true;
}

static const struct bz_fs_verb verb_sync =
    BZ_FS_VERB("file sync", run_sync, .is_slow = bz_fs_is_slow, .for_ring = sync_for_ring,
               .landed = sync_landed);

static int sync_file(blitz_file *f, uint16_t flags, blitz_deadline until)
{
    struct bz_fs_call c = {.args = {.file = f, .flags = flags}};
    return f != NULL ? bz_fs_do_int(&verb_sync, &c, until) : -EINVAL;
}

static void sync_later(blitz_fs_future *f, blitz_file *file, uint16_t flags)
{
    if (file != NULL)
        bz_fs_future_begin(f, &verb_sync, &(struct bz_fs_args){.file = file, .flags = flags});
    else
        bz_fs_future_fail(f, -EINVAL);
}

int blitz_file_sync(blitz_file *f, blitz_deadline until)
{
    return sync_file(f, 0, until);
}

int blitz_file_sync_data(blitz_file *f, blitz_deadline until)
{
    return sync_file(f, DATA_ONLY, until);
}

void blitz_file_sync_future_init(blitz_fs_future *f, blitz_file *file)
{
    sync_later(f, file, 0);
}

void blitz_file_sync_data_future_init(blitz_fs_future *f, blitz_file *file)
{
    sync_later(f, file, DATA_ONLY);
}
