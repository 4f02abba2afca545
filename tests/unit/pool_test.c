/*
 * thread/pool.h on real threads: how many run at once, what waits, when idle threads leave, what is counted.
 *
 * tests/sim/pool_sim.c and pool_work_sim.c drive the same code through many schedules; here the
 * threads, the futexes and the joins are the system's. The idle time of ten seconds is measured by
 * a backend with a faster clock, so that no test has to wait that long.
 */
#include "harness.h"
#include "support/mallocs.h"
#include "support/sanitizers.h"
#include "support/test_alloc.h"

#include <sched.h>

#include "blitz.h"
#include "proc/state.h"
#include "thread/pool.h"

#define SECOND UINT64_C(1000000000)

/* ---- a gate that work waits at ---- */

struct gate {
    const struct bz_os *os;
    bz_os_word is_open;
    bz_atomic(uint32_t) inside; /* threads at the gate now */
    bz_atomic(uint32_t) passed; /* calls that have returned from it */
};

static void gate_pass(struct gate *g)
{
    bz_fetch_add_relaxed(&g->inside, 1);      /* relaxed: a count */
    while (bz_load_acquire(&g->is_open) == 0) /* gate_open */
        bz_os_wait(g->os, &g->is_open, 0, BZ_OS_FOREVER);
    bz_fetch_sub_relaxed(&g->inside, 1); /* relaxed: a count */
    bz_fetch_add_release(&g->passed, 1); /* gate_await */
}

static void gate_open(struct gate *g)
{
    bz_store_release(&g->is_open, 1); /* gate_pass */
    bz_os_wake(g->os, &g->is_open, UINT32_MAX);
}

static void gate_await(struct gate *g, uint32_t count)
{
    while (bz_load_acquire(&g->passed) < count) /* gate_pass */
        sched_yield();
}

struct piece {
    struct bz_work work;
    struct gate *gate;
    unsigned place; /* its place among those that began; 0: it has not */
};

static bz_atomic(unsigned) begun;

static void piece_run(struct bz_work *w)
{
    struct piece *p = BZ_CONTAINER_OF(w, struct piece, work);
    p->place = 1 + bz_fetch_add_relaxed(&begun, 1); /* relaxed: a count; gate_await orders it */
    gate_pass(p->gate);
}

static struct bz_work *piece_of(struct piece *p, struct gate *g)
{
    *p = (struct piece){.work.run = piece_run, .gate = g};
    return &p->work;
}

static void machine_run(void *arg)
{
    gate_pass(arg);
}

/* Wait until the threads that have nothing to do are `count`. */
static void await_idle(struct bz_pool *pool, unsigned count)
{
    while (bz_pool_figures(pool).idle != count)
        sched_yield();
}

/* ---- how many, and in which order ---- */

enum { PIECES = 10, LIMIT = 6, MACHINES = 1, RESERVE = 2, WORKERS = LIMIT - MACHINES - RESERVE };

/* The limit leaves room for machines; the rest of the work waits in the queue. */
TEST(pool_threads, work_runs_up_to_the_limit_and_the_rest_waits_in_line)
{
    struct gate g = {.os = &bz_os_system};
    struct piece piece[PIECES];
    struct bz_pool pool;
    bz_atomic_init(&begun, 0);
    bz_pool_init(&pool, &bz_os_system, &bz_allocator_libc, "pool", LIMIT, MACHINES);
    for (int i = 0; i < PIECES; i++)
        CHECK_EQ(bz_pool_work(&pool, piece_of(&piece[i], &g)), 0);
    while (bz_load_relaxed(&g.inside) < WORKERS) /* relaxed: a count */
        sched_yield();

    struct bz_pool_figures f = bz_pool_figures(&pool);
    CHECK_EQ(f.threads, (unsigned)WORKERS);
    CHECK_EQ(f.idle, 0u);
    CHECK_EQ(f.pending, (unsigned)(PIECES - WORKERS));
    CHECK_EQ(f.begun, (uint64_t)WORKERS);
    bz_pool_check(&pool);

    gate_open(&g);
    gate_await(&g, PIECES);
    await_idle(&pool, WORKERS);
    f = bz_pool_figures(&pool);
    CHECK_EQ(f.threads, (unsigned)WORKERS);
    CHECK_EQ(f.pending, 0u);
    CHECK_EQ(f.begun, (uint64_t)PIECES);
    bz_pool_check(&pool);
    bz_pool_fini(&pool);
}

/* Work never takes the threads that machines need. */
TEST(pool_threads, a_machine_gets_a_thread_while_work_waits)
{
    struct gate g = {.os = &bz_os_system};
    struct piece piece[PIECES];
    struct bz_pool pool;
    bz_pool_init(&pool, &bz_os_system, &bz_allocator_libc, "pool", LIMIT, MACHINES);
    for (int i = 0; i < PIECES; i++)
        CHECK_EQ(bz_pool_work(&pool, piece_of(&piece[i], &g)), 0);
    for (int i = 0; i < MACHINES + RESERVE; i++)
        CHECK_EQ(bz_pool_run(&pool, machine_run, &g, NULL), 0);
    CHECK_EQ(bz_pool_run(&pool, machine_run, &g, NULL), -EAGAIN); /* the limit */
    CHECK_EQ(bz_pool_figures(&pool).threads, (unsigned)LIMIT);
    gate_open(&g);
    gate_await(&g, PIECES + MACHINES + RESERVE);
    bz_pool_fini(&pool);
}

