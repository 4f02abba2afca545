/*
 * The readers of untrusted bytes on random input: answers of name servers, resolv.conf, nsswitch.conf and hosts.
 *
 * An input begins as a valid text or message, put together at random, and then loses or changes a few bytes. It lies in
 * memory of exactly its size, so that AddressSanitizer sees each access beyond. `make fuzz` runs ten million inputs;
 * BLITZ_FUZZ_INPUTS sets another number for each case. The seed repeats a failure, as for every test.
 */
#include "harness.h"

#include "net/dns_cache.h"
#include "net/dns_files.h"
#include "support/dns.h"

static uint64_t inputs(void)
{
    const char *text = getenv("BLITZ_FUZZ_INPUTS");
    return text != NULL && *text != '\0' ? strtoull(text, NULL, 10) : t_scaled(40000);
}

static uint32_t below(struct t_rng *r, uint32_t n)
{
    return (uint32_t)t_rng_below(r, n);
}

/* Change, drop or double a few bytes. Returns the new length. */
static size_t damage(struct t_rng *r, uint8_t *data, size_t bytes, size_t room)
{
    for (uint32_t times = below(r, 6); times > 0 && bytes > 0; times--) {
        size_t at = below(r, (uint32_t)bytes), n = 1 + below(r, 8);
        n = n < bytes - at ? n : bytes - at;
        switch (below(r, 5)) {
        case 0:
            data[at] = (uint8_t)below(r, 256);
            break;
        case 1:
            data[at] ^= (uint8_t)(1U << below(r, 8));
            break;
        case 2:
            memmove(data + at, data + at + n, bytes - at - n);
            bytes -= n;
            break;
        case 3:
            if (bytes + n <= room) {
                memmove(data + at + n, data + at, bytes - at);
                bytes += n;
            }
            break;
        default:
            bytes = at;
            break;
        }
    }
    return bytes;
}

static void *exactly(const void *data, size_t bytes)
{
    void *copy = malloc(bytes + (bytes == 0));
    CHECK_NOT_NULL(copy);
    memcpy(copy, data, bytes);
    return copy;
}

/* ---- answers ---- */

static const char *const some_names[] = {"a.test", "b.test", "c.test", "d", "a.test.a.test.a.test",
                                         "x.y.z"};

static const char *a_name(struct t_rng *r)
{
    return some_names[below(r, BZ_ARRAY_LEN(some_names))];
}

/* A name as it is, or by a pointer to any place, or both. */
static void put_any_name(struct t_rng *r, struct t_message *m)
{
    switch (below(r, 4)) {
    case 0:
        t_put_name(m, a_name(r));
        break;
    case 1:
        t_put16(m, 0xc00c);
        break;
    case 2:
        t_put16(m, 0xc000 | below(r, (uint32_t)m->bytes + 8));
        break;
    default:
        t_put(m, "\1b", 2);
        t_put16(m, 0xc000 | below(r, (uint32_t)m->bytes + 4));
        break;
    }
}

static void put_any_record(struct t_rng *r, struct t_message *m)
{
    static const uint8_t types[] = {1, 1, 1, 28, 28, 5, 5, 6, 41, 2};
    unsigned type = types[below(r, BZ_ARRAY_LEN(types))];
    put_any_name(r, m);
    t_put16(m, type);
    t_put16(m, below(r, 8) == 0 ? below(r, 300) : 1);
    t_put32(m, below(r, 4) == 0 ? UINT32_MAX - below(r, 3) : below(r, 1000));
    size_t at = m->bytes;
    t_put16(m, 0);
    if (type == 1 || type == 28)
        t_put(m, "0123456789abcdef", type == 1 ? 4 : 16);
    else
        put_any_name(r, m);
    if (type == 6)
        t_put(m, "0123456789abcdef0123456789abcdef", below(r, 30));
    t_set16(m, at, (unsigned)(m->bytes - at - 2) + (below(r, 10) == 0 ? below(r, 5) : 0));
    t_set16(m, 4 + 2 * (1 + below(r, 2)), below(r, 6));
}

static void an_answer(struct t_rng *r, struct t_message *m)
{
    static const unsigned flags[] = {0x8180, 0x8180, 0x8180, 0x8183, 0x8182, 0x8380, 0x0100};
    t_put_header(m, 0x1234, flags[below(r, BZ_ARRAY_LEN(flags))], "a.test",
                 below(r, 8) == 0 ? 28 : 1);
    for (uint32_t n = below(r, 8); n > 0; n--)
        put_any_record(r, m);
    m->bytes = damage(r, m->at, m->bytes, 1000);
}

