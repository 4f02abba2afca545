/*
 * fs_watch.c - changes in the file system as a stream of events.
 *
 * The system's queue is a non-blocking descriptor. A call reads one event; if there is none, it waits until the
 * descriptor is readable (blitz/fd.h) and reads again.
 *
 * A read returns as many events as fit, and refuses a buffer into which the first one does not fit. So the buffer begins
 * small and grows by the unit of the system until one fits: that is one event and no more. It takes two or three reads
 * for names of usual length. Rejected: a buffer of events in the watch. Callers that wait for the descriptor would not
 * hear of events in the buffer, and a caller that leaves would need another one to pass them to.
 *
 * The lock makes the reads of one event a unit. It is held over calls that never wait.
 *
 * [A] unref: refs acq_rel -> unref: refs acq_rel   the last holder sees what the others did before
 */
#include "blitz/fs_watch.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>

#include "blitz/fd.h"
#include "fs/fs.h"
#include "io/inotify.h"
#include "io/raw.h"
#include "os/lock.h"
#include "wait/waker.h"

enum { EVENT_MAX_BYTES = 16 + 256, UNIT_BYTES = 16 };

struct blitz_fs_watch {
    bz_atomic(uint32_t) refs;
    int fd;              /* constant */
    struct bz_lock lock; /* serializes reads */
};

int blitz_fs_watch_new(blitz_fs_watch **out)
{
    if (out == NULL)
        return -EINVAL;
    int fd = bz_inotify_open();
    if (fd < 0)
        return fd;
    blitz_fs_watch *w = bz_alloc(&bz_allocator_libc, sizeof *w, _Alignof(blitz_fs_watch));
    if (w == NULL) {
        bz_raw_close(fd);
        return -ENOMEM;
    }
    w->fd = fd;
    bz_atomic_init(&w->refs, 1);
    bz_lock_init(&w->lock);
    *out = w;
    return 0;
}

blitz_fs_watch *blitz_fs_watch_ref(blitz_fs_watch *w)
{
    bz_fetch_add_relaxed(&w->refs, 1); /* relaxed: the caller holds one already */
    return w;
}

void blitz_fs_watch_unref(blitz_fs_watch *w)
{
    if (w == NULL || bz_fetch_sub_acqrel(&w->refs, 1) != 1) /* [A] */
        return;
    bz_raw_close(w->fd);
    bz_free(&bz_allocator_libc, w, sizeof *w);
}

/* ---- adding and removing ---- */

static int64_t run_add(struct bz_fs_call *c)
{
    const blitz_fs_watch *w = c->args.out_too;
    int id = bz_inotify_add(w->fd, bz_dir_at(c->args.at), c->args.path, c->args.mode);
    if (id < 0)
        return id;
    *(int *)c->args.out = id;
    return 0;
}

static const struct bz_fs_verb verb_add = BZ_FS_VERB("watch", run_add);

static struct bz_fs_args args_add(blitz_fs_watch *w, blitz_dir *at, const char *path, uint32_t what,
                                  int *id)
{
    return (struct bz_fs_args){.at = at, .path = path, .mode = what, .out = id, .out_too = w};
}

static bool is_right(const blitz_fs_watch *w, const char *path, uint32_t what, const int *id)
{
    return w != NULL && path != NULL && id != NULL && what != 0 &&
           (what & ~(uint32_t)BLITZ_FS_ANY) == 0;
}

int blitz_fs_watch_add(blitz_fs_watch *w, blitz_dir *at, const char *path, uint32_t what, int *id,
                       blitz_deadline until)
{
    struct bz_fs_call c = {.args = args_add(w, at, path, what, id)};
    return is_right(w, path, what, id) ? bz_fs_do_int(&verb_add, &c, until) : -EINVAL;
}

void blitz_fs_watch_add_future_init(blitz_fs_future *f, blitz_fs_watch *w, blitz_dir *at,
                                    const char *path, uint32_t what, int *id)
{
    struct bz_fs_args a = args_add(w, at, path, what, id);
    if (is_right(w, path, what, id))
        bz_fs_future_begin(f, &verb_add, &a);
    else
        bz_fs_future_fail(f, -EINVAL);
}

