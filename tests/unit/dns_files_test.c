/* resolv.conf, nsswitch.conf and hosts, as the C library reads them. */
#include "harness.h"

#include <errno.h>
#include <string.h>

#include "net/dns_cache.h"
#include "net/dns_files.h"
#include "net/dns_order.h"

static struct bz_dns_conf conf_of(const char *text, const char *host)
{
    struct bz_dns_conf c;
    bz_dns_conf_read(&c, text, strlen(text), host);
    return c;
}

static bool is_server(const struct bz_dns_conf *c, unsigned i, const char *ip, uint16_t port)
{
    blitz_addr a;
    return i < c->server_count && blitz_addr_parse_ip(ip, port, &a) == 0 &&
           blitz_addr_is_equal(&a, &c->server[i]);
}

/* ---- resolv.conf ---- */

TEST(dns_files, an_empty_resolv_conf_has_the_defaults)
{
    struct bz_dns_conf c = conf_of("", "box.home.test");
    CHECK_EQ(c.server_count, 1u);
    CHECK(is_server(&c, 0, "127.0.0.1", 53));
    CHECK_EQ(c.search_count, 1u);
    CHECK_STR_EQ(c.search[0], "home.test");
    CHECK_EQ(c.ndots, 1u);
    CHECK_EQ(c.timeout_s, 5u);
    CHECK_EQ(c.attempts, 2u);
    CHECK(!c.is_foreign);
    CHECK_EQ(conf_of("", "box").search_count, 0u);
}

TEST(dns_files, a_resolv_conf_is_read)
{
    struct bz_dns_conf c = conf_of("# comment\n"
                                   "; another\n"
                                   "nameserver 192.0.2.1 # behind\n"
                                   "nameserver\t2001:db8::1\r\n"
                                   "nameserver [192.0.2.3]:5353\n"
                                   "nameserver 192.0.2.4\n"
                                   "nameserver nonsense\n"
                                   "domain first.test\n"
                                   "search Second.TEST. third.test .\n"
                                   "options ndots:3 timeout:2 attempts:4 rotate edns0 trust-ad\n"
                                   "options use-vc single-request no-aaaa\n"
                                   "nameserver 192.0.2.5",
                                   "box.home.test");
    CHECK_EQ(c.server_count, 3u);
    CHECK(is_server(&c, 0, "192.0.2.1", 53));
    CHECK(is_server(&c, 1, "2001:db8::1", 53));
    CHECK(is_server(&c, 2, "192.0.2.3", 5353));
    CHECK_EQ(c.search_count, 2u);
    CHECK_STR_EQ(c.search[0], "second.test");
    CHECK_STR_EQ(c.search[1], "third.test");
    CHECK_EQ(c.ndots, 3u);
    CHECK_EQ(c.timeout_s, 2u);
    CHECK_EQ(c.attempts, 4u);
    CHECK(c.is_rotated && c.is_tcp && c.is_single && c.is_without_aaaa);
    CHECK(!c.is_foreign);
}

TEST(dns_files, numbers_in_resolv_conf_are_limited_as_in_the_c_library)
{
    struct bz_dns_conf c = conf_of("options ndots:99999999999 timeout:400 attempts:9\n", "");
    CHECK_EQ(c.ndots, 15u);
    CHECK_EQ(c.timeout_s, 30u);
    CHECK_EQ(c.attempts, 5u);
    c = conf_of("options timeout:0 attempts:0 ndots:0\n", "");
    CHECK_EQ(c.timeout_s, 1u);
    CHECK_EQ(c.attempts, 1u);
    CHECK_EQ(c.ndots, 0u);
}

TEST(dns_files, what_we_do_not_know_makes_a_resolv_conf_foreign)
{
    static const char *const texts[] = {"options inet6\n",           "options ndots:x\n",
                                        "options ndots:\n",          "sortlist 192.0.2.0\n",
                                        "lookup file bind\n",        "family inet6\n",
                                        "nameserver fe80::1%eth0\n", "search a..b\n"};
    for (size_t i = 0; i < BZ_ARRAY_LEN(texts); i++) {
        t_watch("%s", texts[i]);
        CHECK(conf_of(texts[i], "").is_foreign);
    }
    static const char *const broken[] = {"nameserver [::1\n",        "nameserver [::1]\n",
                                         "nameserver [::1]:\n",      "nameserver [::1]:0\n",
                                         "nameserver [::1]:65536\n", "nameserver [::1]:5x\n",
                                         "nameserver []:5\n",        "nameserver\n"};
    for (size_t i = 0; i < BZ_ARRAY_LEN(broken); i++) {
        struct bz_dns_conf c = conf_of(broken[i], "");
        t_watch("%s", broken[i]);
        CHECK(is_server(&c, 0, "127.0.0.1", 53));
    }
}

/* ---- nsswitch.conf ---- */

static struct bz_dns_sources sources_of(const char *text)
{
    struct bz_dns_sources s;
    bz_dns_sources_read(&s, text, strlen(text));
    return s;
}

