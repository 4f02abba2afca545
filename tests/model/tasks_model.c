/*
 * tasks_model.c - a walk over task headers against headers that are freed and used again.
 *
 *   covers: src/base/slab.c src/base/slab_chunk.c src/base/slab_chunk.h src/task/word.c src/task/word.h
 *   needs: src/base/list.c
 *   defines: BZ_SLAB_CHUNK=1024 BZ_SLAB_BATCH=2
 *
 * The protocol of life/tasks.c alone: a header is filled, then its word is published; the last
 * reference frees it; a walker takes a reference if there is one. The header's field is plain: a
 * walker that got a header too early or too late would race with its creator, and a header freed
 * under a walker's reference would be freed twice.
 */
#include "base/slab.h"
#include "model.h"
#include "task/word.h"

struct header {
    bz_word word;
    struct bz_slab_object link; /* content of a free object */
    bz_shared(int) id;          /* 1 or 2 */
};

static struct bz_slab_class kind;
static struct bz_slab mine;
static struct header *first, *second;
static int freed_by_walker;

static struct header *make(int id)
{
    struct header *h = bz_slab_alloc(&mine);
    bz_set(&h->id, id);
    bz_word_init(&h->word, BZ_SCHEDULED, 1);
    return h;
}

static void given_a_task(void)
{
    m_assert(bz_slab_class_init(&kind, "task", sizeof(struct header), 0, &m_allocator) == 0);
    bz_slab_class_watch(&kind);
    bz_slab_init(&mine, &kind);
    first = make(1);
    second = NULL;
    freed_by_walker = 0;
    m_settings()->spurious = 0;
}

static void owner_drops(struct header *h)
{
    if (bz_word_unref(&h->word))
        bz_slab_free(&mine, h);
}

/* The task ends, and another is spawned, perhaps where it was. */
static void owner_frees_and_uses_again(void)
{
    owner_drops(first);
    second = make(2);
}

static void owner_spawns_another(void)
{
    second = make(2);
}

static void walks(void)
{
    struct bz_slab_walk w;
    if (!bz_slab_walk_begin(&w, &mine))
        return;
    for (struct header *h; (h = bz_slab_walk_next(&w)) != NULL;)
        if (bz_word_try_ref(&h->word)) {
            int id = bz_get(&h->id);
            m_assert(id == 1 || id == 2);
            if (bz_word_unref(&h->word)) {
                freed_by_walker++;
                bz_slab_free_outside(h);
            }
        }
    bz_slab_walk_end(&w);
}

static void all_comes_home(void)
{
    if (second != NULL)
        owner_drops(second);
    bz_slab_collect(&mine);
    bz_slab_check(&mine);
    m_assert(bz_slab_close(&mine) == 0);
    bz_slab_release(&mine);
}

/* word.c [P], slab.c [A], slab_chunk.c [B]: who is found is whole, and is freed once. */
MODEL(tasks, a_walker_meets_a_header_that_is_freed_and_used_again)
{
    given_a_task();
    m_threads(owner_frees_and_uses_again, walks);
    m_sometimes(second == first);
    m_sometimes(freed_by_walker == 1);
    m_sometimes(freed_by_walker == 0);
    all_comes_home();
}

MODEL(tasks, a_walker_meets_a_header_that_is_being_made)
{
    given_a_task();
    m_threads(owner_spawns_another, walks);
    owner_drops(first);
    all_comes_home();
}

MODEL(tasks, two_walkers_and_the_last_reference)
{
    given_a_task();
    m_threads(owner_frees_and_uses_again, walks, walks);
    all_comes_home();
}

/* ---- headers that outlive the runtime ---- */

static struct bz_slab other;
static struct header *held[2];   /* one of each slab, by handles */
static bz_atomic(uint64_t) left; /* tasks.c [L] */
static bz_shared(int) runtime;   /* freed by the last reference, accessed by all before */
static bz_atomic(int) releases;

static void release(void)
{
    bz_set(&runtime, 2);
    bz_fetch_add_relaxed(&releases, 1);
    bz_slab_release(&mine);
    bz_slab_release(&other);
}

/* As bz_task_free of a thread that is no worker. */
static void gives_up(struct header *h)
{
    m_assert(bz_get(&runtime) == 1); /* a race, if it is being released */
    if (bz_word_unref(&h->word) && !bz_slab_free_outside(h) && bz_fetch_sub_acqrel(&left, 1) == 1)
        release();
}

static void first_handle_is_given_up(void)
{
    gives_up(held[0]);
}

static void second_handle_is_given_up(void)
{
    gives_up(held[1]);
}

/* As bz_tasks_close. */
static void the_runtime_is_given_up(void)
{
    uint64_t out = bz_slab_close(&mine) + bz_slab_close(&other);
    uint64_t less = 1000 - out;
    if (bz_fetch_sub_acqrel(&left, less) == less)
        release();
}

/* tasks.c [L]: the last reference frees, once, and after the last access of every thread. */
MODEL(tasks, the_last_to_let_go_frees_the_runtime)
{
    given_a_task();
    held[0] = first;
    bz_slab_init(&other, &kind);
    held[1] = bz_slab_alloc(&other);
    bz_word_init(&held[1]->word, BZ_SCHEDULED, 1);
    bz_atomic_init(&left, 1000);
    bz_atomic_init(&releases, 0);
    bz_set(&runtime, 1);
    m_threads(the_runtime_is_given_up, first_handle_is_given_up, second_handle_is_given_up);
    m_assert(bz_load_relaxed(&releases) == 1);
}
