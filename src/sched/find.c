/*
 * find.c - what a machine runs next.
 *
 * In order: every so many ticks the injector, so that what waits there is not starved by a proc
 * that keeps itself busy; the proc's own ring; due timers; the injector. Then it searches, and
 * sleeps if there is nothing anywhere: search.c.
 *
 * Timers are looked at every TIMERS_EVERY runs whatever the ring holds.
 *
 * I1  A machine that returns a task is not counted as searching: before it runs, the duty to look
 *     for more has been passed on.
 */
#include "sched/sched.h"

enum {
    INJECTOR_EVERY = 61, /* a prime: no rhythm of the program's meets it always */
    TIMERS_EVERY = 32
};

static uint64_t now(struct bz_machine *m)
{
    return bz_os_now(m->rt->os);
}

/* Take a batch from the injector: one to run, the rest into the ring. */
struct bz_task *bz_take_injected(struct bz_machine *m)
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

struct bz_task *bz_find_near(struct bz_machine *m)
{
    struct bz_proc *p = m->proc;
    struct bz_task *t = NULL;
    p->tick++;
    if (p->tick % INJECTOR_EVERY == 0)
        t = bz_take_injected(m);
    if (p->tick % TIMERS_EVERY == 0)
        bz_timers_fire(p, now(m));
    if (t == NULL)
        t = take_own(m);
    if (t == NULL && bz_timers_fire(p, now(m)))
        t = take_own(m);
    return t != NULL ? t : bz_take_injected(m);
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

static struct bz_task *take_handed(struct bz_machine *m)
{
    struct bz_task *t = m->handed;
    m->handed = NULL;
    return t;
}

struct bz_task *bz_find(struct bz_machine *m)
{
    while (!bz_is_ending(m)) {
        feed(m);
        struct bz_task *t = take_handed(m);
        if (t == NULL)
            t = bz_find_near(m);
        if (t == NULL)
            t = bz_search(m);
        if (t == NULL) {
            bz_go_to_sleep(m);
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