int blitz_fs_watch_remove(blitz_fs_watch *w, int id)
{
    return w != NULL ? bz_inotify_remove(w->fd, id) : -EINVAL;
}

/* ---- events ---- */

/* Read one event. -EAGAIN: there is none. */
static int64_t read_one(int fd, void *event)
{
    int64_t n = -EINVAL;
    for (size_t room = UNIT_BYTES; n == -EINVAL && room <= EVENT_MAX_BYTES; room += UNIT_BYTES)
        n = bz_inotify_read(fd, event, room);
    return n;
}

static int take(blitz_fs_watch *w, blitz_fs_event *out)
{
    _Alignas(8) char event[EVENT_MAX_BYTES];
    const struct bz_os *os = bz_os_here();
    bz_lock_take(&w->lock, os);
    int64_t n = read_one(w->fd, event);
    bz_lock_drop(&w->lock, os);
    if (n <= 0)
        return n < 0 ? (int)n : -EAGAIN;
    (void)bz_inotify_event(event, out);
    return 0;
}

/* A plain thread waits in the system. */
static int sleep_until(blitz_fs_watch *w, blitz_deadline until)
{
    uint64_t now = bz_os_now(bz_os_here());
    if (until != BLITZ_FOREVER && now >= until)
        return -ETIMEDOUT;
    uint64_t ms = until == BLITZ_FOREVER ? INT_MAX : (until - now) / BLITZ_MS + 1;
    bz_inotify_sleep(w->fd, ms < INT_MAX ? (int)ms : INT_MAX);
    return 0;
}

int blitz_fs_watch_next(blitz_fs_watch *w, blitz_fs_event *out, blitz_deadline until)
{
    int err = w != NULL && out != NULL ? take(w, out) : -EINVAL;
    while (err == -EAGAIN) {
        int ready = bz_task_self() != NULL ? blitz_fd_wait(w->fd, BLITZ_FD_READ, until)
                                           : sleep_until(w, until);
        if (ready < 0)
            return ready;
        err = take(w, out);
    }
    return err;
}

/* ---- as a future ---- */

enum step { NEW, WAITS, OVER };

static blitz_fs_watch_future *own(blitz_future *f)
{
    return BZ_CONTAINER_OF(f, blitz_fs_watch_future, future);
}

static void over(blitz_fs_watch_future *f, int result)
{
    f->result = result;
    f->inside[0] = OVER;
}

static blitz_poll next_poll(blitz_future *future, const blitz_waker *waker)
{
    blitz_fs_watch_future *f = own(future);
    while (f->inside[0] != OVER) {
        if (f->inside[0] == NEW) {
            int err = take(f->watch, f->out);
            if (err != -EAGAIN) {
                over(f, err);
                break;
            }
            blitz_fd_wait_future_init(&f->ready, f->watch->fd, BLITZ_FD_READ);
            f->inside[0] = WAITS;
        }
        if (f->ready.future.ops->poll(&f->ready.future, waker) == BLITZ_PENDING)
            return BLITZ_PENDING;
        if (f->ready.result < 0 || f->inside[1] != 0)
            over(f, f->ready.result < 0 ? (int)f->ready.result : -ECANCELED);
        else
            f->inside[0] = NEW;
    }
    return BLITZ_READY;
}

static void next_cancel(blitz_future *future)
{
    blitz_fs_watch_future *f = own(future);
    f->inside[1] = 1;
    if (f->inside[0] == NEW)
        over(f, -ECANCELED);
    else if (f->inside[0] == WAITS)
        f->ready.future.ops->cancel(&f->ready.future);
}

static int next_output(blitz_future *future)
{
    return own(future)->result;
}

void blitz_fs_watch_next_future_init(blitz_fs_watch_future *f, blitz_fs_watch *w,
                                     blitz_fs_event *out)
{
    static const blitz_future_ops ops = {"file system watch", BLITZ_PINNED, next_poll, next_cancel,
                                         next_output};
    f->future.ops = &ops;
    f->watch = w;
    f->out = out;
    f->result = -ECANCELED;
    f->inside[0] = NEW;
    f->inside[1] = 0;
    if (w == NULL || out == NULL)
        over(f, -EINVAL);
}
