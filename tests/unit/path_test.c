/*
 * Names: facts, directories, links, renames, removals, temporary names, listings and walks.
 */
#include "support/deny.h"
#include "support/fs.h"

#include <errno.h>

#include "io/fsys.h"

static const blitz_deadline ever = BLITZ_FOREVER;

static bool exists(blitz_dir *d, const char *name)
{
    blitz_file_facts facts;
    return blitz_fs_lstat(d, name, &facts, ever) == 0;
}

static int use_names(void *arg)
{
    blitz_dir *d = t_fs_begin();
    blitz_file_facts a, b;
    char text[64];
    (void)arg;
    t_fs_put(d, "f", "hello");
    CHECK_EQ(blitz_fs_stat(d, "f", &a, ever), 0);
    CHECK_EQ(a.kind, BLITZ_FILE_REGULAR);
    CHECK_EQ(a.size, 5u);
    CHECK_EQ(blitz_fs_set_permissions(d, "f", 0604, ever), 0);
    CHECK_EQ(blitz_fs_set_times(d, "f", BLITZ_TIME_UNKNOWN, -1500000000, ever), 0);
    CHECK_EQ(blitz_fs_link(d, "f", d, "g", ever), 0);
    CHECK_EQ(blitz_fs_stat(d, "g", &b, ever), 0);
    CHECK_EQ(b.inode, a.inode);
    CHECK_EQ(b.links, 2u);
    CHECK_EQ(b.permissions, 0604u);
    CHECK_EQ(b.accessed_ns, a.accessed_ns);
    CHECK_EQ(b.modified_ns, -1500000000); /* before 1970 */
    CHECK_EQ(blitz_fs_symlink("f", d, "link", ever), 0);
    CHECK_EQ(blitz_fs_symlink("f", d, "link", ever), -EEXIST);
    CHECK_EQ(blitz_fs_lstat(d, "link", &b, ever), 0);
    CHECK_EQ(b.kind, BLITZ_FILE_SYMLINK);
    CHECK_EQ(blitz_fs_stat(d, "link", &b, ever), 0);
    CHECK_EQ(b.inode, a.inode);
    CHECK_EQ(blitz_fs_readlink(d, "link", text, sizeof text, ever), 1);
    CHECK_STR_EQ(text, "f");
    CHECK_EQ(blitz_fs_readlink(d, "link", text, 1, ever), -ERANGE);
    CHECK_EQ(blitz_fs_readlink(d, "f", text, sizeof text, ever), -EINVAL);
    CHECK_EQ(blitz_fs_rename(d, "g", d, "h", NULL, ever), 0);
    CHECK_EQ(blitz_fs_rename(d, "h", d, "f", &(blitz_fs_rename_opts){.is_new = true}, ever),
             -EEXIST);
    CHECK_EQ(blitz_fs_remove(d, "link", ever), 0);
    CHECK_EQ(blitz_fs_remove(d, "link", ever), -ENOENT);
    CHECK(exists(d, "f"));
    CHECK_EQ(blitz_fs_stat(d, NULL, &a, ever), -EINVAL);
    CHECK_EQ(blitz_fs_set_permissions(d, "f", 010000, ever), -EINVAL);
    t_fs_end(d);
    return 0;
}

TEST(path, names_are_made_changed_and_removed)
{
    t_on_keepers(use_names, NULL);
    use_names(NULL);
}

/* A sandbox may refuse statx, a young system call. Then the birth of a file is not known, and all else is. */
TEST(path, facts_are_known_without_statx)
{
    blitz_dir *d = t_fs_begin();
    blitz_file_facts with, without;
    struct stat st;
    t_fs_put(d, "f", "hello");
    CHECK_EQ(blitz_fs_symlink("f", d, "link", ever), 0);
    CHECK_EQ(blitz_fs_stat(d, "link", &with, ever), 0);
    t_deny(SYS_statx, EPERM);
    if (stat(t_fs_path, &st) != 0)
        t_skip("this system has no older call: %s", strerror(errno));

    CHECK_EQ(blitz_fs_stat(d, "link", &without, ever), 0);

    CHECK_EQ(without.born_ns, BLITZ_TIME_UNKNOWN);
    with.born_ns = without.born_ns;
    CHECK_EQ(without.size, 5u);
    CHECK_MEM_EQ(&without, &with, sizeof with);
    CHECK_EQ(blitz_fs_lstat(d, "link", &without, ever), 0);
    CHECK_EQ(without.kind, BLITZ_FILE_SYMLINK);
    CHECK_EQ(blitz_fs_stat(d, "g", &without, ever), -ENOENT);
    t_fs_end(d);
}

