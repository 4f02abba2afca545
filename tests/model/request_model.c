/*
 * request_model.c - both drivers of a request on one primitive: blocking and polled parties side by side, with
 * deadlines and cancels.
 *
 *   covers: src/park/request.h src/park/request.c
 *   needs: src/park/park.c src/os/lock.c src/os/self.c src/task/word.c
 *   needs: src/wait/arbiter.c src/wait/wake.c src/life/cancel.c
 *   defines: BZ_LOCK_SPINS=1 BZ_WAKELIST_MAX=1
 *
 * The primitive is that of docs/writing-a-primitive.md. A list holds one wake-up, so that two waiters are served in
 * two rounds.
 */
#include "wait_toy.h"

#include <errno.h>

const struct bz_os *bz_os_here(void)
{
    return &m_os;
}

#include "../support/countdown.h"
#include "wait/waker.h"

static struct countdown countdown;
static struct countdown_future future;
static bz_os_word bell;
static bz_shared(int) data;
static int err;

static void bell_nothing(void *unused)
{
    (void)unused;
}

static void bell_ring(void *unused)
{
    (void)unused;
    bz_store_release(&bell, 1);
    m_word_wake(&bell, 1);
}

static bool ask(void)
{
    static const blitz_waker_ops ops = {bell_nothing, bell_ring, bell_ring, bell_nothing};
    blitz_waker waker = {&ops, NULL};
    return future.future.ops->poll(&future.future, &waker) == BLITZ_READY;
}

static void given(void)
{
    countdown_init(&countdown, 1);
    countdown_wait_future_init(&future, &countdown);
    bz_atomic_init(&bell, 0);
    bz_set(&data, 0);
    err = 1;
    m_settings()->spurious = 0;
}

static void counts(void)
{
    bz_set(&data, 1);
    countdown_down(&countdown);
}

static void waits(void)
{
    m_assert(countdown_wait(&countdown, BLITZ_FOREVER) == 0);
    m_assert(bz_get(&data) == 1);
}

/* A future stands in the queue first; a blocking party comes before, behind or after the count. */
MODEL(request, a_blocking_and_a_polled_party_are_both_woken)
{
    given();
    m_assert(!ask());
    m_threads(counts, waits);
    m_assert(bz_load_relaxed(&bell) == 1);
    m_assert(ask());
    m_assert(bz_list_is_empty(&countdown.waiting));
}

static void waits_until(void)
{
    err = countdown_wait(&countdown, 1000);
    m_assert(err == -ETIMEDOUT || (err == 0 && bz_get(&data) == 1));
}

MODEL(request, a_deadline_meets_the_grant)
{
    given();
    m_assert(!ask());
    m_threads(counts, waits_until);
    m_sometimes(err == 0);
    m_sometimes(err == -ETIMEDOUT);
    m_assert(ask());
    m_assert(bz_list_is_empty(&countdown.waiting));
}

static void asks_and_gives_up(void)
{
    if (!ask())
        future.future.ops->cancel(&future.future);
    m_assert(future.result == -ECANCELED || (future.result == 0 && bz_get(&data) == 1));
}

/* Each party has one outcome, and leaves nothing in the queue. */
MODEL(request, a_cancel_meets_the_grant)
{
    given();
    m_threads(counts, asks_and_gives_up);
    m_sometimes(future.result == 0);
    m_sometimes(future.result == -ECANCELED);
    m_assert(bz_list_is_empty(&countdown.waiting));
}
