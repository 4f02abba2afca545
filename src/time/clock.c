/*
 * clock.c - a clock that can be paused.
 *
 * The state is one word, so that a reader needs no lock:
 *
 *   moment * 2 + 1   the clock stands still at that moment
 *   lead * 2         it runs, by `lead` ahead of the system's clock. Behind it, if the lead is negative: a clock that
 *                    stood still for a second and was not moved is a second behind
 *   BUSY             it is about to stop or to run: the reader asks again
 *
 * The time never goes back, for all threads together. To stop the clock takes two steps, because a reader of the
 * running clock could otherwise read the system's clock after the thread that stops it:
 *
 *      reader                                  the thread that stops the clock
 *      1  word: runs                           1  word = BUSY
 *      2  now = the system's clock             2  at = the system's clock
 *      3  word: unchanged? now is the time     3  word = stands still at `at`
 *
 * If step 3 of the reader finds its word, its step 2 came before step 2 of the other thread. To run on takes the same
 * steps: a thread that has read the moment of the pause must not read an earlier one afterwards. The system's clock
 * does not go back, so the lead that was computed last gives the latest times.
 *
 * The section between BUSY and the new word is two instructions and a clock read. A reader spins meanwhile.
 *
 * Rejected: a lock for the readers. A task may be stopped in its reading (sched/turns.c), and would keep the lock.
 *
 * I1  The word is BUSY only while a function that changes the clock runs. The caller's lock guards these functions.
 *
 * [A] pause, set, resume: word release -> now: word acquire   a reader of a new time sees what came before the change
 * [B] now: the second load of the word -> pause: word = BUSY   see above
 */
#include "time/clock.h"

#define BUSY UINT64_MAX /* stands still at 2^63 - 1, which is later than BZ_CLOCK_LAST */

static bool is_still(uint64_t word)
{
    return word & 1;
}

static uint64_t running(int64_t lead)
{
    return (uint64_t)lead << 1;
}

static uint64_t standing(uint64_t at)
{
    return at << 1 | 1;
}

/* The time of a clock that runs, at a time of the system's. */
static uint64_t led(uint64_t word, uint64_t system_ns)
{
    return system_ns + (uint64_t)((int64_t)word >> 1);
}

/* Return the word, and wait while it changes. */
static uint64_t word_of(const struct bz_clock *c)
{
    uint64_t word;
    for (unsigned round = 0; (word = bz_load_acquire(&c->word)) == BUSY; round++) /* [A] */
        bz_os_relax(c->under, round);
    return word;
}

static uint64_t clock_now(const struct bz_os *os)
{
    const struct bz_clock *c = BZ_CONTAINER_OF(os, const struct bz_clock, os);
    for (;;) {
        uint64_t word = word_of(c);
        if (is_still(word))
            return word >> 1;
        uint64_t now = bz_os_now(c->under);
        if (bz_load_acquire(&c->word) == word) /* [B] */
            return led(word, now);
    }
}

void bz_clock_init(struct bz_clock *c, const struct bz_os *under)
{
    c->os = (struct bz_os){.name = "clock", .now = clock_now};
    c->under = under;
    bz_atomic_init(&c->word, running(0));
}

bool bz_clock_is_paused(struct bz_clock *c, uint64_t *out_at)
{
    uint64_t word = word_of(c);
    *out_at = word >> 1;
    return is_still(word);
}

uint64_t bz_clock_pause(struct bz_clock *c)
{
    uint64_t word = bz_xchg_acqrel(&c->word, BUSY); /* [B] */
    BZ_ASSERT(!is_still(word));
    uint64_t at = led(word, bz_os_now(c->under));
    bz_store_release(&c->word, standing(at)); /* [A] */
    return at;
}

void bz_clock_set(struct bz_clock *c, uint64_t at)
{
    uint64_t word = bz_load_relaxed(&c->word); /* relaxed: I1 */
    BZ_ASSERT(word != BUSY && is_still(word));
    BZ_ASSERT(at >= word >> 1 && at <= BZ_CLOCK_LAST);
    (void)word;
    bz_store_release(&c->word, standing(at)); /* [A] */
}

void bz_clock_resume(struct bz_clock *c)
{
    uint64_t word = bz_xchg_acqrel(&c->word, BUSY); /* [B] */
    BZ_ASSERT(is_still(word) && word != BUSY);
    int64_t lead = (int64_t)((word >> 1) - bz_os_now(c->under));
    bz_store_release(&c->word, running(lead)); /* [A] */
}

uint64_t bz_clock_to_system(struct bz_clock *c, uint64_t when)
{
    uint64_t word = word_of(c);
    if (when == BZ_OS_FOREVER)
        return BZ_OS_FOREVER;
    if (is_still(word))
        return when <= word >> 1 ? 0 : BZ_OS_FOREVER;
    int64_t lead = (int64_t)word >> 1;
    if (lead >= 0)
        return when > (uint64_t)lead ? when - (uint64_t)lead : 0;
    uint64_t behind = (uint64_t)-lead;
    return when < BZ_OS_FOREVER - behind ? when + behind : BZ_OS_FOREVER;
}
