/*
 * The Windows backend of os.h keeps the contract: sleep words, barriers, threads, clocks, pages and guards.
 *
 * What os_word_test.c, os_thread_test.c and os_pages_test.c say of Linux, as far as it is not about signals, filters and /proc.
 */
#include <windows.h>

#include <stdatomic.h>

#include "harness.h"
#include "os/os.h"
#include "os/self.h"

#define MS UINT64_C(1000000)
#define MIB ((size_t)1 << 20)

static const struct bz_os *os = &bz_os_system;

/* ---- sleep words ---- */

TEST(windows_os, a_wait_for_another_value_returns_at_once)
{
    bz_os_word word = 1;
    CHECK_EQ(bz_os_wait(os, &word, 0, BZ_OS_FOREVER), -EAGAIN);
    CHECK_EQ(bz_os_wait(os, &word, 0, 0), -EAGAIN); /* the news is worth more than the lateness */
}

TEST(windows_os, a_deadline_in_the_past_does_not_sleep)
{
    bz_os_word word = 7;
    CHECK_EQ(bz_os_wait(os, &word, 7, 0), -ETIMEDOUT);
    CHECK_EQ(bz_os_wait(os, &word, 7, bz_os_now(os)), -ETIMEDOUT);
}

TEST(windows_os, a_timeout_never_comes_early)
{
    bz_os_word word = 0;
    for (uint64_t i = 0; i < 20; i++) {
        uint64_t until = bz_os_now(os) + i * MS / 10;
        CHECK_EQ(bz_os_wait(os, &word, 0, until), -ETIMEDOUT);
        CHECK_GE(bz_os_now(os), until);
    }
}

struct waiter {
    struct bz_os_thread thread;
    bz_os_word *word;
    uint64_t until_ns;
    int result;
    atomic_int waits, done;
};

static void waiter_main(void *arg)
{
    struct waiter *w = arg;
    atomic_store(&w->waits, 1);
    do
        w->result = bz_os_wait(os, w->word, 0, w->until_ns);
    while (w->result == 0 && atomic_load(w->word) == 0); /* spuriously */
    atomic_store(&w->done, 1);
}

static void waiter_start(struct waiter *w, bz_os_word *word, uint64_t until_ns)
{
    *w = (struct waiter){.word = word, .until_ns = until_ns};
    CHECK_EQ(bz_os_thread_start(os, &w->thread, NULL, waiter_main, w), 0);
    while (atomic_load(&w->waits) == 0)
        SwitchToThread();
}

TEST(windows_os, a_wake_rouses_every_sleeper)
{
    static const uint64_t until[] = {BZ_OS_FOREVER, BZ_OS_FOREVER - 1, (uint64_t)INT64_MAX};
    bz_os_word word = 0;
    struct waiter w[6];
    for (int i = 0; i < 6; i++)
        waiter_start(&w[i], &word, until[i % 3]);
    atomic_store(&word, 1);
    bz_os_wake(os, &word, 2);
    bz_os_wake(os, &word, UINT32_MAX);
    for (int i = 0; i < 6; i++) {
        CHECK_EQ(bz_os_thread_join(os, &w[i].thread), 0);
        CHECK(w[i].result == 0 || w[i].result == -EAGAIN);
    }
}

TEST(windows_os, a_wake_on_freed_memory_is_harmless)
{
    struct bz_os_slab slab;
    CHECK_EQ(bz_os_slab_reserve(os, &slab, bz_os_page_bytes(os), 0, BZ_OS_SLAB_PLAIN, NULL), 0);
    bz_os_word *word = (bz_os_word *)(void *)slab.base;
    bz_os_slab_release(os, &slab);
    bz_os_wake(os, word, 1);
    bz_os_wake(os, word, UINT32_MAX);
}

enum { ROUNDS = 20000 };
static bz_os_word ball;

