/*
 * Stacks when the system says no: every call the pool makes fails in turn. What was asked for comes
 * back as an error, economies are simply not made, and nothing is left behind.
 */
#include "support/faults.h"
#include "support/stacks.h"

enum { MANY = 120 }; /* three slabs of 64 KiB stacks */

static void say_nothing(void *ctx, blitz_log_level level, const char *message)
{
    (void)ctx, (void)level, (void)message;
}

/* Take, go deep, park, give back, take again; the first error is kept and everything is returned. */
static int use_stacks(struct bz_stack_pool *p, int many)
{
    struct bz_stack_cache cache;
    struct bz_stack *held[MANY];
    int err = 0;
    bz_stack_cache_init(&cache, p);
    for (int round = 0; round < 3; round++) {
        int count = 0;
        while (count < many && err == 0) {
            err = bz_stack_take(&cache, (enum bz_stack_class)(count % 7 == 0), &held[count]);
            if (err != 0)
                break;
            t_stack_dirty(held[count], count % 3 == 0 ? 40 << 10 : 500);
            bz_stack_trim(held[count++]);
        }
        bz_stack_pool_check(p);
        while (count > 0)
            bz_stack_give(&cache, held[--count]);
        bz_stack_cache_trim(&cache);
        if (round == 1)
            bz_stack_pool_trim(p);
        bz_stack_pool_check(p);
    }
    bz_stack_cache_fini(&cache);
    return err;
}

static int scenario(const struct bz_os *os, const blitz_allocator *memory, void *arg)
{
    struct bz_stack_pool pool;
    struct bz_stack_config config = {os, memory, *(enum bz_stack_guards *)arg, 20};
    CHECK_EQ(bz_stack_pool_init(&pool, &config), 0);
    int err = use_stacks(&pool, MANY);
    bz_stack_pool_check(&pool);
    bz_stack_pool_fini(&pool);
    return err;
}

TEST(stack_fault, every_refusal_comes_back_or_is_made_good_by_canaries)
{
    enum bz_stack_guards guards = BZ_STACK_GUARDS_BEST;
    blitz_log_set(say_nothing, NULL, BLITZ_LOG_WARN);
    FAULTS_EACH(scenario, .arg = &guards, .tolerates = T_FAULT(GUARD) | T_FAULT(DISCARD));
}

TEST(stack_fault, with_guards_required_a_refused_guard_is_an_error)
{
    enum bz_stack_guards guards = BZ_STACK_GUARDS_REQUIRED;
    blitz_log_set(say_nothing, NULL, BLITZ_LOG_WARN);
    FAULTS_EACH(scenario, .arg = &guards, .tolerates = T_FAULT(DISCARD));
}

/* ---- two owners, in every order a seed picks -------------------------------------------------- */

struct owner {
    struct bz_stack_pool *pool;
    int err;
};

static void owner_main(void *arg)
{
    struct owner *o = arg;
    o->err = use_stacks(o->pool, MANY / 3);
}

static int two_owners(const struct bz_os *os, const blitz_allocator *memory, void *arg)
{
    struct bz_stack_pool pool;
    struct bz_stack_config config = {os, memory, BZ_STACK_GUARDS_BEST, 20};
    struct owner owner[2] = {{&pool, 0}, {&pool, 0}};
    struct bz_os_thread thread;
    (void)arg;
    CHECK_EQ(bz_stack_pool_init(&pool, &config), 0);
    int err = bz_os_thread_start(os, &thread, NULL, owner_main, &owner[1]);
    owner_main(&owner[0]);
    if (err == 0)
        bz_os_thread_join(os, &thread);
    bz_stack_pool_check(&pool);
    bz_stack_pool_fini(&pool);
    return err != 0 ? err : owner[0].err != 0 ? owner[0].err : owner[1].err;
}

TEST(stack_fault, two_owners_of_one_pool_under_simulation)
{
    blitz_log_set(say_nothing, NULL, BLITZ_LOG_WARN);
    FAULTS_EACH(two_owners, .tolerates = T_FAULT(GUARD) | T_FAULT(DISCARD), .sim_seeds = 2);
}
