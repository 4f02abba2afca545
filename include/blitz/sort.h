/*
 * blitz/sort.h - sorting arrays, on all workers at once.
 *
 *     static int by_age(const void *a, const void *b, void *arg)
 *     {
 *         const struct person *x = a, *y = b;
 *         return (x->age > y->age) - (x->age < y->age);
 *     }
 *     blitz_sort(people, n, sizeof people[0], by_age, NULL);
 *
 * Which one:
 *   - numbers and strings: blitz_sort_uint64() and its like, the fastest by far;
 *   - a type of your own, in a hot place: BLITZ_SORT_DEFINE, which inlines your comparison;
 *   - anything: blitz_sort(), as qsort_r();
 *   - equal elements must keep their order: blitz_sort_stable();
 *   - the sort key is a number that is slow to compute: blitz_sort_by_cached_key().
 *
 * Rules for all:
 *   - Up to a few thousand elements are sorted in the calling task. A larger array is forked in parts (blitz/fork.h),
 *     and free workers sort them. A comparison is called from several workers at once. It may do what a job may: wait,
 *     fork, even sort.
 *   - There are at most about c * n * log2(n) comparisons, for any input order. An array that is sorted already, or
 *     backwards, is detected in n of them. Few distinct values make the sort faster.
 *   - A comparison that contradicts itself gives some order. Nothing is read or written out of bounds, the sort ends,
 *     and the array holds the same elements.
 *   - If the calling task is cancelled and not shielded, the sort stops between two parts and returns -ECANCELED. A
 *     part mostly has a few thousand elements, but a merge or a pass over the whole array is not interrupted. For every
 *     result of a sort, the array is a permutation of the input.
 *   - On a plain thread the workers for such threads take the parts (blitz/fork.h).
 *   - A sort needs some 10 KiB of stack and the needs of the comparison: a fiber of 64 KiB can sort any array that fits
 *     into memory.
 *   - A comparison must not exit by longjmp or a C++ exception.
 */
#ifndef BLITZ_SORT_H
#define BLITZ_SORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "blitz/api.h"
#include "blitz/sort_core.h"

BLITZ_BEGIN_DECLS

/* Return less than 0 if a comes before b, 0 if they are equal, more than 0 if b comes before a. */
typedef int blitz_compare_fn(const void *a, const void *b, void *arg);

/* Return the key of an element; smaller keys come first. */
typedef uint64_t blitz_key_fn(const void *element, void *arg);

/*
 * Sort n elements of `size` bytes. Equal elements come in any order. Allocates nothing.
 * Owns:     borrows `base` until return; `arg` is passed to the comparison.
 * Suspends: until all parts are sorted. Call from anywhere.
 * Returns:  0; -EINVAL (size is 0, no comparison, no array, n * size overflows: nothing was done);
 *           -ECANCELED.
 */
BLITZ_API BLITZ_SUSPENDS int blitz_sort(void *base, size_t n, size_t size,
                                        blitz_compare_fn *compare, void *arg);

/*
 * Sort n elements of `size` bytes; equal elements keep their order. Allocates as much memory as the array has.
 * Owns:     borrows `base` until return; `arg` is passed to the comparison.
 * Suspends: until all parts are sorted. Call from anywhere.
 * Returns:  0; -EINVAL as above; -ENOMEM (the array is as it was); -ECANCELED.
 */
BLITZ_API BLITZ_SUSPENDS int blitz_sort_stable(void *base, size_t n, size_t size,
                                               blitz_compare_fn *compare, void *arg);

/*
 * Sort by a number of each element: key() is called twice for each comparison. For keys of other types see
 * blitz_key_int64() and blitz_key_double(). Allocates nothing.
 * Owns:     borrows `base` until return; `arg` is passed to the key function.
 * Suspends: until all parts are sorted. Call from anywhere.
 * Returns:  0; -EINVAL, -ECANCELED as above.
 */
BLITZ_API BLITZ_SUSPENDS int blitz_sort_by_key(void *base, size_t n, size_t size, blitz_key_fn *key,
                                               void *arg);

/*
 * Sort by a number of each element; elements with equal keys keep their order.
 * Owns:     borrows `base` until return; `arg` is passed to the key function.
 * Suspends: until all parts are sorted. Call from anywhere.
 * Returns:  0; -EINVAL; -ENOMEM (the array is as it was); -ECANCELED.
 */
BLITZ_API BLITZ_SUSPENDS int blitz_sort_stable_by_key(void *base, size_t n, size_t size,
                                                      blitz_key_fn *key, void *arg);

