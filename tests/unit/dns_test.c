/* Our own resolver, against a name server on the loopback that is written with blitz. */
#include "harness.h"

#include "blitz/combine.h"
#include "io/attempt.h"
#include "io/lookup.h"
#include "support/dns.h"
#include "support/keepers.h"

static blitz_deadline soon(void)
{
    return blitz_after(50 * BLITZ_S);
}

/* Look a name up and compare the addresses, in any order, "" for none. */
static void finds(blitz_resolver *r, const char *name, int want, const char *first)
{
    blitz_addr at[8], is;
    t_watch("%s", name);
    CHECK_EQ(blitz_resolver_look_up(r, name, "80", at, 8, soon()), want);
    if (want <= 0)
        return;
    CHECK_EQ(blitz_addr_parse_ip(first, 80, &is), 0);
    bool is_there = false;
    for (int i = 0; i < want; i++)
        is_there = is_there || blitz_addr_is_equal(&at[i], &is);
    CHECK(is_there);
}

/* ---- plain answers ---- */

static const struct t_rule plain_rules[] = {
    {.name = "both.test", .v4 = "192.0.2.1", .v6 = "2001:db8::1", .ttl_s = 600},
    {.name = "four.test", .v4 = "192.0.2.1 192.0.2.2 192.0.2.3", .ttl_s = 600},
    {.name = "six.test", .v6 = "2001:db8::1 2001:db8::2", .ttl_s = 600},
    {.name = "empty.test", .ttl_s = 600},
    {.name = "chain.test", .v4 = "192.0.2.9", .alias = "end.test", .aliases = 8, .ttl_s = 600},
    {.name = "long.test", .v4 = "192.0.2.9", .alias = "end.test", .aliases = 20, .ttl_s = 600},
};

static int plain(void *arg)
{
    struct t_dns s = {.rules = plain_rules, .count = BZ_ARRAY_LEN(plain_rules)};
    (void)arg;
    t_dns_begin(&s);
    blitz_resolver *r = t_resolver(&s, "", "", NULL);
    finds(r, "both.test", 2, "192.0.2.1");
    finds(r, "both.test", 2, "2001:db8::1");
    finds(r, "BOTH.Test.", 2, "2001:db8::1");
    finds(r, "four.test", 3, "192.0.2.2");
    finds(r, "six.test", 2, "2001:db8::2");
    finds(r, "empty.test", -ENOENT, "");
    finds(r, "missing.test", -ENOENT, "");
    finds(r, "chain.test", 1, "192.0.2.9");
    finds(r, "long.test", -EIO, ""); /* more aliases than are followed */
    finds(r, "x.onion", -ENOENT, "");
    blitz_resolver_unref(r);
    t_dns_end(&s);
    return 0;
}

TEST(dns, names_are_looked_up_with_servers)
{
    t_on_keepers(plain, NULL);
}

/* ---- answers that are late, lost, doubled or forged ---- */

static const struct t_rule trick_rules[] = {
    {.name = "id.test", .v4 = "192.0.2.1", .v6 = "2001:db8::1", .trick = T_WRONG_ID},
    {.name = "name.test", .v4 = "192.0.2.1", .v6 = "2001:db8::1", .trick = T_WRONG_NAME},
    {.name = "source.test", .v4 = "192.0.2.1", .v6 = "2001:db8::1", .trick = T_WRONG_SOURCE},
    {.name = "twice.test", .v4 = "192.0.2.1", .v6 = "2001:db8::1", .trick = T_TWICE},
    {.name = "edns.test", .v4 = "192.0.2.1", .v6 = "2001:db8::1", .trick = T_NO_EDNS},
    {.name = "loop.test", .v4 = "192.0.2.1", .trick = T_LOOP},
    {.name = "fails.test", .v4 = "192.0.2.1", .trick = T_FAILS},
};

