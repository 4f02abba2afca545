/*
 * mpmc_model.c - support/mpmc.h: pushers and takers on a ring of two cells.
 *
 *   covers: tests/support/mpmc.h tests/support/mpmc.c
 *   defines: BZ_MPMC_BITS=3
 *
 * Positions of three bits wrap after eight, so that a test can start just before.
 */
#include "support/mpmc.h"

#include "model.h"

static struct bz_mpmc q;
static int values[4];
static bz_shared(int) payload[4]; /* data behind a value: must be visible with it */
static int taken[4];              /* how often each was */
static int refused;               /* pushes that were told "full" */

static void given_a_ring_at(unsigned position)
{
    m_assert(bz_mpmc_init(&q, 2, &m_allocator) == 0);
    for (unsigned i = 0; i < position; i++) {
        void *v;
        m_assert(bz_mpmc_push(&q, &values[0]));
        m_assert(bz_mpmc_take(&q, &v));
    }
    for (int i = 0; i < 4; i++)
        taken[i] = 0;
    refused = 0;
    m_settings()->spurious = 0; /* a weak CAS that fails loops here, as one that lost does */
}

static bool push(int i)
{
    bz_set(&payload[i], i + 1);
    bool is_in = bz_mpmc_push(&q, &values[i]);
    refused += !is_in;
    return is_in;
}

static int take(void)
{
    void *v;
    if (!bz_mpmc_take(&q, &v))
        return -1;
    int i = (int)((int *)v - values);
    m_assert(bz_get(&payload[i]) == i + 1);
    bz_set(&payload[i], 0); /* ours */
    taken[i]++;
    return i;
}

static void pushes_0(void)
{
    push(0);
}

static void pushes_1(void)
{
    push(1);
}

static void pushes_0_and_1(void)
{
    push(0);
    push(1);
}

static void pushes_2(void)
{
    push(2);
}

static void takes_until_it_has_one(void)
{
    while (take() < 0)
        m_relax();
}

static void takes_two(void)
{
    takes_until_it_has_one();
    takes_until_it_has_one();
}

static void takes_once(void)
{
    take();
}

static void takes_two_in_order(void)
{
    int a, b;
    while ((a = take()) < 0)
        m_relax();
    while ((b = take()) < 0)
        m_relax();
    m_assert(a < b);
}

/* Every pushed value is taken exactly once, now or earlier; the ring is intact. */
static void nothing_is_lost(int pushed)
{
    bz_mpmc_check(&q);
    m_assert((int)bz_mpmc_count(&q) + taken[0] + taken[1] + taken[2] + refused == pushed);
    while (take() >= 0)
        ;
    for (int i = 0; i < 4; i++)
        m_assert(taken[i] <= 1);
    m_assert(taken[0] + taken[1] + taken[2] + refused == pushed);
    bz_mpmc_fini(&q);
}

/* [A]: the value is there before it can be taken. */
MODEL(mpmc, one_pushes_one_takes_in_order)
{
    given_a_ring_at(0);
    m_threads(pushes_0_and_1, takes_two_in_order);
    nothing_is_lost(2);
}

MODEL(mpmc, two_push_and_both_are_taken)
{
    given_a_ring_at(0);
    m_threads(pushes_0, pushes_1, takes_two);
    nothing_is_lost(2);
}

MODEL(mpmc, two_take_and_neither_gets_the_others)
{
    given_a_ring_at(0);
    m_threads(pushes_0_and_1, takes_once, takes_once);
    nothing_is_lost(2);
}

/* [B]: a full ring; the cell is read before it is filled again. */
MODEL(mpmc, a_push_into_a_full_ring_waits_for_its_cell)
{
    given_a_ring_at(0);
    push(0);
    push(1);
    m_threads(takes_once, pushes_2);
    m_sometimes(refused == 1);
    m_sometimes(refused == 0);
    nothing_is_lost(3);
}

MODEL(mpmc, two_takers_and_a_pusher_on_a_full_ring)
{
    given_a_ring_at(0);
    push(0);
    push(1);
    m_threads(takes_once, takes_once, pushes_2);
    nothing_is_lost(3);
}

/* Bug class 2: positions that wrap. The ring stands at 7 of 8. */
MODEL(mpmc, bug_02_positions_wrap)
{
    given_a_ring_at(7);
    m_threads(pushes_0_and_1, takes_two_in_order);
    nothing_is_lost(2);
}

MODEL(mpmc, bug_02_positions_wrap_under_two_pushers)
{
    given_a_ring_at(7);
    m_threads(pushes_0, pushes_1, takes_two);
    nothing_is_lost(2);
}
