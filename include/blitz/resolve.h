/*
 * blitz/resolve.h - addresses of a host by its name.
 *
 *     blitz_addr at[8];
 *     int n = blitz_resolve("localhost", "80", at, 8, blitz_after(5 * BLITZ_S));
 *     if (n > 0)
 *         n = blitz_tcp_connect_first(at, (size_t)n, NULL, &tcp, until);
 *
 * or both in one call: blitz_tcp_connect_host().
 *
 * A text that is an address already is not looked up. Nor is "localhost", or any name that ends in ".localhost" (in
 * upper or lower case, also with a dot at the end): that is ::1 and 127.0.0.1, and the one that this host has comes first.
 *
 * All other names are looked up in one of two ways.
 *
 *   own      /etc/hosts, then the servers of /etc/resolv.conf, as nsswitch.conf says. No thread waits: a lookup that
 *            waits is a task, and lookups of the same name share one. Answers are kept for their TTL, negative ones
 *            too. The files are read again when they change. A and AAAA are asked at once, over UDP with EDNS0, over
 *            TCP if the answer was cut. Addresses are sorted by RFC 6724.
 *   system   getaddrinfo(), which blocks: on threads of the pool, at most four at a time in the process.
 *
 * blitz takes its own way for the common setups. It takes the system's for the rest:
 *   - nsswitch.conf names other sources than `files` and `dns`. With `mdns` that is for names below .local only, with
 *     `myhostname` for the names of this host only;
 *   - resolv.conf has an option that blitz does not know, or `sortlist`; LOCALDOMAIN, RES_OPTIONS or HOSTALIASES are set;
 *   - the name has characters that host names do not have;
 *   - the caller is a plain thread, which has no task to ask with;
 *   - the service is a name other than a few well-known ones.
 * The variable BLITZ_RESOLVE=system or own, or a resolver made with options, decides it for all names.
 */
#ifndef BLITZ_RESOLVE_H
#define BLITZ_RESOLVE_H

#include <stdbool.h>
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
 * Look up the addresses of a host, the best first (RFC 6724).
 * Owns:     copies the names. Writes up to `room` addresses at `out`. `service` is a port as a number, or
 *           a name ("https"); NULL: port 0.
 * Suspends: until the answer, `until` or a cancel. At `until` or a cancel the caller leaves, and the lookup ends by
 *           itself. Call from anywhere; a plain thread waits for the answer and ignores `until`.
 * Returns:  the number of addresses, at least one; -ENOENT (no such host, or it has no address), -EAGAIN (the name
 *           servers do not answer), -EIO (they fail), -EINVAL (also: no such service), -ETIMEDOUT,
 *           -ECANCELED, -ENOMEM, -EMFILE.
 */
BLITZ_API BLITZ_SUSPENDS int blitz_resolve(const char *host, const char *service, blitz_addr *out,
                                           size_t room, blitz_deadline until);

typedef struct blitz_resolve_future {
    blitz_future future; /* to be awaited; its output is `result` */
    int result;          /* when ready or cancelled: what the call would have returned */
    uint64_t inside[24];
} blitz_resolve_future;

/*
 * blitz_resolve() as a future. *Detachable*: after a cancel the lookup ends by itself, on memory of its own. A lookup by
 * the system still counts among the four until then.
 * Owns:     borrows the names and `out` until the future is ready or cancelled.
 * Suspends: never. Call from any thread; a plain thread that polls it waits for the answer.
 */
BLITZ_API void blitz_resolve_future_init(blitz_resolve_future *f, const char *host,
                                         const char *service, blitz_addr *out, size_t room);

/* ---- resolvers ---- */

typedef struct blitz_resolver blitz_resolver;

typedef enum blitz_resolve_by {
    BLITZ_RESOLVE_AUTO = 0, /* as described above */
    BLITZ_RESOLVE_OWN =
        1, /* never by getaddrinfo(), whatever the files say; not for plain threads */
    BLITZ_RESOLVE_SYSTEM = 2 /* always by getaddrinfo() */
} blitz_resolve_by;

/* The options of a resolver. A zero field, or NULL for the whole struct, means the default. */
typedef struct blitz_resolver_opts {
    blitz_resolve_by by;
    const char *
        resolv_conf; /* NULL: /etc/resolv.conf. Servers may have a port: "nameserver [127.0.0.1]:5353" */
    const char *hosts;    /* NULL: /etc/hosts */
    const char *nsswitch; /* NULL: /etc/nsswitch.conf */
    size_t cache_max;     /* answers to keep; 0: 1024. The least recently used one goes first */
    bool is_uncached;     /* keep none */
    uint64_t check_ns;    /* look for changes of the files after so long; 0: a second */
} blitz_resolver_opts;

