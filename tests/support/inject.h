/*
 * inject.h - one object, several waiters of every form, and an event or a cancel at a chosen point.
 *
 * A play has one object (a semaphore, a condition, a latch, a scope ...), up to INJ_WAITERS waiters
 * and one event that the first of them waits for. Each waiter has a form: a fiber that calls, a
 * fiber that awaits the future, a stackless task, a plain thread that calls, a plain thread that
 * awaits. Futures may be wrapped in a race, a timeout or an all. Waiter 0 is cancelled; some others
 * have deadlines; the last one waits without a limit. A waiter that gets a grant passes it on.
 *
 * So at the end every waiter has returned, in any order of events. A grant that went to a waiter
 * that had left, or an event without a wake-up, would leave the last waiter asleep. Objects that a
 * released waiter may free are freed by the last waiter that leaves, while the opener may still be
 * in its call.
 *
 * Either the event or the cancel comes when the word `poked` becomes 1. A simulation sets it at
 * every decision point in turn (sim/sim.h), a run on real threads after a random number of turns.
 *
 *     struct inj_plan plan = inj_plan_of(seed);
 *     inj_play(os, &plan, procs);
 */
#ifndef T_INJECT_H
#define T_INJECT_H

#include "harness.h"

#include "base/rng.h"
#include "blitz.h"
#include "park/await.h"
#include "proc/state.h"
#include "runtime/runtime.h"
#include "wait/wait.h"

enum { INJ_WAITERS = 24 };

enum inj_form { INJ_CALL, INJ_AWAIT, INJ_POLL, INJ_THREAD_CALL, INJ_THREAD_AWAIT, INJ_FORMS };
enum inj_wrap { INJ_BARE, INJ_RACE, INJ_TIMEOUT, INJ_ALL, INJ_WRAPS };

struct inj_play;
struct inj_waiter;

struct inj_kind {
    const char *name;
    void (*open)(struct inj_play *p);  /* on the thread that will fire, before the waiters begin */
    void (*close)(struct inj_play *p); /* all have returned */
    int (*call)(struct inj_play *p, struct inj_waiter *w);
    blitz_future *(*make)(struct inj_play *p, struct inj_waiter *w);
    void (*fire)(struct inj_play *p);
    void (*got)(struct inj_play *p); /* by the waiter: pass it on */
    void (*gave_up)(
        struct inj_play *p); /* by the first task, when waiter 0 has returned an error */
    unsigned waiters_max;
    bool has_deadlines; /* waiters other than the first and the last may be cancelled */
};

struct inj_plan {
    uint64_t seed;
    const struct inj_kind *kind;
    unsigned waiters;
    enum inj_form form[INJ_WAITERS];
    enum inj_wrap wrap[INJ_WAITERS];
    bool
        pokes_cancel; /* the cancel waits for `poked`, and the event for its time; else vice versa */
    bool has_cancel;
};

struct inj_waiter {
    struct inj_play *play;
    unsigned number;
    struct bz_rng rng;
    blitz_deadline until;
    int result;
    blitz_task *task;
    struct bz_os_thread thread;
    union {
        blitz_sync_future sync;
        blitz_once_future once;
        blitz_promise_future promise;
        blitz_token_future token;
        blitz_broadcast_future broadcast;
        blitz_watch_future watch;
        blitz_closed_future closed;
        blitz_join_future join;
    } f;
    union {
        blitz_race race;
        blitz_timeout timeout;
        blitz_all all;
    } wrapped;
    blitz_child child[2];
    blitz_sleep_future timer;
    blitz_broadcast_rx rx;
    uint64_t seen;
    int value;
};

union inj_gate {
    blitz_latch latch;
    blitz_event event;
    blitz_wait_group group;
};

struct inj_play {
    const struct bz_os *os;
    const struct inj_plan *plan;
    struct bz_rng rng;
    bool is_real; /* real threads: `poked` is set by the first task */
    blitz_runtime *rt;
    bz_os_word *poked;
    bz_os_word timed;
    bz_os_word made; /* once: the maker may fail */
    bz_atomic(bool) has_fired;
    blitz_event opened;
    blitz_task *first; /* waiter 0, if it is a task */
    struct inj_waiter waiter[INJ_WAITERS];
    bz_atomic(unsigned) inside; /* waiters that have not left; the last one frees the gate */
    union inj_gate *gate;
    union {
        blitz_semaphore semaphore;
        blitz_rwlock rwlock;
        blitz_notify notify;
        blitz_barrier barrier;
        blitz_once once;
        blitz_timer timer;
        blitz_event may_end;
    } o;
    blitz_mutex mutex;
    blitz_condition condition;
    bool has_token; /* guarded by mutex */
    blitz_scope scope;
    blitz_promise *promise;
    blitz_completer *completer;
    blitz_token *token;
    blitz_broadcast *broadcast;
    blitz_watch *watch;
    blitz_chan *chan;
    blitz_oneshot *oneshot;
    blitz_task *child;
};

