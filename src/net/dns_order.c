/*
 * dns_order.c - the order of a host's addresses.
 *
 * The system chooses a source address for each destination when a datagram socket is connected, without sending
 * anything. The rules compare destinations by their sources. An address without a route comes last. Sources of the same
 * scope and label are better. Then the table of RFC 6724 decides, which prefers IPv6. Then the smaller scope wins, and
 * for IPv6 the longer common prefix. The sort is stable, so addresses that are equally good keep the order of the
 * name server, which spreads load.
 *
 * Left out: deprecated and home addresses (rules 3, 4 and 7), which the system does not tell by a socket. Rule 9 is left out
 * for IPv4, where prefixes say little and the rule would undo the server's order.
 */
#include "net/dns_order.h"

#include <stdbool.h>
#include <string.h>

#include "base/alloc.h"
#include "io/sock.h"

enum { PROBE_PORT = 9 };

struct policy {
    uint8_t prefix[16], bits, precedence, label;
};

/* RFC 6724, section 2.1, the longest prefix first. */
static const struct policy policies[] = {
    {{[15] = 1}, 128, 50, 0},  {{[10] = 0xff, 0xff}, 96, 35, 4},
    {{0}, 96, 1, 3},           {{0x20, 0x01}, 32, 5, 5},
    {{0x20, 0x02}, 16, 30, 2}, {{0x3f, 0xfe}, 16, 1, 12},
    {{0xfe, 0xc0}, 10, 1, 11}, {{0xfc}, 7, 3, 13},
    {{0}, 0, 40, 1},
};

/* An address as the rules see it. */
struct rank {
    uint8_t ip[16]; /* IPv4 as ::ffff:a.b.c.d */
    unsigned scope;
    const struct policy *policy;
};

static unsigned common_bits(const uint8_t a[16], const uint8_t b[16])
{
    for (unsigned i = 0; i < 16; i++)
        if (a[i] != b[i])
            return i * 8 + (unsigned)__builtin_clz((unsigned)(a[i] ^ b[i])) - 24;
    return 128;
}

static unsigned scope_of(const blitz_addr *a)
{
    enum { LINK = 2, SITE = 5, GLOBAL = 14 };
    if (blitz_addr_is_multicast(a) && blitz_addr_is_v6(a))
        return a->is.ip[1] & 0xf;
    if (blitz_addr_is_loopback(a) || blitz_addr_is_link_local(a))
        return LINK;
    return blitz_addr_is_v6(a) && a->is.ip[0] == 0xfe && (a->is.ip[1] & 0xc0) == 0xc0 ? SITE
                                                                                      : GLOBAL;
}

static struct rank rank_of(const blitz_addr *a)
{
    struct rank r = {.ip = {0}, .scope = scope_of(a)};
    if (a->kind == BLITZ_ADDR_V4) {
        r.ip[10] = r.ip[11] = 0xff;
        memcpy(&r.ip[12], a->is.ip, 4);
    } else {
        memcpy(r.ip, a->is.ip, 16);
    }
    for (r.policy = policies; common_bits(r.ip, r.policy->prefix) < r.policy->bits;)
        r.policy++;
    return r;
}

/* Positive if a is better than b. */
static int by_rule(bool a, bool b)
{
    return (int)a - (int)b;
}

/* Positive if destination a is better, 0 if they are equally good. */
static int compare(const blitz_addr *a, const blitz_addr *a_from, const blitz_addr *b,
                   const blitz_addr *b_from)
{
    bool a_has = a_from->kind != BLITZ_ADDR_NONE, b_has = b_from->kind != BLITZ_ADDR_NONE;
    struct rank ra = rank_of(a), rb = rank_of(b);
    if (a_has != b_has)
        return by_rule(a_has, b_has); /* rule 1 */
    int better = 0;
    if (a_has) {
        struct rank sa = rank_of(a_from), sb = rank_of(b_from);
        better = by_rule(ra.scope == sa.scope, rb.scope == sb.scope); /* rule 2 */
        if (better == 0)                                              /* rule 5 */
            better =
                by_rule(ra.policy->label == sa.policy->label, rb.policy->label == sb.policy->label);
    }
    if (better == 0)
        better = (int)ra.policy->precedence - (int)rb.policy->precedence; /* rule 6 */
    if (better == 0)
        better = (int)rb.scope - (int)ra.scope; /* rule 8 */
    if (better == 0 && a_has && a->kind == BLITZ_ADDR_V6 && b->kind == BLITZ_ADDR_V6)
        better = (int)common_bits(ra.ip, a_from->is.ip) - (int)common_bits(rb.ip, b_from->is.ip);
    return better;
}

void bz_dns_order_by(blitz_addr *at, blitz_addr *source, size_t count)
{
    for (size_t i = 1; i < count; i++) {
        blitz_addr one = at[i], from = source[i];
        size_t j = i;
        for (; j > 0 && compare(&one, &from, &at[j - 1], &source[j - 1]) > 0; j--) {
            at[j] = at[j - 1];
            source[j] = source[j - 1];
        }
        at[j] = one;
        source[j] = from;
    }
}

/* The address from which this host would send to `to`; BLITZ_ADDR_NONE: it cannot. */
static blitz_addr source_for(const blitz_addr *to)
{
    blitz_addr from = {.kind = BLITZ_ADDR_NONE}, probe = *to;
    probe.port = PROBE_PORT;
    int fd = bz_sock_open(&probe, false);
    if (fd < 0)
        return from;
    if (bz_sock_connect(fd, &probe) != 0 || bz_sock_local(fd, &from) != 0)
        from.kind = BLITZ_ADDR_NONE;
    bz_sock_close(fd);
    return from;
}

void bz_dns_order(blitz_addr *at, size_t count)
{
    size_t bytes = count * sizeof(blitz_addr);
    blitz_addr *source =
        count > 1 ? bz_alloc(&bz_allocator_libc, bytes, _Alignof(blitz_addr)) : NULL;
    if (source == NULL)
        return; /* one address, or no memory: the order of the server is not wrong */
    for (size_t i = 0; i < count; i++)
        source[i] = source_for(&at[i]);
    bz_dns_order_by(at, source, count);
    bz_free(&bz_allocator_libc, source, bytes);
}

void bz_dns_interleave(blitz_addr *at, size_t count)
{
    for (size_t i = 1; i < count; i++) {
        size_t j = i;
        while (j < count && at[j].kind == at[i - 1].kind)
            j++;
        if (j == count)
            return; /* the rest is of one family */
        blitz_addr next = at[j];
        memmove(&at[i + 1], &at[i], (j - i) * sizeof *at);
        at[i] = next;
    }
}
