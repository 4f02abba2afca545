/*
 * machine.c - a thread that runs tasks: its loop, and how a task leaves the stack it stands on.
 *
 * Stacks are interchangeable runner loops. At the bottom of every runner stack is the same loop: find
 * a task, run it, again. The loop *calls* a new task on the stack that the machine happens to be on.
 * Most tasks return without having waited: they cost a call. A task that has to wait keeps the stack,
 * with the loop frame, and the machine goes on looping on another stack. When the task is woken, the
 * machine that takes it switches to that stack. The task goes on and returns into the loop frame
 * beneath it. That loop carries on there, for the machine that is now on it.
 *
 *     machine 1: [loop|task A    suspend] --> [loop|task B ...          ]
 *     machine 2:                                  [loop] --resume A--> [loop|task A ... return]loop
 *
 * So the loop must not remember which machine it is on: it reads the current machine again after every
 * call that may suspend. The machine's own (native) stack, g0, is where the thread starts and ends;
 * no task runs there.
 *
 * A suspension cannot fail. Usually the machine has a spare stack, which it takes before it runs a new
 * task. If the system has no stack to give, the machine still runs the task on the stack of its loop.
 * If that task waits, the machine leaves for g0 and goes on there: timers fire, tasks that have a
 * stack are resumed, and so deadlines hold. A task without a stack that finds its machine on g0 is run
 * in another way, or waits until a stack comes back: host.c.
 *
 * From the first refusal on (is_short), a spawn takes the new task's stack at once, and returns -ENOMEM
 * if there is none. This ends when a spawn finds two stacks. Machines that sleep meanwhile do so on g0,
 * and give their stacks to the pool.
 *
 * A task that is spawned with another size of stack gets one of that class in the spawn, so that the
 * spawn can report that there is none. It begins by a switch, as if it had waited on that stack from
 * the start. When it has returned, the machine leaves that stack for the spare one.
 *
 * A hook that runs on the next stack publishes the task (steps it to idle or scheduled), when the
 * machine has left the task's own stack: see word.c.
 *
 * A machine that has lost its proc (proc.c) goes on with its task. In the runtime it acts like a plain
 * thread. When the task waits, yields or ends, and there is no free proc, the machine leaves for g0. The
 * hook that publishes the task runs there, and the thread goes back to the pool.
 *
 * I1  While `current` is set there is a place to go: `spare`, or g0.
 * I2  `runner` is the stack that the thread runs on, or NULL on g0.
 * I3  A task that does not run either has no stack, or stands on task->stack, whose ctx is valid.
 *
 * A task that leaves its stack takes its successor first. If the successor has a stack, the task
 * switches to it directly; otherwise a fresh loop gets the successor. (The plain form always goes
 * through a fresh loop.) A yield does not touch the state word: the task stays *running* in it while it
 * is queued. A wake that comes meanwhile sets notified, and the next park finds it. If no other task is
 * ready, a yield returns at once.
 */
#include "proc/state.h"

#include <errno.h>

#include "base/log.h"
#include "life/evacuate.h"
#include "life/finish.h"
#include "life/stacks.h"
#include "os/forked.h"
#include "proc/enter.h"
#include "proc/fresh.h"
#include "proc/place.h"
#include "sched/loop.h"
#include "sched/quick.h"
#include "sched/suspend.h"

static void runner_main(void *arg);

/* ---- leaving a stack ---- */

/* Prepare a loop on the spare stack, for this machine to continue on. */
static struct bz_stack *fresh_loop(struct bz_machine *m)
{
    struct bz_stack *to = m->spare;
    BZ_ASSERT(to != NULL);
    m->spare = NULL;
    m->runner = to;
    bz_ctx_init(&to->ctx, to->low, bz_stack_top(to), runner_main, NULL, m->rt->fpcw);
    return to;
}

