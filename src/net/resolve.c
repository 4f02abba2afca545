/*
 * resolve.c - addresses of a host by its name: the system's resolver, on a thread of the pool.
 *
 * A lookup blocks for as long as name servers are silent, half a minute and more. The pool has room for
 * hundreds of such calls, but a thousand connections to a host that does not resolve should not take
 * all of it: so a lookup takes one of four permits first, in line, and who waits for one waits with
 * its deadline. Rejected: threads of its own, which would be four more that idle in nearly every
 * program.
 *
 * At the deadline, or at a cancel, the caller leaves and the call goes on without it. The permit is
 * the call's, not the caller's: it is given back when the call has ended, or never began, or four
 * dead name servers would stand for any number of threads. The names and the answers are in memory
 * of the call, for the same reason.
 *
 * "localhost" and every name below it are the loopback addresses by definition (RFC 6761, section 6.3),
 * so they are answered here: a system without a hosts file has them too, and no name server can
 * redirect them. Only the name of a service is left for the system to look up.
 *
 * It is a future of two steps, the permit's and the call's; the call on a stack awaits it. Connecting by
 * name is connect_host.c.
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

/* The caller has left: the call has ended, or will never begin. */
static void lookup_drop(void *arg, void *ctx)
{
    (void)ctx;
    lookup_free(arg);
    if (!BZ_BROKEN(154))
        (void)blitz_semaphore_release(&permits, 1);
}

/* 0, or -EINVAL: too long. */
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

/* The number that `service` says, 0 for NULL. False if it is a name. */
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

/* Both loopback addresses, the one that works first. */
static int loopback(uint16_t port, blitz_addr *out, size_t room)
{
    const blitz_addr v4 = blitz_addr_loopback_v4(port), v6 = blitz_addr_loopback_v6(port);
    bool has_v6 = bz_has_v6_loopback();
    out[0] = has_v6 ? v6 : v4;
    if (room > 1)
        out[1] = has_v6 ? v4 : v6;
    return room > 1 ? 2 : 1;
}

/* How many addresses were written; 0 if the system must be asked. */
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

/* The answer, or there was no memory to ask with: the lookup and its permit are ours again. */
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
