/*
 * addr_text.c - parse and print addresses, in one canonical form.
 *
 * The parser is strict on purpose. C libraries accept "0x7f.1", "1" and "0177.1" as IPv4, each in
 * its own way, and programs that check a text with one parser and connect with another had security
 * holes. Here an address is four decimal numbers without leading zeros, or IPv6 as in RFC 4291; a
 * port is a decimal number. The printed form is that of RFC 5952, which parses to the same value.
 *
 * The parser has a cursor. Each function below either advances it and returns true, or returns
 * false; after false the cursor is not used any more.
 */
#include <errno.h>
#include <string.h>

#include "base/compiler.h"
#include "blitz/addr.h"

/* ---- parsing ---- */

static bool take_char(const char **at, char c)
{
    bool is_there = **at == c;
    *at += is_there;
    return is_there;
}

/* Parse a decimal number up to `max`, without leading zeros. */
static bool take_number(const char **at, uint32_t max, uint32_t *out)
{
    const char *s = *at;
    uint64_t value = 0;
    if (*s < '0' || *s > '9' || (s[0] == '0' && s[1] >= '0' && s[1] <= '9'))
        return false;
    for (; *s >= '0' && *s <= '9'; s++) {
        value = value * 10 + (uint64_t)(*s - '0');
        if (value > max)
            return false;
    }
    *at = s;
    *out = (uint32_t)value;
    return true;
}

static bool take_v4(const char **at, uint8_t ip[4])
{
    for (int i = 0; i < 4; i++) {
        uint32_t byte;
        if ((i > 0 && !take_char(at, '.')) || !take_number(at, 255, &byte))
            return false;
        ip[i] = (uint8_t)byte;
    }
    return true;
}

