/*
 * sched/find.c, and the loop in sched/machine.c: which task a machine runs next, and on which stack. On one proc the
 * order is a fact.
 */
#include "harness.h"
#include "support/alone.h"
#include "support/sim.h"

#include "life/deadlines.h"
#include "proc/batch.h"
#include "proc/enter.h"
#include "proc/fresh.h"
#include "proc/place.h"
#include "runtime/runtime.h"
#include "sched/loop.h"

static int nothing(void *arg)
{
    (void)arg;
    return 0;
}

/* ---- a claimed task in the `next` slot ---- */

/* Join t, which is in the slot of p, as a task on another proc does: its entry stays there as a tombstone. */
static void claim_from_afar(struct bz_proc *p, blitz_task *t)
{
    bz_entry e = bz_load_relaxed(&p->next); /* relaxed: only this thread runs tasks of p */
    CHECK_EQ(e, bz_entry_first((struct bz_task *)t));
    bz_store_relaxed(&p->next, 0); /* relaxed: likewise */
    CHECK_EQ(blitz_task_join(t, NULL, BLITZ_FOREVER), 0);
    CHECK(bz_entry_is_tombstone(e));
    bz_store_relaxed(&p->next, e); /* relaxed: likewise */
}

static int take_beside_a_tombstone(void *arg)
{
    uint32_t was;
    struct bz_proc *p = bz_machine_self()->last;
    blitz_task *queued, *claimed;
    (void)arg;
    CHECK_EQ(blitz_spawn(nothing, NULL, NULL, &queued), 0);
    CHECK_EQ(blitz_spawn(nothing, NULL, NULL, &claimed), 0);
    claim_from_afar(p, claimed);
    struct bz_machine *m = bz_enter_as(&was);
    bz_fresh_publish(m); /* the first one is in the ring now */
    p->next_row = 0;
    uint64_t hits = bz_load_relaxed(&p->counters.next_hits); /* relaxed: written by this thread */

    bz_entry e = bz_take_own(m);

    CHECK_EQ(e, bz_entry_resumed((struct bz_task *)queued));
    CHECK_EQ(bz_load_relaxed(&p->next), (bz_entry)0);             /* relaxed: likewise */
    CHECK_EQ(bz_load_relaxed(&p->counters.next_hits) - hits, 0u); /* relaxed: likewise */
    bz_place_outside(m->rt, e);
    bz_leave(was);
    return blitz_task_join(queued, NULL, BLITZ_FOREVER);
}

/* A machine that finds a tombstone in its slot must not take that for an empty ring: it would run injected tasks
 * first, or steal. */
TEST(find, a_claimed_task_in_the_slot_does_not_hide_the_ring)
{
#if defined(BZ_PLAIN)
    t_skip("the plain form has no fast slot");
#endif
    CHECK_EQ(t_run_alone(take_beside_a_tombstone, NULL), 0);
}

/* ---- a stackless task that yields ---- */

struct spawner {
    blitz_task *child[2];
    int ran; /* children that have run */
};

static int counts(void *arg)
{
    ((struct spawner *)arg)->ran++;
    return 0;
}

/* The result is how many children have run before the second poll. */
static blitz_poll spawns_two_and_yields(void *state, blitz_cx *cx)
{
    struct spawner *s = *(struct spawner **)state;
    if (s->child[0] != NULL) {
        cx->result = s->ran;
        return BLITZ_READY;
    }
    for (int i = 0; i < 2; i++)
        CHECK_EQ(blitz_spawn(counts, s, NULL, &s->child[i]), 0);
    return blitz_cx_yield(cx);
}

