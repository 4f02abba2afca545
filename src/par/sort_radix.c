/*
 * sort_radix.c - numbers: a radix sort whose first step is parallel.
 *
 * A number becomes a *key* by flipping bits: unsigned, and in the number's order (a signed one by its
 * sign bit, a floating-point one also by all others if it is negative, which is IEEE's total order).
 * All six types are then two: 32 and 64 bits (sort_radix_of.h, included once for each).
 *
 *   1. One look for a run, as for every sort.
 *   2. Which bits differ at all? The highest `bits` of them are the *digit*.
 *   3. Count the digits, chunk by chunk; if there is nothing below the digit, the counts say it all, and
 *      the array is written from them. Few distinct small numbers end here.
 *   4. Distribute to a second array, by digit: chunks in parallel, each to places of its own.
 *   5. The buckets, in parallel. One that fits into a core's cache: two passes from the low digit to
 *      the high one, over the 16 highest bits that differ in it, and one of insertions, which
 *      brings them back into the array and has next to nothing to do, as a bucket has about as many
 *      elements as such digits have values. One that is larger starts again at 2.
 *
 * Measured on 10 million random 64-bit numbers, one worker / two: see docs/architecture.md. Rejected:
 * eight passes from the lowest digit up (each goes through memory); in place without the second
 * array (each step waits for the last); quicksort (twice to three times as long; it is what is done
 * without memory for the second array, and below BZ_RADIX_MIN).
 *
 * R1  After step 2 both values of the highest differing bit occur, so each bucket is smaller than the
 *     whole, and has fewer bits that differ: at most 64 / 8 rounds, whatever the numbers.
 * R2  The insertions of a bucket are counted; past 8 a number it is left to quicksort, whose worst case
 *     is n log n.
 * R3  The array is a permutation of what it was, as numbers or as keys, until step 4 is through; from
 *     then on each bucket is written by its own job, sorted or, if the task is cancelled, as it is.
 */
#include "par/sort.h"

#include <errno.h>
#include <string.h>

#include "blitz/task.h"
#include "blitz/yield.h"

enum {
    BZ_RADIX_MIN = 1024,    /* below, quicksort */
    BZ_RADIX_LEAF = 131072, /* the largest bucket that one job sorts by itself */
    BZ_RADIX_BITS_MAX = 11,
    BZ_RADIX_DIGIT = 8, /* of a pass within a bucket */
    BZ_RADIX_VALUES = 1 << BZ_RADIX_DIGIT,
    BZ_RADIX_FEW = 192 /* a bucket for quicksort */
};

/* As many bits as make buckets of about 32 thousand. */
static unsigned digit_bits(size_t n)
{
    unsigned bits = bz_sort_limit(n / 32768 + 1);
    return bits < 4 ? 4 : bits > BZ_RADIX_BITS_MAX ? BZ_RADIX_BITS_MAX : bits;
}

/* So that a name made by NAMED is made first. */
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

/* The array as numbers without a type: signed and unsigned of a size may alias. */
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
