/*
 * reach_model.c - actor/reach.h: the strong count, in every order.
 *
 *   covers: src/actor/reach.h
 *
 * The mailbox is one word: a message is there, or not. The owner comes to rest as often as it is rung, and once more.
 */
#include "model.h"

#include "actor/reach.h"

struct block {
    struct bz_reach reach;
    bz_shared(int) id;   /* constant */
    bz_shared(int) next; /* the link in the list of suspects */
};

static struct block *block;
static bz_atomic(int) mail, bells, listed;
static int freed, ended, handled, refused;

static void given(uint64_t word)
{
    block = m_alloc(sizeof *block);
    bz_reach_init(&block->reach, 0);
    bz_atomic_init(&block->reach.word, word);
    bz_set(&block->id, 7);
    bz_set(&block->next, 0);
    bz_atomic_init(&mail, 0);
    bz_atomic_init(&bells, 0);
    bz_atomic_init(&listed, 0);
    freed = ended = handled = refused = 0;
}

static void free_block(void)
{
    freed++;
    m_free(block);
}

/* The lock of the list orders the listers, and what they write before the detector that finds it. */
static void list_block(void)
{
    bz_set(&block->next, 1);
    bz_fetch_add_acqrel(&listed, 1);
}

static void release(void)
{
    m_assert(bz_get(&block->id) == 7); /* a race, if the block is freed */
    switch (bz_reach_drop(&block->reach)) {
    case BZ_REACH_RING:
        bz_fetch_add_relaxed(&bells, 1);
        break;
    case BZ_REACH_LIST:
        list_block();
        break;
    case BZ_REACH_FREE:
        free_block();
        break;
    case BZ_REACH_NOTHING:
        break;
    }
}

/* ---- the owner ---- */

static bool rests(void)
{
    uint64_t word;
    do {
        word = bz_reach_look(&block->reach);
        if (bz_xchg_relaxed(&mail, 0) != 0) {
            handled++;
            return false;
        }
        if (bz_reach_count(word) > 0)
            return false;
    } while (!bz_reach_close_if(&block->reach, word));
    return true;
}

static void ends(void)
{
    ended = 1;
    bz_reach_close(&block->reach);
    m_assert(bz_get(&block->id) == 7);
    if (bz_reach_end(&block->reach))
        free_block();
}

static void owner_rests_twice(void)
{
    if (rests() || rests())
        ends();
}

static void owner_is_killed(void)
{
    ends();
}

/* ---- [D]: messages ---- */

static void sends_and_releases(void)
{
    bz_store_relaxed(&mail, 1);
    release();
}

/* reach.h [D]: the owner that finds no reference has seen all that their holders have sent. */
MODEL(reach, a_message_that_came_before_the_release_is_handled)
{
    given(1);
    m_threads(sends_and_releases, owner_rests_twice);
    m_assert(!ended || handled == 1);
    m_assert(!ended || bz_load_relaxed(&mail) == 0);
    m_assert(ended == freed);
    m_assert(bz_load_relaxed(&bells) == 1);
    m_sometimes(ended == 1);
    m_sometimes(ended == 0);
    if (!freed)
        m_free(block);
}

static void holds_by_id(void)
{
    if (bz_reach_try_add(&block->reach))
        sends_and_releases();
    else
        refused++;
}

/* reach.h I2: a reference from an id, and its release, between the look and the close. The table keeps the block. */
MODEL(reach, a_reference_from_an_id_is_refused_or_its_message_is_handled)
{
    given(BZ_REACH_KEPT);
    m_threads(holds_by_id, owner_rests_twice);
    m_assert(!ended || refused == 1 || handled == 1);
    m_assert(!ended || bz_load_relaxed(&mail) == 0);
    m_sometimes(refused == 1);
    m_sometimes(handled == 1 && ended == 1);
    if (bz_reach_forget(&block->reach, BZ_REACH_KEPT))
        free_block();
    m_assert(freed == ended);
    if (!freed)
        m_free(block);
}

/* ---- [F]: the block ---- */

static void detector_forgets(void)
{
    m_assert(bz_get(&block->id) == 7);
    if (bz_reach_forget(&block->reach, BZ_REACH_KEPT))
        free_block();
}

