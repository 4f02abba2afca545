/*
 * Open files: reads, writes, syncs, facts, locks; on every backend, from fibers, futures and plain threads.
 */
#include "support/fs.h"

#include <errno.h>
#include <pthread.h>

#include "support/deny.h"
#include "support/sanitizers.h"

enum { PAGE = 4096, PAGES = 64 };
static const blitz_deadline ever = BLITZ_FOREVER;

static void fill(char *page, int n)
{
    memset(page, 'a' + n % 26, PAGE);
    page[0] = (char)n;
}

static void write_pages(blitz_file *f)
{
    char page[PAGE];
    for (int i = 0; i < PAGES; i++) {
        fill(page, i);
        CHECK_EQ(blitz_file_write_at(f, page, PAGE, (uint64_t)i * PAGE, ever), PAGE);
    }
}

static int read_everywhere(void *arg)
{
    blitz_dir *d = t_fs_begin();
    blitz_file *f = t_fs_create(d, "pages");
    char page[PAGE], want[PAGE];
    (void)arg;
    write_pages(f);
    for (int cold = 0; cold < 2; cold++) {
        for (int i = PAGES - 1; i >= 0; i--) {
            fill(want, i);
            CHECK_EQ(blitz_file_read_at(f, page, PAGE, (uint64_t)i * PAGE, ever), PAGE);
            CHECK_MEM_EQ(page, want, PAGE);
        }
        t_fs_cool(f);
    }
    CHECK_EQ(blitz_file_read_at(f, page, PAGE, PAGES * PAGE, ever), 0);
    CHECK_EQ(blitz_file_read_at(f, page, PAGE, PAGES * PAGE - 10, ever), 10);
    CHECK_EQ(blitz_file_close(f), 0);
    t_fs_end(d);
    return 0;
}

/* The first promise: bytes at an offset are those that were written there, in memory or on the disk. */
TEST(file, written_bytes_are_read_warm_and_cold)
{
    t_on_keepers(read_everywhere, NULL);
}

/* A plain thread has no runtime: it makes the calls itself. */
TEST(file, a_plain_thread_reads_and_writes)
{
    read_everywhere(NULL);
}

static int read_half_cold(void *arg)
{
    blitz_dir *d = t_fs_begin();
    blitz_file *f = t_fs_create(d, "pages");
    char *all = malloc(PAGES * PAGE);
    (void)arg;
    write_pages(f);
    t_fs_cool(f);
    CHECK_EQ(blitz_file_read_at(f, all, PAGE, 0, ever), PAGE); /* the first pages are cached */
    int64_t n = blitz_file_read_at(f, all, PAGES * PAGE, 0, ever);
    CHECK_EQ(n, PAGES * PAGE);
    for (int i = 0; i < PAGES; i++)
        CHECK_EQ(all[(size_t)i * PAGE], (char)i);
    t_fs_cool(f);
    CHECK_EQ(blitz_file_seek(f, 0, BLITZ_SEEK_START), 0);
    CHECK_EQ(blitz_file_read(f, all, PAGES * PAGE + 1, ever), PAGES * PAGE);
    CHECK_EQ(blitz_file_read(f, all, 1, ever), 0);
    free(all);
    blitz_file_close(f);
    t_fs_end(d);
    return 0;
}

/* A caller takes a short read for the end of the file; a range that is half in memory must not look like that. */
TEST(file, a_read_is_short_only_at_the_end)
{
    t_on_keepers(read_half_cold, NULL);
}

static int use_pieces(void *arg)
{
    blitz_dir *d = t_fs_begin();
    blitz_file *f = t_fs_create(d, "pieces");
    char a[3], b[4], c[6];
    blitz_piece out[] = {{(char[]){"abc"}, 3}, {(char[]){"defg"}, 4}};
    blitz_piece in[] = {{a, 3}, {b, 4}};
    (void)arg;
    CHECK_EQ(blitz_file_writev(f, out, 2, ever), 7);
    CHECK_EQ(blitz_file_writev_at(f, out, 2, 7, ever), 7);
    t_fs_cool(f);
    CHECK_EQ(blitz_file_readv_at(f, in, 2, 7, ever), 7);
    CHECK_MEM_EQ(a, "abc", 3);
    CHECK_MEM_EQ(b, "defg", 4);
    CHECK_EQ(blitz_file_seek(f, 4, BLITZ_SEEK_START), 4);
    CHECK_EQ(blitz_file_readv(f, in, 2, ever), 7);
    CHECK_MEM_EQ(a, "efg", 3);
    CHECK_EQ(blitz_file_seek(f, 0, BLITZ_SEEK_CURRENT), 11);
    CHECK_EQ(blitz_file_seek(f, -3, BLITZ_SEEK_END), 11);
    CHECK_EQ(blitz_file_read(f, c, 6, ever), 3);
    CHECK_EQ(blitz_file_seek(f, 0, BLITZ_SEEK_START), 0);
    static blitz_piece many[BLITZ_PIECES_MAX + 1]; /* more than a call takes: the first ones */
    many[0] = (blitz_piece){a, 3};
    CHECK_EQ(blitz_file_readv(f, many, BLITZ_PIECES_MAX + 1, ever), 3);
    many[0].data = NULL;
    CHECK_EQ(blitz_file_writev(f, NULL, 1, ever), -EINVAL);
    blitz_file_close(f);
    t_fs_end(d);
    return 0;
}

