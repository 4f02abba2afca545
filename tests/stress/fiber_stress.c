/*
 * Fibers that migrate: coroutines on pooled stacks, passed between two threads at every yield by
 * the post-switch hook, which puts them in a queue the other thread takes from. Run under
 * sanitizers. The checks find code of a compiler or a library that assumes a fixed thread.
 */
#include <errno.h>
#include <unistd.h>

#include "base/bz_atomic.h"
#include "os/lock.h"
#include "os/os.h"
#include "os/self.h"
#include "support/stacks.h"
#include "support/coro.h"

enum { WORKERS = 2, FIBERS_MAX = 64 };

/* ---- two threads and a queue for each --------------------------------------------------------- */

struct fiber {
    struct bz_link link; /* in a queue */
    struct bz_coro coro;
    struct bz_stack *stack;
    int home;          /* the queue it goes to next */
    uint64_t hops;     /* to go */
    uint64_t migrated; /* hops that changed the thread */
    uint64_t stale;    /* times a plain read of errno was the other thread's */
    void *block;       /* allocated on one thread, freed on the other */
    uint64_t seed;
};

struct worker {
    int index;
    uint32_t tid;
    struct bz_lock lock;
    struct bz_chain queue; /* guarded by lock */
    struct bz_stack_cache cache;
};

static struct worker workers[WORKERS];
static struct bz_stack_pool pool;
static struct fiber fibers[FIBERS_MAX];
static bz_atomic(int) alive;
static const struct bz_os *const os = &bz_os_system;

static void queue_push(struct worker *w, struct fiber *f)
{
    bz_lock_take(&w->lock, os);
    bz_chain_push_back(&w->queue, &f->link);
    bz_lock_drop(&w->lock, os);
}

static struct fiber *queue_take(struct worker *w)
{
    bz_lock_take(&w->lock, os);
    struct bz_link *l = bz_chain_take_front(&w->queue);
    bz_lock_drop(&w->lock, os);
    return l != NULL ? BZ_CONTAINER_OF(l, struct fiber, link) : NULL;
}

/* The hook: the fiber has been left, so from this push on it may run anywhere. */
static void publish(void *arg)
{
    struct fiber *f = arg;
    queue_push(&workers[f->home], f);
}

static void worker_loop(struct worker *w)
{
    for (unsigned round = 0; bz_load_acquire(&alive) > 0; round++) { /* pairs with the sub below */
        struct fiber *f = queue_take(w);
        if (f == NULL) {
            bz_os_relax(os, round);
            continue;
        }
        round = 0;
        errno = 1000 + w->index; /* code that runs here must find this thread's errno */
        if (!bz_coro_resume(&f->coro)) {
            bz_coro_fini(&f->coro);
            bz_stack_give(&w->cache, f->stack);
            bz_fetch_sub_release(&alive, 1); /* the last one lets both loops end */
        }
    }
}

static void worker_main(void *arg, int index)
{
    struct worker *w = &workers[index];
    (void)arg;
    w->tid = bz_os_thread_id(&bz_os_system);
    bz_self_set(w);
    worker_loop(w);
    bz_self_set(NULL);
    bz_stack_cache_fini(&w->cache);
}

static void run_fibers(int count, uint64_t hops, void (*fn)(struct bz_coro *, void *))
{
    struct bz_stack_config config = {.os = os};
    CHECK_EQ(bz_stack_pool_init(&pool, &config), 0);
    for (int i = 0; i < WORKERS; i++) {
        workers[i].index = i;
        bz_lock_init(&workers[i].lock);
        bz_chain_init(&workers[i].queue);
        bz_stack_cache_init(&workers[i].cache, &pool);
    }
    bz_store_relaxed(&alive, count); /* relaxed: before the threads */
    for (int i = 0; i < count; i++) {
        struct fiber *f = &fibers[i];
        *f = (struct fiber){.home = i % WORKERS, .hops = hops, .seed = t_random()};
        CHECK_EQ(bz_stack_take(&workers[0].cache, BZ_STACK_64K, &f->stack), 0);
        bz_coro_init(&f->coro, f->stack->low, bz_stack_top(f->stack), fn, f);
        queue_push(&workers[f->home], f);
    }
    t_threads(WORKERS, worker_main, NULL);
    bz_stack_pool_check(&pool);
    bz_stack_pool_fini(&pool);
}

/* ---- bug 31 ----------------------------------------------------------------------------------- */

/* The correct way for a fiber to read errno: an opaque call. */
static BZ_NOINLINE int errno_now(void)
{
    __asm__ volatile("");
    return errno;
}

/* The wrong way: the compiler may reuse an old address of errno. TSan reports this as a race on
 * another thread's errno, so it is not instrumented. */
static inline bool errno_is_stale(int want)
{
    return !BZ_TSAN && errno != want;
}

static void check_the_thread(const struct fiber *f, const struct worker *w)
{
    CHECK_EQ(w->index, f->home);
    CHECK_EQ(w->tid, bz_os_thread_id(&bz_os_system));
    CHECK_EQ(errno_now(), 1000 + f->home);
}

static void check_the_block(struct fiber *f)
{
    size_t size = 16 + f->seed % 200;
    if (f->block != NULL) {
        CHECK_EQ(*(uint64_t *)f->block, f->seed);
        free(f->block); /* allocated on the other thread, most likely */
    }
    f->seed = f->seed * 6364136223846793005u + 1442695040888963407u;
    f->block = malloc(size);
    CHECK_NOT_NULL(f->block);
    *(uint64_t *)f->block = f->seed;
}

