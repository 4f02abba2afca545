/*
 * fs.h - a directory of its own for a test of files, and shortcuts for calls that must succeed.
 */
#ifndef T_FS_H
#define T_FS_H

#include "harness.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "blitz.h"
#include "support/keepers.h"

static char t_fs_path[256];

/* Make a directory, and open it. */
static inline blitz_dir *t_fs_begin(void)
{
    const char *base = getenv("TMPDIR");
    blitz_dir *d;
    snprintf(t_fs_path, sizeof t_fs_path, "%s/blitz-test-XXXXXX", base != NULL ? base : "/tmp");
    CHECK_NOT_NULL(mkdtemp(t_fs_path));
    CHECK_EQ(blitz_dir_open(NULL, t_fs_path, &d, BLITZ_FOREVER), 0);
    return d;
}

/* Remove it, with everything in it. */
static inline void t_fs_end(blitz_dir *d)
{
    blitz_dir_close(d);
    CHECK_EQ(blitz_fs_remove_all(NULL, t_fs_path, BLITZ_FOREVER), 0);
    CHECK_NE(access(t_fs_path, F_OK), 0);
}

static inline blitz_file *t_fs_create(blitz_dir *d, const char *name)
{
    blitz_file *f;
    blitz_file_opts opts = {.can_read = true, .can_write = true, .is_created = true};
    CHECK_EQ(blitz_file_open(d, name, &opts, &f, BLITZ_FOREVER), 0);
    return f;
}

static inline void t_fs_put(blitz_dir *d, const char *name, const char *text)
{
    CHECK_EQ(blitz_fs_write_file(d, name, text, strlen(text),
                                 &(blitz_fs_write_opts){.no_sync = true}, BLITZ_FOREVER),
             0);
}

static inline void t_fs_has(blitz_dir *d, const char *name, const char *text)
{
    void *data;
    size_t bytes;
    CHECK_EQ(blitz_fs_read_file(d, name, NULL, &data, &bytes, BLITZ_FOREVER), 0);
    CHECK_STR_EQ((char *)data, text);
    CHECK_EQ(bytes, strlen(text));
    free(data);
}

/* How many names are in the directory. */
static inline int t_fs_count(blitz_dir *d, const char *name)
{
    blitz_dir *in;
    blitz_dir_entry e;
    int count = 0, rc;
    CHECK_EQ(blitz_dir_open(d, name, &in, BLITZ_FOREVER), 0);
    while ((rc = blitz_dir_next(in, &e, BLITZ_FOREVER)) > 0)
        count++;
    CHECK_EQ(rc, 0);
    blitz_dir_close(in);
    return count;
}

/* Drop the file's bytes from the page cache. */
static inline void t_fs_cool(blitz_file *f)
{
    CHECK_EQ(blitz_file_sync(f, BLITZ_FOREVER), 0);
    posix_fadvise(blitz_file_fd(f), 0, 0, POSIX_FADV_DONTNEED);
}

/* The descriptors of this process that are open. */
static inline int t_fs_fds(void)
{
    int count = 0;
    for (int fd = 0; fd < 256; fd++)
        count += fcntl(fd, F_GETFD) >= 0;
    return count;
}

#endif
