/* Questions and answers of name servers: every byte of an answer is untrusted. */
#include "harness.h"

#include "net/dns_message.h"
#include "support/dns.h"

static struct bz_dns_question question(const char *name, uint16_t type)
{
    struct bz_dns_question q = {.type = type, .id = 0x1234};
    CHECK_GT(bz_dns_name(name, strlen(name), q.name), 0);
    return q;
}

static enum bz_dns_verdict read_of(const struct bz_dns_question *q, const struct t_message *m,
                                   struct bz_dns_answer *out)
{
    uint8_t *copy = malloc(m->bytes + 1); /* its end is where a sanitizer sees it */
    CHECK_NOT_NULL(copy);
    memcpy(copy, m->at, m->bytes);
    enum bz_dns_verdict v = bz_dns_read(q, copy, m->bytes, out);
    free(copy);
    return v;
}

/* ---- names ---- */

TEST(dns_message, names_are_checked_and_written_in_lower_case)
{
    static const char *const bad[] = {"",    ".",   "..",    "a..b",       ".a",
                                      "a b", "a/b", "a.b..", "\xc3\xa4.de"};
    char name[BZ_DNS_NAME_MAX], label[70];
    CHECK_EQ(bz_dns_name("WWW.Example-1.test.", 19, name), 18);
    CHECK_STR_EQ(name, "www.example-1.test");
    for (size_t i = 0; i < BZ_ARRAY_LEN(bad); i++)
        CHECK_EQ(bz_dns_name(bad[i], strlen(bad[i]), name), -EINVAL);
    memset(label, 'a', sizeof label);
    CHECK_EQ(bz_dns_name(label, 63, name), 63);
    CHECK_EQ(bz_dns_name(label, 64, name), -EINVAL);
    char all[300];
    for (size_t i = 0; i < sizeof all; i++)
        all[i] = i % 50 == 49 ? '.' : 'x';
    CHECK_EQ(bz_dns_name(all, 253, name), 253);
    CHECK_EQ(bz_dns_name(all, 254, name), -EINVAL);
}

TEST(dns_message, a_question_has_one_name_and_announces_room)
{
    struct bz_dns_question q = question("a.bc", BZ_DNS_AAAA);
    static const uint8_t want[] = {0x12, 0x34, 1,   0, 0,    1,   0, 0, 0,  0, 0,
                                   1,    1,    'a', 2, 'b',  'c', 0, 0, 28, 0, 1,
                                   0,    0,    41,  4, 0xd0, 0,   0, 0, 0,  0, 0};
    uint8_t out[BZ_DNS_QUESTION_MAX];
    CHECK_EQ(bz_dns_write(&q, true, out), sizeof want);
    CHECK_MEM_EQ(out, want, sizeof want);
    CHECK_EQ(bz_dns_write(&q, false, out), sizeof want - 11);
    CHECK_EQ(out[11], 0);
}

/* ---- which answers count ---- */

TEST(dns_message, only_an_answer_that_repeats_the_question_counts)
{
    struct bz_dns_question q = question("a.test", BZ_DNS_A);
    struct bz_dns_answer got;
    struct t_message m;
    t_put_header(&m, 0x1234, 0x8180, "A.tEst", 1);
    t_put_addresses(&m, "a.test", 60, "192.0.2.1");
    CHECK_EQ(read_of(&q, &m, &got), BZ_DNS_FOUND);
    CHECK_EQ(got.count, 1);
    CHECK_EQ(got.ttl_s, 60u);
    static const struct {
        size_t at;
        uint8_t flip;
    } change[] = {{0, 1}, {1, 0x80}, {2, 0x80}, {2, 0x08}, {5, 1}, {13, 1}, {21, 2}, {23, 2}};
    for (size_t i = 0; i < BZ_ARRAY_LEN(change); i++) {
        struct t_message other = m;
        other.at[change[i].at] ^= change[i].flip;
        t_watch("byte %zu", change[i].at);
        CHECK_EQ(read_of(&q, &other, &got), BZ_DNS_FOREIGN);
    }
}

