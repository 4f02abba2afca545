/*
 * monitor_wake.c - start the monitor's thread, and wake it: the side of the machines.
 *
 * monitor.c has the design and the pairs [S] and [T]. The thread's function comes from the table of rt->mains, so
 * that code which queues a task does not depend on the monitor, which looks at everything.
 */
#include "monitor/monitor.h"

#include <stdio.h>

#include "base/log.h"
#include "proc/state.h"
#include "proc/proc_timer.h"

static int start(struct bz_runtime *rt)
{
    char name[BZ_OS_NAME_MAX];
    struct bz_os_thread_opts opts = {.name = name, .is_prompt = true};
    snprintf(name, sizeof name, "%.*s-mon", BZ_OS_NAME_MAX - 5, rt->is.name);
    return bz_os_thread_start(rt->os, &rt->monitor.thread, &opts, rt->mains->monitor, rt);
}

void bz_monitor_tell(struct bz_runtime *rt)
{
    bz_store_release(&rt->monitor.woken, 1); /* monitor.c [T] */
    bz_os_wake(rt->os, &rt->monitor.woken, 1);
}

/* If the monitor naps, raise it without a lock: all procs may want it at once, and one of them tells it. Return true
 * if the monitor is up: this call, or another one, has changed its state. */
static bool end_nap(struct bz_runtime *rt)
{
    uint32_t state = bz_load_relaxed(&rt->monitor.state); /* relaxed: a first guess */
    while (state == BZ_MONITOR_DOZES || state == BZ_MONITOR_RESTS) {
        /* relaxed: bz_monitor_tell() follows */
        if (bz_cas_weak_rlx_rlx(&rt->monitor.state, &state, BZ_MONITOR_UP)) {
            bz_monitor_tell(rt);
            return true;
        }
    }
    return state >= BZ_MONITOR_UP;
}

bool bz_monitor_raise(struct bz_runtime *rt)
{
    struct bz_monitor *mon = &rt->monitor;
    int err = 0;
    if (end_nap(rt))
        return true;
    bz_lock_take(&rt->start_lock, rt->os);
    /* relaxed: set under the lock */
    if (!mon->is_started && !mon->is_refused && !bz_load_relaxed(&rt->is_ending)) {
        err = start(rt);
        mon->is_started = err == 0;
        mon->is_refused = !mon->is_started;
    }
    bool is_up = mon->is_started;
    if (is_up)
        bz_store_relaxed(&mon->state, BZ_MONITOR_UP); /* relaxed: bz_monitor_tell() follows */
    bz_lock_drop(&rt->start_lock, rt->os);
    if (err != 0) /* not under the lock: the log function may spawn */
        bz_log_once(BLITZ_LOG_WARN,
                    "the monitor's thread could not be started (error %d): going on without", -err);
    if (is_up)
        bz_monitor_tell(rt);
    return is_up;
}

/* True if at most one task is alive: it can delay no other task. A machine that is in the runtime
 * still counts: it may be about to run a hog. */
static bool is_alone(struct bz_runtime *rt)
{
    return bz_live_alive(&rt->tasks.live) <= 1;
}

void bz_monitor_nudge(struct bz_runtime *rt)
{
    uint32_t state = bz_load_relaxed(&rt->monitor.state); /* relaxed: a hint; it looks anyway */
    if (state == BZ_MONITOR_HOGGED)
        bz_monitor_tell(rt);
    else if (state == BZ_MONITOR_DOZES || (state == BZ_MONITOR_NONE && !is_alone(rt)))
        (void)!bz_monitor_raise(rt);
}

void bz_monitor_woke(struct bz_machine *m)
{
    struct bz_runtime *rt = m->rt;
    if (bz_is_plain(rt))
        bz_fence_seqcst(); /* monitor.c [S] */
    else
        bz_compiler_barrier();                            /* monitor.c [S] */
    uint32_t state = bz_load_relaxed(&rt->monitor.state); /* relaxed: monitor.c [S] */
    if (state == BZ_MONITOR_DOZES ||
        (state == BZ_MONITOR_NONE &&
         (bz_timers_first(m->proc) != BZ_OS_FOREVER || bz_poll_is_used(&m->proc->poll))))
        (void)!bz_monitor_raise(rt); /* no monitor, no rescue */
}

/* ---- deadlock.c needs a monitor ---- */

uint64_t bz_deadlock_patience(struct bz_runtime *rt, uint64_t until)
{
    /* relaxed: once it is started it stays; likewise, and one look more or less */
    if (BZ_LIKELY(bz_load_relaxed(&rt->monitor.state) != BZ_MONITOR_NONE) ||
        until != BZ_OS_FOREVER || bz_load_relaxed(&rt->deadlock.is_blind) ||
        bz_live_alive(&rt->tasks.live) == 0)
        return until;
    return bz_os_now(rt->os) + BZ_DEADLOCK_FIRST_NS;
}

void bz_deadlock_wants_monitor(struct bz_runtime *rt)
{
    if (!bz_monitor_raise(rt))
        bz_store_relaxed(&rt->deadlock.is_blind, 1); /* relaxed: as above */
}