static int hex_of(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* Parse one to four hexadecimal digits. */
static bool take_group(const char **at, uint8_t out[2])
{
    unsigned value = 0, digits = 0;
    while (hex_of(**at) >= 0 && digits < 4) {
        value = value << 4 | (unsigned)hex_of(*(*at)++);
        digits++;
    }
    out[0] = (uint8_t)(value >> 8);
    out[1] = (uint8_t)value;
    return digits > 0 && hex_of(**at) < 0;
}

/* The last four bytes may be written as IPv4. */
static bool take_v4_tail(const char **at, uint8_t *ip, size_t have)
{
    const char *s = *at;
    if (have > 12 || !take_v4(&s, ip + have))
        return false;
    *at = s;
    return true;
}

/* Move the groups after "::" to the end; those before it stay. */
static bool spread(uint8_t ip[16], size_t have, size_t gap)
{
    if (have > 14) /* "::" stands for at least one group */
        return false;
    memmove(ip + 16 - (have - gap), ip + gap, have - gap);
    memset(ip + gap, 0, 16 - have);
    return true;
}

static bool take_v6(const char **at, uint8_t ip[16])
{
    enum { NO_GAP = 99 };
    size_t have = 0, gap = NO_GAP;
    memset(ip, 0, 16);
    if ((*at)[0] == ':' && (*at)[1] == ':') {
        gap = 0;
        *at += 2;
    }
    while (have < 16 && hex_of(**at) >= 0) {
        if (take_v4_tail(at, ip, have)) {
            have += 4;
            break;
        }
        if (!take_group(at, ip + have))
            return false;
        have += 2;
        if (gap == NO_GAP && (*at)[0] == ':' && (*at)[1] == ':') {
            gap = have;
            *at += 2;
        } else if (have < 16 && !take_char(at, ':')) {
            break;
        } else if (have < 16 && hex_of(**at) < 0) {
            return false; /* a colon with nothing after it */
        }
    }
    return gap == NO_GAP ? have == 16 : spread(ip, have, gap);
}

static bool take_v6_scoped(const char **at, blitz_addr *out)
{
    uint8_t ip[16];
    uint32_t scope = 0;
    if (!take_v6(at, ip) || (take_char(at, '%') && !take_number(at, UINT32_MAX, &scope)))
        return false;
    *out = blitz_addr_v6(ip, 0, scope);
    return true;
}

static bool take_v4_addr(const char **at, blitz_addr *out)
{
    uint8_t ip[4];
    if (!take_v4(at, ip))
        return false;
    *out = blitz_addr_v4(ip[0], ip[1], ip[2], ip[3], 0);
    return true;
}

static bool take_host(const char **at, blitz_addr *out)
{
    if (**at == ':') {
        *out = blitz_addr_any_v6(0);
        return true;
    }
    if (take_char(at, '['))
        return take_v6_scoped(at, out) && take_char(at, ']');
    return take_v4_addr(at, out);
}

static int parse_unix(const char *name, blitz_addr *out)
{
    if (name[0] == '@')
        return blitz_addr_abstract(name + 1, strlen(name + 1), out);
    return blitz_addr_unix(name, out);
}

int blitz_addr_parse(const char *text, blitz_addr *out)
{
    blitz_addr a;
    uint32_t port;
    if (text == NULL || out == NULL)
        return -EINVAL;
    if (strncmp(text, "unix:", 5) == 0)
        return parse_unix(text + 5, out);
    if (!take_host(&text, &a) || !take_char(&text, ':') || !take_number(&text, UINT16_MAX, &port) ||
        *text != '\0')
        return -EINVAL;
    a.port = (uint16_t)port;
    *out = a;
    return 0;
}

int blitz_addr_parse_ip(const char *text, uint16_t port, blitz_addr *out)
{
    blitz_addr a;
    if (text == NULL || out == NULL)
        return -EINVAL;
    bool is_v6 = strchr(text, ':') != NULL;
    if (!(is_v6 ? take_v6_scoped(&text, &a) : take_v4_addr(&text, &a)) || *text != '\0')
        return -EINVAL;
    a.port = port;
    *out = a;
    return 0;
}

/* ---- printing ---- */

struct text {
    char at[BLITZ_ADDR_TEXT_MAX];
    size_t length;
};

static void add_char(struct text *t, char c)
{
    t->at[t->length++] = c;
}

static void add_text(struct text *t, const char *text)
{
    while (*text != '\0')
        add_char(t, *text++);
}

/* Print in base 10 or 16, with at least this many digits. */
static void add_number(struct text *t, uint32_t value, unsigned base, unsigned digits)
{
    char backwards[10];
    unsigned n = 0;
    for (; value != 0 || n < digits; value /= base)
        backwards[n++] = "0123456789abcdef"[value % base];
    while (n > 0)
        add_char(t, backwards[--n]);
}

static void add_v4(struct text *t, const uint8_t *ip)
{
    for (int i = 0; i < 4; i++) {
        if (i > 0)
            add_char(t, '.');
        add_number(t, ip[i], 10, 1);
    }
}

static unsigned group_of(const uint8_t *ip, unsigned i)
{
    return (unsigned)ip[2 * i] << 8 | ip[2 * i + 1];
}

/* Find the first longest run of zero groups; a single group does not count. */
static unsigned longest_zeros(const uint8_t *ip, unsigned *from)
{
    unsigned best = 1;
    for (unsigned i = 0; i < 8;) {
        unsigned end = i;
        while (end < 8 && group_of(ip, end) == 0)
            end++;
        if (end - i > best) {
            best = end - i;
            *from = i;
        }
        i = end + 1;
    }
    return best > 1 ? best : 0;
}

static void add_v6(struct text *t, const uint8_t *ip)
{
    unsigned from = 8, run = longest_zeros(ip, &from);
    for (unsigned i = 0; i < 8; i++) {
        if (run > 0 && i == from) {
            add_text(t, "::");
            i += run - 1;
            continue;
        }
        if (i > 0 && i != from + run)
            add_char(t, ':');
        add_number(t, group_of(ip, i), 16, 1);
    }
}

static void add_ip(struct text *t, const blitz_addr *a)
{
    if (blitz_addr_is_v4(a)) {
        add_v4(t, a->is.ip);
        return;
    }
    add_char(t, '[');
    if (blitz_addr_is_v4_mapped(a)) {
        add_text(t, "::ffff:");
        add_v4(t, a->is.ip + 12);
    } else {
        add_v6(t, a->is.ip);
    }
    if (a->scope != 0) {
        add_char(t, '%');
        add_number(t, a->scope, 10, 1);
    }
    add_char(t, ']');
}

static void add_name(struct text *t, const blitz_addr *a)
{
    bool is_abstract = blitz_addr_is_abstract(a);
    add_text(t, "unix:");
    if (is_abstract)
        add_char(t, '@');
    else if (a->bytes > 0 && a->is.name[0] == '@')
        add_text(t, "./"); /* or it would parse as an abstract name */
    for (size_t i = is_abstract; i < a->bytes; i++) {
        unsigned char c = (unsigned char)a->is.name[i];
        if (is_abstract && (c < ' ' || c > '~')) {
            add_text(t, "\\x");
            add_number(t, c, 16, 2);
        } else {
            add_char(t, (char)c);
        }
    }
}

int blitz_addr_print(const blitz_addr *a, char *text, size_t room)
{
    struct text t;
    t.length = 0;
    if (a == NULL || (text == NULL && room > 0))
        return -EINVAL;
    if (blitz_addr_is_unix(a) && a->bytes <= BLITZ_ADDR_NAME_MAX) {
        add_name(&t, a);
    } else if (blitz_addr_is_v4(a) || blitz_addr_is_v6(a)) {
        add_ip(&t, a);
        add_char(&t, ':');
        add_number(&t, a->port, 10, 1);
    } else {
        return -EINVAL;
    }
    if (t.length >= room)
        return -ENOSPC;
    memcpy(text, t.at, t.length);
    text[t.length] = '\0';
    return (int)t.length;
}
