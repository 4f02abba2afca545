/*
 * stackless.c - stackless tasks: a task whose `run` calls a poll function.
 *
 * One object holds everything: the header, the poll function, the options that were given, and a copy of the
 * state.
 *
 *     | struct bz_task | poll | drop_state? | drop_result? | ctx? | (8 bytes) | state ...
 *
 * An option that was not given takes no room. The alignment of the state's type is not known. But the size of a type
 * is a multiple of its alignment, so a size that is no multiple of 16 needs an alignment of 8 at most. Only the
 * other states are moved up to a multiple of 16. So a state that is only a frame (8 bytes) needs 128 bytes in all. A
 * state that is larger than a slab's objects is allocated separately, and freed as soon as it was dropped. A task with at
 * most 8 bytes of state and without options is *small*: it takes the header of a fiber (quick_spawn.h).
 *
 * The scheduler acts on the result of a poll: "pending" parks the task, without a stack; a
 * yield puts it at the end of the queue; "ready" ends it. The state's drop function and the
 * destructors of its locals run in the task, after its last poll, and may wait like any other code.
 *
 * The swallowed wake. A poll may wait in the ordinary way. Its task has one state word. If the task is parked inside
 * the poll behind a waker and a wake comes, the wake ends that wait for a moment, or its park consumes it. But
 * the wake may have been meant for the poll: the poll asked a future before the wait, and returns "pending" without
 * asking again. So if the task left its stack during a poll, "pending" means: poll once more. That may be one poll
 * too many, never one too few. (A wait with its own arbiter, wait.h, takes no such wake; it is treated the same.)
 *
 * I1  After the last poll only the drop function touches the state. The memory stays until
 *     the last waker and handle are gone.
 */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "base/log.h"
#include "blitz/poll.h"
#include "life/escape.h"
#include "life/handle.h"
#include "life/quick_spawn.h"
#include "life/spawn.h"
#include "life/stacks.h"
#include "proc/enter.h"
#include "proc/state.h"
#include "wait/waker.h"

union hook {
    bz_drop_fn *drop;
    void *ctx;
};

struct bz_poll_task {
    struct bz_task task;
    blitz_poll (*poll)(void *state, blitz_cx *cx);
    union hook hook[]; /* those given, in this order: drop_state, drop_result; then their ctx */
};

/* Its own traits. */
enum {
    HAS_DROP = BZ_TASK_OWN,
    HAS_FREE = 2 * BZ_TASK_OWN,
    IS_PADDED = 4 * BZ_TASK_OWN,
    IS_FAR = 8 * BZ_TASK_OWN
};

/* Replaces a state that is too large for the object. */
struct far {
    void *state; /* NULL: freed */
    size_t bytes;
};

static_assert(sizeof(blitz_waker) == 2 * sizeof(void *), "a waker is 16 bytes");
#if !defined(BZ_WATCH) && !defined(BZ_DEBUG)
static_assert(sizeof(struct bz_poll_task) + sizeof(blitz_frame) <= 128, "about a hundred bytes");
#endif
static_assert(sizeof(blitz_frame) == 8, "a frame fits behind the header");

/* The bytes of a state that fits into the header of a fiber. */
enum { SMALL = sizeof(struct bz_fiber) - sizeof(struct bz_poll_task) };
static_assert(SMALL == sizeof(blitz_frame), "a frame is small");

static unsigned hook_count(unsigned traits)
{
    unsigned drops = (traits & HAS_DROP ? 1u : 0u) + (traits & HAS_FREE ? 1u : 0u);
    return drops > 0 ? drops + 1 : 0;
}

static size_t state_at(unsigned traits)
{
    size_t at = sizeof(struct bz_poll_task) + hook_count(traits) * sizeof(union hook);
    return at + (traits & IS_PADDED ? 8 : 0);
}

/* The address of the state: state_at of its traits, kept in `place` in units of 8. */
static void *place_of(struct bz_poll_task *p)
{
    return (char *)p + (size_t)bz_load_relaxed(&p->task.place) * 8; /* relaxed: constant */
}

