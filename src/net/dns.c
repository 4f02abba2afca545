/*
 * dns.c - the resolver: names by hosts file, cache and search list.
 *
 * A lookup has two forms with one logic. bz_dns_local() runs in the caller, and asks no server: it finds what the hosts
 * file or the cache has. A flight (dns_flight.c) runs as a task, and asks servers where the cache has no answer. Both
 * walk the same list of sources and names (bz_dns_by_sources).
 *
 * The names to try are those of the C library. A name with at least `ndots` dots is tried as it is, then with each
 * domain of the search list. A name with fewer dots is tried the other way round. A name with a dot at its end is tried
 * only as it is. The first name that has an address of either family wins. A server that fails does not end the search.
 * A server that does not answer does, because every further name would cost the same time.
 *
 * Names that are not a matter of files and servers go to the system's resolver (-EOPNOTSUPP). These are all names if
 * the files have settings that we do not know. They are the names below .local with multicast DNS, and the names of this
 * host with myhostname.
 *
 * One lock guards the cache, the list of flights and the current setup. It is held for copies only.
 *
 * [R] unref: refs release -> the last unref: refs acquire    the accesses of all holders happen before the end
 * [D] default: made release -> default: made acquire         the resolver is whole before it can be found
 */
#include "net/dns.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "net/dns_order.h"
#include "wait/waker.h"

static const blitz_allocator *const alloc = &bz_allocator_libc; /* a resolver outlives runtimes */

enum { CACHE_MAX = 1024 };

/* ---- the object ---- */

void bz_resolver_lock(blitz_resolver *r)
{
    bz_lock_take(&r->lock, bz_os_here());
}

void bz_resolver_unlock(blitz_resolver *r)
{
    bz_lock_drop(&r->lock, bz_os_here());
}

static char *copy_of(const char *text)
{
    size_t bytes = strlen(text) + 1;
    char *copy = bz_alloc(alloc, bytes, 1);
    return copy != NULL ? memcpy(copy, text, bytes) : NULL;
}

static void resolver_free(blitz_resolver *r)
{
    for (unsigned i = 0; i < BZ_DNS_PATHS; i++)
        bz_free(alloc, r->path[i], r->path[i] != NULL ? strlen(r->path[i]) + 1 : 0);
    if (r->cache.bucket != NULL)
        bz_dns_cache_fini(&r->cache);
    bz_dns_setup_unref(r->setup);
    bz_free(alloc, r, sizeof *r);
}

/* True if the environment changes what the C library's resolver does. */
static bool is_environment_foreign(void)
{
    /* NOLINTNEXTLINE(concurrency-mt-unsafe): a concurrent setenv cannot be prevented */
    return getenv("LOCALDOMAIN") != NULL || getenv("RES_OPTIONS") != NULL ||
           /* NOLINTNEXTLINE(concurrency-mt-unsafe) */
           getenv("HOSTALIASES") != NULL;
}

/* The way that the variable BLITZ_RESOLVE names, if the options name none. */
static blitz_resolve_by way_of(blitz_resolve_by by)
{
    /* NOLINTNEXTLINE(concurrency-mt-unsafe): a concurrent setenv cannot be prevented */
    const char *text = by == BLITZ_RESOLVE_AUTO ? getenv("BLITZ_RESOLVE") : NULL;
    if (text != NULL && strcmp(text, "own") == 0)
        by = BLITZ_RESOLVE_OWN;
    else if (text != NULL && strcmp(text, "system") == 0)
        by = BLITZ_RESOLVE_SYSTEM;
    return by == BLITZ_RESOLVE_AUTO && is_environment_foreign() ? BLITZ_RESOLVE_SYSTEM : by;
}

int blitz_resolver_new(const blitz_resolver_opts *opts, blitz_resolver **out)
{
    static const blitz_resolver_opts plain;
    if (out == NULL)
        return -EINVAL;
    opts = opts != NULL ? opts : &plain;
    const char *path[BZ_DNS_PATHS] = {
        opts->resolv_conf != NULL ? opts->resolv_conf : "/etc/resolv.conf",
        opts->hosts != NULL ? opts->hosts : "/etc/hosts",
        opts->nsswitch != NULL ? opts->nsswitch : "/etc/nsswitch.conf"};
    blitz_resolver *r = bz_alloc(alloc, sizeof *r, _Alignof(blitz_resolver));
    if (r == NULL)
        return -ENOMEM;
    *r = (blitz_resolver){.by = way_of(opts->by),
                          .check_ns = opts->check_ns != 0 ? opts->check_ns : BLITZ_S,
                          .reading = BLITZ_MUTEX_INIT};
    bz_atomic_init(&r->refs, 1);
    bz_lock_init(&r->lock);
    bz_list_init(&r->flights);
    bool is_whole = true;
    for (unsigned i = 0; i < BZ_DNS_PATHS; i++) {
        r->path[i] = copy_of(path[i]);
        is_whole = is_whole && r->path[i] != NULL;
    }
    size_t max = opts->is_uncached ? 0 : opts->cache_max != 0 ? opts->cache_max : CACHE_MAX;
    if (is_whole && bz_dns_cache_init(&r->cache, max, alloc) == 0) {
        *out = r;
        return 0;
    }
    resolver_free(r);
    return -ENOMEM;
}

