/*
 * handover_model.c - a proc has one machine at a time, against its sleeper, a machine that has lost
 * its own proc, a rouser and the monitor.
 *
 *   covers: src/proc/proc.h src/proc/proc.c src/proc/machines.c
 *   needs: src/base/alloc.c src/queue/idle.c src/queue/membarrier.c src/queue/retake.c src/thread/halt.c src/os/lock.c src/os/self.c
 *   defines: BZ_PROCS_MAX=2 BZ_LOCK_SPINS=1
 *
 * One proc, two or three machines, and the real steps of proc.c over the real idle set. The private
 * data of a proc is a plain field: two machines that both believe to own it race. Going to sleep is
 * search.c's, in its order; the wait may end by itself at any moment, as if a timer were due.
 */
#include "model.h"

#include "model_os.h"
#include "proc/batch.h"
#include "proc/place.h"
#include "proc/state.h"
#include "support/holder.h"

static struct bz_runtime rt;
static struct bz_proc proc;
static struct bz_machine sleeper, stray;
static bz_atomic(struct bz_machine *) slots[2];
static bz_shared(int) private;   /* the proc's alone */
static bz_atomic(uint32_t) work; /* 1: a task is in a queue */
static int slept_without;        /* the sleeper found its proc gone */

/* ---- functions called by proc.c ---- */

static void kick(struct bz_poll *poll)
{
    m_word_wake(&poll->roused, 2);
}
static const struct bz_poll_ops toy_poll = {.name = "toy", .kick = kick};

void bz_rouse(struct bz_runtime *in, int p)
{
    m_assert(in == &rt);
    if (p != BZ_NOBODY)
        bz_poll_rouse(&proc.poll);
}

void bz_monitor_woke(struct bz_machine *m)
{
    (void)m;
}

static bz_shared(int) made; /* stands for what a machine is filled with */

void bz_deque_init(struct bz_deque *d, bool is_plain)
{
    (void)d;
    (void)is_plain;
    bz_set(&made, 1);
}

/* ---- given ---- */

unsigned bz_batch_empty(struct bz_proc *p, bz_entry out[BZ_PRIVATE_MAX])
{
    (void)p;
    (void)out;
    return 0; /* the proc here keeps nothing but what `private` stands for */
}

void bz_place_outside(struct bz_runtime *in, bz_entry e)
{
    (void)in;
    (void)e;
    m_assert(false);
}

static void given_machine(struct bz_machine *m, unsigned index)
{
    m->rt = &rt;
    m->index = index;
    m->proc = NULL;
    m->last = &proc;
    m->is_searching = false;
    bz_atomic_init(&m->is_stray, 0);
    bz_retake_init(&m->taken, &m_os, false);
    bz_atomic_init(&slots[index], m);
}

/* The sleeper has the proc, and is awake. */
static void given(void)
{
    rt.os = &m_os;
    rt.proc_count = 1;
    rt.procs = &proc;
    rt.machines.slot = slots;
    bz_atomic_init(&rt.machines.count, 2);
    bz_barrier_init(&rt.barrier, &m_os);
    bz_idle_init(&rt.idle, 1, 1, &rt.barrier, true);
    proc.rt = &rt;
    proc.index = 0;
    proc.poll.ops = &toy_poll;
    bz_atomic_init(&proc.poll.roused, 0);
    bz_tick_init(&proc.tick);
    given_machine(&sleeper, 0);
    given_machine(&stray, 1);
    sleeper.proc = &proc;
    bz_atomic_init(&proc.state, bz_proc_word(BZ_PROC_HELD, 0));
    bz_atomic_init(&work, 0);
    bz_set(&private, 0);
    slept_without = 0;
    m_settings()->spurious = 0;
}

static void touch(void)
{
    bz_set(&private, bz_get(&private) + 1);
}

/* ---- the sleeper ---- */

static void passes_search_on(struct bz_machine *m)
{
    if (m->is_searching)
        bz_rouse(&rt, bz_idle_found(&rt.idle));
    m->is_searching = false;
}