TEST(dns_message, codes_of_servers_have_their_verdicts)
{
    static const struct {
        unsigned flags;
        enum bz_dns_verdict verdict;
    } cases[] = {{0x8180, BZ_DNS_NO_DATA},  {0x8183, BZ_DNS_NO_NAME}, {0x8182, BZ_DNS_REFUSES},
                 {0x8185, BZ_DNS_REFUSES},  {0x8181, BZ_DNS_NO_EDNS}, {0x8184, BZ_DNS_NO_EDNS},
                 {0x8380, BZ_DNS_TRUNCATED}};
    struct bz_dns_question q = question("a.test", BZ_DNS_A);
    struct bz_dns_answer got;
    struct t_message m;
    for (size_t i = 0; i < BZ_ARRAY_LEN(cases); i++) {
        t_put_header(&m, 0x1234, cases[i].flags, "a.test", 1);
        CHECK_EQ(read_of(&q, &m, &got), cases[i].verdict);
    }
}

/* An address for a name that was not asked for must not get into the cache. */
TEST(dns_message, addresses_of_other_names_are_ignored)
{
    struct bz_dns_question q = question("a.test", BZ_DNS_A);
    struct bz_dns_answer got;
    struct t_message m;
    t_put_header(&m, 0x1234, 0x8180, "a.test", 1);
    t_put_addresses(&m, "bank.test", 60, "198.51.100.66");
    t_put_addresses(&m, "a.test", 60, "192.0.2.1 2001:db8::1");
    t_put_record(&m, "a.test", 1, 60, "\6\6\6\6", 4); /* additional: not counted as an answer */
    t_count(&m, 10);
    CHECK_EQ(read_of(&q, &m, &got), BZ_DNS_FOUND);
    CHECK_EQ(got.count, 1);
    CHECK_MEM_EQ(got.ip[0], "\xc0\0\2\1", 4);
}

/* ---- times ---- */

TEST(dns_message, the_shortest_time_of_a_chain_counts)
{
    struct bz_dns_question q = question("a.test", BZ_DNS_A);
    struct bz_dns_answer got;
    struct t_message m;
    t_put_header(&m, 0x1234, 0x8180, "a.test", 1);
    t_put_alias(&m, "b.test", 7, "c.test"); /* in any order */
    t_put_alias(&m, "a.test", 50, "b.test");
    t_put_addresses(&m, "c.test", 60, "192.0.2.1");
    CHECK_EQ(read_of(&q, &m, &got), BZ_DNS_FOUND);
    CHECK_EQ(got.ttl_s, 7u);
    t_put_header(&m, 0x1234, 0x8180, "a.test", 1);
    t_put_addresses(&m, "a.test", 0x80000000, "192.0.2.1");
    CHECK_EQ(read_of(&q, &m, &got), BZ_DNS_FOUND);
    CHECK_EQ(got.ttl_s, 0u); /* negative */
}

TEST(dns_message, a_negative_answer_is_kept_as_long_as_its_soa_says)
{
    struct bz_dns_question q = question("a.test", BZ_DNS_A);
    struct bz_dns_answer got;
    struct t_message m;
    t_put_header(&m, 0x1234, 0x8183, "a.test", 1);
    CHECK_EQ(read_of(&q, &m, &got), BZ_DNS_NO_NAME);
    CHECK_EQ(got.ttl_s, 0u); /* not at all */
    t_put_soa(&m, 100, 30);
    CHECK_EQ(read_of(&q, &m, &got), BZ_DNS_NO_NAME);
    CHECK_EQ(got.ttl_s, 30u);
    t_put_header(&m, 0x1234, 0x8180, "a.test", 1);
    t_put_soa(&m, 20, 30);
    CHECK_EQ(read_of(&q, &m, &got), BZ_DNS_NO_DATA);
    CHECK_EQ(got.ttl_s, 20u);
}

