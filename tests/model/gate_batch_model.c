/*
 * gate_batch_model.c - more futures wait for a gate than fit one batch of wakers, and a released
 * waiter frees the gate.
 *
 *   covers: src/sync/gate.c src/sync/waitq.c
 *   needs: src/park/park.c src/park/request.c src/os/lock.c src/os/self.c src/task/word.c
 *   needs: src/wait/arbiter.c src/wait/wake.c src/life/cancel.c
 *   defines: BZ_LOCK_SPINS=1 BZ_WAKELIST_MAX=1
 *
 * A batch is one waker here, so two futures are enough. Futures, a thread that calls and a thread
 * with a deadline wait side by side.
 */
#include "sync_toy.h"

struct frame {
    blitz_wait_group group;
    bz_shared(int) data;
};

static struct frame *frame;
static blitz_sync_future future[2];
static bz_os_word bell[2];
static bool has_ended;

static void bell_nothing(void *data)
{
    (void)data;
}

static void bell_ring(void *data)
{
    bz_store_release((bz_os_word *)data, 1);
    m_word_wake((bz_os_word *)data, 1);
}

static bool ask(int i)
{
    static const blitz_waker_ops ops = {bell_nothing, bell_ring, bell_ring, bell_nothing};
    blitz_waker waker = {&ops, &bell[i]};
    return future[i].future.ops->poll(&future[i].future, &waker) == BLITZ_READY;
}

/* Sleep until the waker of future i is woken, then poll. */
static void await_rung(int i)
{
    while (!bz_load_acquire(&bell[i]))
        m_word_wait(&bell[i], 0);
    m_assert(ask(i));
    m_assert(bz_get(&frame->data) == 1);
}

static void given(void)
{
    frame = m_alloc(sizeof *frame);
    has_ended = false;
    m_settings()->spurious = 0;
    blitz_wait_group_init(&frame->group);
    (void)blitz_wait_group_add(&frame->group, 1);
    for (int i = 0; i < 2; i++) {
        bz_atomic_init(&bell[i], 0);
        blitz_wait_group_wait_future_init(&future[i], &frame->group);
        m_assert(!ask(i));
    }
}

static void opens(void)
{
    struct frame *f = frame;
    bz_set(&f->data, 1);
    (void)blitz_wait_group_done(&f->group);
}

/* The first released waiter ends the other wait and frees the gate. */
static void is_first_and_frees(void)
{
    await_rung(0);
    toy_cancel(&future[1]);
    m_free(frame);
}

MODEL(gate_batch, bug_54_the_first_released_waiter_may_free_the_gate)
{
    given();
    m_threads(opens, is_first_and_frees);
}

/* The waiters release each other: none is left behind, and the last one frees the gate. */
static void are_both_released(void)
{
    await_rung(0);
    await_rung(1);
    m_free(frame);
}

MODEL(gate_batch, a_batch_that_was_cut_short_is_finished_by_the_released)
{
    given();
    m_threads(opens, are_both_released);
}

static bz_atomic(int) inside;

static void leave(void)
{
    if (bz_fetch_sub_acqrel(&inside, 1) == 1)
        m_free(frame);
}

static void opens_and_polls(void)
{
    opens();
    await_rung(0);
    await_rung(1);
    leave();
}

static void calls_until(void)
{
    int err = blitz_wait_group_wait(&frame->group, 1000);
    m_assert(err == 0 || err == -ETIMEDOUT);
    has_ended = err == 0;
    leave();
}

/* A thread with a deadline stands behind the futures: whatever it finds, nothing is freed too early. */
MODEL(gate_batch, a_thread_with_a_deadline_stands_behind_the_futures)
{
    given();
    bz_atomic_init(&inside, 2);
    m_threads(opens_and_polls, calls_until);
    m_sometimes(has_ended);
    m_sometimes(!has_ended);
}
