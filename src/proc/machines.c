/*
 * machines.c - the table of the machines of a runtime.
 *
 * Machines are numbered, the lowest free number first, so that the machines in use are near the front,
 * where thieves look.
 *
 * [M] take: slot release, count release -> at, count: acquire   the machine is made
 */
#include "proc/proc.h"

#include <errno.h>

#include "proc/state.h"

int bz_machines_init(struct bz_runtime *rt, unsigned max, uint64_t seed)
{
    struct bz_machines *all = &rt->machines;
    all->max = max;
    all->seed = seed;
    all->made = 0;
    bz_atomic_init(&all->count, 0);
    all->slot = bz_alloc(&rt->alloc, max * sizeof *all->slot, BZ_LINE);
    for (unsigned i = 0; all->slot != NULL && i < max; i++)
        bz_atomic_init(&all->slot[i], NULL);
    return all->slot != NULL ? 0 : -ENOMEM;
}

void bz_machines_fini(struct bz_runtime *rt)
{
    struct bz_machines *all = &rt->machines;
    for (unsigned i = 0; i < all->made; i++) {
        struct bz_machine *m = bz_load_relaxed(&all->slot[i]); /* relaxed: no other user is left */
        bz_free(&bz_allocator_libc, m->small_block, BZ_SMALL_BLOCK_BYTES);
        bz_free(&rt->alloc, m, sizeof *m);
    }
    bz_free(&rt->alloc, all->slot, all->max * sizeof *all->slot);
}

unsigned bz_machines_count(struct bz_runtime *rt)
{
    return bz_load_acquire(&rt->machines.count); /* [M] */
}

struct bz_machine *bz_machines_at(struct bz_runtime *rt, unsigned i)
{
    return bz_load_acquire(&rt->machines.slot[i]); /* [M]; stronger than needed: likewise */
}

static struct bz_machine *machine_new(struct bz_runtime *rt, unsigned index)
{
    struct bz_machine *m = bz_alloc(&rt->alloc, sizeof *m, _Alignof(struct bz_machine));
    if (m == NULL)
        return NULL;
    *m = (struct bz_machine){.rt = rt, .index = index, .time = rt->time};
    bz_deque_init(&m->deque, bz_is_plain(rt));
    bz_machine_hold(m, NULL);
    bz_jobs_init(&m->jobs);
    bz_retake_init(&m->taken, rt->os, bz_is_plain(rt));
    bz_halt_init(&m->turn.halt);
    bz_atomic_init(&m->is_stray, 0);
    bz_atomic_init(&m->is_going, 0);
    bz_locked_init(&m->locked);
    bz_rng_init(&m->rng, ~rt->machines.seed + index); /* unlike a proc's seed: runtime.c */
    bz_atomic_init(&m->calls, 0);
    bz_busy_count_init(&m->busy);
    return m;
}

struct bz_machine *bz_machines_take(struct bz_runtime *rt)
{
    struct bz_machines *all = &rt->machines;
    unsigned i = 0;
    while (i < all->made && bz_machines_at(rt, i)->is_used)
        i++;
    if (i == all->made) {
        struct bz_machine *m = i < all->max ? machine_new(rt, i) : NULL;
        if (m == NULL)
            return NULL;
        /* [M]; stronger than needed: so is the count, but some callers have an index from
         * elsewhere */
        bz_store_release(&all->slot[i], m);
        all->made++;
    }
    struct bz_machine *m = bz_machines_at(rt, i);
    m->is_used = true;
    if (i >= bz_load_relaxed(&all->count))    /* relaxed: written under the lock */
        bz_store_release(&all->count, i + 1); /* [M] */
    return m;
}

void bz_machines_give(struct bz_runtime *rt, struct bz_machine *m)
{
    struct bz_machines *all = &rt->machines;
    m->is_used = false;
    uint32_t count = bz_load_relaxed(&all->count); /* relaxed: written under the lock */
    while (count > 0 && !bz_machines_at(rt, count - 1)->is_used)
        count--;
    bz_store_release(&all->count, count); /* [M]; stronger than needed: so are the slots */
}

struct bz_machine *bz_proc_machine(struct bz_runtime *rt, uint32_t word)
{
    return bz_machines_at(rt, word >> BZ_PROC_STATE_BITS);
}

bool bz_job_is_any(struct bz_runtime *rt)
{
    for (unsigned i = bz_machines_count(rt); i-- > 0;)
        if (bz_deque_has_work(&bz_machines_at(rt, i)->deque))
            return true;
    return false;
}
