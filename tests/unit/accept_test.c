/*
 * Requirements for the scheduler, counted in runs: the order of tasks, and how long a task waits.
 * On one proc the order is deterministic; tests/sim/accept_sim.c has the cases that take time.
 */
#include "support/alone.h"
#include "support/event.h"
#include "support/on_each.h"

#include <pthread.h>

#include "base/bz_atomic.h"
#include "blitz.h"
#include "proc/enter.h"
#include "proc/fresh.h"
#include "proc/state.h"

enum {
    GLOBAL_EVERY = 256, /* the longest interval between two checks of the injector, in runs */
    NEXT_ROW = 4        /* consecutive runs out of the next slot, and the run that ends them */
};

static void on_procs(unsigned procs, int (*fn)(void *), void *arg)
{
    t_watch("%u procs", procs);
    if (procs == 1)
        t_hold_procs();
    CHECK_EQ(blitz_run(fn, arg, &(blitz_runtime_opts){.procs = procs}), 0);
}

/* ---- spawn and run ---- */

static bz_atomic(unsigned) runs; /* of all the tasks of a scene: the clock of these tests */

/* When a task ran, counted in runs. On one proc, too, another thread may have run it: procs move. */
typedef bz_atomic(unsigned) place;

static int run_once(void *arg)
{
    unsigned now = bz_fetch_add_relaxed(&runs, 1);
    if (arg != NULL)
        bz_store_release((place *)arg, now); /* the reader may reuse its memory */
    return 0;
}

static int spawn_and_run(void *arg)
{
    enum { N = 100 };
    blitz_task *t[N];
    (void)arg;
    bz_store_relaxed(&runs, 0);
    for (int i = 0; i < N; i++)
        CHECK_EQ(blitz_spawn(run_once, NULL, NULL, &t[i]), 0);
    for (int i = 0; i < N; i++)
        CHECK_EQ(blitz_task_join(t[i], NULL, BLITZ_FOREVER), 0);
    CHECK_EQ(bz_load_relaxed(&runs), (unsigned)N);
    return 0;
}

TEST(accept, a_spawned_task_runs_once)
{
    t_on_each(spawn_and_run, NULL, 0);
}

/* ---- local before global, global often enough ---- */

static blitz_runtime *the_runtime(void)
{
    return (blitz_runtime *)bz_machine_self()->rt;
}

struct injected {
    blitz_runtime *rt;
    place *place;
    unsigned begin; /* when it was in the queue for certain */
};

static void *inject_one(void *arg)
{
    struct injected *in = arg;
    blitz_spawn_opts opts = {.runtime = in->rt};
    CHECK_EQ(blitz_spawn(run_once, in->place, &opts, NULL), 0);
    in->begin = bz_load_relaxed(&runs); /* relaxed: a count */
    return NULL;
}

/* From a thread that is none of the runtime's. This worker is blocked meanwhile; its proc may move
 * to another machine if that takes long. Returns when it was queued. */
/* NOLINTNEXTLINE(readability-non-const-parameter): the task writes there */
static unsigned inject(place *at)
{
    struct injected in = {the_runtime(), at, 0};
    pthread_t thread;
    CHECK_EQ(pthread_create(&thread, NULL, inject_one, &in), 0);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    return in.begin;
}

static bz_atomic(int) is_over;

static int yield_until_over(void *arg)
{
    (void)arg;
    while (!bz_load_relaxed(&is_over)) {
        bz_fetch_add_relaxed(&runs, 1);
        blitz_yield();
    }
    return 0;
}

static int busy_proc(void *arg)
{
    enum { N = 3 };
    blitz_task *t[N];
    unsigned worst = 0;
    (void)arg;
    bz_store_relaxed(&is_over, 0);
    for (int i = 0; i < N; i++)
        CHECK_EQ(blitz_spawn(yield_until_over, NULL, NULL, &t[i]), 0);
    for (int round = 0; round < 50; round++) {
        place at = UINT32_MAX;
        unsigned begin = inject(&at), ran;
        while ((ran = bz_load_acquire(&at)) == UINT32_MAX) /* then `at` may be used again */
            blitz_yield();
        unsigned wait = ran > begin ? ran - begin : 0; /* it may have run at once */
        worst = wait > worst ? wait : worst;
    }
    bz_store_relaxed(&is_over, 1);
    for (int i = 0; i < N; i++)
        CHECK_EQ(blitz_task_join(t[i], NULL, BLITZ_FOREVER), 0);
    t_note("the longest wait was %u runs", worst);
    CHECK_LE(worst, GLOBAL_EVERY + NEXT_ROW);
    return 0;
}

/* Bug class 5: yielding tasks keep the proc busy forever, and an injected task waits. */
TEST(accept, bug_05_the_injector_is_looked_at_however_busy_a_proc_keeps_itself)
{
    on_procs(1, busy_proc, NULL);
}

/* ---- overflow ---- */

/* Put the children that only this proc knows into its ring: proc/fresh.c. */
static void publishes(void)
{
    uint32_t was;
    struct bz_machine *m = bz_enter(&was);
    CHECK_NOT_NULL(m);
    bz_fresh_publish(m);
    bz_leave(was);
}

