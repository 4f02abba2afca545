/*
 * blocking.c - calls that block, made by a thread of the pool while their task waits.
 *
 * There are two forms, depending on the owner of the call's memory.
 *
 * A *call* lies in the frame of the task that waits for it. Only its end ends the wait: the call uses
 * the frame, and all memory that the caller's `arg` leads to. The hook hands the call to the pool after
 * the task has left its stack, because the thread may be done before we are. If the pool has no thread
 * for it, the hook reports that, and the task makes the call itself.
 *
 * A *detached* call is an object of its own, so that the caller can leave. The caller and the thread
 * both hold it, and the last of them frees it:
 *
 *                  DONE (thread)       LEAVE (caller)      ASK (caller)
 *   runs           done, wake          left                runs
 *   done                               (freed) !           (freed)           ! drop(arg)
 *   left           (freed) !
 *
 * If a call is still in the pool's queue when its caller leaves, it is withdrawn and never made. The
 * table is behind a lock: a thread is involved, which costs a thousand times as much.
 *
 * Rejected: a detached call for everything. It takes 3965 instructions instead of 3883, 32 of them locked instead
 * of 24, and an allocation that may fail; and a cancel would leave a call that uses the caller's frame. Rejected,
 * too: letting a cancel end a call in the caller's frame (it would have to wait for fn in any case).
 *
 * I1  A call's frame stays until its thread wakes the wait, which is the last thing the thread does.
 * I2  The caller frees a detached call or, once the caller has left, the thread does.
 * I3  The caller of an abandoned call (pool.h) has left before, since every task has ended by then. Its
 *     thread calls drop(arg) and frees it, and touches nothing of the runtime.
 */
#include "blitz/blocking.h"

#include <assert.h>
#include <errno.h>

#include "base/alloc.h"
#include "block/blocking.h"
#include "life/escape.h"
#include "proc/enter.h"
#include "wait/wait.h"

/* ---- in the caller's frame ---- */

struct call {
    struct bz_work work;
    struct bz_wait wait;
    struct bz_pool *pool;
    int (*fn)(void *arg);
    void *arg;
    int result;
};

enum { MADE = BZ_WAIT_WOKEN, REFUSED };

static void call_run(struct bz_work *w)
{
    struct call *c = BZ_CONTAINER_OF(w, struct call, work);
    c->result = c->fn(c->arg);
    bz_wait_wake(&c->wait, MADE); /* I1 */
}

static bool call_hook(struct bz_wait *w, void *arg)
{
    struct call *c = arg;
    return bz_pool_work(c->pool, &c->work) == 0 || bz_wait_over(w, REFUSED);
}

/* The pool has no thread for the call: make it here. Not blitz_block_in_place(): with the uring backend that
 * asks the pool again. */
static int call_refused(int (*fn)(void *arg), void *arg)
{
    return bz_call_here(fn, arg);
}

int blitz_blocking(int (*fn)(void *arg), void *arg)
{
    struct bz_task *t = bz_task_self();
    if (fn == NULL)
        return -EINVAL;
    if (t == NULL)
        return fn(arg);
    struct call c = {.work.run = call_run, .pool = &t->rt->pool, .fn = fn, .arg = arg};
    bz_wait_begin_sole(&c.wait, t->rt->os, "blocking");
    return bz_wait_park(&c.wait, call_hook, &c) == MADE ? c.result : call_refused(fn, arg);
}

/* ---- detached ---- */

enum state { RUNS, DONE, LEFT };

struct detached {
    struct bz_work work;
    struct bz_runtime *rt; /* constant, as are the next ones */
    int (*fn)(void *arg);
    void *arg;
    blitz_blocking_opts opts;
    blitz_allocator alloc; /* of the call: the runtime may be gone before it */
    struct bz_lock lock;   /* guards the rest */
    enum state state;
    int result;
    blitz_waker waker; /* while it runs */
};

/* The contents of the future. */
struct inside {
    int (*fn)(void *arg);
    void *arg;
    blitz_blocking_opts opts;
    struct detached *call; /* NULL: not begun, or over */
};

static_assert(sizeof(struct inside) <= sizeof(((blitz_blocking_future *)NULL)->inside), "room");

static void detached_free(struct detached *d)
{
    blitz_allocator alloc = d->alloc;
    bz_free(&alloc, d, sizeof *d);
}

/* Free a call whose result no caller will read. */
static void discard(struct detached *d)
{
    if (d->opts.drop != NULL)
        bz_drop_out(d->opts.drop, d->arg, d->opts.ctx);
    detached_free(d);
}

static void detached_run(struct bz_work *w)
{
    struct detached *d = BZ_CONTAINER_OF(w, struct detached, work);
    int result = d->fn(d->arg);
    if (!bz_work_is_wanted(w)) {
        discard(d); /* I3 */
        return;
    }
    const struct bz_os *os = d->rt->os;
    bz_lock_take(&d->lock, os);
    bool is_left = d->state == LEFT;
    blitz_waker waker = d->waker;
    d->state = DONE;
    d->result = result;
    bz_lock_drop(&d->lock, os);
    if (is_left)
        discard(d); /* I2 */
    else
        blitz_waker_wake(&waker);
}

static struct detached *detached_new(struct bz_runtime *rt, const struct inside *in)
{
    struct detached *d = bz_alloc(&rt->alloc, sizeof *d, _Alignof(struct detached));
    if (d == NULL)
        return NULL;
    *d = (struct detached){.work = {.run = detached_run, .may_abandon = true},
                           .alloc = rt->alloc,
                           .rt = rt,
                           .fn = in->fn,
                           .arg = in->arg,
                           .opts = in->opts,
                           .state = RUNS,
                           .waker = {NULL, NULL}};
    bz_lock_init(&d->lock);
    return d;
}