static int forged(void *arg)
{
    struct t_dns s = {.rules = trick_rules, .count = BZ_ARRAY_LEN(trick_rules)};
    blitz_addr at[8], is;
    (void)arg;
    t_dns_begin(&s);
    blitz_resolver *r = t_resolver(&s, "", "", NULL);
    for (size_t i = 0; i < 5; i++) {
        finds(r, trick_rules[i].name, 2, "192.0.2.1");
        finds(r, trick_rules[i].name, 2, "2001:db8::1");
        CHECK_EQ(blitz_addr_parse_ip("198.51.100.66", 80, &is), 0);
        int n = blitz_resolver_look_up(r, trick_rules[i].name, "80", at, 8, soon());
        for (int k = 0; k < n; k++)
            CHECK(!blitz_addr_is_equal(&at[k], &is));
    }
    finds(r, "loop.test", -EIO, "");
    finds(r, "fails.test", -EIO, "");
    blitz_resolver_unref(r);
    t_dns_end(&s);
    return 0;
}

/* A datagram that does not answer the question must not end the lookup, from any sender. */
TEST(dns, forged_and_doubled_answers_have_no_effect)
{
    t_on_keepers(forged, NULL);
}

static const struct t_rule cut_rules[] = {
    {.name = "cut.test", .v4 = "192.0.2.1", .v6 = "2001:db8::1", .trick = T_CUT},
    {.name = "closes.test", .v4 = "192.0.2.1", .trick = T_CLOSES},
    {.name = "plain.test", .v4 = "192.0.2.1", .ttl_s = 5},
};

static int cut(void *arg)
{
    struct t_dns s = {.rules = cut_rules, .count = BZ_ARRAY_LEN(cut_rules)};
    (void)arg;
    t_dns_begin(&s);
    blitz_resolver *r = t_resolver(&s, "", "", NULL);
    finds(r, "cut.test", 2, "2001:db8::1");
    CHECK_EQ(bz_load_relaxed(&s.by_tcp), 2u); /* relaxed: counted */
    finds(r, "closes.test", -EAGAIN, "");
    blitz_resolver_unref(r);
    r = t_resolver(&s, "options use-vc\n", "", NULL);
    bz_store_relaxed(&s.by_tcp, 0); /* relaxed: counted */
    finds(r, "plain.test", 1, "192.0.2.1");
    CHECK_EQ(bz_load_relaxed(&s.by_tcp), 2u); /* relaxed: counted */
    blitz_resolver_unref(r);
    t_dns_end(&s);
    return 0;
}

TEST(dns, a_cut_answer_is_asked_for_again_over_tcp)
{
    t_on_keepers(cut, NULL);
}

/* ---- several servers ---- */

static int several(void *arg)
{
    static const struct t_rule silent[] = {
        {.name = "a.test", .v4 = "192.0.2.1", .trick = T_SILENT}};
    static const struct t_rule fails[] = {{.name = "a.test", .v4 = "192.0.2.1", .trick = T_FAILS}};
    static const struct t_rule good[] = {{.name = "a.test", .v4 = "192.0.2.1", .ttl_s = 0}};
    struct t_dns s[3] = {
        {.rules = silent, .count = 1}, {.rules = fails, .count = 1}, {.rules = good, .count = 1}};
    char text[300], path[80];
    (void)arg;
    for (int i = 0; i < 3; i++)
        t_dns_begin(&s[i]);
    blitz_resolver *r = t_resolver(&s[2], "", "", NULL);
    snprintf(text, sizeof text,
             "nameserver [127.0.0.1]:%u\nnameserver [127.0.0.1]:%u\nnameserver [127.0.0.1]:%u\n"
             "options timeout:1 attempts:1\n",
             s[1].at.port, s[0].at.port, s[2].at.port);
    t_write(t_path(&s[2], "resolv.conf", path), text);
    finds(r, "a.test", 1, "192.0.2.1");
    for (int i = 0; i < 3; i++)
        CHECK_GE(t_asked(&s[i]), 1u); /* one failed, one was silent, one answered */
    blitz_resolver_unref(r);
    for (int i = 0; i < 3; i++)
        t_dns_end(&s[i]);
    return 0;
}

