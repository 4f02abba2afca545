/*
 * print.c - a term as Erlang text.
 *
 * Like the walk (span.c), the print keeps its levels in an array of fixed size. A level knows what to write between its parts and at its
 * end. A list whose tail is a list goes on in the same level.
 *
 * If Erlang can parse the text, it reads the same term. Integers of more than 64 bits are printed in base 16, for which no room to divide
 * is needed. Strings and binaries of printable ASCII are printed as text.
 */
#include <float.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "term/head.h"
#include "term/utf8.h"

struct text {
    char *buf;
    size_t cap;
    int64_t length; /* of the whole text, of which the buffer has the beginning */
};

static void put_n(struct text *t, const char *s, size_t n)
{
    if (t->length < (int64_t)t->cap) {
        size_t room = t->cap - (size_t)t->length;
        memcpy(t->buf + t->length, s, n < room ? n : room);
    }
    t->length += (int64_t)n;
}

static void put(struct text *t, const char *s)
{
    put_n(t, s, strlen(s));
}

/* Print a short text: numbers. */
static BZ_PRINTF(2, 3) void put_f(struct text *t, const char *format, ...)
{
    char buf[64];
    va_list args;
    va_start(args, format);
    int n = vsnprintf(buf, sizeof buf, format, args);
    va_end(args);
    put_n(t, buf, n < 0 ? 0 : (size_t)n < sizeof buf ? (size_t)n : sizeof buf - 1);
}

/* ---- values ---- */

/* The shortest text that is read as the same number: 15 digits and no zeros at their end, but for a subnormal number fewer. Erlang
 * wants a digit on both sides of a point; a locale may have a comma. */
static void put_double(struct text *t, double value)
{
    char buf[40] = "";
    for (int digits = value != 0 && fabs(value) < DBL_MIN ? 2 : 15; digits <= 17; digits++) {
        (void)snprintf(buf, sizeof buf, "%.*e", digits - 1, value);
        if (strtod(buf, NULL) == value)
            break;
    }
    size_t mantissa = strcspn(buf, "e");
    const char *exponent = buf + mantissa;
    char *point = buf + 1 + (buf[0] == '-');
    size_t point_bytes = strspn(point, "0123456789") == 0 ? strcspn(point, "0123456789") : 0;
    size_t digits = mantissa - (size_t)(point - buf) - point_bytes;
    while (digits > 1 && point[point_bytes + digits - 1] == '0')
        digits--;
    put_n(t, buf, (size_t)(point - buf));
    put(t, ".");
    put_n(t, point + point_bytes, digits);
    int e = atoi(exponent + 1);
    if (e != 0)
        put_f(t, "e%d", e);
}

static void put_big(struct text *t, blitz_term_big big)
{
    put(t, big.is_negative ? "-" : "");
    if (big.bytes <= 8) {
        uint64_t sum = 0;
        for (uint32_t i = big.bytes; i-- > 0;)
            sum = sum << 8 | big.digits[i];
        put_f(t, "%llu", (unsigned long long)sum);
        return;
    }
    put(t, "16#");
    for (uint32_t i = big.bytes; i-- > 0;)
        put_f(t, i + 1 == big.bytes ? "%X" : "%02X", big.digits[i]);
}

/* Print a character between quotes. */
static void put_quoted(struct text *t, const char *utf8, unsigned n, uint32_t c, char quote)
{
    if (c == (unsigned char)quote || c == '\\')
        put(t, "\\");
    if (c == '\n')
        put(t, "\\n");
    else if (c < 0x20 || (c >= 0x7f && c < 0xa0))
        put_f(t, "\\x{%X}", (unsigned)c);
    else
        put_n(t, utf8, n);
}

