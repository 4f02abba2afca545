/*
 * Fork and join on real threads: every job runs once, on any worker and with any wait. Also the two
 * problems of runtimes whose joins run unrelated work on top of the waiting frame.
 */
#include <sched.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "support/fiber_mutex.h"
#include "support/on_each.h"

#include "proc/state.h"

/* ---- every leaf once ---- */

enum { LEAVES_MAX = 1 << 17 };

static bz_atomic(uint8_t) ran[LEAVES_MAX];

struct span {
    uint32_t from, to;
    uint64_t seed;
};

static uint64_t mix(uint64_t x)
{
    x = (x ^ (x >> 31)) * UINT64_C(0x9e3779b97f4a7c15);
    return x ^ (x >> 29);
}

static int give_back(void *arg)
{
    return (int)(intptr_t)arg;
}

/* One leaf in some waits, in one of several ways. */
static void wait_somehow(uint64_t dice)
{
    blitz_task *t;
    switch (dice % 64) {
    case 0:
        blitz_yield();
        break;
    case 1:
        CHECK_EQ(blitz_sleep(dice % 5000), 0);
        break;
    case 2:
        CHECK_EQ(blitz_spawn(give_back, NULL, NULL, &t), 0);
        CHECK_EQ(blitz_task_join(t, NULL, BLITZ_FOREVER), 0);
        break;
    default:
        break;
    }
}

static int visit(void *arg)
{
    struct span *s = arg;
    if (s->to - s->from == 1) {
        wait_somehow(mix(s->seed + s->from));
        bz_fetch_add_relaxed(&ran[s->from], 1);
        return 1;
    }
    uint32_t middle = s->from + (s->to - s->from) / 2;
    struct span left = {s->from, middle, s->seed}, right = {middle, s->to, s->seed};
    blitz_job job;
    blitz_fork(&job, visit, &right);
    wait_somehow(mix(s->seed ^ s->to));
    int count = visit(&left);
    return count + blitz_join(&job);
}

static int visit_all(void *arg)
{
    uint32_t leaves = *(uint32_t *)arg;
    struct span all = {0, leaves, t_random()};
    for (uint32_t i = 0; i < leaves; i++)
        bz_store_relaxed(&ran[i], 0);
    CHECK_EQ(visit(&all), (int)leaves);
    for (uint32_t i = 0; i < leaves; i++)
        CHECK_EQ(bz_load_relaxed(&ran[i]), 1);
    return 0;
}

/* Bug class 3: one job twice, another never. */
TEST(par, bug_03_every_job_runs_exactly_once)
{
    uint32_t leaves = (uint32_t)t_scaled(LEAVES_MAX);
    t_on_each(visit_all, &leaves, 0);
}

/* ---- bug 27: rayon#592 ---- */

enum { HOLDERS = 16 };

static struct t_mutex mutex;
static int inside; /* guarded by mutex */
static bz_atomic(int) rounds;

struct inner {
    bz_atomic(int) has_begun;
};

/* Runs elsewhere, and takes its time about it: the join waits. */
static int inner_job(void *arg)
{
    struct inner *in = arg;
    bz_store_release(&in->has_begun, 1); /* pairs with the load in hold_and_join */
    CHECK_EQ(blitz_sleep(20 * BLITZ_US), 0);
    return 7;
}

/* With the lock held: fork, see that another worker has taken the job, join. */
static int hold_and_join(void *arg)
{
    struct inner in = {0};
    blitz_job job;
    bool must_be_stolen = arg != NULL;
    t_mutex_take(&mutex);
    CHECK_EQ(inside++, 0);
    blitz_fork(&job, inner_job, &in);
    while (must_be_stolen && !bz_load_acquire(&in.has_begun)) {
        blitz_share(); /* older jobs go first: other holders, which wait for the lock */
        sched_yield(); /* the thread's: this frame does not leave its stack */
    }
    CHECK_EQ(blitz_join(&job), 7);
    CHECK_EQ(--inside, 0);
    t_mutex_drop(&mutex);
    bz_fetch_add_relaxed(&rounds, 1);
    return 0;
}

