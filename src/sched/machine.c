/*
 * machine.c - a thread that runs tasks: its loop, and how a task leaves the stack it stands on.
 *
 * Stacks are interchangeable runner loops. At the bottom of every runner stack stands the same
 * loop: find a task, run it, again. A fresh task is *called* on the stack the machine happens to
 * be on, and most return without having waited: they cost a call. A task that has to wait keeps
 * the stack, loop frame and all, and the machine goes on looping on another one. When it is woken,
 * whichever machine takes it switches to that stack; the task goes on, returns into the loop frame
 * beneath it, and that loop carries on there, for the machine that is now on it.
 *
 *     machine 1: [loop|task A    suspend] --> [loop|task B ...          ]
 *     machine 2:                                  [loop] --resume A--> [loop|task A ... return]loop
 *
 * So nothing in the loop may remember which machine it is: "who am I" is read afresh after every
 * call that may suspend. The machine's own (native) stack, g0, is where the thread starts and ends;
 * no task runs there.
 *
 * A suspension cannot fail: while a task runs its machine has a spare stack. It takes one before it
 * runs a fresh task; if there is none to be had the task stays hungry and the machine runs only
 * tasks that have a stack, each of which frees the one the machine stood on.
 *
 * A task that is spawned with another size of stack is given one of that class there and then, so
 * that the spawn can say that there is none; it begins by a switch, as if it had waited on it from
 * the start. When it has returned, that stack is left for the spare one.
 *
 * A task is published (stepped to idle or scheduled) by a hook that runs on the next stack, when
 * its own has been left: see word.c.
 *
 * I1  While `current` is set, `spare` is.
 * I2  `runner` is the stack under the thread's feet, or NULL on g0.
 * I3  A task that does not run either has no stack, or stands on task->stack, whose ctx is valid.
 *
 * A task that leaves its stack takes its successor first. If that has a stack it is switched to
 * straight away; else a fresh loop is handed the successor. (The plain form always goes through a
 * fresh loop.) A yield does not touch the state word: the task stays *running* in it while it is
 * queued, a wake that comes meanwhile says notified, and the next park finds it. Nobody else ready:
 * a yield returns at once.
 */
#include "sched/sched.h"

#include <errno.h>

#include "base/log.h"

static void runner_main(void *arg);

bool bz_machine_has_spare(struct bz_machine *m)
{
    if (m->spare != NULL)
        return true;
    int err = bz_stack_take(&m->stacks, m->rt->stack_class, &m->spare);
    if (err != 0)
        bz_log_once(BLITZ_LOG_WARN,
                    "no stack to be had (error %d): tasks that have not started wait", -err);
    return err == 0;
}

/* ---- leaving a stack ---- */

/* It was taken from a queue and is ours to run. One that only yielded is running in its word. */
static void begin(struct bz_task *t)
{
    if (bz_word_life(&t->word) == BZ_RUNNING)
        return;
    enum bz_owes owes = bz_word_step(&t->word, BZ_RUN);
    BZ_ASSERT(owes == BZ_OWES_NOTHING);
    (void)owes;
}

/* A loop on the spare stack, for this machine to go on with. */
static struct bz_stack *fresh_loop(struct bz_machine *m)
{
    struct bz_stack *to = m->spare;
    BZ_ASSERT(to != NULL); /* I1 */
    m->spare = NULL;
    m->runner = to;
    bz_ctx_init(&to->ctx, to->low, bz_stack_top(to), runner_main, NULL, m->rt->fpcw);
    return to;
}

/* The task goes on, on the stack it stands on. */
static struct bz_stack *take_up(struct bz_machine *m, struct bz_task *t)
{
    struct bz_stack *to = t->stack;
    t->stack = NULL;
    m->current = t;
    m->runner = to;
    bz_count(&m->proc->counters, run);
    bz_watch_begin(m, t);
    return to;
}

/* Stand on the successor's stack if it has one, else on a fresh loop that calls it. */
static struct bz_stack *stack_for(struct bz_machine *m, bz_entry next)
{
    struct bz_task *t = bz_entry_tag(next) != BZ_ENTRY_JOB ? bz_entry_task(next) : NULL;
    if (t != NULL && t->stack != NULL) {
        begin(t);
        return take_up(m, t);
    }
    m->handed = next;
    m->current = NULL;
    return fresh_loop(m);
}

