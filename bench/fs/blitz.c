/*
 * Ours. Every case runs in the first task of a runtime with as many procs as were asked for.
 * What each case is: bench/fs.toml. Only public headers: what a user can have.
 */
#include <stdatomic.h>

#include "fs/set.h"
#include "tasks/ours.h"

static blitz_file *open_pages(void)
{
    blitz_file *f;
    must(blitz_file_from_fd(set_open(), &f), "open");
    return f;
}

static double case_cached(uint64_t ops)
{
    static char page[SET_PAGE];
    blitz_file *f = open_pages();
    uint64_t began = tasks_now_ns();
    for (uint64_t i = 0; i < ops; i++)
        must((int)blitz_file_read_at(f, page, SET_PAGE, set_page(i) * SET_PAGE, BLITZ_FOREVER),
             "read");
    double ns = (double)(tasks_now_ns() - began);
    blitz_file_close(f);
    return ns;
}

static double case_sequential(uint64_t ops)
{
    static char chunk[SET_CHUNK];
    blitz_file *f = open_pages();
    uint64_t began = tasks_now_ns();
    for (uint64_t i = 0; i < ops; i++)
        must((int)blitz_file_read_at(f, chunk, SET_CHUNK, i * SET_CHUNK % SET_BYTES, BLITZ_FOREVER),
             "read");
    double ns = (double)(tasks_now_ns() - began);
    blitz_file_close(f);
    return ns;
}

struct cold {
    blitz_file *file;
    atomic_ullong next;
    uint64_t ops;
};

static int read_cold(void *arg)
{
    struct cold *c = arg;
    char page[SET_PAGE];
    for (uint64_t i; (i = c->next++) < c->ops;)
        must(
            (int)blitz_file_read_at(c->file, page, SET_PAGE, set_page(i) * SET_PAGE, BLITZ_FOREVER),
            "read");
    return 0;
}

static double case_cold(uint64_t ops)
{
    struct cold c = {.file = open_pages(), .ops = ops};
    blitz_task *t[SET_READERS];
    set_cool(blitz_file_fd(c.file));
    uint64_t began = bench_now_ns();
    for (int i = 0; i < SET_READERS; i++)
        must(blitz_spawn(read_cold, &c, NULL, &t[i]), "spawn");
    for (int i = 0; i < SET_READERS; i++)
        must(blitz_task_join(t[i], NULL, BLITZ_FOREVER), "join");
    double ns = (double)(bench_now_ns() - began);
    blitz_file_close(c.file);
    return ns;
}

static double case_small(uint64_t ops)
{
    static const blitz_file_opts opts = {.can_write = true, .is_new = true};
    char path[512], name[32];
    blitz_dir *d;
    set_small(path, sizeof path);
    must(blitz_dir_open(NULL, path, &d, BLITZ_FOREVER), "open");
    uint64_t began = tasks_now_ns();
    for (uint64_t i = 0; i < ops; i++) {
        blitz_file *f;
        blitz_file_facts facts;
        snprintf(name, sizeof name, "%d", (int)i);
        must(blitz_file_open(d, name, &opts, &f, BLITZ_FOREVER), "create");
        must((int)blitz_file_write(f, name, sizeof name, BLITZ_FOREVER), "write");
        must(blitz_file_close(f), "close");
        must(blitz_fs_stat(d, name, &facts, BLITZ_FOREVER), "stat");
    }
    double ns = (double)(tasks_now_ns() - began);
    blitz_dir_close(d);
    return ns;
}

static int count(const blitz_walk_entry *e, void *arg)
{
    (void)e;
    atomic_fetch_add_explicit((atomic_ullong *)arg, 1, memory_order_relaxed);
    return BLITZ_WALK_ON;
}

static double case_walk(uint64_t ops)
{
    char path[512];
    atomic_ullong names = 0;
    set_tree(path, sizeof path);
    uint64_t began = tasks_now_ns();
    must(blitz_walk_each(NULL, path, count, &names, NULL, BLITZ_FOREVER), "walk");
    double ns = (double)(tasks_now_ns() - began);
    if (names != ops)
        bench_die("%llu names", names);
    return ns;
}

static const struct tasks_case cases[] = {
    {"read-cached", TASKS_PACED, case_cached, 0},
    {"read-cold", TASKS_FIXED, case_cold, 4096},
    {"read-sequential", TASKS_PACED, case_sequential, 0},
    {"small-files", TASKS_FIXED, case_small, SET_SMALL},
    {"walk", TASKS_FIXED, case_walk, 1 + SET_DIRS + SET_DIRS *SET_FILES},
};

int main(int argc, char **argv)
{
    return tasks_main(argc, argv, cases, sizeof cases / sizeof cases[0], ours_start);
}
