/* Addresses: what is read, what is refused, what is printed, and what is asked of them. */
#include "harness.h"

#include <arpa/inet.h>
#include <errno.h>

#include "base/compiler.h"
#include "blitz/addr.h"
#include "io/sockaddr.h"

static blitz_addr parsed(const char *text)
{
    blitz_addr a;
    t_watch("%s", text);
    CHECK_EQ(blitz_addr_parse(text, &a), 0);
    return a;
}

static void prints_as(const blitz_addr *a, const char *want)
{
    char text[BLITZ_ADDR_TEXT_MAX];
    CHECK_EQ(blitz_addr_print(a, text, sizeof text), (int)strlen(want));
    CHECK_STR_EQ(text, want);
}

TEST(addr, printing_a_parsed_address_gives_the_same_text)
{
    static const char *const texts[] = {
        "127.0.0.1:80",
        "0.0.0.0:0",
        "255.255.255.255:65535",
        "[::1]:80",
        "[::]:0",
        "[2001:db8::1]:443",
        "[2001:db8:0:1:1:1:1:1]:443",
        "[2001:db8::1:0:0:1]:1",
        "[1::8]:1",
        "[1:2:3:4:5:6:7:8]:1",
        "[1:2:3:4:5:6:7:0]:1",
        "[0:2:3:4:5:6:7:8]:1",
        "[fe80::1%3]:7",
        "[::ffff:127.0.0.1]:80",
        "unix:some/path",
        "unix:@abstract",
        "unix:./@file",
    };
    for (size_t i = 0; i < BZ_ARRAY_LEN(texts); i++) {
        blitz_addr a = parsed(texts[i]);
        prints_as(&a, texts[i]);
    }
}

TEST(addr, other_forms_of_the_same_are_read_too)
{
    static const struct {
        const char *text, *same;
    } pairs[] = {
        {":80", "[::]:80"},
        {"[0:0:0:0:0:0:0:1]:80", "[::1]:80"},
        {"[2001:DB8::A]:80", "[2001:db8::a]:80"},
        {"[1:2:3:4:5:6:7::]:1", "[1:2:3:4:5:6:7:0]:1"},
        {"[::2:3:4:5:6:7:8]:1", "[0:2:3:4:5:6:7:8]:1"},
        {"[::ffff:7f00:1]:80", "[::ffff:127.0.0.1]:80"},
        {"[1:2:3:4:5:6:127.0.0.1]:1", "[1:2:3:4:5:6:7f00:1]:1"},
        {"[0001::0008]:1", "[1::8]:1"},
    };
    for (size_t i = 0; i < BZ_ARRAY_LEN(pairs); i++) {
        blitz_addr a = parsed(pairs[i].text), b = parsed(pairs[i].same);
        CHECK(blitz_addr_is_equal(&a, &b));
        prints_as(&a, pairs[i].same);
    }
}

