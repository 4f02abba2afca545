/* Addresses by name: few lookups at a time, and no caller waits beyond its deadline. */
#include "harness.h"

#include "base/bz_atomic.h"
#include "base/compiler.h"
#include "blitz/resolve.h"
#include "io/attempt.h"
#include "io/lookup.h"
#include "support/bell.h"
#include "support/net.h"
#include "support/on_each.h"

static blitz_deadline soon(void)
{
    return blitz_after(20 * BLITZ_S);
}

static int real(void *arg)
{
    blitz_addr at[8], listening;
    blitz_tcp *t[2];
    char port[8];
    (void)arg;
    int n = blitz_resolve("localhost", "80", at, 8, soon());
    CHECK_GT(n, 0);
    for (int i = 0; i < n; i++) {
        CHECK(blitz_addr_is_loopback(&at[i]));
        CHECK_EQ(blitz_addr_port(&at[i]), 80);
    }
    CHECK_EQ(blitz_resolve("127.0.0.1", "80", at, 8, 0), 1); /* no lookup: no wait */
    CHECK_EQ(blitz_resolve("::1", NULL, at, 8, 0), 1);
    CHECK(blitz_addr_is_v6(&at[0]));
    blitz_tcp_listener *l = t_listen(&listening);
    snprintf(port, sizeof port, "%u", blitz_addr_port(&listening));
    CHECK_EQ(blitz_tcp_connect_host("localhost", port, &t[0], soon()), 0);
    CHECK_EQ(blitz_tcp_accept(l, &t[1], NULL, soon()), 0);
    t_close_both(t);
    blitz_tcp_listener_close(l);
    CHECK_EQ(blitz_resolve("", "80", at, 8, soon()), -EINVAL);
    CHECK_EQ(blitz_resolve(NULL, "80", at, 8, soon()), -EINVAL);
    CHECK_EQ(blitz_resolve("localhost", "80", at, 0, soon()), -EINVAL);
    CHECK_EQ(blitz_resolve("localhost", "no such service", at, 8, soon()), -EINVAL);
    char longer[300];
    memset(longer, 'x', sizeof longer);
    longer[sizeof longer - 1] = '\0';
    CHECK_EQ(blitz_resolve(longer, "80", at, 8, soon()), -EINVAL);
    return 0;
}

TEST(resolve, the_system_s_names_are_found)
{
    t_on_each(real, NULL, 0);
}

/* ---- localhost ---- */

static void is_loopback(const char *host, const char *service, blitz_deadline until)
{
    blitz_addr at[8];
    bool has_v6 = bz_has_v6_loopback();
    t_watch("%s", host);
    CHECK_EQ(blitz_resolve(host, service, at, 8, until), 2);
    CHECK(blitz_addr_is_loopback(&at[0]) && blitz_addr_is_loopback(&at[1]));
    CHECK_EQ(blitz_addr_is_v6(&at[0]), has_v6);
    CHECK_EQ(blitz_addr_is_v6(&at[1]), !has_v6);
    CHECK_EQ(blitz_addr_port(&at[0]), service != NULL ? 80 : 0);
    CHECK_EQ(blitz_addr_port(&at[1]), service != NULL ? 80 : 0);
    CHECK_EQ(blitz_resolve(host, service, at, 1, until), 1);
    CHECK_EQ(blitz_addr_is_v6(&at[0]), has_v6);
}

static int no_such_host(const char *host, const char *service, blitz_addr *out, size_t room)
{
    (void)host;
    (void)service;
    (void)out;
    (void)room;
    return -ENOENT;
}

static int localhosts(void *arg)
{
    static const char *const are[] = {"localhost",   "localhost.",     "LocalHost",  "LOCALHOST.",
                                      "a.localhost", "a.b.localhost.", "A.LocalHost"};
    static const char *const are_not[] = {"localhos",         "localhostx",  ".localhost",
                                          ".localhost.",      "localhost..", "xlocalhost",
                                          "localhost.domain", "x-localhost", "."};
    blitz_addr at[2];
    (void)arg;
    for (size_t i = 0; i < BZ_ARRAY_LEN(are); i++) {
        is_loopback(are[i], "80", 0); /* no lookup: no wait */
        is_loopback(are[i], NULL, 0);
        is_loopback(are[i], "http", 0); /* well known: no lookup either */
    }
    for (size_t i = 0; i < BZ_ARRAY_LEN(are_not); i++) {
        t_watch("%s", are_not[i]);
        CHECK_EQ(blitz_resolve(are_not[i], "80", at, 2, soon()), -ENOENT);
    }
    return 0;
}