static struct far *far_of(struct bz_poll_task *p)
{
    return place_of(p);
}

static void *state_of(struct bz_poll_task *p)
{
    return BZ_UNLIKELY(p->task.traits & IS_FAR) ? far_of(p)->state : place_of(p);
}

static void free_far(struct bz_poll_task *p)
{
    if (!(p->task.traits & IS_FAR))
        return;
    struct far *far = far_of(p);
    bz_free(&p->task.rt->alloc, far->state, far->bytes);
    far->state = NULL;
}

/* The ctx of a task that has one of the two drop functions. */
static void *ctx_of(const struct bz_poll_task *p)
{
    return p->hook[hook_count(p->task.traits) - 1].ctx;
}

static bz_drop_fn *drop_of_state(const struct bz_poll_task *p)
{
    return p->hook[0].drop;
}

static bz_drop_fn *drop_of_result(const struct bz_poll_task *p)
{
    return p->hook[hook_count(p->task.traits) - 2].drop;
}

/* ---- running ---- */

static enum bz_ran end(struct bz_poll_task *p, const blitz_cx *cx)
{
    struct bz_task *t = &p->task;
    if (t->traits & HAS_DROP)
        drop_of_state(p)(state_of(p), ctx_of(p)); /* I1 */
    free_far(p);
    t->result = cx->pointer != NULL ? 0 : cx->result; /* a local may look at it: actor/receive.c */
    bz_locals_end(t);
    if (cx->pointer != NULL) {
        t->marks |= BZ_MARK_POINTER;
        t->pointer = cx->pointer;
    }
    return BZ_RAN_DONE;
}

BZ_NOINLINE enum bz_ran bz_poll_run(struct bz_task *t)
{
    BZ_STOP_EXCEPTIONS();
    struct bz_poll_task *p = BZ_CONTAINER_OF(t, struct bz_poll_task, task);
    blitz_waker waker = {&bz_task_waker, t}; /* borrowed: the task runs, so it is alive */
    blitz_cx cx = {&waker, 0, 0, NULL};
    t->marks = 0;
    if (p->poll(state_of(p), &cx) == BLITZ_READY)
        return end(p, &cx);
    if (t->marks & BZ_MARK_WAITED)
        return BZ_RAN_AGAIN; /* a wake may have been swallowed */
    return cx.again ? BZ_RAN_AGAIN : BZ_RAN_PENDING;
}

void bz_poll_drop(struct bz_task *t)
{
    struct bz_poll_task *p = BZ_CONTAINER_OF(t, struct bz_poll_task, task);
    free_far(p); /* if the task was never started */
    if (t->traits & HAS_FREE)
        bz_task_drop_pointer(t, drop_of_result(p), ctx_of(p));
    bz_task_free(t);
}

uintptr_t bz_poll_begun_in(const struct bz_task *t)
{
    return (uintptr_t)BZ_CONTAINER_OF(t, const struct bz_poll_task, task)->poll;
}

static const struct bz_task_ops poll_ops = {
    .kind = "poll", .run = bz_poll_run, .drop = bz_poll_drop, .begun_in = bz_poll_begun_in};

/* Of a small task: its header came from the ready ones (quick_spawn.h), and returns to them as a fiber's. */
static void small_drop(struct bz_task *t)
{
    t->ops = &bz_fiber_ops;
    bz_ready_drop(t);
}

static const struct bz_task_ops small_ops = {
    .kind = "poll", .run = bz_poll_run, .drop = small_drop, .begun_in = bz_poll_begun_in};

void *bz_poll_state(struct bz_task *t)
{
    return state_of(BZ_CONTAINER_OF(t, struct bz_poll_task, task));
}

void *bz_poll_state_if(struct bz_task *t, blitz_poll (*poll)(void *state, blitz_cx *cx))
{
    struct bz_poll_task *p = BZ_CONTAINER_OF(t, struct bz_poll_task, task);
    bool is_plain = t->ops == &poll_ops || t->ops == &small_ops;
    return is_plain && p->poll == poll ? state_of(p) : NULL;
}

