/*
 * retake_model.c - queue/retake.h: what a proc keeps to itself is touched by one at a time.
 *
 *   covers: src/queue/retake.h src/queue/retake.c
 *   needs: src/base/unusual.c src/queue/membarrier.c src/os/lock.c
 *   defines: BZ_LOCK_SPINS=1
 *
 * A machine that enters and leaves with plain stores, and a monitor that asks, pays and takes. What
 * they fight for is a plain field: if both can be at it, that is a data race.
 */
#include "queue/membarrier.h"
#include "queue/retake.h"

#include "model.h"
#include "model_os.h"

static struct bz_retake r;
static struct bz_barrier barrier;
static bz_shared(int) next;
static int taken; /* by the monitor */

static void given(uint32_t where, int in_next)
{
    bz_barrier_init(&barrier, &m_os);
    bz_retake_init(&r, &m_os, false);
    bz_store_relaxed(&r.where, where);
    bz_atomic_init(&bz_unusual, 0);
    bz_set(&next, in_next);
    taken = 0;
}

static int take(void)
{
    int was = bz_get(&next);
    bz_set(&next, 0);
    return was;
}

static void monitor_takes(void)
{
    bz_retake_ask(&r);
    bz_barrier_pay(&barrier);
    if (bz_retake_may(&r))
        taken += take();
    bz_retake_end(&r, false);
}

static int used; /* by the machine */

static void machine_comes_back(void)
{
    uint32_t was;
    m_assert(bz_retake_enter(&r, &was));
    used = take();
    m_assert(was == BZ_IN_USER);
}

/* retake.h [C]: either the machine sees that it is asked, or the monitor that it is there. */
MODEL(retake, a_machine_that_comes_back_and_the_monitor_take_it_once)
{
    given(BZ_IN_USER, 1);
    used = 0;
    m_threads(machine_comes_back, monitor_takes);
    m_assert(used + taken == 1);
    m_sometimes(used == 1);
    m_sometimes(taken == 1);
}

static void machine_leaves(void)
{
    bz_set(&next, 2);
    bz_retake_leave(&r, BZ_IN_USER);
}

/* retake.h [A]: who sees it leave sees what it left. */
MODEL(retake, the_taker_sees_the_complete_state_of_a_machine)
{
    given(BZ_IN_RUNTIME, 0);
    m_threads(machine_leaves, monitor_takes);
    m_assert(taken + bz_get(&next) == 2);
    m_sometimes(taken == 2);
    m_sometimes(taken == 0);
}

static void machine_puts_one_in_and_comes_back(void)
{
    uint32_t was;
    m_assert(bz_retake_enter(&r, &was));
    used = take();
    bz_set(&next, 2);
    bz_retake_leave(&r, was);
    m_assert(bz_retake_enter(&r, &was));
    used += take();
}

/* In and out and in again, with something to take at any time. */
MODEL(retake, a_machine_that_comes_and_goes_loses_nothing)
{
    given(BZ_IN_USER, 1);
    used = 0;
    m_threads(machine_puts_one_in_and_comes_back, monitor_takes);
    m_assert(used + taken == 3);
    m_sometimes(taken == 2);
}

/* ---- the whole proc ---- */

static bool has_proc;

static void monitor_moves(void)
{
    bz_retake_ask(&r);
    bz_barrier_pay(&barrier);
    bool may = bz_retake_may(&r);
    if (may)
        taken += take();
    bz_retake_end(&r, may);
}

static void machine_comes_back_to_whatever(void)
{
    uint32_t was;
    has_proc = bz_retake_enter(&r, &was);
    if (has_proc)
        used = take();
    if (!has_proc) /* once: then it is as one that never had any */
        m_assert(bz_retake_enter(&r, &was));
}

/* Either it has its proc, or another has; never both, never none. */
MODEL(retake, a_machine_that_comes_back_has_its_proc_or_knows_that_it_is_gone)
{
    given(BZ_IN_USER, 1);
    used = 0;
    m_threads(machine_comes_back_to_whatever, monitor_moves);
    m_assert(used + taken == 1 && has_proc == (taken == 0));
    m_sometimes(has_proc);
    m_sometimes(!has_proc);
}

