/* The simulated backend fulfils the contract of os.h: the same tests as for the real one. */
#include <stdatomic.h>

#include "support/sanitizers.h"
#include "support/sim.h"
#include "os/self.h"

#define MS UINT64_C(1000000)
#define SEEDS 100

/* ---- sleep words ---- */

static void looks_without_sleeping(const struct bz_os *os, void *arg)
{
    bz_os_word word = 1;
    (void)arg;
    CHECK_EQ(bz_os_wait(os, &word, 0, BZ_OS_FOREVER), -EAGAIN);
    CHECK_EQ(bz_os_wait(os, &word, 0, 0), -EAGAIN);
    CHECK_EQ(bz_os_wait(os, &word, 1, 0), -ETIMEDOUT);
    CHECK_EQ(bz_os_wait(os, &word, 1, bz_os_now(os)), -ETIMEDOUT);
    bz_os_wake(os, &word, 1);
}

TEST(keeper, a_wait_looks_at_word_and_deadline_before_it_sleeps)
{
    t_sim_each_seed(SEEDS, looks_without_sleeping, NULL);
}

static void times_out(const struct bz_os *os, void *arg)
{
    bz_os_word word = 0;
    (void)arg;
    for (uint64_t ns = 1; ns < 1000 * MS; ns *= 7) {
        uint64_t until = bz_os_now(os) + ns;
        int r;
        while ((r = bz_os_wait(os, &word, 0, until)) == 0) /* spurious: check again */
            ;
        CHECK_EQ(r, -ETIMEDOUT);
        CHECK_GE(bz_os_now(os), until);
    }
}

TEST(keeper, a_timeout_never_comes_early)
{
    t_sim_each_seed(SEEDS, times_out, NULL);
}

static void times_out_on_the_dot(const struct bz_os *os, void *arg)
{
    bz_os_word word = 0;
    (void)arg;
    CHECK_EQ(bz_os_wait(os, &word, 0, UINT64_C(5000) * 1000 * MS), -ETIMEDOUT);
    /* no other thread: the clock jumped there */
    CHECK_EQ(bz_os_now(os), UINT64_C(5000) * 1000 * MS);
}

/* An hour of waiting costs nothing, which is half of the point. */
TEST(keeper, the_clock_jumps_to_the_deadline)
{
    struct bz_sim_result r;
    CHECK_EQ(
        t_sim_with((struct bz_sim_config){.has_no_spurious = true}, times_out_on_the_dot, NULL, &r),
        0);
    CHECK_GE(r.ns, UINT64_C(4000) * 1000 * MS);
    CHECK_LE(r.steps, (uint64_t)4);
}

#define SLEEPERS 5

struct sleepers {
    const struct bz_os *os;
    bz_os_word word;
    atomic_int asleep, woken, timed_out;
};

static void sleeps_until_woken(void *arg)
{
    struct sleepers *s = arg;
    atomic_fetch_add(&s->asleep, 1);
    int r = bz_os_wait(s->os, &s->word, 0, bz_os_now(s->os) + 50 * MS);
    CHECK(r == 0 || r == -ETIMEDOUT);
    atomic_fetch_add(r == 0 ? &s->woken : &s->timed_out, 1);
}

static void sleep_for(const struct bz_os *os, uint64_t ns)
{
    bz_os_word word = 0;
    uint64_t until = bz_os_now(os) + ns;
    while (bz_os_wait(os, &word, 0, until) != -ETIMEDOUT)
        ;
}

static void wakes_three_of_five(const struct bz_os *os, void *arg)
{
    struct sleepers s = {.os = os};
    struct bz_os_thread t[SLEEPERS];
    (void)arg;
    for (int i = 0; i < SLEEPERS; i++)
        CHECK_EQ(bz_os_thread_start(os, &t[i], NULL, sleeps_until_woken, &s), 0);
    sleep_for(os, MS); /* virtual: when it ends, all others sleep */
    bz_os_wake(os, &s.word, 0);
    bz_os_wake(os, &s.word, 3);
    for (int i = 0; i < SLEEPERS; i++)
        CHECK_EQ(bz_os_thread_join(os, &t[i]), 0);
    CHECK_EQ(atomic_load(&s.woken), 3);
    CHECK_EQ(atomic_load(&s.timed_out), 2);
}

