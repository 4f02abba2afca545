/* The fault-injecting backend, and the macro that fails every call of a scenario in turn. */
#include <stdatomic.h>

#include "base/alloc.h"
#include "canaries/planted.h"
#include "support/faults.h"

static struct bz_fault fault;

static const struct bz_os *failing(enum bz_fault_kind kind, uint64_t nth)
{
    bz_fault_init(&fault, &bz_os_system, NULL, &(struct bz_fault_plan){.kind = kind, .nth = nth});
    return &fault.os;
}

static void nothing(void *arg)
{
    (void)arg;
}

/* One call of each kind that can fail; what each returned. */
static void call_each(const struct bz_os *os, int result[BZ_FAULT_KINDS])
{
    struct bz_os_thread t;
    struct bz_os_slab slab;
    size_t page = bz_os_page_bytes(os);
    struct bz_os_guards g = {0, 0, page, 1};
    bz_os_word word = 1;
    uint64_t ns, dice;

    result[BZ_FAULT_NONE] = 0;
    result[BZ_FAULT_RESERVE] = bz_os_slab_reserve(os, &slab, 2 * page, 0, BZ_OS_SLAB_PLAIN, "t");
    result[BZ_FAULT_GUARD] = result[BZ_FAULT_DISCARD] = 0;
    if (result[BZ_FAULT_RESERVE] == 0) {
        int kind = bz_os_slab_guard(os, &slab, BZ_OS_GUARD_BEST, &g);
        result[BZ_FAULT_GUARD] = kind > 0 ? 0 : kind;
        result[BZ_FAULT_DISCARD] = bz_os_pages_discard(os, slab.base + page, page);
        bz_os_slab_release(os, &slab);
    }
    result[BZ_FAULT_WAIT] = bz_os_wait(os, &word, 0, BZ_OS_FOREVER); /* -EAGAIN if it is asked */
    result[BZ_FAULT_BARRIER] = bz_os_barrier_register(os);
    result[BZ_FAULT_THREAD] = bz_os_thread_start(os, &t, NULL, nothing, NULL);
    result[BZ_FAULT_CPU_TIME] = 0;
    if (result[BZ_FAULT_THREAD] == 0) {
        result[BZ_FAULT_CPU_TIME] = bz_os_thread_cpu_time(os, &t, &ns) == -ESRCH &&
                                            bz_fault_failed(&fault) == BZ_FAULT_CPU_TIME
                                        ? -ESRCH
                                        : 0; /* it may have ended by itself */
        CHECK_EQ(bz_os_thread_join(os, &t), 0);
    }
    result[BZ_FAULT_INTERRUPT] =
        bz_os_thread_interrupt(os, bz_os_thread_id(os)); /* ignored by default */
    result[BZ_FAULT_ENTROPY] = bz_os_entropy(os, &dice, sizeof dice);
    void *block = bz_alloc(&fault.allocator, 100, 16);
    result[BZ_FAULT_MEMORY] = block == NULL ? -ENOMEM : 0;
    bz_free(&fault.allocator, block, 100);
}

static void books_are_even(void)
{
    struct bz_fault_books left = bz_fault_books(&fault);
    CHECK_EQ(left.threads, (int64_t)0);
    CHECK_EQ(left.slabs, (int64_t)0);
    CHECK_EQ(left.blocks, (int64_t)0);
}

/* ---- the backend ---- */

TEST(os_fault, without_a_plan_nothing_fails)
{
    int result[BZ_FAULT_KINDS];
    call_each(failing(BZ_FAULT_ANY, 0), result);
    for (int kind = 0; kind < BZ_FAULT_KINDS; kind++)
        CHECK_EQ(result[kind], kind == BZ_FAULT_WAIT ? -EAGAIN : 0);
    CHECK_EQ((int)bz_fault_failed(&fault), (int)BZ_FAULT_NONE);
    books_are_even();
}

