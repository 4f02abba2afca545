/* tasks.h: headers in slabs, the walk over them, ids, and headers that outlive their runtime. */
#include "harness.h"

#include <pthread.h>

#include "base/compiler.h"
#include "blitz.h"
#include "life/spawn.h"
#include "sim/fault.h"
#include "proc/state.h"
#include "runtime/runtime.h"

static int naps(void *arg)
{
    (void)arg;
    return blitz_sleep_until(BLITZ_FOREVER);
}

static int returns_at_once(void *arg)
{
    return (int)(intptr_t)arg;
}

static struct bz_runtime *inside(blitz_runtime *rt)
{
    return (struct bz_runtime *)rt;
}

static blitz_runtime *given_a_runtime(unsigned procs)
{
    blitz_runtime *rt;
    CHECK_EQ(blitz_runtime_new(&(blitz_runtime_opts){.procs = procs}, &rt), 0);
    return rt;
}

static void end(blitz_runtime *rt)
{
    CHECK_EQ(blitz_runtime_shutdown(rt, BLITZ_FOREVER), 0);
    CHECK_EQ(blitz_runtime_unref(rt), 0);
}

/* ---- classes ---- */

/* Every size has a class, every header a line of its own, and no word says "alive" before its time. */
TEST(tasks, headers_of_every_size_are_aligned_and_not_found)
{
    static const size_t bytes[] = {sizeof(struct bz_task), 128, 129, 192, 200, 256, 300, 512};
    blitz_runtime *rt = given_a_runtime(1);
    for (size_t i = 0; i < BZ_ARRAY_LEN(bytes); i++) {
        struct bz_task *t[3];
        for (int k = 0; k < 3; k++) {
            t[k] = bz_task_alloc(inside(rt), bytes[i]);
            CHECK_NOT_NULL(t[k]);
            CHECK_EQ((uintptr_t)t[k] % BZ_TASK_ALIGN, 0u);
            CHECK_GE(bz_slab_kind(t[k])->size, bytes[i]);
            CHECK(!bz_word_try_ref(&t[k]->word));
            t[k]->rt = inside(rt);
        }
        CHECK_NE(t[0]->id, t[1]->id);
        for (int k = 0; k < 3; k++)
            bz_task_free(t[k]);
    }
    end(rt);
}

/* ---- the walk ---- */

struct census {
    unsigned held, ended;
    uint64_t sum; /* of ids */
};

static void count(struct bz_task *t, void *ctx)
{
    struct census *c = ctx;
    c->held++;
    c->ended += bz_word_is_complete(&t->word);
    c->sum += t->id;
}

static struct census census(blitz_runtime *rt)
{
    struct census c = {0, 0, 0};
    bz_tasks_each(inside(rt), count, &c);
    return c;
}

enum { CROWD = 2000 };

static int spawns_a_crowd(void *arg)
{
    blitz_task **t = arg;
    for (int i = 0; i < CROWD; i++)
        CHECK_EQ(blitz_spawn(i % 2 ? naps : returns_at_once, NULL, NULL, &t[i]), 0);
    return 0;
}

TEST(tasks, a_walk_shows_each_that_is_held_once)
{
    static blitz_task *t[CROWD];
    blitz_runtime *rt = given_a_runtime(2);
    uint64_t sum = 0;
    CHECK_EQ(census(rt).held, 0u);
    CHECK_EQ(blitz_runtime_block_on(rt, spawns_a_crowd, t), 0);
    for (int i = 0; i < CROWD; i++) {
        sum += blitz_task_id(t[i]);
        if (i % 2 == 0)
            while (!blitz_task_is_done(t[i]))
                sched_yield();
    }
    while (census(rt).held > CROWD) /* the one that spawned them is just ending */
        sched_yield();
    struct census c = census(rt);
    CHECK_EQ(c.held, CROWD);
    CHECK_EQ(c.ended, CROWD / 2);
    CHECK_EQ(c.sum, sum);
    for (int i = 0; i < CROWD; i += 2)
        CHECK_EQ(blitz_task_join(t[i], NULL, BLITZ_FOREVER), 0);
    while (census(rt).held > CROWD / 2) /* the last may just be ending */
        sched_yield();
    CHECK_EQ(census(rt).held, CROWD / 2);
    for (int i = 1; i < CROWD; i += 2)
        blitz_task_detach(t[i]);
    CHECK_EQ(blitz_runtime_shutdown(rt, BLITZ_FOREVER), 0);
    CHECK_EQ(blitz_runtime_unref(rt), 0);
}

