/*
 * name_calls.c - calls on names: one system call each, and directories with those on their way.
 *
 * Each call is a verb (fs_call.h) and a function that checks and packs its arguments, which the blocking form and the
 * future share.
 */
#include <errno.h>
#include <string.h>

#include "blitz/path.h"
#include "fs/fs.h"

enum { NO_FOLLOW = 1, IS_NEW = 1 };

/* ---- one system call each ---- */

static int64_t run_find(struct bz_fs_call *c)
{
    struct bz_fs_facts facts;
    int err, follow = (c->args.flags & NO_FOLLOW) ? BZ_FS_NO_FOLLOW : BZ_FS_FOLLOW;
    bz_fs_again(err, bz_fsys->find(bz_dir_at(c->args.at), c->args.path, follow, &facts));
    if (err == 0)
        bz_facts_show(&facts, c->args.out);
    return err;
}

static int64_t run_chmod(struct bz_fs_call *c)
{
    int err;
    bz_fs_again(err, bz_fsys->chmod(bz_dir_at(c->args.at), c->args.path, c->args.mode));
    return err;
}

static int64_t run_times(struct bz_fs_call *c)
{
    int err;
    bz_fs_again(err, bz_fsys->set_times(bz_dir_at(c->args.at), c->args.path, BZ_FS_FOLLOW,
                                        c->args.number[0], c->args.number[1]));
    return err;
}

static int64_t run_mkdir(struct bz_fs_call *c)
{
    int err;
    bz_fs_again(err, bz_fsys->mkdir(bz_dir_at(c->args.at), c->args.path, c->args.mode));
    return err;
}

static int64_t run_rename(struct bz_fs_call *c)
{
    int err;
    bz_fs_again(err, bz_fsys->rename(bz_dir_at(c->args.at), c->args.path, bz_dir_at(c->args.to_at),
                                     c->args.to, c->args.flags & IS_NEW));
    return err;
}

static int64_t run_link(struct bz_fs_call *c)
{
    int err;
    bz_fs_again(err, bz_fsys->link(bz_dir_at(c->args.at), c->args.path, bz_dir_at(c->args.to_at),
                                   c->args.to));
    return err;
}

static int64_t run_symlink(struct bz_fs_call *c)
{
    int err;
    bz_fs_again(err, bz_fsys->symlink(c->args.to, bz_dir_at(c->args.at), c->args.path));
    return err;
}

static int64_t run_readlink(struct bz_fs_call *c)
{
    char *out = c->args.out;
    int64_t n;
    bz_fs_again(n,
                bz_fsys->readlink(bz_dir_at(c->args.at), c->args.path, out, c->args.memory.bytes));
    if (n == (int64_t)c->args.memory.bytes)
        return -ERANGE;
    if (n >= 0)
        out[n] = '\0';
    return n;
}

/* A directory is removed by a call of its own. Which one it is, the first call says. */
static int64_t run_remove(struct bz_fs_call *c)
{
    int at = bz_dir_at(c->args.at), err, as_dir;
    bz_fs_again(err, bz_fsys->unlink(at, c->args.path, false));
    if (err != -EISDIR && err != -EPERM)
        return err;
    bz_fs_again(as_dir, bz_fsys->unlink(at, c->args.path, true));
    return as_dir == -ENOTDIR ? err : as_dir;
}

static int64_t run_canonicalize(struct bz_fs_call *c)
{
    int64_t n;
    bz_fs_again(n, bz_fsys->canonical(bz_dir_at(c->args.at), c->args.path, c->args.out,
                                      c->args.memory.bytes));
    return n;
}

/* ---- a directory and those on its way ---- */

static int mkdir_once(struct bz_fs_call *c, const char *path)
{
    int err;
    bz_fs_again(err, bz_fsys->mkdir(bz_dir_at(c->args.at), path, c->args.mode));
    return err;
}

/* Something has the name: 0 if it is a directory. */
static int is_dir(struct bz_fs_call *c, const char *path, int err)
{
    struct bz_fs_facts facts;
    int found;
    bz_fs_again(found, bz_fsys->find(bz_dir_at(c->args.at), path, BZ_FS_FOLLOW, &facts));
    if (found == 0)
        return facts.kind == BZ_FS_DIR ? 0 : -ENOTDIR;
    return err == -EEXIST ? found : err;
}

/* The length of the path without its last part, and without the slashes before that. 0: it has only one. */
static size_t parent_of(const char *path, size_t length)
{
    while (length > 0 && path[length - 1] == '/')
        length--;
    while (length > 0 && path[length - 1] != '/')
        length--;
    while (length > 0 && path[length - 1] == '/')
        length--;
    return length;
}