/* Run it in the loop (a join with a deadline waits for it), or on the stack of its joiner. */
static int yield_behind_two(void *deadline)
{
    struct spawner s = {.ran = 0}, *at = &s;
    blitz_task *t;
    int before = -1;
    CHECK_EQ(blitz_spawn_poll(spawns_two_and_yields, &at, sizeof at, NULL, &t), 0);
    CHECK_EQ(blitz_task_join(t, &before, *(blitz_deadline *)deadline), 0);
    CHECK_EQ(before, 2);
    for (int i = 0; i < 2; i++)
        CHECK_EQ(blitz_task_join(s.child[i], NULL, BLITZ_FOREVER), 0);
    return 0;
}

/* One child is in the slot, the other in the list of tasks that only this proc knows (proc/fresh.c). */
TEST(find, a_poll_that_yields_goes_behind_the_tasks_it_has_spawned)
{
    blitz_deadline never = BLITZ_FOREVER, late = blitz_after(3600 * BLITZ_S);
    CHECK_EQ(t_run_alone(yield_behind_two, &late), 0);
    CHECK_EQ(t_run_alone(yield_behind_two, &never), 0);
}

static blitz_poll counts_and_yields(void *state, blitz_cx *cx)
{
    int *polls = *(int **)state;
    return ++*polls == 10 ? BLITZ_READY : blitz_cx_yield(cx);
}

static int yield_beside_a_poll(void *arg)
{
    int polls = 0, *at = &polls;
    blitz_task *t;
    (void)arg;
    CHECK_EQ(blitz_spawn_poll(counts_and_yields, &at, sizeof at, NULL, &t), 0);
    for (int i = 1; i <= 10; i++) {
        blitz_yield();
        CHECK_EQ(polls, i);
    }
    return blitz_task_join(t, NULL, BLITZ_FOREVER);
}

/* The task in front of the ring has no stack, so the fiber that yields cannot switch to it. */
TEST(find, a_fiber_and_a_poll_that_yield_take_turns)
{
    CHECK_EQ(t_run_alone(yield_beside_a_poll, NULL), 0);
}

/* ---- the loop ---- */

static int note_stack(void *arg)
{
    *(struct bz_stack **)arg = bz_machine_self()->runner;
    return 0;
}

static int run_three(void *arg)
{
    struct bz_stack *on[3] = {NULL, NULL, NULL};
    blitz_task *t[3];
    (void)arg;
    for (int i = 0; i < 3; i++)
        CHECK_EQ(blitz_spawn(note_stack, &on[i], NULL, &t[i]), 0);
    blitz_yield(); /* this task goes behind them */
    CHECK_NOT_NULL(on[0]);
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(on[i], on[0]);
        CHECK_EQ(blitz_task_join(t[i], NULL, BLITZ_FOREVER), 0);
    }
    return 0;
}

/* A task that does not wait costs a call: the loop calls it on the stack that it stands on. */
TEST(find, a_loop_runs_tasks_that_do_not_wait_on_one_stack)
{
    CHECK_EQ(t_run_alone(run_three, NULL), 0);
}

/* ---- the batch ---- */

struct busy {
    bz_atomic(int) is_on, is_over; /* relaxed accesses: the simulator runs one thread at a time */
};

static int keeps_its_proc_busy(void *arg)
{
    struct busy *b = arg;
    bz_store_relaxed(&b->is_on, 1);       /* relaxed: see there */
    while (!bz_load_relaxed(&b->is_over)) /* relaxed: likewise */
        t_burn(10 * BLITZ_US);
    return 0;
}

enum { TASKS_MAX = 5 };

/* Spawn tasks into the ring of this proc, in this order. In the runtime on return. */
static struct bz_machine *queue(blitz_task *t[TASKS_MAX], unsigned count, uint32_t *was)
{
    for (unsigned i = 0; i < count; i++)
        CHECK_EQ(blitz_spawn(nothing, NULL, NULL, &t[i]), 0);
    struct bz_machine *m = bz_enter_as(was);
    bz_fresh_publish(m);
    bz_push_here(m, bz_load_relaxed(&m->proc->next)); /* relaxed: ours to touch */
    bz_store_relaxed(&m->proc->next, 0);              /* relaxed: likewise */
    CHECK_EQ(bz_runq_count(&m->proc->ring), count);
    return m;
}