/* reach.h [F], I1 */
MODEL(reach, the_last_party_frees_the_block)
{
    given(1 | BZ_REACH_KEPT);
    m_threads(release, owner_is_killed, detector_forgets);
    m_assert(freed == 1);
}

MODEL(reach, the_last_reference_frees_the_block)
{
    given(2);
    m_threads(release, release, owner_is_killed);
    m_assert(freed == 1);
}

/* ---- one word ---- */

static void adds(void)
{
    bz_reach_add(&block->reach);
}

static void owner_holds_no_other(void)
{
    bz_reach_set_holds(&block->reach, false);
}

static void detector_keeps(void)
{
    bz_reach_keep(&block->reach);
}

/* Each party changes its own part of the word. */
MODEL(reach, a_holder_that_adds_does_not_lose_the_release_of_another)
{
    given(2);
    m_threads(adds, release);
    m_assert(bz_reach_look(&block->reach) == 2);
    m_free(block);
}

MODEL(reach, an_owner_that_holds_no_other_does_not_lose_a_release)
{
    given(3 | BZ_REACH_HOLDS | BZ_REACH_SUSPECT);
    m_threads(owner_holds_no_other, release);
    m_assert(bz_reach_look(&block->reach) == (2 | BZ_REACH_SUSPECT));
    m_free(block);
}

MODEL(reach, a_detector_that_keeps_a_block_does_not_lose_a_release)
{
    given(3);
    m_threads(detector_keeps, release);
    m_assert(bz_reach_look(&block->reach) == (2 | BZ_REACH_KEPT));
    m_free(block);
}

/* ---- suspects ---- */

MODEL(reach, one_release_lists_a_suspect)
{
    given(3 | BZ_REACH_HOLDS);
    m_threads(release, release);
    m_assert(bz_load_relaxed(&listed) == 1);
    m_assert(bz_reach_look(&block->reach) == (1 | BZ_REACH_HOLDS | BZ_REACH_SUSPECT));
    m_free(block);
}

/* The detector has the list, and walks it without the lock. */
static void detector_takes(void)
{
    if (bz_load_acquire(&listed) == 0)
        return;
    (void)bz_get(&block->next);
    bz_reach_keep_suspect(&block->reach);
}

/* A release behind the detector's look makes a suspect again. */
MODEL(reach, a_suspect_that_is_taken_is_listed_again)
{
    given(3 | BZ_REACH_HOLDS);
    m_threads(release, release, detector_takes);
    uint64_t word = bz_reach_look(&block->reach);
    m_assert(bz_reach_count(word) == 1);
    m_assert((word & BZ_REACH_SUSPECT) || (word & BZ_REACH_KEPT));
    m_sometimes(bz_load_relaxed(&listed) == 2);
    m_free(block);
}

static void owner_suspects(void)
{
    if (bz_reach_suspect(&block->reach))
        list_block();
}

/* reach.h [S]: the owner that lists its block again writes the link behind the detector's look at it. */
MODEL(reach, the_link_of_a_suspect_is_read_before_it_is_written_again)
{
    given(3 | BZ_REACH_HOLDS);
    m_threads(release, owner_suspects, detector_takes);
    m_assert(bz_reach_count(bz_reach_look(&block->reach)) == 2);
    m_sometimes(bz_load_relaxed(&listed) == 2);
    m_free(block);
}

static bool is_judged_alive;

/* The owner holds another actor from now on, and rests. The detector takes the suspect and counts: one reference is of its circle. */
static void owner_holds_and_is_judged(void)
{
    bz_reach_set_holds(&block->reach, true);
    if (!bz_reach_suspect(&block->reach))
        return;
    bz_reach_keep_suspect(&block->reach);
    is_judged_alive = bz_reach_count(bz_reach_look(&block->reach)) > 1;
}

/* The release of the last reference from outside is counted, or it makes the actor a suspect again. */
MODEL(reach, a_release_beside_the_first_hold_is_not_overlooked)
{
    is_judged_alive = false;
    given(2);
    m_threads(release, owner_holds_and_is_judged);
    m_assert(!is_judged_alive || bz_load_relaxed(&listed) == 1);
    m_sometimes(is_judged_alive);
    m_sometimes(bz_load_relaxed(&listed) == 0);
    m_free(block);
}