TEST(os_fault, each_kind_fails_alone_and_in_its_own_way)
{
    static const int way[BZ_FAULT_KINDS] = {
        [BZ_FAULT_THREAD] = -EAGAIN,  [BZ_FAULT_RESERVE] = -ENOMEM,
        [BZ_FAULT_GUARD] = -ENOMEM,   [BZ_FAULT_DISCARD] = -ENOMEM,
        [BZ_FAULT_WAIT] = 0,          [BZ_FAULT_BARRIER] = -ENOSYS,
        [BZ_FAULT_CPU_TIME] = -ESRCH, [BZ_FAULT_INTERRUPT] = -EAGAIN,
        [BZ_FAULT_ENTROPY] = -EIO,    [BZ_FAULT_MEMORY] = -ENOMEM,
    };
    for (int failed = BZ_FAULT_THREAD; failed < BZ_FAULT_KINDS; failed++) {
        int result[BZ_FAULT_KINDS];
        call_each(failing((enum bz_fault_kind)failed, 1), result);
        CHECK_EQ((int)bz_fault_failed(&fault), failed);
        for (int kind = BZ_FAULT_THREAD; kind < BZ_FAULT_KINDS; kind++) {
            int otherwise = kind == BZ_FAULT_WAIT ? -EAGAIN : 0;
            CHECK_EQ(result[kind], kind == failed ? way[kind] : otherwise);
        }
        books_are_even();
    }
}

TEST(os_fault, only_the_nth_call_fails)
{
    for (uint64_t nth = 1; nth <= 5; nth++) {
        const struct bz_os *os = failing(BZ_FAULT_ENTROPY, nth);
        char byte;
        for (uint64_t call = 1; call <= 6; call++)
            CHECK_EQ(bz_os_entropy(os, &byte, 1), call == nth ? -EIO : 0);
    }
}

TEST(os_fault, any_counts_calls_of_every_kind)
{
    const struct bz_os *os = failing(BZ_FAULT_ANY, 3);
    struct bz_os_slab slab;
    char byte;
    CHECK_EQ(bz_os_entropy(os, &byte, 1), 0);
    CHECK_EQ(bz_os_slab_reserve(os, &slab, bz_os_page_bytes(os), 0, BZ_OS_SLAB_PLAIN, NULL), 0);
    CHECK_NULL(bz_alloc(&fault.allocator, 8, 8));
    CHECK_EQ((int)bz_fault_failed(&fault), (int)BZ_FAULT_MEMORY);
    CHECK_EQ(bz_fault_books(&fault).slabs, (int64_t)1);
    bz_os_slab_release(os, &slab);
    books_are_even();
}

/* The runtime decides once: a barrier that was refused stays refused. */
TEST(os_fault, after_a_refused_registration_there_are_no_barriers)
{
    const struct bz_os *os = failing(BZ_FAULT_BARRIER, 1);
    CHECK_EQ(bz_os_barrier_register(os), -ENOSYS);
    CHECK_EQ(bz_os_barrier(os), -ENOSYS);
    os = failing(BZ_FAULT_NONE, 0);
    if (bz_os_barrier_register(os) == 0)
        CHECK_EQ(bz_os_barrier(os), 0);
}

TEST(os_fault, the_rest_is_the_keeper_beneath)
{
    const struct bz_os *os = failing(BZ_FAULT_ANY, 0);
    bz_os_word word = 0;
    uint64_t before = bz_os_now(&bz_os_system), now = bz_os_now(os);
    CHECK_GE(now, before);
    CHECK_GE(bz_os_now(&bz_os_system), now);
    uint64_t used = bz_os_cpu_time(os);
    CHECK_LE(used, bz_os_cpu_time(&bz_os_system));
    CHECK_EQ(bz_os_page_bytes(os), bz_os_page_bytes(&bz_os_system));
    CHECK_EQ(bz_os_cpus(os), bz_os_cpus(&bz_os_system));
    CHECK_EQ(bz_os_wait(os, &word, 0, 1), -ETIMEDOUT);
    bz_os_wake(os, &word, 1);
    bz_os_relax(os, 0);
    bz_os_delay_here(os, BZ_OS_AT_LOCK);
}