static int spawn_more_than_a_ring(void *arg)
{
    enum { N = BZ_RUNQ_CAP + 50 };
    static blitz_task *t[N];
    struct bz_machine *m = bz_machine_self();
    (void)arg;
    for (int i = 0; i < N; i++)
        CHECK_EQ(blitz_spawn(run_once, NULL, NULL, &t[i]), 0);
    publishes();
    CHECK_LE(bz_runq_count(&m->last->ring), BZ_RUNQ_CAP);
    CHECK_GE(bz_injector_length(&m->rt->injector), (size_t)N - BZ_RUNQ_CAP - 1); /* one is next */
    bz_injector_check(&m->rt->injector);
    for (int i = 0; i < N; i++)
        CHECK_EQ(blitz_task_join(t[i], NULL, BLITZ_FOREVER), 0);
    CHECK_EQ(bz_load_relaxed(&runs), (unsigned)N);
    return 0;
}

TEST(accept, a_full_ring_spills_to_the_injector)
{
    bz_store_relaxed(&runs, 0);
    on_procs(1, spawn_more_than_a_ring, NULL);
}

/* Spawn until the ring is full and one more finds no room. Returns how many were spawned. */
static int fill_the_ring(blitz_task **t, struct bz_runtime *rt)
{
    int n = 0;
    while (bz_injector_length(&rt->injector) == 0) {
        CHECK_EQ(blitz_spawn(run_once, NULL, NULL, &t[n++]), 0);
        publishes();
    }
    return n;
}

/* A spill of a few entries would be repeated with every push that follows; one of too many would send tasks
 * through the queue that all workers share. */
static int spill_once(void *arg)
{
    enum { SPILLED = 128 };
    static blitz_task *t[BZ_RUNQ_CAP + 2 + SPILLED];
    struct bz_machine *m = bz_machine_self();
    struct bz_runq *ring = &m->last->ring;
    (void)arg;
    int n = fill_the_ring(t, m->rt);
    CHECK_GT(n, (int)BZ_RUNQ_CAP);
    CHECK_EQ(bz_injector_length(&m->rt->injector), (size_t)SPILLED);
    CHECK_EQ(bz_runq_count(ring), BZ_RUNQ_CAP - SPILLED + 1);
    for (int i = 1; i < SPILLED; i++) { /* there is room for these now */
        CHECK_EQ(blitz_spawn(run_once, NULL, NULL, &t[n++]), 0);
        publishes();
    }
    CHECK_EQ(bz_injector_length(&m->rt->injector), (size_t)SPILLED);
    CHECK_EQ(bz_runq_count(ring), BZ_RUNQ_CAP);
    for (int i = 0; i < n; i++)
        CHECK_EQ(blitz_task_join(t[i], NULL, BLITZ_FOREVER), 0);
    return 0;
}

TEST(accept, a_full_ring_spills_its_128_oldest_at_once)
{
    on_procs(1, spill_once, NULL);
}

/* ---- fairness ---- */

static int thousand(void *arg)
{
    enum { N = 1000 };
    static blitz_task *t[N];
    static place at[N];
    bool is_strict = arg != NULL;
    unsigned worst = 0;
    bz_store_relaxed(&runs, 0);
    for (int i = 0; i < N; i++)
        CHECK_EQ(blitz_spawn(run_once, &at[i], NULL, &t[i]), 0);
    while (bz_load_relaxed(&runs) < N) /* no join: it would run the one it joins */
        blitz_yield();
    for (unsigned i = 0; i < N; i++) {
        CHECK_EQ(blitz_task_join(t[i], NULL, BLITZ_FOREVER), 0);
        unsigned late = (bz_load_relaxed(&at[i]) + 1) * 100 / (i + 1); /* relaxed: it is joined */
        worst = late > worst ? late : worst;
    }
    if (is_strict) {
        t_note("the latest ran at %u %% of its fair place", worst);
        CHECK_LE(worst, 300u);
    }
    return 0;
}

/* Its fair position is its position in the queue: all tasks fit into one ring. On more procs places
 * depend on which thread the system lets run; there all that counts is that all do. */
TEST(accept, of_a_thousand_none_runs_later_than_three_times_its_fair_place)
{
    static int strict;
    on_procs(1, thousand, &strict);
    t_on_each(thousand, NULL, 0);
}

/* ---- the fast slot ---- */

struct ball {
    struct t_event there, back; /* set in turn */
    int rounds;
};

static void renew(struct t_event *e)
{
    t_event_init(e, &bz_os_system);
}

static int ping(void *arg)
{
    struct ball *b = arg;
    for (int i = 0; i < b->rounds; i++) {
        renew(&b->back);
        bz_fetch_add_relaxed(&runs, 1);
        t_event_set(&b->there);
        t_event_await(&b->back);
    }
    return 0;
}

static int pong(void *arg)
{
    struct ball *b = arg;
    for (int i = 0; i < b->rounds; i++) {
        t_event_await(&b->there);
        renew(&b->there);
        bz_fetch_add_relaxed(&runs, 1);
        t_event_set(&b->back);
    }
    return 0;
}