/* Any other interpretation of an address is a security hole. */
TEST(addr, anything_else_is_refused)
{
    static const char *const texts[] = {
        "",
        "80",
        ":",
        "127.0.0.1",
        "127.0.0.1:",
        "127.0.0.1:65536",
        "127.0.0.1:-1",
        "127.0.0.1:+1",
        "127.0.0.1: 1",
        "127.0.0.1:1 ",
        " 127.0.0.1:1",
        "127.0.0.1:080",
        "127.0.0.01:80",
        "127.0.0.256:80",
        "127.0.1:80",
        "127.0.0.0.1:80",
        "0x7f.0.0.1:80",
        "127.0.0.1:80:80",
        "127.0.0.1:99999999999999999999",
        "localhost:80",
        "::1:80",
        "[::1]",
        "[::1:80",
        "[::1]80",
        "[::1]:",
        "[:::1]:80",
        "[1::2::3]:80",
        "[1:2:3:4:5:6:7]:80",
        "[1:2:3:4:5:6:7:8:9]:80",
        "[1::2:3:4:5:6:7:8]:80",
        "[1:2:3:4:5:6:7:]:80",
        "[:1:2:3:4:5:6:7]:80",
        "[12345::]:80",
        "[g::]:80",
        "[::127.0.0]:80",
        "[::127.0.0.1.1]:80",
        "[1:2:3:4:5:6:7:127.0.0.1]:80",
        "[::1%]:80",
        "[::1%eth0]:80",
        "[::1%4294967296]:80",
        "[127.0.0.1]:80",
        "[]:80",
        "unix:",
        "unix:@",
        "Unix:name",
    };
    blitz_addr a, was;
    memset(&a, 0x5a, sizeof a);
    was = a;
    for (size_t i = 0; i < BZ_ARRAY_LEN(texts); i++) {
        t_watch("%s", texts[i]);
        CHECK_EQ(blitz_addr_parse(texts[i], &a), -EINVAL);
        CHECK_MEM_EQ(&a, &was, sizeof a);
    }
    CHECK_EQ(blitz_addr_parse(NULL, &a), -EINVAL);
    CHECK_EQ(blitz_addr_parse("127.0.0.1:80", NULL), -EINVAL);
    CHECK_EQ(blitz_addr_parse_ip("127.0.0.1:80", 1, &a), -EINVAL);
    CHECK_EQ(blitz_addr_parse_ip("[::1]", 1, &a), -EINVAL);
    CHECK_EQ(blitz_addr_parse_ip("::1x", 1, &a), -EINVAL);
    CHECK_EQ(blitz_addr_parse_ip("", 1, &a), -EINVAL);
}

TEST(addr, a_unix_name_fits_or_is_refused)
{
    char name[BLITZ_ADDR_NAME_MAX + 1];
    blitz_addr a;
    memset(name, 'x', sizeof name);
    name[BLITZ_ADDR_NAME_MAX] = '\0';
    CHECK_EQ(blitz_addr_unix(name, &a), -ENAMETOOLONG);
    CHECK_EQ(blitz_addr_abstract(name, BLITZ_ADDR_NAME_MAX, &a), -ENAMETOOLONG);
    name[BLITZ_ADDR_NAME_MAX - 1] = '\0';
    CHECK_EQ(blitz_addr_unix(name, &a), 0);
    CHECK_EQ(blitz_addr_abstract(name, BLITZ_ADDR_NAME_MAX - 1, &a), 0);
    CHECK_EQ(blitz_addr_abstract("a\0b\x01", 4, &a), 0);
    prints_as(&a, "unix:@a\\x00b\\x01");
    CHECK(blitz_addr_is_abstract(&a));
    a.bytes = 1; /* the shortest one: the 0 alone */
    CHECK(blitz_addr_is_abstract(&a));
    CHECK_EQ(blitz_addr_unix("", &a), -EINVAL);
    CHECK_EQ(blitz_addr_unix(NULL, &a), -EINVAL);
}

TEST(addr, printing_needs_room_and_an_address)
{
    char text[16];
    blitz_addr a = parsed("127.0.0.1:80"), none = {0};
    memset(text, 'x', sizeof text);
    CHECK_EQ(blitz_addr_print(&a, text, 12), -ENOSPC);
    CHECK_EQ(text[0], 'x');
    CHECK_EQ(blitz_addr_print(&a, text, 13), 12);
    CHECK_EQ(blitz_addr_print(&none, text, sizeof text), -EINVAL);
    CHECK_EQ(blitz_addr_print(NULL, text, sizeof text), -EINVAL);
    CHECK_EQ(blitz_addr_print(&a, NULL, 5), -EINVAL);
}

/* ---- against another implementation ---- */

static void v6_is_read_as_libc_does(const uint8_t ip[16])
{
    char theirs[64], ours[80];
    uint8_t back[16];
    CHECK_NOT_NULL(inet_ntop(AF_INET6, ip, theirs, sizeof theirs));
    blitz_addr a, want = blitz_addr_v6(ip, 0, 0);
    CHECK_EQ(blitz_addr_parse_ip(theirs, 0, &a), 0);
    CHECK(blitz_addr_is_equal(&a, &want));
    int n = blitz_addr_print(&want, ours, sizeof ours);
    CHECK_GT(n, 5);
    ours[n - 3] = '\0'; /* "[" ... "]:0" */
    CHECK_EQ(inet_pton(AF_INET6, ours + 1, back), 1);
    CHECK_MEM_EQ(back, ip, 16);
}

