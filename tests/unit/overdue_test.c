/* The report of a shutdown about tasks that do not end, and sleeps of a cancelled task. */
#include "harness.h"

#include <stdatomic.h>

#include "blitz.h"
#include "sim/sim.h"
#include "proc/state.h"
#include "runtime/runtime.h"
#include "support/sanitizers.h"

static atomic_int said; /* lines about tasks that have not ended */
static char last[512];

static void hear_log(void *ctx, blitz_log_level level, const char *message)
{
    (void)ctx;
    (void)level;
    if (strstr(message, "has not ended") == NULL)
        return;
    snprintf(last, sizeof last, "%s", message);
    atomic_fetch_add(&said, 1);
}

static void says(const char *words)
{
    if (strstr(last, words) == NULL)
        FAIL("\"%s\" does not contain \"%s\"", last, words);
}

/* ---- on threads ---- */

/* Ignores its cancel, as a loop does whose author did not look at the result. */
static int ignores_its_cancel(void *arg)
{
    (void)arg;
    while (atomic_load(&said) == 0)
        (void)!blitz_sleep(BLITZ_MS);
    return 0;
}

static int leaves_a_stubborn_task(void *arg)
{
    (void)arg;
    return blitz_spawn(ignores_its_cancel, NULL, &(blitz_spawn_opts){.name = "mule"}, NULL);
}

/* Without the log line the program would hang without an explanation. */
TEST(overdue, a_task_that_ignores_its_cancel_is_named_with_its_place)
{
    blitz_runtime_opts config = {.procs = 1, .log = hear_log};
    CHECK_EQ(blitz_run(leaves_a_stubborn_task, NULL, &config), 0);
    CHECK_GE(atomic_load(&said), 1);
    says("(mule) has not ended after ");
    if (strstr(last, ", at ") == NULL)
        says(", begun in ");
}

static atomic_int neighbour_ran;

static int neighbour(void *arg)
{
    (void)arg;
    atomic_store(&neighbour_ran, 1);
    return 0;
}

static int sleeps_cancelled(void *arg)
{
    (void)arg;
    blitz_task_cancel(blitz_task_current());
    CHECK_EQ(blitz_spawn(neighbour, NULL, NULL, NULL), 0);
    CHECK_EQ(blitz_sleep(BLITZ_S), -ECANCELED);
    return atomic_load(&neighbour_ran);
}

/* One proc: the neighbour runs only if the sleeper lets it. */
TEST(overdue, the_sleep_of_a_cancelled_task_yields)
{
    CHECK_EQ(blitz_run(sleeps_cancelled, NULL, &(blitz_runtime_opts){.procs = 1}), 1);
}

/* ---- in virtual time ---- */

enum { SECONDS = 25 };

static int sleeps_shielded(void *arg)
{
    (void)arg;
    blitz_shield();
    CHECK_EQ(blitz_sleep(SECONDS * BLITZ_S), 0);
    blitz_unshield();
    return 0;
}

static int leaves_many(void *arg)
{
    for (intptr_t i = 0; i < (intptr_t)arg; i++)
        CHECK_EQ(blitz_spawn(sleeps_shielded, NULL, NULL, NULL), 0);
    CHECK_EQ(blitz_sleep(BLITZ_MS), 0);
    return 0;
}

static void run_and_stop(const struct bz_os *os, void *arg)
{
    struct bz_runtime *rt;
    CHECK_EQ(bz_runtime_new(os, &(blitz_runtime_opts){.procs = 2, .log = hear_log}, &rt), 0);
    CHECK_EQ(blitz_runtime_block_on((blitz_runtime *)rt, leaves_many, arg), 0);
    CHECK_EQ(blitz_runtime_shutdown((blitz_runtime *)rt, BLITZ_FOREVER), 0);
    CHECK_EQ(blitz_runtime_unref((blitz_runtime *)rt), 0);
}

static void in_simulation(intptr_t tasks)
{
    atomic_store(&said, 0);
    uint64_t seed = t_random();
    t_watch("simulation seed 0x%llx", (unsigned long long)seed);
    CHECK_EQ(bz_sim_run(&(struct bz_sim_config){.seed = seed}, run_and_stop, (void *)tasks, NULL),
             0);
}

TEST(overdue, a_shutdown_speaks_after_one_second_and_then_every_ten)
{
    in_simulation(1);
    CHECK_EQ(atomic_load(&said), 3); /* at 1, 11 and 21 s */
    t_skip_if_memory_is_hidden();    /* the kind of a wait is in memory that may have been freed */
    says("waiting for sleep");
    says("has not ended after 21.0 s");
}

TEST(overdue, a_thousand_overdue_tasks_are_a_few_lines)
{
    in_simulation(1000);
    CHECK_EQ(atomic_load(&said), 3 * 10);
    blitz_log_set(NULL, NULL, BLITZ_LOG_WARN);
}
