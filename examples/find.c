/*
 * find.c - search a tree with all workers: names that contain a text, and how much there is.
 *
 *     example_find PATH [TEXT]
 *
 * blitz_walk_each() visits names on several threads at once. Each visit asks for the size relative to the open directory, so
 * no path is resolved twice.
 */
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include <blitz.h>

struct search {
    const char *path, *text;
    atomic_ullong files, dirs, bytes, errors;
};

static int visit(const blitz_walk_entry *e, void *arg)
{
    struct search *s = arg;
    blitz_file_facts facts;
    if (e->error != 0) {
        fprintf(stderr, "%s: %s\n", e->path, strerror(-e->error));
        s->errors++;
        return BLITZ_WALK_ON;
    }
    if (e->kind == BLITZ_FILE_DIR)
        s->dirs++;
    else
        s->files++;
    if (e->kind == BLITZ_FILE_REGULAR && e->dir != NULL &&
        blitz_fs_lstat(e->dir, e->name, &facts, BLITZ_FOREVER) == 0)
        s->bytes += facts.size;
    if (s->text != NULL && strstr(e->name, s->text) != NULL)
        printf("%s\n", e->path);
    return BLITZ_WALK_ON;
}

static int start(void *arg)
{
    struct search *s = arg;
    return blitz_walk_each(NULL, s->path, visit, s, NULL, BLITZ_FOREVER);
}

int main(int argc, char **argv)
{
    struct search s = {.path = argc > 1 ? argv[1] : ".", .text = argc > 2 ? argv[2] : NULL};
    int err = blitz_run(start, &s, NULL);
    printf("%llu files and %llu directories, %llu bytes, %llu errors\n", s.files, s.dirs, s.bytes,
           s.errors);
    return err != 0;
}
