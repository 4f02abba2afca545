/*
 * tasks.h - the frame of the programs of bench-tasks that are written in C or C++: cases by name and
 * number of workers, and what is measured of them. It knows nothing of blitz.
 *
 *     PROGRAM yield-2.p1 --seconds=0.2     as tools/bench calls it: two fibers, one worker
 *     PROGRAM yield-2 --procs 1            the same by hand; add --ops=N for callgrind or perf
 *
 * A case is one of three kinds:
 *   paced   run(ops) performs that many operations; the frame finds out how many fill a fifth of the
 *           time and runs that five times
 *   fixed   the work is what it is (a million tasks): once to warm up, then until the time is over
 *   once    run() returns the figure itself, in its own unit
 * The figure of the first two is the *fastest* of those runs: whatever else a shared machine does in
 * between makes a run slower and never faster. Peers in other languages do the same.
 *
 * With one worker the clock is the process's CPU time, with more it is wall time. With one worker
 * both agree on an idle machine, and CPU time is also right on a busy one.
 */
#ifndef BENCH_TASKS_H
#define BENCH_TASKS_H

#include "bench.h"

enum tasks_kind { TASKS_PACED, TASKS_FIXED, TASKS_ONCE };

struct tasks_case {
    const char *name;
    enum tasks_kind kind;
    double (*run)(uint64_t ops); /* returns the nanoseconds (or so) of all; `once`: the figure */
    uint64_t ops;                /* of a fixed one, or one that is run once */
};

static unsigned tasks_procs = 1; /* how many workers there are */
static double tasks_seconds = 0.2;
static uint64_t tasks_ops; /* 0: by time */

static inline uint64_t tasks_now_ns(void)
{
    struct timespec t;
    clock_gettime(tasks_procs == 1 ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* A number out of a file of /proc, such as VmRSS in KiB. */
static inline uint64_t tasks_proc_number(const char *file, const char *key)
{
    char line[256];
    uint64_t value = 0;
    FILE *f = fopen(file, "r");
    if (f == NULL)
        bench_die("cannot read %s", file);
    while (fgets(line, sizeof(line), f) != NULL)
        if (strncmp(line, key, strlen(key)) == 0)
            value = strtoull(line + strlen(key), NULL, 10);
    fclose(f);
    return value;
}

/* The memory of the process, page tables included, in bytes. */
static inline uint64_t tasks_memory(void)
{
    return 1024 * (tasks_proc_number("/proc/self/status", "VmRSS:") +
                   tasks_proc_number("/proc/self/status", "VmPTE:"));
}

static inline double tasks_paced(const struct tasks_case *c)
{
    double part_ns = tasks_seconds * 1e9 / 5;
    uint64_t ops = 1024;
    double ns = c->run(ops);
    while (ns < part_ns) {
        ops *= 2;
        ns = c->run(ops);
    }
    for (int i = 1; i < 5; i++) {
        double again = c->run(ops);
        ns = again < ns ? again : ns;
    }
    return ns / (double)ops;
}

static inline double tasks_fixed(const struct tasks_case *c)
{
    uint64_t until;
    double ns = 0;
    c->run(c->ops);
    until = bench_now_ns() + (uint64_t)(tasks_seconds * 1e9);
    do {
        double again = c->run(c->ops);
        ns = ns == 0 || again < ns ? again : ns;
    } while (bench_now_ns() < until);
    return ns / (double)c->ops;
}

/* Called where the cases are to run: in a task, once the workers are there. */
static inline void tasks_measure(const struct tasks_case *c, const char *name)
{
    double figure;
    if (c->kind == TASKS_ONCE)
        figure = c->run(tasks_ops != 0 ? tasks_ops : c->ops);
    else if (tasks_ops != 0)
        figure = c->run(tasks_ops) / (double)tasks_ops;
    else
        figure = c->kind == TASKS_PACED ? tasks_paced(c) : tasks_fixed(c);
    bench_print(name, figure);
}

static inline int tasks_usage(const char *program)
{
    fprintf(stderr, "usage: %s CASE[.pPROCS] [--procs N] [--seconds=S] [--ops=N] | --list\n",
            program);
    return 2;
}

/* The options; false if one is not understood. */
static inline bool tasks_options(int argc, char **argv)
{
    for (int i = 2; i < argc; i++) {
        const char *at = argv[i];
        if (strncmp(at, "--seconds=", 10) == 0)
            tasks_seconds = strtod(at + 10, NULL);
        else if (strncmp(at, "--ops=", 6) == 0)
            tasks_ops = strtoull(at + 6, NULL, 10);
        else if (strncmp(at, "--procs=", 8) == 0)
            tasks_procs = (unsigned)strtoul(at + 8, NULL, 10);
        else if (strcmp(at, "--procs") == 0 && i + 1 < argc)
            tasks_procs = (unsigned)strtoul(argv[++i], NULL, 10);
        else
            return false;
    }
    return tasks_procs > 0 && tasks_seconds > 0 && tasks_seconds <= 60;
}

/* The case that is asked for, and how many workers; NULL if there is none. */
static inline const struct tasks_case *tasks_find(const struct tasks_case *cases, size_t count,
                                                  const char *word)
{
    const char *dot = strrchr(word, '.');
    size_t length = dot != NULL ? (size_t)(dot - word) : strlen(word);
    if (dot != NULL && (dot[1] != 'p' || (tasks_procs = (unsigned)atoi(dot + 2)) == 0))
        return NULL;
    for (size_t i = 0; i < count; i++)
        if (strlen(cases[i].name) == length && strncmp(cases[i].name, word, length) == 0)
            return &cases[i];
    return NULL;
}

/* start(c, name) begins the runtime with tasks_procs workers and calls tasks_measure in it. */
static inline int tasks_main(int argc, char **argv, const struct tasks_case *cases, size_t count,
                             void (*start)(const struct tasks_case *c, const char *name))
{
    if (argc < 2)
        return tasks_usage(argv[0]);
    if (strcmp(argv[1], "--list") == 0) {
        for (size_t i = 0; i < count; i++)
            puts(cases[i].name);
        return 0;
    }
    const struct tasks_case *c = tasks_find(cases, count, argv[1]);
    if (c == NULL) {
        fprintf(stderr, "%s: no case '%s'; --list names them\n", argv[0], argv[1]);
        return 2;
    }
    if (!tasks_options(argc, argv))
        return tasks_usage(argv[0]);
    start(c, argv[1]);
    return 0;
}

#endif