static bool is_plain_atom(const char *text, size_t n)
{
    static const char *const reserved[] = {
        "after", "and",  "andalso", "band",    "begin", "bnot", "bor",  "bsl", "bsr",   "case",
        "catch", "cond", "div",     "else",    "end",   "fun",  "if",   "let", "maybe", "not",
        "of",    "or",   "orelse",  "receive", "rem",   "try",  "when", "xor", "bxor"};
    if (n == 0 || text[0] < 'a' || text[0] > 'z')
        return false;
    if (strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_@") != n)
        return false;
    for (size_t i = 0; i < sizeof reserved / sizeof *reserved; i++)
        if (strcmp(text, reserved[i]) == 0)
            return false;
    return true;
}

static void put_atom(struct text *t, blitz_term_atom atom)
{
    char text[4 * BLITZ_TERM_ATOM_CHARS_MAX + 1];
    int n = blitz_term_atom_copy(atom, text, sizeof text);
    if (n < 0)
        return; /* no atom that was read */
    if (is_plain_atom(text, (size_t)n)) {
        put_n(t, text, (size_t)n);
        return;
    }
    put(t, "'");
    uint32_t c = 0;
    for (int at = 0; at < n;) {
        unsigned length = bz_utf8_get(text + at, (size_t)(n - at), &c);
        if (length == 0)
            break;
        put_quoted(t, text + at, length, c, '\'');
        at += (int)length;
    }
    put(t, "'");
}

static bool is_text(blitz_term bytes)
{
    for (size_t i = 0; i < bytes.bytes; i++)
        if ((bytes.data[i] < 0x20 && bytes.data[i] != '\n') || bytes.data[i] > 0x7e)
            return false;
    return bytes.bytes > 0;
}

static void put_text(struct text *t, blitz_term bytes)
{
    put(t, "\"");
    for (size_t i = 0; i < bytes.bytes; i++)
        put_quoted(t, (const char *)bytes.data + i, 1, bytes.data[i], '"');
    put(t, "\"");
}

static void put_bytes(struct text *t, blitz_term bytes)
{
    for (size_t i = 0; i < bytes.bytes; i++)
        put_f(t, i == 0 ? "%u" : ",%u", bytes.data[i]);
}

static void put_binary(struct text *t, blitz_term bytes)
{
    put(t, "<<");
    (is_text(bytes) ? put_text : put_bytes)(t, bytes);
    put(t, ">>");
}

static void put_bits(struct text *t, blitz_term_bits bits)
{
    unsigned rest = bits.bits % 8;
    blitz_term bytes = {bits.data, (size_t)(bits.bits / 8)};
    put(t, "<<");
    put_bytes(t, bytes);
    put_f(t, "%s%u:%u>>", bytes.bytes > 0 ? "," : "",
          (unsigned)bits.data[bytes.bytes] >> (8 - rest), rest);
}

static void put_ref(struct text *t, const blitz_term_ref *ref)
{
    put(t, "#Ref<");
    put_atom(t, ref->node);
    for (uint32_t i = ref->words; i-- > 0;)
        put_f(t, ".%u", (unsigned)ref->id[i]);
    put(t, ">");
}

static void put_value(struct text *t, const blitz_term_item *item)
{
    switch (item->kind) {
    case BLITZ_TERM_IS_INT:
        put_f(t, "%lld", (long long)item->as.integer);
        break;
    case BLITZ_TERM_IS_BIG:
        put_big(t, item->as.big);
        break;
    case BLITZ_TERM_IS_FLOAT:
        put_double(t, item->as.number);
        break;
    case BLITZ_TERM_IS_ATOM:
        put_atom(t, item->as.atom);
        break;
    case BLITZ_TERM_IS_BINARY:
        put_binary(t, item->as.binary);
        break;
    case BLITZ_TERM_IS_BITS:
        put_bits(t, item->as.bits);
        break;
    case BLITZ_TERM_IS_PID:
        put(t, "#Pid<");
        put_atom(t, item->as.pid.node);
        put_f(t, ".%u.%u>", (unsigned)item->as.pid.id, (unsigned)item->as.pid.serial);
        break;
    case BLITZ_TERM_IS_REF:
        put_ref(t, &item->as.ref);
        break;
    case BLITZ_TERM_IS_PORT:
        put(t, "#Port<");
        put_atom(t, item->as.port.node);
        put_f(t, ".%llu>", (unsigned long long)item->as.port.id);
        break;
    case BLITZ_TERM_IS_EXPORT:
        put(t, "fun ");
        put_atom(t, item->as.fun.module);
        put(t, ":");
        put_atom(t, item->as.fun.function);
        put_f(t, "/%u", (unsigned)item->as.fun.arity);
        break;
    case BLITZ_TERM_IS_FUN:
        put(t, "#Fun<");
        put_atom(t, item->as.fun.module);
        put_f(t, "/%u>", (unsigned)item->as.fun.arity);
        break;
    default:
        break; /* heads: print_head() */
    }
}

/* ---- tuples, lists, maps ---- */

struct level {
    uint32_t left;
    unsigned char kind; /* of the head */
    bool is_key;        /* of a MAP: the next part is a key */
    bool has_parts;     /* one is printed */
};

/* Print what comes before the next part of a level. */
static void separate(struct text *t, struct level *l)
{
    bool is_tail = l->kind == BLITZ_TERM_IS_LIST && l->left == 1;
    const char *between = is_tail ? "|" : l->kind == BLITZ_TERM_IS_MAP && !l->is_key ? "=>" : ",";
    put(t, l->has_parts ? between : "");
    l->has_parts = true;
    l->is_key = !l->is_key;
}

static const char *opening(blitz_term_kind kind)
{
    return kind == BLITZ_TERM_IS_TUPLE ? "{" : kind == BLITZ_TERM_IS_MAP ? "#{" : "[";
}

static const char *closing(unsigned char kind)
{
    return kind == BLITZ_TERM_IS_TUPLE || kind == BLITZ_TERM_IS_MAP ? "}" : "]";
}

static bool has_parts(blitz_term_kind kind)
{
    return kind == BLITZ_TERM_IS_TUPLE || kind == BLITZ_TERM_IS_MAP || kind == BLITZ_TERM_IS_LIST;
}

/* Print the tail of a list as more elements, if it is a list. A LIST goes on in its level. */
static bool print_tail(struct text *t, struct level *l, const blitz_term_item *item)
{
    if (item->kind == BLITZ_TERM_IS_LIST) {
        put(t, ",");
        *l = (struct level){item->as.count + 1, BLITZ_TERM_IS_LIST, false, false};
        return true;
    }
    if (item->kind == BLITZ_TERM_IS_STRING) {
        put(t, item->as.binary.bytes > 0 ? "," : "");
        put_bytes(t, item->as.binary);
    } else if (item->kind != BLITZ_TERM_IS_NIL) {
        return false;
    }
    l->left = 0;
    return true;
}

static void print_leaf(struct text *t, const blitz_term_item *item)
{
    if (item->kind == BLITZ_TERM_IS_NIL ||
        (item->kind == BLITZ_TERM_IS_STRING && item->as.binary.bytes == 0)) {
        put(t, "[]");
    } else if (item->kind == BLITZ_TERM_IS_STRING && is_text(item->as.binary)) {
        put_text(t, item->as.binary);
    } else if (item->kind == BLITZ_TERM_IS_STRING) {
        put(t, "[");
        put_bytes(t, item->as.binary);
        put(t, "]");
    } else {
        put_value(t, item);
    }
}

static int print_all(struct text *t, blitz_term term)
{
    struct level levels[BLITZ_TERM_DEPTH_MAX + 1];
    struct level *l = levels;
    blitz_term_in in = blitz_term_in_of(term);
    blitz_term_item item;
    *l = (struct level){1, BLITZ_TERM_IS_NIL, false, false};
    for (;;) {
        int rc = blitz_term_next(&in, &item);
        if (rc != 0)
            return rc;
        bool is_tail = l->kind == BLITZ_TERM_IS_LIST && l->left == 1;
        if (!is_tail || !print_tail(t, l, &item)) {
            separate(t, l);
            l->left--;
            if (!has_parts(item.kind)) {
                print_leaf(t, &item);
            } else {
                if (l == levels + BLITZ_TERM_DEPTH_MAX)
                    return -E2BIG;
                put(t, opening(item.kind));
                uint64_t parts = item.as.count;
                parts = item.kind == BLITZ_TERM_IS_MAP    ? 2 * parts
                        : item.kind == BLITZ_TERM_IS_LIST ? parts + 1
                                                          : parts;
                *++l = (struct level){(uint32_t)parts, (unsigned char)item.kind, true, false};
            }
        }
        for (; l->left == 0; l--) {
            if (l == levels)
                return 0;
            put(t, closing(l->kind));
        }
    }
}

int64_t blitz_term_print(blitz_term term, char *buf, size_t cap)
{
    struct text t = {buf, cap, 0};
    int rc = print_all(&t, term);
    if (rc != 0)
        put(&t, "...");
    if (cap > 0)
        buf[t.length < (int64_t)cap ? (size_t)t.length : cap - 1] = '\0';
    return rc != 0 ? rc : t.length;
}
