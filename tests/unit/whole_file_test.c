/*
 * Whole files: read, written in one step, appended to, copied.
 */
#include "support/fs.h"

#include <errno.h>
#include <sys/wait.h>

#include "io/fsys.h"

static const blitz_deadline ever = BLITZ_FOREVER;

static int use_whole(void *arg)
{
    blitz_dir *d = t_fs_begin();
    blitz_file_facts facts;
    void *data;
    size_t bytes;
    uint64_t copied = 0;
    char *big = malloc(3000000);
    (void)arg;
    CHECK_EQ(blitz_fs_read_file(d, "none", NULL, &data, &bytes, ever), -ENOENT);
    CHECK_EQ(blitz_fs_write_file(d, "f", "one", 3, NULL, ever), 0);
    t_fs_has(d, "f", "one");
    CHECK_EQ(blitz_fs_set_permissions(d, "f", 0640, ever), 0);
    CHECK_EQ(blitz_fs_write_file(d, "f", "second", 6, NULL, ever), 0);
    t_fs_has(d, "f", "second");
    CHECK_EQ(blitz_fs_stat(d, "f", &facts, ever), 0);
    CHECK_EQ(facts.permissions, 0640u); /* kept */
    CHECK_EQ(blitz_fs_write_file(d, "f", "x", 1, &(blitz_fs_write_opts){.is_new = true}, ever),
             -EEXIST);
    CHECK_EQ(blitz_fs_write_file(d, "n", "x", 1,
                                 &(blitz_fs_write_opts){.is_new = true, .permissions = 0600}, ever),
             0);
    CHECK_EQ(blitz_fs_append_file(d, "f", " third", 6, NULL, ever), 0);
    t_fs_has(d, "f", "second third");
    CHECK_EQ(blitz_fs_append_file(d, "new", "x", 1, NULL, ever), 0);
    CHECK_EQ(blitz_fs_copy(d, "f", d, "copy", NULL, &copied, ever), 0);
    CHECK_EQ(copied, 12u);
    t_fs_has(d, "copy", "second third");
    CHECK_EQ(blitz_fs_stat(d, "copy", &facts, ever), 0);
    CHECK_EQ(facts.permissions, 0640u);
    for (size_t i = 0; i < 3000000; i++)
        big[i] = (char)(i * 7 % 251);
    CHECK_EQ(blitz_fs_write_file(d, "big", big, 3000000, NULL, ever), 0);
    CHECK_EQ(blitz_fs_copy(d, "big", d, "big2", NULL, NULL, ever), 0);
    CHECK_EQ(blitz_fs_read_file(d, "big2", NULL, &data, &bytes, ever), 0);
    CHECK_EQ(bytes, 3000000u);
    CHECK_MEM_EQ(data, big, 3000000);
    free(data);
    CHECK_EQ(blitz_fs_read_file(d, "big", &(blitz_fs_read_opts){.bytes_max = 2999999}, &data,
                                &bytes, ever),
             -EFBIG);
    CHECK_EQ(blitz_fs_read_file(d, "big", &(blitz_fs_read_opts){.bytes_max = 3000000}, &data,
                                &bytes, ever),
             0);
    free(data);
    CHECK_EQ(blitz_fs_write_file(d, ".", "x", 1, NULL, ever), -EINVAL);
    CHECK_EQ(blitz_fs_write_file(d, "f/", "x", 1, NULL, ever), -EINVAL);
    CHECK_EQ(blitz_fs_mkdir(d, "dir", 0755, ever), 0);
    CHECK_EQ(blitz_fs_write_file(d, "dir", "x", 1, NULL, ever), -EISDIR);
    CHECK_EQ(blitz_fs_read_file(d, "dir", NULL, &data, &bytes, ever), -EISDIR);
    CHECK_EQ(blitz_fs_copy(d, "dir", d, "x", NULL, NULL, ever), -EISDIR);
    CHECK_EQ(t_fs_count(d, "."), 7); /* no temporary file is left */
    free(big);
    t_fs_end(d);
    return 0;
}

TEST(whole_file, content_is_read_as_it_was_written)
{
    t_on_keepers(use_whole, NULL);
    use_whole(NULL);
}

