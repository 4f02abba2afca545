/*
 * Our processes: start `true` and wait for its end, one after the other, and sixteen at a time.
 */
#include "bench.h"

#include <blitz.h>

static blitz_command *command;
static uint64_t left;
static double result_ns;

static void one(void)
{
    blitz_process *p;
    blitz_exit e;
    if (blitz_command_start(command, NULL, &p) != 0 ||
        blitz_process_wait(p, &e, BLITZ_FOREVER) != 0 || !blitz_exit_is_ok(&e))
        bench_die("a process failed");
    blitz_process_unref(p);
}

static int one_by_one(void *arg)
{
    uint64_t ops = *(uint64_t *)arg, done = 0, began = bench_now_ns();
    for (; done < ops && !bench_is_over(); done++)
        one();
    result_ns = (double)(bench_now_ns() - began) / (double)done;
    return 0;
}

static int worker(void *arg)
{
    while (__atomic_fetch_sub(&left, 1, __ATOMIC_RELAXED) - 1 < UINT64_MAX / 2)
        one();
    return (int)(arg != NULL);
}

static int at_a_time(void *arg)
{
    uint64_t ops = *(uint64_t *)arg;
    blitz_scope s;
    left = ops;
    uint64_t began = bench_now_ns();
    if (blitz_scope_open(&s, NULL, BLITZ_FOREVER) != 0)
        bench_die("no scope");
    for (int i = 0; i < 16; i++)
        if (blitz_scope_spawn(&s, worker, NULL, NULL) != 0)
            bench_die("no task");
    if (blitz_scope_close(&s) != 0)
        bench_die("a task failed");
    result_ns = (double)(bench_now_ns() - began) / (double)ops;
    return 0;
}

static double measure(int (*fn)(void *), uint64_t ops)
{
    if (blitz_command_new("true", &command) != 0 || blitz_run(fn, &ops, NULL) != 0)
        bench_die("no runtime");
    blitz_command_unref(command);
    return result_ns;
}

static double start_wait(uint64_t ops)
{
    return measure(one_by_one, ops);
}

static double start_wait_16(uint64_t ops)
{
    return measure(at_a_time, ops);
}

int main(int argc, char **argv)
{
    static const struct bench_case cases[] = {{"start-wait", start_wait},
                                              {"start-wait-16", start_wait_16}};
    return bench_main(argc, argv, cases, 2);
}
