/*
 * addr.c - addresses: predicates and comparison.
 *
 * An address is our own value type, not a sockaddr: public headers include no system header, the
 * value is the same on all systems, and a sockaddr has padding and lengths that do not compare.
 * io/sockaddr.h converts it for system calls; addr_text.c converts text.
 *
 * The predicates also recognise an IPv4 address in the form ::ffff:a.b.c.d: a dual-stack listener
 * reports its peers so, and a loopback check without it would be a security hole.
 *
 * A value may contain any bytes: programs copy addresses, receive them and leave them
 * uninitialized. Every function here stays inside the value, even if its length field is wrong.
 */
#include <errno.h>
#include <string.h>

#include "blitz/addr.h"

enum { ABSTRACT_MAX = BLITZ_ADDR_NAME_MAX - 1 };

static blitz_addr ip_addr(blitz_addr_kind kind, const uint8_t *ip, size_t bytes, uint16_t port)
{
    blitz_addr a;
    memset(&a, 0, sizeof a);
    a.kind = (uint8_t)kind;
    a.port = port;
    memcpy(a.is.ip, ip, bytes);
    return a;
}

blitz_addr blitz_addr_v4(uint8_t a, uint8_t b, uint8_t c, uint8_t d, uint16_t port)
{
    return ip_addr(BLITZ_ADDR_V4, (const uint8_t[]){a, b, c, d}, 4, port);
}

blitz_addr blitz_addr_v6(const uint8_t ip[16], uint16_t port, uint32_t scope)
{
    blitz_addr a = ip_addr(BLITZ_ADDR_V6, ip, 16, port);
    a.scope = scope;
    return a;
}

blitz_addr blitz_addr_loopback_v4(uint16_t port)
{
    return blitz_addr_v4(127, 0, 0, 1, port);
}

blitz_addr blitz_addr_any_v4(uint16_t port)
{
    return blitz_addr_v4(0, 0, 0, 0, port);
}

blitz_addr blitz_addr_loopback_v6(uint16_t port)
{
    return blitz_addr_v6((const uint8_t[16]){[15] = 1}, port, 0);
}

blitz_addr blitz_addr_any_v6(uint16_t port)
{
    return blitz_addr_v6((const uint8_t[16]){0}, port, 0);
}

static int unix_addr(const void *name, size_t bytes, size_t at, blitz_addr *out)
{
    if (name == NULL || bytes == 0 || out == NULL)
        return -EINVAL;
    if (bytes > ABSTRACT_MAX) /* a path has a 0 after it, an abstract name before it */
        return -ENAMETOOLONG;
    memset(out, 0, sizeof *out);
    out->kind = BLITZ_ADDR_UNIX;
    out->bytes = (uint8_t)(at + bytes);
    memcpy(out->is.name + at, name, bytes);
    return 0;
}

int blitz_addr_unix(const char *path, blitz_addr *out)
{
    return unix_addr(path, path != NULL ? strlen(path) : 0, 0, out);
}

int blitz_addr_abstract(const void *name, size_t bytes, blitz_addr *out)
{
    return unix_addr(name, bytes, 1, out);
}

/* ---- predicates ---- */

bool blitz_addr_is_v4(const blitz_addr *a)
{
    return a->kind == BLITZ_ADDR_V4;
}

bool blitz_addr_is_v6(const blitz_addr *a)
{
    return a->kind == BLITZ_ADDR_V6;
}

bool blitz_addr_is_unix(const blitz_addr *a)
{
    return a->kind == BLITZ_ADDR_UNIX;
}

bool blitz_addr_is_abstract(const blitz_addr *a)
{
    return blitz_addr_is_unix(a) && a->bytes > 0 && a->is.name[0] == '\0';
}

static bool is_ip(const blitz_addr *a)
{
    return blitz_addr_is_v4(a) || blitz_addr_is_v6(a);
}

uint16_t blitz_addr_port(const blitz_addr *a)
{
    return is_ip(a) ? a->port : 0;
}

int blitz_addr_set_port(blitz_addr *a, uint16_t port)
{
    if (a == NULL || !is_ip(a))
        return -EINVAL;
    a->port = port;
    return 0;
}

