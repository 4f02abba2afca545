/*
 * quick_spawn.h - the common spawn, of fibers (fiber.c) and of small stackless tasks (stackless.c).
 *
 * Most spawns come from a task, without options. They find a header that is ready on their proc: it has the values that
 * bz_task_init() would write for a fiber, except for those of bz_ready_fill() and the word. The header's creator writes
 * these, and the task goes into the next slot. All of it is one entry into the runtime.
 */
#ifndef BZ_LIFE_QUICK_SPAWN_H
#define BZ_LIFE_QUICK_SPAWN_H

#include "life/spawn.h"
#include "proc/enter.h"
#include "proc/fresh.h"
#include "proc/monitor_wake.h"
#include "proc/now.h"

/* True if a header is ready, and no rare case holds. In the runtime, with a proc. */
static BZ_ALWAYS_INLINE bool bz_ready_is_there(struct bz_runtime *rt, const struct bz_task_home *h)
{
    return !bz_monitor_is_down(rt) && BZ_LIKELY(h->stash.count != 0) &&
           BZ_LIKELY(h->id_next != h->id_end);
}

/* A spawn has tried to enter the runtime and found a rare case: enter, and make headers ready. False: spawn the slow way.
 * In the runtime on return. */
BZ_MUST_USE bool bz_ready_make(struct bz_machine *m);

/* The fields that change from task to task. */
static BZ_ALWAYS_INLINE void bz_ready_fill(struct bz_runtime *rt, struct bz_task *t)
{
    t->name = NULL;
    t->marks = 0;
    t->traits = 0;
    t->born = bz_age_now(&rt->clock);
}

/* The runtime is shutting down; leave it. */
int bz_spawn_refused(struct bz_machine *m, struct bz_task *t, blitz_task **out);
/* Queue what was in the next slot before, and leave the runtime. */
int bz_spawn_evicts(struct bz_machine *m, bz_entry old);

/* Count the task, put it into the next slot, and leave the runtime. */
BZ_MUST_USE static BZ_ALWAYS_INLINE int bz_ready_start(struct bz_machine *m, struct bz_runtime *rt,
                                                       struct bz_proc *p, struct bz_task *t,
                                                       blitz_task **out)
{
    if (BZ_UNLIKELY(!bz_live_spawn_is_open(&rt->tasks.live, &p->tasks.live)))
        return bz_spawn_refused(m, t, out);
    if (out != NULL)
        *out = (blitz_task *)t;
    BZ_PROBE(spawn, t->id, 0);
    bz_entry old = bz_load_relaxed(&p->next);      /* relaxed: ours to touch */
    bz_store_relaxed(&p->next, bz_entry_first(t)); /* relaxed: likewise */
    if (old != 0)
        return bz_spawn_evicts(m, old);
    bz_leave_on(m, BZ_IN_USER);
    return 0;
}

/* Drop a header that has no references any more, and has the values of a ready one: keep it for the next spawn. */
void bz_ready_drop(struct bz_task *t);

#endif
