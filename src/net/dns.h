/*
 * dns.h - a resolver of its own: hosts file, cache, and lookups in flight. dns.c and dns_flight.c have the rules.
 */
#ifndef BZ_NET_DNS_H
#define BZ_NET_DNS_H

#include "blitz/event.h"
#include "blitz/mutex.h"
#include "blitz/resolve.h"
#include "io/small_file.h"
#include "net/dns_ask.h"
#include "net/dns_cache.h"
#include "os/lock.h"

enum { BZ_DNS_PATHS = 3 }; /* resolv.conf, hosts, nsswitch.conf */

/* The content of the files when they were read. Constant, and shared by reference. */
struct bz_dns_setup {
    bz_atomic(uint32_t) refs;
    struct bz_dns_conf conf;
    struct bz_dns_sources sources;
    struct bz_dns_hosts *hosts;
    char self[BZ_DNS_NAME_MAX]; /* the name of this host, or "" */
    struct bz_file_stamp stamp[BZ_DNS_PATHS];
    bool is_foreign; /* names go to the system's resolver */
};

struct blitz_resolver {
    bz_atomic(uint32_t) refs;
    blitz_resolve_by by;      /* constant, as are the next two */
    char *path[BZ_DNS_PATHS]; /* the resolver's own copies */
    blitz_duration check_ns;
    blitz_mutex reading;        /* held while the files are read */
    struct bz_lock lock;        /* guards the rest */
    struct bz_dns_setup *setup; /* a reference; NULL: not read yet */
    blitz_instant check_at;     /* when to look again whether the files have changed */
    struct bz_dns_cache cache;
    struct bz_list flights;
    unsigned rotor;
};

/* A host to look up. */
struct bz_dns_host {
    char name[BZ_DNS_NAME_MAX];
    bool is_absolute; /* it had a dot at its end: no search list */
};

/* The resolver of the process. NULL: no memory. */
blitz_resolver *bz_resolver_default(void);

void bz_resolver_lock(blitz_resolver *r);
void bz_resolver_unlock(blitz_resolver *r);

/* ---- dns_setup.c: the files ---- */

/* Return a reference to the setup, or NULL: the files have to be read. Does not wait for a disk. */
struct bz_dns_setup *bz_dns_setup_now(blitz_resolver *r);
/* The same, and read the files if need be. Suspends. Returns 0 and *out; -ECANCELED, -ENOMEM. */
BZ_MUST_USE int bz_dns_setup_get(blitz_resolver *r, struct bz_dns_setup **out);
void bz_dns_setup_unref(struct bz_dns_setup *s);

/* ---- dns.c: names ---- */

/*
 * Look a host up by servers and cache. With may_ask, `a` has all but questions and answers.
 * Returns: 0: `a` has the answers; -ENOENT; -EINPROGRESS (servers must be asked: only without may_ask); an error of
 *          bz_dns_ask().
 */
BZ_MUST_USE int bz_dns_by_servers(blitz_resolver *r, const struct bz_dns_setup *s,
                                  const struct bz_dns_host *h, struct bz_dns_ask *a, bool may_ask);
/*
 * Look a host up in the order of the sources.
 * Returns: the number of addresses in `found`, from the hosts file; 0: `a` has the answers; else as
 *          bz_dns_by_servers(); -EOPNOTSUPP: ask the system's resolver.
 */
BZ_MUST_USE int bz_dns_by_sources(blitz_resolver *r, const struct bz_dns_setup *s,
                                  const struct bz_dns_host *h, struct bz_dns_ask *a, bool may_ask,
                                  blitz_addr found[BLITZ_RESOLVE_MAX]);
/* Keep the answer to question i, unless the files have changed since `s`. */
void bz_dns_keep(blitz_resolver *r, const struct bz_dns_setup *s, const struct bz_dns_ask *a,
                 unsigned i);
/* Write the addresses of one question's answer. Returns their number. */
BZ_MUST_USE size_t bz_dns_addresses(const struct bz_dns_ask *a, unsigned i, blitz_addr *out,
                                    size_t room);

/*
 * Look a host up without waiting, the best address first.
 * Returns: the number of addresses; -ENOENT; -EINPROGRESS (join a flight), -EOPNOTSUPP (ask the system's resolver),
 *          -ENOMEM.
 */
BZ_MUST_USE int bz_dns_local(blitz_resolver *r, const struct bz_dns_host *h, bool is_eager,
                             blitz_addr *out, size_t room);
/* Sort `count` found addresses and copy them. Those for an eager caller alternate between the families. Returns how
 * many. */
int bz_dns_give(blitz_addr *found, size_t count, bool is_eager, blitz_addr *out, size_t room);

/* ---- dns_flight.c: lookups that wait ---- */

struct bz_dns_flight;

/* Join the flight for a host, or start one. Call from a task. Returns 0 and *out, or a negative errno. */
BZ_MUST_USE int bz_dns_flight_join(blitz_resolver *r, const struct bz_dns_host *h,
                                   struct bz_dns_flight **out);
/* The event to wait for. An eager waiter takes the addresses of one family if the other's are late (RFC 8305). */
blitz_event *bz_dns_flight_event(struct bz_dns_flight *f, bool is_eager);
/*
 * Take the result, once the event is set.
 * Returns: the number of addresses; -EINPROGRESS: call bz_dns_local() again; an error. *is_partial: those of one
 *          family are missing.
 */
BZ_MUST_USE int bz_dns_flight_result(struct bz_dns_flight *f, bool is_eager, blitz_addr *out,
                                     size_t room, bool *is_partial);
/* Leave it, before or after its end. The last waiter that leaves cancels it. */
void bz_dns_flight_leave(struct bz_dns_flight *f);

#endif