TEST(file, pieces_are_read_and_written_in_order)
{
    t_on_keepers(use_pieces, NULL);
}

static int use_exact(void *arg)
{
    blitz_dir *d = t_fs_begin();
    blitz_file *f = t_fs_create(d, "exact");
    char text[16] = "";
    size_t done = 99;
    (void)arg;
    CHECK_EQ(blitz_file_write_all(f, "0123456789", 10, &done, ever), 0);
    CHECK_EQ(done, 10u);
    CHECK_EQ(blitz_file_write_all_at(f, "xy", 2, 4, NULL, ever), 0);
    t_fs_cool(f);
    CHECK_EQ(blitz_file_read_exact_at(f, text, 10, 0, &done, ever), 0);
    CHECK_STR_EQ(text, "0123xy6789");
    CHECK_EQ(blitz_file_read_exact_at(f, text, 10, 5, &done, ever), -EPIPE);
    CHECK_EQ(done, 5u);
    CHECK_EQ(blitz_file_read_exact_at(f, text, 0, 5, &done, ever), 0);
    CHECK_EQ(done, 0u);
    blitz_file_close(f);
    t_fs_end(d);
    return 0;
}

TEST(file, exact_transfers_say_how_much_was_done)
{
    t_on_keepers(use_exact, NULL);
}

static int use_futures(void *arg)
{
    blitz_dir *d = t_fs_begin();
    blitz_fs_future f;
    blitz_file *file = NULL;
    blitz_file_facts facts;
    char text[32] = "";
    blitz_piece piece = {text, 3}, out = {(char[]){"XYZ"}, 3};
    blitz_file_opts opts = {.can_read = true, .can_write = true, .is_created = true};
    (void)arg;
#define AWAIT(init, want)                                 \
    do {                                                  \
        init;                                             \
        CHECK_EQ(blitz_await(&f.future, ever), 0);        \
        CHECK_EQ(f.result, (want));                       \
        CHECK_EQ(blitz_future_output(&f.future), (want)); \
    } while (0)
    AWAIT(blitz_file_open_future_init(&f, d, "f", &opts, &file), 0);
    AWAIT(blitz_file_write_future_init(&f, file, "abcdef", 6), 6);
    AWAIT(blitz_file_write_at_future_init(&f, file, "12", 2, 2), 2);
    AWAIT(blitz_file_write_all_future_init(&f, file, "ghi", 3), 0);
    CHECK_EQ(f.done, 3u);
    AWAIT(blitz_file_write_all_at_future_init(&f, file, "jkl", 3, 9), 0);
    AWAIT(blitz_file_write_all_at_future_init(&f, file, NULL, 0, 9), 0);
    AWAIT(blitz_file_writev_at_future_init(&f, file, &out, 1, 12), 3);
    AWAIT(blitz_file_sync_data_future_init(&f, file), 0);
    AWAIT(blitz_file_sync_future_init(&f, file), 0);
    posix_fadvise(blitz_file_fd(file), 0, 0, POSIX_FADV_DONTNEED);
    AWAIT(blitz_file_read_at_future_init(&f, file, text, 20, 0), 15);
    CHECK_STR_EQ(text, "ab12efghijklXYZ");
    blitz_file_seek(file, 1, BLITZ_SEEK_START);
    AWAIT(blitz_file_read_future_init(&f, file, text, 4), 4);
    CHECK_MEM_EQ(text, "b12e", 4);
    AWAIT(blitz_file_readv_future_init(&f, file, &piece, 1), 3);
    CHECK_MEM_EQ(text, "fgh", 3);
    AWAIT(blitz_file_readv_at_future_init(&f, file, &piece, 1, 12), 3);
    AWAIT(blitz_file_writev_future_init(&f, file, &out, 1), 3);
    AWAIT(blitz_file_read_exact_at_future_init(&f, file, text, 4, 8), 0);
    CHECK_MEM_EQ(text, "XYZl", 4);
    AWAIT(blitz_file_read_exact_at_future_init(&f, file, text, 4, 13), -EPIPE);
    CHECK_EQ(f.done, 2u);
    AWAIT(blitz_file_truncate_future_init(&f, file, 7), 0);
    AWAIT(blitz_file_set_permissions_future_init(&f, file, 0640), 0);
    AWAIT(blitz_file_set_times_future_init(&f, file, 1000, 2000000000), 0);
    AWAIT(blitz_file_stat_future_init(&f, file, &facts), 0);
    CHECK_EQ(facts.size, 7u);
    CHECK_EQ(facts.permissions, 0640u);
    CHECK_EQ(facts.modified_ns, 2000000000);
    AWAIT(blitz_file_lock_future_init(&f, file, NULL), 0);
    AWAIT(blitz_file_read_future_init(&f, NULL, text, 4), -EINVAL);
    AWAIT(blitz_file_stat_future_init(&f, file, NULL), -EINVAL);
    AWAIT(blitz_file_open_future_init(&f, d, NULL, NULL, &file), -EINVAL);
    blitz_file_close(file);
    t_fs_end(d);
    return 0;
}

