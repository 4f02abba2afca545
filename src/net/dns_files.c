/*
 * dns_files.c - resolv.conf and nsswitch.conf.
 *
 * Both are read as the C library reads them: limits, defaults, and the last `search` or `domain` wins. A setting that we
 * do not know makes the configuration foreign, and lookups go to the system's resolver. That is the safe side: an
 * administrator who writes `sortlist`, or a source such as `ldap`, means it. Settings without a meaning for us (debug,
 * edns0, trust-ad, reload) are skipped.
 *
 * One form is not the C library's: `nameserver [127.0.0.1]:5353`, as OpenBSD writes it, for servers at another port.
 *
 * nsswitch.conf often names sources that matter for a few names only. mdns is for names below .local, myhostname for
 * the names of this host. So those names alone go to the system (dns.c).
 */
#include "net/dns_files.h"

#include <string.h>

/* ---- words ---- */

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\f' || c == '\v';
}

bool bz_dns_text_line(struct bz_dns_text *text, const char *comment, struct bz_dns_text *out)
{
    if (text->bytes == 0)
        return false;
    const char *end = memchr(text->at, '\n', text->bytes);
    size_t bytes = end != NULL ? (size_t)(end - text->at) : text->bytes;
    *out = (struct bz_dns_text){text->at, 0};
    while (out->bytes < bytes &&
           (out->at[out->bytes] == '\0' || strchr(comment, out->at[out->bytes]) == NULL))
        out->bytes++;
    size_t taken = bytes + (end != NULL);
    *text = (struct bz_dns_text){text->at + taken, text->bytes - taken};
    return true;
}

bool bz_dns_text_word(struct bz_dns_text *line, struct bz_dns_text *out)
{
    while (line->bytes > 0 && is_blank(*line->at))
        *line = (struct bz_dns_text){line->at + 1, line->bytes - 1};
    *out = (struct bz_dns_text){line->at, 0};
    while (out->bytes < line->bytes && !is_blank(out->at[out->bytes]))
        out->bytes++;
    *line = (struct bz_dns_text){line->at + out->bytes, line->bytes - out->bytes};
    return out->bytes > 0;
}

bool bz_dns_text_is(struct bz_dns_text s, const char *word)
{
    return s.bytes == strlen(word) && memcmp(s.at, word, s.bytes) == 0;
}

static bool begins_with(struct bz_dns_text s, const char *start)
{
    return s.bytes >= strlen(start) && memcmp(s.at, start, strlen(start)) == 0;
}

/* Read a number in decimal, at most `max`. Return false if there is none. */
static bool number(struct bz_dns_text s, unsigned max, unsigned *out)
{
    unsigned n = 0;
    if (s.bytes == 0)
        return false;
    for (size_t i = 0; i < s.bytes; i++) {
        if (s.at[i] < '0' || s.at[i] > '9')
            return false;
        n = n * 10 + (unsigned)(s.at[i] - '0');
        n = n > max ? max : n;
    }
    *out = n;
    return true;
}

/* ---- resolv.conf ---- */

/* Read "[address]:port". Return false if it is not of that form. */
static bool read_bracketed(struct bz_dns_text word, blitz_addr *out)
{
    char ip[64];
    unsigned port;
    const char *end = memchr(word.at, ']', word.bytes);
    if (*word.at != '[' || end == NULL || (size_t)(end - word.at) > sizeof ip)
        return false;
    size_t bytes = (size_t)(end - word.at) - 1, behind = word.bytes - bytes - 2;
    memcpy(ip, word.at + 1, bytes);
    ip[bytes] = '\0';
    if (behind < 2 || end[1] != ':' ||
        !number((struct bz_dns_text){end + 2, behind - 1}, UINT16_MAX + 1, &port))
        return false;
    return port > 0 && port <= UINT16_MAX && blitz_addr_parse_ip(ip, (uint16_t)port, out) == 0;
}

static void read_server(struct bz_dns_conf *c, struct bz_dns_text line)
{
    struct bz_dns_text word;
    blitz_addr at;
    char ip[64];
    if (!bz_dns_text_word(&line, &word) || word.bytes >= sizeof ip)
        return;
    if (c->server_count == BZ_DNS_SERVERS_MAX)
        return; /* as the C library */
    memcpy(ip, word.at, word.bytes);
    ip[word.bytes] = '\0';
    if (blitz_addr_parse_ip(ip, BZ_DNS_PORT, &at) == 0 || read_bracketed(word, &at))
        c->server[c->server_count++] = at;
    else if (memchr(word.at, '%', word.bytes) != NULL)
        c->is_foreign = true; /* an interface by its name */
}

static void read_search(struct bz_dns_conf *c, struct bz_dns_text line)
{
    struct bz_dns_text word;
    c->search_count = 0;
    while (bz_dns_text_word(&line, &word)) {
        if (bz_dns_text_is(word, "."))
            continue;
        if (c->search_count == BZ_DNS_SEARCH_MAX ||
            bz_dns_name(word.at, word.bytes, c->search[c->search_count]) < 0) {
            c->is_foreign = true;
            return;
        }
        c->search_count++;
    }
}

