/*
 * The simulator as a tool: runs repeat from their seed, every order is found, and time is shared as
 * it should be.
 */
#include <stdatomic.h>
#include <unistd.h>

#include "support/sanitizers.h"
#include "support/sim.h"

#define MS UINT64_C(1000000)

static void sleep_until(const struct bz_os *os, uint64_t until)
{
    bz_os_word word = 0;
    while (bz_os_wait(os, &word, 0, until) != -ETIMEDOUT)
        ;
}

/* ---- repeatable ---- */

/* Something of everything: four threads, a lock on a word, sleeps, spins, delays, burning, dice. */
struct medley {
    const struct bz_os *os;
    bz_os_word lock;
    atomic_int done;
    uint64_t sum;
};

static void medley_lock(struct medley *m)
{
    uint32_t was = 0;
    for (unsigned round = 0; round < 3; round++) {
        was = 0;
        if (atomic_compare_exchange_strong(&m->lock, &was, 1))
            return;
        bz_os_relax(m->os, round);
    }
    while (atomic_exchange(&m->lock, 2) != 0)
        (void)bz_os_wait(m->os, &m->lock, 2, BZ_OS_FOREVER);
}

static void medley_unlock(struct medley *m)
{
    bz_os_delay_here(m->os, BZ_OS_AT_LOCK);
    if (atomic_exchange(&m->lock, 0) == 2)
        bz_os_wake(m->os, &m->lock, 1);
}

static void medley_thread(void *arg)
{
    struct medley *m = arg;
    for (uint64_t i = 0; i < 20; i++) {
        unsigned char dice;
        medley_lock(m);
        CHECK_EQ(bz_os_entropy(m->os, &dice, 1), 0);
        m->sum += dice + i;
        bz_sim_trace(m->sum);
        if (dice % 4 == 0)
            t_burn(dice * 1000u);
        medley_unlock(m);
        sleep_until(m->os, bz_os_now(m->os) + dice);
        bz_os_delay_here(m->os, BZ_OS_AT_PUBLISH);
        CHECK_EQ(bz_os_barrier(m->os), 0);
    }
    atomic_fetch_add(&m->done, 1);
}

static void medley(const struct bz_os *os, void *arg)
{
    struct medley m = {.os = os};
    struct bz_os_thread t[4];
    (void)arg;
    for (int i = 0; i < 4; i++)
        CHECK_EQ(bz_os_thread_start(os, &t[i], NULL, medley_thread, &m), 0);
    for (int i = 0; i < 4; i++)
        CHECK_EQ(bz_os_thread_join(os, &t[i]), 0);
    CHECK_EQ(atomic_load(&m.done), 4);
}

static uint64_t hash_of(uint64_t seed)
{
    struct bz_sim_result r;
    CHECK_EQ(t_sim_with((struct bz_sim_config){.seed = seed}, medley, NULL, &r), 0);
    return r.hash;
}

/* When told to by the environment, this program prints one hash and ends: the other process. */
#define ASKED_SEED "T_SIM_PRINT_HASH_OF"
__attribute__((constructor)) static void print_hash_if_asked(void)
{
    const char *seed = getenv(ASKED_SEED);
    struct bz_sim_result r;
    if (seed == NULL)
        return;
    unsetenv(ASKED_SEED);
    struct bz_sim_config config = {.seed = strtoull(seed, NULL, 0)};
    if (bz_sim_run(&config, medley, NULL, &r) != 0)
        _exit(1);
    printf("%llx\n", (unsigned long long)r.hash);
    fflush(stdout);
    _exit(0);
}

static uint64_t hash_in_another_process(uint64_t seed)
{
    char text[64] = "", command[64];
    snprintf(text, sizeof text, "0x%llx", (unsigned long long)seed);
    CHECK_EQ(setenv(ASKED_SEED, text, 1), 0);
    snprintf(command, sizeof command, "exec /proc/%d/exe", (int)getpid());
    FILE *pipe = popen(command, "r"); /* a fresh process: other addresses for everything */
    CHECK_NOT_NULL(pipe);
    CHECK_NOT_NULL(fgets(text, sizeof text, pipe));
    CHECK_EQ(pclose(pipe), 0);
    CHECK_EQ(unsetenv(ASKED_SEED), 0);
    return strtoull(text, NULL, 16);
}

TEST(schedule, the_same_seed_gives_the_same_run)
{
    for (uint64_t seed = 0; seed < 30; seed++)
        CHECK_EQ(hash_of(seed), hash_of(seed));
}

TEST(schedule, the_same_seed_gives_the_same_run_in_two_processes)
{
    t_skip_if_emulated("cannot start this program again");
    for (uint64_t seed = 0; seed < 6; seed++) {
        uint64_t here = hash_of(seed);
        CHECK_EQ(hash_in_another_process(seed), here);
        CHECK_EQ(hash_in_another_process(seed), here);
    }
    t_note("seed 5: hash 0x%016llx in three processes", (unsigned long long)hash_of(5));
}