/* Sleeps until it is roused, or for no reason. False: its proc was taken. */
static bool sleeps(void)
{
    m_word_wait_timed(&proc.poll.roused, 0);
    if (bz_proc_get_up(&sleeper))
        return true;
    sleeper.is_searching = false;
    slept_without = 1;
    return false;
}

static void goes_on(bool will_search)
{
    sleeper.is_searching = bz_idle_stay(&rt.idle, 0, will_search);
    touch();
    passes_search_on(&sleeper); /* it looks for work, and finds it or not: that is idle_model.c's */
}

/* search.c, bz_go_to_sleep */
static void goes_to_sleep(void)
{
    touch();
    bz_store_relaxed(&proc.poll.roused, 0);
    bool will_search = bz_idle_announce(&rt.idle, 0, false) && bz_load_relaxed(&work);
    if (!will_search) {
        bz_proc_lie_down(&sleeper);
        if (!sleeps())
            return;
    }
    goes_on(will_search);
}

/* The same with the two steps the other way round. */
static void lies_down_too_early(void)
{
    touch();
    bz_store_relaxed(&proc.poll.roused, 0);
    bz_proc_lie_down(&sleeper);
    (void)!bz_idle_announce(&rt.idle, 0, false);
    if (sleeps())
        goes_on(false);
}

/* ---- those who want it ---- */

static void wants_a_proc(void)
{
    if (bz_proc_regain(&stray)) {
        m_assert(stray.proc == &proc && !stray.is_searching);
        touch();
    }
}

static void publishes(void)
{
    bz_store_relaxed(&work, 1);
    int p = bz_idle_published(&rt.idle);
    if (p != BZ_NOBODY)
        bz_poll_rouse(&proc.poll);
}

/* ---- at the end ---- */

static void one_has_it(void)
{
    uint32_t word = bz_load_relaxed(&proc.state);
    m_assert(bz_proc_state_of(word) == BZ_PROC_HELD);
    m_assert((stray.proc != NULL) == (word == bz_proc_word(BZ_PROC_HELD, 1)));
    m_assert((sleeper.proc != NULL) == (word == bz_proc_word(BZ_PROC_HELD, 0)));
    m_assert(bz_idle_sleeping(&rt.idle) == 0 && bz_idle_searching(&rt.idle) == 0);
    m_assert(!bz_idle_is_asleep(&rt.idle, 0));
    bz_idle_check(&rt.idle);
}

/* proc.c [S]: the CAS of the sleeper and that of who takes its proc: one wins, the other knows. */
MODEL(handover, a_sleeping_proc_is_taken_or_gets_up)
{
    given();
    m_threads(goes_to_sleep, wants_a_proc);
    one_has_it();
    m_sometimes(stray.proc != NULL && slept_without);
    m_sometimes(stray.proc == NULL && !slept_without);
}

/* A rouser has claimed the proc out of the idle set for its sleeper: the current holder handles
 * it. */
MODEL(handover, a_rouser_and_a_taker_come_at_once)
{
    given();
    m_threads(goes_to_sleep, wants_a_proc, publishes);
    one_has_it();
    m_sometimes(stray.proc != NULL);
    m_sometimes(stray.proc == NULL);
}

/* In between another machine may take a proc that is not in the idle set yet, and assume that it
 * was roused. */
MODEL_FAILS(handover, lying_down_before_the_announcement_is_too_early, "searching(counts) > 0")
{
    given();
    m_threads(lies_down_too_early, wants_a_proc);
    one_has_it();
}

/* ---- taken while its machine is in user code ---- */

/* The sleeper is in user code with the proc; the stray is the thread the monitor finds for it. */
static void given_in_user_code(void)
{
    given();
    touch();
    bz_retake_leave(&sleeper.taken, BZ_IN_USER);
}