/* ---- making ---- */

static unsigned traits_for(const blitz_spawn_opts *opts, size_t state_bytes)
{
    unsigned traits = 0;
    if (opts != NULL && opts->drop_state != NULL)
        traits |= HAS_DROP;
    if (opts != NULL && opts->drop_result != NULL)
        traits |= HAS_FREE;
    if (state_at(traits) + 8 + state_bytes > BZ_TASK_BYTES_MAX)
        return traits | IS_FAR;
    if (state_bytes % 16 == 0 && state_at(traits) % 16 != 0)
        traits |= IS_PADDED;
    return traits;
}

/* Allocate the state apart; without memory free the task and return NULL. */
static BZ_NOINLINE struct bz_poll_task *with_far_state(struct bz_poll_task *p, size_t state_bytes)
{
    struct far *far = far_of(p);
    far->bytes = state_bytes;
    far->state = bz_alloc(&p->task.rt->alloc, state_bytes, _Alignof(max_align_t));
    if (far->state != NULL)
        return p;
    bz_task_free(&p->task);
    return NULL;
}

/* Allocate a task with room for a state of so many bytes; NULL if there is no memory. */
static BZ_ALWAYS_INLINE struct bz_poll_task *make(struct bz_runtime *rt, unsigned traits,
                                                  size_t state_bytes)
{
    size_t inside = traits & IS_FAR ? sizeof(struct far) : state_bytes;
    struct bz_task *t = bz_task_alloc(rt, state_at(traits) + inside);
    if (t == NULL)
        return NULL;
    t->rt = rt;
    t->traits = (uint8_t)traits;
    bz_atomic_init(&t->place, (uint8_t)(state_at(traits) / 8));
    struct bz_poll_task *p = BZ_CONTAINER_OF(t, struct bz_poll_task, task);
    return BZ_UNLIKELY(traits & IS_FAR) ? with_far_state(p, state_bytes) : p;
}

static BZ_ALWAYS_INLINE void fill(struct bz_poll_task *p, const blitz_spawn_opts *opts,
                                  const void *state, size_t state_bytes)
{
    union hook *hook = p->hook;
    if (opts != NULL && (p->task.traits & HAS_DROP))
        (hook++)->drop = opts->drop_state;
    if (opts != NULL && (p->task.traits & HAS_FREE))
        (hook++)->drop = opts->drop_result;
    if (opts != NULL && hook != p->hook)
        hook->ctx = opts->ctx;
    if (state_bytes > 0)
        memcpy(state_of(p), state, state_bytes);
}

static BZ_ALWAYS_INLINE int spawn_anyhow(struct bz_runtime *rt, const struct bz_task_ops *ops,
                                         blitz_poll (*poll)(void *state, blitz_cx *cx),
                                         const void *state, size_t state_bytes,
                                         const blitz_spawn_opts *opts, blitz_task **out)
{
    unsigned traits = traits_for(opts, state_bytes);
    struct bz_poll_task *p = make(rt, traits, state_bytes);
    if (p == NULL)
        return -ENOMEM;
    p->poll = poll;
    fill(p, opts, state, state_bytes);
    bz_task_init(&p->task, rt, ops, opts, traits | bz_reserve_traits(rt), bz_task_refs(out));
    return bz_task_start(&p->task, opts, out);
}

int bz_spawn_poll(const struct bz_task_ops *ops, blitz_poll (*poll)(void *state, blitz_cx *cx),
                  const void *state, size_t state_bytes, const blitz_spawn_opts *opts,
                  blitz_task **out)
{
    struct bz_machine *m = bz_machine_self();
    struct bz_runtime *rt = bz_runtime_for(opts);
    uint32_t was = 0;
    if (rt == NULL || poll == NULL || bz_opts_are_bad(opts, rt))
        return -EINVAL;
    if (opts != NULL && opts->stack_bytes != 0)
        return -EINVAL;
    if (state_bytes > BLITZ_STATE_MAX || (state == NULL && state_bytes > 0))
        return -EINVAL;
    bool enters = m != NULL && (opts == NULL || !opts->inherits); /* copies are made in user code */
    if (enters)
        (void)!bz_enter_on(m, &was); /* once for all that follows */
    int err = spawn_anyhow(rt, ops, poll, state, state_bytes, opts, out);
    if (enters)
        bz_leave_on(m, was);
    return err;
}

