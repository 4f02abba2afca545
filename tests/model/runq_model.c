/*
 * runq_model.c - queue/runq.c: an owner and thieves on rings of two slots.
 *
 *   covers: src/queue/runq.c src/queue/runq.h
 *   defines: BZ_RUNQ_LOG2=1 BZ_RUNQ_BITS=3
 *
 * Indices of three bits wrap after eight. An entry refers to a plain field: its taker must see it
 * as it was pushed, and no other thread may own it.
 */
#include "queue/runq.h"

#include "base/check.h"
#include "model.h"

static struct bz_runq mine, yours, hers;
static bz_shared(int) payload[12];
static int taken[12]; /* how often each entry was; 0 is none */
static int busy;

static void take(bz_entry e)
{
    if (e == 0)
        return;
    m_assert(bz_get(&payload[e]) == (int)e);
    bz_set(&payload[e], -1); /* ours */
    taken[e]++;
}

/* As place.c does it: if there is no room, the oldest is spilled, and if there is none still, the
 * new one. */
static void push(bz_entry e)
{
    bz_entry spill;
    bz_set(&payload[e], (int)e);
    if (bz_runq_try_push(&mine, e))
        return;
    if (bz_runq_take_some(&mine, &spill, 1) > 0)
        take(spill);
    if (!bz_runq_try_push(&mine, e)) {
        busy++;
        take(e);
    }
}

static void given_rings(unsigned position, bz_entry queued)
{
    bz_runq_init(&mine, false);
    bz_runq_init(&yours, false);
    bz_runq_init(&hers, false);
    for (unsigned i = 0; i < position; i++) {
        push(7);
        take(bz_runq_take(&mine));
    }
    for (int i = 0; i < 12; i++)
        taken[i] = 0;
    busy = 0;
    for (bz_entry e = 1; e <= queued; e++)
        push(e);
    m_settings()->spurious = 0;
}

static void each_was_taken_once(bz_entry pushed)
{
    bz_runq_check(&mine);
    bz_runq_check(&yours);
    bz_runq_check(&hers);
    for (bz_entry e; (e = bz_runq_take(&mine)) != 0;)
        take(e);
    for (bz_entry e; (e = bz_runq_take(&yours)) != 0;)
        take(e);
    for (bz_entry e; (e = bz_runq_take(&hers)) != 0;)
        take(e);
    for (bz_entry e = 1; e <= pushed; e++)
        m_assert(taken[e] == 1);
}

static void owner_pushes_3(void)
{
    push(3);
}

static void owner_pushes_1_and_2(void)
{
    push(1);
    push(2);
}

static void owner_takes_two(void)
{
    take(bz_runq_take(&mine));
    take(bz_runq_take(&mine));
}

/* By the fast path of a switch. If it refuses, try the long way, as its callers do. */
static bz_entry take_quickly(void)
{
    bz_entry e = bz_runq_take_few(&mine, 2);
    return e != 0 ? e : bz_runq_take(&mine);
}

static void owner_takes_two_quickly(void)
{
    take(take_quickly());
    take(take_quickly());
}

/* 1, 5 and 9 have the tag of a first run: task/entry.h. */
static void owner_takes_first_runs(void)
{
    bz_entry out[2];
    unsigned n = bz_runq_take_first_runs(&mine, out, 2);
    for (unsigned i = 0; i < n; i++) {
        m_assert(bz_entry_tag(out[i]) == BZ_ENTRY_FIRST);
        take(out[i]);
    }
}

static void owner_takes_and_pushes_3(void)
{
    take(bz_runq_take(&mine));
    push(3);
}

static void owner_pushes_three(void)
{
    push(1);
    push(2);
    push(3);
}

static void thief_steals(void)
{
    take(bz_runq_steal(&mine, &yours));
}

static void thief_steals_twice(void)
{
    take(bz_runq_steal(&mine, &yours));
    take(bz_runq_take(&yours));
    take(bz_runq_steal(&mine, &yours));
}

static void another_thief_steals(void)
{
    take(bz_runq_steal(&mine, &hers));
}

/* [A]: a slot is filled before it can be claimed. */
MODEL(runq, an_entry_pushed_beside_a_thief_is_taken_once)
{
    given_rings(0, 0);
    m_threads(owner_pushes_1_and_2, thief_steals);
    each_was_taken_once(2);
}

MODEL(runq, an_owner_and_a_thief_share_the_entries)
{
    given_rings(0, 2);
    m_threads(owner_takes_two, thief_steals);
    each_was_taken_once(2);
}