static int many_holders(void *arg)
{
    blitz_job job[HOLDERS];
    for (int i = 0; i < HOLDERS; i++)
        blitz_fork(&job[i], hold_and_join, arg);
    for (int i = HOLDERS - 1; i >= 0; i--)
        CHECK_EQ(blitz_join(&job[i]), 0);
    return 0;
}

struct fed {
    bz_atomic(int) has_begun;
};

static int begin_and_hold(void *arg)
{
    struct fed *fed = arg;
    bz_store_release(&fed->has_begun, 1); /* pairs with the load in feed */
    return hold_and_join(&mutex);
}

/* There is always a lock holder to steal here for a worker that searches while it waits. */
static int feed(void *arg)
{
    (void)arg;
    for (int i = 0; i < HOLDERS / 2; i++) {
        struct fed fed = {0};
        blitz_job job;
        blitz_fork(&job, begin_and_hold, &fed);
        while (!bz_load_acquire(&fed.has_begun))
            sched_yield(); /* the thread's */
        CHECK_EQ(blitz_join(&job), 0);
    }
    return 0;
}

static int hold_beside_a_feeder(void *arg)
{
    blitz_task *t;
    (void)arg;
    CHECK_EQ(blitz_spawn(feed, NULL, NULL, &t), 0);
    for (int i = 0; i < HOLDERS / 2; i++)
        CHECK_EQ(hold_and_join(&mutex), 0);
    CHECK_EQ(blitz_task_join(t, NULL, BLITZ_FOREVER), 0);
    return 0;
}

/*
 * A join that helped would run another holder on top of the frame that holds the lock, and wait for
 * the lock there for ever.
 */
TEST(par, bug_27_a_lock_held_across_a_join_is_not_entered_beneath_it)
{
    static const unsigned procs[] = {1, 2, 3, 8};
    for (size_t i = 0; i < BZ_ARRAY_LEN(procs); i++)
        for (uint64_t n = t_scaled(40); n > 0; n--) {
            t_watch("%u procs", procs[i]);
            t_mutex_init(&mutex, &bz_os_system);
            bz_store_relaxed(&rounds, 0);
            void *must_be_stolen = procs[i] > 1 ? &mutex : NULL;
            CHECK_EQ(
                blitz_run(many_holders, must_be_stolen, &(blitz_runtime_opts){.procs = procs[i]}),
                0);
            CHECK_EQ(bz_load_relaxed(&rounds), HOLDERS);
            if (procs[i] < 3)
                continue; /* two of them will be busy looking on */
            CHECK_EQ(
                blitz_run(hold_beside_a_feeder, NULL, &(blitz_runtime_opts){.procs = procs[i]}), 0);
            CHECK_EQ(bz_load_relaxed(&rounds), 2 * HOLDERS);
        }
}

/* ---- bug 28: rayon#854 ---- */

static bz_atomic(size_t) deepest; /* bytes of stack in use */

static void note_depth(void)
{
    char *here = __builtin_frame_address(0);
    struct bz_stack *s = bz_machine_self()->runner;
    size_t depth = (size_t)((char *)bz_stack_top(s) - here);
    size_t seen = bz_load_relaxed(&deepest);
    while (depth > seen && !bz_cas_weak_rlx_rlx(&deepest, &seen, depth)) {
    }
}

/* Every inner node waits for a job that another worker has, or that was evacuated with its
 * frame. */
static int item(void *arg)
{
    struct span *s = arg;
    note_depth();
    if (s->to - s->from == 1)
        return 1;
    uint32_t middle = s->from + (s->to - s->from) / 2;
    struct span left = {s->from, middle, 0}, right = {middle, s->to, 0};
    blitz_job job;
    blitz_fork(&job, item, &right);
    if (s->from % 64 == 0)
        blitz_yield();
    int count = item(&left);
    return count + blitz_join(&job);
}

