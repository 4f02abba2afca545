/*
 * runtime.c - a runtime from its config to its end.
 *
 * Life: new -> running -> stopping (no more spawns, all tasks cancelled) -> drained (the last task
 * has ended: live.c) -> ending (machines leave) -> given up -> released. The memory itself stays until
 * the last task header is dropped, because a handle or a waker may outlive everything else: tasks.c.
 *
 * [A] unref: is_ending release -> state.h, is_ending: acquire    machines leave a finished runtime
 * [D] unref: is_ending, barrier, rouse -> search.c, go_to_sleep: prepare, announce, is_ending
 *     a machine about to sleep sees that it must leave, or it is roused after its prepare
 */
#include <errno.h>
#include <stdio.h>

#include "base/bits.h"
#include "base/log.h"
#include "base/unusual.h"
#include "block/io.h"
#include "life/escape.h"
#include "life/spawn.h"
#include "observe/dump.h"
#include "observe/overdue.h"
#include "os/forked.h"
#include "park/claim.h"
#include "proc/place.h"
#include "proc/state.h"
#include "runtime/runtime.h"
#include "runtime/resize.h"
#include "runtime/runtimes.h"
#include "sched/loop.h"
#include "task/overflow.h"
#include "wait/wait.h"

/* ---- making ---- */

static void proc_init(struct bz_proc *p, struct bz_runtime *rt, unsigned index, uint64_t seed)
{
    p->rt = rt;
    p->index = index;
    p->is_plain = bz_is_plain(rt);
    bz_runq_init(&p->ring, rt->proc_count == 1 && !bz_is_plain(rt));
    bz_inbox_init(&p->inbox);
    bz_entries_init(&p->want_stack);
    bz_atomic_init(&p->state, bz_proc_word(index == 0 ? BZ_PROC_STARTING : BZ_PROC_FREE, 0));
    bz_tick_init(&p->tick);
    p->timers_at = 1;
    bz_pace_init(&p->pace, 1, bz_os_now(rt->os));
    bz_atomic_init(&p->busy_ns, 0);
    bz_rng_init(&p->rng, seed + index);
    bz_atomic_init(&p->next, 0);
    bz_atomic_init(&p->batch.at, 0);
    bz_atomic_init(&p->batch.count, 0);
    bz_atomic_init(&p->fresh.count, 0);
    p->gather_in = 1;
    p->seen = (struct bz_monitor_seen){0};
    p->next_row = 0;
    p->tombstones = 1;
    bz_lock_init_ranked(&p->timer_lock, BZ_RANK_TIMERS);
    bz_wheel_init(&p->wheel, bz_os_now(rt->time));
    bz_atomic_init(&p->timer_first, BZ_OS_FOREVER);
    bz_counters_init(&p->counters);
}

static int procs_new(struct bz_runtime *rt)
{
    uint64_t seed = 0;
    rt->procs = bz_alloc(&rt->alloc, rt->proc_count * sizeof *rt->procs, BZ_LINE);
    if (rt->procs == NULL)
        return -ENOMEM;
    if (bz_os_entropy(rt->os, &seed, sizeof seed) != 0)
        seed = bz_os_now(rt->os); /* the victims of steals need not be secret */
    int err = bz_machines_init(rt, rt->is.threads_max + BZ_GUESTS_MAX, seed);
    if (err != 0) {
        bz_free(&rt->alloc, rt->procs, rt->proc_count * sizeof *rt->procs);
        return err;
    }
    for (unsigned i = 0; i < rt->proc_count; i++)
        proc_init(&rt->procs[i], rt, i, seed);
    if ((err = bz_io_init(rt)) != 0) {
        bz_machines_fini(rt);
        bz_free(&rt->alloc, rt->procs, rt->proc_count * sizeof *rt->procs);
        return err;
    }
    if (bz_is_plain(rt))
        bz_unusual_begin(); /* the fast paths are not for it */
    bz_barrier_init(&rt->barrier, rt->os);
    bz_pool_init(&rt->pool, rt->os, &rt->alloc, rt->is.name, rt->is.threads_max, rt->proc_count);
    /* All but the first count as asleep: rousing one starts its thread. */
    bz_monitor_init(&rt->monitor);
    bz_gather_init(&rt->gather);
    bz_idle_init(&rt->idle, rt->proc_count, 1, &rt->barrier, !bz_is_plain(rt));
    bz_resize_init(rt);
    bz_tasks_init(rt, rt->is.tasks_max);
    bz_busy_init(&rt->busy, bz_is_plain(rt));
    return 0;
}

static void procs_free(struct bz_runtime *rt)
{
    if (bz_is_plain(rt))
        bz_unusual_end();
    bz_io_fini(rt);
    bz_machines_fini(rt);
    bz_free(&rt->alloc, rt->procs, rt->proc_count * sizeof *rt->procs);
}

