/*
 * start.c - a thread for a proc.
 *
 * Threads start lazily: a proc that never had a machine counts as asleep, and rousing it starts a thread for it.
 * If the system refuses, that proc stays out of use until the monitor needs it and tries again, and another proc
 * is roused instead. Proc 0's machine is started with the runtime, so there is always one.
 */
#include <errno.h>

#include "base/log.h"
#include "proc/monitor_wake.h"
#include "proc/place.h"
#include "proc/state.h"

int bz_machine_start(struct bz_proc *p, bool is_searching)
{
    struct bz_runtime *rt = p->rt;
    struct bz_machine *m = bz_machines_take(rt);
    if (m == NULL)
        return -ENOMEM;
    bz_store_relaxed(&m->is_guest, 0); /* relaxed: ours; the monitor peeks */
    m->is_searching = is_searching;
    m->was_roused = false;
    m->spins_more = 0;
    m->current = NULL;
    m->handed = 0;
    m->now_ns = 0;
    m->heard_ns = 0;
    bz_store_relaxed(&m->taken.where, BZ_IN_RUNTIME); /* relaxed: published with the state */
    bz_stack_cache_init(&m->stacks, &rt->stacks);
    int err = bz_stack_take(&m->stacks, rt->stack_class, &m->runner);
    if (err != 0 && !rt->is_up)
        goto drop_cache;
    if (err != 0)
        m->runner =
            NULL; /* it begins on g0: timers must fire. Its first look for work says that stacks are short */
    bz_proc_give(p, m);
    err = bz_pool_run(&rt->pool, rt->mains->machine, m, &m->thread);
    if (err == 0)
        return 0;
    bz_store_relaxed(&p->state, bz_proc_word(BZ_PROC_STARTING, 0)); /* relaxed: no thread came */
    if (m->runner != NULL)
        bz_stack_give(&m->stacks, m->runner);
drop_cache:
    bz_stack_cache_fini(&m->stacks);
    bz_machines_give(rt, m);
    return err;
}

int bz_proc_start(struct bz_proc *p, bool is_searching)
{
    struct bz_runtime *rt = p->rt;
    int err = 0;
    bz_lock_take(&rt->start_lock, rt->os);
    if (!bz_load_relaxed(&rt->is_ending)) /* relaxed: set under the lock */
        err = bz_machine_start(p, is_searching);
    bz_lock_drop(&rt->start_lock, rt->os);
    if (err != 0)
        bz_proc_abandon(p);
    if (err != 0) /* not under the lock: the log function may spawn */
        bz_log_once(BLITZ_LOG_WARN,
                    "a worker thread could not be started (error %d): going on with fewer", -err);
    else
        (void)!bz_monitor_is_up(rt); /* the monitor has work from the second machine on */
    return err;
}