/* Delays are what makes stress find anything. */
TEST(os_fault, delay_points_linger_as_often_as_planned)
{
    struct bz_fault_plan plan = {.delay_one_in = 4, .delay_ns_max = 100000, .seed = 1};
    int late = 0;
    bz_fault_init(&fault, &bz_os_system, NULL, &plan);
    for (int i = 0; i < 400; i++) {
        uint64_t before = bz_os_cpu_time(&bz_os_system);
        bz_os_delay_here(&fault.os, BZ_OS_AT_PUBLISH);
        late += bz_os_cpu_time(&bz_os_system) - before > 5000;
    }
    CHECK_GE(late, 50); /* a quarter of 400, less those too short to be told from noise */
    CHECK_LE(late, 300);
    plan = (struct bz_fault_plan){.delay_one_in = 1};
    bz_fault_init(&fault, &bz_os_system, NULL, &plan);
    bz_os_delay_here(&fault.os, BZ_OS_AT_PUBLISH);
}

TEST(os_fault, every_kind_has_a_name)
{
    CHECK_STR_EQ(bz_fault_name(BZ_FAULT_NONE), "none");
    CHECK_STR_EQ(bz_fault_name(BZ_FAULT_MEMORY), "memory");
    CHECK_STR_EQ(bz_fault_name(BZ_FAULT_ANY), "any");
}

/* ---- the macro ---- */

/* A little machine shop: a slab with a guard, a block, two threads that meet, undone in reverse. */
struct shop {
    const struct bz_os *os;
    bz_os_word open;
    atomic_int visitors;
};

static void visit(void *arg)
{
    struct shop *s = arg;
    while (atomic_load(&s->open) == 0)
        (void)bz_os_wait(s->os, &s->open, 0, BZ_OS_FOREVER);
    atomic_fetch_add(&s->visitors, 1);
}

static void shop_open(struct shop *s)
{
    atomic_store(&s->open, 1);
    bz_os_wake(s->os, &s->open, UINT32_MAX);
}

static int visitors_come(const struct bz_os *os, struct shop *s)
{
    struct bz_os_thread first, second;
    int err = bz_os_thread_start(os, &first, NULL, visit, s);
    if (err != 0)
        return err;
    err = bz_os_thread_start(os, &second, NULL, visit, s);
    if (BZ_BROKEN(31) && err != 0)
        err = 1; /* the error is forgotten, the rest goes on as if it had come */
    shop_open(s);
    if (err == 0)
        (void)bz_os_thread_join(os, &second);
    (void)bz_os_thread_join(os, &first);
    return err > 0 ? 0 : err;
}

static int shop_day(const struct bz_os *os, const blitz_allocator *memory, void *arg)
{
    struct bz_os_slab slab;
    size_t page = bz_os_page_bytes(os);
    struct bz_os_guards g = {0, 0, page, 1};
    uint64_t dice;
    (void)arg;

    int err = bz_os_slab_reserve(os, &slab, 4 * page, 0, BZ_OS_SLAB_PLAIN, "shop");
    if (err != 0)
        return err;
    if (bz_os_slab_guard(os, &slab, BZ_OS_GUARD_BEST, &g) < 0)
        slab.base[0] = 77; /* another way: a canary */
    struct shop *s = bz_alloc(memory, sizeof *s, _Alignof(struct shop));
    err = -ENOMEM;
    if (s == NULL)
        goto release;
    *s = (struct shop){.os = os};
    err = bz_os_entropy(os, &dice, sizeof dice);
    if (err == 0)
        err = visitors_come(os, s);
    bz_free(memory, s, sizeof *s);
release:
    bz_os_slab_release(os, &slab);
    return err;
}

TEST(os_fault, a_careful_scenario_survives_every_failure)
{
    FAULTS_EACH(shop_day, .tolerates = T_FAULT(GUARD));
}

TEST(os_fault, a_careful_scenario_survives_every_failure_on_every_schedule)
{
    FAULTS_EACH(shop_day, .tolerates = T_FAULT(GUARD), .sim_seeds = 20);
}

static struct t_faults all;

static const char *verdict_on(t_fault_scenario scenario, unsigned tolerates)
{
    all = (struct t_faults){.scenario = scenario, .tolerates = tolerates};
    t_faults_each(&all);
    return all.verdict;
}