/*
 * Sort by a number of each element, and call key() once for each; stable, too. Allocates 16 bytes for each element and
 * as much as the array has.
 * Owns:     borrows `base` until return; `arg` is passed to the key function.
 * Suspends: until all parts are sorted. Call from anywhere.
 * Returns:  0; -EINVAL; -ENOMEM, -ECANCELED (the array is unchanged).
 */
BLITZ_API BLITZ_SUSPENDS int blitz_sort_by_cached_key(void *base, size_t n, size_t size,
                                                      blitz_key_fn *key, void *arg);

/*
 * Sort numbers. The sorts use memory as large as the array, or do without if there is none. float and double are in
 * total order. First come NaNs with the sign bit, then -infinity up to -0.0, then +0.0 up to +infinity, then the other
 * NaNs.
 * Owns:     borrows `v` until return.
 * Suspends: until all parts are sorted. Call from anywhere.
 * Returns:  0; -EINVAL (no array); -ECANCELED.
 */
BLITZ_API BLITZ_SUSPENDS int blitz_sort_int32(int32_t *v, size_t n);
BLITZ_API BLITZ_SUSPENDS int blitz_sort_int64(int64_t *v, size_t n);
BLITZ_API BLITZ_SUSPENDS int blitz_sort_uint32(uint32_t *v, size_t n);
BLITZ_API BLITZ_SUSPENDS int blitz_sort_uint64(uint64_t *v, size_t n);
BLITZ_API BLITZ_SUSPENDS int blitz_sort_float(float *v, size_t n);
BLITZ_API BLITZ_SUSPENDS int blitz_sort_double(double *v, size_t n);

/*
 * Sort strings in the order of strcmp(): by their bytes. Uses 16 bytes for each string, or does without if there is no
 * memory.
 * Owns:     borrows `v` and the strings until return.
 * Suspends: until all parts are sorted. Call from anywhere.
 * Returns:  0; -EINVAL (no array); -ECANCELED.
 */
BLITZ_API BLITZ_SUSPENDS int blitz_sort_strings(char **v, size_t n);

/*
 * Check whether an array is in order. Makes at most n - 1 comparisons, on the calling worker.
 * Owns:     borrows `base` until return; `arg` is passed to the comparison. *is_sorted is the answer, written on 0.
 * Suspends: if the comparison does. Call from anywhere.
 * Returns:  0; -EINVAL as blitz_sort().
 */
BLITZ_API BLITZ_SUSPENDS int blitz_sort_check(const void *base, size_t n, size_t size,
                                              blitz_compare_fn *compare, void *arg,
                                              bool *is_sorted);

/*
 * Define `int name(type *v, size_t n)`, a sort in which the comparison is inlined. less(a, b), a function or macro of
 * two `const type *`, is not 0 if *a comes before *b. Use it at file scope; the function is static. Equal elements come
 * in any order. Allocates nothing.
 *
 *     static inline int is_younger(const struct person *a, const struct person *b)
 *     {
 *         return a->age < b->age;
 *     }
 *     BLITZ_SORT_DEFINE(sort_people, struct person, is_younger);
 *
 * The defined function:
 * Owns:     borrows `v` until return.
 * Suspends: until all parts are sorted. Call from anywhere.
 * Returns:  0; -EINVAL (no array); -ECANCELED.
 */
#define BLITZ_SORT_DEFINE(name, type, less)                                         \
    BLITZ_SORT_INLINE_ int name##_less_(const void *a, const void *b, void *ctx)    \
    {                                                                               \
        (void)ctx;                                                                  \
        return less((const type *)a, (const type *)b) ? 1 : 0;                      \
    }                                                                               \
    BLITZ_SORT_FUNCTIONS_(name, sizeof(type), BLITZ_SORT_FITS_(type), name##_less_) \
    static BLITZ_MAYBE_UNUSED int name(type *v, size_t n)                           \
    {                                                                               \
        static const struct blitz_sort_kernel_ kernel =                             \
            BLITZ_SORT_KERNEL_(name, sizeof(type), name##_less_);                   \
        return blitz_sort_with_(&kernel, v, n, NULL);                               \
    }                                                                               \
    struct name##_sort_ /* the semicolon is yours */

/*
 * Turn a number of another type into a key for blitz_sort_by_key() that keeps its order; double in total order.
 * Suspends: never. Call from anywhere.
 * Returns:  the key.
 */
static inline uint64_t blitz_key_int64(int64_t x)
{
    return (uint64_t)x ^ UINT64_C(0x8000000000000000);
}
static inline uint64_t blitz_key_double(double x)
{
    union {
        double number;
        uint64_t bits;
    } u;
    u.number = x;
    return u.bits >> 63 != 0 ? ~u.bits : u.bits | UINT64_C(0x8000000000000000);
}

BLITZ_END_DECLS

#endif
