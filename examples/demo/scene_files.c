/*
 * scene_files.c - files and programs: a tree is written, a program sorts it, and an endless program is stopped.
 *
 * Fibers write small files, each whole or not at all, into a tree. All workers walk the tree together and read the
 * files; each line goes to `sort`, a child process, whose output is read at the same time. So neither pipe blocks. Then
 * a `sleep` without end is asked to stop. At the end the tree is removed.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <blitz.h>

#include "demo.h"

enum { FOLDERS = 16, WRITERS = 32, NAME = 512 };

struct files {
    char root[NAME];
    uint64_t count, next_file, sorted, last;
    _Atomic uint64_t written, read;
    _Atomic int error;
    blitz_mutex to_sort; /* one line at a time */
    blitz_process *sort;
    bool is_in_order;
    char stopped[64];
};

static int fail(struct files *f, int error)
{
    if (error < 0)
        f->error = error;
    return error;
}

/* A number that is not in order. */
static uint64_t scrambled(const struct files *f, uint64_t i)
{
    return i * 7919 % f->count;
}

struct writer {
    struct files *f;
    uint64_t first;
};

static int write_files(void *arg)
{
    static const blitz_fs_write_opts quick = {.no_sync = true};
    struct writer *w = arg;
    struct files *f = w->f;
    for (uint64_t i = w->first; i < f->count && f->error == 0; i += WRITERS) {
        char path[NAME + 64], text[32];
        snprintf(path, sizeof path, "%s/%02u/%llu", f->root, (unsigned)(i % FOLDERS),
                 (unsigned long long)i);
        int bytes = snprintf(text, sizeof text, "%012llu\n", (unsigned long long)scrambled(f, i));
        if (fail(f, blitz_fs_write_file(NULL, path, text, (size_t)bytes, &quick, BLITZ_FOREVER)) !=
            0)
            break;
        f->written++;
    }
    return 0;
}

static int write_tree(struct files *f)
{
    struct writer w[WRITERS];
    blitz_scope s;
    for (unsigned i = 0; i < FOLDERS; i++) {
        char path[NAME + 64];
        snprintf(path, sizeof path, "%s/%02u", f->root, i);
        int rc = blitz_fs_mkdir(NULL, path, 0700, BLITZ_FOREVER);
        if (rc != 0)
            return rc;
    }
    int rc = blitz_scope_open(&s, NULL, BLITZ_FOREVER);
    if (rc != 0)
        return rc;
    for (unsigned i = 0; i < WRITERS && rc == 0; i++) {
        w[i] = (struct writer){f, i};
        rc = blitz_scope_spawn(&s, write_files, &w[i], NULL);
    }
    int closed = blitz_scope_close(&s);
    return rc != 0 ? rc : closed;
}

/* ---- a program reads it ---- */

static int visit(const blitz_walk_entry *e, void *arg)
{
    struct files *f = arg;
    void *text;
    size_t bytes;
    if (e->error != 0 || e->kind != BLITZ_FILE_REGULAR)
        return e->error;
    int rc = blitz_fs_read_file(e->dir, e->name, NULL, &text, &bytes, BLITZ_FOREVER);
    if (rc != 0)
        return rc;
    rc = blitz_mutex_lock(&f->to_sort, BLITZ_FOREVER);
    if (rc == 0) {
        rc = blitz_writer_write_all(blitz_process_writer(f->sort, 0), text, bytes, NULL,
                                    BLITZ_FOREVER);
        blitz_mutex_unlock(&f->to_sort);
    }
    free(text);
    f->read++;
    return rc;
}

static int feed(void *arg)
{
    struct files *f = arg;
    fail(f, blitz_walk_each(NULL, f->root, visit, f, NULL, BLITZ_FOREVER));
    blitz_process_close(f->sort, 0); /* the end of its input */
    return 0;
}