static void monitor_asks_once_more(void)
{
    bool is_gone = bz_retake_ask(&r);
    bz_barrier_pay(&barrier);
    if (bz_retake_may(&r))
        taken += take();
    bz_retake_end(&r, is_gone);
}

static void machine_learns_it_and_goes_on(void)
{
    uint32_t was;
    has_proc = bz_retake_enter(&r, &was);
    bz_retake_leave(&r, BZ_IN_USER);
    m_assert(bz_retake_enter(&r, &was)); /* it may have another by now: that one is not gone */
}

/* I2: it was taken before, and is taken from again before it knows. */
MODEL(retake, a_machine_that_is_asked_twice_learns_once_that_its_proc_is_gone)
{
    given(BZ_IN_USER, 1);
    bz_store_relaxed(&r.retake, BZ_TAKING_GONE);
    used = 0;
    m_threads(machine_learns_it_and_goes_on, monitor_asks_once_more);
    m_assert(!has_proc);
    m_sometimes(taken == 1);
    m_sometimes(taken == 0);
}

static void fenced_monitor_moves(void)
{
    bz_retake_ask(&r);
    bz_fence_seqcst();
    bool may = bz_retake_may(&r);
    if (may)
        taken += take();
    bz_retake_end(&r, may);
}

/* Without barriers in the system: both sides fence. */
MODEL(retake, and_so_does_one_that_fences)
{
    given(BZ_IN_USER, 1);
    r.fences = true;
    used = 0;
    m_threads(machine_comes_back_to_whatever, fenced_monitor_moves);
    m_assert(used + taken == 1 && has_proc == (taken == 0));
    m_sometimes(!has_proc);
}

/* ---- the fast path ---- */

static void machine_comes_back_usually(void)
{
    has_proc = bz_retake_enter_usual(&r) || bz_retake_enter_again(&r);
    if (has_proc)
        used = take();
    bz_retake_leave(&r, BZ_IN_USER);
}

MODEL(retake, a_machine_on_the_fast_path_has_its_proc_or_knows_that_it_is_gone)
{
    given(BZ_IN_USER, 1);
    used = 0;
    m_threads(machine_comes_back_usually, monitor_moves);
    m_assert(used + taken == 1 && has_proc == (taken == 0));
    m_sometimes(has_proc);
    m_sometimes(!has_proc);
}

static void machine_fills_and_comes_back(void)
{
    m_assert(bz_retake_enter_usual(&r) || bz_retake_enter_again(&r));
    used = take();
    bz_set(&next, 2);
    bz_retake_leave(&r, BZ_IN_USER);
    m_assert(bz_retake_enter_usual(&r) || bz_retake_enter_again(&r));
    used += take();
    bz_retake_leave(&r, BZ_IN_USER);
}

/* [B]: a machine that comes back after a take sees that the entries are gone. */
MODEL(retake, a_machine_on_the_fast_path_loses_nothing)
{
    given(BZ_IN_USER, 1);
    used = 0;
    m_threads(machine_fills_and_comes_back, monitor_takes);
    m_assert(used + taken == 3);
    m_sometimes(taken == 1);
    m_sometimes(taken == 2);
}

/* A runtime without barriers is unusual, and its machines fence on the slow path. */
MODEL(retake, and_so_does_one_that_fences_on_the_slow_path)
{
    given(BZ_IN_USER, 1);
    r.fences = true;
    bz_unusual_begin();
    used = 0;
    m_threads(machine_comes_back_usually, fenced_monitor_moves);
    m_assert(used + taken == 1 && has_proc == (taken == 0));
    m_sometimes(!has_proc);
}

static void monitor_pays_nothing(void)
{
    bz_retake_ask(&r);
    bz_fence_seqcst(); /* on this side alone */
    if (bz_retake_may(&r))
        taken += take();
    bz_retake_end(&r, false);
}

MODEL_FAILS(retake, a_fence_on_the_takers_side_alone_is_not_enough, "data race")
{
    given(BZ_IN_USER, 1);
    m_threads(machine_comes_back, monitor_pays_nothing);
}
