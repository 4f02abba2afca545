/*
 * common.h - what every queue of these cases carries, and how much of it.
 *
 * MPSC (mpsc_cases.h): a message is a cache line: the fields its queue wants, then the payload. A
 * program defines  struct mq_msg { <its queue's link> struct mq_payload load; } MQ_LINE;
 * MPMC (mpmc_cases.h): pointers that are plain numbers.
 */
#ifndef BENCH_BASE_COMMON_H
#define BENCH_BASE_COMMON_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "bench.h"

#define MQ_LINE __attribute__((aligned(64)))
#define MQ_MESSAGES 1024u /* in flight at most, all producers together */
#define RQ_CAPACITY 1024u

struct mq_payload {
    uint64_t value;      /* written by the producer, read by the consumer */
    _Atomic(int) is_out; /* set by the producer, cleared by the consumer */
};

/* Were as many received as sent, and the same ones? */
static inline void queue_check(uint64_t got, uint64_t sent, uint64_t got_sum, uint64_t sent_sum)
{
    if (got != sent || got_sum != sent_sum)
        bench_die("messages were lost or doubled: %llu received, %llu sent",
                  (unsigned long long)got, (unsigned long long)sent);
}

#endif