TEST(file, every_call_is_a_future_too)
{
    t_on_keepers(use_futures, NULL);
}

TEST(file, a_plain_thread_awaits_futures)
{
    use_futures(NULL);
}

/* A stackless task reads a file page by page. */
struct reader {
    blitz_frame frame;
    blitz_file *file;
    blitz_fs_future io;
    char page[PAGE];
    uint64_t sum, at;
};

static blitz_poll read_stackless(void *state, blitz_cx *cx)
{
    struct reader *r = state;
    int rc;
    BLITZ_BEGIN(&r->frame, cx);
    for (;;) {
        blitz_file_read_at_future_init(&r->io, r->file, r->page, PAGE, r->at);
        BLITZ_AWAIT(rc, &r->io.future);
        CHECK_EQ(rc, 0);
        if (r->io.result <= 0)
            break;
        r->sum += (unsigned char)r->page[0];
        r->at += (uint64_t)r->io.result;
    }
    CHECK_EQ(r->sum, PAGES * (PAGES - 1) / 2u);
    BLITZ_END(0);
}

static int run_stackless(void *arg)
{
    blitz_dir *d = t_fs_begin();
    blitz_task *t;
    blitz_file *f = t_fs_create(d, "pages");
    (void)arg;
    write_pages(f);
    t_fs_cool(f);
    struct reader r = {.file = f};
    CHECK_EQ(blitz_spawn_poll(read_stackless, &r, sizeof r, NULL, &t), 0);
    CHECK_EQ(blitz_task_join(t, NULL, ever), 0);
    blitz_file_close(f);
    t_fs_end(d);
    return 0;
}

TEST(file, a_stackless_task_reads)
{
    t_on_keepers(run_stackless, NULL);
}

