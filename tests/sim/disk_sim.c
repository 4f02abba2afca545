/*
 * Whole files across a crash of the system: the file system in memory (sim/disk.h) crashes at each system call, and comes
 * up in the states that seeds choose.
 */
#include <errno.h>
#include <stdlib.h>

#include "sim/disk.h"
#include "support/sched_sim.h"

enum { OLD_BYTES = 3000, NEW_BYTES = 5000, SEEDS_A_POINT = 12 };
static const blitz_deadline ever = BLITZ_FOREVER;
static char old_text[OLD_BYTES], new_text[NEW_BYTES];

static void prepare(void)
{
    memset(old_text, 'o', OLD_BYTES);
    memset(new_text, 'n', NEW_BYTES);
    CHECK_EQ(blitz_fs_write_file(NULL, "f", old_text, OLD_BYTES, NULL, ever), 0);
}

enum content { OLD, NEW, TORN };

static enum content content_of(const char *name)
{
    void *data;
    size_t bytes;
    if (blitz_fs_read_file(NULL, name, NULL, &data, &bytes, ever) != 0)
        return TORN;
    bool is_old = bytes == OLD_BYTES && memcmp(data, old_text, bytes) == 0;
    bool is_new = bytes == NEW_BYTES && memcmp(data, new_text, bytes) == 0;
    free(data);
    return is_old ? OLD : is_new ? NEW : TORN;
}

/* ---- one writer ---- */

static int write_whole(void)
{
    return blitz_fs_write_file(NULL, "f", new_text, NEW_BYTES, NULL, ever);
}

static int write_unsynced(void)
{
    return blitz_fs_write_file(NULL, "f", new_text, NEW_BYTES,
                               &(blitz_fs_write_opts){.no_sync = true}, ever);
}

static int copy_whole(void)
{
    return blitz_fs_copy(NULL, "source", NULL, "f", NULL, NULL, ever);
}

struct tally {
    unsigned points, old, new, torn;
};

/* Crash at each call of `fn`, and come up in several states each time. */
static struct tally crash_everywhere(int (*fn)(void), uint64_t short_seed)
{
    struct tally t = {0};
    bool has_crashed = true;
    for (uint64_t n = 1; has_crashed; n++) {
        for (int i = 0; i < SEEDS_A_POINT && has_crashed; i++) {
            bz_disk_open(&(struct bz_disk_config){.short_seed = short_seed});
            prepare();
            CHECK_EQ(blitz_fs_write_file(NULL, "source", new_text, NEW_BYTES, NULL, ever), 0);
            bz_disk_crash_in(n);
            int rc = fn();
            has_crashed = bz_disk_has_crashed();
            CHECK(has_crashed || rc == 0);
            bz_disk_recover(t_random());
            enum content c = content_of("f");
            if (rc == 0 && fn != write_unsynced)
                CHECK_EQ(c, NEW); /* it was promised */
            t.old += c == OLD;
            t.new += c == NEW;
            t.torn += c == TORN;
            CHECK_EQ(bz_disk_close(), 0u);
        }
        t.points++;
    }
    return t;
}

/* The promise of blitz_fs_write_file(): old or new, whole, at every point and in every state. */
TEST_LIMIT(disk, a_write_is_whole_or_not_at_all_at_every_crash_point, 120)
{
    for (uint64_t i = 0; i < t_scaled(20); i++) {
        struct tally t = crash_everywhere(write_whole, i % 3 == 0 ? 0 : t_random() | 1);
        CHECK_EQ(t.torn, 0u);
        CHECK_GT(t.old, 0u);
        CHECK_GT(t.new, 0u);
        CHECK_GE(t.points, 9u);
    }
}

TEST_LIMIT(disk, a_copy_is_whole_or_not_at_all_at_every_crash_point, 120)
{
    for (uint64_t i = 0; i < t_scaled(10); i++) {
        struct tally t = crash_everywhere(copy_whole, t_random() | 1);
        CHECK_EQ(t.torn, 0u);
        CHECK_GT(t.new, 0u);
    }
}

/* The simulated crash has teeth: without a sync, files are torn. */
TEST(disk, without_a_sync_a_crash_tears_files)
{
    CHECK_GT(crash_everywhere(write_unsynced, 0).torn, 0u);
}

