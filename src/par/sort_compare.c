/*
 * sort_compare.c - sorts by a comparison function, and by a key.
 *
 * The kernels of blitz/sort_core.h for elements of 4, 8, 12, 16, 24 and 32 bytes, which are moved
 * as registers, and one for any other size, known at run time. The comparison is a call in all of
 * them. They add its result instead of branching on it, which makes them several times as fast as
 * qsort.
 *
 * A key is compared as a number: the sort by a key is the sort by a comparison that calls it twice.
 */
#include "par/sort.h"

#include <errno.h>

#define KERNEL(bytes)                                            \
    BLITZ_SORT_FUNCTIONS_(of_##bytes, bytes, 1, bz_compare_less) \
    static const struct blitz_sort_kernel_ kernel_##bytes =      \
        BLITZ_SORT_KERNEL_(of_##bytes, bytes, bz_compare_less);
KERNEL(4)
KERNEL(8)
KERNEL(12)
KERNEL(16)
KERNEL(24)
KERNEL(32)
BLITZ_SORT_FUNCTIONS_(of_any, ((const struct bz_compare *)ctx)->size, 0, bz_compare_less)

static int sort_compared(void *base, size_t n, struct bz_compare *c)
{
    const struct blitz_sort_kernel_ any = BLITZ_SORT_KERNEL_(of_any, c->size, bz_compare_less);
    switch (c->size) {
    case 4:
        return blitz_sort_with_(&kernel_4, base, n, c);
    case 8:
        return blitz_sort_with_(&kernel_8, base, n, c);
    case 12:
        return blitz_sort_with_(&kernel_12, base, n, c);
    case 16:
        return blitz_sort_with_(&kernel_16, base, n, c);
    case 24:
        return blitz_sort_with_(&kernel_24, base, n, c);
    case 32:
        return blitz_sort_with_(&kernel_32, base, n, c);
    default:
        return blitz_sort_with_(&any, base, n, c);
    }
}

int blitz_sort(void *base, size_t n, size_t size, blitz_compare_fn *compare, void *arg)
{
    struct bz_compare c = {compare, arg, size};
    return compare == NULL ? -EINVAL : sort_compared(base, n, &c);
}

int blitz_sort_check(const void *base, size_t n, size_t size, blitz_compare_fn *compare, void *arg,
                     bool *is_sorted)
{
    const unsigned char *v = base;
    int err = compare == NULL ? -EINVAL : bz_sort_check(base, n, size);
    if (err != 0)
        return err;
    size_t i = 1;
    while (i < n && compare(v + i * size, v + (i - 1) * size, arg) >= 0)
        i++;
    *is_sorted = i >= n;
    return 0;
}

struct keyed {
    blitz_key_fn *key;
    void *arg;
};

static int compare_keys(const void *a, const void *b, void *arg)
{
    const struct keyed *k = arg;
    uint64_t x = k->key(a, k->arg), y = k->key(b, k->arg);
    return (x > y) - (x < y);
}

int blitz_sort_by_key(void *base, size_t n, size_t size, blitz_key_fn *key, void *arg)
{
    struct keyed k = {key, arg};
    return key == NULL ? -EINVAL : blitz_sort(base, n, size, compare_keys, &k);
}

int blitz_sort_stable_by_key(void *base, size_t n, size_t size, blitz_key_fn *key, void *arg)
{
    struct keyed k = {key, arg};
    return key == NULL ? -EINVAL : blitz_sort_stable(base, n, size, compare_keys, &k);
}
