/*
 * set.h - the files that bench-fs works on, made by plain system calls. It knows nothing of blitz.
 *
 * A file of 64 MiB for reads, and a tree of 10,000 small files in 200 directories for walks, below BENCH_FS_DIR (the
 * working directory's build/bench-fs by default). They are made once and kept. Peers in other languages use the same
 * names.
 */
#ifndef BENCH_FS_SET_H
#define BENCH_FS_SET_H

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tasks/tasks.h"

enum {
    SET_PAGE = 4096,
    SET_BYTES = 64 << 20,
    SET_PAGES = SET_BYTES / SET_PAGE,
    SET_CHUNK = 128 << 10,
    SET_DIRS = 200,
    SET_FILES = 50,
    SET_SMALL = 10000,
    SET_READERS = 32
};

static inline const char *set_dir(void)
{
    const char *dir = getenv("BENCH_FS_DIR");
    return dir != NULL ? dir : "build/bench-fs";
}

static inline void set_path(char *out, size_t room, const char *name)
{
    snprintf(out, room, "%s/%s", set_dir(), name);
}

/* The file for reads: made if it is not there, and brought into memory. */
static inline int set_open(void)
{
    static char chunk[SET_CHUNK];
    char path[512];
    struct stat st;
    if (mkdir(set_dir(), 0755) != 0 && errno != EEXIST)
        bench_die("cannot make %s", set_dir());
    set_path(path, sizeof(path), "pages");
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (fd < 0 || fstat(fd, &st) != 0)
        bench_die("cannot open %s", path);
    for (off_t at = st.st_size; at < SET_BYTES; at += SET_CHUNK)
        if (pwrite(fd, chunk, SET_CHUNK, at) != SET_CHUNK)
            bench_die("cannot write %s", path);
    if (st.st_size < SET_BYTES)
        fsync(fd);
    for (off_t at = 0; at < SET_BYTES; at += SET_CHUNK)
        if (pread(fd, chunk, SET_CHUNK, at) != SET_CHUNK)
            bench_die("cannot read %s", path);
    return fd;
}

/* Drop the file from the page cache. */
static inline void set_cool(int fd)
{
    posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
}

/* The page of the n-th read: the same for all. */
static inline uint64_t set_page(uint64_t n)
{
    return (n * UINT64_C(2654435761) + 12345) % SET_PAGES;
}

/* The tree for walks. */
static inline void set_tree(char *out, size_t room)
{
    char path[600];
    set_path(out, room, "tree");
    (void)mkdir(set_dir(), 0755);
    if (mkdir(out, 0755) != 0)
        return; /* it is there */
    for (int d = 0; d < SET_DIRS; d++) {
        snprintf(path, sizeof(path), "%s/%d", out, d);
        (void)mkdir(path, 0755);
        for (int f = 0; f < SET_FILES; f++) {
            snprintf(path, sizeof(path), "%s/%d/%d", out, d, f);
            int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
            if (fd < 0)
                bench_die("cannot make %s", path);
            close(fd);
        }
    }
}

/* An empty directory for small files. */
static inline void set_small(char *out, size_t room)
{
    char path[600];
    set_path(out, room, "small");
    (void)mkdir(set_dir(), 0755);
    (void)mkdir(out, 0755);
    for (int i = 0; i < SET_SMALL; i++) {
        snprintf(path, sizeof(path), "%s/%d", out, i);
        (void)unlink(path);
    }
}

#endif
