/*
 * blitz/net_future.h - waiting for the network without a stack.
 *
 * Fibers and plain threads call blitz_tcp_read(), blitz_tcp_accept() and so on, and need none of
 * this. A stackless task (blitz/poll.h) keeps a blitz_net_future in its state, which one of the
 * ..._future_init() functions makes into that call; the same memory serves one call after the other.
 *
 *     blitz_tcp_read_future_init(&s->io, s->tcp, s->buffer, sizeof s->buffer);
 *     BLITZ_AWAIT(rc, &s->io.future);
 *     if (rc == 0)
 *         use(s->buffer, s->io.result);                    // bytes, 0 at the end, or -errno
 *
 * Class (blitz/future.h), by keeper:
 *
 *                                epoll, poll      uring
 *   reads, writes, messages      revocable        pinned: the kernel has the buffers until it is done
 *   batches, accept, wait        revocable        pinned
 *   connect, fd_wait             pinned           pinned: which keeper it is shows when it is polled
 *   resolve                      detachable       detachable
 *   connect_host                 pinned           pinned; what it leaves behind is a lookup
 *
 * So after a cancel look into it: `result` is -ECANCELED if nothing was done, else what was. With
 * blitz_await(), BLITZ_AWAIT and the combinators that needs no thought: they poll a pinned one until it
 * is over, and one that a race has given up says BLITZ_ENDED if it was completed all the same. By
 * readiness a pinned one is over at once.
 *
 * The memory is yours, from init until the future was ready or cancelled; do not move or copy it in
 * between. Arguments that are wrong make a future that is ready with -EINVAL. They can be polled by
 * anybody, also by a plain thread; those that make a connection or a file (accept, connect, fd_wait)
 * by a task only, and say -EOPNOTSUPP elsewhere.
 */
#ifndef BLITZ_NET_FUTURE_H
#define BLITZ_NET_FUTURE_H

#include <stddef.h>
#include <stdint.h>

#include "blitz/api.h"
#include "blitz/future.h"

BLITZ_BEGIN_DECLS

struct blitz_tcp;

typedef struct blitz_net_future {
    blitz_future future;   /* to be awaited; its output is `result`, or INT_MAX if that is more */
    int64_t result;        /* when ready or cancelled: what the call would have returned */
    size_t done;           /* read_exact, write_all: how many bytes were, also on error */
    struct blitz_tcp *tcp; /* accept, connect: with result 0 the connection, yours; else NULL */
    uint64_t inside[18];
} blitz_net_future;

/* readv, writev. */
typedef struct blitz_pieces_future {
    blitz_future future; /* to be awaited; its output is `result`, or INT_MAX if that is more */
    int64_t result;      /* when ready or cancelled: what the call would have returned */
    uint64_t inside[27];
} blitz_pieces_future;

/* Messages that have an address (recv_from, send_to) or descriptors (recv_fds, send_fds) with them. */
typedef struct blitz_message_future {
    blitz_future future; /* to be awaited; its output is `result`, or INT_MAX if that is more */
    int64_t result;      /* when ready or cancelled: what the call would have returned */
    size_t fd_count;     /* recv_fds: how many descriptors came; 0 unless result is more than 0 */
    uint64_t inside[50];
} blitz_message_future;

BLITZ_END_DECLS

#endif
