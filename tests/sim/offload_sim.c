/*
 * blitz/offload.h in virtual time, on many seeds. Tasks and a plain thread wait for handles, leave them or cancel them at
 * any moment. In other cases the system refuses threads and memory.
 *
 * Every argument is accounted for: it comes back by a wait or by a cancel, or the drop function gets it. Never twice.
 */
#include "runtime/runtime.h"
#include "support/sim_faults.h"

#include "base/alloc.h"
#include "base/rng.h"

#define MS UINT64_C(1000000)

enum { JOBS = 12 };

struct job {
    const struct bz_os *os;
    uint64_t ns;
    bz_atomic(int) calls, drops;
    int back; /* its caller has it again */
    bool is_started;
    blitz_offload *o;
};

static int job_run(void *arg)
{
    struct job *j = arg;
    bz_os_word never = 0;
    uint64_t until = bz_os_now(j->os) + j->ns;
    CHECK_EQ(bz_fetch_add_seqcst(&j->calls, 1), 0); /* seq_cst: a count of the test */
    while (bz_os_wait(j->os, &never, 0, until) != -ETIMEDOUT)
        ;
    return 5;
}

static void job_drop(void *arg, void *ctx)
{
    (void)ctx;
    bz_fetch_add_seqcst(&((struct job *)arg)->drops, 1); /* seq_cst: likewise */
}

/* One of the ways to end a call, as the dice say. */
static void settle(struct job *j, struct bz_rng *rng)
{
    int result = 0, rc = 0;
    blitz_deadline until = bz_os_now(j->os) + bz_rng_below(rng, 4) * MS;
    switch (bz_rng_below(rng, 4)) {
    case 0:
        rc = blitz_offload_cancel(j->o);
        CHECK(rc == 0 || rc == -EBUSY);
        j->back = rc == 0;
        break;
    case 1:
        rc = blitz_offload_wait(j->o, &result, until);
        CHECK(rc == 0 || rc == -ETIMEDOUT);
        j->back = rc == 0;
        break;
    case 2:
        CHECK_EQ(blitz_offload_wait(j->o, &result, BLITZ_FOREVER), 0);
        CHECK_EQ(result, 5);
        j->back = 1;
        break;
    default:
        break;
    }
    blitz_offload_unref(j->o);
}

static void check_all(struct job *jobs)
{
    for (int i = 0; i < JOBS; i++) {
        int calls = bz_load_seqcst(&jobs[i].calls); /* seq_cst: likewise */
        int drops = bz_load_seqcst(&jobs[i].drops); /* seq_cst: likewise */
        CHECK_EQ(jobs[i].back + drops, jobs[i].is_started);
        CHECK_LE(calls, jobs[i].is_started);
    }
}

/* ---- from a plain thread, beside tasks ---- */

struct world {
    uint64_t seed;
    struct job job[JOBS];
};

struct settler {
    struct job *j;
    uint64_t seed;
};

static int settles(void *arg)
{
    struct settler *s = arg;
    struct bz_rng rng;
    bz_rng_init(&rng, s->seed);
    settle(s->j, &rng);
    return 0;
}

static void play(const struct bz_os *os, void *arg)
{
    struct world *w = arg;
    struct bz_runtime *rt;
    struct bz_rng rng;
    bz_rng_init(&rng, w->seed);
    blitz_runtime_opts opts = {.procs = 1 + bz_rng_below(&rng, 3)};
    opts.threads_max = opts.procs + 1 + bz_rng_below(&rng, 4); /* some have to wait for a thread */
    CHECK_EQ(bz_runtime_new(os, &opts, &rt), 0);
    blitz_offload_opts how = {.runtime = (blitz_runtime *)rt, .drop = job_drop};
    memset(w->job, 0, sizeof w->job);
    for (int i = 0; i < JOBS; i++) {
        struct job *j = &w->job[i];
        j->os = os;
        j->ns = bz_rng_below(&rng, 3) * MS;
        CHECK_EQ(blitz_offload_start(job_run, j, &how, &j->o), 0);
        j->is_started = true;
        if (bz_rng_below(&rng, 2)) {
            struct settler s = {j, bz_rng_next(&rng)};
            CHECK_EQ(blitz_runtime_block_on((blitz_runtime *)rt, settles, &s), 0);
            j->o = NULL;
        }
    }
    for (int i = 0; i < JOBS; i++)
        if (w->job[i].o != NULL)
            settle(&w->job[i], &rng);
    CHECK_EQ(blitz_runtime_shutdown((blitz_runtime *)rt, BLITZ_FOREVER), 0);
    CHECK_EQ(blitz_runtime_unref((blitz_runtime *)rt), 0);
    check_all(w->job);
}

