/*
 * dns_cache.c - a bounded table of answers, by name and type.
 *
 * A hash table of entries, and a list in the order of use. A full cache drops the entry that was not used for the
 * longest time. Negative answers are kept, too: a search list asks for names that do not exist before it comes to the
 * one that does. An answer is kept for its TTL, but for at most a day, a negative one for at most an hour: an
 * administrator who makes an error should not have to wait a week. An expired entry is not used. It stays until a new
 * answer replaces it or it is the least recently used one.
 *
 * Rejected: answers beyond their TTL while the servers do not answer (RFC 8767). That hides outages from the program.
 *
 * I1  count <= max. Every entry is in the list and in the bucket of its hash.
 * I2  Two entries differ in name or type.
 */
#include "net/dns_cache.h"

#include <errno.h>
#include <string.h>

#include "base/check.h"

enum { KEEP_MAX_S = 24 * 60 * 60, KEEP_NEGATIVE_MAX_S = 60 * 60 };
#define SECOND_NS UINT64_C(1000000000)

int bz_dns_cache_init(struct bz_dns_cache *c, size_t max, const blitz_allocator *alloc)
{
    size_t buckets = 1;
    while (buckets < max)
        buckets *= 2;
    *c = (struct bz_dns_cache){.alloc = alloc, .max = max, .mask = (uint32_t)(buckets - 1)};
    bz_list_init(&c->used);
    c->bucket = bz_alloc(alloc, buckets * sizeof(struct bz_dns_entry *), _Alignof(void *));
    if (c->bucket == NULL)
        return -ENOMEM;
    memset(c->bucket, 0, buckets * sizeof(struct bz_dns_entry *));
    return 0;
}

void bz_dns_cache_fini(struct bz_dns_cache *c)
{
    bz_dns_entries_free(c->alloc, bz_dns_cache_clear(c));
    bz_free(c->alloc, c->bucket, ((size_t)c->mask + 1) * sizeof(struct bz_dns_entry *));
}

static uint32_t hash_of(const char *name, uint16_t type)
{
    uint32_t h = 2166136261U ^ type; /* FNV-1a */
    for (; *name != '\0'; name++)
        h = (h ^ (uint8_t)*name) * 16777619U;
    return h ^ h >> 15;
}

static struct bz_dns_entry **place_of(struct bz_dns_cache *c, const char *name, uint16_t type,
                                      uint32_t hash)
{
    struct bz_dns_entry **at = &c->bucket[hash & c->mask];
    while (*at != NULL &&
           ((*at)->hash != hash || (*at)->type != type || strcmp((*at)->name, name) != 0))
        at = &(*at)->next;
    return at;
}

/* Take an entry out and push it to a chain. */
static void leave(struct bz_dns_cache *c, struct bz_dns_entry **at, struct bz_dns_entry **left)
{
    struct bz_dns_entry *e = *at;
    BZ_CHECK(e != NULL, "dns cache: an entry is in no bucket"); /* I1 */
    *at = e->next;
    bz_list_remove(&e->used);
    c->count--;
    e->next = *left;
    *left = e;
}

/* ---- finding ---- */

static size_t address_bytes(uint16_t type)
{
    return type == BZ_DNS_A ? 4 : 16;
}

bool bz_dns_cache_find(struct bz_dns_cache *c, const char *name, uint16_t type, uint64_t now_ns,
                       enum bz_dns_verdict *verdict, struct bz_dns_answer *out)
{
    struct bz_dns_entry *e = *place_of(c, name, type, hash_of(name, type));
    if (e == NULL || now_ns > e->until_ns)
        return false;
    const char *ip = e->name + strlen(e->name) + 1;
    bz_list_remove(&e->used);
    bz_list_push_front(&c->used, &e->used);
    *verdict = (enum bz_dns_verdict)e->verdict;
    out->count = e->count;
    out->ttl_s = (uint32_t)((e->until_ns - now_ns) / SECOND_NS);
    for (unsigned i = 0; i < e->count; i++)
        memcpy(out->ip[i], ip + i * address_bytes(type), address_bytes(type));
    return true;
}