static void play(void *arg, int index)
{
    (void)arg;
    for (uint32_t turn = (uint32_t)index; turn < t_scaled(ROUNDS); turn += 2) {
        uint32_t now;
        while ((now = atomic_load_explicit(&ball, memory_order_acquire)) != turn) {
            int r = bz_os_wait(os, &ball, now, BZ_OS_FOREVER);
            CHECK(r == 0 || r == -EAGAIN);
        }
        atomic_store_explicit(&ball, turn + 1, memory_order_release);
        bz_os_wake(os, &ball, 1);
    }
}

TEST(windows_os, two_threads_pass_a_ball_and_never_lose_it)
{
    t_threads(2, play, NULL);
    CHECK_EQ(atomic_load(&ball), (uint32_t)t_scaled(ROUNDS));
}

/* Store buffering, one side without a fence: the barrier on the other side must do for both. */
struct dekker {
    atomic_int x, y, turn;
    int saw_y, saw_x, both_missed;
    bool has_barrier;
};

static void dekker_side(void *arg, int index)
{
    struct dekker *d = arg;
    for (int round = 1; round <= (int)t_scaled(3000); round++) {
        atomic_fetch_add(&d->turn, 1);
        while (atomic_load(&d->turn) < 4 * round - 2)
            SwitchToThread();
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
            SwitchToThread();
        if (index == 0)
            d->both_missed += d->saw_y != round && d->saw_x != round;
    }
}

TEST(windows_os, a_barrier_orders_a_thread_that_has_no_fence)
{
    static struct dekker d;
    CHECK_EQ(bz_os_barrier_register(os), 0);
    t_threads(2, dekker_side, &d);
    CHECK_EQ(d.both_missed, 0);
}

TEST(windows_os, a_barrier_leaves_the_affinity_as_it_was)
{
    DWORD_PTR before, after, all;
    HANDLE me = GetCurrentThread();
    CHECK(GetProcessAffinityMask(GetCurrentProcess(), &all, &before));
    CHECK_EQ(bz_os_barrier_register(os), 0);
    before = SetThreadAffinityMask(me, 1);
    CHECK_EQ(bz_os_barrier(os), 0);
    after = SetThreadAffinityMask(me, before);
    CHECK_EQ(after, (DWORD_PTR)1);
}

/* ---- threads ---- */

static atomic_int has_run;

static void note_run(void *arg)
{
    CHECK_NULL(bz_self_get());
    CHECK_EQ(bz_self_holds(), 0);
    bz_self_set(arg);
    CHECK_EQ(bz_self_get(), arg);
    CHECK_EQ(bz_self_get_slow(), arg);
    bz_self_hold();
    CHECK_EQ(bz_self_holds(), 1);
    bz_self_release();
    atomic_store(&has_run, 1);
}

TEST(windows_os, a_thread_runs_and_has_slots_of_its_own)
{
    struct bz_os_thread t;
    bz_self_set(&t);
    struct bz_os_thread_opts opts = {.name = "a name that is too long", .stack_bytes = 256 << 10};
    CHECK_EQ(bz_os_thread_start(os, &t, &opts, note_run, &has_run), 0);
    CHECK_EQ(bz_os_thread_join(os, &t), 0);
    CHECK_EQ(atomic_load(&has_run), 1);
    CHECK_EQ(bz_self_get(), (void *)&t);
    bz_self_set(NULL);
}

static void note_affinity(void *mask)
{
    DWORD_PTR was = SetThreadAffinityMask(GetCurrentThread(), 1);
    *(DWORD_PTR *)mask = was;
}

