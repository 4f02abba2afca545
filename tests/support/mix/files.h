/*
 * files.h - the scenes of files and names.
 *
 * files: all parties read and write one open file, each in a region of its own, whose bytes it knows. A transfer that
 * returns -ETIMEDOUT or -ECANCELED has moved no bytes, or as many as it says. Now and then the file's bytes are dropped
 * from memory, so that reads go to the disk.
 *
 * names: each party has a directory of its own and makes, changes and removes names in it. A file that is written whole
 * has its old content or its new one, whatever the result of the call.
 */
#ifndef MIX_FILES_H
#define MIX_FILES_H

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/compiler.h"
#include "support/mix/net.h"

enum { FILES_REGION = 2048 };

static struct {
    char path[128];
    blitz_dir *dir;
    blitz_file *file;
    blitz_fs_watch *watch;
    unsigned char bytes[MIX_PARTIES][FILES_REGION]; /* each its party's */
} files;

/* ---- making and ending ---- */

static void files_open(void)
{
    const char *base = getenv("TMPDIR");
    snprintf(files.path, sizeof files.path, "%s/blitz-mix-XXXXXX", base != NULL ? base : "/tmp");
    CHECK_NOT_NULL(mkdtemp(files.path));
    CHECK_EQ(blitz_dir_open(NULL, files.path, &files.dir, BLITZ_FOREVER), 0);
}

static void files_close(void)
{
    blitz_dir_close(files.dir);
    CHECK_EQ(blitz_fs_remove_all(NULL, files.path, BLITZ_FOREVER), 0);
}

/* ---- transfers: op->n bytes of op->bytes at op->count ---- */

static int mix_fs_result(struct mix_op *op, int rc)
{
    return mix_result_of(op, op->f.fs.result, rc);
}
static int mix_fs_moved(struct mix_op *op, int rc)
{
    int64_t n = mix_result_of(op, op->f.fs.result, rc);
    op->moved = n > 0 ? (size_t)n : 0;
    return n < 0 ? (int)n : 0;
}
static int mix_fs_done(struct mix_op *op, int rc)
{
    op->moved = op->polled > 0 ? op->f.fs.done : 0;
    return mix_result_of(op, op->f.fs.result, rc);
}
static int mix_fs_bytes(struct mix_op *op, int64_t n)
{
    op->moved = n > 0 ? (size_t)n : 0;
    return n < 0 ? (int)n : 0;
}
static void mix_fs_cut(struct mix_op *op)
{
    op->piece[0] = (blitz_piece){.data = op->bytes, .bytes = op->n / 3};
    op->piece[1] = (blitz_piece){.data = op->bytes + op->n / 3, .bytes = op->n - op->n / 3};
}