static inline void inj_sleep_on(const struct bz_os *os, bz_os_word *word)
{
    while (bz_load_acquire(word) == 0) /* os.h, sleep words */
        bz_os_wait(os, word, 0, BZ_OS_FOREVER);
}

static inline void inj_raise(const struct bz_os *os, bz_os_word *word)
{
    bz_store_release(word, 1); /* os.h, sleep words */
    bz_os_wake(os, word, UINT32_MAX);
}

/* ---- semaphore, mutex, rwlock, notify ---- */

static inline void inj_semaphore_open(struct inj_play *p)
{
    blitz_semaphore_init(&p->o.semaphore, 0);
}

static inline int inj_semaphore_call(struct inj_play *p, struct inj_waiter *w)
{
    return blitz_semaphore_acquire(&p->o.semaphore, 1, w->until);
}

static inline blitz_future *inj_semaphore_make(struct inj_play *p, struct inj_waiter *w)
{
    blitz_semaphore_acquire_future_init(&w->f.sync, &p->o.semaphore, 1);
    return &w->f.sync.future;
}

static inline void inj_semaphore_give(struct inj_play *p)
{
    CHECK_EQ(blitz_semaphore_release(&p->o.semaphore, 1), 0);
}

static inline void inj_semaphore_close(struct inj_play *p)
{
    CHECK_EQ(blitz_semaphore_permits(&p->o.semaphore), 1);
    CHECK_EQ(blitz_semaphore_try_acquire(&p->o.semaphore, 1), 0);
}

static inline void inj_mutex_open(struct inj_play *p)
{
    blitz_mutex_init(&p->mutex);
    CHECK_EQ(blitz_mutex_try_lock(&p->mutex), 0);
}

static inline int inj_mutex_call(struct inj_play *p, struct inj_waiter *w)
{
    return blitz_mutex_lock(&p->mutex, w->until);
}

static inline blitz_future *inj_mutex_make(struct inj_play *p, struct inj_waiter *w)
{
    blitz_mutex_lock_future_init(&w->f.sync, &p->mutex);
    return &w->f.sync.future;
}

static inline void inj_mutex_give(struct inj_play *p)
{
    blitz_mutex_unlock(&p->mutex);
}

static inline void inj_mutex_close(struct inj_play *p)
{
    CHECK_EQ(blitz_mutex_try_lock(&p->mutex), 0);
}

static inline void inj_rwlock_open(struct inj_play *p)
{
    blitz_rwlock_init(&p->o.rwlock);
    CHECK_EQ(blitz_rwlock_try_write(&p->o.rwlock), 0);
}

static inline bool inj_reads(const struct inj_waiter *w)
{
    return w->number % 2;
}

static inline int inj_rwlock_call(struct inj_play *p, struct inj_waiter *w)
{
    return inj_reads(w) ? blitz_rwlock_read(&p->o.rwlock, w->until)
                        : blitz_rwlock_write(&p->o.rwlock, w->until);
}

static inline blitz_future *inj_rwlock_make(struct inj_play *p, struct inj_waiter *w)
{
    if (inj_reads(w))
        blitz_rwlock_read_future_init(&w->f.sync, &p->o.rwlock);
    else
        blitz_rwlock_write_future_init(&w->f.sync, &p->o.rwlock);
    return &w->f.sync.future;
}

static inline void inj_rwlock_fire(struct inj_play *p)
{
    blitz_rwlock_write_unlock(&p->o.rwlock);
}

static inline void inj_rwlock_close(struct inj_play *p)
{
    CHECK_EQ(blitz_rwlock_try_write(&p->o.rwlock), 0);
}

static inline void inj_notify_open(struct inj_play *p)
{
    blitz_notify_init(&p->o.notify);
}

static inline int inj_notify_call(struct inj_play *p, struct inj_waiter *w)
{
    return blitz_notify_wait(&p->o.notify, w->until);
}

static inline blitz_future *inj_notify_make(struct inj_play *p, struct inj_waiter *w)
{
    blitz_notify_wait_future_init(&w->f.sync, &p->o.notify);
    return &w->f.sync.future;
}

static inline void inj_notify_give(struct inj_play *p)
{
    blitz_notify_one(&p->o.notify);
}

static inline void inj_notify_close(struct inj_play *p)
{
    CHECK_EQ(blitz_notify_try_wait(&p->o.notify), 0);
}

/* ---- condition: a token that each waiter finds and signals again ---- */

static inline void inj_condition_open(struct inj_play *p)
{
    blitz_mutex_init(&p->mutex);
    blitz_condition_init(&p->condition);
    p->has_token = false;
}

/* With the mutex locked: the token is seen by the next waiter, too. */
static inline void inj_condition_got(struct inj_play *p)
{
    blitz_condition_signal(&p->condition);
    blitz_mutex_unlock(&p->mutex);
}

