/*
 * budget.h - operations whose instructions are counted: `make budget`.
 *
 * An operation is a function that performs a given number of rounds in the first task of a runtime
 * with one proc. tools/budget runs it under callgrind with two lengths; the difference of the two,
 * divided by the difference of the lengths, is the cost of one round. Start-up cancels out.
 *
 * Only public headers: what is counted is what a user pays.
 */
#ifndef BENCH_BUDGET_H
#define BENCH_BUDGET_H

#include <blitz.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/* Perform `rounds` rounds. */
typedef void budget_fn(uint64_t rounds);

struct budget_op {
    const char *name;
    budget_fn *run;
};

/* A failed operation says why and ends the program: a count of something else is worse than none. */
#define budget_die(...)               \
    do {                              \
        fprintf(stderr, __VA_ARGS__); \
        fputc('\n', stderr);          \
        exit(1);                      \
    } while (0)

static inline void must(int64_t rc, const char *what)
{
    if (rc < 0)
        budget_die("%s: error %d", what, (int)-rc);
}

/* Keep the compiler from dropping a value. */
static inline void keep(uint64_t value)
{
    __asm__ volatile("" ::"r"(value) : "memory");
}

static inline blitz_task *spawn(int (*fn)(void *), void *arg)
{
    blitz_task *t;
    must(blitz_spawn(fn, arg, NULL, &t), "spawn");
    return t;
}

static inline void join(blitz_task *t)
{
    must(blitz_task_join(t, NULL, BLITZ_FOREVER), "join");
}

/* Run fn(arg) in `count` tasks and wait for all of them. */
static inline void in_tasks(unsigned count, int (*fn)(void *), void *arg)
{
    blitz_task **t = malloc(count * sizeof *t);
    if (t == NULL)
        budget_die("out of memory");
    for (unsigned i = 0; i < count; i++)
        t[i] = spawn(fn, arg);
    for (unsigned i = 0; i < count; i++)
        join(t[i]);
    free(t);
}

#endif
