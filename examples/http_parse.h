/*
 * http_parse.h - the head of an HTTP/1.x request, strictly (RFC 9110, RFC 9112).
 *
 * One function without state or allocation. Call it with the bytes received so far. It returns
 * "more", "wrong" with the status to answer, or the length of the head. All results point into the
 * caller's bytes. Debian's only parser in C (http-parser) is unmaintained, so here is a small one;
 * tests/unit/http_parse_test.c fuzzes it.
 *
 * It is strict, because an attacker can exploit a server and a proxy that parse the same bytes
 * differently. Lines end in CR LF only, no line is folded, there is no space before a colon, one
 * Host, at most one length, and no length with chunks.
 */
#ifndef HTTP_PARSE_H
#define HTTP_PARSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <strings.h>

#if !defined(BZ_BROKEN)
#define BZ_BROKEN(n) 0 /* the tests of the tests plant bugs by number */
#endif

enum { HTTP_LINE_MAX = 8000, HTTP_HEAD_MAX = 16384, HTTP_FIELDS_MAX = 100, HTTP_PATH_MAX = 1024 };

struct http_text {
    const char *at;
    size_t len;
};

struct http_request {
    struct http_text method, target;
    struct http_text if_modified_since; /* empty: none */
    unsigned minor;                     /* HTTP/1.minor */
    unsigned hosts;                     /* Host fields */
    bool is_kept;                       /* the connection stays open after the answer */
    bool has_length, is_chunked;
    uint64_t length; /* of the body */
};

/* The remaining bytes. */
struct http_cursor {
    const char *at, *end;
};

static inline bool http_is(struct http_text t, const char *word)
{
    return t.len == strlen(word) && strncasecmp(t.at, word, t.len) == 0;
}

static inline bool http_is_token(unsigned char c)
{
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
           (c != '\0' && strchr("!#$%&'*+-.^_`|~", c) != NULL);
}

/* Skip the bytes of the given class, maybe none. Return false if the input ends before another
 * byte. */
static inline bool http_span(struct http_cursor *c, bool (*is_wanted)(unsigned char),
                             struct http_text *out)
{
    out->at = c->at;
    while (c->at < c->end && is_wanted((unsigned char)*c->at))
        c->at++;
    out->len = (size_t)(c->at - out->at);
    return c->at < c->end;
}

/* Consume the given bytes. Return 1 if they are next, 0 if more input is needed, -1 if other bytes
 * are next. */
static inline int http_take(struct http_cursor *c, const char *word)
{
    for (; *word != '\0'; word++, c->at++) {
        if (c->at == c->end)
            return 0;
        if (*c->at != *word)
            return -1;
    }
    return 1;
}

static inline bool http_is_target(unsigned char c)
{
    return c > ' ' && c < 0x7f && c != '#';
}

static inline bool http_is_value(unsigned char c)
{
    return c == '\t' || (c >= ' ' && c != 0x7f);
}

static inline bool http_is_blank(unsigned char c)
{
    return c == ' ' || c == '\t';
}

static inline bool http_is_digit(unsigned char c)
{
    return c >= '0' && c <= '9';
}

/* All functions below: 1 taken, 0 more is needed, or minus the status to answer. */

static inline int http_version(struct http_cursor *c, struct http_request *r)
{
    int got = http_take(c, "HTTP/");
    if (got <= 0)
        return got == 0 ? 0 : -400;
    if (c->end - c->at < 3)
        return 0;
    if (!http_is_digit((unsigned char)c->at[0]) || c->at[1] != '.' ||
        !http_is_digit((unsigned char)c->at[2]))
        return -400;
    if (c->at[0] != '1')
        return -505;
    r->minor = (unsigned)(c->at[2] - '0');
    r->is_kept = r->minor >= 1;
    c->at += 3;
    got = http_take(c, "\r\n");
    return got < 0 ? -400 : got;
}

static inline int http_line(struct http_cursor *c, struct http_request *r)
{
    const char *begin = c->at;
    if (!http_span(c, http_is_token, &r->method))
        return c->at - begin > HTTP_LINE_MAX ? -414 : 0;
    if (r->method.len == 0 || *c->at++ != ' ')
        return -400;
    if (!http_span(c, http_is_target, &r->target))
        return c->at - begin > HTTP_LINE_MAX ? -414 : 0;
    if (c->at - begin > HTTP_LINE_MAX)
        return -414;
    if (r->target.len == 0 || *c->at++ != ' ')
        return -400;
    return http_version(c, r);
}

static inline int http_length(struct http_text value, struct http_request *r)
{
    if (r->has_length || value.len == 0 || value.len > 15)
        return -400;
    r->has_length = true;
    r->length = 0;
    for (size_t i = 0; i < value.len; i++) {
        if (!http_is_digit((unsigned char)value.at[i]))
            return -400;
        r->length = r->length * 10 + (unsigned)(value.at[i] - '0');
    }
    return 1;
}

