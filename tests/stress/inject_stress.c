/* The plays of support/inject.h on real threads, at 1, 2, 3 and 8 procs. BLITZ_ROUNDS: how many. */
#include "harness.h"

#include "support/inject.h"

static uint64_t rounds(uint64_t full)
{
    const char *asked = getenv("BLITZ_ROUNDS");
    return asked != NULL && *asked != '\0' ? strtoull(asked, NULL, 0) : t_scaled(full);
}

TEST_LIMIT(inject, bug_41_50_52_54_waiters_of_every_form_share_one_object, 1800)
{
    static const unsigned procs[] = {1, 2, 3, 8};
    static bz_os_word poked;
    uint64_t n = rounds(400);
    for (uint64_t i = 0; i < n * BZ_ARRAY_LEN(procs); i++) {
        uint64_t seed = t_random();
        struct inj_plan plan = inj_plan_of(seed);
        t_watch("seed 0x%llx, %u procs, %s, %u waiters", (unsigned long long)seed,
                procs[i % BZ_ARRAY_LEN(procs)], plan.kind->name, plan.waiters);
        bz_store_relaxed(&poked, 0); /* relaxed: no thread runs */
        inj_play(&bz_os_system, &plan, procs[i % BZ_ARRAY_LEN(procs)], &poked, true);
    }
    t_note("%llu rounds with each of 4 numbers of procs", (unsigned long long)n);
}
