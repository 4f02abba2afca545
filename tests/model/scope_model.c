/*
 * scope_model.c - a close hears of the last task, and touches nothing after it.
 *
 *   covers: src/future/scope.c
 *   needs: src/os/lock.c src/base/list.c src/task/word.c
 *   defines: BZ_LOCK_SPINS=1
 *
 * The closer is a thread that polls and sleeps on a word which its waker sets (what await.c does). A task
 * of the scope is a thread that runs its poll function. The deadline is a toy: a third thread may wake
 * the scope's watch at any moment. The scope's memory is freed when the close has returned.
 */
#include "model.h"

#include <errno.h>
#include <string.h>

#include "blitz/futures.h"
#include "blitz/poll.h"
#include "blitz/scope.h"
#include "life/spawn.h"
#include "model_os.h"
#include "os/lock.h"
#include "park/await.h"
#include "wait/wait.h"
#include "wait/waker.h"
#include "waker_toy.h"

static void *watched_alloc(void *ctx, size_t size, size_t align)
{
    return m_allocator.alloc(ctx, size, align);
}

static void watched_free(void *ctx, void *memory, size_t size)
{
    m_allocator.free(ctx, memory, size);
}

const blitz_allocator bz_allocator_libc = {watched_alloc, watched_free, NULL};

const struct bz_os *bz_os_here(void)
{
    return &m_os;
}

uint64_t blitz_now(void)
{
    return bz_os_now(&m_os);
}

/* ---- tasks: thread 2 is one ---- */

/* No task here has a local. */
void bz_locals_destroy(struct bz_task *t)
{
    (void)t;
    m_assert(false);
}

static struct bz_runtime toy_runtime;
static struct bz_task toy_task;
static struct {
    blitz_poll (*poll)(void *state, blitz_cx *cx);
    _Alignas(max_align_t) char state[64];
} toy_member;
static bz_atomic(int) cancels;
static int task_thread; /* the thread that is the task: 2, or the body */

struct bz_runtime *bz_runtime_for(const blitz_spawn_opts *opts)
{
    (void)opts;
    return &toy_runtime;
}

int bz_spawn_poll(const struct bz_task_ops *ops, blitz_poll (*poll)(void *state, blitz_cx *cx),
                  const void *state, size_t bytes, const blitz_spawn_opts *opts, blitz_task **out)
{
    (void)ops;
    (void)opts;
    (void)out;
    m_assert(bytes <= sizeof toy_member.state);
    toy_member.poll = poll;
    memcpy(toy_member.state, state, bytes);
    return 0;
}

/* The functions of a task: no machine runs one here, and no machine looks for a host (host.c). */
const blitz_waker_ops bz_task_waker;

enum bz_ran bz_poll_run(struct bz_task *t)
{
    (void)t;
    m_assert(!"run");
    return BZ_RAN_DONE;
}

void bz_poll_drop(struct bz_task *t)
{
    (void)t;
    m_assert(!"dropped");
}

uintptr_t bz_poll_begun_in(const struct bz_task *t)
{
    (void)t;
    return 0;
}

void *bz_poll_state(struct bz_task *t)
{
    (void)t;
    m_assert(!"looked for");
    return NULL;
}

int blitz_spawn(int (*fn)(void *arg), void *arg, const blitz_spawn_opts *opts, blitz_task **out)
{
    (void)fn;
    (void)arg;
    (void)opts;
    (void)out;
    m_assert(!"a fiber");
    return 0;
}

blitz_task *blitz_task_current(void)
{
    return m_self() == task_thread ? (blitz_task *)&toy_task : NULL;
}

void blitz_task_cancel(blitz_task *t)
{
    (void)t;
    bz_fetch_add_relaxed(&cancels, 1);
}

bool bz_task_cancel_mark(struct bz_task *t)
{
    (void)t;
    return true;
}

void bz_task_cancel_barrier(struct bz_runtime *rt)
{
    (void)rt;
}

void bz_task_cancel_deliver(struct bz_task *t)
{
    (void)t;
    bz_fetch_add_relaxed(&cancels, 1);
}

/* ---- the deadline: a waker that a thread may take and wake ---- */

