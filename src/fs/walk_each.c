/*
 * walk_each.c - every name in a tree, with all workers.
 *
 * Directories to enter are on a stack, last in first out, which bounds the number of open ones. Each worker runs a
 * party: it takes a directory from the stack, calls `visit` for each name in it, and pushes the directories that it
 * found. A party without work waits while others may still push. The walk is over when the stack is empty and no party
 * works.
 *
 * The parties are the iterations of a parallel loop. A loop may run two of them one after the other on one worker: the
 * second finds the walk over. None waits for a party that has not begun.
 *
 * Rejected: a forked job for each directory. The depth of the tree would be the depth of the stack.
 */
#include <errno.h>
#include <string.h>

#include "blitz/blocking.h"
#include "blitz/condition.h"
#include "blitz/loop.h"
#include "blitz/mutex.h"
#include "blitz/path.h"
#include "blitz/task.h"
#include "fs/walk.h"
#include "proc/now.h"
#include "wait/waker.h"

/* A directory to enter. */
struct todo {
    struct todo *next;
    struct bz_place *in; /* a reference; NULL: the start */
    char name[];
};

struct each {
    blitz_walk_opts opts; /* constant, as are the next */
    blitz_dir *at;
    int (*visit)(const blitz_walk_entry *entry, void *arg);
    void *arg;
    blitz_deadline until;
    blitz_mutex mutex; /* guards the rest */
    blitz_condition change;
    struct todo *todo;
    unsigned parties; /* that work */
    int err;          /* the first one: the walk stops */
};

static void todo_free(struct todo *t)
{
    bz_place_unref(t->in);
    bz_free(&bz_allocator_libc, t, sizeof *t + strlen(t->name) + 1);
}

static int push(struct each *e, struct bz_place *in, const char *name)
{
    size_t bytes = strlen(name) + 1;
    struct todo *t = bz_alloc(&bz_allocator_libc, sizeof *t + bytes, _Alignof(struct todo));
    if (t == NULL)
        return -ENOMEM;
    t->in = in != NULL ? bz_place_ref(in) : NULL;
    memcpy(t->name, name, bytes);
    blitz_shield(); /* the lock is held for a few instructions, also by a cancelled task */
    int err = blitz_mutex_lock(&e->mutex, BLITZ_FOREVER);
    t->next = e->todo;
    e->todo = t;
    blitz_condition_signal(&e->change);
    blitz_mutex_unlock(&e->mutex);
    blitz_unshield();
    return err;
}

/* Stop the walk: no party begins another directory. */
static void stop(struct each *e, int err)
{
    blitz_shield();
    (void)!blitz_mutex_lock(&e->mutex, BLITZ_FOREVER);
    if (e->err == 0)
        e->err = err;
    blitz_condition_broadcast(&e->change);
    blitz_mutex_unlock(&e->mutex);
    blitz_unshield();
}

/* End one directory, if `is_done`, and take the next. NULL: the walk is over. */
static struct todo *take(struct each *e, bool is_done)
{
    blitz_shield();
    (void)!blitz_mutex_lock(&e->mutex, BLITZ_FOREVER);
    e->parties -= is_done;
    while (e->todo == NULL && e->parties > 0 && e->err == 0)
        (void)!blitz_condition_wait(&e->change, &e->mutex, BLITZ_FOREVER);
    struct todo *t = e->err == 0 ? e->todo : NULL;
    if (t != NULL) {
        e->todo = t->next;
        e->parties++;
    } else {
        blitz_condition_broadcast(&e->change);
    }
    blitz_mutex_unlock(&e->mutex);
    blitz_unshield();
    return t;
}

/* ---- one directory ---- */

static int why_stop(const struct each *e)
{
    if (blitz_is_cancelled())
        return -ECANCELED;
    return e->until != BLITZ_FOREVER && bz_has_passed(bz_os_here(), e->until) ? -ETIMEDOUT : 0;
}

