/*
 * dns.h - a name server on the loopback, and the files of a resolver that asks it.
 *
 *     static const struct t_rule rules[] = {{.name = "a.test", .v4 = "192.0.2.1", .ttl_s = 60}, ...};
 *     struct t_dns s = {.rules = rules, .count = 1};
 *     t_dns_begin(&s);                       // s.at: where it listens, over UDP and TCP
 *     blitz_resolver *r = t_resolver(&s, "options timeout:1\n", "", NULL);
 *     ...
 *     t_dns_end(&s);
 *
 * A rule says what the server answers for a name, and which trick it plays. It counts the questions.
 */
#ifndef T_DNS_H
#define T_DNS_H

#include "support/net.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/bz_atomic.h"
#include "base/compiler.h"
#include "blitz/resolve.h"
#include "blitz/udp.h"

/* ---- messages ---- */

struct t_message {
    uint8_t at[16384];
    size_t bytes;
};

static inline void t_put(struct t_message *m, const void *data, size_t bytes)
{
    CHECK_LE(m->bytes + bytes, sizeof m->at);
    memcpy(m->at + m->bytes, data, bytes);
    m->bytes += bytes;
}

static inline void t_put16(struct t_message *m, unsigned n)
{
    t_put(m, (uint8_t[]){(uint8_t)(n >> 8), (uint8_t)n}, 2);
}

static inline void t_put32(struct t_message *m, uint32_t n)
{
    t_put16(m, n >> 16);
    t_put16(m, n & 0xffff);
}

static inline void t_put_name(struct t_message *m, const char *name)
{
    while (*name != '\0') {
        size_t n = strcspn(name, ".");
        t_put(m, (uint8_t[]){(uint8_t)n}, 1);
        t_put(m, name, n);
        name += n + (name[n] == '.');
    }
    t_put(m, "", 1);
}

static inline void t_set16(struct t_message *m, size_t at, unsigned n)
{
    m->at[at] = (uint8_t)(n >> 8);
    m->at[at + 1] = (uint8_t)n;
}

/* Count one more record of a section: 6 answers, 8 authorities, 10 additional ones. */
static inline void t_count(struct t_message *m, size_t section)
{
    t_set16(m, section, (unsigned)(m->at[section] << 8 | m->at[section + 1]) + 1);
}

static inline void t_put_header(struct t_message *m, unsigned id, unsigned flags, const char *name,
                                unsigned type)
{
    m->bytes = 0;
    t_put16(m, id);
    t_put16(m, flags);
    t_put16(m, 1);
    t_put16(m, 0);
    t_put16(m, 0);
    t_put16(m, 0);
    t_put_name(m, name);
    t_put16(m, type);
    t_put16(m, 1);
}

static inline void t_put_record(struct t_message *m, const char *name, unsigned type,
                                uint32_t ttl_s, const void *data, size_t bytes)
{
    t_put_name(m, name);
    t_put16(m, type);
    t_put16(m, 1);
    t_put32(m, ttl_s);
    t_put16(m, (unsigned)bytes);
    t_put(m, data, bytes);
}

static inline void t_put_alias(struct t_message *m, const char *name, uint32_t ttl_s,
                               const char *target)
{
    struct t_message data = {.bytes = 0};
    t_put_name(&data, target);
    t_put_record(m, name, 5, ttl_s, data.at, data.bytes);
    t_count(m, 6);
}

/* Addresses as text, separated by blanks. */
static inline void t_put_addresses(struct t_message *m, const char *name, uint32_t ttl_s,
                                   const char *list)
{
    char text[1024], *rest = text;
    snprintf(text, sizeof text, "%s", list);
    for (char *one; (one = strsep(&rest, " ")) != NULL;) {
        blitz_addr a;
        CHECK_EQ(blitz_addr_parse_ip(one, 0, &a), 0);
        bool is_v4 = blitz_addr_is_v4(&a);
        t_put_record(m, name, is_v4 ? 1 : 28, ttl_s, a.is.ip, is_v4 ? 4 : 16);
        t_count(m, 6);
    }
}

static inline void t_put_soa(struct t_message *m, uint32_t ttl_s, uint32_t minimum_s)
{
    struct t_message data = {.bytes = 0};
    t_put_name(&data, "ns.test");
    t_put_name(&data, "admin.test");
    for (int i = 0; i < 4; i++)
        t_put32(&data, 1);
    t_put32(&data, minimum_s);
    t_put_record(m, "test", 6, ttl_s, data.at, data.bytes);
    t_count(m, 8);
}

/* ---- rules ---- */