/* handover.c, bz_handover_move, and what a new machine does with the proc. */
static void monitor_moves_it(void)
{
    uint32_t seen = bz_proc_word(BZ_PROC_HELD, 0);
    bz_retake_ask(&sleeper.taken);
    bz_barrier_pay(&rt.barrier);
    bool may = bz_retake_may(&sleeper.taken) && bz_load_acquire(&proc.state) == seen;
    if (may)
        bz_store_release(&proc.state, bz_proc_word(BZ_PROC_STARTING, 0));
    bz_retake_end(&sleeper.taken, may);
    if (may) {
        bz_proc_give(&proc, &stray);
        touch();
    }
}

/* state.h, bz_enter: whether it has a proc. */
static bool enters(struct bz_machine *m, uint32_t *was)
{
    if (!bz_retake_enter(&m->taken, was))
        bz_proc_lost(m);
    return m->proc != NULL;
}

static void comes_back(void)
{
    uint32_t was;
    if (enters(&sleeper, &was))
        touch();
    else
        m_assert(!bz_proc_regain(&sleeper)); /* a machine runs it */
}

/* retake.h [A] [B] [C] and proc.c [S]: either has it, and both know who. */
MODEL(handover, a_machine_that_comes_back_has_its_proc_or_another_has)
{
    given_in_user_code();
    m_threads(comes_back, monitor_moves_it);
    one_has_it();
    m_sometimes(stray.proc != NULL);
    m_sometimes(sleeper.proc != NULL);
}

/* In and out of user code, and at last to sleep: the proc may be taken at any step of it. */
static void comes_goes_and_sleeps(void)
{
    uint32_t was;
    for (int i = 0; i < 2; i++) {
        if (!enters(&sleeper, &was))
            return;
        touch();
        if (i == 0)
            bz_retake_leave(&sleeper.taken, was);
    }
    goes_to_sleep();
}

MODEL(handover, a_proc_is_taken_at_any_step_of_entering_and_leaving)
{
    given_in_user_code();
    m_threads(comes_goes_and_sleeps, monitor_moves_it);
    one_has_it();
    m_sometimes(stray.proc != NULL);
    m_sometimes(sleeper.proc != NULL);
}

/* The new machine has nothing to do and lies down: the old one may have its proc back. */
static void monitor_moves_it_to_a_sleeper(void)
{
    monitor_moves_it();
    if (stray.proc == NULL)
        return;
    bz_store_relaxed(&proc.poll.roused, 0);
    (void)!bz_idle_announce(&rt.idle, 0, false);
    bz_proc_lie_down(&stray);
    m_word_wait_timed(&proc.poll.roused, 0);
    if (!bz_proc_get_up(&stray))
        return;
    stray.is_searching = bz_idle_stay(&rt.idle, 0, false);
    touch();
    passes_search_on(&stray);
}

static void comes_back_for_it(void)
{
    uint32_t was;
    if (enters(&sleeper, &was) || bz_proc_regain(&sleeper)) {
        m_assert(!sleeper.is_searching);
        touch();
    }
}

MODEL(handover, a_machine_regains_its_old_proc_from_a_sleeper)
{
    given_in_user_code();
    m_threads(comes_back_for_it, monitor_moves_it_to_a_sleeper);
    one_has_it();
    m_sometimes(stray.proc != NULL);
    m_sometimes(sleeper.proc != NULL && bz_tick_now(&proc.tick) == 1); /* regained */
}

/* ---- procs without a machine ---- */

/* Without a machine: in the idle set, or an orphan. */
static void given_nobodys(enum bz_proc_state state)
{
    given();
    sleeper.proc = NULL;
    bz_atomic_init(&proc.state, bz_proc_word(state, 0));
    bz_idle_init(&rt.idle, 1, state == BZ_PROC_FREE ? 0 : 1, &rt.barrier, true);
    touch();
}

/* It has claimed the proc in the idle set, and starts a thread for it: that of `sleeper`. */
static void rouses_and_starts(void)
{
    int p = bz_idle_published(&rt.idle);
    if (p == BZ_NOBODY)
        return;
    if (bz_proc_adopt(&proc)) {
        bz_proc_give(&proc, &sleeper);
        sleeper.is_searching = true;
        touch();
        passes_search_on(&sleeper);
    }
}

