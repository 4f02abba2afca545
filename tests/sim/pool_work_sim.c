/*
 * thread/pool.h, pieces of work: in virtual time, on many seeds. Work waits its turn and none is
 * lost, for any refused resource; machines never wait behind it.
 */
#include "support/sim.h"

#include "base/alloc.h"
#include "sim/fault.h"
#include "thread/pool.h"

#define MS UINT64_C(1000000)

enum { MANY = 12 };

struct piece {
    struct bz_work work;
    struct day *day;
    uint64_t burn_ns;
    int begun; /* its place among those that were begun; 0: it was not */
};

/* Counts of all work items. One simulated thread runs at a time, so plain counts would suffice
 * except for the sleeper's word. */
struct day {
    const struct bz_os *os;
    bz_os_word done;
    bz_atomic(uint32_t) begun;
    struct piece piece[MANY];
};

static void piece_run(struct bz_work *w)
{
    struct piece *p = BZ_CONTAINER_OF(w, struct piece, work);
    struct day *d = p->day;
    p->begun = 1 + (int)bz_fetch_add_relaxed(&d->begun, 1); /* relaxed: a count */
    if (p->burn_ns > 0)
        bz_sim_burn(p->burn_ns);
    bz_fetch_add_release(&d->done, 1); /* await_all */
    bz_os_wake(d->os, &d->done, 1);
}

static struct bz_work *piece_of(struct day *d, int i, uint64_t burn_ns)
{
    d->piece[i] = (struct piece){.work.run = piece_run, .day = d, .burn_ns = burn_ns};
    return &d->piece[i].work;
}

static void await_all(struct day *d, uint32_t count)
{
    uint32_t done;
    while ((done = bz_load_acquire(&d->done)) < count) /* piece_run */
        bz_os_wait(d->os, &d->done, done, BZ_OS_FOREVER);
}

static void run_in_a_line(const struct bz_os *os, void *arg)
{
    struct day d = {.os = os};
    struct bz_pool pool;
    (void)arg;
    bz_pool_init(&pool, os, &bz_allocator_libc, "pool", 2, 1); /* one machine, one that works */
    for (int i = 0; i < MANY; i++) {
        CHECK_EQ(bz_pool_work(&pool, piece_of(&d, i, MS)), 0);
        bz_pool_check(&pool);
    }
    await_all(&d, MANY);
    for (int i = 0; i < MANY; i++)
        CHECK_EQ(d.piece[i].begun, i + 1);
    struct bz_pool_figures f = bz_pool_figures(&pool);
    CHECK_EQ(f.pending, 0u);
    CHECK_EQ(f.begun, (uint64_t)MANY);
    CHECK_EQ(f.threads, 1u);
    bz_pool_fini(&pool);
}

TEST(pool_work, beyond_the_limit_it_waits_in_a_line)
{
    t_sim_each_seed(200, run_in_a_line, NULL);
}

static void run_machine(void *arg)
{
    struct day *d = arg;
    bz_sim_burn(20 * MS);
    bz_fetch_add_release(&d->done, 1); /* await_all */
    bz_os_wake(d->os, &d->done, 1);
}

static void run_beside_machines(const struct bz_os *os, void *arg)
{
    enum { MACHINES = 3, MAX = 8, RESERVE = 2 };
    struct day d = {.os = os};
    struct bz_pool pool;
    (void)arg;
    bz_pool_init(&pool, os, &bz_allocator_libc, "pool", MAX, MACHINES);
    for (int i = 0; i < MANY; i++)
        CHECK_EQ(bz_pool_work(&pool, piece_of(&d, i, MS)), 0);
    CHECK_EQ(bz_pool_figures(&pool).threads, (unsigned)(MAX - MACHINES - RESERVE));
    for (int i = 0; i < MACHINES + RESERVE; i++) {
        const struct bz_os_thread *on = NULL;
        CHECK_EQ(bz_pool_run(&pool, run_machine, &d, &on), 0);
        CHECK_NOT_NULL(on);
        bz_pool_check(&pool);
    }
    await_all(&d, MANY + MACHINES + RESERVE);
    bz_pool_fini(&pool);
}

/* A proc without a thread stalls all its tasks; waiting work delays only its caller. */
TEST(pool_work, a_machine_never_waits_behind_it)
{
    t_sim_each_seed(200, run_beside_machines, NULL);
}

/* Machines have taken more than their share: work uses one thread, and continues. */
static void run_beside_too_many(const struct bz_os *os, void *arg)
{
    enum { MAX = 4 };
    struct day d = {.os = os};
    struct bz_pool pool;
    (void)arg;
    bz_pool_init(&pool, os, &bz_allocator_libc, "pool", MAX, 1);
    CHECK_EQ(bz_pool_work(&pool, piece_of(&d, 0, MS)), 0);
    for (int i = 1; i < MAX; i++)
        CHECK_EQ(bz_pool_run(&pool, run_machine, &d, NULL), 0);
    for (int i = 1; i < MANY; i++)
        CHECK_EQ(bz_pool_work(&pool, piece_of(&d, i, MS)), 0);
    CHECK_EQ(bz_pool_run(&pool, run_machine, &d, NULL), -EAGAIN);
    await_all(&d, MANY + MAX - 1);
    bz_pool_check(&pool);
    bz_pool_fini(&pool);
}

