/*
 * Random programs on a system that refuses resources from a random call on: threads, stacks,
 * memory, or the resource of the n-th call. Scopes with deadlines, joins with and without, forks
 * over waits, blocking calls and channels. A call may say -ENOMEM or -EAGAIN. No call may wait for
 * what will never come: every program ends.
 */
#include "harness.h"

#include "blitz.h"
#include "sim/fault.h"
#include "proc/state.h"
#include "runtime/runtime.h"
#include "support/leave.h"

static bool is_scarce(int err)
{
    return err == -ENOMEM || err == -EAGAIN;
}

static int nap(void *arg)
{
    blitz_yield();
    return blitz_sleep((uint64_t)(uintptr_t)arg * BLITZ_US);
}

/* Waits for an event that is never set: only a cancel ends it. */
static int wait_for_ever(void *arg)
{
    blitz_event *never = arg;
    int err = blitz_event_wait(never, BLITZ_FOREVER);
    CHECK_EQ(err, -ECANCELED);
    return err;
}

struct nest {
    blitz_event *never;
    int depth;
};

/* Scopes in scopes, each with a deadline of its own. The close returns soon after the deadline, although
 * children wait for ever and others may not have begun for want of a stack. */
static int nest_scopes(void *arg)
{
    struct nest *n = arg, below = {n->never, n->depth - 1};
    blitz_scope s;
    int err = blitz_scope_open(&s, NULL, blitz_after(200 * BLITZ_US));
    CHECK(err == 0 || is_scarce(err));
    if (err != 0)
        return 0;
    for (int i = 0; i < 3; i++) {
        err = blitz_scope_spawn(&s, wait_for_ever, n->never, NULL);
        CHECK(err == 0 || err == -ECANCELED || is_scarce(err));
    }
    if (n->depth > 0) {
        err = blitz_scope_spawn(&s, nest_scopes, &below, NULL);
        CHECK(err == 0 || err == -ECANCELED || is_scarce(err));
    }
    err = blitz_scope_close(&s);
    CHECK(err == 0 || err == -ETIMEDOUT || err == -ECANCELED);
    return 0;
}

/* Children that end by themselves, joined in each way. */
static int join_children(void *arg)
{
    enum { N = 8 };
    blitz_task *t[N];
    int started = 0;
    (void)arg;
    for (uintptr_t i = 0; i < N; i++) {
        int err = blitz_spawn(nap, (void *)(10 * i), NULL, &t[started]);
        CHECK(err == 0 || is_scarce(err));
        started += err == 0;
    }
    for (int i = 0; i < started; i++) {
        int err = i % 2 ? blitz_task_join(t[i], NULL, blitz_after(50 * BLITZ_US)) : -ETIMEDOUT;
        CHECK(err == 0 || err == -ETIMEDOUT);
        if (err != 0)
            CHECK_EQ(blitz_task_join(t[i], NULL, BLITZ_FOREVER), 0);
    }
    return 0;
}

static int answer(void *arg)
{
    blitz_yield();
    return (int)(intptr_t)arg;
}

static int fork_over_a_wait(void *arg)
{
    enum { JOBS = 5 };
    blitz_job job[JOBS];
    int sum = 0;
    (void)arg;
    for (intptr_t i = 0; i < JOBS; i++)
        blitz_fork(&job[i], answer, (void *)((intptr_t)1 << i));
    (void)!blitz_sleep(BLITZ_US);
    for (int i = JOBS; i-- > 0;)
        sum += blitz_join(&job[i]);
    CHECK_EQ(sum, (1 << JOBS) - 1);
    return 0;
}

static int add_one(void *arg)
{
    return 1 + *(int *)arg;
}

static int make_calls(void *arg)
{
    int zero = 0, result = 0;
    (void)arg;
    CHECK_EQ(blitz_blocking(add_one, &zero), 1);
    CHECK_EQ(blitz_block_in_place(add_one, &zero), 1);
    static int zero_for_ever;
    int err = leave_at(add_one, &zero_for_ever, NULL, &result, BLITZ_FOREVER);
    CHECK(err == 0 || is_scarce(err));
    return 0;
}

