/*
 * offload.c - a blocking call with a handle: started now, waited for later.
 *
 * The call is an object of its own, held by the handle and by the pool, which runs it.
 *
 *                BEGIN (thread)   END (thread)   cancel        unref                   abandoned
 *   queued       runs             -              cancelled     cancelled !             cancelled
 *   runs         -                done, wake     -EBUSY        runs, and ! at its end  runs
 *   done         -                -              -EBUSY        done !                  -
 *   cancelled    (not called)     -              -EALREADY     cancelled               -
 *
 *   ! drop(arg), unless it was taken
 *
 * A cancelled call stays in the queue of the pool, and its thread does nothing. Rejected: taking it out of the queue. The
 * handle may outlive the pool, and cannot tell. So after its start the handle does not touch the runtime at all. That is
 * also why a call that was abandoned (pool.h) can end as any other: nothing that it touches is the runtime's.
 *
 * Rejected: making the call in place if the pool has no thread for it, as blitz_blocking() does. The caller wants to
 * continue, so it gets the error.
 *
 * I1  `holders` counts the handle and the pool. The last one frees the object.
 * I2  arg goes to drop() once: by the thread if the handle is gone when fn returns, by the unref otherwise; never if a wait
 *     or a cancel has given it back (is_taken).
 *
 * No atomics: the lock guards everything; a thread costs a thousand times as much.
 */
#include "blitz/offload.h"

#include <assert.h>
#include <errno.h>

#include "base/alloc.h"
#include "base/check.h"
#include "os/forked.h"
#include "park/closed.h"
#include "proc/enter.h"

enum state { QUEUED, RUNS, DONE, CANCELLED };

struct blitz_offload {
    struct bz_work work;
    const struct bz_os *os; /* constant, as are the next ones */
    int (*fn)(void *arg);
    void *arg;
    blitz_offload_opts opts;
    blitz_allocator alloc; /* of the object: the runtime may be gone before it */
    struct bz_lock lock;   /* rank WAIT; guards the rest */
    enum state state;
    bool is_taken;         /* the caller has arg again: I2 */
    bool is_left;          /* the handle was released */
    unsigned holders;      /* I1 */
    int result;            /* of fn */
    struct bz_list ending; /* waiters: closed.h */
};

static void lock_of(void *o)
{
    bz_lock_take(&((struct blitz_offload *)o)->lock, ((struct blitz_offload *)o)->os);
}

static void unlock_of(void *o)
{
    bz_lock_drop(&((struct blitz_offload *)o)->lock, ((struct blitz_offload *)o)->os);
}

static bool is_over(const struct blitz_offload *o)
{
    return o->state == DONE || o->state == CANCELLED;
}

static struct bz_list *ending_of(void *offload)
{
    struct blitz_offload *o = offload;
    return is_over(o) ? NULL : &o->ending;
}

static const struct bz_closed_ops ended =
    BZ_CLOSED_OPS("offloaded call", lock_of, unlock_of, ending_of);

/* ---- its life ---- */

static void drop_arg(struct blitz_offload *o)
{
    if (o->opts.drop != NULL)
        bz_drop_out(o->opts.drop, o->arg, o->opts.ctx);
}

/* Release one of the two holds. */
static void release(struct blitz_offload *o)
{
    lock_of(o);
    bool is_last = --o->holders == 0; /* I1 */
    unlock_of(o);
    if (!is_last)
        return;
    BZ_CHECK(bz_list_is_empty(&o->ending), "offload %p: released while somebody waits for it",
             (void *)o);
    blitz_allocator alloc = o->alloc;
    bz_free(&alloc, o, sizeof *o);
}

/* ---- the thread ---- */

/* Return false if the call was cancelled. */
static bool begin(struct blitz_offload *o)
{
    lock_of(o);
    bool is_wanted = o->state == QUEUED;
    if (is_wanted)
        o->state = RUNS;
    unlock_of(o);
    return is_wanted;
}

static void end(struct blitz_offload *o, int result)
{
    lock_of(o);
    o->state = DONE;
    o->result = result;
    bool is_left = o->is_left;
    bz_closed_end(&ended, o, &o->ending);
    if (is_left)
        drop_arg(o); /* I2 */
}

static void offload_run(struct bz_work *w)
{
    struct blitz_offload *o = BZ_CONTAINER_OF(w, struct blitz_offload, work);
    bool is_called = begin(o);
    int result = is_called ? o->fn(o->arg) : 0;
    (void)!bz_work_is_wanted(w); /* either way: nothing below is the runtime's */
    if (is_called)
        end(o, result);
    release(o);
}

/* The runtime was abandoned before the call began. */
static void offload_refuse(struct bz_work *w)
{
    struct blitz_offload *o = BZ_CONTAINER_OF(w, struct blitz_offload, work);
    lock_of(o);
    o->state = CANCELLED; /* also if it was: I2 knows is_taken */
    bz_closed_end(&ended, o, &o->ending);
    release(o);
}

/* ---- the caller ---- */