TEST(dns, the_next_server_is_asked_after_a_failure_or_a_timeout)
{
    t_on_keepers(several, NULL);
}

static int lost(void *arg)
{
    static const struct t_rule rules[] = {
        {.name = "a.test", .v4 = "192.0.2.1", .v6 = "2001:db8::1", .trick = T_SILENT, .times = 3}};
    struct t_dns s = {.rules = rules, .count = 1};
    (void)arg;
    t_dns_begin(&s);
    blitz_resolver *r = t_resolver(&s, "options timeout:1 attempts:5\n", "", NULL);
    finds(r, "a.test", 2, "192.0.2.1");
    CHECK_EQ(t_asked(&s), 5u); /* two lost; one lost, one answered; one answered */
    blitz_resolver_unref(r);
    t_dns_end(&s);
    return 0;
}

TEST(dns, a_lost_question_is_asked_again)
{
    CHECK_EQ(blitz_run(lost, NULL, NULL), 0);
}

/* ---- the search list ---- */

static const struct t_rule search_rules[] = {
    {.name = "db.one.test", .v4 = "192.0.2.1", .ttl_s = 600},
    {.name = "web.two.test", .v4 = "192.0.2.2", .ttl_s = 600},
    {.name = "a.b", .v4 = "192.0.2.3", .ttl_s = 600},
    {.name = "a.b.one.test", .v4 = "192.0.2.4", .ttl_s = 600},
    {.name = "lone", .v4 = "192.0.2.5", .ttl_s = 600},
};

static int searches(void *arg)
{
    struct t_dns s = {.rules = search_rules, .count = BZ_ARRAY_LEN(search_rules)};
    (void)arg;
    t_dns_begin(&s);
    blitz_resolver *r = t_resolver(&s, "search one.test two.test\n", "", NULL);
    finds(r, "db", 1, "192.0.2.1");
    finds(r, "web", 1, "192.0.2.2");
    finds(r, "lone", 1, "192.0.2.5"); /* last, as it is */
    finds(r, "db.", -ENOENT, "");
    finds(r, "a.b", 1, "192.0.2.3"); /* one dot: first as it is */
    blitz_resolver_unref(r);
    r = t_resolver(&s, "search one.test two.test\noptions ndots:2\n", "", NULL);
    finds(r, "a.b", 1, "192.0.2.4");
    finds(r, "a.b.", 1, "192.0.2.3");
    blitz_resolver_unref(r);
    t_dns_end(&s);
    return 0;
}

TEST(dns, the_search_list_and_ndots_decide_which_names_are_asked)
{
    CHECK_EQ(blitz_run(searches, NULL, NULL), 0);
}

/* ---- hosts and changed files ---- */

static int hosts(void *arg)
{
    struct t_dns s = {.rules = plain_rules, .count = BZ_ARRAY_LEN(plain_rules)};
    char path[80];
    (void)arg;
    t_dns_begin(&s);
    blitz_resolver *r = t_resolver(&s, "", "192.0.2.77 four.test Here\n::7 here # not.this\n",
                                   &(blitz_resolver_opts){.check_ns = 1});
    finds(r, "four.test", 1, "192.0.2.77");
    finds(r, "HERE", 2, "::7");
    CHECK_EQ(t_asked(&s), 0u);
    finds(r, "both.test", 2, "192.0.2.1");
    uint32_t asked = t_asked(&s);
    t_write(t_path(&s, "hosts", path), "192.0.2.78 four.test\n");
    finds(r, "four.test", 1, "192.0.2.78");
    finds(r, "here", -ENOENT, "");
    finds(r, "both.test", 2, "192.0.2.1"); /* the cache was cleared */
    CHECK_GT(t_asked(&s), asked);
    CHECK_EQ(remove(t_path(&s, "hosts", path)), 0);
    finds(r, "four.test", 3, "192.0.2.2");
    t_write(t_path(&s, "nsswitch.conf", path), "hosts: dns files\n");
    t_write(t_path(&s, "hosts", path), "192.0.2.78 four.test only\n");
    finds(r, "four.test", 3, "192.0.2.2");
    finds(r, "only", 1, "192.0.2.78");
    blitz_resolver_unref(r);
    t_dns_end(&s);
    return 0;
}