/* An append may be lost or torn, but never the bytes before it. */
TEST(disk, an_append_keeps_the_old_bytes_at_every_crash_point)
{
    bool has_crashed = true;
    for (uint64_t n = 1; has_crashed; n++) {
        void *data;
        size_t bytes;
        bz_disk_open(NULL);
        prepare();
        bz_disk_crash_in(n);
        int rc = blitz_fs_append_file(NULL, "f", new_text, NEW_BYTES, NULL, ever);
        has_crashed = bz_disk_has_crashed();
        bz_disk_recover(t_random());
        CHECK_EQ(blitz_fs_read_file(NULL, "f", NULL, &data, &bytes, ever), 0);
        CHECK_GE(bytes, OLD_BYTES);
        CHECK_MEM_EQ(data, old_text, OLD_BYTES);
        if (rc == 0) {
            CHECK_EQ(bytes, OLD_BYTES + NEW_BYTES);
            CHECK_MEM_EQ((char *)data + OLD_BYTES, new_text, NEW_BYTES);
        }
        free(data);
        CHECK_EQ(bz_disk_close(), 0u);
    }
}

/* A full disk: an error, the old content, and no temporary file. */
TEST(disk, a_full_disk_leaves_the_old_file)
{
    static char huge[BZ_DISK_BYTES + 1];
    blitz_dir *d;
    blitz_dir_entry e;
    bz_disk_open(NULL);
    prepare();
    CHECK_EQ(blitz_fs_write_file(NULL, "f", huge, sizeof huge, NULL, ever), -ENOSPC);
    CHECK_EQ(blitz_fs_append_file(NULL, "f", huge, sizeof huge - 1, NULL, ever), -ENOSPC);
    CHECK_EQ(content_of("f"), OLD);
    CHECK_EQ(blitz_dir_open(NULL, "/", &d, ever), 0);
    CHECK_EQ(blitz_dir_next(d, &e, ever), 1);
    CHECK_STR_EQ(e.name, "f");
    CHECK_EQ(blitz_dir_next(d, &e, ever), 0);
    blitz_dir_close(d);
    CHECK_EQ(bz_disk_close(), 0u);
}

/* ---- many writers, in a simulated runtime ---- */

static int write_letter(void *arg)
{
    char text[2000];
    memset(text, (int)(uintptr_t)arg, sizeof text);
    return blitz_fs_write_file(NULL, "f", text, sizeof text, NULL, ever);
}

static uint64_t crash_after;

static int many_writers(void *arg)
{
    enum { WRITERS = 5 };
    blitz_task *t[WRITERS];
    int rc;
    (void)arg;
    bz_disk_open(NULL);
    memset(old_text, 'o', OLD_BYTES);
    CHECK_EQ(write_letter((void *)(uintptr_t)'z'), 0);
    if (crash_after > 0)
        bz_disk_crash_in(crash_after);
    for (uintptr_t i = 0; i < WRITERS; i++)
        CHECK_EQ(blitz_spawn(write_letter, (void *)('a' + i), NULL, &t[i]), 0);
    if (t_random_below(2) == 0)
        blitz_task_cancel(t[0]);
    for (int i = 0; i < WRITERS; i++) {
        CHECK_EQ(blitz_task_join(t[i], &rc, ever), 0);
        CHECK(rc == 0 || (rc == -ECANCELED && i == 0) || bz_disk_has_crashed());
    }
    bz_disk_recover(t_random());
    void *data;
    size_t bytes;
    CHECK_EQ(blitz_fs_read_file(NULL, "f", NULL, &data, &bytes, ever), 0);
    CHECK_EQ(bytes, 2000u);
    for (size_t i = 1; i < bytes; i++)
        CHECK_EQ(((char *)data)[i], ((char *)data)[0]);
    free(data);
    CHECK_EQ(bz_disk_close(), 0u);
    return 0;
}

/* Threads of the pool interleave in any order, a writer is cancelled, and the system crashes somewhere. */
TEST_LIMIT(disk, many_writers_and_a_crash_leave_one_whole_file, 120)
{
    for (uint64_t i = 0; i < t_scaled(12); i++) {
        crash_after = i == 0 ? 0 : 1 + t_random_below(60);
        sim_on_seeds(many_writers, NULL, 0, 20);
    }
}
