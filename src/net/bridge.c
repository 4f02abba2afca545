/*
 * bridge.c - results of tasks for a foreign poll loop: a list, and a descriptor that is readable while it is not empty.
 *
 * The first result of an empty list writes the descriptor, the take of the last one reads it. Both happen under the lock,
 * with system calls that do not wait. So a loop that polls the descriptor sees it readable if and only if there
 * is a result, and a hundred results cost two system calls. Rejected: a write for each result (a system call each), and
 * clearing the descriptor before the list is emptied without the lock (a result in between is reported twice, or never).
 *
 * A job is the node of its result. It holds a reference to the bridge until it is in the list; the bridge frees the jobs that
 * are left there. The locals of the task are dropped before the result is shown: their drop functions may use the argument.
 *
 * I1  is_readable == the list is not empty, when the lock is free.
 */
#include <errno.h>

#include "base/alloc.h"
#include "base/bz_atomic.h"
#include "base/check.h"
#include "base/list.h"
#include "blitz/bridge.h"
#include "io/readable.h"
#include "life/spawn.h"
#include "os/lock.h"
#include "wait/waker.h"

struct blitz_bridge {
    blitz_runtime *rt; /* constant, as are the next two */
    const struct bz_os *os;
    int fd;
    bz_atomic(uint32_t) refs;
    struct bz_lock lock; /* guards the next ones */
    struct bz_list results;
    size_t pending;
    bool is_readable; /* I1 */
};

struct job {
    struct bz_list link; /* in the results; first used when it has ended */
    struct blitz_bridge *of;
    blitz_bridge_result result;
};

/* ---- its life ---- */

int blitz_bridge_new(blitz_runtime *rt, blitz_bridge **out)
{
    if (rt == NULL || out == NULL)
        return -EINVAL;
    struct blitz_bridge *b = bz_alloc(&bz_allocator_libc, sizeof *b, _Alignof(struct blitz_bridge));
    if (b == NULL)
        return -ENOMEM;
    *b = (struct blitz_bridge){.rt = rt, .os = bz_os_here()};
    b->fd = bz_readable_open();
    if (b->fd < 0) {
        int err = b->fd;
        bz_free(&bz_allocator_libc, b, sizeof *b);
        return err;
    }
    bz_atomic_init(&b->refs, 1);
    bz_lock_init(&b->lock);
    bz_list_init(&b->results);
    *out = b;
    return 0;
}

blitz_bridge *blitz_bridge_ref(blitz_bridge *b)
{
    bz_fetch_add_relaxed(&b->refs, 1); /* relaxed: the caller has a reference */
    return b;
}

static void job_free(struct job *j)
{
    bz_free(&bz_allocator_libc, j, sizeof *j);
}

void blitz_bridge_unref(blitz_bridge *b)
{
    /* acq_rel: the last one sees what the others have written */
    if (b == NULL || bz_fetch_sub_acqrel(&b->refs, 1) != 1)
        return;
    while (!bz_list_is_empty(&b->results))
        job_free(BZ_CONTAINER_OF(bz_list_take_front(&b->results), struct job, link));
    bz_readable_close(b->fd);
    bz_free(&bz_allocator_libc, b, sizeof *b);
}

blitz_fd blitz_bridge_fd(const blitz_bridge *b)
{
    return b->fd;
}

/* ---- jobs ---- */

/* Under the lock: make the descriptor as I1 wants it. */
static void follow(struct blitz_bridge *b)
{
    bool is_wanted = !bz_list_is_empty(&b->results);
    if (is_wanted == b->is_readable)
        return;
    BZ_CHECK(bz_readable_set(b->fd, is_wanted), "bridge %p: other code changed its descriptor %d",
             (void *)b, b->fd);
    b->is_readable = is_wanted;
}

static int job_run(void *arg)
{
    struct job *j = arg;
    struct blitz_bridge *b = j->of;
    struct bz_task *me = bz_task_self();
    j->result.result = j->result.fn(j->result.arg);
    me->result = j->result.result;
    bz_locals_end(me); /* they may use the argument, which is the taker's from here on */
    bz_lock_take(&b->lock, b->os);
    bz_list_push_back(&b->results, &j->link);
    follow(b);
    bz_lock_drop(&b->lock, b->os);
    blitz_bridge_unref(b);
    return 0;
}

static void count_pending(struct blitz_bridge *b, size_t change)
{
    bz_lock_take(&b->lock, b->os);
    b->pending += change;
    bz_lock_drop(&b->lock, b->os);
}

int blitz_bridge_submit(blitz_bridge *b, int (*fn)(void *arg), void *arg,
                        const blitz_spawn_opts *opts)
{
    blitz_spawn_opts mine = opts != NULL ? *opts : (blitz_spawn_opts){.runtime = NULL};
    struct job *j =
        fn != NULL ? bz_alloc(&bz_allocator_libc, sizeof *j, _Alignof(struct job)) : NULL;
    if (j == NULL)
        return fn == NULL ? -EINVAL : -ENOMEM;
    *j = (struct job){.of = blitz_bridge_ref(b), .result = {fn, arg, 0}};
    bz_list_init(&j->link);
    mine.runtime = b->rt;
    count_pending(b, 1);
    int err = blitz_spawn(job_run, j, &mine, NULL);
    if (err != 0) {
        count_pending(b, (size_t)-1);
        job_free(j);
        blitz_bridge_unref(b);
    }
    return err;
}

int blitz_bridge_take(blitz_bridge *b, blitz_bridge_result *out)
{
    bz_lock_take(&b->lock, b->os);
    struct bz_list *first = bz_list_take_front(&b->results);
    b->pending -= first != NULL;
    follow(b);
    bz_lock_drop(&b->lock, b->os);
    if (first == NULL)
        return -EAGAIN;
    struct job *j = BZ_CONTAINER_OF(first, struct job, link);
    *out = j->result;
    job_free(j);
    return 0;
}

size_t blitz_bridge_pending(blitz_bridge *b)
{
    bz_lock_take(&b->lock, b->os);
    size_t count = b->pending;
    bz_lock_drop(&b->lock, b->os);
    return count;
}