TEST(schedule, other_seeds_give_other_runs)
{
    uint64_t seen[200];
    for (uint64_t seed = 0; seed < 200; seed++) {
        seen[seed] = hash_of(seed);
        for (uint64_t i = 0; i < seed; i++)
            CHECK_NE(seen[i], seen[seed]);
    }
}

static void traces_a_number(const struct bz_os *os, void *arg)
{
    (void)os;
    bz_sim_trace(*(uint64_t *)arg);
}

TEST(schedule, observations_of_the_scenario_are_part_of_the_hash)
{
    struct bz_sim_result a, b;
    uint64_t one = 1, two = 2;
    CHECK_EQ(t_sim_with((struct bz_sim_config){.seed = 1}, traces_a_number, &one, &a), 0);
    CHECK_EQ(t_sim_with((struct bz_sim_config){.seed = 1}, traces_a_number, &two, &b), 0);
    CHECK_NE(a.hash, b.hash);
}

TEST(schedule, both_ways_of_choosing_end_every_run)
{
    for (uint64_t seed = 0; seed < 50; seed++) {
        struct bz_sim_config config = {.seed = seed, .mode = BZ_SIM_RANDOM};
        CHECK_EQ(t_sim_with(config, medley, NULL, NULL), 0);
        config.mode = BZ_SIM_PRIORITY;
        CHECK_EQ(t_sim_with(config, medley, NULL, NULL), 0);
    }
}

/* ---- every order is found ---- */

struct two {
    const struct bz_os *os;
    char order[8];
    atomic_int count;
};

static void writes_a(void *arg)
{
    struct two *two = arg;
    for (int i = 0; i < 2; i++) {
        bz_os_delay_here(two->os, BZ_OS_AT_PUBLISH);
        two->order[atomic_fetch_add(&two->count, 1)] = 'a';
    }
}
static void writes_b(void *arg)
{
    struct two *two = arg;
    for (int i = 0; i < 2; i++) {
        bz_os_delay_here(two->os, BZ_OS_AT_PUBLISH);
        two->order[atomic_fetch_add(&two->count, 1)] = 'b';
    }
}

static void two_write(const struct bz_os *os, void *arg)
{
    struct two *two = arg;
    struct bz_os_thread a, b;
    memset(two, 0, sizeof *two);
    two->os = os;
    CHECK_EQ(bz_os_thread_start(os, &a, NULL, writes_a, two), 0);
    CHECK_EQ(bz_os_thread_start(os, &b, NULL, writes_b, two), 0);
    CHECK_EQ(bz_os_thread_join(os, &a), 0);
    CHECK_EQ(bz_os_thread_join(os, &b), 0);
}

/* Delay points are choices: without that, simulation would explore nothing. */
TEST(schedule, all_six_orders_of_two_times_two_steps_are_found)
{
    static const char *const orders[] = {"aabb", "abab", "abba", "baab", "baba", "bbaa"};
    for (int mode = BZ_SIM_RANDOM; mode <= BZ_SIM_PRIORITY; mode++) {
        int seen[6] = {0};
        for (uint64_t seed = 0; seed < 2000; seed++) {
            struct two two;
            CHECK_EQ(
                t_sim_with((struct bz_sim_config){.seed = seed, .mode = (enum bz_sim_mode)mode},
                           two_write, &two, NULL),
                0);
            for (int i = 0; i < 6; i++)
                seen[i] += strcmp(two.order, orders[i]) == 0;
        }
        for (int i = 0; i < 6; i++)
            CHECK_GT(seen[i], 0);
    }
}

/* ---- time ---- */

struct alarm {
    const struct bz_os *os;
    uint64_t at, rang;
    atomic_int *next;
    int place;
};

static void rings(void *arg)
{
    struct alarm *a = arg;
    sleep_until(a->os, a->at);
    a->rang = bz_os_now(a->os);
    a->place = atomic_fetch_add(a->next, 1);
}

static void alarms_ring(const struct bz_os *os, void *arg)
{
    static const uint64_t after_ms[] = {30, 10, 50, 20, 40, 3600000};
    struct alarm a[6];
    struct bz_os_thread t[6];
    atomic_int next = 0;
    uint64_t start = bz_os_now(os);
    (void)arg;
    for (int i = 0; i < 6; i++) {
        a[i] = (struct alarm){.os = os, .at = start + after_ms[i] * MS, .next = &next};
        CHECK_EQ(bz_os_thread_start(os, &t[i], NULL, rings, &a[i]), 0);
    }
    for (int i = 0; i < 6; i++)
        CHECK_EQ(bz_os_thread_join(os, &t[i]), 0);
    for (int i = 0; i < 6; i++) {
        CHECK_GE(a[i].rang, a[i].at);
        CHECK_LT(a[i].rang, a[i].at + 10000); /* virtual: only what reading the clock costs */
        for (int j = 0; j < 6; j++)
            CHECK_EQ(after_ms[i] < after_ms[j], a[i].place < a[j].place && i != j);
    }
}