static int make_dirs(void *arg)
{
    blitz_dir *d = t_fs_begin();
    (void)arg;
    CHECK_EQ(blitz_fs_mkdir(d, "a", 0755, ever), 0);
    CHECK_EQ(blitz_fs_mkdir(d, "a", 0755, ever), -EEXIST);
    CHECK_EQ(blitz_fs_mkdir(d, "x/y", 0755, ever), -ENOENT);
    CHECK_EQ(blitz_fs_mkdir_all(d, "a/b//c/d/", 0755, ever), 0);
    CHECK_EQ(blitz_fs_mkdir_all(d, "a/b/c/d", 0755, ever), 0);
    CHECK(exists(d, "a/b/c/d"));
    t_fs_put(d, "f", "");
    CHECK_EQ(blitz_fs_mkdir_all(d, "f", 0755, ever), -ENOTDIR);
    CHECK_EQ(blitz_fs_mkdir_all(d, "f/g", 0755, ever), -ENOTDIR);
    CHECK_EQ(blitz_fs_mkdir_all(d, "", 0755, ever), -ENOENT);
    CHECK_EQ(blitz_fs_remove(d, "a", ever), -ENOTEMPTY);
    CHECK_EQ(blitz_fs_remove(d, "a/b/c/d", ever), 0);
    t_fs_end(d);
    return 0;
}

TEST(path, mkdir_all_makes_what_is_missing)
{
    t_on_keepers(make_dirs, NULL);
    make_dirs(NULL);
}

static int remove_trees(void *arg)
{
    blitz_dir *d = t_fs_begin();
    char deep[2048] = "tree";
    (void)arg;
    CHECK_EQ(blitz_fs_mkdir_all(d, "kept/in", 0755, ever), 0);
    t_fs_put(d, "kept/in/f", "precious");
    for (int i = 0; i < 200; i++)
        strcat(deep, "/d");
    CHECK_EQ(blitz_fs_mkdir_all(d, deep, 0755, ever), 0);
    for (int i = 0; i < 300; i++) {
        char name[64];
        snprintf(name, sizeof name, "tree/d/file-with-a-longer-name-%d", i);
        t_fs_put(d, name, "");
    }
    CHECK_EQ(blitz_fs_symlink("../kept", d, "tree/link", ever), 0);
    CHECK_EQ(blitz_fs_symlink("../../kept/in", d, "tree/d/link", ever), 0);
    CHECK_EQ(blitz_fs_symlink("kept", d, "outer", ever), 0);
    CHECK_EQ(blitz_fs_remove_all(d, "tree", ever), 0);
    CHECK(!exists(d, "tree"));
    CHECK_EQ(blitz_fs_remove_all(d, "tree", ever), 0); /* it does not exist: done */
    CHECK_EQ(blitz_fs_remove_all(d, "outer", ever), 0);
    t_fs_has(d, "kept/in/f", "precious");
    CHECK_EQ(blitz_fs_remove_all(d, "kept/in/..", ever), -EINVAL);
    CHECK_EQ(blitz_fs_remove_all(d, "kept/", ever), -EINVAL);
    CHECK_EQ(blitz_fs_remove_all(d, ".", ever), -EINVAL);
    CHECK_EQ(blitz_fs_remove_all(d, "/", ever), -EINVAL);
    CHECK_EQ(blitz_fs_remove_all(d, "", ever), -EINVAL);
    t_fs_has(d, "kept/in/f", "precious");
    t_fs_end(d);
    return 0;
}

