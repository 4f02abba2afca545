/*
 * search.c - when a proc has nothing of its own: search the others, announce sleep, sleep.
 *
 * The rings of the others in random order, half of one at a time. If there is nothing the machine
 * announces its sleep, looks at everything once more (idle.c has the reason), and sleeps until its
 * first timer or until it is roused.
 */
#include "sched/sched.h"

enum { HUNGRY_NS = 1000000 /* how long to wait for somebody to give a stack back */ };

static bz_entry steal(struct bz_machine *m)
{
    unsigned count = m->rt->proc_count;
    unsigned start = bz_rng_below(&m->proc->rng, count);
    for (unsigned i = 0; i < count; i++) {
        struct bz_proc *victim = &m->rt->procs[(start + i) % count];
        if (victim == m->proc)
            continue;
        bz_entry e = bz_job_steal(victim);
        if (e == 0)
            e = bz_runq_steal(&victim->ring, &m->proc->ring);
        if (e != 0)
            return e;
    }
    return 0;
}

bz_entry bz_search(struct bz_machine *m)
{
    if (!m->is_searching && !bz_idle_search(&m->rt->idle))
        return 0;
    m->is_searching = true;
    bz_entry e = steal(m);
    return e != 0 ? e : bz_take_injected(m);
}

/* Is there anything a proc could run? The look after the announcement. */
static bool has_work(struct bz_machine *m)
{
    if (bz_is_ending(m) || bz_injector_length(&m->rt->injector) > 0)
        return true;
    if (bz_get(&m->proc->next) != 0) /* our own: a destructor of the last task woke it */
        return true;
    for (unsigned i = 0; i < m->rt->proc_count; i++)
        if (bz_runq_count(&m->rt->procs[i].ring) > 0 || bz_job_is_exposed(&m->rt->procs[i]))
            return true;
    return false;
}

static uint64_t sleep_until(struct bz_machine *m)
{
    uint64_t until = bz_timers_first(m->proc);
    if (bz_entries_is_empty(&m->hungry))
        return until;
    uint64_t soon = bz_os_now(m->rt->os) + HUNGRY_NS;
    return soon < until ? soon : until;
}

#if defined(BZ_WATCH)
static void sleep_now(struct bz_machine *m, uint64_t until)
{
    bz_watch_sleep(m, until);
}
#else
static void sleep_now(struct bz_machine *m, uint64_t until)
{
    bz_os_wait(m->rt->os, &m->proc->roused, 0, until);
}
#endif

void bz_go_to_sleep(struct bz_machine *m)
{
    struct bz_proc *p = m->proc;
    bz_tasks_rest(&p->tasks);
    bz_store_relaxed(&p->roused, 0); /* relaxed: a rouse that this hides comes from before the
                                        announcement, and the look after it sees its reason */
    bool is_last = bz_idle_announce(&m->rt->idle, p->index, m->is_searching);
    bool will_search = is_last ? has_work(m) : bz_is_ending(m);
    bz_os_delay(m->rt->os, BZ_OS_AT_SLEEP);
    if (!will_search)
        sleep_now(m, sleep_until(m));
    m->is_searching = bz_idle_stay(&m->rt->idle, p->index, will_search);
}
