/*
 * request_fiber_model.c - a fiber that is notified, finds that another party was faster, and waits again.
 *
 *   covers: src/park/request.h src/park/request.c
 *   needs: src/park/park.c src/os/lock.c src/task/word.c src/base/list.c
 *   needs: src/wait/arbiter.c src/wait/wake.c src/life/cancel.c
 *   defines: BZ_LOCK_SPINS=1
 *
 * The primitive holds tokens. A put adds one and notifies the first waiter, which must enter again. The fiber's
 * toy (fiber_toy.h) aborts if the fiber is queued twice for one wait.
 */
#include "fiber_toy.h"

#include "park/request.h"

static struct bz_lock lock;
static struct bz_list waiting; /* guarded by lock, as is */
static int tokens;
static bool was_stolen;

static void tokens_lock(struct bz_request *r)
{
    (void)r;
    bz_lock_take(&lock, &m_os);
}

static void tokens_unlock(struct bz_request *r, struct bz_wakelist *wakes)
{
    (void)r;
    bz_lock_drop(&lock, &m_os);
    bz_wakelist_deliver(wakes);
}

static bool tokens_enter(struct bz_request *r, struct bz_wakelist *wakes)
{
    (void)wakes;
    if (tokens > 0) {
        tokens--;
        return true;
    }
    bz_waiter_queue(&r->waiter, &waiting);
    return false;
}

static bool tokens_leave(struct bz_request *r, struct bz_wakelist *wakes)
{
    (void)wakes;
    bz_waiter_leave(&r->waiter);
    return true;
}

static const struct bz_request_ops taking = {.what = "token",
                                             .lock = tokens_lock,
                                             .unlock = tokens_unlock,
                                             .enter = tokens_enter,
                                             .leave = tokens_leave};

static void takes(void)
{
    struct bz_request r = {.ops = &taking};
    bz_waiter_init(&r.waiter, NULL, BZ_WAIT_WOKEN);
    m_assert(bz_request_wait(&r, &m_os, BLITZ_FOREVER) == 0);
}

static void put(void)
{
    struct bz_wakelist wakes;
    bz_wakelist_init(&wakes);
    bz_lock_take(&lock, &m_os);
    tokens++;
    struct bz_waiter *w = bz_waiter_first(&waiting);
    if (w != NULL)
        (void)!bz_request_notify(BZ_CONTAINER_OF(w, struct bz_request, waiter), &wakes);
    bz_lock_drop(&lock, &m_os);
    bz_wakelist_deliver(&wakes);
}

/* The token may be gone again before the fiber that was notified comes. */
static void puts_and_steals(void)
{
    put();
    bz_lock_take(&lock, &m_os);
    was_stolen = tokens > 0;
    tokens -= was_stolen;
    bz_lock_drop(&lock, &m_os);
    put();
}

MODEL(request_fiber, a_notified_fiber_that_comes_too_late_waits_again)
{
    given_fibers(true);
    bz_lock_init_ranked(&lock, BZ_RANK_WAIT);
    bz_list_init(&waiting);
    tokens = 0;
    was_stolen = false;
    m_settings()->spurious = 0;
    m_threads(takes, puts_and_steals);
    m_assert(tokens == !was_stolen);
    m_assert(bz_list_is_empty(&waiting));
    m_sometimes(was_stolen);
    then_no_fiber_waits();
}
