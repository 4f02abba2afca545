/*
 * resolve.c - addresses by name: answers that need no lookup, our own resolver, the system's.
 *
 * An address in text and localhost need no lookup. Then come the hosts file and the cache (bz_dns_local), and a flight
 * that asks servers (dns_flight.c). getaddrinfo() on a pool thread is for everything that is not ours: blitz/resolve.h
 * has the list.
 *
 * A lookup by the system may block for half a minute or more if name servers do not answer. The pool has room for
 * hundreds of such calls, but a thousand connects to an unresolvable host should not use all of it.
 * So such a lookup first takes one of four permits, and waits for one with its own deadline. Rejected:
 * separate threads, which would be idle in nearly every program.
 *
 * At the deadline or a cancel the caller leaves and the call continues without it. The call owns
 * the permit, not the caller: it is released when the call has ended or is dropped before its
 * start. Otherwise lookups with dead name servers could occupy any number of threads. For the same
 * reason the call owns the memory of names and answers.
 *
 * "localhost" and every name below it are the loopback addresses by definition (RFC 6761, section
 * 6.3), so they are answered here: this also works without a hosts file, and no name server can
 * redirect them. Services have numbers that never change for the few well-known names; the names of all others are
 * looked up by the system.
 *
 * It is a future of a few steps; the blocking function awaits it. connect_host.c connects by name.
 */
#include "blitz/resolve.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "base/alloc.h"
#include "blitz/blocking.h"
#include "blitz/semaphore.h"
#include "blitz/task.h"
#include "io/lookup.h"
#include "net/dns.h"
#include "net/dns_order.h"
#include "net/net.h"
#include "net/resolve.h"

enum { AT_ONCE = 4, NAME_MAX_BYTES = 256, SERVICE_MAX_BYTES = 64 };

static blitz_semaphore permits = BLITZ_SEMAPHORE_INIT(AT_ONCE);

struct lookup {
    char host[NAME_MAX_BYTES];
    char service[SERVICE_MAX_BYTES];
    bool has_service;
    size_t room;
    blitz_addr found[BLITZ_RESOLVE_MAX];
};

static int lookup_run(void *arg)
{
    struct lookup *l = arg;
    return bz_lookup(l->host, l->has_service ? l->service : NULL, l->found, l->room);
}

static void lookup_free(struct lookup *l)
{
    bz_free(&bz_allocator_libc, l, sizeof *l); /* it may outlive the runtime's own */
}

/* Free a lookup whose caller has left: the call has ended, or will never start. */
static void lookup_drop(void *arg, void *ctx)
{
    (void)ctx;
    lookup_free(arg);
    (void)blitz_semaphore_release(&permits, 1);
}

/* Copy a name. Returns 0, or -EINVAL: too long. */
static int lookup_new(const char *host, const char *service, size_t room, struct lookup **out)
{
    if (strlen(host) >= NAME_MAX_BYTES || (service != NULL && strlen(service) >= SERVICE_MAX_BYTES))
        return -EINVAL;
    struct lookup *l = bz_alloc(&bz_allocator_libc, sizeof *l, _Alignof(struct lookup));
    if (l == NULL)
        return -ENOMEM;
    memcpy(l->host, host, strlen(host) + 1);
    l->has_service = service != NULL;
    if (l->has_service)
        memcpy(l->service, service, strlen(service) + 1);
    l->room = room < BLITZ_RESOLVE_MAX ? room : BLITZ_RESOLVE_MAX;
    *out = l;
    return 0;
}

/* ---- answers without a lookup ---- */

/* Parse `service` as a number, 0 for NULL. Return false if it is a name. */
static bool port_of(const char *service, uint16_t *out)
{
    uint32_t port = 0;
    for (const char *s = service; s != NULL && *s != '\0'; s++) {
        if (*s < '0' || *s > '9' || port > UINT16_MAX)
            return false;
        port = port * 10 + (uint32_t)(*s - '0');
    }
    *out = (uint16_t)port;
    return port <= UINT16_MAX && (service == NULL || *service != '\0');
}

/* Find a port that is known without the system's table of services. */
static bool port_known(const char *service, uint16_t *out)
{
    static const struct {
        const char *name;
        uint16_t port;
    } known[] = {{"http", 80},  {"https", 443}, {"ssh", 22},   {"smtp", 25},   {"submission", 587},
                 {"imap", 143}, {"imaps", 993}, {"ldap", 389}, {"ldaps", 636}, {"domain", 53}};
    if (port_of(service, out))
        return true;
    for (size_t i = 0; i < BZ_ARRAY_LEN(known); i++) {
        *out = known[i].port;
        if (strcmp(service, known[i].name) == 0)
            return true;
    }
    return false;
}