/* This task yields into the ring; the pair uses the slot. One of the pair comes out of the ring, then three
 * runs out of the slot follow; the next one in the slot goes to the end of the ring, behind this task. */
static int victim_beside_a_pair(void *arg)
{
    struct ball b = {.rounds = 2000};
    blitz_task *t[2];
    unsigned worst = 0, waits[2 * NEXT_ROW + 1] = {0};
    (void)arg;
    bz_store_relaxed(&runs, 0);
    renew(&b.there);
    renew(&b.back);
    CHECK_EQ(blitz_spawn(pong, &b, NULL, &t[0]), 0);
    CHECK_EQ(blitz_spawn(ping, &b, NULL, &t[1]), 0);
    while (bz_load_relaxed(&runs) < 2 * (unsigned)b.rounds) {
        unsigned begin = bz_load_relaxed(&runs);
        blitz_yield();
        unsigned waited = bz_load_relaxed(&runs) - begin;
        worst = waited > worst ? waited : worst;
        waits[waited <= 2 * NEXT_ROW ? waited : 2 * NEXT_ROW]++;
    }
    t_note("the longest wait was %u runs; %u, %u, %u, %u were of 3, 4, 5 and 6", worst, waits[3],
           waits[4], waits[5], waits[6]);
    CHECK_LE(worst, NEXT_ROW + 1u);          /* at first both tasks of the pair are before us */
    if (!bz_is_plain(bz_machine_self()->rt)) /* the plain form has no slot */
        CHECK_GE(waits[NEXT_ROW], (unsigned)b.rounds / NEXT_ROW);
    for (int i = 0; i < 2; i++)
        CHECK_EQ(blitz_task_join(t[i], NULL, BLITZ_FOREVER), 0);
    return 0;
}

/* Bug class 5: two tasks that wake each other could use the slot for ever. */
TEST(accept, bug_05_a_pair_that_wakes_each_other_starves_no_task)
{
    on_procs(1, victim_beside_a_pair, NULL);
}

static int look_into_the_slot(void *arg)
{
    struct bz_proc *p = bz_machine_self()->last;
    blitz_task *t[2];
    (void)arg;
    CHECK_EQ(blitz_spawn(run_once, NULL, NULL, &t[0]), 0);
    CHECK_EQ(bz_get(&p->next), bz_entry_first((struct bz_task *)t[0]));
    CHECK_EQ(bz_runq_count(&p->ring), 0u);
    CHECK_EQ(blitz_spawn(run_once, NULL, NULL, &t[1]), 0);
    CHECK_EQ(bz_get(&p->next), bz_entry_first((struct bz_task *)t[1]));
    publishes();
    CHECK_EQ(bz_runq_count(&p->ring), 1u);
    for (int i = 0; i < 2; i++)
        CHECK_EQ(blitz_task_join(t[i], NULL, BLITZ_FOREVER), 0);
    return 0;
}

TEST(accept, the_newest_stands_in_the_fast_slot_and_drives_the_one_before_into_the_ring)
{
#if defined(BZ_PLAIN)
    t_skip("the plain form has no fast slot");
#endif
    on_procs(1, look_into_the_slot, NULL);
}

static int wait_and_sign(void *arg)
{
    t_event_await(((void **)arg)[0]);
    unsigned now = bz_fetch_add_relaxed(&runs, 1);
    bz_store_relaxed((place *)((void **)arg)[1], now); /* relaxed: a number */
    return 0;
}

static void wake_behind_a_hundred(void)
{
    enum { N = 100 };
    blitz_task *t[N], *waiter;
    struct t_event event;
    place at = UINT32_MAX;
    void *args[2] = {&event, &at};
    bz_store_relaxed(&runs, 0);
    renew(&event);
    CHECK_EQ(blitz_spawn(wait_and_sign, args, NULL, &waiter), 0);
    blitz_yield(); /* it waits now */
    for (int i = 0; i < N; i++)
        CHECK_EQ(blitz_spawn(run_once, NULL, NULL, &t[i]), 0);
    t_event_set(&event);
    while (bz_load_acquire(&at) == UINT32_MAX) /* then `at` may end */
        blitz_yield();
    CHECK_LE(bz_load_relaxed(&at),
             (unsigned)NEXT_ROW); /* not behind the hundred; relaxed: likewise */
    CHECK_EQ(blitz_task_join(waiter, NULL, BLITZ_FOREVER), 0);
    for (int i = 0; i < N; i++)
        CHECK_EQ(blitz_task_join(t[i], NULL, BLITZ_FOREVER), 0);
}

/* Repeatedly: a task from the ring resets the count of the next slot. */
static int wake_behind_hundreds(void *arg)
{
    (void)arg;
    for (int round = 0; round < 10; round++)
        wake_behind_a_hundred();
    return 0;
}

TEST(accept, a_woken_task_runs_before_queued_tasks)
{
#if defined(BZ_PLAIN)
    t_skip("the plain form has no fast slot");
#endif
    on_procs(1, wake_behind_hundreds, NULL);
}