TEST(dns, changed_files_are_read_again)
{
    t_on_keepers(hosts, NULL);
}

/* ---- the cache ---- */

static int caches(void *arg)
{
    struct t_dns s = {.rules = plain_rules, .count = BZ_ARRAY_LEN(plain_rules)};
    (void)arg;
    t_dns_begin(&s);
    blitz_resolver *r = t_resolver(&s, "", "", NULL);
    for (int i = 0; i < 5; i++) {
        finds(r, "both.test", 2, "192.0.2.1");
        finds(r, "missing.test", -ENOENT, "");
        finds(r, "empty.test", -ENOENT, "");
    }
    CHECK_EQ(t_asked(&s), 6u);
    blitz_resolver_clear(r);
    finds(r, "both.test", 2, "192.0.2.1");
    CHECK_EQ(t_asked(&s), 8u);
    blitz_resolver_unref(r);
    r = t_resolver(&s, "", "", &(blitz_resolver_opts){.is_uncached = true});
    for (int i = 0; i < 3; i++)
        finds(r, "both.test", 2, "192.0.2.1");
    CHECK_EQ(t_asked(&s), 14u);
    blitz_resolver_unref(r);
    t_dns_end(&s);
    return 0;
}

TEST(dns, answers_are_kept_and_negative_ones_too)
{
    CHECK_EQ(blitz_run(caches, NULL, NULL), 0);
}

/* ---- many at once ---- */

static blitz_resolver *shared;

static int look_up_both(void *arg)
{
    blitz_addr at[4];
    (void)arg;
    return blitz_resolver_look_up(shared, "both.test", NULL, at, 4, soon());
}

static int crowd(void *arg)
{
    struct t_dns s = {.rules = plain_rules, .count = BZ_ARRAY_LEN(plain_rules)};
    blitz_task *task[50];
    (void)arg;
    t_dns_begin(&s);
    shared = t_resolver(&s, "", "", NULL);
    for (size_t i = 0; i < BZ_ARRAY_LEN(task); i++)
        task[i] = t_spawn(look_up_both, NULL);
    for (size_t i = 0; i < BZ_ARRAY_LEN(task); i++)
        CHECK_EQ(t_join(task[i]), 2);
    CHECK_EQ(t_asked(&s), 2u);
    blitz_resolver_unref(shared);
    t_dns_end(&s);
    return 0;
}

TEST(dns, lookups_of_one_name_share_their_questions)
{
    t_on_keepers(crowd, NULL);
}

/* ---- cancels and deadlines ---- */

static int look_up_silent(void *arg)
{
    blitz_addr at[4];
    (void)arg;
    return blitz_resolver_look_up(shared, "s.test", NULL, at, 4, BLITZ_FOREVER);
}

