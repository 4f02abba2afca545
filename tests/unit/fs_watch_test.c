/*
 * Changes in the file system, as a stream of events.
 */
#include "support/fs.h"

#include <errno.h>
#include <pthread.h>

static const blitz_deadline ever = BLITZ_FOREVER;

/* The next event must be this. */
static blitz_fs_event expect(blitz_fs_watch *w, uint32_t what, const char *name)
{
    blitz_fs_event e;
    CHECK_EQ(blitz_fs_watch_next(w, &e, ever), 0);
    CHECK_EQ(e.what, what);
    CHECK_STR_EQ(e.name, name);
    return e;
}

static int see_changes(void *arg)
{
    blitz_dir *d = t_fs_begin();
    blitz_fs_watch *w;
    blitz_fs_event e;
    blitz_fs_future add;
    int id = -1, other = -1;
    const char *longest =
        "a-name-that-is-longer-than-usual-names-are-so-that-it-takes-some-more-reads";
    (void)arg;
    CHECK_EQ(blitz_fs_mkdir(d, "in", 0755, ever), 0);
    CHECK_EQ(blitz_fs_watch_new(&w), 0);
    CHECK_EQ(blitz_fs_watch_add(w, d, "none", BLITZ_FS_ANY, &id, ever), -ENOENT);
    CHECK_EQ(blitz_fs_watch_add(w, d, "in", 0, &id, ever), -EINVAL);
    blitz_fs_watch_add_future_init(&add, w, d, "in", BLITZ_FS_ANY, &id);
    CHECK_EQ(blitz_await(&add.future, ever), 0);
    CHECK_EQ(add.result, 0);
    CHECK_EQ(blitz_fs_watch_next(w, &e, 0), -ETIMEDOUT);
    CHECK_EQ(blitz_fs_watch_next(w, &e, blitz_after(BLITZ_MS)), -ETIMEDOUT);
    blitz_file *f = t_fs_create(d, "in/f");
    CHECK_EQ(blitz_file_write(f, "x", 1, ever), 1);
    blitz_file_close(f);
    CHECK_EQ(expect(w, BLITZ_FS_CREATED, "f").id, id);
    expect(w, BLITZ_FS_MODIFIED, "f");
    expect(w, BLITZ_FS_WRITTEN, "f");
    CHECK_EQ(blitz_fs_rename(d, "in/f", d, "in/g", NULL, ever), 0);
    uint32_t move = expect(w, BLITZ_FS_MOVED_OUT, "f").move;
    CHECK_EQ(expect(w, BLITZ_FS_MOVED_IN, "g").move, move);
    char path[128];
    snprintf(path, sizeof path, "in/%s", longest);
    CHECK_EQ(blitz_fs_mkdir(d, path, 0755, ever), 0);
    CHECK(expect(w, BLITZ_FS_CREATED, longest).is_dir);
    CHECK_EQ(blitz_fs_remove(d, "in/g", ever), 0);
    expect(w, BLITZ_FS_REMOVED, "g");
    CHECK_EQ(blitz_fs_watch_add(w, d, path, BLITZ_FS_SELF, &other, ever), 0);
    CHECK_EQ(blitz_fs_remove(d, path, ever), 0);
    CHECK_EQ(expect(w, BLITZ_FS_SELF, "").id, other);
    CHECK_EQ(expect(w, BLITZ_FS_GONE, "").id, other);
    expect(w, BLITZ_FS_REMOVED, longest);
    CHECK_EQ(blitz_fs_watch_remove(w, id), 0);
    expect(w, BLITZ_FS_GONE, "");
    CHECK_EQ(blitz_fs_watch_remove(w, id), -EINVAL);
    CHECK_EQ(blitz_fs_watch_ref(w), w);
    blitz_fs_watch_unref(w);
    blitz_fs_watch_unref(w);
    t_fs_end(d);
    return 0;
}

TEST(fs_watch, changes_arrive_in_order)
{
    t_on_keepers(see_changes, NULL);
    see_changes(NULL);
}

static int wait_for_event(void *arg)
{
    blitz_fs_event e;
    return blitz_fs_watch_next(arg, &e, ever);
}

static int wake_waiters(void *arg)
{
    blitz_dir *d = t_fs_begin();
    blitz_fs_watch *w;
    blitz_task *t[4];
    blitz_fs_event e;
    blitz_fs_watch_future f;
    int id, result;
    (void)arg;
    CHECK_EQ(blitz_fs_watch_new(&w), 0);
    CHECK_EQ(blitz_fs_watch_add(w, NULL, t_fs_path, BLITZ_FS_CREATED, &id, ever), 0);
    for (int i = 0; i < 4; i++)
        CHECK_EQ(blitz_spawn(wait_for_event, w, NULL, &t[i]), 0);
    for (int i = 0; i < 20; i++)
        blitz_yield();
    blitz_task_cancel(t[3]);
    CHECK_EQ(blitz_task_join(t[3], &result, ever), 0);
    CHECK_EQ(result, -ECANCELED);
    for (int i = 0; i < 4; i++) {
        char name[16];
        snprintf(name, sizeof name, "%d", i);
        blitz_file_close(t_fs_create(d, name));
    }
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(blitz_task_join(t[i], &result, ever), 0);
        CHECK_EQ(result, 0);
    }
    blitz_fs_watch_next_future_init(&f, w, &e); /* the cancelled one has taken none */
    CHECK_EQ(blitz_await(&f.future, ever), 0);
    CHECK_EQ(f.result, 0);
    blitz_fs_watch_next_future_init(&f, w, &e);
    CHECK_EQ(blitz_await(&f.future, blitz_after(BLITZ_MS)), -ETIMEDOUT);
    CHECK_LT(f.result, 0);
    blitz_fs_watch_unref(w);
    t_fs_end(d);
    return 0;
}

TEST(fs_watch, each_event_goes_to_one_waiter_and_none_to_a_cancelled_one)
{
    t_on_keepers(wake_waiters, NULL);
}

/* If events are lost, the reader must hear of it. */
TEST(fs_watch, an_overflow_is_reported)
{
    blitz_dir *d = t_fs_begin();
    blitz_fs_watch *w;
    blitz_fs_event e = {.what = 0};
    void *text;
    size_t bytes;
    int id;
    CHECK_EQ(blitz_fs_read_file(NULL, "/proc/sys/fs/inotify/max_queued_events", NULL, &text, &bytes,
                                ever),
             0);
    int most = atoi(text);
    free(text);
    if (most > 200000)
        t_skip("the queue of this system is too long to fill");
    CHECK_EQ(blitz_fs_watch_new(&w), 0);
    CHECK_EQ(blitz_fs_watch_add(w, NULL, t_fs_path, BLITZ_FS_FACTS, &id, ever), 0);
    t_fs_put(d, "a", "");
    t_fs_put(d, "b", "");
    for (int i = 0; i <= most; i++) /* two names: the same event twice in a row counts as one */
        CHECK_EQ(blitz_fs_set_permissions(d, i % 2 == 0 ? "a" : "b", 0600, ever), 0);
    for (int i = 0; i <= most + 2 && e.what != BLITZ_FS_OVERFLOW; i++)
        CHECK_EQ(blitz_fs_watch_next(w, &e, 0), 0);
    CHECK_EQ(e.what, BLITZ_FS_OVERFLOW);
    CHECK_EQ(e.id, -1);
    blitz_fs_watch_unref(w);
    t_fs_end(d);
}
