/*
 * ck_fifo.c - Concurrency Kit's list queue (Michael and Scott's) with one consumer.
 *
 * A dequeue hands back the entry that was the dummy and keeps the message's own as the next dummy;
 * so the message goes on with the entry it was given. Nothing is allocated.
 */
#include <ck_fifo.h>

#include "bench.h"
#include "common.h"

#if !defined(CK_F_FIFO_MPMC)
#error "this Concurrency Kit has no ck_fifo_mpmc on this architecture"
#endif

struct mq_msg {
    struct mq_payload load;
    ck_fifo_mpmc_entry_t *entry;
} MQ_LINE;

struct mq {
    ck_fifo_mpmc_t fifo;
    struct {
        ck_fifo_mpmc_entry_t entry;
    } MQ_LINE entries[MQ_MESSAGES + 1];
};

static inline void mq_init(struct mq *q, struct mq_msg *all)
{
    ck_fifo_mpmc_init(&q->fifo, &q->entries[MQ_MESSAGES].entry);
    for (unsigned i = 0; i < MQ_MESSAGES; i++)
        all[i].entry = &q->entries[i].entry;
}

static inline void mq_push(struct mq *q, struct mq_msg *m)
{
    ck_fifo_mpmc_enqueue(&q->fifo, m->entry, m);
}

static inline struct mq_msg *mq_take(struct mq *q)
{
    struct mq_msg *m = NULL;
    ck_fifo_mpmc_entry_t *spare;
    if (!ck_fifo_mpmc_dequeue(&q->fifo, &m, &spare))
        return NULL;
    m->entry = spare;
    return m;
}

#include "mpsc_cases.h"

static const struct bench_case cases[] = {MPSC_CASES};
BENCH_MAIN(cases)
