/*
 * scope.c - tasks that end before the block that started them.
 *
 * A scope is a lock, a count of its tasks, and a list of those that run. A task of a scope is a stackless task whose
 * single poll calls the function, which may wait like any other code. So the scope, the function and the list node lie
 * in the task's state, and a spawn allocates once. (A task with its own stack size has to be a fiber, and has its node
 * on the heap.)
 *
 * A task enters the list when it begins to run, not when it is spawned: the address of its state is not known
 * before. A task that begins in a cancelled scope cancels itself. So cancelling is setting a flag, and cancelling
 * each task on the list. The canceller takes them off the list in batches (HANDFUL), with a reference each. So it does
 * not hold the lock while it cancels tasks, and it pays the barrier of a cancel once for a batch.
 *
 * The scope watches its deadline and token by its own futures, polled once, with a waker that cancels the scope.
 * Another thread may hold a waker when its future is cancelled, and this one leads to the scope, which is the
 * caller's memory. So the holders of this waker are counted as well (holders). The scope ends when the tasks have
 * ended, the watches are cancelled, and the last holder has dropped the waker.
 *
 *     open:     count tasks and holders              the end: tasks == 0, then cancel the
 *     cancel:   flag, error if there is none yet,    watches, then holders == 0; no thread
 *               cancel each                          touches it after the unlock that said so
 *
 * A poll checks the state and registers the closer's waker in one locked section. If it checked in one section
 * and registered in the next, the last task could end in between: it would find no closer, and the
 * closer would sleep for ever. Cancelling the watches calls foreign code, so it needs the lock
 * dropped: after that the poll checks again.
 *
 * I1  error is the first reason and stays. It is not 0 if and only if the scope is cancelled.
 * I2  A task is in `tasks` from its spawn until it has returned, left the list, reported its error, and dropped its
 *     locals; that is its last access to the scope. (The locals end here and not behind the poll, as those of other
 *     tasks do: a drop function may use memory of the closer, and a task that receives ends its id in one.)
 * I3  A member is on `running` or `told`, or on neither: not begun, or ended.
 */
#include <assert.h>
#include <errno.h>

#include "base/alloc.h"
#include "base/list.h"
#include "blitz/futures.h"
#include "blitz/poll.h"
#include "blitz/scope.h"
#include "life/spawn.h"
#include "os/lock.h"
#include "park/await.h"
#include "proc/opened.h"
#include "wait/wait.h"
#include "wait/waker.h"

struct scope {
    const struct bz_os *os; /* constant, as are the next three */
    blitz_runtime *rt;
    uint64_t opener; /* the task that counts it (proc/opened.h), or 0 */
    bool has_token;
    bool is_watched; /* deadline and token are watched; used by the closer only */
    bool is_closed;  /* guarded by lock, as is the rest */
    int error;
    struct bz_lock lock;
    size_t tasks, holders;
    struct bz_list running, told; /* members; told: those that were cancelled */
    blitz_waker closer;
    blitz_sleep_future deadline; /* used by the closer only, as is token */
    blitz_token_future token;
};

static_assert(sizeof(struct scope) <= sizeof(((blitz_scope *)NULL)->inside), "it has room");

struct member {
    struct scope *scope;
    int (*fn)(void *arg);
    void *arg;
    blitz_task *task; /* the member's own task, once it has begun */
    struct bz_list in;
};

static struct scope *scope_of(blitz_scope *s)
{
    return (struct scope *)s->inside;
}

static struct scope *of_future(blitz_future *f)
{
    return scope_of(BZ_CONTAINER_OF(f, blitz_scope, future));
}

static void lock(struct scope *s)
{
    bz_lock_take(&s->lock, s->os);
}

/* Drop the lock, and wake the closer if there are no tasks left. Do not touch the scope after the unlock, unless
 * the caller is still counted. */
static void unlock_and_tell(struct scope *s)
{
    blitz_waker closer = {NULL, NULL};
    if (s->tasks == 0) {
        closer = s->closer;
        s->closer = (blitz_waker){NULL, NULL};
    }
    bz_lock_drop(&s->lock, s->os);
    blitz_waker_wake(&closer);
}

