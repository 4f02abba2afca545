/*
 * object_pool.c - idle objects on a stack, and a semaphore for those that may be in use.
 *
 * The semaphore counts the objects that may still be taken. It is the queue of the waiters, and its close is the pool's.
 * A caller that has a permit takes the newest idle object, or makes one. So an object is made only if none is idle, and
 * all waiting is the semaphore's.
 *
 * The functions of the user run without a lock. An object that is no longer good is dropped, and the caller looks at the
 * next one: a server that was restarted costs one caller all dead connections, not each caller one.
 *
 * Rejected: a stack for each proc. A connection is used for longer than the lock is held by a factor of a thousand.
 *
 * I1  Objects in use + permits of the semaphore = the limit, unless the pool is closed.
 * I2  idle_count <= idle_max; 0 when the pool is closed.
 */
#include <assert.h>
#include <errno.h>

#include "base/alloc.h"
#include "base/bz_atomic.h"
#include "base/check.h"
#include "blitz/object_pool.h"
#include "blitz/semaphore.h"
#include "os/lock.h"
#include "wait/waker.h"

enum { IDLE_DEFAULT = 64 };

struct blitz_object_pool {
    const struct bz_os *os;      /* constant, as are the next two */
    blitz_object_pool_opts opts; /* its numbers are not 0 */
    uint32_t limit;
    blitz_semaphore permits;
    bz_atomic(uint32_t) refs;
    struct bz_lock lock; /* guards the next ones */
    bool is_closed;
    size_t used, idle_count;
    void *idle[];
};

static void lock(struct blitz_object_pool *p)
{
    bz_lock_take(&p->lock, p->os);
}

static void unlock(struct blitz_object_pool *p)
{
    bz_lock_drop(&p->lock, p->os);
}

/* ---- its life ---- */

static size_t bytes_of(size_t idle_max)
{
    return sizeof(struct blitz_object_pool) + idle_max * sizeof(void *);
}

int blitz_object_pool_new(const blitz_object_pool_opts *opts, blitz_object_pool **out)
{
    if (opts == NULL || opts->make == NULL || out == NULL ||
        opts->objects_max > BLITZ_PERMITS_MAX || opts->idle_max > BLITZ_PERMITS_MAX)
        return -EINVAL;
    size_t kept = opts->objects_max != 0 ? opts->objects_max : IDLE_DEFAULT;
    size_t idle_max = opts->idle_max != 0 ? opts->idle_max : kept;
    struct blitz_object_pool *p =
        bz_alloc(&bz_allocator_libc, bytes_of(idle_max), _Alignof(struct blitz_object_pool));
    if (p == NULL)
        return -ENOMEM;
    *p = (struct blitz_object_pool){.os = bz_os_here(), .opts = *opts};
    p->opts.idle_max = idle_max;
    p->limit = opts->objects_max != 0 ? (uint32_t)opts->objects_max : BLITZ_PERMITS_MAX;
    blitz_semaphore_init(&p->permits, p->limit);
    bz_atomic_init(&p->refs, 1);
    bz_lock_init(&p->lock);
    *out = p;
    return 0;
}

blitz_object_pool *blitz_object_pool_ref(blitz_object_pool *p)
{
    bz_fetch_add_relaxed(&p->refs, 1); /* relaxed: the caller has a reference */
    return p;
}

static void drop(struct blitz_object_pool *p, void *object)
{
    if (p->opts.drop != NULL)
        p->opts.drop(object, p->opts.ctx);
}

/* Take an idle object. False: there is none. */
static bool take_idle(struct blitz_object_pool *p, void **object)
{
    lock(p);
    bool is_any = p->idle_count > 0;
    if (is_any)
        *object = p->idle[--p->idle_count];
    unlock(p);
    return is_any;
}

static void drop_idle(struct blitz_object_pool *p)
{
    void *object;
    while (take_idle(p, &object))
        drop(p, object);
}

void blitz_object_pool_unref(blitz_object_pool *p)
{
    /* acq_rel: the last one sees what the others have written */
    if (p == NULL || bz_fetch_sub_acqrel(&p->refs, 1) != 1)
        return;
    BZ_CHECK(p->used == 0, "object pool %p: freed while %zu objects are in use", (void *)p,
             p->used);
    drop_idle(p);
    bz_free(&bz_allocator_libc, p, bytes_of(p->opts.idle_max));
}