static inline int inj_condition_call(struct inj_play *p, struct inj_waiter *w)
{
    int err = blitz_mutex_lock(&p->mutex, w->until);
    if (err != 0)
        return err;
    while (err == 0 && !p->has_token)
        err = blitz_condition_wait(&p->condition, &p->mutex, w->until);
    if (err != 0)
        blitz_mutex_unlock(&p->mutex);
    return err;
}

static inline void inj_condition_fire(struct inj_play *p)
{
    CHECK_EQ(blitz_mutex_lock(&p->mutex, BLITZ_FOREVER), 0);
    p->has_token = true;
    blitz_condition_signal(&p->condition);
    blitz_mutex_unlock(&p->mutex);
}

static inline int inj_condition_await(struct inj_play *p, struct inj_waiter *w)
{
    blitz_mutex_lock_future_init(&w->f.sync, &p->mutex);
    int err = bz_await(p->os, &w->f.sync.future, w->until);
    if (err != 0)
        return err;
    while (!p->has_token) {
        blitz_condition_wait_future_init(&w->f.sync, &p->condition, &p->mutex);
        err = bz_await(p->os, &w->f.sync.future, w->until);
        if (err != 0)
            return err; /* the mutex is not locked */
    }
    return 0;
}

/* ---- gates: freed by the last waiter that leaves ---- */

static inline void inj_gate_alloc(struct inj_play *p)
{
    p->gate = malloc(sizeof *p->gate);
    CHECK_NOT_NULL(p->gate);
}

static inline void inj_latch_open(struct inj_play *p)
{
    inj_gate_alloc(p);
    blitz_latch_init(&p->gate->latch, 1);
}

static inline int inj_latch_call(struct inj_play *p, struct inj_waiter *w)
{
    return blitz_latch_wait(&p->gate->latch, w->until);
}

static inline blitz_future *inj_latch_make(struct inj_play *p, struct inj_waiter *w)
{
    blitz_latch_wait_future_init(&w->f.sync, &p->gate->latch);
    return &w->f.sync.future;
}

static inline void inj_latch_fire(struct inj_play *p)
{
    CHECK_EQ(blitz_latch_count_down(&p->gate->latch, 1), 0);
}

static inline void inj_event_open(struct inj_play *p)
{
    inj_gate_alloc(p);
    blitz_event_init(&p->gate->event);
}

static inline int inj_event_call(struct inj_play *p, struct inj_waiter *w)
{
    return blitz_event_wait(&p->gate->event, w->until);
}

static inline blitz_future *inj_event_make(struct inj_play *p, struct inj_waiter *w)
{
    blitz_event_wait_future_init(&w->f.sync, &p->gate->event);
    return &w->f.sync.future;
}

static inline void inj_event_fire(struct inj_play *p)
{
    blitz_event_set(&p->gate->event);
}

static inline void inj_group_open(struct inj_play *p)
{
    inj_gate_alloc(p);
    blitz_wait_group_init(&p->gate->group);
    CHECK_EQ(blitz_wait_group_add(&p->gate->group, 1), 0);
}

static inline int inj_group_call(struct inj_play *p, struct inj_waiter *w)
{
    return blitz_wait_group_wait(&p->gate->group, w->until);
}

static inline blitz_future *inj_group_make(struct inj_play *p, struct inj_waiter *w)
{
    blitz_wait_group_wait_future_init(&w->f.sync, &p->gate->group);
    return &w->f.sync.future;
}

static inline void inj_group_fire(struct inj_play *p)
{
    CHECK_EQ(blitz_wait_group_done(&p->gate->group), 0);
}

/* ---- barrier: the event is the last arrival ---- */

static inline void inj_barrier_open(struct inj_play *p)
{
    blitz_barrier_init(&p->o.barrier, p->plan->waiters + 1);
}

static inline int inj_barrier_call(struct inj_play *p, struct inj_waiter *w)
{
    int rc = blitz_barrier_wait(&p->o.barrier, w->until);
    return rc == BLITZ_BARRIER_LEADER ? 0 : rc;
}

static inline blitz_future *inj_barrier_make(struct inj_play *p, struct inj_waiter *w)
{
    blitz_barrier_wait_future_init(&w->f.sync, &p->o.barrier);
    return &w->f.sync.future;
}

static inline void inj_barrier_arrive(struct inj_play *p)
{
    int rc = blitz_barrier_wait(&p->o.barrier, BLITZ_FOREVER);
    CHECK(rc == 0 || rc == BLITZ_BARRIER_LEADER);
}

/* Come in the place of waiter 0, unless it was cancelled after all had come. */
static inline void inj_barrier_replace(struct inj_play *p)
{
    int rc;
    do
        rc = blitz_barrier_wait(&p->o.barrier, bz_os_now(p->os) + BLITZ_MS);
    while (rc == -ETIMEDOUT && !bz_load_relaxed(&p->has_fired)); /* relaxed: a flag */
}