TEST(dns_files, the_sources_are_those_of_nsswitch_conf)
{
    struct bz_dns_sources s = sources_of("");
    CHECK(s.count == 2 && s.at[0] == BZ_DNS_FILES && s.at[1] == BZ_DNS_SERVERS && !s.is_foreign);
    s = sources_of("passwd: files ldap\nhosts:\tdns files # more\nnetworks: nis\n");
    CHECK(s.count == 2 && s.at[0] == BZ_DNS_SERVERS && s.at[1] == BZ_DNS_FILES && !s.is_foreign);
    s = sources_of("hosts:files dns dns files\n");
    CHECK(s.count == 2 && !s.is_foreign);
    s = sources_of("hosts: files mdns4_minimal [NOTFOUND=return] dns myhostname\n");
    CHECK(s.count == 2 && s.has_mdns && s.has_self && !s.is_foreign);
    CHECK(sources_of("hosts: files ldap\n").is_foreign);
    CHECK(sources_of("hosts: files [NOTFOUND=return] dns\n").is_foreign);
    CHECK(sources_of("hosts:\n").is_foreign);
}

/* ---- hosts ---- */

static struct bz_dns_hosts *hosts_of(const char *text)
{
    struct bz_dns_hosts *h;
    CHECK_EQ(bz_dns_hosts_new(text, strlen(text), &bz_allocator_libc, &h), 0);
    return h;
}

TEST(dns_files, a_hosts_file_has_names_in_its_order)
{
    struct bz_dns_hosts *h = hosts_of("127.0.0.1 localhost\n"
                                      "192.0.2.1\tWWW.test. www alias # comment www2\n"
                                      "bad line www\n"
                                      "192.0.2.300 www\n"
                                      "2001:db8::1 www\n"
                                      "192.0.2.1 www\n"
                                      "fe80::1%3 link");
    blitz_addr at[4];
    CHECK_EQ(bz_dns_hosts_find(h, "www", at, 4), 2u);
    CHECK(blitz_addr_is_v4(&at[0]) && blitz_addr_is_v6(&at[1]));
    CHECK_EQ(bz_dns_hosts_find(h, "www", at, 1), 1u);
    CHECK_EQ(bz_dns_hosts_find(h, "www.test", at, 4), 1u);
    CHECK_EQ(bz_dns_hosts_find(h, "www2", at, 4), 0u);
    CHECK_EQ(bz_dns_hosts_find(h, "line", at, 4), 0u);
    CHECK_EQ(bz_dns_hosts_find(h, "link", at, 4), 1u);
    CHECK_EQ(at[0].scope, 3u);
    bz_dns_hosts_free(h);
    h = hosts_of("");
    CHECK_EQ(bz_dns_hosts_find(h, "www", at, 4), 0u);
    bz_dns_hosts_free(h);
}

TEST(dns_files, a_large_hosts_file_is_searched_by_hash)
{
    enum { LINES = 20000 };
    char *text = malloc(LINES * 40 + 1), name[40];
    size_t n = 0;
    blitz_addr at[2];
    CHECK_NOT_NULL(text);
    for (unsigned i = 0; i < LINES; i++)
        n += (size_t)sprintf(text + n, "10.0.%u.%u host%u same\n", i / 256, i % 256, i);
    struct bz_dns_hosts *h = hosts_of(text);
    for (unsigned i = 0; i < LINES; i += 7) {
        snprintf(name, sizeof name, "host%u", i);
        CHECK_EQ(bz_dns_hosts_find(h, name, at, 2), 1u);
        CHECK_EQ(at[0].is.ip[3], i % 256);
    }
    CHECK_EQ(bz_dns_hosts_find(h, "same", at, 2), 2u);
    bz_dns_hosts_free(h);
    free(text);
}

/* ---- the cache ---- */

#define S UINT64_C(1000000000)

static void keep(struct bz_dns_cache *c, const char *name, uint32_t ttl_s, uint64_t now)
{
    struct bz_dns_answer a = {.ttl_s = ttl_s, .count = 1, .ip = {{192, 0, 2, 1}}};
    struct bz_dns_entry *e =
        bz_dns_entry_new(&bz_allocator_libc, name, BZ_DNS_A, BZ_DNS_FOUND, &a, now);
    if (e != NULL)
        bz_dns_entries_free(&bz_allocator_libc, bz_dns_cache_put(c, e));
    bz_dns_cache_check(c);
}

static bool has(struct bz_dns_cache *c, const char *name, uint64_t now)
{
    struct bz_dns_answer a;
    enum bz_dns_verdict v;
    return bz_dns_cache_find(c, name, BZ_DNS_A, now, &v, &a);
}

