/* A join that runs the child itself: when it does, when it does not, and that the result is the
 * same. */
#include "support/alone.h"
#include "support/bell.h"
#include "support/on_each.h"

#include "base/bz_atomic.h"
#include "base/compiler.h"
#include "blitz.h"
#include "proc/place.h"
#include "proc/state.h"
#include "runtime/runtime.h"

static bool is_plain(void)
{
    return bz_is_plain(bz_machine_self()->rt);
}

/* The current stack. */
static struct bz_stack *stack_here(void)
{
    return bz_machine_self()->runner;
}

static int note_stack(void *arg)
{
    *(struct bz_stack **)arg = stack_here();
    return 3;
}

/* ---- when ---- */

static int join_at_once(void *arg)
{
    struct bz_stack *mine = stack_here(), *its = NULL;
    blitz_task *t;
    int result = 0;
    (void)arg;
    CHECK_EQ(blitz_spawn(note_stack, &its, NULL, &t), 0);
    CHECK_EQ(blitz_task_join(t, &result, BLITZ_FOREVER), 0);
    CHECK_EQ(result, 3);
    CHECK_EQ(its == mine, !is_plain());
    return 0;
}

/* On one proc no other worker can have started it. */
TEST(claim, a_child_that_has_not_started_runs_on_its_joiners_stack)
{
    CHECK_EQ(t_run_alone(join_at_once, NULL), 0);
}

static int join_with_deadline(void *arg)
{
    struct bz_stack *mine = stack_here(), *its = NULL;
    blitz_task *t;
    (void)arg;
    CHECK_EQ(blitz_spawn(note_stack, &its, NULL, &t), 0);
    CHECK_EQ(blitz_task_join(t, NULL, blitz_after(3600 * BLITZ_S)), 0);
    CHECK(its != mine);
    return 0;
}

/* The joiner must be able to return when its time has come. */
TEST(claim, a_join_with_a_deadline_leaves_the_child_to_others)
{
    CHECK_EQ(t_run_alone(join_with_deadline, NULL), 0);
}

static int go_down(void *arg)
{
    intptr_t left = (intptr_t)arg;
    volatile char frame[512]; /* as a function with some locals has it */
    blitz_task *t;
    int below = 0;
    frame[left % 512] = 1;
    if (left == 0)
        return 1;
    CHECK_EQ(blitz_spawn(go_down, (void *)(left - 1), NULL, &t), 0);
    CHECK_EQ(blitz_task_join(t, &below, BLITZ_FOREVER), 0);
    return below + frame[left % 512];
}

/* On the lower half of a stack nothing is claimed: however deep the tree, no stack overflows. */
TEST(claim, a_chain_of_claims_goes_on_on_another_stack_in_time)
{
    t_on_each(go_down, (void *)(intptr_t)20000, 20001);
}

/* ---- actions of a claimed child ---- */

static int wait_in_every_way(void *arg)
{
    blitz_task *t;
    uint64_t me = blitz_task_id(NULL);
    CHECK(me != *(uint64_t *)arg);
    blitz_yield();
    CHECK_EQ(blitz_sleep(1000), 0);
    CHECK_EQ(blitz_spawn(go_down, (void *)(intptr_t)3, NULL, &t), 0);
    CHECK_EQ(blitz_task_join(t, NULL, blitz_after(3600 * BLITZ_S)), 0);
    CHECK_EQ(blitz_task_id(NULL), me);
    return 5;
}

static int join_a_waiting_child(void *arg)
{
    uint64_t me = blitz_task_id(NULL);
    (void)arg;
    for (int i = 0; i < 50; i++) {
        blitz_task *t, *other;
        int result = 0;
        CHECK_EQ(blitz_spawn(wait_in_every_way, &me, NULL, &t), 0);
        CHECK_EQ(blitz_spawn(wait_in_every_way, &me, NULL, &other), 0);
        CHECK_EQ(blitz_task_join(t, &result, BLITZ_FOREVER), 0);
        CHECK_EQ(result, 5);
        CHECK_EQ(blitz_task_id(NULL), me);
        CHECK_EQ(blitz_task_join(other, NULL, BLITZ_FOREVER), 0);
    }
    return 0;
}

/* It keeps the stack, its joiner's frames beneath it, and both go on wherever it is resumed. */
TEST(claim, a_claimed_child_may_wait_and_its_joiner_is_itself_again)
{
    t_on_each(join_a_waiting_child, NULL, 0);
}

static bz_atomic(uint32_t) is_asked; /* the cancel has been sent */

