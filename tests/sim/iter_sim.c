/*
 * Iterators in virtual time, from seeds: on any schedule each result equals that of the sequential
 * version, and an early end stops the other workers.
 */
#include "support/sched_sim.h"

/* Sometimes let the seed choose the next thread. */
static void waver(void)
{
    static bz_atomic(unsigned) turn;
    if (bz_fetch_add_relaxed(&turn, 1) % 8 == 0) /* relaxed: a number */
        bz_os_delay_here(bz_machine_self()->rt->os, BZ_OS_AT_PUBLISH);
}
#define ZOO_WAVER() waver()
#include "support/iter_zoo.h"

TEST(iter_sim, every_operation_is_as_its_sequential_twin)
{
    struct zoo *z = zoo_new(400);
    for (uint64_t i = 0, n = sim_seeds(200); i < n; i++) {
        z->opts = (blitz_par_opts){.grain = 1 + t_random_below(6)};
        z->opts.chunk_max = t_random_below(2) == 0 ? 1 + t_random_below(20) : 0;
        z->opts.is_ordered = t_random_below(4) == 0;
        zoo_fill(z, (size_t)t_random_below(401));
        sim_on_next(zoo_visit, z, 0);
    }
    zoo_free(z);
}

/* ---- early ends ---- */

struct eyes {
    size_t n, hit;
    bool is_last; /* looked for from the end */
    bz_atomic(bool) was_seen;
    bz_atomic(size_t) late; /* looks after that, at what is no longer wanted */
    int which;
    blitz_par_opts opts;
};

static int look(size_t i, struct eyes *e, bool is_any)
{
    bool is_wanted = e->is_last ? i > e->hit : i < e->hit;
    if (bz_load_relaxed(&e->was_seen) && (is_any || !is_wanted)) /* relaxed: a simulation is */
        bz_fetch_add_relaxed(&e->late, 1);                       /* one thread, and so is this */
    bz_os_delay_here(bz_machine_self()->rt->os, BZ_OS_AT_PUBLISH);
    if (i == e->hit)
        bz_store_relaxed(&e->was_seen, true); /* relaxed: likewise */
    return i == e->hit;
}
BLITZ_ANY_DEFINE(look_any, BLITZ_RANGE, look(i, e, true), (struct eyes *, e));
BLITZ_FIND_ANY_DEFINE(look_find_any, BLITZ_RANGE, look(i, e, true), (struct eyes *, e));
BLITZ_FIND_FIRST_DEFINE(look_first, BLITZ_RANGE, look(i, e, false), (struct eyes *, e));
BLITZ_FIND_LAST_DEFINE(look_last, BLITZ_RANGE, look(i, e, false), (struct eyes *, e));
BLITZ_TRY_FOR_EACH_DEFINE(look_try, BLITZ_RANGE, look(i, e, false) ? -EIO : 0, (struct eyes *, e));

static int look_in_one_way(void *arg)
{
    struct eyes *e = arg;
    size_t at = e->hit;
    switch (e->which) {
    case 0:
        CHECK_EQ(look_any(e->n, e, &e->opts), 1);
        break;
    case 1:
        CHECK_EQ(look_find_any(e->n, e, &at, &e->opts), 0);
        break;
    case 2:
        CHECK_EQ(look_first(e->n, e, &at, &e->opts), 0);
        break;
    case 3:
        CHECK_EQ(look_last(e->n, e, &at, &e->opts), 0);
        break;
    default:
        CHECK_EQ(look_try(e->n, e, &e->opts), -EIO);
    }
    CHECK_EQ(at, e->hit);
    return 0;
}

static size_t late_at_most(unsigned procs)
{
    return (procs - 1) * (size_t)BLITZ_STRIDE_;
}

/* Chunks of any size, so that they do not end by themselves. */
TEST(iter_sim, an_early_end_stops_the_others_within_a_stride)
{
    size_t worst = 0;
    for (uint64_t i = 0, n = sim_seeds(150); i < n; i++) {
        struct eyes e = {.n = 500 + (size_t)t_random_below(1500), .which = (int)(i % 5)};
        e.hit = (size_t)t_random_below(e.n);
        e.is_last = e.which == 3;
        e.opts.grain = 1 + (size_t)t_random_below(300);
        uint64_t seed = sim_next_seed();
        struct sim_scene s = {1 + (unsigned)(seed % 4), look_in_one_way, &e, 0};
        sim_one(seed, &s);
        size_t late = bz_load_relaxed(&e.late); /* relaxed: all are joined */
        CHECK(bz_load_relaxed(&e.was_seen));    /* relaxed: likewise */
        CHECK_LE(late, late_at_most(s.procs));
        worst = late > worst ? late : worst;
    }
    t_note("at most %zu looks too late", worst);
}