static void set_clock(struct bz_runtime *rt, blitz_clock_mode mode)
{
    struct bz_clockwork *c = &rt->clockwork;
    if (mode == BLITZ_CLOCK_SYSTEM)
        return;
    rt->time = &c->clock.os;
    if (mode != BLITZ_CLOCK_RUNS)
        bz_clock_pause(&c->clock);
    c->is_auto = mode == BLITZ_CLOCK_AUTO;
    bz_clockwork_say_wanted(c);
}

static int runtime_fill(struct bz_runtime *rt, const blitz_runtime_opts *c)
{
    int err = bz_settings_read(&rt->is, rt->os, c);
    if (err != 0)
        return err;
    rt->proc_count = rt->is.procs_max;
    bz_clockwork_init(&rt->clockwork, rt->os);
    set_clock(rt, rt->is.clock);
    rt->stack_class = rt->is.stack_class;
    rt->fpcw = bz_fpcw_read();
    rt->creation = 0; /* bz_runtimes_add numbers it */
    bz_atomic_init(&rt->visits, 0);
    rt->deadlock.looks = 0;
    rt->deadlock.is_reported = false;
    bz_atomic_init(&rt->deadlock.is_blind, 0);
    bz_atomic_init(&rt->dump_asked, 0);
    bz_atomic_init(&rt->clock, bz_age_tick(bz_os_now(rt->os)));
    rt->is_plain = bz_os_barrier_register(rt->os) != 0 || rt->is.is_plain;
    bz_guests_init(&rt->guests);
    bz_injector_init(&rt->injector, rt->os);
    bz_atomic_init(&rt->is_ending, 0);
    bz_atomic_init(&rt->locked, 0);
    bz_counters_init(&rt->counters);
    bz_trace_init(&rt->trace);
    bz_lock_init_ranked(&rt->stop_lock, BZ_RANK_RUNTIME);
    bz_lock_init_ranked(&rt->resize_lock, BZ_RANK_RUNTIME);
    bz_lock_init_ranked(&rt->start_lock, BZ_RANK_START);
    struct bz_stack_config stacks = {.os = rt->os, .alloc = &rt->alloc, .guards = rt->is.guards};
    err = bz_stack_pool_init(&rt->stacks, &stacks);
    if (err != 0)
        return err;
    rt->stacks.claim_bytes = rt->stacks.kind[rt->stack_class].bytes / 2;
    rt->is_up = false;
    err = bz_kept_init(rt);
    if (err != 0)
        bz_stack_pool_fini(&rt->stacks);
    return err;
}

/* ---- stack overflows ---- */

/* Called in a signal handler of the thread that has overflowed. */
static bool tell_task(char *text, size_t room)
{
    struct bz_task *t = bz_task_self();
    if (t == NULL)
        return false;
    if (t->name != NULL)
        snprintf(text, room, "task %llu \"%s\"", (unsigned long long)t->id, t->name);
    else
        snprintf(text, room, "task %llu", (unsigned long long)t->id);
    return true;
}

static void watch_overflows(struct bz_runtime *rt)
{
    rt->watches_overflows = false;
    if (!rt->is.reports_overflows || bz_os_is_simulated())
        return;
    bz_overflow_tell(tell_task);
    int err = bz_overflow_watch(&rt->stacks);
    rt->watches_overflows = err == 0;
    if (err != 0)
        bz_log(BLITZ_LOG_WARN, "stack overflows will not be explained (error %d)", -err);
}

static void unwatch_overflows(struct bz_runtime *rt)
{
    if (rt->watches_overflows)
        bz_overflow_unwatch(&rt->stacks);
    rt->watches_overflows = false;
}

/* ---- children of a fork ---- */

static bool is_left_behind(const char *call)
{
    if (!bz_is_forked())
        return false;
    bz_forked_refuse(call);
    return true;
}

static const struct bz_mains mains = {.machine = bz_machine_main,
                                      .monitor = bz_monitor_main,
                                      .stack = bz_class_main,
                                      .release = bz_runtime_release,
                                      .clock = bz_clockwork_look};

