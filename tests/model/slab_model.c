/*
 * slab_model.c - base/slab.c: objects that are freed by somebody else, and come home.
 *
 *   covers: src/base/slab.c src/base/slab.h
 *   needs: src/base/list.c
 *   defines: BZ_SLAB_CHUNK=1024 BZ_SLAB_BATCH=2
 *
 * [A]: the links and the freer's last writes come before the reuse. The payload is a plain field, so
 * a reuse that did not wait for them would race. Chunks come from the checker's allocator: one that
 * went back too early would be a use after free, one that never did a leak.
 */
#include "base/slab.h"

#include "model.h"

struct object {
    struct bz_slab_object link; /* what a free one holds */
    bz_shared(int) payload;
};

static struct bz_slab_class kind;
static struct bz_slab mine, yours;
static struct object *out[4];

static void given_objects_out(int count)
{
    m_assert(bz_slab_class_init(&kind, "object", sizeof(struct object), 0, &m_allocator) == 0);
    bz_slab_init(&mine, &kind);
    bz_slab_init(&yours, &kind);
    for (int i = 0; i < count; i++) {
        out[i] = bz_slab_alloc(&mine);
        bz_set(&out[i]->payload, i);
    }
    m_settings()->spurious = 0;
}

static void outsider_frees_0(void)
{
    bz_set(&out[0]->payload, 10); /* the last we do to it */
    bz_slab_free_outside(out[0]);
}

static void outsider_frees_1(void)
{
    bz_set(&out[1]->payload, 11);
    bz_slab_free_outside(out[1]);
}

static void neighbour_frees_two(void)
{
    bz_set(&out[0]->payload, 10);
    bz_set(&out[1]->payload, 11);
    bz_slab_free(&yours, out[0]);
    bz_slab_free(&yours, out[1]); /* the second makes a batch, and it is sent */
}

static void neighbour_frees_one_and_flushes(void)
{
    bz_set(&out[1]->payload, 11);
    bz_slab_free(&yours, out[1]);
    bz_slab_flush(&yours);
}

/* The owner collects and allocates again, from what came home if anything did. */
static void owner_collects_and_allocates(void)
{
    bz_slab_collect(&mine);
    struct object *o = bz_slab_alloc(&mine);
    bz_set(&o->payload, 20);
    m_assert(bz_get(&o->payload) == 20);
    out[3] = o;
}

static void owner_collects_twice(void)
{
    bz_slab_collect(&mine);
    bz_slab_collect(&mine);
}

static void everything_comes_home(struct object *still_out)
{
    if (still_out != NULL)
        bz_slab_free(&mine, still_out);
    bz_slab_collect(&mine);
    bz_slab_check(&mine);
    bz_slab_check(&yours);
    m_assert(bz_slab_fini(&yours) == 0);
    m_assert(bz_slab_fini(&mine) == 0);
}

MODEL(slab, an_object_freed_outside_is_reused_only_after_its_last_write)
{
    given_objects_out(1);
    m_threads(owner_collects_and_allocates, outsider_frees_0);
    m_sometimes(out[3] == out[0]);
    m_sometimes(out[3] != out[0]);
    everything_comes_home(out[3]);
}

MODEL(slab, two_free_outside_at_once_and_nothing_is_lost)
{
    given_objects_out(2);
    m_threads(outsider_frees_0, outsider_frees_1, owner_collects_twice);
    everything_comes_home(NULL);
}

MODEL(slab, a_batch_comes_home_whole)
{
    given_objects_out(2);
    m_threads(neighbour_frees_two, owner_collects_and_allocates);
    everything_comes_home(out[3]);
}

MODEL(slab, a_batch_and_an_outsider_meet_in_the_inbox)
{
    given_objects_out(2);
    m_threads(neighbour_frees_one_and_flushes, outsider_frees_0, owner_collects_and_allocates);
    everything_comes_home(out[3]);
}
