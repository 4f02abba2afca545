/*
 * stacks.c - the stacks of machines and of tasks that begin: the spare, the shortage.
 *
 * A machine keeps a spare stack, so that a suspension cannot fail (machine.c). If the system refuses a stack, the
 * runtime is *short* (is_short). From then on a spawn takes the new task's stack at once, and returns -ENOMEM if
 * there is none. This ends when a spawn finds two stacks. Machines that sleep meanwhile do so on g0, and give their
 * stacks to the pool. host.c has what happens to tasks that are ready and find no stack.
 *
 * A task of another class of stack gets its stack in the spawn. It begins by a switch, as if it had waited on that
 * stack from the start.
 *
 * [S] begins: is_short store, then the full fence of idle.c, wanted -> sleep: the full fence of idle.c, announce, then
 *     is_short load   the sleeper sees the shortage, or is seen to sleep
 */
#include "proc/state.h"

#include "base/log.h"
#include "base/unusual.h"
#include "life/stacks.h"
#include "proc/place.h"

/* ---- the spare ---- */

void bz_machine_share_stacks(struct bz_machine *m)
{
    if (m->spare != NULL)
        bz_stack_give(&m->stacks, m->spare);
    m->spare = NULL;
    bz_stack_cache_fini(&m->stacks);
    bz_stack_cache_init(&m->stacks, &m->rt->stacks);
}

void bz_guests_share(struct bz_runtime *rt)
{
    struct bz_guests *g = &rt->guests;
    bz_lock_take(&g->lock, rt->os);
    for (struct bz_machine *m = g->idle; m != NULL; m = m->next_guest)
        bz_machine_share_stacks(m);
    bz_lock_drop(&g->lock, rt->os);
}

void bz_shortage_begins(struct bz_runtime *rt)
{
    if (bz_is_short(rt) ||
        bz_xchg_relaxed(&rt->tasks.is_short, 1) != 0) /* relaxed: [S]'s fences order it */
        return;
    bz_unusual_begin();
    bz_guests_share(rt);
    for (unsigned i = 0; i < rt->proc_count; i++) {
        struct bz_proc *p = &rt->procs[i];
        uint32_t word =
            bz_load_relaxed(&p->state); /* relaxed: one without a machine has no stack */
        if (bz_proc_state_of(word) >= BZ_PROC_ASLEEP)
            bz_rouse(rt, bz_idle_wanted(&rt->idle, i)); /* [S] */
    }
}

bool bz_machine_has_spare(struct bz_machine *m)
{
    if (m->spare != NULL)
        return true;
    int err = bz_stack_take(&m->stacks, m->rt->stack_class, &m->spare);
    if (err == 0)
        return true;
    bz_shortage_begins(m->rt);
    bz_log_once(BLITZ_LOG_WARN,
                "no stack to be had (error %d): new tasks are refused, or wait for one", -err);
    return false;
}

/* ---- stacks of tasks ---- */

/* Return the cache of the current machine, or initialize a temporary one. */
static struct bz_stack_cache *cache_here(struct bz_runtime *rt, struct bz_stack_cache *own)
{
    struct bz_machine *m = bz_machine_self();
    if (m != NULL && m->rt == rt)
        return &m->stacks;
    bz_stack_cache_init(own, &rt->stacks);
    return own;
}

void bz_shortage_ends(struct bz_runtime *rt)
{
    if (bz_xchg_relaxed(&rt->tasks.is_short, 0) != 0) /* relaxed: a hint */
        bz_unusual_end();
}

/* A stack was taken while stacks are short. If there is another one, the shortage is over. */
static void review_shortage(struct bz_runtime *rt, enum bz_stack_class class)
{
    struct bz_stack_cache own;
    struct bz_stack *s;
    if (class != rt->stack_class)
        return;
    bz_stack_cache_init(&own, &rt->stacks);
    if (bz_stack_take(&own, class, &s) == 0) {
        bz_shortage_ends(rt);
        bz_stack_give(&own, s);
    }
    bz_stack_cache_fini(&own);
}

/* Take the machine's spare, which is the last stack: a task that begins needs it more. g0 is left: machine.c I1. */
static struct bz_stack *take_spare(void)
{
    struct bz_machine *m = bz_machine_self();
    struct bz_stack *s = m->spare;
    m->spare = NULL;
    return s;
}

void bz_task_begin_on(struct bz_task *t, struct bz_stack *s)
{
    bz_ctx_init(&s->ctx, s->low, bz_stack_top(s), t->rt->mains->stack, NULL, t->rt->fpcw);
    t->stack = s; /* machine.c I3: as if it had waited at the very beginning */
}

int bz_task_take_stack(struct bz_task *t)
{
    struct bz_stack_cache own, *cache = cache_here(t->rt, &own);
    struct bz_stack *s;
    int err = bz_stack_take(cache, (enum bz_stack_class)t->stack_class, &s);
    if (cache == &own)
        bz_stack_cache_fini(&own);
    else if (err != 0 && t->stack_class == t->rt->stack_class && (s = take_spare()) != NULL)
        err = 0;
    if (err != 0)
        return err;
    if (BZ_UNLIKELY(bz_is_short(t->rt)))
        review_shortage(t->rt, (enum bz_stack_class)t->stack_class);
    bz_task_begin_on(t, s);
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
