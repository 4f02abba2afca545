/*
 * walk.c - every name in a tree, one at a time.
 *
 * The walk is a chain of open directories (places), from the innermost to the start. Each step takes a name out of the
 * innermost one. A directory is entered by the step after the one that returned it, so that blitz_walk_skip() can come
 * in between. Most steps find their name in the buffer of the directory and make no system call: they are attempts.
 *
 * A name is opened relative to its directory, with O_NOFOLLOW unless links are followed. So a directory that becomes a
 * link meanwhile is an error of its name and is not entered.
 *
 * A cycle of followed links is found by comparing device and inode with those of the places above.
 *
 * [A] unref: refs acq_rel -> unref: refs acq_rel   the last holder sees what the others did before
 */
#include "fs/walk.h"

#include <errno.h>
#include <string.h>

#include "blitz/path.h"

/* ---- places ---- */

static struct bz_place *place_new(struct bz_place *up, const char *name)
{
    bool is_bare = up == NULL || (up->length > 0 && up->path[up->length - 1] == '/');
    size_t before = up != NULL ? up->length + !is_bare : 0, length = before + strlen(name);
    struct bz_place *p =
        bz_alloc(&bz_allocator_libc, sizeof *p + length + 1, _Alignof(struct bz_place));
    if (p == NULL)
        return NULL;
    *p = (struct bz_place){.depth = up != NULL ? up->depth + 1 : 0, .length = length};
    bz_atomic_init(&p->refs, 1);
    if (up != NULL)
        memcpy(p->path, up->path, up->length);
    if (!is_bare)
        p->path[before - 1] = '/';
    memcpy(p->path + before, name, length - before + 1);
    return p;
}

static void place_free(struct bz_place *p)
{
    bz_free(&bz_allocator_libc, p, sizeof *p + p->length + 1);
}

/* Is the directory one that the walk may enter? */
static int check_place(struct bz_place *p, const struct bz_place *up, int fd,
                       const blitz_walk_opts *opts)
{
    struct bz_fs_facts facts;
    int err = 0;
    if (!opts->follows_links && !opts->is_one_device)
        return 0;
    bz_fs_again(err, bz_fsys->facts(fd, &facts));
    if (err != 0)
        return err;
    p->device = facts.device;
    p->inode = facts.inode;
    if (opts->is_one_device && up != NULL && up->device != facts.device)
        return -EXDEV;
    for (; up != NULL; up = up->up)
        if (up->device == facts.device && up->inode == facts.inode)
            return -ELOOP;
    return 0;
}

static int place_open(struct bz_place *p, struct bz_place *up, struct blitz_dir *at,
                      const char *name, const blitz_walk_opts *opts)
{
    int fd, flags = O_RDONLY | O_DIRECTORY | (opts->follows_links ? 0 : O_NOFOLLOW);
    bz_fs_again(fd, bz_fsys->open(up != NULL ? up->dir->fd : bz_dir_at(at), name, flags, 0));
    if (fd < 0)
        return fd;
    int err = check_place(p, up, fd, opts);
    if (err == 0)
        err = bz_dir_of(fd, &p->dir);
    if (err != 0)
        (void)bz_fs_close(fd);
    return err;
}

int bz_place_enter(struct bz_place *up, struct blitz_dir *at, const char *name,
                   const blitz_walk_opts *opts, struct bz_place **out)
{
    struct bz_place *p = place_new(up, name);
    if (p == NULL)
        return -ENOMEM;
    int err = place_open(p, up, at, name, opts);
    if (err != 0) {
        place_free(p);
        return err;
    }
    p->up = up != NULL ? bz_place_ref(up) : NULL;
    *out = p;
    return 0;
}

struct bz_place *bz_place_ref(struct bz_place *p)
{
    bz_fetch_add_relaxed(&p->refs, 1); /* relaxed: the caller holds one already */
    return p;
}

void bz_place_unref(struct bz_place *p)
{
    while (p != NULL && bz_fetch_sub_acqrel(&p->refs, 1) == 1) { /* [A] */
        struct bz_place *up = p->up;
        blitz_dir_close(p->dir);
        place_free(p);
        p = up;
    }
}