/* Make t current, on the stack on which it was suspended. */
static BZ_ALWAYS_INLINE struct bz_stack *take_up(struct bz_machine *m, struct bz_task *t)
{
    struct bz_stack *to = t->stack;
    t->stack = NULL;
    m->current = t;
    m->runner = to;
    bz_count_here(m, run);
    bz_trace(m->rt, start, t->id, t->traits, t->name);
    bz_watch_begin(m, t);
    return to;
}

/* Return g0, the place to go without a proc or without a stack. */
static struct bz_ctx *go_home(struct bz_machine *m)
{
    m->current = NULL;
    m->runner = NULL;
    return &m->g0;
}

/* Return a fresh loop, or g0 if there is no stack for one. */
static struct bz_ctx *loop_or_home(struct bz_machine *m)
{
    if (BZ_LIKELY(m->spare != NULL || bz_machine_has_spare(m)))
        return &fresh_loop(m)->ctx;
    return go_home(m);
}

/* Return the successor's stack if it has one, else a loop that calls it. */
static struct bz_ctx *place_for(struct bz_machine *m, bz_entry next)
{
    struct bz_task *t = bz_entry_tag(next) != BZ_ENTRY_JOB ? bz_entry_task(next) : NULL;
    if (t != NULL && t->stack != NULL) {
        bz_begin(t);
        return &take_up(m, t)->ctx;
    }
    m->handed = next;
    m->current = NULL;
    return loop_or_home(m);
}

static BZ_NOINLINE void leave_for(struct bz_machine *m, bz_entry next, bz_ctx_hook *hook, void *arg)
{
    struct bz_stack *from = m->runner;
    BZ_ASSERT(m->current != NULL);
    if (bz_is_forked())
        bz_forked_abort(); /* not in bz_switch_to: the child comes here when nothing is at hand */
    bz_evacuate(m);
    bz_stay_behind(m, m->current, &hook, &arg);
    struct bz_ctx *to = BZ_LIKELY(m->proc != NULL) ? place_for(m, next) : go_home(m);
    bz_count_here(m, switches);
    bz_os_delay(m->rt->os, BZ_OS_AT_SWITCH);
    bz_ctx_switch(&from->ctx, to, hook, arg);
}

/* If e is locked to another thread, hand our proc to that thread; then there is no successor here. */
static bz_entry unless_locked(struct bz_machine *m, bz_entry e)
{
    if (BZ_LIKELY(e == 0 || !bz_entry_is_locked(e)))
        return e;
    bz_locked_hand_over(m, e);
    return 0;
}

/* Return the task to run after the current one, if it can be had at once. The search may cost us the proc: then we
 * try to get another. */
static bz_entry successor(struct bz_machine *m)
{
    if (BZ_UNLIKELY((m->current->marks & BZ_MARK_LOCKED) || bz_machine_is_guest(m))) {
        bz_locked_release_proc(m);
        return 0;
    }
    if (BZ_UNLIKELY(m->proc == NULL) && !bz_proc_regain(m))
        return 0;
    return unless_locked(m, bz_is_plain(m->rt) ? 0 : bz_find_near(m));
}

BZ_NOINLINE void bz_suspend_slowly(struct bz_machine *m, struct bz_task *t, bz_ctx_hook *hook,
                                   void *arg)
{
    bz_entry next = t != NULL ? bz_entry_resumed(t) : 0;
    if (t == NULL && bz_may_leave_quickly(m) && bz_find_duties(m, &next) && next == 0 &&
        bz_may_leave_quickly(m)) { /* only a duty was in the way */
        t = bz_quick_find(m->proc, &m->rt->idle);
        if (BZ_LIKELY(t != NULL && bz_quick_may_switch(t))) {
            bz_count(&m->proc->counters, relays);
            bz_switch_to(m, m->current, t, hook, arg);
            return;
        }
        next = t != NULL ? bz_entry_resumed(t) : 0;
    }
    bz_count_here(m, parked);
    leave_for(m, next != 0 ? unless_locked(m, next) : successor(m), hook, arg);
}

BZ_NOINLINE void bz_suspend_unusually(struct bz_machine *m, bz_ctx_hook *hook, void *arg)
{
    if (!bz_retake_enter_again(&m->taken))
        bz_proc_lost(m);
    bz_trim_stack(m);
    bz_suspend_slowly(m, NULL, hook, arg);
}

