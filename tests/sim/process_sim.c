/*
 * Children in simulation: they end by themselves, by a signal, or never, with a pidfd or with SIGCHLD. A kill comes at
 * every point of a run, one after the other. A lost end is a deadlock of the simulation.
 */
#include "support/net_sim.h"

#include <signal.h>

#include "sim/processes.h"
#include "sim/sim_signals.h"

static bz_os_word poked;
static struct {
    unsigned procs;
    const char *io;
    struct bz_sim_children_config children;
} how;

/* Start it, again and again if the system refuses: it does not for long. */
static blitz_process *start(const char *program, const char *code, const char *ns)
{
    blitz_command *c;
    blitz_process *p;
    blitz_start_failure why;
    int err;
    CHECK_EQ(blitz_command_new(program, &c), 0);
    if (code != NULL) {
        blitz_command_arg(c, code);
        blitz_command_arg(c, ns);
    }
    while ((err = blitz_command_start(c, &why, &p)) == -EAGAIN) {
        CHECK_EQ(why.step, BLITZ_START_PROCESS);
        CHECK_EQ(blitz_sleep(BLITZ_US), 0);
    }
    CHECK_EQ(err, 0);
    blitz_command_unref(c);
    return p;
}

static void check_end(const blitz_exit *e, int code)
{
    CHECK((e->code == code && e->signal == 0) || (e->code == -1 && e->signal == SIGKILL));
}

/* ---- waiters ---- */

static int waits(void *arg)
{
    blitz_exit e;
    CHECK_EQ(blitz_process_wait(arg, &e, BLITZ_FOREVER), 0);
    check_end(&e, 3);
    return 0;
}

static int waits_impatiently(void *arg)
{
    blitz_exit e;
    int rc;
    while ((rc = blitz_process_wait(arg, &e, blitz_after(7 * BLITZ_US))) == -ETIMEDOUT)
        continue;
    CHECK_EQ(rc, 0);
    check_end(&e, 3);
    return 0;
}

struct polled {
    blitz_frame frame;
    blitz_process *of;
    blitz_process_future f;
};

static blitz_poll waits_stackless(void *state, blitz_cx *cx)
{
    struct polled *me = state;
    int rc;
    BLITZ_BEGIN(&me->frame, cx);
    blitz_process_wait_future_init(&me->f, me->of);
    BLITZ_AWAIT(rc, &me->f.future);
    CHECK_EQ(rc, 0);
    check_end(&me->f.exit, 3);
    BLITZ_END(me->f.result);
}

static void waits_on_a_thread(void *arg)
{
    CHECK_EQ(waits(arg), 0);
}

static int waiters(void *arg)
{
    const struct bz_os *os = arg;
    struct bz_os_thread thread;
    blitz_task *t[3];
    blitz_process *p = start("exit", "3", "40000");
    struct polled state = {.of = p};
    CHECK_EQ(bz_os_thread_start(os, &thread, NULL, waits_on_a_thread, p), 0);
    CHECK_EQ(blitz_spawn(waits, p, NULL, &t[0]), 0);
    CHECK_EQ(blitz_spawn(waits_impatiently, p, NULL, &t[1]), 0);
    CHECK_EQ(blitz_spawn_poll(waits_stackless, &state, sizeof state, NULL, &t[2]), 0);
    for (int i = 0; i < 3; i++)
        CHECK_EQ(blitz_task_join(t[i], NULL, BLITZ_FOREVER), 0);
    blitz_syscall_enter();
    CHECK_EQ(bz_os_thread_join(os, &thread), 0);
    blitz_syscall_leave();
    blitz_process_unref(p);
    return 0;
}

/* ---- stops, and processes that are given up ---- */

static int stops_one(void *arg)
{
    blitz_exit e;
    const char *program = arg;
    blitz_process *p = start(program, NULL, NULL);
    CHECK_EQ(blitz_process_stop(p, 10 * BLITZ_US, &e, BLITZ_FOREVER), 0);
    CHECK_EQ(e.code, -1);
    CHECK(e.signal == SIGKILL || (e.signal == SIGTERM && strcmp(program, "never") == 0));
    CHECK_EQ(blitz_process_signal(p, SIGTERM), -ESRCH);
    blitz_process_unref(p);
    return 0;
}

static int gives_one_up(void *arg)
{
    blitz_command *c;
    blitz_process *p;
    (void)arg;
    CHECK_EQ(blitz_command_new("never", &c), 0);
    blitz_command_kill_on_unref(c);
    if (blitz_command_start(c, NULL, &p) == 0)
        blitz_process_unref(p);
    blitz_command_unref(c);
    return 0;
}

static int no_such_program(void *arg)
{
    blitz_command *c;
    blitz_process *p;
    (void)arg;
    CHECK_EQ(blitz_command_new("nothing", &c), 0);
    int err = blitz_command_start(c, NULL, &p);
    CHECK(err == -ENOENT || err == -EAGAIN);
    blitz_command_unref(c);
    return 0;
}