/* ---- once: the first maker fails, and the turn passes on ---- */

static inline int inj_once_fails(void *arg, void **value)
{
    struct inj_play *p = arg;
    (void)value;
    blitz_event_set(&p->opened);
    inj_sleep_on(p->os, &p->made);
    return -EIO;
}

static inline int inj_once_makes(void *arg, void **value)
{
    *value = arg;
    return 0;
}

static inline void inj_once_open(struct inj_play *p)
{
    blitz_once_init(&p->o.once);
    bz_store_relaxed(&p->made, 0); /* relaxed: before any waiter begins */
}

static inline int inj_once_call(struct inj_play *p, struct inj_waiter *w)
{
    return blitz_once_get(&p->o.once, inj_once_makes, p, NULL, w->until);
}

static inline blitz_future *inj_once_make(struct inj_play *p, struct inj_waiter *w)
{
    blitz_once_get_future_init(&w->f.once, &p->o.once, inj_once_makes, p);
    return &w->f.once.future;
}

static inline void inj_once_fire(struct inj_play *p)
{
    inj_raise(p->os, &p->made);
}

/* ---- promise, token, timer, scope, join ---- */

static inline void inj_promise_open(struct inj_play *p)
{
    CHECK_EQ(blitz_promise_new(NULL, &p->promise, &p->completer), 0);
}

static inline int inj_promise_call(struct inj_play *p, struct inj_waiter *w)
{
    return blitz_promise_await(p->promise, NULL, w->until);
}

static inline blitz_future *inj_promise_make(struct inj_play *p, struct inj_waiter *w)
{
    blitz_promise_await_future_init(&w->f.promise, p->promise);
    return &w->f.promise.future;
}

static inline void inj_promise_fire(struct inj_play *p)
{
    CHECK_EQ(blitz_completer_complete(p->completer, p), 0);
    blitz_completer_unref(p->completer);
}

static inline void inj_promise_close(struct inj_play *p)
{
    blitz_promise_unref(p->promise);
}

static inline void inj_token_open(struct inj_play *p)
{
    CHECK_EQ(blitz_token_new(NULL, &p->token), 0);
}

static inline blitz_future *inj_token_make(struct inj_play *p, struct inj_waiter *w)
{
    blitz_token_wait_future_init(&w->f.token, p->token);
    return &w->f.token.future;
}

static inline void inj_token_fire(struct inj_play *p)
{
    blitz_token_cancel(p->token);
}

static inline void inj_token_close(struct inj_play *p)
{
    blitz_token_unref(p->token);
}

static inline void inj_timer_open(struct inj_play *p)
{
    blitz_timer_init(&p->o.timer, BLITZ_FOREVER);
}

static inline blitz_future *inj_timer_make(struct inj_play *p, struct inj_waiter *w)
{
    (void)w;
    return &p->o.timer.future;
}

static inline void inj_timer_fire(struct inj_play *p)
{
    blitz_timer_reset(&p->o.timer, bz_os_now(p->os));
}

static inline int inj_ends(void *arg)
{
    return blitz_event_wait(&((struct inj_play *)arg)->o.may_end, BLITZ_FOREVER);
}

static inline void inj_ends_open(struct inj_play *p)
{
    blitz_event_init(&p->o.may_end);
}

static inline void inj_ends_fire(struct inj_play *p)
{
    blitz_event_set(&p->o.may_end);
}

/* The closer opens it: its task, or its thread. */
static inline void inj_scope_begin(struct inj_play *p, struct inj_waiter *w)
{
    blitz_deadline until =
        bz_rng_below(&w->rng, 2) ? BLITZ_FOREVER : bz_os_now(p->os) + 3600 * BLITZ_S;
    CHECK_EQ(blitz_scope_open(&p->scope, &(blitz_scope_opts){.runtime = p->rt}, until), 0);
    for (uint32_t i = 1 + bz_rng_below(&w->rng, 3); i > 0; i--)
        CHECK_EQ(blitz_scope_spawn(&p->scope, inj_ends, p, NULL), 0);
}

static inline int inj_scope_call(struct inj_play *p, struct inj_waiter *w)
{
    inj_scope_begin(p, w);
    return blitz_scope_close(&p->scope);
}

static inline blitz_future *inj_scope_make(struct inj_play *p, struct inj_waiter *w)
{
    inj_scope_begin(p, w);
    return &p->scope.future;
}

static inline blitz_future *inj_join_make(struct inj_play *p, struct inj_waiter *w)
{
    CHECK_EQ(blitz_spawn(inj_ends, p, &(blitz_spawn_opts){.runtime = p->rt}, &p->child), 0);
    blitz_task_join_linked_future_init(&w->f.join, p->child);
    return &w->f.join.future;
}

/* ---- broadcast, watch ---- */