static bool option_number(struct bz_dns_text word, const char *name, unsigned max, unsigned *out)
{
    size_t n = strlen(name);
    return begins_with(word, name) &&
           number((struct bz_dns_text){word.at + n, word.bytes - n}, max, out);
}

/* Set a flag. Return false if the option is another. */
static bool option_flag(struct bz_dns_conf *c, struct bz_dns_text word)
{
    if (bz_dns_text_is(word, "rotate"))
        c->is_rotated = true;
    else if (bz_dns_text_is(word, "use-vc"))
        c->is_tcp = true;
    else if (bz_dns_text_is(word, "single-request") ||
             bz_dns_text_is(word, "single-request-reopen"))
        c->is_single = true;
    else if (bz_dns_text_is(word, "no-aaaa"))
        c->is_without_aaaa = true;
    else
        return false;
    return true;
}

static bool option_is_idle(struct bz_dns_text word)
{
    static const char *const idle[] = {"debug",     "edns0",      "trust-ad",     "no-reload",
                                       "no_reload", "ip6-dotint", "no-ip6-dotint"};
    for (size_t i = 0; i < BZ_ARRAY_LEN(idle); i++)
        if (bz_dns_text_is(word, idle[i]))
            return true;
    return false;
}

static void read_options(struct bz_dns_conf *c, struct bz_dns_text line)
{
    struct bz_dns_text word;
    while (bz_dns_text_word(&line, &word)) {
        if (option_number(word, "ndots:", 15, &c->ndots) ||
            option_number(word, "timeout:", 30, &c->timeout_s) ||
            option_number(word, "attempts:", 5, &c->attempts) || option_flag(c, word) ||
            option_is_idle(word))
            continue;
        c->is_foreign = true;
    }
}

static void read_setting(struct bz_dns_conf *c, struct bz_dns_text line)
{
    struct bz_dns_text key;
    if (!bz_dns_text_word(&line, &key))
        return;
    if (bz_dns_text_is(key, "nameserver"))
        read_server(c, line);
    else if (bz_dns_text_is(key, "search") || bz_dns_text_is(key, "domain"))
        read_search(c, line);
    else if (bz_dns_text_is(key, "options"))
        read_options(c, line);
    else
        c->is_foreign = true; /* sortlist, and whatever comes */
}

void bz_dns_conf_read(struct bz_dns_conf *out, const char *text, size_t bytes, const char *host)
{
    struct bz_dns_text rest = {text, bytes}, line;
    *out = (struct bz_dns_conf){.ndots = 1, .timeout_s = 5, .attempts = 2};
    const char *domain = strchr(host, '.');
    if (domain != NULL && bz_dns_name(domain + 1, strlen(domain + 1), out->search[0]) > 0)
        out->search_count = 1;
    while (bz_dns_text_line(&rest, "#;", &line))
        read_setting(out, line);
    if (out->server_count == 0)
        out->server[out->server_count++] = blitz_addr_loopback_v4(BZ_DNS_PORT);
    out->timeout_s = out->timeout_s > 0 ? out->timeout_s : 1;
    out->attempts = out->attempts > 0 ? out->attempts : 1;
}

/* ---- nsswitch.conf ---- */

static void add_source(struct bz_dns_sources *s, enum bz_dns_source source)
{
    for (unsigned i = 0; i < s->count; i++)
        if (s->at[i] == source)
            return;
    s->at[s->count++] = (uint8_t)source;
}

static void read_sources(struct bz_dns_sources *s, struct bz_dns_text line)
{
    struct bz_dns_text word;
    bool is_after_mdns = false;
    while (bz_dns_text_word(&line, &word)) {
        bool is_mdns = begins_with(word, "mdns");
        if (bz_dns_text_is(word, "files"))
            add_source(s, BZ_DNS_FILES);
        else if (bz_dns_text_is(word, "dns"))
            add_source(s, BZ_DNS_SERVERS);
        else if (is_mdns)
            s->has_mdns = true;
        else if (bz_dns_text_is(word, "myhostname"))
            s->has_self = true;
        else if (!is_after_mdns || *word.at != '[') /* [NOTFOUND=return] of mdns is for .local */
            s->is_foreign = true;
        is_after_mdns = is_mdns;
    }
}

void bz_dns_sources_read(struct bz_dns_sources *out, const char *text, size_t bytes)
{
    struct bz_dns_text rest = {text, bytes}, line, key;
    bool has_line = false;
    *out = (struct bz_dns_sources){0};
    while (!has_line && bz_dns_text_line(&rest, "#", &line)) {
        struct bz_dns_text all = line;
        if (!bz_dns_text_word(&line, &key) || !begins_with(key, "hosts:"))
            continue;
        const char *from = key.at + 6;
        read_sources(out, (struct bz_dns_text){from, (size_t)(all.at + all.bytes - from)});
        has_line = true;
    }
    if (!has_line) {
        add_source(out, BZ_DNS_FILES);
        add_source(out, BZ_DNS_SERVERS);
    }
    out->is_foreign = out->is_foreign || out->count == 0;
}