/* Tasks are spawned, ended, freed and reused on two procs and by a thread, during a walk. */
static int churns(void *arg)
{
    blitz_task *t[8];
    for (intptr_t round = 0; round < (intptr_t)arg; round++) {
        for (int i = 0; i < 8; i++)
            CHECK_EQ(blitz_spawn(returns_at_once, NULL, NULL, &t[i]), 0);
        for (int i = 0; i < 8; i++)
            CHECK_EQ(blitz_task_join(t[i], NULL, BLITZ_FOREVER), 0);
    }
    return 0;
}

static void looks_sane(struct bz_task *t, void *ctx)
{
    CHECK(t->rt == ctx);
    CHECK_NOT_NULL(t->ops->run);
    CHECK_NE(t->id, 0u);
    bz_word_check(&t->word);
}

TEST(tasks, a_walk_and_a_churn_do_not_disturb_each_other)
{
    blitz_runtime *rt = given_a_runtime(2);
    intptr_t rounds = (intptr_t)t_scaled(2000);
    blitz_spawn_opts opts = {.runtime = rt};
    blitz_task *t[3];
    for (int i = 0; i < 3; i++)
        CHECK_EQ(blitz_spawn(churns, (void *)rounds, &opts, &t[i]), 0);
    for (int i = 0; i < 3; i++)
        while (!blitz_task_is_done(t[i])) {
            bz_tasks_each(inside(rt), looks_sane, rt);
            sched_yield();
        }
    for (int i = 0; i < 3; i++)
        CHECK_EQ(blitz_task_join(t[i], NULL, BLITZ_FOREVER), 0);
    while (census(rt).held > 0) /* entries of claimed children are still being taken out */
        sched_yield();
    end(rt);
}

/* ---- memory ---- */

struct flat {
    blitz_runtime *rt;
    uint64_t rounds, before, after;
};

static int spawns_and_joins(void *arg)
{
    struct flat *f = arg;
    for (uint64_t i = 0; i < f->rounds; i++) {
        blitz_task *t;
        int result = 0;
        CHECK_EQ(blitz_spawn(returns_at_once, (void *)(intptr_t)7, NULL, &t), 0);
        CHECK_EQ(blitz_task_join(t, &result, BLITZ_FOREVER), 0);
        CHECK_EQ(result, 7);
        if (i == 1000)
            f->before = bz_tasks_bytes(inside(f->rt));
    }
    f->after = bz_tasks_bytes(inside(f->rt));
    return 0;
}

/* Tombstones of claimed children must not pile up: 100 million rounds where there is time. */
TEST(tasks, spawn_and_join_rounds_on_one_proc_leave_memory_flat)
{
    struct flat f = {.rt = given_a_runtime(1), .rounds = 2000 + t_scaled(1000000)};
    CHECK_EQ(blitz_runtime_block_on(f.rt, spawns_and_joins, &f), 0);
    CHECK_GT(f.before, 0u);
    CHECK_LE(f.after, f.before);
    end(f.rt);
}

static blitz_poll is_ready_at_once(void *state, blitz_cx *cx)
{
    (void)state;
    cx->result = 7;
    return BLITZ_READY;
}

