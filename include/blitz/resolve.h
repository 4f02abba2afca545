/*
 * blitz/resolve.h - addresses of a host by its name.
 *
 *     blitz_addr at[8];
 *     int n = blitz_resolve("localhost", "80", at, 8, blitz_after(5 * BLITZ_S));
 *     if (n > 0)
 *         n = blitz_tcp_connect_first(at, (size_t)n, NULL, &tcp, until);
 *
 * or both in one call: blitz_tcp_connect_host(). The system's own resolver (getaddrinfo) looks the names up, with its
 * configuration and its caches. It blocks, so it is called on threads of the pool, at most four at a time in the
 * process. So many lookups fill neither the pool nor the name server. A text that is an address already is not looked
 * up. Nor is "localhost", or any name that ends in ".localhost" (in upper or lower case, also with a dot at the end):
 * that is ::1 and 127.0.0.1, and the one that this host has comes first.
 */
#ifndef BLITZ_RESOLVE_H
#define BLITZ_RESOLVE_H

#include <stddef.h>
#include <stdint.h>

#include "blitz/addr.h"
#include "blitz/api.h"
#include "blitz/tcp.h"
#include "blitz/time.h"

BLITZ_BEGIN_DECLS

/* The most addresses that are requested. */
#define BLITZ_RESOLVE_MAX 64

/*
 * Look up the addresses of a host, best first, in the system's order.
 * Owns:     copies the names. Writes up to `room` addresses at `out`. `service` is a port as a number, or
 *           a name ("https"); NULL: port 0.
 * Suspends: until the answer, `until` or a cancel. At `until` or a cancel the caller leaves, and the lookup ends by
 *           itself. Call from anywhere; a plain thread waits for the answer and ignores `until`.
 * Returns:  the number of addresses, at least one; -ENOENT (no such host, or it has no address), -EAGAIN (the name
 *           server does not answer), -EIO (it fails), -EINVAL (also: no such service), -ETIMEDOUT,
 *           -ECANCELED, -ENOMEM.
 */
BLITZ_API BLITZ_SUSPENDS int blitz_resolve(const char *host, const char *service, blitz_addr *out,
                                           size_t room, blitz_deadline until);

typedef struct blitz_resolve_future {
    blitz_future future; /* to be awaited; its output is `result` */
    int result;          /* when ready or cancelled: what the call would have returned */
    uint64_t inside[24];
} blitz_resolve_future;

/*
 * blitz_resolve() as a future. *Detachable*: after a cancel the lookup ends by itself, on memory of its own. Until then
 * it still counts among the four.
 * Owns:     borrows the names and `out` until the future is ready or cancelled.
 * Suspends: never. Call from any thread; a plain thread that polls it waits for the answer.
 */
BLITZ_API void blitz_resolve_future_init(blitz_resolve_future *f, const char *host,
                                         const char *service, blitz_addr *out, size_t room);

/*
 * Look a host up and connect to the first of its addresses that answers.
 * Owns:     copies the names. *out is the caller's: blitz_tcp_close().
 * Suspends: as blitz_resolve() and blitz_tcp_connect_first(). Call from a task.
 * Returns:  0, or an error of those. *out is written only on 0.
 */
BLITZ_API BLITZ_SUSPENDS int blitz_tcp_connect_host(const char *host, const char *service,
                                                    blitz_tcp **out, blitz_deadline until);

typedef struct blitz_connect_host_future {
    blitz_future future; /* to be awaited; its output is `result` */
    int result;          /* when ready or cancelled: what the call would have returned */
    blitz_tcp *tcp;      /* with result 0 the connection, yours; else NULL */
    uint64_t inside[180];
} blitz_connect_host_future;

/*
 * blitz_tcp_connect_host() as a future. `until` is the deadline for both halves: then it is ready with -ETIMEDOUT.
 * *Pinned*: after a cancel it has left nothing open but perhaps a lookup, which ends by itself; or it has connected and
 * its result shows that.
 * Owns:     borrows the names until the future is ready, or the cancel has completed.
 * Suspends: never. Call from any thread; poll it in a task.
 */
BLITZ_API void blitz_tcp_connect_host_future_init(blitz_connect_host_future *f, const char *host,
                                                  const char *service, blitz_deadline until);

BLITZ_END_DECLS

#endif
