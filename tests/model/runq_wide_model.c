/*
 * runq_wide_model.c - queue/runq.c with four slots, where a thief's own ring comes into play.
 *
 *   covers: src/queue/runq.c src/queue/runq.h
 *   defines: BZ_RUNQ_LOG2=2 BZ_RUNQ_BITS=4
 *
 * A steal of half of two takes one, which is run at once; only from three on something is copied
 * into the thief's ring, from where another thief may steal it again.
 */
#include "queue/runq.h"

#include "model.h"

static struct bz_runq mine, yours, hers;
static bz_shared(int) payload[12];
static int taken[12]; /* how often each entry was; 0 is none */

static void take(bz_entry e)
{
    if (e == 0)
        return;
    m_assert(bz_get(&payload[e]) == (int)e);
    bz_set(&payload[e], -1); /* ours */
    taken[e]++;
}

static void push(struct bz_runq *q, bz_entry e)
{
    bz_set(&payload[e], (int)e);
    if (!bz_runq_try_push(q, e)) /* full of what a thief is copying: never of what is queued */
        take(e);
}

static void given_rings(bz_entry queued)
{
    bz_runq_init(&mine, false);
    bz_runq_init(&yours, false);
    bz_runq_init(&hers, false);
    for (int i = 0; i < 12; i++)
        taken[i] = 0;
    for (bz_entry e = 1; e <= queued; e++)
        push(&mine, e);
    m_settings()->spurious = 0;
}

static void take_all(struct bz_runq *q)
{
    bz_runq_check(q);
    for (bz_entry e; (e = bz_runq_take(q)) != 0;)
        take(e);
}

static void each_was_taken_once(bz_entry pushed)
{
    take_all(&mine);
    take_all(&yours);
    take_all(&hers);
    for (bz_entry e = 1; e <= pushed; e++)
        m_assert(taken[e] == 1);
}

static void thief_steals(void)
{
    take(bz_runq_steal(&mine, &yours));
}

static void another_steals_from_the_thief(void)
{
    take(bz_runq_steal(&yours, &hers));
}

static void owner_takes_one(void)
{
    take(bz_runq_take(&mine));
}

/* [A]: what a thief has put into its own ring may be stolen in its turn. */
MODEL(runq, a_thief_is_robbed)
{
    given_rings(4);
    m_threads(thief_steals, another_steals_from_the_thief);
    m_sometimes(bz_runq_count(&yours) == 0);
    m_sometimes(bz_runq_count(&yours) == 1);
    each_was_taken_once(4);
}

MODEL(runq, a_thief_is_robbed_while_the_owner_takes)
{
    given_rings(4);
    m_threads(owner_takes_one, thief_steals, another_steals_from_the_thief);
    each_was_taken_once(4);
}

/* [B]: the thief, whose ring is full, fills the slots that another is copying from it. */
static void given_a_thief_with_a_full_ring(void)
{
    given_rings(3);
    for (bz_entry e = 4; e <= 7; e++)
        push(&yours, e);
}

MODEL(runq, a_thief_does_not_overwrite_slots_being_copied_from_it)
{
    given_a_thief_with_a_full_ring();
    m_threads(another_steals_from_the_thief, thief_steals);
    m_sometimes(bz_runq_count(&mine) == 1);
    m_sometimes(bz_runq_count(&mine) == 3);
    each_was_taken_once(7);
}

static void another_thief_steals(void)
{
    take(bz_runq_steal(&mine, &hers));
}

/* ---- the hand: two of three, and a thief ---- */

static void owner_takes_a_hand(void)
{
    bz_entry batch[4];
    unsigned count = bz_runq_take_some(&mine, batch, 4);
    for (unsigned i = 0; i < count; i++)
        take(batch[i]);
}

MODEL(runq, a_batch_and_two_thieves_share_the_entries)
{
    given_rings(4);
    m_threads(owner_takes_a_hand, thief_steals, another_thief_steals);
    m_sometimes(bz_runq_count(&mine) == 0);
    each_was_taken_once(4);
}

/* [C]: the head has moved, and the tail that goes with it must be seen. */
static void owner_pushes_and_takes(void)
{
    push(&mine, 1);
    take(bz_runq_take(&mine));
}

static void owner_takes_pushes_and_takes(void)
{
    take(bz_runq_take(&mine));
    push(&mine, 2);
    take(bz_runq_take(&mine));
}

MODEL(runq, a_taker_that_sees_a_moved_head_sees_the_tail)
{
    given_rings(0);
    m_threads(owner_pushes_and_takes, thief_steals);
    each_was_taken_once(1);
}

MODEL(runq, a_failed_claim_sees_the_tail)
{
    given_rings(1);
    m_threads(owner_takes_pushes_and_takes, thief_steals);
    each_was_taken_once(2);
}

/* ---- an index that does not come round ---- */

static void owner_takes_eight(void)
{
    take(bz_runq_take(&mine));
    take(bz_runq_take(&mine));
    for (bz_entry e = 3; e <= 8; e++) {
        push(&mine, e);
        take(bz_runq_take(&mine));
    }
}

/* Bug class 2: what fails with three bits in runq_model.c. However long the thief sleeps between its
 * look and its CAS, it takes nothing that was taken. */
MODEL(runq, bug_02_an_old_head_does_not_look_new)
{
    given_rings(2);
    m_threads(owner_takes_eight, thief_steals);
    each_was_taken_once(8);
}
