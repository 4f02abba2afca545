/* slab.h on real threads: objects made here die there, and every byte comes home. */
#include "harness.h"

#include <sched.h>

#include "base/rng.h"
#include "base/slab.h"
#include "support/mpmc.h"
#include "support/slab_end.h"

enum { OWNERS = 3, OUTSIDERS = 1 };
struct thing {
    uint64_t stamp[8];
};

static bz_atomic(long) chunks;
static struct bz_slab_class kind;
static struct bz_slab slab[OWNERS];
static struct bz_mpmc road;
static uint64_t each;
static bz_atomic(int) makers;

static void *count_alloc(void *ctx, size_t size, size_t align)
{
    bz_fetch_add_relaxed(&chunks, 1);
    return bz_alloc(ctx, size, align);
}

static void count_free(void *ctx, void *memory, size_t size)
{
    bz_fetch_sub_relaxed(&chunks, 1);
    bz_free(ctx, memory, size);
}

static struct thing *thing_new(struct bz_slab *s, struct bz_rng *r)
{
    struct thing *t = bz_slab_alloc(s);
    CHECK_NOT_NULL(t);
    uint64_t stamp = bz_rng_next(r);
    for (int i = 0; i < 8; i++)
        t->stamp[i] = stamp;
    return t;
}

/* Two users of one object would show here. */
static void thing_check(const struct thing *t)
{
    for (int i = 1; i < 8; i++)
        CHECK_EQ(t->stamp[i], t->stamp[0]);
}

static void owner(int index, struct bz_rng *r)
{
    struct bz_slab *s = &slab[index];
    for (uint64_t i = 0; i < each; i++) {
        struct thing *t = thing_new(s, r);
        void *p;
        if (bz_rng_below(r, 4) == 0) { /* dies at home */
            thing_check(t);
            bz_slab_free(s, t);
        } else {
            while (!bz_mpmc_push(&road, t)) {
                if (bz_mpmc_take(&road, &p)) {
                    thing_check(p);
                    bz_slab_free(s, p);
                }
            }
        }
        if (bz_rng_below(r, 64) == 0)
            bz_slab_flush(s);
    }
    bz_slab_flush(s);
    bz_fetch_sub_release(&makers, 1);
}

static void outsider(void)
{
    void *p;
    for (;;) {
        bool over = bz_load_acquire(&makers) == 0;
        if (bz_mpmc_take(&road, &p)) {
            thing_check(p);
            bz_slab_free_outside(p);
        } else if (over) {
            return;
        } else {
            sched_yield();
        }
    }
}

static void everybody(void *arg, int index)
{
    struct bz_rng r = ((struct bz_rng *)arg)[index];
    if (index < OWNERS)
        owner(index, &r);
    else
        outsider();
}

TEST(slab, made_here_dead_there_all_comes_home)
{
    struct bz_rng root, r[OWNERS + OUTSIDERS];
    blitz_allocator from = {count_alloc, count_free, (void *)&bz_allocator_libc};
    bz_rng_init(&root, t_seed());
    for (int i = 0; i < OWNERS + OUTSIDERS; i++)
        r[i] = bz_rng_split(&root);
    each = t_scaled(100000);
    bz_store_relaxed(&makers, OWNERS);
    CHECK_EQ(bz_mpmc_init(&road, 64, &bz_allocator_libc), 0);
    CHECK_EQ(bz_slab_class_init(&kind, "thing", sizeof(struct thing), 0, &from), 0);
    for (int i = 0; i < OWNERS; i++)
        bz_slab_init(&slab[i], &kind);

    t_threads(OWNERS + OUTSIDERS, everybody, r);

    for (int i = 0; i < OWNERS; i++)
        bz_slab_check(&slab[i]);
    for (int i = 0; i < OWNERS; i++)
        CHECK_EQ(t_slab_fini(&slab[i]), 0u);
    CHECK_EQ(bz_load_relaxed(&chunks), 0);
    bz_mpmc_fini(&road);
}
