/*
 * dns_cache.h - answers of name servers, kept for as long as they say. dns_cache.c has the rules.
 *
 * The functions take no lock: the caller holds the resolver's. So none of them allocates or frees. An entry is made
 * before the lock is taken, and entries that leave are freed after it was dropped.
 */
#ifndef BZ_NET_DNS_CACHE_H
#define BZ_NET_DNS_CACHE_H

#include "base/alloc.h"
#include "base/list.h"
#include "net/dns_message.h"

struct bz_dns_entry {
    struct bz_list used;       /* in the order of use, the latest first */
    struct bz_dns_entry *next; /* of the same bucket; of a chain of entries that left */
    uint64_t until_ns;         /* the last moment at which it may be used */
    uint32_t bytes;            /* of the allocation */
    uint32_t hash;
    uint16_t type, count;
    uint8_t verdict; /* FOUND, NO_NAME or NO_DATA */
    char name[];     /* with its 0; then the addresses */
};

struct bz_dns_cache {
    const blitz_allocator *alloc;
    size_t max, count;
    uint32_t mask;
    struct bz_dns_entry **bucket;
    struct bz_list used;
};

/* max 0: keep nothing. Returns 0, -ENOMEM. */
BZ_MUST_USE int bz_dns_cache_init(struct bz_dns_cache *c, size_t max, const blitz_allocator *alloc);
void bz_dns_cache_fini(struct bz_dns_cache *c);

/* Find an answer that may be used at `now_ns`. Return false if there is none. */
BZ_MUST_USE bool bz_dns_cache_find(struct bz_dns_cache *c, const char *name, uint16_t type,
                                   uint64_t now_ns, enum bz_dns_verdict *verdict,
                                   struct bz_dns_answer *out);

/* Make an entry. NULL: no memory, or the answer may not be kept. */
BZ_MUST_USE struct bz_dns_entry *bz_dns_entry_new(const blitz_allocator *alloc, const char *name,
                                                  uint16_t type, enum bz_dns_verdict verdict,
                                                  const struct bz_dns_answer *answer,
                                                  uint64_t now_ns);
/* Put an entry into the cache. Return the entries that left: bz_dns_entries_free(). */
BZ_MUST_USE struct bz_dns_entry *bz_dns_cache_put(struct bz_dns_cache *c, struct bz_dns_entry *e);
/* Take all entries out. */
BZ_MUST_USE struct bz_dns_entry *bz_dns_cache_clear(struct bz_dns_cache *c);
void bz_dns_entries_free(const blitz_allocator *alloc, struct bz_dns_entry *e);

/* Its invariants. */
void bz_dns_cache_check(const struct bz_dns_cache *c);

#endif
