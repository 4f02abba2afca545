/*
 * wfcqueue.c - userspace RCU's queue with wait-free enqueue, one consumer.
 *
 * Inlined (_LGPL_SOURCE), which is its fastest form, and with the non-blocking dequeue: the
 * blocking one sleeps 10 ms when it meets a push in progress, and all contenders must back off in
 * the same way.
 */
#define _LGPL_SOURCE 1
#include <urcu/wfcqueue.h>

#include "bench.h"
#include "common.h"

struct mq_msg {
    struct cds_wfcq_node node;
    struct mq_payload load;
} MQ_LINE;

/* Head and tail a line apart, as its own documentation advises. */
struct mq {
    struct __cds_wfcq_head head __attribute__((aligned(128)));
    struct cds_wfcq_tail tail __attribute__((aligned(128)));
};

static inline void mq_init(struct mq *q, struct mq_msg *all)
{
    (void)all;
    __cds_wfcq_init(&q->head, &q->tail);
}

static inline void mq_push(struct mq *q, struct mq_msg *m)
{
    cds_wfcq_node_init(&m->node);
    cds_wfcq_enqueue(&q->head, &q->tail, &m->node);
}

static inline struct mq_msg *mq_take(struct mq *q)
{
    struct cds_wfcq_node *node = __cds_wfcq_dequeue_nonblocking(&q->head, &q->tail);
    if (node == NULL || node == CDS_WFCQ_WOULDBLOCK)
        return NULL;
    return caa_container_of(node, struct mq_msg, node);
}

#include "mpsc_cases.h"

static const struct bench_case cases[] = {MPSC_CASES};
BENCH_MAIN(cases)
