/*
 * Ours. The tickers are fibers; hogs and endless loops are spawned after them from the same plain
 * thread. --burning=N sets the runtime options' burning_max, to see what a limit does.
 * What each case is: bench/fair.toml. Only public headers, but for the cost of the check (check.h).
 */
#include <blitz.h>

#include <unistd.h>

#include "fair/check.h"
#include "fair/tickers.h"
#include "fair/work.h"
#include "tasks/tasks.h"

static blitz_runtime_opts config;
static unsigned loops;       /* how many endless loops there are, out of the case's name */
static blitz_runtime *world; /* the runtime of a case that is driven by a plain thread */

static void must(int rc, const char *what)
{
    if (rc < 0)
        bench_die("%s: error %d", what, -rc);
}

/* ---- tickers beside hogs ---- */

static int tick(void *arg)
{
    unsigned me = (unsigned)(uintptr_t)arg;
    for (unsigned k = 0; k < TICKS && !tickers_are_over(); k++) {
        (void)!blitz_sleep_until(ticker_due(me, k));
        ticker_came(me, k);
    }
    return 0;
}

static int hog(void *arg)
{
    (void)arg;
    while (!tickers_are_over()) {
        hog_once();
        blitz_yield();
    }
    return 0;
}

static int loop(void *arg)
{
    (void)arg;
    loop_for_ever();
    return 0;
}

static void spawn_in_world(int (*fn)(void *), unsigned arg)
{
    blitz_spawn_opts opts = {.runtime = world};
    must(blitz_spawn(fn, (void *)(uintptr_t)arg, &opts, NULL), "spawn");
}

static struct tickers_figures beside(int (*fn)(void *), unsigned count)
{
    tickers.start_ns = bench_now_ns() + LEAD_NS;
    for (unsigned i = 0; i < TICKERS; i++)
        spawn_in_world(tick, i);
    for (unsigned i = 0; i < count; i++)
        spawn_in_world(fn, i);
    return tickers_close();
}

static double case_hogs_p50(uint64_t ops)
{
    (void)ops;
    return beside(hog, tasks_procs).p50_ms;
}

static double case_hogs_p99(uint64_t ops)
{
    (void)ops;
    return beside(hog, tasks_procs).p99_ms;
}

static double case_hogs_wakes(uint64_t ops)
{
    (void)ops;
    return beside(hog, tasks_procs).delivered_percent;
}

static double case_loops(uint64_t ops)
{
    (void)ops;
    return beside(loop, loops).p99_ms;
}

/* ---- work beside endless loops ---- */

static int work_body(size_t from, size_t to, void *sums)
{
    for (; from < to; from++)
        ((double *)sums)[from] = work_part(from);
    return 0;
}

static int reduce(void *arg)
{
    static double sums[WORK_PARTS];
    int count = 0;
    (void)arg;
    for (; !work_is_over(); count++) {
        double sum = 0;
        must(blitz_for(WORK_PARTS, work_body, sums, NULL), "loop");
        for (size_t i = 0; i < WORK_PARTS; i++)
            sum += sums[i];
        bench_keep((uint64_t)sum);
    }
    return count;
}

static int answer(void *arg)
{
    blitz_chan **c = arg;
    int value;
    while (blitz_chan_recv(c[0], &value, BLITZ_FOREVER) == 0)
        must(blitz_chan_send(c[1], &value, BLITZ_FOREVER), "send");
    return 0;
}

static int request(void *arg)
{
    blitz_chan *c[2];
    blitz_task *t;
    int count = 0;
    (void)arg;
    must(blitz_chan_new(sizeof(int), 0, NULL, &c[0]), "chan");
    must(blitz_chan_new(sizeof(int), 0, NULL, &c[1]), "chan");
    must(blitz_spawn(answer, c, NULL, &t), "spawn");
    for (; !work_is_over(); count++) {
        bench_keep((uint64_t)work_request());
        must(blitz_chan_send(c[0], &count, BLITZ_FOREVER), "send");
        must(blitz_chan_recv(c[1], &count, BLITZ_FOREVER), "recv");
    }
    blitz_chan_close(c[0]);
    must(blitz_task_join(t, NULL, BLITZ_FOREVER), "join");
    blitz_chan_unref(c[0]);
    blitz_chan_unref(c[1]);
    return count;
}