/* ---- keeping ---- */

struct bz_dns_entry *bz_dns_entry_new(const blitz_allocator *alloc, const char *name, uint16_t type,
                                      enum bz_dns_verdict verdict,
                                      const struct bz_dns_answer *answer, uint64_t now_ns)
{
    uint32_t most_s = verdict == BZ_DNS_FOUND ? KEEP_MAX_S : KEEP_NEGATIVE_MAX_S;
    uint32_t ttl_s = answer->ttl_s < most_s ? answer->ttl_s : most_s;
    size_t length = strlen(name) + 1, one = address_bytes(type);
    size_t count = verdict == BZ_DNS_FOUND ? answer->count : 0;
    size_t bytes = sizeof(struct bz_dns_entry) + length + count * one;
    struct bz_dns_entry *e =
        ttl_s > 0 ? bz_alloc(alloc, bytes, _Alignof(struct bz_dns_entry)) : NULL;
    if (e == NULL)
        return NULL;
    *e = (struct bz_dns_entry){.until_ns = now_ns + ttl_s * SECOND_NS,
                               .bytes = (uint32_t)bytes,
                               .hash = hash_of(name, type),
                               .type = type,
                               .count = (uint16_t)count,
                               .verdict = (uint8_t)verdict};
    bz_list_init(&e->used);
    memcpy(e->name, name, length);
    for (size_t i = 0; i < count; i++)
        memcpy(e->name + length + i * one, answer->ip[i], one);
    return e;
}

struct bz_dns_entry *bz_dns_cache_put(struct bz_dns_cache *c, struct bz_dns_entry *e)
{
    struct bz_dns_entry *left = NULL;
    if (c->max == 0) {
        e->next = NULL;
        return e;
    }
    struct bz_dns_entry **old = place_of(c, e->name, e->type, e->hash);
    if (*old != NULL)
        leave(c, old, &left); /* I2 */
    if (c->count == c->max) { /* I1 */
        struct bz_dns_entry *last = BZ_CONTAINER_OF(c->used.prev, struct bz_dns_entry, used);
        leave(c, place_of(c, last->name, last->type, last->hash), &left);
    }
    struct bz_dns_entry **first = &c->bucket[e->hash & c->mask];
    e->next = *first;
    *first = e;
    bz_list_push_front(&c->used, &e->used);
    c->count++;
    return left;
}

struct bz_dns_entry *bz_dns_cache_clear(struct bz_dns_cache *c)
{
    struct bz_dns_entry *left = NULL;
    for (size_t i = 0; c->bucket != NULL && i <= c->mask; i++)
        while (c->bucket[i] != NULL)
            leave(c, &c->bucket[i], &left);
    return left;
}

void bz_dns_entries_free(const blitz_allocator *alloc, struct bz_dns_entry *e)
{
    while (e != NULL) {
        struct bz_dns_entry *next = e->next;
        bz_free(alloc, e, e->bytes);
        e = next;
    }
}

void bz_dns_cache_check(const struct bz_dns_cache *c)
{
    size_t in_list = 0, in_buckets = 0;
    for (const struct bz_list *l = c->used.next; l != &c->used; l = l->next)
        in_list++;
    for (size_t i = 0; i <= c->mask; i++)
        for (const struct bz_dns_entry *e = c->bucket[i]; e != NULL; e = e->next) {
            BZ_CHECK((e->hash & c->mask) == i, "dns cache: %s is in the wrong bucket", e->name);
            in_buckets++;
        }
    BZ_CHECK(c->count <= c->max, "dns cache: %zu entries, %zu allowed", c->count, c->max); /* I1 */
    BZ_CHECK(in_list == c->count, "dns cache: %zu of %zu in the list", in_list, c->count);
    BZ_CHECK(in_buckets == c->count, "dns cache: %zu of %zu in buckets", in_buckets, c->count);
}
