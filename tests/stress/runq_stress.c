/* queue/runq.h on real threads: an owner and thieves, every entry exactly once. */
#include "harness.h"

#include <sched.h>

#include "base/rng.h"
#include "queue/runq.h"

enum { WORKERS = 3 };
static struct bz_runq ring[WORKERS];
static uint64_t total;
static unsigned char *seen;
static bz_atomic(uint64_t) run_count;
static struct bz_rng seeds[WORKERS];

static void run(bz_entry e)
{
    CHECK_EQ(seen[e]++, 0); /* plain: the owner of the entry owns its mark */
    bz_fetch_add_relaxed(&run_count, 1);
}

/* Push an entry; the owner itself runs entries that spill. */
static void push(bz_entry e)
{
    bz_entry spill[BZ_RUNQ_CAP / 2];
    while (!bz_runq_try_push(&ring[0], e)) {
        unsigned count = bz_runq_take_some(&ring[0], spill, BZ_RUNQ_CAP / 2);
        for (unsigned i = 0; i < count; i++)
            run(spill[i]);
    }
}

/* One by one, or a hand at a time. Returns the entry taken last. */
static bz_entry take(int me, struct bz_rng *r)
{
    bz_entry batch[8], e = 0;
    if (bz_rng_below(r, 2) == 0) {
        unsigned count = bz_runq_take_some(&ring[me], batch, 1 + bz_rng_below(r, 8));
        for (unsigned i = 0; i < count; i++)
            run(e = batch[i]);
    } else if ((e = bz_runq_take(&ring[me])) != 0) {
        run(e);
    }
    return e;
}

/* The owner of ring 0 pushes all. Every thread takes, then steals. */
static void worker(void *arg, int me)
{
    bz_entry next = 1;
    (void)arg;
    struct bz_rng r = seeds[me];
    while (bz_load_relaxed(&run_count) < total) {
        for (uint32_t n = bz_rng_below(&r, 2 * BZ_RUNQ_CAP); me == 0 && n > 0 && next <= total;
             n--, next++)
            push(next);
        bz_entry e = 0;
        for (uint32_t n = bz_rng_below(&r, 30) + 1; n > 0; n--)
            e = take(me, &r);
        if (e == 0 &&
            (e = bz_runq_steal(&ring[((uint32_t)me + 1 + bz_rng_below(&r, WORKERS - 1)) % WORKERS],
                               &ring[me])) != 0)
            run(e);
        if (e == 0)
            sched_yield();
    }
}

TEST(runq, every_entry_runs_exactly_once)
{
    struct bz_rng root;
    bz_rng_init(&root, t_seed());
    total = t_scaled(1000000);
    CHECK_NOT_NULL(seen = calloc(total + 1, 1));
    for (int i = 0; i < WORKERS; i++) {
        bz_runq_init(&ring[i], false);
        seeds[i] = bz_rng_split(&root);
    }
    t_threads(WORKERS, worker, NULL);
    for (int i = 0; i < WORKERS; i++) {
        bz_runq_check(&ring[i]);
        CHECK_EQ(bz_runq_count(&ring[i]), 0u);
    }
    for (uint64_t e = 1; e <= total; e++)
        CHECK_EQ(seen[e], 1);
    free(seen);
}