/* The common case: a task spawns another, with a state of 8 bytes or less and without options. */
static BZ_ALWAYS_INLINE int spawn_small(struct bz_machine *m,
                                        blitz_poll (*poll)(void *state, blitz_cx *cx),
                                        const void *state, size_t state_bytes, blitz_task **out)
{
    struct bz_proc *p = m->proc;
    struct bz_task *t = bz_task_unstash(&p->tasks);
    struct bz_poll_task *small = BZ_CONTAINER_OF(t, struct bz_poll_task, task);
    t->ops = &small_ops;
    small->poll = poll;
    bz_atomic_init(&t->place, sizeof *small / 8);
    if (state_bytes == 8)
        memcpy(small->hook, state, 8); /* in one instruction */
    else if (state_bytes > 0)
        memcpy(small->hook, state, state_bytes);
    bz_ready_fill(m->rt, t);
    t->result = 0;
    bz_word_init(&t->word, BZ_SCHEDULED, bz_task_refs(out));
    return bz_ready_start(m, m->rt, p, t, out);
}

/* True if the caller may spawn the task with a ready header: then it is in the runtime. */
static BZ_ALWAYS_INLINE bool enter_for_small(struct bz_machine *m)
{
    if (m == NULL || !bz_retake_is_away(&m->taken))
        return false;
    bool is_in = bz_retake_enter_usual(&m->taken);
    struct bz_proc *p = m->proc;
    if (BZ_LIKELY(is_in && p != NULL) && BZ_LIKELY(bz_ready_is_there(m->rt, &p->tasks)))
        return true;
    if (bz_ready_make(m))
        return true;
    bz_leave_on(m, BZ_IN_USER);
    return false;
}

int blitz_spawn_poll(blitz_poll (*poll)(void *state, blitz_cx *cx), const void *state,
                     size_t state_bytes, const blitz_spawn_opts *opts, blitz_task **out)
{
    struct bz_machine *m = bz_machine_self();
    if (opts == NULL && poll != NULL && state_bytes <= SMALL &&
        (state != NULL || state_bytes == 0) && enter_for_small(m))
        return spawn_small(m, poll, state, state_bytes, out);
    return bz_spawn_poll(&poll_ops, poll, state, state_bytes, opts, out);
}

/* ---- waiting without a stack ---- */

/* Return the reason to end the wait now: 0, -ECANCELED or -ETIMEDOUT. */
static int reason_to_give_up(const blitz_cx *cx, blitz_sleep_future *timer)
{
    if (blitz_is_cancelled())
        return -ECANCELED;
    if (timer != NULL && timer->future.ops->poll(&timer->future, cx->waker) == BLITZ_READY)
        return -ETIMEDOUT;
    return 0;
}

blitz_poll blitz_cx_await(blitz_cx *cx, blitz_future *f, blitz_sleep_future *timer, int *outcome)
{
    while (f->ops->poll(f, cx->waker) == BLITZ_PENDING) {
        if (*outcome != 0)
            return BLITZ_PENDING; /* a pinned future that was cancelled */
        *outcome = reason_to_give_up(cx, timer);
        if (*outcome == 0)
            return BLITZ_PENDING;
        if (!bz_future_cancel(f))
            break;
    }
    if (timer != NULL)
        timer->future.ops->cancel(&timer->future);
    return BLITZ_READY;
}

blitz_poll blitz_frame_lost(const blitz_frame *frame, const char *function)
{
    BZ_CHECK(0,
             "%s: its frame says line %u, where no await of it is: was the state zeroed, or does "
             "the await stand inside a switch?",
             function, frame->at);
    return BLITZ_READY;
}