static void unlock(struct scope *s)
{
    bz_lock_drop(&s->lock, s->os);
}

/* ---- cancelling ---- */

enum { HANDFUL = 16 };

/* Take up to HANDFUL running members, each with a reference. Return their number. */
static size_t take_handful(struct scope *s, struct bz_task **out)
{
    size_t n = 0;
    lock(s);
    for (struct bz_list *in; n < HANDFUL && (in = bz_list_take_front(&s->running)) != NULL; n++) {
        bz_list_push_back(&s->told, in); /* I3 */
        out[n] = (struct bz_task *)BZ_CONTAINER_OF(in, struct member, in)->task;
        bz_task_ref(out[n]);
    }
    unlock(s);
    return n;
}

static void cancel_handful(struct bz_task **task, size_t n)
{
    bool is_ours[HANDFUL];
    for (size_t i = 0; i < n; i++)
        is_ours[i] = bz_task_cancel_mark(task[i]);
    bz_task_cancel_barrier(task[0]->rt);
    for (size_t i = 0; i < n; i++) {
        if (is_ours[i])
            bz_task_cancel_deliver(task[i]);
        bz_task_unref(task[i]);
    }
}

/* Cancel the scope. The caller is counted in the scope, or has opened it. */
static void scope_cancel(struct scope *s, int why)
{
    struct bz_task *task[HANDFUL];
    lock(s);
    bool is_news = s->error == 0;
    if (is_news)
        s->error = why; /* I1 */
    unlock(s);
    if (!is_news)
        return;
    for (size_t n; (n = take_handful(s, task)) > 0;)
        cancel_handful(task, n);
}

void blitz_scope_cancel(blitz_scope *s)
{
    scope_cancel(scope_of(s), -ECANCELED);
}

bool blitz_scope_is_cancelled(blitz_scope *scope)
{
    struct scope *s = scope_of(scope);
    lock(s);
    bool is_cancelled = s->error != 0;
    unlock(s);
    return is_cancelled;
}

/* ---- tasks ---- */

static void member_begin(struct member *m)
{
    struct scope *s = m->scope;
    m->task = blitz_task_current();
    bz_list_init(&m->in);
    lock(s);
    bool is_late = s->error != 0;
    if (!is_late)
        bz_list_push_back(&s->running, &m->in); /* I3 */
    unlock(s);
    if (is_late)
        blitz_task_cancel(m->task);
}

static void leave_list(struct member *m)
{
    lock(m->scope);
    bz_list_remove(&m->in); /* I3: no canceller finds us from here on */
    unlock(m->scope);
}

/* End the locals of the task: their drop functions may use memory of the closer, and may wait. */
static void end_locals(struct member *m, int result)
{
    struct bz_task *t = (struct bz_task *)m->task;
    t->result = result; /* a local may look at it: actor/receive.c */
    bz_locals_end(t);
}

static void member_end(struct member *m, int result)
{
    struct scope *s = m->scope;
    if (result < 0) {
        leave_list(m); /* or it would cancel itself */
        scope_cancel(s, result);
    }
    end_locals(m, result);
    if (result >= 0)
        leave_list(m);
    lock(s);
    s->tasks--; /* I2 */
    unlock_and_tell(s);
}

static int member_run(struct member *m)
{
    member_begin(m);
    int result = m->fn(m->arg);
    member_end(m, result);
    return result;
}

static blitz_poll member_poll(void *state, blitz_cx *cx)
{
    cx->result = member_run(state);
    return BLITZ_READY;
}

/* Find the closer of a member that has not begun and finds no stack: the closer could run it. host.c */
static void member_closer(struct bz_task *t, struct bz_closer *out)
{
    struct scope *s = ((struct member *)bz_poll_state(t))->scope; /* t is counted: it is there */
    lock(s);
    out->is_cancelled = s->error != 0;
    if (s->closer.ops == &bz_task_waker) {
        out->task = s->closer.data;
        bz_task_ref(out->task); /* safe: the waker holds a reference */
    }
    unlock(s);
    out->scope = &BZ_CONTAINER_OF((void *)s, blitz_scope, inside)->future;
}

