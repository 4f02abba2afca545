/*
 * connect_host.c - connect by name: a lookup, then the first of its addresses that answers.
 *
 * It is a future over the futures of both steps, which share a deadline and use the same memory one
 * after the other. A cancel during the lookup abandons the lookup and completes at once; a cancel
 * during the connect completes when the connect has ended. So the whole future is pinned.
 */
#include <assert.h>
#include <errno.h>

#include "base/compiler.h"
#include "blitz/combine.h"
#include "blitz/resolve.h"

enum { TRY_MAX = 8 };

enum step { NEW, LOOKS_UP, CONNECTS, OVER };

struct by_host {
    blitz_future future;
    int result;
    blitz_tcp *tcp;
    uint32_t step; /* enum step */
    const char *host, *service;
    blitz_deadline until;
    union {
        struct {
            blitz_resolve_future names;
            blitz_timeout limit;
        };
        blitz_connect_first_future connect;
    } in;
    blitz_addr at[TRY_MAX];
};

static_assert(sizeof(struct by_host) <= sizeof(blitz_connect_host_future), "it has room");
static_assert(offsetof(struct by_host, tcp) == offsetof(blitz_connect_host_future, tcp),
              "the same");

static struct by_host *by_host_of(blitz_future *f)
{
    return BZ_CONTAINER_OF(f, struct by_host, future);
}

static void over(struct by_host *h, int result)
{
    h->result = result;
    h->step = OVER;
}

static void look_up(struct by_host *h)
{
    blitz_resolve_future_init(&h->in.names, h->host, h->service, h->at, TRY_MAX);
    (void)!blitz_timeout_init(&h->in.limit, &h->in.names.future, h->until);
    h->step = LOOKS_UP;
}

static void looked_up(struct by_host *h)
{
    int n = h->in.limit.result;
    if (n <= 0) {
        over(h, n);
        return;
    }
    blitz_tcp_connect_first_future_init(&h->in.connect, h->at, (size_t)n, NULL, h->until);
    h->step = CONNECTS;
}

static void connected(struct by_host *h)
{
    h->tcp = h->in.connect.tcp;
    over(h, h->in.connect.result < 0 ? h->in.connect.result : 0);
}

static blitz_poll by_host_poll(blitz_future *future, const blitz_waker *waker)
{
    struct by_host *h = by_host_of(future);
    if (h->step == NEW)
        look_up(h);
    if (h->step == LOOKS_UP) {
        if (h->in.limit.future.ops->poll(&h->in.limit.future, waker) == BLITZ_PENDING)
            return BLITZ_PENDING;
        looked_up(h);
    }
    if (h->step == CONNECTS) {
        if (h->in.connect.future.ops->poll(&h->in.connect.future, waker) == BLITZ_PENDING)
            return BLITZ_PENDING;
        connected(h);
    }
    return BLITZ_READY;
}

static void by_host_cancel(blitz_future *future)
{
    struct by_host *h = by_host_of(future);
    if (h->step == CONNECTS) {
        h->in.connect.future.ops->cancel(&h->in.connect.future); /* and is polled further */
        return;
    }
    if (h->step == LOOKS_UP)
        h->in.limit.future.ops->cancel(&h->in.limit.future);
    if (h->step != OVER)
        over(h, -ECANCELED);
}

static int by_host_output(blitz_future *future)
{
    return by_host_of(future)->result;
}

void blitz_tcp_connect_host_future_init(blitz_connect_host_future *f, const char *host,
                                        const char *service, blitz_deadline until)
{
    static const blitz_future_ops ops = {"connect", BLITZ_PINNED, by_host_poll, by_host_cancel,
                                         by_host_output};
    struct by_host *h = (struct by_host *)f;
    h->future.ops = &ops;
    h->result = -ECANCELED;
    h->tcp = NULL;
    h->step = NEW;
    h->host = host;
    h->service = service;
    h->until = until;
}

int blitz_tcp_connect_host(const char *host, const char *service, blitz_tcp **out,
                           blitz_deadline until)
{
    blitz_connect_host_future f;
    if (out == NULL)
        return -EINVAL;
    blitz_tcp_connect_host_future_init(&f, host, service, until);
    (void)!blitz_await(&f.future,
                       BLITZ_FOREVER); /* the result tells how it ended, cancelled or not */
    if (f.result == 0)
        *out = f.tcp;
    return f.result;
}
