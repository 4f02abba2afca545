/*
 * promise_model.c - a promise has one outcome, its value one owner, its memory one end; and a race of
 * two promises has one winner and loses nothing.
 *
 *   covers: src/future/promise.c src/future/race.c src/future/children.c src/future/children.h
 *   needs: src/park/request.c src/park/park.c src/os/lock.c src/os/self.c src/task/word.c
 *   needs: src/wait/arbiter.c src/wait/wake.c src/wait/readylist.c src/life/cancel.c
 *   defines: BZ_LOCK_SPINS=1 BZ_WAKELIST_MAX=1
 *
 * A waiter is a thread that blocks, or one that polls and sleeps on a word which its waker sets: what await.c does,
 * without a scheduler. None of the three files has an atomic of its own: what is explored is the order
 * of the ends (complete, drop, poll, cancel, leave), and memory that is touched after it was freed. A list holds one
 * wake-up, so that two waiters are woken in two rounds.
 */
#include "wait_toy.h"

#include <errno.h>

#include "blitz/combine.h"
#include "blitz/promise.h"
#include "future/children.h"
#include "park/await.h"
#include "wait/peek.h"

/* ---- the environment ---- */

static void *watched_alloc(void *ctx, size_t size, size_t align)
{
    return m_allocator.alloc(ctx, size, align);
}

static void watched_free(void *ctx, void *memory, size_t size)
{
    m_allocator.free(ctx, memory, size);
}

const blitz_allocator bz_allocator_libc = {watched_alloc, watched_free, NULL};
static bz_os_word rung;
static bz_atomic(int) holders;

const struct bz_os *bz_os_here(void)
{
    return &m_os;
}

static void ring_clone(void *data)
{
    (void)data;
    bz_fetch_add_relaxed(&holders, 1);
}

static void ring_wake_by_ref(void *data)
{
    (void)data;
    bz_store_release(&rung, 1);
    m_word_wake(&rung, 1);
}

static void ring_drop(void *data)
{
    (void)data;
    bz_fetch_sub_relaxed(&holders, 1);
}

static void ring_wake(void *data)
{
    ring_wake_by_ref(data);
    ring_drop(data);
}

static const blitz_waker_ops ring = {ring_clone, ring_wake, ring_wake_by_ref, ring_drop};

const struct bz_os *bz_waker_by(const blitz_waker *w, uint64_t when)
{
    (void)w;
    (void)when;
    return &m_os;
}

void bz_look_cancel(blitz_future *f)
{
    (void)f;
    m_assert(!"a future that can be looked at");
}

blitz_poll bz_future_poll(blitz_future *f, const blitz_waker *w)
{
    return f->ops->poll(f, w);
}

/* The loop of await.c. */
int blitz_await(blitz_future *f, blitz_deadline until)
{
    blitz_waker w = {&ring, NULL};
    (void)until;
    while (f->ops->poll(f, &w) == BLITZ_PENDING) {
        while (!bz_load_acquire(&rung))
            m_word_wait(&rung, 0);
        bz_store_release(&rung, 0);
    }
    return 0;
}

/* ---- one promise ---- */

static blitz_promise *promise;
static blitz_completer *completer;
static int value, freed, given, kept;
static int outcome[4];

static void count_free(void *v, void *ctx)
{
    (void)ctx;
    m_assert(v == &value);
    freed++;
}

static void given_a_promise(void)
{
    freed = given = kept = 0;
    bz_atomic_init(&rung, 0);
    bz_atomic_init(&holders, 0);
    m_settings()->spurious = 0;
    m_settings()->spin_tries = 1; /* a lock gives up spinning, and sleeps */
    m_assert(blitz_promise_new(&(blitz_promise_opts){.drop = count_free}, &promise, &completer) ==
             0);
}

static void completes(void)
{
    kept += blitz_completer_complete(completer, &value) == 0;
    blitz_completer_unref(completer);
}

static void drops(void)
{
    blitz_completer_unref(completer);
}

static void waits(void)
{
    void *got = NULL;
    outcome[m_self()] = blitz_promise_await(promise, &got, BLITZ_FOREVER);
    given += got == &value;
    blitz_promise_unref(promise);
}

static void asks_and_leaves(void)
{
    blitz_promise_future f;
    blitz_waker w = {&ring, NULL};
    blitz_promise_await_future_init(&f, promise);
    if (f.future.ops->poll(&f.future, &w) == BLITZ_READY)
        given += f.value == &value;
    else
        f.future.ops->cancel(&f.future);
    blitz_promise_unref(promise);
}

/* The waiter gets it, whichever end comes first and whichever leaves last. */
MODEL(promise, a_blocking_waiter_gets_the_value)
{
    given_a_promise();
    m_threads(completes, waits);
    m_assert(kept == 1 && given == 1 && freed == 0 && outcome[2] == 0);
    m_assert(bz_load_relaxed(&holders) == 0);
}

static void polls(void)
{
    void *got = NULL;
    blitz_promise_future f;
    blitz_promise_await_future_init(&f, promise);
    outcome[m_self()] = blitz_await(&f.future, BLITZ_FOREVER);
    got = f.value;
    given += got == &value;
    blitz_promise_unref(promise);
}