static const struct bz_task_ops member_ops = {.kind = "poll",
                                              .run = bz_poll_run,
                                              .drop = bz_poll_drop,
                                              .begun_in = bz_poll_begun_in,
                                              .closer = member_closer};

/* Run a member that has its own stack size. */
static int member_fiber(void *memory)
{
    struct member m = *(struct member *)memory;
    bz_free(&bz_allocator_libc, memory, sizeof m);
    return member_run(&m);
}

static int spawn_fiber(const struct member *m, const blitz_spawn_opts *opts)
{
    struct member *memory = bz_alloc(&bz_allocator_libc, sizeof *m, _Alignof(struct member));
    if (memory == NULL)
        return -ENOMEM;
    *memory = *m;
    int err = blitz_spawn(member_fiber, memory, opts, NULL);
    if (err != 0)
        bz_free(&bz_allocator_libc, memory, sizeof *m);
    return err;
}

/* Count a new task, or return an error if the scope takes no more tasks. */
static int count_in(struct scope *s)
{
    lock(s);
    int err = s->is_closed ? -EPIPE : s->error != 0 ? -ECANCELED : 0;
    s->tasks += err == 0;
    unlock(s);
    return err;
}

int blitz_scope_spawn(blitz_scope *scope, int (*fn)(void *arg), void *arg,
                      const blitz_spawn_opts *opts)
{
    struct scope *s = scope_of(scope);
    struct member m = {.scope = s, .fn = fn, .arg = arg};
    blitz_spawn_opts mine = opts != NULL ? *opts : (blitz_spawn_opts){.runtime = NULL};
    if (fn == NULL)
        return -EINVAL;
    mine.runtime = s->rt;
    mine.drop_result = NULL;
    mine.drop_state = NULL;
    int err = count_in(s);
    if (err != 0)
        return err;
    err = mine.stack_bytes != 0
              ? spawn_fiber(&m, &mine)
              : bz_spawn_poll(&member_ops, member_poll, &m, sizeof m, &mine, NULL);
    if (err != 0) {
        lock(s);
        s->tasks--;
        unlock_and_tell(s);
    }
    return err;
}

/* ---- watching deadline and token ---- */

static void watch_clone(void *scope)
{
    struct scope *s = scope;
    lock(s);
    s->holders++;
    unlock(s);
}

static void watch_drop(void *scope)
{
    struct scope *s = scope;
    lock(s);
    s->holders--;
    unlock_and_tell(s);
}

static void deadline_ring(void *scope)
{
    scope_cancel(scope, -ETIMEDOUT);
}

static void deadline_wake(void *scope)
{
    deadline_ring(scope);
    watch_drop(scope);
}

static void token_ring(void *scope)
{
    scope_cancel(scope, -ECANCELED);
}

static void token_wake(void *scope)
{
    token_ring(scope);
    watch_drop(scope);
}

static const blitz_waker_ops deadline_waker = {watch_clone, deadline_wake, deadline_ring,
                                               watch_drop};
static const blitz_waker_ops token_waker = {watch_clone, token_wake, token_ring, watch_drop};

/* Poll a watch once. Return true if it is ready already; if not, its waker will cancel the scope. */
static bool watch(blitz_future *f, const blitz_waker_ops *ops, struct scope *s)
{
    blitz_waker waker = {ops, s};
    return f->ops->poll(f, &waker) == BLITZ_READY;
}

static void watch_begin(struct scope *s, blitz_deadline until, blitz_token *token)
{
    s->is_watched = true;
    s->has_token = token != NULL;
    blitz_sleep_until_future_init(&s->deadline, until);
    if (until != BLITZ_FOREVER && watch(&s->deadline.future, &deadline_waker, s))
        s->error = -ETIMEDOUT;
    if (token == NULL)
        return;
    blitz_token_wait_future_init(&s->token, token);
    if (watch(&s->token.future, &token_waker, s))
        scope_cancel(s, -ECANCELED);
}

