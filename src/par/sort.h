/*
 * sort.h - shared by the sorts: parallel passes over parts, and moving elements.
 *
 *   sort.c          unstable sort over a kernel (blitz/sort_core.h)
 *   sort_wide.c     its parallel steps: partition, search for a run
 *   sort_compare.c  kernels for a comparison by pointer; blitz_sort and the sorts by a key
 *   sort_stable.c   the merge sort
 *   sort_cached.c   keys first, then the elements
 *   sort_radix.c    numbers
 *   sort_strings.c  strings
 *
 * Elements are bytes here. An array larger than BZ_SORT_LEAF is sorted by several jobs; one job
 * sorts a leaf without yielding.
 */
#ifndef BZ_PAR_SORT_H
#define BZ_PAR_SORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/alloc.h"
#include "blitz/fork.h"
#include "blitz/sort.h"
#include "blitz/task.h"
#include "par/split.h"

enum {
    BZ_SORT_LEAF = 4096,       /* elements that one job sorts alone */
    BZ_SORT_CHUNK_MIN = 16384, /* elements that are worth a job in a pass over the array */
    BZ_SORT_CHUNKS_MAX = 128,
};

/* A comparison by pointer: the ctx of the kernels in sort_compare.c and of the merge sort. */
struct bz_compare {
    blitz_compare_fn *compare;
    void *arg;
    size_t size;
};

static inline int bz_compare_less(const void *a, const void *b, void *ctx)
{
    const struct bz_compare *c = ctx;
    return c->compare(a, b, c->arg) < 0;
}

/* Call fn(arg) on a worker, where its forks can be stolen, if that is worth it. */
static inline int bz_sort_call(size_t n, int (*fn)(void *arg), void *arg)
{
    return n <= BZ_SORT_LEAF ? fn(arg) : blitz_par_call_(fn, arg);
}

/* The number of workers; 1 on a plain thread. */
unsigned bz_sort_procs(void);

/* The allocator: the runtime's, or the C library's on a plain thread. */
const blitz_allocator *bz_sort_allocator(void);

/* The number of parts of a pass over n elements: at most BZ_SORT_CHUNKS_MAX if the pass keeps data
 * for each part, else as many as pay. */
size_t bz_sort_chunks(size_t n);
size_t bz_sort_pieces(size_t n);

/* Call fn(i, arg) for each i of [0, count), in parallel. Return the error of the lowest i that
 * failed. */
BZ_MUST_USE int bz_sort_each(size_t count, int (*fn)(size_t i, void *arg), void *arg);

/*
 * A shielded task ignores a cancel during a sort, but a job of it on another worker is not
 * shielded. So the call records at its start whether it is shielded, and its jobs use that.
 */
static inline bool bz_sort_is_stopped(bool is_shielded)
{
    return !is_shielded && blitz_is_cancelled();
}

/* The same for a part that calls another sort. Return true if the part must be unshielded
 * afterwards. */
static inline bool bz_sort_shield(bool is_shielded)
{
    bool is_new = is_shielded && !bz_par_is_shielded();
    if (is_new)
        blitz_shield();
    return is_new;
}

/* The i-th of `parts` parts of [0, n). */
static inline size_t bz_sort_part(size_t n, size_t parts, size_t i)
{
    return n / parts * i + (i < n % parts ? i : n % parts);
}

/* Check the arguments of a sort of n elements of `size` bytes. Return 0 or -EINVAL. */
int bz_sort_check(const void *base, size_t n, size_t size);

/* log2(n), rounded down; n > 0. The allowed number of bad pivots. */
static inline unsigned bz_sort_limit(size_t n)
{
    unsigned bits = 0;
    while (n >>= 1)
        bits++;
    return bits + 1;
}

/* In parallel: copy bytes that do not overlap; reverse n elements. */
void bz_sort_copy(void *to, const void *from, size_t bytes);
void bz_sort_reverse(void *v, size_t n, size_t size);

/* sort_wide.c: k->split in parallel; and a check whether the array is one run, rising or
 * falling. */
size_t bz_sort_split(const struct blitz_sort_kernel_ *k, void *v, size_t n, const void *pivot,
                     int are_equal, void *ctx);
bool bz_sort_is_run(const struct blitz_sort_kernel_ *k, const void *v, size_t n, int falls,
                    void *ctx);

/* The unstable sort, called on a worker, where its forks can be stolen. */
BZ_MUST_USE int bz_sort_here(const struct blitz_sort_kernel_ *k, void *v, size_t n, void *ctx);

#endif