static struct inside *inside_of(blitz_blocking_future *f)
{
    return (struct inside *)f->inside;
}

static blitz_poll over(blitz_blocking_future *f, int result)
{
    struct inside *in = inside_of(f);
    in->fn = NULL;
    in->call = NULL;
    f->result = result;
    return BLITZ_READY;
}

/* Start the call, at the first poll. */
static blitz_poll begin(blitz_blocking_future *f, const blitz_waker *waker)
{
    struct inside *in = inside_of(f);
    struct bz_machine *m = bz_machine_self();
    if (m == NULL)
        return over(f, in->fn(in->arg));
    struct detached *d = detached_new(m->rt, in);
    if (d == NULL)
        return over(f, -ENOMEM);
    d->waker = blitz_waker_clone(waker);
    if (bz_pool_work(&m->rt->pool, &d->work) == 0) {
        in->call = d;
        return BLITZ_PENDING;
    }
    blitz_waker_drop(&d->waker);
    detached_free(d);
    return over(f, call_refused(in->fn, in->arg));
}

/* Poll again: store the newest waker. */
static bool is_done(struct detached *d, const blitz_waker *waker)
{
    blitz_waker spare = blitz_waker_clone(waker); /* not under the lock: foreign code */
    bz_lock_take(&d->lock, d->rt->os);
    bool is_done = d->state == DONE;
    if (!is_done) {
        blitz_waker old = d->waker;
        d->waker = spare;
        spare = old;
    }
    bz_lock_drop(&d->lock, d->rt->os);
    blitz_waker_drop(&spare);
    return is_done;
}

static blitz_poll blocking_poll(blitz_future *future, const blitz_waker *waker)
{
    blitz_blocking_future *f = BZ_CONTAINER_OF(future, blitz_blocking_future, future);
    struct inside *in = inside_of(f);
    struct detached *d = in->call;
    if (in->fn == NULL)
        return BLITZ_READY; /* as before */
    if (d == NULL)
        return begin(f, waker);
    if (!is_done(d, waker))
        return BLITZ_PENDING;
    int result = d->result;
    detached_free(d); /* I2 */
    return over(f, result);
}

static void blocking_cancel(blitz_future *future)
{
    blitz_blocking_future *f = BZ_CONTAINER_OF(future, blitz_blocking_future, future);
    struct detached *d = inside_of(f)->call;
    if (d == NULL)
        return;
    inside_of(f)->call = NULL;
    bool is_ours = bz_pool_withdraw(&d->rt->pool, &d->work);
    bz_lock_take(&d->lock, d->rt->os);
    is_ours = is_ours || d->state == DONE;
    blitz_waker waker = d->state == DONE ? (blitz_waker){NULL, NULL} : d->waker;
    d->waker = (blitz_waker){NULL, NULL};
    d->state = LEFT;
    bz_lock_drop(&d->lock, d->rt->os);
    blitz_waker_drop(&waker);
    if (is_ours)
        discard(d); /* I2 */
}

static int blocking_output(blitz_future *future)
{
    blitz_blocking_future *f = BZ_CONTAINER_OF(future, blitz_blocking_future, future);
    return f->result;
}

void blitz_blocking_future_init(blitz_blocking_future *f, int (*fn)(void *arg), void *arg,
                                const blitz_blocking_opts *opts)
{
    static const blitz_future_ops ops = {"blocking", BLITZ_DETACHABLE, blocking_poll,
                                         blocking_cancel, blocking_output};
    f->future.ops = &ops;
    f->result = fn != NULL ? 0 : -EINVAL;
    *inside_of(f) = (struct inside){.fn = fn, .arg = arg, .call = NULL};
    if (opts != NULL)
        inside_of(f)->opts = *opts;
}

/* ---- more stack ---- */

struct big {
    int (*fn)(void *arg);
    void *arg;
    int result;
    struct bz_stack *from; /* where the call came from */
};

/* The bottom of the big stack: make one call, and go back to the calling stack, on the current machine. */
static void big_main(void *arg)
{
    BZ_STOP_EXCEPTIONS();
    struct big *b = arg;
    b->result = b->fn(b->arg);
    struct bz_machine *m = bz_machine_self();
    m->runner = b->from;
    bz_os_delay(m->rt->os, BZ_OS_AT_SWITCH);
    bz_ctx_leave(&b->from->ctx, NULL, NULL);
}

/* A frame of its own, so that no value that is read before the switch is used after it. Rounding modes and exceptions
 * that are being handled are the caller's, as in any call. */
static BZ_NOINLINE void switch_to(struct bz_machine *m, struct bz_stack *to, struct big *b)
{
    b->from = m->runner;
    m->runner = to;
    bz_ctx_init(&to->ctx, to->low, bz_stack_top(to), big_main, b, bz_fpcw_read());
    bz_ctx_inherit(&to->ctx);
    bz_os_delay(m->rt->os, BZ_OS_AT_SWITCH);
    bz_ctx_switch(&b->from->ctx, &to->ctx, NULL, NULL);
}

int blitz_on_big_stack(int (*fn)(void *arg), void *arg, size_t bytes)
{
    struct bz_machine *m = bz_machine_self();
    enum bz_stack_class class = bz_stack_class_for(bytes);
    struct bz_stack *to;
    if (fn == NULL || class == BZ_STACK_CLASSES)
        return -EINVAL;
    if (m == NULL || m->current == NULL)
        return fn(arg);
    if (bz_stack_take(&m->stacks, class, &to) != 0)
        return -ENOMEM;
    struct big b = {.fn = fn, .arg = arg};
    switch_to(m, to, &b);
    bz_ctx_fini(&to->ctx);
    bz_stack_give(&bz_machine_self()->stacks, to);
    return b.result;
}
