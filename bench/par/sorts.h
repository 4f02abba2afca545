/*
 * sorts.h - our sorts, for blitz.c.
 */
#ifndef BENCH_PAR_SORTS_H
#define BENCH_PAR_SORTS_H

#include <blitz.h>

#include "par/cases.h"

static void by_value(uint64_t *numbers, size_t count)
{
    int rc = blitz_sort_uint64(numbers, count);
    if (rc != 0)
        bench_die("sort: error %d", -rc);
}

SORT_CASES(sort, by_value)

static int compare_values(const void *a, const void *b, void *arg)
{
    (void)arg;
    return sort_compare(a, b);
}

static void by_comparison(uint64_t *numbers, size_t count)
{
    int rc = blitz_sort(numbers, count, sizeof *numbers, compare_values, NULL);
    if (rc != 0)
        bench_die("sort: error %d", -rc);
}

SORT_CASES(compare, by_comparison)

#endif