/* The owner looks at the entries before its CAS: a thief that comes between makes it fail. */
MODEL(runq, an_owner_that_takes_first_runs_and_a_thief_share_the_entries)
{
    given_rings(0, 0);
    push(1);
    push(5);
    m_threads(owner_takes_first_runs, thief_steals);
    each_was_taken_once(1);
    m_assert(taken[5] == 1);
}

MODEL(runq, first_runs_are_taken_up_to_another_kind_of_entry)
{
    given_rings(3, 0);
    push(9);
    push(4);
    m_threads(owner_takes_first_runs, thief_steals);
    m_sometimes(taken[9] == 1 && taken[4] == 0);
    each_was_taken_once(0);
    m_assert(taken[9] == 1 && taken[4] == 1);
}

/* Entries without a tag, as the fast path wants them. */
MODEL(runq, the_fast_path_of_an_owner_and_a_thief_share_the_entries)
{
    given_rings(0, 0);
    push(4);
    push(8);
    m_threads(owner_takes_two_quickly, thief_steals);
    each_was_taken_once(0);
    m_assert(taken[4] == 1 && taken[8] == 1);
}

/* [B]: a slot is copied before it is filled again; the ring is full. */
MODEL(runq, a_push_does_not_overwrite_slots_that_a_thief_copies)
{
    given_rings(0, 2);
    m_threads(owner_pushes_3, thief_steals);
    m_sometimes(busy == 1);
    m_sometimes(busy == 0);
    each_was_taken_once(3);
}

MODEL(runq, taking_pushing_and_stealing_meet)
{
    given_rings(0, 2);
    m_threads(owner_takes_and_pushes_3, thief_steals);
    each_was_taken_once(3);
}

MODEL(runq, filling_under_a_thief_spills)
{
    given_rings(0, 0);
    m_threads(owner_pushes_three, thief_steals_twice);
    each_was_taken_once(3);
}

/* [C]: two thieves, one after another or at once. */
MODEL(runq, every_task_is_taken_exactly_once)
{
    given_rings(0, 2);
    m_threads(owner_takes_and_pushes_3, thief_steals, another_thief_steals);
    each_was_taken_once(3);
}

/* ---- the hand ---- */

static void owner_takes_a_hand(void)
{
    bz_entry batch[2];
    unsigned count = bz_runq_take_some(&mine, batch, 2);
    for (unsigned i = 0; i < count; i++)
        take(batch[i]);
}

static void owner_takes_a_hand_and_pushes_3(void)
{
    owner_takes_a_hand();
    push(3);
}

MODEL(runq, a_batch_and_a_thief_share_the_entries)
{
    given_rings(0, 2);
    m_threads(owner_takes_a_hand, thief_steals);
    m_sometimes(taken[1] + taken[2] == 2);
    each_was_taken_once(2);
}

MODEL(runq, a_hand_a_push_and_two_thieves_meet)
{
    given_rings(0, 2);
    m_threads(owner_takes_a_hand_and_pushes_3, thief_steals, another_thief_steals);
    each_was_taken_once(3);
}

/* ---- spilling ---- */

/* Full when the owner looked, and perhaps empty when it spills. */
MODEL(runq, a_spill_takes_no_more_than_two_thieves_left)
{
    given_rings(0, 2);
    m_threads(owner_pushes_3, thief_steals, another_thief_steals);
    each_was_taken_once(3);
}

/* Bug class 2: the indices stand at 7 of 8. */
MODEL(runq, bug_02_indices_wrap)
{
    given_rings(7, 0);
    m_threads(owner_pushes_1_and_2, thief_steals);
    each_was_taken_once(2);
}

MODEL(runq, bug_02_indices_wrap_under_two_thieves)
{
    given_rings(6, 2);
    m_threads(owner_takes_and_pushes_3, thief_steals, another_thief_steals);
    each_was_taken_once(3);
}

/* ---- an index that comes round ---- */

/* Takes the two that are there, then six more, each pushed alone: eight takes in all. */
static void owner_takes_eight(void)
{
    owner_takes_two();
    for (bz_entry e = 3; e <= 8; e++) {
        push(e);
        take(bz_runq_take(&mine));
    }
}

/* Bug class 2: three bits are too few. A thief that sleeps between its look and its CAS for eight
 * takes finds the head as it was, and claims from a ring that is empty. runq_wide_model.c has the
 * same with an index that does not come round in that time. */
MODEL_FAILS(runq, bug_02_a_head_that_has_come_round_looks_new, "data race")
{
    given_rings(0, 2);
    m_threads(owner_takes_eight, thief_steals);
}