TEST(schedule, sleepers_wake_in_the_order_of_their_deadlines)
{
    t_sim_each_seed(100, alarms_ring, NULL);
}

struct hog {
    const struct bz_os *os;
    uint64_t work, started, ended, used;
};

static void hogs(void *arg)
{
    struct hog *h = arg;
    h->started = bz_os_now(h->os);
    t_burn(h->work);
    h->ended = bz_os_now(h->os);
    h->used = bz_os_cpu_time(h->os);
}

struct hogs {
    int count;
    uint64_t want; /* how long all of them together take */
};

static void hogs_burn(const struct bz_os *os, void *arg)
{
    struct hogs *want = arg;
    struct hog h[8];
    struct bz_os_thread t[8];
    uint64_t last = 0, start = bz_os_now(os);
    for (int i = 0; i < want->count; i++) {
        h[i] = (struct hog){.os = os, .work = 10 * MS};
        CHECK_EQ(bz_os_thread_start(os, &t[i], NULL, hogs, &h[i]), 0);
    }
    for (int i = 0; i < want->count; i++) {
        CHECK_EQ(bz_os_thread_join(os, &t[i]), 0);
        CHECK_EQ(h[i].used, 10 * MS);
        last = h[i].ended > last ? h[i].ended : last;
    }
    CHECK_GE(last - start, want->want);
    CHECK_LE(last - start, want->want + MS / 100);
}

/* Hogs burn beside each other as far as there are CPUs, and share them beyond. */
TEST(schedule, burning_threads_share_the_cpus)
{
    static const struct {
        int cpus;
        struct hogs hogs;
    } rows[] = {{2, {1, 10 * MS}}, {2, {2, 10 * MS}}, {2, {3, 15 * MS}}, {2, {8, 40 * MS}},
                {1, {3, 30 * MS}}, {4, {4, 10 * MS}}, {3, {7, 23333333}}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        for (uint64_t seed = 0; seed < 20; seed++) {
            struct hogs want = rows[i].hogs;
            CHECK_EQ(t_sim_with((struct bz_sim_config){.seed = seed, .cpus = rows[i].cpus},
                                hogs_burn, &want, NULL),
                     0);
        }
    }
}

static void sleeps_beside_hogs(const struct bz_os *os, void *arg)
{
    struct hog h[3];
    struct bz_os_thread t[3];
    uint64_t used;
    (void)arg;
    for (int i = 0; i < 3; i++) {
        h[i] = (struct hog){.os = os, .work = 1000 * MS};
        CHECK_EQ(bz_os_thread_start(os, &t[i], NULL, hogs, &h[i]), 0);
    }
    uint64_t until = bz_os_now(os) + 20 * MS;
    sleep_until(os, until);
    CHECK_LT(bz_os_now(os), until + MS / 100);
    CHECK_EQ(bz_os_thread_cpu_time(os, &t[0], &used), 0);
    CHECK_GE(used, 12 * MS); /* two CPUs for three hogs: two thirds of 20 ms each */
    CHECK_LE(used, 14 * MS);
    CHECK_LT(bz_os_cpu_time(os), MS / 100);
    for (int i = 0; i < 3; i++)
        CHECK_EQ(bz_os_thread_join(os, &t[i]), 0);
}

TEST(schedule, a_sleeper_is_not_held_up_by_hogs)
{
    for (uint64_t seed = 0; seed < 50; seed++)
        CHECK_EQ(t_sim_with((struct bz_sim_config){.seed = seed, .cpus = 2}, sleeps_beside_hogs,
                            NULL, NULL),
                 0);
}

static void burns_for_ever(void *arg)
{
    (void)arg;
    t_burn(UINT64_MAX);
}

static void outlives_a_hog(const struct bz_os *os, void *arg)
{
    struct bz_os_thread t[3];
    (void)arg;
    for (int i = 0; i < 3; i++)
        CHECK_EQ(bz_os_thread_start(os, &t[i], NULL, burns_for_ever, NULL), 0);
    sleep_until(os, bz_os_now(os) + 3600 * 1000 * MS);
    for (int i = 0; i < 3; i++)
        (void)bz_os_thread_join(os, &t[i]);
}

/* The end of time is an end too: the clock does not wrap. */
TEST(schedule, an_endless_hog_burns_to_the_end_of_time)
{
    struct bz_sim_result r;
    CHECK_EQ(t_sim_with((struct bz_sim_config){.seed = 3, .cpus = 2}, outlives_a_hog, NULL, &r), 0);
    CHECK_GT(r.ns, UINT64_MAX / 4);
}

static void watches_the_clock(const struct bz_os *os, void *arg)
{
    uint64_t until = bz_os_now(os) + MS;
    (void)arg;
    while (bz_os_now(os) < until)
        ;
    until = bz_os_now(os) + 10 * MS;
    for (unsigned round = 0; bz_os_now(os) < until; round++)
        bz_os_relax(os, round);
}

TEST(schedule, a_loop_that_watches_the_clock_comes_to_an_end)
{
    t_sim_each_seed(20, watches_the_clock, NULL);
}
