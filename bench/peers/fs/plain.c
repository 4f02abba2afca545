/*
 * The floor: plain system calls on one thread. Cold reads: four threads, each with its share (a pool of four).
 */
#include <dirent.h>

#include "fs/set.h"

static double case_cached(uint64_t ops)
{
    static char page[SET_PAGE];
    int fd = set_open();
    uint64_t began = tasks_now_ns();
    for (uint64_t i = 0; i < ops; i++)
        if (pread(fd, page, SET_PAGE, (off_t)(set_page(i) * SET_PAGE)) != SET_PAGE)
            bench_die("read");
    double ns = (double)(tasks_now_ns() - began);
    close(fd);
    return ns;
}

static double case_sequential(uint64_t ops)
{
    static char chunk[SET_CHUNK];
    int fd = set_open();
    uint64_t began = tasks_now_ns();
    for (uint64_t i = 0; i < ops; i++)
        if (pread(fd, chunk, SET_CHUNK, (off_t)(i * SET_CHUNK % SET_BYTES)) != SET_CHUNK)
            bench_die("read");
    double ns = (double)(tasks_now_ns() - began);
    close(fd);
    return ns;
}

struct share {
    int fd;
    uint64_t from, to;
};

static void *read_share(void *arg)
{
    const struct share *s = arg;
    char page[SET_PAGE];
    for (uint64_t i = s->from; i < s->to; i++)
        if (pread(s->fd, page, SET_PAGE, (off_t)(set_page(i) * SET_PAGE)) != SET_PAGE)
            bench_die("read");
    return NULL;
}

static double case_cold(uint64_t ops)
{
    enum { THREADS = 4 };
    pthread_t t[THREADS];
    struct share s[THREADS];
    int fd = set_open();
    set_cool(fd);
    uint64_t began = bench_now_ns();
    for (uint64_t i = 0; i < THREADS; i++) {
        s[i] = (struct share){fd, ops * i / THREADS, ops * (i + 1) / THREADS};
        if (pthread_create(&t[i], NULL, read_share, &s[i]) != 0)
            bench_die("thread");
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(t[i], NULL);
    double ns = (double)(bench_now_ns() - began);
    close(fd);
    return ns;
}

static double case_small(uint64_t ops)
{
    char path[512], name[32];
    set_small(path, sizeof(path));
    int dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    uint64_t began = tasks_now_ns();
    for (uint64_t i = 0; i < ops; i++) {
        struct stat st;
        snprintf(name, sizeof(name), "%d", (int)i);
        int fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (fd < 0 || write(fd, name, sizeof(name)) != sizeof(name) || close(fd) != 0 ||
            fstatat(dir, name, &st, 0) != 0)
            bench_die("small file");
    }
    double ns = (double)(tasks_now_ns() - began);
    close(dir);
    return ns;
}

static uint64_t walk_dir(int fd)
{
    uint64_t names = 1;
    DIR *d = fdopendir(fd);
    const struct dirent *e;
    while (d != NULL && (e = readdir(d)) != NULL) {
        if (e->d_name[0] == '.')
            continue;
        if (e->d_type == DT_DIR)
            names += walk_dir(openat(fd, e->d_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
        else
            names++;
    }
    if (d != NULL)
        closedir(d);
    return names;
}

static double case_walk(uint64_t ops)
{
    char path[512];
    set_tree(path, sizeof(path));
    uint64_t began = tasks_now_ns();
    if (walk_dir(open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) != ops)
        bench_die("names");
    return (double)(tasks_now_ns() - began);
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
    return tasks_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]), tasks_measure);
}