static inline void inj_broadcast_open(struct inj_play *p)
{
    CHECK_EQ(blitz_broadcast_new(sizeof(int), 2, &p->broadcast), 0);
    for (unsigned i = 0; i < p->plan->waiters; i++)
        blitz_broadcast_subscribe(p->broadcast, &p->waiter[i].rx);
}

static inline int inj_broadcast_call(struct inj_play *p, struct inj_waiter *w)
{
    (void)p;
    return blitz_broadcast_recv(&w->rx, &w->value, NULL, w->until);
}

static inline blitz_future *inj_broadcast_make(struct inj_play *p, struct inj_waiter *w)
{
    (void)p;
    blitz_broadcast_recv_future_init(&w->f.broadcast, &w->rx, &w->value);
    return &w->f.broadcast.future;
}

static inline void inj_broadcast_fire(struct inj_play *p)
{
    CHECK_EQ(blitz_broadcast_send(p->broadcast, &(int){1}), 0);
}

static inline void inj_broadcast_close(struct inj_play *p)
{
    for (unsigned i = 0; i < p->plan->waiters; i++)
        blitz_broadcast_unsubscribe(&p->waiter[i].rx);
    blitz_broadcast_unref(p->broadcast);
}

static inline void inj_watch_open(struct inj_play *p)
{
    CHECK_EQ(blitz_watch_new(sizeof(int), &(int){0}, &p->watch), 0);
    for (unsigned i = 0; i < p->plan->waiters; i++)
        p->waiter[i].seen = blitz_watch_get(p->watch, &p->waiter[i].value);
}

static inline int inj_watch_call(struct inj_play *p, struct inj_waiter *w)
{
    return blitz_watch_recv(p->watch, &w->value, &w->seen, w->until);
}

static inline blitz_future *inj_watch_make(struct inj_play *p, struct inj_waiter *w)
{
    blitz_watch_recv_future_init(&w->f.watch, p->watch, &w->value, &w->seen);
    return &w->f.watch.future;
}

static inline void inj_watch_fire(struct inj_play *p)
{
    CHECK_EQ(blitz_watch_send(p->watch, &(int){1}), 0);
}

static inline void inj_watch_close(struct inj_play *p)
{
    blitz_watch_unref(p->watch);
}

/* ---- senders that wait until no receiver is left ---- */

static inline void inj_chan_end_open(struct inj_play *p)
{
    CHECK_EQ(blitz_chan_new(sizeof(int), 1, NULL, &p->chan), 0);
}

static inline int inj_chan_end_call(struct inj_play *p, struct inj_waiter *w)
{
    return blitz_chan_wait_closed(p->chan, w->until);
}

static inline blitz_future *inj_chan_end_make(struct inj_play *p, struct inj_waiter *w)
{
    blitz_chan_wait_closed_future_init(&w->f.closed, p->chan);
    return &w->f.closed.future;
}

static inline void inj_chan_end_fire(struct inj_play *p)
{
    blitz_chan_close(p->chan);
}

static inline void inj_chan_end_close(struct inj_play *p)
{
    blitz_chan_unref(p->chan);
}

/* The end of the receiver is freed while the waiters return. */
static inline void inj_oneshot_end_open(struct inj_play *p)
{
    CHECK_EQ(blitz_oneshot_new(sizeof(int), NULL, &p->oneshot), 0);
}

static inline int inj_oneshot_end_call(struct inj_play *p, struct inj_waiter *w)
{
    return blitz_oneshot_wait_closed(p->oneshot, w->until);
}

static inline blitz_future *inj_oneshot_end_make(struct inj_play *p, struct inj_waiter *w)
{
    blitz_oneshot_wait_closed_future_init(&w->f.closed, p->oneshot);
    return &w->f.closed.future;
}

static inline void inj_oneshot_end_fire(struct inj_play *p)
{
    blitz_oneshot_receiver_drop(p->oneshot);
}

static inline void inj_oneshot_end_close(struct inj_play *p)
{
    CHECK_EQ(blitz_oneshot_send(p->oneshot, &(int){1}), -EPIPE);
}

static inline void inj_last_receiver_open(struct inj_play *p)
{
    CHECK_EQ(blitz_watch_new(sizeof(int), &(int){0}, &p->watch), 0);
    blitz_watch_receiver_add(p->watch);
}

static inline int inj_last_receiver_call(struct inj_play *p, struct inj_waiter *w)
{
    return blitz_watch_wait_closed(p->watch, w->until);
}

static inline blitz_future *inj_last_receiver_make(struct inj_play *p, struct inj_waiter *w)
{
    blitz_watch_wait_closed_future_init(&w->f.closed, p->watch);
    return &w->f.closed.future;
}

static inline void inj_last_receiver_fire(struct inj_play *p)
{
    blitz_watch_receiver_drop(p->watch);
}

/* ---- the table ---- */

