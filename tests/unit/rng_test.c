/* rng.h: repeatable, even, and splittable. */
#include "harness.h"

#include "base/rng.h"

/* Simulations are replayed by seed for ever, so the sequence itself is part of the contract. */
TEST(rng, a_seed_gives_the_same_numbers_for_ever)
{
    struct bz_rng r;
    bz_rng_init(&r, 0);
    CHECK_EQ(bz_rng_next(&r), UINT64_C(0xe220a8397b1dcdaf));
    CHECK_EQ(bz_rng_next(&r), UINT64_C(0x6e789e6aa1b965f4));
    CHECK_EQ(bz_rng_next(&r), UINT64_C(0x06c45d188009454f));
}

TEST(rng, below_stays_below_and_reaches_both_ends)
{
    struct bz_rng r;
    bz_rng_init(&r, t_seed());
    for (uint32_t limit = 1; limit < 40; limit++) {
        bool low = false, high = false;
        for (int i = 0; i < 4000; i++) {
            uint32_t n = bz_rng_below(&r, limit);
            CHECK_LT(n, limit);
            low |= n == 0;
            high |= n == limit - 1;
        }
        CHECK(low);
        CHECK(high);
    }
    for (int i = 0; i < 1000; i++)
        CHECK_LT(bz_rng_below(&r, UINT32_MAX), UINT32_MAX);
}

/* Victims are chosen by this: no proc may be favoured. Chi-square with 7 degrees of freedom stays
 * under 40 but for one seed in a million. */
TEST(rng, below_is_even)
{
    enum { DRAWS = 80000, BOXES = 8 };
    struct bz_rng r;
    bz_rng_init(&r, t_seed());
    double boxes[BOXES] = {0}, chi = 0;
    for (int i = 0; i < DRAWS; i++)
        boxes[bz_rng_below(&r, BOXES)]++;
    for (int b = 0; b < BOXES; b++) {
        double off = boxes[b] - DRAWS / BOXES;
        chi += off * off / (DRAWS / BOXES);
    }
    CHECK_LT(chi, 40.0);
}

TEST(rng, split_generators_go_their_own_ways)
{
    struct bz_rng parent, again;
    bz_rng_init(&parent, t_seed());
    again = parent;
    struct bz_rng child = bz_rng_split(&parent);
    struct bz_rng child_again = bz_rng_split(&again);

    for (int i = 0; i < 100; i++) {
        uint64_t n = bz_rng_next(&child);
        CHECK_EQ(n, bz_rng_next(&child_again));
        CHECK_NE(n, bz_rng_next(&parent));
    }
}
