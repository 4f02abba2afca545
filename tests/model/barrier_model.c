/*
 * barrier_model.c - queue/membarrier.h: a barrier of another thread is as good as one's own.
 *
 *   covers: src/queue/membarrier.h src/queue/membarrier.c
 *   needs: src/os/lock.c
 *   defines: BZ_LOCK_SPINS=1
 *
 * Each thread that issues a barrier has stored its own flag and then reads the flags of the threads
 * without a barrier. Those use a plain store and a plain load. The two sides must not both miss.
 * Two threads issue at the same time, and one of them may use the other's barrier.
 */
#include "queue/membarrier.h"

#include "model.h"
#include "model_os.h"

static struct bz_barrier barrier;
static bz_atomic(int) light, heavy[2];
static int light_saw[2], heavy_saw[2];

static void given(void)
{
    bz_barrier_init(&barrier, &m_os);
    light_saw[0] = light_saw[1] = heavy_saw[0] = heavy_saw[1] = 0;
}

static void is_light(void)
{
    bz_store_relaxed(&light, 1);
    light_saw[0] = bz_load_relaxed(&heavy[0]);
    light_saw[1] = bz_load_relaxed(&heavy[1]);
}

static void pays(int i)
{
    bz_store_relaxed(&heavy[i], 1);
    bz_barrier_pay(&barrier);
    heavy_saw[i] = bz_load_relaxed(&light);
}

static void pays_first(void)
{
    pays(0);
}

static void pays_second(void)
{
    pays(1);
}

MODEL(barrier, one_that_pays_and_one_that_does_not_never_both_miss)
{
    given();
    m_threads(is_light, pays_first);
    m_assert(light_saw[0] || heavy_saw[0]);
    m_sometimes(!light_saw[0]);
    m_sometimes(!heavy_saw[0]);
}

/* membarrier.c [A] [B]: for any thread that ran it. */
MODEL(barrier, two_that_pay_together_are_both_served)
{
    given();
    m_threads(is_light, pays_first, pays_second);
    m_assert(light_saw[0] || heavy_saw[0]);
    m_assert(light_saw[1] || heavy_saw[1]);
    m_sometimes(bz_load_relaxed(&barrier.ended) == 1); /* shared */
    m_sometimes(bz_load_relaxed(&barrier.ended) == 2);
}

static void pays_nothing(void)
{
    bz_store_relaxed(&heavy[0], 1);
    heavy_saw[0] = bz_load_relaxed(&light);
}

MODEL_FAILS(barrier, without_one_both_can_miss, "light_saw[0] || heavy_saw[0]")
{
    given();
    m_threads(is_light, pays_nothing);
    m_assert(light_saw[0] || heavy_saw[0]);
}