static const struct inj_kind inj_kinds[] = {
    {"semaphore", inj_semaphore_open, inj_semaphore_close, inj_semaphore_call, inj_semaphore_make,
     inj_semaphore_give, inj_semaphore_give, NULL, 12, true},
    {"mutex", inj_mutex_open, inj_mutex_close, inj_mutex_call, inj_mutex_make, inj_mutex_give,
     inj_mutex_give, NULL, 4, true},
    {"rwlock", inj_rwlock_open, inj_rwlock_close, inj_rwlock_call, inj_rwlock_make, inj_rwlock_fire,
     NULL, NULL, 12, true},
    {"notify", inj_notify_open, inj_notify_close, inj_notify_call, inj_notify_make, inj_notify_give,
     inj_notify_give, NULL, 4, true},
    {"condition", inj_condition_open, NULL, inj_condition_call, NULL, inj_condition_fire,
     inj_condition_got, NULL, 4, true},
    {"latch", inj_latch_open, NULL, inj_latch_call, inj_latch_make, inj_latch_fire, NULL, NULL,
     INJ_WAITERS, true},
    {"event", inj_event_open, NULL, inj_event_call, inj_event_make, inj_event_fire, NULL, NULL,
     INJ_WAITERS, true},
    {"wait group", inj_group_open, NULL, inj_group_call, inj_group_make, inj_group_fire, NULL, NULL,
     INJ_WAITERS, true},
    {"barrier", inj_barrier_open, NULL, inj_barrier_call, inj_barrier_make, inj_barrier_arrive,
     NULL, inj_barrier_replace, 12, false},
    {"once", inj_once_open, NULL, inj_once_call, inj_once_make, inj_once_fire, NULL, NULL, 12,
     true},
    {"promise", inj_promise_open, inj_promise_close, inj_promise_call, inj_promise_make,
     inj_promise_fire, NULL, NULL, 12, true},
    {"token", inj_token_open, inj_token_close, NULL, inj_token_make, inj_token_fire, NULL, NULL, 12,
     true},
    {"broadcast", inj_broadcast_open, inj_broadcast_close, inj_broadcast_call, inj_broadcast_make,
     inj_broadcast_fire, NULL, NULL, INJ_WAITERS, true},
    {"watch", inj_watch_open, inj_watch_close, inj_watch_call, inj_watch_make, inj_watch_fire, NULL,
     NULL, INJ_WAITERS, true},
    {"end of a channel", inj_chan_end_open, inj_chan_end_close, inj_chan_end_call,
     inj_chan_end_make, inj_chan_end_fire, NULL, NULL, INJ_WAITERS, true},
    {"end of a oneshot", inj_oneshot_end_open, inj_oneshot_end_close, inj_oneshot_end_call,
     inj_oneshot_end_make, inj_oneshot_end_fire, NULL, NULL, INJ_WAITERS, true},
    {"last receiver", inj_last_receiver_open, inj_watch_close, inj_last_receiver_call,
     inj_last_receiver_make, inj_last_receiver_fire, NULL, NULL, INJ_WAITERS, true},
    {"timer", inj_timer_open, NULL, NULL, inj_timer_make, inj_timer_fire, NULL, NULL, 1, false},
    {"scope", inj_ends_open, NULL, inj_scope_call, inj_scope_make, inj_ends_fire, NULL, NULL, 1,
     false},
    {"join", inj_ends_open, NULL, NULL, inj_join_make, inj_ends_fire, NULL, NULL, 1, false},
};

/* ---- waiting ---- */

/* Wrap the future as the plan says. */
static inline blitz_future *inj_wrap(struct inj_waiter *w, blitz_future *f)
{
    w->child[0] = (blitz_child){.future = f};
    w->child[1] = (blitz_child){.future = blitz_pending_future()};
    switch (w->play->plan->wrap[w->number]) {
    case INJ_RACE:
        CHECK_EQ(blitz_race_init(&w->wrapped.race, w->child, 2), 0);
        return &w->wrapped.race.future;
    case INJ_TIMEOUT:
        CHECK_EQ(
            blitz_timeout_init(&w->wrapped.timeout, f, bz_os_now(w->play->os) + 3600 * BLITZ_S), 0);
        return &w->wrapped.timeout.future;
    case INJ_ALL:
        CHECK_EQ(blitz_all_init(&w->wrapped.all, w->child, 1, BLITZ_FAIL_FAST), 0);
        return &w->wrapped.all.future;
    default:
        return f;
    }
}

/* The waiter has returned. The last one frees the gate. */
static inline void inj_left(struct inj_waiter *w, int result)
{
    struct inj_play *p = w->play;
    CHECK(result == 0 || result == -ECANCELED ||
          (result == -ETIMEDOUT && w->until != BLITZ_FOREVER));
    w->result = result;
    if (result == 0 && p->plan->kind == &inj_kinds[2]) { /* a rwlock: as reader or writer */
        if (inj_reads(w))
            blitz_rwlock_read_unlock(&p->o.rwlock);
        else
            blitz_rwlock_write_unlock(&p->o.rwlock);
    } else if (result == 0 && p->plan->kind->got != NULL) {
        p->plan->kind->got(p);
    }
    union inj_gate *gate = p->gate;
    if (bz_fetch_sub_acqrel(&p->inside, 1) == 1 &&
        gate != NULL) { /* the others' uses came before */
        memset(gate, 0xa5, sizeof *gate);
        free(gate);
    }
}