/* A link in a tree may lead to anything: removing the tree must not follow it. */
TEST(path, remove_all_removes_links_and_never_follows_them)
{
    t_on_keepers(remove_trees, NULL);
    remove_trees(NULL);
}

/* ---- a directory that is replaced while the tree is removed ---- */

static struct bz_fsys swapping;
static blitz_dir *swapped_in;

/* Just before the directory is opened, another process puts a link in its place. */
static int swap_and_open(int at, const char *path, int flags, unsigned mode)
{
    int top = blitz_dir_fd(swapped_in);
    if (strcmp(path, "victim") == 0) {
        CHECK_EQ(renameat(top, "tree/victim", top, "away"), 0);
        CHECK_EQ(symlinkat("../kept", top, "tree/victim"), 0);
    }
    return bz_fsys_system.open(at, path, flags, mode);
}

TEST(path, remove_all_does_not_enter_a_directory_that_became_a_link)
{
    blitz_dir *d = swapped_in = t_fs_begin();
    CHECK_EQ(blitz_fs_mkdir_all(d, "tree/victim", 0755, ever), 0);
    CHECK_EQ(blitz_fs_mkdir_all(d, "kept", 0755, ever), 0);
    t_fs_put(d, "kept/f", "precious");
    swapping = bz_fsys_system;
    swapping.open = swap_and_open;
    bz_fsys = &swapping;
    int err = blitz_fs_remove_all(d, "tree", ever);
    bz_fsys = &bz_fsys_system;
    CHECK_EQ(err, 0);
    CHECK(!exists(d, "tree"));
    t_fs_has(d, "kept/f", "precious");
    t_fs_end(d);
}

static int find_canonical(void *arg)
{
    blitz_dir *d = t_fs_begin();
    char path[BLITZ_PATH_ROOM], want[BLITZ_PATH_ROOM + 16], real[BLITZ_PATH_ROOM];
    (void)arg;
    CHECK_NOT_NULL(realpath(t_fs_path, real));
    CHECK_EQ(blitz_fs_mkdir_all(d, "a/b", 0755, ever), 0);
    CHECK_EQ(blitz_fs_symlink("a/b", d, "link", ever), 0);
    t_fs_put(d, "a/f", "");
    snprintf(want, sizeof want, "%s/a/f", real);
    CHECK_EQ(blitz_fs_canonicalize(d, "link/.././f", path, sizeof path, ever),
             (int64_t)strlen(want));
    CHECK_STR_EQ(path, want);
    CHECK_EQ(blitz_fs_canonicalize(d, "link/none", path, sizeof path, ever), -ENOENT);
    CHECK_EQ(blitz_fs_canonicalize(d, "a/f", path, 5, ever), -ERANGE);
    t_fs_end(d);
    return 0;
}

TEST(path, canonicalize_follows_links_and_dots)
{
    t_on_keepers(find_canonical, NULL);
    find_canonical(NULL);
}

static int make_temps(void *arg)
{
    blitz_dir *d = t_fs_begin();
    blitz_file *f, *g;
    blitz_file_facts facts;
    char name[64], other[64], text[4];
    (void)arg;
    CHECK_EQ(blitz_fs_mkdir(d, "t", 0755, ever), 0);
    CHECK_EQ(blitz_fs_temp_file(d, "t/part-", name, sizeof name, &f, ever), 0);
    CHECK_EQ(blitz_fs_temp_dir(d, "t/part-", other, sizeof other, ever), 0);
    CHECK_NE(strcmp(name, other), 0);
    CHECK_EQ(strlen(name), strlen("t/part-") + 13);
    CHECK_EQ(blitz_fs_stat(d, name, &facts, ever), 0);
    CHECK_EQ(facts.permissions, 0600u);
    CHECK_EQ(blitz_fs_stat(d, other, &facts, ever), 0);
    CHECK_EQ(facts.permissions, 0700u);
    CHECK_EQ(t_fs_count(d, "t"), 2);
    CHECK_EQ(blitz_fs_temp_file(d, "t/x", NULL, 0, &g, ever), 0);
    CHECK_EQ(blitz_file_write(g, "abc", 3, ever), 3);
    CHECK_EQ(blitz_file_read_at(g, text, 3, 0, ever), 3);
    CHECK_EQ(t_fs_count(d, "t"), 2);
    CHECK_EQ(blitz_fs_temp_file(d, "t/part-", name, 10, &f, ever), -ERANGE);
    CHECK_EQ(blitz_fs_temp_file(d, "none/part-", name, sizeof name, &f, ever), -ENOENT);
    blitz_file_close(f);
    blitz_file_close(g);
    t_fs_end(d);
    return 0;
}

