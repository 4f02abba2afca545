/* Connecting by name: several addresses at the same time, the first connection wins (RFC 8305). */
#include "harness.h"

#include "blitz/combine.h"
#include "support/dns.h"
#include "support/keepers.h"

static blitz_deadline soon(void)
{
    return blitz_after(50 * BLITZ_S);
}

/* A listener that answers at 127.0.0.1, one whose line is full at 127.0.0.2, none at 127.0.0.3: all at one port. */
struct hosts {
    struct t_dns dns;
    blitz_resolver *r;
    blitz_tcp_listener *good, *full;
    blitz_tcp *in_line[64];
    int in_line_count;
    char port[8];
};

static const struct t_rule rules[] = {
    {.name = "good.test", .v4 = "127.0.0.1", .ttl_s = 60},
    {.name = "refused-first.test", .v4 = "127.0.0.3 127.0.0.1", .ttl_s = 60},
    {.name = "refused.test", .v4 = "127.0.0.3 127.0.0.4", .ttl_s = 60},
    {.name = "full-first.test", .v4 = "127.0.0.2 127.0.0.1", .ttl_s = 60},
    {.name = "full.test", .v4 = "127.0.0.2", .ttl_s = 60},
    {.name = "late-six.test", .v4 = "127.0.0.1", .v6 = "::1", .trick = T_NO_AAAA},
    {.name = "late-four.test",
     .v4 = "127.0.0.1",
     .v6 = "::5",
     .ttl_s = 60,
     .trick = T_AAAA_FIRST,
     .times = 1},
    {.name = "many.test",
     .v4 = "127.0.0.1 127.0.0.2 127.0.0.3 127.0.0.4 127.0.0.5 127.0.0.6",
     .ttl_s = 60},
};

static void begin(struct hosts *h)
{
    blitz_addr at, second;
    *h = (struct hosts){.dns = {.rules = rules, .count = BZ_ARRAY_LEN(rules)}};
    t_dns_begin(&h->dns);
    h->r = t_resolver(&h->dns, "options timeout:20\n", "", NULL);
    do {
        h->good = t_listen(&at);
        second = blitz_addr_v4(127, 0, 0, 2, at.port);
    } while (blitz_tcp_listen(&second, &(blitz_tcp_listen_opts){.backlog = 1}, &h->full) != 0);
    h->in_line_count = t_fill_line(h->full, h->in_line, (int)BZ_ARRAY_LEN(h->in_line));
    snprintf(h->port, sizeof h->port, "%u", at.port);
}

static void end(struct hosts *h)
{
    for (int i = 0; i < h->in_line_count; i++)
        blitz_tcp_close(h->in_line[i]);
    blitz_tcp_listener_close(h->full);
    blitz_tcp_listener_close(h->good);
    blitz_resolver_unref(h->r);
    t_dns_end(&h->dns);
}

/* Connect, and check that the other end is the good one. */
static void connects(struct hosts *h, const char *name, uint64_t delay_ns)
{
    blitz_connect_opts opts = {.resolver = h->r, .delay_ns = delay_ns};
    blitz_tcp *t, *accepted;
    blitz_addr peer;
    t_watch("%s", name);
    CHECK_EQ(blitz_tcp_connect_host_with(name, h->port, &opts, &t, soon()), 0);
    CHECK_EQ(blitz_tcp_peer(t, &peer), 0);
    CHECK_EQ(peer.is.ip[3], 1);
    CHECK_EQ(blitz_tcp_accept(h->good, &accepted, NULL, soon()), 0);
    blitz_tcp_close(accepted);
    blitz_tcp_close(t);
}

static int answers(void *arg)
{
    struct hosts h;
    (void)arg;
    begin(&h);
    connects(&h, "good.test", 0);
    connects(&h, "refused-first.test", 1000 * BLITZ_S); /* without the delay */
    connects(&h, "full-first.test", BLITZ_MS);
    end(&h);
    return 0;
}

/* A dead address must not cost its whole timeout, and a refusal no time at all. */
TEST(connect_host, the_next_address_is_tried_beside_one_that_does_not_answer)
{
    t_on_keepers(answers, NULL);
}

static int late(void *arg)
{
    struct hosts h;
    (void)arg;
    begin(&h);
    connects(&h, "late-six.test", 0);
    CHECK_GE(bz_xchg_relaxed(&h.dns.played, 0), 1u); /* relaxed: counted */
    connects(&h, "late-four.test", 0);
    CHECK_GE(bz_load_relaxed(&h.dns.played), 1u); /* relaxed: counted */
    end(&h);
    return 0;
}

/* A name server that drops questions for one family would cost the timeout of a question. */
TEST(connect_host, addresses_of_one_family_are_used_while_those_of_the_other_are_late)
{
    t_on_keepers(late, NULL);
}

static int fails(void *arg)
{
    struct hosts h;
    blitz_tcp *t;
    (void)arg;
    begin(&h);
    blitz_connect_opts opts = {.resolver = h.r, .delay_ns = BLITZ_MS};
    CHECK_EQ(blitz_tcp_connect_host_with("refused.test", h.port, &opts, &t, soon()), -ECONNREFUSED);
    CHECK_EQ(blitz_tcp_connect_host_with("missing.test", h.port, &opts, &t, soon()), -ENOENT);
    CHECK_EQ(
        blitz_tcp_connect_host_with("full.test", h.port, &opts, &t, blitz_after(20 * BLITZ_MS)),
        -ETIMEDOUT);
    CHECK_EQ(blitz_tcp_connect_host_with("full.test", h.port, &opts, &t, 0), -ETIMEDOUT);
    end(&h);
    return 0;
}