int bz_place_path(const struct bz_place *p, const char *name, char *out, size_t room)
{
    bool is_bare = p == NULL || (p->length > 0 && p->path[p->length - 1] == '/');
    size_t before = p != NULL ? p->length + !is_bare : 0, bytes = strlen(name);
    if (before + bytes >= room)
        return -ENAMETOOLONG;
    if (p != NULL)
        memcpy(out, p->path, p->length);
    if (!is_bare)
        out[before - 1] = '/';
    memcpy(out + before, name, bytes + 1);
    return (int)before;
}

bool bz_place_must_look(const blitz_walk_opts *opts, const blitz_dir_entry *e)
{
    return e->kind == BLITZ_FILE_UNKNOWN || (opts->follows_links && e->kind == BLITZ_FILE_SYMLINK);
}

void bz_place_look(const struct bz_place *p, const blitz_walk_opts *opts, blitz_dir_entry *e)
{
    struct bz_fs_facts facts;
    int err;
    bz_fs_again(err, bz_fsys->find(p->dir->fd, e->name, BZ_FS_NO_FOLLOW, &facts));
    if (err == 0)
        e->kind = (blitz_file_kind)facts.kind;
    if (err != 0 || !opts->follows_links || facts.kind != BZ_FS_SYMLINK)
        return;
    bz_fs_again(err, bz_fsys->find(p->dir->fd, e->name, BZ_FS_FOLLOW, &facts));
    if (err == 0) /* else it leads nowhere: a link */
        e->kind = (blitz_file_kind)facts.kind;
}

int bz_place_start(struct blitz_dir *at, const char *path, const blitz_walk_opts *opts,
                   blitz_file_kind *kind, uint64_t *inode)
{
    struct bz_fs_facts facts;
    int err, follow = opts->follows_links ? BZ_FS_FOLLOW : BZ_FS_NO_FOLLOW;
    bz_fs_again(err, bz_fsys->find(bz_dir_at(at), path, follow, &facts));
    if (err != 0)
        return err;
    *kind = (blitz_file_kind)facts.kind;
    *inode = facts.inode;
    return 0;
}

/* ---- one name at a time ---- */

struct blitz_walk {
    blitz_walk_opts opts;
    blitz_dir *at;         /* a reference, or NULL */
    struct bz_place *here; /* the innermost directory; NULL before the start and at the end */
    bool is_begun;         /* the start was returned */
    bool is_next;          /* the name in `path` is a directory, to be entered by the next step */
    unsigned next_depth;
    int name_at; /* in path */
    char start[BLITZ_PATH_ROOM];
    char path[4 * BLITZ_PATH_ROOM];
};

int blitz_walk_open(blitz_dir *at, const char *path, const blitz_walk_opts *opts, blitz_walk **out)
{
    if (path == NULL || *path == '\0' || out == NULL)
        return -EINVAL;
    if (strlen(path) >= BLITZ_PATH_ROOM)
        return -ENAMETOOLONG;
    blitz_walk *w = bz_alloc(&bz_allocator_libc, sizeof *w, _Alignof(blitz_walk));
    if (w == NULL)
        return -ENOMEM;
    static const blitz_walk_opts none;
    w->opts = opts != NULL ? *opts : none;
    w->at = at != NULL ? blitz_dir_ref(at) : NULL;
    w->here = NULL;
    w->is_begun = w->is_next = false;
    memcpy(w->start, path, strlen(path) + 1);
    *out = w;
    return 0;
}

void blitz_walk_close(blitz_walk *w)
{
    if (w == NULL)
        return;
    bz_place_unref(w->here);
    blitz_dir_close(w->at);
    bz_free(&bz_allocator_libc, w, sizeof *w);
}

void blitz_walk_skip(blitz_walk *w)
{
    w->is_next = false;
}

static int64_t say(blitz_walk *w, blitz_walk_entry *out, blitz_file_kind kind, uint64_t inode,
                   unsigned depth, int error)
{
    *out = (blitz_walk_entry){.path = w->path,
                              .name = w->path + w->name_at,
                              .dir = w->here != NULL ? w->here->dir : NULL,
                              .kind = kind,
                              .inode = inode,
                              .depth = depth,
                              .error = error};
    w->is_next = error == 0 && kind == BLITZ_FILE_DIR && bz_walk_goes_below(&w->opts, depth);
    w->next_depth = depth;
    return 1;
}

