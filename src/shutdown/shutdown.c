/*
 * shutdown.c - the coordinator of an orderly end.
 *
 * It is made of parts that exist: an event for "begun", a wait group for the work, a token for "forced". So each wait
 * is a request of src/sync, as a call and as a future, and a coordinator adds no wait of its own.
 *
 * The wait group has one member more until the shutdown begins: a drain does not end before. To enter is to look
 * whether it has begun and to add, under one lock. So no work is let in after the listeners were told.
 *
 * Rejected: a state word with a queue of its own. It would repeat src/sync/gate.c and its proofs.
 *
 * I1  The work counts one more than has entered, until is_begun. Both change under the lock.
 * I2  The event is set after is_begun, and the token is cancelled after the event is set.
 *
 * [A] unref: refs acq_rel -> unref: refs acq_rel    all uses come before the free
 */
#include "blitz/shutdown.h"

#include <errno.h>
#include <signal.h>

#include "base/alloc.h"
#include "base/bz_atomic.h"
#include "blitz/combine.h"
#include "blitz/event.h"
#include "blitz/signal.h"
#include "blitz/task.h"
#include "blitz/wait_group.h"
#include "os/lock.h"
#include "wait/waker.h"

struct hook {
    struct hook *before;
    void (*fn)(void *arg);
    void *arg;
};

struct blitz_shutdown {
    bz_atomic(uint32_t) refs;
    struct bz_lock lock; /* rank RUNTIME; guards the next four */
    bool is_begun;
    bool is_run; /* blitz_shutdown_run() was called */
    bool has_run_hooks;
    struct hook *hooks; /* the last one */
    blitz_event begun;
    blitz_wait_group work; /* I1 */
    blitz_token *token;
    const struct bz_os *os; /* constant, as are the next ones */
    blitz_duration drain;
    bool no_signals;
};

static const blitz_duration drain_default = 30 * BLITZ_S;

static void lock(blitz_shutdown *s)
{
    bz_lock_take(&s->lock, s->os);
}

static void unlock(blitz_shutdown *s)
{
    bz_lock_drop(&s->lock, s->os);
}

/* ---- making and freeing ---- */

int blitz_shutdown_new(const blitz_shutdown_opts *opts, blitz_shutdown **out)
{
    if (out == NULL)
        return -EINVAL;
    blitz_shutdown *s = bz_alloc(&bz_allocator_libc, sizeof *s, _Alignof(blitz_shutdown));
    if (s == NULL)
        return -ENOMEM;
    *s = (blitz_shutdown){.os = bz_os_here(), .drain = drain_default};
    if (opts != NULL && opts->drain != 0)
        s->drain = opts->drain;
    s->no_signals = opts != NULL && opts->no_signals;
    int err = blitz_token_new(NULL, &s->token);
    if (err != 0) {
        bz_free(&bz_allocator_libc, s, sizeof *s);
        return err;
    }
    bz_atomic_init(&s->refs, 1);
    bz_lock_init_ranked(&s->lock, BZ_RANK_RUNTIME);
    blitz_event_init(&s->begun);
    blitz_wait_group_init(&s->work);
    (void)blitz_wait_group_add(&s->work, 1); /* I1 */
    *out = s;
    return 0;
}

blitz_shutdown *blitz_shutdown_ref(blitz_shutdown *s)
{
    bz_fetch_add_relaxed(&s->refs, 1); /* relaxed: the caller holds one */
    return s;
}

static struct hook *take_hook(blitz_shutdown *s)
{
    lock(s);
    struct hook *h = s->hooks;
    if (h != NULL)
        s->hooks = h->before;
    else
        s->has_run_hooks = true;
    unlock(s);
    return h;
}

void blitz_shutdown_unref(blitz_shutdown *s)
{
    if (s == NULL || bz_fetch_sub_acqrel(&s->refs, 1) != 1) /* [A] */
        return;
    for (struct hook *h; (h = take_hook(s)) != NULL;)
        bz_free(&bz_allocator_libc, h, sizeof *h);
    blitz_token_unref(s->token);
    bz_free(&bz_allocator_libc, s, sizeof *s);
}

/* ---- the three moments ---- */

void blitz_shutdown_begin(blitz_shutdown *s)
{
    lock(s);
    bool is_first = !s->is_begun;
    s->is_begun = true; /* I1 */
    unlock(s);
    if (!is_first)
        return;
    blitz_event_set(&s->begun); /* I2 */
    (void)blitz_wait_group_done(&s->work);
}

void blitz_shutdown_force(blitz_shutdown *s)
{
    blitz_shutdown_begin(s);
    blitz_token_cancel(s->token); /* I2 */
}

bool blitz_shutdown_is_begun(blitz_shutdown *s)
{
    return blitz_event_is_set(&s->begun);
}

bool blitz_shutdown_is_forced(blitz_shutdown *s)
{
    return blitz_token_is_cancelled(s->token);
}

int blitz_shutdown_wait(blitz_shutdown *s, blitz_deadline until)
{
    return blitz_event_wait(&s->begun, until);
}