TEST(addr, libc_and_we_agree_about_ipv6)
{
    for (uint64_t i = 0; i < t_scaled(20000); i++) {
        uint8_t ip[16] = {0};
        uint64_t zeros = t_random();
        for (int g = 0; g < 8; g++)
            if (zeros >> g & 1) {
                ip[2 * g] = zeros >> (8 + g) & 1 ? (uint8_t)t_random() : 0;
                ip[2 * g + 1] = (uint8_t)t_random();
            }
        v6_is_read_as_libc_does(ip);
    }
}

/* Random text of address characters: libc accepts everything that we accept, with the same
 * result. */
TEST(addr, of_random_text_nothing_is_taken_that_libc_refuses)
{
    static const char letters[] = "0127::::..fF%g";
    for (uint64_t i = 0; i < t_scaled(200000); i++) {
        char text[24];
        uint8_t ip[16];
        blitz_addr a;
        size_t n = t_random() % (sizeof text - 1);
        for (size_t k = 0; k < n; k++)
            text[k] = letters[t_random() % (sizeof letters - 1)];
        text[n] = '\0';
        t_watch("%s", text);
        if (blitz_addr_parse_ip(text, 0, &a) != 0 || strchr(text, '%') != NULL)
            continue;
        CHECK_EQ(inet_pton(blitz_addr_is_v4(&a) ? AF_INET : AF_INET6, text, ip), 1);
        CHECK_MEM_EQ(a.is.ip, ip, blitz_addr_is_v4(&a) ? 4 : 16);
    }
}

TEST(addr, the_system_s_form_and_back_is_the_same)
{
    static const char *const texts[] = {"127.0.0.1:80", "[fe80::1%3]:7", "unix:a", "unix:@a"};
    struct bz_sockname s;
    blitz_addr back, none = {0};
    for (size_t i = 0; i < BZ_ARRAY_LEN(texts); i++) {
        blitz_addr a = parsed(texts[i]);
        int bytes = bz_sockaddr_of(&a, &s);
        CHECK_GT(bytes, 0);
        bz_sockaddr_to(&s, (uint32_t)bytes, &back);
        CHECK(blitz_addr_is_equal(&a, &back));
        CHECK_EQ(blitz_addr_compare(&a, &none) > 0, 1);
    }
    CHECK_EQ(bz_sockaddr_of(&none, &s), -EINVAL);
    bz_sockaddr_to(&s, 0, &back);
    CHECK_EQ(back.kind, BLITZ_ADDR_NONE);
}

/* ---- questions ---- */

typedef bool question(const blitz_addr *a);

static void answers(question *is, const blitz_addr *yes, size_t yes_count, const blitz_addr *no,
                    size_t no_count)
{
    for (size_t i = 0; i < yes_count; i++)
        CHECK(is(&yes[i]));
    for (size_t i = 0; i < no_count; i++)
        CHECK(!is(&no[i]));
}
#define ANSWERS(is, yes, no) answers(is, yes, BZ_ARRAY_LEN(yes), no, BZ_ARRAY_LEN(no))

static blitz_addr mapped(uint8_t a, uint8_t b, uint8_t c, uint8_t d)
{
    return blitz_addr_v6((const uint8_t[16]){[10] = 255, 255, a, b, c, d}, 80, 0);
}

static blitz_addr v6_from(uint8_t a, uint8_t b)
{
    return blitz_addr_v6((const uint8_t[16]){a, b, [15] = 1}, 80, 0);
}

/* A dual-stack listener sees IPv4 peers as mapped IPv6 addresses: such a peer must not bypass a
 * check. */