/* A list of words and commas: the two that mean something here. */
static inline void http_connection(struct http_text value, struct http_request *r)
{
    const char *end = value.at + value.len;
    for (const char *at = value.at; at < end;) {
        struct http_text word = {at, 0};
        while (at < end && *at != ',')
            at++;
        word.len = (size_t)(at - word.at);
        while (word.len > 0 && http_is_blank((unsigned char)*word.at))
            word.at++, word.len--;
        while (word.len > 0 && http_is_blank((unsigned char)word.at[word.len - 1]))
            word.len--;
        if (http_is(word, "close"))
            r->is_kept = false;
        else if (http_is(word, "keep-alive") && r->minor == 0)
            r->is_kept = true;
        at += at < end;
    }
}

static inline int http_meaning(struct http_text name, struct http_text value,
                               struct http_request *r)
{
    if (http_is(name, "content-length"))
        return http_length(value, r);
    if (http_is(name, "transfer-encoding")) {
        if (r->is_chunked || !http_is(value, "chunked"))
            return r->is_chunked ? -400 : -501;
        r->is_chunked = true;
    } else if (http_is(name, "host")) {
        r->hosts++;
    } else if (http_is(name, "connection")) {
        http_connection(value, r);
    } else if (http_is(name, "if-modified-since")) {
        r->if_modified_since = value;
    }
    return 1;
}

static inline int http_field(struct http_cursor *c, struct http_request *r)
{
    struct http_text name, blank, value;
    if (!http_span(c, http_is_token, &name))
        return 0;
    if (name.len == 0 || *c->at++ != ':')
        return -400;
    if (!http_span(c, http_is_blank, &blank) || !http_span(c, http_is_value, &value))
        return 0;
    while (value.len > 0 && http_is_blank((unsigned char)value.at[value.len - 1]))
        value.len--;
    int got = http_take(c, BZ_BROKEN(158) && *c->at == '\n' ? "\n" : "\r\n");
    if (got <= 0)
        return got == 0 ? 0 : -400;
    return http_meaning(name, value, r);
}

/* Checks over several header lines. */
static inline int http_whole(const struct http_request *r)
{
    if (r->hosts > 1 || (r->minor >= 1 && r->hosts == 0))
        return -400;
    if (r->is_chunked && (r->has_length || r->minor == 0))
        return -400;
    return 1;
}

/* The fields up to and with the empty line. */
static inline int http_fields(struct http_cursor *c, struct http_request *r)
{
    for (int n = 0; n <= HTTP_FIELDS_MAX; n++) {
        if (c->at == c->end)
            return 0;
        if (*c->at == '\r') {
            int got = http_take(c, "\r\n");
            return got <= 0 ? (got == 0 ? 0 : -400) : http_whole(r);
        }
        int got = http_field(c, r);
        if (got <= 0)
            return got;
    }
    return -431;
}

/*
 * Read the head of a request.
 * Returns the bytes it has, 0 if there are not enough yet, or minus the status to answer with
 * before closing.
 */
static inline int http_parse(const char *bytes, size_t len, struct http_request *r)
{
    struct http_cursor c = {bytes, bytes + (len < HTTP_HEAD_MAX ? len : HTTP_HEAD_MAX)};
    memset(r, 0, sizeof *r);
    int got = http_line(&c, r);
    if (got > 0)
        got = http_fields(&c, r);
    if (got == 0 && len >= HTTP_HEAD_MAX)
        return -431;
    return got > 0 ? (int)(c.at - bytes) : got;
}

static inline int http_hex(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

/* One byte of a path, decoded; -1: none that may be in a name. */
static inline int http_path_byte(const char **at, const char *end)
{
    int c = (unsigned char)*(*at)++;
    if (c == '%') {
        int high = end - *at >= 2 ? http_hex((*at)[0]) : -1,
            low = high < 0 ? -1 : http_hex((*at)[1]);
        if (low < 0)
            return -1;
        *at += 2;
        c = high * 16 + low;
    }
    return c < ' ' || c == 0x7f ? -1 : c;
}

/*
 * Convert a request target to a path below a folder: decoded, without the query and without a
 * leading slash. Segments that begin with a dot are refused, so the path cannot leave the folder.
 * Return false if there can be no such file.
 */
static inline bool http_path(struct http_text target, char out[HTTP_PATH_MAX])
{
    size_t n = 0;
    const char *at = target.at, *end = at + target.len;
    if (target.len == 0 || *at++ != '/')
        return false;
    while (at < end && *at != '?') {
        int c = http_path_byte(&at, end);
        bool begins = n == 0 || out[n - 1] == '/';
        if (c < 0 || (begins && (c == '.' || c == '/')) || n == HTTP_PATH_MAX - 1)
            return false;
        out[n++] = (char)c;
    }
    out[n] = '\0';
    return true;
}

#endif