TEST(keeper, a_wake_rouses_as_many_as_asked_and_no_more)
{
    for (int i = 0; i < SEEDS; i++)
        CHECK_EQ(t_sim_with((struct bz_sim_config){.seed = t_random(), .has_no_spurious = true},
                            wakes_three_of_five, NULL, NULL),
                 0);
}

static void counts_spurious(const struct bz_os *os, void *arg)
{
    bz_os_word word = 0;
    for (int i = 0; i < 1000; i++)
        *(int *)arg += bz_os_wait(os, &word, 0, bz_os_now(os) + MS) == 0;
}

/* The simulation must find code that does not check again after a wait. */
TEST(keeper, waits_return_for_no_reason_now_and_then)
{
    int spurious = 0;
    CHECK_EQ(t_sim(1, counts_spurious, &spurious), 0);
    CHECK_GT(spurious, 5);
    CHECK_LT(spurious, 200);
    spurious = 0;
    CHECK_EQ(t_sim_with((struct bz_sim_config){.has_no_spurious = true}, counts_spurious, &spurious,
                        NULL),
             0);
    CHECK_EQ(spurious, 0);
}

/* ---- threads ---- */

struct family {
    const struct bz_os *os;
    int order[8], count;
};

static void is_itself(void *arg)
{
    const struct bz_os *os = arg;
    int mine;
    bz_os_word never = 0;
    CHECK_NULL(bz_self_get());
    bz_self_set(&mine);
    for (int i = 0; i < 20; i++) {
        int err = 100 + (int)((uintptr_t)&mine / 4096 % 50);
        if (!T_TSAN) /* to it, one errno for all simulated threads is a race */
            errno = err;
        bz_os_relax(os, (unsigned)i);
        bz_os_delay_here(os, BZ_OS_AT_SWITCH);
        bz_os_wake(os, &never, 1);
        (void)bz_os_wait(os, &never, 0, bz_os_now(os) + (uint64_t)i);
        CHECK_EQ(bz_self_get(), (void *)&mine);
        CHECK(T_TSAN || errno == err);
    }
}

static void all_are_themselves(const struct bz_os *os, void *arg)
{
    struct bz_os_thread t[4];
    int me;
    (void)arg;
    bz_self_set(&me);
    for (int i = 0; i < 4; i++)
        CHECK_EQ(bz_os_thread_start(os, &t[i], NULL, is_itself, (void *)(uintptr_t)os), 0);
    for (int i = 0; i < 4; i++)
        CHECK_EQ(bz_os_thread_join(os, &t[i]), 0);
    CHECK_EQ(bz_self_get(), (void *)&me);
}

/* All run on one OS thread, and each has its own identity and errno. */
TEST(keeper, a_thread_keeps_its_self_and_its_errno)
{
    int outside;
    bz_self_set(&outside);
    t_sim_each_seed(SEEDS, all_are_themselves, NULL);
    CHECK_EQ(bz_self_get(), (void *)&outside);
}

static void joins_itself(void *arg)
{
    void **both = arg;
    CHECK_EQ(bz_os_thread_join(both[0], both[1]), -EDEADLK);
}

static void nothing(void *arg)
{
    (void)arg;
}