void blitz_shutdown_wait_future_init(blitz_sync_future *f, blitz_shutdown *s)
{
    blitz_event_wait_future_init(f, &s->begun);
}

blitz_token *blitz_shutdown_token(blitz_shutdown *s)
{
    return s->token;
}

/* ---- work ---- */

int blitz_shutdown_enter(blitz_shutdown *s)
{
    lock(s);
    int err = s->is_begun ? -ESHUTDOWN : blitz_wait_group_add(&s->work, 1); /* I1 */
    unlock(s);
    return err;
}

int blitz_shutdown_enter_more(blitz_shutdown *s)
{
    return blitz_wait_group_add(&s->work, 1); /* it is not 0: the caller is in */
}

void blitz_shutdown_leave(blitz_shutdown *s)
{
    (void)blitz_wait_group_done(&s->work);
}

uint32_t blitz_shutdown_left(blitz_shutdown *s)
{
    lock(s);
    uint32_t left = blitz_wait_group_left(&s->work) - !s->is_begun; /* I1 */
    unlock(s);
    return left;
}

int blitz_shutdown_drain(blitz_shutdown *s, blitz_deadline until)
{
    return blitz_wait_group_wait(&s->work, until);
}

void blitz_shutdown_drain_future_init(blitz_sync_future *f, blitz_shutdown *s)
{
    blitz_wait_group_wait_future_init(f, &s->work);
}

/* ---- hooks ---- */

int blitz_shutdown_hook(blitz_shutdown *s, void (*fn)(void *arg), void *arg)
{
    if (fn == NULL)
        return -EINVAL;
    struct hook *h = bz_alloc(&bz_allocator_libc, sizeof *h, _Alignof(struct hook));
    if (h == NULL)
        return -ENOMEM;
    lock(s);
    bool is_late = s->has_run_hooks;
    *h = (struct hook){.before = s->hooks, .fn = fn, .arg = arg};
    if (!is_late)
        s->hooks = h;
    unlock(s);
    if (!is_late)
        return 0;
    bz_free(&bz_allocator_libc, h, sizeof *h);
    return -ESHUTDOWN;
}

static void run_hooks(blitz_shutdown *s)
{
    blitz_shield();
    for (struct hook *h; (h = take_hook(s)) != NULL;) {
        h->fn(h->arg);
        bz_free(&bz_allocator_libc, h, sizeof *h);
    }
    blitz_unshield();
}

/* ---- all of it ---- */

static int first_run(blitz_shutdown *s)
{
    lock(s);
    bool is_second = s->is_run;
    s->is_run = true;
    unlock(s);
    return is_second ? -EALREADY : 0;
}

static int listen_to_signals(blitz_shutdown *s, blitz_signal **out)
{
    static const int signals[] = {SIGINT, SIGTERM};
    *out = NULL;
    if (s->no_signals)
        return 0;
    int err = blitz_signal_listen(signals, 2, NULL, out);
    if (err == 0)
        return 0;
    lock(s);
    s->is_run = false;
    unlock(s);
    return err;
}

/* Until it has begun, or a signal comes. A cancel of the task forces it. */
static void await_begin(blitz_shutdown *s, blitz_signal *signals, blitz_deadline until)
{
    blitz_sync_future told;
    blitz_signal_future got;
    blitz_future *any[] = {&told.future, &got.future};
    blitz_shutdown_wait_future_init(&told, s);
    if (signals != NULL)
        blitz_signal_recv_future_init(&got, signals);
    if (blitz_first_of(any, signals != NULL ? 2 : 1, until) == -ECANCELED)
        blitz_shutdown_force(s);
    else
        blitz_shutdown_begin(s);
}

/* Until no work is left. Force if a signal, the deadline or a cancel comes first. */
static void drain(blitz_shutdown *s, blitz_signal *signals, blitz_deadline until)
{
    blitz_sync_future empty;
    blitz_token_future forced;
    blitz_signal_future got;
    blitz_future *any[] = {&empty.future, &forced.future, &got.future};
    blitz_shutdown_drain_future_init(&empty, s);
    blitz_token_wait_future_init(&forced, s->token);
    if (signals != NULL)
        blitz_signal_recv_future_init(&got, signals);
    blitz_deadline end = blitz_deadline_first(until, blitz_after(s->drain));
    int first = blitz_first_of(any, signals != NULL ? 3 : 2, end);
    if (first != 0 && blitz_shutdown_left(s) > 0)
        blitz_shutdown_force(s);
}

int blitz_shutdown_run(blitz_shutdown *s, blitz_deadline until)
{
    blitz_signal *signals;
    int err = first_run(s);
    if (err == 0)
        err = listen_to_signals(s, &signals);
    if (err != 0)
        return err;
    await_begin(s, signals, until);
    drain(s, signals, until);
    blitz_signal_unref(signals); /* a third signal has its earlier action */
    blitz_shield();
    err = blitz_shutdown_drain(s, until);
    blitz_unshield();
    run_hooks(s);
    return err != 0 ? err : blitz_shutdown_is_forced(s);
}
