/*
 * later.c - a function that is called at a time, or when a token is cancelled.
 *
 * A stackless task awaits a sleep or a token, and then calls the function. It has no stack until then; the function
 * gets the stack of the poll, and may wait on it. So a shutdown finds the task, a dump names it, and nothing can fail when
 * the moment comes: memory and the place among tasks_max were taken at the beginning.
 * Rejected: a timer whose waker spawns a task. The spawn may fail at that moment, with no caller to tell, and a runtime that
 * ends would have to look for such timers.
 *
 *               the moment    the task is cancelled   cancel       fn returns
 *   waits       runs, call    runs, drop(arg)         cancelled    -
 *   runs        -             -                       -EBUSY       called, or dropped
 *   called      -             -                       -EBUSY       -
 *   dropped     -             -                       -EALREADY    -
 *   cancelled   (end)         (end)                   -EALREADY    -
 *
 * A cancel also cancels the task, which then ends at once instead of at its moment.
 *
 * I1  `holders` counts the handle, if there is one, and the task. The last one frees the object.
 * I2  The handle of the task belongs to the handle of the object.
 *
 * No atomics: the lock guards everything.
 */
#include "blitz/later.h"

#include <errno.h>

#include "base/alloc.h"
#include "base/check.h"
#include "blitz/poll.h"
#include "life/spawn.h"
#include "park/closed.h"
#include "wait/waker.h"

enum state { WAITS, RUNS, CALLED, DROPPED, CANCELLED };

struct blitz_later {
    void (*fn)(void *arg); /* constant, as are the next ones */
    void *arg;
    void (*drop)(void *value, void *ctx);
    void *ctx;
    const struct bz_os *os;
    blitz_task *task;    /* I2; NULL: no handle */
    struct bz_lock lock; /* rank WAIT; guards the rest */
    enum state state;
    unsigned holders;      /* I1 */
    struct bz_list ending; /* waiters: closed.h */
};

static void lock_of(void *l)
{
    bz_lock_take(&((struct blitz_later *)l)->lock, ((struct blitz_later *)l)->os);
}

static void unlock_of(void *l)
{
    bz_lock_drop(&((struct blitz_later *)l)->lock, ((struct blitz_later *)l)->os);
}

static struct bz_list *ending_of(void *later)
{
    struct blitz_later *l = later;
    return l->state == WAITS || l->state == RUNS ? &l->ending : NULL;
}

static const struct bz_closed_ops ended = BZ_CLOSED_OPS("later", lock_of, unlock_of, ending_of);

static void release(struct blitz_later *l)
{
    lock_of(l);
    bool is_last = --l->holders == 0; /* I1 */
    unlock_of(l);
    if (!is_last)
        return;
    BZ_CHECK(bz_list_is_empty(&l->ending), "later %p: released while somebody waits for it",
             (void *)l);
    bz_free(&bz_allocator_libc, l, sizeof *l);
}

/* Step from WAITS to another state, and release the waiters if that is an end. Return the state before. */
static enum state leave_waiting(struct blitz_later *l, enum state to)
{
    lock_of(l);
    enum state was = l->state;
    if (was == WAITS)
        l->state = to;
    if (was == WAITS && to != RUNS)
        bz_closed_end(&ended, l, &l->ending);
    else
        unlock_of(l);
    return was;
}

static void finish(struct blitz_later *l, enum state how)
{
    lock_of(l);
    l->state = how;
    bz_closed_end(&ended, l, &l->ending);
}

/* ---- the task ---- */

struct waiting {
    blitz_frame frame;
    struct blitz_later *l;
    blitz_token *token; /* NULL: a time */
    blitz_deadline when;
    union {
        blitz_sleep_future sleep;
        blitz_token_future token;
    } until;
};

/* The moment has come (rc is 0), or the runtime ends. */
static void settle(struct blitz_later *l, int rc)
{
    if (leave_waiting(l, RUNS) != WAITS)
        return;
    if (rc == 0)
        l->fn(l->arg);
    else if (l->drop != NULL)
        l->drop(l->arg, l->ctx);
    bz_locals_end(bz_task_self()); /* they may use the argument, which the waiter may free */
    finish(l, rc == 0 ? CALLED : DROPPED);
}

