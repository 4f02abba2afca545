/*
 * text_model.c - sched/text.h: a start and an end that do not belong together are never believed.
 *
 *   covers: src/sched/text.h src/sched/text.c
 *   needs: src/os/lock.c
 *   defines: BZ_TEXT_RANGES=1 BZ_LOCK_SPINS=1
 */
#include "sched/text.h"

#include "model.h"
#include "model_os.h"

static struct bz_text text;
static bool is_in;

static void given_10_to_20(void)
{
    bz_lock_init(&text.lock);
    bz_atomic_init(&text.version, 0);
    bz_atomic_init(&text.range[0].start, 10);
    bz_atomic_init(&text.range[0].end, 20);
}

static void replaces_it_by_40_to_50(void)
{
    m_assert(bz_text_remove(&text, &m_os, 10, 20) == 0);
    m_assert(bz_text_add(&text, &m_os, 40, 50) == 0);
}

static void asks_for_30(void)
{
    is_in = bz_text_has(&text, 30);
}

/* text.c [A] [B]: 10 of the old range and 50 of the new one. */
MODEL(text, what_was_never_registered_is_never_in)
{
    given_10_to_20();
    m_threads(replaces_it_by_40_to_50, asks_for_30);
    m_assert(!is_in);
}

static void given_40_to_50(void)
{
    given_10_to_20();
    bz_atomic_init(&text.range[0].start, 40);
    bz_atomic_init(&text.range[0].end, 50);
}

static void replaces_it_by_10_to_20(void)
{
    m_assert(bz_text_remove(&text, &m_os, 40, 50) == 0);
    m_assert(bz_text_add(&text, &m_os, 10, 20) == 0);
}

/* 10 of the new one and 50 of the old. */
MODEL(text, what_was_never_registered_is_never_in_the_other_way_round)
{
    given_40_to_50();
    m_threads(replaces_it_by_10_to_20, asks_for_30);
    m_assert(!is_in);
}

static bz_atomic(int) is_registered;

static void registers_another(void)
{
    m_assert(bz_text_remove(&text, &m_os, 10, 20) == 0);
    m_assert(bz_text_add(&text, &m_os, 40, 50) == 0);
    bz_store_release(&is_registered, 1);
}

static void asks_for_45(void)
{
    bool knows = bz_load_acquire(&is_registered);
    is_in = bz_text_has(&text, 45);
    m_assert(is_in || !knows);
    m_sometimes(is_in);
    m_sometimes(!is_in);
}

MODEL(text, what_is_registered_is_in)
{
    given_10_to_20();
    bz_atomic_init(&is_registered, 0);
    m_threads(registers_another, asks_for_45);
}

static void moves_the_range(uintptr_t start, uintptr_t end)
{
    bz_store_relaxed(&text.range[0].start, start);
    bz_store_relaxed(&text.range[0].end, end);
}

static void replaces_it_without_a_version(void)
{
    moves_the_range(0, 0);
    moves_the_range(40, 50);
}

MODEL_FAILS(text, without_the_version_a_mixture_is_believed, "!is_in")
{
    given_10_to_20();
    m_threads(replaces_it_without_a_version, asks_for_30);
    m_assert(!is_in);
}
