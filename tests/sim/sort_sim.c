/* Sorts in virtual time, from seeds: the result is the same on any schedule. */
#include "support/sched_sim.h"
#include "support/sorts.h"

/* Sometimes let the seed choose the next thread. */
static int wavers(const void *a, const void *b, void *arg)
{
    uint64_t x = *(const uint64_t *)a;
    (void)arg;
    if (x % 509 == 0)
        bz_os_delay_here(bz_machine_self()->rt->os, BZ_OS_AT_PUBLISH);
    return sorts_compare(a, b);
}

static int by_wavering(uint64_t *v, size_t n)
{
    return blitz_sort(v, n, sizeof *v, wavers, NULL);
}
static int stable_wavering(uint64_t *v, size_t n)
{
    return blitz_sort_stable(v, n, sizeof *v, wavers, NULL);
}

static int sort_all(void *arg)
{
    static const struct sorts_row waverers[] = {{"wavering", by_wavering},
                                                {"stable, wavering", stable_wavering}};
    struct t_rng r = t_rng_of(t_random());
    (void)arg;
    for (size_t k = 0; k < BZ_ARRAY_LEN(waverers); k++)
        sorts_check(&waverers[k], (enum sorts_order)t_rng_below(&r, SORTS_ORDERS),
                    20000 + t_rng_below(&r, 40000), &r);
    for (size_t k = 0; k < BZ_ARRAY_LEN(sorts_all); k++)
        sorts_check(&sorts_all[k], (enum sorts_order)t_rng_below(&r, SORTS_ORDERS),
                    t_rng_below(&r, 100001), &r);
    return 0;
}

TEST(sort_sim, every_sort_equals_its_sequential_version_on_any_schedule)
{
    sim_on_procs(sort_all, NULL, 0, 8, 1, 8);
}
