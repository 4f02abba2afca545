/* Sleep words, spins and barriers of the Linux backend. */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>

#include "support/deny.h"
#include "support/sanitizers.h"
#include "support/tasks.h"
#include "harness.h"
#include "os/os.h"

#define MS UINT64_C(1000000)

static const struct bz_os *os = &bz_os_system;

/* One thread that waits on a word, and what came of it. */
struct waiter {
    struct bz_os_thread thread;
    bz_os_word *word;
    uint32_t expected;
    uint64_t until_ns, returned_ns;
    int result;
    atomic_int tid, done;
};

static void waiter_main(void *arg)
{
    struct waiter *w = arg;
    atomic_store(&w->tid, t_tid());
    w->result = bz_os_wait(os, w->word, w->expected, w->until_ns);
    w->returned_ns = bz_os_now(os);
    atomic_store(&w->done, 1);
}

static void waiter_start(struct waiter *w, bz_os_word *word, uint64_t until_ns)
{
    *w = (struct waiter){.word = word, .until_ns = until_ns};
    CHECK_EQ(bz_os_thread_start(os, &w->thread, NULL, waiter_main, w), 0);
    while (atomic_load(&w->tid) == 0)
        sched_yield();
}

static void waiter_start_asleep(struct waiter *w, bz_os_word *word, uint64_t until_ns)
{
    waiter_start(w, word, until_ns);
    CHECK(t_until_asleep(atomic_load(&w->tid)));
}

/* ---- waits that do not sleep ---- */

TEST(os_word, a_wait_for_another_value_returns_at_once)
{
    bz_os_word word = 1;
    CHECK_EQ(bz_os_wait(os, &word, 0, BZ_OS_FOREVER), -EAGAIN);
    CHECK_EQ(bz_os_wait(os, &word, 2, bz_os_now(os) + 3600000 * MS), -EAGAIN);
}

/* The news is worth more than the lateness. */
TEST(os_word, a_changed_word_wins_over_a_past_deadline)
{
    bz_os_word word = 1;
    CHECK_EQ(bz_os_wait(os, &word, 0, 0), -EAGAIN);
    CHECK_EQ(bz_os_wait(os, &word, 0, bz_os_now(os) - 1), -EAGAIN);
}

TEST(os_word, a_deadline_in_the_past_does_not_sleep)
{
    bz_os_word word = 7;
    CHECK_EQ(bz_os_wait(os, &word, 7, 0), -ETIMEDOUT);
    CHECK_EQ(bz_os_wait(os, &word, 7, 1), -ETIMEDOUT);
    CHECK_EQ(bz_os_wait(os, &word, 7, bz_os_now(os) - 1), -ETIMEDOUT);
    CHECK_EQ(bz_os_wait(os, &word, 7, bz_os_now(os)), -ETIMEDOUT);
}

TEST(os_word, all_32_bits_are_compared)
{
    bz_os_word word = UINT32_C(0x80000001);
    CHECK_EQ(bz_os_wait(os, &word, UINT32_C(0x00000001), BZ_OS_FOREVER), -EAGAIN);
    CHECK_EQ(bz_os_wait(os, &word, UINT32_C(0x80000000), BZ_OS_FOREVER), -EAGAIN);
    CHECK_EQ(bz_os_wait(os, &word, UINT32_C(0x80000001), 1), -ETIMEDOUT);
}

/* ---- waits that do ---- */

TEST(os_word, a_timeout_never_comes_early)
{
    bz_os_word word = 0;
    for (uint64_t i = 0; i < 20; i++) {
        uint64_t until = bz_os_now(os) + i * MS / 10;
        CHECK_EQ(bz_os_wait(os, &word, 0, until), -ETIMEDOUT);
        CHECK_GE(bz_os_now(os), until);
    }
}

TEST(os_word, a_wake_rouses_a_sleeper_that_waits_for_ever)
{
    bz_os_word word = 0;
    struct waiter w;
    waiter_start_asleep(&w, &word, BZ_OS_FOREVER);
    atomic_store(&word, 1);
    bz_os_wake(os, &word, 1);
    CHECK_EQ(bz_os_thread_join(os, &w.thread), 0);
    CHECK_EQ(w.result, 0);
}