/* Make the future of the moment, in the state of the task. */
static void moment_init(struct waiting *w)
{
    if (w->token != NULL)
        blitz_token_wait_future_init(&w->until.token, w->token);
    else
        blitz_sleep_until_future_init(&w->until.sleep, w->when);
}

static blitz_poll waiting_poll(void *state, blitz_cx *cx)
{
    struct waiting *w = state;
    int rc;
    BLITZ_BEGIN(&w->frame, cx);
    moment_init(w);
    BLITZ_AWAIT(rc, w->token != NULL ? &w->until.token.future : &w->until.sleep.future);
    blitz_token_unref(w->token);
    w->token = NULL;
    settle(w->l, rc);
    release(w->l);
    BLITZ_END(0);
}

/* ---- the caller ---- */

static struct blitz_later *later_new(void (*fn)(void *arg), void *arg, const blitz_later_opts *opts,
                                     unsigned holders)
{
    struct blitz_later *l = bz_alloc(&bz_allocator_libc, sizeof *l, _Alignof(struct blitz_later));
    if (l == NULL)
        return NULL;
    *l = (struct blitz_later){
        .fn = fn, .arg = arg, .os = bz_os_here(), .state = WAITS, .holders = holders};
    if (opts != NULL) {
        l->drop = opts->drop;
        l->ctx = opts->ctx;
    }
    bz_lock_init_ranked(&l->lock, BZ_RANK_WAIT);
    bz_list_init(&l->ending);
    return l;
}

static int start(struct waiting *w, void (*fn)(void *arg), void *arg, const blitz_later_opts *opts,
                 blitz_later **out)
{
    blitz_spawn_opts how = {.name = "later"};
    if (fn == NULL)
        return -EINVAL;
    if (opts != NULL) {
        how.runtime = opts->runtime;
        how.name = opts->name != NULL ? opts->name : how.name;
    }
    struct blitz_later *l = later_new(fn, arg, opts, out != NULL ? 2 : 1);
    if (l == NULL)
        return -ENOMEM;
    w->l = l;
    (void)(w->token != NULL ? blitz_token_ref(w->token) : NULL);
    int err = blitz_spawn_poll(waiting_poll, w, sizeof *w, &how, out != NULL ? &l->task : NULL);
    if (err != 0) {
        blitz_token_unref(w->token);
        bz_free(&bz_allocator_libc, l, sizeof *l);
    } else if (out != NULL) {
        *out = l;
    }
    return err;
}

int blitz_later_at(blitz_deadline when, void (*fn)(void *arg), void *arg,
                   const blitz_later_opts *opts, blitz_later **out)
{
    struct waiting w = {.when = when};
    return start(&w, fn, arg, opts, out);
}

int blitz_later_on_cancel(blitz_token *token, void (*fn)(void *arg), void *arg,
                          const blitz_later_opts *opts, blitz_later **out)
{
    struct waiting w = {.token = token};
    return token != NULL ? start(&w, fn, arg, opts, out) : -EINVAL;
}

int blitz_later_cancel(blitz_later *l)
{
    enum state was = leave_waiting(l, CANCELLED);
    if (was != WAITS)
        return was == RUNS || was == CALLED ? -EBUSY : -EALREADY;
    blitz_task_cancel(l->task);
    return 0;
}

bool blitz_later_was_called(blitz_later *l)
{
    lock_of(l);
    bool was_called = l->state == CALLED;
    unlock_of(l);
    return was_called;
}

int blitz_later_wait(blitz_later *l, blitz_deadline until)
{
    return bz_closed_wait(&ended, l, l->os, until);
}

void blitz_later_wait_future_init(blitz_closed_future *f, blitz_later *l)
{
    bz_closed_future_init(f, &ended, l);
}

void blitz_later_unref(blitz_later *l)
{
    if (l == NULL)
        return;
    blitz_task_detach(l->task);
    release(l);
}