/* The one place where a task's stack is left in the middle. */
static BZ_NOINLINE void leave_for(struct bz_machine *m, bz_entry next, bz_ctx_hook *hook, void *arg)
{
    struct bz_stack *from = m->runner;
    BZ_ASSERT(m->current != NULL);
    bz_evacuate(m);
    m->current->stack = from; /* I3 */
    m->current->marks |= BZ_MARK_WAITED;
    if (BZ_BROKEN(83)) { /* published while its stack is still stood on */
        hook(arg);
        hook = NULL;
    }
    bz_watch_leave(m, m->current, &hook, &arg);
    struct bz_stack *to = stack_for(m, next);
    bz_count(&m->proc->counters, switches);
    bz_os_delay(m->rt->os, BZ_OS_AT_SWITCH);
    bz_ctx_switch(&from->ctx, &to->ctx, hook, arg);
}

void bz_suspend(bz_ctx_hook *hook, void *arg)
{
    struct bz_machine *m = bz_machine_self();
    uint32_t was = bz_enter(m);
    bz_count(&m->proc->counters, parked);
    bz_stack_settle(m->runner); /* it may be for long */
    leave_for(m, bz_is_plain(m->rt) ? 0 : bz_find_near(m), hook, arg);
    bz_leave(was);
}

static void step_then_place(struct bz_task *t, enum bz_event event)
{
    bz_os_delay(t->rt->os, BZ_OS_AT_PUBLISH);
    if (bz_word_step(&t->word, event) == BZ_OWES_ENQUEUE)
        bz_place(t->rt, bz_entry_resumed(t));
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
        bz_place_last(bz_entry_resumed(t)); /* its word stays as it is: nobody looks at it */
}

void bz_park(void)
{
    bz_suspend(hook_park, bz_task_self());
}

void bz_yield(void)
{
    struct bz_machine *m = bz_machine_self();
    uint32_t was = bz_enter(m);
    bz_entry next = bz_is_plain(m->rt) ? 0 : bz_find_near(m);
    if (next != 0 || bz_is_plain(m->rt)) {
        bz_count(&m->proc->counters, yielded);
        leave_for(m, next, hook_yield, m->current);
    }
    bz_leave(was);
}

/* A stack has been left for good: it is the machine's spare, or goes to its cache. */
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

/* Go on with a task that has a stack; this loop ends here. */
BZ_NORETURN static void resume(struct bz_machine *m, struct bz_task *t)
{
    struct bz_stack *mine = m->runner;
    bz_count(&m->proc->counters, switches);
    bz_ctx_leave(&take_up(m, t)->ctx, hook_give_back, mine);
}

/* ---- the loop ---- */

void bz_task_set_aside(struct bz_task *t, enum bz_ran ran)
{
    struct bz_counters *counters = &bz_machine_self()->proc->counters;
    if (ran == BZ_RAN_PENDING) {
        bz_count(counters, parked);
        step_then_place(t, BZ_PARK);
    } else {
        bz_count(counters, yielded);
        hook_yield(t);
    }
}

static void call(struct bz_task *t)
{
    struct bz_machine *m = bz_machine_self();
    m->current = t;
    bz_count(&m->proc->counters, run);
    bz_watch_begin(m, t);
    bz_leave(BZ_IN_USER);
    enum bz_ran ran = t->ops->run(t);
    m = bz_machine_self(); /* whoever we are now */
    bz_enter(m);
    m->current = NULL;
    bz_watch_end(m, t);
    if (ran == BZ_RAN_DONE)
        bz_task_finish(t);
    else if (ran == BZ_RAN_JOB)
        bz_job_finish(t);
    else
        bz_task_set_aside(t, ran);
}

static void runner_main(void *arg)
{
    bz_entry e;
    (void)arg;
    while ((e = bz_find(bz_machine_self())) != 0) {
        struct bz_machine *m = bz_machine_self();
        struct bz_task *t = bz_entry_task(e);
        begin(t);
        if (t->stack != NULL)
            resume(m, t);
        call(t);
    }
    struct bz_machine *m = bz_machine_self();
    struct bz_stack *mine = m->runner;
    m->runner = NULL;
    bz_ctx_leave(&m->g0, hook_give_back, mine);
}