/* The deadline is converted; the largest must not wrap into the past. */
TEST(os_word, a_deadline_centuries_away_sleeps)
{
    static const uint64_t far[] = {BZ_OS_FOREVER - 1, (uint64_t)INT64_MAX, (uint64_t)INT64_MAX + 1};
    for (size_t i = 0; i < sizeof far / sizeof far[0]; i++) {
        bz_os_word word = 0;
        struct waiter w;
        waiter_start_asleep(&w, &word, far[i]);
        bz_os_wake(os, &word, 1);
        CHECK_EQ(bz_os_thread_join(os, &w.thread), 0);
        CHECK_EQ(w.result, 0);
    }
}

/* A wake is not remembered: the change of the word is. */
TEST(os_word, a_wake_before_the_wait_is_seen_only_through_the_word)
{
    bz_os_word word = 0;
    bz_os_wake(os, &word, 1);
    CHECK_EQ(bz_os_wait(os, &word, 0, bz_os_now(os) + MS), -ETIMEDOUT);
    atomic_store(&word, 1);
    bz_os_wake(os, &word, 1);
    CHECK_EQ(bz_os_wait(os, &word, 0, BZ_OS_FOREVER), -EAGAIN);
}

static int count_done(struct waiter *w, int n)
{
    int done = 0;
    for (int i = 0; i < n; i++)
        done += atomic_load(&w[i].done);
    return done;
}

TEST(os_word, a_wake_rouses_as_many_as_asked_and_no_more)
{
    bz_os_word word = 0;
    struct waiter w[6];
    for (int i = 0; i < 6; i++)
        waiter_start_asleep(&w[i], &word, BZ_OS_FOREVER);

    bz_os_wake(os, &word, 0);
    bz_os_wake(os, &word, 2);
    while (count_done(w, 6) < 2)
        sched_yield();
    for (int i = 0; i < 6; i++) {
        if (!atomic_load(&w[i].done))
            CHECK(t_until_asleep(atomic_load(&w[i].tid)));
    }
    CHECK_EQ(count_done(w, 6), 2);
    bz_os_wake(os, &word, UINT32_MAX);
    bz_os_wake(os, &word, UINT32_MAX);
    for (int i = 0; i < 6; i++) {
        CHECK_EQ(bz_os_thread_join(os, &w[i].thread), 0);
        CHECK_EQ(w[i].result, 0);
    }
}

TEST(os_word, a_wake_on_another_word_rouses_no_thread)
{
    bz_os_word pair[2] = {0, 0};
    struct waiter w;
    waiter_start_asleep(&w, &pair[0], BZ_OS_FOREVER);
    bz_os_wake(os, &pair[1], 1);
    bz_os_wake(os, &pair[0], 1);
    CHECK_EQ(bz_os_thread_join(os, &w.thread), 0);
}

/* The last user of a word may free it before the waker gets to its system call. */
TEST(os_word, a_wake_on_freed_memory_is_harmless)
{
    t_skip_under_valgrind("looks into the word, which the kernel does not");
    size_t page = bz_os_page_bytes(os);
    struct bz_os_slab slab;
    CHECK_EQ(bz_os_slab_reserve(os, &slab, page, 0, BZ_OS_SLAB_PLAIN, NULL), 0);
    bz_os_word *word = (bz_os_word *)(void *)slab.base;
    bz_os_slab_release(os, &slab);
    bz_os_wake(os, word, 1);
}

/* ---- signals ---- */

static atomic_int handled;
static void on_signal(int sig)
{
    (void)sig;
    atomic_fetch_add(&handled, 1);
}

static void handle_without_restart(void)
{
    t_skip_if_signals_are_deferred();
    struct sigaction act = {.sa_handler = on_signal};
    CHECK_EQ(sigaction(SIGUSR1, &act, NULL), 0);
}