static struct bz_runtime *runtime_of(const blitz_offload_opts *opts)
{
    struct bz_machine *m = bz_machine_self();
    if (bz_is_forked()) {
        bz_forked_refuse("offload");
        return NULL;
    }
    if (opts != NULL && opts->runtime != NULL)
        return (struct bz_runtime *)opts->runtime;
    return m != NULL ? m->rt : NULL;
}

static struct blitz_offload *offload_new(struct bz_runtime *rt, int (*fn)(void *arg), void *arg,
                                         const blitz_offload_opts *opts)
{
    struct blitz_offload *o = bz_alloc(&rt->alloc, sizeof *o, _Alignof(struct blitz_offload));
    if (o == NULL)
        return NULL;
    *o = (struct blitz_offload){
        .work = {.run = offload_run, .may_abandon = true, .refuse = offload_refuse},
        .os = rt->os,
        .fn = fn,
        .arg = arg,
        .alloc = rt->alloc,
        .state = QUEUED,
        .holders = 2};
    o->work.is_independent = true;
    if (opts != NULL)
        o->opts = *opts;
    bz_lock_init_ranked(&o->lock, BZ_RANK_WAIT);
    bz_list_init(&o->ending);
    return o;
}

int blitz_offload_start(int (*fn)(void *arg), void *arg, const blitz_offload_opts *opts,
                        blitz_offload **out)
{
    struct bz_runtime *rt = runtime_of(opts);
    if (fn == NULL || rt == NULL || out == NULL)
        return -EINVAL;
    uint32_t stage = bz_load_relaxed(&rt->tasks.live.stage); /* relaxed: the pool decides */
    if (stage != BZ_LIVE_OPEN)
        return -ESHUTDOWN;
    struct blitz_offload *o = offload_new(rt, fn, arg, opts);
    if (o == NULL)
        return -ENOMEM;
    int err = bz_pool_work(&rt->pool, &o->work);
    if (err == 0) {
        *out = o;
        return 0;
    }
    blitz_allocator alloc = o->alloc;
    bz_free(&alloc, o, sizeof *o);
    return err;
}

/* The call is over: return its result, and the argument with it. */
static int take(struct blitz_offload *o)
{
    lock_of(o);
    int result = o->state == CANCELLED ? -ECANCELED : o->result;
    o->is_taken = true;
    unlock_of(o);
    return result;
}

int blitz_offload_wait(blitz_offload *o, int *result, blitz_deadline until)
{
    int rc = bz_closed_wait(&ended, o, o->os, until);
    int value = rc == 0 ? take(o) : 0;
    if (rc == 0 && result != NULL)
        *result = value;
    return rc;
}

int blitz_offload_cancel(blitz_offload *o)
{
    lock_of(o);
    int rc = o->state == QUEUED ? 0 : o->state == CANCELLED ? -EALREADY : -EBUSY;
    if (rc != 0) {
        unlock_of(o);
        return rc;
    }
    o->state = CANCELLED;
    o->is_taken = true;
    bz_closed_end(&ended, o, &o->ending);
    return 0;
}

bool blitz_offload_is_done(blitz_offload *o)
{
    lock_of(o);
    bool is_done = is_over(o);
    unlock_of(o);
    return is_done;
}

void blitz_offload_unref(blitz_offload *o)
{
    if (o == NULL)
        return;
    lock_of(o);
    if (o->state == QUEUED)
        o->state = CANCELLED;
    o->is_left = true;
    bool is_ours = is_over(o) && !o->is_taken; /* I2 */
    unlock_of(o);
    if (is_ours)
        drop_arg(o);
    release(o);
}

/* ---- as a future ---- */

static_assert(sizeof(struct bz_closed_wait) <= sizeof(((blitz_offload_future *)NULL)->inside),
              "it has room");

static blitz_offload_future *of(blitz_future *future)
{
    return BZ_CONTAINER_OF(future, blitz_offload_future, future);
}

static struct bz_closed_wait *inside(blitz_offload_future *f)
{
    return (struct bz_closed_wait *)f->inside;
}

static blitz_poll offload_poll(blitz_future *future, const blitz_waker *waker)
{
    blitz_offload_future *f = of(future);
    bool was_ready = f->result != -EINPROGRESS;
    blitz_poll poll = bz_closed_wait_poll(inside(f), &f->result, waker);
    if (poll == BLITZ_READY && !was_ready)
        f->value = take(inside(f)->of);
    return poll;
}

/* A wait that was over, and not polled since, has not taken the argument. */
static void offload_cancel(blitz_future *future)
{
    blitz_offload_future *f = of(future);
    bool was_ready = f->result != -EINPROGRESS;
    bz_closed_wait_cancel(inside(f), &f->result);
    if (!was_ready)
        f->result = -ECANCELED;
}

static int offload_output(blitz_future *future)
{
    blitz_offload_future *f = of(future);
    return f->result == 0 ? f->value : f->result;
}

void blitz_offload_wait_future_init(blitz_offload_future *f, blitz_offload *o)
{
    static const blitz_future_ops ops = {"offloaded call", BLITZ_REVOCABLE, offload_poll,
                                         offload_cancel, offload_output};
    f->future.ops = &ops;
    f->result = -EINPROGRESS;
    f->value = 0;
    bz_closed_wait_init(inside(f), &ended, o);
}
