/*
 * sort_radix.c - sorts of numbers: a radix sort with a parallel first step.
 *
 * A number becomes a *key* by flipping bits: keys are unsigned and have the order of the numbers. A
 * signed number flips its sign bit; a negative floating-point number flips all bits, which gives
 * IEEE's total order. So the six types become two: 32 and 64 bits (sort_radix_of.h, included once
 * for each).
 *
 *   1. Check for a single run, as every sort does.
 *   2. Find the bits that differ. The highest `bits` of them are the *digit*.
 *   3. Count the digits, chunk by chunk. If no bit below the digit differs, write the array from
 *   the counts. Few distinct small numbers end here.
 *   4. Distribute to a second array by digit: chunks in parallel, each to its own places.
 *   5. Sort the buckets in parallel. A bucket that fits into a core's cache gets two passes from
 *   the low digit to the high one, over its 16 highest differing bits. Then an insertion sort moves
 *   it back into the array; it has little to do, because a bucket has about as many elements as
 *   such digits have values. A larger bucket starts again at 2.
 *
 * Measured on 10 million random 64-bit numbers, one worker / two: see docs/architecture.md.
 * Rejected: eight passes from the lowest digit up (each goes through memory). In place without the
 * second array (each step waits for the last). Quicksort takes two to three times as long; it is
 * used if there is no memory for the second array, and below BZ_RADIX_MIN.
 *
 * R1  After step 2 both values of the highest differing bit occur. So each bucket is smaller than
 *     the whole and has fewer differing bits: at most 64 / 8 rounds for any input.
 * R2  The insertions of a bucket are counted; past 8 for each number the bucket is sorted by
 *     quicksort, whose worst case is n log n.
 * R3  The array is a permutation of its input, as numbers or as keys, until step 4 is done. From
 *     then on each bucket is written by its own job, sorted or, if the task is cancelled, unsorted.
 */
#include "par/sort.h"

#include <errno.h>
#include <string.h>

#include "blitz/task.h"
#include "blitz/yield.h"

enum {
    BZ_RADIX_MIN = 1024,    /* below, quicksort */
    BZ_RADIX_LEAF = 131072, /* the largest bucket that one job sorts alone */
    BZ_RADIX_BITS_MAX = 11,
    BZ_RADIX_DIGIT = 8, /* of a pass within a bucket */
    BZ_RADIX_VALUES = 1 << BZ_RADIX_DIGIT,
    BZ_RADIX_FEW = 192 /* a bucket for quicksort */
};

/* The number of bits that gives buckets of about 32 thousand. */
static unsigned digit_bits(size_t n)
{
    unsigned bits = bz_sort_limit(n / 32768 + 1);
    return bits < 4 ? 4 : bits > BZ_RADIX_BITS_MAX ? BZ_RADIX_BITS_MAX : bits;
}

/* Expands NAMED first. */
#define FUNCTIONS(name, bytes, is_small, less) BLITZ_SORT_FUNCTIONS_(name, bytes, is_small, less)
#define KERNEL(name, bytes, less) BLITZ_SORT_KERNEL_(name, bytes, less)

#define KEY uint32_t
#define SIGNED int32_t
#define BITS 32
#define NAMED(name) name##_32
#include "par/sort_radix_of.h"
#undef KEY
#undef SIGNED
#undef BITS
#undef NAMED

#define KEY uint64_t
#define SIGNED int64_t
#define BITS 64
#define NAMED(name) name##_64
#include "par/sort_radix_of.h"

static const struct flips_32 signed_32 = {UINT32_C(1) << 31, 0};
static const struct flips_32 float_32 = {UINT32_C(1) << 31, INT32_MAX};
static const struct flips_64 signed_64 = {UINT64_C(1) << 63, 0};
static const struct flips_64 float_64 = {UINT64_C(1) << 63, INT64_MAX};

/* The array as unsigned numbers: signed and unsigned types of one size may alias. */
int blitz_sort_uint32(uint32_t *v, size_t n)
{
    return sort_32(v, n, &(struct flips_32){0, 0});
}

int blitz_sort_int32(int32_t *v, size_t n)
{
    return sort_32((uint32_t *)v, n, &signed_32);
}

int blitz_sort_float(float *v, size_t n)
{
    return sort_32((void *)v, n, &float_32);
}

int blitz_sort_uint64(uint64_t *v, size_t n)
{
    return sort_64(v, n, &(struct flips_64){0, 0});
}

int blitz_sort_int64(int64_t *v, size_t n)
{
    return sort_64((uint64_t *)v, n, &signed_64);
}

int blitz_sort_double(double *v, size_t n)
{
    return sort_64((void *)v, n, &float_64);
}