#define FILES_VERB(name_, text_, result_, call_, init_)              \
    static int name_##_call(struct mix_op *op, blitz_deadline until) \
    {                                                                \
        (void)op;                                                    \
        return call_;                                                \
    }                                                                \
    static blitz_future *name_##_future(struct mix_op *op)           \
    {                                                                \
        init_;                                                       \
        return &op->f.fs.future;                                     \
    }                                                                \
    static const struct mix_verb name_ = {text_, name_##_call, name_##_future, result_, 0, 0};

FILES_VERB(mix_file_read_at, "file read", mix_fs_moved,
           mix_fs_bytes(op, blitz_file_read_at(op->of, op->bytes, op->n, op->count, until)),
           blitz_file_read_at_future_init(&op->f.fs, op->of, op->bytes, op->n, op->count))
FILES_VERB(mix_file_write_at, "file write", mix_fs_moved,
           mix_fs_bytes(op, blitz_file_write_at(op->of, op->bytes, op->n, op->count, until)),
           blitz_file_write_at_future_init(&op->f.fs, op->of, op->bytes, op->n, op->count))
FILES_VERB(mix_file_readv_at, "file readv", mix_fs_moved,
           (mix_fs_cut(op),
            mix_fs_bytes(op, blitz_file_readv_at(op->of, op->piece, 2, op->count, until))),
           mix_fs_cut(op);
           blitz_file_readv_at_future_init(&op->f.fs, op->of, op->piece, 2, op->count))
FILES_VERB(mix_file_writev_at, "file writev", mix_fs_moved,
           (mix_fs_cut(op),
            mix_fs_bytes(op, blitz_file_writev_at(op->of, op->piece, 2, op->count, until))),
           mix_fs_cut(op);
           blitz_file_writev_at_future_init(&op->f.fs, op->of, op->piece, 2, op->count))
FILES_VERB(mix_file_read_exact, "file read exact", mix_fs_done,
           blitz_file_read_exact_at(op->of, op->bytes, op->n, op->count, &op->moved, until),
           blitz_file_read_exact_at_future_init(&op->f.fs, op->of, op->bytes, op->n, op->count))
FILES_VERB(mix_file_write_all, "file write all", mix_fs_done,
           blitz_file_write_all_at(op->of, op->bytes, op->n, op->count, &op->moved, until),
           blitz_file_write_all_at_future_init(&op->f.fs, op->of, op->bytes, op->n, op->count))
FILES_VERB(mix_file_sync, "file sync", mix_fs_result, blitz_file_sync(op->of, until),
           blitz_file_sync_future_init(&op->f.fs, op->of))
FILES_VERB(mix_file_sync_data, "file sync data", mix_fs_result, blitz_file_sync_data(op->of, until),
           blitz_file_sync_data_future_init(&op->f.fs, op->of))
FILES_VERB(mix_file_stat, "file stat", mix_fs_result, blitz_file_stat(op->of, &op->facts, until),
           blitz_file_stat_future_init(&op->f.fs, op->of, &op->facts))
FILES_VERB(mix_file_permissions, "file permissions", mix_fs_result,
           blitz_file_set_permissions(op->of, 0600, until),
           blitz_file_set_permissions_future_init(&op->f.fs, op->of, 0600))
FILES_VERB(mix_file_times, "file times", mix_fs_result,
           blitz_file_set_times(op->of, BLITZ_TIME_NOW, BLITZ_TIME_NOW, until),
           blitz_file_set_times_future_init(&op->f.fs, op->of, BLITZ_TIME_NOW, BLITZ_TIME_NOW))

static void files_make(struct mix_round *r)
{
    memset(&files, 0, sizeof files);
    files_open();
    blitz_file_opts opts = {.can_read = true, .can_write = true, .is_created = true};
    CHECK_EQ(blitz_file_open(files.dir, "file", &opts, &files.file, BLITZ_FOREVER), 0);
    CHECK_EQ(blitz_file_truncate(files.file, MIX_PARTIES * FILES_REGION, BLITZ_FOREVER), 0);
    unsigned count = 1 + (unsigned)mix_die(&r->dice, MIX_PARTIES - 1);
    for (unsigned i = 0; i < count; i++)
        mix_join_in(r, 0, false)->left = 1 + (unsigned)mix_die(&r->dice, 20);
    mix_say(r, " %u regions", count);
}

static bool files_next(struct mix_party *p)
{
    static const struct mix_verb *const verbs[] = {
        &mix_file_read_at, &mix_file_write_at,   &mix_file_readv_at,   &mix_file_writev_at,
        &mix_file_read_at, &mix_file_read_exact, &mix_file_write_all,  &mix_file_sync_data,
        &mix_file_stat,    &mix_file_times,      &mix_file_permissions};
    if (p->left-- == 0)
        return false;
    if (mix_one_in(&p->dice, 4))
        (void)posix_fadvise(blitz_file_fd(files.file), 0, 0, POSIX_FADV_DONTNEED);
    const struct mix_verb *verb = verbs[mix_die(&p->dice, BZ_ARRAY_LEN(verbs))];
    if (verb == &mix_file_sync_data && !mix_one_in(&p->dice, 4))
        verb = &mix_file_read_at; /* the disk is slow */
    else if (verb == &mix_file_sync_data && mix_one_in(&p->dice, 2))
        verb = &mix_file_sync;
    uint64_t at = mix_die(&p->dice, FILES_REGION - MIX_BYTES);
    p->op.n = 3 + mix_die(&p->dice, MIX_BYTES - 3);
    p->op.count = (unsigned)(p->index * FILES_REGION + at);
    p->op.moved = 0;
    for (uint64_t i = 0; i < p->op.n; i++)
        p->op.bytes[i] = (unsigned char)t_rng_next(&p->dice);
    mix_begin(p, verb, files.file);
    return true;
}

static void files_done(struct mix_party *p, int rc)
{
    const struct mix_verb *v = p->op.verb;
    unsigned char *own = files.bytes[p->index] + (p->op.count - p->index * FILES_REGION);
    bool writes = v == &mix_file_write_at || v == &mix_file_writev_at || v == &mix_file_write_all;
    bool reads = v == &mix_file_read_at || v == &mix_file_readv_at || v == &mix_file_read_exact;
    CHECK(rc == 0 || rc == -ETIMEDOUT || rc == -ECANCELED);
    CHECK_LE(p->op.moved, p->op.n);
    if (rc == 0 && (reads || writes))
        CHECK_GT(p->op.moved, 0u);
    if (writes)
        memcpy(own, p->op.bytes, p->op.moved);
    if (reads)
        CHECK_MEM_EQ(p->op.bytes, own, p->op.moved);
    if (rc == 0)
        mix_add(&p->round->progress, 1);
}

static void files_check(struct mix_round *r)
{
    unsigned char bytes[FILES_REGION];
    for (unsigned i = 0; i < r->count; i++) {
        CHECK_EQ(blitz_file_read_exact_at(files.file, bytes, FILES_REGION,
                                          (uint64_t)i * FILES_REGION, NULL, BLITZ_FOREVER),
                 0);
        CHECK_MEM_EQ(bytes, files.bytes[i], FILES_REGION);
    }
    CHECK_EQ(blitz_file_close(files.file), 0);
    files_close();
}

static const struct mix_scene mix_scene_files = {"files",    2,    files_make, files_next,
                                                 files_done, NULL, files_check};

/* ---- names: op->text[0] is a name, op->text[1] another, in the party's directory ---- */

#define NAME(op) files.dir, (op)->text[0]
#define OTHER(op) files.dir, (op)->text[1]

static const char *mix_fs_content(uint64_t version)
{
    return version % 2 == 0 ? "even" : "the odd content is longer";
}

FILES_VERB(mix_fs_mkdir, "mkdir", mix_fs_result, blitz_fs_mkdir(NAME(op), 0755, until),
           blitz_fs_mkdir_future_init(&op->f.fs, NAME(op), 0755))
FILES_VERB(mix_fs_mkdir_all, "mkdir all", mix_fs_result, blitz_fs_mkdir_all(NAME(op), 0755, until),
           blitz_fs_mkdir_all_future_init(&op->f.fs, NAME(op), 0755))
FILES_VERB(mix_fs_stat, "stat", mix_fs_result, blitz_fs_stat(NAME(op), &op->facts, until),
           blitz_fs_stat_future_init(&op->f.fs, NAME(op), &op->facts))
FILES_VERB(mix_fs_lstat, "lstat", mix_fs_result, blitz_fs_lstat(NAME(op), &op->facts, until),
           blitz_fs_lstat_future_init(&op->f.fs, NAME(op), &op->facts))
FILES_VERB(mix_fs_permissions, "permissions", mix_fs_result,
           blitz_fs_set_permissions(NAME(op), 0700, until),
           blitz_fs_set_permissions_future_init(&op->f.fs, NAME(op), 0700))
FILES_VERB(mix_fs_times, "times", mix_fs_result,
           blitz_fs_set_times(NAME(op), 0, BLITZ_TIME_UNKNOWN, until),
           blitz_fs_set_times_future_init(&op->f.fs, NAME(op), 0, BLITZ_TIME_UNKNOWN))
FILES_VERB(mix_fs_rename, "rename", mix_fs_result,
           blitz_fs_rename(NAME(op), OTHER(op), NULL, until),
           blitz_fs_rename_future_init(&op->f.fs, NAME(op), OTHER(op), NULL))
FILES_VERB(mix_fs_link, "link", mix_fs_result, blitz_fs_link(NAME(op), OTHER(op), until),
           blitz_fs_link_future_init(&op->f.fs, NAME(op), OTHER(op)))
FILES_VERB(mix_fs_symlink, "symlink", mix_fs_result, blitz_fs_symlink("none", NAME(op), until),
           blitz_fs_symlink_future_init(&op->f.fs, "none", NAME(op)))
FILES_VERB(mix_fs_readlink, "readlink", mix_fs_result,
           (int)blitz_fs_readlink(NAME(op), (char *)op->bytes, MIX_BYTES, until),
           blitz_fs_readlink_future_init(&op->f.fs, NAME(op), (char *)op->bytes, MIX_BYTES))
FILES_VERB(mix_fs_canonicalize, "canonicalize", mix_fs_result,
           (int)blitz_fs_canonicalize(NAME(op), (char *)op->bytes, MIX_BYTES, until),
           blitz_fs_canonicalize_future_init(&op->f.fs, NAME(op), (char *)op->bytes, MIX_BYTES))
FILES_VERB(mix_fs_remove, "remove", mix_fs_result, blitz_fs_remove(NAME(op), until),
           blitz_fs_remove_future_init(&op->f.fs, NAME(op)))
FILES_VERB(mix_fs_remove_all, "remove all", mix_fs_result, blitz_fs_remove_all(NAME(op), until),
           blitz_fs_remove_all_future_init(&op->f.fs, NAME(op)))
FILES_VERB(mix_fs_copy, "copy", mix_fs_result,
           blitz_fs_copy(NAME(op), OTHER(op), &op->write, NULL, until),
           blitz_fs_copy_future_init(&op->f.fs, NAME(op), OTHER(op), &op->write, NULL))
FILES_VERB(mix_fs_write_file, "write file", mix_fs_result,
           blitz_fs_write_file(NAME(op), mix_fs_content(op->n), strlen(mix_fs_content(op->n)),
                               &op->write, until),
           blitz_fs_write_file_future_init(&op->f.fs, NAME(op), mix_fs_content(op->n),
                                           strlen(mix_fs_content(op->n)), &op->write))
FILES_VERB(mix_fs_append_file, "append file", mix_fs_result,
           blitz_fs_append_file(OTHER(op), "x", 1, &op->write, until),
           blitz_fs_append_file_future_init(&op->f.fs, OTHER(op), "x", 1, &op->write))
FILES_VERB(mix_fs_read_file, "read file", mix_fs_result,
           blitz_fs_read_file(NAME(op), NULL, &op->pointer, &op->moved, until),
           blitz_fs_read_file_future_init(&op->f.fs, NAME(op), NULL, &op->pointer, &op->moved))
FILES_VERB(mix_fs_temp_file, "temp file", mix_fs_result,
           blitz_fs_temp_file(NAME(op), NULL, 0, (blitz_file **)&op->pointer, until),
           blitz_fs_temp_file_future_init(&op->f.fs, NAME(op), NULL, 0,
                                          (blitz_file **)&op->pointer))
FILES_VERB(mix_fs_temp_dir, "temp dir", mix_fs_result,
           blitz_fs_temp_dir(NAME(op), (char *)op->bytes, MIX_BYTES, until),
           blitz_fs_temp_dir_future_init(&op->f.fs, NAME(op), (char *)op->bytes, MIX_BYTES))
FILES_VERB(mix_file_open, "open", mix_fs_result,
           blitz_file_open(NAME(op), NULL, (blitz_file **)&op->pointer, until),
           blitz_file_open_future_init(&op->f.fs, NAME(op), NULL, (blitz_file **)&op->pointer))
FILES_VERB(mix_dir_open, "open directory", mix_fs_result,
           blitz_dir_open(files.dir, ".", (blitz_dir **)&op->pointer, until),
           blitz_dir_open_future_init(&op->f.fs, files.dir, ".", (blitz_dir **)&op->pointer))
FILES_VERB(mix_dir_next, "directory", mix_fs_result, blitz_dir_next(files.dir, &op->entry, until),
           blitz_dir_next_future_init(&op->f.fs, files.dir, &op->entry))
FILES_VERB(mix_dir_sync, "directory sync", mix_fs_result, blitz_dir_sync(files.dir, until),
           blitz_dir_sync_future_init(&op->f.fs, files.dir))
FILES_VERB(mix_walk_next, "walk", mix_fs_result, blitz_walk_next(op->with, &op->walked, until),
           blitz_walk_next_future_init(&op->f.fs, op->with, &op->walked))
FILES_VERB(mix_watch_add, "watch add", mix_fs_result,
           blitz_fs_watch_add(files.watch, NAME(op), BLITZ_FS_CREATED, &op->fd[0], until),
           blitz_fs_watch_add_future_init(&op->f.fs, files.watch, NAME(op), BLITZ_FS_CREATED,
                                          &op->fd[0]))

/* An event may never come: with a deadline. */
static int mix_fs_watch_next_call(struct mix_op *op, blitz_deadline until)
{
    (void)until;
    return blitz_fs_watch_next(files.watch, &op->event, blitz_after(10 * BLITZ_US));
}
static const struct mix_verb mix_fs_watch_next = {
    "watch next", mix_fs_watch_next_call, NULL, NULL, 0, 0};

static int mix_fs_visit(const blitz_walk_entry *e, void *arg)
{
    (void)e;
    (void)arg;
    return BLITZ_WALK_ON;
}
static int mix_walk_each_call(struct mix_op *op, blitz_deadline until)
{
    return blitz_walk_each(NAME(op), mix_fs_visit, NULL, NULL, until);
}
static const struct mix_verb mix_walk_each = {"walk each", mix_walk_each_call, NULL, NULL, 0, 0};

static void names_make(struct mix_round *r)
{
    memset(&files, 0, sizeof files);
    files_open();
    CHECK_EQ(blitz_fs_watch_new(&files.watch), 0);
    unsigned count = 1 + (unsigned)mix_die(&r->dice, MIX_PARTIES - 1);
    for (unsigned i = 0; i < count; i++) {
        struct mix_party *p = mix_join_in(r, 0, false);
        char own[16], name[32];
        p->left = 1 + (unsigned)mix_die(&r->dice, 20);
        snprintf(own, sizeof own, "p%u", i);
        snprintf(name, sizeof name, "p%u/a", i);
        CHECK_EQ(blitz_fs_mkdir(files.dir, own, 0755, BLITZ_FOREVER), 0);
        CHECK_EQ(blitz_fs_write_file(files.dir, name, mix_fs_content(0), 4,
                                     &(blitz_fs_write_opts){.no_sync = true}, BLITZ_FOREVER),
                 0);
    }
    mix_say(r, " %u directories", count);
}

static bool names_next(struct mix_party *p)
{
    static const struct mix_verb *const verbs[] = {
        &mix_fs_write_file, &mix_fs_read_file,   &mix_fs_copy,         &mix_fs_append_file,
        &mix_fs_mkdir,      &mix_fs_mkdir_all,   &mix_fs_stat,         &mix_fs_lstat,
        &mix_fs_rename,     &mix_fs_link,        &mix_fs_symlink,      &mix_fs_readlink,
        &mix_fs_remove,     &mix_fs_remove_all,  &mix_fs_canonicalize, &mix_fs_temp_file,
        &mix_fs_temp_dir,   &mix_file_open,      &mix_dir_open,        &mix_dir_next,
        &mix_dir_sync,      &mix_fs_permissions, &mix_fs_times,        &mix_walk_next,
        &mix_walk_each,     &mix_watch_add,      &mix_fs_watch_next};
    static const char *const names[] = {"b", "c", "d", "e/f"};
    if (p->left-- == 0)
        return false;
    const struct mix_verb *verb = verbs[mix_die(&p->dice, BZ_ARRAY_LEN(verbs))];
    bool is_of_a = verb == &mix_fs_write_file || verb == &mix_fs_read_file || verb == &mix_fs_copy;
    p->op.n = mix_die(&p->dice, 2);
    p->op.write = (blitz_fs_write_opts){.no_sync = !mix_one_in(&p->dice, 8)};
    snprintf(p->op.text[0], sizeof p->op.text[0], "p%u/%s", p->index,
             is_of_a ? "a" : names[mix_die(&p->dice, BZ_ARRAY_LEN(names))]);
    snprintf(p->op.text[1], sizeof p->op.text[1], "p%u/%s", p->index,
             names[mix_die(&p->dice, BZ_ARRAY_LEN(names))]);
    p->op.pointer = NULL;
    if (verb == &mix_walk_next)
        CHECK_EQ(blitz_walk_open(files.dir, p->op.text[0], NULL, (blitz_walk **)&p->op.with), 0);
    mix_begin(p, verb, files.dir);
    return true;
}

/* The file is whole: one content or the other. */
static void names_check_whole(const struct mix_party *p, const char *got, size_t bytes)
{
    const char *a = mix_fs_content(0), *b = mix_fs_content(1);
    bool is_a = bytes == strlen(a) && memcmp(got, a, bytes) == 0;
    bool is_b = bytes == strlen(b) && memcmp(got, b, bytes) == 0;
    if (!is_a && !is_b)
        FAIL("party %u: %zu bytes are neither content: %s", p->index, bytes, got);
}

static void names_done(struct mix_party *p, int rc)
{
    const struct mix_verb *v = p->op.verb;
    static const int errors[] = {ETIMEDOUT, ECANCELED, ENOENT, EEXIST, ENOTEMPTY, ENOTDIR,
                                 EISDIR,    EINVAL,    EBUSY,  ELOOP,  EPERM};
    bool is_known = rc >= 0;
    for (size_t i = 0; i < BZ_ARRAY_LEN(errors); i++)
        is_known |= rc == -errors[i];
    if (!is_known)
        FAIL("party %u: %s of %s: %d", p->index, v->name, p->op.text[0], rc);
    if (v == &mix_walk_next)
        blitz_walk_close(p->op.with);
    if (rc == 0 && v == &mix_fs_read_file) {
        names_check_whole(p, p->op.pointer, p->op.moved);
        free(p->op.pointer);
    }
    if (rc == 0 && (v == &mix_fs_temp_file || v == &mix_file_open))
        CHECK_EQ(blitz_file_close(p->op.pointer), 0);
    if (rc == 0 && v == &mix_dir_open)
        blitz_dir_close(p->op.pointer);
    if (rc >= 0)
        mix_add(&p->round->progress, 1);
}

static void names_check(struct mix_round *r)
{
    for (unsigned i = 0; i < r->count; i++) {
        char name[32];
        void *data;
        size_t bytes;
        snprintf(name, sizeof name, "p%u/a", i);
        CHECK_EQ(blitz_fs_read_file(files.dir, name, NULL, &data, &bytes, BLITZ_FOREVER), 0);
        names_check_whole(&r->party[i], data, bytes);
        free(data);
    }
    blitz_fs_watch_unref(files.watch);
    files_close();
}

static const struct mix_scene mix_scene_names = {"names",    2,    names_make, names_next,
                                                 names_done, NULL, names_check};

#endif
