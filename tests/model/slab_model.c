/*
 * slab_model.c - base/slab.c and slab_chunk.c: remote frees.
 *
 *   covers: src/base/slab.c src/base/slab.h src/base/slab_chunk.c src/base/slab_chunk.h
 *   needs: src/base/list.c
 *   defines: BZ_SLAB_CHUNK=1024 BZ_SLAB_BATCH=2
 *
 * slab.c [A]: the links and the freer's last writes come before the reuse. The payload is a plain field, so
 * a reuse that did not wait for them would race. Chunks come from the checker's allocator: one that
 * went back too early would be a use after free, one that never did a leak.
 */
#include "base/slab.h"

#include "model.h"
#include "support/slab_end.h"

struct object {
    struct bz_slab_object link; /* content of a free object */
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
    m_assert(t_slab_fini(&yours) == 0);
    m_assert(t_slab_fini(&mine) == 0);
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

/* ---- walking ---- */

struct watched {
    bz_atomic(uint64_t) word; /* 1: alive */
    struct bz_slab_object link;
    char rest[224];
};

static struct watched *kept[8];

/* Three to a chunk. All but one of the first two chunks' objects are free again: when that goes,
 * its chunk goes back. */
static void given_a_chunk_about_to_go(void)
{
    m_assert(bz_slab_class_init(&kind, "watched", sizeof(struct watched), 0, &m_allocator) == 0);
    bz_slab_class_watch(&kind);
    m_assert(kind.per_chunk == 3);
    bz_slab_init(&mine, &kind);
    for (int i = 0; i < 7; i++)
        kept[i] = bz_slab_alloc(&mine);
    bz_store_relaxed(&kept[5]->word, 1);
    for (int i = 0; i < 5; i++)
        bz_slab_free(&mine, kept[i]);
    m_settings()->spurious = 0;
}

static void owner_frees_the_last_of_a_chunk(void)
{
    bz_store_relaxed(&kept[5]->word, 0);
    bz_slab_free(&mine, kept[5]);
}

static void owner_allocates_into_a_new_chunk(void)
{
    for (int i = 0; i < 3; i++) {
        struct watched *o = bz_slab_alloc(&mine);
        bz_store_relaxed(&o->word, 1);
        kept[i] = o;
    }
}

static int walker_saw;

static void walks(void)
{
    struct bz_slab_walk w;
    walker_saw = -1;
    if (!bz_slab_walk_begin(&w, &mine))
        return; /* the owner is at it; a walker would ask again */
    walker_saw = 0;
    for (struct watched *o; (o = bz_slab_walk_next(&w)) != NULL;)
        walker_saw += (int)bz_load_relaxed(&o->word);
    bz_slab_walk_end(&w);
}

static void the_slab_is_sound(void)
{
    bz_slab_collect(&mine);
    bz_slab_check(&mine);
    bz_slab_release(&mine);
}

/* slab_chunk.c [C] [D]: a chunk that went back under a walker would be a use after free. */
MODEL(slab, no_chunk_goes_back_under_a_walker)
{
    given_a_chunk_about_to_go();
    m_threads(owner_frees_the_last_of_a_chunk, walks);
    m_sometimes(walker_saw == -1);
    m_sometimes(walker_saw == 0);
    m_sometimes(walker_saw == 1);
    the_slab_is_sound();
}

MODEL(slab, two_walkers_each_keep_the_chunks)
{
    given_a_chunk_about_to_go();
    m_threads(owner_frees_the_last_of_a_chunk, walks, walks);
    the_slab_is_sound();
}

/* slab_chunk.c [A] [B]: a walker that meets a new chunk finds its header and its words complete: a word
 * that was not written yet would be a read of undefined memory. */
MODEL(slab, a_walker_meets_a_new_chunk_whole)
{
    m_assert(bz_slab_class_init(&kind, "watched", sizeof(struct watched), 0, &m_allocator) == 0);
    bz_slab_class_watch(&kind);
    bz_slab_init(&mine, &kind);
    kept[3] = bz_slab_alloc(&mine);
    m_settings()->spurious = 0;
    m_threads(owner_allocates_into_a_new_chunk, walks);
    m_sometimes(walker_saw == 0);
    m_sometimes(walker_saw == 3);
    the_slab_is_sound();
}

static bool was_sent;

static void outsider_frees_into_a_closing_slab(void)
{
    bz_set(&out[0]->payload, 10);
    was_sent = bz_slab_free_outside(out[0]);
}

static size_t left_at_close;

static void owner_closes(void)
{
    left_at_close = bz_slab_close(&mine);
}

/* Each object is counted once: by the close, or by who was told that it is closed. */
MODEL(slab, an_object_freed_while_its_home_closes_is_counted_once)
{
    given_objects_out(2);
    m_threads(owner_closes, outsider_frees_into_a_closing_slab);
    m_assert(left_at_close == (was_sent ? 1u : 2u));
    m_sometimes(was_sent);
    m_sometimes(!was_sent);
    bz_slab_release(&mine);
}