/* For every call of a scenario there is an n that fails it. */
TEST(os_fault, every_kind_of_call_is_failed_once)
{
    CHECK_STR_EQ(verdict_on(shop_day, T_FAULT(GUARD)), "");
    unsigned want =
        T_FAULT(RESERVE) | T_FAULT(GUARD) | T_FAULT(MEMORY) | T_FAULT(ENTROPY) | T_FAULT(THREAD);
    CHECK_EQ(all.seen & want, want);
    CHECK_GE(all.runs, (uint64_t)7); /* six calls at least, and the run without a failure */
}

static int ignores_an_error(const struct bz_os *os, const blitz_allocator *memory, void *arg)
{
    uint64_t dice = 0;
    (void)memory;
    (void)arg;
    (void)!bz_os_entropy(os, &dice, sizeof dice);
    return 0;
}

TEST(os_fault, an_ignored_error_is_found)
{
    CHECK(strstr(verdict_on(ignores_an_error, 0), "call 1 (entropy) failed") != NULL);
    CHECK(strstr(all.verdict, "the error was ignored") != NULL);
    CHECK_STR_EQ(verdict_on(ignores_an_error, T_FAULT(ENTROPY)), "");
}

static int leaks_on_error(const struct bz_os *os, const blitz_allocator *memory, void *arg)
{
    static struct bz_os_slab slab;
    uint64_t dice;
    (void)memory;
    (void)arg;
    int err = bz_os_slab_reserve(os, &slab, bz_os_page_bytes(os), 0, BZ_OS_SLAB_PLAIN, NULL);
    if (err != 0)
        return err;
    err = bz_os_entropy(os, &dice, sizeof dice);
    if (err != 0)
        return err; /* and the slab? */
    bz_os_slab_release(os, &slab);
    return 0;
}

TEST(os_fault, a_leak_on_the_way_out_is_found)
{
    CHECK(strstr(verdict_on(leaks_on_error, 0), "after call 2 (entropy) failed: leaked 0 threads, "
                                                "1 slabs, 0 blocks") != NULL);
}

static int fails_where_it_must_not(const struct bz_os *os, const blitz_allocator *memory, void *arg)
{
    void *block = bz_alloc(memory, 8, 8);
    (void)os;
    (void)arg;
    bz_free(memory, block, 8);
    return block == NULL ? -ENOMEM : 0;
}

TEST(os_fault, a_failure_that_must_be_tolerated_and_is_not_is_found)
{
    CHECK(strstr(verdict_on(fails_where_it_must_not, T_FAULT(MEMORY)), "must be tolerated") !=
          NULL);
    CHECK_STR_EQ(verdict_on(fails_where_it_must_not, 0), "");
}

static int fails_by_itself(const struct bz_os *os, const blitz_allocator *memory, void *arg)
{
    (void)os;
    (void)memory;
    (void)arg;
    return -EPERM;
}

TEST(os_fault, a_scenario_that_fails_by_itself_is_found)
{
    CHECK(strstr(verdict_on(fails_by_itself, 0), "(none) failed, which must be tolerated, and the "
                                                 "scenario returned -1") != NULL);
}

/* Waits for a wake that was never promised: a wait that returns for no reason breaks it. */
static int believes_in_wakes(const struct bz_os *os, const blitz_allocator *memory, void *arg)
{
    bz_os_word word = 0;
    (void)memory;
    (void)arg;
    return bz_os_wait(os, &word, 0, 1) == -ETIMEDOUT ? 0 : -EIO;
}

TEST(os_fault, a_wait_that_is_believed_is_found)
{
    CHECK(strstr(verdict_on(believes_in_wakes, 0),
                 "call 1 (wait) failed, which must be tolerated") != NULL);
}

static int deadlocks_on_error(const struct bz_os *os, const blitz_allocator *memory, void *arg)
{
    bz_os_word word = 0;
    uint64_t dice;
    (void)memory;
    (void)arg;
    int err = bz_os_entropy(os, &dice, sizeof dice);
    while (err != 0)
        (void)bz_os_wait(os, &word, 0, BZ_OS_FOREVER);
    return 0;
}

TEST(os_fault, a_deadlock_on_the_way_out_is_found)
{
    all = (struct t_faults){.scenario = deadlocks_on_error, .sim_seeds = 3};
    t_faults_each(&all);
    CHECK(strstr(all.verdict, "call 1 failing, seed 0x") != NULL);
    CHECK(strstr(all.verdict, "simulation: deadlock") != NULL);
}