/* Their size is 0 until they are read. */
TEST(whole_file, files_of_unknown_size_are_read_to_the_end)
{
    void *data;
    size_t bytes;
    uint64_t copied;
    CHECK_EQ(blitz_fs_read_file(NULL, "/proc/self/maps", NULL, &data, &bytes, ever), 0);
    CHECK_GT(bytes, 1000u);
    CHECK_EQ(strlen(data), bytes);
    free(data);
    CHECK_EQ(blitz_fs_read_file(NULL, "/proc/self/maps", &(blitz_fs_read_opts){.bytes_max = 100},
                                &data, &bytes, ever),
             -EFBIG);
    CHECK_EQ(blitz_fs_read_file(NULL, "/dev/zero", &(blitz_fs_read_opts){.bytes_max = 100000},
                                &data, &bytes, ever),
             -EFBIG);
    blitz_dir *d = t_fs_begin();
    CHECK_EQ(blitz_fs_copy(NULL, "/proc/self/maps", d, "maps", NULL, &copied, ever), 0);
    CHECK_GT(copied, 1000u);
    t_fs_end(d);
}

/* A link is replaced, and what it leads to stays. */
TEST(whole_file, a_write_does_not_follow_a_link)
{
    blitz_dir *d = t_fs_begin();
    blitz_file_facts facts;
    t_fs_put(d, "target", "old");
    CHECK_EQ(blitz_fs_symlink("target", d, "link", ever), 0);
    CHECK_EQ(blitz_fs_write_file(d, "link", "new", 3, NULL, ever), 0);
    t_fs_has(d, "target", "old");
    t_fs_has(d, "link", "new");
    CHECK_EQ(blitz_fs_lstat(d, "link", &facts, ever), 0);
    CHECK_EQ(facts.kind, BLITZ_FILE_REGULAR);
    t_fs_end(d);
}

/* ---- killed at each step ---- */

static struct bz_fsys counting;
static int calls_left; /* of the process that is to be killed */

static void count(void)
{
    if (calls_left-- == 0)
        raise(SIGKILL);
}

static int count_open(int at, const char *path, int flags, unsigned mode)
{
    count();
    return bz_fsys_system.open(at, path, flags, mode);
}

static int64_t count_write(int fd, const blitz_piece *v, int n, int64_t at)
{
    blitz_piece part = {v->data, v->bytes < 100000 ? v->bytes : 100000};
    count();
    (void)n;
    return bz_fsys_system.write(fd, &part, 1, at); /* short: more steps to be killed at */
}

static int count_sync(int fd, bool is_data_only)
{
    count();
    return bz_fsys_system.sync(fd, is_data_only);
}

static int count_close(int fd)
{
    count();
    return bz_fsys_system.close(fd);
}

static int count_rename(int at, const char *from, int to_at, const char *to, bool is_new)
{
    count();
    return bz_fsys_system.rename(at, from, to_at, to, is_new);
}

static int count_find(int at, const char *path, int follow, struct bz_fs_facts *out)
{
    count();
    return bz_fsys_system.find(at, path, follow, out);
}

static int count_fchmod(int fd, unsigned mode)
{
    count();
    return bz_fsys_system.fchmod(fd, mode);
}

/* Write in a process that is killed before its n-th call. False: it was not. */
static bool write_and_die(blitz_dir *d, int n, const char *text, size_t bytes)
{
    pid_t child = fork();
    if (child == 0) {
        counting = bz_fsys_system;
        counting.open = count_open;
        counting.write = count_write;
        counting.sync = count_sync;
        counting.close = count_close;
        counting.rename = count_rename;
        counting.find = count_find;
        counting.fchmod = count_fchmod;
        bz_fsys = &counting;
        calls_left = n;
        _exit(blitz_fs_write_file(d, "f", text, bytes, NULL, ever) == 0 ? 0 : 1);
    }
    int status;
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK(WIFSIGNALED(status) || WEXITSTATUS(status) == 0);
    return WIFSIGNALED(status);
}

/* A program may be killed at any point: a reader finds the old content or the new one, whole. */
TEST(whole_file, a_write_that_is_killed_at_any_step_is_whole_or_not_at_all)
{
    enum { BYTES = 400000 };
    blitz_dir *d = t_fs_begin();
    char *old = malloc(BYTES), *new = malloc(BYTES);
    int steps = 0, was_new = 0;
    bool is_killed = true;
    memset(old, 'o', BYTES);
    memset(new, 'n', BYTES);
    while (is_killed) {
        void *data;
        size_t bytes;
        CHECK_EQ(blitz_fs_write_file(d, "f", old, BYTES, NULL, ever), 0);
        is_killed = write_and_die(d, steps++, new, BYTES);
        CHECK_EQ(blitz_fs_read_file(d, "f", NULL, &data, &bytes, ever), 0);
        CHECK_EQ(bytes, BYTES);
        bool is_new = *(char *)data == 'n';
        CHECK_MEM_EQ(data, is_new ? new : old, BYTES);
        was_new += is_new;
        free(data);
    }
    CHECK_GE(steps, 12);
    CHECK_GE(was_new, 2); /* also when it is killed behind the rename */
    t_note("killed at each of %d steps", steps - 1);
    free(old);
    free(new);
    t_fs_end(d);
}