TEST(path, temporary_names_are_new_and_private)
{
    t_on_keepers(make_temps, NULL);
    make_temps(NULL);
}

static int use_path_futures(void *arg)
{
    blitz_dir *d = t_fs_begin(), *sub = NULL;
    blitz_fs_future f;
    blitz_file_facts facts;
    blitz_file *file = NULL;
    blitz_dir_entry e;
    blitz_walk *w;
    blitz_walk_entry we;
    void *data = NULL;
    size_t bytes = 0;
    uint64_t copied = 0;
    char text[BLITZ_PATH_ROOM];
    (void)arg;
#define AWAIT(init, want)                          \
    do {                                           \
        init;                                      \
        CHECK_EQ(blitz_await(&f.future, ever), 0); \
        CHECK_EQ(f.result, (want));                \
    } while (0)
    AWAIT(blitz_fs_mkdir_future_init(&f, d, "m", 0755), 0);
    AWAIT(blitz_fs_mkdir_all_future_init(&f, d, "m/n/o", 0755), 0);
    AWAIT(blitz_fs_write_file_future_init(&f, d, "m/f", "one", 3, NULL), 0);
    AWAIT(blitz_fs_append_file_future_init(&f, d, "m/f", "two", 3, NULL), 0);
    AWAIT(blitz_fs_read_file_future_init(&f, d, "m/f", NULL, &data, &bytes), 0);
    CHECK_EQ(bytes, 6u);
    CHECK_STR_EQ((char *)data, "onetwo");
    free(data);
    AWAIT(blitz_fs_copy_future_init(&f, d, "m/f", d, "m/g", NULL, &copied), 0);
    CHECK_EQ(copied, 6u);
    AWAIT(blitz_fs_stat_future_init(&f, d, "m/g", &facts), 0);
    CHECK_EQ(facts.size, 6u);
    AWAIT(blitz_fs_set_permissions_future_init(&f, d, "m/g", 0600), 0);
    AWAIT(blitz_fs_set_times_future_init(&f, d, "m/g", 0, 0), 0);
    AWAIT(blitz_fs_symlink_future_init(&f, "g", d, "m/l"), 0);
    AWAIT(blitz_fs_lstat_future_init(&f, d, "m/l", &facts), 0);
    AWAIT(blitz_fs_readlink_future_init(&f, d, "m/l", text, sizeof text), 1);
    AWAIT(blitz_fs_canonicalize_future_init(&f, d, "m/l", text, sizeof text),
          (int64_t)strlen(text));
    AWAIT(blitz_fs_link_future_init(&f, d, "m/f", d, "m/h"), 0);
    AWAIT(blitz_fs_rename_future_init(&f, d, "m/h", d, "m/i", NULL), 0);
    AWAIT(blitz_fs_remove_future_init(&f, d, "m/i"), 0);
    AWAIT(blitz_fs_temp_file_future_init(&f, d, "m/t", text, sizeof text, &file), 0);
    blitz_file_close(file);
    AWAIT(blitz_fs_temp_dir_future_init(&f, d, "m/t", text, sizeof text), 0);
    AWAIT(blitz_dir_open_future_init(&f, d, "m/n", &sub), 0);
    AWAIT(blitz_dir_next_future_init(&f, sub, &e), 1);
    CHECK_STR_EQ(e.name, "o");
    AWAIT(blitz_dir_next_future_init(&f, sub, &e), 0);
    AWAIT(blitz_dir_sync_future_init(&f, sub), 0);
    CHECK_EQ(blitz_walk_open(d, "m/n", NULL, &w), 0);
    AWAIT(blitz_walk_next_future_init(&f, w, &we), 1);
    AWAIT(blitz_walk_next_future_init(&f, w, &we), 1);
    CHECK_STR_EQ(we.path, "m/n/o");
    AWAIT(blitz_walk_next_future_init(&f, w, &we), 0);
    blitz_walk_close(w);
    blitz_dir_close(sub);
    AWAIT(blitz_fs_remove_all_future_init(&f, d, "m"), 0);
    AWAIT(blitz_fs_remove_all_future_init(&f, d, ".."), -EINVAL);
    AWAIT(blitz_fs_stat_future_init(&f, d, NULL, &facts), -EINVAL);
    t_fs_end(d);
    return 0;
}

