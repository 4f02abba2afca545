/*
 * resize.c - blitz_runtime_resize(): procs are retired, and used again.
 *
 * retire.c has the protocol: what a retired proc does, and how its machine learns of it. Here the number changes, and
 * each proc that it concerns is told. A proc without a machine is taken out of the idle set, or gets a machine. A
 * proc that sleeps is roused, and a machine that runs sees it by itself.
 *
 * The lock orders resizes. It is held while threads are roused, never while one is waited for.
 */
#include "runtime/resize.h"

#include <errno.h>

#include "blitz/runtime.h"
#include "proc/place.h"
#include "proc/proc_timer.h"
#include "proc/retire.h"

/* No thread runs yet. */
void bz_resize_init(struct bz_runtime *rt)
{
    for (unsigned i = rt->is.procs; i < rt->proc_count; i++) {
        bz_idle_take_out(&rt->idle, i);
        bz_atomic_init(&rt->procs[i].state, bz_proc_word(BZ_PROC_UNUSED, 0));
    }
    bz_atomic_init(&rt->idle.active, rt->is.procs);
}

/* A proc without a machine, which this thread has claimed, goes out of use. A task or a timer may have come between the
 * claim and this step: its thread found the proc claimed, and relies on us. */
static void put_away(struct bz_proc *p)
{
    bz_store_release(&p->state, bz_proc_word(BZ_PROC_UNUSED, 0)); /* proc.c [S] */
    bz_fence_seqcst();                                            /* retire.c [S] */
    if (!bz_inbox_is_empty(&p->inbox) || bz_timers_first(p) != BZ_OS_FOREVER)
        (void)bz_rouse_for(p);
}

/* The proc is retired from now on. If it is not in the idle set, its machine runs or will run, and notices. */
static void retire(struct bz_proc *p)
{
    struct bz_runtime *rt = p->rt;
    int wanted = bz_idle_wanted(&rt->idle, p->index); /* retire.c [R] */
    if (wanted == (int)p->index && bz_proc_adopt(p)) {
        put_away(p);
        wanted = bz_idle_found(&rt->idle); /* another proc searches in its stead */
    }
    bz_rouse(rt, wanted);
}

/* The proc may run tasks again. A machine that serves it learns so; without a machine it gets one. */
static void reuse(struct bz_proc *p)
{
    uint32_t word = bz_load_relaxed(&p->state); /* relaxed: the CAS decides */
    if (bz_proc_state_of(word) != BZ_PROC_UNUSED)
        bz_poll_rouse(&p->poll);
    else if (bz_cas_strong_acq_rlx(&p->state, &word,
                                   bz_proc_word(BZ_PROC_STARTING, 0))) /* proc.c [S] */
        (void)!bz_proc_start(p, false); /* else it is an orphan, which the monitor starts */
}

int blitz_runtime_resize(blitz_runtime *runtime, unsigned procs)
{
    struct bz_machine *m = bz_machine_self();
    struct bz_runtime *rt = (struct bz_runtime *)runtime;
    if (rt == NULL && m != NULL)
        rt = m->rt;
    if (rt == NULL || procs == 0 || procs > rt->proc_count)
        return -EINVAL;
    bz_lock_take(&rt->resize_lock, rt->os);
    unsigned before = bz_procs_active(rt);
    bz_store_relaxed(&rt->idle.active, procs); /* relaxed: the fence, retire.c [R] */
    bz_fence_seqcst();                         /* retire.c [R] */
    for (unsigned i = procs; i < before; i++)
        retire(&rt->procs[i]);
    for (unsigned i = before; i < procs; i++)
        reuse(&rt->procs[i]);
    bz_lock_drop(&rt->resize_lock, rt->os);
    if (procs > before)
        bz_rouse_one(rt); /* there may be work for the new ones */
    return 0;
}