enum t_trick {
    T_PLAIN,
    T_FAILS,        /* SERVFAIL */
    T_SILENT,       /* no answer */
    T_CUT,          /* cut over UDP, whole over TCP */
    T_TWICE,        /* two copies of the answer */
    T_WRONG_ID,     /* an answer with another id and a bad address, then the right one */
    T_WRONG_NAME,   /* the same with another name in the question */
    T_WRONG_SOURCE, /* the same from another port */
    T_LOOP,         /* a compressed name that points to itself, in the only answer */
    T_NO_EDNS,      /* a format error for questions with EDNS0 */
    T_NO_AAAA,      /* no answer to questions for AAAA */
    T_AAAA_FIRST,   /* no answer to questions for A */
    T_CLOSES        /* cut over UDP; over TCP the connection is closed */
};

struct t_rule {
    const char *name;
    const char *v4, *v6; /* addresses; NULL: none */
    const char *alias;   /* the end of a chain of `aliases` */
    unsigned aliases;
    uint32_t ttl_s;
    enum t_trick trick;
    unsigned times; /* the trick is played so many times; 0: always */
};

struct t_dns {
    const struct t_rule *rules;
    size_t count;
    uint32_t negative_s; /* TTL of negative answers; 0: 30 */
    blitz_addr at;
    blitz_udp *udp;
    blitz_tcp_listener *tcp;
    blitz_task *task[2];
    bz_atomic(uint32_t) asked[2], by_tcp; /* relaxed: counted. asked: A, AAAA */
    bz_atomic(uint32_t) played;           /* relaxed: counted. Tricks */
    char dir[40];
};

struct t_asked {
    unsigned id, type;
    char name[256];
    bool has_edns, is_tcp;
};

static inline void t_read_question(const uint8_t *data, size_t bytes, struct t_asked *out)
{
    size_t at = 12, n = 0;
    CHECK_GT(bytes, 16u);
    out->id = (unsigned)(data[0] << 8 | data[1]);
    CHECK_EQ(data[5], 1); /* one question */
    while (data[at] != 0) {
        if (n > 0)
            out->name[n++] = '.';
        memcpy(out->name + n, data + at + 1, data[at]);
        n += data[at];
        at += (size_t)data[at] + 1;
        CHECK_LT(at, bytes);
    }
    out->name[n] = '\0';
    out->type = data[at + 2];
    out->has_edns = data[11] == 1;
    CHECK_EQ(bytes, at + 5 + (out->has_edns ? 11u : 0u));
}

static inline const struct t_rule *t_rule_of(struct t_dns *s, const char *name)
{
    for (size_t i = 0; i < s->count; i++)
        if (strcmp(s->rules[i].name, name) == 0)
            return &s->rules[i];
    return NULL;
}

/* The name before the n-th alias of a chain. */
static inline const char *t_link(const struct t_rule *r, unsigned n, char out[64])
{
    if (n == 0)
        return r->name;
    if (n == r->aliases)
        return r->alias;
    snprintf(out, 64, "link%u.test", n);
    return out;
}

static inline void t_answer(struct t_dns *s, const struct t_asked *q, struct t_message *m)
{
    const struct t_rule *r = t_rule_of(s, q->name);
    char a[64], b[64];
    uint32_t negative_s = s->negative_s != 0 ? s->negative_s : 30;
    t_put_header(m, q->id, r != NULL ? 0x8180 : 0x8183, q->name, q->type);
    if (r == NULL) {
        t_put_soa(m, negative_s, negative_s);
        return;
    }
    for (unsigned i = 0; i < r->aliases; i++)
        t_put_alias(m, t_link(r, i, a), r->ttl_s, t_link(r, i + 1, b));
    const char *list = q->type == 1 ? r->v4 : r->v6;
    if (list != NULL)
        t_put_addresses(m, t_link(r, r->aliases, a), r->ttl_s, list);
    else
        t_put_soa(m, negative_s, negative_s);
}

/* An answer that must not be believed. */
static inline void t_lie(const struct t_asked *q, struct t_message *m, unsigned id,
                         const char *name)
{
    t_put_header(m, id, 0x8180, name, q->type);
    t_put_addresses(m, name, 3600, q->type == 1 ? "198.51.100.66" : "6666::6");
}

/* A server that ends may be cancelled here. */
static inline void t_send(blitz_udp *u, const struct t_message *m, const blitz_addr *to)
{
    int64_t n = blitz_udp_send_to(u, m->at, m->bytes, to, blitz_after(20 * BLITZ_S));
    CHECK(n == (int64_t)m->bytes || n == -ECANCELED);
}