TEST(pool_threads, an_idle_thread_is_used_again)
{
    struct gate g = {.os = &bz_os_system};
    struct piece piece;
    struct bz_pool pool;
    gate_open(&g);
    bz_pool_init(&pool, &bz_os_system, &bz_allocator_libc, "pool", LIMIT, MACHINES);
    for (uint32_t i = 0; i < 50; i++) {
        CHECK_EQ(bz_pool_work(&pool, piece_of(&piece, &g)), 0);
        gate_await(&g, i + 1);
        await_idle(&pool, 1);
    }
    CHECK_EQ(bz_pool_figures(&pool).threads, 1u);
    bz_pool_fini(&pool);
}

/* Shutdown runs the queued work, then joins every thread in any state. */
TEST(pool_threads, shutdown_runs_waiting_work_and_joins_all_threads)
{
    struct gate g = {.os = &bz_os_system};
    struct piece piece[PIECES];
    struct bz_pool pool;
    gate_open(&g);
    bz_pool_init(&pool, &bz_os_system, &bz_allocator_libc, "pool", LIMIT, MACHINES);
    for (int i = 0; i < PIECES; i++)
        CHECK_EQ(bz_pool_work(&pool, piece_of(&piece[i], &g)), 0);
    bz_pool_fini(&pool);
    CHECK_EQ(bz_load_relaxed(&g.passed), (uint32_t)PIECES); /* relaxed: joined */
    CHECK_EQ(bz_pool_work(&pool, piece_of(&piece[0], &g)), -ESHUTDOWN);
}

/* ---- when idle threads leave ---- */

enum { RATE = 50 }; /* seconds of the fast clock in one of the system's */

static uint64_t fast_now(const struct bz_os *os)
{
    (void)os;
    return bz_os_now(&bz_os_system) * RATE;
}

static int fast_wait(const struct bz_os *os, bz_os_word *word, uint32_t expected, uint64_t until)
{
    (void)os;
    uint64_t real = until == BZ_OS_FOREVER ? BZ_OS_FOREVER : until / RATE + 1;
    return bz_os_wait(&bz_os_system, word, expected, real);
}

static struct bz_os fast_os(void)
{
    struct bz_os os = bz_os_system;
    os.name = "fast";
    os.now = fast_now;
    os.wait = fast_wait;
    return os;
}

/* Unneeded threads end after ten seconds: not earlier, because the next call may come soon, and
 * not never. Each thread that ends joins the one that ended before it, so at most one is left to
 * join. */
TEST(pool_threads, idle_threads_leave_after_ten_seconds)
{
    struct bz_os os = fast_os();
    struct gate g = {.os = &os};
    struct piece piece[WORKERS];
    struct bz_pool pool;
    bz_pool_init(&pool, &os, &bz_allocator_libc, "pool", LIMIT, MACHINES);
    for (int i = 0; i < WORKERS; i++)
        CHECK_EQ(bz_pool_work(&pool, piece_of(&piece[i], &g)), 0);
    uint64_t opened = bz_os_now(&os); /* none is idle before */
    gate_open(&g);
    gate_await(&g, WORKERS);
    while (bz_pool_figures(&pool).threads == WORKERS)
        sched_yield();
    CHECK_GE(bz_os_now(&os) - opened, 10 * SECOND);
    while (bz_pool_figures(&pool).threads > 0)
        sched_yield();

    bz_lock_take(&pool.lock, &os);
    size_t unjoined = bz_list_check(&pool.left);
    bz_lock_drop(&pool.lock, &os);
    CHECK_LE(unjoined, 1u);

    CHECK_EQ(bz_pool_work(&pool, piece_of(&piece[0], &g)), 0); /* a new thread comes on demand */
    gate_await(&g, WORKERS + 1);
    bz_pool_fini(&pool);
}

/* ---- memory ---- */

/* Work is linked through its owner's memory; only a new thread costs an allocation. One thread does all of
 * it, so the order is certain, too. */
