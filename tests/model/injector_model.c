/*
 * injector_model.c - queue/injector.h: entries that several threads push and take.
 *
 *   covers: src/queue/injector.h src/queue/injector.c src/task/chain.h
 *   needs: src/os/lock.c src/task/chain.c src/task/word.c
 *   defines: BZ_LOCK_SPINS=1
 *
 * A task may be linked twice: as the tombstone of its first run and, claimed, parked and woken
 * meanwhile, as itself. The link words are plain fields, so that one that serves two entries at
 * once would be a race or a lost entry.
 */
#include "queue/injector.h"

#include "model.h"
#include "model_os.h"

enum { TASKS = 3 };
static struct bz_injector in;
static struct bz_task tasks[TASKS];
static int first_taken[TASKS], resumed_taken[TASKS];
static bz_atomic(uint32_t) announced;
static int missed[3];

static void given_an_injector(void)
{
    bz_injector_init(&in, &m_os);
    for (int i = 0; i < TASKS; i++)
        first_taken[i] = resumed_taken[i] = 0;
    missed[1] = missed[2] = 0;
    bz_atomic_init(&announced, 0);
    m_settings()->spurious = 0;
    m_settings()->spin_tries = 1; /* a lock gives up spinning, and sleeps */
}

static void take(unsigned max)
{
    bz_entry out[4];
    unsigned count = bz_injector_take(&in, out, max, 1);
    m_assert(count <= max);
    for (unsigned i = 0; i < count; i++) {
        long which = bz_entry_task(out[i]) - tasks;
        bz_set(bz_entry_link(out[i]), out[i]); /* ours: no other thread reads it any more */
        if (bz_entry_tag(out[i]) == BZ_ENTRY_FIRST)
            first_taken[which]++;
        else
            resumed_taken[which]++;
    }
}

static void pushes_0(void)
{
    bz_injector_push(&in, bz_entry_first(&tasks[0]));
}

static void pushes_1_and_2(void)
{
    bz_entry both[2] = {bz_entry_first(&tasks[1]), bz_entry_first(&tasks[2])};
    bz_injector_push_all(&in, both, 2);
}

static void takes_one(void)
{
    take(1);
}

static void takes_four(void)
{
    take(4);
}

static void the_rest_is_taken(void)
{
    bz_injector_check(&in);
    while (bz_injector_length(&in) > 0)
        take(4);
    bz_injector_check(&in);
}

static void each_first_was_taken_once(void)
{
    the_rest_is_taken();
    for (int i = 0; i < TASKS; i++)
        m_assert(first_taken[i] == 1);
}

MODEL(injector, two_pushers_and_a_taker_lose_and_double_nothing)
{
    given_an_injector();
    m_threads(pushes_0, pushes_1_and_2, takes_four);
    m_sometimes(bz_injector_length(&in) == 0);
    each_first_was_taken_once();
}

MODEL(injector, two_takers_share_the_pushed_tasks)
{
    given_an_injector();
    pushes_0();
    m_threads(pushes_1_and_2, takes_one, takes_four);
    each_first_was_taken_once();
}

/* ---- a tombstone and its task ---- */

static void wakes_the_claimed_one(void)
{
    bz_injector_push(&in, bz_entry_resumed(&tasks[0]));
}

static void pushes_another(void)
{
    bz_injector_push(&in, bz_entry_first(&tasks[1]));
}

/* Task 0 was claimed: its first entry is linked still, before or after its second. */
MODEL(injector, a_claimed_task_is_pushed_again_while_its_tombstone_is_linked)
{
    given_an_injector();
    pushes_0();
    m_threads(wakes_the_claimed_one, takes_one, pushes_another);
    the_rest_is_taken();
    m_assert(first_taken[0] == 1);
    m_assert(resumed_taken[0] == 1);
    m_assert(first_taken[1] == 1);
}

MODEL(injector, a_tombstone_and_its_task_go_to_two_takers)
{
    given_an_injector();
    pushes_0();
    m_threads(wakes_the_claimed_one, takes_one, takes_four);
    m_sometimes(first_taken[0] == 1 && resumed_taken[0] == 1);
    the_rest_is_taken();
    m_assert(first_taken[0] == 1);
    m_assert(resumed_taken[0] == 1);
}

/* ---- the length that is read without the lock ---- */

static void pushes_then_looks_for_a_sleeper(void)
{
    pushes_0();
    bz_fence_seqcst(); /* idle.c */
    missed[1] = bz_load_relaxed(&announced) == 0;
}

static void announces_then_looks_at_the_length(void)
{
    bz_store_relaxed(&announced, 1);
    bz_fence_seqcst(); /* idle.c */
    missed[2] = bz_injector_length(&in) == 0;
}

/* injector.h [A]: the pusher sees the sleeper, or the sleeper sees the push. */
MODEL(injector, bug_01_a_sleeper_that_finds_it_empty_is_seen_by_the_pusher)
{
    given_an_injector();
    m_threads(pushes_then_looks_for_a_sleeper, announces_then_looks_at_the_length);
    m_never(missed[1] && missed[2]);
    m_sometimes(missed[1]);
    m_sometimes(missed[2]);
}
