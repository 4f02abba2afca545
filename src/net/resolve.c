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
 */
#include "blitz/resolve.h"

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
static void lookup_drop(void *arg)
{
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

/* An address and a number need no lookup. */
static bool is_address(const char *host, const char *service, blitz_addr *out)
{
    uint32_t port = 0;
    for (const char *s = service; s != NULL && *s != '\0'; s++) {
        if (*s < '0' || *s > '9' || port > UINT16_MAX)
            return false;
        port = port * 10 + (uint32_t)(*s - '0');
    }
    return port <= UINT16_MAX && (service == NULL || *service != '\0') &&
           blitz_addr_parse_ip(host, (uint16_t)port, out) == 0;
}

int blitz_resolve(const char *host, const char *service, blitz_addr *out, size_t room,
                  blitz_deadline until)
{
    struct lookup *l;
    int n = 0;
    if (host == NULL || *host == '\0' || out == NULL || room == 0)
        return -EINVAL;
    if (is_address(host, service, out))
        return 1;
    int err = lookup_new(host, service, room, &l);
    if (err != 0)
        return err;
    err = blitz_semaphore_acquire(&permits, 1, until);
    if (err != 0) {
        lookup_free(l);
        return err;
    }
    err = blitz_blocking_until(lookup_run, l, lookup_drop, until, &n);
    if (err != 0 && err != -ENOMEM)
        return err; /* it is the call's */
    if (err == 0 && n > 0)
        memcpy(out, l->found, (size_t)n * sizeof *out);
    lookup_free(l);
    (void)blitz_semaphore_release(&permits, 1);
    return err != 0 ? err : n;
}

int blitz_tcp_connect_host(const char *host, const char *service, blitz_deadline until,
                           blitz_tcp **out)
{
    enum { TRY_MAX = 8 };
    blitz_addr at[TRY_MAX];
    if (out == NULL)
        return -EINVAL;
    int n = blitz_resolve(host, service, at, TRY_MAX, until);
    if (n < 0)
        return n;
    n = blitz_tcp_connect_first(at, (size_t)n, NULL, until, out);
    return n < 0 ? n : 0;
}