/*
 * Make a resolver with its own configuration and cache. blitz_resolve() uses one of the process, with no options.
 * Owns:     the caller holds the first reference: blitz_resolver_unref(). Copies the options and paths. The files are
 *           read by the first lookup.
 * Suspends: never. Call from any thread.
 * Returns:  0, -ENOMEM, -EINVAL. *out is written only on 0.
 */
BLITZ_API BLITZ_MUST_USE int blitz_resolver_new(const blitz_resolver_opts *opts,
                                                blitz_resolver **out);

/*
 * Add a reference, or release one. NULL is ignored. A lookup keeps the resolver for itself.
 * Owns:     ref: the result is a reference of its own. unref takes one.
 * Suspends: never. Call from any thread.
 * Returns:  ref: the resolver.
 */
BLITZ_API blitz_resolver *blitz_resolver_ref(blitz_resolver *r);
BLITZ_API void blitz_resolver_unref(blitz_resolver *r);

/*
 * Forget all answers, and look at the files before the next lookup. NULL: of the resolver of the process.
 * Owns:     borrows it until it returns.
 * Suspends: never. Call from any thread.
 */
BLITZ_API void blitz_resolver_clear(blitz_resolver *r);

/*
 * blitz_resolve() with a given resolver. r NULL: that of the process.
 * Owns:     borrows the resolver, the names and `out` until it returns.
 * Suspends: until the answer, `until` or a cancel, as blitz_resolve(). Call from anywhere.
 * Returns:  as blitz_resolve(); -EOPNOTSUPP: a plain thread with BLITZ_RESOLVE_OWN.
 */
BLITZ_API BLITZ_SUSPENDS int blitz_resolver_look_up(blitz_resolver *r, const char *host,
                                                    const char *service, blitz_addr *out,
                                                    size_t room, blitz_deadline until);

/*
 * blitz_resolver_look_up() as a future, as blitz_resolve_future_init().
 * Owns:     borrows the resolver, the names and `out` until the future is ready or cancelled.
 * Suspends: never. Call from any thread.
 */
BLITZ_API void blitz_resolver_look_up_future_init(blitz_resolve_future *f, blitz_resolver *r,
                                                  const char *host, const char *service,
                                                  blitz_addr *out, size_t room);

/* ---- connecting by name ---- */

/*
 * Look a host up and connect to one of its addresses, as RFC 8305 says ("happy eyeballs"). The addresses alternate
 * between IPv6 and IPv4, and up to eight are tried. Each attempt gets 250 ms before the next one begins beside it; an
 * attempt that fails lets the next one begin at once. The first connection wins, and the others are closed. If the name
 * server answers for one family only, connecting begins after 50 ms (for IPv6 at once), and the other addresses are
 * asked for again if these all fail.
 * Owns:     copies the names. *out is the caller's: blitz_tcp_close().
 * Suspends: as blitz_resolve() and blitz_tcp_connect(). Call from a task.
 * Returns:  0, or an error of those: if all addresses fail, the error of the first. *out is written only on 0.
 */
BLITZ_API BLITZ_SUSPENDS int blitz_tcp_connect_host(const char *host, const char *service,
                                                    blitz_tcp **out, blitz_deadline until);

typedef struct blitz_connect_host_future {
    blitz_future future; /* to be awaited; its output is `result` */
    int result;          /* when ready or cancelled: what the call would have returned */
    blitz_tcp *tcp;      /* with result 0 the connection, yours; else NULL */
    uint64_t inside[360];
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

/*
 * blitz_tcp_connect_host() with options (blitz/tcp.h). With a local address only the addresses of its family are tried.
 * Owns:     borrows the options, too; NULL: none.
 * Suspends: as blitz_tcp_connect_host().
 * Returns:  as blitz_tcp_connect_host(); -EADDRNOTAVAIL: the host has no address of the local one's family.
 */
BLITZ_API BLITZ_SUSPENDS int blitz_tcp_connect_host_with(const char *host, const char *service,
                                                         const blitz_connect_opts *opts,
                                                         blitz_tcp **out, blitz_deadline until);

/*
 * blitz_tcp_connect_host_with() as a future, as blitz_tcp_connect_host_future_init().
 * Owns:     borrows the names and the options until the future is ready, or the cancel has completed.
 * Suspends: never. Call from any thread; poll it in a task.
 */
BLITZ_API void blitz_tcp_connect_host_with_future_init(blitz_connect_host_future *f,
                                                       const char *host, const char *service,
                                                       const blitz_connect_opts *opts,
                                                       blitz_deadline until);

BLITZ_END_DECLS

#endif