void bz_suspend(bz_ctx_hook *hook, void *arg)
{
    bz_suspend_inline(hook, arg);
}

static void step_then_place(struct bz_task *t, enum bz_event event)
{
    bz_os_delay(t->rt->os, BZ_OS_AT_PUBLISH);
    if (bz_word_step(&t->word, event) == BZ_OWES_ENQUEUE) {
        bz_trace_wake(t, t->id);
        bz_place(t->rt, bz_entry_resumed(t));
    }
}

static void hook_park(void *task)
{
    step_then_place(task, BZ_PARK);
}

static void hook_yield(void *task)
{
    struct bz_task *t = task;
    if (bz_is_plain(t->rt))
        step_then_place(t, BZ_YIELD);
    else
        bz_place_last(bz_entry_resumed(t)); /* its word stays as it is: no thread looks at it */
}

void bz_park(void)
{
    bz_suspend(hook_park, bz_task_self());
}

/* hook_yield for a worker with a proc, of the fast form. */
static void hook_turn(void *task)
{
    struct bz_machine *m = bz_machine_self();
    bz_os_delay(m->rt->os, BZ_OS_AT_PUBLISH);
    bz_push_for_all(m, bz_entry_resumed(task));
}

#if defined(BZ_WATCH)
enum { MAY_ROTATE = 0 }; /* a watch must be called on the next stack */
#else
enum { MAY_ROTATE = 1 };
#endif

/* The common yield: the fast path finds a successor. False: nothing was done. */
static BZ_ALWAYS_INLINE bool yield_quickly(struct bz_machine *m)
{
    struct bz_task *me = m->current, *t;
    struct bz_proc *p = m->proc;
    if (!bz_deque_is_usual(&m->deque))
        return false;
    BZ_ASSERT(p != NULL && !(me->marks & BZ_MARK_LOCKED));
    if (MAY_ROTATE && p->ring.is_lone && (t = bz_quick_rotate(p, me, false)) != NULL) {
        bz_count(&p->counters, turns);
        bz_switch_to_begun(m, me, t, NULL, bz_any_pointer());
        return true;
    }
    t = bz_quick_find(p, &m->rt->idle);
    if (t == NULL)
        return false;
    if (BZ_LIKELY(bz_quick_may_switch(t))) {
        bz_count(&p->counters, turns);
        bz_switch_to(m, me, t, hook_turn, me);
    } else {
        bz_count(&p->counters, yielded);
        leave_for(m, unless_locked(m, bz_entry_resumed(t)), hook_yield, me);
    }
    return true;
}

/* A yield by the slow path. Nothing to do for a callback that a loop calls (callout.c), which is no task. */
static void yield_anyhow(struct bz_machine *m)
{
    if (m->current != NULL)
        bz_yield();
}

/* The fast path has found no successor. Return true if only a duty was in the way: then try again. False: it has yielded. */
static BZ_NOINLINE bool yield_slowly(struct bz_machine *m)
{
    bz_entry next = 0;
    if (!bz_may_leave_quickly(m) || !bz_find_duties(m, &next)) {
        yield_anyhow(m);
        return false;
    }
    if (next == 0)
        return true;
    bz_count_here(m, yielded);
    leave_for(m, unless_locked(m, next), hook_yield, m->current);
    return false;
}

static BZ_NOINLINE void yield_unusually(struct bz_machine *m)
{
    if (!bz_retake_enter_again(&m->taken))
        bz_proc_lost(m);
    yield_anyhow(m);
}

void blitz_yield(void)
{
    struct bz_machine *m = bz_machine_self();
    if (BZ_UNLIKELY(m == NULL))
        return; /* a plain thread */
    if (BZ_UNLIKELY(!bz_retake_is_away(&m->taken))) {
        yield_anyhow(m);
        return;
    }
    if (BZ_UNLIKELY(!bz_retake_enter_usual(&m->taken)))
        yield_unusually(m);
    else
        while (!yield_quickly(m) && yield_slowly(m))
            ;
    bz_retake_leave(&bz_machine_self()->taken, BZ_IN_USER); /* on the machine that we are on now */
}

