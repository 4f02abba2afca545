/* base/bz_atomic.h: a load and a comparison in one step. Its instruction is written by hand. */
#include "harness.h"

#include "base/bz_atomic.h"
#include "base/compiler.h"

static bz_atomic(uint32_t) word32;
static bz_atomic(uint64_t) word64;

static const uint64_t values[] = {
    0,           1,           2,          0x7fffffff,       0x80000000,     0xffffffff,
    0x100000000, 0x100000001, 1ULL << 63, (1ULL << 63) + 1, UINT64_MAX - 1, UINT64_MAX};

/* The instruction must say what compilers make of a load and an operator. */
TEST(compare, of_64_bits_is_that_of_a_loaded_value)
{
    for (size_t i = 0; i < BZ_ARRAY_LEN(values); i++) {
        uint64_t is = values[i];
        bz_store_relaxed(&word64, is); /* relaxed: one thread */
        for (size_t j = 0; j < BZ_ARRAY_LEN(values); j++) {
            uint64_t v = values[j];
            CHECK_EQ(bz_equals_relaxed(&word64, v), is == v); /* relaxed: one thread */
            CHECK_EQ(bz_equals_acquire(&word64, v), is == v); /* one thread: for its value alone */
            CHECK_EQ(bz_below_relaxed(&word64, v), is < v);   /* relaxed: one thread */
            CHECK_EQ(bz_test_relaxed(&word64, v), (is & v) != 0); /* relaxed: one thread */
            CHECK_EQ(bz_test_acquire(&word64, v),
                     (is & v) != 0); /* one thread: for its value alone */
        }
    }
}

TEST(compare, of_32_bits_is_that_of_a_loaded_value)
{
    for (size_t i = 0; i < BZ_ARRAY_LEN(values); i++) {
        uint32_t is = (uint32_t)values[i];
        bz_store_relaxed(&word32, is); /* relaxed: one thread */
        for (size_t j = 0; j < BZ_ARRAY_LEN(values); j++) {
            uint32_t v = (uint32_t)values[j];
            CHECK_EQ(bz_equals_relaxed(&word32, v), is == v); /* relaxed: one thread */
            CHECK_EQ(bz_equals_acquire(&word32, v), is == v); /* one thread: for its value alone */
            CHECK_EQ(bz_below_relaxed(&word32, v), is < v);   /* relaxed: one thread */
            CHECK_EQ(bz_test_relaxed(&word32, v), (is & v) != 0); /* relaxed: one thread */
            CHECK_EQ(bz_test_acquire(&word32, v),
                     (is & v) != 0); /* one thread: for its value alone */
        }
    }
}

/* With a constant the operand is an immediate of 32 bits, sign-extended. */
TEST(compare, with_a_constant_sees_the_upper_half)
{
    bz_store_relaxed(&word64, UINT64_C(1) << 40 | 7); /* relaxed: one thread */

    CHECK(!bz_equals_relaxed(&word64, 7));                    /* relaxed: one thread */
    CHECK(!bz_equals_relaxed(&word64, 0));                    /* relaxed: one thread */
    CHECK(bz_equals_relaxed(&word64, UINT64_C(1) << 40 | 7)); /* relaxed: one thread */
    CHECK(bz_test_relaxed(&word64, UINT64_C(1) << 40));       /* relaxed: one thread */
    CHECK(!bz_test_relaxed(&word64, 8));                      /* relaxed: one thread */
    CHECK(!bz_below_relaxed(&word64, 8));                     /* relaxed: one thread */
}