static int leaves(void *arg)
{
    static const struct t_rule rules[] = {{.name = "s.test", .v4 = "192.0.2.1", .trick = T_SILENT}};
    struct t_dns s = {.rules = rules, .count = 1};
    blitz_addr at[4];
    blitz_task *task[8];
    (void)arg;
    t_dns_begin(&s);
    unsigned open = t_open_sockets();
    shared = t_resolver(&s, "options timeout:30 attempts:5\n", "", NULL);
    CHECK_EQ(blitz_resolver_look_up(shared, "s.test", NULL, at, 4, 0), -ETIMEDOUT);
    CHECK_EQ(blitz_resolver_look_up(shared, "s.test", NULL, at, 4, blitz_after(BLITZ_MS)),
             -ETIMEDOUT);
    for (size_t i = 0; i < BZ_ARRAY_LEN(task); i++) {
        task[i] = t_spawn(look_up_silent, NULL);
        t_until_waits(task[i]);
    }
    while (t_asked(&s) == 0)
        blitz_yield();
    for (size_t i = 0; i < BZ_ARRAY_LEN(task); i++) {
        blitz_task_cancel(task[i]);
        CHECK_EQ(t_join(task[i]), -ECANCELED);
    }
    while (t_open_sockets() >
           open) /* the flight closes its own; without its end this takes minutes */
        blitz_yield();
    blitz_resolver_unref(shared);
    t_dns_end(&s);
    return 0;
}

/* The last waiter that leaves ends the questions. */
TEST(dns, a_lookup_ends_when_its_last_caller_leaves)
{
    t_on_keepers(leaves, NULL);
}

static int races(void *arg)
{
    struct t_dns s = {.rules = plain_rules, .count = BZ_ARRAY_LEN(plain_rules)};
    blitz_resolve_future f[2];
    blitz_addr at[2][4];
    (void)arg;
    t_dns_begin(&s);
    blitz_resolver *r = t_resolver(&s, "", "", &(blitz_resolver_opts){.is_uncached = true});
    for (int i = 0; i < 30; i++) {
        blitz_resolver_look_up_future_init(&f[0], r, "both.test", "https", at[0], 4);
        blitz_resolver_look_up_future_init(&f[1], r, i % 2 ? "both.test" : "four.test", NULL, at[1],
                                           4);
        int first = BLITZ_FIRST_OF(soon(), &f[0].future, &f[1].future);
        CHECK(first == 0 || first == 1);
        CHECK_GT(f[first].result, 1);
        CHECK_EQ(blitz_addr_port(&at[first][0]), first == 0 ? 443 : 0);
    }
    blitz_resolver_unref(r);
    t_dns_end(&s);
    return 0;
}

TEST(dns, lookups_can_be_raced)
{
    t_on_keepers(races, NULL);
}

/* ---- settings that are the system's ---- */

static int system_calls;

static int by_system(const char *host, const char *service, blitz_addr *out, size_t room)
{
    (void)host;
    (void)service;
    (void)room;
    system_calls++;
    *out = blitz_addr_loopback_v4(80);
    return 1;
}

static int foreign(void *arg)
{
    static const char *const sources[] = {"hosts: files ldap dns\n",
                                          "hosts: files [!UNAVAIL=return] dns\n",
                                          "hosts: resolve files dns\n"};
    struct t_dns s = {.rules = plain_rules, .count = BZ_ARRAY_LEN(plain_rules)};
    char path[80];
    int n = 0;
    (void)arg;
    t_dns_begin(&s);
    blitz_resolver *r = t_resolver(&s, "", "", &(blitz_resolver_opts){.check_ns = 1});
    for (size_t i = 0; i < BZ_ARRAY_LEN(sources); i++) {
        t_write(t_path(&s, "nsswitch.conf", path), sources[i]);
        finds(r, "both.test", 1, "127.0.0.1");
        CHECK_EQ(system_calls, ++n);
    }
    t_write(t_path(&s, "nsswitch.conf", path),
            "hosts: files mdns4_minimal [NOTFOUND=return] dns myhostname\n");
    finds(r, "both.test", 2, "192.0.2.1");
    finds(r, "printer.local", 1, "127.0.0.1");
    CHECK_EQ(system_calls, ++n);
    t_write_conf(&s, "options no-such-option\n", 1);
    finds(r, "both.test", 1, "127.0.0.1");
    t_write_conf(&s, "sortlist 192.0.2.0\n", 1);
    finds(r, "both.test", 1, "127.0.0.1");
    t_write_conf(&s, "", 1);
    finds(r, "both.test", 2, "192.0.2.1");
    finds(r, "not a host name", 1, "127.0.0.1");
    blitz_addr at[2];
    CHECK_EQ(blitz_resolver_look_up(r, "both.test", "gopher", at, 2, soon()), 1);
    CHECK_EQ(system_calls, n + 4);
    blitz_resolver_unref(r);
    r = t_resolver(&s, "", "", &(blitz_resolver_opts){.by = BLITZ_RESOLVE_SYSTEM});
    finds(r, "both.test", 1, "127.0.0.1");
    CHECK_EQ(system_calls, n + 5);
    blitz_resolver_unref(r);
    r = t_resolver(&s, "options no-such-option\n", "",
                   &(blitz_resolver_opts){.by = BLITZ_RESOLVE_OWN});
    finds(r, "both.test", 2, "192.0.2.1");
    finds(r, "not a host name", -ENOENT, "");
    blitz_resolver_unref(r);
    t_dns_end(&s);
    return 0;
}