static void check_output(struct files *f)
{
    char room[4096];
    const char *line;
    blitz_buffered_reader in;
    int rc = blitz_buffered_reader_init(&in, blitz_process_reader(f->sort, 1), room, sizeof room);
    f->is_in_order = rc == 0;
    while (rc == 0 && blitz_buffered_line(&in, sizeof room, &line, BLITZ_FOREVER) > 0) {
        f->is_in_order &= strtoull(line, NULL, 10) == f->sorted;
        f->sorted++;
    }
}

static int start(const char *program, const char *arg, bool has_pipes, blitz_process **out)
{
    blitz_command *c;
    int rc = blitz_command_new(program, &c);
    if (rc != 0)
        return rc;
    if (arg != NULL)
        blitz_command_arg(c, arg);
    if (has_pipes) {
        blitz_command_stdio(c, 0, BLITZ_STDIO_TO_CHILD);
        blitz_command_stdio(c, 1, BLITZ_STDIO_FROM_CHILD);
        blitz_command_env(c, "LC_ALL", "C");
    }
    rc = blitz_command_start(c, NULL, out);
    blitz_command_unref(c);
    return rc;
}

static int sort_tree(struct files *f)
{
    blitz_task *feeder;
    blitz_exit e;
    int rc = start("sort", NULL, true, &f->sort);
    if (rc != 0)
        return rc;
    rc = blitz_spawn(feed, f, NULL, &feeder);
    if (rc == 0) {
        check_output(f);
        rc = blitz_task_join(feeder, NULL, BLITZ_FOREVER);
    }
    int waited = rc == 0 ? blitz_process_wait(f->sort, &e, BLITZ_FOREVER) : 0;
    blitz_process_unref(f->sort);
    return rc != 0 ? rc : waited;
}

static int stop_sleeper(struct files *f)
{
    blitz_process *p;
    blitz_exit e;
    int rc = start("sleep", "1000000", false, &p);
    if (rc != 0)
        return rc;
    rc = blitz_process_stop(p, BLITZ_S, &e, BLITZ_FOREVER);
    if (rc == 0)
        blitz_exit_format(&e, f->stopped, sizeof f->stopped);
    blitz_process_unref(p);
    return rc;
}

static int run(void *arg)
{
    struct files *f = arg;
    int rc = blitz_fs_temp_dir(NULL, "/tmp/blitz-demo-", f->root, sizeof f->root, BLITZ_FOREVER);
    if (rc != 0)
        return rc;
    blitz_mutex_init(&f->to_sort);
    rc = write_tree(f);
    if (rc == 0 && f->error == 0)
        rc = sort_tree(f);
    if (rc == 0)
        rc = stop_sleeper(f);
    int removed = blitz_fs_remove_all(NULL, f->root, BLITZ_FOREVER);
    return rc != 0 ? rc : f->error != 0 ? f->error : removed;
}

static void play(struct demo *d)
{
    static struct files f;
    memset(&f, 0, sizeof f);
    f.count = demo_scaled(d, 10000);
    double begin = demo_seconds();
    int rc = blitz_run(run, &f, NULL);
    double seconds = demo_seconds() - begin;
    demo_claim(d, rc == 0, "error %d", -rc);
    demo_claim(d, f.written == f.count && f.read == f.count, "%s files written, %s read",
               demo_count(f.written), demo_count(f.read));
    demo_claim(d, f.is_in_order && f.sorted == f.count, "%s lines came back, %s in order",
               demo_count(f.sorted), f.is_in_order ? "all" : "not all");
    demo_result(d, "%s files written by %d fibers, read by a walk of all workers, %.2f s in all",
                demo_count(f.count), WRITERS, seconds);
    demo_result(d, "their lines went through `sort`, a child process, and came back in order");
    demo_result(d, "a program without an end was asked to stop: %s", f.stopped);
}

const struct demo_scene scene_files = {"files", "Files and programs",
                                       "Fibers write a tree of files, all workers read it, and a "
                                       "child process sorts what is in it.",
                                       play};