/* Visit one name. 1: it is a directory to enter. */
static int visit(struct each *e, const struct bz_place *in, const char *name, blitz_file_kind kind,
                 uint64_t inode, int error)
{
    char path[BLITZ_PATH_ROOM];
    int err = why_stop(e), at = bz_place_path(in, name, path, sizeof path);
    if (err != 0)
        return err;
    unsigned depth = in != NULL ? in->depth + 1 : 0;
    blitz_walk_entry entry = {.path = at >= 0 ? path : name,
                              .name = at >= 0 ? path + at : name,
                              .dir = in != NULL ? in->dir : NULL,
                              .kind = kind,
                              .inode = inode,
                              .depth = depth,
                              .error = error != 0 ? error
                                       : at < 0   ? at
                                                  : 0};
    int rc = e->visit(&entry, e->arg);
    if (rc < 0)
        return rc;
    return rc == BLITZ_WALK_ON && entry.error == 0 && kind == BLITZ_FILE_DIR &&
           bz_walk_goes_below(&e->opts, depth);
}

/* Visit the names in the buffer of the directory. */
static int visit_names(struct each *e, struct bz_place *p)
{
    blitz_dir_entry d;
    while (bz_dir_take(p->dir, &d)) {
        if (bz_place_must_look(&e->opts, &d)) {
            blitz_syscall_enter();
            bz_place_look(p, &e->opts, &d);
            blitz_syscall_leave();
        }
        int rc = visit(e, p, d.name, d.kind, d.inode, 0);
        if (rc > 0)
            rc = push(e, p, d.name);
        if (rc < 0)
            return rc;
    }
    return 0;
}

/* Read more names, announced: the disk may be slow. */
static int64_t more(struct bz_place *p)
{
    blitz_syscall_enter();
    int64_t n = bz_dir_more(p->dir);
    blitz_syscall_leave();
    return n;
}

static int walk_dir(struct each *e, struct todo *t)
{
    struct bz_place *p;
    blitz_syscall_enter();
    int err = bz_place_enter(t->in, e->at, t->name, &e->opts, &p);
    blitz_syscall_leave();
    if (err == -EXDEV)
        return 0;
    if (err != 0) {
        err = visit(e, t->in, t->name, BLITZ_FILE_DIR, 0, err);
        return err < 0 ? err : 0;
    }
    int64_t n;
    do {
        n = more(p);
        err = n > 0 ? visit_names(e, p) : 0;
    } while (n > 0 && err == 0);
    if (n < 0)
        err = visit(e, t->in, t->name, BLITZ_FILE_DIR, 0, (int)n);
    bz_place_unref(p);
    return err < 0 ? err : 0;
}

static int party(size_t i, void *arg)
{
    struct each *e = arg;
    (void)i;
    for (struct todo *t = take(e, false); t != NULL; t = take(e, true)) {
        int err = walk_dir(e, t);
        todo_free(t);
        if (err != 0)
            stop(e, err);
    }
    return 0;
}

/* ---- the walk ---- */

static int begin(struct each *e, const char *path)
{
    blitz_file_kind kind = BLITZ_FILE_UNKNOWN;
    uint64_t inode = 0;
    blitz_syscall_enter();
    int err = bz_place_start(e->at, path, &e->opts, &kind, &inode);
    blitz_syscall_leave();
    int rc = visit(e, NULL, path, kind, inode, err);
    return rc > 0 ? push(e, NULL, path) : rc;
}

int blitz_walk_each(blitz_dir *at, const char *path,
                    int (*visit_fn)(const blitz_walk_entry *entry, void *arg), void *arg,
                    const blitz_walk_opts *opts, blitz_deadline until)
{
    struct each e = {.at = at, .visit = visit_fn, .arg = arg, .until = until};
    if (path == NULL || *path == '\0' || visit_fn == NULL)
        return -EINVAL;
    if (opts != NULL)
        e.opts = *opts;
    blitz_mutex_init(&e.mutex);
    blitz_condition_init(&e.change);
    int err = begin(&e, path);
    if (err == 0 && bz_task_self() != NULL)
        err = blitz_for_each(blitz_worker_count(), party, &e, NULL);
    else if (err == 0)
        err = party(0, &e);
    while (e.todo != NULL) {
        struct todo *t = e.todo;
        e.todo = t->next;
        todo_free(t);
    }
    return e.err != 0 ? e.err : err;
}