static int spawns_and_joins_polls(void *arg)
{
    struct flat *f = arg;
    for (uint64_t i = 0; i < f->rounds; i++) {
        blitz_task *t;
        int result = 0;
        CHECK_EQ(blitz_spawn_poll(is_ready_at_once, &i, sizeof i, NULL, &t), 0);
        CHECK_EQ(blitz_task_join(t, &result, BLITZ_FOREVER), 0);
        CHECK_EQ(result, 7);
        if (i == 1000)
            f->before = bz_tasks_bytes(inside(f->rt));
    }
    f->after = bz_tasks_bytes(inside(f->rt));
    return 0;
}

/* A task with a small state returns its header to those that are ready for the next spawn. */
TEST(tasks, spawn_and_join_rounds_of_small_polls_leave_memory_flat)
{
    struct flat f = {.rt = given_a_runtime(1), .rounds = 4000};
    CHECK_EQ(blitz_runtime_block_on(f.rt, spawns_and_joins_polls, &f), 0);
    CHECK_GT(f.before, 0u);
    CHECK_LE(f.after, f.before);
    end(f.rt);
}

static int spawns_a_few(void *arg)
{
    blitz_task *t[8];
    size_t *bytes = arg;
    for (int i = 0; i < 8; i++)
        CHECK_EQ(blitz_spawn(returns_at_once, NULL, NULL, &t[i]), 0);
    for (int i = 0; i < 8; i++) {
        CHECK_EQ(bz_slab_kind(t[i])->size, *bytes);
        CHECK_EQ(blitz_task_join(t[i], NULL, BLITZ_FOREVER), 0);
    }
    return 0;
}

/* The headers that are prepared for the next spawns are no larger than those that a spawn allocates. */
TEST(tasks, a_ready_header_is_of_the_smallest_class)
{
    blitz_runtime *rt = given_a_runtime(1);
    struct bz_task *t = bz_task_alloc(inside(rt), sizeof(struct bz_fiber));
    CHECK_NOT_NULL(t);
    size_t bytes = bz_slab_kind(t)->size;
    t->rt = inside(rt);
    bz_task_free(t);
    CHECK_EQ(blitz_runtime_block_on(rt, spawns_a_few, &bytes), 0);
    end(rt);
}

/* Not inlined: the task may have moved to another thread. */
static BZ_NOINLINE enum bz_where where_am_i(void)
{
    return bz_retake_where(&bz_machine_self()->taken);
}

static void *points_at(void *arg)
{
    return arg;
}

static void joins(blitz_task *child)
{
    int result = 0;
    CHECK_EQ(where_am_i(), BZ_IN_USER);
    CHECK_EQ(blitz_task_join(child, &result, BLITZ_FOREVER), 0);
    CHECK_EQ(result, 7);
    CHECK_EQ(where_am_i(), BZ_IN_USER);
}

static void spawns_in_user_code(const blitz_spawn_opts *opts)
{
    blitz_task *child;
    void *pointer = NULL;
    CHECK_EQ(blitz_spawn(returns_at_once, (void *)7, opts, &child), 0);
    joins(child);
    CHECK_EQ(blitz_spawn_poll(is_ready_at_once, NULL, 0, opts, &child), 0);
    joins(child);
    CHECK_EQ(blitz_spawn_ptr(points_at, &child, opts, &child), 0);
    CHECK_EQ(where_am_i(), BZ_IN_USER);
    CHECK_EQ(blitz_task_join_ptr(child, &pointer, BLITZ_FOREVER), 0);
    CHECK(pointer == &child);
    CHECK_EQ(where_am_i(), BZ_IN_USER);
}

static int spawns_in_every_way(void *arg)
{
    (void)arg;
    for (int i = 0; i < 3; i++) { /* after the first end a header is ready */
        spawns_in_user_code(NULL);
        spawns_in_user_code(&(blitz_spawn_opts){.name = "named"});
        spawns_in_user_code(&(blitz_spawn_opts){.proc = BLITZ_ON_PROC(0)});
    }
    return 0;
}