TEST(pool_work, a_thread_works_while_the_queue_is_not_empty)
{
    t_sim_each_seed(200, run_beside_too_many, NULL);
}

static void run_withdrawn(const struct bz_os *os, void *arg)
{
    struct day d = {.os = os};
    struct bz_pool pool;
    int withdrawn = 0;
    (void)arg;
    bz_pool_init(&pool, os, &bz_allocator_libc, "pool", 3, 1);
    for (int i = 0; i < MANY; i++)
        CHECK_EQ(bz_pool_work(&pool, piece_of(&d, i, MS)), 0);
    for (int i = MANY; i-- > 0;)
        if (bz_pool_withdraw(&pool, &d.piece[i].work)) {
            CHECK_EQ(d.piece[i].begun, 0);
            withdrawn++;
        }
    CHECK_GE(withdrawn, 1);
    await_all(&d, (uint32_t)(MANY - withdrawn));
    bz_pool_fini(&pool);
    CHECK_EQ(bz_load_relaxed(&d.done), (uint32_t)(MANY - withdrawn)); /* relaxed: joined */
}

TEST(pool_work, work_that_has_not_started_can_be_taken_back)
{
    t_sim_each_seed(200, run_withdrawn, NULL);
}

static void end_in_the_middle(const struct bz_os *os, void *arg)
{
    struct day d = {.os = os};
    struct bz_pool pool;
    struct piece late;
    (void)arg;
    bz_pool_init(&pool, os, &bz_allocator_libc, "pool", 3, 1);
    for (int i = 0; i < MANY; i++)
        CHECK_EQ(bz_pool_work(&pool, piece_of(&d, i, MS)), 0);
    bz_pool_fini(&pool);
    CHECK_EQ(bz_load_relaxed(&d.done), (uint32_t)MANY); /* relaxed: joined */
    CHECK_EQ(bz_pool_work(&pool, &late.work), -ESHUTDOWN);
}

TEST(pool_work, the_end_comes_when_all_is_done)
{
    t_sim_each_seed(200, end_in_the_middle, NULL);
}

/* A caller that is refused runs the work itself. */
static void with_faults(const struct bz_os *os, void *arg)
{
    struct day d = {.os = os};
    struct bz_fault f;
    struct bz_pool pool;
    bz_fault_init(&f, os, NULL, arg);
    bz_pool_init(&pool, &f.os, &f.allocator, "pool", 6, 1);
    for (int i = 0; i < MANY; i++) {
        struct bz_work *w = piece_of(&d, i, (uint64_t)(i % 3) * MS);
        int err = bz_pool_work(&pool, w);
        CHECK(err == 0 || err == -EAGAIN || err == -ENOMEM);
        if (err != 0)
            piece_run(w);
        bz_pool_check(&pool);
    }
    await_all(&d, MANY);
    bz_pool_fini(&pool);
    struct bz_fault_books books = bz_fault_books(&f);
    CHECK_EQ(books.threads, 0);
    CHECK_EQ(books.blocks, 0);
}

static void each_fault(enum bz_fault_kind kind, bool for_good)
{
    for (uint64_t nth = 1; nth <= 6; nth++)
        for (int i = 0; i < 20; i++) {
            struct bz_fault_plan plan = {.kind = kind, .nth = nth, .for_good = for_good};
            uint64_t seed = t_random();
            t_watch("call %d of kind %d fails, for good: %d, seed 0x%llx", (int)nth, (int)kind,
                    for_good, (unsigned long long)seed);
            CHECK_EQ(t_sim(seed, with_faults, &plan), 0);
        }
}

/* Bug class 30: no thread, or no memory for one: the work is still done. */
TEST(pool_work, bug_30_no_thread_to_be_had_loses_no_work)
{
    each_fault(BZ_FAULT_ANY, false);
    each_fault(BZ_FAULT_THREAD, true);
    each_fault(BZ_FAULT_MEMORY, true);
}

/* ---- kept ---- */

static void rest(const struct bz_os *os, uint64_t ns)
{
    bz_os_word never = 0;
    uint64_t until = bz_os_now(os) + ns;
    while (bz_os_wait(os, &never, 0, until) != -ETIMEDOUT)
        ;
}

static void keep_some(const struct bz_os *os, void *arg)
{
    struct day d = {.os = os};
    struct bz_pool pool;
    (void)arg;
    bz_pool_init(&pool, os, &bz_allocator_libc, "pool", 8, 1);
    CHECK_EQ(bz_pool_keep(&pool), 0);
    CHECK_EQ(bz_pool_keep(&pool), 0);
    for (int i = 0; i < MANY; i++)
        CHECK_EQ(bz_pool_work(&pool, piece_of(&d, i, MS)), 0);
    await_all(&d, MANY);
    rest(os, 3 * BZ_POOL_IDLE_NS);
    CHECK_EQ(bz_pool_figures(&pool).threads, 2u); /* the others have left */
    CHECK_EQ(bz_pool_figures(&pool).idle, 2u);
    bz_pool_unkeep(&pool);
    bz_pool_unkeep(&pool);
    rest(os, 3 * BZ_POOL_IDLE_NS);
    CHECK_EQ(bz_pool_figures(&pool).threads, 0u);
    bz_pool_fini(&pool);
}

/* A worker that will need a thread gets one eventually. */
TEST(pool_work, threads_that_are_kept_for_machines_stay_and_do_no_work)
{
    t_sim_each_seed(100, keep_some, NULL);
}
