/*
 * dns_hosts.c - the table of a hosts file.
 *
 * A hosts file may have a hundred thousand lines, of which each lookup needs one or two. So the file becomes a hash
 * table once: an entry for each name on each line, chained in the order of the file. The names stay in a copy of the
 * text. One allocation holds all of it. The table is constant after it is made, so any thread may read it.
 *
 * I1  The chain of a bucket has its entries in the order of the file.
 */
#include "net/dns_files.h"

#include <errno.h>
#include <string.h>

enum { NONE = -1 };

struct entry {
    uint32_t name;  /* where it begins in the text */
    uint8_t length; /* of the name */
    uint8_t kind;   /* of the address: a blitz_addr_kind */
    uint8_t ip[16];
    uint32_t scope;
    int32_t next; /* of the same bucket, or NONE */
};

struct bz_dns_hosts {
    const blitz_allocator *alloc;
    size_t total_bytes, entry_count;
    uint32_t mask;   /* buckets - 1 */
    int32_t *bucket; /* the first entry, or NONE */
    struct entry *entry;
    char *text;
};

static uint32_t hash_of(const char *name, size_t bytes)
{
    uint32_t h = 2166136261U; /* FNV-1a */
    for (size_t i = 0; i < bytes; i++)
        h = (h ^ (uint8_t)name[i]) * 16777619U;
    return h ^ h >> 15;
}

/* ---- making it ---- */

/* The address at the start of a line. Return false if the line has none. */
static bool address_of(struct bz_dns_text *line, blitz_addr *out)
{
    struct bz_dns_text word;
    char ip[64];
    if (!bz_dns_text_word(line, &word) || word.bytes >= sizeof ip)
        return false;
    memcpy(ip, word.at, word.bytes);
    ip[word.bytes] = '\0';
    return blitz_addr_parse_ip(ip, 0, out) == 0;
}

/* The number of names, at most. */
static size_t count_names(const char *text, size_t bytes)
{
    struct bz_dns_text rest = {text, bytes}, line, word;
    size_t n = 0;
    while (bz_dns_text_line(&rest, "#", &line))
        while (bz_dns_text_word(&line, &word))
            n++;
    return n;
}

static void add(struct bz_dns_hosts *h, const char *name, size_t length, const blitz_addr *at,
                size_t place)
{
    struct entry *e = &h->entry[h->entry_count];
    memcpy(h->text + place, name, length);
    *e = (struct entry){.name = (uint32_t)place,
                        .length = (uint8_t)length,
                        .kind = at->kind,
                        .scope = at->scope,
                        .next = NONE};
    memcpy(e->ip, at->is.ip, sizeof e->ip);
    h->entry_count++;
}

/* Put the entries into their buckets, the last one first: so each goes to the front, and I1 holds. */
static void link_all(struct bz_dns_hosts *h)
{
    for (size_t i = h->entry_count; i-- > 0;) {
        struct entry *e = &h->entry[i];
        int32_t *first = &h->bucket[hash_of(h->text + e->name, e->length) & h->mask];
        e->next = *first;
        *first = (int32_t)i;
    }
}

static void fill(struct bz_dns_hosts *h, const char *text, size_t bytes)
{
    struct bz_dns_text rest = {text, bytes}, line, word;
    blitz_addr at;
    char name[BZ_DNS_NAME_MAX];
    while (bz_dns_text_line(&rest, "#", &line)) {
        if (!address_of(&line, &at))
            continue;
        while (bz_dns_text_word(&line, &word)) {
            int length = bz_dns_name(word.at, word.bytes, name);
            if (length > 0)
                add(h, name, (size_t)length, &at, (size_t)(word.at - text));
        }
    }
}

int bz_dns_hosts_new(const char *text, size_t bytes, const blitz_allocator *alloc,
                     struct bz_dns_hosts **out)
{
    size_t names = count_names(text, bytes), buckets = 8;
    while (buckets < names)
        buckets *= 2;
    size_t total = sizeof(struct bz_dns_hosts) + names * sizeof(struct entry) +
                   buckets * sizeof(int32_t) + bytes;
    if (bytes > INT32_MAX)
        return -ENOMEM;
    struct bz_dns_hosts *h = bz_alloc(alloc, total, _Alignof(struct bz_dns_hosts));
    if (h == NULL)
        return -ENOMEM;
    *h = (struct bz_dns_hosts){.alloc = alloc, .total_bytes = total, .mask = (uint32_t)buckets - 1};
    h->entry = (struct entry *)(h + 1);
    h->bucket = (int32_t *)(h->entry + names);
    h->text = (char *)(h->bucket + buckets);
    memset(h->bucket, 0xff, buckets * sizeof(int32_t)); /* NONE */
    fill(h, text, bytes);
    link_all(h);
    *out = h;
    return 0;
}

void bz_dns_hosts_free(struct bz_dns_hosts *h)
{
    if (h != NULL)
        bz_free(h->alloc, h, h->total_bytes);
}

/* ---- finding names ---- */

static bool is_among(const blitz_addr *at, const blitz_addr *others, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (blitz_addr_is_equal(at, &others[i]))
            return true;
    return false;
}

size_t bz_dns_hosts_find(const struct bz_dns_hosts *h, const char *name, blitz_addr *out,
                         size_t room)
{
    size_t length = strlen(name), n = 0;
    int32_t i = h->bucket[hash_of(name, length) & h->mask];
    for (; i != NONE && n < room; i = h->entry[i].next) {
        const struct entry *e = &h->entry[i];
        if (e->length != length || memcmp(h->text + e->name, name, length) != 0)
            continue;
        blitz_addr at = {.kind = e->kind, .scope = e->scope};
        memcpy(at.is.ip, e->ip, sizeof e->ip);
        if (!is_among(&at, out, n))
            out[n++] = at;
    }
    return n;
}