/* Go up until a directory can be made, then down again. Other tasks may make or remove them meanwhile. */
static int64_t run_mkdir_all(struct bz_fs_call *c)
{
    char path[BLITZ_PATH_ROOM];
    size_t whole = strlen(c->args.path), length = whole;
    if (whole >= sizeof path)
        return -ENAMETOOLONG;
    memcpy(path, c->args.path, whole + 1);
    for (unsigned rounds = 0; rounds < BLITZ_PATH_ROOM; rounds++) {
        int err = bz_fs_stopped(c);
        if (err != 0)
            return err;
        path[length] = '\0';
        err = mkdir_once(c, path);
        if (err == -ENOENT && parent_of(path, length) > 0) {
            length = parent_of(path, length);
            continue;
        }
        if (err != 0 && (err = is_dir(c, path, err)) != 0)
            return err;
        if (length == whole)
            return 0;
        do { /* down to the end of the next part */
            length++;
        } while (length < whole &&
                 !(c->args.path[length] == '/' && c->args.path[length - 1] != '/'));
        memcpy(path, c->args.path, length);
    }
    return -ELOOP; /* they are removed as fast as they are made */
}

/* ---- verbs ---- */

static const struct bz_fs_verb verb_find = BZ_FS_VERB("stat", run_find);
static const struct bz_fs_verb verb_chmod = BZ_FS_VERB("permissions", run_chmod);
static const struct bz_fs_verb verb_times = BZ_FS_VERB("times", run_times);
static const struct bz_fs_verb verb_mkdir = BZ_FS_VERB("mkdir", run_mkdir);
static const struct bz_fs_verb verb_mkdir_all = BZ_FS_VERB("mkdir all", run_mkdir_all);
static const struct bz_fs_verb verb_rename = BZ_FS_VERB("rename", run_rename);
static const struct bz_fs_verb verb_link = BZ_FS_VERB("link", run_link);
static const struct bz_fs_verb verb_symlink = BZ_FS_VERB("symlink", run_symlink);
static const struct bz_fs_verb verb_readlink = BZ_FS_VERB("readlink", run_readlink);
static const struct bz_fs_verb verb_remove = BZ_FS_VERB("remove", run_remove);
static const struct bz_fs_verb verb_canonicalize = BZ_FS_VERB("canonicalize", run_canonicalize);

/* Make the call, or a future of it, if its arguments are right. */
static int64_t now(const struct bz_fs_verb *verb, bool is_right, struct bz_fs_args args,
                   blitz_deadline until)
{
    struct bz_fs_call c = {.args = args};
    return is_right ? bz_fs_do(verb, &c, until) : -EINVAL;
}

static void later(blitz_fs_future *f, const struct bz_fs_verb *verb, bool is_right,
                  struct bz_fs_args args)
{
    if (is_right)
        bz_fs_future_begin(f, verb, &args);
    else
        bz_fs_future_fail(f, -EINVAL);
}

/* One name. */
#define NAME(...) ((struct bz_fs_args){.at = at, .path = path, __VA_ARGS__})
/* Two names. */
#define NAMES(...) \
    ((struct bz_fs_args){.at = at, .path = path, .to_at = to_at, .to = to, __VA_ARGS__})
/* A text that is written. */
#define TEXT() NAME(.out = out, .memory.bytes = room)

int blitz_fs_stat(blitz_dir *at, const char *path, blitz_file_facts *out, blitz_deadline until)
{
    return (int)now(&verb_find, path != NULL && out != NULL, NAME(.out = out), until);
}

void blitz_fs_stat_future_init(blitz_fs_future *f, blitz_dir *at, const char *path,
                               blitz_file_facts *out)
{
    later(f, &verb_find, path != NULL && out != NULL, NAME(.out = out));
}

int blitz_fs_lstat(blitz_dir *at, const char *path, blitz_file_facts *out, blitz_deadline until)
{
    return (int)now(&verb_find, path != NULL && out != NULL, NAME(.out = out, .flags = NO_FOLLOW),
                    until);
}

void blitz_fs_lstat_future_init(blitz_fs_future *f, blitz_dir *at, const char *path,
                                blitz_file_facts *out)
{
    later(f, &verb_find, path != NULL && out != NULL, NAME(.out = out, .flags = NO_FOLLOW));
}

int blitz_fs_set_permissions(blitz_dir *at, const char *path, uint32_t permissions,
                             blitz_deadline until)
{
    return (int)now(&verb_chmod, path != NULL && permissions <= 07777, NAME(.mode = permissions),
                    until);
}

void blitz_fs_set_permissions_future_init(blitz_fs_future *f, blitz_dir *at, const char *path,
                                          uint32_t permissions)
{
    later(f, &verb_chmod, path != NULL && permissions <= 07777, NAME(.mode = permissions));
}