blitz_resolver *blitz_resolver_ref(blitz_resolver *r)
{
    if (r != NULL)
        bz_fetch_add_relaxed(&r->refs, 1); /* relaxed: the caller holds a reference */
    return r;
}

void blitz_resolver_unref(blitz_resolver *r)
{
    if (r != NULL && bz_fetch_sub_acqrel(&r->refs, 1) == 1) /* [R] */
        resolver_free(r);
}

void blitz_resolver_clear(blitz_resolver *r)
{
    r = r != NULL ? r : bz_resolver_default();
    if (r == NULL)
        return;
    bz_resolver_lock(r);
    struct bz_dns_entry *left = bz_dns_cache_clear(&r->cache);
    r->check_at = 0;
    bz_resolver_unlock(r);
    bz_dns_entries_free(alloc, left);
}

/* Made by the first lookup, and kept. */
blitz_resolver *bz_resolver_default(void)
{
    static bz_atomic(blitz_resolver *) made;
    blitz_resolver *r = bz_load_acquire(&made), *seen = NULL; /* [D] */
    if (r != NULL || blitz_resolver_new(NULL, &r) != 0)
        return r;
    if (bz_cas_strong_rel_acq(&made, &seen, r)) /* [D] */
        return r;
    blitz_resolver_unref(r);
    return seen;
}

/* ---- names to try ---- */

static unsigned dots_in(const char *name)
{
    unsigned n = 0;
    for (; *name != '\0'; name++)
        n += *name == '.';
    return n;
}

/* Write the n-th name to try, or "" if it is too long. Return false if there is none. */
static bool name_to_try(const struct bz_dns_conf *c, const struct bz_dns_host *h, unsigned n,
                        char out[BZ_DNS_NAME_MAX])
{
    bool is_first = h->is_absolute || dots_in(h->name) >= c->ndots;
    unsigned searched = h->is_absolute ? 0 : c->search_count;
    if (n > searched)
        return false;
    if (n == (is_first ? 0 : searched)) {
        memcpy(out, h->name, BZ_DNS_NAME_MAX);
        return true;
    }
    const char *domain = c->search[is_first ? n - 1 : n];
    size_t a = strlen(h->name), b = strlen(domain);
    out[0] = '\0';
    if (a + 1 + b < BZ_DNS_NAME_MAX - 1) {
        memcpy(out, h->name, a);
        out[a] = '.';
        memcpy(out + a + 1, domain, b + 1);
    }
    return true;
}

/* ---- one name ---- */

/* Set the questions for a name, and answer them by the cache. Return true if one is open. */
static bool prepare(blitz_resolver *r, const struct bz_dns_setup *s, struct bz_dns_ask *a,
                    const char *name)
{
    static const uint16_t type[BZ_DNS_QUESTIONS] = {BZ_DNS_AAAA, BZ_DNS_A};
    blitz_instant now = blitz_now();
    bz_resolver_lock(r);
    for (unsigned i = 0; i < BZ_DNS_QUESTIONS; i++) {
        memcpy(a->q[i].name, name, BZ_DNS_NAME_MAX);
        a->q[i].type = type[i];
        a->answer[i].count = 0;
        a->verdict[i] = BZ_DNS_NO_DATA;
        a->is_open[i] =
            !(type[i] == BZ_DNS_AAAA && s->conf.is_without_aaaa) &&
            !bz_dns_cache_find(&r->cache, name, type[i], now, &a->verdict[i], &a->answer[i]);
    }
    a->first = s->conf.is_rotated ? r->rotor++ : 0;
    bz_resolver_unlock(r);
    return a->is_open[0] || a->is_open[1];
}

static bool has_found(const struct bz_dns_ask *a)
{
    for (unsigned i = 0; i < BZ_DNS_QUESTIONS; i++)
        if (!a->is_open[i] && a->verdict[i] == BZ_DNS_FOUND)
            return true;
    return false;
}

int bz_dns_by_servers(blitz_resolver *r, const struct bz_dns_setup *s, const struct bz_dns_host *h,
                      struct bz_dns_ask *a, bool may_ask)
{
    char name[BZ_DNS_NAME_MAX];
    int result = -ENOENT;
    for (unsigned n = 0; name_to_try(&s->conf, h, n, name); n++) {
        int err = 0;
        if (name[0] == '\0')
            continue;
        if (prepare(r, s, a, name))
            err = may_ask ? bz_dns_ask(a) : -EINPROGRESS;
        if (err == 0 || err == -EAGAIN || err == -EIO) {
            if (has_found(a))
                return 0;
            result = err != 0 ? err : result;
        }
        if (err != 0 && err != -EIO)
            return err;
    }
    return result;
}

