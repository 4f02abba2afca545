/*
 * Each call of blitz/fs.h with each fault at each of its system calls: an error or a result, nothing half-done, no
 * descriptor and no temporary file left.
 *
 * The table of docs/files.md is what this program observes: BLITZ_FAULT_TABLE=FILE writes it (tests/docs/faults_test.py
 * compares the two).
 */
#include "support/fs.h"

#include <errno.h>

#include "base/compiler.h"
#include "io/fsys.h"

static const blitz_deadline ever = BLITZ_FOREVER;

/* ---- the faulty table: the n-th call fails ---- */

static struct {
    int calls, nth, error; /* nth 0: none */
    bool is_short;         /* every read and write moves one byte at most */
    bool has_struck;
} fault;

static bool strikes(void)
{
    bool now = ++fault.calls == fault.nth;
    fault.has_struck |= now;
    return now;
}

#define FAULTY(result_, name_, params_, ...)                                 \
    static result_ faulty_##name_ params_                                    \
    {                                                                        \
        return strikes() ? -fault.error : bz_fsys_system.name_(__VA_ARGS__); \
    }
FAULTY(int, open, (int at, const char *p, int f, unsigned m), at, p, f, m)
FAULTY(int, sync, (int fd, bool d), fd, d)
FAULTY(int, resize, (int fd, uint64_t n), fd, n)
FAULTY(int64_t, seek, (int fd, int64_t n, int w), fd, n, w)
FAULTY(int, facts, (int fd, struct bz_fs_facts *o), fd, o)
FAULTY(int, find, (int at, const char *p, int f, struct bz_fs_facts *o), at, p, f, o)
FAULTY(int, chmod, (int at, const char *p, unsigned m), at, p, m)
FAULTY(int, fchmod, (int fd, unsigned m), fd, m)
FAULTY(int, set_times, (int at, const char *p, int f, int64_t a, int64_t b), at, p, f, a, b)
FAULTY(int, mkdir, (int at, const char *p, unsigned m), at, p, m)
FAULTY(int, rename, (int at, const char *p, int b, const char *q, bool n), at, p, b, q, n)
FAULTY(int, link, (int at, const char *p, int b, const char *q), at, p, b, q)
FAULTY(int, symlink, (const char *t, int at, const char *p), t, at, p)
FAULTY(int64_t, readlink, (int at, const char *p, char *o, size_t n), at, p, o, n)
FAULTY(int, unlink, (int at, const char *p, bool d), at, p, d)
FAULTY(int64_t, canonical, (int at, const char *p, char *o, size_t n), at, p, o, n)
FAULTY(int64_t, list, (int fd, void *n, size_t b), fd, n, b)
FAULTY(int, clone, (int from, int to), from, to)
FAULTY(int64_t, copy_range, (int from, int to, size_t n), from, to, n)
FAULTY(int, lock, (int fd, bool s), fd, s)
FAULTY(int, unlock, (int fd), fd)

/* The descriptor is closed in any case. */
static int faulty_close(int fd)
{
    int err = bz_fsys_system.close(fd);
    return strikes() ? -fault.error : err;
}

#define FAULTY_TRANSFER(name_)                                                                 \
    static int64_t faulty_##name_(int fd, const blitz_piece *v, int count, int64_t at)         \
    {                                                                                          \
        blitz_piece one = {v->data, v->bytes > 0 ? 1 : 0};                                     \
        if (strikes())                                                                         \
            return -fault.error;                                                               \
        return bz_fsys_system.name_(fd, fault.is_short ? &one : v, fault.is_short ? 1 : count, \
                                    at);                                                       \
    }
FAULTY_TRANSFER(read)
FAULTY_TRANSFER(write)
FAULTY_TRANSFER(read_cached)

#define IS(name_) .name_ = faulty_##name_
static const struct bz_fsys faulty = {
    IS(open),  IS(close),   IS(read),       IS(write),  IS(read_cached),
    IS(sync),  IS(resize),  IS(seek),       IS(facts),  IS(find),
    IS(chmod), IS(fchmod),  IS(set_times),  IS(mkdir),  IS(rename),
    IS(link),  IS(symlink), IS(readlink),   IS(unlink), IS(canonical),
    IS(list),  IS(clone),   IS(copy_range), IS(lock),   IS(unlock)};

/* ---- the calls ---- */

static blitz_dir *dir;
static blitz_file *file; /* "open", 8 bytes */
static char text[64];

enum state { UNDONE, DONE, HALF };