int blitz_fs_set_times(blitz_dir *at, const char *path, int64_t accessed_ns, int64_t modified_ns,
                       blitz_deadline until)
{
    return (int)now(&verb_times, path != NULL, NAME(.number = {accessed_ns, modified_ns}), until);
}

void blitz_fs_set_times_future_init(blitz_fs_future *f, blitz_dir *at, const char *path,
                                    int64_t accessed_ns, int64_t modified_ns)
{
    later(f, &verb_times, path != NULL, NAME(.number = {accessed_ns, modified_ns}));
}

int blitz_fs_mkdir(blitz_dir *at, const char *path, uint32_t permissions, blitz_deadline until)
{
    return (int)now(&verb_mkdir, path != NULL && permissions <= 07777, NAME(.mode = permissions),
                    until);
}

void blitz_fs_mkdir_future_init(blitz_fs_future *f, blitz_dir *at, const char *path,
                                uint32_t permissions)
{
    later(f, &verb_mkdir, path != NULL && permissions <= 07777, NAME(.mode = permissions));
}

int blitz_fs_mkdir_all(blitz_dir *at, const char *path, uint32_t permissions, blitz_deadline until)
{
    return (int)now(&verb_mkdir_all, path != NULL && permissions <= 07777,
                    NAME(.mode = permissions), until);
}

void blitz_fs_mkdir_all_future_init(blitz_fs_future *f, blitz_dir *at, const char *path,
                                    uint32_t permissions)
{
    later(f, &verb_mkdir_all, path != NULL && permissions <= 07777, NAME(.mode = permissions));
}

static uint16_t rename_flags(const blitz_fs_rename_opts *opts)
{
    return opts != NULL && opts->is_new ? IS_NEW : 0;
}

int blitz_fs_rename(blitz_dir *at, const char *path, blitz_dir *to_at, const char *to,
                    const blitz_fs_rename_opts *opts, blitz_deadline until)
{
    return (int)now(&verb_rename, path != NULL && to != NULL, NAMES(.flags = rename_flags(opts)),
                    until);
}

void blitz_fs_rename_future_init(blitz_fs_future *f, blitz_dir *at, const char *path,
                                 blitz_dir *to_at, const char *to, const blitz_fs_rename_opts *opts)
{
    later(f, &verb_rename, path != NULL && to != NULL, NAMES(.flags = rename_flags(opts)));
}

int blitz_fs_link(blitz_dir *at, const char *path, blitz_dir *to_at, const char *to,
                  blitz_deadline until)
{
    return (int)now(&verb_link, path != NULL && to != NULL, NAMES(.flags = 0), until);
}

void blitz_fs_link_future_init(blitz_fs_future *f, blitz_dir *at, const char *path,
                               blitz_dir *to_at, const char *to)
{
    later(f, &verb_link, path != NULL && to != NULL, NAMES(.flags = 0));
}

int blitz_fs_symlink(const char *target, blitz_dir *at, const char *path, blitz_deadline until)
{
    return (int)now(&verb_symlink, path != NULL && target != NULL, NAME(.to = target), until);
}

void blitz_fs_symlink_future_init(blitz_fs_future *f, const char *target, blitz_dir *at,
                                  const char *path)
{
    later(f, &verb_symlink, path != NULL && target != NULL, NAME(.to = target));
}

int64_t blitz_fs_readlink(blitz_dir *at, const char *path, char *out, size_t room,
                          blitz_deadline until)
{
    return now(&verb_readlink, path != NULL && out != NULL && room > 0, TEXT(), until);
}

void blitz_fs_readlink_future_init(blitz_fs_future *f, blitz_dir *at, const char *path, char *out,
                                   size_t room)
{
    later(f, &verb_readlink, path != NULL && out != NULL && room > 0, TEXT());
}

int blitz_fs_remove(blitz_dir *at, const char *path, blitz_deadline until)
{
    return (int)now(&verb_remove, path != NULL, NAME(.flags = 0), until);
}

void blitz_fs_remove_future_init(blitz_fs_future *f, blitz_dir *at, const char *path)
{
    later(f, &verb_remove, path != NULL, NAME(.flags = 0));
}

int64_t blitz_fs_canonicalize(blitz_dir *at, const char *path, char *out, size_t room,
                              blitz_deadline until)
{
    return now(&verb_canonicalize, path != NULL && out != NULL && room > 0, TEXT(), until);
}

void blitz_fs_canonicalize_future_init(blitz_fs_future *f, blitz_dir *at, const char *path,
                                       char *out, size_t room)
{
    later(f, &verb_canonicalize, path != NULL && out != NULL && room > 0, TEXT());
}
