/*
 * mpsc_cases.h - many producers, one consumer: the same work for every queue that can do it.
 *
 * A program defines struct mq_msg (common.h), struct mq and, as static inline functions,
 *     void mq_init(struct mq *, struct mq_msg *all)    make it empty; `all` are its MQ_MESSAGES
 *     void mq_push(struct mq *, struct mq_msg *)       any producer; never fails
 *     struct mq_msg *mq_take(struct mq *)              the consumer; NULL if there is none just now
 * then includes this file and puts MPSC_CASES into its table of cases.
 *
 * For fairness, every queue carries the same preallocated messages, MQ_MESSAGES in all, divided
 * among the producers and sent repeatedly. A message is taken back by its flag: the consumer clears
 * it when it has read the payload, the producer waits for that before it writes the next one. The
 * line has to travel back anyway, so the flag costs no traffic of its own, and the bound on what is
 * in flight is the same for lists and rings. An empty queue, and a message that is still out, are
 * waited for by bench_backoff. The consumer adds up what it got: a queue that loses or doubles a
 * message fails instead of winning.
 */
#ifndef BENCH_MPSC_CASES_H
#define BENCH_MPSC_CASES_H

#include "bench.h"
#include "common.h"

#define MQ_PRODUCERS_MAX 4u

static struct mq mq_queue;
static struct mq_msg mq_pool[MQ_MESSAGES];

/* The work and the result of one thread. */
struct mq_role {
    bool is_consumer;
    uint64_t count;          /* messages to send, then: messages sent or received */
    uint64_t sum;            /* of their values */
    uint64_t ns;             /* of CPU time, when alone */
    struct mq_msg *pool;     /* this producer's messages */
    unsigned pool_count;     /* how many those are */
    _Atomic(unsigned) *busy; /* producers that have not finished */
} __attribute__((aligned(128)));

static inline void mq_produce(struct mq_role *r)
{
    unsigned tries = 0;
    unsigned next = 0;
    uint64_t sent = 0, sum = 0;
    for (; sent < r->count && !bench_is_over(); sent++) {
        struct mq_msg *m = &r->pool[next];
        next = next + 1 < r->pool_count ? next + 1 : 0;
        while (atomic_load_explicit(&m->load.is_out, memory_order_acquire))
            bench_backoff(&tries);
        tries = 0;
        atomic_store_explicit(&m->load.is_out, 1, memory_order_relaxed);
        m->load.value = sent;
        sum += sent;
        mq_push(&mq_queue, m);
    }
    r->count = sent;
    r->sum = sum;
    atomic_fetch_sub(r->busy, 1);
}

/* Until the producers had finished before it found the queue empty. */
static inline void mq_consume(struct mq_role *r)
{
    unsigned tries = 0;
    bool were_finished = false;
    uint64_t got = 0, sum = 0;
    for (;;) {
        struct mq_msg *m = mq_take(&mq_queue);
        if (m != NULL) {
            tries = 0;
            got++;
            sum += m->load.value;
            atomic_store_explicit(&m->load.is_out, 0, memory_order_release);
            continue;
        }
        if (were_finished)
            break;
        were_finished = atomic_load(r->busy) == 0;
        bench_backoff(&tries);
    }
    r->count = got;
    r->sum = sum;
}

static void mq_role_main(void *arg)
{
    struct mq_role *r = arg;
    if (r->is_consumer)
        mq_consume(r);
    else
        mq_produce(r);
}

/* The consumer is thread 0 and has the first CPU; the producers follow, round and round. */
static inline double mq_run(unsigned producers, uint64_t ops)
{
    _Atomic(unsigned) busy = producers;
    struct mq_role roles[1 + MQ_PRODUCERS_MAX] = {{.is_consumer = true, .busy = &busy}};
    unsigned pool_count = MQ_MESSAGES / producers;
    uint64_t sent = 0, sum = 0;
    for (unsigned i = 0; i < producers; i++) {
        roles[1 + i] = (struct mq_role){.count = ops / producers + (i < ops % producers),
                                        .pool = mq_pool + i * pool_count,
                                        .pool_count = pool_count,
                                        .busy = &busy};
    }
    mq_init(&mq_queue, mq_pool);
    uint64_t ns = bench_together(1 + producers, mq_role_main, roles, sizeof(roles[0]));
    for (unsigned i = 0; i < producers; i++) {
        sent += roles[1 + i].count;
        sum += roles[1 + i].sum;
    }
    queue_check(roles[0].count, sent, roles[0].sum, sum);
    return (double)ns / (double)sent;
}

/* One thread, push and take in turn, in CPU time: the price without any company. */
static void mq_alone_main(void *arg)
{
    struct mq_role *r = arg;
    uint64_t sum = 0;
    uint64_t began = bench_thread_ns();
    for (uint64_t i = 0; i < r->count; i++) {
        mq_pool[0].load.value = i;
        mq_push(&mq_queue, &mq_pool[0]);
        sum += mq_take(&mq_queue)->load.value;
    }
    r->ns = bench_thread_ns() - began;
    r->sum = sum;
}

static double mq_run_alone(uint64_t ops)
{
    struct mq_role role = {.count = ops};
    mq_init(&mq_queue, mq_pool);
    bench_together(1, mq_alone_main, &role, sizeof(role));
    queue_check(role.count, ops, role.sum, ops * (ops - 1) / 2);
    return (double)role.ns / (double)ops;
}

static double mq_run_1_1(uint64_t ops)
{
    return mq_run(1, ops);
}

static double mq_run_4_1(uint64_t ops)
{
    return mq_run(4, ops);
}

#define MPSC_CASES                                          \
    {"mpsc-alone", mq_run_alone}, {"mpsc-1-1", mq_run_1_1}, \
    {                                                       \
        "mpsc-4-1", mq_run_4_1                              \
    }

#endif