TEST(windows_os, a_thread_runs_on_the_cpus_it_was_given_only)
{
    struct bz_os_thread t;
    DWORD_PTR mask = 0;
    uint64_t first[2] = {1, 0}, none[1] = {0};
    struct bz_os_thread_opts opts = {.affinity = first, .affinity_words = 2};
    CHECK_EQ(bz_os_thread_start(os, &t, &opts, note_affinity, &mask), 0);
    CHECK_EQ(bz_os_thread_join(os, &t), 0);
    CHECK_EQ(mask, (DWORD_PTR)1);
    opts = (struct bz_os_thread_opts){.affinity = none, .affinity_words = 1};
    CHECK_EQ(bz_os_thread_start(os, &t, &opts, note_affinity, &mask), -EINVAL);
    opts = (struct bz_os_thread_opts){.stack_bytes = SIZE_MAX / 2};
    CHECK_EQ(bz_os_thread_start(os, &t, &opts, note_affinity, &mask), -EINVAL);
}

static struct bz_os_thread self;
static int joined_itself;

static void join_itself(void *started)
{
    while (atomic_load((atomic_int *)started) == 0)
        SwitchToThread();
    joined_itself = bz_os_thread_join(os, &self);
}

TEST(windows_os, a_thread_that_joins_itself_gets_an_error)
{
    atomic_int started = 0;
    CHECK_EQ(bz_os_thread_start(os, &self, NULL, join_itself, &started), 0);
    atomic_store(&started, 1);
    CHECK_EQ(bz_os_thread_join(os, &self), 0);
    CHECK_EQ(joined_itself, -EDEADLK);
}

static void detached(void *arg)
{
    struct bz_os_thread *t = arg, copy;
    while (atomic_load(&has_run) == 0)
        SwitchToThread();
    copy = *t;
    atomic_store(&has_run, 2);
    bz_os_thread_quit(os, &copy);
}

TEST(windows_os, a_detached_thread_needs_no_join)
{
    struct bz_os_thread t;
    CHECK_EQ(bz_os_thread_start(os, &t, NULL, detached, &t), 0);
    bz_os_thread_detach(os, &t);
    atomic_store(&has_run, 1);
    while (atomic_load(&has_run) != 2)
        SwitchToThread();
}

TEST(windows_os, threads_have_ids)
{
    CHECK_EQ(bz_os_thread_id(os), (uint32_t)GetCurrentThreadId());
    CHECK_EQ(bz_os_thread_sleeps(os, bz_os_thread_id(os)), -ENOSYS);
    CHECK_EQ(bz_os_thread_interrupt(os, bz_os_thread_id(os)), -ENOSYS);
    CHECK_EQ(bz_os_others(os), -ENOSYS);
}

/* ---- clocks, CPUs, randomness ---- */

TEST(windows_os, time_never_goes_back)
{
    uint64_t last = bz_os_now(os), begin = last;
    for (int i = 0; i < 100000; i++) {
        uint64_t now = bz_os_now(os);
        CHECK_GE(now, last);
        last = now;
    }
    CHECK_GT(last, begin);
}

TEST(windows_os, a_burning_thread_uses_cpu_time)
{
    uint64_t begin = bz_os_cpu_time(os);
    while (bz_os_cpu_time(os) < begin + 20 * MS)
        continue;
}

TEST(windows_os, the_cpu_time_of_an_ended_thread_is_an_error)
{
    struct bz_os_thread t;
    uint64_t used;
    atomic_store(&has_run, 0);
    CHECK_EQ(bz_os_thread_start(os, &t, NULL, note_run, &t), 0);
    while (bz_os_thread_cpu_time(os, &t, &used) == 0)
        SwitchToThread();
    CHECK_EQ(bz_os_thread_cpu_time(os, &t, &used), -ESRCH);
    CHECK_EQ(bz_os_thread_join(os, &t), 0);
}

TEST(windows_os, there_is_a_cpu)
{
    CHECK_GE(bz_os_cpus(os), 1);
}