void blitz_object_pool_close(blitz_object_pool *p)
{
    lock(p);
    p->is_closed = true;
    unlock(p);
    blitz_semaphore_close(&p->permits);
    drop_idle(p);
}

/* ---- taking ---- */

static void count_used(struct blitz_object_pool *p, size_t change)
{
    lock(p);
    p->used += change;
    unlock(p);
}

/* Give the permit of an object back. */
static void let_in(struct blitz_object_pool *p)
{
    count_used(p, (size_t)-1);
    int err = blitz_semaphore_release(&p->permits, 1);
    BZ_CHECK(err == 0, "object pool %p: an object was given back twice", (void *)p); /* I1 */
}

/* With a permit: find an idle object that is good, or make one. */
static int find(struct blitz_object_pool *p, void **object)
{
    const blitz_object_pool_opts *o = &p->opts;
    count_used(p, 1);
    while (take_idle(p, object)) {
        if (o->is_good == NULL || o->is_good(*object, o->ctx))
            return 0;
        drop(p, *object);
    }
    int err = o->make(object, o->ctx);
    if (err != 0)
        let_in(p);
    return err;
}

void blitz_object_pool_discard(blitz_object_pool *p, void *object)
{
    drop(p, object);
    let_in(p);
}

void blitz_object_pool_release(blitz_object_pool *p, void *object)
{
    lock(p);
    bool is_kept = !p->is_closed && p->idle_count < p->opts.idle_max; /* I2 */
    if (is_kept)
        p->idle[p->idle_count++] = object;
    unlock(p);
    if (!is_kept)
        drop(p, object);
    let_in(p);
}

size_t blitz_object_pool_idle(blitz_object_pool *p)
{
    lock(p);
    size_t count = p->idle_count;
    unlock(p);
    return count;
}

size_t blitz_object_pool_used(blitz_object_pool *p)
{
    lock(p);
    size_t count = p->used;
    unlock(p);
    return count;
}

/* ---- as a future, and as a call ---- */

static blitz_object_pool_future *of(blitz_future *f)
{
    return BZ_CONTAINER_OF(f, blitz_object_pool_future, future);
}

static blitz_poll pool_poll(blitz_future *future, const blitz_waker *waker)
{
    blitz_object_pool_future *f = of(future);
    struct blitz_object_pool *p = f->of;
    if (p == NULL) /* it was ready before */
        return BLITZ_READY;
    if (f->turn.future.ops->poll(&f->turn.future, waker) == BLITZ_PENDING)
        return BLITZ_PENDING;
    f->of = NULL;
    f->result = f->turn.result != 0 ? f->turn.result : find(p, &f->object);
    return BLITZ_READY;
}

static void pool_cancel(blitz_future *future)
{
    blitz_object_pool_future *f = of(future);
    if (f->of != NULL)
        f->turn.future.ops->cancel(&f->turn.future);
    f->of = NULL;
}

static int pool_output(blitz_future *future)
{
    return of(future)->result;
}

void blitz_object_pool_acquire_future_init(blitz_object_pool_future *f, blitz_object_pool *p)
{
    static const blitz_future_ops ops = {"object pool", BLITZ_REVOCABLE, pool_poll, pool_cancel,
                                         pool_output};
    f->future.ops = &ops;
    f->result = -EINPROGRESS;
    f->object = NULL;
    f->of = p;
    blitz_semaphore_acquire_future_init(&f->turn, &p->permits, 1);
}

int blitz_object_pool_acquire(blitz_object_pool *p, void **object, blitz_deadline until)
{
    blitz_object_pool_future f = {.object = NULL};
    int rc = blitz_semaphore_try_acquire(&p->permits, 1);
    if (rc == 0) {
        rc = find(p, &f.object);
    } else if (rc == -EAGAIN) {
        blitz_object_pool_acquire_future_init(&f, p);
        rc = blitz_await(&f.future, until);
        rc = rc == 0 ? f.result : rc;
    }
    if (rc == 0)
        *object = f.object;
    return rc;
}