/* A machine that counts as in the runtime keeps its proc for as long as its task runs: the monitor could
 * give the other tasks to no other machine. */
TEST(tasks, a_task_is_back_in_user_code_after_a_spawn)
{
    blitz_runtime *rt = given_a_runtime(1);
    CHECK_EQ(blitz_runtime_block_on(rt, spawns_in_every_way, NULL), 0);
    end(rt);
}

/* The memory of a burst is freed, except for a chunk or two. */
static int burst(void *arg)
{
    enum { N = 20000 };
    blitz_task **t = arg;
    for (int i = 0; i < N; i++)
        CHECK_EQ(blitz_spawn(returns_at_once, NULL, NULL, &t[i]), 0);
    for (int i = 0; i < N; i++)
        CHECK_EQ(blitz_task_join(t[i], NULL, BLITZ_FOREVER), 0);
    return 0;
}

TEST(tasks, a_burst_gives_its_memory_back)
{
    static blitz_task *t[20000];
    blitz_runtime *rt = given_a_runtime(1);
    CHECK_EQ(blitz_runtime_block_on(rt, burst, t), 0);
    /* Entries are still being taken out. If the task lost its proc, the proc takes its headers back when it runs. */
    while (bz_tasks_bytes(inside(rt)) > 4u * BZ_SLAB_CHUNK)
        CHECK_EQ(blitz_runtime_block_on(rt, returns_at_once, NULL), 0);
    end(rt);
}

/* ---- outliving ---- */

/* Handles dropped after the runtime: the last one frees its remaining memory. */
TEST(tasks, handles_outlive_the_runtime_and_nothing_leaks)
{
    struct bz_fault books;
    blitz_task *t[3];
    struct bz_runtime *made;
    bz_fault_init(&books, &bz_os_system, NULL, &(struct bz_fault_plan){.nth = 0});
    CHECK_EQ(bz_runtime_new(&books.os,
                            &(blitz_runtime_opts){.procs = 2, .allocator = &books.allocator},
                            &made),
             0);
    blitz_runtime *rt = (blitz_runtime *)made;
    blitz_spawn_opts opts = {.runtime = rt};
    for (int i = 0; i < 3; i++)
        CHECK_EQ(blitz_spawn(naps, NULL, &opts, &t[i]), 0);
    end(rt);
    for (int i = 0; i < 3; i++) {
        int result = 0;
        CHECK_GT(bz_fault_books(&books).blocks, 0);
        CHECK(blitz_task_is_done(t[i]));
        CHECK_EQ(blitz_task_join(t[i], &result, BLITZ_FOREVER), 0);
        CHECK_EQ(result, -ECANCELED);
    }
    CHECK_EQ(bz_fault_books(&books).blocks, 0);
}

static void *detaches(void *arg)
{
    blitz_task **t = arg;
    for (int i = 0; i < 8; i++)
        blitz_task_detach(t[i]);
    return NULL;
}

/* The same while the runtime is destroyed: the last reference frees, once. */
TEST(tasks, handles_dropped_while_the_runtime_goes_are_counted_once)
{
    for (uint64_t round = 0, n = t_scaled(300); round < n; round++) {
        blitz_task *t[2][8];
        pthread_t thread[2];
        blitz_runtime *rt = given_a_runtime(2);
        blitz_spawn_opts opts = {.runtime = rt};
        for (int i = 0; i < 16; i++)
            CHECK_EQ(blitz_spawn(naps, NULL, &opts, &t[i / 8][i % 8]), 0);
        CHECK_EQ(blitz_runtime_shutdown(rt, BLITZ_FOREVER), 0);
        for (int i = 0; i < 2; i++)
            CHECK_EQ(pthread_create(&thread[i], NULL, detaches, t[i]), 0);
        CHECK_EQ(blitz_runtime_unref(rt), 0);
        for (int i = 0; i < 2; i++)
            CHECK_EQ(pthread_join(thread[i], NULL), 0);
    }
}