static int supervises(void *arg)
{
    blitz_task *t[4];
    (void)arg;
    CHECK_EQ(blitz_spawn(stops_one, (void *)"never", NULL, &t[0]), 0);
    CHECK_EQ(blitz_spawn(stops_one, (void *)"deaf", NULL, &t[1]), 0);
    CHECK_EQ(blitz_spawn(gives_one_up, NULL, NULL, &t[2]), 0);
    CHECK_EQ(blitz_spawn(no_such_program, NULL, NULL, &t[3]), 0);
    for (int i = 0; i < 4; i++)
        CHECK_EQ(blitz_task_join(t[i], NULL, BLITZ_FOREVER), 0);
    return 0;
}

static int both(void *arg)
{
    CHECK_EQ(waiters(arg), 0);
    CHECK_EQ(supervises(NULL), 0);
    CHECK_EQ(blitz_sleep(BLITZ_MS), 0);              /* the orphan has ended */
    blitz_process_unref(start("exit", "0", "1000")); /* and is reaped now */
    CHECK_EQ(blitz_sleep(BLITZ_MS), 0);
    blitz_process *last = start("exit", "3", "1000");
    CHECK_EQ(waits(last), 0);
    blitz_process_unref(last);
    return 0;
}

/* ---- a kill at every point ---- */

static bz_atomic(bool) is_over;

static void kills(void *arg)
{
    const struct bz_os *os = arg;
    while (bz_load_acquire(&poked) == 0) /* os.h, sleep words */
        bz_os_wait(os, &poked, 0, BZ_OS_FOREVER);
    if (!bz_load_relaxed(&is_over)) /* relaxed: one thread runs at a time */
        bz_sim_children_kill_all();
}

static void play(const struct bz_os *os, void *arg)
{
    struct bz_sim_net_config net = {.busy_one_in = 4};
    struct bz_os_thread killer;
    struct bz_runtime *rt;
    (void)arg;
    bz_store_relaxed(&is_over, false); /* relaxed: as above */
    CHECK_EQ(bz_sim_net_begin(os, &net), 0);
    bz_sim_signals_begin();
    bz_sim_children_begin(os, &how.children);
    CHECK_EQ(bz_os_thread_start(os, &killer, NULL, kills, (void *)os), 0);
    CHECK_EQ(bz_runtime_new(os, &(blitz_runtime_opts){.procs = how.procs, .io = how.io}, &rt), 0);
    CHECK_EQ(blitz_runtime_block_on((blitz_runtime *)rt, both, (void *)os), 0);
    CHECK_EQ(blitz_runtime_shutdown((blitz_runtime *)rt, BLITZ_FOREVER), 0);
    CHECK_EQ(blitz_runtime_unref((blitz_runtime *)rt), 0);
    bz_store_relaxed(&is_over, true); /* relaxed: as above */
    bz_store_release(&poked, 1);      /* os.h, sleep words: it did not come to that */
    bz_os_wake(os, &poked, 1);
    CHECK_EQ(bz_os_thread_join(os, &killer), 0);
    struct bz_sim_children_books left = bz_sim_children_end();
    CHECK_EQ(left.unreaped, 0u);
    CHECK_EQ(bz_sim_signals_end(), 0);
    struct bz_sim_net_books books = bz_sim_net_end();
    CHECK_EQ(books.fds, 0u);
    CHECK_EQ(books.flights, 0u);
}

static void play_with_kill_at(uint64_t seed, uint64_t k)
{
    bz_store_relaxed(&poked, 0); /* relaxed: no task runs */
    how.procs = 1 + (unsigned)(seed % 3);
    how.io = net_keeper(seed);
    how.children = (struct bz_sim_children_config){.has_no_pidfds = seed >> 8 & 1,
                                                   .refuse_one_in = seed >> 9 & 1 ? 4 : 0};
    t_watch("simulation seed 0x%llx, %u procs, %s, %s, kill at point %llu",
            (unsigned long long)seed, how.procs, how.io,
            how.children.has_no_pidfds ? "SIGCHLD" : "pidfds", (unsigned long long)k);
    struct bz_sim_config config = {.seed = seed, .poke = &poked, .poke_at = k};
    CHECK_EQ(bz_sim_run(&config, play, NULL, NULL), 0);
}

TEST_LIMIT(process_sim, ends_are_heard_on_every_backend, 300)
{
    for (uint64_t i = 0, n = sim_seeds(300); i < n; i++)
        play_with_kill_at(sim_next_seed(), UINT64_MAX);
}

TEST_LIMIT(process_sim, a_kill_at_every_point_is_an_end_that_every_waiter_hears_of, 300)
{
    uint64_t runs = 0;
    for (int i = 0; i < 8; i++) {
        uint64_t seed = t_random();
        for (uint64_t k = 1, n = t_scaled(80); k <= n; k++, runs++)
            play_with_kill_at(seed, k * 12);
    }
    t_note("%llu runs", (unsigned long long)runs);
}
