/*
 * dns_setup.c - read the files of a resolver, and again when they have changed.
 *
 * A setup is constant and counted: a lookup keeps the one with which it began. A lookup that begins more than
 * `check_ns` after the last check asks the system for the stamps of the files, which reads no data. If a stamp differs,
 * the files are read again on a thread of the pool, by one task at a time, and the cache is cleared. A file that does not
 * exist is one without lines, as for the C library. A file that exists and cannot be read makes the setup foreign.
 *
 * [R] unref: refs release -> the last unref: refs acquire    the accesses of all holders happen before the end
 */
#include <errno.h>
#include <string.h>

#include "blitz/blocking.h"
#include "net/dns.h"
#include "wait/waker.h"

enum { CONF, HOSTS, SOURCES };
enum { CONF_MAX_BYTES = 1 << 16, HOSTS_MAX_BYTES = 1 << 26 };

static const char self_path[] = "/proc/sys/kernel/hostname";

/* ---- reading ---- */

struct text {
    char *data; /* NULL: none */
    size_t bytes;
};

static void text_free(struct text *t)
{
    bz_free(&bz_allocator_libc, t->data, t->bytes + 1);
}

/* Read a file. Returns 0; -ENOENT: no such file; -ENOMEM; an error. */
static int text_read(const char *path, size_t max, struct text *out, struct bz_file_stamp *stamp)
{
    *out = (struct text){NULL, 0};
    return bz_small_file_read(path, max, &bz_allocator_libc, &out->data, &out->bytes, stamp);
}

static void read_self(struct bz_dns_setup *s)
{
    struct text t;
    struct bz_file_stamp stamp;
    s->self[0] = '\0';
    if (text_read(self_path, BZ_DNS_NAME_MAX, &t, &stamp) == 0)
        (void)!bz_dns_name(t.data, strcspn(t.data, "\n"), s->self);
    text_free(&t);
}

static int use(struct bz_dns_setup *s, unsigned which, const struct text *t)
{
    const char *data = t->data != NULL ? t->data : "";
    if (which == HOSTS)
        return bz_dns_hosts_new(data, t->bytes, &bz_allocator_libc, &s->hosts);
    if (which == CONF)
        bz_dns_conf_read(&s->conf, data, t->bytes, s->self);
    else
        bz_dns_sources_read(&s->sources, data, t->bytes);
    return 0;
}

static int setup_read(struct bz_dns_setup *s, char *const path[BZ_DNS_PATHS])
{
    read_self(s);
    for (unsigned i = 0; i < BZ_DNS_PATHS; i++) {
        struct text t;
        int err =
            text_read(path[i], i == HOSTS ? HOSTS_MAX_BYTES : CONF_MAX_BYTES, &t, &s->stamp[i]);
        if (err != 0 && err != -ENOENT && err != -ENOMEM)
            s->is_foreign = true;
        if (err != -ENOMEM)
            err = use(s, i, &t);
        text_free(&t);
        if (err != 0)
            return err;
    }
    s->is_foreign = s->is_foreign || s->conf.is_foreign || s->sources.is_foreign;
    return 0;
}

struct job {
    const blitz_resolver *r;
    struct bz_dns_setup *made;
};

static int job_run(void *arg)
{
    struct job *j = arg;
    struct bz_dns_setup *s = bz_alloc(&bz_allocator_libc, sizeof *s, _Alignof(struct bz_dns_setup));
    if (s == NULL)
        return -ENOMEM;
    memset(s, 0, sizeof *s);
    bz_atomic_init(&s->refs, 1);
    int err = setup_read(s, j->r->path);
    if (err == 0)
        j->made = s;
    else
        bz_dns_setup_unref(s);
    return err;
}

/* ---- holders ---- */

static struct bz_dns_setup *setup_ref(struct bz_dns_setup *s)
{
    if (s != NULL)
        bz_fetch_add_relaxed(&s->refs, 1); /* relaxed: the resolver holds a reference */
    return s;
}

void bz_dns_setup_unref(struct bz_dns_setup *s)
{
    if (s == NULL || bz_fetch_sub_acqrel(&s->refs, 1) != 1) /* [R] */
        return;
    bz_dns_hosts_free(s->hosts);
    bz_free(&bz_allocator_libc, s, sizeof *s);
}

/* ---- is it still true? ---- */

static bool is_current(const blitz_resolver *r, const struct bz_dns_setup *s)
{
    struct bz_file_stamp now;
    for (unsigned i = 0; i < BZ_DNS_PATHS; i++) {
        bz_small_file_stamp(r->path[i], &now);
        if (!bz_file_stamp_is(&now, &s->stamp[i]))
            return false;
    }
    return true;
}

struct bz_dns_setup *bz_dns_setup_now(blitz_resolver *r)
{
    blitz_instant now = blitz_now();
    bz_resolver_lock(r);
    struct bz_dns_setup *s = setup_ref(r->setup);
    bool is_fresh = now < r->check_at;
    bz_resolver_unlock(r);
    if (s == NULL || is_fresh)
        return s;
    if (!is_current(r, s)) {
        bz_dns_setup_unref(s);
        return NULL;
    }
    bz_resolver_lock(r);
    r->check_at = blitz_time_add(now, r->check_ns);
    bz_resolver_unlock(r);
    return s;
}

/* Make *s the resolver's setup. The answers in the cache were those of other servers. */
static void install(blitz_resolver *r, struct bz_dns_setup *s)
{
    bz_resolver_lock(r);
    struct bz_dns_setup *old = r->setup;
    struct bz_dns_entry *left = bz_dns_cache_clear(&r->cache);
    r->setup = setup_ref(s);
    r->check_at = blitz_after(r->check_ns);
    bz_resolver_unlock(r);
    bz_dns_entries_free(r->cache.alloc, left);
    bz_dns_setup_unref(old);
}

int bz_dns_setup_get(blitz_resolver *r, struct bz_dns_setup **out)
{
    int err = blitz_mutex_lock(&r->reading, BLITZ_FOREVER);
    if (err != 0)
        return err;
    *out = bz_dns_setup_now(r); /* another task may have read them meanwhile */
    if (*out == NULL) {
        struct job j = {r, NULL};
        err = blitz_blocking(job_run, &j);
        if (err == 0)
            install(r, j.made);
        *out = j.made;
    }
    blitz_mutex_unlock(&r->reading);
    return err;
}
