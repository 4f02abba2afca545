/*
 * blitz.c - our MPSC queue and MPMC ring in the cases of bench/base.toml.
 */
#include "support/mpmc.h"
#include "base/mpsc.h"

#include "bench.h"
#include "common.h"

struct mq_msg {
    struct bz_mpsc_node node;
    struct mq_payload load;
} MQ_LINE;

struct mq {
    struct bz_mpsc queue;
};

static inline void mq_init(struct mq *q, struct mq_msg *all)
{
    (void)all;
    bz_mpsc_init(&q->queue);
}

static inline void mq_push(struct mq *q, struct mq_msg *m)
{
    bz_mpsc_push(&q->queue, &m->node);
}

static inline struct mq_msg *mq_take(struct mq *q)
{
    struct bz_mpsc_node *node = bz_mpsc_take(&q->queue);
    return node == NULL ? NULL : BZ_CONTAINER_OF(node, struct mq_msg, node);
}

struct rq {
    struct bz_mpmc ring;
    bool is_made;
};

static inline void rq_init(struct rq *q)
{
    if (q->is_made)
        bz_mpmc_fini(&q->ring);
    if (bz_mpmc_init(&q->ring, RQ_CAPACITY, &bz_allocator_libc) != 0)
        bench_die("out of memory");
    q->is_made = true;
}

static inline bool rq_push(struct rq *q, void *value)
{
    return bz_mpmc_push(&q->ring, value);
}

static inline bool rq_take(struct rq *q, void **value)
{
    return bz_mpmc_take(&q->ring, value);
}

#include "mpmc_cases.h"
#include "mpsc_cases.h"

static const struct bench_case cases[] = {MPSC_CASES, MPMC_CASES};
BENCH_MAIN(cases)
