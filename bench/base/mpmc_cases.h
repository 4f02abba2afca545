/*
 * mpmc_cases.h - many producers, many consumers, a bound: the same work for every queue that can.
 *
 * A program defines struct rq and, as static inline functions,
 *     void rq_init(struct rq *)                        make it empty, for RQ_CAPACITY pointers
 *     bool rq_push(struct rq *, void *)                any producer; false if it is full
 *     bool rq_take(struct rq *, void **)               any consumer; false if it is empty
 * then includes this file and puts MPMC_CASES into its table of cases.
 *
 * Fair means: the same capacity (common.h), and pointers that are plain numbers, so that nothing but
 * the queue itself is measured. Full and empty are waited for by bench_backoff. The producer that
 * ends last sends one RQ_STOP to each consumer; a queue in order delivers those after everything
 * else. What all consumers received is added up: a queue that loses or doubles one fails instead of
 * winning.
 */
#ifndef BENCH_MPMC_CASES_H
#define BENCH_MPMC_CASES_H

#include "bench.h"
#include "common.h"

#define RQ_STOP 1u  /* no more to come */
#define RQ_FIRST 2u /* the first message; the others count up */
#define RQ_THREADS_MAX 8u

static struct rq rq_queue;

/* The work and the result of one thread. */
struct rq_role {
    bool is_consumer;
    uint64_t count;          /* messages to send, then: messages sent or received */
    uint64_t sum;            /* of their values */
    uint64_t ns;             /* of CPU time, when alone */
    unsigned consumers;      /* to be told at the end */
    _Atomic(unsigned) *busy; /* producers that have not finished */
} __attribute__((aligned(128)));

static inline void rq_send(uint64_t value)
{
    unsigned tries = 0;
    while (!rq_push(&rq_queue, (void *)(uintptr_t)value))
        bench_backoff(&tries);
}

static inline uint64_t rq_receive(void)
{
    unsigned tries = 0;
    void *value;
    while (!rq_take(&rq_queue, &value))
        bench_backoff(&tries);
    return (uintptr_t)value;
}

static inline void rq_produce(struct rq_role *r)
{
    uint64_t sent = 0, sum = 0;
    for (; sent < r->count && !bench_is_over(); sent++) {
        rq_send(RQ_FIRST + sent);
        sum += RQ_FIRST + sent;
    }
    r->count = sent;
    r->sum = sum;
    if (atomic_fetch_sub(r->busy, 1) == 1) {
        for (unsigned i = 0; i < r->consumers; i++)
            rq_send(RQ_STOP);
    }
}

static inline void rq_consume(struct rq_role *r)
{
    uint64_t got = 0, sum = 0;
    for (;;) {
        uint64_t value = rq_receive();
        if (value == RQ_STOP)
            break;
        got++;
        sum += value;
    }
    r->count = got;
    r->sum = sum;
}

static void rq_role_main(void *arg)
{
    struct rq_role *r = arg;
    if (r->is_consumer)
        rq_consume(r);
    else
        rq_produce(r);
}

/* Consumers are the first threads, producers follow; thread i stands on CPU i, round and round. */
static inline double rq_run(unsigned producers, unsigned consumers, uint64_t ops)
{
    struct rq_role roles[RQ_THREADS_MAX] = {{0}};
    _Atomic(unsigned) busy = producers;
    uint64_t sent = 0, sent_sum = 0, got = 0, got_sum = 0;
    for (unsigned i = 0; i < consumers; i++)
        roles[i] = (struct rq_role){.is_consumer = true};
    for (unsigned i = 0; i < producers; i++) {
        roles[consumers + i] = (struct rq_role){.count = ops / producers + (i < ops % producers),
                                                .consumers = consumers,
                                                .busy = &busy};
    }
    rq_init(&rq_queue);
    uint64_t ns = bench_together(producers + consumers, rq_role_main, roles, sizeof(roles[0]));
    for (unsigned i = 0; i < consumers + producers; i++) {
        *(roles[i].is_consumer ? &got : &sent) += roles[i].count;
        *(roles[i].is_consumer ? &got_sum : &sent_sum) += roles[i].sum;
    }
    queue_check(got, sent, got_sum, sent_sum);
    return (double)ns / (double)sent;
}

/* One thread, push and take in turn, in CPU time: the price without any company. */
static void rq_alone_main(void *arg)
{
    struct rq_role *r = arg;
    uint64_t sum = 0;
    uint64_t began = bench_thread_ns();
    for (uint64_t i = 0; i < r->count; i++) {
        rq_send(RQ_FIRST + i);
        sum += rq_receive();
    }
    r->ns = bench_thread_ns() - began;
    r->sum = sum;
}

static double rq_run_alone(uint64_t ops)
{
    struct rq_role role = {.count = ops};
    rq_init(&rq_queue);
    bench_together(1, rq_alone_main, &role, sizeof(role));
    queue_check(role.count, ops, role.sum, ops * (ops - 1) / 2 + RQ_FIRST * ops);
    return (double)role.ns / (double)ops;
}

static double rq_run_1_1(uint64_t ops)
{
    return rq_run(1, 1, ops);
}

static double rq_run_4_1(uint64_t ops)
{
    return rq_run(4, 1, ops);
}

static double rq_run_4_4(uint64_t ops)
{
    return rq_run(4, 4, ops);
}

/* clang-format off */
#define MPMC_CASES                                        \
    {"mpmc-alone", rq_run_alone}, {"mpmc-1-1", rq_run_1_1}, \
    {"mpmc-4-1", rq_run_4_1}, {"mpmc-4-4", rq_run_4_4}
/* clang-format on */

#endif