void bz_yield(void)
{
    uint32_t was;
    struct bz_machine *m = bz_enter_as(&was);
    bz_entry next = successor(m);
    if (next != 0 || bz_is_plain(m->rt) || m->proc == NULL) {
        bz_count_here(m, yielded);
        leave_for(m, next, hook_yield, m->current);
    }
    bz_leave(was);
}

/* A stack has been left for good: keep it as the machine's spare, or give it to its cache. */
static void hook_give_back(void *stack)
{
    struct bz_machine *m = bz_machine_self();
    struct bz_stack *left = stack;
    bz_ctx_fini(&left->ctx);
    if (m->spare == NULL && left->class == m->rt->stack_class)
        m->spare = left; /* I1, also when there is no memory for another */
    else
        bz_stack_give(&m->stacks, left);
}

/* Resume a task that has a stack; this loop ends here. */
BZ_NORETURN static void resume(struct bz_machine *m, struct bz_task *t)
{
    struct bz_stack *mine = m->runner;
    bz_count_here(m, switches);
    bz_ctx_leave(&take_up(m, t)->ctx, hook_give_back, mine);
}

void bz_resume_from_home(struct bz_machine *m, struct bz_task *t)
{
    bz_begin(t);
    bz_count_here(m, switches);
    bz_os_delay(m->rt->os, BZ_OS_AT_SWITCH);
    bz_ctx_switch(&m->g0, &take_up(m, t)->ctx, NULL, NULL);
}

/* ---- the loop ---- */

/* Queue a task that did not end. */
static BZ_ALWAYS_INLINE void set_aside(struct bz_machine *m, struct bz_task *t, enum bz_ran ran)
{
    if (ran == BZ_RAN_PENDING) {
        bz_count_here(m, parked);
        step_then_place(t, BZ_PARK);
        return;
    }
    struct bz_proc *p = m->proc;
    if (BZ_UNLIKELY(p == NULL || p->is_plain)) {
        bz_count_here(m, yielded);
        hook_yield(t);
        return;
    }
    bz_count(&p->counters, yielded);
    if (BZ_UNLIKELY(bz_fresh_count(p) > 0))
        bz_fresh_publish(m); /* they were spawned before: a yield puts t behind them */
    hook_turn(t);
}

void bz_task_set_aside(struct bz_task *t, enum bz_ran ran)
{
    uint32_t was;
    set_aside(bz_enter_as(&was), t, ran);
    bz_leave(was);
}

/* The common turn of a stackless task: a loop on the only proc of its runtime has run it, and it yields. Enter the
 * runtime, queue the task, and return the next one. NULL: the caller must enter, and go on from there. */
static BZ_ALWAYS_INLINE struct bz_task *turn_quickly(struct bz_machine *m, struct bz_task *t)
{
    if (!bz_retake_is_away(&m->taken))
        return NULL;
    if (BZ_UNLIKELY(!bz_retake_enter_usual(&m->taken))) {
        bz_leave_on(m, BZ_IN_USER); /* to enter again, and wait for the taker */
        return NULL;
    }
    struct bz_proc *p = m->proc;
    if (!bz_deque_is_usual(&m->deque) || !p->ring.is_lone || BZ_UNLIKELY(m->spare == NULL))
        return NULL;
    struct bz_task *next = bz_quick_rotate(p, t, true); /* NULL if there are fresh tasks: fresh.c */
    if (BZ_UNLIKELY(next == NULL))
        return NULL;
    if (BZ_LIKELY(next->stack == NULL))
        bz_count(&p->counters, loops);
    else
        bz_count(&p->counters, yielded); /* the caller resumes it, which counts the run */
    return next;
}

