/*
 * fibers100k.c - a hundred thousand tasks that wait at the same time, and are woken one by one.
 *
 * Each is a plain function that stops in the middle. While it waits it costs one touched page of
 * its stack and a header, and no CPU time. A thread for each would need a hundred thousand kernel
 * threads.
 *
 * They form a chain: each waits for the number of its predecessor, adds one, and passes it on. The
 * first gets 0; the last returns the length of the chain.
 *
 *     example_fibers100k [COUNT]
 */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include <blitz.h>

#include "cell.h"

struct chain {
    long count;
    atomic_long arrived; /* members that wait, or are about to */
    struct cell *cells;  /* count + 1: member i waits at i and tells i + 1 */
};

struct member {
    struct chain *chain;
    struct cell *from, *to;
};

static int pass_on(void *arg)
{
    struct member *me = arg;
    long number;
    atomic_fetch_add(&me->chain->arrived, 1);
    int err = cell_receive(me->from, &number); /* all tasks wait here */
    return err != 0 ? err : cell_send(me->to, number + 1);
}

static int run_chain(void *arg)
{
    struct chain *c = arg;
    struct member *members = calloc((size_t)c->count, sizeof *members);
    long spawned = 0, number = -1;
    int err = members == NULL ? -1 : 0;
    for (long i = 0; i <= c->count; i++)
        cell_init(&c->cells[i]);

    uint64_t began = blitz_now();
    while (err == 0 && spawned < c->count) {
        members[spawned] = (struct member){c, &c->cells[spawned], &c->cells[spawned + 1]};
        err = blitz_spawn(pass_on, &members[spawned], NULL, NULL); /* no handle: it is let go */
        spawned += err == 0;
    }
    while (atomic_load(&c->arrived) < spawned)
        blitz_yield(); /* yield until all tasks wait */
    uint64_t parked = blitz_now();
    if (err == 0)
        err = cell_send(&c->cells[0], 0);
    if (err == 0)
        err = cell_receive(&c->cells[c->count], &number);
    uint64_t done = blitz_now();

    printf("%ld tasks: %.0f ns to start one and let it wait, %.0f ns to wake one and let it end\n",
           number, (double)(parked - began) / (double)c->count,
           (double)(done - parked) / (double)c->count);
    free(members);
    return err != 0 ? err : number != c->count;
}

int main(int argc, char **argv)
{
    struct chain c = {.count = argc > 1 ? atol(argv[1]) : 100000};
    if (c.count < 1) {
        fprintf(stderr, "usage: %s [COUNT]\n", argv[0]);
        return 2;
    }
    c.cells = calloc((size_t)c.count + 1, sizeof *c.cells);
    if (c.cells == NULL)
        return 1;
    int err = blitz_run(run_chain, &c, NULL);
    if (err != 0)
        fprintf(stderr, "fibers100k: error %d\n", -err);
    for (long i = 0; i <= c.count; i++)
        cell_fini(&c.cells[i]);
    free(c.cells);
    return err != 0;
}
