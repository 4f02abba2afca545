/*
 * sort_cached.c - a sort that calls the key function once for each element.
 *
 * First the keys are computed in parallel and stored with the indexes of their elements. These
 * pairs are sorted, and then the elements are copied in that order to a second array and back. The
 * index decides between equal keys, so the sort is stable although the pairs are sorted by an
 * unstable sort. The array is modified only when no failure is possible any more.
 *
 * Rejected: following the cycles of the permutation in place. It saves the second array, but each
 *           step waits for a cache miss of the step before, and only one worker can do it.
 */
#include "par/sort.h"

#include <errno.h>
#include <string.h>

#include "blitz/task.h"

enum { BLOCK = 256 }; /* keys and elements of one job: a key may take long */

struct pair {
    uint64_t key;
    size_t index;
};

static inline int pair_less(const struct pair *a, const struct pair *b)
{
    return (a->key < b->key) | ((a->key == b->key) & (a->index < b->index));
}

BLITZ_SORT_DEFINE(sort_pairs, struct pair, pair_less);

struct job {
    unsigned char *v, *other;
    size_t n, size;
    blitz_key_fn *key;
    void *arg;
    struct pair *pairs;
    bool is_shielded; /* the call's */
};

static size_t block_end(const struct job *j, size_t i)
{
    return (i + 1) * BLOCK < j->n ? (i + 1) * BLOCK : j->n;
}

static int take_keys(size_t i, void *arg)
{
    const struct job *j = arg;
    if (bz_sort_is_stopped(j->is_shielded))
        return -ECANCELED;
    for (size_t at = i * BLOCK; at < block_end(j, i); at++)
        j->pairs[at] = (struct pair){j->key(j->v + at * j->size, j->arg), at};
    return 0;
}

static int bring(size_t i, void *arg)
{
    const struct job *j = arg;
    for (size_t at = i * BLOCK; at < block_end(j, i); at++)
        memcpy(j->other + at * j->size, j->v + j->pairs[at].index * j->size, j->size);
    return 0;
}

static int sort_cached(struct job *j)
{
    size_t blocks = (j->n - 1) / BLOCK + 1;
    int err = bz_sort_each(blocks, take_keys, j);
    if (err == 0)
        err = sort_pairs(j->pairs, j->n);
    if (err != 0)
        return err;
    (void)!bz_sort_each(blocks, bring, j); /* always returns 0 */
    bz_sort_copy(j->v, j->other, j->n * j->size);
    return 0;
}

static int sort_with_memory(void *arg)
{
    struct job *j = arg;
    const blitz_allocator *memory = bz_sort_allocator();
    j->is_shielded = bz_par_is_shielded();
    j->pairs = bz_alloc(memory, j->n * sizeof *j->pairs, 16);
    if (j->pairs == NULL)
        return -ENOMEM;
    j->other = bz_alloc(memory, j->n * j->size, 16);
    int err = j->other == NULL ? -ENOMEM : sort_cached(j);
    bz_free(memory, j->other, j->n * j->size);
    bz_free(memory, j->pairs, j->n * sizeof *j->pairs);
    return err;
}

int blitz_sort_by_cached_key(void *base, size_t n, size_t size, blitz_key_fn *key, void *arg)
{
    struct job j = {.v = base, .n = n, .size = size, .key = key, .arg = arg};
    bool is_wrong = key == NULL || n > PTRDIFF_MAX / sizeof(struct pair);
    int err = is_wrong ? -EINVAL : bz_sort_check(base, n, size);
    return err != 0 || n < 2 ? err : bz_sort_call(n, sort_with_memory, &j);
}