static bool has(const char *name)
{
    struct stat st;
    return fstatat(blitz_dir_fd(dir), name, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

static bool holds(const char *name, const char *want)
{
    char got[64];
    int fd = openat(blitz_dir_fd(dir), name, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, got, sizeof got) : -1;
    if (fd >= 0)
        close(fd);
    return n == (ssize_t)strlen(want) && memcmp(got, want, (size_t)n) == 0;
}

static enum state which(bool is_undone, bool is_done)
{
    return is_undone ? UNDONE : is_done ? DONE : HALF;
}

static int do_open(void)
{
    blitz_file *f;
    int err = blitz_file_open(dir, "old", NULL, &f, ever);
    return err != 0 ? err : blitz_file_close(f);
}
static int do_read(void)
{
    memset(text, 0, sizeof text);
    int64_t n = blitz_file_read_at(file, text, 8, 0, ever);
    if (n >= 0)
        CHECK_EQ(n, 8);
    return n < 0 ? (int)n : 0;
}
static enum state of_read(void)
{
    return which(text[0] == '\0', strcmp(text, "01234567") == 0);
}
static int do_write(void)
{
    return blitz_file_write_all_at(file, "abcdefgh", 8, 0, NULL, ever);
}
static enum state of_write(void)
{
    return which(holds("open", "01234567"), holds("open", "abcdefgh"));
}
static int do_sync(void)
{
    return blitz_file_sync(file, ever);
}
static int do_file_stat(void)
{
    blitz_file_facts facts;
    return blitz_file_stat(file, &facts, ever);
}
static int do_truncate(void)
{
    return blitz_file_truncate(file, 4, ever);
}
static enum state of_truncate(void)
{
    return which(holds("open", "01234567"), holds("open", "0123"));
}
static int do_stat(void)
{
    blitz_file_facts facts;
    return blitz_fs_stat(dir, "old", &facts, ever);
}
static int do_permissions(void)
{
    return blitz_fs_set_permissions(dir, "old", 0600, ever);
}
static int do_times(void)
{
    return blitz_fs_set_times(dir, "old", 1, 1, ever);
}
static int do_mkdir(void)
{
    return blitz_fs_mkdir(dir, "made", 0755, ever);
}
static enum state of_made(void)
{
    return which(!has("made"), has("made"));
}
static int do_mkdir_all(void)
{
    return blitz_fs_mkdir_all(dir, "made/a/b", 0755, ever);
}
static enum state of_mkdir_all(void)
{
    return has("made/a/b") ? DONE : UNDONE; /* those on the way may be there */
}
static int do_rename(void)
{
    return blitz_fs_rename(dir, "old", dir, "made", NULL, ever);
}
static enum state of_rename(void)
{
    return which(holds("old", "old") && !has("made"), holds("made", "old") && !has("old"));
}
static int do_link(void)
{
    return blitz_fs_link(dir, "old", dir, "made", ever);
}
static int do_symlink(void)
{
    return blitz_fs_symlink("old", dir, "made", ever);
}
static int do_readlink(void)
{
    int64_t n = blitz_fs_readlink(dir, "link", text, sizeof text, ever);
    return n < 0 ? (int)n : 0;
}
static int do_canonicalize(void)
{
    char path[BLITZ_PATH_ROOM];
    int64_t n = blitz_fs_canonicalize(dir, "old", path, sizeof path, ever);
    return n < 0 ? (int)n : 0;
}
static int do_remove(void)
{
    return blitz_fs_remove(dir, "old", ever);
}
static enum state of_remove(void)
{
    return which(holds("old", "old"), !has("old"));
}
static int do_remove_all(void)
{
    return blitz_fs_remove_all(dir, "tree", ever);
}
static enum state of_remove_all(void)
{
    return has("tree") ? UNDONE : DONE; /* some names may be gone */
}
static int do_temp_file(void)
{
    blitz_file *f;
    int err = blitz_fs_temp_file(dir, "made", text, sizeof text, &f, ever);
    if (err != 0)
        return err;
    CHECK(has(text));
    unlinkat(blitz_dir_fd(dir), text, 0);
    (void)blitz_file_close(f);
    return 0;
}
static int do_temp_dir(void)
{
    int err = blitz_fs_temp_dir(dir, "made", text, sizeof text, ever);
    if (err == 0)
        unlinkat(blitz_dir_fd(dir), text, AT_REMOVEDIR);
    return err;
}
static int do_read_file(void)
{
    void *data;
    size_t bytes;
    int err = blitz_fs_read_file(dir, "old", NULL, &data, &bytes, ever);
    if (err != 0)
        return err;
    CHECK_STR_EQ((char *)data, "old");
    free(data);
    return 0;
}
static int do_write_file(void)
{
    return blitz_fs_write_file(dir, "old", "new one", 7, NULL, ever);
}
static enum state of_write_file(void)
{
    return which(holds("old", "old"), holds("old", "new one"));
}
static int do_append_file(void)
{
    return blitz_fs_append_file(dir, "old", "er", 2, NULL, ever);
}
static enum state of_append(void)
{
    return which(holds("old", "old"), holds("old", "older"));
}
static int do_copy(void)
{
    return blitz_fs_copy(dir, "old", dir, "made", NULL, NULL, ever);
}
static enum state of_copy(void)
{
    return which(!has("made"), holds("made", "old"));
}
static int do_list(void)
{
    blitz_dir *d;
    blitz_dir_entry e;
    int rc = blitz_dir_open(dir, "tree", &d, ever), names = 0;
    if (rc != 0)
        return rc;
    while ((rc = blitz_dir_next(d, &e, ever)) > 0)
        names++;
    if (rc == 0)
        CHECK_EQ(names, 2);
    blitz_dir_close(d);
    return rc;
}
static int do_walk(void)
{
    blitz_walk *w;
    blitz_walk_entry e;
    int rc, names = 0, error = 0;
    CHECK_EQ(blitz_walk_open(dir, "tree", NULL, &w), 0);
    while ((rc = blitz_walk_next(w, &e, ever)) > 0) {
        names += e.error == 0;
        error = e.error != 0 ? e.error : error;
    }
    CHECK_EQ(rc, 0);
    if (error == 0)
        CHECK_EQ(names, 4);
    blitz_walk_close(w);
    return error;
}
static int do_lock(void)
{
    int err = blitz_file_lock(file, NULL, blitz_after(20 * BLITZ_MS));
    return err != 0 ? err : blitz_file_unlock(file);
}

static const struct {
    const char *name;
    int (*run)(void);
    enum state (*state)(void); /* NULL: it changes nothing */
    bool is_late;              /* an error of its last step comes when it is done */
} calls[] = {
    {"file_open", do_open, NULL, 0},
    {"file_read_at", do_read, of_read, 0},
    {"file_write_all_at", do_write, of_write, 0},
    {"file_sync", do_sync, NULL, 0},
    {"file_stat", do_file_stat, NULL, 0},
    {"file_truncate", do_truncate, of_truncate, 0},
    {"file_lock", do_lock, NULL, 0},
    {"dir_open, dir_next", do_list, NULL, 0},
    {"fs_stat", do_stat, NULL, 0},
    {"fs_set_permissions", do_permissions, NULL, 0},
    {"fs_set_times", do_times, NULL, 0},
    {"fs_mkdir", do_mkdir, of_made, 0},
    {"fs_mkdir_all", do_mkdir_all, of_mkdir_all, 0},
    {"fs_rename", do_rename, of_rename, 0},
    {"fs_link", do_link, of_made, 0},
    {"fs_symlink", do_symlink, of_made, 0},
    {"fs_readlink", do_readlink, NULL, 0},
    {"fs_canonicalize", do_canonicalize, NULL, 0},
    {"fs_remove", do_remove, of_remove, 0},
    {"fs_remove_all", do_remove_all, of_remove_all, 1},
    {"fs_temp_file", do_temp_file, NULL, 0},
    {"fs_temp_dir", do_temp_dir, NULL, 0},
    {"fs_read_file", do_read_file, NULL, 0},
    {"fs_write_file", do_write_file, of_write_file, 1},
    {"fs_append_file", do_append_file, of_append, 1},
    {"fs_copy", do_copy, of_copy, 1},
    {"walk_next", do_walk, NULL, 0},
};

/* ---- the world before each call ---- */

static void put(const char *name, const char *content)
{
    int fd = openat(blitz_dir_fd(dir), name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    CHECK_GE(fd, 0);
    CHECK_EQ(write(fd, content, strlen(content)), (ssize_t)strlen(content));
    close(fd);
}

static void prepare(void)
{
    int at = blitz_dir_fd(dir);
    CHECK_EQ(blitz_fs_remove_all(dir, "made", ever), 0);
    CHECK_EQ(blitz_fs_remove_all(dir, "tree", ever), 0);
    put("old", "old");
    put("open", "01234567");
    CHECK_EQ(mkdirat(at, "tree", 0755), 0);
    CHECK_EQ(mkdirat(at, "tree/in", 0755), 0);
    put("tree/f", "");
    put("tree/in/f", "");
    if (!has("link"))
        CHECK_EQ(symlinkat("old", at, "link"), 0);
}

/* No name is there that was not there before, but for the call's own. */
static int names_now(void)
{
    return t_fs_count(dir, ".") - has("made") - has("tree") - has("old");
}

/* ---- each fault ---- */

static const struct {
    const char *name;
    int error; /* 0: short transfers */
} faults[] = {{"ENOSPC", ENOSPC}, {"EIO", EIO},     {"EINTR", EINTR},      {"EAGAIN", EAGAIN},
              {"EMFILE", EMFILE}, {"EROFS", EROFS}, {"short transfers", 0}};

enum { SAW_ERROR = 1, SAW_DONE = 2, SAW_LATE = 4 };
static unsigned seen[BZ_ARRAY_LEN(calls)][BZ_ARRAY_LEN(faults)];

/* Make one call with one fault. False: the fault was never reached. */
static bool strike(size_t c, size_t f, int nth)
{
    prepare();
    int names = names_now(), fds = t_fs_fds();
    t_watch("%s: %s at call %d", calls[c].name, faults[f].name, nth);
    fault.calls = 0;
    fault.nth = faults[f].error != 0 ? nth : 0;
    fault.error = faults[f].error;
    fault.is_short = faults[f].error == 0;
    fault.has_struck = false;
    bz_fsys = &faulty;
    int rc = calls[c].run();
    bz_fsys = &bz_fsys_system;
    bool has_struck = fault.has_struck;
    enum state state = calls[c].state != NULL ? calls[c].state() : rc == 0 ? DONE : UNDONE;
    if (rc != 0) /* a lock that is taken is waited for, until the deadline */
        CHECK(rc == -faults[f].error || (faults[f].error == EAGAIN && rc == -ETIMEDOUT));
    CHECK_NE(state, HALF);
    if (rc == 0)
        CHECK_EQ(state, DONE);
    else if (!calls[c].is_late)
        CHECK_EQ(state, UNDONE);
    CHECK_EQ(t_fs_fds(), fds);
    CHECK_EQ(names_now(), names);
    if (has_struck || fault.is_short)
        seen[c][f] |= rc == 0 ? SAW_DONE : state == DONE ? SAW_LATE : SAW_ERROR;
    return has_struck;
}

static int strike_all(void *arg)
{
    (void)arg;
    dir = t_fs_begin();
    for (size_t c = 0; c < BZ_ARRAY_LEN(calls); c++)
        for (size_t f = 0; f < BZ_ARRAY_LEN(faults); f++) {
            prepare();
            CHECK_EQ(blitz_file_open(dir, "open",
                                     &(blitz_file_opts){.can_read = true, .can_write = true}, &file,
                                     ever),
                     0);
            for (int nth = 1; strike(c, f, nth); nth++)
                ;
            blitz_file_close(file);
        }
    t_fs_end(dir);
    return 0;
}

static const char *cell(unsigned s)
{
    return s == 0                             ? "-"
           : s == SAW_DONE                    ? "done"
           : s == SAW_ERROR                   ? "error"
           : s == (SAW_ERROR | SAW_DONE)      ? "error, done"
           : (s & SAW_LATE) && (s & SAW_DONE) ? "error, late, done"
                                              : "error, late";
}

static void write_table(const char *path)
{
    FILE *out = fopen(path, "w");
    CHECK_NOT_NULL(out);
    fprintf(out, "| call |");
    for (size_t f = 0; f < BZ_ARRAY_LEN(faults); f++)
        fprintf(out, " %s |", faults[f].name);
    fprintf(out, "\n|---|");
    for (size_t f = 0; f < BZ_ARRAY_LEN(faults); f++)
        fprintf(out, "---|");
    for (size_t c = 0; c < BZ_ARRAY_LEN(calls); c++) {
        fprintf(out, "\n| `%s` |", calls[c].name);
        for (size_t f = 0; f < BZ_ARRAY_LEN(faults); f++)
            fprintf(out, " %s |", cell(seen[c][f]));
    }
    fprintf(out, "\n");
    fclose(out);
}

/* If any one system call fails, nothing is lost, half-written or left open. */
TEST_LIMIT(fs_fault, each_call_survives_each_fault, 120)
{
    strike_all(NULL);
    if (getenv("BLITZ_FAULT_TABLE") != NULL)
        write_table(getenv("BLITZ_FAULT_TABLE"));
}

TEST_LIMIT(fs_fault, each_call_survives_each_fault_in_tasks, 240)
{
    t_on_keepers(strike_all, NULL);
}

/* Every call counts itself: an EINTR is never seen by a caller. */
TEST_LIMIT(fs_fault, an_interrupted_call_is_repeated, 120)
{
    strike_all(NULL);
    for (size_t c = 0; c < BZ_ARRAY_LEN(calls); c++)
        CHECK_EQ(seen[c][2], (unsigned)SAW_DONE);
}