/* Run a task on this stack. Return the task to run next if it was found in the same step, else 0. */
static BZ_ALWAYS_INLINE bz_entry call_on(struct bz_machine *m, struct bz_task *t, bool is_loop)
{
    uint32_t was;
    enum bz_ran ran;
    bz_count_here(m, run);
    for (;;) {
        m->current = t;
        m->runner->parks_left = 1; /* see bz_trim_stack */
        bz_watch_begin(m, t);
        bz_leave_on(m, BZ_IN_USER);
        ran = t->ops->run(t);
        m = bz_machine_self(); /* the task may have moved to another machine */
        struct bz_task *next =
            is_loop && MAY_ROTATE && ran == BZ_RAN_AGAIN ? turn_quickly(m, t) : NULL;
        if (next == NULL)
            break;
        if (BZ_UNLIKELY(next->stack != NULL)) {
            m->current = NULL;
            return bz_entry_resumed(next);
        }
        bz_begin(next);
        t = next;
    }
    (void)!bz_enter_on(m, &was); /* with a proc or without */
    if (BZ_UNLIKELY(t->marks & BZ_MARK_LOCKED))
        bz_locked_end(m);
    if (ran == BZ_RAN_DONE || ran == BZ_RAN_JOB)
        bz_watch_jobs(m, t, NULL, false);
    else
        bz_evacuate(m); /* forked in this poll, to be joined in a later one */
    m->current = NULL;
    bz_trace(m->rt, end, t->id, ran, NULL);
    bz_watch_end(m, t);
    if (ran == BZ_RAN_DONE)
        bz_task_finish(t);
    else if (ran == BZ_RAN_JOB)
        bz_job_finish(t);
    else if (ran == BZ_RAN_REST)
        t->ops->rest(t); /* last: another worker may have t */
    else
        set_aside(m, t, ran);
    return 0;
}

static BZ_NOINLINE void call(struct bz_task *t)
{
    (void)call_on(bz_machine_self(), t, false);
}

/* Find the next task for a loop that has run one before, so that nothing was handed to it. */
static BZ_ALWAYS_INLINE bz_entry find_next(struct bz_machine *m)
{
    struct bz_proc *p = m->proc;
    if (BZ_LIKELY(p != NULL && !p->is_plain)) {
        struct bz_task *t = bz_quick_find(p, &m->rt->idle);
        if (BZ_LIKELY(t != NULL && (t->stack != NULL || m->spare != NULL)))
            return bz_entry_resumed(t);
        if (t != NULL)
            m->handed = bz_entry_resumed(t); /* it waits for a stack, like other tasks */
    }
    return bz_find(m);
}

static void runner_main(void *arg)
{
    struct bz_machine *m = bz_machine_self();
    (void)arg;
    for (bz_entry e = bz_find(m); e != 0;) {
        struct bz_task *t = bz_entry_task(e);
        m = bz_machine_self(); /* bz_find may have slept, and lost or changed its proc */
        if (BZ_UNLIKELY(bz_entry_is_locked(e))) {
            bz_locked_hand_over(m, e);
            e = find_next(m); /* it finds that there is no proc */
            continue;
        }
        bz_begin(t);
        if (t->stack != NULL)
            resume(m, t);
        bz_trace(m->rt, start, t->id, t->traits, t->name);
        e = call_on(m, t, true);
        m = bz_machine_self(); /* the task may have moved to another machine */
        if (e == 0)
            e = find_next(m);
    }
    m = bz_machine_self();
    struct bz_stack *mine = m->runner;
    bz_ctx_leave(go_home(m), hook_give_back, mine);
}

/* ---- guests ---- */

/* The bottom of a guest's stack. If its task has waited, this is a worker's loop by now. */
static void guest_main(void *task)
{
    bz_trace(bz_machine_self()->rt, start, ((struct bz_task *)task)->id,
             ((struct bz_task *)task)->traits, ((struct bz_task *)task)->name);
    call(task);
    struct bz_machine *m = bz_machine_self();
    if (bz_machine_is_guest(m))
        bz_locked_release_proc(m); /* guest.c I2 */
    runner_main(NULL);             /* without a proc: home */
}