static void migrate(struct bz_coro *c, void *arg)
{
    struct fiber *f = arg;
    for (; f->hops > 0; f->hops--) {
        struct worker *before = bz_self_get();
        check_the_thread(f, before);
        check_the_block(f);
        f->stale += errno_is_stale(1000 + f->home); /* not yet ... */
        f->home = (f->home + 1) % WORKERS;

        bz_coro_yield_with(c, publish, f);

        struct worker *after = bz_self_get();       /* in the very function that read it before */
        f->stale += errno_is_stale(1000 + f->home); /* ... but now */
        f->migrated += after != before;
        check_the_thread(f, after);
    }
    free(f->block);
}

/*
 * Compilers keep the address of a thread-local, and of errno, over a call that resumes elsewhere.
 * bz_self_get() must always be correct; this source is also built with LTO and PIC
 * (stress_fiber_lto).
 */
TEST(fiber, bug_31_thread_identity_is_read_afresh_after_every_migration)
{
    uint64_t hops = t_scaled(20000), migrated = 0, stale = 0;
    run_fibers(16, hops, migrate);
    for (int i = 0; i < 16; i++) {
        migrated += fibers[i].migrated;
        stale += fibers[i].stale;
    }
    t_note("%llu migrations; a kept address of errno was wrong %llu times",
           (unsigned long long)migrated, (unsigned long long)stale);
    CHECK_EQ(migrated, 16 * hops);
}

/* ---- stacks that change hands ----------------------------------------------------------------- */

static BZ_NOINLINE uint64_t wander(struct bz_coro *c, struct fiber *f, int depth)
{
    volatile uint64_t frame[8];
    for (int i = 0; i < 8; i++)
        frame[i] = f->seed + (uint64_t)(depth * 8 + i);
    if (depth > 0)
        (void)wander(c, f, depth - 1);
    f->home = (int)((f->seed >> (depth % 60)) & 1);
    bz_stack_trim(f->stack);
    bz_coro_yield_with(c, publish, f);
    for (int i = 0; i < 8; i++)
        CHECK_EQ(frame[i], f->seed + (uint64_t)(depth * 8 + i));
    return frame[0];
}
static void wander_up_and_down(struct bz_coro *c, void *arg)
{
    struct fiber *f = arg;
    for (; f->hops > 0; f->hops--)
        (void)wander(c, f, (int)(f->seed % 40));
}

TEST(fiber, frames_at_every_depth_survive_migration_and_parking)
{
    run_fibers(FIBERS_MAX, t_scaled(200), wander_up_and_down);
}

/* A fiber that ends on one thread leaves a stack that a fiber of the other begins on. */
static void have_a_child(struct bz_coro *c, void *arg)
{
    struct fiber *f = arg;
    for (; f->hops > 0; f->hops--) {
        struct worker *w = bz_self_get();
        struct bz_stack *s;
        CHECK_EQ(bz_stack_take(&w->cache, BZ_STACK_64K, &s), 0);
        memset((char *)bz_stack_top(s) - 3000, (int)f->hops, 3000);
        f->home = (f->home + 1) % WORKERS;
        bz_coro_yield_with(c, publish, f);
        w = bz_self_get();
        CHECK_EQ(((char *)bz_stack_top(s))[-1], (char)f->hops);
        bz_stack_give(&w->cache, s); /* taken from one cache, given to another */
    }
}

TEST(fiber, stacks_taken_by_one_owner_are_given_to_another)
{
    run_fibers(FIBERS_MAX, t_scaled(2000), have_a_child);
}

/* ---- the pool under two owners ---------------------------------------------------------------- */

static struct bz_stack_pool shared;
static void churn(void *arg, int index)
{
    enum { HOLD = 300 };
    static struct bz_stack *held[WORKERS][HOLD];
    struct bz_stack_cache cache;
    struct t_rng rng = t_rng_of((uint64_t)index);
    uint64_t rounds = *(uint64_t *)arg;
    bz_stack_cache_init(&cache, &shared);
    for (uint64_t r = 0; r < rounds; r++) {
        int n = 1 + (int)t_rng_below(&rng, HOLD);
        for (int i = 0; i < n; i++) {
            CHECK_EQ(bz_stack_take(&cache, BZ_STACK_64K, &held[index][i]), 0);
            *(volatile int *)((char *)bz_stack_top(held[index][i]) - 64) = index;
        }
        if (t_rng_below(&rng, 8) == 0)
            bz_stack_pool_trim(&shared);
        for (int i = 0; i < n; i++) {
            CHECK_EQ(*(volatile int *)((char *)bz_stack_top(held[index][i]) - 64), index);
            bz_stack_give(&cache, held[index][i]);
        }
        if (t_rng_below(&rng, 8) == 0)
            bz_stack_pool_check(&shared);
    }
    bz_stack_cache_fini(&cache);
}

TEST(fiber, two_owners_share_a_pool_that_is_trimmed_meanwhile)
{
    struct bz_stack_config config = {.idle_max = 50};
    uint64_t rounds = t_scaled(300);
    CHECK_EQ(bz_stack_pool_init(&shared, &config), 0);
    t_threads(WORKERS, churn, &rounds);
    bz_stack_pool_check(&shared);
    bz_stack_pool_fini(&shared);
}