TEST(pool_threads, work_that_waits_in_line_allocates_nothing_and_runs_in_order)
{
    enum { MANY = 1000 };
    static struct piece piece[MANY];
    struct test_alloc memory = TEST_ALLOC;
    blitz_allocator alloc = test_allocator(&memory);
    struct gate g = {.os = &bz_os_system};
    struct bz_pool pool;
    bz_atomic_init(&begun, 0);
    bz_pool_init(&pool, &bz_os_system, &alloc, "pool", 2, 1); /* one thread works */
    CHECK_EQ(bz_pool_work(&pool, piece_of(&piece[0], &g)), 0);
    while (bz_load_relaxed(&g.inside) == 0) /* relaxed: a count. The thread has started */
        sched_yield();
    CHECK_EQ(memory.calls, 1u); /* the thread */
    uint64_t mallocs = t_count_mallocs();
    for (int i = 1; i < MANY; i++)
        CHECK_EQ(bz_pool_work(&pool, piece_of(&piece[i], &g)), 0);
    CHECK_EQ(bz_pool_figures(&pool).pending, (unsigned)(MANY - 1));
    gate_open(&g);
    gate_await(&g, MANY);
    CHECK_EQ(t_count_mallocs() - mallocs, 0u);
    CHECK_EQ(memory.calls, 1u);
    for (int i = 0; i < MANY; i++)
        CHECK_EQ(piece[i].place, (unsigned)(i + 1));
    bz_pool_fini(&pool);
    CHECK_EQ(memory.live, 0u);
}

/* ---- the figures of a runtime ---- */

struct calls {
    struct gate gate;
    unsigned count;
};

static int call_waits(void *arg)
{
    gate_pass(arg);
    return 0;
}

static int makes_a_call(void *arg)
{
    return blitz_blocking(call_waits, arg);
}

static blitz_stats figures(void)
{
    blitz_stats s;
    CHECK_EQ(blitz_stats_read(NULL, &s), 0);
    return s;
}

static blitz_task *task[600];

static void make_calls(struct calls *c)
{
    blitz_stats s;
    for (unsigned i = 0; i < c->count; i++)
        CHECK_EQ(blitz_spawn(makes_a_call, &c->gate, NULL, &task[i]), 0);
    do { /* until each has a thread or is queued */
        CHECK_EQ(blitz_sleep(BLITZ_MS), 0);
        s = figures();
    } while (s.blocking + s.blocking_pending < c->count);
}

static void end_calls(struct calls *c)
{
    gate_open(&c->gate);
    for (unsigned i = 0; i < c->count; i++)
        CHECK_EQ(blitz_task_join(task[i], NULL, BLITZ_FOREVER), 0);
}

static int waits_and_is_counted(void *arg)
{
    struct calls *c = arg;
    make_calls(c);
    blitz_stats s = figures();
    CHECK_EQ(s.blocking, (uint64_t)WORKERS);
    CHECK_EQ(s.blocking_pending, (uint64_t)(c->count - WORKERS));
    CHECK_GE(s.threads, (uint64_t)WORKERS + 1);
    end_calls(c);
    do {
        CHECK_EQ(blitz_sleep(BLITZ_MS), 0);
        s = figures();
    } while (s.threads_idle < WORKERS);
    CHECK_EQ(s.blocking_pending, 0u);
    CHECK_EQ(s.blocking, (uint64_t)c->count);
    CHECK_LT(s.threads_idle, s.threads); /* this task's worker is not idle */
    return 0;
}

TEST(pool_threads, waiting_calls_and_idle_threads_are_in_the_statistics)
{
    struct calls c = {.gate = {.os = &bz_os_system}, .count = PIECES};
    blitz_runtime_opts config = {.procs = MACHINES, .threads_max = LIMIT};
    CHECK_EQ(blitz_run(waits_and_is_counted, &c, &config), 0);
}

/* ---- the default limit ---- */

enum { DEFAULT_LIMIT = 512 };

static int makes_600_calls(void *arg)
{
    struct calls *c = arg;
    make_calls(c);
    blitz_stats s = figures();
    t_note("%llu threads, %llu calls at once", (unsigned long long)s.threads,
           (unsigned long long)s.blocking);
    CHECK_LE(s.threads, (uint64_t)DEFAULT_LIMIT);
    CHECK_GE(s.blocking, (uint64_t)DEFAULT_LIMIT - 12); /* the rest is for machines */
    CHECK_GE(s.blocking_pending, (uint64_t)(c->count - DEFAULT_LIMIT));
    end_calls(c);
    return 0;
}

/* Programs that make hundreds of blocking calls at once rely on it. */
TEST(pool_threads, five_hundred_calls_run_at_once_by_default)
{
    struct calls c = {.gate = {.os = &bz_os_system}, .count = 600};
    if (T_ASAN || T_TSAN)
        t_skip("a sanitizer needs too much memory for 512 threads");
    t_skip_under_valgrind("has room for 500 threads");
    t_skip_if_emulated("needs too long for 512 threads");
    unsetenv("BLITZ_THREADS_MAX");
    CHECK_EQ(blitz_run(makes_600_calls, &c, &(blitz_runtime_opts){.procs = 1}), 0);
}

/* The same without the threads, for builds that cannot have so many. */
TEST(pool_threads, the_limit_is_512_threads_or_twice_the_procs)
{
    struct bz_settings s;
    unsetenv("BLITZ_THREADS_MAX");
    for (unsigned procs = 1; procs <= 300; procs += 23) {
        CHECK_EQ(bz_settings_read(&s, &bz_os_system, &(blitz_runtime_opts){.procs = procs}), 0);
        CHECK_EQ(s.threads_max, procs < 256 ? 512u : 2 * procs);
    }
}
