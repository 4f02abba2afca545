/*
 * dns_files.h - the files that say how names are looked up: resolv.conf, nsswitch.conf and hosts, as text in memory.
 *
 * Nothing here waits or calls the system. dns_files.c has the rules, dns_hosts.c the table of hosts.
 */
#ifndef BZ_NET_DNS_FILES_H
#define BZ_NET_DNS_FILES_H

#include "base/alloc.h"
#include "net/dns_message.h"

enum {
    BZ_DNS_SERVERS_MAX = 3, /* as the C library */
    BZ_DNS_SEARCH_MAX = 16,
    BZ_DNS_PORT = 53
};

/* resolv.conf. */
struct bz_dns_conf {
    blitz_addr server[BZ_DNS_SERVERS_MAX];
    unsigned server_count;
    char search[BZ_DNS_SEARCH_MAX][BZ_DNS_NAME_MAX];
    unsigned search_count;
    unsigned ndots, timeout_s, attempts;
    bool is_rotated; /* begin with another server each time */
    bool is_tcp;     /* use-vc */
    bool is_single;  /* one question at a time */
    bool is_without_aaaa;
    bool is_foreign; /* it asks for something that only the system's resolver does */
};

/* Read a resolv.conf. `host` is the name of this host: without a search list its domain is searched. It may be "". */
void bz_dns_conf_read(struct bz_dns_conf *out, const char *text, size_t bytes, const char *host);

/* The sources of host names, in order. */
enum bz_dns_source { BZ_DNS_FILES, BZ_DNS_SERVERS };
struct bz_dns_sources {
    uint8_t at[2]; /* enum bz_dns_source */
    uint8_t count;
    bool has_mdns;   /* names below .local are the system's */
    bool has_self;   /* the names of this host are the system's */
    bool is_foreign; /* a source that only the system's resolver knows */
};

/* Read the line `hosts:` of an nsswitch.conf. Without one: files, then servers. */
void bz_dns_sources_read(struct bz_dns_sources *out, const char *text, size_t bytes);

/* ---- hosts: dns_hosts.c ---- */

struct bz_dns_hosts;

/* Read a hosts file. Returns 0 and *out, or -ENOMEM. Lines that are wrong are ignored. */
BZ_MUST_USE int bz_dns_hosts_new(const char *text, size_t bytes, const blitz_allocator *alloc,
                                 struct bz_dns_hosts **out);
void bz_dns_hosts_free(struct bz_dns_hosts *h);
/* Find the addresses of a name (as bz_dns_name() writes it), in the order of the file. Returns their number. */
BZ_MUST_USE size_t bz_dns_hosts_find(const struct bz_dns_hosts *h, const char *name,
                                     blitz_addr *out, size_t room);

/* ---- words of a line ---- */

/* A part of a text. */
struct bz_dns_text {
    const char *at;
    size_t bytes;
};

/* Take the next line out of a text, without its end and its comment. Return false at the end of the text. */
bool bz_dns_text_line(struct bz_dns_text *text, const char *comment, struct bz_dns_text *out);
/* Take the next word out of a line. Return false if there is none. */
bool bz_dns_text_word(struct bz_dns_text *line, struct bz_dns_text *out);
bool bz_dns_text_is(struct bz_dns_text s, const char *word);

#endif