static int use_options(void *arg)
{
    blitz_dir *d = t_fs_begin();
    blitz_file *f, *g;
    char text[8] = "";
    (void)arg;
    CHECK_EQ(blitz_file_open(d, "none", NULL, &f, ever), -ENOENT);
    CHECK_EQ(blitz_file_open(d, "f",
                             &(blitz_file_opts){.is_new = true, .can_write = true, .mode = 0600},
                             &f, ever),
             0);
    CHECK_EQ(
        blitz_file_open(d, "f", &(blitz_file_opts){.is_new = true, .can_write = true}, &g, ever),
        -EEXIST);
    CHECK_EQ(blitz_file_write(f, "abc", 3, ever), 3);
    CHECK_EQ(blitz_file_read(f, text, 3, ever), -EBADF);
    blitz_file_close(f);
    CHECK_EQ(
        blitz_file_open(d, "f", &(blitz_file_opts){.is_append = true, .can_read = true}, &f, ever),
        0);
    CHECK_EQ(blitz_file_write_at(f, "de", 2, 0, ever), 2);
    CHECK_EQ(blitz_file_read_at(f, text, 8, 0, ever), 5);
    CHECK_STR_EQ(text, "abcde");
    blitz_file_close(f);
    CHECK_EQ(blitz_file_open(d, "f", NULL, &f, ever), 0);
    CHECK_EQ(blitz_file_write(f, "x", 1, ever), -EBADF);
    blitz_file_close(f);
    CHECK_EQ(blitz_file_open(d, "f", &(blitz_file_opts){.is_truncated = true}, &f, ever), -EINVAL);
    CHECK_EQ(blitz_file_open(
                 d, "f",
                 &(blitz_file_opts){.is_truncated = true, .can_write = true, .is_synced = true}, &f,
                 ever),
             0);
    CHECK_EQ(blitz_file_write_all(f, "synced", 6, NULL, ever), 0);
    blitz_file_close(f);
    t_fs_has(d, "f", "synced");
    CHECK_EQ(blitz_fs_symlink("f", d, "link", ever), 0);
    CHECK_EQ(blitz_file_open(d, "link", &(blitz_file_opts){.no_follow = true}, &f, ever), -ELOOP);
    CHECK_EQ(
        blitz_file_open(d, "link", &(blitz_file_opts){.is_new = true, .can_write = true}, &f, ever),
        -EEXIST);
    t_fs_end(d);
    return 0;
}

TEST(file, options_decide_how_it_is_opened)
{
    t_on_keepers(use_options, NULL);
}

/* Reference counts: the last holder closes. */
TEST(file, each_reference_keeps_the_descriptor)
{
    blitz_dir *d = t_fs_begin();
    int before = t_fs_fds();
    blitz_file *f = t_fs_create(d, "f"), *g = blitz_file_ref(f);
    CHECK_EQ(blitz_file_close(f), 0);
    CHECK_EQ(blitz_file_write(g, "x", 1, ever), 1);
    CHECK_NE(fcntl(blitz_file_fd(g), F_GETFD) & FD_CLOEXEC, 0);
    CHECK_EQ(blitz_file_close(g), 0);
    CHECK_EQ(t_fs_fds(), before);
    CHECK_EQ(blitz_file_from_fd(-1, &f), -EBADF);
    CHECK_EQ(blitz_file_from_fd(999, &f), -EBADF);
    t_fs_end(d);
}

/* ---- deadlines and cancels ---- */

static int use_deadlines(void *arg)
{
    blitz_dir *d = t_fs_begin();
    blitz_file *f = t_fs_create(d, "pages");
    char page[PAGE];
    (void)arg;
    write_pages(f);
    CHECK_EQ(blitz_file_read_at(f, page, PAGE, 0, 0), PAGE); /* it need not wait */
    int64_t n = PAGE;
    for (int i = 0; n == PAGE && i < 1000;
         i++) { /* the system takes an advice, and may leave a page */
        t_fs_cool(f);
        n = blitz_file_read_at(f, page, PAGE, 0, 0);
    }
    CHECK_EQ(n, -ETIMEDOUT);
    CHECK_EQ(blitz_file_sync(f, 0), -ETIMEDOUT);
    CHECK_EQ(blitz_file_write_at(f, page, PAGE, 0, 0), -ETIMEDOUT);
    blitz_file_close(f);
    t_fs_end(d);
    return 0;
}

TEST(file, a_past_deadline_lets_only_calls_through_that_need_no_disk)
{
    t_skip_if_emulated("cannot tell what is cached"); /* no preadv2 */
    t_on_keepers(use_deadlines, NULL);
}

struct slow_read {
    blitz_file *fifo;
    char text[64];
    int64_t result;
    blitz_deadline until;
    int (*poke)(struct slow_read *s);
};

static int read_fifo(void *arg)
{
    struct slow_read *s = arg;
    s->result = blitz_file_read(s->fifo, s->text, sizeof s->text, s->until);
    return 0;
}

static blitz_file *open_fifo(blitz_dir *d)
{
    blitz_file *f;
    char path[300];
    snprintf(path, sizeof path, "%s/fifo", t_fs_path);
    CHECK_EQ(mkfifo(path, 0600), 0);
    CHECK_EQ(blitz_file_open(d, "fifo", &(blitz_file_opts){.can_read = true, .can_write = true}, &f,
                             ever),
             0);
    return f;
}

/* A ring has a read as soon as it is begun. On other backends a thread of the pool takes it when it gets a CPU. */
static void wait_until_begun(uint64_t before)
{
    blitz_stats stats;
    do {
        for (int i = 0; i < 100; i++)
            blitz_yield();
        CHECK_EQ(blitz_stats_read(NULL, &stats), 0);
    } while (stats.blocking == before && strcmp(stats.io, "uring") != 0);
}

