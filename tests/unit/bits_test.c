/* bits.h: counting, finding and rounding. */
#include "harness.h"

#include "base/bits.h"
#include "support/death.h"

TEST(bits, lowest_and_highest_agree_on_single_bits)
{
    for (unsigned i = 0; i < 64; i++) {
        CHECK_EQ(bz_bits_lowest(UINT64_C(1) << i), i);
        CHECK_EQ(bz_bits_highest(UINT64_C(1) << i), i);
        CHECK_EQ(bz_bits_count(UINT64_C(1) << i), 1);
    }
}

TEST(bits, lowest_ignores_higher_bits_and_highest_lower_ones)
{
    for (unsigned i = 0; i < 64; i++) {
        CHECK_EQ(bz_bits_lowest(UINT64_MAX << i), i);
        CHECK_EQ(bz_bits_highest(UINT64_MAX >> i), 63 - i);
    }
    CHECK_EQ(bz_bits_count(UINT64_MAX), 64);
    CHECK_EQ(bz_bits_count(0), 0);
}

TEST(bits, powers_of_two_are_told_from_the_rest)
{
    CHECK(!bz_is_pow2(0));
    for (unsigned i = 0; i < 64; i++)
        CHECK(bz_is_pow2(UINT64_C(1) << i));
    for (unsigned i = 2; i < 64; i++) {
        CHECK(!bz_is_pow2((UINT64_C(1) << i) - 1));
        CHECK(!bz_is_pow2((UINT64_C(1) << i) + 1));
    }
}

/* The edges matter: a ring sized by this must be neither too small nor twice too large. */
TEST(bits, pow2_up_is_the_smallest_that_holds)
{
    CHECK_EQ(bz_pow2_up(0), 1u);
    CHECK_EQ(bz_pow2_up(1), 1u);
    for (unsigned i = 1; i < 63; i++) {
        uint64_t p = UINT64_C(1) << i;
        CHECK_EQ(bz_pow2_up(p), p);
        CHECK_EQ(bz_pow2_up(p + 1), p * 2);
        if (i > 1)
            CHECK_EQ(bz_pow2_up(p - 1), p);
    }
    CHECK_EQ(bz_pow2_up(UINT64_C(1) << 63), UINT64_C(1) << 63);
}

TEST(bits, align_up_reaches_the_next_multiple)
{
    CHECK_EQ(bz_align_up(0, 64), 0u);
    CHECK_EQ(bz_align_up(1, 64), 64u);
    CHECK_EQ(bz_align_up(64, 64), 64u);
    CHECK_EQ(bz_align_up(65, 64), 128u);
    CHECK_EQ(bz_align_up(UINT64_MAX - 63, 64), UINT64_MAX - 63);
    CHECK_EQ(bz_align_up(7, 1), 7u);
}

TEST(bits, rotate_brings_any_bit_to_the_front_and_loses_none)
{
    uint64_t word = UINT64_C(0x8000000000000421);
    for (unsigned i = 0; i < 64; i++) {
        uint64_t turned = bz_bits_rotate(word, i);
        CHECK_EQ(turned & 1, (word >> i) & 1);
        CHECK_EQ(bz_bits_count(turned), bz_bits_count(word));
        CHECK_EQ(bz_bits_rotate(turned, 64 - i), word);
    }
}

TEST(bits, for_each_visits_every_set_bit_once_from_below)
{
    for (int round = 0; round < 1000; round++) {
        uint64_t word = t_random() & t_random(), seen = 0;
        int before = -1;
        BZ_BITS_FOR_EACH (i, word) {
            CHECK_GT((int)i, before);
            before = (int)i;
            seen |= UINT64_C(1) << i;
        }
        CHECK_EQ(seen, word);
    }
}

TEST(bits, for_each_can_be_left_early)
{
    int visits = 0;
    BZ_BITS_FOR_EACH (i, UINT64_MAX) {
        visits++;
        if (i == 3)
            break;
    }
    CHECK_EQ(visits, 4);
}

TEST(bits, a_set_of_several_words_finds_its_lowest)
{
    uint64_t set[3] = {0, 0, 0};
    CHECK_EQ(bz_bitset_lowest(set, 3), -1);
    for (int bit = 191; bit >= 0; bit--) {
        CHECK(!bz_bitset_has(set, (unsigned)bit));
        bz_bitset_add(set, (unsigned)bit);
        CHECK(bz_bitset_has(set, (unsigned)bit));
        CHECK_EQ(bz_bitset_lowest(set, 3), bit);
    }
    for (int bit = 0; bit < 191; bit++) {
        bz_bitset_remove(set, (unsigned)bit);
        CHECK_EQ(bz_bitset_lowest(set, 3), bit + 1);
    }
}

#if defined(BZ_DEBUG)
/* The builtins are undefined for 0, so a debug build must not let it through. */
TEST(bits, zero_has_no_lowest_bit)
{
    volatile uint64_t zero = 0;
    DIES("word != 0", bz_bits_lowest(zero));
    DIES("word != 0", bz_bits_highest(zero));
}
#endif