/* How often a second a task gets its work done beside the loops. */
static double rate_of(int (*fn)(void *))
{
    blitz_spawn_opts opts = {.runtime = world};
    blitz_task *t;
    int count = 0;
    for (unsigned i = 0; i < loops; i++)
        spawn_in_world(loop, i);
    uint64_t since = work_begin();
    must(blitz_spawn(fn, NULL, &opts, &t), "spawn");
    must(blitz_task_join(t, &count, BLITZ_FOREVER), "join");
    double rate = count / ((double)(bench_now_ns() - since) / 1e9);
    __atomic_store_n(&tickers.is_over, true, __ATOMIC_RELAXED);
    return rate;
}

static double case_reduce(uint64_t ops)
{
    (void)ops;
    return rate_of(reduce);
}

static double case_request(uint64_t ops)
{
    (void)ops;
    return rate_of(request);
}

/* ---- calls that block ---- */

static int block_50_ms(void *arg)
{
    struct timespec t = {0, 50 * 1000 * 1000};
    (void)arg;
    return nanosleep(&t, NULL);
}

static int blocks_on_the_pool(void *arg)
{
    return blitz_blocking(block_50_ms, arg);
}

/* A hundred at once: milliseconds on the clock, whatever the number of procs. */
static double case_calls(uint64_t ops)
{
    enum { CALLS = 100 };
    blitz_task *t[CALLS];
    uint64_t began = bench_now_ns();
    (void)ops;
    for (int i = 0; i < CALLS; i++)
        must(blitz_spawn(blocks_on_the_pool, NULL, NULL, &t[i]), "spawn");
    for (int i = 0; i < CALLS; i++) {
        int result = -1;
        must(blitz_task_join(t[i], &result, BLITZ_FOREVER), "join");
        must(result, "nanosleep");
    }
    return (double)(bench_now_ns() - began) / 1e6;
}

static int add_one(void *arg)
{
    ++*(uint64_t *)arg;
    return 0;
}

/* There and back, one after another, on the clock: two threads take part. */
static double case_pool_trip(uint64_t ops)
{
    uint64_t sum = 0, began = bench_now_ns();
    for (uint64_t i = 0; i < ops; i++)
        must(blitz_blocking(add_one, &sum), "blocking");
    if (sum != ops)
        bench_die("%llu calls were made", (unsigned long long)sum);
    return (double)(bench_now_ns() - began);
}

/* In place: the monitor may take the proc, but no task needs it. */
static double case_in_place(uint64_t ops)
{
    uint64_t sum = 0, began = tasks_now_ns();
    for (uint64_t i = 0; i < ops; i++)
        must(blitz_block_in_place(add_one, &sum), "block in place");
    if (sum != ops)
        bench_die("%llu calls were made", (unsigned long long)sum);
    return (double)(tasks_now_ns() - began);
}

/* One in each turn, as Tokio's needs it. */
static double case_in_place_turn(uint64_t ops)
{
    uint64_t sum = 0, began = tasks_now_ns();
    for (uint64_t i = 0; i < ops; i++) {
        must(blitz_block_in_place(add_one, &sum), "block in place");
        blitz_yield();
    }
    return (double)(tasks_now_ns() - began);
}

static uint64_t bracketed(uint64_t ops)
{
    uint64_t began = tasks_now_ns();
    for (uint64_t i = 0; i < ops; i++) {
        blitz_syscall_enter();
        bench_keep((uint64_t)getppid());
        blitz_syscall_leave();
    }
    return tasks_now_ns() - began;
}

static uint64_t not_bracketed(uint64_t ops)
{
    uint64_t began = tasks_now_ns();
    for (uint64_t i = 0; i < ops; i++)
        bench_keep((uint64_t)getppid());
    return tasks_now_ns() - began;
}

/* Around a known call: what it costs more than the call alone. The difference may be smaller than the noise of one
 * run, so the best of many short runs is taken of each. */
static double case_bracket(uint64_t ops)
{
    uint64_t with = UINT64_MAX, without = UINT64_MAX;
    for (int i = 0; i < 400; i++) {
        uint64_t a = bracketed(ops), b = not_bracketed(ops);
        with = a < with ? a : with;
        without = b < without ? b : without;
    }
    return with > without ? (double)(with - without) / (double)ops : 1e-3;
}

/* ---- the cost for tasks that are not hogs ---- */

static int yield_often(void *arg)
{
    for (uint64_t n = *(uint64_t *)arg; n > 0; n--)
        blitz_yield();
    return 0;
}