/* Bug class 15: a thread of the pool writes into the reader's buffer, whatever the reader wants by now. */
static int cancel_fifo(void *arg)
{
    blitz_dir *d = t_fs_begin();
    struct slow_read s = {.fifo = open_fifo(d), .until = ever};
    blitz_task *t;
    (void)arg;
    blitz_stats stats;
    CHECK_EQ(blitz_stats_read(NULL, &stats), 0);
    CHECK_EQ(blitz_spawn(read_fifo, &s, NULL, &t), 0);
    wait_until_begun(stats.blocking);
    blitz_task_cancel(t);
    for (int i = 0; i < 100; i++)
        blitz_yield();
    CHECK_EQ(blitz_file_write(s.fifo, "late", 4, ever), 4);
    CHECK_EQ(blitz_task_join(t, NULL, ever), 0);
    CHECK(s.result == 4 || s.result == -ECANCELED); /* the latter if it had not begun */
    if (s.result < 0)                               /* then no thread has taken the bytes */
        CHECK_EQ(read(blitz_file_fd(s.fifo), s.text, 4), 4);
    CHECK_MEM_EQ(s.text, "late", 4);
    blitz_file_close(s.fifo);
    t_fs_end(d);
    return 0;
}

TEST(file, bug_15_a_cancelled_read_returns_when_its_buffer_is_free)
{
    t_on_keepers(cancel_fifo, NULL);
}

static int cancel_cold_reads(void *arg)
{
    blitz_dir *d = t_fs_begin();
    blitz_file *f = t_fs_create(d, "pages");
    (void)arg;
    write_pages(f);
    for (int i = 0; i < 50; i++) {
        char *page = malloc(PAGE);
        blitz_fs_future io;
        memset(page, 0x55, PAGE);
        t_fs_cool(f);
        blitz_file_read_at_future_init(&io, f, page, PAGE, (uint64_t)(i % PAGES) * PAGE);
        int err = blitz_await(&io.future, i % 2 == 0 ? blitz_after(1) : 0);
        CHECK(err == 0 || err == -ETIMEDOUT);
        CHECK(io.result == PAGE || io.result == -ECANCELED);
        if (io.result == PAGE)
            CHECK_EQ(page[0], (char)(i % PAGES));
        else
            CHECK_EQ(page[0], 0x55);
        free(page); /* a late write into it is AddressSanitizer's */
    }
    blitz_file_close(f);
    t_fs_end(d);
    return 0;
}

TEST(file, bug_15_a_read_that_ran_out_of_time_leaves_its_buffer_alone)
{
    t_on_keepers(cancel_cold_reads, NULL);
}

/* ---- locks ---- */

static int use_locks(void *arg)
{
    blitz_dir *d = t_fs_begin();
    blitz_file *f = t_fs_create(d, "f"), *g = t_fs_create(d, "f");
    blitz_file_lock_opts shared = {.is_shared = true};
    blitz_fs_future io;
    (void)arg;
    CHECK_EQ(blitz_file_lock(f, NULL, 0), 0);
    CHECK_EQ(blitz_file_lock(g, NULL, 0), -ETIMEDOUT);
    CHECK_EQ(blitz_file_lock(g, NULL, blitz_after(3 * BLITZ_MS)), -ETIMEDOUT);
    blitz_file_lock_future_init(&io, g, &shared);
    CHECK_EQ(blitz_await(&io.future, blitz_after(BLITZ_MS)), -ETIMEDOUT);
    CHECK_EQ(io.result, -ECANCELED);
    CHECK_EQ(blitz_file_lock(f, &shared, ever), 0);
    CHECK_EQ(blitz_file_lock(g, &shared, ever), 0);
    CHECK_EQ(blitz_file_unlock(f), 0);
    CHECK_EQ(blitz_file_unlock(g), 0);
    blitz_file_close(f);
    blitz_file_close(g);
    t_fs_end(d);
    return 0;
}

TEST(file, a_lock_excludes_other_opens_until_a_deadline)
{
    t_on_keepers(use_locks, NULL);
    use_locks(NULL);
}

static int lock_and_say(void *arg)
{
    blitz_file *f = arg;
    CHECK_EQ(blitz_file_lock(f, NULL, ever), 0);
    return blitz_file_unlock(f);
}