static int look_unshielded(void *arg)
{
    (void)arg;
    while (!bz_load_acquire(&is_asked)) /* pairs with the store in join_shielded */
        blitz_yield();                  /* another has taken it meanwhile */
    return blitz_is_cancelled();
}

static int join_shielded(void *arg)
{
    blitz_task *t;
    int result = -1;
    (void)arg;
    bz_store_relaxed(&is_asked, 0); /* relaxed: before the spawn */
    CHECK_EQ(blitz_spawn(look_unshielded, NULL, NULL, &t), 0);
    blitz_shield();
    blitz_task_cancel(t);
    bz_store_release(&is_asked, 1); /* pairs with the load in look_unshielded */
    CHECK_EQ(blitz_task_join(t, &result, BLITZ_FOREVER), 0);
    blitz_unshield();
    CHECK_EQ(result, 1); /* its joiner's shield is not its own */
    CHECK_EQ(blitz_is_cancelled(), 0);
    return 0;
}

TEST(claim, shields_and_cancels_are_the_childs_own_while_it_runs)
{
    t_on_each(join_shielded, NULL, 0);
}

static bz_atomic(uint32_t) child_waits;

static int wait_for_cancel(void *arg)
{
    (void)arg;
    bz_store_release(&child_waits, 1); /* to cancel_it */
    return blitz_sleep_until(BLITZ_FOREVER);
}

static int join_for_ever(void *arg)
{
    blitz_task *t;
    int result = 0;
    (void)arg;
    CHECK_EQ(blitz_spawn(wait_for_cancel, NULL, NULL, &t), 0);
    CHECK_EQ(blitz_task_join(t, &result, BLITZ_FOREVER), 0);
    return result;
}

static int cancel_it(void *arg)
{
    blitz_task *t;
    int result = 0;
    (void)arg;
    bz_store_relaxed(&child_waits, 0); /* relaxed: no other thread yet */
    CHECK_EQ(blitz_spawn(join_for_ever, NULL, NULL, &t), 0);
    while (!bz_load_acquire(&child_waits)) /* from wait_for_cancel */
        blitz_yield();
    blitz_task_cancel(t);
    CHECK_EQ(blitz_task_join(t, &result, BLITZ_FOREVER), 0);
    return result;
}

/* One rule for claimed and unclaimed children: a join without a deadline forwards the cancel. */
TEST(claim, a_cancel_of_the_joiner_reaches_the_child_it_runs)
{
    t_on_each(cancel_it, NULL, -ECANCELED);
}

/* ---- tombstones ---- */

static int plus_one(void *arg)
{
    bz_fetch_add_relaxed((bz_atomic(int) *)arg, 1); /* relaxed: counted after the joins */
    return 0;
}

static int burst_often(void *arg)
{
    enum { BURST = 3 * BZ_RUNQ_CAP, ROUNDS = 20 };
    static blitz_task *t[BURST];
    struct bz_runtime *rt = bz_machine_self()->rt;
    size_t most = 0;
    bz_atomic(int) ran;
    (void)arg;
    bz_atomic_init(&ran, 0);
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < BURST; i++)
            CHECK_EQ(blitz_spawn(plus_one, &ran, NULL, &t[i]), 0);
        for (int i = 0; i < BURST; i++)
            CHECK_EQ(blitz_task_join(t[i], NULL, BLITZ_FOREVER), 0);
        size_t length = bz_injector_length(&rt->injector);
        most = length > most ? length : most;
    }
    CHECK(most <= 2 * BURST); /* those of a burst, not of all of them */
    return 0;
}

/* A task that never waits leaves its worker no turn to take tombstones out of the injector: a push
 * into it removes tombstones at its front. */
TEST(claim, bursts_of_a_task_that_never_waits_do_not_fill_the_injector_with_tombstones)
{
    t_on_each(burst_often, NULL, 0);
}

/* More than a ring holds: tombstones in the ring, in the injector, and some never taken out. */
static int join_newest_first(void *arg)
{
    enum { N = 3000 };
    static blitz_task *t[N];
    bz_atomic(int) ran;
    (void)arg;
    bz_atomic_init(&ran, 0);
    for (int round = 0; round < 10; round++) {
        for (int i = 0; i < N; i++)
            CHECK_EQ(blitz_spawn(plus_one, &ran, NULL, &t[i]), 0);
        for (int i = N; i-- > 0;)
            CHECK_EQ(blitz_task_join(t[i], NULL, BLITZ_FOREVER), 0);
        CHECK_EQ(bz_load_relaxed(&ran), (round + 1) * N); /* relaxed: after the joins */
    }
    return 0;
}