TEST(path, every_call_is_a_future_too)
{
    t_on_keepers(use_path_futures, NULL);
    use_path_futures(NULL);
}

/* ---- directories ---- */

static int list_names(void *arg)
{
    enum { MOST = 2000 };
    int count = (int)t_scaled(MOST);
    blitz_dir *d = t_fs_begin(), *in;
    blitz_dir_entry e;
    char seen[MOST] = {0};
    int rc;
    (void)arg;
    CHECK_EQ(blitz_fs_mkdir(d, "in", 0755, ever), 0);
    for (int i = 0; i < count; i++) {
        char name[32];
        blitz_file *f;
        snprintf(name, sizeof name, "in/%d", i);
        CHECK_EQ(blitz_file_open(d, name, &(blitz_file_opts){.can_write = true, .is_created = true},
                                 &f, ever),
                 0);
        blitz_file_close(f);
    }
    CHECK_EQ(blitz_dir_open(d, "in/7", &in, ever), -ENOTDIR);
    CHECK_EQ(blitz_dir_open(d, "in", &in, ever), 0);
    for (int round = 1; round <= 2; round++) {
        while ((rc = blitz_dir_next(in, &e, ever)) > 0) {
            CHECK_EQ(e.kind, BLITZ_FILE_REGULAR);
            CHECK_EQ(++seen[atoi(e.name)], round);
        }
        CHECK_EQ(rc, 0);
        CHECK_EQ(blitz_dir_rewind(in), 0);
    }
    for (int i = 0; i < count; i++)
        CHECK_EQ(seen[i], 2);
    CHECK_EQ(blitz_dir_ref(in), in);
    blitz_dir_close(in);
    CHECK_EQ(blitz_dir_sync(in, ever), 0);
    blitz_dir_close(in);
    t_fs_end(d);
    return 0;
}

TEST(dir, each_name_is_listed_once)
{
    t_on_keepers(list_names, NULL);
}

/* ---- walks ---- */

struct tally {
    _Atomic int dirs, files, links, errors, depth_max;
};

static int count_one(const blitz_walk_entry *e, void *arg)
{
    struct tally *t = arg;
    t->errors += e->error != 0;
    t->dirs += e->error == 0 && e->kind == BLITZ_FILE_DIR;
    t->files += e->kind == BLITZ_FILE_REGULAR;
    t->links += e->kind == BLITZ_FILE_SYMLINK;
    if ((int)e->depth > t->depth_max)
        t->depth_max = (int)e->depth;
    if (e->dir != NULL) {
        blitz_file_facts facts;
        CHECK_EQ(blitz_fs_lstat(e->dir, e->name, &facts, BLITZ_FOREVER), 0);
    }
    return strcmp(e->name, "skipped") == 0 ? BLITZ_WALK_SKIP : BLITZ_WALK_ON;
}

static struct tally walk_by_next(blitz_dir *d, const blitz_walk_opts *opts)
{
    struct tally t = {0};
    blitz_walk *w;
    blitz_walk_entry e;
    int rc;
    CHECK_EQ(blitz_walk_open(d, "tree", opts, &w), 0);
    while ((rc = blitz_walk_next(w, &e, ever)) > 0)
        if (count_one(&e, &t) == BLITZ_WALK_SKIP)
            blitz_walk_skip(w);
    CHECK_EQ(rc, 0);
    CHECK_EQ(blitz_walk_next(w, &e, ever), 0);
    blitz_walk_close(w);
    return t;
}