MODEL(handover, a_free_proc_is_started_or_taken)
{
    given_nobodys(BZ_PROC_FREE);
    m_threads(rouses_and_starts, wants_a_proc);
    one_has_it();
    m_sometimes(stray.proc != NULL);
    m_sometimes(sleeper.proc != NULL);
}

static void monitor_finds_a_thread(void)
{
    if (bz_proc_adopt(&proc)) {
        bz_proc_give(&proc, &sleeper);
        touch();
    }
}

static void monitor_finds_no_thread(void)
{
    if (bz_proc_adopt(&proc)) {
        touch();
        bz_proc_abandon(&proc);
    }
}

MODEL(handover, an_orphan_is_adopted_once)
{
    given_nobodys(BZ_PROC_ORPHAN);
    m_threads(monitor_finds_a_thread, wants_a_proc);
    one_has_it();
    m_sometimes(stray.proc != NULL);
    m_sometimes(sleeper.proc != NULL);
}

MODEL(handover, an_orphan_that_no_thread_was_found_for_is_there_to_be_taken)
{
    given_nobodys(BZ_PROC_ORPHAN);
    m_threads(monitor_finds_no_thread, wants_a_proc);
    m_assert((stray.proc != NULL) ==
             (bz_load_relaxed(&proc.state) == bz_proc_word(BZ_PROC_HELD, 1)));
    m_sometimes(stray.proc != NULL);
    m_sometimes(stray.proc == NULL);
}

static void another_finds_a_thread(void)
{
    if (bz_proc_adopt(&proc)) {
        touch();
        bz_proc_give(&proc, &stray);
    }
}

/* A proc that one machine abandons is complete for the next. */
MODEL(handover, the_adopter_sees_the_writes_of_the_old_machine)
{
    given_nobodys(BZ_PROC_ORPHAN);
    m_threads(monitor_finds_no_thread, another_finds_a_thread);
    m_sometimes(bz_get(&private) == 3);
    m_sometimes(bz_get(&private) == 2);
}

/* ---- machines ---- */

static struct bz_machine *fresh;

static void makes_a_machine(void)
{
    fresh = bz_machines_take(&rt);
    m_assert(fresh != NULL);
}

static bool was_seen;

static void looks_at_all_machines(void)
{
    unsigned count = bz_machines_count(&rt);
    for (unsigned i = 0; i < count; i++)
        was_seen = bz_machines_at(&rt, i) != NULL && bz_get(&made) == 1;
    m_assert(was_seen == (count > 0)); /* those below the count are there */
}

static void looks_who_has_it(void)
{
    struct bz_machine *m = t_proc_holder(&proc);
    was_seen = m != NULL && bz_get(&made) == 1;
}

static void makes_a_machine_that_has_it(void)
{
    makes_a_machine();
    bz_proc_give(&proc, fresh);
}

static void given_no_machines(void)
{
    given_nobodys(BZ_PROC_ORPHAN);
    rt.alloc = m_allocator;
    rt.machines.max = 1;
    rt.machines.made = 0;
    bz_atomic_init(&rt.machines.count, 0);
    bz_atomic_init(&slots[0], NULL);
    bz_set(&made, 0);
    was_seen = false;
}

/* proc.c [M]: a machine that is counted, or has a proc, is made. */
MODEL(handover, a_machine_that_can_be_found_is_whole)
{
    given_no_machines();
    m_threads(makes_a_machine, looks_at_all_machines);
    m_sometimes(was_seen);
    m_sometimes(!was_seen);
    m_free(fresh);
}

MODEL(handover, a_machine_that_has_a_proc_is_whole)
{
    given_no_machines();
    m_threads(makes_a_machine_that_has_it, looks_who_has_it);
    m_sometimes(was_seen);
    m_sometimes(!was_seen);
    m_free(fresh);
}