static inline void inj_wait(struct inj_waiter *w)
{
    struct inj_play *p = w->play;
    const struct inj_kind *kind = p->plan->kind;
    enum inj_form form = p->plan->form[w->number];
    bool calls = form == INJ_CALL || form == INJ_THREAD_CALL;
    if (calls && kind->call != NULL)
        inj_left(w, kind->call(p, w));
    else if (kind->make == NULL)
        inj_left(w, inj_condition_await(p, w));
    else
        inj_left(w, bz_await(p->os, inj_wrap(w, kind->make(p, w)), w->until));
}

static inline int inj_wait_in_task(void *arg)
{
    inj_wait(arg);
    return 0;
}

static inline void inj_wait_on_thread(void *arg)
{
    inj_wait(arg);
}

struct inj_state {
    blitz_frame frame;
    struct inj_waiter *w;
    blitz_future *f;
};

static inline blitz_poll inj_wait_by_poll(void *state, blitz_cx *cx)
{
    struct inj_state *s = state;
    struct inj_waiter *w = s->w;
    struct inj_play *p = w->play;
    int rc;
    BLITZ_BEGIN(&s->frame, cx);
    if (p->plan->kind->make == NULL) {
        blitz_mutex_lock_future_init(&w->f.sync, &p->mutex);
        BLITZ_AWAIT_UNTIL(rc, &w->f.sync.future, &w->timer, w->until);
        while (rc == 0 && !p->has_token) {
            blitz_condition_wait_future_init(&w->f.sync, &p->condition, &p->mutex);
            BLITZ_AWAIT_UNTIL(rc, &w->f.sync.future, &w->timer, w->until);
        }
    } else {
        s->f = inj_wrap(w, p->plan->kind->make(p, w));
        BLITZ_AWAIT_UNTIL(rc, s->f, &w->timer, w->until);
    }
    inj_left(w, rc);
    BLITZ_END(0);
}

static inline bool inj_is_thread(enum inj_form form)
{
    return form >= INJ_THREAD_CALL;
}

static inline void inj_begin(struct inj_waiter *w)
{
    struct inj_play *p = w->play;
    enum inj_form form = p->plan->form[w->number];
    struct inj_state state = {.w = w};
    if (inj_is_thread(form))
        CHECK_EQ(bz_os_thread_start(p->os, &w->thread, NULL, inj_wait_on_thread, w), 0);
    else if (form == INJ_POLL)
        CHECK_EQ(blitz_spawn_poll(inj_wait_by_poll, &state, sizeof state, NULL, &w->task), 0);
    else
        CHECK_EQ(blitz_spawn(inj_wait_in_task, w, NULL, &w->task), 0);
}

/* ---- the event and the cancel ---- */

static inline void inj_fires(void *arg)
{
    struct inj_play *p = arg;
    const struct inj_kind *kind = p->plan->kind;
    if (kind->open == inj_once_open) { /* the event is the end of its own call */
        CHECK_EQ(blitz_once_get(&p->o.once, inj_once_fails, p, NULL, BLITZ_FOREVER), -EIO);
        return;
    }
    blitz_event_set(&p->opened);
    inj_sleep_on(p->os, p->plan->pokes_cancel ? &p->timed : p->poked);
    kind->fire(p);
    bz_store_relaxed(&p->has_fired, true); /* relaxed: a flag */
}

static inline void inj_opens_and_fires(void *arg)
{
    struct inj_play *p = arg;
    p->plan->kind->open(p);
    inj_fires(p);
}

static inline void inj_cancels(void *arg)
{
    struct inj_play *p = arg;
    inj_sleep_on(p->os, p->plan->pokes_cancel ? p->poked : &p->timed);
    if (p->first != NULL)
        blitz_task_cancel(p->first);
}

/* A moment: in virtual time, or a few turns of the others. */
static inline void inj_pause(struct inj_play *p)
{
    if (!p->is_real) {
        CHECK_EQ(blitz_sleep(bz_rng_below(&p->rng, 8) * BLITZ_US), 0);
        return;
    }
    for (uint32_t i = bz_rng_below(&p->rng, 8); i > 0; i--)
        blitz_yield();
}

static inline void inj_deadlines(struct inj_play *p)
{
    for (unsigned i = 0; i < p->plan->waiters; i++) {
        struct inj_waiter *w = &p->waiter[i];
        bool may_give_up = p->plan->kind->has_deadlines && i > 0 && i + 1 < p->plan->waiters;
        w->until = may_give_up && bz_rng_below(&p->rng, 2)
                       ? bz_os_now(p->os) + bz_rng_below(&p->rng, 12) * BLITZ_US
                       : BLITZ_FOREVER;
    }
}

