/*
 * tail.c - follow a file that grows: tail -f.
 *
 *     example_tail FILE         print what is appended, until the file is removed
 *     example_tail              a small show: another task writes into a temporary file
 *
 * A watch says when the file has changed. If events are lost (an overflow), the file is read all the same: the position
 * says how far it was read.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <blitz.h>

/* Print what is new. A file that became shorter is read from its start. */
static int64_t print_new(blitz_file *f, uint64_t *at)
{
    blitz_file_facts facts;
    char text[4096];
    int64_t n = blitz_file_stat(f, &facts, BLITZ_FOREVER);
    if (n == 0 && facts.size < *at)
        *at = 0;
    while (n >= 0 && (n = blitz_file_read_at(f, text, sizeof text, *at, BLITZ_FOREVER)) > 0) {
        fwrite(text, 1, (size_t)n, stdout);
        *at += (uint64_t)n;
    }
    fflush(stdout);
    return n;
}

static int follow(const char *path)
{
    blitz_file *f;
    blitz_fs_watch *w;
    blitz_fs_event e = {.what = 0};
    uint64_t at = 0;
    int id;
    int err = blitz_file_open(NULL, path, NULL, &f, BLITZ_FOREVER);
    if (err != 0)
        return err;
    err = blitz_fs_watch_new(&w);
    if (err == 0) {
        err = blitz_fs_watch_add(w, NULL, path, BLITZ_FS_MODIFIED | BLITZ_FS_SELF | BLITZ_FS_FACTS,
                                 &id, BLITZ_FOREVER);
        while (err == 0 && !(e.what & BLITZ_FS_SELF)) {
            blitz_file_facts facts;
            if (print_new(f, &at) < 0 || blitz_file_stat(f, &facts, BLITZ_FOREVER) != 0 ||
                facts.links == 0) /* removed: the watch holds as long as we have it open */
                break;
            err = blitz_fs_watch_next(w, &e, BLITZ_FOREVER);
        }
        blitz_fs_watch_unref(w);
    }
    blitz_file_close(f);
    return err;
}

/* ---- the show ---- */

static int write_lines(void *arg)
{
    const char *path = arg;
    char line[64];
    for (int i = 1; i <= 5; i++) {
        int n = snprintf(line, sizeof line, "line %d\n", i);
        int err = blitz_fs_append_file(NULL, path, line, (size_t)n,
                                       &(blitz_fs_write_opts){.no_sync = true}, BLITZ_FOREVER);
        if (err != 0)
            return err;
        blitz_yield();
    }
    return blitz_fs_remove(NULL, path, BLITZ_FOREVER);
}

static int show(void)
{
    const char *base = getenv("TMPDIR");
    char prefix[256], path[300];
    blitz_file *f;
    blitz_task *writer;
    snprintf(prefix, sizeof prefix, "%s/tail-", base != NULL ? base : "/tmp");
    int err = blitz_fs_temp_file(NULL, prefix, path, sizeof path, &f, BLITZ_FOREVER);
    if (err != 0)
        return err;
    blitz_file_close(f);
    err = blitz_spawn(write_lines, path, NULL, &writer);
    if (err != 0)
        return err;
    err = follow(path);
    int written = 0;
    int joined = blitz_task_join(writer, &written, BLITZ_FOREVER);
    if (err == -ENOENT) /* the writer was done before we had begun */
        err = 0;
    return err != 0 ? err : joined != 0 ? joined : written;
}

static int start(void *arg)
{
    return arg != NULL ? follow(arg) : show();
}

int main(int argc, char **argv)
{
    int err = blitz_run(start, argc > 1 ? argv[1] : NULL, NULL);
    if (err != 0)
        fprintf(stderr, "tail: %s\n", strerror(-err));
    return err != 0;
}