static int64_t begin(blitz_walk *w, blitz_walk_entry *out)
{
    blitz_file_kind kind = BLITZ_FILE_UNKNOWN;
    uint64_t inode = 0;
    int err = bz_place_start(w->at, w->start, &w->opts, &kind, &inode);
    memcpy(w->path, w->start, strlen(w->start) + 1);
    w->name_at = 0;
    w->is_begun = true;
    return say(w, out, kind, inode, 0, err);
}

/* Enter the directory that was returned last. 0: go on in it. */
static int64_t enter(blitz_walk *w, blitz_walk_entry *out)
{
    struct bz_place *p;
    int err = bz_place_enter(w->here, w->at, w->path + w->name_at, &w->opts, &p);
    if (err == -ENOMEM)
        return err; /* the next call tries again */
    w->is_next = false;
    if (err != 0)
        return err == -EXDEV ? 0 : say(w, out, BLITZ_FILE_DIR, 0, w->next_depth, err);
    bz_place_unref(w->here); /* the new place has a reference of its own */
    w->here = p;
    return 0;
}

/* The directory is at its end, or cannot be read further. */
static int64_t leave(blitz_walk *w, blitz_walk_entry *out, int err)
{
    struct bz_place *p = w->here, *up = p->up != NULL ? bz_place_ref(p->up) : NULL;
    unsigned depth = p->depth;
    if (err != 0 && p->length < sizeof w->path) {
        const char *slash = strrchr(p->path, '/');
        memcpy(w->path, p->path, p->length + 1);
        w->name_at = up != NULL && slash != NULL ? (int)(slash + 1 - p->path) : 0;
    }
    w->here = up;
    bz_place_unref(p);
    return err != 0 ? say(w, out, BLITZ_FILE_DIR, 0, depth, err) : 0;
}

/* Return a name of the innermost directory. */
static int64_t show(blitz_walk *w, const blitz_dir_entry *e, blitz_walk_entry *out)
{
    int at = bz_place_path(w->here, e->name, w->path, sizeof w->path);
    if (at < 0) {
        w->path[w->name_at = 0] = '\0';
        return say(w, out, e->kind, e->inode, w->here->depth + 1, at);
    }
    w->name_at = at;
    return say(w, out, e->kind, e->inode, w->here->depth + 1, 0);
}

/* A step that makes no system call. -EAGAIN: it needs one. */
static int64_t attempt_walk(struct bz_fs_call *c)
{
    blitz_walk *w = c->args.out_too;
    blitz_dir_entry e;
    if (!w->is_begun || w->is_next || w->here == NULL)
        return w->is_begun && !w->is_next ? 0 : -EAGAIN;
    blitz_dir *d = w->here->dir;
    uint32_t before = d->at;
    if (!bz_dir_take(d, &e))
        return -EAGAIN;
    if (bz_place_must_look(&w->opts, &e)) {
        d->at = before; /* again, by the step that looks */
        return -EAGAIN;
    }
    return show(w, &e, c->args.out);
}

static int64_t run_walk(struct bz_fs_call *c)
{
    blitz_walk *w = c->args.out_too;
    blitz_dir_entry e;
    int64_t got = w->is_begun ? 0 : begin(w, c->args.out);
    if (got == 0 && w->is_next)
        got = enter(w, c->args.out);
    while (got == 0 && w->here != NULL) {
        if (bz_dir_take(w->here->dir, &e)) {
            if (bz_place_must_look(&w->opts, &e))
                bz_place_look(w->here, &w->opts, &e);
            return show(w, &e, c->args.out);
        }
        int64_t more = bz_dir_more(w->here->dir);
        if (more == -ENOMEM)
            return more;
        if (more <= 0)
            got = leave(w, c->args.out, (int)more);
    }
    return got;
}

static const struct bz_fs_verb verb_walk = BZ_FS_VERB("walk", run_walk, .attempt = attempt_walk);

int blitz_walk_next(blitz_walk *w, blitz_walk_entry *out, blitz_deadline until)
{
    struct bz_fs_call c = {.args = {.out = out, .out_too = w}};
    return w != NULL && out != NULL ? bz_fs_do_int(&verb_walk, &c, until) : -EINVAL;
}

void blitz_walk_next_future_init(blitz_fs_future *f, blitz_walk *w, blitz_walk_entry *out)
{
    struct bz_fs_args a = {.out = out, .out_too = w};
    if (w != NULL && out != NULL)
        bz_fs_future_begin(f, &verb_walk, &a);
    else
        bz_fs_future_fail(f, -EINVAL);
}