TEST(windows_os, entropy_fills_every_byte)
{
    unsigned char bytes[300] = {0}, seen[300] = {0};
    for (int round = 0; round < 20; round++) {
        CHECK_EQ(bz_os_entropy(os, bytes, sizeof bytes), 0);
        for (size_t i = 0; i < sizeof bytes; i++)
            seen[i] |= bytes[i];
    }
    for (size_t i = 0; i < sizeof bytes; i++)
        CHECK_NE(seen[i], 0);
}

/* ---- pages ---- */

static size_t page(void)
{
    return bz_os_page_bytes(os);
}

static struct bz_os_slab slab_of(size_t bytes)
{
    struct bz_os_slab slab;
    CHECK_EQ(bz_os_slab_reserve(os, &slab, bytes, 0, BZ_OS_SLAB_PLAIN, "t"), 0);
    return slab;
}

static bool refuses(const char *at)
{
    MEMORY_BASIC_INFORMATION here;
    CHECK(VirtualQuery(at, &here, sizeof here) != 0);
    return here.State != MEM_COMMIT || here.Protect == PAGE_NOACCESS;
}

static void *fault_at;

/* Make the page accessible and go on. */
static LONG CALLBACK on_fault(EXCEPTION_POINTERS *what)
{
    void *at = (void *)what->ExceptionRecord->ExceptionInformation[1];
    DWORD was;
    if (what->ExceptionRecord->ExceptionCode != EXCEPTION_ACCESS_VIOLATION || fault_at != NULL)
        return EXCEPTION_CONTINUE_SEARCH;
    fault_at = at;
    VirtualAlloc(at, 1, MEM_COMMIT, PAGE_READWRITE);
    VirtualProtect(at, 1, PAGE_READWRITE, &was);
    return EXCEPTION_CONTINUE_EXECUTION;
}

/* The address of the fault; NULL: there was none. */
static void *fault_of_touching(volatile char *at)
{
    void *handler = AddVectoredExceptionHandler(1, on_fault);
    fault_at = NULL;
    *at = 1;
    RemoveVectoredExceptionHandler(handler);
    return fault_at;
}

TEST(windows_os, a_slab_starts_zeroed_and_is_writable_to_the_last_byte)
{
    struct bz_os_slab slab = slab_of(4 * page());
    for (size_t i = 0; i < slab.bytes; i++)
        CHECK_EQ(slab.base[i], 0);
    memset(slab.base, 0x5a, slab.bytes);
    bz_os_slab_release(os, &slab);
    CHECK_NULL(slab.base);
}

TEST(windows_os, alignment_is_honoured)
{
    for (size_t align = page(); align <= 64 * MIB; align *= 4) {
        struct bz_os_slab slab;
        CHECK_EQ(bz_os_slab_reserve(os, &slab, 3 * page(), align, BZ_OS_SLAB_PLAIN, NULL), 0);
        CHECK_EQ((uintptr_t)slab.base % align, (uintptr_t)0);
        memset(slab.base, 1, slab.bytes);
        bz_os_slab_release(os, &slab);
    }
}

TEST(windows_os, nonsense_is_refused_and_leaves_the_slab_alone)
{
    struct bz_os_slab slab = {(char *)7, 7, 7};
    CHECK_EQ(bz_os_slab_reserve(os, &slab, 0, 0, BZ_OS_SLAB_PLAIN, NULL), -EINVAL);
    CHECK_EQ(bz_os_slab_reserve(os, &slab, page() + 1, 0, BZ_OS_SLAB_PLAIN, NULL), -EINVAL);
    CHECK_EQ(bz_os_slab_reserve(os, &slab, page(), 3 * page(), BZ_OS_SLAB_PLAIN, NULL), -EINVAL);
    CHECK_EQ(bz_os_slab_reserve(os, &slab, SIZE_MAX - page() + 1, 0, BZ_OS_SLAB_PLAIN, NULL),
             -ENOMEM);
    CHECK_EQ(bz_os_slab_reserve(os, &slab, SIZE_MAX - page() + 1, MIB, BZ_OS_SLAB_PLAIN, NULL),
             -ENOMEM);
    CHECK_EQ(slab.bytes, (size_t)7);
}