void bz_guest_run(struct bz_machine *m, struct bz_task *t)
{
    struct bz_stack *to = m->spare;
    m->spare = NULL;
    m->runner = to;
    bz_ctx_adopt(&m->g0);
    bz_ctx_init(&to->ctx, to->low, bz_stack_top(to), guest_main, t, m->rt->fpcw);
    bz_os_delay(m->rt->os, BZ_OS_AT_SWITCH);
    bz_ctx_switch(&m->g0, &to->ctx, NULL, NULL);
}

/* ---- other classes ---- */

/* Give back a stack that the runtime keeps, after the machine has left it. */
static void hook_give_kept(void *stack)
{
    struct bz_stack *left = stack;
    bz_ctx_fini(&left->ctx);
    bz_kept_give(bz_machine_self()->rt, left);
}

/* The bottom of a stack of another class, or of a kept one: run one task, then go to a loop on a usual stack. */
void bz_class_main(void *arg)
{
    struct bz_machine *m = bz_machine_self();
    (void)arg;
    bz_watch_end(m, m->current); /* it begins again in call */
    call(m->current);
    m = bz_machine_self();
    struct bz_stack *mine = m->runner;
    bz_ctx_leave(loop_or_home(m), bz_kept_is(m->rt, mine) ? hook_give_kept : hook_give_back, mine);
}

/* ---- the thread ---- */

/* The loop has ended; the hook has given its stack back. The next thread that takes the machine finds it as new,
 * except for jobs that it began and that are elsewhere by now. */
static void clear_up(struct bz_machine *m)
{
    if (m->spare != NULL)
        bz_stack_give(&m->stacks, m->spare);
    m->spare = NULL;
    bz_stack_cache_fini(&m->stacks);
    bz_jobs_fini(m);
    bz_store_release(&m->is_stray, 0); /* clockwork.c [Q] */
    bz_store_release(&m->is_going, 0); /* clockwork.c [Q] */
}

/* On g0 with a proc, for want of a stack: run one task, which comes back here or ends in a loop of its own. */
static void run_from_home(struct bz_machine *m)
{
    bz_entry e = bz_find(m);
    if (e == 0)
        return;
    if (BZ_UNLIKELY(bz_entry_is_locked(e))) {
        bz_locked_hand_over(m, e);
    } else if (bz_entry_task(e)->stack != NULL) {
        bz_resume_from_home(m, bz_entry_task(e));
    } else {
        m->handed = e;
        struct bz_stack *to = fresh_loop(m); /* find.c has seen to the spare */
        bz_os_delay(m->rt->os, BZ_OS_AT_SWITCH);
        bz_ctx_switch(&m->g0, &to->ctx, NULL, NULL);
    }
}

void bz_machine_main(void *arg)
{
    struct bz_machine *m = arg;
    struct bz_runtime *rt = m->rt; /* stays until we are joined */
    if (rt->is.thread_start != NULL)
        rt->is.thread_start(rt->is.thread_ctx); /* as a plain thread: not in the runtime yet */
    bz_self_set(m);
    bz_turns_enter(m);
    bz_ctx_adopt(&m->g0);
    struct bz_stack *first = m->runner;
    if (first != NULL) {
        bz_ctx_init(&first->ctx, first->low, bz_stack_top(first), runner_main, NULL, rt->fpcw);
        bz_ctx_switch(&m->g0, &first->ctx, NULL, NULL);
    }
    for (;;) {
        if (BZ_UNLIKELY(bz_load_relaxed(&m->locked.task) != NULL)) /* relaxed: ours */
            bz_locked_wait(m);
        else if (BZ_UNLIKELY(m->proc != NULL && !bz_is_ending(m)))
            run_from_home(m);
        else
            break;
    }
    clear_up(m);
    bz_turns_leave(m);
    bz_self_set(NULL);
    if (rt->is.thread_stop != NULL)
        rt->is.thread_stop(rt->is.thread_ctx);
    bz_lock_take(&rt->start_lock, rt->os);
    bz_machines_give(rt, m);
    bz_lock_drop(&rt->start_lock, rt->os);
}
