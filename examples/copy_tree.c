/*
 * copy_tree.c - copy a tree of directories, files and symbolic links.
 *
 *     example_copy_tree FROM TO
 *
 * The walk makes directories and starts a task for each file, at most 16 at a time. Each file is copied whole or not at all;
 * where the file system can, no byte is copied.
 */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <blitz.h>

static blitz_semaphore room = BLITZ_SEMAPHORE_INIT(16);
static atomic_ullong bytes;
static atomic_uint files;

struct job {
    char from[BLITZ_PATH_ROOM], to[BLITZ_PATH_ROOM];
};

static int copy_one(void *arg)
{
    struct job *j = arg;
    uint64_t copied = 0;
    int err = blitz_fs_copy(NULL, j->from, NULL, j->to, &(blitz_fs_write_opts){.no_sync = true},
                            &copied, BLITZ_FOREVER);
    if (err != 0)
        fprintf(stderr, "%s: %s\n", j->from, strerror(-err));
    bytes += copied;
    files += err == 0;
    free(j);
    blitz_semaphore_release(&room, 1);
    return err;
}

static int copy_link(const blitz_walk_entry *e, const char *to)
{
    char target[BLITZ_PATH_ROOM];
    int64_t n = blitz_fs_readlink(NULL, e->path, target, sizeof target, BLITZ_FOREVER);
    return n < 0 ? (int)n : blitz_fs_symlink(target, NULL, to, BLITZ_FOREVER);
}

static int copy_file(blitz_scope *scope, const blitz_walk_entry *e, const char *to)
{
    struct job *j = malloc(sizeof *j);
    if (j == NULL)
        return -ENOMEM;
    snprintf(j->from, sizeof j->from, "%s", e->path);
    snprintf(j->to, sizeof j->to, "%s", to);
    int err = blitz_semaphore_acquire(&room, 1, BLITZ_FOREVER);
    if (err == 0)
        err = blitz_scope_spawn(scope, copy_one, j, NULL);
    if (err != 0)
        free(j);
    return err;
}

static int copy_entry(blitz_scope *scope, const blitz_walk_entry *e, const char *from,
                      const char *to_top)
{
    char to[BLITZ_PATH_ROOM];
    int n = snprintf(to, sizeof to, "%s%s", to_top, e->path + strlen(from));
    if (e->error != 0 || n < 0 || (size_t)n >= sizeof to)
        return e->error != 0 ? e->error : -ENAMETOOLONG;
    if (e->kind == BLITZ_FILE_DIR)
        return blitz_fs_mkdir_all(NULL, to, 0755, BLITZ_FOREVER);
    if (e->kind == BLITZ_FILE_SYMLINK)
        return copy_link(e, to);
    return e->kind == BLITZ_FILE_REGULAR ? copy_file(scope, e, to) : 0;
}

static int start(void *arg)
{
    char **path = arg;
    blitz_scope scope;
    blitz_walk *w;
    blitz_walk_entry e;
    int rc = blitz_walk_open(NULL, path[0], NULL, &w);
    if (rc != 0)
        return rc;
    rc = blitz_scope_open(&scope, NULL, BLITZ_FOREVER);
    while (rc == 0 && (rc = blitz_walk_next(w, &e, BLITZ_FOREVER)) > 0)
        rc = copy_entry(&scope, &e, path[0], path[1]);
    int closed = blitz_scope_close(&scope);
    blitz_walk_close(w);
    return rc != 0 ? rc : closed;
}

int main(int argc, char **argv)
{
    if (argc != 3) {
        fprintf(stderr, "usage: copy_tree FROM TO\n");
        return 2;
    }
    int err = blitz_run(start, argv + 1, NULL);
    printf("%u files, %llu bytes\n", files, bytes);
    if (err != 0)
        fprintf(stderr, "copy_tree: %s\n", strerror(-err));
    return err != 0;
}