void bz_dns_keep(blitz_resolver *r, const struct bz_dns_setup *s, const struct bz_dns_ask *a,
                 unsigned i)
{
    struct bz_dns_entry *e = bz_dns_entry_new(alloc, a->q[i].name, a->q[i].type, a->verdict[i],
                                              &a->answer[i], blitz_now());
    if (e == NULL)
        return; /* it may not be kept, or there is no memory: the next lookup asks again */
    e->next = NULL;
    bz_resolver_lock(r);
    struct bz_dns_entry *left = r->setup == s ? bz_dns_cache_put(&r->cache, e) : e;
    bz_resolver_unlock(r);
    bz_dns_entries_free(alloc, left);
}

/* ---- sources ---- */

static bool ends_with(const char *name, const char *end)
{
    size_t a = strlen(name), b = strlen(end);
    return a >= b && strcmp(name + a - b, end) == 0;
}

/* True if only the system's resolver knows about this name. */
static bool is_foreign(const blitz_resolver *r, const struct bz_dns_setup *s, const char *name)
{
    if (r->by == BLITZ_RESOLVE_OWN)
        return false;
    if (s->is_foreign || (s->sources.has_mdns && ends_with(name, ".local")))
        return true;
    return s->sources.has_self && (name[0] == '_' || strcmp(name, s->self) == 0);
}

int bz_dns_by_sources(blitz_resolver *r, const struct bz_dns_setup *s, const struct bz_dns_host *h,
                      struct bz_dns_ask *a, bool may_ask, blitz_addr found[BLITZ_RESOLVE_MAX])
{
    int result = -ENOENT;
    if (is_foreign(r, s, h->name))
        return -EOPNOTSUPP;
    if (ends_with(h->name, ".onion"))
        return -ENOENT; /* RFC 7686: never a matter of name servers */
    for (unsigned i = 0; i < s->sources.count; i++) {
        if (s->sources.at[i] == BZ_DNS_FILES)
            result = (int)bz_dns_hosts_find(s->hosts, h->name, found, BLITZ_RESOLVE_MAX);
        else
            result = bz_dns_by_servers(r, s, h, a, may_ask);
        if (s->sources.at[i] == BZ_DNS_FILES && result == 0)
            result = -ENOENT;
        if (result >= 0 || (result != -ENOENT && result != -EAGAIN && result != -EIO))
            return result;
    }
    return result;
}

/* ---- addresses ---- */

size_t bz_dns_addresses(const struct bz_dns_ask *a, unsigned i, blitz_addr *out, size_t room)
{
    size_t n = 0;
    if (a->is_open[i] || a->verdict[i] != BZ_DNS_FOUND)
        return 0;
    for (; n < a->answer[i].count && n < room; n++) {
        const uint8_t *ip = a->answer[i].ip[n];
        out[n] = a->q[i].type == BZ_DNS_A ? blitz_addr_v4(ip[0], ip[1], ip[2], ip[3], 0)
                                          : blitz_addr_v6(ip, 0, 0);
    }
    return n;
}

int bz_dns_give(blitz_addr *found, size_t count, bool is_eager, blitz_addr *out, size_t room)
{
    bz_dns_order(found, count);
    if (is_eager)
        bz_dns_interleave(found, count);
    size_t n = count < room ? count : room;
    memcpy(out, found, n * sizeof *out);
    return (int)n;
}

/* The memory of a lookup in the caller: too much for its stack. */
struct local {
    struct bz_dns_ask ask;
    blitz_addr found[BLITZ_RESOLVE_MAX];
};

int bz_dns_local(blitz_resolver *r, const struct bz_dns_host *h, bool is_eager, blitz_addr *out,
                 size_t room)
{
    struct bz_dns_setup *s = bz_dns_setup_now(r);
    if (s == NULL)
        return -EINPROGRESS;
    struct local *l = bz_alloc(alloc, sizeof *l, _Alignof(struct local));
    int n = l != NULL ? bz_dns_by_sources(r, s, h, &l->ask, false, l->found) : -ENOMEM;
    if (n == 0) {
        n = (int)bz_dns_addresses(&l->ask, 0, l->found, BLITZ_RESOLVE_MAX);
        n += (int)bz_dns_addresses(&l->ask, 1, l->found + n, BLITZ_RESOLVE_MAX - (size_t)n);
    }
    if (n > 0)
        n = bz_dns_give(l->found, (size_t)n, is_eager, out, room);
    bz_free(alloc, l, sizeof *l);
    bz_dns_setup_unref(s);
    return n;
}
