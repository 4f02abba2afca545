/*
 * scene_slab.c - objects made on one thread that die on another, against malloc and free.
 */
#include <sched.h>
#include <stdlib.h>

#include "base/slab.h"
#include "demo.h"
#include "support/mpmc.h"
#include "support/slab_end.h"

enum { SIZE = 128, BURST = 256 };

struct life {
    bool is_ours;
    struct bz_slab_class kind;
    struct bz_slab slab[2]; /* the maker's and the ender's */
    struct bz_mpmc road;
    uint64_t count;
    _Atomic uint64_t ended;
};

static void maker(struct life *l)
{
    for (uint64_t i = 0; i < l->count; i++) {
        uint64_t *o = l->is_ours ? bz_slab_alloc(&l->slab[0]) : malloc(SIZE);
        if (o == NULL)
            abort();
        o[0] = i;
        while (!bz_mpmc_push(&l->road, o))
            sched_yield();
    }
}

static void ender(struct life *l)
{
    for (uint64_t i = 0; i < l->count;) {
        void *o;
        if (!bz_mpmc_take(&l->road, &o)) {
            sched_yield();
            continue;
        }
        if (l->is_ours)
            bz_slab_free(&l->slab[1], o);
        else
            free(o);
        if (++i % BURST == 0 || i == l->count)
            l->ended = i;
    }
    bz_slab_flush(&l->slab[1]);
}

static void both(void *arg, int index)
{
    if (index == 0)
        maker(arg);
    else
        ender(arg);
}

static double run(struct demo *d, struct life *l, bool is_ours)
{
    l->is_ours = is_ours;
    l->ended = 0;
    double start = demo_seconds();
    demo_threads(d, 2, both, l, &l->ended, l->count, is_ours ? "objects" : "objects (malloc)");
    return demo_seconds() - start;
}

static void play(struct demo *d)
{
    static struct life l;
    l.count = demo_scaled(d, 20000000);
    if (bz_mpmc_init(&l.road, 1024, &bz_allocator_libc) != 0 ||
        bz_slab_class_init(&l.kind, "object", SIZE, 0, &bz_allocator_libc) != 0) {
        demo_claim(d, false, "no memory for the road");
        return;
    }
    bz_slab_init(&l.slab[0], &l.kind);
    bz_slab_init(&l.slab[1], &l.kind);
    double ours = run(d, &l, true);
    size_t peak = l.slab[0].chunk_count * BZ_SLAB_CHUNK;
    double theirs = run(d, &l, false);
    size_t left = t_slab_fini(&l.slab[0]) + t_slab_fini(&l.slab[1]);
    demo_claim(d, left == 0, "%s objects did not come home", demo_count(left));
    demo_result(d, "%s objects made here and freed there in %.2f s (%.0f ns each), %s KiB in all",
                demo_count(l.count), ours, ours * 1e9 / (double)l.count, demo_count(peak / 1024));
    demo_result(d, "malloc and free: %.2f s, %.1f times as long", theirs, theirs / ours);
    bz_mpmc_fini(&l.road);
}

const struct demo_scene scene_slab = {
    "slab", "Made here, freed there",
    "What another thread frees goes home in batches: one locked instruction for 32 objects.", play};