TEST(claim, every_child_runs_once_for_any_fate_of_its_entry)
{
    t_on_each(join_newest_first, NULL, 0);
}

/* A claimed child is queued again while its tombstone is in the same queue. */
static int yields(void *arg)
{
    for (int i = 0; i < 5; i++)
        blitz_yield();
    return plus_one(arg);
}

static int join_yielders(void *arg)
{
    enum { N = 2600 };
    static blitz_task *t[N];
    bz_atomic(int) ran;
    (void)arg;
    bz_atomic_init(&ran, 0);
    for (int i = 0; i < N; i++)
        CHECK_EQ(blitz_spawn(yields, &ran, NULL, &t[i]), 0);
    for (int i = N; i-- > 0;)
        CHECK_EQ(blitz_task_join(t[i], NULL, BLITZ_FOREVER), 0);
    return bz_load_relaxed(&ran); /* relaxed: after the joins */
}

TEST(claim, a_claimed_child_is_queued_again_beside_its_tombstone)
{
    t_on_each(join_yielders, NULL, 2600);
}

static int join_and_keep(void *arg)
{
    blitz_task *t;
    CHECK_EQ(blitz_spawn(note_stack, &(struct bz_stack *){NULL}, NULL, &t), 0);
    bz_task_ref((struct bz_task *)t); /* the tombstone's */
    *(blitz_task **)arg = t;
    return blitz_task_join(t, NULL, BLITZ_FOREVER);
}

static blitz_poll ends_at_once(void *state, blitz_cx *cx)
{
    (void)state;
    (void)cx;
    return BLITZ_READY;
}

/* Claim a child whose entry is in the ring, and stays there as a tombstone. A join of a fiber would take older entries
 * out of the injector. */
static void claim_in_the_ring(struct bz_proc *p)
{
    blitz_task *t;
    CHECK_EQ(blitz_spawn_poll(ends_at_once, NULL, 0, NULL, &t), 0);
    bz_entry e = bz_load_relaxed(&p->next); /* relaxed: only this thread runs tasks of p */
    CHECK_EQ(e, bz_entry_first((struct bz_task *)t));
    bz_store_relaxed(&p->next, 0); /* relaxed: likewise */
    CHECK(bz_runq_try_push(&p->ring, e));
    CHECK_EQ(blitz_task_join(t, NULL, BLITZ_FOREVER), 0);
}

static int tidy_in_time(void *arg)
{
    struct bz_runtime *rt = bz_machine_self()->rt;
    struct bz_proc *p = bz_machine_self()->last;
    blitz_task *dead;
    (void)arg;
    CHECK_EQ(join_and_keep(&dead), 0);
    bz_injector_push(&rt->injector, bz_entry_first((struct bz_task *)dead));
    p->tombstones = 3;
    for (int i = 0; i < 2; i++) {
        claim_in_the_ring(p);
        CHECK_EQ(bz_injector_length(&rt->injector), 1u);
    }
    claim_in_the_ring(p);
    CHECK_EQ(bz_injector_length(&rt->injector), 0u);
    return 0;
}

/* A joiner looks for tombstones in the injector after a number of claims: a look at each claim would take its lock. */
TEST(claim, a_joiner_tidies_the_injector_only_when_it_is_time)
{
#if defined(BZ_PLAIN)
    t_skip("the plain form claims nothing");
#endif
    CHECK_EQ(t_run_alone(tidy_in_time, NULL), 0);
}

static int tidy_at_length(void *arg)
{
    enum { TOMBS = 300, MOST = 256 };
    struct bz_runtime *rt = bz_machine_self()->rt;
    blitz_task *dead[TOMBS];
    (void)arg;
    for (int i = 0; i < TOMBS; i++)
        CHECK_EQ(join_and_keep(&dead[i]), 0);
    for (int i = 0; i < TOMBS; i++) /* not before: a join may look into the injector */
        bz_injector_push(&rt->injector, bz_entry_first((struct bz_task *)dead[i]));
    CHECK_EQ(bz_tidy_injector(rt), (unsigned)MOST);
    CHECK_EQ(bz_tidy_injector(rt), (unsigned)(TOMBS - MOST));
    CHECK_EQ(bz_tidy_injector(rt), 0u);
    return 0;
}

/* A full ring spills 128 entries: twice as many tombstones go, so that they become fewer. */
TEST(claim, twice_as_many_tombstones_leave_the_injector_as_a_spill_can_bring)
{
#if defined(BZ_PLAIN)
    t_skip("the plain form claims nothing");
#endif
    CHECK_EQ(t_run_alone(tidy_at_length, NULL), 0);
}