/* Write both loopback addresses, the reachable one first. */
static int loopback(uint16_t port, blitz_addr *out, size_t room)
{
    const blitz_addr v4 = blitz_addr_loopback_v4(port), v6 = blitz_addr_loopback_v6(port);
    bool has_v6 = bz_has_v6_loopback();
    out[0] = has_v6 ? v6 : v4;
    if (room > 1)
        out[1] = has_v6 ? v4 : v6;
    return room > 1 ? 2 : 1;
}

/* Return the number of addresses written; 0 if the resolver is needed. */
static int known(const char *host, const char *service, blitz_addr *out, size_t room)
{
    uint16_t port;
    if (!port_known(service, &port))
        return 0;
    if (blitz_addr_parse_ip(host, port, out) == 0)
        return 1;
    return bz_is_localhost(host) ? loopback(port, out, room) : 0;
}

/* ---- as a future ---- */

enum step { NEW, FLYING, IN_LINE, CALLED, OVER };

struct resolve {
    blitz_future future;
    int result;
    uint8_t step; /* enum step */
    bool is_eager, is_partial;
    uint16_t port; /* of our own lookup */
    const char *host, *service;
    blitz_addr *out;
    size_t room;
    blitz_resolver *resolver; /* NULL: that of the process */
    union {
        struct lookup *lookup;        /* IN_LINE, CALLED */
        struct bz_dns_flight *flight; /* FLYING */
    };
    union {
        blitz_sync_future permit;
        blitz_sync_future landing;
        blitz_blocking_future call;
    } in;
};

static_assert(sizeof(struct resolve) <= sizeof(blitz_resolve_future), "it has room");

static struct resolve *resolve_of(blitz_future *f)
{
    return BZ_CONTAINER_OF(f, struct resolve, future);
}

static void resolve_over(struct resolve *r, int result)
{
    r->result = result;
    r->step = OVER;
}

/* ---- by the system ---- */

static void begin_system(struct resolve *r)
{
    size_t room = r->is_eager ? BLITZ_RESOLVE_MAX : r->room;
    int err = lookup_new(r->host, r->service, room, &r->lookup);
    if (err != 0) {
        resolve_over(r, err);
        return;
    }
    blitz_semaphore_acquire_future_init(&r->in.permit, &permits, 1);
    r->step = IN_LINE;
}

static void call(struct resolve *r)
{
    blitz_blocking_future_init(&r->in.call, lookup_run, r->lookup,
                               &(blitz_blocking_opts){.drop = lookup_drop});
    r->step = CALLED;
}

/* Take the answer. The call has ended, or failed for lack of memory: the caller owns the lookup and
 * its permit again. */
static void answered(struct resolve *r)
{
    int n = blitz_future_output(&r->in.call.future);
    if (r->is_eager && n > 0) {
        bz_dns_interleave(r->lookup->found, (size_t)n);
        n = (size_t)n < r->room ? n : (int)r->room;
    }
    if (n > 0)
        memcpy(r->out, r->lookup->found, (size_t)n * sizeof *r->out);
    lookup_free(r->lookup);
    (void)blitz_semaphore_release(&permits, 1);
    resolve_over(r, n);
}

/* ---- by our own resolver ---- */

/* Return the resolver if the lookup is ours. */
static blitz_resolver *own_resolver(const struct resolve *r)
{
    if (bz_lookup_instead != NULL && r->resolver == NULL)
        return NULL;
    return r->resolver != NULL ? r->resolver : bz_resolver_default();
}

static void found(struct resolve *r, int n)
{
    for (int i = 0; i < n; i++)
        r->out[i].port = r->port;
    resolve_over(r, n);
}

/* Look in the hosts file and the cache. Return false if the system must be asked. */
static bool begin_own(struct resolve *r, blitz_resolver *own, struct bz_dns_host *h)
{
    int n = bz_dns_local(own, h, r->is_eager, r->out, r->room);
    if (n == -EINPROGRESS)
        n = bz_dns_flight_join(own, h, &r->flight);
    if (n == -EOPNOTSUPP)
        return false;
    if (n != 0) {
        found(r, n);
        return true;
    }
    blitz_event_wait_future_init(&r->in.landing, bz_dns_flight_event(r->flight, r->is_eager));
    r->step = FLYING;
    return true;
}

/* Set up our own lookup. Return 0, or -EOPNOTSUPP: it is not ours; or the error that it has. */
static int host_of(struct resolve *r, struct bz_dns_host *h)
{
    size_t bytes = strlen(r->host);
    if (bytes >= NAME_MAX_BYTES)
        return -EINVAL;
    if (bz_dns_name(r->host, bytes, h->name) < 0 || !port_known(r->service, &r->port))
        return -EOPNOTSUPP;
    h->is_absolute = r->host[bytes - 1] == '.';
    return 0;
}

