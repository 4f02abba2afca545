/*
 * mutex.c - what one writes without a library: a pthread mutex around a list (MPSC) and around an
 * array (MPMC).
 */
#include <pthread.h>

#include "bench.h"
#include "common.h"

struct mq_msg {
    struct mq_msg *next;
    struct mq_payload load;
} MQ_LINE;

struct mq {
    pthread_mutex_t lock;
    struct mq_msg *first;
    struct mq_msg **last; /* where the next message is linked */
};

static inline void mq_init(struct mq *q, struct mq_msg *all)
{
    (void)all;
    pthread_mutex_init(&q->lock, NULL);
    q->first = NULL;
    q->last = &q->first;
}

static inline void mq_push(struct mq *q, struct mq_msg *m)
{
    m->next = NULL;
    pthread_mutex_lock(&q->lock);
    *q->last = m;
    q->last = &m->next;
    pthread_mutex_unlock(&q->lock);
}

static inline struct mq_msg *mq_take(struct mq *q)
{
    pthread_mutex_lock(&q->lock);
    struct mq_msg *m = q->first;
    if (m != NULL) {
        q->first = m->next;
        if (q->first == NULL)
            q->last = &q->first;
    }
    pthread_mutex_unlock(&q->lock);
    return m;
}

struct rq {
    pthread_mutex_t lock;
    uint64_t pushed, taken;
    void *slots[RQ_CAPACITY];
};

static inline void rq_init(struct rq *q)
{
    pthread_mutex_init(&q->lock, NULL);
    q->pushed = q->taken = 0;
}

static inline bool rq_push(struct rq *q, void *value)
{
    pthread_mutex_lock(&q->lock);
    bool has_room = q->pushed - q->taken < RQ_CAPACITY;
    if (has_room)
        q->slots[q->pushed++ % RQ_CAPACITY] = value;
    pthread_mutex_unlock(&q->lock);
    return has_room;
}

static inline bool rq_take(struct rq *q, void **value)
{
    pthread_mutex_lock(&q->lock);
    bool has_one = q->pushed != q->taken;
    if (has_one)
        *value = q->slots[q->taken++ % RQ_CAPACITY];
    pthread_mutex_unlock(&q->lock);
    return has_one;
}

#include "mpmc_cases.h"
#include "mpsc_cases.h"

static const struct bench_case cases[] = {MPSC_CASES, MPMC_CASES};
BENCH_MAIN(cases)
