/*
 * Combinators on real threads: the random programs of the simulation, with plain threads that wait and
 * that complete promises, at 1, 2 and 8 procs. Sanitizers watch the frames. And scopes that are
 * cancelled from outside while they end.
 */
#include "harness.h"

#include "support/combine_program.h"

TEST(combine, bug_21_random_programs_on_real_threads)
{
    static const unsigned procs[] = {1, 2, 8};
    uint64_t n = t_scaled(1500);
    for (uint64_t i = 0; i < n; i++) {
        uint64_t seed = t_random();
        t_watch("seed 0x%llx, %u procs", (unsigned long long)seed, procs[i % 3]);
        combine_play(&bz_os_system, seed, procs[i % 3]);
    }
    t_note("%llu programs", (unsigned long long)n);
}

/* ---- promises: many threads, one outcome ---- */

enum { RIVALS = 3, WAITERS = 4, ROUNDS = 200 };

static blitz_promise *promise;
static bz_atomic(int) kept, given;

static void rival(void *completer)
{
    static int value;
    int err = blitz_completer_complete(completer, &value);
    CHECK(err == 0 || err == -EALREADY);
    bz_fetch_add_relaxed(&kept, err == 0); /* relaxed: a count, as is the other */
    blitz_completer_unref(completer);
}

static int waits(void *arg)
{
    void *value = NULL;
    int err =
        blitz_promise_await(promise, &value, arg != NULL ? BLITZ_FOREVER : blitz_after(BLITZ_US));
    CHECK(err == 0 || (arg == NULL && err == -ETIMEDOUT));
    bz_fetch_add_relaxed(&given, value != NULL);
    return 0;
}

static int one_promise(void *arg)
{
    struct bz_os_thread thread[RIVALS];
    blitz_task *t[WAITERS];
    blitz_completer *c;
    (void)arg;
    bz_store_relaxed(&kept, 0); /* relaxed: before they begin */
    bz_store_relaxed(&given, 0);
    CHECK_EQ(blitz_promise_new(NULL, &promise, &c), 0);
    for (int i = 0; i < WAITERS; i++)
        CHECK_EQ(blitz_spawn(waits, i % 2 ? &promise : NULL, NULL, &t[i]), 0);
    for (int i = 0; i < RIVALS; i++)
        CHECK_EQ(bz_os_thread_start(&bz_os_system, &thread[i], NULL, rival, blitz_completer_ref(c)),
                 0);
    blitz_completer_unref(c);
    for (int i = 0; i < WAITERS; i++)
        CHECK_EQ(blitz_task_join(t[i], NULL, BLITZ_FOREVER), 0);
    for (int i = 0; i < RIVALS; i++)
        CHECK_EQ(bz_os_thread_join(&bz_os_system, &thread[i]), 0);
    CHECK_EQ(bz_load_relaxed(&kept), 1);
    CHECK_EQ(bz_load_relaxed(&given), 1);
    blitz_promise_unref(promise);
    return 0;
}

static int many_promises(void *arg)
{
    for (uint64_t i = t_scaled(ROUNDS); i > 0; i--)
        CHECK_EQ(one_promise(arg), 0);
    return 0;
}

TEST(promise, bug_24_of_many_completers_one_succeeds_and_one_waiter_gets_the_value)
{
    static const unsigned procs[] = {1, 2, 8};
    for (int i = 0; i < 3; i++)
        CHECK_EQ(blitz_run(many_promises, NULL, &(blitz_runtime_opts){.procs = procs[i]}), 0);
}

/* ---- scopes, cancelled from outside ---- */

static blitz_token *token;

static void cancels(void *arg)
{
    (void)arg;
    blitz_token_cancel(token);
}

static int short_work(void *arg)
{
    (void)arg;
    return blitz_sleep(20 * BLITZ_US);
}

static int one_scope(uint64_t deadline_ns)
{
    struct bz_os_thread thread;
    blitz_scope s;
    CHECK_EQ(blitz_token_new(NULL, &token), 0);
    CHECK_EQ(blitz_scope_open(&s, &(blitz_scope_opts){.token = token}, blitz_after(deadline_ns)),
             0);
    CHECK_EQ(bz_os_thread_start(&bz_os_system, &thread, NULL, cancels, NULL), 0);
    for (int i = 0; i < 20; i++) {
        int err = blitz_scope_spawn(&s, short_work, NULL, NULL);
        CHECK(err == 0 || err == -ECANCELED);
    }
    int err = blitz_scope_close(&s);
    CHECK(err == 0 || err == -ETIMEDOUT || err == -ECANCELED);
    CHECK_EQ(bz_os_thread_join(&bz_os_system, &thread), 0);
    blitz_token_unref(token);
    return 0;
}

static int many_scopes(void *arg)
{
    (void)arg;
    for (uint64_t i = t_scaled(300); i > 0; i--)
        CHECK_EQ(one_scope(i % 100 * BLITZ_US), 0);
    return 0;
}

TEST(scope, a_token_and_a_deadline_meet_its_end)
{
    static const unsigned procs[] = {1, 2, 8};
    for (int i = 0; i < 3; i++)
        CHECK_EQ(blitz_run(many_scopes, NULL, &(blitz_runtime_opts){.procs = procs[i]}), 0);
}
