/*
 * bits.h - counting, finding and rounding with bits.
 *
 * Thin wrappers around the compiler's builtins; an assertion rules out the undefined case (zero).
 * Also bit sets wider than a word, for the idle set and the timer wheel's occupancy. Nothing here
 * is atomic: to use a shared word, load it first.
 */
#ifndef BZ_BITS_H
#define BZ_BITS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/check.h"

/* Index of the lowest set bit. `word` is not 0. */
static inline unsigned bz_bits_lowest(uint64_t word)
{
    BZ_ASSERT(word != 0);
    return (unsigned)__builtin_ctzll(word);
}

/* Index of the highest set bit, which is floor(log2(word)). `word` is not 0. */
static inline unsigned bz_bits_highest(uint64_t word)
{
    BZ_ASSERT(word != 0);
    return 63u - (unsigned)__builtin_clzll(word);
}

static inline unsigned bz_bits_count(uint64_t word)
{
    return (unsigned)__builtin_popcountll(word);
}

static inline bool bz_is_pow2(uint64_t n)
{
    return n != 0 && (n & (n - 1)) == 0;
}

/* The smallest power of two >= n; 1 for 0. `n` is at most 2^63. */
static inline uint64_t bz_pow2_up(uint64_t n)
{
    BZ_ASSERT(n <= UINT64_C(1) << 63);
    return n <= 1 ? 1 : UINT64_C(1) << (bz_bits_highest(n - 1) + 1);
}

/* The multiple of `align` (a power of two) at or above n. The sum does not overflow. */
static inline uint64_t bz_align_up(uint64_t n, uint64_t align)
{
    BZ_ASSERT(bz_is_pow2(align));
    BZ_ASSERT(n <= UINT64_MAX - (align - 1));
    return (n + align - 1) & ~(align - 1);
}

/* Rotated so that bit `by` becomes bit 0: a search that starts anywhere and wraps. */
static inline uint64_t bz_bits_rotate(uint64_t word, unsigned by)
{
    return (word >> (by & 63)) | (word << (-by & 63));
}

/*
 * for each set bit of a word, lowest first:   BZ_BITS_FOR_EACH(i, word) { use(i); }
 * The word is read once; changing it inside does not change the walk.
 */
#define BZ_BITS_FOR_EACH(index, word)                                                        \
    for (uint64_t left_##index = (word), once_##index = 1; once_##index; once_##index = 0)   \
        for (unsigned index; left_##index != 0 && (index = bz_bits_lowest(left_##index), 1); \
             left_##index &= left_##index - 1)

/* Index of the lowest set bit in `words` words, or -1. */
static inline int bz_bitset_lowest(const uint64_t *set, unsigned words)
{
    for (unsigned w = 0; w < words; w++)
        if (set[w] != 0)
            return (int)(w * 64 + bz_bits_lowest(set[w]));
    return -1;
}

static inline void bz_bitset_add(uint64_t *set, unsigned bit)
{
    set[bit / 64] |= UINT64_C(1) << (bit % 64);
}

static inline void bz_bitset_remove(uint64_t *set, unsigned bit)
{
    set[bit / 64] &= ~(UINT64_C(1) << (bit % 64));
}

static inline bool bz_bitset_has(const uint64_t *set, unsigned bit)
{
    return (set[bit / 64] >> (bit % 64)) & 1;
}

#endif
