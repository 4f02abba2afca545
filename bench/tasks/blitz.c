/*
 * Ours. Every case runs in the first task of a runtime with as many procs as were asked for.
 * What each case is: bench/tasks.toml. Only public headers: what a user can have.
 */
#include "tasks/cases.h"
#include "tasks/fork.h"
#include "tasks/ours.h"
#include "tasks/poll.h"

static blitz_task *spawn(int (*fn)(void *), void *arg)
{
    blitz_task *t;
    must(blitz_spawn(fn, arg, NULL, &t), "spawn");
    return t;
}

static void join(blitz_task *t)
{
    must(blitz_task_join(t, NULL, BLITZ_FOREVER), "join");
}

/* Where handles are kept: touched before anything is measured. */
static blitz_task **handles_of(uint64_t count)
{
    static blitz_task **all;
    static uint64_t room;
    if (room < count) {
        free(all);
        all = malloc(count * sizeof *all);
        if (all == NULL)
            bench_die("out of memory");
        memset(all, 1, count * sizeof *all);
        room = count;
    }
    return all;
}

/* ---- yield ---- */

static int yield_often(void *arg)
{
    for (uint64_t n = *(uint64_t *)arg; n > 0; n--)
        blitz_yield();
    return 0;
}

static double yield_among(uint64_t ops, uint64_t fibers)
{
    blitz_task **t = handles_of(fibers);
    uint64_t each = ops / fibers + 1, began = tasks_now_ns();
    for (uint64_t i = 0; i < fibers; i++)
        t[i] = spawn(yield_often, &each);
    for (uint64_t i = 0; i < fibers; i++)
        join(t[i]);
    return (double)(tasks_now_ns() - began) / (double)(each * fibers) * (double)ops;
}

static double case_yield_2(uint64_t ops)
{
    return yield_among(ops, 2);
}

static double case_yield_1000(uint64_t ops)
{
    return yield_among(ops, 1000);
}

/* ---- spawn, join ---- */

static int count_one(void *arg)
{
    ++*(uint64_t *)arg;
    return 0;
}

/* Each counts in a place of its own, so that two workers do not meet there. */
static uint64_t *counters_of(uint64_t count)
{
    static uint64_t *all;
    static uint64_t room;
    if (room < count) {
        free(all);
        all = calloc(count, sizeof *all);
        if (all == NULL)
            bench_die("out of memory");
        room = count;
    }
    memset(all, 0, count * sizeof *all);
    return all;
}

static void check_counters(const uint64_t *counters, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++)
        if (counters[i] != 1)
            bench_die("task %llu ran %llu times", (unsigned long long)i,
                      (unsigned long long)counters[i]);
}

static double case_spawn_join(uint64_t ops)
{
    blitz_task **t = handles_of(ops);
    uint64_t *counters = counters_of(ops), began = tasks_now_ns();
    for (uint64_t i = 0; i < ops; i++)
        t[i] = spawn(count_one, &counters[i]);
    for (uint64_t i = 0; i < ops; i++)
        join(t[i]);
    double ns = (double)(tasks_now_ns() - began);
    check_counters(counters, ops);
    return ns;
}

static double case_spawn_await(uint64_t ops)
{
    uint64_t counter = 0, began = tasks_now_ns();
    for (uint64_t i = 0; i < ops; i++)
        join(spawn(count_one, &counter));
    double ns = (double)(tasks_now_ns() - began);
    if (counter != ops)
        bench_die("%llu tasks ran", (unsigned long long)counter);
    return ns;
}

/* ---- skynet ---- */

struct node {
    uint64_t first, size, sum;
};

static int skynet(void *arg)
{
    struct node *me = arg, child[10];
    blitz_task *t[10];
    if (me->size == 1) {
        me->sum = me->first;
        return 0;
    }
    me->sum = 0;
    for (int i = 0; i < 10; i++) {
        child[i] = (struct node){.first = me->first + (uint64_t)i * (me->size / 10),
                                 .size = me->size / 10};
        t[i] = spawn(skynet, &child[i]);
    }
    for (int i = 0; i < 10; i++) {
        join(t[i]);
        me->sum += child[i].sum;
    }
    return 0;
}

static double case_skynet(uint64_t ops)
{
    uint64_t size = skynet_size(ops), began = tasks_now_ns();
    for (uint64_t done = 0; done < ops; done += size) {
        struct node root = {.first = 0, .size = size};
        join(spawn(skynet, &root));
        if (root.sum != size * (size - 1) / 2)
            bench_die("the sum is %llu", (unsigned long long)root.sum);
    }
    return (double)(tasks_now_ns() - began);
}

/* ---- a tree of small tasks ---- */

static int tree(void *arg)
{
    uint64_t depth = *(uint64_t *)arg, below = depth - 1;
    work_a_microsecond();
    if (depth > 0) {
        blitz_task *left = spawn(tree, &below), *right = spawn(tree, &below);
        join(left);
        join(right);
    }
    return 0;
}

