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
 *   - what to compare by is a number that takes long to find: blitz_sort_by_cached_key().
 *
 * What holds for all:
 *   - Up to a few thousand elements are sorted where the call stands; of more, parts are forked
 *     (blitz/fork.h), and whoever has time sorts them. A comparison is called from several workers at
 *     once. It may do what a job may: wait, fork, even sort.
 *   - At most about c * n * log2(n) comparisons, whatever the order. What is sorted already, or
 *     backwards, is found out in n of them; few distinct values make it faster.
 *   - A comparison that contradicts itself gets some order; nothing is read or written out of
 *     bounds, it ends, and the array holds what it held.
 *   - If the calling task is cancelled, and not shielded, the sort stops at the border of two parts: of
 *     a few thousand elements mostly, but a merge or a pass over the whole array is not broken off.
 *     It returns -ECANCELED. Whatever a sort returns, the array is a permutation of what it was.
 *   - On a plain thread the parts are taken by the workers for such threads (blitz/fork.h).
 *   - The stack needed is some 10 KiB and what the comparison needs: a fiber of 64 KiB can sort
 *     whatever fits into memory.
 *   - A comparison must not leave by longjmp or a C++ exception.
 */
#ifndef BLITZ_SORT_H
#define BLITZ_SORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "blitz/api.h"
#include "blitz/sort_core.h"

BLITZ_BEGIN_DECLS

/* Less than 0: a comes before b. 0: they are equal. More than 0: b comes before a. */
typedef int blitz_compare_fn(const void *a, const void *b, void *arg);

/* What an element is sorted by; smaller ones come first. */
typedef uint64_t blitz_key_fn(const void *element, void *arg);

/*
 * Sort n elements of `size` bytes. Equal ones come in any order. Allocates nothing.
 * Owns:     borrows `base` until return; `arg` is the comparison's.
 * Suspends: until all parts are sorted. Call from anywhere.
 * Returns:  0; -EINVAL (size is 0, no comparison, no array, n * size overflows: nothing was done);
 *           -ECANCELED.
 */
BLITZ_API BLITZ_SUSPENDS int blitz_sort(void *base, size_t n, size_t size,
                                        blitz_compare_fn *compare, void *arg);

/*
 * Sort n elements of `size` bytes; equal ones stay in the order they are in. Allocates as much memory
 * as the array has.
 * Owns:     borrows `base` until return; `arg` is the comparison's.
 * Suspends: until all parts are sorted. Call from anywhere.
 * Returns:  0; -EINVAL as above; -ENOMEM (the array is as it was); -ECANCELED.
 */
BLITZ_API BLITZ_SUSPENDS int blitz_sort_stable(void *base, size_t n, size_t size,
                                               blitz_compare_fn *compare, void *arg);

/*
 * Sort by a number of each element: key() is called twice for each comparison. For keys of other
 * types see blitz_key_int64() and its like. Allocates nothing.
 * Owns:     borrows `base` until return; `arg` is the key function's.
 * Suspends: until all parts are sorted. Call from anywhere.
 * Returns:  0; -EINVAL, -ECANCELED as above.
 */
BLITZ_API BLITZ_SUSPENDS int blitz_sort_by_key(void *base, size_t n, size_t size, blitz_key_fn *key,
                                               void *arg);

/*
 * The same; elements with equal keys stay in the order they are in.
 * Owns:     borrows `base` until return; `arg` is the key function's.
 * Suspends: until all parts are sorted. Call from anywhere.
 * Returns:  0; -EINVAL; -ENOMEM (the array is as it was); -ECANCELED.
 */
BLITZ_API BLITZ_SUSPENDS int blitz_sort_stable_by_key(void *base, size_t n, size_t size,
                                                      blitz_key_fn *key, void *arg);

/*
 * The same, calling key() once for each element; stable, too. Allocates 16 bytes for each element and
 * as much as the array has.
 * Owns:     borrows `base` until return; `arg` is the key function's.
 * Suspends: until all parts are sorted. Call from anywhere.
 * Returns:  0; -EINVAL; -ENOMEM (the array is as it was); -ECANCELED (likewise).
 */
BLITZ_API BLITZ_SUSPENDS int blitz_sort_by_cached_key(void *base, size_t n, size_t size,
                                                      blitz_key_fn *key, void *arg);

/*
 * Numbers. They use memory as large as the array if there is any, and do without if there is not.
 * float and double are in total order: NaNs with the sign bit, then -infinity up to -0.0, +0.0 up to
 * +infinity, then the other NaNs.
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
 * Strings, in the order of strcmp(): by their bytes. Uses 16 bytes for each if there is memory, and
 * does without if there is not.
 * Owns:     borrows `v` and the strings until return.
 * Suspends: until all parts are sorted. Call from anywhere.
 * Returns:  0; -EINVAL (no array); -ECANCELED.
 */
BLITZ_API BLITZ_SUSPENDS int blitz_sort_strings(char **v, size_t n);

/*
 * Is it in order? At most n - 1 comparisons, on the calling worker.
 * Owns:     borrows `base` until return; `arg` is the comparison's. *is_sorted is the answer, written on 0.
 * Suspends: if the comparison does. Call from anywhere.
 * Returns:  0; -EINVAL as blitz_sort().
 */
BLITZ_API BLITZ_SUSPENDS int blitz_sort_check(const void *base, size_t n, size_t size,
                                              blitz_compare_fn *compare, void *arg,
                                              bool *is_sorted);

/*
 * Define `int name(type *v, size_t n)`, a sort in which the comparison is inlined: less(a, b), a
 * function or macro of two `const type *`, is not 0 if *a comes before *b. At file scope; the
 * function is static. Equal ones come in any order. Allocates nothing.
 *
 *     static inline int is_younger(const struct person *a, const struct person *b)
 *     {
 *         return a->age < b->age;
 *     }
 *     BLITZ_SORT_DEFINE(sort_people, struct person, is_younger);
 *
 * What is defined:
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
 * Numbers of other types as keys for blitz_sort_by_key(), in their order; double in total order.
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
