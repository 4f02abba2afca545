/*
 * connect_host.c - connect by name: a lookup, then a race of its addresses.
 *
 * It is a future over the futures of both steps, which share a deadline and use the same memory one after the other. The
 * lookup is eager: if the name server has answered for one family and is late with the other, the race begins with these
 * addresses. If all of them fail, a second lookup waits for the others; the cache has the first half of its answer.
 *
 * A cancel during the lookup abandons the lookup and completes at once; a cancel during the race completes when all
 * attempts have ended. So the whole future is pinned.
 */
#include <assert.h>
#include <errno.h>

#include "base/compiler.h"
#include "blitz/combine.h"
#include "net/connect_race.h"
#include "net/resolve.h"

enum step { NEW, LOOKS_UP, CONNECTS, OVER };

struct by_host {
    blitz_future future;
    int result;
    blitz_tcp *tcp;
    uint8_t step; /* enum step */
    uint8_t
        tried_kind; /* the family of the first half of an answer: a blitz_addr_kind; NONE: there was no half */
    bool is_partial; /* the addresses are a half */
    int first_error; /* of the first race */
    const char *host, *service;
    const blitz_connect_opts *opts;
    blitz_deadline until;
    union {
        blitz_resolve_future names;
        struct bz_race race;
    } in;
    blitz_timeout limit;
    blitz_addr at[BZ_RACE_MAX];
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
    bool is_eager = h->tried_kind == BLITZ_ADDR_NONE;
    bz_resolve_init(&h->in.names, h->opts != NULL ? h->opts->resolver : NULL, h->host, h->service,
                    h->at, BZ_RACE_MAX, is_eager);
    (void)!blitz_timeout_init(&h->limit, &h->in.names.future, h->until);
    h->step = LOOKS_UP;
}

/* Keep the addresses that are worth an attempt. Returns their number. */
static size_t keep_useful(struct by_host *h, size_t count)
{
    const blitz_addr *local = h->opts != NULL ? h->opts->local : NULL;
    size_t n = 0;
    for (size_t i = 0; i < count; i++)
        if (h->at[i].kind != h->tried_kind && (local == NULL || h->at[i].kind == local->kind))
            h->at[n++] = h->at[i];
    return n;
}

static void looked_up(struct by_host *h)
{
    int n = h->limit.result;
    bool is_second = h->tried_kind != BLITZ_ADDR_NONE;
    h->is_partial = n > 0 && bz_resolve_is_partial(&h->in.names);
    size_t useful = n > 0 ? keep_useful(h, (size_t)n) : 0;
    if (useful > 0) {
        bz_race_init(&h->in.race, h->at, useful, h->opts);
        (void)!blitz_timeout_init(&h->limit, &h->in.race.future, h->until);
        h->step = CONNECTS;
    } else if (h->is_partial) {
        h->tried_kind = h->at[0].kind; /* all of it was of the wrong family: wait for the rest */
        h->first_error = -EADDRNOTAVAIL;
        look_up(h);
    } else if (is_second) {
        over(h, n == -ETIMEDOUT || n == -ECANCELED ? n : h->first_error);
    } else {
        over(h, n > 0 ? -EADDRNOTAVAIL : n);
    }
}

/* True if other addresses might do better. */
static bool has_more(const struct by_host *h, int err)
{
    return h->is_partial && err != -ETIMEDOUT && err != -ECANCELED && err != -ENOMEM &&
           err != -EOPNOTSUPP;
}

/* A connection wins over a timeout and over a cancel. */
static void connected(struct by_host *h)
{
    if (h->in.race.result >= 0) {
        h->tcp = h->in.race.tcp;
        over(h, 0);
        return;
    }
    int err = h->limit.result;
    h->first_error = h->first_error != 0 ? h->first_error : err;
    if (has_more(h, err)) {
        h->tried_kind = h->at[0].kind;
        look_up(h);
    } else {
        over(h, err == -ETIMEDOUT || err == -ECANCELED ? err : h->first_error);
    }
}

static blitz_poll by_host_poll(blitz_future *future, const blitz_waker *waker)
{
    struct by_host *h = by_host_of(future);
    if (h->step == NEW)
        look_up(h);
    while (h->step != OVER) {
        if (h->limit.future.ops->poll(&h->limit.future, waker) == BLITZ_PENDING)
            return BLITZ_PENDING;
        if (h->step == LOOKS_UP)
            looked_up(h);
        else
            connected(h);
    }
    return BLITZ_READY;
}

static void by_host_cancel(blitz_future *future)
{
    struct by_host *h = by_host_of(future);
    if (h->step == LOOKS_UP || h->step == CONNECTS)
        h->limit.future.ops->cancel(&h->limit.future);
    if (h->step == NEW || h->step == LOOKS_UP)
        over(h, -ECANCELED); /* a race is polled further */
}

static int by_host_output(blitz_future *future)
{
    return by_host_of(future)->result;
}

void blitz_tcp_connect_host_with_future_init(blitz_connect_host_future *f, const char *host,
                                             const char *service, const blitz_connect_opts *opts,
                                             blitz_deadline until)
{
    static const blitz_future_ops ops = {"connect", BLITZ_PINNED, by_host_poll, by_host_cancel,
                                         by_host_output};
    struct by_host *h = (struct by_host *)f;
    h->future.ops = &ops;
    h->result = -ECANCELED;
    h->tcp = NULL;
    h->step = NEW;
    h->tried_kind = BLITZ_ADDR_NONE;
    h->is_partial = false;
    h->first_error = 0;
    h->host = host;
    h->service = service;
    h->opts = opts;
    h->until = until;
}

void blitz_tcp_connect_host_future_init(blitz_connect_host_future *f, const char *host,
                                        const char *service, blitz_deadline until)
{
    blitz_tcp_connect_host_with_future_init(f, host, service, NULL, until);
}

int blitz_tcp_connect_host_with(const char *host, const char *service,
                                const blitz_connect_opts *opts, blitz_tcp **out,
                                blitz_deadline until)
{
    blitz_connect_host_future f;
    if (out == NULL)
        return -EINVAL;
    blitz_tcp_connect_host_with_future_init(&f, host, service, opts, until);
    (void)!blitz_await(&f.future,
                       BLITZ_FOREVER); /* the result tells how it ended, cancelled or not */
    if (f.result == 0)
        *out = f.tcp;
    return f.result;
}

int blitz_tcp_connect_host(const char *host, const char *service, blitz_tcp **out,
                           blitz_deadline until)
{
    return blitz_tcp_connect_host_with(host, service, NULL, out, until);
}