/* The other proc runs out of work. In the runtime, so that the monitor takes nothing. */
static void let_it_sleep(struct bz_runtime *rt, struct busy *b)
{
    bz_store_relaxed(&b->is_over, 1); /* relaxed: see there */
    t_burn(5 * BLITZ_MS);
    CHECK(!bz_idle_is_quiet(&rt->idle));
}

/* A batch is half of the ring and one. */
static void take_two(struct bz_machine *m, unsigned count, blitz_task *t[TASKS_MAX], struct busy *b)
{
    struct bz_proc *p = m->proc;
    CHECK(bz_idle_is_quiet(&m->rt->idle));
    bz_entry first = bz_take_own(m);
    CHECK_EQ(first, bz_entry_resumed((struct bz_task *)t[0]));
    CHECK_EQ(bz_batch_left(&p->batch), count / 2);
    let_it_sleep(m->rt, b);
    bz_entry second = bz_take_own(m);
    CHECK_EQ(second, bz_entry_resumed((struct bz_task *)t[1]));
    CHECK_EQ(bz_batch_left(&p->batch), 0u); /* the others are in the ring, or stolen */
    bz_place_outside(m->rt, first);
    bz_place_outside(m->rt, second);
}

static int take_while_another_falls_asleep(void *tasks)
{
    uint32_t was;
    unsigned count = *(unsigned *)tasks;
    struct busy b;
    blitz_task *other, *t[TASKS_MAX];
    bz_atomic_init(&b.is_on, 0);
    bz_atomic_init(&b.is_over, 0);
    CHECK_EQ(blitz_spawn(keeps_its_proc_busy, &b, NULL, &other), 0);
    while (!bz_load_relaxed(&b.is_on)) /* relaxed: see there */
        CHECK_EQ(blitz_sleep(BLITZ_MS), 0);
    take_two(queue(t, count, &was), count, t, &b);
    bz_leave(was);
    for (unsigned i = 0; i < count; i++)
        CHECK_EQ(blitz_task_join(t[i], NULL, BLITZ_FOREVER), 0);
    return blitz_task_join(other, NULL, BLITZ_FOREVER);
}

static void play(const struct bz_os *os, void *tasks)
{
    struct bz_runtime *rt;
    CHECK_EQ(bz_runtime_new(os, &(blitz_runtime_opts){.procs = 2}, &rt), 0);
    CHECK_EQ(blitz_runtime_block_on((blitz_runtime *)rt, take_while_another_falls_asleep, tasks),
             0);
    CHECK_EQ(blitz_runtime_shutdown((blitz_runtime *)rt, BLITZ_FOREVER), 0);
    CHECK_EQ(blitz_runtime_unref((blitz_runtime *)rt), 0);
}

/* Three tasks are worth a batch while all procs work. As soon as one sleeps, it may steal all but the next. */
TEST(find, all_but_the_next_task_of_a_batch_go_back_to_the_ring_when_a_proc_sleeps)
{
    unsigned few = 3, more = TASKS_MAX;
#if defined(BZ_PLAIN)
    t_skip("the plain form has no batch");
#endif
    t_sim_each_seed(20, play, &few);
    t_sim_each_seed(40, play, &more);
}

/* ---- timers ---- */

static int fire_in_vain(void *arg)
{
    uint32_t was;
    struct bz_machine *m = bz_enter_as(&was);
    (void)arg;
    CHECK(!bz_timers_fire(m->proc, blitz_now()));
    bz_leave(was);
    return 0;
}

/* A machine looks at its queues again only if a timer has fired. */
TEST(find, a_timer_that_is_not_due_has_not_fired)
{
    CHECK_EQ(t_run_alone(fire_in_vain, NULL), 0);
}