static void begin_lookup(struct resolve *r)
{
    struct bz_dns_host h;
    blitz_resolver *own = own_resolver(r);
    bool must_own = own != NULL && own->by == BLITZ_RESOLVE_OWN;
    bool may_own = own != NULL && own->by != BLITZ_RESOLVE_SYSTEM && blitz_task_current() != NULL;
    int err = may_own ? host_of(r, &h) : -EOPNOTSUPP;
    if (err == 0 && begin_own(r, own, &h))
        return;
    if (err == 0 || err == -EOPNOTSUPP) {
        if (must_own)
            resolve_over(r, may_own ? -ENOENT : -EOPNOTSUPP);
        else
            begin_system(r);
    } else {
        resolve_over(r, err);
    }
}

/* The flight has a result. */
static void landed(struct resolve *r)
{
    int n = bz_dns_flight_result(r->flight, r->is_eager, r->out, r->room, &r->is_partial);
    bz_dns_flight_leave(r->flight);
    if (n == -EINPROGRESS)
        begin_lookup(r); /* it has read the hosts file, which has the name */
    else if (n == -EOPNOTSUPP)
        begin_system(r);
    else
        found(r, n);
}

/* ---- the future ---- */

static void begin(struct resolve *r)
{
    int n = known(r->host, r->service, r->out, r->room);
    if (n > 0)
        resolve_over(r, n);
    else
        begin_lookup(r);
}

static bool is_pending(blitz_future *f, const blitz_waker *waker)
{
    return f->ops->poll(f, waker) == BLITZ_PENDING;
}

static blitz_poll resolve_poll(blitz_future *future, const blitz_waker *waker)
{
    struct resolve *r = resolve_of(future);
    if (r->step == NEW)
        begin(r);
    while (r->step == FLYING) {
        if (is_pending(&r->in.landing.future, waker))
            return BLITZ_PENDING;
        landed(r);
    }
    if (r->step == IN_LINE) {
        if (is_pending(&r->in.permit.future, waker))
            return BLITZ_PENDING;
        call(r);
    }
    if (r->step == CALLED) {
        if (is_pending(&r->in.call.future, waker))
            return BLITZ_PENDING;
        answered(r);
    }
    return BLITZ_READY;
}

static void resolve_cancel(blitz_future *future)
{
    struct resolve *r = resolve_of(future);
    if (r->step == FLYING) {
        r->in.landing.future.ops->cancel(&r->in.landing.future);
        bz_dns_flight_leave(r->flight);
    } else if (r->step == IN_LINE) {
        r->in.permit.future.ops->cancel(&r->in.permit.future);
        lookup_free(r->lookup);
    } else if (r->step == CALLED) {
        r->in.call.future.ops->cancel(&r->in.call.future); /* lookup_drop, when it has ended */
    }
    if (r->step != OVER)
        resolve_over(r, -ECANCELED);
}

static int resolve_output(blitz_future *future)
{
    return resolve_of(future)->result;
}

void bz_resolve_init(blitz_resolve_future *f, blitz_resolver *by, const char *host,
                     const char *service, blitz_addr *out, size_t room, bool is_eager)
{
    static const blitz_future_ops ops = {"resolve", BLITZ_DETACHABLE, resolve_poll, resolve_cancel,
                                         resolve_output};
    struct resolve *r = (struct resolve *)f;
    *r = (struct resolve){.future = {&ops},
                          .result = -ECANCELED,
                          .step = NEW,
                          .is_eager = is_eager,
                          .host = host,
                          .service = service,
                          .out = out,
                          .room = room,
                          .resolver = by};
    if (host == NULL || *host == '\0' || out == NULL || room == 0)
        resolve_over(r, -EINVAL);
}

bool bz_resolve_is_partial(const blitz_resolve_future *f)
{
    return ((const struct resolve *)f)->is_partial;
}

void blitz_resolver_look_up_future_init(blitz_resolve_future *f, blitz_resolver *r,
                                        const char *host, const char *service, blitz_addr *out,
                                        size_t room)
{
    bz_resolve_init(f, r, host, service, out, room, false);
}

void blitz_resolve_future_init(blitz_resolve_future *f, const char *host, const char *service,
                               blitz_addr *out, size_t room)
{
    bz_resolve_init(f, NULL, host, service, out, room, false);
}

int blitz_resolver_look_up(blitz_resolver *r, const char *host, const char *service,
                           blitz_addr *out, size_t room, blitz_deadline until)
{
    blitz_resolve_future f;
    blitz_resolver_look_up_future_init(&f, r, host, service, out, room);
    int err = blitz_await(&f.future, until);
    return err != 0 ? err : f.result;
}

int blitz_resolve(const char *host, const char *service, blitz_addr *out, size_t room,
                  blitz_deadline until)
{
    return blitz_resolver_look_up(NULL, host, service, out, room, until);
}