TEST(connect_host, errors_are_those_of_the_lookup_or_of_the_first_address)
{
    unsigned before = t_open_sockets();
    t_on_keepers(fails, NULL);
    CHECK_EQ(t_open_sockets(), before);
}

static struct hosts shared;

static int connect_full(void *arg)
{
    blitz_connect_opts opts = {.resolver = shared.r, .delay_ns = 1};
    blitz_tcp *t;
    (void)arg;
    return blitz_tcp_connect_host_with("full.test", shared.port, &opts, &t, BLITZ_FOREVER);
}

static int cancelled(void *arg)
{
    (void)arg;
    begin(&shared);
    for (int i = 0; i < 10; i++) {
        blitz_task *t = t_spawn(connect_full, NULL);
        t_until_waits(t);
        for (int k = 0; k < i * 3; k++)
            blitz_yield();
        blitz_task_cancel(t);
        CHECK_EQ(t_join(t), -ECANCELED);
    }
    end(&shared);
    return 0;
}

TEST(connect_host, a_cancel_leaves_nothing_open)
{
    unsigned before = t_open_sockets();
    t_on_keepers(cancelled, NULL);
    CHECK_EQ(t_open_sockets(), before);
}

/* ---- options of a connect ---- */

static int called_with;

static int hook(blitz_fd fd, void *ctx)
{
    int on = 1;
    called_with = *(int *)ctx;
    CHECK_EQ(setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on), 0);
    return called_with == 7 ? 0 : -EACCES;
}

static int with_options(void *arg)
{
    struct hosts h;
    blitz_tcp *t, *accepted;
    int n = 7;
    (void)arg;
    begin(&h);
    blitz_addr local = blitz_addr_v4(127, 0, 0, 9, 0), at, six = blitz_addr_loopback_v6(0), seen;
    blitz_connect_opts opts = {.local = &local, .before = hook, .ctx = &n, .resolver = h.r};
    CHECK_EQ(blitz_tcp_listener_local(h.good, &at), 0);
    CHECK_EQ(blitz_tcp_connect_with(&at, &opts, &t, soon()), 0);
    CHECK_EQ(called_with, 7);
    CHECK_EQ(blitz_tcp_accept(h.good, &accepted, &seen, soon()), 0);
    CHECK_EQ(seen.is.ip[3], 9);
    blitz_tcp_close(accepted);
    blitz_tcp_close(t);
    CHECK_EQ(blitz_tcp_connect_host_with("good.test", h.port, &opts, &t, soon()), 0);
    CHECK_EQ(blitz_tcp_local(t, &seen), 0);
    CHECK_EQ(seen.is.ip[3], 9);
    blitz_tcp_close(t);
    n = 8;
    CHECK_EQ(blitz_tcp_connect_with(&at, &opts, &t, soon()), -EACCES);
    CHECK_EQ(blitz_tcp_connect_host_with("good.test", h.port, &opts, &t, soon()), -EACCES);
    opts = (blitz_connect_opts){.local = &six, .resolver = h.r};
    CHECK_EQ(blitz_tcp_connect_host_with("good.test", h.port, &opts, &t, soon()), -EADDRNOTAVAIL);
    blitz_addr foreign = blitz_addr_v4(192, 0, 2, 1, 0);
    opts.local = &foreign;
    CHECK_EQ(blitz_tcp_connect_with(&at, &opts, &t, soon()), -EADDRNOTAVAIL);
    CHECK_EQ(blitz_tcp_connect_with(NULL, &opts, &t, soon()), -EINVAL);
    CHECK_EQ(blitz_tcp_connect_with(&at, &opts, NULL, soon()), -EINVAL);
    end(&h);
    return 0;
}

TEST(connect_host, a_connect_has_a_local_address_and_a_hook)
{
    t_on_keepers(with_options, NULL);
}

/* ---- one winner ---- */

/* Two addresses connect at the same moment: both attempts have begun before either is polled again. */
static int several_connect(void *arg)
{
    struct hosts h;
    blitz_tcp *t;
    unsigned before = t_open_sockets();
    (void)arg;
    begin(&h);
    blitz_addr every = blitz_addr_any_v4(0), at;
    blitz_tcp_listener *all;
    CHECK_EQ(blitz_tcp_listen(&every, NULL, &all), 0);
    CHECK_EQ(blitz_tcp_listener_local(all, &at), 0);
    snprintf(h.port, sizeof h.port, "%u", at.port);
    blitz_connect_opts opts = {.resolver = h.r, .delay_ns = 1};
    CHECK_EQ(blitz_tcp_connect_host_with("many.test", h.port, &opts, &t, soon()), 0);
    blitz_tcp_close(t);
    blitz_tcp_listener_close(all);
    end(&h);
    while (t_open_sockets() > before) /* a loser that is not closed hangs here */
        blitz_yield();
    return 0;
}

TEST_LIMIT(connect_host, only_one_connection_leaves_a_race, 10)
{
    for (int i = 0; i < 20; i++)
        CHECK_EQ(blitz_run(several_connect, NULL, &(blitz_runtime_opts){.procs = 1}), 0);
}
