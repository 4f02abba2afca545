/*
 * mpmc.c - making, unmaking and checking a ring; pushing and taking are inline in mpmc.h.
 */
#include "support/mpmc.h"

#include <assert.h>
#include <errno.h>

#include "base/bits.h"
#include "base/check.h"

static_assert(BZ_MPMC_BITS >= 3 && BZ_MPMC_BITS <= 64, "positions of 3 to 64 bits");

int bz_mpmc_init(struct bz_mpmc *q, size_t capacity, const blitz_allocator *from)
{
    if (capacity == 0 || capacity > UINT64_C(1) << 31)
        return -EINVAL;
    uint64_t cells = bz_pow2_up(capacity < 2 ? 2 : capacity);
    q->cells = bz_alloc(from, cells * sizeof *q->cells, BZ_LINE);
    if (q->cells == NULL)
        return -ENOMEM;
    q->mask = cells - 1;
    q->from = from;
    bz_atomic_init(&q->push_at, 0);
    bz_atomic_init(&q->take_at, 0);
    for (uint64_t p = 0; p < cells; p++) {
        struct bz_mpmc_cell *cell = mpmc_cell_of(q, p);
        bz_atomic_init(&cell->turn, p); /* I2 */
        bz_set(&cell->value, NULL);
    }
    return 0;
}

void bz_mpmc_fini(struct bz_mpmc *q)
{
    bz_free(q->from, q->cells, (q->mask + 1) * sizeof *q->cells);
    q->cells = NULL;
}

size_t bz_mpmc_count(struct bz_mpmc *q)
{
    uint64_t take_at = bz_load_relaxed(&q->take_at); /* relaxed: a guess */
    uint64_t push_at = bz_load_relaxed(&q->push_at); /* relaxed: a guess */
    int64_t count = mpmc_ahead(push_at, take_at);
    if (count < 0)
        return 0;
    return (uint64_t)count > q->mask + 1 ? q->mask + 1 : (size_t)count;
}

void bz_mpmc_check(struct bz_mpmc *q)
{
    uint64_t take_at = bz_load_relaxed(&q->take_at); /* relaxed: no concurrent access */
    uint64_t push_at = bz_load_relaxed(&q->push_at); /* relaxed: no concurrent access */
    int64_t count = mpmc_ahead(push_at, take_at);
    BZ_CHECK(count >= 0 && (uint64_t)count <= q->mask + 1, "mpmc %p: %lld of %llu", (void *)q,
             (long long)count, (unsigned long long)q->mask + 1); /* I1 */
    for (uint64_t i = 0; i <= q->mask; i++) {
        uint64_t position = mpmc_add(take_at, i);
        uint64_t turn = bz_load_relaxed(&mpmc_cell_of(q, position)->turn); /* relaxed: as above */
        uint64_t want = mpmc_add(position, (int64_t)i < count ? 1 : 0);
        BZ_CHECK(turn == want, "mpmc %p: position %llu has turn %llu, not %llu", (void *)q,
                 (unsigned long long)position, (unsigned long long)turn,
                 (unsigned long long)want); /* I2 */
    }
}