TEST(dns_files, an_answer_is_kept_for_its_time_and_no_longer)
{
    struct bz_dns_cache c;
    CHECK_EQ(bz_dns_cache_init(&c, 4, &bz_allocator_libc), 0);
    keep(&c, "a", 10, 5 * S);
    CHECK(has(&c, "a", 5 * S));
    CHECK(has(&c, "a", 15 * S));
    CHECK(!has(&c, "a", 15 * S + 1));
    CHECK(!has(&c, "b", 5 * S));
    keep(&c, "a", 10, 16 * S); /* in its stead */
    CHECK_EQ(c.count, 1u);
    CHECK(has(&c, "a", 20 * S));
    keep(&c, "zero", 0, 16 * S);
    CHECK(!has(&c, "zero", 16 * S));
    keep(&c, "week", 7 * 86400, 0);
    CHECK(has(&c, "week", 86400 * S));
    CHECK(!has(&c, "week", 86401 * S));
    bz_dns_cache_fini(&c);
}

TEST(dns_files, a_full_cache_drops_the_answer_that_was_not_used_for_the_longest_time)
{
    struct bz_dns_cache c;
    char name[16];
    CHECK_EQ(bz_dns_cache_init(&c, 3, &bz_allocator_libc), 0);
    keep(&c, "a", 10, 0);
    keep(&c, "b", 10, 0);
    keep(&c, "c", 10, 0);
    CHECK(has(&c, "a", 0));
    keep(&c, "d", 10, 0);
    CHECK(has(&c, "a", 0) && !has(&c, "b", 0) && has(&c, "c", 0) && has(&c, "d", 0));
    for (int i = 0; i < 1000; i++) {
        snprintf(name, sizeof name, "n%d", i);
        keep(&c, name, 10, 0);
        CHECK_LE(c.count, 3u);
    }
    bz_dns_cache_fini(&c);
    CHECK_EQ(bz_dns_cache_init(&c, 0, &bz_allocator_libc), 0);
    keep(&c, "a", 10, 0);
    CHECK(!has(&c, "a", 0));
    bz_dns_cache_fini(&c);
}

/* ---- the order of addresses ---- */

static blitz_addr ip(const char *text)
{
    blitz_addr a = {.kind = BLITZ_ADDR_NONE};
    if (text != NULL)
        CHECK_EQ(blitz_addr_parse_ip(text, 0, &a), 0);
    return a;
}

/* The examples of RFC 6724, section 10.2, and rule 1: {better, its source, worse, its source}. */
TEST(dns_files, addresses_are_sorted_as_rfc_6724_says)
{
    static const char *const pairs[][4] = {
        {"198.51.100.121", "198.51.100.117", "2001:db8:1::1", "fe80::1%1"},
        {"2001:db8:1::1", "2001:db8:1::2", "198.51.100.121", "169.254.13.78"},
        {"2001:db8:1::1", "2001:db8:1::2", "192.0.2.3", "192.0.2.4"},
        {"fe80::1%1", "fe80::2%1", "2001:db8:1::1", "2001:db8:1::2"},
        {"2002:c633:6401::1", "2002:c633:6401::2", "2001:db8:1::1", "2002:c633:6401::2"},
        {"2001:db8:1::1", "2001:db8:1::2", "2002:c633:6401::1", "2002:c633:6401::2"},
        {"192.0.2.1", "192.0.2.9", "2001:db8::1", NULL},
        {"2001:db8:1::1", "2001:db8:1::2", "2001:db8:ffff::1", "2001:db8:1::2"},
        {"::1", "::1", "127.0.0.1", "127.0.0.1"},
    };
    for (size_t i = 0; i < BZ_ARRAY_LEN(pairs); i++) {
        for (unsigned flip = 0; flip < 2; flip++) {
            blitz_addr at[2], from[2], best = ip(pairs[i][0]);
            at[flip] = best;
            from[flip] = ip(pairs[i][1]);
            at[1 - flip] = ip(pairs[i][2]);
            from[1 - flip] = ip(pairs[i][3]);
            t_watch("%s before %s", pairs[i][0], pairs[i][2]);
            bz_dns_order_by(at, from, 2);
            CHECK(blitz_addr_is_equal(&at[0], &best));
        }
    }
}

TEST(dns_files, equally_good_addresses_keep_their_order)
{
    blitz_addr at[5], from[5];
    for (int i = 0; i < 5; i++) {
        at[i] = blitz_addr_v4(192, 0, 2, (uint8_t)(50 - i), 0);
        from[i] = blitz_addr_v4(192, 0, 2, 100, 0);
    }
    bz_dns_order_by(at, from, 5);
    for (int i = 0; i < 5; i++)
        CHECK_EQ(at[i].is.ip[3], 50 - i);
}

TEST(dns_files, interleaved_addresses_alternate_between_the_families)
{
    static const char *const in[] = {"::1", "::2", "::3", "192.0.2.1", "192.0.2.2", "::4"};
    static const char *const out[] = {"::1", "192.0.2.1", "::2", "192.0.2.2", "::3", "::4"};
    blitz_addr at[6];
    for (size_t i = 0; i < 6; i++)
        at[i] = ip(in[i]);
    bz_dns_interleave(at, 6);
    for (size_t i = 0; i < 6; i++) {
        blitz_addr want = ip(out[i]);
        CHECK(blitz_addr_is_equal(&at[i], &want));
    }
}