static int wait_for_lock(void *arg)
{
    blitz_dir *d = t_fs_begin();
    blitz_file *f = t_fs_create(d, "f"), *g = t_fs_create(d, "f");
    blitz_task *t;
    (void)arg;
    CHECK_EQ(blitz_file_lock(f, NULL, ever), 0);
    CHECK_EQ(blitz_spawn(lock_and_say, g, NULL, &t), 0);
    for (int i = 0; i < 10; i++)
        blitz_yield();
    CHECK_EQ(blitz_file_unlock(f), 0);
    CHECK_EQ(blitz_task_join(t, NULL, ever), 0);
    blitz_file_close(f);
    blitz_file_close(g);
    t_fs_end(d);
    return 0;
}

TEST(file, an_unlock_lets_a_waiter_in)
{
    t_on_keepers(wait_for_lock, NULL);
}

/* ---- many at once ---- */

struct crowd {
    blitz_file *file;
    uint64_t at;
};

static int read_own(void *arg)
{
    struct crowd *c = arg;
    char page[PAGE], want[PAGE];
    fill(want, (int)(c->at / PAGE));
    CHECK_EQ(blitz_file_read_at(c->file, page, PAGE, c->at, ever), PAGE);
    CHECK_MEM_EQ(page, want, PAGE);
    return 0;
}

static int read_in_a_crowd(void *arg)
{
    blitz_dir *d = t_fs_begin();
    struct crowd c[PAGES];
    blitz_task *t[PAGES];
    blitz_file *f = t_fs_create(d, "pages");
    (void)arg;
    write_pages(f);
    t_fs_cool(f);
    for (int i = 0; i < PAGES; i++) {
        c[i] = (struct crowd){f, (uint64_t)i * PAGE};
        CHECK_EQ(blitz_spawn(read_own, &c[i], NULL, &t[i]), 0);
    }
    for (int i = 0; i < PAGES; i++)
        CHECK_EQ(blitz_task_join(t[i], NULL, ever), 0);
    blitz_file_close(f);
    t_fs_end(d);
    return 0;
}

TEST(file, many_tasks_read_one_cold_file)
{
    t_on_keepers(read_in_a_crowd, NULL);
}

/* A file system in memory cannot say what is cached: its files are read at once all the same. */
TEST(file, files_of_memory_and_of_proc_are_read)
{
    blitz_file *f;
    char text[64];
    CHECK_EQ(blitz_file_open(NULL, "/proc/self/stat", NULL, &f, ever), 0);
    CHECK_GT(blitz_file_read(f, text, sizeof text, ever), 0);
    CHECK_GT(blitz_file_read_at(f, text, sizeof text, 0, 0), 0);
    blitz_file_close(f);
}

/* An old kernel, a sandbox or an emulator has no call that reads only what is cached. */
TEST(file, without_reads_of_the_cache_a_file_is_read_all_the_same)
{
    t_deny(SYS_preadv2, ENOSYS);
    CHECK_EQ(blitz_run(read_everywhere, NULL, &(blitz_runtime_opts){.procs = 1, .io = "epoll"}), 0);
}

TEST(file, where_reads_of_the_cache_are_forbidden_a_file_is_read_all_the_same)
{
    t_deny(SYS_preadv2, EPERM);
    CHECK_EQ(blitz_run(read_everywhere, NULL, &(blitz_runtime_opts){.procs = 1, .io = "epoll"}), 0);
}

/* The disk is full at a known place. */
static int fill_the_disk(void *arg)
{
    blitz_file *f;
    (void)arg;
    CHECK_EQ(blitz_file_open(NULL, "/dev/full", &(blitz_file_opts){.can_write = true}, &f, ever),
             0);
    CHECK_EQ(blitz_file_write(f, "x", 1, ever), -ENOSPC);
    CHECK_EQ(blitz_file_write_all(f, "x", 1, NULL, ever), -ENOSPC);
    blitz_file_close(f);
    return 0;
}

TEST(file, a_full_disk_is_an_error)
{
    t_on_keepers(fill_the_disk, NULL);
}

/* Writing to a pipe without a reader is an error, never a signal. */
TEST(file, a_broken_pipe_raises_no_signal)
{
    int ends[2];
    blitz_file *f;
    CHECK_EQ(pipe2(ends, O_CLOEXEC), 0);
    CHECK_EQ(blitz_file_from_fd(ends[1], &f), 0);
    close(ends[0]);
    CHECK_EQ(blitz_file_write(f, "x", 1, ever), -EPIPE);
    blitz_file_close(f);
}
