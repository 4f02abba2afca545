/*
 * handoff.h - a word on which one thread waits to be given something.
 *
 * The waiter first spins for a while (awake), then sleeps. The giver fills in the gift, then sets the
 * word, and makes the system call only if the waiter sleeps:
 *
 *                GIVE          DOZE (the waiter)     REST (the waiter, when it has done with it)
 *   awake        given         asleep
 *   asleep       given, wake
 *   given                      given: go on          awake, or asleep at once
 *
 * GIVE and DOZE are read-modify-writes of one word. So either the giver finds the waiter asleep and wakes
 * it, or the waiter finds that it was given something. There is one giver at a time: the thread that has
 * taken the waiter out of its list.
 *
 * Rejected: a flag beside a count of sleepers (the store-buffer pattern, and a fence for it).
 *
 * [A] give: word release -> is_given, the waiter: word acquire   the gift is filled in before
 */
#ifndef BZ_GIVEN_H
#define BZ_GIVEN_H

#include <stdbool.h>

#include "os/os.h"

enum bz_handoff { BZ_HANDOFF_ASLEEP = 0, BZ_HANDOFF_AWAKE = 1, BZ_HANDOFF_GIVEN = 2 };

static inline void bz_handoff_give(bz_os_word *word, const struct bz_os *os)
{
    if (bz_xchg_release(word, BZ_HANDOFF_GIVEN) == BZ_HANDOFF_ASLEEP) /* [A] */
        bz_os_wake(os, word, 1);
}

static inline bool bz_handoff_is_given(bz_os_word *word)
{
    return bz_load_acquire(word) == BZ_HANDOFF_GIVEN; /* [A] */
}

/* For the waiter: it has spun for long enough, and is going to sleep. */
static inline void bz_handoff_doze(bz_os_word *word)
{
    uint32_t awake = BZ_HANDOFF_AWAKE;
    (void)bz_cas_strong_rlx_rlx(word, &awake,
                                BZ_HANDOFF_ASLEEP); /* relaxed: is_given acquires, [A] */
}

/* For the waiter, before it can be given anything. */
static inline void bz_handoff_rest(bz_os_word *word, bool is_awake)
{
    bz_store_relaxed(word, is_awake ? BZ_HANDOFF_AWAKE
                                    : BZ_HANDOFF_ASLEEP); /* relaxed: no giver looks yet */
}

/* For the waiter, asleep by its word: return true when it was given something, false at the deadline (and it may have
 * been given something just then). */
static inline bool bz_handoff_sleep(bz_os_word *word, const struct bz_os *os, uint64_t until)
{
    while (!bz_handoff_is_given(word)) {
        bz_os_delay(os, BZ_OS_AT_SLEEP);
        if (bz_os_wait(os, word, BZ_HANDOFF_ASLEEP, until) == -ETIMEDOUT)
            return bz_handoff_is_given(word);
    }
    return true;
}

#endif
