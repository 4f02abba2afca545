/*
 * blocks.c - block counts and marks of filter, partition and flatten, between their two passes.
 *
 * The position of an element depends on the number of kept elements before it. So the indexes are
 * divided into blocks. A first pass marks and counts in each block, the counts are summed up, and
 * in a second pass each block knows its position. One thread computes the sum over the blocks: a
 * block has up to 2048 elements, so the sum is 1/2048 of the work, and not worth a parallel scan.
 *
 * The marks, a byte for each index, save a second evaluation of the body. Rejected: evaluating it
 * twice (an expensive body, the kind that is worth two workers, would take as long as on one). A
 * bit for each index (compilers vectorize bytes, not bits). Writing the kept elements to the
 * block's own part of the output and moving them down (blocks would wait for each other).
 *
 * Blocks are the indexes of two loops. Few elements can be much work, so there are at least 64
 * blocks if there are as many elements. A grain given in elements is rounded up to blocks.
 *
 * I1  place_ has count_ + 1 entries: after the sum the last one is the total, and the end of the
 *     last
 *     block.
 * I2  One allocation of bytes_ bytes: places, then marks.
 */
#include <errno.h>

#include "base/compiler.h"
#include "blitz/iter_compact.h"
#include "par/split.h"

enum { BLOCK_MAX = 2048, BLOCKS_LEAST = 64 };

/* Convert a number of elements to blocks; 0 stays 0. */
static size_t in_blocks(size_t elements, size_t each)
{
    return elements / each + (elements % each != 0);
}

static void cut(struct blitz_blocks_ *b, size_t n)
{
    size_t each = n / BLOCKS_LEAST;
    b->n_ = n;
    b->each_ = each < 1 ? 1 : each > BLOCK_MAX ? BLOCK_MAX : each;
    b->count_ = in_blocks(n, b->each_);
}

int blitz_blocks_open_(struct blitz_blocks_ *b, size_t n, int is_marked, const blitz_par_opts *opts)
{
    *b = (struct blitz_blocks_){0};
    cut(b, n);
    if (opts != NULL) {
        b->opts_ = *opts;
        b->opts_.grain = in_blocks(opts->grain, b->each_);
        b->opts_.chunk_max = in_blocks(opts->chunk_max, b->each_);
    }
    if (n == 0)
        return 0;
    size_t places =
        (b->count_ + 1) * sizeof *b->place_; /* I1; no more than 64 or n / 1024 entries */
    size_t marks = is_marked ? n : 0;
    if (marks > SIZE_MAX - places)
        return -ENOMEM;
    b->bytes_ = places + marks; /* I2 */
    b->place_ = bz_par_alloc(b->bytes_);
    if (b->place_ == NULL)
        return -ENOMEM;
    b->mark_ = is_marked ? (unsigned char *)b->place_ + places : NULL;
    return 0;
}

size_t blitz_blocks_sum_(struct blitz_blocks_ *b)
{
    size_t sum = 0;
    if (b->count_ == 0)
        return 0;
    for (size_t i = 0; i < b->count_; i++) {
        size_t count = b->place_[i];
        b->place_[i] = sum;
        sum += count;
    }
    b->place_[b->count_] = sum; /* I1 */
    return sum;
}

void blitz_blocks_close_(struct blitz_blocks_ *b)
{
    bz_par_free(b->place_, b->bytes_);
    b->place_ = NULL;
}

size_t blitz_row_of_(const size_t *offset, size_t rows, size_t at)
{
    size_t low = 0, high = rows; /* offset[low] <= at < offset[high] */
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (offset[middle] <= at)
            low = middle;
        else
            high = middle;
    }
    return low;
}