int bz_runtime_new(const struct bz_os *os, const blitz_runtime_opts *config,
                   struct bz_runtime **out)
{
    static const blitz_runtime_opts defaults;
    const blitz_runtime_opts *c = config != NULL ? config : &defaults;
    const blitz_allocator *a = c->allocator != NULL ? c->allocator : &bz_allocator_libc;
    if (c->log != NULL)
        (void)blitz_log_set(c->log, c->log_ctx, BLITZ_LOG_WARN); /* that level exists */
    if (is_left_behind("runtime"))
        return -EBUSY;
    struct bz_runtime *rt = bz_alloc(a, sizeof *rt, _Alignof(struct bz_runtime));
    if (rt == NULL)
        return -ENOMEM;
    bz_escape_init();
    rt->os = rt->time = os;
    rt->mains = &mains;
    rt->alloc = *a;
    int err = runtime_fill(rt, c);
    if (err != 0)
        goto free_runtime;
    err = procs_new(rt);
    if (err != 0)
        goto fini_stacks;
    bz_trace_begin(rt);
    bz_turns_init(rt);
    err = bz_machine_start(&rt->procs[0], false); /* so that there always is one */
    if (err != 0)
        goto free_procs;
    bz_lock_take(&rt->start_lock, rt->os);
    rt->is_up = true;
    bz_lock_drop(&rt->start_lock, rt->os);
    bz_forked_enter();
    bz_runtimes_add(rt);
    bz_dump_watch(rt);
    watch_overflows(rt);
    *out = rt;
    return 0;

free_procs:
    bz_trace_fini(rt);
    procs_free(rt);
fini_stacks:
    bz_kept_fini(rt);
    bz_stack_pool_fini(&rt->stacks);
free_runtime:
    bz_free(a, rt, sizeof *rt);
    return err;
}

void bz_runtime_release(struct bz_runtime *rt)
{
    blitz_allocator from = rt->alloc;
    bz_trace_fini(rt);
    bz_tasks_fini(rt);
    procs_free(rt); /* not before: a waker may have been about to rouse one */
    bz_free(&from, rt, sizeof *rt);
}

/* ---- ending ---- */

static void mark(struct bz_task *t, void *ctx)
{
    (void)ctx;
    if (!bz_word_is_complete(&t->word))
        (void)!bz_task_cancel_mark(t);
}

/* Deliver the cancel to t. If t was cancelled before, this delivers once more, which is harmless. */
static void tell(struct bz_task *t, void *ctx)
{
    (void)ctx;
    if (!bz_word_is_complete(&t->word))
        bz_task_cancel_deliver(t);
}

/* Cancel all tasks, with one barrier: wait.h. A cancel wakes, and so may take locks after ours in
 * rank, but never ours. */
static void stop(struct bz_runtime *rt)
{
    bz_lock_take(&rt->stop_lock, rt->os);
    bz_live_close(&rt->tasks.live);
    bz_pool_stop(&rt->pool);
    bz_tasks_each(rt, mark, NULL);
    bz_task_cancel_barrier(rt);
    bz_tasks_each(rt, tell, NULL);
    bz_live_await_last(&rt->tasks.live);
    bz_lock_drop(&rt->stop_lock, rt->os);
}

/* Return when a shutdown that began at began_ns logs next: after a second, then every ten. */
static uint64_t next_word(uint64_t began_ns, uint64_t now)
{
    uint64_t said = now - began_ns < BZ_OVERDUE_FIRST_NS
                        ? 0
                        : 1 + (now - began_ns - BZ_OVERDUE_FIRST_NS) / BZ_OVERDUE_AGAIN_NS;
    return began_ns + BZ_OVERDUE_FIRST_NS + said * BZ_OVERDUE_AGAIN_NS;
}

/* Wait for the tasks, and log their names from time to time. */
static int await_tasks(struct bz_runtime *rt, uint64_t began_ns, blitz_deadline until)
{
    uint64_t now = began_ns;
    while (!bz_live_is_drained(&rt->tasks.live)) {
        uint64_t word = next_word(began_ns, now), stop = word < until ? word : until;
        bool is_late = bz_os_wait(rt->os, &rt->tasks.live.drained, 0, stop) == -ETIMEDOUT;
        now = bz_os_now(rt->os);
        if (is_late)
            bz_overdue_say(rt, now - began_ns);
        if (is_late && stop == until)
            return -ETIMEDOUT;
    }
    return 0;
}

/* Wait for calls that their callers have left (blocking.c): the runtime is responsible for them. */
static int await_calls(struct bz_runtime *rt, uint64_t began_ns, blitz_deadline until)
{
    unsigned left;
    uint64_t now = bz_os_now(rt->os), stop;
    do {
        stop = next_word(began_ns, now) < until ? next_word(began_ns, now) : until;
        if (bz_pool_await_quiet(&rt->pool, stop, &left) == 0)
            return 0;
        bz_log(BLITZ_LOG_WARN, "shutdown: %u blocking calls have not returned", left);
        now = bz_os_now(rt->os);
    } while (stop != until);
    return -ETIMEDOUT;
}