MODEL(promise, a_polled_waiter_gets_the_value)
{
    given_a_promise();
    m_threads(completes, polls);
    m_assert(kept == 1 && given == 1 && freed == 0 && outcome[2] == 0);
    m_assert(bz_load_relaxed(&holders) == 0);
}

/* A future waits already. It is woken, also if a blocking party comes before it in the list of wake-ups, or takes the value. */
MODEL(promise, a_blocking_and_a_polled_waiter_are_both_woken)
{
    blitz_promise_future f;
    blitz_waker w = {&ring, NULL};
    given_a_promise();
    m_settings()->spin_tries =
        0; /* both threads, two rounds each: a lock that waits sleeps at once */
    blitz_promise_await_future_init(&f, blitz_promise_ref(promise));
    m_assert(f.future.ops->poll(&f.future, &w) == BLITZ_PENDING);
    m_threads(completes, waits);
    m_assert(bz_load_relaxed(&rung) == 1 && outcome[2] == 0);
    m_assert(f.future.ops->poll(&f.future, &w) == BLITZ_READY && f.result == 0);
    m_assert(given + (f.value == &value) == 1); /* the one that came first has taken it */
    m_assert(bz_load_relaxed(&holders) == 0);
    blitz_promise_unref(promise);
}

/* bug class 24: the drop of the last completer is not missed. */
MODEL(promise, bug_24_a_dropped_completer_wakes_the_waiter)
{
    given_a_promise();
    m_threads(drops, waits);
    m_assert(outcome[2] == -EPIPE && given == 0);
    m_assert(bz_load_relaxed(&holders) == 0);
}

/* A party that leaves leaves nothing behind: the value is taken or freed, once. */
MODEL(promise, a_cancel_meets_the_completion)
{
    given_a_promise();
    m_threads(completes, asks_and_leaves);
    m_assert(kept == 1 && given + freed == 1);
    m_assert(bz_load_relaxed(&holders) == 0);
    m_sometimes(given == 1);
    m_sometimes(freed == 1);
}

/* Two who complete it, and drop what they hold: one is first. */
static void rival(void)
{
    completes();
}

MODEL(promise, of_two_completers_one_succeeds)
{
    given_a_promise();
    (void)blitz_completer_ref(completer);
    m_threads(completes, rival);
    m_assert(kept == 1);
    void *got = NULL;
    m_assert(blitz_promise_await(promise, &got, BLITZ_FOREVER) == 0 && got == &value);
    blitz_promise_unref(promise);
}

/* ---- a race of two ---- */

static blitz_promise *lane[2];
static blitz_completer *flag[2];
static int values[2], freed_of[2], won, loser_fate;

static void count_lane(void *v, void *ctx)
{
    (void)ctx;
    freed_of[(int *)v - values]++;
}

/* The second lane first: then either may win. */
static void runs_both(void)
{
    for (int i = 1; i >= 0; i--) {
        (void)blitz_completer_complete(flag[i], &values[i]);
        blitz_completer_unref(flag[i]);
    }
}

static void referee(void)
{
    blitz_promise_future f[2];
    blitz_child child[2];
    blitz_race race;
    for (int i = 0; i < 2; i++) {
        blitz_promise_await_future_init(&f[i], lane[i]);
        child[i] = (blitz_child){&f[i].future, BLITZ_UNASKED};
    }
    m_assert(blitz_race_init(&race, child, 2) == 0);
    (void)!blitz_await(&race.future, BLITZ_FOREVER);
    m_assert(race.winner < 2 && child[race.winner].fate == BLITZ_ENDED);
    m_assert(f[race.winner].value == &values[race.winner]);
    won = (int)race.winner;
    loser_fate = (int)child[1 - won].fate;
    m_assert(loser_fate == BLITZ_LEFT || loser_fate == BLITZ_REVOKED);
    for (int i = 0; i < 2; i++)
        blitz_promise_unref(lane[i]);
}

static void race_of_two(size_t few)
{
    bz_children_few = few;
    freed_of[0] = freed_of[1] = 0;
    bz_atomic_init(&rung, 0);
    bz_atomic_init(&holders, 0);
    m_settings()->spurious = 0;
    m_settings()->spin_tries = 1;
    for (int i = 0; i < 2; i++)
        m_assert(blitz_promise_new(&(blitz_promise_opts){.drop = count_lane}, &lane[i], &flag[i]) ==
                 0);
    m_threads(runs_both, referee);
    m_assert(freed_of[won] == 0 && freed_of[1 - won] == 1);
    m_assert(bz_load_relaxed(&holders) == 0);
    m_sometimes(won == 0);
    m_sometimes(won == 1);
    m_sometimes(loser_fate == BLITZ_LEFT);
}

/* The winner's value is the referee's, the loser's is freed, in every order. */
MODEL(race, of_two_promises_one_wins_and_nothing_is_lost)
{
    race_of_two(BLITZ_OF_MAX);
}

/* The same with a waker for each child (readylist.c). */
MODEL(race, with_a_list_of_woken_children_nothing_is_lost_either)
{
    race_of_two(0);
}