TEST(windows_os, discarded_pages_read_as_zero_and_the_others_stay)
{
    struct bz_os_slab slab = slab_of(8 * MIB);
    memset(slab.base, 1, slab.bytes);
    CHECK_EQ(bz_os_pages_discard(os, slab.base + MIB, 6 * MIB), 0);
    CHECK_EQ(slab.base[MIB - 1], 1);
    CHECK_EQ(slab.base[MIB], 0);
    CHECK_EQ(slab.base[7 * MIB - 1], 0);
    CHECK_EQ(slab.base[7 * MIB], 1);
    char *gone = slab.base;
    CHECK_EQ(bz_os_pages_discard(os, slab.base + 1, page()), -EINVAL);
    bz_os_slab_release(os, &slab);
    CHECK_EQ(bz_os_pages_discard(os, gone, page()), -ENOMEM);
}

static void guards_do_their_work(enum bz_os_guard how)
{
    struct bz_os_slab slab = slab_of(64 * page());
    memset(slab.base, 1, slab.bytes);
    struct bz_os_guards g = {page(), 16 * page(), 2 * page(), 4};
    CHECK_EQ(bz_os_slab_guard(os, &slab, how, &g), (int)how);
    for (size_t p = 0; p < 64; p++) {
        bool is_guard = p % 16 == 1 || p % 16 == 2;
        CHECK_EQ(refuses(slab.base + p * page()), is_guard);
    }
    CHECK_EQ(slab.base[0], 1);
    CHECK_EQ(bz_os_pages_discard(os, slab.base, slab.bytes), 0); /* a cached stack is cleaned */
    CHECK(refuses(slab.base + 17 * page()));
    CHECK(refuses(slab.base + 19 * page() - 1));
    CHECK_EQ(slab.base[0], 0);
    CHECK_EQ(slab.base[63 * page()], 0);
    CHECK_EQ(fault_of_touching(slab.base + 17 * page() + 5), (void *)(slab.base + 17 * page() + 5));
    CHECK_EQ(fault_of_touching(slab.base + 19 * page() - 1), (void *)(slab.base + 19 * page() - 1));
    CHECK_NULL(fault_of_touching(slab.base + 19 * page()));
    CHECK_NULL(fault_of_touching(slab.base + 17 * page() - 1));
    bz_os_slab_release(os, &slab);
}

TEST(windows_os, light_guards_refuse_accesses_and_survive_a_discard)
{
    guards_do_their_work(BZ_OS_GUARD_LIGHT);
}

TEST(windows_os, protect_guards_refuse_accesses_and_survive_a_discard)
{
    guards_do_their_work(BZ_OS_GUARD_PROTECT);
}

TEST(windows_os, guards_that_do_not_fit_are_refused_whole)
{
    struct bz_os_slab slab = slab_of(16 * page());
    size_t p = page();
    struct bz_os_guards bad[] = {
        {0, 4 * p, p, 5}, {16 * p, 0, p, 1},    {15 * p, 0, 2 * p, 1},
        {1, 4 * p, p, 2}, {0, 4 * p, p + 1, 2}, {0, p, 2 * p, 2},
        {0, 4 * p, 0, 2}, {0, 4 * p, p, 0},     {0, SIZE_MAX - p + 1, p, 2}};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        CHECK_EQ(bz_os_slab_guard(os, &slab, BZ_OS_GUARD_BEST, &bad[i]), -EINVAL);
    for (size_t i = 0; i < 16; i++)
        CHECK(!refuses(slab.base + i * p));
    struct bz_os_guards good = {0, 5 * p, p, 4};
    CHECK_EQ(bz_os_slab_guard(os, &slab, BZ_OS_GUARD_BEST, &good), BZ_OS_GUARD_LIGHT);
    bz_os_slab_release(os, &slab);
}