/* ---- other classes ---- */

/* The bottom of a stack of another class: one task, and back to a loop of the usual one. */
static void class_main(void *arg)
{
    struct bz_machine *m = bz_machine_self();
    (void)arg;
    bz_watch_end(m, m->current); /* it begins again in call */
    call(m->current);
    m = bz_machine_self();
    struct bz_stack *mine = m->runner;
    bz_ctx_leave(&fresh_loop(m)->ctx, hook_give_back, mine);
}

/* The cache of the machine we are, or one for the moment. */
static struct bz_stack_cache *cache_here(struct bz_runtime *rt, struct bz_stack_cache *own)
{
    struct bz_machine *m = bz_machine_self();
    if (m != NULL && m->rt == rt)
        return &m->stacks;
    bz_stack_cache_init(own, &rt->stacks);
    return own;
}

int bz_task_take_stack(struct bz_task *t)
{
    struct bz_stack_cache own, *cache = cache_here(t->rt, &own);
    struct bz_stack *s;
    int err = bz_stack_take(cache, (enum bz_stack_class)t->stack_class, &s);
    if (cache == &own)
        bz_stack_cache_fini(&own);
    if (err != 0)
        return err;
    bz_ctx_init(&s->ctx, s->low, bz_stack_top(s), class_main, NULL, t->rt->fpcw);
    t->stack = s; /* I3: as if it had waited at the very beginning */
    return 0;
}

void bz_task_give_stack(struct bz_task *t)
{
    struct bz_stack_cache own, *cache = cache_here(t->rt, &own);
    bz_ctx_fini(&t->stack->ctx);
    bz_stack_give(cache, t->stack);
    if (cache == &own)
        bz_stack_cache_fini(&own);
    t->stack = NULL;
}

/* ---- the thread ---- */

static void machine_main(void *arg)
{
    struct bz_machine *m = arg;
    struct bz_settings *is = &m->rt->is; /* stays until we are joined */
    if (is->thread_start != NULL)
        is->thread_start(is->thread_ctx); /* as a plain thread: not in the runtime yet */
    bz_self_set(m);
    bz_preempt_sit(m);
    /* Not later by the starter alone: whoever looks for work or for jobs to cancel must look here
     * as soon as there can be any. */
    bz_store_release(&m->proc->has_machine, 1); /* place.c [B] */
    bz_ctx_adopt(&m->g0);
    struct bz_stack *first = m->runner;
    bz_ctx_init(&first->ctx, first->low, bz_stack_top(first), runner_main, NULL, m->rt->fpcw);
    bz_ctx_switch(&m->g0, &first->ctx, NULL, NULL);
    /* The loop has ended; the hook has given its stack back. */
    if (m->spare != NULL)
        bz_stack_give(&m->stacks, m->spare);
    bz_stack_cache_fini(&m->stacks);
    bz_jobs_fini(m);
    bz_preempt_rise(m);
    bz_self_set(NULL);
    if (is->thread_stop != NULL)
        is->thread_stop(is->thread_ctx);
}

void bz_machine_free(struct bz_machine *m)
{
    bz_free(&m->rt->alloc, m, sizeof *m);
}

int bz_machine_start(struct bz_runtime *rt, struct bz_proc *p)
{
    struct bz_machine *m = bz_alloc(&rt->alloc, sizeof *m, _Alignof(struct bz_machine));
    if (m == NULL)
        return -ENOMEM;
    *m = (struct bz_machine){.rt = rt, .proc = p, .is_searching = p->index != 0};
    bz_deque_init(&m->deque, bz_is_plain(rt));
    bz_jobs_init(&m->jobs);
    bz_entries_init(&m->hungry);
    bz_stack_cache_init(&m->stacks, &rt->stacks);
    int err = bz_stack_take(&m->stacks, rt->stack_class, &m->runner);
    if (err != 0)
        goto drop_cache;
    p->machine = m;
    err = bz_pool_run(&rt->pool, machine_main, m, NULL);
    if (err == 0) {
        bz_store_release(&p->has_machine, 1); /* place.c [B] */
        return 0;
    }
    p->machine = NULL;
    bz_stack_give(&m->stacks, m->runner);
drop_cache:
    bz_stack_cache_fini(&m->stacks);
    bz_machine_free(m);
    return err;
}