TEST(offload_sim, every_argument_comes_back_or_is_dropped_once)
{
    static struct world w;
    for (uint64_t i = sim_seeds(300); i > 0; i--) {
        w.seed = sim_next_seed();
        t_watch("seed 0x%llx", (unsigned long long)w.seed);
        CHECK_EQ(t_sim(w.seed, play, &w), 0);
    }
}

/* ---- a plain thread starts calls, and another one shuts the runtime down ---- */

struct race {
    struct bz_runtime *rt;
    struct job job[JOBS];
    struct bz_rng rng;
    bool is_slow; /* the allocator is */
};

/* An allocator that takes its time: between a look at the runtime and the call in the queue. */
static void *slow_alloc(void *ctx, size_t size, size_t align)
{
    struct race *r = ctx;
    if (r->is_slow)
        bz_sim_burn(bz_rng_below(&r->rng, 3) * MS / 8);
    return bz_alloc(&bz_allocator_libc, size, align);
}

static void slow_free(void *ctx, void *memory, size_t size)
{
    (void)ctx;
    bz_free(&bz_allocator_libc, memory, size);
}

/* Start calls, and leave them, until the runtime refuses them. */
static void starts(void *arg)
{
    struct race *r = arg;
    blitz_offload_opts how = {.runtime = (blitz_runtime *)r->rt, .drop = job_drop};
    for (int i = 0; i < JOBS; i++) {
        struct job *j = &r->job[i];
        int rc = blitz_offload_start(job_run, j, &how, &j->o);
        CHECK(rc == 0 || rc == -ESHUTDOWN);
        if (rc != 0)
            break;
        j->is_started = true;
        bz_sim_burn(bz_rng_below(&r->rng, 2) * MS / 8);
    }
}

static void race(const struct bz_os *os, void *arg)
{
    struct race r = {.rt = NULL};
    struct bz_os_thread thread;
    bz_rng_init(&r.rng, *(uint64_t *)arg);
    const blitz_allocator slow = {slow_alloc, slow_free, &r};
    CHECK_EQ(bz_runtime_new(os, &(blitz_runtime_opts){.procs = 1, .allocator = &slow}, &r.rt), 0);
    r.is_slow = true;
    for (int i = 0; i < JOBS; i++)
        r.job[i] = (struct job){.os = os, .ns = MS};
    CHECK_EQ(bz_os_thread_start(os, &thread, NULL, starts, &r), 0);
    bz_sim_burn(bz_rng_below(&r.rng, 8) * MS / 8);
    CHECK_EQ(blitz_runtime_shutdown((blitz_runtime *)r.rt, BLITZ_FOREVER), 0);
    CHECK_EQ(bz_os_thread_join(os, &thread), 0);
    CHECK(bz_pool_is_quiet(&r.rt->pool)); /* it has waited for all that was not refused */
    for (int i = 0; i < JOBS; i++)
        if (r.job[i].is_started)
            blitz_offload_unref(r.job[i].o);
    CHECK_EQ(blitz_runtime_unref((blitz_runtime *)r.rt), 0);
    check_all(r.job);
}

TEST(offload_sim, a_shutdown_waits_for_a_call_or_refuses_it)
{
    for (uint64_t i = sim_seeds(1000); i > 0; i--) {
        uint64_t seed = sim_next_seed();
        t_watch("seed 0x%llx", (unsigned long long)seed);
        CHECK_EQ(t_sim(seed, race, &seed), 0);
    }
}

/* ---- refused threads and memory ---- */

static int tries_all(void *arg)
{
    static struct job job[JOBS];
    (void)arg;
    memset(job, 0, sizeof job);
    for (int i = 0; i < JOBS; i++) {
        job[i].os = bz_machine_self()->rt->os;
        int rc = blitz_offload_start(job_run, &job[i], &(blitz_offload_opts){.drop = job_drop},
                                     &job[i].o);
        CHECK(rc == 0 || rc == -ENOMEM || rc == -EAGAIN);
        job[i].is_started = rc == 0;
    }
    for (int i = 0; i < JOBS; i++) {
        int result = 0;
        if (!job[i].is_started)
            continue;
        CHECK_EQ(blitz_offload_wait(job[i].o, &result, BLITZ_FOREVER), 0);
        CHECK_EQ(result, 5);
        job[i].back = 1;
        blitz_offload_unref(job[i].o);
    }
    check_all(job);
    return 0;
}

/* Bug class 30: a start that cannot be made says so, and a call that was started is made. */
TEST(offload_sim, bug_30_no_thread_or_no_memory_is_an_error_and_loses_no_call)
{
    for (uint64_t i = t_scaled(4); i > 0; i--) {
        CHECK_GE(sim_each_fault(BZ_FAULT_THREAD, false, tries_all), 2u);
        CHECK_GE(sim_each_fault(BZ_FAULT_THREAD, true, tries_all), 2u);
        CHECK_GE(sim_each_fault(BZ_FAULT_MEMORY, false, tries_all), 3u);
    }
}