static int do_nothing(void *arg)
{
    (void)arg;
    return 0;
}

static double case_spawn(uint64_t ops)
{
    uint64_t began = tasks_now_ns();
    for (uint64_t i = 0; i < ops; i++) {
        blitz_task *t;
        must(blitz_spawn(do_nothing, NULL, NULL, &t), "spawn");
        must(blitz_task_join(t, NULL, BLITZ_FOREVER), "join");
    }
    return (double)(tasks_now_ns() - began);
}

/* Two fibers in turns: every event of a switch, and nothing else. */
static double case_turn(uint64_t ops)
{
    uint64_t each = ops / 2 + 1, began = tasks_now_ns();
    blitz_task *t[2];
    for (int i = 0; i < 2; i++)
        must(blitz_spawn(yield_often, &each, NULL, &t[i]), "spawn");
    for (int i = 0; i < 2; i++)
        must(blitz_task_join(t[i], NULL, BLITZ_FOREVER), "join");
    return (double)(tasks_now_ns() - began) / (double)(2 * each) * (double)ops;
}

/* ---- the frame ---- */

static const struct tasks_case outside[] = {
    {"hogs-p50", TASKS_ONCE, case_hogs_p50, 1},
    {"hogs-p99", TASKS_ONCE, case_hogs_p99, 1},
    {"hogs-wakes", TASKS_ONCE, case_hogs_wakes, 1},
};

/* Beside as many endless loops as the name says: "loops-8.p2". */
static const struct tasks_case beside_loops[] = {
    {"loops", TASKS_ONCE, case_loops, 1},
    {"reduce", TASKS_ONCE, case_reduce, 1},
    {"request", TASKS_ONCE, case_request, 1},
};

/* These run in the first task of a runtime. */
static const struct tasks_case inside[] = {
    {"calls", TASKS_ONCE, case_calls, 1},
    {"pool-trip", TASKS_PACED, case_pool_trip, 0},
    {"in-place", TASKS_PACED, case_in_place, 0},
    {"in-place-turn", TASKS_PACED, case_in_place_turn, 0},
    {"bracket", TASKS_ONCE, case_bracket, 2000},
    {"turn", TASKS_PACED, case_turn, 0},
    {"spawn", TASKS_PACED, case_spawn, 0},
    {"check", TASKS_PACED, case_check, 0},
};

struct asked {
    const struct tasks_case *c;
    const char *name;
};

static int measure_inside(void *arg)
{
    const struct asked *a = arg;
    tasks_measure(a->c, a->name);
    return 0;
}

static void start_inside(const struct tasks_case *c, const char *name)
{
    config.procs = tasks_procs;
    must(blitz_run(measure_inside, &(struct asked){c, name}, &config), "run");
}

static void start_outside(const struct tasks_case *c, const char *name)
{
    config.procs = tasks_procs;
    must(blitz_runtime_new(&config, &world), "runtime");
    tasks_measure(c, name);
    must(blitz_runtime_shutdown(world, blitz_after(5 * BLITZ_S)), "shutdown");
    must(blitz_runtime_unref(world), "unref");
}

/* A case is printed as it was asked for. Returns false if the name is none of these. */
static bool start_beside_loops(const char *name)
{
    for (size_t i = 0; i < sizeof(beside_loops) / sizeof(*beside_loops); i++) {
        size_t length = strlen(beside_loops[i].name);
        if (strncmp(name, beside_loops[i].name, length) == 0 && name[length] == '-') {
            char *end;
            loops = (unsigned)strtoul(name + length + 1, &end, 10);
            tasks_procs = strncmp(end, ".p", 2) == 0 ? (unsigned)atoi(end + 2) : 0;
            if (tasks_procs == 0)
                return false;
            start_outside(&beside_loops[i], name);
            return true;
        }
    }
    return false;
}

int main(int argc, char **argv)
{
    if (argc > 2 && strncmp(argv[1], "--burning=", 10) == 0) {
        config.burning_max = (unsigned)strtoul(argv[1] + 10, NULL, 10);
        argv[1] = argv[0];
        argv++, argc--;
    }
    if (argc > 1 && start_beside_loops(argv[1]))
        return 0;
    if (argc > 1 && strncmp(argv[1], "hogs-", 5) == 0)
        return tasks_main(argc, argv, outside, sizeof(outside) / sizeof(*outside), start_outside);
    return tasks_main(argc, argv, inside, sizeof(inside) / sizeof(*inside), start_inside);
}