static inline void t_lie_from_elsewhere(const struct t_asked *q, const blitz_addr *to)
{
    struct t_message m;
    blitz_udp *u;
    blitz_addr any = blitz_addr_loopback_v4(0);
    t_lie(q, &m, q->id, q->name);
    CHECK_EQ(blitz_udp_bind(&any, NULL, &u), 0);
    t_send(u, &m, to);
    blitz_udp_close(u);
}

/* The trick of a rule, if it is still to be played. */
static inline enum t_trick t_trick_of(struct t_dns *s, const struct t_asked *q)
{
    const struct t_rule *r = t_rule_of(s, q->name);
    if (r == NULL || r->trick == T_PLAIN)
        return T_PLAIN;
    if ((r->trick == T_NO_AAAA && q->type != 28) || (r->trick == T_AAAA_FIRST && q->type != 1))
        return T_PLAIN;
    uint32_t n = bz_fetch_add_relaxed(&s->played, 1); /* relaxed: counted */
    return r->times == 0 || n < r->times ? r->trick : T_PLAIN;
}

/* Answer a question that came by UDP. */
static inline void t_reply(struct t_dns *s, const struct t_asked *q, const blitz_addr *to)
{
    struct t_message m;
    enum t_trick trick = t_trick_of(s, q);
    if (trick == T_SILENT || trick == T_NO_AAAA || trick == T_AAAA_FIRST)
        return;
    if (trick == T_WRONG_ID || trick == T_WRONG_NAME) {
        t_lie(q, &m, trick == T_WRONG_ID ? q->id ^ 0x0100 : q->id,
              trick == T_WRONG_NAME ? "other.test" : q->name);
        t_send(s->udp, &m, to);
    }
    if (trick == T_WRONG_SOURCE)
        t_lie_from_elsewhere(q, to);
    t_answer(s, q, &m);
    if (trick == T_FAILS || (trick == T_NO_EDNS && q->has_edns))
        t_set16(&m, 2, trick == T_FAILS ? 0x8182 : 0x8181);
    if (trick == T_CUT || trick == T_CLOSES)
        t_set16(&m, 2, 0x8380);
    if (trick == T_LOOP) {
        size_t at = m.bytes;
        t_put16(&m, 0xc000 | (unsigned)at);
        t_put(&m, "\0\1\0\1\0\0\0\1\0\4\6\6\6\6", 14);
        t_set16(&m, 6, 1);
        t_set16(&m, 8, 0);
        memmove(m.at + 12 + strlen(q->name) + 6, m.at + at, m.bytes - at);
        m.bytes -= at - (12 + strlen(q->name) + 6);
        t_set16(&m, 12 + strlen(q->name) + 6, 0xc000 | (unsigned)(12 + strlen(q->name) + 6));
    }
    t_send(s->udp, &m, to);
    if (trick == T_TWICE)
        t_send(s->udp, &m, to);
}

/* ---- the server ---- */

static inline void t_count_question(struct t_dns *s, const struct t_asked *q)
{
    bz_fetch_add_relaxed(&s->asked[q->type == 28], 1); /* relaxed: counted */
}

static inline int t_serve_udp(void *arg)
{
    struct t_dns *s = arg;
    uint8_t data[512];
    blitz_addr from;
    struct t_asked q = {.is_tcp = false};
    for (int64_t n; (n = blitz_udp_recv_from(s->udp, data, sizeof data, &from, BLITZ_FOREVER)) !=
                    -ECANCELED;) {
        if (n < 0)
            continue; /* a datagram of ours was refused: the resolver had left */
        t_read_question(data, (size_t)n, &q);
        t_count_question(s, &q);
        t_reply(s, &q, &from);
    }
    return 0;
}

static inline int t_serve_one_tcp(struct t_dns *s, blitz_tcp *t)
{
    uint8_t length[2], data[512];
    struct t_asked q = {.is_tcp = true};
    struct t_message m;
    int err = blitz_tcp_read_exact(t, length, 2, NULL, BLITZ_FOREVER);
    if (err != 0)
        return err;
    CHECK_EQ(length[0], 0);
    err = blitz_tcp_read_exact(t, data, length[1], NULL, BLITZ_FOREVER);
    if (err != 0)
        return err;
    t_read_question(data, length[1], &q);
    t_count_question(s, &q);
    bz_fetch_add_relaxed(&s->by_tcp, 1); /* relaxed: counted */
    const struct t_rule *r = t_rule_of(s, q.name);
    if (r != NULL && (r->trick == T_CLOSES || r->trick == T_SILENT))
        return -EPIPE;
    t_answer(s, &q, &m);
    if (r != NULL && r->trick == T_FAILS)
        t_set16(&m, 2, 0x8182);
    if (r != NULL && r->trick == T_WRONG_ID)
        t_set16(&m, 0, q.id ^ 1);
    length[0] = (uint8_t)(m.bytes >> 8);
    length[1] = (uint8_t)m.bytes;
    err = blitz_tcp_write_all(t, length, 2, NULL, BLITZ_FOREVER);
    return err != 0 ? err : blitz_tcp_write_all(t, m.at, m.bytes, NULL, BLITZ_FOREVER);
}