/* ---- bounds ---- */

/* A pointer that points to itself, forward or in a circle would be followed for ever. */
TEST_LIMIT(dns_message, compression_loops_are_refused, 5)
{
    struct bz_dns_question q = question("a.test", BZ_DNS_A);
    struct bz_dns_answer got;
    struct t_message m;
    char name[BZ_DNS_NAME_MAX];
    for (int kind = 0; kind < 3; kind++) {
        t_put_header(&m, 0x1234, 0x8180, "a.test", 1);
        size_t at = m.bytes;
        t_put(&m, "\1x", 2); /* a label, so that a circle makes progress in length only */
        t_put16(&m, 0xc000 | (unsigned)(kind == 0 ? at : kind == 1 ? at + 2 : at + 4));
        t_put16(&m, 0xc000 | (unsigned)at);
        t_put(&m, "\0\1\0\1\0\0\0\1\0\4\6\6\6\6", 14);
        t_set16(&m, 6, 1);
        CHECK_EQ(read_of(&q, &m, &got), BZ_DNS_REFUSES);
        size_t p = at;
        CHECK_EQ(bz_dns_read_name(m.at, m.bytes, &p, name), -EIO);
    }
}

TEST(dns_message, compressed_names_are_read)
{
    struct bz_dns_question q = question("a.test", BZ_DNS_A);
    struct bz_dns_answer got;
    struct t_message m;
    t_put_header(&m, 0x1234, 0x8180, "a.test", 1);
    t_put16(&m, 0xc00c);
    t_put(&m, "\0\5\0\1\0\0\0\1\0\4\1b\xc0\x0e", 14); /* an alias to b.test */
    t_put(&m, "\1b\xc0\x0e", 4);
    t_put(&m, "\0\1\0\1\0\0\0\1\0\4\xc0\0\2\1", 14);
    t_set16(&m, 6, 2);
    CHECK_EQ(read_of(&q, &m, &got), BZ_DNS_FOUND);
    CHECK_EQ(got.count, 1);
}

/* Every prefix of an answer, and every byte of it changed: nothing is read beyond the end. */
TEST(dns_message, broken_answers_are_no_harm)
{
    struct bz_dns_question q = question("a.test", BZ_DNS_A);
    struct bz_dns_answer got;
    struct t_message m;
    t_put_header(&m, 0x1234, 0x8180, "a.test", 1);
    t_put_alias(&m, "a.test", 50, "b.test");
    t_put_addresses(&m, "b.test", 60, "192.0.2.1 192.0.2.2");
    t_put_soa(&m, 20, 30);
    for (size_t bytes = 0; bytes < m.bytes; bytes++) {
        struct t_message part = m;
        part.bytes = bytes;
        enum bz_dns_verdict v = read_of(&q, &part, &got);
        CHECK(v == BZ_DNS_FOREIGN || v == BZ_DNS_REFUSES || bytes > 60);
    }
    for (size_t i = 0; i < m.bytes; i++)
        for (unsigned b = 0; b < 256; b += 3) {
            struct t_message other = m;
            other.at[i] = (uint8_t)b;
            (void)read_of(&q, &other, &got);
            CHECK_LE(got.count, BZ_DNS_FOUND_MAX);
        }
}

TEST(dns_message, more_addresses_than_there_is_room_for_are_left_out)
{
    struct bz_dns_question q = question("a.test", BZ_DNS_A);
    struct bz_dns_answer got;
    struct t_message m;
    t_put_header(&m, 0x1234, 0x8180, "a.test", 1);
    for (int i = 0; i < 100; i++)
        t_put_addresses(&m, "a.test", 60, "192.0.2.1");
    CHECK_EQ(read_of(&q, &m, &got), BZ_DNS_FOUND);
    CHECK_EQ(got.count, BZ_DNS_FOUND_MAX);
}
