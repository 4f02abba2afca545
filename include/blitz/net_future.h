/*
 * blitz/net_future.h - wait for the network without a stack.
 *
 * Fibers and plain threads call blitz_tcp_read(), blitz_tcp_accept() and so on, and need none of this. A stackless task
 * (blitz/poll.h) keeps a blitz_net_future in its state. One of the ..._future_init() functions turns it into that call;
 * the same memory serves one call after the other.
 *
 *     blitz_tcp_read_future_init(&s->io, s->tcp, s->buffer, sizeof s->buffer);
 *     BLITZ_AWAIT(rc, &s->io.future);
 *     if (rc == 0)
 *         use(s->buffer, s->io.result);                    // bytes, 0 at the end, or -errno
 *
 * Class (blitz/future.h), by backend:
 *
 *                                epoll, poll      uring
 *   reads, writes, messages      revocable        pinned: the kernel has the buffers until it is done
 *   batches, accept, wait        revocable        pinned
 *   connect, fd_wait             pinned           pinned: the backend is known only when it is polled
 *   resolve                      detachable       detachable
 *   connect_host                 pinned           pinned; it may leave a lookup behind
 *
 * So check `result` after a cancel: it is -ECANCELED if nothing was done, else the outcome. blitz_await(), BLITZ_AWAIT
 * and the combinators take care of that. They poll a pinned future until it is complete. A future that has lost a race
 * has the fate BLITZ_ENDED if it completed all the same. With epoll and poll a pinned future completes at once.
 *
 * The memory is yours, from init until the future is ready or cancelled; do not move or copy it in between. Wrong
 * arguments make a future that is ready with -EINVAL. Any task or plain thread may poll these futures. Exceptions are
 * those that make a connection or a file (accept, connect, fd_wait): only a task may poll them, and elsewhere they
 * return -EOPNOTSUPP.
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
    size_t done;           /* read_exact, write_all: the bytes that were done, also on error */
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