static void watch_end(struct scope *s)
{
    if (!s->is_watched)
        return;
    s->is_watched = false;
    s->deadline.future.ops->cancel(&s->deadline.future);
    if (s->has_token)
        s->token.future.ops->cancel(&s->token.future);
}

/* ---- opening and closing ---- */

enum look { STILL_OPEN, WITHOUT_TASKS, OVER };

/* Return how far the end of the scope has come. Under the lock. */
static enum look look(struct scope *s)
{
    if (s->tasks > 0)
        return STILL_OPEN;
    if (s->is_watched)
        return WITHOUT_TASKS;
    return s->holders > 0 ? STILL_OPEN : OVER;
}

/* Check the state, and swap *waker with the closer's waker if the scope is still open. From the first check
 * without tasks on, the scope takes no more tasks. */
static enum look look_and_register(struct scope *s, blitz_waker *waker)
{
    lock(s);
    enum look seen = look(s);
    if (s->tasks == 0)
        s->is_closed = true;
    BZ_ASSERT(seen != OVER || s->closer.ops == NULL); /* unlock_and_tell took it */
    if (seen == STILL_OPEN) {
        blitz_waker old = s->closer;
        s->closer = *waker;
        *waker = old;
    }
    unlock(s);
    return seen;
}

static blitz_poll scope_poll(blitz_future *f, const blitz_waker *waker)
{
    struct scope *s = of_future(f);
    blitz_waker mine = blitz_waker_clone(waker);
    enum look seen;
    while ((seen = look_and_register(s, &mine)) == WITHOUT_TASKS)
        watch_end(s);
    blitz_waker_drop(&mine);
    if (seen == STILL_OPEN)
        return BLITZ_PENDING;
    if (BZ_UNLIKELY(s->opener != 0) && s->opener == bz_opened_self())
        bz_opened_end();
    BZ_CONTAINER_OF(f, blitz_scope, future)->result = s->error;
    return BLITZ_READY;
}

/* Cancel the scope because its closer is cancelled or, on a plain thread, because the deadline has passed. */
static void scope_future_cancel(blitz_future *f)
{
    struct scope *s = of_future(f);
    bool is_late = blitz_now() >= s->deadline.when;
    scope_cancel(s, is_late ? -ETIMEDOUT : -ECANCELED);
}

static int scope_output(blitz_future *f)
{
    return BZ_CONTAINER_OF(f, blitz_scope, future)->result;
}

int blitz_scope_open(blitz_scope *scope, const blitz_scope_opts *opts, blitz_deadline until)
{
    static const blitz_future_ops ops = {"scope", BLITZ_PINNED, scope_poll, scope_future_cancel,
                                         scope_output};
    blitz_spawn_opts where = {.runtime = opts != NULL ? opts->runtime : NULL};
    struct bz_runtime *rt = bz_runtime_for(&where);
    if (scope == NULL || rt == NULL)
        return -EINVAL;
    struct scope *s = scope_of(scope);
    *s = (struct scope){.os = bz_os_here(), .rt = (blitz_runtime *)rt, .opener = bz_opened_self()};
    scope->future.ops = &ops;
    scope->result = 0;
    bz_lock_init(&s->lock);
    bz_list_init(&s->running);
    bz_list_init(&s->told);
    bz_opened_begin();
    watch_begin(s, until, opts != NULL ? opts->token : NULL);
    return 0;
}

int blitz_scope_close(blitz_scope *scope)
{
    struct scope *s = scope_of(scope);
    bool is_thread = blitz_task_current() == NULL; /* it has no timers: we wait until deadline */
    int err = bz_await(s->os, &scope->future, is_thread ? s->deadline.when : BLITZ_FOREVER);
    return scope->result != 0 ? scope->result : err;
}