static double case_tree(uint64_t ops)
{
    uint64_t began = tasks_now_ns();
    for (uint64_t done = 0; done < ops; done += TREE_NODES) {
        uint64_t depth = TREE_DEPTH;
        join(spawn(tree, &depth));
    }
    return (double)(tasks_now_ns() - began);
}

/* ---- parked ---- */

/* A future that is ready once it was told so; made for one waiter and one who tells. */
struct gate {
    blitz_future future;
    blitz_waker waker;
    uint64_t is_open;
};

static uint64_t arrived; /* polled for the first time, so parked or about to */

static blitz_poll gate_poll(blitz_future *f, const blitz_waker *waker)
{
    struct gate *g = (struct gate *)f;
    if (__atomic_load_n(&g->is_open, __ATOMIC_ACQUIRE))
        return BLITZ_READY;
    if (g->waker.ops == NULL) {
        g->waker = blitz_waker_clone(waker);
        __atomic_fetch_add(&arrived, 1, __ATOMIC_RELEASE);
    }
    return BLITZ_PENDING;
}

static void gate_cancel(blitz_future *f)
{
    blitz_waker_drop(&((struct gate *)f)->waker);
}

static const blitz_future_ops gate_ops = {"gate", BLITZ_REVOCABLE, gate_poll, gate_cancel, NULL};

static int wait_at_gate(void *arg)
{
    struct gate gate = {.future = {&gate_ops}};
    *(struct gate **)arg = &gate;
    return blitz_await(&gate.future, BLITZ_FOREVER);
}

static double case_parked_fiber(uint64_t ops)
{
    static struct gate **gates;
    blitz_task **t = handles_of(ops);
    gates = malloc(ops * sizeof *gates);
    if (gates == NULL)
        bench_die("out of memory");
    memset(gates, 1, ops * sizeof *gates);
    uint64_t before = tasks_memory();
    for (uint64_t i = 0; i < ops; i++) {
        t[i] = spawn(wait_at_gate, &gates[i]);
        if (i % 64 == 63)
            blitz_yield(); /* so that they park as they come, and do not queue up */
    }
    while (__atomic_load_n(&arrived, __ATOMIC_ACQUIRE) < ops)
        blitz_yield();
    double bytes = (double)(tasks_memory() - before) / (double)ops;
    for (uint64_t i = 0; i < ops; i++) {
        blitz_waker waker = gates[i]->waker; /* the gate is gone once it is open */
        __atomic_store_n(&gates[i]->is_open, 1, __ATOMIC_RELEASE);
        blitz_waker_wake(&waker);
    }
    for (uint64_t i = 0; i < ops; i++)
        join(t[i]);
    free(gates);
    return bytes;
}

/* ---- stackless ---- */

static double case_poll_spawn_join(uint64_t ops)
{
    uint64_t *counters = counters_of(ops);
    double ns = poll_spawn_join(ops, handles_of(ops), counters);
    check_counters(counters, ops);
    return ns;
}

static double case_parked_poll(uint64_t ops)
{
    return poll_parked(ops, handles_of(ops));
}

/* ---- idle ---- */

static double cpu_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

/* Both workers have worked; then the only task sleeps. CPU time over wall time, in percent. */
static double case_idle(uint64_t ops)
{
    case_spawn_join(100000);
    (void)!blitz_sleep(50 * BLITZ_MS);
    double cpu = cpu_ns();
    uint64_t began = bench_now_ns();
    (void)!blitz_sleep(ops * BLITZ_MS);
    double share = (cpu_ns() - cpu) / (double)(bench_now_ns() - began);
    return 100 * share > 1e-4 ? 100 * share : 1e-4;
}

/* ---- the programme ---- */

static const struct tasks_case cases[] = {
    {"yield-2", TASKS_PACED, case_yield_2, 0},
    {"yield-1000", TASKS_PACED, case_yield_1000, 0},
    {"spawn-join", TASKS_FIXED, case_spawn_join, MILLION},
    {"spawn-await", TASKS_PACED, case_spawn_await, 0},
    {"skynet", TASKS_FIXED, case_skynet, MILLION}, /* ns a leaf: ms of a million */
    {"tree", TASKS_FIXED, case_tree, TREE_NODES},
    {"fork-empty", TASKS_PACED, case_fork_empty, 0},
    {"fork-nested", TASKS_PACED, case_fork_nested, 0},
    {"fib", TASKS_FIXED, case_fib, 1},
    {"fork-tree", TASKS_FIXED, case_fork_tree, TREE_NODES},
    {"parked-fiber", TASKS_ONCE, case_parked_fiber, MILLION},
    {"poll-yield-2", TASKS_PACED, case_poll_yield_2, 0},
    {"poll-yield-1000", TASKS_PACED, case_poll_yield_1000, 0},
    {"poll-spawn-join", TASKS_FIXED, case_poll_spawn_join, MILLION},
    {"parked-poll", TASKS_ONCE, case_parked_poll, MILLION},
    {"idle", TASKS_ONCE, case_idle, 1000},
};

int main(int argc, char **argv)
{
    return tasks_main(argc, argv, cases, sizeof cases / sizeof cases[0], ours_start);
}