/* One sleep of that long with a signal at every moment of it; how many were handled. */
static int sleep_through_a_storm(uint64_t ns)
{
    bz_os_word word = 0;
    struct waiter w;
    int first = atomic_load(&handled);

    waiter_start(&w, &word, bz_os_now(os) + ns);
    while (!atomic_load(&w.done)) {
        int before = atomic_load(&handled);
        if (pthread_kill((pthread_t)w.thread.native, SIGUSR1) != 0)
            break;
        while (atomic_load(&handled) == before && !atomic_load(&w.done))
            sched_yield();
    }
    CHECK_EQ(bz_os_thread_join(os, &w.thread), 0);
    CHECK_EQ(w.result, -ETIMEDOUT);
    CHECK_GE(w.returned_ns, w.until_ns);
    return atomic_load(&handled) - first;
}

/* Bug class 34. A timer signal every millisecond must neither cut a sleep short nor stretch it. */
TEST(os_word, bug_34_a_storm_of_signals_neither_ends_nor_stretches_a_sleep)
{
    uint64_t ms = 30;
    int signals;
    handle_without_restart();
    while ((signals = sleep_through_a_storm(ms * MS)) < 10)
        ms *= 2; /* the machine is busy: the storm was none */
    t_note("%d signals handled in %llu ms of sleep", signals, (unsigned long long)ms);
}

TEST(os_word, bug_34_a_sleeper_is_still_roused_after_a_storm_of_signals)
{
    handle_without_restart();
    bz_os_word word = 0;
    struct waiter w;
    waiter_start_asleep(&w, &word, BZ_OS_FOREVER);
    for (int i = 0; i < 200; i++) {
        CHECK_EQ(pthread_kill((pthread_t)w.thread.native, SIGUSR1), 0);
        while (atomic_load(&handled) <= i)
            sched_yield();
    }
    CHECK_EQ(atomic_load(&w.done), 0);
    CHECK(t_until_asleep(atomic_load(&w.tid)));
    bz_os_wake(os, &word, 1);
    CHECK_EQ(bz_os_thread_join(os, &w.thread), 0);
    CHECK_EQ(w.result, 0);
}

/* ---- both ends at full speed ---- */

#define ROUNDS 20000
static bz_os_word ball;

static void play(void *arg, int index)
{
    uint32_t mine = (uint32_t)index;
    (void)arg;
    for (uint32_t turn = mine; turn < ROUNDS; turn += 2) {
        uint32_t now;
        while ((now = atomic_load_explicit(&ball, memory_order_acquire)) != turn) {
            int r = bz_os_wait(os, &ball, now, BZ_OS_FOREVER);
            CHECK(r == 0 || r == -EAGAIN);
        }
        atomic_store_explicit(&ball, turn + 1, memory_order_release);
        bz_os_wake(os, &ball, 1);
    }
}

TEST(os_word, two_threads_pass_a_ball_and_never_lose_it)
{
    t_threads(2, play, NULL);
    CHECK_EQ(atomic_load(&ball), (uint32_t)ROUNDS);
}

/* ---- spins ---- */

TEST(os_word, every_round_of_a_spin_ends)
{
    for (unsigned round = 0; round < 100; round++)
        bz_os_relax(os, round);
    bz_os_relax(os, UINT32_MAX);
}

static atomic_int flag;
static void wait_for_flag(void *arg, int index)
{
    (void)arg;
    if (index == 0) {
        for (unsigned round = 0; atomic_load(&flag) == 0; round++)
            bz_os_relax(os, round);
    } else {
        atomic_store(&flag, 1);
    }
}

TEST(os_word, a_spin_lets_the_other_thread_in)
{
    t_threads(2, wait_for_flag, NULL);
}

TEST(os_word, the_real_backend_has_no_delays)
{
    CHECK(os->delay == NULL);
    for (int at = 0; at < BZ_OS_POINTS; at++) {
        bz_os_delay(os, (enum bz_os_point)at);
        bz_os_delay_here(os, (enum bz_os_point)at);
    }
}

/* ---- barriers ---- */