static struct bz_lock watch_lock;
static blitz_waker watch_waker; /* guarded by it, as is */
static bool is_watching;

static blitz_waker take_watch(void)
{
    bz_lock_take(&watch_lock, &m_os);
    blitz_waker w = is_watching ? watch_waker : (blitz_waker){NULL, NULL};
    is_watching = false;
    bz_lock_drop(&watch_lock, &m_os);
    return w;
}

static blitz_poll toy_sleep_poll(blitz_future *f, const blitz_waker *waker)
{
    (void)f;
    watch_waker = blitz_waker_clone(waker); /* before any thread runs */
    is_watching = true;
    return BLITZ_PENDING;
}

static void toy_sleep_cancel(blitz_future *f)
{
    (void)f;
    blitz_waker w = take_watch();
    blitz_waker_drop(&w);
}

void blitz_sleep_until_future_init(blitz_sleep_future *f, blitz_deadline when)
{
    static const blitz_future_ops ops = {"sleep", BLITZ_REVOCABLE, toy_sleep_poll, toy_sleep_cancel,
                                         NULL};
    f->future.ops = &ops;
    f->when = when;
}

void blitz_token_wait_future_init(blitz_token_future *f, blitz_token *t)
{
    (void)f;
    (void)t;
    m_assert(!"a token");
}

/* ---- the closer ---- */

static bz_os_word rung;

static void ring_nothing(void *data)
{
    (void)data;
}

static void ring_wake(void *data)
{
    (void)data;
    bz_store_release(&rung, 1);
    m_word_wake(&rung, 1);
}

int bz_await(const struct bz_os *os, blitz_future *f, blitz_deadline until)
{
    static const blitz_waker_ops ops = {ring_nothing, ring_wake, ring_wake, ring_nothing};
    blitz_waker w = {&ops, NULL};
    (void)os;
    (void)until;
    while (f->ops->poll(f, &w) == BLITZ_PENDING) {
        while (!bz_load_acquire(&rung))
            m_word_wait(&rung, 0);
        bz_store_release(&rung, 0);
    }
    return 0;
}

/* ---- cases ---- */

static blitz_scope *scope;
static int outcome;

static int returns(void *arg)
{
    return (int)(intptr_t)arg;
}

static void given(blitz_deadline until, int result)
{
    scope = m_alloc(sizeof *scope);
    outcome = 1;
    task_thread = 2;
    bz_atomic_init(&cancels, 0);
    bz_atomic_init(&rung, 0);
    bz_lock_init(&watch_lock);
    is_watching = false;
    m_settings()->spurious = 0;
    m_settings()->spin_tries = 1;
    bz_word_init(&toy_task.word, BZ_RUNNING, 2);
    m_assert(blitz_scope_open(scope, NULL, until) == 0);
    m_assert(blitz_scope_spawn(scope, returns, (void *)(intptr_t)result, NULL) == 0);
}

static void closes(void)
{
    outcome = blitz_scope_close(scope);
    m_free(scope);
}

static void task_ends(void)
{
    blitz_cx cx = {.result = 0};
    m_assert(toy_member.poll(toy_member.state, &cx) == BLITZ_READY);
}

static void time_is_over(void)
{
    blitz_waker w = take_watch();
    blitz_waker_wake(&w);
}

/* Wherever in a poll of the closer the last task ends, the closer hears of it. */
MODEL(scope, bug_50_a_close_hears_of_the_last_task)
{
    given(BLITZ_FOREVER, 0);
    m_threads(closes, task_ends);
    m_assert(outcome == 0);
}

/* A failure is returned. */
MODEL(scope, an_error_is_returned)
{
    given(BLITZ_FOREVER, -EIO);
    m_threads(closes, task_ends);
    m_assert(outcome == -EIO);
}

/* The deadline's waker may be in flight when the close takes the watch down: the scope waits for it. */
MODEL(scope, a_deadline_meets_the_end)
{
    given(1000, 0);
    task_thread = m_self();
    task_ends(); /* in the body: before the threads */
    task_thread = 2;
    m_threads(closes, time_is_over);
    m_assert(outcome == 0 || outcome == -ETIMEDOUT);
    m_sometimes(outcome == 0);
    m_sometimes(outcome == -ETIMEDOUT);
}
