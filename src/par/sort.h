/*
 * sort.h - what the sorts have in common: running over parts in parallel, and moving elements.
 *
 *   sort.c          unstable sort over a kernel (blitz/sort_core.h): who forks what
 *   sort_wide.c     steps of it that are parallel in themselves: partition, looking for a run
 *   sort_compare.c  kernels for a comparison by pointer; blitz_sort and the sorts by a key
 *   sort_stable.c   the merge sort
 *   sort_cached.c   keys first, then the elements
 *   sort_radix.c    numbers
 *   sort_strings.c  strings
 *
 * Elements are bytes here. An array that is larger than BZ_SORT_LEAF is the business of jobs; a leaf
 * is sorted by one of them without looking up.
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
    BZ_SORT_LEAF = 4096,       /* elements that one job sorts by itself */
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

/* fn(arg), where its forks can be taken, if that is worth it. */
static inline int bz_sort_call(size_t n, int (*fn)(void *arg), void *arg)
{
    return n <= BZ_SORT_LEAF ? fn(arg) : blitz_par_call_(fn, arg);
}

/* How many workers there are to share with; 1 on a plain thread. */
unsigned bz_sort_procs(void);

/* Where memory comes from: the runtime's allocator, or the C library's on a plain thread. */
const blitz_allocator *bz_sort_allocator(void);

/* Into how many parts a pass over n elements is cut: of which something is kept, at most
 * BZ_SORT_CHUNKS_MAX; and if nothing is, of whatever size pays. */
size_t bz_sort_chunks(size_t n);
size_t bz_sort_pieces(size_t n);

/* fn(i, arg) for each i of [0, count), in parallel; returns the error of the least i that had one. */
BZ_MUST_USE int bz_sort_each(size_t count, int (*fn)(size_t i, void *arg), void *arg);

/*
 * A task that is shielded sorts on in spite of a cancel; but a job of it that others run is not
 * shielded. So the call notes at its beginning whether it is, and its jobs go by that.
 */
static inline bool bz_sort_is_stopped(bool is_shielded)
{
    return !is_shielded && blitz_is_cancelled();
}

/* The same for a part that calls another sort: true if it is to be unshielded after it. */
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

/* Are these n * size bytes that can be sorted? 0, or -EINVAL. */
int bz_sort_check(const void *base, size_t n, size_t size);

/* log2(n), rounded down; n > 0. The number of bad pivots that are borne. */
static inline unsigned bz_sort_limit(size_t n)
{
    unsigned bits = 0;
    while (n >>= 1)
        bits++;
    return bits + 1;
}

/* In parallel: copy bytes that do not overlap; turn n elements round. */
void bz_sort_copy(void *to, const void *from, size_t bytes);
void bz_sort_reverse(void *v, size_t n, size_t size);

/* sort_wide.c: k->split in parallel; and is the whole of it one run, rising or falling? */
size_t bz_sort_split(const struct blitz_sort_kernel_ *k, void *v, size_t n, const void *pivot,
                     int are_equal, void *ctx);
bool bz_sort_is_run(const struct blitz_sort_kernel_ *k, const void *v, size_t n, int falls,
                    void *ctx);

/* The unstable sort for a call that is where its forks can be taken. */
BZ_MUST_USE int bz_sort_here(const struct blitz_sort_kernel_ *k, void *v, size_t n, void *ctx);

#endif
