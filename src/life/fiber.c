/*
 * fiber.c - spawn: tasks as users see them.
 *
 * A fiber is a task whose `run` calls a function. Its header starts with one reference of the
 * scheduler, from spawn to finish, and one of the handle, if the caller keeps one.
 *
 * Most spawns come from a task, without options. They find a ready header that another fiber has
 * left on the same proc (tasks.h), or prepare some at once. They write the fields that change and put the task into
 * the next slot. All other spawns take the slow path.
 */
#include <assert.h>
#include <errno.h>

#include "base/log.h"
#include "life/escape.h"
#include "life/quick_spawn.h"
#include "life/spawn.h"
#include "life/stacks.h"
#include "os/forked.h"
#include "proc/enter.h"
#include "proc/fresh.h"
#include "proc/monitor_wake.h"
#include "proc/now.h"
#include "proc/place.h"
#include "proc/state.h"

#if !defined(BZ_WATCH) && !defined(BZ_DEBUG)
static_assert(sizeof(struct bz_fiber) <= 128, "the smallest class of tasks.c");
#endif

/* ---- making ---- */

static BZ_NOINLINE enum bz_ran fiber_run(struct bz_task *t)
{
    BZ_STOP_EXCEPTIONS();
    bz_fiber_call(t);
    return BZ_RAN_DONE;
}

/* Keep the header for the next spawn. If the proc has many, return half of them to their slabs. */
static BZ_ALWAYS_INLINE void keep(struct bz_task_home *h, struct bz_task *t)
{
    if (BZ_UNLIKELY(!bz_task_stash(h, t))) {
        bz_tasks_return(h, h->stash.max / 2);
        (void)!bz_task_stash(h, t);
    }
}

void bz_ready_drop(struct bz_task *t)
{
    uint32_t was;
    struct bz_machine *m = bz_enter(&was);
    if (BZ_UNLIKELY(m == NULL || m->rt != t->rt || m->proc->tasks.stash.max == 0))
        bz_task_free(t);
    else
        keep(&m->proc->tasks, t);
    bz_leave(was);
}

static uintptr_t fiber_begun_in(const struct bz_task *t)
{
    return (uintptr_t)BZ_CONTAINER_OF(t, const struct bz_fiber, task)->fn;
}

const struct bz_task_ops bz_fiber_ops = {
    .kind = "fiber", .run = fiber_run, .drop = bz_ready_drop, .begun_in = fiber_begun_in};

/* Return the traits that the options give a task. */
static unsigned traits_of(struct bz_task *t, const blitz_spawn_opts *opts)
{
    unsigned traits = opts->proc != 0 ? BZ_TASK_STAYS : 0;
    if (opts->stack_bytes == 0)
        return traits;
    t->stack_class = (uint8_t)bz_stack_class_for(opts->stack_bytes);
    return t->stack_class == t->rt->stack_class ? traits : traits | BZ_TASK_STAYS | BZ_TASK_CLASS;
}

bool bz_opts_are_bad(const blitz_spawn_opts *opts, const struct bz_runtime *rt)
{
    if (opts == NULL)
        return false;
    if (opts->proc > rt->proc_count) {
        bz_log_once(BLITZ_LOG_WARN,
                    "spawn: opts.proc is proc %u, but the runtime has %u, from 0 on",
                    opts->proc - 1, rt->proc_count);
        return true;
    }
    if (bz_stack_class_for(opts->stack_bytes) != BZ_STACK_CLASSES)
        return false;
    bz_log_once(BLITZ_LOG_WARN, "spawn: opts.stack_bytes = %zu: 8 MiB at most", opts->stack_bytes);
    return true;
}

/* Set the fields that a fiber leaves as they are when it ends: all but those that spawn_near sets. */
static BZ_ALWAYS_INLINE void init_lasting(struct bz_task *t, struct bz_runtime *rt,
                                          const struct bz_task_ops *ops)
{
    t->ops = ops;
    t->rt = rt;
    t->stack = NULL;
    t->stack_class = (uint8_t)rt->stack_class;
    t->locals = NULL;
    bz_atomic_init(&t->wait, 0);
    bz_lock_init_ranked(&t->lock, BZ_RANK_TASK);
    bz_list_init(&t->joiners);
}

/* Set all fields but the word. */
static void fill_in(struct bz_task *t, struct bz_runtime *rt, const struct bz_task_ops *ops,
                    const blitz_spawn_opts *opts, unsigned traits)
{
    bz_task_init_watch(t);
    init_lasting(t, rt, ops);
    t->name = opts != NULL ? opts->name : NULL;
    t->traits = (uint8_t)(opts != NULL ? traits | traits_of(t, opts) : traits);
    t->marks = 0;
    t->result = 0;
    t->born = bz_age_here(rt);
}

void bz_task_init(struct bz_task *t, struct bz_runtime *rt, const struct bz_task_ops *ops,
                  const blitz_spawn_opts *opts, unsigned traits, unsigned refs)
{
    fill_in(t, rt, ops, opts, traits);
    bz_word_init(&t->word, BZ_SCHEDULED, refs); /* last: from here on it can be found */
}

