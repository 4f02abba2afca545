/*
 * busy_model.c - queue/busy.c: a thread that waits until no actor is at work, against actors that begin and rest.
 *
 *   covers: src/queue/busy.h src/queue/busy.c
 *   needs: src/queue/membarrier.c src/os/lock.c
 *   defines: BZ_LOCK_SPINS=1
 *
 * The queue of waiters is a toy with one place, under a lock, as actor/wait_quiet.c has it. An actor is a word with the number of its
 * messages: the push that finds 0 runs it. Each message writes a plain field, which the watcher reads when it was told that all
 * is quiet. A watcher that is told too early would race with the handler; one that is not told would sleep for ever.
 */
#include "queue/busy.h"

#include "model.h"
#include "model_os.h"

enum { MACHINES = 2, MESSAGES = 2 };

static struct bz_busy busy;
static struct bz_busy_count count[MACHINES];
static struct bz_barrier barrier;
static struct bz_lock lock;
static bool is_queued; /* guarded by lock */
static bz_os_word released;
static bz_atomic(uint32_t) length;      /* of the actor's mailbox */
static bz_atomic(uint32_t) handed;      /* 1: machine 1 has an actor to run */
static bz_shared(int) worked[MESSAGES]; /* written by handlers */

static void given(bool is_plain, int at_work)
{
    bz_barrier_init(&barrier, &m_os);
    bz_lock_init(&lock);
    bz_busy_init(&busy, is_plain);
    for (int i = 0; i < MACHINES; i++)
        bz_busy_count_init(&count[i]);
    bz_atomic_init(&count[0].begun, (uint64_t)at_work);
    for (int i = 0; i < MESSAGES; i++)
        bz_set(&worked[i], 0);
    bz_atomic_init(&length, 0);
    bz_atomic_init(&handed, 0);
    bz_atomic_init(&released, 0);
    is_queued = false;
    m_settings()->spurious = 0;
}

static struct bz_busy_count *count_at(void *ctx, unsigned i)
{
    (void)ctx;
    return i < MACHINES ? &count[i] : NULL;
}

/* As bz_quiet_look(). */
static void count_out(struct bz_busy_count *mine)
{
    if (!bz_busy_rest(&busy, mine) || !bz_busy_was_last(&busy, count_at, NULL))
        return;
    bz_lock_take(&lock, &m_os);
    bool wakes = is_queued && bz_busy_is_none(&busy, count_at, NULL);
    if (wakes) {
        is_queued = false;
        bz_store_release(&released, 1);
    }
    bz_lock_drop(&lock, &m_os);
    if (wakes)
        bz_os_wake(&m_os, &released, 1);
}

/* As blitz_actors_wait_quiet(). */
static void wait_quiet(void)
{
    bz_busy_watch(&busy, &barrier);
    bz_lock_take(&lock, &m_os);
    is_queued = !bz_busy_is_none(&busy, count_at, NULL);
    bool waits = is_queued;
    bz_lock_drop(&lock, &m_os);
    while (waits && bz_load_acquire(&released) == 0)
        bz_os_wait(&m_os, &released, 0, BZ_OS_FOREVER);
    bz_busy_unwatch(&busy);
}

static void all_rest(void)
{
    m_assert(bz_busy_is_none(&busy, count_at, NULL));
    m_assert((bz_load_relaxed(&busy.watchers) & ~BZ_BUSY_PLAIN) == 0);
}

/* ---- an actor that rests ---- */

static void machine_0_works(void)
{
    bz_set(&worked[0], 1);
    count_out(&count[0]);
}

static void watcher(void)
{
    wait_quiet();
    m_assert(bz_get(&worked[0]) == 1);
}

/* busy.c [W]: the last rest is seen by the watcher, or sees it. */
MODEL(busy, bug_01_the_last_rest_is_noticed)
{
    given(false, 1);
    m_threads(machine_0_works, watcher);
    all_rest();
}

MODEL(busy, bug_01_the_last_rest_is_noticed_with_fences)
{
    given(true, 1);
    m_threads(machine_0_works, watcher);
    all_rest();
}

static void watcher_comes_and_goes(void)
{
    bz_busy_watch(&busy, &barrier);
    m_assert((bz_load_relaxed(&busy.watchers) & ~BZ_BUSY_PLAIN) >= 1);
    bz_busy_unwatch(&busy);
}

/* A watcher that was not counted misses the last rest; one that stays counted makes each rest look for ever. */
MODEL(busy, two_watchers_are_both_counted)
{
    given(true, 0);
    m_threads(watcher_comes_and_goes, watcher_comes_and_goes);
    all_rest();
}

/* ---- an actor that makes another one busy ---- */

static void machine_0_sends_and_rests(void)
{
    bz_busy_begin(&busy, &count[0]);
    bz_store_release(&handed, 1); /* the run queue */
    bz_set(&worked[0], 1);
    count_out(&count[0]);
}

static void machine_1_runs_it(void)
{
    while (bz_load_acquire(&handed) == 0)
        m_relax();
    bz_set(&worked[1], 1);
    count_out(&count[1]);
}

static void watcher_of_both(void)
{
    wait_quiet();
    m_assert(bz_get(&worked[0]) == 1);
    m_assert(bz_get(&worked[1]) == 1);
}

/* busy.c [C]: a rest is not seen without the begin that came before it, on whatever machine. */
MODEL(busy, an_actor_that_was_made_busy_is_waited_for)
{
    given(false, 1);
    m_threads(machine_0_sends_and_rests, machine_1_runs_it, watcher_of_both);
    all_rest();
}

/* ---- senders that are not actors ---- */

/* Send a message to the actor, and run it if it was idle. */
static void send_from_outside(int message, struct bz_busy_count *mine)
{
    bz_busy_begin(&busy, mine);
    uint32_t seen = bz_fetch_add_acqrel(&length, 1u << (message * 8));
    if (seen != 0) {
        count_out(mine);
        return;
    }
    seen = 1u << (message * 8);
    do {
        for (int i = 0; i < MESSAGES; i++)
            if (seen & 1u << (i * 8))
                bz_set(&worked[i], 1);
    } while (!bz_cas_strong_acqrel_acq(&length, &seen, 0));
    count_out(mine);
}

static void thread_sends(void)
{
    send_from_outside(0, NULL);
}

static void another_thread_sends(void)
{
    send_from_outside(1, NULL);
}

static void fiber_sends_and_waits(void)
{
    send_from_outside(1, &count[1]);
    wait_quiet();
    m_assert(bz_get(&worked[1]) ==
             1); /* its own message: it or the other sender has placed the actor */
}

/* The sender that need not place the actor must not be told that all is quiet before the other one has counted. */
MODEL(busy, bug_37_a_message_behind_anothers_push_is_waited_for)
{
    given(true, 0);
    m_threads(thread_sends, fiber_sends_and_waits);
    all_rest();
}

/* Several outside share a pair of counts. */
MODEL(busy, threads_outside_are_all_counted)
{
    given(true, 0);
    m_threads(thread_sends, another_thread_sends);
    all_rest();
    m_assert(bz_load_relaxed(&busy.outside.begun) == 2);
}