TEST(addr, questions_see_through_mapped_addresses)
{
    const blitz_addr loopback[] = {blitz_addr_loopback_v4(1), blitz_addr_v4(127, 9, 9, 9, 1),
                                   blitz_addr_loopback_v6(1), mapped(127, 0, 0, 1)};
    const blitz_addr any[] = {blitz_addr_any_v4(1), blitz_addr_any_v6(1), mapped(0, 0, 0, 0)};
    const blitz_addr private_[] = {blitz_addr_v4(10, 1, 2, 3, 1),
                                   blitz_addr_v4(172, 16, 0, 1, 1),
                                   blitz_addr_v4(172, 31, 255, 1, 1),
                                   blitz_addr_v4(192, 168, 0, 1, 1),
                                   mapped(10, 1, 2, 3),
                                   v6_from(0xfc, 0),
                                   v6_from(0xfd, 9)};
    const blitz_addr group[] = {blitz_addr_v4(224, 0, 0, 1, 1), blitz_addr_v4(239, 1, 1, 1, 1),
                                mapped(230, 1, 1, 1), v6_from(0xff, 2)};
    const blitz_addr link[] = {blitz_addr_v4(169, 254, 1, 1, 1), mapped(169, 254, 0, 9),
                               v6_from(0xfe, 0x80), v6_from(0xfe, 0xbf)};
    const blitz_addr neither[] = {blitz_addr_v4(192, 0, 2, 1, 1),
                                  blitz_addr_v4(172, 32, 0, 1, 1),
                                  blitz_addr_v4(172, 15, 0, 1, 1),
                                  v6_from(0x20, 1),
                                  v6_from(0xfe, 0xc0),
                                  v6_from(0xfb, 0)};
    ANSWERS(blitz_addr_is_loopback, loopback, neither);
    ANSWERS(blitz_addr_is_loopback, loopback, any);
    ANSWERS(blitz_addr_is_any, any, neither);
    ANSWERS(blitz_addr_is_any, any, loopback);
    ANSWERS(blitz_addr_is_private, private_, neither);
    ANSWERS(blitz_addr_is_multicast, group, neither);
    ANSWERS(blitz_addr_is_link_local, link, neither);
}

TEST(addr, the_kinds_differ)
{
    blitz_addr v4 = parsed("127.0.0.1:80"), v6 = parsed("[::1]:80"), un = parsed("unix:x");
    blitz_addr map = mapped(127, 0, 0, 1), back = blitz_addr_unmap(&map), same;
    CHECK(blitz_addr_is_v4(&v4) && !blitz_addr_is_v6(&v4) && !blitz_addr_is_unix(&v4));
    CHECK(blitz_addr_is_v6(&v6) && !blitz_addr_is_v4(&v6));
    CHECK(blitz_addr_is_unix(&un) && !blitz_addr_is_abstract(&un) && blitz_addr_is_loopback(&un));
    CHECK(blitz_addr_is_v4_mapped(&map) && !blitz_addr_is_v4_mapped(&v6));
    CHECK(blitz_addr_is_equal(&back, &v4) && !blitz_addr_is_equal(&map, &v4));
    same = blitz_addr_unmap(&v6);
    CHECK(blitz_addr_is_equal(&same, &v6));
    CHECK_EQ(blitz_addr_port(&v4), 80);
    CHECK_EQ(blitz_addr_set_port(&v6, 81), 0);
    CHECK_EQ(blitz_addr_port(&v6), 81);
    CHECK_EQ(blitz_addr_set_port(&un, 81), -EINVAL);
    CHECK_EQ(blitz_addr_port(&un), 0);
}

TEST(addr, the_order_is_total)
{
    const blitz_addr a[] = {{0},
                            blitz_addr_v4(1, 2, 3, 4, 5),
                            blitz_addr_v4(1, 2, 3, 4, 6),
                            blitz_addr_v4(200, 2, 3, 4, 5),
                            parsed("[::1]:5"),
                            parsed("[::1%2]:5"),
                            parsed("[fe80::]:5"),
                            parsed("unix:@a"),
                            parsed("unix:a"),
                            parsed("unix:ab")};
    for (size_t i = 0; i < BZ_ARRAY_LEN(a); i++)
        for (size_t k = 0; k < BZ_ARRAY_LEN(a); k++) {
            int order = blitz_addr_compare(&a[i], &a[k]);
            CHECK_EQ((order > 0) - (order < 0), (i > k) - (i < k));
            CHECK_EQ(blitz_addr_is_equal(&a[i], &a[k]), i == k);
        }
}