/* RFC 6761: they are the loopback interface, independent of hosts files and name servers. */
TEST(resolve, localhost_and_names_below_it_are_loopback_without_a_lookup)
{
    bz_lookup_instead = no_such_host;
    t_on_each(localhosts, NULL, 0);
}

/* ---- a name server that is slow ---- */

static blitz_event gate = BLITZ_EVENT_INIT;
static bz_atomic(uint32_t) inside, inside_max, calls; /* relaxed: counted */

static int slow_lookup(const char *host, const char *service, blitz_addr *out, size_t room)
{
    uint32_t n = bz_fetch_add_relaxed(&inside, 1) + 1; /* relaxed: counted, as are these */
    uint32_t max = bz_load_relaxed(&inside_max);       /* relaxed */
    while (n > max && !bz_cas_weak_rlx_rlx(&inside_max, &max, n)) /* relaxed */
        continue;
    bz_fetch_add_relaxed(&calls, 1); /* relaxed */
    (void)service;
    (void)room;
    (void)!blitz_event_wait(&gate, BLITZ_FOREVER);
    bz_fetch_sub_relaxed(&inside, 1); /* relaxed */
    *out = blitz_addr_loopback_v4(7);
    return strcmp(host, "missing") == 0 ? -ENOENT : 1;
}

static int looks_up(void *arg)
{
    blitz_addr at[2];
    return blitz_resolve("some-host", "7", at, 2, (blitz_deadline)(uintptr_t)arg);
}

static int crowd(void *arg)
{
    enum { MANY = 20 };
    blitz_task *task[MANY];
    blitz_addr at[2];
    (void)arg;
    CHECK_EQ(blitz_resolve("x", "7", at, 2, blitz_after(5 * BLITZ_MS)), -ETIMEDOUT);
    for (int i = 0; i < 4; i++)
        task[i] = t_spawn(looks_up, (void *)(uintptr_t)BLITZ_FOREVER);
    while (bz_load_relaxed(&inside) < 4) /* relaxed: counted */
        blitz_yield();
    /* all four permits are taken, and no caller waits for their calls */
    for (int i = 0; i < 4; i++) {
        blitz_task_cancel(task[i]);
        CHECK_EQ(t_join(task[i]), -ECANCELED);
    }
    for (int i = 0; i < MANY; i++) {
        task[i] = t_spawn(looks_up, (void *)(uintptr_t)BLITZ_FOREVER);
        t_until_waits(task[i]);
    }
    for (int i = 0; i < MANY / 2; i++) { /* in the call, and waiting for it */
        blitz_task_cancel(task[2 * i]);
        CHECK_EQ(t_join(task[2 * i]), -ECANCELED);
    }
    blitz_event_set(&gate);
    for (int i = 0; i < MANY / 2; i++)
        CHECK_EQ(t_join(task[2 * i + 1]), 1);
    CHECK_LE(bz_load_relaxed(&inside_max), 4u); /* relaxed: counted */
    CHECK_EQ(blitz_resolve("missing", "7", at, 2, soon()), -ENOENT);
    for (int i = 0; i < 8; i++) /* no permit was lost */
        CHECK_EQ(blitz_resolve("x", "7", at, 2, soon()), 1);
    return 0;
}

/* At the deadline the caller leaves in any case; a thousand lookups without an answer take four
 * threads, not a thousand. */
TEST(resolve, a_cancelled_lookup_loses_no_permit_and_few_run_at_once)
{
    bz_lookup_instead = slow_lookup;
    CHECK_EQ(blitz_run(crowd, NULL, &(blitz_runtime_opts){.procs = 2}), 0);
}

static int fails(const char *call)
{
    return strcmp(call, "getaddrinfo") == 0 ? EMFILE : 0;
}

static int failing(void *arg)
{
    blitz_addr at[2];
    blitz_tcp *t;
    (void)arg;
    blitz_resolver *r;
    CHECK_EQ(blitz_resolver_new(&(blitz_resolver_opts){.by = BLITZ_RESOLVE_SYSTEM}, &r), 0);
    blitz_connect_opts opts = {.resolver = r};
    CHECK_EQ(blitz_resolver_look_up(r, "some-host", "7", at, 2, soon()), -EMFILE);
    CHECK_EQ(blitz_tcp_connect_host_with("some-host", "7", &opts, &t, soon()), -EMFILE);
    CHECK_EQ(blitz_resolver_look_up(r, "localhost", "gopher", at, 2, soon()),
             -EMFILE); /* the service */
    blitz_resolver_unref(r);
    return 0;
}

TEST(resolve, a_failing_system_is_an_error)
{
    bz_io_fault = fails;
    CHECK_EQ(blitz_run(failing, NULL, NULL), 0);
}