static struct tally walk_by_each(blitz_dir *d, const blitz_walk_opts *opts)
{
    struct tally t = {0};
    CHECK_EQ(blitz_walk_each(d, "tree", count_one, &t, opts, ever), 0);
    return t;
}

static void plant(blitz_dir *d)
{
    for (int i = 0; i < 8; i++)
        for (int j = 0; j < 8; j++) {
            char name[64];
            snprintf(name, sizeof name, "tree/%d/%d", i, j);
            CHECK_EQ(blitz_fs_mkdir_all(d, name, 0755, ever), 0);
            snprintf(name, sizeof name, "tree/%d/%d/file", i, j);
            blitz_file_close(t_fs_create(d, name));
        }
    CHECK_EQ(blitz_fs_mkdir_all(d, "tree/skipped/deep/er", 0755, ever), 0);
    CHECK_EQ(blitz_fs_symlink("..", d, "tree/0/up", ever), 0);
}

static int walk_trees(void *arg)
{
    blitz_dir *d = t_fs_begin();
    (void)arg;
    plant(d);
    struct tally (*const ways[])(blitz_dir *, const blitz_walk_opts *) = {walk_by_next,
                                                                          walk_by_each};
    for (int i = 0; i < 2; i++) {
        int before = t_fs_fds();
        struct tally t = ways[i](d, NULL);
        CHECK_EQ(t.dirs, 1 + 8 + 64 + 1);
        CHECK_EQ(t.files, 64);
        CHECK_EQ(t.links, 1);
        CHECK_EQ(t.errors, 0);
        t = ways[i](d, &(blitz_walk_opts){.depth_max = 1});
        CHECK_EQ(t.dirs, 1 + 8 + 1);
        CHECK_EQ(t.depth_max, 1);
        t = ways[i](d, &(blitz_walk_opts){.follows_links = true});
        CHECK_EQ(t.links, 0);
        CHECK_EQ(t.errors, 1); /* the cycle */
        CHECK_EQ(t.files, 64);
        t = ways[i](d, &(blitz_walk_opts){.is_one_device = true});
        CHECK_EQ(t.files, 64);
        CHECK_EQ(t_fs_fds(), before);
    }
    t_fs_end(d);
    return 0;
}

TEST(walk, each_name_is_visited_once_by_one_and_by_many)
{
    t_on_keepers(walk_trees, NULL);
    walk_trees(NULL);
}

static int stop_early(const blitz_walk_entry *e, void *arg)
{
    (void)e;
    return ++*(_Atomic int *)arg > 20 ? -EDOM : 0;
}

static int walk_badly(void *arg)
{
    blitz_dir *d = t_fs_begin();
    blitz_walk *w;
    blitz_walk_entry e;
    _Atomic int seen = 0;
    (void)arg;
    plant(d);
    CHECK_EQ(blitz_walk_each(d, "tree", stop_early, (void *)&seen, NULL, ever), -EDOM);
    CHECK_EQ(blitz_walk_each(d, "tree", stop_early, (void *)&seen, NULL, 0), -ETIMEDOUT);
    CHECK_EQ(blitz_walk_each(d, "", stop_early, (void *)&seen, NULL, ever), -EINVAL);
    CHECK_EQ(blitz_walk_open(d, "none", NULL, &w), 0);
    CHECK_EQ(blitz_walk_next(w, &e, ever), 1);
    CHECK_EQ(e.error, -ENOENT);
    CHECK_EQ(blitz_walk_next(w, &e, ever), 0);
    blitz_walk_close(w);
    CHECK_EQ(blitz_walk_open(d, "tree", NULL, &w), 0);
    CHECK_EQ(blitz_walk_next(w, &e, ever), 1);
    blitz_walk_close(w); /* in the middle */
    t_fs_end(d);
    return 0;
}

TEST(walk, stops_at_an_error_of_the_visitor)
{
    t_on_keepers(walk_badly, NULL);
}