static int end_all(struct bz_runtime *rt, blitz_deadline until, bool may_abandon)
{
    struct bz_machine *m = bz_machine_self();
    if ((m != NULL && m->rt == rt) || is_left_behind("shutdown"))
        return -EBUSY;
    uint64_t began_ns = bz_os_now(rt->os);
    stop(rt);
    bz_turns_end(rt, true); /* hogs have to run in order to end */
    int err = await_tasks(rt, began_ns, until);
    unsigned left = err == 0 && may_abandon ? bz_pool_abandon(&rt->pool) : 0;
    if (left > 0)
        bz_log(BLITZ_LOG_WARN, "shutdown: %u blocking calls are abandoned", left);
    if (err == 0)
        err = await_calls(rt, began_ns, until);
    if (err != 0)
        bz_turns_end(rt, false);
    return err;
}

int blitz_runtime_shutdown(blitz_runtime *runtime, blitz_deadline until)
{
    return end_all((struct bz_runtime *)runtime, until, false);
}

int blitz_runtime_abandon(blitz_runtime *runtime, blitz_deadline until)
{
    return end_all((struct bz_runtime *)runtime, until, true);
}

static void name_the_held(struct bz_task *t, void *ctx)
{
    enum { NAMED_MAX = 10 };
    int *named = ctx;
    if ((t->traits & BZ_TASK_ANONYMOUS) || (*named)++ >= NAMED_MAX)
        return;
    bz_log(
        BLITZ_LOG_WARN,
        "unref: task %llu (%s) has ended and is still held: a handle that was neither joined nor "
        "detached, or a waker",
        (unsigned long long)t->id, bz_task_name(t));
}

/* Report a forgotten join: it leaks a header, and the task's result. */
static void report_held(struct bz_runtime *rt)
{
    int named = 0;
    if (bz_tasks_out(rt) != 0)
        bz_tasks_each(rt, name_the_held, &named);
}

int blitz_runtime_unref(blitz_runtime *runtime)
{
    struct bz_runtime *rt = (struct bz_runtime *)runtime;
    if (rt == NULL)
        return 0;
    if (is_left_behind("unref"))
        return -EBUSY;
    if (!bz_live_is_drained(&rt->tasks.live) || !bz_pool_is_quiet(&rt->pool))
        return -EBUSY;
    bz_forked_leave();
    bz_runtimes_remove(rt);
    bz_dump_unwatch(rt);
    bz_lock_take(&rt->start_lock, rt->os); /* no machine is started from here on */
    bz_store_release(&rt->is_ending, 1);   /* [A] */
    bz_lock_drop(&rt->start_lock, rt->os);
    if (bz_is_plain(rt) || bz_os_barrier(rt->os) != 0)
        bz_fence_seqcst(); /* [D] */
    bz_monitor_stop(rt);
    for (unsigned i = 0; i < rt->proc_count; i++)
        bz_poll_rouse(&rt->procs[i].poll);
    bz_pool_fini(&rt->pool);
    bz_guests_fini(rt);
    bz_turns_fini(rt);
    bz_drop_tombstones_left(rt);
    bz_trace_finish(rt);
    unwatch_overflows(rt);
    bz_kept_fini(rt);
    bz_stack_pool_fini(&rt->stacks);
    report_held(rt);
    if (bz_tasks_close(rt))
        bz_runtime_release(rt);
    return 0;
}

/* ---- the public face ---- */

int blitz_runtime_new(const blitz_runtime_opts *config, blitz_runtime **out)
{
    return bz_runtime_new(&bz_os_system, config, (struct bz_runtime **)out);
}

int blitz_runtime_block_on(blitz_runtime *rt, int (*fn)(void *arg), void *arg)
{
    struct bz_machine *m = bz_machine_self();
    blitz_spawn_opts opts = {.runtime = rt, .name = "main"};
    blitz_task *t;
    int result = 0;
    if (m != NULL)
        return -EBUSY;
    int err = blitz_spawn(fn, arg, &opts, &t);
    if (err == 0)
        err = blitz_task_join(t, &result, BLITZ_FOREVER);
    return err != 0 ? err : result;
}

int blitz_run(int (*fn)(void *arg), void *arg, const blitz_runtime_opts *config)
{
    blitz_runtime *rt;
    if (bz_machine_self() != NULL) {
        bz_log_once(BLITZ_LOG_WARN, "blitz_run: called in a task, which must not block its worker: "
                                    "call the function, or spawn it");
        return -EBUSY;
    }
    int err = blitz_runtime_new(config, &rt);
    if (err != 0)
        return err;
    int result = blitz_runtime_block_on(rt, fn, arg);
    blitz_runtime_shutdown(rt, BLITZ_FOREVER);
    (void)!blitz_runtime_unref(rt); /* it was shut down */
    return result;
}
