/* thread/pool.h in virtual time: threads start on demand, are reused, and end when they are not
 * needed. */
#include "support/sim.h"

#include "base/alloc.h"
#include "sim/fault.h"
#include "thread/pool.h"

#define MS UINT64_C(1000000)
#define SECOND (1000 * MS)

static const blitz_allocator *libc(void)
{
    return &bz_allocator_libc;
}

struct job {
    const struct bz_os *os;
    uint64_t burn_ns;
    bz_atomic(uint32_t) is_done; /* a sleep word */
};

static void job_run(void *arg)
{
    struct job *j = arg;
    if (j->burn_ns > 0)
        bz_sim_burn(j->burn_ns);
    bz_store_release(&j->is_done, 1); /* job_wait */
    bz_os_wake(j->os, &j->is_done, 1);
}

static void job_wait(struct job *j)
{
    while (bz_load_acquire(&j->is_done) == 0) /* job_run */
        bz_os_wait(j->os, &j->is_done, 0, BZ_OS_FOREVER);
}

static void rest(const struct bz_os *os, uint64_t ns)
{
    bz_os_word never = 0;
    uint64_t until = bz_os_now(os) + ns;
    while (bz_os_wait(os, &never, 0, until) != -ETIMEDOUT)
        ;
}

static unsigned idle_of(struct bz_pool *pool)
{
    return bz_pool_figures(pool).idle;
}

static unsigned count_of(struct bz_pool *pool)
{
    return bz_pool_figures(pool).threads;
}

static void run_one_after_another(const struct bz_os *os, void *arg)
{
    struct bz_pool pool;
    (void)arg;
    bz_pool_init(&pool, os, libc(), "pool", 8, 1);
    for (int i = 0; i < 5; i++) {
        struct job j = {.os = os};
        CHECK_EQ(bz_pool_run(&pool, job_run, &j, NULL), 0);
        job_wait(&j);
        while (idle_of(&pool) == 0)
            rest(os, MS);
    }
    CHECK_EQ(count_of(&pool), 1u);
    bz_pool_fini(&pool);
}

TEST(pool, a_thread_whose_work_is_done_is_used_again)
{
    t_sim_each_seed(200, run_one_after_another, NULL);
}

static void run_many_at_once(const struct bz_os *os, void *arg)
{
    enum { N = 6, MAX = 4 };
    struct bz_pool pool;
    struct job j[N];
    int refused = 0;
    (void)arg;
    bz_pool_init(&pool, os, libc(), "pool", MAX, 1);
    for (int i = 0; i < N; i++) {
        j[i] = (struct job){.os = os, .burn_ns = MS};
        int err = bz_pool_run(&pool, job_run, &j[i], NULL);
        CHECK(err == 0 || err == -EAGAIN);
        if (err != 0) {
            refused++;
            bz_store_relaxed(&j[i].is_done, 1); /* relaxed: no thread runs it */
        }
    }
    CHECK_EQ(refused, N - MAX);
    CHECK_EQ(count_of(&pool), (unsigned)MAX);
    for (int i = 0; i < N; i++)
        job_wait(&j[i]);
    rest(os, 9 * SECOND);
    CHECK_EQ(count_of(&pool), (unsigned)MAX); /* the next call may come soon */
    rest(os, 2 * SECOND);
    CHECK_EQ(count_of(&pool), 0u); /* ten seconds without work have passed */
    struct job late = {.os = os};
    CHECK_EQ(bz_pool_run(&pool, job_run, &late, NULL), 0);
    job_wait(&late);
    bz_pool_fini(&pool);
}

TEST(pool, threads_come_on_demand_up_to_a_limit_and_go_when_idle)
{
    t_sim_each_seed(200, run_many_at_once, NULL);
}

/* The moment at which a thread's time is over is the moment at which it is given work. */
static void run_at_the_edge(const struct bz_os *os, void *arg)
{
    struct bz_pool pool;
    (void)arg;
    bz_pool_init(&pool, os, libc(), "pool", 2, 1);
    for (int i = 0; i < 4; i++) {
        struct job j = {.os = os};
        CHECK_EQ(bz_pool_run(&pool, job_run, &j, NULL), 0);
        job_wait(&j);
        rest(os, BZ_POOL_IDLE_NS);
    }
    bz_pool_fini(&pool);
}

TEST(pool, work_given_at_the_end_of_its_time_is_done)
{
    t_sim_each_seed(400, run_at_the_edge, NULL);
}

static void end_in_the_middle(const struct bz_os *os, void *arg)
{
    enum { N = 3 };
    struct bz_pool pool;
    struct job j[N];
    (void)arg;
    bz_pool_init(&pool, os, libc(), "pool", N, 1);
    for (int i = 0; i < N; i++) {
        j[i] = (struct job){.os = os, .burn_ns = (uint64_t)i * MS};
        CHECK_EQ(bz_pool_run(&pool, job_run, &j[i], NULL), 0);
    }
    bz_pool_fini(&pool);
    for (int i = 0; i < N; i++)
        CHECK_EQ(bz_load_relaxed(&j[i].is_done), 1u); /* relaxed: joined */
    CHECK_EQ(bz_pool_run(&pool, job_run, &j[0], NULL), -ESHUTDOWN);
}

/* The end waits for what runs, and takes nothing more. */
TEST(pool, all_its_threads_are_joined_in_any_state)
{
    t_sim_each_seed(300, end_in_the_middle, NULL);
}

static void with_faults(const struct bz_os *os, void *arg)
{
    struct bz_fault f;
    struct bz_pool pool;
    bz_fault_init(&f, os, NULL, arg);
    bz_pool_init(&pool, &f.os, &f.allocator, "pool", 2, 1);
    for (int i = 0; i < 3; i++) {
        struct job j = {.os = os};
        int err = bz_pool_run(&pool, job_run, &j, NULL);
        CHECK(err == 0 || err == -EAGAIN || err == -ENOMEM);
        if (err == 0)
            job_wait(&j);
        rest(os, BZ_POOL_IDLE_NS);
    }
    bz_pool_fini(&pool);
    struct bz_fault_books books = bz_fault_books(&f);
    CHECK_EQ(books.threads, 0);
    CHECK_EQ(books.blocks, 0);
}

/* Bug class 30: a thread or its memory is refused, and nothing is left behind. */
TEST(pool, bug_30_a_refused_thread_leaves_nothing_behind)
{
    for (uint64_t nth = 1; nth <= 6; nth++) {
        struct bz_fault_plan plan = {.kind = BZ_FAULT_ANY, .nth = nth};
        t_watch("call %d fails", (int)nth);
        CHECK_EQ(t_sim(t_random(), with_faults, &plan), 0);
    }
}