TEST(os_word, a_barrier_needs_to_be_registered)
{
    int without = bz_os_barrier(os);
    CHECK(without == -EPERM || without == -ENOSYS);
    if (bz_os_barrier_register(os) != 0)
        t_skip("no membarrier(PRIVATE_EXPEDITED) on this kernel");
    CHECK_EQ(bz_os_barrier(os), 0);
    CHECK_EQ(bz_os_barrier_register(os), 0); /* a second runtime */
    CHECK_EQ(bz_os_barrier(os), 0);
}

/* The runtime then uses fences in its pushes; it must get the error. */
TEST(os_word, a_kernel_without_barriers_says_so)
{
    t_deny(SYS_membarrier, ENOSYS);
    CHECK_EQ(bz_os_barrier_register(os), -ENOSYS);
    CHECK_EQ(bz_os_barrier(os), -ENOSYS);
}

TEST(os_word, a_kernel_with_an_older_barrier_says_so)
{
    t_deny(SYS_membarrier, EINVAL);
    CHECK_EQ(bz_os_barrier_register(os), -ENOSYS);
    CHECK_EQ(bz_os_barrier(os), -ENOSYS);
}

TEST(os_word, a_sandbox_that_forbids_barriers_says_so)
{
    t_deny(SYS_membarrier, EPERM);
    CHECK_EQ(bz_os_barrier_register(os), -EPERM);
    CHECK_EQ(bz_os_barrier(os), -EPERM);
}

/* Store buffering, one side without a fence: the barrier on the other side must do for both. */
struct dekker {
    atomic_int x, y, turn;
    int saw_y, saw_x, both_missed;
};

static void dekker_side(void *arg, int index)
{
    struct dekker *d = arg;
    for (int round = 1; round <= (int)t_scaled(3000); round++) {
        atomic_fetch_add(&d->turn, 1);
        while (atomic_load(&d->turn) < 4 * round - 2)
            sched_yield();
        if (index == 0) {
            atomic_store_explicit(&d->x, round, memory_order_relaxed);
            bz_compiler_barrier();
            d->saw_y = atomic_load_explicit(&d->y, memory_order_relaxed);
        } else {
            atomic_store_explicit(&d->y, round, memory_order_relaxed);
            CHECK_EQ(bz_os_barrier(os), 0);
            d->saw_x = atomic_load_explicit(&d->x, memory_order_relaxed);
        }
        atomic_fetch_add(&d->turn, 1);
        while (atomic_load(&d->turn) < 4 * round)
            sched_yield();
        if (index == 0)
            d->both_missed += d->saw_y != round && d->saw_x != round;
    }
}

TEST(os_word, a_barrier_orders_a_thread_that_has_no_fence)
{
    static struct dekker d;
    if (bz_os_barrier_register(os) != 0)
        t_skip("no membarrier(PRIVATE_EXPEDITED) on this kernel");
    t_threads(2, dekker_side, &d);
    CHECK_EQ(d.both_missed, 0);
}

/* The other threads do without fences by then: the barrier must go on in another way. */
TEST(os_word, bug_46_a_barrier_that_is_refused_later_still_orders_threads)
{
    static struct dekker d;
    cpu_set_t before, after;
    if (bz_os_barrier_register(os) != 0)
        t_skip("no membarrier(PRIVATE_EXPEDITED) on this kernel");
    CHECK_EQ(sched_getaffinity(0, sizeof before, &before), 0);
    t_deny(SYS_membarrier, EPERM);
    CHECK_EQ(bz_os_barrier(os), 0);
    CHECK_EQ(sched_getaffinity(0, sizeof after, &after), 0);
    CHECK(CPU_EQUAL(&before, &after));
    t_threads(2, dekker_side, &d);
    CHECK_EQ(d.both_missed, 0);
}

TEST(os_word, a_barrier_that_is_refused_later_with_every_way_around_says_so)
{
    if (bz_os_barrier_register(os) != 0)
        t_skip("no membarrier(PRIVATE_EXPEDITED) on this kernel");
    t_deny(SYS_membarrier, EPERM);
    t_deny(SYS_sched_setaffinity, EPERM);
    CHECK_EQ(bz_os_barrier(os), -ENOSYS);
}