/* An administrator who configures more than files and servers means it. */
TEST(dns, settings_that_we_do_not_know_are_left_to_the_system)
{
    bz_lookup_instead = by_system;
    CHECK_EQ(blitz_run(foreign, NULL, NULL), 0);
}

TEST(dns, a_plain_thread_asks_the_system)
{
    blitz_resolver *r;
    blitz_addr at[2];
    bz_lookup_instead = by_system;
    CHECK_EQ(blitz_resolver_new(NULL, &r), 0);
    CHECK_EQ(blitz_resolver_look_up(r, "both.test", NULL, at, 2, soon()), 1);
    blitz_resolver_unref(r);
    CHECK_EQ(blitz_resolver_new(&(blitz_resolver_opts){.by = BLITZ_RESOLVE_OWN}, &r), 0);
    CHECK_EQ(blitz_resolver_look_up(r, "both.test", NULL, at, 2, soon()), -EOPNOTSUPP);
    blitz_resolver_unref(r);
    CHECK_EQ(system_calls, 1);
}

/* ---- failing calls ---- */

struct denied {
    const char *call;
    int number;
};

static const struct denied sockets = {"socket", EMFILE}, connects = {"connect", ENETUNREACH},
                           reads = {"read", EIO};
static bz_atomic(const struct denied *) denied; /* read by all threads */

static int deny(const char *call)
{
    const struct denied *d = bz_load_acquire(&denied); /* acquire: as a test should */
    return d != NULL && strcmp(call, d->call) == 0 ? d->number : 0;
}

static void deny_from_now_on(const struct denied *d)
{
    bz_store_release(&denied, d); /* release: see deny */
}

static int failing(void *arg)
{
    struct t_dns s = {.rules = plain_rules, .count = BZ_ARRAY_LEN(plain_rules)};
    (void)arg;
    t_dns_begin(&s);
    blitz_resolver *r = t_resolver(&s, "options timeout:1 attempts:1\n", "",
                                   &(blitz_resolver_opts){.by = BLITZ_RESOLVE_OWN, .check_ns = 1});
    finds(r, "both.test", 2, "192.0.2.1");
    blitz_resolver_clear(r);
    deny_from_now_on(&sockets);
    finds(r, "both.test", -EMFILE, "");
    deny_from_now_on(&connects);
    finds(r, "both.test", -EAGAIN, "");
    deny_from_now_on(&reads); /* of the files, which are read again */
    t_write_conf(&s, "", 1);
    finds(r, "both.test", -EAGAIN,
          ""); /* no server is known: the one of this host does not answer */
    deny_from_now_on(NULL);
    t_write_conf(&s, "# good\n", 1);
    finds(r, "both.test", 2, "192.0.2.1");
    blitz_resolver_unref(r);
    t_dns_end(&s);
    return 0;
}

TEST(dns, a_failing_system_is_an_error)
{
    bz_io_fault = deny; /* before other threads run */
    CHECK_EQ(blitz_run(failing, NULL, NULL), 0);
}