static void starts_oddly(const struct bz_os *os, void *arg)
{
    struct bz_os_thread t;
    void *both[2] = {(void *)(uintptr_t)os, &t};
    uint64_t none[1] = {0}, absent[1] = {UINT64_C(1) << 40}, second[1] = {2};
    (void)arg;
    CHECK_EQ(bz_os_thread_start(os, &t, NULL, joins_itself, both), 0);
    CHECK_EQ(bz_os_thread_join(os, &t), 0);
    struct bz_os_thread_opts opts = {.affinity = none, .affinity_words = 1};
    CHECK_EQ(bz_os_thread_start(os, &t, &opts, nothing, NULL), -EINVAL);
    opts.affinity = absent;
    CHECK_EQ(bz_os_thread_start(os, &t, &opts, nothing, NULL), -EINVAL);
    opts.affinity = second;
    CHECK_EQ(bz_os_thread_start(os, &t, &opts, nothing, NULL), 0);
    CHECK_EQ(bz_os_thread_join(os, &t), 0);
    opts = (struct bz_os_thread_opts){.stack_bytes = SIZE_MAX};
    CHECK_EQ(bz_os_thread_start(os, &t, &opts, nothing, NULL), -EINVAL);
    opts.stack_bytes = SIZE_MAX / 4;
    CHECK_EQ(bz_os_thread_start(os, &t, &opts, nothing, NULL), -ENOMEM);
    opts = (struct bz_os_thread_opts){.name = "a name longer than fifteen"};
    CHECK_EQ(bz_os_thread_start(os, &t, &opts, nothing, NULL), 0);
    CHECK_STR_EQ(t.name, "a name longer t");
    CHECK_EQ(bz_os_thread_join(os, &t), 0);
}

TEST(keeper, threads_are_refused_for_the_same_reasons)
{
    t_sim_each_seed(10, starts_oddly, NULL);
}

static void uses_much_stack(void *arg)
{
    volatile char deep[3 << 20];
    (void)arg;
    for (size_t i = 0; i < sizeof deep; i += 4096)
        deep[i] = 1;
    CHECK_EQ(deep[0], 1);
}

static void asks_for_much_stack(const struct bz_os *os, void *arg)
{
    struct bz_os_thread t;
    struct bz_os_thread_opts opts = {.stack_bytes = 4 << 20};
    (void)arg;
    CHECK_EQ(bz_os_thread_start(os, &t, &opts, uses_much_stack, NULL), 0);
    CHECK_EQ(bz_os_thread_join(os, &t), 0);
}

TEST(keeper, a_thread_has_the_stack_it_asked_for)
{
    CHECK_EQ(t_sim(1, asks_for_much_stack, NULL), 0);
}

static void starts_many(const struct bz_os *os, void *arg)
{
    (void)arg;
    for (int i = 0; i < 1000; i++) {
        struct bz_os_thread t;
        CHECK_EQ(bz_os_thread_start(os, &t, NULL, nothing, NULL), 0);
        CHECK_EQ(bz_os_thread_join(os, &t), 0);
    }
}

TEST(keeper, threads_come_and_go)
{
    struct bz_sim_result r;
    CHECK_EQ(t_sim_with((struct bz_sim_config){.seed = 1}, starts_many, NULL, &r), 0);
    CHECK_EQ(r.threads, 1001u);
}

/* ---- the rest ---- */

static void asks_the_rest(const struct bz_os *os, void *arg)
{
    struct bz_os_slab slab;
    size_t page = bz_os_page_bytes(os);
    struct bz_os_guards g = {0, 0, page, 1};
    bool has_barrier = *(bool *)arg;
    CHECK(bz_sim_is_running());
    CHECK_EQ(bz_os_cpus(os), 7);
    CHECK_EQ(bz_os_barrier_register(os), has_barrier ? 0 : -ENOSYS);
    CHECK_EQ(bz_os_barrier(os), has_barrier ? 0 : -ENOSYS);
    CHECK_EQ(bz_os_slab_reserve(os, &slab, 4 * page, 0, BZ_OS_SLAB_SMALL_PAGES, "sim"), 0);
    CHECK_GT(bz_os_slab_guard(os, &slab, BZ_OS_GUARD_BEST, &g), 0);
    slab.base[page] = 1;
    CHECK_EQ(bz_os_pages_discard(os, slab.base, 4 * page), 0);
    CHECK_EQ(slab.base[page], 0);
    bz_os_slab_release(os, &slab);
}

TEST(keeper, pages_are_real_and_the_rest_is_configured)
{
    bool yes = true, no = false;
    struct bz_sim_config config = {.cpus = 7};
    CHECK_EQ(t_sim_with(config, asks_the_rest, &yes, NULL), 0);
    config.has_no_barrier = true;
    CHECK_EQ(t_sim_with(config, asks_the_rest, &no, NULL), 0);
    CHECK(!bz_sim_is_running());
}

static void draws(const struct bz_os *os, void *arg)
{
    CHECK_EQ(bz_os_entropy(os, arg, 16), 0);
}

