/*
 * ck_ring.c - Concurrency Kit's ring: as a mailbox of messages (its MPSC form) and as a bounded
 * MPMC queue.
 *
 * The mailbox is twice as large as there are messages, so that its push never fails, as a list's.
 */
#include <ck_ring.h>

#include "bench.h"
#include "common.h"

struct mq_msg {
    struct mq_payload load;
} MQ_LINE;

struct mq {
    ck_ring_t ring;
    ck_ring_buffer_t slots[2 * MQ_MESSAGES];
};

static inline void mq_init(struct mq *q, struct mq_msg *all)
{
    (void)all;
    ck_ring_init(&q->ring, 2 * MQ_MESSAGES);
}

static inline void mq_push(struct mq *q, struct mq_msg *m)
{
    if (!ck_ring_enqueue_mpsc(&q->ring, q->slots, m))
        bench_die("a ring twice as large as all messages is full");
}

static inline struct mq_msg *mq_take(struct mq *q)
{
    struct mq_msg *m = NULL;
    return ck_ring_dequeue_mpsc(&q->ring, q->slots, &m) ? m : NULL;
}

struct rq {
    ck_ring_t ring;
    ck_ring_buffer_t slots[RQ_CAPACITY];
};

static inline void rq_init(struct rq *q)
{
    ck_ring_init(&q->ring, RQ_CAPACITY);
}

static inline bool rq_push(struct rq *q, void *value)
{
    return ck_ring_enqueue_mpmc(&q->ring, q->slots, value);
}

static inline bool rq_take(struct rq *q, void **value)
{
    return ck_ring_dequeue_mpmc(&q->ring, q->slots, value);
}

#include "mpmc_cases.h"
#include "mpsc_cases.h"

static const struct bench_case cases[] = {MPSC_CASES, MPMC_CASES};
BENCH_MAIN(cases)