TEST_LIMIT(dns_fuzz, answers, 3600)
{
    struct t_rng r = t_rng_of(0);
    struct bz_dns_question q = {.name = "a.test", .type = BZ_DNS_A, .id = 0x1234};
    struct bz_dns_answer got;
    static struct t_message m;
    uint64_t verdicts[BZ_DNS_FOREIGN + 1] = {0};
    for (uint64_t i = 0, n = inputs(); i < n; i++) {
        an_answer(&r, &m);
        uint8_t *data = exactly(m.at, m.bytes);
        got.count = 0;
        enum bz_dns_verdict v = bz_dns_read(&q, data, m.bytes, &got);
        free(data);
        CHECK_LE(v, BZ_DNS_FOREIGN);
        verdicts[v]++;
        CHECK_LE(got.count, BZ_DNS_FOUND_MAX);
        if (v == BZ_DNS_FOUND)
            CHECK_GE(got.count, 1);
        if (v == BZ_DNS_FOUND || v == BZ_DNS_NO_NAME || v == BZ_DNS_NO_DATA)
            CHECK_LE(got.ttl_s, (uint32_t)INT32_MAX);
    }
    for (size_t i = 0; i < BZ_ARRAY_LEN(verdicts);
         i++) /* the inputs are not all refused at the door */
        CHECK_GT(verdicts[i] + (inputs() < 20000) + (i == BZ_DNS_NO_EDNS), 0u);
}

/* ---- texts ---- */

static const char *const words[] = {
    "nameserver",
    "search",
    "domain",
    "options",
    "ndots:3",
    "timeout:99",
    "attempts:0",
    "127.0.0.1",
    "192.0.2.1",
    "::1",
    "fe80::1%2",
    "[::1]:53",
    "[192.0.2.1]:99999",
    "a.test",
    "WWW.Test.",
    "localhost",
    "hosts:",
    "files",
    "dns",
    "mdns4_minimal",
    "[NOTFOUND=return]",
    "myhostname",
    "#",
    ";",
    "rotate",
    "\t",
    "\r",
    "",
    "sortlist",
    "\xff\xfe",
    "x.y.z.x.y.z.x.y.z.x.y.z.x.y.z.x.y.z.x.y.z.x.y.z.x.y.z.x.y.z.x.y.z.x.y.z.x.y.z"};

static size_t a_text(struct t_rng *r, char *out, size_t room)
{
    size_t n = 0;
    for (uint32_t count = below(r, 30); count > 0; count--) {
        const char *word = words[below(r, BZ_ARRAY_LEN(words))];
        size_t bytes = strlen(word);
        /* NOLINTNEXTLINE(bugprone-not-null-terminated-result): the text has a length, and no end */
        memcpy(out + n, word, bytes);
        n += bytes;
        out[n++] = " \n\t "[below(r, 4)];
    }
    return damage(r, (uint8_t *)out, n, room);
}

static void check_conf(const char *text, size_t bytes)
{
    static struct bz_dns_conf c;
    char name[BZ_DNS_NAME_MAX];
    bz_dns_conf_read(&c, text, bytes, "box.home.test");
    CHECK(c.server_count >= 1 && c.server_count <= BZ_DNS_SERVERS_MAX);
    CHECK_LE(c.search_count, BZ_DNS_SEARCH_MAX);
    CHECK(c.ndots <= 15 && c.timeout_s >= 1 && c.timeout_s <= 30);
    CHECK(c.attempts >= 1 && c.attempts <= 5);
    for (unsigned i = 0; i < c.server_count; i++)
        CHECK(blitz_addr_is_v4(&c.server[i]) || blitz_addr_is_v6(&c.server[i]));
    for (unsigned i = 0; i < c.search_count; i++) {
        CHECK_GT(bz_dns_name(c.search[i], strlen(c.search[i]), name), 0);
        CHECK_STR_EQ(name, c.search[i]);
    }
}

TEST_LIMIT(dns_fuzz, resolv_conf_and_nsswitch_conf, 3600)
{
    struct t_rng r = t_rng_of(1);
    char text[4096];
    struct bz_dns_sources s;
    for (uint64_t i = 0, n = inputs(); i < n; i++) {
        size_t bytes = a_text(&r, text, sizeof text);
        char *data = exactly(text, bytes);
        check_conf(data, bytes);
        bz_dns_sources_read(&s, data, bytes);
        free(data);
        CHECK_LE(s.count, 2);
        CHECK(s.count > 0 || s.is_foreign);
    }
}

TEST_LIMIT(dns_fuzz, hosts, 3600)
{
    struct t_rng r = t_rng_of(2);
    char text[4096];
    uint64_t found = 0;
    for (uint64_t i = 0, n = inputs(); i < n; i++) {
        size_t bytes = a_text(&r, text, sizeof text);
        char *data = exactly(text, bytes);
        struct bz_dns_hosts *h;
        blitz_addr at[3];
        CHECK_EQ(bz_dns_hosts_new(data, bytes, &bz_allocator_libc, &h), 0);
        free(data);
        static const char *const asked[] = {"a.test", "www.test", "localhost", "files"};
        size_t count = bz_dns_hosts_find(h, asked[i % BZ_ARRAY_LEN(asked)], at, 3);
        CHECK_LE(count, 3u);
        for (size_t k = 0; k < count; k++)
            CHECK(blitz_addr_is_v4(&at[k]) || blitz_addr_is_v6(&at[k]));
        found += count;
        bz_dns_hosts_free(h);
    }
    CHECK_GT(found + (inputs() < 1000), 0u);
}
