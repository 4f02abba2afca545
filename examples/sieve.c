/*
 * sieve.c - prime numbers by a chain of tasks.
 *
 *     2,3,4,5,6,...   3,5,7,9,...      5,7,11,...       7,11,13,...
 *     numbers  ---->  drops 2s  ---->  drops 3s  ---->  drops 5s  ----> ...
 *
 * The first task sends every number. The first number to reach the end of the chain is a prime, and
 * a new task that drops its multiples is appended. Every task is a plain loop of a blocking receive
 * and a blocking send. At any time a few hundred tasks wait in their loops, each on its own stack,
 * and two CPUs work at different places of the chain.
 *
 * At the end the remaining tasks are cancelled. Their waits return -ECANCELED, and the loops end as
 * after any error.
 *
 *     example_sieve [COUNT]      the first COUNT primes (default 300)
 */
#include <stdio.h>
#include <stdlib.h>

#include <blitz.h>

#include "cell.h"

struct stage {
    long prime;
    struct cell in;   /* its left neighbour sends here */
    struct cell *out; /* the next stage's */
    blitz_task *task;
};

static int send_numbers(void *arg)
{
    struct cell *out = arg;
    for (long n = 2; cell_send(out, n) == 0; n++)
        continue;
    return 0;
}

static int drop_multiples(void *arg)
{
    struct stage *me = arg;
    long n;
    while (cell_receive(&me->in, &n) == 0)
        if (n % me->prime != 0 && cell_send(me->out, n) != 0)
            break;
    return 0;
}

struct plan {
    long count;
    struct stage *stages; /* count + 1: the last one is the end of the chain and has no task */
};

/* Receive the next number at the end of the chain, which is a prime, and append its stage. */
static int extend(struct plan *p, long i)
{
    struct stage *s = &p->stages[i];
    int err = cell_receive(&s->in, &s->prime);
    if (err == 0) {
        cell_init(&p->stages[i + 1].in);
        s->out = &p->stages[i + 1].in;
        err = blitz_spawn(drop_multiples, s, NULL, &s->task);
    }
    return err;
}

static int sieve(void *arg)
{
    struct plan *p = arg;
    blitz_task *source;
    long i = 0;
    cell_init(&p->stages[0].in);
    int err = blitz_spawn(send_numbers, &p->stages[0].in, NULL, &source);
    if (err != 0)
        return err;
    while (i < p->count && (err = extend(p, i)) == 0)
        i++;
    blitz_task_cancel(source);
    blitz_task_join(source, NULL, BLITZ_FOREVER);
    for (long j = 0; j < i; j++) {
        blitz_task_cancel(p->stages[j].task);
        blitz_task_join(p->stages[j].task, NULL, BLITZ_FOREVER);
    }
    for (long j = 0; j <= i; j++)
        cell_fini(&p->stages[j].in);
    return err;
}

int main(int argc, char **argv)
{
    struct plan p = {.count = argc > 1 ? atol(argv[1]) : 300};
    if (p.count < 1) {
        fprintf(stderr, "usage: %s [COUNT]\n", argv[0]);
        return 2;
    }
    p.stages = calloc((size_t)p.count + 1, sizeof *p.stages);
    if (p.stages == NULL)
        return 1;
    uint64_t began = blitz_now();
    int err = blitz_run(sieve, &p, NULL);
    if (err == 0) {
        for (long i = 0; i < p.count; i++)
            printf("%ld%s", p.stages[i].prime, (i + 1) % 15 == 0 ? "\n" : " ");
        printf("%s%ld primes by as many tasks in %.1f ms\n", p.count % 15 != 0 ? "\n" : "", p.count,
               (double)(blitz_now() - began) / 1e6);
    } else {
        fprintf(stderr, "sieve: error %d\n", -err);
    }
    free(p.stages);
    return err != 0;
}