bool blitz_addr_is_v4_mapped(const blitz_addr *a)
{
    static const uint8_t head[12] = {[10] = 0xff, [11] = 0xff};
    return blitz_addr_is_v6(a) && memcmp(a->is.ip, head, sizeof head) == 0;
}

/* The four bytes of an IPv4 address, also if mapped to IPv6; NULL: not IPv4. */
static const uint8_t *v4_in(const blitz_addr *a)
{
    if (blitz_addr_is_v4(a))
        return a->is.ip;
    return blitz_addr_is_v4_mapped(a) ? a->is.ip + 12 : NULL;
}

static bool is_zero(const uint8_t *ip, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        if (ip[i] != 0)
            return false;
    return true;
}

bool blitz_addr_is_loopback(const blitz_addr *a)
{
    const uint8_t *v4 = v4_in(a);
    if (v4 != NULL)
        return v4[0] == 127;
    if (blitz_addr_is_v6(a))
        return is_zero(a->is.ip, 15) && a->is.ip[15] == 1;
    return blitz_addr_is_unix(a);
}

bool blitz_addr_is_any(const blitz_addr *a)
{
    const uint8_t *v4 = v4_in(a);
    return v4 != NULL ? is_zero(v4, 4) : blitz_addr_is_v6(a) && is_zero(a->is.ip, 16);
}

bool blitz_addr_is_multicast(const blitz_addr *a)
{
    const uint8_t *v4 = v4_in(a);
    return v4 != NULL ? v4[0] >> 4 == 0xe : blitz_addr_is_v6(a) && a->is.ip[0] == 0xff;
}

bool blitz_addr_is_link_local(const blitz_addr *a)
{
    const uint8_t *v4 = v4_in(a);
    if (v4 != NULL)
        return v4[0] == 169 && v4[1] == 254;
    return blitz_addr_is_v6(a) && a->is.ip[0] == 0xfe && a->is.ip[1] >> 6 == 2;
}

bool blitz_addr_is_private(const blitz_addr *a)
{
    const uint8_t *v4 = v4_in(a);
    if (v4 != NULL)
        return v4[0] == 10 || (v4[0] == 172 && v4[1] >> 4 == 1) || (v4[0] == 192 && v4[1] == 168);
    return blitz_addr_is_v6(a) && a->is.ip[0] >> 1 == 0xfc >> 1;
}

blitz_addr blitz_addr_unmap(const blitz_addr *a)
{
    if (!blitz_addr_is_v4_mapped(a))
        return *a;
    return ip_addr(BLITZ_ADDR_V4, a->is.ip + 12, 4, a->port);
}

/* ---- comparing ---- */

static int by_number(uint32_t a, uint32_t b)
{
    return (a > b) - (a < b);
}

/* An address may come from a peer or from uninitialized memory: its length may exceed the name. */
static size_t name_bytes(const blitz_addr *a)
{
    return a->bytes < BLITZ_ADDR_NAME_MAX ? a->bytes : BLITZ_ADDR_NAME_MAX;
}

static int by_name(const blitz_addr *a, const blitz_addr *b)
{
    size_t both = name_bytes(a) < name_bytes(b) ? name_bytes(a) : name_bytes(b);
    int order = memcmp(a->is.name, b->is.name, both);
    return order != 0 ? order : by_number(a->bytes, b->bytes);
}

int blitz_addr_compare(const blitz_addr *a, const blitz_addr *b)
{
    int order = by_number(a->kind, b->kind);
    if (order != 0 || a->kind == BLITZ_ADDR_NONE)
        return order;
    if (a->kind == BLITZ_ADDR_UNIX)
        return by_name(a, b);
    order = memcmp(a->is.ip, b->is.ip, a->kind == BLITZ_ADDR_V4 ? 4 : 16);
    if (order == 0)
        order = by_number(a->port, b->port);
    return order != 0 ? order : by_number(a->scope, b->scope);
}

bool blitz_addr_is_equal(const blitz_addr *a, const blitz_addr *b)
{
    return blitz_addr_compare(a, b) == 0;
}