/* ---- from elsewhere ---- */

static int join_handle(void *arg)
{
    int result = 0;
    CHECK_EQ(blitz_task_join(arg, &result, BLITZ_FOREVER), 0);
    return result;
}

static int give_nine(void *arg)
{
    (void)arg;
    return 9;
}

/* A plain thread spawns it, a task joins it: it may be found in the injector, or have run. */
TEST(claim, a_child_of_a_plain_thread_can_be_claimed_by_a_task)
{
    for (unsigned procs = 1; procs <= 3; procs++) {
        blitz_runtime *rt;
        CHECK_EQ(blitz_runtime_new(&(blitz_runtime_opts){.procs = procs}, &rt), 0);
        for (int i = 0; i < 200; i++) {
            blitz_task *t;
            CHECK_EQ(blitz_spawn(give_nine, NULL, &(blitz_spawn_opts){.runtime = rt}, &t), 0);
            CHECK_EQ(blitz_runtime_block_on(rt, join_handle, t), 9);
        }
        CHECK_EQ(blitz_runtime_shutdown(rt, BLITZ_FOREVER), 0);
        CHECK_EQ(blitz_runtime_unref(rt), 0);
    }
}

/* ---- tombstones at the end of the runtime ---- */

static bz_atomic(int) blocks; /* that are out */

static void *counted_alloc(void *ctx, size_t size, size_t align)
{
    (void)ctx;
    bz_fetch_add_relaxed(&blocks, 1); /* relaxed: a count */
    return bz_alloc(&bz_allocator_libc, size, align);
}

static void counted_free(void *ctx, void *block, size_t size)
{
    (void)ctx;
    bz_fetch_sub_relaxed(&blocks, 1); /* relaxed: a count */
    bz_free(&bz_allocator_libc, block, size);
}

/* The future was cancelled and has left its mark: a waiter existed. */
static int join_after_a_future(void *arg)
{
    struct bz_stack *its = NULL;
    struct t_bell bell = {.holders = 1};
    blitz_waker w = t_bell_waker(&bell);
    blitz_join_future f;
    blitz_task *t;
    (void)arg;
    CHECK_EQ(blitz_spawn(note_stack, &its, NULL, &t), 0);
    blitz_task_join_future_init(&f, t);
    CHECK_EQ(f.future.ops->poll(&f.future, &w), BLITZ_PENDING);
    f.future.ops->cancel(&f.future);
    return blitz_task_join(t, NULL, BLITZ_FOREVER);
}

TEST(claim, a_child_that_a_future_has_waited_for_is_given_back_too)
{
    blitz_allocator a = {counted_alloc, counted_free, NULL};
    t_hold_procs();
    CHECK_EQ(
        blitz_run(join_after_a_future, NULL, &(blitz_runtime_opts){.procs = 1, .allocator = &a}),
        0);
    CHECK_EQ(bz_load_relaxed(&blocks), 0); /* relaxed: all threads have ended */
}

/* A proc that never ran again holds tombstones: in its hand, in the slot for the next task, in its ring. */
TEST(claim, a_tombstone_in_any_place_goes_with_the_runtime)
{
    blitz_allocator a = {counted_alloc, counted_free, NULL};
    enum { TOMBS = 4 };
    blitz_task *t[TOMBS];
    struct bz_runtime *rt;
    CHECK_EQ(bz_runtime_new(&bz_os_system, &(blitz_runtime_opts){.procs = 2, .allocator = &a}, &rt),
             0);
    for (int i = 0; i < TOMBS; i++)
        CHECK_EQ(blitz_runtime_block_on((blitz_runtime *)rt, join_and_keep, &t[i]), 0);
    CHECK_EQ(blitz_runtime_shutdown((blitz_runtime *)rt, BLITZ_FOREVER), 0);
    struct bz_proc *p = &rt->procs[1];
    for (int i = 0; i < 2; i++)
        bz_set(&p->batch.entry[i], bz_entry_first((struct bz_task *)t[i]));
    bz_store_relaxed(&p->batch.count, 2); /* relaxed: no task runs there */
    bz_store_relaxed(&p->next, bz_entry_first((struct bz_task *)t[2])); /* relaxed: likewise */
    CHECK(bz_runq_try_push(&p->ring, bz_entry_first((struct bz_task *)t[3])));
    CHECK_EQ(blitz_runtime_unref((blitz_runtime *)rt), 0);
    CHECK_EQ(bz_load_relaxed(&blocks), 0); /* relaxed: all threads have ended */
}