static int all_items(void *arg)
{
    struct span all = {0, *(uint32_t *)arg, 0};
    CHECK_EQ(item(&all), (int)all.to);
    return 0;
}

/* Twenty levels of calls is what a million items need, however often their joins wait. */
TEST(par, bug_28_a_million_items_on_small_stacks_stay_shallow)
{
    static const unsigned procs[] = {1, 2, 3, 8};
    uint32_t items = (uint32_t)t_scaled(1000000);
    for (size_t i = 0; i < BZ_ARRAY_LEN(procs); i++) {
        blitz_runtime_opts config = {.procs = procs[i], .stack_bytes = 64 << 10};
        t_watch("%u procs", procs[i]);
        bz_store_relaxed(&deepest, 0);
        CHECK_EQ(blitz_run(all_items, &items, &config), 0);
        t_note("%u procs: %zu bytes of stack at most", procs[i], bz_load_relaxed(&deepest));
        CHECK_LT(bz_load_relaxed(&deepest), BZ_ASAN || BZ_TSAN ? 48 << 10 : 16 << 10);
    }
}

/* ---- ten million forks in one frame ---- */

struct many {
    uint64_t count;
    blitz_job *job; /* all touched */
    bool leaves;    /* the frame is suspended with all of them pending */
};

static bz_atomic(uint64_t) answers;

static int answer(void *arg)
{
    bz_fetch_add_relaxed(&answers, 1);
    return (int)(uintptr_t)arg;
}

static int fork_them_all(void *arg)
{
    struct many *m = arg;
    bz_store_relaxed(&answers, 0);
    for (uint64_t i = 0; i < m->count; i++)
        blitz_fork(&m->job[i], answer, (void *)(uintptr_t)(i & 0xffff));
    if (m->leaves)
        CHECK_EQ(blitz_sleep(BLITZ_US), 0);
    for (uint64_t i = m->count; i-- > 0;)
        CHECK_EQ(blitz_join(&m->job[i]), (int)(i & 0xffff));
    CHECK_EQ(bz_load_relaxed(&answers), m->count);
    return 0;
}

static uint64_t peak_bytes(void)
{
    struct rusage use;
    CHECK_EQ(getrusage(RUSAGE_SELF, &use), 0);
    return (uint64_t)use.ru_maxrss << 10;
}

/* A build without optimization, as for coverage, needs minutes for ten million on a busy machine. */
#if defined(__OPTIMIZE__)
enum { FORKS = 10000000 };
#else
enum { FORKS = 1000000 };
#endif

/* They are in the frame and are linked through themselves. */
TEST_LIMIT(par, ten_million_forks_in_one_frame_need_no_memory_besides, 300)
{
    static const unsigned procs[] = {1, 2, 8};
    struct many m = {.count = t_scaled(FORKS)};
    m.job = malloc(m.count * sizeof *m.job);
    CHECK_NOT_NULL(m.job);
    memset(m.job, 1, m.count * sizeof *m.job);
    uint64_t before = peak_bytes();
    for (size_t i = 0; i < 2 * BZ_ARRAY_LEN(procs); i++) {
        m.leaves = i % 2;
        t_watch("%u procs", procs[i / 2]);
        CHECK_EQ(blitz_run(fork_them_all, &m, &(blitz_runtime_opts){.procs = procs[i / 2]}), 0);
    }
    uint64_t more = peak_bytes() - before;
    t_note("%llu forks: %llu bytes besides", (unsigned long long)m.count, (unsigned long long)more);
    if (!BZ_ASAN && !BZ_TSAN) /* their own books are longer */
        CHECK_LT(more, 16 * m.count + (4 << 20));
    free(m.job);
}