struct bz_runtime *bz_runtime_for(const blitz_spawn_opts *opts)
{
    struct bz_machine *m = bz_machine_self();
    if (bz_is_forked()) {
        bz_forked_refuse("spawn");
        return NULL;
    }
    if (opts != NULL && opts->runtime != NULL)
        return (struct bz_runtime *)opts->runtime;
    if (m == NULL)
        bz_log_once(BLITZ_LOG_WARN,
                    "spawn: this thread runs no task: call it in a task (blitz_run), "
                    "or name the runtime in opts.runtime");
    return m != NULL ? m->rt : NULL;
}

/* Drop a task that will not run. A thread that walks over all tasks may still hold it. */
static BZ_NOINLINE void abandon(struct bz_task *t, unsigned refs)
{
    if (bz_word_drop(&t->word, refs))
        t->ops->drop(t);
}

static int enlist(struct bz_task *t)
{
    if (BZ_LIKELY(!(t->traits & BZ_TASK_CLASS)))
        return bz_task_enlist(t);
    int err = bz_task_take_stack(t);
    if (err != 0)
        return -ENOMEM;
    err = bz_task_enlist(t);
    if (err != 0)
        bz_task_give_stack(t);
    return err;
}

int bz_task_start(struct bz_task *t, const blitz_spawn_opts *opts, blitz_task **out)
{
    int err = opts != NULL && opts->inherits ? bz_locals_inherit(t) : 0;
    if (err == 0)
        err = enlist(t);
    if (err != 0) {
        bz_locals_end(t);
        abandon(t, bz_task_refs(out));
        return err;
    }
    if (out != NULL)
        *out = (blitz_task *)t;
    bz_trace(t->rt, spawn, t->id, 0, t->name);
    if (opts != NULL && opts->proc != 0)
        bz_place_on(t->rt, opts->proc - 1, bz_entry_first(t));
    else
        bz_place(t->rt, bz_entry_first(t));
    return 0;
}

/* If no header is ready, prepare one, and twice as many each time. So a proc that spawns one task before it sleeps
 * prepares no more than that. The last one taken from the slab is used last: headers that are used in a row are then
 * at equal distances, for the prefetches of slab and injector. False: there is no memory, or spawns here take the slow
 * path. */
static bool make_ready(struct bz_runtime *rt, struct bz_task_home *h)
{
    if (h->id_next == h->id_end)
        bz_task_ids_refill(h);
    if (h->stash.count > 0)
        return true;
    enum { FILL_MAX = 32 };
    struct bz_task *taken[FILL_MAX];
    unsigned count = 0, max = h->stash.max < h->stash.fill ? h->stash.max : h->stash.fill;
    h->stash.fill = 2 * max < FILL_MAX ? 2 * max : FILL_MAX;
    while (count < max && (taken[count] = bz_slab_alloc(&h->slab[0])) != NULL)
        init_lasting(taken[count++], rt, &bz_fiber_ops);
    for (unsigned at = count; at-- > 0;)
        (void)!bz_task_stash(h, taken[at]); /* it was empty */
    return count > 0;
}

BZ_NOINLINE bool bz_ready_make(struct bz_machine *m)
{
    if (!bz_retake_enter_again(&m->taken))
        bz_proc_lost(m);
    struct bz_proc *p = m->proc;
    return p != NULL && bz_monitor_is_up(m->rt) && bz_is_usual() && make_ready(m->rt, &p->tasks) &&
           bz_ready_is_there(m->rt, &p->tasks);
}

static BZ_NOINLINE int spawn_anyhow(int (*fn)(void *arg), void *arg, const blitz_spawn_opts *opts,
                                    blitz_task **out)
{
    struct bz_runtime *rt = bz_runtime_for(opts);
    if (fn == NULL || rt == NULL || bz_opts_are_bad(opts, rt))
        return -EINVAL;
    struct bz_task *t = bz_task_alloc(rt, sizeof(struct bz_fiber));
    if (t == NULL)
        return -ENOMEM;
    struct bz_fiber *f = BZ_CONTAINER_OF(t, struct bz_fiber, task);
    f->fn = fn;
    f->arg = arg;
    unsigned traits = bz_reserve_traits(rt);
    fill_in(t, rt, &bz_fiber_ops, opts, traits);
    if (opts == NULL && traits == 0 && rt->tasks.max == 0)
        bz_word_init_simple(&t->word, bz_task_refs(out));
    else
        bz_word_init(&t->word, BZ_SCHEDULED, bz_task_refs(out));
    return bz_task_start(t, opts, out);
}