static void draws_later(const struct bz_os *os, void *arg)
{
    for (int i = 0; i < 10; i++)
        bz_os_relax(os, 0);
    draws(os, arg);
}

TEST(keeper, randomness_follows_from_the_seed_and_not_from_the_schedule)
{
    unsigned char a[16], b[16], c[16], d[16];
    CHECK_EQ(t_sim(1, draws, a), 0);
    CHECK_EQ(t_sim(1, draws, b), 0);
    CHECK_EQ(t_sim(2, draws, c), 0);
    CHECK_EQ(t_sim(1, draws_later, d), 0);
    CHECK_MEM_EQ(a, b, 16);
    CHECK_MEM_EQ(a, d, 16);
    CHECK(memcmp(a, c, 16) != 0);
}

static void runs_another(const struct bz_os *os, void *arg)
{
    (void)os;
    CHECK_EQ(bz_sim_run(&(struct bz_sim_config){.seed = 1}, draws, arg, NULL), -EBUSY);
}

TEST(keeper, one_simulation_at_a_time)
{
    unsigned char bytes[16];
    CHECK_EQ(t_sim(1, runs_another, bytes), 0);
    CHECK_EQ(t_sim(1, draws, bytes), 0);
}

TEST(keeper, a_nonsensical_configuration_is_refused)
{
    struct bz_sim_result r = {.steps = 7};
    CHECK_EQ(t_sim_with((struct bz_sim_config){.cpus = -1}, draws, NULL, &r), -EINVAL);
    CHECK_EQ(r.steps, (uint64_t)0);
    CHECK_EQ(t_sim_with((struct bz_sim_config){.mode = (enum bz_sim_mode)9}, draws, NULL, NULL),
             -EINVAL);
    CHECK_EQ(t_sim_with((struct bz_sim_config){.mode = (enum bz_sim_mode) - 1}, draws, NULL, NULL),
             -EINVAL);
    CHECK_EQ(t_sim_with((struct bz_sim_config){.stack_bytes = SIZE_MAX}, draws, NULL, NULL),
             -EINVAL);
    CHECK_EQ(t_sim_with((struct bz_sim_config){.stack_bytes = SIZE_MAX / 4}, draws, NULL, NULL),
             -ENOMEM);
}

/* ---- poke ---- */

static bz_os_word poked;
static atomic_int counted, counted_when_poked;

static void counts(void *arg)
{
    const struct bz_os *os = arg;
    for (counted = 0; counted < 50; counted++)
        bz_os_relax(os, 0);
}

static void is_poked(void *arg)
{
    const struct bz_os *os = arg;
    while (atomic_load(&poked) == 0)
        bz_os_wait(os, &poked, 0, BZ_OS_FOREVER);
    counted_when_poked = counted;
}

static void one_counts_and_one_waits(const struct bz_os *os, void *arg)
{
    struct bz_os_thread counter, waiter;
    (void)arg;
    CHECK_EQ(bz_os_thread_start(os, &waiter, NULL, is_poked, (void *)os), 0);
    CHECK_EQ(bz_os_thread_start(os, &counter, NULL, counts, (void *)os), 0);
    CHECK_EQ(bz_os_thread_join(os, &counter), 0);
    atomic_store(&poked, 1);
    bz_os_wake(os, &poked, 1);
    CHECK_EQ(bz_os_thread_join(os, &waiter), 0);
}

/* The later the point, the further the other has come; over all points, every step of it is met. */
TEST(keeper, a_poke_comes_at_the_point_it_was_asked_for)
{
    uint64_t seed = t_random();
    struct bz_sim_result r = {.steps = 1000};
    int last = 0, different = 0;
    for (uint64_t k = 1; k <= r.steps; k++) {
        struct bz_sim_config config = {.seed = seed, .poke = &poked, .poke_at = k};
        atomic_store(&poked, 0);
        counted = 0;
        CHECK_EQ(bz_sim_run(&config, one_counts_and_one_waits, NULL, &r), 0);
        CHECK_GE(counted_when_poked, last);
        different += counted_when_poked != last;
        last = counted_when_poked;
    }
    CHECK_GE(different, 40);
}
