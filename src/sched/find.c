/*
 * find.c - what a machine runs next, and how it goes to sleep when there is nothing.
 *
 * In order: every so many ticks the injector, so that what waits there is not starved by a proc
 * that keeps itself busy; the proc's own ring; due timers; the injector; then it searches: the
 * rings of the others in random order, half of one at a time; then it announces its sleep, looks
 * at everything once more (idle.c has the reason), and sleeps until its first timer or until it is
 * roused.
 *
 * Timers are looked at every TIMERS_EVERY runs whatever the ring holds.
 *
 * I1  A machine that returns a task is not counted as searching: before it runs, the duty to look
 *     for more has been passed on.
 */
#include "sched/sched.h"

enum {
    INJECTOR_EVERY = 61, /* a prime: no rhythm of the program's meets it always */
    TIMERS_EVERY = 32,
    HUNGRY_NS = 1000000 /* how long to wait for somebody to give a stack back */
};

static uint64_t now(struct bz_machine *m)
{
    return bz_os_now(m->rt->os);
}

/* Take a batch from the injector: one to run, the rest into the ring. */
static struct bz_task *take_injected(struct bz_machine *m)
{
    struct bz_chain batch = bz_injector_take(&m->rt->injector, m->rt->proc_count);
    struct bz_link *first = bz_chain_take_front(&batch);
    if (first == NULL)
        return NULL;
    for (struct bz_link *l; (l = bz_chain_take_front(&batch)) != NULL;)
        bz_push_here(m, bz_task_of_link(l));
    return bz_task_of_link(first);
}

static struct bz_task *take_own(struct bz_machine *m)
{
    return (struct bz_task *)bz_runq_take(&m->proc->ring);
}

/* What is at hand without disturbing anybody. */
static struct bz_task *take_near(struct bz_machine *m)
{
    struct bz_proc *p = m->proc;
    struct bz_task *t = NULL;
    if (p->tick % INJECTOR_EVERY == 0)
        t = take_injected(m);
    if (p->tick % TIMERS_EVERY == 0)
        bz_timers_fire(p, now(m));
    if (t == NULL)
        t = take_own(m);
    if (t == NULL && bz_timers_fire(p, now(m)))
        t = take_own(m);
    return t != NULL ? t : take_injected(m);
}

static struct bz_task *steal(struct bz_machine *m)
{
    unsigned count = m->rt->proc_count;
    unsigned start = bz_rng_below(&m->proc->rng, count);
    for (unsigned i = 0; i < count; i++) {
        struct bz_proc *victim = &m->rt->procs[(start + i) % count];
        if (victim == m->proc)
            continue;
        bz_entry e = bz_runq_steal(&victim->ring, &m->proc->ring);
        if (e != 0)
            return (struct bz_task *)e;
    }
    return NULL;
}

static struct bz_task *search(struct bz_machine *m)
{
    if (!m->is_searching && !bz_idle_search(&m->rt->idle))
        return NULL;
    m->is_searching = true;
    struct bz_task *t = steal(m);
    return t != NULL ? t : take_injected(m);
}

static bool is_ending(struct bz_machine *m)
{
    return bz_load_acquire(&m->rt->is_ending) != 0; /* pairs with the release in runtime.c */
}

/* Is there anything a proc could run? The look after the announcement. */
static bool has_work(struct bz_machine *m)
{
    if (is_ending(m) || bz_injector_length(&m->rt->injector) > 0)
        return true;
    for (unsigned i = 0; i < m->rt->proc_count; i++)
        if (bz_runq_count(&m->rt->procs[i].ring) > 0)
            return true;
    return false;
}

static uint64_t sleep_until(struct bz_machine *m)
{
    uint64_t until = bz_timers_first(m->proc);
    if (bz_chain_is_empty(&m->hungry))
        return until;
    uint64_t soon = now(m) + HUNGRY_NS;
    return soon < until ? soon : until;
}

static void go_to_sleep(struct bz_machine *m)
{
    struct bz_proc *p = m->proc;
    bz_store_relaxed(&p->roused, 0); /* relaxed: a rouse that this hides comes from before the
                                        announcement, and the look after it sees its reason */
    bz_idle_announce(&m->rt->idle, p->index, m->is_searching);
    bz_os_delay(m->rt->os, BZ_OS_AT_SLEEP);
    if (!has_work(m))
        bz_os_wait(m->rt->os, &p->roused, 0, sleep_until(m));
    m->is_searching = !bz_idle_stay(&m->rt->idle, p->index);
}

/* A fresh task needs a spare stack on its machine; without one it waits. */
static bool may_run(struct bz_machine *m, struct bz_task *t)
{
    if (t->stack != NULL || bz_machine_has_spare(m))
        return true;
    bz_chain_push_back(&m->hungry, &t->link);
    return false;
}

/* Hungry tasks go back into the ring once there is a spare stack again. */
static void feed(struct bz_machine *m)
{
    if (bz_chain_is_empty(&m->hungry) || !bz_machine_has_spare(m))
        return;
    for (struct bz_link *l; (l = bz_chain_take_front(&m->hungry)) != NULL;)
        bz_push_here(m, bz_task_of_link(l));
}

struct bz_task *bz_find(struct bz_machine *m)
{
    while (!is_ending(m)) {
        feed(m);
        struct bz_task *t = take_near(m);
        if (t == NULL)
            t = search(m);
        if (t == NULL) {
            go_to_sleep(m);
            continue;
        }
        if (m->is_searching) { /* I1 */
            m->is_searching = false;
            bz_rouse(m->rt, bz_idle_found(&m->rt->idle));
        }
        if (may_run(m, t))
            return t;
    }
    return NULL;
}
