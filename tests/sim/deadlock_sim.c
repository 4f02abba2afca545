/* monitor/deadlock.h in virtual time: each reason why a wait may still end, and a wait that cannot. */
#include "runtime/runtime.h"
#include "support/event.h"
#include "support/sched_sim.h"

enum { LONG_S = 60 }; /* longer than the monitor keeps checking */

struct scene;
typedef void actor_fn(struct scene *s);

struct scene {
    actor_fn *actor; /* the source that ends the wait; NULL: none */
    struct bz_runtime *rt, *other;
    const struct bz_os *os;
    struct t_event event;
    struct bz_os_thread thread;
    bool has_thread;
};

static int deadlocks; /* reported; one OS thread runs it all */

static void hears(void *ctx, blitz_log_level level, const char *message)
{
    (void)ctx;
    (void)level;
    deadlocks += strncmp(message, "deadlock: ", 10) == 0;
}

static int waits(void *arg)
{
    struct scene *s = arg;
    if (s->actor != NULL)
        s->actor(s);
    return t_event_await_until(&s->event, BLITZ_FOREVER);
}

static void play(const struct bz_os *os, void *arg)
{
    struct scene *s = arg;
    blitz_runtime_opts config = {.procs = 2, .log = hears};
    s->os = os;
    t_event_init(&s->event, os);
    CHECK_EQ(bz_runtime_new(os, &config, &s->rt), 0);
    CHECK_EQ(bz_runtime_new(os, &config, &s->other), 0);
    CHECK_EQ(blitz_runtime_block_on((blitz_runtime *)s->rt, waits, s), 0);
    if (s->has_thread)
        CHECK_EQ(bz_os_thread_join(os, &s->thread), 0);
    CHECK_EQ(blitz_runtime_shutdown((blitz_runtime *)s->rt, BLITZ_FOREVER), 0);
    CHECK_EQ(blitz_runtime_shutdown((blitz_runtime *)s->other, BLITZ_FOREVER), 0);
    CHECK_EQ(blitz_runtime_unref((blitz_runtime *)s->rt), 0);
    CHECK_EQ(blitz_runtime_unref((blitz_runtime *)s->other), 0);
}

/* ---- threads that may still act ---- */

static int sleeps_then_sets(void *arg)
{
    struct scene *s = arg;
    CHECK_EQ(blitz_sleep(LONG_S * BLITZ_S), 0);
    t_event_set(&s->event);
    return 0;
}

static void a_timer(struct scene *s)
{
    CHECK_EQ(blitz_spawn(sleeps_then_sets, s, NULL, NULL), 0);
}

static void another_runtime(struct scene *s)
{
    blitz_spawn_opts opts = {.runtime = (blitz_runtime *)s->other};
    CHECK_EQ(blitz_spawn(sleeps_then_sets, s, &opts, NULL), 0);
}

static int burns(void *arg)
{
    (void)arg;
    bz_sim_burn(LONG_S * BLITZ_S);
    return 0;
}

static int blocks_then_sets(void *arg)
{
    struct scene *s = arg;
    CHECK_EQ(blitz_blocking(burns, NULL), 0);
    t_event_set(&s->event);
    return 0;
}

static void blocking_work(struct scene *s)
{
    CHECK_EQ(blitz_spawn(blocks_then_sets, s, NULL, NULL), 0);
}

static void thread_sleeps(void *arg)
{
    struct scene *s = arg;
    bz_os_word word = 0;
    uint64_t until = bz_os_now(s->os) + LONG_S * BLITZ_S;
    while (bz_os_wait(s->os, &word, 0, until) != -ETIMEDOUT)
        continue;
    t_event_set(&s->event);
}

static void thread_burns(void *arg)
{
    struct scene *s = arg;
    bz_sim_burn(LONG_S * BLITZ_S);
    t_event_set(&s->event);
}

static void start_thread(struct scene *s, void (*fn)(void *))
{
    CHECK_EQ(bz_os_thread_start(s->os, &s->thread, NULL, fn, s), 0);
    s->has_thread = true;
}

static void a_thread_that_sleeps(struct scene *s)
{
    start_thread(s, thread_sleeps);
}

static void a_thread_that_computes(struct scene *s)
{
    start_thread(s, thread_burns);
}

static void ends_well_unreported(actor_fn *actor)
{
    deadlocks = 0;
    for (uint64_t i = 0, n = sim_seeds(40); i < n; i++) {
        struct scene s = {.actor = actor};
        uint64_t seed = sim_next_seed();
        t_watch("simulation seed 0x%llx", (unsigned long long)seed);
        CHECK_EQ(bz_sim_run(&(struct bz_sim_config){.seed = seed}, play, &s, NULL), 0);
        CHECK_EQ(deadlocks, 0);
    }
}

TEST(deadlock, a_timer_may_end_it)
{
    ends_well_unreported(a_timer);
}

TEST(deadlock, a_task_of_another_runtime_may_end_it)
{
    ends_well_unreported(another_runtime);
}

TEST(deadlock, blocking_work_may_end_it)
{
    ends_well_unreported(blocking_work);
}

TEST(deadlock, a_thread_that_sleeps_may_end_it)
{
    ends_well_unreported(a_thread_that_sleeps);
}

TEST(deadlock, a_thread_that_computes_may_end_it)
{
    ends_well_unreported(a_thread_that_computes);
}

/* ---- no thread may act ---- */

TEST(deadlock, is_reported_once_when_no_thread_is_left)
{
    for (uint64_t i = 0, n = sim_seeds(40); i < n; i++) {
        struct scene s = {.actor = NULL};
        uint64_t seed = sim_next_seed();
        deadlocks = 0;
        t_watch("simulation seed 0x%llx", (unsigned long long)seed);
        CHECK_EQ(t_sim_with((struct bz_sim_config){.seed = seed}, play, &s, NULL), -EDEADLK);
        CHECK_EQ(deadlocks, 1);
    }
}