static int program(void *arg)
{
    struct t_rng *rng = arg;
    blitz_event never;
    blitz_event_init(&never);
    struct nest nest = {&never, 3};
    static int (*const parts[])(void *) = {nest_scopes, join_children, fork_over_a_wait,
                                           make_calls};
    for (int i = 0; i < 4; i++) {
        unsigned which = (unsigned)t_rng_below(rng, BZ_ARRAY_LEN(parts));
        parts[which](&nest);
    }
    return 0;
}

static void play(uint64_t round, unsigned procs)
{
    static const enum bz_fault_kind kinds[] = {BZ_FAULT_THREAD, BZ_FAULT_RESERVE, BZ_FAULT_MEMORY,
                                               BZ_FAULT_ANY};
    struct t_rng rng = t_rng_of(round);
    struct bz_fault_plan plan = {.kind = kinds[t_rng_below(&rng, BZ_ARRAY_LEN(kinds))],
                                 .nth = 1 + t_rng_below(&rng, 24),
                                 .for_good = true,
                                 .delay_one_in = 50,
                                 .delay_ns_max = 10000,
                                 .seed = round};
    if (plan.kind == BZ_FAULT_RESERVE)
        plan.nth = 1 + plan.nth % 4;
    static struct bz_fault fault;
    struct bz_runtime *rt;
    bool has_uring = t_rng_below(&rng, 8) == 0, is_big = t_rng_below(&rng, 2) == 0;
    blitz_runtime_opts config = {.procs = procs,
                                 .allocator = &fault.allocator,
                                 .stack_bytes =
                                     is_big ? (size_t)8 << 20 : 0, /* one or two to a slab */
                                 .io = has_uring ? "uring" : "best"};
    t_watch("round %llu, %u procs: from call %llu of kind %s on all fail; %s stacks, %s",
            (unsigned long long)round, procs, (unsigned long long)plan.nth,
            plan.kind < BZ_FAULT_KINDS ? bz_fault_name(plan.kind) : "any", is_big ? "big" : "usual",
            config.io);
    bz_fault_init(&fault, &bz_os_system, NULL, &plan);
    int err = bz_runtime_new(&fault.os, &config, &rt);
    CHECK(err == 0 || is_scarce(err) || err == -EIO);
    if (err != 0)
        return;
    err = blitz_runtime_block_on((blitz_runtime *)rt, program, &rng);
    CHECK(err == 0 || is_scarce(err));
    CHECK_EQ(blitz_runtime_shutdown((blitz_runtime *)rt, BLITZ_FOREVER), 0);
    CHECK_EQ(blitz_runtime_unref((blitz_runtime *)rt), 0);
    struct bz_fault_books left = bz_fault_books(&fault);
    CHECK_EQ(left.threads, 0);
    CHECK_EQ(left.slabs, 0);
    CHECK_EQ(left.blocks, 0);
}

static void play_all(unsigned procs)
{
    blitz_log_set(NULL, NULL, BLITZ_LOG_ERROR); /* the warnings that follow are wanted */
    for (uint64_t i = 0, n = t_scaled(2000); i < n; i++)
        play(t_random(), procs);
}

TEST_LIMIT(scarce_stress, bug_43_programs_end_without_threads_stacks_or_memory_on_1_proc, 300)
{
    play_all(1);
}

TEST_LIMIT(scarce_stress, bug_43_programs_end_without_threads_stacks_or_memory_on_2_procs, 300)
{
    play_all(2);
}

TEST_LIMIT(scarce_stress, bug_43_programs_end_without_threads_stacks_or_memory_on_3_procs, 300)
{
    play_all(3);
}

TEST_LIMIT(scarce_stress, bug_43_programs_end_without_threads_stacks_or_memory_on_8_procs, 300)
{
    play_all(8);
}