int bz_fiber_begin(struct bz_runtime *rt, int (*fn)(void *arg), void *arg, const char *name,
                   struct bz_task **out)
{
    blitz_spawn_opts opts = {.name = name};
    struct bz_task *t = bz_task_alloc(rt, sizeof(struct bz_fiber));
    if (t == NULL)
        return -ENOMEM;
    struct bz_fiber *f = BZ_CONTAINER_OF(t, struct bz_fiber, task);
    f->fn = fn;
    f->arg = arg;
    bz_task_init(t, rt, &bz_fiber_ops, &opts, 0, 2);
    int err = bz_task_enlist(t);
    if (err != 0) {
        abandon(t, 2);
        return err;
    }
    bz_trace(rt, spawn, t->id, 0, name);
    bool is_ours = bz_word_claim(&t->word, 0);
    BZ_ASSERT(is_ours); /* it is in no queue, and no task joins it */
    (void)is_ours;
    *out = t;
    return 0;
}

/* From a task in user code, or from a plain thread. */
static BZ_NOINLINE int spawn_slowly(int (*fn)(void *arg), void *arg, const blitz_spawn_opts *opts,
                                    blitz_task **out)
{
    struct bz_machine *m = bz_machine_self();
    uint32_t was;
    if (m == NULL || (opts != NULL && opts->inherits)) /* copies are made in user code */
        return spawn_anyhow(fn, arg, opts, out);
    (void)!bz_enter_on(m, &was); /* once for all that follows */
    int err = spawn_anyhow(fn, arg, opts, out);
    bz_leave_on(m, was);
    return err;
}

BZ_NOINLINE int bz_spawn_refused(struct bz_machine *m, struct bz_task *t, blitz_task **out)
{
    bz_live_refused(&m->rt->tasks.live, &m->proc->tasks.live);
    abandon(t, bz_task_refs(out));
    bz_leave_on(m, BZ_IN_USER);
    return -ESHUTDOWN;
}

BZ_NOINLINE int bz_spawn_evicts(struct bz_machine *m, bz_entry old)
{
    if (bz_entry_tag(old) != BZ_ENTRY_FIRST || !bz_fresh_keep(m, old))
        bz_place_evicted(m, old);
    bz_leave_on(m, BZ_IN_USER);
    return 0;
}

/* Spawn with a header that is ready: it has the values that bz_task_init would write, except for these. The caller has
 * entered the runtime; leave it. */
static BZ_ALWAYS_INLINE int spawn_ready(struct bz_machine *m, struct bz_runtime *rt,
                                        struct bz_proc *p, int (*fn)(void *arg), void *arg,
                                        blitz_task **out)
{
    struct bz_task *t = bz_task_unstash(&p->tasks);
    struct bz_fiber *f = BZ_CONTAINER_OF(t, struct bz_fiber, task);
    f->fn = fn;
    f->arg = arg;
    bz_ready_fill(rt, t);
    bz_word_init_simple(&t->word, bz_task_refs(out));
    return bz_ready_start(m, rt, p, t, out);
}

/* A spawn has entered the runtime and found a rare case. */
static BZ_NOINLINE int spawn_within(int (*fn)(void *arg), void *arg, blitz_task **out)
{
    struct bz_machine *m = bz_machine_self();
    if (bz_ready_make(m))
        return spawn_ready(m, m->rt, m->proc, fn, arg, out);
    int err = spawn_anyhow(fn, arg, NULL, out);
    bz_leave_on(m, BZ_IN_USER);
    return err;
}

/*
 * The common case: a task spawns another, without options, and a header is ready. A runtime with a limit on tasks, or of
 * the plain form, has no ready headers. All other cases are calls at the end, so that the common one saves no registers.
 */
int blitz_spawn(int (*fn)(void *arg), void *arg, const blitz_spawn_opts *opts, blitz_task **out)
{
    if (BZ_UNLIKELY(opts != NULL))
        return spawn_slowly(fn, arg, opts, out);
    struct bz_machine *m = bz_machine_self();
    if (BZ_UNLIKELY(m == NULL) || BZ_UNLIKELY(!bz_retake_is_away(&m->taken)) ||
        BZ_UNLIKELY(fn ==
                    NULL)) /* apart from opts: together they take six instructions, not four */
        return spawn_slowly(fn, arg, opts, out);
    bool is_in = bz_retake_enter_usual(&m->taken);
    struct bz_proc *p = m->proc;
    struct bz_runtime *rt = m->rt;
    if (BZ_UNLIKELY(!is_in || p == NULL) || BZ_UNLIKELY(!bz_ready_is_there(rt, &p->tasks)))
        return spawn_within(fn, arg, out);
    if (BZ_LIKELY(out != NULL)) /* each with a constant word */
        return spawn_ready(m, rt, p, fn, arg, out);
    return spawn_ready(m, rt, p, fn, arg, NULL);
}

/* ---- the current task ---- */

bool blitz_is_cancelled(void)
{
    struct bz_task *t = bz_task_self();
    return t != NULL && bz_word_is_cancelled(&t->word);
}

void blitz_shield(void)
{
    struct bz_task *t = bz_task_self();
    if (t != NULL)
        bz_word_shield(&t->word);
}

void blitz_unshield(void)
{
    struct bz_task *t = bz_task_self();
    if (t != NULL)
        bz_word_unshield(&t->word);
}