static inline int inj_first_task(void *arg)
{
    struct inj_play *p = arg;
    struct bz_os_thread firer, canceller;
    bool has_cancel = p->plan->has_cancel && !inj_is_thread(p->plan->form[0]);
    CHECK_EQ(bz_os_thread_start(p->os, &firer, NULL, inj_opens_and_fires, p), 0);
    CHECK_EQ(blitz_event_wait(&p->opened, BLITZ_FOREVER), 0);
    if (p->gate != NULL && p->plan->waiters == 1)
        has_cancel = false; /* a waiter that gave up may not free it: the opener may come yet */
    inj_deadlines(p);
    for (unsigned i = 0; i < p->plan->waiters; i++)
        inj_begin(&p->waiter[i]);
    p->first = has_cancel ? p->waiter[0].task : NULL;
    CHECK_EQ(bz_os_thread_start(p->os, &canceller, NULL, inj_cancels, p), 0);
    inj_pause(p);
    if (p->plan->kind->open == inj_once_open)
        inj_once_fire(p);
    inj_raise(p->os, &p->timed);
    inj_pause(p);
    inj_raise(p->os, p->poked); /* unless it was before */
    CHECK_EQ(bz_os_thread_join(p->os, &canceller), 0);
    for (unsigned i = 0; i < p->plan->waiters; i++) {
        struct inj_waiter *w = &p->waiter[i];
        if (inj_is_thread(p->plan->form[i]))
            continue;
        CHECK_EQ(blitz_task_join(w->task, NULL, BLITZ_FOREVER), 0);
        if (i == 0 && w->result != 0 && p->plan->kind->gave_up != NULL)
            p->plan->kind->gave_up(p);
    }
    for (unsigned i = 0; i < p->plan->waiters; i++)
        if (inj_is_thread(p->plan->form[i]))
            CHECK_EQ(bz_os_thread_join(p->os, &p->waiter[i].thread), 0);
    CHECK_EQ(bz_os_thread_join(p->os, &firer), 0);
    if (p->plan->waiters > 1)
        CHECK_EQ(p->waiter[p->plan->waiters - 1].result, 0);
    if (p->plan->kind->close != NULL)
        p->plan->kind->close(p);
    return 0;
}

/* ---- a play ---- */

static inline struct inj_plan inj_plan_of(uint64_t seed)
{
    struct inj_plan plan = {.seed = seed};
    struct bz_rng rng;
    bz_rng_init(&rng, seed);
    plan.kind = &inj_kinds[bz_rng_below(&rng, (uint32_t)BZ_ARRAY_LEN(inj_kinds))];
    plan.waiters = 1 + bz_rng_below(&rng, plan.kind->waiters_max);
    plan.has_cancel = bz_rng_below(&rng, 4) != 0;
    plan.pokes_cancel = plan.has_cancel && bz_rng_below(&rng, 2);
    bool is_mixed = bz_rng_below(&rng, 2); /* else mostly futures of stackless tasks */
    for (unsigned i = 0; i < plan.waiters; i++) {
        plan.form[i] = is_mixed ? (enum inj_form)bz_rng_below(&rng, INJ_FORMS) : INJ_POLL;
        plan.wrap[i] = (enum inj_wrap)bz_rng_below(&rng, INJ_WRAPS);
    }
    return plan;
}

static inline void inj_play(const struct bz_os *os, const struct inj_plan *plan, unsigned procs,
                            bz_os_word *poked, bool is_real)
{
    struct inj_play *p = calloc(1, sizeof *p);
    struct bz_runtime *rt;
    CHECK_NOT_NULL(p);
    p->os = os;
    p->plan = plan;
    p->is_real = is_real;
    p->poked = poked;
    bz_rng_init(&p->rng, plan->seed ^ 0x9e37);
    bz_atomic_init(&p->timed, 0);
    bz_atomic_init(&p->has_fired, false);
    bz_atomic_init(&p->inside, plan->waiters);
    blitz_event_init(&p->opened);
    for (unsigned i = 0; i < plan->waiters; i++) {
        p->waiter[i].play = p;
        p->waiter[i].number = i;
        bz_rng_init(&p->waiter[i].rng, plan->seed + i);
    }
    CHECK_EQ(bz_runtime_new(os, &(blitz_runtime_opts){.procs = procs}, &rt), 0);
    p->rt = (blitz_runtime *)rt;
    CHECK_EQ(blitz_runtime_block_on(p->rt, inj_first_task, p), 0);
    CHECK_EQ(blitz_runtime_shutdown(p->rt, BLITZ_FOREVER), 0);
    CHECK_EQ(blitz_runtime_unref(p->rt), 0);
    free(p);
}

#endif