static inline int t_serve_tcp(void *arg)
{
    struct t_dns *s = arg;
    blitz_tcp *t;
    while (blitz_tcp_accept(s->tcp, &t, NULL, BLITZ_FOREVER) == 0) {
        while (t_serve_one_tcp(s, t) == 0)
            continue;
        blitz_tcp_close(t);
    }
    return 0;
}

/* Listen over TCP, and over UDP at the same port unless it is a simulation. */
static inline void t_dns_begin(struct t_dns *s)
{
    s->tcp = t_listen(&s->at);
    s->task[0] = t_spawn(t_serve_tcp, s);
    s->task[1] = NULL;
    s->udp = NULL;
    if (!bz_os_is_simulated()) {
        while (blitz_udp_bind(&s->at, NULL, &s->udp) == -EADDRINUSE) { /* that port is another's */
            blitz_task_cancel(s->task[0]);
            t_join(s->task[0]);
            blitz_tcp_listener_close(s->tcp);
            s->tcp = t_listen(&s->at);
            s->task[0] = t_spawn(t_serve_tcp, s);
        }
        s->task[1] = t_spawn(t_serve_udp, s);
    }
}

static inline uint32_t t_asked(struct t_dns *s)
{
    /* relaxed: counted */
    return bz_load_relaxed(&s->asked[0]) + bz_load_relaxed(&s->asked[1]);
}

static inline const char *t_path(struct t_dns *s, const char *name, char out[80])
{
    if (s->dir[0] == '\0') {
        snprintf(s->dir, sizeof s->dir, "/tmp/blitz-dns-XXXXXX");
        CHECK_NOT_NULL(mkdtemp(s->dir));
    }
    snprintf(out, 80, "%s/%s", s->dir, name);
    return out;
}

static inline void t_write(const char *path, const char *text)
{
    char next[100];
    snprintf(next, sizeof next, "%s.new", path);
    FILE *f = fopen(next, "w");
    CHECK_NOT_NULL(f);
    CHECK_EQ(fwrite(text, 1, strlen(text), f), strlen(text));
    CHECK_EQ(fclose(f), 0);
    CHECK_EQ(rename(next, path), 0);
}

/* Write a resolv.conf that names the server `times` times, and further lines. */
static inline void t_write_conf(struct t_dns *s, const char *more, unsigned times)
{
    char path[80], text[2000];
    size_t n = 0;
    for (unsigned i = 0; i < times; i++)
        n += (size_t)snprintf(text + n, sizeof text - n, "nameserver [127.0.0.1]:%u\n", s->at.port);
    snprintf(text + n, sizeof text - n, "%s", more);
    t_write(t_path(s, "resolv.conf", path), text);
}

/* A resolver that asks this server only. */
static inline blitz_resolver *t_resolver(struct t_dns *s, const char *more, const char *hosts,
                                         const blitz_resolver_opts *like)
{
    char conf[80], table[80], sources[80];
    blitz_resolver_opts opts = like != NULL ? *like : (blitz_resolver_opts){0};
    blitz_resolver *r;
    t_write_conf(s, more, 1);
    t_write(t_path(s, "hosts", table), hosts);
    t_write(t_path(s, "nsswitch.conf", sources), "hosts: files dns\n");
    opts.resolv_conf = t_path(s, "resolv.conf", conf);
    opts.hosts = table;
    opts.nsswitch = sources;
    CHECK_EQ(blitz_resolver_new(&opts, &r), 0);
    return r;
}

static inline void t_dns_end(struct t_dns *s)
{
    static const char *const names[] = {"resolv.conf", "hosts", "nsswitch.conf"};
    char path[80];
    for (unsigned i = 0; i < 2; i++) {
        if (s->task[i] != NULL) {
            blitz_task_cancel(s->task[i]);
            t_join(s->task[i]);
        }
    }
    blitz_tcp_listener_close(s->tcp);
    blitz_udp_close(s->udp);
    for (size_t i = 0; s->dir[0] != '\0' && i < BZ_ARRAY_LEN(names); i++)
        (void)remove(t_path(s, names[i], path));
    if (s->dir[0] != '\0')
        CHECK_EQ(rmdir(s->dir), 0);
    s->dir[0] = '\0';
}

#endif
