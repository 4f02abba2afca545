/*
 * resolve.c - resolve host names with the system's resolver, on a pool thread.
 *
 * A lookup may block for half a minute or more if name servers do not answer. The pool has room for
 * hundreds of such calls, but a thousand connects to an unresolvable host should not use all of it.
 * So a lookup first takes one of four permits, and waits for one with its own deadline. Rejected:
 * separate threads, which would be idle in nearly every program.
 *
 * At the deadline or a cancel the caller leaves and the call continues without it. The call owns
 * the permit, not the caller: it is released when the call has ended or is dropped before its
 * start. Otherwise lookups with dead name servers could occupy any number of threads. For the same
 * reason the call owns the memory of names and answers.
 *
 * "localhost" and every name below it are the loopback addresses by definition (RFC 6761, section
 * 6.3), so they are answered here: this also works without a hosts file, and no name server can
 * redirect them. Only the name of a service is looked up by the system.
 *
 * It is a future of two steps, the permit and the call; the blocking function awaits it.
 * connect_host.c connects by name.
 */
#include "blitz/resolve.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "base/alloc.h"
#include "blitz/blocking.h"
#include "blitz/semaphore.h"
#include "io/lookup.h"
#include "net/net.h"

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
    struct lookup *l = bz_alloc(&bz_allocator_libc, sizeof *l, 0);
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
    if (!port_of(service, &port))
        return 0;
    if (blitz_addr_parse_ip(host, port, out) == 0)
        return 1;
    return bz_is_localhost(host) ? loopback(port, out, room) : 0;
}

/* ---- as a future ---- */

enum step { NEW, IN_LINE, CALLED, OVER };

struct resolve {
    blitz_future future;
    int result;
    uint32_t step; /* enum step */
    const char *host, *service;
    blitz_addr *out;
    size_t room;
    struct lookup *lookup; /* IN_LINE, CALLED */
    union {
        blitz_sync_future permit;
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

static void begin(struct resolve *r)
{
    int n = known(r->host, r->service, r->out, r->room);
    if (n > 0) {
        resolve_over(r, n);
        return;
    }
    int err = lookup_new(r->host, r->service, r->room, &r->lookup);
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
    if (n > 0)
        memcpy(r->out, r->lookup->found, (size_t)n * sizeof *r->out);
    lookup_free(r->lookup);
    (void)blitz_semaphore_release(&permits, 1);
    resolve_over(r, n);
}

static blitz_poll resolve_poll(blitz_future *future, const blitz_waker *waker)
{
    struct resolve *r = resolve_of(future);
    if (r->step == NEW)
        begin(r);
    if (r->step == IN_LINE) {
        if (r->in.permit.future.ops->poll(&r->in.permit.future, waker) == BLITZ_PENDING)
            return BLITZ_PENDING;
        call(r);
    }
    if (r->step == CALLED) {
        if (r->in.call.future.ops->poll(&r->in.call.future, waker) == BLITZ_PENDING)
            return BLITZ_PENDING;
        answered(r);
    }
    return BLITZ_READY;
}

static void resolve_cancel(blitz_future *future)
{
    struct resolve *r = resolve_of(future);
    if (r->step == IN_LINE) {
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

void blitz_resolve_future_init(blitz_resolve_future *f, const char *host, const char *service,
                               blitz_addr *out, size_t room)
{
    static const blitz_future_ops ops = {"resolve", BLITZ_DETACHABLE, resolve_poll, resolve_cancel,
                                         resolve_output};
    struct resolve *r = (struct resolve *)f;
    r->future.ops = &ops;
    r->result = -ECANCELED;
    r->step = NEW;
    r->host = host;
    r->service = service;
    r->out = out;
    r->room = room;
    if (host == NULL || *host == '\0' || out == NULL || room == 0)
        resolve_over(r, -EINVAL);
}

int blitz_resolve(const char *host, const char *service, blitz_addr *out, size_t room,
                  blitz_deadline until)
{
    blitz_resolve_future f;
    blitz_resolve_future_init(&f, host, service, out, room);
    int err = blitz_await(&f.future, until);
    return err != 0 ? err : f.result;
}
